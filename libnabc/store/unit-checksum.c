/* SPDX-License-Identifier: MIT */
/* unit-checksum.c - checksums of a unit's fragments; see unit-checksum.h.  It has no state. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/crc32c.h"
#include "base/fragment.h"
#include "os/device.h"
#include "store/store.h"
#include "store/unit-checksum.h"

/* The size of a checksum identifies its kind. */
#define INET sizeof(uint16_t)
#define CRC32C sizeof(uint32_t)

enum NC_checksum_kind nc_unit_checksum_kind(const struct nc_unit *unit)
{
	return unit->sum_size == INET	  ? NC_CHECKSUM_INET
	       : unit->sum_size == CRC32C ? NC_CHECKSUM_CRC32C
					  : NC_CHECKSUM_DEFAULT;
}

int nc_unit_checksum_init(struct nc_unit *unit, enum NC_checksum_kind kind)
{
	size_t size = kind == NC_CHECKSUM_INET ? INET : kind == NC_CHECKSUM_CRC32C ? CRC32C : 0;

	assert(unit->sum_size == 0);
	if (!size)
		return -EINVAL;
	unit->sum_size = (uint8_t)size;
	return 0;
}

int nc_unit_checksum_keep(struct nc_unit *unit)
{
	assert(unit->sum_size && !nc_unit_checksum_kept(unit));
	if (nc_unit_sums_outside(unit)) {
		unit->sums = nc_unit_checksum_draft(unit);
		if (!unit->sums)
			return -ENOMEM;
	}
	/* Others see the unit later, by its word. */
	atomic_store_explicit(&unit->summed, NC_SUMS_KEPT, memory_order_relaxed);
	return 0;
}

/* The following four require nc_unit_checksum_kept(). */
static const uint16_t *inet_sums(const struct nc_unit *unit)
{
	return nc_unit_sums_outside(unit) ? unit->sums : unit->sum16;
}

static const uint32_t *crc_sums(const struct nc_unit *unit)
{
	return nc_unit_sums_outside(unit) ? unit->sums : unit->sum32;
}

static uint16_t *inet_sum(struct nc_unit *unit, size_t index)
{
	return (nc_unit_sums_outside(unit) ? (uint16_t *)unit->sums : unit->sum16) + index;
}

static uint32_t *crc_sum(struct nc_unit *unit, size_t index)
{
	return (nc_unit_sums_outside(unit) ? (uint32_t *)unit->sums : unit->sum32) + index;
}

void nc_unit_checksum_shorten(struct nc_unit *unit, uint32_t fragments)
{
	void *sums = nc_unit_sums_outside(unit) ? unit->sums : NULL;

	unit->layout.fragments = fragments;
	if (sums && !nc_unit_sums_outside(unit)) {
		memcpy(unit->sum16, sums, fragments * unit->sum_size);
		free(sums);
	}
}

int nc_unit_checksum_lengthen(struct nc_unit *unit, uint32_t fragments)
{
	bool outside = nc_unit_sums_outside(unit);
	size_t had = unit->layout.fragments * (size_t)unit->sum_size;
	size_t size = fragments * (size_t)unit->sum_size;
	void *sums;

	if (nc_unit_checksum_kept(unit) && size > NC_UNIT_SUMS_INLINE) {
		sums = outside ? realloc(unit->sums, size) : malloc(size);
		if (!sums)
			return -ENOMEM;
		if (!outside)
			memcpy(sums, unit->sum16, had);
		unit->sums = sums;
	}
	unit->layout.fragments = fragments;
	return 0;
}

void nc_unit_checksum_move(struct nc_unit *from, struct nc_unit *to)
{
	to->sum_size = from->sum_size;
	memcpy(to->sum16, from->sum16, sizeof(to->sum16));
	atomic_store_explicit(&to->summed,
			      atomic_load_explicit(&from->summed, memory_order_relaxed),
			      memory_order_relaxed);
	from->sum_size = 0;
	from->sums = NULL;
	atomic_store_explicit(&from->summed, NC_SUMS_NONE, memory_order_relaxed);
}

static size_t fragment_length(const struct nc_layout *layout, size_t index)
{
	return index + 1 < layout->fragments ? layout->fraglen
					     : layout->size - index * layout->fraglen;
}

static void *bytes_at(const struct nc_unit *unit, size_t offset)
{
	size_t run;

	return nc_unit_base(unit) + nc_layout_at(&unit->layout, offset, &run);
}

/* Returns the checksum of a fragment's bytes, of the unit's kind. */
static uint32_t sum_of(const struct nc_unit *unit, size_t index)
{
	const void *bytes = bytes_at(unit, index * unit->layout.fraglen);
	size_t length = fragment_length(&unit->layout, index);

	return unit->sum_size == INET ? nc_checksum(bytes, length) : nc_crc32c(0, bytes, length);
}

/* --- updating ------------------------------------------------------------------ */

void nc_unit_checksum_compute(struct nc_unit *unit, size_t first, size_t end)
{
	if (!nc_unit_checksum_kept(unit))
		return;
	for (size_t i = first; i < end; i++) {
		if (unit->sum_size == INET)
			*inet_sum(unit, i) = (uint16_t)sum_of(unit, i);
		else
			*crc_sum(unit, i) = sum_of(unit, i);
	}
}

void nc_unit_checksum_rewrite(struct nc_unit *unit, size_t offset, const void *data, size_t length)
{
	size_t index = offset / unit->layout.fraglen, within = offset % unit->layout.fraglen;
	size_t whole = fragment_length(&unit->layout, index);
	void *bytes = bytes_at(unit, offset);

	assert(length <= whole - within);
	if (length > whole / 2 || !nc_unit_checksum_kept(unit)) {
		memcpy(bytes, data, length);
		nc_unit_checksum_compute(unit, index, index + 1);
	} else if (unit->sum_size == INET) {
		uint16_t *sum = inet_sum(unit, index), before = nc_checksum(bytes, length);

		memcpy(bytes, data, length);
		*sum = nc_checksum_update(*sum, before, nc_checksum(bytes, length), within % 2);
		/*
		 * The difference does not tell which of the two zeroes it is (RFC
		 * 1624 section 3).
		 */
		if (*sum == 0xffff)
			nc_unit_checksum_compute(unit, index, index + 1);
	} else {
		uint32_t *sum = crc_sum(unit, index), before = nc_crc32c(0, bytes, length);

		memcpy(bytes, data, length);
		*sum = nc_crc32c_update(*sum, before, nc_crc32c(0, bytes, length),
					nc_crc32c_operator(whole - within - length));
	}
}

/* --- computing when first needed ---------------------------------------------- */

void *nc_unit_checksum_draft(const struct nc_unit *unit)
{
	return malloc(unit->layout.fragments * (size_t)unit->sum_size);
}

size_t nc_unit_checksum_draft_step(const struct nc_unit *unit, void *draft, size_t first,
				   size_t bytes)
{
	size_t i = first, read = 0;

	for (; i < unit->layout.fragments && (i == first || read < bytes); i++) {
		if (unit->sum_size == INET)
			((uint16_t *)draft)[i] = (uint16_t)sum_of(unit, i);
		else
			((uint32_t *)draft)[i] = sum_of(unit, i);
		read += fragment_length(&unit->layout, i);
	}
	return i - first;
}

void nc_unit_checksum_publish(struct nc_unit *unit, void *draft)
{
	uint8_t none = NC_SUMS_NONE;

	if (!atomic_compare_exchange_strong_explicit(&unit->summed, &none, NC_SUMS_STORING,
						     memory_order_relaxed, memory_order_relaxed)) {
		free(draft);
		return;
	}
	if (nc_unit_sums_outside(unit)) {
		unit->sums = draft;
	} else {
		memcpy(unit->sum16, draft, unit->layout.fragments * (size_t)unit->sum_size);
		free(draft);
	}
	/* Readers that see KEPT see the checksums: pairs with the acquire in _kept(). */
	atomic_store_explicit(&unit->summed, NC_SUMS_KEPT, memory_order_release);
}

int nc_unit_checksum_make(struct nc_unit *unit)
{
	void *draft;

	if (!unit->sum_size)
		return -ENODATA;
	if (nc_unit_checksum_kept(unit))
		return 0;
	draft = nc_unit_checksum_draft(unit);
	if (!draft)
		return -ENOMEM;
	(void)nc_unit_checksum_draft_step(unit, draft, 0, SIZE_MAX);
	nc_unit_checksum_publish(unit, draft);
	return 1;
}

/* --- combining --------------------------------------------------------------- */

/* A checksum over bytes that are appended one after the other. */
struct total {
	enum NC_checksum_kind kind;
	uint32_t sum;
	bool odd; /* the number of bytes so far is odd */
};

static void add_bytes(struct total *total, const struct nc_unit *unit, size_t offset, size_t length)
{
	while (length) {
		size_t run, at = nc_layout_at(&unit->layout, offset, &run);
		const char *bytes = nc_unit_base(unit) + at;

		if (run > length)
			run = length;
		if (total->kind == NC_CHECKSUM_INET)
			total->sum = nc_checksum_add((uint16_t)total->sum, nc_checksum(bytes, run),
						     total->odd);
		else
			total->sum = nc_crc32c(total->sum, bytes, run);
		total->odd ^= run % 2;
		offset += run;
		length -= run;
	}
}

/* Adds fragments [first, end), each of that length. */
static void add_fragments(struct total *total, const struct nc_unit *unit, size_t first, size_t end,
			  size_t length)
{
	if (total->kind == NC_CHECKSUM_INET) {
		uint16_t sum =
			nc_checksum_add_many(inet_sums(unit) + first, end - first, length % 2);

		total->sum = nc_checksum_add((uint16_t)total->sum, sum, total->odd);
	} else {
		uint32_t fragment = nc_crc32c_operator(length);

		for (size_t i = first; i < end; i++)
			total->sum = nc_crc32c_add(total->sum, crc_sums(unit)[i], fragment);
	}
	total->odd ^= length * (end - first) % 2;
}

bool nc_unit_checksum_reads(const struct nc_unit *unit, enum NC_checksum_kind kind, size_t offset,
			    size_t length)
{
	size_t end = offset + length, fraglen = unit->layout.fraglen;

	return length && (nc_unit_checksum_kind(unit) != kind || !nc_unit_checksum_kept(unit) ||
			  offset % fraglen || (end % fraglen && end < unit->layout.size));
}

int nc_unit_checksum_ask(const struct nc_unit *unit, enum NC_checksum_kind kind, size_t offset,
			 size_t length, uint32_t *sum)
{
	const struct nc_store *store = unit->store;
	uint16_t value;
	int error;

	if (!store->device || kind != NC_CHECKSUM_INET || nc_unit_present(unit))
		return -EOPNOTSUPP;
	error = nc_device_sum(store->device, store->name, offset, length, &value);
	if (error)
		return error;
	/* The module subtracts sums, so that it cannot tell the two forms of zero apart. */
	if (value == 0 || value == 0xffff)
		return -EDOM;
	*sum = htons(value);
	return 0;
}

uint32_t nc_unit_checksum_range(struct nc_unit *unit, enum NC_checksum_kind kind, size_t offset,
				size_t length)
{
	const struct nc_layout *layout = &unit->layout;
	size_t end = offset + length, fraglen = layout->fraglen;
	size_t first = offset / fraglen + !!(offset % fraglen), last = end / fraglen;
	struct total total = {.kind = kind};

	bool whole = first < last || (length && first == last && end == layout->size);

	/* Without memory for checksums, the bytes are read. */
	if (whole && nc_unit_checksum_kind(unit) == kind)
		(void)nc_unit_checksum_make(unit);
	if (!whole || nc_unit_checksum_kind(unit) != kind || !nc_unit_checksum_kept(unit)) {
		add_bytes(&total, unit, offset, length);
		return total.sum;
	}
	add_bytes(&total, unit, offset, first * fraglen - offset);
	if (first < last)
		add_fragments(&total, unit, first, last, fraglen);
	if (end < layout->size)
		add_bytes(&total, unit, last * fraglen, end - last * fraglen);
	else if (last < layout->fragments)
		add_fragments(&total, unit, last, last + 1, end - last * fraglen);
	return total.sum;
}

/* --- comparing --------------------------------------------------------------- */

static bool good(const struct nc_unit *unit, size_t index)
{
	return sum_of(unit, index) ==
	       (unit->sum_size == INET ? inet_sums(unit)[index] : crc_sums(unit)[index]);
}

ssize_t nc_unit_checksum_verify(const struct nc_unit *unit, size_t first, size_t bytes)
{
	size_t i = first, read = 0;

	if (!nc_unit_checksum_kept(unit))
		return -ENODATA;
	for (; i < unit->layout.fragments && (i == first || read < bytes); i++) {
		if (!good(unit, i))
			return -EBADMSG;
		read += fragment_length(&unit->layout, i);
	}
	return (ssize_t)(i - first);
}
