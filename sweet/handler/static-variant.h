/* SPDX-License-Identifier: MIT */
/*
 * static-variant.h - what the settings of a path say about a file: its Cache-Control, and which
 * compressed variant of it is sent.
 */
#ifndef SWEET_STATIC_VARIANT_H
#define SWEET_STATIC_VARIANT_H

#include <stdbool.h>

#include "http/accept.h"

struct file_cache_entry;
struct transaction;

/* Returns the first rule for Cache-Control that the file name of the path matches, or NULL. */
const struct cache_rule *static_cache_rule(const struct transaction *transaction);

/*
 * Returns the variant of the file in the first of these codings, which the client accepts, that
 * exists, for file_cache_tick_put(), and its coding; has the first one made.  NULL: the file itself
 * is sent.  Sets *varies if there are variants, or may be.
 */
struct file_cache_entry *static_variant(struct transaction *transaction,
					struct file_cache_entry *entry, const enum coding *order,
					unsigned orders, enum coding *coding, bool *varies);

#endif
