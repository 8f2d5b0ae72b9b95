/* SPDX-License-Identifier: MIT */
/* index.c - initialises and frees a cache's index, admits and detaches members; see index.h. */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/evictions.h"
#include "cache/index.h"
#include "cache/remote-member.h"
#include "os/identity.h"
#include "os/pin.h"
#include "os/random.h"
#include "policy/expiry.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/unit.h"
#include "wire/rpc-client.h"

#define SIZE_DEFAULT ((size_t)256 << 20)
#define SIZE_MIN ((size_t)1 << 20)
#define SIZE_LIMIT ((size_t)1 << 46) /* half of the address space of a process */
#define MEMBER_DEFAULT ((size_t)16 << 20)
#define MEMBER_MIN ((size_t)64 << 10)
#define MEMBER_MAX ((size_t)64 << 30)
#define QUOTA_SEGMENTS 4u
#define SHARE_OF_MEMBER 4u
#define ORPHAN_LIFETIME_MS 60000u
#define BYTES_A_SLOT ((size_t)16 << 10)
#define SLOTS_MIN 64u
#define SLOTS_MAX 16384u

/* Called under the member's lock: ends the grants of a unit that no longer exists. */
static void index_unit_gone(void *context, const struct nc_unit *unit, unsigned generation)
{
	struct nc_index *index = context;

	nc_grants_drop(&index->grants, nc_index_id(index, unit->slot, generation));
}

static bool index_stands(void *context, size_t id)
{
	return nc_index_has(context, id);
}

int nc_index_init_owner(struct nc_index *index, const struct NC_cache_options *options)
{
	static const struct NC_cache_options defaults;
	size_t size, share;
	int error;

	if (!options)
		options = &defaults;
	size = options->memory ? options->memory : SIZE_DEFAULT;
	*index = (struct nc_index){
		.owner = true, .flags = options->flags, .numbers = 1, .owner_pidfd = -1};
	nc_diagnostics_init(&index->diagnostics, options->log, options->log_context);
	nc_device_init(&index->device, "disabled by the program");
	index->max_unit = options->max_unit ? options->max_unit : size / 4;
	index->member_size = options->member_size ? options->member_size : MEMBER_DEFAULT;
	index->unsent_limit = options->unsent_limit;
	index->checksum = options->checksum ? options->checksum : NC_CHECKSUM_INET;
	if (index->checksum < NC_CHECKSUM_DEFAULT || index->checksum > NC_CHECKSUM_CRC32C)
		return -EINVAL;
	share = options->member_share ? options->member_share : size / SHARE_OF_MEMBER;
	if (share > size)
		return -EINVAL;
	if (size < SIZE_MIN || size > SIZE_LIMIT || index->max_unit > size / 4 ||
	    index->member_size < MEMBER_MIN || index->member_size > MEMBER_MAX ||
	    (options->flags & ~(NC_CACHE_NO_URING | NC_CACHE_NO_HUGE | NC_CACHE_NO_THREAD |
				NC_CACHE_PROTECT | NC_CACHE_NO_KERNEL | NC_CACHE_MEMBERS_THREAD |
				NC_CACHE_PIN | NC_CACHE_EAGER_SUMS | NC_CACHE_NO_REGISTER)))
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
	index->epoch = nc_id_epoch(nc_random());
	index->own.units.generation = index->epoch.generation;
	pthread_mutex_init(&index->lock, NULL);
	pthread_mutex_init(&index->purge.lock, NULL);
	nc_evictions_init(&index->evictions);
	nc_names_init(&index->names, index_stands, index);
	/*
	 * Copies for other processes have a limit too, but one copy of the largest
	 * unit always fits.
	 */
	nc_grants_init(&index->grants, index->member_quota > index->max_unit ? index->member_quota
									     : index->max_unit);
	index->grants.copies_max = index->own.max_descriptors;
	index->grants.share = share;
	if (options->flags & NC_CACHE_PIN) {
		nc_pin_init(&index->pin, nc_pin_methods, &index->diagnostics, size,
			    index->member_quota);
		index->own.pin = &index->pin;
	}
	index->own.gone = index_unit_gone;
	index->own.gone_context = index;
	return 0;
}

static void init_ends(struct nc_index *index)
{
	nc_device_init(&index->device, "the owner of the cache does not use it");
	index->owner_pidfd = -1;
	pthread_mutex_init(&index->lock, NULL);
	pthread_mutex_init(&index->purge.lock, NULL);
	nc_evictions_init(&index->evictions);
	nc_rpc_client_init(&index->rpc);
	nc_imports_init(&index->imports, &index->rpc);
	nc_prefetch_init(&index->prefetch, &index->imports);
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
	/* No id contains this number: only sealed units belong to this process. */
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
	/* Members' units are freed first: nothing is notified of the own ones. */
	if (index->owner) {
		nc_names_fini(&index->names);
		nc_grants_fini(&index->grants);
	} else {
		nc_prefetch_fini(&index->prefetch);
		nc_imports_fini(&index->imports);
		nc_rpc_client_fini(&index->rpc);
	}
	nc_member_fini(&index->own);
	nc_device_close(&index->device);
	if (index->owner_pidfd >= 0)
		close(index->owner_pidfd);
	nc_evictions_fini(&index->evictions);
	pthread_mutex_destroy(&index->purge.lock);
	pthread_mutex_destroy(&index->lock);
}

/* Called under the member's lock. */
static void index_unit_evicted(void *context, const struct nc_unit *unit, unsigned generation,
			       enum NC_eviction why)
{
	struct nc_index *index = context;

	nc_evictions_add(&index->evictions, nc_index_id(index, unit->slot, generation),
			 unit->layout.size, why);
}

int nc_index_on_evict(struct nc_index *index, NC_evicted evicted, void *context)
{
	struct nc_member *own = &index->own;
	int error = nc_evictions_set(&index->evictions, evicted, context);

	if (error)
		return error;
	nc_pool_lock(own);
	own->evicted_context = index;
	/* Without a queue, what is added is dropped: so it does not matter which thread is last. */
	own->evicted = index_unit_evicted;
	nc_pool_unlock(own);
	return 0;
}

void nc_index_report_evictions(struct nc_index *index)
{
	if (nc_evictions_report(&index->evictions))
		nc_pool_wake(&index->own);
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

/* --- members: admits them and sees them off ---------------------------------------- */

uint32_t nc_index_member_slots(size_t size)
{
	size_t slots = size / BYTES_A_SLOT;

	if (slots < SLOTS_MIN)
		return SLOTS_MIN;
	return slots < SLOTS_MAX ? (uint32_t)slots : SLOTS_MAX;
}

/* Numbers are assigned round robin, so that each is reused as late as possible. */
static struct nc_remote_member *vacant_locked(struct nc_index *index)
{
	struct nc_remote_member *remote;

	if (index->numbers < NC_ID_MEMBERS_MAX) {
		remote = nc_remote_member_create(nc_id_number(&index->epoch, index->numbers),
						 index->epoch.generation);
		if (remote) {
			remote->pin = index->own.pin;
			/* Pairs with the acquires in find() of index-lookup.c and in inspect.c. */
			atomic_store_explicit(&index->remotes[index->numbers++], remote,
					      memory_order_release);
		}
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
