/* SPDX-License-Identifier: MIT */
/*
 * listing.h - a folder's entries as a page for people or as JSON.
 *
 * The page needs nothing from elsewhere and runs no script: the heads of its
 * columns are links to the same page in another order.
 */
#ifndef SWEET_LISTING_H
#define SWEET_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "base/slice.h"

struct listing_entry {
	char *name; /* any bytes but '/' and NUL */
	bool folder;
	uint64_t size;	  /* bytes; of a file */
	int64_t modified; /* seconds since 1970, UTC */
};

enum listing_column { LISTING_NAME, LISTING_SIZE, LISTING_TIME };

struct listing_order {
	enum listing_column column;
	bool descending;
};

struct listing {
	const char *path; /* decoded, as the client knows it; ends with '/' */
	const struct listing_entry *entries;
	unsigned count;
	bool more; /* the folder has more than these */
	struct listing_order order;
};

/* The order that a query asks for ("sort=size&order=desc"); by name otherwise. */
struct listing_order listing_order(struct slice query);

/* The value of a field in a query, as it stands there; at NULL: it has none. */
struct slice listing_query(struct slice query, const char *name);

/* Folders come first in every order, and names decide between equals. */
void listing_sort(struct listing_entry *entries, unsigned count, struct listing_order order);

/*
 * The text; the caller's.  It is kept within max bytes (65536 or
 * more) by leaving out entries, and then says so: the page in its last line,
 * JSON by *cut.
 */
GString *listing_html(const struct listing *listing, size_t max);
GString *listing_json(const struct listing *listing, size_t max, bool *cut);

#endif
