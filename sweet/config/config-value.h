/* SPDX-License-Identifier: MIT */
/*
 * config-value.h - parses the values of configuration keys.
 *
 * Each function returns NULL and sets *value, or returns a static text that says
 * what the value must be.  Pure.
 */
#ifndef SWEET_CONFIG_VALUE_H
#define SWEET_CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal digits, from least to most. */
const char *value_number(const char *text, uint64_t least, uint64_t most, uint64_t *value);

/* "64M": bytes; K, M and G are powers of 1024; below 1 TiB. */
const char *value_size(const char *text, uint64_t least, uint64_t *value);

/* "500ms", "30s", "2m", "1h"; a number without unit is in units of bare_ms.  At most one day. */
const char *value_time(const char *text, unsigned bare_ms, uint64_t *ms);

/* "on" or "off". */
const char *value_switch(const char *text, bool *value);

/*
 * One of words, which ends with NULL; *value is its index.  Returns false if it is
 * none of them.
 */
bool value_word(const char *text, const char *const *words, unsigned *value);

/* A path on the server, "/" or "/a/b": no empty, "." or ".." segments, no "/" at its end. */
const char *value_path(const char *text);

#endif
