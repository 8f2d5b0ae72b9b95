/* SPDX-License-Identifier: MIT */
/*
 * test-remote-member.c - unit tests of remote-member.c: an honest member, one that
 * writes invalid entries into the shared table, also while it is being read, and what
 * is left of it when it has exited.  The test plays the member: it writes into the
 * segment itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diagnostics.h"
#include "base/fragment.h"
#include "base/id.h"
#include "cache/remote-member.h"
#include "os/pin.h"
#include "os/segment.h"
#include "store/store.h"
#include "store/unit.h"

#include "suite.h"

#define PAGE ((size_t)4096)
#define SIZE ((size_t)256 << 10)
#define SLOTS 64u

static struct nc_remote_member *remote;
static size_t first;

static void admit(void)
{
	ck_assert_int_eq(nc_remote_member_admit(remote, SIZE, SLOTS, &first), 0);
}

static void open_one(void)
{
	remote = nc_remote_member_create(7, 1);
	ck_assert_ptr_nonnull(remote);
	ck_assert(nc_remote_member_vacant(remote));
	admit();
	ck_assert(!nc_remote_member_vacant(remote));
	ck_assert_uint_eq(first, PAGE);
}

static struct nc_unit_shared *entry_at(uint32_t slot)
{
	return (struct nc_unit_shared *)(void *)remote->store->segment.base + slot;
}

static uint64_t word_at(uint32_t slot)
{
	return atomic_load(&entry_at(slot)->word);
}

static void publish(uint32_t slot, unsigned generation, uint64_t at, uint64_t size,
		    uint64_t fraglen)
{
	struct nc_unit_shared *entry = entry_at(slot);

	atomic_store(&entry->at, at);
	atomic_store(&entry->size, size);
	atomic_store(&entry->fraglen, fraglen);
	atomic_store(&entry->word, nc_shared_word(generation, NC_SHARED_LIVE));
}

static int hold(uint32_t slot, unsigned generation)
{
	struct nc_unit *unit = NULL;
	int error = nc_remote_member_hold(remote, slot, generation, false, &unit);

	if (!error)
		ck_assert_ptr_nonnull(unit);
	return error;
}

START_TEST(test_honest)
{
	struct nc_unit *unit;

	open_one();
	publish(3, 1, first, 5000, PAGE);
	pattern_fill(remote->store->segment.base + first, 3, 0, 5000);
	ck_assert_int_eq(nc_remote_member_hold(remote, 3, 1, false, &unit), 0);
	ck_assert_uint_eq(unit->layout.size, 5000);
	ck_assert_uint_eq(unit->at, first);
	ck_assert_uint_eq(pattern_match(nc_unit_base(unit), 3, 0, 5000), 5000);
	ck_assert_uint_eq(word_at(3), nc_shared_word(1, NC_SHARED_BUSY));
	/* From here on the copy counts, not the entry. */
	atomic_store(&entry_at(3)->size, UINT64_MAX);
	ck_assert_int_eq(hold(3, 1), 0);
	ck_assert_uint_eq(unit->layout.size, 5000);
	ck_assert_int_eq(nc_remote_member_release(remote, 3, 1), 0);
	ck_assert_int_eq(nc_remote_member_release(remote, 3, 1), 0);
	ck_assert_int_eq(nc_remote_member_release(remote, 3, 1), -EINVAL);
	ck_assert_uint_eq(word_at(3), nc_shared_word(1, NC_SHARED_LIVE));
	ck_assert_uint_eq(remote->held, 0);
	/* Held again, it is read again. */
	ck_assert_int_eq(hold(3, 1), -EPROTO);
	nc_remote_member_free(remote);
}
END_TEST

START_TEST(test_names)
{
	open_one();
	ck_assert_int_eq(hold(0, 1), -ENOENT);
	publish(0, 5, first, 100, PAGE);
	ck_assert_int_eq(hold(0, 4), -ENOENT);
	ck_assert_int_eq(hold(0, 6), -ENOENT);
	ck_assert_int_eq(hold(0, 0), -ENOENT);
	ck_assert_int_eq(hold(1, 5), -ENOENT);
	ck_assert_int_eq(hold(SLOTS, 5), -ENOENT);
	ck_assert_int_eq(hold(UINT32_MAX, 5), -ENOENT);
	ck_assert_int_eq(nc_remote_member_release(remote, 0, 5), -EINVAL);
	ck_assert_int_eq(nc_remote_member_release(remote, SLOTS, 5), -EINVAL);
	ck_assert_int_eq(nc_remote_member_destroy(remote, 0, 4), -ENOENT);
	ck_assert_int_eq(nc_remote_member_destroy(remote, SLOTS, 5), -ENOENT);
	ck_assert_int_eq(hold(0, 5), 0);
	ck_assert_int_eq(nc_remote_member_release(remote, 0, 4), -EINVAL);
	ck_assert_int_eq(nc_remote_member_release(remote, 0, 6), -EINVAL);
	ck_assert_int_eq(nc_remote_member_release(remote, 0, 5), 0);
	/* Entries in states other than LIVE have no valid id. */
	for (unsigned state = 0; state < 16; state++) {
		if (state == NC_SHARED_LIVE)
			continue;
		atomic_store(&entry_at(0)->word, nc_shared_word(5, state));
		ck_assert_int_eq(hold(0, 5), -ENOENT);
	}
	nc_remote_member_free(remote);
}
END_TEST

START_TEST(test_lies)
{
	static const struct {
		uint64_t at, size, fraglen;
	} lie[] = {
		{0, 100, 4096}, /* the table itself */
		{4096 + 1, 100, 4096},
		{SIZE, 100, 4096},
		{UINT64_MAX, 100, 4096},
		{UINT64_MAX - 4095, 100, 4096},
		{4096, 0, 4096},
		{4096, SIZE, 4096},
		{SIZE - 4096, 4097, 4096},
		{4096, UINT64_MAX, 4096},
		{4096, UINT64_MAX - 4096, 4096},
		{4096, 100, 0},
		{4096, 100, 5000},
		{4096, 100, UINT64_MAX},
		{4096, SIZE - 4096, 1 + 2048},
	};

	open_one();
	for (unsigned i = 0; i < sizeof(lie) / sizeof(lie[0]); i++) {
		publish(2, 10 + i, lie[i].at, lie[i].size, lie[i].fraglen);
		ck_assert_int_eq(hold(2, 10 + i), -EPROTO);
		/* The member got it back, and the owner keeps nothing. */
		ck_assert_uint_eq(word_at(2), nc_shared_word(10 + i, NC_SHARED_DROPPED));
		ck_assert_uint_eq(remote->held, 0);
		publish(2, 10 + i, lie[i].at, lie[i].size, lie[i].fraglen);
		ck_assert_int_eq(nc_remote_member_destroy(remote, 2, 10 + i), -EPROTO);
	}
	nc_remote_member_free(remote);
}
END_TEST

START_TEST(test_destroy)
{
	struct nc_unit *unit;

	open_one();
	publish(0, 1, first, 100, PAGE);
	ck_assert_int_eq(nc_remote_member_destroy(remote, 0, 1), 0);
	ck_assert_uint_eq(word_at(0), nc_shared_word(1, NC_SHARED_DROPPED));
	ck_assert_int_eq(nc_remote_member_destroy(remote, 0, 1), -ENOENT);
	/* An id that was returned is dead, whatever the member writes. */
	publish(0, 1, first, 100, PAGE);
	ck_assert_int_eq(hold(0, 1), -ENOENT);
	ck_assert_int_eq(nc_remote_member_destroy(remote, 0, 1), -ENOENT);

	publish(0, 2, first, 100, PAGE);
	ck_assert_int_eq(hold(0, 2), 0);
	ck_assert_int_eq(nc_remote_member_destroy(remote, 0, 2), 0);
	ck_assert_int_eq(nc_remote_member_destroy(remote, 0, 2), -ENOENT);
	ck_assert_uint_eq(word_at(0), nc_shared_word(2, NC_SHARED_BUSY));
	ck_assert_int_eq(hold(0, 2), -ENOENT);
	ck_assert_int_eq(nc_remote_member_hold(remote, 0, 2, true, &unit), 0);
	ck_assert_int_eq(nc_remote_member_release(remote, 0, 2), 0);
	ck_assert_uint_eq(word_at(0), nc_shared_word(2, NC_SHARED_BUSY));
	ck_assert_int_eq(nc_remote_member_release(remote, 0, 2), 0);
	ck_assert_uint_eq(word_at(0), nc_shared_word(2, NC_SHARED_DROPPED));
	ck_assert_int_eq(nc_remote_member_release(remote, 0, 2), -EINVAL);
	nc_remote_member_free(remote);
}
END_TEST

/* The member destroys or overwrites a unit that the owner holds: the holder is not affected. */
START_TEST(test_destroyed_by_member)
{
	struct nc_unit *unit;

	open_one();
	for (unsigned generation = 1; generation < 40; generation++) {
		publish(0, generation, first, 100, PAGE);
		ck_assert_int_eq(hold(0, generation), 0);
		atomic_store(&entry_at(0)->word,
			     generation % 3 == 0   ? nc_shared_word(generation, NC_SHARED_UNLINKED)
			     : generation % 3 == 1 ? nc_shared_word(generation, NC_SHARED_LIVE)
						   : UINT64_MAX);
		ck_assert_int_eq(hold(0, generation), -ENOENT);
		ck_assert_int_eq(nc_remote_member_hold(remote, 0, generation, true, &unit), 0);
		ck_assert_int_eq(nc_remote_member_release(remote, 0, generation), 0);
		/* What the member writes next does not make the id valid again. */
		atomic_store(&entry_at(0)->word, nc_shared_word(generation, NC_SHARED_BUSY));
		ck_assert_int_eq(hold(0, generation), -ENOENT);
		ck_assert_int_eq(nc_remote_member_release(remote, 0, generation), 0);
		ck_assert_uint_eq(word_at(0), nc_shared_word(generation, NC_SHARED_DROPPED));
		ck_assert_int_eq(hold(0, generation), -ENOENT);
	}
	nc_remote_member_free(remote);
}
END_TEST

/* The last generation of a slot can be used, and is dead forever afterwards. */
START_TEST(test_last_generation)
{
	open_one();
	/* Not that early: no member can have used that many. */
	publish(0, NC_ID_GENERATION_MAX, first, 100, PAGE);
	ck_assert_int_eq(hold(0, NC_ID_GENERATION_MAX), -ENOENT);
	remote->admitted -= NC_ID_GENERATION_MAX / 16384;
	ck_assert_int_eq(hold(0, NC_ID_GENERATION_MAX), 0);
	ck_assert_int_eq(nc_remote_member_destroy(remote, 0, NC_ID_GENERATION_MAX), 0);
	ck_assert_int_eq(nc_remote_member_release(remote, 0, NC_ID_GENERATION_MAX), 0);
	ck_assert_int_eq(hold(0, NC_ID_GENERATION_MAX), -ENOENT);
	/* With it the number is spent as well. */
	nc_remote_member_detach(remote);
	ck_assert(!nc_remote_member_vacant(remote));
	nc_remote_member_free(remote);
}
END_TEST

START_TEST(test_detach)
{
	open_one();
	publish(0, 1, first, 100, PAGE);
	publish(1, 1, first + PAGE, 100, PAGE);
	ck_assert_int_eq(hold(0, 1), 0);
	ck_assert_int_eq(nc_remote_member_release(remote, 0, 1), 0);
	nc_remote_member_detach(remote);
	ck_assert_ptr_null(remote->store);
	ck_assert_int_eq(hold(0, 1), -ENOENT);
	ck_assert_int_eq(hold(1, 1), -ENOENT);
	ck_assert_int_eq(nc_remote_member_release(remote, 0, 1), -EINVAL);
	ck_assert_int_eq(nc_remote_member_destroy(remote, 0, 1), -ENOENT);
	nc_remote_member_detach(remote);
	ck_assert(nc_remote_member_vacant(remote));
	nc_remote_member_free(remote);
}
END_TEST

/* A unit that is held when the member dies stays readable and sendable until its release. */
START_TEST(test_detach_while_held)
{
	struct nc_unit *unit;
	int fd;

	open_one();
	publish(0, 1, first, 5000, PAGE);
	publish(1, 1, first + 2 * PAGE, 100, PAGE);
	pattern_fill(remote->store->segment.base + first, 9, 0, 5000);
	ck_assert_int_eq(nc_remote_member_hold(remote, 0, 1, false, &unit), 0);
	fd = remote->store->segment.fd;
	nc_remote_member_detach(remote);
	ck_assert(!nc_remote_member_vacant(remote));
	ck_assert_int_eq(hold(0, 1), -ENOENT);
	ck_assert_int_eq(hold(1, 1), -ENOENT);
	ck_assert_int_eq(nc_remote_member_hold(remote, 0, 1, true, &unit), 0);
	ck_assert_uint_eq(pattern_match(nc_unit_base(unit), 9, 0, 5000), 5000);
	ck_assert_int_eq(nc_remote_member_release(remote, 0, 1), 0);
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
	ck_assert_int_eq(nc_remote_member_release(remote, 0, 1), 0);
	ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
	ck_assert(nc_remote_member_vacant(remote));
	ck_assert_int_eq(nc_remote_member_release(remote, 0, 1), -EINVAL);
	nc_remote_member_free(remote);
}
END_TEST

/* The next member with this number begins above all generations that the last one can have used. */
START_TEST(test_number_again)
{
	open_one();
	ck_assert_uint_eq(remote->units.generation, 1);
	publish(0, 1, first, 100, PAGE);
	publish(1, 17, first, 100, PAGE);
	ck_assert_int_eq(hold(1, 17), 0);
	ck_assert_int_eq(nc_remote_member_release(remote, 1, 17), 0);
	nc_remote_member_detach(remote);
	admit();
	ck_assert_uint_gt(remote->units.generation, 17);
	/* It writes the ids of its predecessor into its table: they stay dead. */
	publish(0, 1, first, 100, PAGE);
	publish(1, 17, first, 100, PAGE);
	ck_assert_int_eq(hold(0, 1), -ENOENT);
	ck_assert_int_eq(hold(1, 17), -ENOENT);
	ck_assert_int_eq(nc_remote_member_destroy(remote, 1, 17), -ENOENT);
	publish(1, remote->units.generation, first, 100, PAGE);
	ck_assert_int_eq(hold(1, remote->units.generation), 0);
	ck_assert_int_eq(nc_remote_member_release(remote, 1, remote->units.generation), 0);
	/* Ids that it only used, without a message to the owner, count as well. */
	publish(5, 1000, first, 100, PAGE);
	nc_remote_member_detach(remote);
	admit();
	ck_assert_uint_gt(remote->units.generation, 1000);
	/* Ids that the table no longer contains do, too. */
	publish(5, 2000, first, 100, PAGE);
	ck_assert_int_eq(nc_remote_member_destroy(remote, 5, 2000), 0);
	atomic_store(&entry_at(5)->word, 0);
	nc_remote_member_detach(remote);
	admit();
	ck_assert_uint_gt(remote->units.generation, 2000);
	/* Impossible generations spend nothing. */
	atomic_store(&entry_at(5)->word, UINT64_MAX);
	atomic_store(&entry_at(6)->word, nc_shared_word(NC_ID_GENERATION_MAX, NC_SHARED_LIVE));
	nc_remote_member_detach(remote);
	ck_assert(nc_remote_member_vacant(remote));
	admit();
	ck_assert_uint_lt(remote->units.generation, 2 * 65536);
	/* A member that had time for that many does. */
	remote->admitted -= NC_ID_GENERATION_MAX / 16384;
	atomic_store(&entry_at(6)->word, nc_shared_word(NC_ID_GENERATION_MAX, NC_SHARED_LIVE));
	nc_remote_member_detach(remote);
	ck_assert(!nc_remote_member_vacant(remote));
	nc_remote_member_free(remote);
}
END_TEST

/* A table of many chunks, of which only a late one was ever used. */
START_TEST(test_sparse_table)
{
	size_t begin;

	remote = nc_remote_member_create(1, 1);
	ck_assert_ptr_nonnull(remote);
	ck_assert_int_eq(nc_remote_member_admit(remote, 1 << 20, 5000, &begin), 0);
	publish(4321, 1, begin, 100, PAGE);
	ck_assert_int_eq(hold(4321, 1), 0);
	ck_assert_int_eq(nc_remote_member_release(remote, 4321, 1), 0);
	nc_remote_member_detach(remote);
	ck_assert(nc_remote_member_vacant(remote));
	nc_remote_member_free(remote);
}
END_TEST

START_TEST(test_admit_refused)
{
	size_t ignored;

	remote = nc_remote_member_create(1, 1);
	ck_assert_int_eq(nc_remote_member_admit(remote, PAGE, SLOTS, &ignored), -EINVAL);
	ck_assert_int_eq(nc_remote_member_admit(remote, 0, SLOTS, &ignored), -EINVAL);
	ck_assert_int_eq(nc_remote_member_admit(remote, SIZE + 1, SLOTS, &ignored), -EINVAL);
	ck_assert(nc_remote_member_vacant(remote));
	nc_remote_member_free(remote);
	nc_remote_member_free(NULL);
}
END_TEST

static _Atomic bool lying;

/* Changes entries all the time; sometimes one is valid, with rising generations. */
static void *lie(void *context)
{
	struct nc_unit_shared *table = context;
	uint64_t state = 81;

	for (unsigned step = 16; atomic_load_explicit(&lying, memory_order_relaxed); step++) {
		struct nc_unit_shared *entry = &table[random_next(&state) % 4];

		atomic_store_explicit(&entry->at, random_next(&state) % 80 * PAGE,
				      memory_order_relaxed);
		atomic_store_explicit(&entry->size,
				      random_next(&state) % 4
					      ? random_next(&state) % (2 * PAGE)
					      : random_next(&state) >> random_next(&state) % 64,
				      memory_order_relaxed);
		atomic_store_explicit(&entry->fraglen,
				      random_next(&state) % 3 ? PAGE : random_next(&state) % 5000,
				      memory_order_relaxed);
		if (step % 8 == 0)
			atomic_store_explicit(&entry->word,
					      nc_shared_word(step / 8 % NC_ID_GENERATION_MAX,
							     random_next(&state) % 4
								     ? NC_SHARED_LIVE
								     : random_next(&state) % 16),
					      memory_order_relaxed);
	}
	return NULL;
}

/* The table changes while it is read: a held unit always lies inside the segment. */
START_TEST(test_lies_while_read)
{
	unsigned held = 0, refused = 0, wanted = scaled(1000);
	uint64_t state = 82;
	pthread_t liar;

	open_one();
	atomic_store(&lying, true);
	ck_assert_int_eq(pthread_create(&liar, NULL, lie, remote->store->segment.base), 0);
	while (held < wanted || refused < wanted) {
		uint32_t slot = (uint32_t)(random_next(&state) % 4);
		unsigned generation = (unsigned)(word_at(slot) >> 4);
		struct nc_unit *unit;
		uint64_t at, extent;
		int error = nc_remote_member_hold(remote, slot, generation, false, &unit);

		if (error) {
			expect(error == -ENOENT || error == -EPROTO);
			refused++;
			if (refused % 64 == 0)
				sched_yield();
			continue;
		}
		at = unit->at;
		extent = unit->layout.extent;
		expect(at >= first && at % PAGE == 0 && at < SIZE);
		expect(extent >= unit->layout.size && extent <= SIZE - at);
		expect(unit->layout.fraglen && unit->layout.size);
		/* Read at both ends: no fault, whatever the table contains now. */
		(void)*(volatile char *)nc_unit_base(unit);
		(void)*(volatile char *)(nc_unit_base(unit) + extent - 1);
		if (held % 5 == 0)
			(void)nc_remote_member_destroy(remote, slot, generation);
		expect(unit->at == at && unit->layout.extent == extent);
		expect(nc_remote_member_release(remote, slot, generation) == 0);
		held++;
	}
	atomic_store(&lying, false);
	pthread_join(liar, NULL);
	ck_assert_uint_eq(remote->held, 0);
	nc_remote_member_detach(remote);
	ck_assert_ptr_null(remote->store);
	nc_remote_member_free(remote);
}
END_TEST

#define REPLACED 60000u /* times: plausible in no time */

/* An entry, as a member writes it that inserts and destroys one unit after the other. */
static void *replace(void *context)
{
	struct nc_unit_shared *entry = context;

	for (unsigned generation = 1; generation <= REPLACED; generation++) {
		atomic_store_explicit(&entry->word, nc_shared_word(generation - 1, NC_SHARED_FREE),
				      memory_order_release);
		atomic_thread_fence(memory_order_release);
		atomic_store_explicit(&entry->at, first, memory_order_relaxed);
		atomic_store_explicit(&entry->size, generation, memory_order_relaxed);
		atomic_store_explicit(&entry->fraglen, PAGE, memory_order_relaxed);
		atomic_store_explicit(&entry->word, nc_shared_word(generation, NC_SHARED_LIVE),
				      memory_order_release);
	}
	atomic_store(&lying, false);
	return NULL;
}

/* The list of a member's units has no unit with the description of the next one. */
START_TEST(test_listed_while_replaced)
{
	unsigned rounds = scaled(200);

	open_one();
	for (uint32_t slot = 0; slot < rounds; slot++) {
		uint32_t own = slot % SLOTS;
		pthread_t member;

		if (slot && own == 0) {
			nc_remote_member_free(remote);
			open_one();
		}
		atomic_store(&lying, true);
		ck_assert_int_eq(pthread_create(&member, NULL, replace, entry_at(own)), 0);
		while (atomic_load_explicit(&lying, memory_order_relaxed)) {
			struct nc_unit_description description;
			uint32_t at = own;
			unsigned generation;

			if (nc_remote_member_next(remote, &at, &generation, &description))
				expect(at == own && description.layout.size == generation);
		}
		pthread_join(member, NULL);
		atomic_store(&entry_at(own)->word, 0);
	}
	nc_remote_member_free(remote);
}
END_TEST

/* Its memory is locked, if the limit permits, and the limit that suffices includes it. */
START_TEST(test_pinned)
{
	struct nc_diagnostics nobody = {0};
	struct nc_pin pin;

	nc_pin_init(&pin, nc_pin_methods, &nobody, 1000, 10);
	remote = nc_remote_member_create(7, 1);
	ck_assert_ptr_nonnull(remote);
	remote->pin = &pin;
	for (unsigned held = 0; held < 2; held++) {
		admit();
		ck_assert_uint_eq(atomic_load(&pin.expected), 1010 + SIZE);
		ck_assert_uint_eq(atomic_load(&pin.locked) + atomic_load(&pin.unlocked), SIZE);
		publish(3, 1 + held, first, 5000, PAGE);
		if (held)
			ck_assert_int_eq(hold(3, 2), 0);
		nc_remote_member_detach(remote);
		if (held) {
			/* A held unit keeps the segment. */
			ck_assert_uint_eq(atomic_load(&pin.expected), 1010 + SIZE);
			ck_assert_int_eq(nc_remote_member_release(remote, 3, 2), 0);
		}
		ck_assert_uint_eq(atomic_load(&pin.expected), 1000);
		ck_assert_uint_eq(atomic_load(&pin.locked) + atomic_load(&pin.unlocked), 0);
	}
	nc_remote_member_free(remote);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_honest);
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_lies);
	tcase_add_test(tcase, test_destroy);
	tcase_add_test(tcase, test_destroyed_by_member);
	tcase_add_test(tcase, test_last_generation);
	tcase_add_test(tcase, test_detach);
	tcase_add_test(tcase, test_detach_while_held);
	tcase_add_test(tcase, test_number_again);
	tcase_add_test(tcase, test_sparse_table);
	tcase_add_test(tcase, test_admit_refused);
	tcase_add_test(tcase, test_lies_while_read);
	tcase_add_test(tcase, test_listed_while_replaced);
	tcase_add_test(tcase, test_pinned);
}

RUN_SUITE("remote-member", fill)
