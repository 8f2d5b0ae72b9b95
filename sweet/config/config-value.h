/* SPDX-License-Identifier: MIT */
/*
 * config-value.h - the values that keys of the configuration take.
 *
 * Each returns NULL and sets *value, or says in words of static text what the
 * text must be.  Pure.
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

/* "500ms", "30s", "2m", "1h"; a bare number is in units of bare_ms.  At most a day. */
const char *value_time(const char *text, unsigned bare_ms, uint64_t *ms);

/* "on" or "off". */
const char *value_switch(const char *text, bool *value);

/* One of the words of a list that NULL ends; *value is its place.  false: none of them. */
bool value_word(const char *text, const char *const *words, unsigned *value);

/* A path on the server, "/" or "/a/b": no empty, "." or ".." segments, no "/" at its end. */
const char *value_path(const char *text);

#endif
