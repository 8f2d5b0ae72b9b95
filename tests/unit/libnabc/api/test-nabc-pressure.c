/* SPDX-License-Identifier: MIT */
/*
 * test-nabc-pressure.c - unit tests of the public calls when memory is short: what is held
 * survives, and what sockets were given is delivered.
 */
#include <errno.h>
#include <nabc.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "nabc-fixture.h"
#include "suite.h"
#include "unit-holds.h"

/* Under pressure, a held unit and its id stay valid, and it can be sent; the limit holds. */
START_TEST(test_eviction)
{
	struct NC_range range = {.length = 60 << 10};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	struct NC_hold lent;
	struct NC_cache_stat stat;
	size_t ids[200], held[64];
	unsigned dead = 0, count = 0;
	NC_handle handle;
	char *got = must_alloc(60 << 10);
	int pair[2];

	open_cache(MIB);
	for (unsigned i = 0; i < 200; i++) {
		ids[i] = insert(i, 60 << 10);
		if (i == 0)
			ck_assert_int_eq(hold_id(NULL, ids[0]), 0);
		ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
		ck_assert_uint_le(stat.used, stat.size);
	}
	ck_assert(alive(ids[0]));
	ck_assert(alive(ids[199]));
	for (unsigned i = 0; i < 200; i++)
		if (!alive(ids[i])) {
			FAILS(hold_id(NULL, ids[i]), ENOENT);
			FAILS(NC_socksend(0, ids[i], 0, 1), ENOENT);
			dead++;
		}
	ck_assert_uint_ge(dead, 180);
	ck_assert_uint_eq(stat.evictions, dead);
	ck_assert_uint_gt(stat.segments_closed, 0);
	ck_assert_uint_eq(stat.units, 200 - dead);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
	range.id = ids[0];
	use_holds(&message, &lent);
	ck_assert_int_eq(NC_send(NULL, pair[0], &message), 60 << 10);
	read_exactly(pair[1], got, 60 << 10);
	ck_assert_uint_eq(pattern_match(got, 0, 0, 60 << 10), 60 << 10);
	ck_assert_int_eq(release_id(NULL, ids[0]), 0);

	/* All is held: allocation fails, and nothing is lost. */
	while (count < 64 && NC_alloc(&handle, 60 << 10, 0) == 0) {
		ck_assert_int_eq(NC_insert(&handle), 0);
		held[count] = NC_cache_id(&handle);
		ck_assert_int_eq(hold_id(NULL, held[count++]), 0);
	}
	ck_assert_uint_ge(count, 12);
	ck_assert_int_eq(errno, ENOMEM);
	FAILS(NC_alloc(&handle, 60 << 10, 0), ENOMEM);
	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_uint_le(stat.used, stat.size);
	ck_assert_uint_ge(stat.failures, 2);
	for (unsigned i = 0; i < count; i++) {
		ck_assert(alive(held[i]));
		ck_assert_int_eq(release_id(NULL, held[i]), 0);
	}
	ck_assert_int_eq(NC_alloc(&handle, 60 << 10, 0), 0);
	ck_assert_int_eq(NC_free(&handle), 0);
	close_pair(pair);
	free(got);
	close_cache();
}
END_TEST

/* Bytes that a socket has accepted arrive unchanged, even after the cache is closed. */
START_TEST(test_bytes_outlive_the_cache)
{
	size_t size = 200 << 10;
	char *got = must_alloc(size);
	ssize_t sent;
	int pair[2];
	size_t id;

	for (unsigned i = 0; i < 2; i++) {
		open_cache(4 * MIB);
		id = insert(3, size);
		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
		set_nonblocking(pair[0]);
		sent = NC_socksend(pair[0], id, 0, size);
		ck_assert_int_gt(sent, 0);
		if (i) {
			close_cache();
			open_cache(4 * MIB);
		} else {
			ck_assert_int_eq(NC_destroy(NULL, id), 0);
		}
		for (unsigned k = 0; k < 60; k++)
			(void)insert(100 + k, size);
		read_exactly(pair[1], got, (size_t)sent);
		ck_assert_uint_eq(pattern_match(got, 3, 0, (size_t)sent), (size_t)sent);
		close_pair(pair);
		close_cache();
	}
	free(got);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_eviction);
	tcase_add_test(tcase, test_bytes_outlive_the_cache);
}

RUN_SUITE("nabc-pressure", fill)
