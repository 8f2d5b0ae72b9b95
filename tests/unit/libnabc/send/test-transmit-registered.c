/* SPDX-License-Identifier: MIT */
/*
 * test-transmit-registered.c - unit tests of zerocopy.c: zero-copy sends from registered
 * memory, whatever happens to the unit, its segment and its member meanwhile.  Each test
 * owns its cache.  The routes are fixed to zero-copy, since the kernel copies on a
 * loopback.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/id.h"
#include "cache/index.h"
#include "cache/remote-member.h"
#include "os/registered.h"
#include "os/ring.h"
#include "os/segment.h"
#include "send/transmit.h"
#include "send/zerocopy.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#include "pinned.h"
#include "process-memory.h"
#include "suite.h"
#include "transmit-fixture.h"
#include "transmit-learn-fixture.h"

static size_t at_start;

/* Returns false if io_uring is unavailable. */
static bool open_registering(size_t size, unsigned flags)
{
	if (getenv("NABC_TEST_NO_URING") || !may_pin())
		return false;
	at_start = pinned();
	open_cache(size, flags);
	if (nc_transmit_route_set(&transmit, "*", NC_METHOD_ZEROCOPY) == 0) {
		if (transmit.zerocopy.registered)
			transmit.zerocopy.registered->after = 0;
		/* The same on all kernels. */
		transmit.zerocopy.budget.limit = UINT64_MAX;
		return true;
	}
	printf("transmit-registered: io_uring %s\n", transmit.zerocopy.ring.why);
	fflush(stdout);
	close_cache();
	return false;
}

/* Closes the cache: nothing is pinned any more. */
static void close_registering(void)
{
	close_cache();
	await_pinned(at_start);
}

static struct nc_unit *unit_of(size_t id)
{
	return nc_units_at(&cache.own.units, nc_id_slot(id));
}

static void check_kind(enum NC_kind kind, size_t size, unsigned flags, uint64_t blocks)
{
	struct NC_cache_stat stat;
	size_t id;
	int pair[2];

	if (!open_registering(64 * MIB, flags))
		return;
	id = insert(7, size, 0, kind);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 16 << 20, 16 << 20);
	for (unsigned i = 0; i < 3; i++) {
		deliver(pair, id, 7, size, 0);
		settle();
	}
	stat = all_statistics();
	ck_assert_uint_eq(stat.registrations, blocks);
	ck_assert_uint_eq(stat.registered_sends, blocks ? stat.by_zerocopy.sends : 0);
	ck_assert_uint_ge(stat.by_zerocopy.sends, 3 * blocks);
	ck_assert_uint_le(stat.registered_bytes, stat.used);
	ck_assert_uint_eq(pinned(), at_start + stat.registered_bytes);
	/* Still protected: the kernel writes nothing through the unit's address. */
	if (kind == NC_KIND_APPENDED)
		ck_assert(!kernel_writes(nc_unit_base(unit_of(id))));
	/* The segment of a large unit is closed with it. */
	ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	if (size > 4 * MIB) {
		ck_assert_uint_eq(all_statistics().registered_bytes, 0);
		await_pinned(at_start);
	}
	close_pair(pair);
	close_registering();
}

/* Units of several blocks are sent in pieces, each from one registered block. */
START_TEST(test_kinds)
{
	check_kind(NC_KIND_APPENDED, 200 * KIB, NC_CACHE_NO_HUGE, 1);
	check_kind(NC_KIND_APPENDED, 5 * MIB + 100, NC_CACHE_NO_HUGE, 3);
	check_kind(NC_KIND_RECYCLED, 200 * KIB, 0, 1);
	check_kind(NC_KIND_RECYCLED, 5 * MIB, NC_CACHE_PROTECT | NC_CACHE_NO_HUGE, 3);
	/* Not writable by anyone. */
	check_kind(NC_KIND_SEALED, 200 * KIB, 0, 0);
	check_kind(NC_KIND_APPENDED, 200 * KIB, NC_CACHE_NO_HUGE | NC_CACHE_NO_REGISTER, 0);
}
END_TEST

/* Pins never exceed the memory of the segments, while these are evicted again and again. */
START_TEST(test_evicted)
{
	struct NC_cache_stat stat;
	int pair[2];

	if (!open_registering(8 * MIB, NC_CACHE_NO_HUGE))
		return;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	for (unsigned i = 0; i < scaled(200); i++) {
		size_t id = insert(i, 500 * KIB, 0, i % 3 ? NC_KIND_APPENDED : NC_KIND_RECYCLED);

		deliver(pair, id, i, 500 * KIB, 0);
		stat = all_statistics();
		ck_assert_uint_le(stat.registered_bytes, stat.used);
		settle();
	}
	ck_assert_uint_gt(stat.segments_closed, 0);
	ck_assert_uint_gt(stat.registered_sends, 0);
	ck_assert_uint_gt(stat.registrations, stat.registered_bytes / MIB);
	ck_assert_uint_eq(stat.registrations_failed, 0);
	await_pinned(at_start + all_statistics().registered_bytes);
	close_pair(pair);
	close_registering();
}
END_TEST

/*
 * In flight: the unit is destroyed, all others are evicted and all memory is written
 * again before the peer reads; or the cache is closed.
 */
static void check_in_flight(enum NC_kind kind, bool close_all)
{
	struct NC_range range = {.length = 256 * KIB};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	ssize_t result;
	int pair[2];
	char *got;

	if (!open_registering(8 * MIB, NC_CACHE_NO_HUGE))
		return;
	transmit.zerocopy.registered->idle = 0;
	transmit.zerocopy.registered->slot_count = 2;
	range.id = insert(1, range.length, 0, kind);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", 1 << 20, 4096);
	set_nonblocking(pair[0]);
	result = nc_transmit_send(&transmit, pair[0], &message);
	ck_assert_int_gt(result, 64 << 10);
	ck_assert_uint_ge(all_statistics().registered_sends, 1);
	ck_assert_uint_eq(nc_transmit_reap(&transmit), 0);
	ck_assert_int_eq(nc_index_destroy(&cache, range.id), 0);
	if (close_all) {
		close_cache();
		open_cache(8 * MIB, NC_CACHE_NO_HUGE);
	}
	for (unsigned i = 0; i < 60; i++) {
		size_t other = insert(50 + i, 256 * KIB, 0, kind);

		if (i % 2)
			ck_assert_int_eq(nc_index_destroy(&cache, other), 0);
	}
	got = must_alloc((size_t)result);
	read_exactly(pair[1], got, (size_t)result);
	ck_assert_uint_eq(pattern_match(got, 1, 0, (size_t)result), (size_t)result);
	if (!close_all)
		settle();
	free(got);
	close_pair(pair);
	close_registering();
}

START_TEST(test_in_flight)
{
	check_in_flight(NC_KIND_RECYCLED, false);
	check_in_flight(NC_KIND_APPENDED, false);
	check_in_flight(NC_KIND_RECYCLED, true);
	check_in_flight(NC_KIND_APPENDED, true);
}
END_TEST

/* While a send from it is in flight, another block takes the slot. */
START_TEST(test_slot_taken)
{
	struct NC_range range = {.length = 256 * KIB};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	int slow[2], fast[2];
	ssize_t result;
	char *got;

	if (!open_registering(64 * MIB, NC_CACHE_NO_HUGE))
		return;
	transmit.zerocopy.registered->idle = 0;
	transmit.zerocopy.registered->slot_count = 1;
	range.id = insert(1, range.length, 0, NC_KIND_APPENDED);
	tcp_pair_between(slow, "127.0.0.1", "127.0.0.2", 1 << 20, 4096);
	tcp_pair_between(fast, "127.0.0.1", "127.0.0.1", 8 << 20, 8 << 20);
	set_nonblocking(slow[0]);
	result = nc_transmit_send(&transmit, slow[0], &message);
	ck_assert_int_gt(result, 64 << 10);
	for (unsigned i = 0; i < 10; i++)
		deliver(fast, insert(2 + i, 3 * MIB, 0, NC_KIND_APPENDED), 2 + i, 3 * MIB, 0);
	ck_assert_uint_ge(all_statistics().registrations, 20);
	ck_assert_uint_le(all_statistics().registered_bytes, 2 * MIB);
	/* The pages of the first one remain until its notification. */
	got = must_alloc((size_t)result);
	read_exactly(slow[1], got, (size_t)result);
	ck_assert_uint_eq(pattern_match(got, 1, 0, (size_t)result), (size_t)result);
	settle();
	await_pinned(at_start + all_statistics().registered_bytes);
	free(got);
	close_pair(slow);
	close_pair(fast);
	close_registering();
}
END_TEST

/* --- a member ----------------------------------------------------------------------- */

static struct nc_remote_member *remote;
static size_t first;

/* Admits a member; returns its own mapping of its segment. */
static char *admit(size_t *bytes)
{
	char *member;

	ck_assert_int_eq(nc_index_admit(&cache, 4 * MIB, &remote, &first), 0);
	*bytes = remote->store->segment.size;
	member = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, remote->store->segment.fd,
		      0);
	ck_assert_ptr_ne(member, MAP_FAILED);
	return member;
}

/* Publishes a response as the member does; returns its id. */
static size_t publish(char *member, unsigned generation, uint64_t seed, size_t size)
{
	struct nc_unit_shared *entry = (struct nc_unit_shared *)(void *)member + 3;

	pattern_fill(member + first, seed, 0, size);
	atomic_store(&entry->at, first);
	atomic_store(&entry->size, size);
	atomic_store(&entry->fraglen, PAGE);
	atomic_store(&entry->word, nc_shared_word(generation, NC_SHARED_LIVE));
	return nc_id(remote->number, 3, generation);
}

/* Publishes a response and has it sent; returns the bytes' seed or 0. */
static uint64_t respond(char *member, unsigned generation, uint64_t seed, size_t size,
			const int pair[2])
{
	struct NC_range range = {.id = publish(member, generation, seed, size), .length = size};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	char *got = must_alloc(size);
	uint64_t is = 0;

	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), (ssize_t)size);
	read_exactly(pair[1], got, size);
	for (uint64_t earlier = 1; earlier <= seed; earlier++)
		if (pattern_match(got, earlier, 0, size) == size)
			is = earlier;
	free(got);
	settle();
	return is;
}

/*
 * A member punches holes into what is registered, and fills them: what the server sends
 * then is an earlier response of this member, never bytes of others; and after the member
 * is gone, nothing of it is pinned.
 */
START_TEST(test_member)
{
	const size_t size = 200 * KIB;
	struct NC_cache_stat stat;
	size_t own, bytes;
	int pair[2];
	char *member;

	if (!open_registering(16 * MIB, 0))
		return;
	member = admit(&bytes);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	ck_assert_uint_eq(respond(member, 1, 1, size, pair), 1);
	ck_assert_uint_eq(all_statistics().registered_sends, 1);
	/* Honest: the memory is written in place. */
	ck_assert_uint_eq(respond(member, 2, 2, size, pair), 2);
	ck_assert_int_eq(fallocate(remote->store->segment.fd,
				   FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first,
				   (off_t)(bytes - first)),
			 0);
	ck_assert_uint_eq(respond(member, 3, 3, size, pair), 2);
	/* The owner's own units are not affected. */
	own = insert(9, size, 0, NC_KIND_RECYCLED);
	deliver(pair, own, 9, size, 0);
	settle();
	stat = all_statistics();
	ck_assert_uint_eq(stat.registered_sends, stat.by_zerocopy.sends);
	ck_assert_int_eq(nc_index_destroy(&cache, own), 0);
	munmap(member, bytes);
	nc_index_detach(&cache, remote);
	await_pinned(at_start + all_statistics().registered_bytes);
	ck_assert_uint_lt(all_statistics().registered_bytes, stat.registered_bytes);
	close_pair(pair);
	close_registering();
}
END_TEST

enum abuse { OVERWRITE, PUNCH, UNMAP, LEAVE };

#define SCRIBBLE 0xee

static void commit(enum abuse abuse, char *member, size_t bytes)
{
	/* The table of its units too. */
	if (abuse == OVERWRITE)
		memset(member, SCRIBBLE, bytes);
	if (abuse == PUNCH)
		ck_assert_int_eq(fallocate(remote->store->segment.fd,
					   FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
					   (off_t)bytes),
				 0);
	munmap(member, bytes);
	if (abuse == LEAVE)
		nc_index_detach(&cache, remote);
}

/* Sends a unit to a client that does not read: from registered memory, which is in flight then. */
static size_t begin(const int pair[2], size_t id, size_t size)
{
	struct NC_range range = {.id = id, .length = size};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	uint64_t before = all_statistics().registered_sends;
	ssize_t sent;

	set_nonblocking(pair[0]);
	sent = nc_transmit_send(&transmit, pair[0], &message);
	ck_assert_int_gt(sent, 64 << 10);
	ck_assert_uint_gt(all_statistics().registered_sends, before);
	ck_assert_uint_eq(nc_transmit_reap(&transmit), 0);
	return (size_t)sent;
}

/*
 * While a response of the member and a unit of the server are in flight, the member does
 * that, and all other memory is written again.  The server's unit arrives as it is; of the
 * response, bytes that the member wrote at some time; and nothing remains pinned.
 */
static void check_abuse(enum abuse abuse)
{
	const size_t size = 256 * KIB;
	int theirs[2], ours[2];
	size_t bytes, response, unit, own;
	char *member, *got;

	if (!open_registering(16 * MIB, NC_CACHE_NO_HUGE))
		return;
	got = must_alloc(size);
	member = admit(&bytes);
	tcp_pair_between(theirs, "127.0.0.1", "127.0.0.2", 1 << 20, 4096);
	tcp_pair_between(ours, "127.0.0.1", "127.0.0.2", 1 << 20, 4096);
	response = begin(theirs, publish(member, 1, 1, size), size);
	own = insert(9, size, 0, NC_KIND_RECYCLED);
	unit = begin(ours, own, size);
	commit(abuse, member, bytes);
	for (unsigned i = 0; i < 60; i++) {
		size_t other = insert(50 + i, size, 0, NC_KIND_RECYCLED);

		if (i % 2)
			ck_assert_int_eq(nc_index_destroy(&cache, other), 0);
	}
	read_exactly(theirs[1], got, response);
	if (abuse == OVERWRITE)
		for (size_t at = pattern_match(got, 1, 0, response); at < response; at++)
			expect((unsigned char)got[at] == SCRIBBLE ||
			       pattern_match(got + at, 1, at, 1) == 1);
	else
		ck_assert_uint_eq(pattern_match(got, 1, 0, response), response);
	read_exactly(ours[1], got, unit);
	ck_assert_uint_eq(pattern_match(got, 9, 0, unit), unit);
	settle();
	close_pair(theirs);
	close_pair(ours);
	/* The server continues. */
	tcp_pair_between(ours, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	deliver(ours, own, 9, size, 0);
	settle();
	close_pair(ours);
	ck_assert_int_eq(nc_index_destroy(&cache, own), 0);
	if (abuse != LEAVE)
		nc_index_detach(&cache, remote);
	await_pinned(at_start + all_statistics().registered_bytes);
	/* Less than the member's block. */
	ck_assert_uint_lt(all_statistics().registered_bytes, 2 * MIB);
	free(got);
	close_registering();
}

START_TEST(test_member_in_flight)
{
	check_abuse(OVERWRITE);
	check_abuse(PUNCH);
	check_abuse(UNMAP);
	check_abuse(LEAVE);
}
END_TEST

/* --- limits and threads ------------------------------------------------------------- */

/* Without locked memory every message is sent, from 1 byte to several blocks. */
static void check_limit(size_t limit)
{
	int pair[2];

	if (getenv("NABC_TEST_NO_URING") || !limit_pins(limit))
		return;
	open_cache(64 * MIB, NC_CACHE_NO_HUGE);
	/* Without a ring there is no table. */
	if (transmit.zerocopy.registered)
		transmit.zerocopy.registered->after = 0;
	(void)nc_transmit_route_set(&transmit, "*", NC_METHOD_ZEROCOPY);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
	for (size_t size = 1; size < 100 * KIB; size *= 7)
		deliver(pair, insert(size, size, 0, NC_KIND_APPENDED), size, size, 0);
	ck_assert_uint_eq(all_statistics().registered_bytes, 0);
	ck_assert_uint_le(all_statistics().registrations_failed, 1);
	close_pair(pair);
	close_cache();
}

START_TEST(test_hardly_any_memlock)
{
	check_limit(64 * KIB);
}
END_TEST

START_TEST(test_no_memlock)
{
	check_limit(0);
}
END_TEST

#define THREADS 4

/* Inserts, sends and destroys: segments are closed under the notifications of others. */
static void *churn(void *context)
{
	uint64_t state = (uintptr_t)context;
	int pair[2];

	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 8 << 20, 8 << 20);
	for (unsigned i = 0; i < scaled(150); i++) {
		uint64_t random = random_next(&state);
		size_t size = random % 3 ? 300 * KIB : 1100 * KIB;
		size_t id =
			insert(random, size, 0, random & 16 ? NC_KIND_APPENDED : NC_KIND_RECYCLED);

		deliver(pair, id, random, size, 0);
		(void)nc_index_destroy(&cache, id);
		(void)nc_transmit_reap(&transmit);
	}
	close_pair(pair);
	return NULL;
}

START_TEST(test_threads)
{
	pthread_t threads[THREADS];

	if (!open_registering(32 * MIB, NC_CACHE_NO_HUGE))
		return;
	transmit.zerocopy.registered->idle = 0;
	transmit.zerocopy.registered->slot_count = 3;
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	settle();
	ck_assert_uint_gt(all_statistics().registered_sends, 0);
	await_pinned(at_start + all_statistics().registered_bytes);
	close_registering();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_kinds);
	tcase_add_test(tcase, test_evicted);
	tcase_add_test(tcase, test_in_flight);
	tcase_add_test(tcase, test_slot_taken);
	tcase_add_test(tcase, test_member);
	tcase_add_test(tcase, test_member_in_flight);
	tcase_add_test(tcase, test_hardly_any_memlock);
	tcase_add_test(tcase, test_no_memlock);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("transmit-registered", fill)
