/* SPDX-License-Identifier: MIT */
/*
 * handle.c - filling a unit from a descriptor, memory or a format, and
 * inserting it with the checksum of each fragment.  A handle belongs to one
 * thread; the cache below locks for itself.
 *
 * Recycled memory holds an earlier unit's bytes, so what the caller never
 * wrote is cleared: `filled` is the length of the prefix that is known to be
 * the caller's, and whatever lies between it and a later write is zeroed.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "checksum.h"
#include "handle.h"
#include "id.h"

#define MAGIC UINT64_C(0x6e61626348616e64)
#define IOVECS 64u
#define APPENDED_MIN ((size_t)32 << 10)

static struct nc_handle *inside(NC_handle *handle)
{
	return (struct nc_handle *)(void *)handle;
}

/* The magic depends on the address, so a copied or moved handle is refused. */
static uint64_t magic(const struct nc_handle *handle)
{
	return MAGIC ^ (uint64_t)(uintptr_t)handle;
}

/* 0: may be filled; -EINVAL: not in use; -EALREADY: inserted. */
static int check(NC_handle *handle, struct nc_handle **in)
{
	*in = inside(handle);
	if (!handle || (*in)->magic != magic(*in))
		return -EINVAL;
	return (*in)->unit ? 0 : -EALREADY;
}

static int check_range(NC_handle *handle, size_t offset, size_t length, struct nc_handle **in)
{
	int error = check(handle, in);

	if (error)
		return error;
	return offset > (*in)->size || length > (*in)->size - offset ? -ERANGE : 0;
}

int nc_handle_alloc(NC_handle *handle, struct nc_cache *cache, size_t size, size_t fraglen,
		    enum NC_kind kind)
{
	struct nc_handle *in = inside(handle);
	struct nc_layout layout;
	struct nc_unit *unit;
	int error;

	if (!handle || kind < NC_KIND_AUTO || kind > NC_KIND_APPENDED)
		return -EINVAL;
	error = nc_layout_init(&layout, size, fraglen);
	if (error)
		return error;
	if (size > cache->max_unit)
		return -EFBIG;
	if (kind == NC_KIND_APPENDED && !cache->owner)
		return -ENOTSUP;
	if (kind == NC_KIND_AUTO)
		kind = cache->owner && size >= APPENDED_MIN ? NC_KIND_APPENDED : NC_KIND_RECYCLED;
	error = nc_member_alloc(&cache->own, &layout, kind, &unit);
	if (error)
		return error;
	*in = (struct nc_handle){.magic = magic(in), .cache = cache, .unit = unit, .size = size};
	return 0;
}

int nc_handle_free(NC_handle *handle)
{
	struct nc_handle *in;
	int error = check(handle, &in);

	if (error == -EINVAL)
		return error;
	if (in->unit)
		nc_member_abandon(&in->cache->own, in->unit);
	*in = (struct nc_handle){0};
	return 0;
}

/* Zeroes what lies between the filled prefix and end. */
static void clear_to(struct nc_handle *in, size_t end)
{
	while (in->filled < end) {
		size_t run, at = nc_layout_at(&in->unit->layout, in->filled, &run);

		if (run > end - in->filled)
			run = end - in->filled;
		memset(nc_unit_base(in->unit) + at, 0, run);
		in->filled += run;
	}
}

ssize_t nc_handle_read(int fd, NC_handle *handle, size_t offset, size_t length)
{
	struct iovec iov[IOVECS];
	struct nc_handle *in;
	size_t done = 0, covered;
	int error = check_range(handle, offset, length, &in);

	if (error)
		return error;
	if (length > SSIZE_MAX)
		length = SSIZE_MAX;
	clear_to(in, offset);
	while (done < length) {
		unsigned count =
			nc_layout_iovec(&in->unit->layout, nc_unit_base(in->unit), offset + done,
					length - done, iov, IOVECS, &covered);
		ssize_t got = readv(fd, iov, (int)count);

		if (got < 0 && errno == EINTR)
			continue;
		/* What came before the error is the caller's; the error comes again. */
		if (got < 0 && done == 0)
			return -errno;
		if (got <= 0)
			break;
		done += (size_t)got;
		if (offset + done > in->filled)
			in->filled = offset + done;
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
	while (done < length) {
		size_t run, at = nc_layout_at(&in->unit->layout, offset + done, &run);

		if (run > length - done)
			run = length - done;
		memcpy(nc_unit_base(in->unit) + at, from + done, run);
		done += run;
	}
	if (offset + done > in->filled)
		in->filled = offset + done;
	return (ssize_t)done;
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

/* Of each fragment, into the unit (paper 002, section 2.2). */
static int checksum_fragments(struct nc_unit *unit)
{
	const struct nc_layout *layout = &unit->layout;
	uint16_t *sums = unit->sum;

	if (layout->fragments > NC_UNIT_SUMS_INLINE) {
		sums = malloc(layout->fragments * sizeof(*sums));
		if (!sums)
			return -ENOMEM;
		unit->sums = sums;
	}
	for (size_t i = 0; i < layout->fragments; i++) {
		size_t run, at = nc_layout_at(layout, i * layout->fraglen, &run);

		sums[i] = nc_checksum(nc_unit_base(unit) + at,
				      run < layout->fraglen ? run : layout->fraglen);
	}
	return 0;
}

int nc_handle_insert(NC_handle *handle)
{
	struct nc_handle *in;
	struct nc_unit *unit;
	size_t id;
	int error = check(handle, &in);

	if (error)
		return error;
	unit = in->unit;
	clear_to(in, in->size);
	error = checksum_fragments(unit);
	if (error)
		return error;
	id = nc_id(in->cache->own.number, unit->slot, nc_word_generation(nc_unit_word(unit)));
	error = nc_member_insert(&in->cache->own, unit);
	if (error) {
		if (unit->layout.fragments > NC_UNIT_SUMS_INLINE)
			free(unit->sums);
		unit->sums = NULL;
		return error;
	}
	in->unit = NULL;
	in->id = id;
	return 0;
}

size_t nc_handle_id(const NC_handle *handle)
{
	const struct nc_handle *in = (const struct nc_handle *)(const void *)handle;

	return handle && in->magic == magic(in) ? in->id : 0;
}
