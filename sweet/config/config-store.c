/* SPDX-License-Identifier: MIT */
/*
 * config-store.c - see config-store.h: one function for each kind of field.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <glib.h>

#include "auth/ip-acl.h"
#include "base/address.h"
#include "base/syntax.h"
#include "coding/compress-rule.h"
#include "config/config-key.h"
#include "config/config-rule.h"
#include "config/config-store.h"
#include "config/config-value.h"
#include "config/configuration.h"
#include "http/mime.h"
#include "rules/variable.h"
#include "log/log-format.h"

const char *store_text(const struct key *key, char **values, void *base, const char **wrong)
{
	char **field = (char **)(void *)((char *)base + key->offset);

	*wrong = values[0];
	if (!*values[0] && key->least)
		return "must not be empty";
	*field = g_strdup(values[0]);
	return NULL;
}

/* For a field of a response. */
const char *store_field_text(const struct key *key, char **values, void *base, const char **wrong)
{
	*wrong = values[0];
	if (!rule_is_field_text(values[0]))
		return "must be one line, without control characters";
	return store_text(key, values, base, wrong);
}

/* The same; "off" stores nothing. */
const char *store_text_or_off(const struct key *key, char **values, void *base, const char **wrong)
{
	return strcmp(values[0], "off") == 0 ? NULL : store_field_text(key, values, base, wrong);
}

/* Only characters that a field permits; and short, because each response contains it. */
const char *store_line(const struct key *key, char **values, void *base, const char **wrong)
{
	*wrong = values[0];
	for (const char *at = values[0]; *at; at++)
		if (!g_ascii_isprint(*at))
			return "must be printable ASCII";
	if (strlen(values[0]) > CONFIG_SERVER_HEADER_MAX)
		return "must be at most 128 bytes long";
	return store_text_or_off(key, values, base, wrong);
}

const char *store_pool(const struct key *key, char **values, void *base, const char **wrong)
{
	*wrong = values[0];
	return strcmp(values[0], "off") == 0 ? NULL : store_text(key, values, base, wrong);
}

const char *store_list(const struct key *key, char **values, void *base, const char **wrong)
{
	char ***field = (char ***)(void *)((char *)base + key->offset);

	*wrong = "";
	if (key->least && !values[0])
		return "must have a value";
	for (unsigned i = 0; values[i]; i++) {
		*wrong = values[i];
		if (!*values[i])
			return "must not be empty";
	}
	*field = g_strdupv(values);
	return NULL;
}

const char *store_listen(const struct key *key, char **values, void *base, const char **wrong)
{
	struct listen_address address;

	for (unsigned i = 0; values[i]; i++) {
		*wrong = values[i];
		if (!address_parse(values[i], &address))
			return "must be ADDRESS:PORT, [ADDRESS]:PORT, :PORT, PORT or unix:PATH, "
			       "with TLS followed by \",tls\"";
	}
	return store_list(key, values, base, wrong);
}

/* Whether a blank stands between names that have ends: "index.php index.html". */
static bool is_several(const char *text)
{
	const char *blank = strpbrk(text, " \t,"), *dot = strchr(text, '.');

	return blank && dot && dot < blank && strchr(blank, '.');
}

const char *store_names(const struct key *key, char **values, void *base, const char **wrong)
{
	for (unsigned i = 0; values[i]; i++) {
		*wrong = values[i];
		if (!*values[i] || strpbrk(values[i], "/*?"))
			return "must be a file's name, without a folder or wildcards";
		if (is_several(values[i]))
			return "must be one name: several are separated by ';'";
	}
	return store_list(key, values, base, wrong);
}

const char *store_addresses(const struct key *key, char **values, void *base, const char **wrong)
{
	for (unsigned i = 0; values[i]; i++) {
		char *one[] = {values[i], NULL}, *why;
		struct ip_acl *list = ip_acl_new(one, NULL, &why);

		*wrong = values[i];
		ip_acl_free(list);
		if (!list) {
			g_free(why);
			return "must be an address, a network without bits after its prefix "
			       "(192.0.2.0/24, 2001:db8::/32), \"unix\" or \"all\"";
		}
	}
	return store_list(key, values, base, wrong);
}

const char *store_number(const struct key *key, char **values, void *base, const char **wrong)
{
	uint64_t value = 0;
	const char *must = value_number(values[0], key->least, key->most, &value);

	*wrong = values[0];
	*(unsigned *)(void *)((char *)base + key->offset) = (unsigned)value;
	return must;
}

/* Bytes per second; 0: unlimited.  With less, a packet would take longer than send-timeout. */
const char *store_rate(const struct key *key, char **values, void *base, const char **wrong)
{
	uint64_t value = 0;
	const char *must = value_size(values[0], 0, &value);

	*wrong = values[0];
	if (must || (value && value < 1024))
		return "must be bytes per second like 500K, at least 1K, or 0 for any number";
	*(size_t *)(void *)((char *)base + key->offset) = (size_t)value;
	return NULL;
}

const char *store_size(const struct key *key, char **values, void *base, const char **wrong)
{
	uint64_t value = 0;
	const char *must = value_size(values[0], key->least, &value);

	*wrong = values[0];
	*(size_t *)(void *)((char *)base + key->offset) = (size_t)value;
	return must;
}

static const char *store_any_time(const struct key *key, char **values, void *base,
				  const char **wrong, unsigned bare_ms)
{
	uint64_t value = 0;
	const char *must = value_time(values[0], bare_ms, &value);

	*wrong = values[0];
	if (!must && value < key->least)
		must = "must be a time of at least 1s";
	*(unsigned *)(void *)((char *)base + key->offset) = (unsigned)value;
	return must;
}

const char *store_time(const struct key *key, char **values, void *base, const char **wrong)
{
	return store_any_time(key, values, base, wrong, 1000);
}

const char *store_ms(const struct key *key, char **values, void *base, const char **wrong)
{
	return store_any_time(key, values, base, wrong, 1);
}

const char *store_switch(const struct key *key, char **values, void *base, const char **wrong)
{
	*wrong = values[0];
	return value_switch(values[0], (bool *)(void *)((char *)base + key->offset));
}

const char *store_word(const struct key *key, char **values, void *base, const char **wrong)
{
	*wrong = values[0];
	return value_word(values[0], key->words, (unsigned *)(void *)((char *)base + key->offset))
		       ? NULL
		       : "must be one of";
}

const char *store_align(const struct key *key, char **values, void *base, const char **wrong)
{
	static const unsigned bytes[] = {0, 32, 64};
	unsigned word = 0;

	*wrong = values[0];
	if (!value_word(values[0], key->words, &word))
		return "must be one of";
	*(unsigned *)(void *)((char *)base + key->offset) = bytes[word];
	return NULL;
}

const char *store_suffix(const struct key *key, char **values, void *base, const char **wrong)
{
	*wrong = values[0];
	if (values[0][0] != '.' || !values[0][1] || strchr(values[0], '/'))
		return "must be the end of file names, like .php";
	return store_text(key, values, base, wrong);
}

const char *store_headers(const struct key *key, char **values, void *base, const char **wrong)
{
	(void)key;
	return rule_headers(base, values, wrong);
}

const char *store_request_headers(const struct key *key, char **values, void *base,
				  const char **wrong)
{
	(void)key;
	return rule_request_headers(base, values, wrong);
}

const char *store_try_files(const struct key *key, char **values, void *base, const char **wrong)
{
	(void)key;
	return rule_try_files(base, values, wrong);
}

const char *store_charset(const struct key *key, char **values, void *base, const char **wrong)
{
	size_t length = 0;

	while (syntax_is_token(values[0][length]))
		length++;
	*wrong = values[0];
	if (length == 0 || length > 40 || values[0][length])
		return "must be a name like utf-8, or off";
	return strcmp(values[0], "off") == 0 ? NULL : store_text(key, values, base, wrong);
}

const char *store_type(const struct key *key, char **values, void *base, const char **wrong)
{
	*wrong = values[0];
	return mime_is_type(values[0]) ? store_text(key, values, base, wrong)
				       : "must be a type like text/plain";
}

const char *store_mime_lines(const struct key *key, char **values, void *base, const char **wrong)
{
	for (unsigned i = 0; values[i]; i++) {
		*wrong = values[i];
		if (!mime_is_line(values[i]))
			return "must be TYPE EXTENSION..., like text/x-c c h";
	}
	return store_list(key, values, base, wrong);
}

const char *store_accel(const struct key *key, char **values, void *base, const char **wrong)
{
	for (unsigned i = 0; values[i]; i++) {
		*wrong = values[i];
		if (strcmp(values[i], "internal") != 0 && values[i][0] != '/')
			return "must be internal, or a folder like /srv/files";
	}
	return store_list(key, values, base, wrong);
}

const char *store_methods(const struct key *key, char **values, void *base, const char **wrong)
{
	for (unsigned i = 0; values[i]; i++)
		for (const char *at = values[i]; *at; at++)
			if (!syntax_is_token(*at)) {
				*wrong = values[i];
				return "must be a method like PROPFIND, or any";
			}
	return store_list(key, values, base, wrong);
}

#define UPGRADE_MAX 32 /* bytes of a protocol's name */

/* HTTP/2 in clear text would carry requests past the rules of this server. */
const char *store_upgrade(const struct key *key, char **values, void *base, const char **wrong)
{
	for (unsigned i = 0; values[i]; i++) {
		size_t length = strlen(values[i]);

		*wrong = values[i];
		for (const char *at = values[i]; *at; at++)
			if (!syntax_is_token(*at))
				return "must be the name of a protocol, like websocket";
		if (length == 0 || length > UPGRADE_MAX)
			return "must be the name of a protocol, like websocket";
		if (g_ascii_strncasecmp(values[i], "h2", 2) == 0)
			return "must not be HTTP/2, whose requests the server would not see";
	}
	return store_list(key, values, base, wrong);
}

const char *store_variables(const struct key *key, char **values, void *base, const char **wrong)
{
	return variables_compile((struct variables *)(void *)((char *)base + key->offset), values,
				 wrong);
}

const char *store_log_format(const struct key *key, char **values, void *base, const char **wrong)
{
	return log_format_read(values[0],
			       (struct log_format **)(void *)((char *)base + key->offset), wrong);
}

const char *store_rewrite(const struct key *key, char **values, void *base, const char **wrong)
{
	const char *must = value_path(values[0]);

	*wrong = values[0];
	return must ? must : store_text(key, values, base, wrong);
}

const char *store_rewrite_to(const struct key *key, char **values, void *base, const char **wrong)
{
	(void)key;
	return rule_rewrite_to(base, values, wrong);
}

/* The scopes of a pattern share what is made from it: config-scope.c. */
const char *store_match(const struct key *key, char **values, void *base, const char **wrong)
{
	(void)key;
	(void)base;
	*wrong = values[0];
	return *values[0] ? NULL : "must be a regular expression";
}

const char *store_cache(const struct key *key, char **values, void *base, const char **wrong)
{
	(void)key;
	return rule_cache(base, values, wrong);
}

const char *store_codings(const struct key *key, char **values, void *base, const char **wrong)
{
	struct scope *scope = base;

	(void)key;
	return compress_rule_codings(&scope->compress, values, wrong);
}

const char *store_types(const struct key *key, char **values, void *base, const char **wrong)
{
	const char *must = compress_rule_types(values, wrong);

	return must ? must : store_list(key, values, base, wrong);
}

const char *store_cache_control(const struct key *key, char **values, void *base,
				const char **wrong)
{
	(void)key;
	return rule_cache_control(base, values, wrong);
}

const char *store_error_pages(const struct key *key, char **values, void *base, const char **wrong)
{
	(void)key;
	return rule_error_pages(base, values, wrong);
}

const char *store_redirect(const struct key *key, char **values, void *base, const char **wrong)
{
	(void)key;
	return rule_redirect(base, values, wrong);
}
