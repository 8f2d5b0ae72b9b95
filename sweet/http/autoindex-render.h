/* SPDX-License-Identifier: MIT */
/*
 * autoindex-render.h - a folder's entries as a page for people or as JSON.
 *
 * The page needs nothing from elsewhere and runs no script: the heads of its
 * columns are links to the same page in another order.
 */
#ifndef SWEET_AUTOINDEX_RENDER_H
#define SWEET_AUTOINDEX_RENDER_H

#include <stdbool.h>
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
	const char *path; /* decoded, as the client knows it; ends with '/' */
	const struct autoindex_entry *entries;
	unsigned count;
	bool more; /* the folder has more than these */
	struct autoindex_order order;
};

/* The order that a query asks for ("sort=size&order=desc"); by name otherwise. */
struct autoindex_order autoindex_order(struct slice query);

/* The value of a field in a query, as it stands there; at NULL: it has none. */
struct slice autoindex_query(struct slice query, const char *name);

/* Folders come first in every order, and names decide between equals. */
void autoindex_sort(struct autoindex_entry *entries, unsigned count, struct autoindex_order order);

/*
 * The text; the caller's.  It is kept within max bytes (65536 or
 * more) by leaving out entries, and then says so: the page in its last line,
 * JSON by *cut.
 */
GString *autoindex_html(const struct autoindex_page *page, size_t max);
GString *autoindex_json(const struct autoindex_page *page, size_t max, bool *cut);

#endif
