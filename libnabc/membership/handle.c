/* SPDX-License-Identifier: MIT */
/*
 * handle.c - fills a unit from a descriptor, from memory or with formatted text,
 * and inserts it.  A handle belongs to one thread; the cache below has its own locks.
 *
 * Recycled memory contains the bytes of an earlier unit, so bytes that the caller
 * did not write must be cleared.  `filled` is the length of the prefix that the
 * caller wrote; a later write first zeroes the gap between that prefix and its own
 * start.
 *
 * Checksums are computed after insert, when they are first needed.  With
 * NC_CACHE_EAGER_SUMS, the checksum of a fragment is computed as soon as the fragment
 * is inside the filled prefix, while it is in the CPU's cache; later writes update the
 * checksum.  What the caller writes through pointers is then checksummed at insert
 * only.
 */
#include <errno.h>
#include <limits.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED(address, length) 0
#endif

#include "base/fragment.h"
#include "cache/hold.h"
#include "cache/index.h"
#include "membership/handle.h"
#include "os/device.h"
#include "store/member.h"
#include "store/store.h"
#include "store/unit-checksum.h"
#include "store/unit.h"

#define MAGIC UINT64_C(0x6e61626348616e64)
#define IOVECS 64u

/*
 * Bytes that are copied or cleared before their checksum: a piece fits into the
 * first-level CPU cache.
 */
#define PIECE ((size_t)16 << 10)

static struct nc_handle *inside(NC_handle *handle)
{
	return (struct nc_handle *)(void *)handle;
}

/* The magic number depends on the address, so a copied or moved handle is refused. */
static uint64_t magic(const struct nc_handle *handle)
{
	return MAGIC ^ (uint64_t)(uintptr_t)handle;
}

/*
 * Returns 0 if the handle may be filled or inserted, -EINVAL if not in use,
 * -EALREADY if inserted.
 */
static int check(NC_handle *handle, struct nc_handle **in)
{
	*in = inside(handle);
	if (!handle || (*in)->magic != magic(*in))
		return -EINVAL;
	return (*in)->unit ? 0 : -EALREADY;
}

/* A failed insert may have frozen the memory; then the caller can only repeat the insert. */
static int check_filling(NC_handle *handle, struct nc_handle **in)
{
	int error = check(handle, in);

	return error ? error : (*in)->unit->store->frozen ? -EALREADY : 0;
}

static int check_range(NC_handle *handle, size_t offset, size_t length, struct nc_handle **in)
{
	int error = check_filling(handle, in);

	if (error)
		return error;
	return offset > (*in)->size || length > (*in)->size - offset ? -ERANGE : 0;
}

static int init_sums(const struct nc_index *index, struct nc_unit *unit)
{
	int error = nc_unit_checksum_init(unit, index->checksum);

	if (!error && index->flags & NC_CACHE_EAGER_SUMS)
		error = nc_unit_checksum_keep(unit);
	return error;
}

int nc_handle_alloc(NC_handle *handle, struct nc_index *index, size_t size, size_t fraglen,
		    enum NC_kind kind, unsigned flags)
{
	struct nc_handle *in = inside(handle);
	struct nc_layout layout;
	struct nc_unit *unit;
	int error;

	if (!handle || flags & ~NC_UNIT_UNSUMMED || kind < NC_KIND_AUTO || kind > NC_KIND_KERNEL)
		return -EINVAL;
	error = nc_layout_init(&layout, size, fraglen);
	if (error)
		return error;
	error = nc_index_alloc(index, &layout, kind, &unit);
	if (error)
		return error;
	error = !(flags & NC_UNIT_UNSUMMED) ? init_sums(index, unit) : 0;
	if (error) {
		nc_index_abandon(index, unit);
		return error;
	}
	*in = (struct nc_handle){.magic = magic(in),
				 .index = index,
				 .unit = unit,
				 .size = size,
				 .kind = (uint32_t)kind};
	return 0;
}

int nc_handle_free(NC_handle *handle)
{
	struct nc_handle *in;
	int error = check(handle, &in);

	if (error == -EINVAL)
		return error;
	if (in->unit)
		nc_index_abandon(in->index, in->unit);
	*in = (struct nc_handle){0};
	return 0;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Extends the filled prefix to end, unless it is already that long. */
static void fill_to(struct nc_handle *in, size_t end)
{
	const struct nc_layout *layout = &in->unit->layout;
	size_t whole;

	if (end <= in->filled)
		return;
	in->filled = end;
	whole = end == in->size ? layout->fragments : end / layout->fraglen;
	if (whole > in->summed && nc_unit_checksum_kept(in->unit)) {
		nc_unit_checksum_compute(in->unit, in->summed, whole);
		in->summed = (uint32_t)whole;
	}
}

/* Must be called before memory of the unit up to end is written for the first time. */
static void prepare(struct nc_handle *in, size_t end)
{
	while (in->prepared < end)
		in->prepared = nc_store_prepare(in->unit, in->prepared);
}

/* Zeroes the bytes between the filled prefix and end. */
static void clear_to(struct nc_handle *in, size_t end)
{
	while (in->filled < end) {
		size_t run, at = nc_layout_at(&in->unit->layout, in->filled, &run);

		run = smaller(smaller(run, PIECE), end - in->filled);
		prepare(in, at + run);
		memset(nc_unit_base(in->unit) + at, 0, run);
		fill_to(in, in->filled + run);
	}
}

/* Returns how many bytes of the unit are in fragments with a checksum. */
static size_t summed_bytes(const struct nc_handle *in)
{
	return smaller(in->summed * in->unit->layout.fraglen, in->size);
}

/* Recomputes checksums after bytes were overwritten whose old values are unknown. */
static void resum(struct nc_handle *in, size_t offset, size_t length)
{
	size_t fraglen = in->unit->layout.fraglen;

	if (length && offset < summed_bytes(in))
		nc_unit_checksum_compute(in->unit, offset / fraglen,
					 smaller((offset + length - 1) / fraglen + 1, in->summed));
}

/* Prepares memory and returns how many bytes, at most length, one read can store there. */
static size_t prepare_read(struct nc_handle *in, size_t offset, size_t length)
{
	size_t run, at = nc_layout_at(&in->unit->layout, offset, &run);

	/* With gaps between fragments, prepare as much as IOVECS vectors can cover. */
	prepare(in, at + IOVECS * NC_PAGE);
	return smaller(length, in->prepared - at);
}

/*
 * Reads once, at most length bytes.  The bytes of a kernel unit go directly into the
 * module, and no page of the arena is touched, unless their checksums are needed now.
 */
static ssize_t read_some(const struct nc_handle *in, int fd, size_t offset, size_t length)
{
	const struct nc_unit *unit = in->unit;
	const struct nc_store *store = unit->store;
	struct iovec iov[IOVECS];
	size_t covered;
	unsigned count;
	ssize_t got;

	if (nc_store_in_arena(store) && !nc_unit_checksum_kept(unit)) {
		got = nc_device_read(store->device, store->name, unit->at + offset, length, fd);
		if (got != -EINVAL)
			return got;
	}
	count = nc_layout_iovec(&unit->layout, nc_unit_base(unit), offset, length, iov, IOVECS,
				&covered);
	got = readv(fd, iov, (int)count);
	return got < 0 ? -errno : got;
}

ssize_t nc_handle_read(int fd, NC_handle *handle, size_t offset, size_t length)
{
	struct nc_handle *in;
	size_t done = 0;
	int error = check_range(handle, offset, length, &in);

	if (error)
		return error;
	if (length > SSIZE_MAX)
		length = SSIZE_MAX;
	if (!in->filled && !nc_unit_checksum_kept(in->unit))
		error = nc_index_leave_buffer(in->index, in->unit, 0);
	if (error)
		return error;
	clear_to(in, offset);
	while (done < length) {
		size_t run = prepare_read(in, offset + done, length - done);
		ssize_t got = read_some(in, fd, offset + done, run);

		if (got == -EINTR)
			continue;
		/*
		 * Return the bytes that arrived before the error; the next call
		 * returns the error.
		 */
		if (got < 0 && done == 0)
			return got;
		if (got <= 0)
			break;
		resum(in, offset + done, (size_t)got);
		done += (size_t)got;
		fill_to(in, offset + done);
	}
	return (ssize_t)done;
}

ssize_t nc_handle_write(NC_handle *handle, size_t offset, const void *data, size_t length)
{
	const char *from = data;
	struct nc_handle *in;
	size_t done = 0;
	int error = check_range(handle, offset, length, &in);

	if (error)
		return error;
	if (!data && length)
		return -EINVAL;
	clear_to(in, offset);
	while (done < length && offset + done < summed_bytes(in)) {
		size_t fraglen = in->unit->layout.fraglen;
		size_t run = smaller(fraglen - (offset + done) % fraglen, length - done);

		nc_unit_checksum_rewrite(in->unit, offset + done, from + done, run);
		done += run;
	}
	while (done < length) {
		size_t run, at = nc_layout_at(&in->unit->layout, offset + done, &run);

		run = smaller(smaller(run, PIECE), length - done);
		prepare(in, at + run);
		memcpy(nc_unit_base(in->unit) + at, from + done, run);
		done += run;
		fill_to(in, offset + done);
	}
	return (ssize_t)done;
}

ssize_t nc_handle_fragment(NC_handle *handle, size_t index, void **bytes)
{
	const struct nc_layout *layout;
	struct nc_handle *in;
	size_t end, run, at;
	int error = check_filling(handle, &in);

	if (error)
		return error;
	layout = &in->unit->layout;
	if (index >= layout->fragments)
		return -ERANGE;
	error = nc_index_leave_buffer(in->index, in->unit, in->filled);
	if (error)
		return error;
	end = index + 1 < layout->fragments ? (index + 1) * layout->fraglen : layout->size;
	/*
	 * Clear first: the pointer must not show bytes of an earlier unit, nor may
	 * they stay in this one.
	 */
	clear_to(in, end);
	if (in->direct_from == in->direct_to) {
		in->direct_from = index;
		in->direct_to = index + 1;
	} else {
		in->direct_from = smaller(in->direct_from, index);
		in->direct_to = in->direct_to > index ? in->direct_to : index + 1;
	}
	at = nc_layout_at(layout, index * layout->fraglen, &run);
	*bytes = nc_unit_base(in->unit) + at;
	return (ssize_t)(end - index * layout->fraglen);
}

ssize_t nc_handle_copy(NC_handle *handle, size_t offset, void *to, size_t length)
{
	struct nc_handle *in;
	size_t done = 0;
	int error = check_filling(handle, &in);

	if (error)
		return error;
	if (offset >= in->filled)
		return 0;
	length = smaller(length, in->filled - offset);
	while (done < length) {
		size_t run, at = nc_layout_at(&in->unit->layout, offset + done, &run);

		run = smaller(run, length - done);
		memcpy((char *)to + done, nc_unit_base(in->unit) + at, run);
		done += run;
	}
	return (ssize_t)done;
}

int nc_handle_extent(NC_handle *handle, size_t *size, size_t *filled)
{
	struct nc_handle *in;
	int error = check_filling(handle, &in);

	if (!error) {
		*size = in->size;
		*filled = in->filled;
	}
	return error;
}

size_t nc_handle_most(const NC_handle *handle)
{
	return ((const struct nc_handle *)(const void *)handle)->index->max_unit;
}

int nc_handle_vprintf(NC_handle *handle, size_t offset, const char *format, va_list arguments)
{
	char small[512], *text = small;
	struct nc_handle *in;
	va_list again;
	int length, error = check_range(handle, offset, 0, &in);
	ssize_t written;

	if (error)
		return error;
	if (!format)
		return -EINVAL;
	va_copy(again, arguments);
	length = vsnprintf(small, sizeof(small), format, arguments);
	if (length >= (int)sizeof(small)) {
		text = malloc((size_t)length + 1);
		if (text)
			(void)vsnprintf(text, (size_t)length + 1, format, again);
	}
	va_end(again);
	if (length < 0)
		return -EILSEQ;
	if (!text)
		return -ENOMEM;
	written = (size_t)length > in->size - offset
			  ? -ENOSPC
			  : nc_handle_write(handle, offset, text, (size_t)length);
	if (text != small)
		free(text);
	return (int)written;
}

/* Copies the filled prefix to a new unit with the longer layout, and ends the old one. */
static int move(struct nc_handle *in, const struct nc_layout *layout)
{
	struct nc_unit *old = in->unit, *unit;
	size_t run, end = in->filled ? nc_layout_at(layout, in->filled - 1, &run) + 1 : 0;
	int error = nc_index_alloc(in->index, layout, (enum NC_kind)in->kind, &unit);

	if (error)
		return error;
	nc_unit_checksum_move(old, unit);
	in->unit = unit;
	in->prepared = 0;
	prepare(in, end);
	memcpy(nc_unit_base(unit), nc_unit_base(old), end);
	nc_index_abandon(in->index, old);
	return 0;
}

/* Lengthens the memory of the unit.  Its checksums have the new length already. */
static int lengthen(struct nc_handle *in, const struct nc_layout *layout)
{
	size_t prepared = nc_store_prepared(in->unit, in->prepared);
	int error = nc_index_grow(in->index, in->unit, layout, (enum NC_kind)in->kind);

	if (error == -EXDEV)
		return move(in, layout);
	if (!error) {
		in->prepared = prepared;
		in->unit->layout.size = layout->size;
	}
	return error;
}

int nc_handle_grow(NC_handle *handle, size_t size)
{
	struct nc_layout layout;
	struct nc_handle *in;
	uint32_t fragments;
	int error = check_filling(handle, &in);

	if (error || size <= in->size)
		return error;
	if (size > in->index->max_unit)
		return -EFBIG;
	error = nc_layout_init(&layout, size, in->unit->layout.fraglen);
	if (error)
		return error;
	fragments = in->unit->layout.fragments;
	error = nc_unit_checksum_lengthen(in->unit, layout.fragments);
	if (error)
		return error;
	error = lengthen(in, &layout);
	if (error) {
		nc_unit_checksum_shorten(in->unit, fragments);
		return error;
	}
	in->size = size;
	/* The checksum of the last fragment was that of a shorter one. */
	in->summed = (uint32_t)smaller(in->summed, in->filled / layout.fraglen);
	return 0;
}

/* Truncates the unit to length bytes, and gives back the memory behind them. */
static void shorten(struct nc_handle *in, size_t length)
{
	struct nc_layout *layout = &in->unit->layout, shorter;
	size_t last = (length - 1) / layout->fraglen;

	layout->size = in->size = length;
	nc_unit_checksum_shorten(in->unit, (uint32_t)last + 1);
	in->direct_to = smaller(in->direct_to, layout->fragments);
	in->direct_from = smaller(in->direct_from, in->direct_to);
	in->summed = (uint32_t)smaller(in->summed, last);
	if (nc_layout_init(&shorter, length, layout->fraglen) == 0 &&
	    shorter.extent < layout->extent)
		nc_index_trim(in->index, in->unit, shorter.extent);
	if (in->filled < length)
		return;
	in->filled = length;
	if (nc_unit_checksum_kept(in->unit)) {
		nc_unit_checksum_compute(in->unit, last, last + 1);
		in->summed = layout->fragments;
	}
}

int nc_handle_insert_with(NC_handle *handle, size_t length, const struct nc_insertion *with)
{
	struct nc_handle *in;
	struct nc_unit *unit;
	size_t id;
	int error = check(handle, &in);

	if (error)
		return error;
	unit = in->unit;
	if (length != NC_WHOLE && (length == 0 || length > in->size))
		return -ERANGE;
	error = nc_index_may_insert(in->index, unit, with);
	if (error)
		return error;
	if (length < in->size)
		shorten(in, length);
	clear_to(in, in->size);
	nc_unit_checksum_compute(unit, in->direct_from, in->direct_to);
	error = nc_index_insert(in->index, unit, with, &id);
	if (error)
		return error;
	if (with && with->hold)
		nc_hold_write(with->hold, in->index, &(struct nc_view){.id = id, .unit = unit});
	in->unit = NULL;
	in->id = id;
	return 0;
}

size_t nc_handle_id(const NC_handle *handle)
{
	const struct nc_handle *in = (const struct nc_handle *)(const void *)handle;

	return handle && in->magic == magic(in) ? in->id : 0;
}

const struct nc_index *nc_handle_filling(const NC_handle *handle)
{
	struct nc_handle copy;

	if (!handle)
		return NULL;
	memcpy(&copy, handle, sizeof(copy));
	/*
	 * The memory may be uninitialised, and Memcheck reports conditions that
	 * depend on such memory.
	 */
	(void)VALGRIND_MAKE_MEM_DEFINED(&copy, sizeof(copy));
	return copy.magic == magic((const struct nc_handle *)(const void *)handle) && copy.unit
		       ? copy.index
		       : NULL;
}
