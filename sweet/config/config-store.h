/* SPDX-License-Identifier: MIT */
/*
 * config-store.h - store() of struct key: the functions that the table of keys
 * (config-key.c) uses to set fields.
 */
#ifndef SWEET_CONFIG_STORE_H
#define SWEET_CONFIG_STORE_H

struct key;

const char *store_text(const struct key *key, char **values, void *base, const char **wrong);
const char *store_field_text(const struct key *key, char **values, void *base, const char **wrong);
const char *store_text_or_off(const struct key *key, char **values, void *base, const char **wrong);
const char *store_line(const struct key *key, char **values, void *base, const char **wrong);
const char *store_pool(const struct key *key, char **values, void *base, const char **wrong);
const char *store_list(const struct key *key, char **values, void *base, const char **wrong);
const char *store_listen(const struct key *key, char **values, void *base, const char **wrong);
const char *store_names(const struct key *key, char **values, void *base, const char **wrong);
const char *store_addresses(const struct key *key, char **values, void *base, const char **wrong);
const char *store_number(const struct key *key, char **values, void *base, const char **wrong);
const char *store_rate(const struct key *key, char **values, void *base, const char **wrong);
const char *store_size(const struct key *key, char **values, void *base, const char **wrong);
const char *store_time(const struct key *key, char **values, void *base, const char **wrong);
const char *store_ms(const struct key *key, char **values, void *base, const char **wrong);
const char *store_switch(const struct key *key, char **values, void *base, const char **wrong);
const char *store_word(const struct key *key, char **values, void *base, const char **wrong);
const char *store_align(const struct key *key, char **values, void *base, const char **wrong);
const char *store_suffix(const struct key *key, char **values, void *base, const char **wrong);
const char *store_try_files(const struct key *key, char **values, void *base, const char **wrong);
const char *store_charset(const struct key *key, char **values, void *base, const char **wrong);
const char *store_type(const struct key *key, char **values, void *base, const char **wrong);
const char *store_mime_lines(const struct key *key, char **values, void *base, const char **wrong);
const char *store_accel(const struct key *key, char **values, void *base, const char **wrong);
const char *store_upgrade(const struct key *key, char **values, void *base, const char **wrong);
const char *store_methods(const struct key *key, char **values, void *base, const char **wrong);
const char *store_variables(const struct key *key, char **values, void *base, const char **wrong);
const char *store_headers(const struct key *key, char **values, void *base, const char **wrong);
const char *store_request_headers(const struct key *key, char **values, void *base,
				  const char **wrong);
const char *store_match(const struct key *key, char **values, void *base, const char **wrong);
const char *store_rewrite_to(const struct key *key, char **values, void *base, const char **wrong);
const char *store_log_format(const struct key *key, char **values, void *base, const char **wrong);
const char *store_rewrite(const struct key *key, char **values, void *base, const char **wrong);
const char *store_cache(const struct key *key, char **values, void *base, const char **wrong);
const char *store_codings(const struct key *key, char **values, void *base, const char **wrong);
const char *store_types(const struct key *key, char **values, void *base, const char **wrong);
const char *store_cache_control(const struct key *key, char **values, void *base,
				const char **wrong);
const char *store_error_pages(const struct key *key, char **values, void *base, const char **wrong);
const char *store_redirect(const struct key *key, char **values, void *base, const char **wrong);

#endif
