/* SPDX-License-Identifier: MIT */
/*
 * index-alloc.c - selects the memory of a new unit: this process's own, the kernel
 * module's, or a sealed segment; see index.h.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "base/diagnostics.h"
#include "base/fragment.h"
#include "base/id.h"
#include "cache/import.h"
#include "cache/index-internal.h"
#include "cache/index.h"
#include "policy/expiry.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#define APPENDED_MIN ((size_t)32 << 10)
/*
 * A unit in the module costs three system calls: to create, insert and destroy it.
 * Below two pages, copying it to a socket costs less.
 */
#define KERNEL_MIN ((size_t)8 << 10)
/*
 * A member's units are mostly for one response, and its other memory stays mapped
 * between responses.  Instructions of worker and server together for a document
 * through shared memory, divided by those with the module (bench kernel): 10 KB
 * 0.71 to 0.78, 100 KB 0.94 to 1.21, 1 MB 1.36 to 1.89.
 */
#define KERNEL_MIN_MEMBER ((size_t)48 << 10)

static enum NC_kind choose_kind(const struct nc_index *index, size_t size)
{
	if (index->owner)
		return size >= APPENDED_MIN ? NC_KIND_APPENDED : NC_KIND_RECYCLED;
	return !index->own.shared ? NC_KIND_SEALED : NC_KIND_RECYCLED;
}

/* Whether the unit may be in the kernel module, which stores bytes without gaps. */
static bool suits_kernel(const struct nc_index *index, const struct nc_layout *layout,
			 enum NC_kind kind)
{
	size_t least = index->owner ? KERNEL_MIN : KERNEL_MIN_MEMBER;

	if (!nc_member_has_device(&index->own) || !nc_layout_gapless(layout))
		return false;
	return kind == NC_KIND_KERNEL ||
	       (kind == NC_KIND_AUTO && layout->size >= least &&
		!atomic_load_explicit(&index->other_routes, memory_order_relaxed));
}

static void report_no_module_memory(struct nc_index *index)
{
	nc_index_count_one(&nc_index_counters(index)->kernel_memory, 1);
	nc_diagnostics_report(
		&index->diagnostics, NC_DIAGNOSTIC_DEVICE_MEMORY,
		"the kernel module nabc has no more memory for this process, so its "
		"units fall back to ordinary memory; raise RLIMIT_MEMLOCK (ulimit -l, "
		"LimitMEMLOCK=) or the module's memory_limit");
}

/* -ENOSPC: the caller falls back to other memory. */
static int alloc_in_kernel(struct nc_index *index, const struct nc_layout *layout,
			   struct nc_unit **unit)
{
	int error = nc_member_alloc(&index->own, layout, NC_KIND_KERNEL, unit);

	if (error == -ENOSPC)
		report_no_module_memory(index);
	return error;
}

static int alloc_kind(struct nc_index *index, const struct nc_layout *layout, enum NC_kind kind,
		      struct nc_unit **unit)
{
	if (layout->size > index->max_unit)
		return -EFBIG;
	if (suits_kernel(index, layout, kind)) {
		int error = alloc_in_kernel(index, layout, unit);

		if (error != -ENOSPC)
			return error;
	}
	if (kind == NC_KIND_AUTO || kind == NC_KIND_KERNEL)
		kind = choose_kind(index, layout->size);
	if (index->owner)
		return nc_member_alloc(&index->own, layout, kind, unit);
	if (kind == NC_KIND_SEALED)
		return nc_imports_alloc(&index->imports, layout, unit);
	if (kind == NC_KIND_APPENDED || !index->own.shared)
		return -ENOTSUP;
	return nc_member_alloc(&index->own, layout, kind, unit);
}

int nc_index_alloc(struct nc_index *index, const struct nc_layout *layout, enum NC_kind kind,
		   struct nc_unit **unit)
{
	int error = alloc_kind(index, layout, kind, unit);

	/* A unit over max_unit is the caller's fault. */
	if (error && layout->size <= index->max_unit)
		nc_diagnostics_report_error(&index->diagnostics, error);
	return error;
}

/* In an attached process, sealed units belong to the owner. */
static bool is_import(const struct nc_index *index, const struct nc_unit *unit)
{
	return !index->owner && unit->store->kind == NC_KIND_SEALED;
}

void nc_index_abandon(struct nc_index *index, struct nc_unit *unit)
{
	if (is_import(index, unit))
		nc_imports_abandon(&index->imports, unit);
	else
		nc_member_abandon(&index->own, unit);
}

/* Continues where the module had no memory for a unit in a buffer. */
static int keep(struct nc_index *index, struct nc_unit *unit, size_t filled, int error)
{
	if (error != -ENOSPC)
		return error;
	report_no_module_memory(index);
	return nc_store_keep(unit->store, filled, index->own.pin);
}

int nc_index_leave_buffer(struct nc_index *index, struct nc_unit *unit, size_t filled)
{
	if (!unit->store->buffered)
		return 0;
	return keep(index, unit, filled, nc_store_use_arena(unit->store, filled));
}

/* Whether a new unit of that layout would have the kind of memory that this one has. */
static bool keeps_kind(const struct nc_index *index, const struct nc_unit *unit,
		       const struct nc_layout *layout, enum NC_kind kind)
{
	const struct nc_layout *old = &unit->layout;

	return suits_kernel(index, old, kind) == suits_kernel(index, layout, kind) &&
	       (kind != NC_KIND_AUTO || unit->store->kind == NC_KIND_KERNEL ||
		choose_kind(index, old->size) == choose_kind(index, layout->size));
}

int nc_index_grow(struct nc_index *index, struct nc_unit *unit, const struct nc_layout *layout,
		  enum NC_kind kind)
{
	int error = -EXDEV;

	if (layout->size > index->max_unit)
		return -EFBIG;
	if (layout->extent == unit->layout.extent)
		return 0;
	if (is_import(index, unit))
		error = nc_imports_grow(unit, layout->extent);
	else if (keeps_kind(index, unit, layout, kind))
		error = nc_member_grow(&index->own, unit, layout->extent);
	if (error && error != -EXDEV)
		nc_diagnostics_report_error(&index->diagnostics, error);
	return error;
}

void nc_index_trim(struct nc_index *index, struct nc_unit *unit, size_t extent)
{
	if (is_import(index, unit))
		nc_imports_trim(unit, extent);
	else
		nc_member_trim(&index->own, unit, extent);
}

/* What the owner sets for a member's sealed unit; it refuses that for others. */
static int may_set(const struct nc_index *index, const struct nc_unit *unit,
		   const struct nc_insertion *with)
{
	if (index->owner || (with->priority == NC_PRIORITY_NORMAL && !with->lifetime))
		return 0;
	if (!is_import(index, unit))
		return -EACCES;
	return with->priority > NC_PRIORITY_NORMAL && !index->operates ? -EPERM : 0;
}

int nc_index_may_insert(const struct nc_index *index, const struct nc_unit *unit,
			const struct nc_insertion *with)
{
	if (!with)
		return 0;
	if ((unsigned)with->priority > NC_PRIORITY_PINNED || with->lifetime > NC_LIFETIME_MAX_MS)
		return -EINVAL;
	return may_set(index, unit, with);
}

/* Moves a unit of the module out of its buffer, which is used again. */
static int put(struct nc_index *index, struct nc_unit *unit)
{
	size_t size = unit->layout.size;

	if (!unit->store->buffered)
		return 0;
	return keep(index, unit, size, nc_store_put(unit->store, size));
}

int nc_index_insert(struct nc_index *index, struct nc_unit *unit, const struct nc_insertion *with,
		    size_t *id)
{
	int error;

	if (is_import(index, unit))
		return nc_imports_insert(&index->imports, unit, with, id);
	error = nc_member_prepare(&index->own, unit, with);
	if (error)
		return error;
	*id = nc_index_id(index, unit->slot, nc_word_generation(nc_unit_word(unit)));
	error = put(index, unit);
	if (!error)
		error = nc_member_insert(&index->own, unit, with);
	if (error)
		nc_member_unprepare(&index->own, unit, with);
	return error;
}
