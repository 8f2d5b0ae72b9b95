/* SPDX-License-Identifier: MIT */
/*
 * autoindex-render.h - renders a folder's entries as an HTML page or as JSON.
 *
 * The page loads nothing else and runs no script: its column heads link to the same
 * page in another order.
 */
#ifndef SWEET_AUTOINDEX_RENDER_H
#define SWEET_AUTOINDEX_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include "base/slice.h"

struct autoindex_entry {
	char *name; /* any bytes but '/' and NUL */
	bool folder;
	uint64_t size;	  /* bytes; of a file */
	int64_t modified; /* seconds since 1970, UTC */
};

enum autoindex_column { AUTOINDEX_NAME, AUTOINDEX_SIZE, AUTOINDEX_TIME };

struct autoindex_order {
	enum autoindex_column column;
	bool descending;
};

struct autoindex_page {
	const char *path; /* decoded, as in the client's URL; ends with '/' */
	const struct autoindex_entry *entries;
	unsigned count;
	bool more; /* the folder has more entries */
	struct autoindex_order order;
};

/* Returns the order that a query selects ("sort=size&order=desc"); by default, by name. */
struct autoindex_order autoindex_order(struct slice query);

/* Returns the undecoded value of a field in a query; at is NULL if there is none. */
struct slice autoindex_query(struct slice query, const char *name);

/* Folders come first in every order; equal entries are sorted by name. */
void autoindex_sort(struct autoindex_entry *entries, unsigned count, struct autoindex_order order);

/*
 * Return the text, which the caller frees.  They omit entries to keep it within max
 * bytes (at least 65536), and then report that: the page in its last line, JSON by
 * *cut.
 */
GString *autoindex_html(const struct autoindex_page *page, size_t max);
GString *autoindex_json(const struct autoindex_page *page, size_t max, bool *cut);

#endif
