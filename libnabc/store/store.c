/* SPDX-License-Identifier: MIT */
/* store.c - the memory of units in one segment; see store.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fragment.h"
#include "os/device.h"
#include "store/store.h"

/* Whether units take runs of pages.  A single unit has all pages. */
static bool has_runs(const struct nc_store *store)
{
	return !store->alone;
}

static struct nc_store *store_over(const struct nc_segment *segment, enum NC_kind kind,
				   size_t first, bool alone, int *error)
{
	struct nc_store *store = calloc(1, sizeof(*store));

	if (!store) {
		*error = -ENOMEM;
		return NULL;
	}
	store->segment = *segment;
	store->kind = kind;
	store->first = first;
	store->alone = alone;
	store->appended = first;
	store->newest = store->oldest = NC_UNIT_NONE;
	atomic_init(&store->present, true);
	*error = has_runs(store) ? nc_extent_init(&store->extent,
						  (uint32_t)((segment->size - first) / NC_PAGE))
				 : 0;
	if (*error) {
		free(store);
		return NULL;
	}
	return store;
}

struct nc_store *nc_store_create(enum NC_kind kind, size_t size, bool huge, bool alone, int *error)
{
	struct nc_segment segment;
	struct nc_store *store;

	/* A single unit may become shorter when it is inserted: nc_store_shrink(). */
	*error = alone ? nc_segment_create_sizable(&segment, size, huge)
		       : nc_segment_create(&segment, size, huge, false);
	if (*error)
		return NULL;
	store = store_over(&segment, kind, 0, alone, error);
	if (!store)
		nc_segment_close(&segment);
	return store;
}

struct nc_store *nc_store_over(const struct nc_segment *segment, size_t first, int *error)
{
	return store_over(segment, NC_KIND_RECYCLED, first, false, error);
}

struct nc_store *nc_store_over_frozen(const struct nc_segment *segment, int *error)
{
	struct nc_store *store = store_over(segment, NC_KIND_SEALED, 0, true, error);

	if (store) {
		store->appended = segment->size;
		store->frozen = true;
	}
	return store;
}

struct nc_store *nc_store_create_kernel(struct nc_device *device, size_t size, bool buffered,
					int *error)
{
	struct nc_segment memory = {.fd = -1, .size = size};
	struct nc_store *store;
	uint64_t name = 0;

	memory.base = buffered ? nc_device_buffer(device, size) : NULL;
	buffered = memory.base;
	*error = buffered ? 0 : nc_device_alloc(device, size, &name, &memory.base);
	if (*error)
		return NULL;
	store = store_over(&memory, NC_KIND_KERNEL, 0, true, error);
	if (!store) {
		if (buffered)
			nc_device_buffer_return(device, memory.base);
		else
			(void)nc_device_destroy(device, name);
		return NULL;
	}
	store->device = device;
	store->name = name;
	store->buffered = buffered;
	atomic_init(&store->present, false);
	return store;
}

/* Returns the buffer; the unit is elsewhere now, or nowhere. */
static void leave_buffer(struct nc_store *store)
{
	nc_device_buffer_return(store->device, store->segment.base);
	store->segment.base = NULL;
	store->buffered = false;
}

int nc_store_use_arena(struct nc_store *store, size_t filled)
{
	uint64_t name;
	char *base;
	int error = nc_device_alloc(store->device, store->segment.size, &name, &base);

	if (error)
		return error;
	memcpy(base, store->segment.base, filled);
	leave_buffer(store);
	store->segment.base = base;
	store->name = name;
	return 0;
}

int nc_store_put(struct nc_store *store, size_t size)
{
	int error = nc_device_put(store->device, store->segment.base, size, &store->name);

	if (!error)
		leave_buffer(store);
	return error;
}

/* Its memory is private from now on.  The store already has the size. */
static void use_private(struct nc_store *store, const struct nc_segment *memory)
{
	store->segment.base = memory->base;
	store->segment.pin = memory->pin;
	store->segment.locked = memory->locked;
}

int nc_store_keep(struct nc_store *store, size_t filled, struct nc_pin *pin)
{
	struct nc_segment memory;
	int error = nc_segment_create_private(&memory, store->segment.size);

	if (error)
		return error;
	nc_segment_pin(&memory, pin, false);
	memcpy(memory.base, store->segment.base, filled);
	leave_buffer(store);
	use_private(store, &memory);
	store->device = NULL;
	return 0;
}

/* Copies the unit instead of holding it in the module. */
static int copy_instead(struct nc_store *store, size_t size, struct nc_pin *pin)
{
	int error = nc_store_fetch(store, size, pin);

	if (!error)
		store->device = NULL;
	return error;
}

struct nc_store *nc_store_borrow_kernel(struct nc_device *device, uint64_t name,
					const struct nc_layout *layout, struct nc_pin *pin,
					int *error)
{
	struct nc_segment none = {.fd = -1, .size = layout->extent};
	struct nc_store *store = store_over(&none, NC_KIND_KERNEL, 0, true, error);

	if (!store)
		return NULL;
	atomic_init(&store->present, false);
	store->device = device;
	store->name = name;
	store->imported = true;
	*error = nc_device_hold(device, name);
	/* The unit would exceed RLIMIT_MEMLOCK. */
	if (*error == -ENOMEM)
		*error = copy_instead(store, layout->size, pin);
	if (*error) {
		free(store);
		return NULL;
	}
	return store;
}

int nc_store_fetch(struct nc_store *store, size_t size, struct nc_pin *pin)
{
	struct nc_segment copy;
	int error = nc_segment_create_private(&copy, store->segment.size);

	if (error)
		return error;
	nc_segment_pin(&copy, pin, false);
	error = nc_device_copy(store->device, store->name, 0, copy.base, size);
	/* The original is read-only, so its copy is too. */
	if (!error)
		error = nc_segment_protect(&copy, 0, copy.size);
	if (error) {
		nc_segment_close(&copy);
		return error;
	}
	use_private(store, &copy);
	atomic_store_explicit(&store->present, true, memory_order_release);
	return 0;
}

/* Releases or destroys the module's unit.  The arena's mapping does not belong to the store. */
static void leave_module(struct nc_store *store)
{
	if (store->buffered)
		leave_buffer(store);
	else if (store->imported)
		(void)nc_device_release(store->device, store->name);
	else
		(void)nc_device_destroy(store->device, store->name);
	if (!atomic_load_explicit(&store->present, memory_order_relaxed))
		store->segment.base = NULL;
}

void nc_store_close(struct nc_store *store)
{
	if (store->device)
		leave_module(store);
	nc_segment_close(&store->segment);
	nc_extent_fini(&store->extent);
	free(store);
}

int64_t nc_store_take(struct nc_store *store, size_t extent)
{
	int64_t at;

	if (store->busy || store->full)
		return -ENOMEM;
	if (has_runs(store)) {
		if (extent / NC_PAGE > store->extent.pages)
			return -ENOMEM;
		at = nc_extent_take(&store->extent, (uint32_t)(extent / NC_PAGE));
		if (at < 0)
			return at;
		at = (int64_t)store->first + at * NC_PAGE;
	} else {
		at = (int64_t)store->appended;
		if (extent > store->segment.size - store->appended)
			return -ENOMEM;
	}
	if ((size_t)at + extent > store->appended)
		store->appended = (size_t)at + extent;
	return at;
}

/* Returns [at, at + extent), which a unit that was inserted never had. */
static void give(struct nc_store *store, uint64_t at, size_t extent)
{
	if (has_runs(store))
		nc_extent_give(&store->extent, (uint32_t)((at - store->first) / NC_PAGE),
			       (uint32_t)(extent / NC_PAGE));
	if (at + extent == store->appended)
		store->appended = at;
}

void nc_store_untake(struct nc_store *store, uint64_t at, size_t extent)
{
	give(store, at, extent);
}

size_t nc_store_room(const struct nc_store *store)
{
	return has_runs(store) ? (size_t)(store->extent.pages - store->extent.used) * NC_PAGE
			       : store->segment.size - store->appended;
}

void nc_store_trim(struct nc_store *store, struct nc_unit *unit, size_t extent)
{
	size_t behind = unit->layout.extent - extent;

	give(store, unit->at + extent, behind);
	store->live -= behind;
	unit->layout.extent = extent;
}

int nc_store_shrink(struct nc_store *store, size_t size)
{
	if (!store->device)
		return nc_segment_shrink(&store->segment, size);
	/* The module returns its pages at the insert, and a buffer as a whole. */
	store->segment.size = size;
	return 0;
}

int nc_store_extend(struct nc_store *store, struct nc_unit *unit, size_t extent)
{
	size_t end = unit->at + unit->layout.extent, more = extent - unit->layout.extent;
	uint32_t page = (uint32_t)((end - store->first) / NC_PAGE);

	if (has_runs(store) && nc_extent_take_at(&store->extent, page, (uint32_t)(more / NC_PAGE)))
		return -ENOMEM;
	if (end + more > store->appended)
		store->appended = end + more;
	store->live += more;
	unit->layout.extent = extent;
	return 0;
}

int nc_store_grow(struct nc_store *store, size_t size, bool huge)
{
	if (store->buffered && size <= store->device->put_max && size <= NC_DEVICE_BUFFER) {
		store->segment.size = size;
		return 0;
	}
	if (store->kind == NC_KIND_KERNEL)
		return -EXDEV;
	return nc_segment_grow(&store->segment, size, huge && store->kind != NC_KIND_SEALED);
}

void nc_store_enter(struct nc_store *store, struct nc_units *units, struct nc_unit *unit,
		    uint64_t at)
{
	unit->store = store;
	unit->at = at;
	unit->previous = NC_UNIT_NONE;
	unit->next = store->newest;
	if (store->newest != NC_UNIT_NONE)
		nc_units_at(units, store->newest)->previous = unit->slot;
	else
		store->oldest = unit->slot;
	store->newest = unit->slot;
	store->count++;
	atomic_fetch_add_explicit(&store->filling, 1, memory_order_relaxed);
	store->live += unit->layout.extent;
}

void nc_store_leave(struct nc_store *store, struct nc_units *units, struct nc_unit *unit)
{
	if (unit->next != NC_UNIT_NONE)
		nc_units_at(units, unit->next)->previous = unit->previous;
	else
		store->oldest = unit->previous;
	if (unit->previous != NC_UNIT_NONE)
		nc_units_at(units, unit->previous)->next = unit->next;
	else
		store->newest = unit->next;
	store->count--;
	store->live -= unit->layout.extent;
	if (store->kind == NC_KIND_RECYCLED && has_runs(store))
		nc_extent_give(&store->extent, (uint32_t)((unit->at - store->first) / NC_PAGE),
			       (uint32_t)(unit->layout.extent / NC_PAGE));
}

/* Finds the huge-page blocks that lie entirely within the unit, as offsets from its start. */
static bool own_blocks(const struct nc_unit *unit, size_t *first, size_t *end)
{
	size_t last = (unit->at + unit->layout.extent) / NC_HUGE_PAGE * NC_HUGE_PAGE;

	*first = -unit->at % NC_HUGE_PAGE;
	*end = last > unit->at ? last - unit->at : 0;
	return unit->store->kind == NC_KIND_APPENDED && unit->store->segment.huge && *first < *end;
}

size_t nc_store_prepare(const struct nc_unit *unit, size_t prepared)
{
	size_t first, end;

	if (!own_blocks(unit, &first, &end) || prepared >= end)
		return SIZE_MAX;
	if (prepared < first)
		return first;
	/* If the system refuses once, do not try again for this unit. */
	if (nc_segment_collapse(&unit->store->segment, unit->at + prepared))
		return SIZE_MAX;
	return prepared + NC_HUGE_PAGE;
}

size_t nc_store_prepared(const struct nc_unit *unit, size_t prepared)
{
	size_t first, end;

	if (!own_blocks(unit, &first, &end))
		return 0;
	return prepared < end ? prepared : end;
}

void nc_store_prepare_last(const struct nc_unit *unit)
{
	struct nc_segment *segment = &unit->store->segment;
	size_t end = unit->at + unit->layout.extent, block = end / NC_HUGE_PAGE * NC_HUGE_PAGE;

	if (unit->store->kind == NC_KIND_APPENDED && segment->huge && block >= unit->at &&
	    block < end && segment->size - block >= NC_HUGE_PAGE)
		(void)nc_segment_collapse(segment, block);
}

static int protect_kernel(struct nc_store *store, const struct nc_unit *unit)
{
	int error = 0;

	if (!store->device) {
		error = nc_segment_protect(&store->segment, 0, store->segment.size);
		atomic_store_explicit(&store->present, !error, memory_order_release);
	} else if (store->segment.base) { /* in the arena */
		error = nc_device_insert(store->device, store->name, unit->layout.size);
	}
	/* Else nc_store_put() has inserted it. */
	return error;
}

int nc_store_protect(struct nc_store *store, const struct nc_unit *unit, bool protect)
{
	if (store->kind == NC_KIND_SEALED) {
		int error = store->frozen ? 0 : nc_segment_freeze(&store->segment);

		store->frozen = !error;
		return error;
	}
	if (store->kind == NC_KIND_KERNEL)
		return protect_kernel(store, unit);
	if (store->alone)
		nc_segment_fix_size(&store->segment);
	if (store->kind == NC_KIND_APPENDED || protect)
		return nc_segment_protect(&store->segment, unit->at, unit->layout.extent);
	return 0;
}

int nc_unit_read(const struct nc_unit *unit, size_t offset, void *to, size_t length)
{
	const struct nc_store *store = unit->store;
	size_t done = 0;

	/* Units in the module have no gaps. */
	if (!nc_unit_present(unit))
		return nc_device_copy(store->device, store->name, offset, to, length);
	while (done < length) {
		size_t run, at = nc_layout_at(&unit->layout, offset + done, &run);

		if (run > length - done)
			run = length - done;
		memcpy((char *)to + done, nc_unit_base(unit) + at, run);
		done += run;
	}
	return 0;
}

void nc_store_retract(struct nc_store *store, const struct nc_unit *unit)
{
	(void)nc_store_filled(store);
	/* Other kinds return their memory with the unit. */
	if (store->kind == NC_KIND_APPENDED)
		give(store, unit->at, unit->layout.extent);
}
