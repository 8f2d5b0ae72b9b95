/* SPDX-License-Identifier: MIT */
/*
 * index-lookup.c - finds the unit of an id, holds it and releases it; see index.h.
 *
 * Looking up an own unit takes no lock: the word of its slot shows at once whether
 * the generation is still live.
 */
#include <errno.h>
#include <nabc.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/grant.h"
#include "cache/import.h"
#include "cache/index-internal.h"
#include "cache/index.h"
#include "cache/names.h"
#include "cache/prefetch.h"
#include "cache/remote-member.h"
#include "policy/expiry.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit-checksum.h"
#include "store/unit.h"
#include "wire/rpc-client.h"
#include "wire/wire.h"

#define NAME_TRIES 32u

struct nc_counters *nc_index_counters(struct nc_index *index)
{
	int cpu = sched_getcpu();

	return &index->counters[(unsigned)(cpu < 0 ? 0 : cpu) % NC_COUNTER_SHARDS];
}

void nc_index_count(struct nc_index *index, enum NC_method method, size_t bytes)
{
	struct nc_counters *counters = nc_index_counters(index);

	nc_index_count_one(&counters->sends[method], 1);
	nc_index_count_one(&counters->bytes[method], bytes);
}

/* Finds where the id belongs: an own slot, a remote member, or the owner, which may export it. */
static int find(struct nc_index *index, size_t id, struct nc_view *view)
{
	unsigned number = nc_id_member(id);

	*view = (struct nc_view){.id = id};
	if (id == 0)
		return -ENOENT;
	if (number == index->own.number) {
		view->unit = nc_units_at(&index->own.units, nc_index_slot(index, id));
		return view->unit ? 0 : -ENOENT;
	}
	if (!index->owner) {
		view->imported = true;
		return index->rpc.socket < 0 ? -EACCES : 0;
	}
	number = nc_id_number(&index->epoch, number);
	view->remote = atomic_load_explicit(&index->remotes[number], memory_order_acquire);
	return view->remote ? 0 : -ENOENT;
}

static int refused(struct nc_index *index, int error)
{
	if (error == -ENOENT)
		nc_index_count_one(&nc_index_counters(index)->stale, 1);
	else if (error == -EACCES || error == -EPROTO)
		nc_index_count_one(&nc_index_counters(index)->denied, 1);
	/* A unit with a false description is reported as a foreign one. */
	return error == -EPROTO ? -EACCES : error;
}

int nc_index_hold(struct nc_index *index, size_t id, bool unlinked, struct nc_view *view)
{
	int error = find(index, id, view);

	if (!error && view->remote)
		error = nc_remote_member_hold(view->remote, nc_id_slot(id), nc_id_generation(id),
					      unlinked, &view->unit);
	else if (!error && view->imported)
		error = nc_imports_hold(&index->imports, id, unlinked, &view->unit);
	else if (!error)
		error = nc_member_hold(&index->own, view->unit, nc_id_generation(id), unlinked);
	if (error)
		return refused(index, error);
	nc_index_count_one(&nc_index_counters(index)->hits, 1);
	return 0;
}

bool nc_index_has(struct nc_index *index, size_t id)
{
	struct nc_view view;
	uint64_t word;

	if (find(index, id, &view) || view.imported)
		return false;
	if (view.remote) {
		if (nc_remote_member_hold(view.remote, nc_id_slot(id), nc_id_generation(id), false,
					  &view.unit))
			return false;
		(void)nc_remote_member_release(view.remote, nc_id_slot(id), nc_id_generation(id));
		return true;
	}
	word = nc_unit_word(view.unit);
	return nc_word_generation(word) == nc_id_generation(id) &&
	       nc_word_state(word) == NC_UNIT_LIVE && !nc_unit_expired(view.unit);
}

/* The owner's part of the next one. */
static int hold_own_name(struct nc_index *index, const char *name, struct nc_view *view)
{
	size_t id, before = 0;

	/* A unit that ended between the two calls may have had a successor by then. */
	while (nc_names_find(&index->names, name, &id) == 0 && id != before) {
		int error = nc_index_hold(index, id, false, view);

		if (error != -ENOENT)
			return error;
		before = id;
	}
	return -ENOENT;
}

/* As nc_index_hold_name(), but also -ESTALE: the unit has ended since the owner's reply. */
static int try_name(struct nc_index *index, const char *name, struct nc_view *view)
{
	size_t id;
	int error =
		nc_imports_hold_name(&index->imports, name, index->own.number, &id, &view->unit);

	if (error)
		return error;
	if (!view->unit) {
		error = nc_index_hold(index, id, false, view);
		return error == -ENOENT ? -ESTALE : error;
	}
	view->id = id;
	view->imported = true;
	nc_index_count_one(&nc_index_counters(index)->hits, 1);
	return 0;
}

int nc_index_hold_name(struct nc_index *index, const char *name, struct nc_view *view)
{
	int error = -ESTALE;

	if (index->owner)
		return hold_own_name(index, name, view);
	*view = (struct nc_view){.unit = NULL};
	/* Each of these means that a unit with this name has ended just now. */
	for (unsigned i = 0; i < NAME_TRIES && error == -ESTALE; i++)
		error = try_name(index, name, view);
	return error == -ESTALE ? -ENOENT : error;
}

int nc_index_hold_nowait(struct nc_index *index, size_t id, struct nc_view *view)
{
	int error = find(index, id, view);

	if (error || !view->imported)
		return nc_index_hold(index, id, false, view);
	error = nc_prefetch_hold(&index->prefetch, id, &view->unit);
	if (error)
		return refused(index, error);
	nc_index_count_one(&nc_index_counters(index)->hits, 1);
	return 0;
}

/* An import is freed with its last hold, so that a wrong hold must not be followed. */
static int borrow_import(struct nc_index *index, size_t id, struct nc_view *view)
{
	if (nc_imports_hold(&index->imports, id, true, &view->unit))
		return -EINVAL;
	if (nc_word_holds(nc_unit_word(view->unit)) > 1)
		return 0;
	(void)nc_imports_release(&index->imports, id);
	return -EINVAL;
}

int nc_index_borrow(struct nc_index *index, size_t id, struct nc_unit *unit, struct nc_view *view)
{
	unsigned generation = nc_id_generation(id);
	int error = find(index, id, view) ? -EINVAL : 0;

	if (!error && view->imported) {
		error = borrow_import(index, id, view);
	} else if (!error) {
		bool own = !view->remote;

		view->unit = unit;
		view->borrowed = true;
		if (own ? !nc_member_held(&index->own, unit, generation)
			: !nc_unit_held(unit, generation))
			error = -EINVAL;
	}
	if (!error)
		nc_index_count_one(&nc_index_counters(index)->hits, 1);
	return error;
}

void nc_index_return(struct nc_index *index, const struct nc_view *view)
{
	if (!view->borrowed)
		(void)nc_index_release(index, view->id);
}

int nc_index_keep(struct nc_view *view)
{
	unsigned generation = nc_id_generation(view->id);
	struct nc_unit *unit;
	int error;

	if (!view->borrowed)
		return 0;
	/* The use of the unit was noted when it was borrowed. */
	if (view->remote)
		error = nc_remote_member_hold(view->remote, nc_id_slot(view->id), generation, true,
					      &unit);
	else
		error = nc_unit_hold(view->unit, generation, true);
	view->borrowed = error != 0;
	return error;
}

int nc_index_fetch(struct nc_index *index, const struct nc_view *view)
{
	struct nc_unit *unit = view->unit;
	int fetched;

	if (nc_unit_present(unit))
		return 0;
	fetched = view->remote ? nc_remote_member_fetch(view->remote, unit)
			       : nc_member_fetch(&index->own, unit);
	if (fetched > 0) {
		nc_index_count_one(&nc_index_counters(index)->kernel_copies, 1);
		nc_index_count_one(&nc_index_counters(index)->kernel_copied_bytes,
				   unit->layout.size);
	}
	return fetched < 0 ? fetched : 0;
}

int nc_index_checksum(struct nc_index *index, const struct nc_view *view,
		      enum NC_checksum_kind kind, size_t offset, size_t length, uint32_t *sum)
{
	int error = 0;

	if (nc_unit_checksum_reads(view->unit, kind, offset, length)) {
		if (nc_unit_checksum_ask(view->unit, kind, offset, length, sum) == 0)
			return 0;
		error = nc_index_fetch(index, view);
	}
	if (!error)
		*sum = nc_unit_checksum_range(view->unit, kind, offset, length);
	return error;
}

int nc_index_release(struct nc_index *index, size_t id)
{
	struct nc_view view;
	int error = find(index, id, &view);

	if (error)
		return refused(index, error);
	if (view.remote)
		return nc_remote_member_release(view.remote, nc_id_slot(id), nc_id_generation(id));
	if (view.imported)
		return nc_imports_release(&index->imports, id);
	return nc_member_release(&index->own, view.unit, nc_id_generation(id));
}

int nc_index_call_to_destroy(struct nc_index *index, size_t id)
{
	struct nc_wire_call call = {.op = NC_WIRE_DESTROY, .id = id};
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;

	return nc_rpc_client_call(&index->rpc, &call, &load, &reply);
}

static int end_own(struct nc_index *index, size_t id, struct nc_unit *unit, enum NC_eviction why)
{
	int error = nc_member_end(&index->own, unit, nc_id_generation(id), why);

	/* The owner does not see the end of the unit, but must end its grants. */
	if (error > 0)
		(void)nc_index_call_to_destroy(index, id);
	return error > 0 ? 0 : error;
}

int nc_index_end(struct nc_index *index, size_t id, enum NC_eviction why)
{
	struct nc_view view;
	int error = find(index, id, &view);

	if (!error && view.remote) {
		error = nc_remote_member_destroy(view.remote, nc_id_slot(id), nc_id_generation(id));
		if (!error)
			nc_grants_drop(&index->grants, id);
	} else if (!error && view.imported) {
		error = nc_index_call_to_destroy(index, id);
	} else if (!error) {
		error = end_own(index, id, view.unit, why);
	}
	return error ? refused(index, error) : 0;
}

int nc_index_destroy(struct nc_index *index, size_t id)
{
	return nc_index_end(index, id, NC_EVICTION_NONE);
}

bool nc_index_evict(struct nc_index *index, size_t id, bool also_in_grace)
{
	struct nc_view view;

	return !find(index, id, &view) && !view.remote &&
	       nc_member_evict(&index->own, view.unit, nc_id_generation(id), also_in_grace);
}

/* Holds one of the owner's own units, to change it. */
static int hold_own(struct nc_index *index, size_t id, struct nc_view *view)
{
	int error = nc_index_hold(index, id, false, view);

	if (!error && (view->remote || view->imported)) {
		(void)nc_index_release(index, id);
		return refused(index, -EACCES);
	}
	return error;
}

int nc_index_set_priority(struct nc_index *index, size_t id, enum NC_priority priority)
{
	struct nc_view view;
	int error;

	if (!index->owner)
		return nc_imports_call_to_keep(&index->imports, id, NC_WIRE_PRIORITY,
					       (unsigned)priority);
	error = hold_own(index, id, &view);
	if (!error) {
		error = nc_member_set_priority(&index->own, view.unit, priority);
		(void)nc_index_release(index, id);
	}
	return error;
}

int nc_index_set_lifetime(struct nc_index *index, size_t id, uint64_t milliseconds)
{
	struct nc_view view;
	int error;

	if (!index->owner)
		return nc_imports_call_to_keep(&index->imports, id, NC_WIRE_LIFETIME, milliseconds);
	error = hold_own(index, id, &view);
	if (!error) {
		error = nc_member_set_lifetime(&index->own, view.unit, milliseconds);
		(void)nc_index_release(index, id);
	}
	return error;
}

void nc_index_orphan(struct nc_index *index, size_t id)
{
	struct nc_view view;

	if (hold_own(index, id, &view))
		return;
	if (atomic_load_explicit(&view.unit->expires, memory_order_relaxed) == 0)
		(void)nc_member_set_lifetime(&index->own, view.unit, index->orphan_lifetime);
	if (atomic_load_explicit(&view.unit->grace, memory_order_relaxed))
		nc_unit_begin_grace(view.unit, nc_clock_ns(CLOCK_MONOTONIC_COARSE));
	(void)nc_index_release(index, id);
}
