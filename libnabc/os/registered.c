/* SPDX-License-Identifier: MIT */
/*
 * registered.c - a sparse table of registered buffers; see registered.h.
 *
 * When it pays, measured on Linux 6.18: a send of 60 KB that is not copied takes 3.2 us
 * from small pages, 2.5 us if these are registered, and 2.6 us from a huge page.
 * Registering 2 MiB of small pages takes 600 us, as much as is saved while 50 MB are sent.
 * So a block is registered when it has been sent from AFTER times: a cache whose units are
 * replaced quickly does not pay for what it cannot save.
 *
 * Huge pages are not registered.  There is little to save, and from a registered one the
 * kernel charges the socket for all bytes of the page in front of those that are sent, in
 * each packet (io_uring/net.c: io_sg_from_iter()): a socket with space for 512 KB took 98.
 *
 * Registration demands a writable mapping, and inserted units are protected.  Then the
 * block is mapped once more for the moment of its registration, writable, at an address
 * that no unit uses: the units' own addresses are protected all the time.  The kernel
 * compares the address in a submission with the one at registration only, so that is
 * kept in the slot.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "os/registered.h"

#define BLOCK NC_HUGE_PAGE
#define SLOTS_MAX 16384u /* the kernel's limit */
/* Besides the blocks of 2 MiB: smaller segments, and those of members. */
#define SLOTS_MORE 256u
#define BLOCKS_PER_SLOT 4u
#define IDLE_NS UINT64_C(1000000000)
#define AFTER 24u
#define VICTIMS_MAX 4u
#define KEPT_SHARE 8u

/* Linux 6.14, the first feature after buffers were counted one by one; absent from 2.3's header. */
#ifndef IORING_FEAT_RW_ATTR
#define IORING_FEAT_RW_ATTR (1u << 16)
#endif

struct nc_registered_slot {
	uint64_t address; /* at registration */
	size_t length;
	struct nc_registered_segment *of; /* NULL: free, or uncleared */
	unsigned block;
	unsigned users; /* submissions being made */
	unsigned free;	/* next free slot + 1 */
	bool uncleared; /* still registered, but of no segment */
	uint64_t used;	/* time of the last use, ns */
};

struct block {
	unsigned slot; /* + 1; 0: not registered */
	uint64_t sent; /* bytes sent from it without registration */
};

struct nc_registered_segment {
	struct nc_segment_watch watch; /* first */
	struct nc_registered *table;   /* NULL: the table has ended */
	struct nc_registered_segment *next, **link;
	bool refused; /* the kernel does not register this memory */
	unsigned count;
	struct block blocks[];
};

static uint64_t now_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void nc_registered_init(struct nc_registered *table, struct io_uring *uring, size_t memory,
			struct nc_diagnostics *diagnostics)
{
	size_t slots = memory / BLOCK * BLOCKS_PER_SLOT + SLOTS_MORE;

	*table = (struct nc_registered){
		.uring = uring,
		.diagnostics = diagnostics,
		.memory = memory,
		.slot_count = slots < SLOTS_MAX ? (unsigned)slots : SLOTS_MAX,
		.idle = IDLE_NS,
		.limit = uring && uring->features & IORING_FEAT_RW_ATTR ? UINT64_MAX
									: memory / KEPT_SHARE,
		.after = AFTER,
	};
	pthread_mutex_init(&table->lock, NULL);
}

/* --- slots -------------------------------------------------------------------------- */

/* A base of NULL clears the slot.  Returns 0 or -errno. */
static int update(const struct nc_registered *table, unsigned slot, void *base, size_t length)
{
	const struct iovec range = {.iov_base = base, .iov_len = length};
	const __u64 tag = 0;
	int done = io_uring_register_buffers_update_tag(table->uring, slot, &range, &tag, 1);

	if (done < 0)
		return done;
	return done == 1 ? 0 : -EINVAL;
}

static int open_slots_locked(struct nc_registered *table)
{
	int error;

	if (table->slots)
		return 0;
	table->slots = calloc(table->slot_count, sizeof(*table->slots));
	if (!table->slots)
		return -EAGAIN;
	error = io_uring_register_buffers_sparse(table->uring, table->slot_count);
	if (error < 0) {
		free(table->slots);
		table->slots = NULL;
		return error;
	}
	for (unsigned i = 0; i < table->slot_count; i++)
		table->slots[i].free = i + 1 < table->slot_count ? i + 2 : 0;
	table->free = 1;
	return 0;
}

/* Tries to unpin the slot's memory; if the kernel is short of memory, later once more. */
static void unpin_locked(struct nc_registered *table, struct nc_registered_slot *slot)
{
	unsigned number = (unsigned)(slot - table->slots);

	if (update(table, number, NULL, 0))
		return;
	table->uncleared--;
	table->counts.bytes -= slot->length;
	*slot = (struct nc_registered_slot){.free = table->free};
	table->free = number + 1;
}

/* Begins a new period when all sends of the one before the present one have ended. */
static void turn_locked(struct nc_registered *table)
{
	unsigned before = !table->period;

	if (table->sends[before])
		return;
	table->kept[before] = 0;
	table->period = before;
	if (table->sends[!before] == 0)
		table->kept[!before] = 0;
}

static bool fits_locked(struct nc_registered *table, size_t length)
{
	turn_locked(table);
	return table->counts.bytes + table->kept[0] + table->kept[1] + length <= table->limit;
}

static void clear_locked(struct nc_registered *table, struct nc_registered_slot *slot)
{
	assert(slot->users == 0);
	if (table->sends[0] || table->sends[1])
		table->kept[table->period] += slot->length;
	slot->of->blocks[slot->block] = (struct block){0};
	slot->of = NULL;
	slot->uncleared = true;
	table->uncleared++;
	unpin_locked(table, slot);
}

static void clear_rest_locked(struct nc_registered *table)
{
	for (unsigned i = 0; table->uncleared && i < table->slot_count; i++)
		if (table->slots[i].uncleared)
			unpin_locked(table, &table->slots[i]);
}

/*
 * Clears the slot whose last use is longest ago.  One that was used a moment ago is not
 * cleared: if more blocks are sent from than may be registered, each send would register
 * one.
 */
static bool clear_oldest_locked(struct nc_registered *table, uint64_t now)
{
	struct nc_registered_slot *oldest = NULL;

	for (unsigned i = 0; i < table->slot_count; i++) {
		struct nc_registered_slot *slot = &table->slots[i];

		if (slot->of && !slot->users && now - slot->used >= table->idle &&
		    (!oldest || slot->used < oldest->used))
			oldest = slot;
	}
	if (oldest)
		clear_locked(table, oldest);
	return oldest != NULL;
}

/* --- registering -------------------------------------------------------------------- */

/* Registers the range under the number; sets *address to what the kernel knows it by. */
static int pin(const struct nc_registered *table, unsigned slot, const struct nc_segment *segment,
	       size_t at, size_t length, uint64_t *address)
{
	char *again;
	int error;

	*address = (uintptr_t)(segment->base + at);
	error = update(table, slot, segment->base + at, length);
	if (error != -EFAULT)
		return error;
	/* Some of it is protected. */
	error = nc_segment_map_again(segment, at, length, &again);
	if (error)
		return error == -ENOMEM ? -EAGAIN : error;
	*address = (uintptr_t)again;
	error = update(table, slot, again, length);
	munmap(again, length);
	return error;
}

static void report(const struct nc_registered *table, int error)
{
	const size_t mib = (size_t)1 << 20;
	struct rlimit limit = {0};

	if (error != -ENOMEM) {
		nc_diagnostics_report(
			table->diagnostics, NC_DIAGNOSTIC_REGISTER,
			"memory of the cache is not registered with io_uring (%s): zero-copy sends "
			"work without that, and take more CPU time",
			strerror(-error));
		return;
	}
	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	nc_diagnostics_report(
		table->diagnostics, NC_DIAGNOSTIC_PINS,
		"%llu of %zu KiB of the cache are registered with io_uring, and no more memory may "
		"be locked: zero-copy sends from the rest take more CPU time; raise RLIMIT_MEMLOCK "
		"from %llu KiB to %llu KiB (ulimit -l, LimitMEMLOCK=)",
		(unsigned long long)table->counts.bytes >> 10, table->memory >> 10,
		(unsigned long long)limit.rlim_cur >> 10,
		((unsigned long long)limit.rlim_cur + table->memory + mib - 1) / mib * mib >> 10);
}

static int register_locked(struct nc_registered *table, const struct nc_segment *segment,
			   struct nc_registered_segment *of, unsigned block, uint64_t now)
{
	size_t at = block * BLOCK;
	size_t length = segment->size - at < BLOCK ? segment->size - at : BLOCK;
	struct nc_registered_slot *slot;
	int error = open_slots_locked(table);
	unsigned number;
	uint64_t address = 0;

	if (error)
		return error;
	clear_rest_locked(table);
	if (!fits_locked(table, length) &&
	    (!clear_oldest_locked(table, now) || !fits_locked(table, length)))
		return -EDQUOT;
	if (!table->free && (!clear_oldest_locked(table, now) || !table->free))
		return -EAGAIN;
	for (unsigned victims = 0;; victims++) {
		number = table->free - 1;
		error = pin(table, number, segment, at, length, &address);
		if (error != -ENOMEM || victims == VICTIMS_MAX || !clear_oldest_locked(table, now))
			break;
	}
	if (error)
		return error;
	slot = &table->slots[number];
	table->free = slot->free;
	*slot = (struct nc_registered_slot){
		.address = address, .length = length, .of = of, .block = block};
	of->blocks[block].slot = number + 1;
	table->counts.bytes += length;
	table->counts.blocks++;
	return 0;
}

/* After a failure nothing is tried for a while, or not with that segment. */
static void failed_locked(struct nc_registered *table, struct nc_registered_segment *of, int error,
			  uint64_t now)
{
	if (error == -ENOMEM || error == -EAGAIN || error == -EDQUOT)
		table->retry_at = now + table->idle;
	else if (!table->slots)
		table->uring = NULL;
	else
		of->refused = true;
	if (error == -EDQUOT)
		return;
	table->counts.failed++;
	if (error != -EAGAIN)
		report(table, error);
}

/* --- segments ----------------------------------------------------------------------- */

static void unlink_segment(struct nc_registered_segment *of)
{
	*of->link = of->next;
	if (of->next)
		of->next->link = of->link;
}

static void segment_closed(struct nc_segment_watch *watch)
{
	struct nc_registered_segment *of = (struct nc_registered_segment *)watch;
	struct nc_registered *table = of->table;

	if (table) {
		pthread_mutex_lock(&table->lock);
		for (unsigned i = 0; i < of->count; i++)
			if (of->blocks[i].slot)
				clear_locked(table, &table->slots[of->blocks[i].slot - 1]);
		unlink_segment(of);
		pthread_mutex_unlock(&table->lock);
	}
	free(of);
}

/* Returns NULL if there is no memory. */
static struct nc_registered_segment *segment_locked(struct nc_registered *table,
						    struct nc_segment *segment)
{
	struct nc_registered_segment *of = (struct nc_registered_segment *)segment->watch;
	size_t count = (segment->size + BLOCK - 1) / BLOCK;

	if (of)
		return of;
	of = calloc(1, sizeof(*of) + count * sizeof(of->blocks[0]));
	if (!of)
		return NULL;
	of->watch.closed = segment_closed;
	of->table = table;
	of->count = (unsigned)count;
	of->next = table->segments;
	of->link = &table->segments;
	if (of->next)
		of->next->link = &of->next;
	table->segments = of;
	segment->watch = &of->watch;
	return of;
}

static bool pays(const struct nc_registered *table, const struct nc_segment *segment,
		 struct block *block, size_t size, size_t length)
{
	if (atomic_load_explicit(&segment->collapsed, memory_order_relaxed))
		return false;
	if (block->sent >= (uint64_t)size * table->after)
		return true;
	block->sent += length;
	return false;
}

static bool take_locked(struct nc_registered *table, struct nc_segment *segment, size_t at,
			size_t length, struct nc_registered_use *use)
{
	struct nc_registered_segment *of = segment_locked(table, segment);
	unsigned number = (unsigned)(at / BLOCK);
	size_t start = number * BLOCK;
	struct nc_registered_slot *slot;
	uint64_t now = now_ns();

	if (!of || of->refused)
		return false;
	if (!of->blocks[number].slot) {
		size_t size = segment->size - start < BLOCK ? segment->size - start : BLOCK;
		int error;

		if (now < table->retry_at ||
		    !pays(table, segment, &of->blocks[number], size, length))
			return false;
		if (!table->slots && nc_segment_huge_unasked()) {
			table->uring = NULL;
			return false;
		}
		error = register_locked(table, segment, of, number, now);
		if (error) {
			failed_locked(table, of, error, now);
			return false;
		}
	}
	slot = &table->slots[of->blocks[number].slot - 1];
	slot->users++;
	slot->used = now;
	table->sends[table->period]++;
	*use = (struct nc_registered_use){.table = table,
					  .slot = of->blocks[number].slot - 1,
					  .period = table->period,
					  .address = slot->address + (at - start),
					  .length = slot->length - (at - start)};
	if (use->length > length)
		use->length = length;
	return true;
}

bool nc_registered_take(struct nc_registered *table, struct nc_segment *segment, size_t at,
			size_t length, struct nc_registered_use *use)
{
	bool taken;

	/* Copies of units in the kernel module have no file. */
	if (segment->fd < 0 || at >= segment->size)
		return false;
	pthread_mutex_lock(&table->lock);
	taken = table->uring && take_locked(table, segment, at, length, use);
	pthread_mutex_unlock(&table->lock);
	return taken;
}

void nc_registered_put(const struct nc_registered_use *use)
{
	pthread_mutex_lock(&use->table->lock);
	use->table->slots[use->slot].users--;
	pthread_mutex_unlock(&use->table->lock);
}

void nc_registered_ended(struct nc_registered *table, unsigned period)
{
	pthread_mutex_lock(&table->lock);
	if (--table->sends[period] == 0)
		turn_locked(table);
	pthread_mutex_unlock(&table->lock);
}

/*
 * The slot does not change before the put.  Reading from a file into a unit that is not
 * inserted yet will be the second operation that is accepted here.
 */
int nc_registered_bind(const struct nc_registered_use *use, struct io_uring_sqe *sqe)
{
	const struct nc_registered_slot *slot = &use->table->slots[use->slot];
	uint64_t at = use->address - slot->address;

	if (sqe->opcode != IORING_OP_SEND_ZC || sqe->flags & IOSQE_BUFFER_SELECT)
		return -EINVAL;
	if (use->address < slot->address || at > slot->length || sqe->len > slot->length - at ||
	    sqe->len > use->length)
		return -EINVAL;
	sqe->addr = use->address;
	sqe->ioprio |= IORING_RECVSEND_FIXED_BUF;
	sqe->buf_index = (uint16_t)use->slot;
	return 0;
}

void nc_registered_stat(struct nc_registered *table, struct nc_registered_counts *counts)
{
	pthread_mutex_lock(&table->lock);
	*counts = table->counts;
	pthread_mutex_unlock(&table->lock);
}

void nc_registered_fini(struct nc_registered *table)
{
	struct nc_registered_segment *of = table->segments;

	for (unsigned i = 0; table->slots && i < table->slot_count; i++)
		if (table->slots[i].of)
			clear_locked(table, &table->slots[i]);
	/* What could not be cleared ends with the ring. */
	for (; of; of = of->next)
		of->table = NULL;
	free(table->slots);
	pthread_mutex_destroy(&table->lock);
	*table = (struct nc_registered){0};
}
