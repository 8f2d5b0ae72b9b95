/* SPDX-License-Identifier: MIT */
/*
 * index.c - finds the unit that an id names; see index.h.
 *
 * Looking up an own unit takes no lock: the word of its slot says at once
 * whether the generation still lives.  Members' numbers are given out round
 * robin, so that a number rests before it is used again.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/id.h"
#include "cache/index.h"

#define SIZE_DEFAULT ((size_t)256 << 20)
#define SIZE_MIN ((size_t)1 << 20)
#define SIZE_LIMIT ((size_t)1 << 46) /* half of the addresses that a process has */
#define MEMBER_DEFAULT ((size_t)16 << 20)
#define MEMBER_MIN ((size_t)64 << 10)
#define MEMBER_MAX ((size_t)64 << 30)
#define QUOTA_SEGMENTS 4u
#define ORPHAN_LIFETIME_MS 60000u
#define APPENDED_MIN ((size_t)32 << 10)
/*
 * A unit in the module costs three system calls: to be, to be full, to go.
 * Below two pages copying it to a socket costs less than those.
 */
#define KERNEL_MIN ((size_t)8 << 10)
/*
 * A member's are most often for one answer, and its other memory stays mapped
 * from one to the next.  Instructions of worker and server together for a
 * document by shared memory, by those with the module (bench kernel): 10 KB 0.71
 * to 0.78, 100 KB 0.94 to 1.21, 1 MB 1.36 to 1.89.
 */
#define KERNEL_MIN_MEMBER ((size_t)48 << 10)
#define BYTES_A_SLOT ((size_t)16 << 10)
#define SLOTS_MIN 64u
#define SLOTS_MAX 16384u

/* Under the member's lock: those to whom it was granted see that it is no more. */
static void unit_gone(void *context, const struct nc_unit *unit, unsigned generation)
{
	struct nc_index *index = context;

	nc_grants_drop(&index->grants, nc_id(index->own.number, unit->slot, generation));
}

int nc_index_init_owner(struct nc_index *index, const struct NC_cache_options *options)
{
	static const struct NC_cache_options defaults;
	size_t size;
	int error;

	if (!options)
		options = &defaults;
	size = options->size ? options->size : SIZE_DEFAULT;
	*index = (struct nc_index){
		.owner = true, .flags = options->flags, .numbers = 1, .owner_pidfd = -1};
	nc_diagnostics_init(&index->diagnostics, options->log, options->log_context);
	nc_device_init(&index->device, "switched off by the program");
	index->max_unit = options->max_unit ? options->max_unit : size / 4;
	index->member_size = options->member_size ? options->member_size : MEMBER_DEFAULT;
	index->unsent_limit = options->unsent_limit;
	index->checksum = options->checksum ? options->checksum : NC_CHECKSUM_INET;
	if (index->checksum < NC_CHECKSUM_DEFAULT || index->checksum > NC_CHECKSUM_CRC32C)
		return -EINVAL;
	if (size < SIZE_MIN || size > SIZE_LIMIT || index->max_unit > size / 4 ||
	    index->member_size < MEMBER_MIN || index->member_size > MEMBER_MAX ||
	    (options->flags & ~(NC_CACHE_NO_URING | NC_CACHE_NO_HUGE | NC_CACHE_NO_THREAD |
				NC_CACHE_PROTECT | NC_CACHE_NO_KERNEL | NC_CACHE_MEMBERS_THREAD)))
		return -EINVAL;
	index->member_size = (index->member_size + NC_PAGE - 1) / NC_PAGE * NC_PAGE;
	index->member_quota =
		options->member_quota ? options->member_quota : QUOTA_SEGMENTS * index->member_size;
	index->orphan_lifetime =
		options->orphan_lifetime ? options->orphan_lifetime : ORPHAN_LIFETIME_MS;
	if (index->orphan_lifetime > NC_LIFETIME_MAX_MS)
		return -EINVAL;
	index->remotes = calloc(NC_ID_MEMBERS_MAX, sizeof(*index->remotes));
	if (!index->remotes)
		return -ENOMEM;
	index->scrub_rate = options->scrub_rate;
	error = nc_member_init_owner(&index->own, size, !(options->flags & NC_CACHE_NO_HUGE));
	if (!error) {
		error = nc_member_configure(&index->own, options);
		if (error)
			nc_member_fini(&index->own);
	}
	if (error) {
		free(index->remotes);
		return error;
	}
	pthread_mutex_init(&index->lock, NULL);
	pthread_mutex_init(&index->purge.lock, NULL);
	/* Copies for others are bounded too, but one of the largest unit can be had. */
	nc_grants_init(&index->grants, index->member_quota > index->max_unit ? index->member_quota
									     : index->max_unit);
	index->grants.copies_max = index->own.max_descriptors;
	index->own.gone = unit_gone;
	index->own.gone_context = index;
	return 0;
}

static void init_ends(struct nc_index *index)
{
	nc_device_init(&index->device, "the owner of the cache does not use it");
	index->owner_pidfd = -1;
	pthread_mutex_init(&index->lock, NULL);
	pthread_mutex_init(&index->purge.lock, NULL);
	nc_rpc_client_init(&index->rpc);
	nc_imports_init(&index->imports, &index->rpc);
}

int nc_index_init_attached(struct nc_index *index, unsigned number,
			   const struct nc_segment *segment, size_t first, uint32_t slots,
			   uint32_t generation, size_t max_unit)
{
	int error;

	*index = (struct nc_index){.max_unit = max_unit, .checksum = NC_CHECKSUM_INET};
	error = nc_member_init_attached(&index->own, number, segment, first, slots, generation);
	if (!error)
		init_ends(index);
	return error;
}

int nc_index_init_guest(struct nc_index *index, size_t max_unit)
{
	int error;

	*index = (struct nc_index){.max_unit = max_unit, .checksum = NC_CHECKSUM_INET};
	error = nc_member_init_owner(&index->own, 0, false);
	if (error)
		return error;
	/* No id has this one: nothing is its own but what it made sealed. */
	index->own.number = NC_ID_MEMBERS_MAX;
	init_ends(index);
	return 0;
}

void nc_index_connect(struct nc_index *index, int socket)
{
	nc_rpc_client_open(&index->rpc, socket);
}

int nc_index_use_device(struct nc_index *index, const struct nc_device_system *system)
{
	int error = nc_device_open(&index->device, system), pidfd = -1;

	if (!error && !index->owner) {
		pidfd = nc_identity_open(index->rpc.owner);
		error = pidfd < 0 ? pidfd : 0;
		if (error) {
			nc_device_close(&index->device);
			nc_device_init(&index->device, "the owner of the cache cannot be granted");
		}
	}
	if (error)
		return error;
	index->owner_pidfd = pidfd;
	nc_member_use_device(&index->own, &index->device, pidfd);
	return 0;
}

void nc_index_fini(struct nc_index *index)
{
	for (unsigned number = 0; index->remotes && number < index->numbers; number++)
		nc_remote_member_free(
			atomic_load_explicit(&index->remotes[number], memory_order_relaxed));
	free(index->remotes);
	/* Members' units are gone first: nobody is told of the own ones. */
	if (index->owner) {
		nc_grants_fini(&index->grants);
	} else {
		nc_imports_fini(&index->imports);
		nc_rpc_client_fini(&index->rpc);
	}
	nc_member_fini(&index->own);
	nc_device_close(&index->device);
	if (index->owner_pidfd >= 0)
		close(index->owner_pidfd);
	pthread_mutex_destroy(&index->purge.lock);
	pthread_mutex_destroy(&index->lock);
}

uint32_t nc_index_filling(struct nc_index *index)
{
	uint32_t filling = nc_member_filling(&index->own);

	if (!index->owner) {
		pthread_mutex_lock(&index->imports.lock);
		filling += index->imports.filling;
		pthread_mutex_unlock(&index->imports.lock);
	}
	return filling;
}

static enum NC_kind choose_kind(const struct nc_index *index, size_t size)
{
	if (index->owner)
		return size >= APPENDED_MIN ? NC_KIND_APPENDED : NC_KIND_RECYCLED;
	return !index->own.shared ? NC_KIND_SEALED : NC_KIND_RECYCLED;
}

/* Whether the unit is one for the kernel module, which lays bytes without gaps. */
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

static void count_one(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* -ENOSPC: other memory will do. */
static int alloc_in_kernel(struct nc_index *index, const struct nc_layout *layout,
			   struct nc_unit **unit)
{
	int error = nc_member_alloc(&index->own, layout, NC_KIND_KERNEL, unit);

	if (error == -ENOSPC) {
		count_one(&nc_index_counters(index)->kernel_memory, 1);
		nc_diagnostics_report(
			&index->diagnostics, NC_DIAGNOSTIC_DEVICE_MEMORY,
			"the kernel module nabc has no more memory for this process, so units "
			"lie elsewhere; raise RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK=) or the "
			"module's memory_limit");
	}
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

	if (error)
		nc_diagnostics_report_error(&index->diagnostics, error);
	return error;
}

/* In an attached process, sealed units are the owner's. */
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

int nc_index_insert(struct nc_index *index, struct nc_unit *unit, size_t *id)
{
	if (is_import(index, unit))
		return nc_imports_insert(&index->imports, unit, id);
	*id = nc_id(index->own.number, unit->slot, nc_word_generation(nc_unit_word(unit)));
	return nc_member_insert(&index->own, unit);
}

struct nc_counters *nc_index_counters(struct nc_index *index)
{
	int cpu = sched_getcpu();

	return &index->counters[(unsigned)(cpu < 0 ? 0 : cpu) % NC_COUNTER_SHARDS];
}

void nc_index_count(struct nc_index *index, enum NC_method method, size_t bytes)
{
	struct nc_counters *counters = nc_index_counters(index);

	count_one(&counters->sends[method], 1);
	count_one(&counters->bytes[method], bytes);
}

/* Who has the id: an own slot, a remote member, the owner (who may export it), or nobody. */
static int find(struct nc_index *index, size_t id, struct nc_view *view)
{
	unsigned number = nc_id_member(id);

	*view = (struct nc_view){.id = id};
	if (id == 0)
		return -ENOENT;
	if (number == index->own.number) {
		view->unit = nc_units_at(&index->own.units, nc_id_slot(id));
		return view->unit ? 0 : -ENOENT;
	}
	if (!index->owner) {
		view->imported = true;
		return index->rpc.socket < 0 ? -EACCES : 0;
	}
	if (number >= NC_ID_MEMBERS_MAX)
		return -ENOENT;
	view->remote = atomic_load_explicit(&index->remotes[number], memory_order_acquire);
	return view->remote ? 0 : -ENOENT;
}

static int refused(struct nc_index *index, int error)
{
	if (error == -ENOENT)
		count_one(&nc_index_counters(index)->stale, 1);
	else if (error == -EACCES || error == -EPROTO)
		count_one(&nc_index_counters(index)->denied, 1);
	/* A member that lies about a unit has no such unit. */
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
	count_one(&nc_index_counters(index)->hits, 1);
	return 0;
}

static bool is_live(const struct nc_unit *unit, unsigned generation)
{
	uint64_t word = nc_unit_word(unit);

	return nc_word_generation(word) == generation && nc_word_state(word) == NC_UNIT_LIVE;
}

int nc_index_borrow(struct nc_index *index, size_t id, struct nc_view *view)
{
	int error = find(index, id, view);

	if (error)
		return refused(index, error);
	if (view->remote || view->imported) {
		error = nc_index_hold(index, id, true, view);
		if (error || nc_word_holds(nc_unit_word(view->unit)) > 1)
			return error;
		/* This hold is the only one. */
		(void)nc_index_release(index, id);
		return -EPERM;
	}
	if (!nc_member_held(&index->own, view->unit, nc_id_generation(id)))
		return refused(index, is_live(view->unit, nc_id_generation(id)) ? -EPERM : -ENOENT);
	view->borrowed = true;
	count_one(&nc_index_counters(index)->hits, 1);
	return 0;
}

void nc_index_return(struct nc_index *index, const struct nc_view *view)
{
	if (!view->borrowed)
		(void)nc_index_release(index, view->id);
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
		count_one(&nc_index_counters(index)->kernel_copies, 1);
		count_one(&nc_index_counters(index)->kernel_copied_bytes, unit->layout.size);
	}
	return fetched < 0 ? fetched : 0;
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

static int call_to_destroy(struct nc_index *index, size_t id)
{
	struct nc_wire_call call = {.op = NC_WIRE_DESTROY, .id = id};
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;

	return nc_rpc_client_call(&index->rpc, &call, &load, &reply);
}

static int destroy_own(struct nc_index *index, size_t id, struct nc_unit *unit)
{
	bool granted = !index->owner && atomic_load(&unit->granted);
	int error = nc_member_destroy(&index->own, unit, nc_id_generation(id));

	/* The owner does not see it go, and those to whom it was granted must. */
	if (!error && granted)
		(void)call_to_destroy(index, id);
	return error;
}

int nc_index_destroy(struct nc_index *index, size_t id)
{
	struct nc_view view;
	int error = find(index, id, &view);

	if (!error && view.remote) {
		error = nc_remote_member_destroy(view.remote, nc_id_slot(id), nc_id_generation(id));
		if (!error)
			nc_grants_drop(&index->grants, id);
	} else if (!error && view.imported) {
		error = call_to_destroy(index, id);
	} else if (!error) {
		error = destroy_own(index, id, view.unit);
	}
	return error ? refused(index, error) : 0;
}

/* Holds an own unit of the owner's, for a change of it. */
static int hold_own(struct nc_index *index, size_t id, struct nc_view *view)
{
	int error = nc_index_hold(index, id, false, view);

	if (!error && (view->remote || view->imported)) {
		(void)nc_index_release(index, id);
		return refused(index, -EACCES);
	}
	return error;
}

static int call_to_keep(struct nc_index *index, size_t id, uint32_t what, uint64_t value)
{
	struct nc_wire_call call = {.op = NC_WIRE_KEEP, .id = id, .slot = what, .size = value};
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;

	return nc_rpc_client_call(&index->rpc, &call, &load, &reply);
}

int nc_index_set_priority(struct nc_index *index, size_t id, enum NC_priority priority)
{
	struct nc_view view;
	int error;

	if (!index->owner)
		return call_to_keep(index, id, NC_WIRE_PRIORITY, (unsigned)priority);
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
		return call_to_keep(index, id, NC_WIRE_LIFETIME, milliseconds);
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

uint32_t nc_index_member_slots(size_t size)
{
	size_t slots = size / BYTES_A_SLOT;

	if (slots < SLOTS_MIN)
		return SLOTS_MIN;
	return slots < SLOTS_MAX ? (uint32_t)slots : SLOTS_MAX;
}

static struct nc_remote_member *vacant_locked(struct nc_index *index)
{
	struct nc_remote_member *remote;

	if (index->numbers < NC_ID_MEMBERS_MAX) {
		remote = nc_remote_member_create(index->numbers);
		if (remote)
			atomic_store_explicit(&index->remotes[index->numbers++], remote,
					      memory_order_release);
		return remote;
	}
	for (unsigned number = 1; number < index->numbers; number++) {
		remote = atomic_load_explicit(&index->remotes[number], memory_order_relaxed);
		if (nc_remote_member_vacant(remote))
			return remote;
	}
	return NULL;
}

int nc_index_admit(struct nc_index *index, size_t size, struct nc_remote_member **remote,
		   size_t *first)
{
	int error = -EUSERS;

	pthread_mutex_lock(&index->lock);
	*remote = vacant_locked(index);
	if (*remote)
		error = nc_remote_member_admit(*remote, size, nc_index_member_slots(size), first);
	else if (index->numbers < NC_ID_MEMBERS_MAX)
		error = -ENOMEM;
	pthread_mutex_unlock(&index->lock);
	return error;
}

void nc_index_detach(struct nc_index *index, struct nc_remote_member *remote)
{
	pthread_mutex_lock(&index->lock);
	nc_remote_member_detach(remote);
	pthread_mutex_unlock(&index->lock);
}

void nc_index_enrol(struct nc_index *index, int more)
{
	pthread_mutex_lock(&index->lock);
	index->members += (unsigned)more;
	pthread_mutex_unlock(&index->lock);
}
