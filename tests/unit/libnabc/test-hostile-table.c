/* SPDX-License-Identifier: MIT */
/*
 * test-hostile-table.c - a member that writes invalid entries into the table that it
 * shares with the owner, changes them while they are read, and punches holes into its
 * segment.  All bytes that the owner then sends, sums, copies or shows are bytes of
 * that member's own memory, and the owner never faults.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "api/registry.h"
#include "base/id.h"
#include "cache/index.h"
#include "cache/remote-member.h"
#include "store/unit.h"
#include "wire/wire.h"

#include "hostile-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"
#include "unit-holds.h"

#define LIAR 4002
#define SLOTS 16u
#define THEIRS 0xa5
#define OURS 0x5a

static const struct NC_cache_options options =
	NC_CACHE_OPTIONS_INIT(.memory = 16 * MIB, .member_size = 256 << 10,
			      .flags = NC_CACHE_NO_URING);

static bool punches;

static uint64_t any_offset(uint64_t *state, uint64_t first, uint64_t end)
{
	const uint64_t odd[] = {0,
				PAGE,
				first - PAGE,
				first,
				first + 1,
				first + PAGE,
				end - PAGE,
				end - 1,
				end,
				end + PAGE,
				UINT64_MAX,
				UINT64_MAX - PAGE + 1,
				(uint64_t)1 << 63,
				random_next(state)};

	if (random_next(state) % 3)
		return first + random_next(state) % ((end - first) / PAGE) * PAGE;
	return odd[random_next(state) % (sizeof(odd) / sizeof(odd[0]))];
}

static uint64_t any_size(uint64_t *state, uint64_t end)
{
	const uint64_t odd[] = {0,
				1,
				PAGE,
				end,
				end + 1,
				UINT64_MAX,
				UINT64_MAX - 1,
				(uint64_t)1 << 46,
				(uint64_t)1 << 63,
				UINT32_MAX,
				random_next(state),
				(uint64_t)1 << random_next(state) % 64};

	if (random_next(state) % 3)
		return random_next(state) % (8 * PAGE) + 1;
	return odd[random_next(state) % (sizeof(odd) / sizeof(odd[0]))];
}

static uint64_t any_fraglen(uint64_t *state)
{
	static const uint64_t some[] = {1, 64, 100, 1448, 4096, 8192, 0, 4097, UINT64_MAX, 4095};

	return some[random_next(state) % (random_next(state) % 4 ? 6 : 10)];
}

/* Slightly above the existing values: a dropped unit needs a new generation to be valid. */
static uint64_t any_word(uint64_t *state, uint64_t was, unsigned first)
{
	unsigned generation = (unsigned)(was >> 4) + (unsigned)(random_next(state) % 3);

	if (generation < first || generation > NC_ID_GENERATION_MAX)
		generation = first;
	if (random_next(state) % 4)
		return nc_shared_word(generation, NC_SHARED_LIVE);
	return nc_shared_word(generation, (enum nc_shared_state)(random_next(state) % 16));
}

static int lie(void)
{
	struct nc_wire_welcome welcome;
	int fd, socket = child_join(NC_WIRE_SEGMENT, &welcome, &fd);
	uint64_t state = 77, first, end;
	struct nc_unit_shared *table;
	size_t tell[2], stop;
	char *base;

	CHILD(socket >= 0 && fd >= 0);
	first = welcome.data_offset;
	end = welcome.segment_size;
	base = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHILD(base != MAP_FAILED);
	memset(base + first, THEIRS, end - first);
	table = (struct nc_unit_shared *)(void *)base;
	tell[0] = welcome.member;
	tell[1] = welcome.generation;
	CHILD(said(tell, 2));
	while (recv(TALK, &stop, 1, MSG_DONTWAIT) < 0) {
		for (unsigned i = 0; i < 500; i++) {
			struct nc_unit_shared *entry = &table[random_next(&state) % SLOTS];

			switch (random_next(&state) % 5) {
			case 0:
				atomic_store(&entry->at, any_offset(&state, first, end));
				break;
			case 1:
				atomic_store(&entry->size, any_size(&state, end));
				break;
			case 2:
				atomic_store(&entry->fraglen, any_fraglen(&state));
				break;
			case 3:
				atomic_store(&entry->word,
					     any_word(&state, atomic_load(&entry->word),
						      welcome.generation));
				break;
			default:
				atomic_fetch_xor(&entry->word,
						 (uint64_t)1 << random_next(&state) % 6);
			}
			if (punches && i % 100 == 0) {
				uint64_t at = first + random_next(&state) % (end - first);

				CHILD(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
						(off_t)at, (off_t)(end - at)) == 0);
				memset(base + first, THEIRS, PAGE);
			}
		}
	}
	return 0;
}

static bool is_theirs(const unsigned char *data, size_t length)
{
	/* The member may change it meanwhile. */
	const volatile unsigned char *shared = data;

	for (size_t i = 0; i < length; i++) {
		unsigned char byte = shared[i];

		if (byte != THEIRS && !(punches && byte == 0))
			return false;
	}
	return true;
}

static unsigned used, bytes;

/* Does everything possible with an id; all resulting bytes must be the member's. */
static void use(size_t id, int pair[2], unsigned char *room, size_t size)
{
	struct NC_range range = {.id = id};
	struct NC_send message =
		NC_SEND_INIT(.ranges = &range, .range_count = 1, .flags = NC_SEND_DONTWAIT);
	struct NC_stat stat;
	uint32_t sum;
	ssize_t sent;
	size_t run;
	const void *data;

	if (hold_id(NULL, id) < 0)
		return;
	used++;
	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)) == 0 || errno == ENOENT ||
				 errno == EACCES,
			 1);
	sent = NC_pread(cache, id, room, size, 0);
	if (sent > 0)
		ck_assert(is_theirs(room, (size_t)sent));
	bytes += sent > 0;
	data = data_of_id(cache, id, 0, &run);
	if (data)
		ck_assert(is_theirs(data, run));
	(void)NC_checksum(cache, id, &sum, NC_CHECKSUM_INET, 1, 0);
	(void)NC_verify(cache, id);
	for (unsigned i = 0; i < 2; i++) {
		range.offset = i * 99;
		range.length = i ? 50 : 1;
		sent = NC_send(NULL, pair[0], &message);
		if (sent > 0) {
			read_exactly(pair[1], room, (size_t)sent);
			ck_assert(is_theirs(room, (size_t)sent));
		}
	}
	if (data) {
		range.offset = 0;
		range.length = run < size ? run : size;
		sent = NC_send(NULL, pair[0], &message);
		if (sent > 0) {
			read_exactly(pair[1], room, (size_t)sent);
			ck_assert(is_theirs(room, (size_t)sent));
		}
	}
	if (id % 3 == 0) {
		(void)NC_grant(cache, id, NC_USER, 4999);
		(void)NC_revoke(cache, id, NC_USER, 4999);
	}
	if (id % 7 == 0)
		(void)NC_destroy(NULL, id);
	ck_assert_int_eq(release_id(NULL, id), 0);
}

static void check_lies(void)
{
	struct NC_cache_stat before, after;
	/* The member is forked in the middle of this: static, so that nothing is leaked in it. */
	static unsigned char room[64 << 10];
	size_t tell[2], own[2], cursor = 0;
	struct NC_stat units[7];
	struct member liar;
	unsigned descriptors;
	int listed;
	int pair[2];

	open_hostile(&options);
	used = bytes = 0;
	/* The owner's units are before and after the member's. */
	own[0] = insert(OURS, 100 << 10);
	ck_assert_int_eq(NC_cache_stat(cache, &before, sizeof(before)), 0);
	tcp_pair(pair);
	descriptors = open_descriptors();
	liar = start_member(lie, LIAR);
	hear_ids(&liar, tell, 2);
	own[1] = insert(OURS, 100 << 10);
	while (used < scaled(3000) || bytes < scaled(1500)) {
		listed = NC_list(cache, &cursor, units, sizeof(*units), 7);
		ck_assert_int_ge(listed, 0);
		for (int i = 0; i < listed; i++)
			if (nc_id_member(units[i].id) == tell[0])
				use(units[i].id, pair, room, sizeof(room));
		ck_assert_int_ge(NC_cache_dispatch(cache), 0);
	}
	end_member(&liar);
	serve_until_alone();
	close_pair(pair);
	ck_assert_uint_eq(open_descriptors(), descriptors - 2);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert(holds_pattern(cache, own[i], OURS, 100 << 10));
		ck_assert_int_eq(NC_destroy(NULL, own[i]), 0);
	}
	ck_assert_int_eq(NC_cache_stat(cache, &after, sizeof(after)), 0);
	ck_assert_uint_eq(after.members, 0);
	ck_assert_uint_eq(after.units, before.units - 1);
	cursor = 0;
	ck_assert_int_eq(NC_list(cache, &cursor, units, sizeof(*units), 7), 0);
	close_hostile();
}

START_TEST(test_lies)
{
	punches = false;
	check_lies();
}
END_TEST

START_TEST(test_holes)
{
	punches = true;
	check_lies();
}
END_TEST

/* A member that claims to have spent all its generations does not use up member numbers. */
static int spend(void)
{
	struct nc_wire_welcome welcome;
	int fd, socket = child_join(NC_WIRE_SEGMENT, &welcome, &fd);
	struct nc_unit_shared *table;
	size_t number;

	CHILD(socket >= 0 && fd >= 0);
	number = welcome.member;
	table = mmap(NULL, welcome.segment_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHILD(table != MAP_FAILED);
	for (unsigned i = 0; i < welcome.slots; i++)
		atomic_store(&table[i].word,
			     i % 8 ? nc_shared_word(NC_ID_GENERATION_MAX, NC_SHARED_LIVE)
				   : UINT64_MAX - 0xf + NC_SHARED_LIVE);
	CHILD(said(&number, 1));
	stay();
	return 0;
}

START_TEST(test_spent_generations)
{
	struct nc_remote_member *remote;
	const struct nc_index *index;
	struct member liar;
	size_t number, id;

	open_hostile(&options);
	index = &((struct NC_cache *)cache)->index;
	for (unsigned i = 0; i < 20; i++) {
		liar = start_member(spend, LIAR);
		hear_ids(&liar, &number, 1);
		ck_assert_uint_eq(nc_id_number(&index->epoch, (unsigned)number), i + 1);
		for (unsigned k = 0; k < 64; k++) {
			id = nc_id((unsigned)number, k, NC_ID_GENERATION_MAX);
			FAILS(hold_id(NULL, id), ENOENT);
			FAILS(hold_id(NULL, nc_id((unsigned)number, k, 1)), ENOENT);
		}
		end_member(&liar);
		serve_until_alone();
		FAILS(hold_id(NULL, id), ENOENT);
		/* Another member may get the number after this one. */
		remote = atomic_load(&index->remotes[i + 1]);
		ck_assert(nc_remote_member_vacant(remote));
		ck_assert_uint_lt(remote->generation, index->epoch.generation + 2 * 65536);
	}
	close_hostile();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_lies);
	tcase_add_test(tcase, test_holes);
	tcase_add_test(tcase, test_spent_generations);
}

RUN_SUITE("hostile-table", fill)
