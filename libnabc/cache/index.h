/* SPDX-License-Identifier: MIT */
/*
 * index.h - id to member to unit: naming, holding, destroying; members.
 *
 * A process is the owner of its cache (member 0, sees every member's units)
 * or has attached to another's (sees its own, and what it has imported).  Internal calls
 * return -errno.
 */
#ifndef NC_INDEX_H
#define NC_INDEX_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/diagnostics.h"
#include "cache/remote-member.h"
#include "cache/grant.h"
#include "cache/import.h"
#include "cache/prefetch.h"
#include "os/device.h"
#include "store/member.h"

#define NC_COUNTER_SHARDS 16u

/* One a CPU or so: the send path shares no counter's line. */
struct nc_counters {
	alignas(64) _Atomic uint64_t sends[4];
	_Atomic uint64_t bytes[4];
	_Atomic uint64_t stale, denied, zerocopy_copied, hits;
	_Atomic uint64_t kernel_memory, kernel_copies, kernel_copied_bytes;
};

/* What the owner forgets by name, see NC_cache_on_purge(). */
struct nc_purge {
	pthread_mutex_t lock; /* held while it is called */
	NC_purger purger;     /* NULL: none */
	void *context;
};

struct nc_index {
	uint64_t serial; /* of the process's caches: the address can be that of an earlier one */
	bool owner;
	unsigned flags;			/* NC_CACHE_* */
	enum NC_checksum_kind checksum; /* kept of what this process inserts */
	size_t max_unit;
	size_t member_size;
	size_t scrub_rate; /* bytes a second */
	size_t member_quota;
	uint64_t orphan_lifetime; /* milliseconds */
	struct nc_diagnostics diagnostics;
	bool operates;	     /* attached to look after the whole cache */
	size_t unsent_limit; /* of the options, for transmit-plan.c */
	struct nc_device device;
	bool device_offered;	   /* attached: the owner takes units that are there */
	int owner_pidfd;	   /* attached, with a device: whom these are granted; else -1 */
	_Atomic bool other_routes; /* all routes are fixed, to a method that is not the module's */
	struct nc_member own;
	struct nc_grants grants;  /* owner only */
	struct nc_rpc_client rpc; /* attached only */
	struct nc_imports imports;
	struct nc_prefetch prefetch; /* attached only */
	struct nc_purge purge;
	_Atomic(struct nc_remote_member *) *remotes; /* by number; owner only */
	pthread_mutex_t lock;			     /* admission and departure */
	unsigned numbers;			     /* the highest number given, + 1 */
	unsigned members;
	struct nc_counters counters[NC_COUNTER_SHARDS];
};

/* A unit in use: good from hold to release. */
struct nc_view {
	size_t id;
	struct nc_unit *unit;
	struct nc_remote_member *remote; /* NULL: this process's own, or imported */
	bool imported;
	bool borrowed; /* the caller's hold keeps the unit: not counted again */
};

int nc_index_init_owner(struct nc_index *index, const struct NC_cache_options *options);

/* Takes the segment over; see nc_member_init_attached(). */
int nc_index_init_attached(struct nc_index *index, unsigned number,
			   const struct nc_segment *segment, size_t first, uint32_t slots,
			   uint32_t generation, size_t max_unit);

/* The same without a segment: sealed units alone. */
int nc_index_init_guest(struct nc_index *index, size_t max_unit);

/* Attached: the socket to the owner, which is asked from now on. */
void nc_index_connect(struct nc_index *index, int socket);

/*
 * From now on units may lie in the kernel module; as nc_device_open().  Attached:
 * after nc_index_connect(), for the owner is granted them; -ESRCH.
 */
int nc_index_use_device(struct nc_index *index, const struct nc_device_system *system);

void nc_index_fini(struct nc_index *index);

/* Units that handles are filling. */
uint32_t nc_index_filling(struct nc_index *index);

/*
 * A unit to be filled; kind AUTO is chosen, and KERNEL is another where there
 * is none.  0; -EFBIG: over max_unit;
 * -ENOTSUP: this process has no such memory; errors of the members' alloc.
 */
int nc_index_alloc(struct nc_index *index, const struct nc_layout *layout, enum NC_kind kind,
		   struct nc_unit **unit);
void nc_index_abandon(struct nc_index *index, struct nc_unit *unit);
int nc_index_insert(struct nc_index *index, struct nc_unit *unit, size_t *id);

/*
 * unlinked: units destroyed meanwhile but still held may be held again.
 * 0; -ENOENT: unknown, stale, destroyed; -EACCES: another member's.
 */
int nc_index_hold(struct nc_index *index, size_t id, bool unlinked, struct nc_view *view);

/*
 * The same of a unit that is not unlinked, without waiting for the owner: -EAGAIN, and
 * errors of nc_prefetch_hold().
 */
int nc_index_hold_nowait(struct nc_index *index, size_t id, struct nc_view *view);

/*
 * The unit of an existing hold, which lasts beyond nc_index_return(): the unit
 * is not held once more if it can be avoided, so that threads that send the
 * same one do not write to the same cache line.  -EINVAL: nobody holds it.
 */
int nc_index_borrow(struct nc_index *index, size_t id, struct nc_unit *unit, struct nc_view *view);
void nc_index_return(struct nc_index *index, const struct nc_view *view);

/* 0; -EINVAL: not held; errors of hold. */
int nc_index_release(struct nc_index *index, size_t id);

/* The bytes of a unit that is held, at nc_unit_base(): see nc_member_fetch(). */
int nc_index_fetch(struct nc_index *index, const struct nc_view *view);

/* 0; -ENOENT; -EACCES. */
int nc_index_destroy(struct nc_index *index, size_t id);

/* One member more or less; owner only. */
void nc_index_enrol(struct nc_index *index, int more);

/*
 * Of own units only: another member's are its own business (-EACCES), and in an
 * attached process all are the owner's (-EPERM).
 */
int nc_index_set_priority(struct nc_index *index, size_t id, enum NC_priority priority);
int nc_index_set_lifetime(struct nc_index *index, size_t id, uint64_t milliseconds);

/* Who made the unit sealed is gone: it has the time of orphans, or the one that it was given. */
void nc_index_orphan(struct nc_index *index, size_t id);

/* A new member with a segment; owner only.  0; -EUSERS: no number is free. */
int nc_index_admit(struct nc_index *index, size_t size, struct nc_remote_member **remote,
		   size_t *first);
void nc_index_detach(struct nc_index *index, struct nc_remote_member *remote);

/* Slots in the table of a segment of that size. */
uint32_t nc_index_member_slots(size_t size);

void nc_index_count(struct nc_index *index, enum NC_method method, size_t bytes);
struct nc_counters *nc_index_counters(struct nc_index *index);

#endif
