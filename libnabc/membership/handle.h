/* SPDX-License-Identifier: MIT */
/*
 * handle.h - filling a unit (the NC_handle ADT of paper 002, section 2.2).
 */
#ifndef NC_HANDLE_INTERNAL_H
#define NC_HANDLE_INTERNAL_H

#include <stdarg.h>

#include "cache/index.h"

/* What is inside an NC_handle. */
struct nc_handle {
	uint64_t magic; /* tells a handle in use from other memory */
	struct nc_index *index;
	struct nc_unit *unit; /* NULL once inserted: the table has it */
	size_t size;
	size_t filled; /* bytes from the start that have been written */
	size_t id;     /* 0 until inserted */
	size_t summed; /* fragments from the start whose sums are kept up to date */
	/* Fragments that the caller has pointers to are summed at insert: [from, to). */
	size_t direct_from, direct_to;
	size_t prepared; /* bytes of memory from the start whose pages are chosen: store.h */
};

static_assert(sizeof(struct nc_handle) <= sizeof(NC_handle), "fits into the public handle");

int nc_handle_alloc(NC_handle *handle, struct nc_index *index, size_t size, size_t fraglen,
		    enum NC_kind kind, unsigned flags);
int nc_handle_free(NC_handle *handle);
ssize_t nc_handle_read(int fd, NC_handle *handle, size_t offset, size_t length);
ssize_t nc_handle_write(NC_handle *handle, size_t offset, const void *data, size_t length);

/* The fragment's memory, in *bytes, and its length. */
ssize_t nc_handle_fragment(NC_handle *handle, size_t index, void **bytes);

int nc_handle_vprintf(NC_handle *handle, size_t offset, const char *format, va_list arguments);

/* Copies out what is filled of a range; less of it, down to 0, at the end of the filled. */
ssize_t nc_handle_copy(NC_handle *handle, size_t offset, void *to, size_t length);

/* The unit's size, and how much of it from the start is filled.  0, -errno of the handle. */
int nc_handle_extent(NC_handle *handle, size_t *size, size_t *filled);

/*
 * The first length bytes are the unit; NC_WHOLE: all.  What follows stays its memory until it
 * is freed.  -ERANGE: none, or more than there are.
 */
int nc_handle_insert(NC_handle *handle, size_t length);
size_t nc_handle_id(const NC_handle *handle);

/*
 * The cache of the unit that the handle is filling, or NULL.  The handle may be
 * uninitialised memory.  After a fork the cache may be that of the parent.
 */
const struct nc_index *nc_handle_filling(const NC_handle *handle);

#endif
