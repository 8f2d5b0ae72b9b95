/* SPDX-License-Identifier: MIT */
/*
 * index.h - finds the member and the unit of an id: looking up, holding,
 * destroying; members.
 *
 * A process owns its cache (member 0, which sees every member's units) or has
 * attached to another process's (and sees its own units, and imported ones).
 * Internal calls return -errno.
 */
#ifndef NC_INDEX_H
#define NC_INDEX_H

#include <nabc.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diagnostics.h"
#include "base/id.h"
#include "cache/evictions.h"
#include "cache/grant.h"
#include "cache/import.h"
#include "cache/names.h"
#include "cache/prefetch.h"
#include "os/device.h"
#include "os/pin.h"
#include "store/pool.h"
#include "wire/rpc-client.h"

struct nc_insertion;
struct nc_layout;
struct nc_remote_member;
struct nc_segment;
struct nc_unit;

#define NC_COUNTER_SHARDS 16u

/* About one per CPU: threads that send do not share a counter's cache line. */
struct nc_counters {
	alignas(64) _Atomic uint64_t sends[4];
	_Atomic uint64_t bytes[4];
	_Atomic uint64_t stale, denied, zerocopy_copied, hits;
	_Atomic uint64_t kernel_memory, kernel_copies, kernel_copied_bytes;
};

/* The callback that purges by name, see NC_cache_on_purge(). */
struct nc_purge {
	pthread_mutex_t lock; /* held while the callback runs */
	NC_purger purger;     /* NULL: none */
	void *context;
};

struct nc_index {
	uint64_t
		serial; /* random: the address can be that of an earlier cache, or of another process's */
	struct nc_id_epoch epoch; /* owner only; of its ids */
	bool owner;
	unsigned flags;			/* NC_CACHE_* */
	enum NC_checksum_kind checksum; /* kind of checksum for what this process inserts */
	size_t max_unit;
	size_t member_size;
	size_t scrub_rate; /* bytes per second */
	size_t member_quota;
	uint64_t orphan_lifetime; /* milliseconds */
	struct nc_diagnostics diagnostics;
	struct nc_pin pin;   /* used if own.pin is set: NC_CACHE_PIN */
	bool operates;	     /* attached as an operator, to manage the whole cache */
	size_t unsent_limit; /* from the options, for transmit-plan.c */
	struct nc_device device;
	bool device_offered; /* attached: the owner accepts units in the module */
	/* attached, with a device: the process that these are granted to; otherwise -1 */
	int owner_pidfd;
	_Atomic bool other_routes; /* all routes are fixed to a method other than the module's */
	struct nc_member own;
	struct nc_grants grants;  /* owner only */
	struct nc_rpc_client rpc; /* attached only */
	struct nc_imports imports;
	struct nc_prefetch prefetch; /* attached only */
	struct nc_purge purge;
	struct nc_names names;			     /* owner only */
	struct nc_evictions evictions;		     /* used by the owner only */
	_Atomic(struct nc_remote_member *) *remotes; /* by nc_id_number(); owner only */
	pthread_mutex_t lock;			     /* protects admitting and detaching */
	unsigned numbers;			     /* the highest number in use, + 1 */
	unsigned members;
	struct nc_counters counters[NC_COUNTER_SHARDS];
};

/* The id of a process's own unit, and the slot of such an id. */
static inline size_t nc_index_id(const struct nc_index *index, unsigned slot, unsigned generation)
{
	return nc_id(index->own.number, slot ^ index->epoch.slots, generation);
}

static inline unsigned nc_index_slot(const struct nc_index *index, size_t id)
{
	return nc_id_slot(id) ^ index->epoch.slots;
}

/* A unit in use: valid from hold to release. */
struct nc_view {
	size_t id;
	struct nc_unit *unit;
	struct nc_remote_member *remote; /* NULL: this process's own, or imported */
	bool imported;
	bool borrowed; /* uses a hold of the caller's, and does not count as another */
};

int nc_index_init_owner(struct nc_index *index, const struct NC_cache_options *options);

/* Takes ownership of the segment; see nc_member_init_attached(). */
int nc_index_init_attached(struct nc_index *index, unsigned number,
			   const struct nc_segment *segment, size_t first, uint32_t slots,
			   uint32_t generation, size_t max_unit);

/* Attached without a segment: the member has sealed units only. */
int nc_index_init_guest(struct nc_index *index, size_t max_unit);

/* Attached: sets the socket for calls to the owner. */
void nc_index_connect(struct nc_index *index, int socket);

/*
 * From now on units may be in the kernel module; as nc_device_open().  Attached:
 * call it after nc_index_connect(), since units are granted to the owner; also
 * returns -ESRCH.
 */
int nc_index_use_device(struct nc_index *index, const struct nc_device_system *system);

void nc_index_fini(struct nc_index *index);

/* Returns the number of units that handles are filling. */
uint32_t nc_index_filling(struct nc_index *index);

/*
 * Allocates a unit; for AUTO selects a kind, and falls back from KERNEL to another
 * kind.  Returns 0, -EFBIG (over max_unit), -ENOTSUP (this process has no such
 * memory), or errors of nc_member_alloc().
 */
int nc_index_alloc(struct nc_index *index, const struct nc_layout *layout, enum NC_kind kind,
		   struct nc_unit **unit);
void nc_index_abandon(struct nc_index *index, struct nc_unit *unit);

/*
 * To be called before a pointer to bytes of the unit, or its memory as the place of a
 * read, is given away: small units of the module are filled in buffers that are used
 * again.  filled: bytes to preserve.  Returns 0 or -errno; does nothing for others.
 */
int nc_index_leave_buffer(struct nc_index *index, struct nc_unit *unit, size_t filled);

/*
 * Gives a unit, allocated with that kind, the memory for a longer layout where it is.
 * Returns 0, -EFBIG, or errors of nc_member_grow().
 */
int nc_index_grow(struct nc_index *index, struct nc_unit *unit, const struct nc_layout *layout,
		  enum NC_kind kind);

/* Before the insert of a unit that became shorter: see nc_member_trim(). */
void nc_index_trim(struct nc_index *index, struct nc_unit *unit, size_t extent);

/*
 * Whether this process may insert the unit with these properties: 0, -EINVAL (no such priority, or
 * more than a year), -EACCES (the unit is in a member's segment), or -EPERM (a member
 * may not set the priority).
 */
int nc_index_may_insert(const struct nc_index *index, const struct nc_unit *unit,
			const struct nc_insertion *with);

/*
 * Publishes the unit.  with: what it has from then on, which nc_index_may_insert() permits; NULL:
 * nothing.  Returns 0; on failure, -errno, the unit is still being filled.
 */
int nc_index_insert(struct nc_index *index, struct nc_unit *unit, const struct nc_insertion *with,
		    size_t *id);

/*
 * Holds a unit.  unlinked: a unit that was destroyed but is held may be held again.
 * Returns 0, -ENOENT (unknown, stale, destroyed), or -EACCES (another member's).
 */
int nc_index_hold(struct nc_index *index, size_t id, bool unlinked, struct nc_view *view);

/* Owner: whether a unit exists.  Asking is no use: the eviction order does not change. */
bool nc_index_has(struct nc_index *index, size_t id);

/*
 * Holds the unit of a name.  Returns 0, -ENOENT (the name is free, or this process may not
 * use its unit), or errors of asking the owner.
 */
int nc_index_hold_name(struct nc_index *index, const char *name, struct nc_view *view);

/*
 * Holds a unit that is not unlinked, without waiting for the owner: returns -EAGAIN instead,
 * or other errors of nc_prefetch_hold().
 */
int nc_index_hold_nowait(struct nc_index *index, size_t id, struct nc_view *view);

/*
 * The unit of an existing hold, which lasts beyond nc_index_return(): the unit
 * is not held once more if it can be avoided, so that threads that send the
 * same one do not write to the same cache line.  -EINVAL: nobody holds it.
 */
int nc_index_borrow(struct nc_index *index, size_t id, struct nc_unit *unit, struct nc_view *view);
void nc_index_return(struct nc_index *index, const struct nc_view *view);

/*
 * Makes a borrowed unit one that is held until nc_index_return(), while the hold that it was
 * borrowed from still exists.  Returns 0, or -ENOENT (too many holds).
 */
int nc_index_keep(struct nc_view *view);

/* Returns 0, -EINVAL (not held), or errors of nc_index_hold(). */
int nc_index_release(struct nc_index *index, size_t id);

/* Makes the bytes of a held unit available at nc_unit_base(): see nc_member_fetch(). */
int nc_index_fetch(struct nc_index *index, const struct nc_view *view);

/*
 * Computes the checksum of a range inside a held unit, in the byte order of
 * unit-checksum.h.  Returns 0, or errors of nc_index_fetch().
 */
int nc_index_checksum(struct nc_index *index, const struct nc_view *view,
		      enum NC_checksum_kind kind, size_t offset, size_t length, uint32_t *sum);

/*
 * Destroys a unit.  why: as for nc_member_end(), if the unit is this process's own.  Returns 0,
 * -ENOENT or -EACCES.
 */
int nc_index_end(struct nc_index *index, size_t id, enum NC_eviction why);
int nc_index_destroy(struct nc_index *index, size_t id);

/* See NC_cache_on_evict(); owner only. */
int nc_index_on_evict(struct nc_index *index, NC_evicted evicted, void *context);

/* Calls the function that was set so, for some units; the thread that dispatches does. */
void nc_index_report_evictions(struct nc_index *index);

/* Owner, for own units: see nc_member_evict(). */
bool nc_index_evict(struct nc_index *index, size_t id, bool also_in_grace);

/* Attached: the owner ends the grants of an own unit, or destroys another one. */
int nc_index_call_to_destroy(struct nc_index *index, size_t id);

/* Changes the number of members by `more`; owner only. */
void nc_index_enrol(struct nc_index *index, int more);

/*
 * For own units only: units of other members are refused (-EACCES), and in an
 * attached process the owner must permit the call (-EPERM).
 */
int nc_index_set_priority(struct nc_index *index, size_t id, enum NC_priority priority);
int nc_index_set_lifetime(struct nc_index *index, size_t id, uint64_t milliseconds);

/*
 * The maker of the sealed unit is gone: sets the lifetime of orphans, unless the
 * unit already has one.
 */
void nc_index_orphan(struct nc_index *index, size_t id);

/* Admits a new member with a segment; owner only.  Returns 0, or -EUSERS (no number is free). */
int nc_index_admit(struct nc_index *index, size_t size, struct nc_remote_member **remote,
		   size_t *first);
void nc_index_detach(struct nc_index *index, struct nc_remote_member *remote);

/* Returns the number of slots in the table of a segment of that size. */
uint32_t nc_index_member_slots(size_t size);

void nc_index_count(struct nc_index *index, enum NC_method method, size_t bytes);
struct nc_counters *nc_index_counters(struct nc_index *index);

#endif
