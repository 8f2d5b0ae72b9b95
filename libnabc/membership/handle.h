/* SPDX-License-Identifier: MIT */
/* handle.h - fills a unit (the NC_handle ADT of paper 002, section 2.2). */
#ifndef NC_HANDLE_INTERNAL_H
#define NC_HANDLE_INTERNAL_H

#include <assert.h>
#include <nabc.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/types.h>

struct nc_index;
struct nc_insertion;

/* The contents of an NC_handle. */
struct nc_handle {
	uint64_t magic; /* distinguishes a handle in use from other memory */
	struct nc_index *index;
	struct nc_unit *unit; /* NULL after insert: the table owns it */
	size_t size;
	size_t filled; /* length of the prefix that was written */
	size_t id;     /* 0 before insert */
	/* number of leading fragments with an up-to-date checksum; 0: computed later */
	uint32_t summed;
	uint32_t kind; /* enum NC_kind, as it was requested */
	/* Fragments [from, to) to which the caller has pointers: checksummed at insert, if at all. */
	size_t direct_from, direct_to;
	size_t prepared; /* length of the prefix of memory whose pages were selected: see store.h */
};

static_assert(sizeof(struct nc_handle) <= sizeof(NC_handle), "fits into the public handle");

int nc_handle_alloc(NC_handle *handle, struct nc_index *index, size_t size, size_t fraglen,
		    enum NC_kind kind, unsigned flags);

/*
 * Makes the unit longer, where it is or by moving it.  Returns 0 also for a size that it has
 * already; -EFBIG: over max_unit; errors of nc_handle_alloc(), and nothing has changed.
 */
int nc_handle_grow(NC_handle *handle, size_t size);
int nc_handle_free(NC_handle *handle);
ssize_t nc_handle_read(int fd, NC_handle *handle, size_t offset, size_t length);
ssize_t nc_handle_write(NC_handle *handle, size_t offset, const void *data, size_t length);

/* Stores the address of the fragment's memory in *bytes and returns its length. */
ssize_t nc_handle_fragment(NC_handle *handle, size_t index, void **bytes);

int nc_handle_vprintf(NC_handle *handle, size_t offset, const char *format, va_list arguments);

/*
 * Copies the filled part of a range; returns fewer bytes, down to 0, at the end of
 * the filled prefix.
 */
ssize_t nc_handle_copy(NC_handle *handle, size_t offset, void *to, size_t length);

/*
 * Stores the unit's size and the length of its filled prefix.  Returns 0 or -errno
 * of the handle.
 */
int nc_handle_extent(NC_handle *handle, size_t *size, size_t *filled);

/* Returns the largest size that nc_handle_grow() permits.  The handle has a unit. */
size_t nc_handle_most(const NC_handle *handle);

/*
 * Inserts the first length bytes as the unit; NC_WHOLE: all.  Gives back the memory
 * behind them.  Returns -ERANGE if length is 0 or more than the size, errors of
 * nc_index_may_insert(), and of inserting.  with: see nc_index_insert().
 */
int nc_handle_insert_with(NC_handle *handle, size_t length, const struct nc_insertion *with);

static inline int nc_handle_insert(NC_handle *handle, size_t length)
{
	return nc_handle_insert_with(handle, length, NULL);
}

size_t nc_handle_id(const NC_handle *handle);

/*
 * Returns the cache of the unit that the handle is filling, or NULL.  The handle
 * may be uninitialised memory.  After a fork the cache may be the parent's.
 */
const struct nc_index *nc_handle_filling(const NC_handle *handle);

#endif
