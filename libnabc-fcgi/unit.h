/* SPDX-License-Identifier: MIT */
/*
 * unit.h - units that are being filled, as memory that grows from its beginning.
 */
#ifndef NABC_FCGI_UNIT_H
#define NABC_FCGI_UNIT_H

#include <stddef.h>
#include <nabc.h>

/* libnabc clears memory that it shows: this much at a time. */
#define FCGI_FRAGMENT ((size_t)16 << 10)

struct fcgi_unit {
	NC_handle handle;
	unsigned char *base;
	size_t size;
};

/*
 * Returns a unit of at least size bytes, in fragments of FCGI_FRAGMENT, or NULL with errno.  It may
 * be one that was put back, and has old bytes.
 */
struct fcgi_unit *fcgi_unit_take(size_t size);

/* Keeps the unit for a later fcgi_unit_take(), or frees it.  NULL is allowed. */
void fcgi_unit_put(struct fcgi_unit *unit);

/* Returns the end of the memory that may be written from byte at on, or NULL with errno. */
unsigned char *fcgi_unit_window(struct fcgi_unit *unit, size_t at);

/* Copies bytes into the unit, and clears none.  Returns 0, or -1 with errno. */
int fcgi_unit_write(struct fcgi_unit *unit, const void *data, size_t length, size_t at);

/*
 * Inserts the first length bytes and frees the struct.  Returns the id, or 0 with errno; then the
 * unit is as before.
 */
size_t fcgi_unit_insert(struct fcgi_unit *unit, size_t length);

/* Inserts a copy of these bytes.  Returns the id, or 0 with errno. */
size_t fcgi_unit_insert_copy(const void *data, size_t length);

#endif
