/* SPDX-License-Identifier: MIT */
/*
 * test-transmit-hold.c - unit tests of transmit.c: bytes never change under a socket,
 * whatever happens to the unit, the cache and the threads meanwhile.  Each test owns
 * its cache.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fragment.h"
#include "base/id.h"
#include "cache/index.h"
#include "os/ring.h"
#include "send/transmit.h"
#include "send/zerocopy.h"
#include "store/member.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/unit.h"

#include "by-method.h"
#include "suite.h"
#include "transmit-fixture.h"

/* Sends, and drops the unit before the peer has read a byte. */
static void check_old_bytes(enum NC_kind kind, bool close_all, unsigned flags, size_t budget)
{
	size_t size = 256 * KIB, sent, id;
	struct NC_send message = NC_SEND_INIT();
	struct NC_range range;
	ssize_t result;
	int pair[2];
	char *got;

	open_cache(budget, NC_CACHE_NO_URING | flags);
	id = insert(1, size, 0, kind);
	range = (struct NC_range){.id = id, .length = size};
	message.ranges = &range;
	message.range_count = 1;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	set_nonblocking(pair[0]);
	result = nc_transmit_send(&transmit, pair[0], &message);
	ck_assert_int_ge(result, 64 << 10);
	sent = (size_t)result;
	ck_assert_uint_gt(BY_METHOD(statistics(),
				    kind == NC_KIND_APPENDED ? NC_METHOD_SPLICE : NC_METHOD_COPY)
				  .bytes,
			  0);
	if (close_all) {
		close_cache();
		open_cache(budget, NC_CACHE_NO_URING | flags);
	} else {
		ck_assert_int_eq(nc_index_destroy(&cache, id), 0);
	}
	/* Overwrites all memory several times with other bytes. */
	for (unsigned i = 0; i < 3 * budget / size; i++) {
		size_t other = insert(1000 + i, size, 0, kind);

		if (i % 2)
			ck_assert_int_eq(nc_index_destroy(&cache, other), 0);
	}
	got = must_alloc(sent);
	read_exactly(pair[1], got, sent);
	ck_assert_uint_eq(pattern_match(got, 1, 0, sent), sent);
	free(got);
	close_pair(pair);
	close_cache();
}

START_TEST(test_old_bytes_small_pages)
{
	check_old_bytes(NC_KIND_RECYCLED, false, NC_CACHE_NO_HUGE, 4 * MIB);
	check_old_bytes(NC_KIND_APPENDED, false, NC_CACHE_NO_HUGE, 4 * MIB);
	check_old_bytes(NC_KIND_RECYCLED, true, NC_CACHE_NO_HUGE, 4 * MIB);
	check_old_bytes(NC_KIND_APPENDED, true, NC_CACHE_NO_HUGE, 4 * MIB);
}
END_TEST

START_TEST(test_old_bytes_huge_pages)
{
	printf("transmit: huge pages %s\n", huge_pages() ? "given" : "not given by this system");
	fflush(stdout);
	/* Segments of 2 MiB, so that a huge page fits. */
	check_old_bytes(NC_KIND_RECYCLED, false, 0, 32 * MIB);
	check_old_bytes(NC_KIND_APPENDED, false, 0, 32 * MIB);
	check_old_bytes(NC_KIND_APPENDED, true, 0, 32 * MIB);
}
END_TEST

/*
 * Zero-copy: the unit's memory is not reused as long as the kernel may read it.  The
 * peer's window is closed, so most of the unit stays unsent.
 */
START_TEST(test_zerocopy)
{
	size_t size = 128 * KIB;
	struct NC_range range = {.length = size};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	unsigned waiting = 0;
	ssize_t result;
	struct nc_unit *unit;
	char *base, *got;
	int pair[2];

	open_cache(8 * MIB, 0);
	if (!transmit.zerocopy.ring.usable) {
		printf("transmit: io_uring %s\n", transmit.zerocopy.ring.why);
		close_cache();
		return;
	}
	range.id = insert(1, size, 0, NC_KIND_RECYCLED);
	unit = nc_units_at(&cache.own.units, nc_id_slot(range.id));
	base = nc_unit_base(unit);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", 1 << 20, 4096);
	set_nonblocking(pair[0]);
	result = nc_transmit_send(&transmit, pair[0], &message);
	ck_assert_int_gt(result, 0);
	ck_assert_uint_eq(statistics().by_zerocopy.sends, 1);
	/* In flight: the kernel holds it. */
	ck_assert_uint_eq(nc_transmit_reap(&transmit), 0);
	ck_assert_uint_eq(holds_of(range.id), 1);
	ck_assert_int_eq(nc_index_destroy(&cache, range.id), 0);
	for (unsigned i = 0; i < 8; i++) {
		size_t other = insert(50 + i, size, 0, NC_KIND_RECYCLED);

		ck_assert_ptr_ne(nc_unit_base(nc_units_at(&cache.own.units, nc_id_slot(other))),
				 base);
		ck_assert_int_eq(nc_index_destroy(&cache, other), 0);
	}
	got = must_alloc((size_t)result);
	read_exactly(pair[1], got, (size_t)result);
	ck_assert_uint_eq(pattern_match(got, 1, 0, (size_t)result), (size_t)result);
	/* The kernel reports that it no longer needs the memory, and that it copied after all. */
	while (nc_transmit_reap(&transmit) == 0) {
		await(nc_ring_fd(&transmit.zerocopy.ring), POLLIN);
		ck_assert_uint_lt(waiting++, 1000);
	}
	ck_assert_ptr_null(unit->store);
	ck_assert_uint_eq(statistics().zerocopy_copied, 1);
	/* Learnt: that method is not used again. */
	range.id = insert(2, size, 0, NC_KIND_RECYCLED);
	ck_assert_int_gt(nc_transmit_send(&transmit, pair[0], &message), 0);
	ck_assert_uint_eq(statistics().by_zerocopy.sends, 1);
	ck_assert_uint_ge(statistics().by_copy.sends, 1);
	free(got);
	close_pair(pair);
	close_cache();
}
END_TEST

/* The cache is closed while the kernel still sends from it. */
START_TEST(test_zerocopy_outlives_cache)
{
	size_t size = 128 * KIB;
	struct NC_range range = {.length = size};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	ssize_t result;
	int pair[2];
	char *got;

	open_cache(8 * MIB, 0);
	range.id = insert(1, size, 0, NC_KIND_RECYCLED);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", 1 << 20, 4096);
	set_nonblocking(pair[0]);
	result = nc_transmit_send(&transmit, pair[0], &message);
	ck_assert_int_gt(result, 0);
	close_cache();
	open_cache(8 * MIB, 0);
	for (unsigned i = 0; i < 16; i++)
		(void)insert(50 + i, size, 0, NC_KIND_RECYCLED);
	got = must_alloc((size_t)result);
	read_exactly(pair[1], got, (size_t)result);
	ck_assert_uint_eq(pattern_match(got, 1, 0, (size_t)result), (size_t)result);
	free(got);
	close_pair(pair);
	close_cache();
}
END_TEST

START_TEST(test_uring_switched_off)
{
	open_cache(MIB, NC_CACHE_NO_URING);
	ck_assert(!transmit.zerocopy.ring.usable);
	ck_assert_str_ne(transmit.zerocopy.ring.why, "");
	ck_assert_int_eq(nc_ring_fd(&transmit.zerocopy.ring), -1);
	ck_assert_uint_eq(nc_transmit_reap(&transmit), 0);
	close_cache();
}
END_TEST

/* --- many threads ---------------------------------------------------------------- */

#define THREADS 4
#define NAMES 16

static _Atomic size_t names[NAMES];
static _Atomic unsigned wrong, whole;

/* The size and the bytes of a unit follow from its id. */
static size_t size_of(size_t id)
{
	return 1 + (nc_id_slot(id) * 2654435761u + nc_id_generation(id) * 40503u) % (48 << 10);
}

static void make(_Atomic size_t *name, uint64_t random)
{
	struct nc_layout layout;
	struct nc_unit *unit;
	size_t id;

	/* The size is set before the id is known: rounded up, and the rest is not checked. */
	(void)nc_layout_init(&layout, 48 << 10, 0);
	if (nc_member_alloc(&cache.own, &layout, random & 1 ? NC_KIND_APPENDED : NC_KIND_RECYCLED,
			    &unit))
		return;
	id = nc_id(0, unit->slot, nc_word_generation(nc_unit_word(unit)));
	pattern_fill(nc_unit_base(unit), id, 0, 48 << 10);
	if (nc_member_insert(&cache.own, unit, NULL))
		atomic_fetch_add(&wrong, 1);
	id = atomic_exchange(name, id);
	if (id)
		(void)nc_index_destroy(&cache, id);
}

static void deliver(const int pair[2], size_t id, char *got)
{
	struct NC_range range = {.id = id, .length = size_of(id)};
	struct NC_send message = NC_SEND_INIT(.header = "head", .header_length = 4,
					      .ranges = &range, .range_count = 1);
	ssize_t sent = nc_transmit_send(&transmit, pair[0], &message);
	size_t have = 0;

	if (sent == -ENOENT)
		return;
	if (sent != (ssize_t)range.length + 4) {
		atomic_fetch_add(&wrong, 1);
		return;
	}
	while (have < (size_t)sent) {
		ssize_t more = read(pair[1], got + have, (size_t)sent - have);

		if (more <= 0)
			break;
		have += (size_t)more;
	}
	if (have != (size_t)sent || memcmp(got, "head", 4) ||
	    pattern_match(got + 4, id, 0, range.length) != range.length)
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&whole, 1);
}

static void *serve(void *context)
{
	uint64_t state = (uintptr_t)context;
	char *got = malloc(64 << 10);
	int pair[2];

	if (!got || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return NULL;
	for (unsigned steps = scaled(3000); steps; steps--) {
		uint64_t random = random_next(&state);
		_Atomic size_t *name = &names[(random >> 40) % NAMES];

		if (random % 4 == 0)
			make(name, random >> 20);
		else
			deliver(pair, atomic_load(name), got);
	}
	close_pair(pair);
	free(got);
	return NULL;
}

/* All threads send all units while these are destroyed, evicted and created again. */
START_TEST(test_threads)
{
	pthread_t threads[THREADS];

	open_cache(MIB, 0);
	memset(names, 0, sizeof(names));
	atomic_store(&wrong, 0);
	atomic_store(&whole, 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, serve, (void *)(i + 121)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(atomic_load(&wrong), 0);
	ck_assert_uint_gt(atomic_load(&whole), 0);
	ck_assert_uint_le(statistics().used, statistics().size);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_old_bytes_small_pages);
	tcase_add_test(tcase, test_old_bytes_huge_pages);
	tcase_add_test(tcase, test_zerocopy);
	tcase_add_test(tcase, test_zerocopy_outlives_cache);
	tcase_add_test(tcase, test_uring_switched_off);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("transmit-hold", fill)
