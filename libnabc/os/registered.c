/* SPDX-License-Identifier: MIT */
/*
 * registered.c - which blocks of segments are registered, and when; see registered.h.
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
#include <errno.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "base/diagnostics.h"
#include "os/registered-internal.h"
#include "os/registered.h"
#include "os/segment.h"

#define BLOCK NC_HUGE_PAGE
#define SLOTS_MAX 16384u /* the kernel's limit */
/* Besides the blocks of 2 MiB: smaller segments, and those of members. */
#define SLOTS_MORE 256u
#define BLOCKS_PER_SLOT 4u
#define IDLE_NS UINT64_C(1000000000)
#define AFTER 24u
#define VICTIMS_MAX 4u

static uint64_t now_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct nc_registered *nc_registered_open(struct io_uring *uring,
					 struct nc_registered_budget *budget, size_t memory,
					 struct nc_diagnostics *diagnostics)
{
	size_t slots = memory / BLOCK * BLOCKS_PER_SLOT + SLOTS_MORE;
	struct nc_registered *table = malloc(sizeof(*table));

	if (!table)
		return NULL;
	*table = (struct nc_registered){
		.uring = uring,
		.budget = budget,
		.diagnostics = diagnostics,
		.memory = memory,
		.slot_count = slots < SLOTS_MAX ? (unsigned)slots : SLOTS_MAX,
		.references = 1,
		.idle = IDLE_NS,
		.after = AFTER,
	};
	pthread_mutex_init(&table->lock, NULL);
	return table;
}

void nc_registered_own(struct nc_registered *table, void (*stale)(void *data), void *data)
{
	table->owned = true;
	table->owner = pthread_self();
	table->stale = stale;
	table->data = data;
}

/* --- registering -------------------------------------------------------------------- */

/* Registers the range under the number; sets *address to what the kernel knows it by. */
static int pin(const struct nc_registered *table, unsigned slot, const struct nc_segment *segment,
	       size_t at, size_t length, uint64_t *address)
{
	char *again;
	int error;

	*address = (uintptr_t)(segment->base + at);
	error = nc_registered_update(table, slot, segment->base + at, length);
	if (error != -EFAULT)
		return error;
	/* Some of it is protected. */
	error = nc_segment_map_again(segment, at, length, &again);
	if (error)
		return error == -ENOMEM ? -EAGAIN : error;
	*address = (uintptr_t)again;
	error = nc_registered_update(table, slot, again, length);
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
	int error = nc_registered_open_slots(table);
	unsigned number;
	uint64_t address = 0;

	if (error)
		return error;
	nc_registered_clear_rest(table);
	if (!nc_registered_fits(table, length) &&
	    (!nc_registered_clear_oldest(table, now) || !nc_registered_fits(table, length)))
		return -EDQUOT;
	if (!table->free && (!nc_registered_clear_oldest(table, now) || !table->free))
		return -EAGAIN;
	for (unsigned victims = 0;; victims++) {
		number = table->free - 1;
		error = pin(table, number, segment, at, length, &address);
		if (error != -ENOMEM || victims == VICTIMS_MAX ||
		    !nc_registered_clear_oldest(table, now))
			break;
	}
	if (error)
		return error;
	nc_registered_enter(
		table, &(struct nc_registered_slot){
			       .address = address, .length = length, .of = of, .block = block});
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

/* The kernel unpins at once, or when the owner of the ring says so. */
static void clear_blocks(struct nc_registered *table, const struct nc_registered_segment *of)
{
	bool any = false;

	for (unsigned i = 0; i < of->count; i++) {
		if (!of->blocks[i].slot)
			continue;
		nc_registered_clear_slot(table, &table->slots[of->blocks[i].slot - 1]);
		any = true;
	}
	if (any && !nc_registered_is_owner(table) && table->stale)
		table->stale(table->data);
}

static void registered_segment_closed(struct nc_segment_watch *watch)
{
	struct nc_registered_segment *of = (struct nc_registered_segment *)watch;
	struct nc_registered *table = of->table;

	pthread_mutex_lock(&table->lock);
	if (!table->closed)
		clear_blocks(table, of);
	nc_registered_unreference(table);
	free(of);
}

static struct nc_registered_segment *find(const struct nc_registered *table,
					  const struct nc_segment *segment)
{
	struct nc_segment_watch *watch =
		atomic_load_explicit(&segment->watches, memory_order_acquire);

	/* One for each ring. */
	for (; watch; watch = watch->next)
		if (watch->closed == registered_segment_closed &&
		    ((struct nc_registered_segment *)watch)->table == table)
			break;
	return (struct nc_registered_segment *)watch;
}

/* Returns NULL if there is no memory. */
static struct nc_registered_segment *segment_locked(struct nc_registered *table,
						    struct nc_segment *segment)
{
	struct nc_registered_segment *of = find(table, segment);
	size_t count = (segment->size + BLOCK - 1) / BLOCK;

	if (of)
		return of;
	of = calloc(1, sizeof(*of) + count * sizeof(of->blocks[0]));
	if (!of)
		return NULL;
	of->watch.closed = registered_segment_closed;
	of->table = table;
	of->count = (unsigned)count;
	table->references++;
	nc_segment_watch(segment, &of->watch);
	return of;
}

static bool pays(const struct nc_registered *table, const struct nc_segment *segment,
		 struct nc_registered_block *block, size_t size, size_t length)
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
	table->users++;
	table->references++;
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
	if (!table || segment->fd < 0 || at >= segment->size)
		return false;
	pthread_mutex_lock(&table->lock);
	taken = table->uring && nc_registered_is_owner(table) &&
		take_locked(table, segment, at, length, use);
	pthread_mutex_unlock(&table->lock);
	return taken;
}

void nc_registered_put(const struct nc_registered_use *use)
{
	pthread_mutex_lock(&use->table->lock);
	use->table->slots[use->slot].users--;
	use->table->users--;
	pthread_mutex_unlock(&use->table->lock);
}

bool nc_registered_busy(struct nc_registered *table)
{
	bool busy;

	pthread_mutex_lock(&table->lock);
	busy = table->users != 0;
	pthread_mutex_unlock(&table->lock);
	return busy;
}

/*
 * The slot does not change before the put.  Reads into registered memory are refused: they would
 * save nothing where units are filled (bench reads).
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
