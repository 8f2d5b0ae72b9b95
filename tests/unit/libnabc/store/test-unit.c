/* SPDX-License-Identifier: MIT */
/*
 * test-unit.c - unit tests of unit.c: slots and generations, the transitions of a
 * unit's word one by one and from many threads.  Owns its tables.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/id.h"
#include "store/unit.h"

#include "suite.h"

START_TEST(test_slots)
{
	struct nc_unit *unit[3000];
	struct nc_units units;

	ck_assert_int_eq(nc_units_init(&units, 3000, 1), 0);
	ck_assert_ptr_null(nc_units_at(&units, 0));
	for (unsigned i = 0; i < 3000; i++) {
		unit[i] = nc_units_take(&units);
		expect(unit[i]);
		expect(unit[i]->slot == i);
		expect(nc_word_generation(nc_unit_word(unit[i])) == 1);
		expect(nc_word_state(nc_unit_word(unit[i])) == NC_UNIT_FILLING);
		expect(nc_word_holds(nc_unit_word(unit[i])) == 0);
		/* Chunks never move. */
		expect(nc_units_at(&units, i) == unit[i] && nc_units_at(&units, 0) == unit[0]);
	}
	ck_assert_uint_eq(units.live, 3000);
	ck_assert_ptr_null(nc_units_take(&units));
	ck_assert_ptr_null(nc_units_at(&units, 3000));
	ck_assert_ptr_null(nc_units_at(&units, UINT32_MAX));
	ck_assert_ptr_null(nc_units_reach(&units, 3000));
	nc_units_give(&units, unit[1234]);
	ck_assert_uint_eq(units.live, 2999);
	ck_assert_int_eq(nc_word_state(nc_unit_word(unit[1234])), NC_UNIT_FREE);
	ck_assert_ptr_eq(nc_units_take(&units), unit[1234]);
	ck_assert_uint_eq(nc_word_generation(nc_unit_word(unit[1234])), 2);
	ck_assert_ptr_null(nc_units_take(&units));
	nc_units_fini(&units);
	nc_units_fini(&units);
}
END_TEST

START_TEST(test_generations_never_repeat)
{
	struct nc_units units;

	ck_assert_int_eq(nc_units_init(&units, 2, 100), 0);
	for (unsigned generation = 100; generation < 400; generation++) {
		struct nc_unit *unit = nc_units_take(&units);

		ck_assert_uint_eq(unit->slot, 0);
		ck_assert_uint_eq(nc_word_generation(nc_unit_word(unit)), generation);
		nc_unit_publish(unit, 0);
		ck_assert_int_eq(nc_unit_unlink(unit, generation), 1);
		nc_units_give(&units, unit);
		/* Old ids are dead. */
		ck_assert_int_eq(nc_unit_hold(unit, generation, false), -ENOENT);
		ck_assert_int_eq(nc_unit_hold(unit, generation, true), -ENOENT);
		ck_assert_int_eq(nc_unit_unlink(unit, generation), -ENOENT);
		ck_assert_int_eq(nc_unit_release(unit, generation), -EINVAL);
	}
	nc_units_fini(&units);
}
END_TEST

/* A slot after its last generation is never used again. */
START_TEST(test_retired)
{
	struct nc_unit *unit;
	struct nc_units units;

	ck_assert_int_eq(nc_units_init(&units, 2, NC_ID_GENERATION_MAX - 1), 0);
	unit = nc_units_take(&units);
	nc_units_give(&units, unit);
	ck_assert_ptr_eq(nc_units_take(&units), unit);
	ck_assert_uint_eq(nc_word_generation(nc_unit_word(unit)), NC_ID_GENERATION_MAX);
	nc_unit_publish(unit, 0);
	ck_assert_int_eq(nc_unit_hold(unit, NC_ID_GENERATION_MAX, false), 0);
	ck_assert_int_eq(nc_unit_unlink(unit, NC_ID_GENERATION_MAX), 0);
	ck_assert_int_eq(nc_unit_release(unit, NC_ID_GENERATION_MAX), 1);
	nc_units_give(&units, unit);
	unit = nc_units_take(&units);
	ck_assert_uint_eq(unit->slot, 1);
	ck_assert_ptr_null(nc_units_take(&units));
	/* And its last id stays dead. */
	unit = nc_units_at(&units, 0);
	ck_assert_int_eq(nc_unit_hold(unit, NC_ID_GENERATION_MAX, true), -ENOENT);
	ck_assert_int_eq(nc_unit_hold(unit, 0, true), -ENOENT);
	nc_units_fini(&units);
}
END_TEST

START_TEST(test_word)
{
	struct nc_unit *unit;
	struct nc_units units;

	ck_assert_int_eq(nc_units_init(&units, 1, 7), 0);
	unit = nc_units_take(&units);
	/* A FILLING unit has no valid id yet. */
	ck_assert_int_eq(nc_unit_hold(unit, 7, false), -ENOENT);
	ck_assert_int_eq(nc_unit_hold(unit, 7, true), -ENOENT);
	ck_assert_int_eq(nc_unit_unlink(unit, 7), -ENOENT);
	ck_assert_int_eq(nc_unit_release(unit, 7), -EINVAL);
	nc_unit_publish(unit, 0);
	/* LIVE */
	ck_assert_int_eq(nc_unit_hold(unit, 6, false), -ENOENT);
	ck_assert_int_eq(nc_unit_hold(unit, 8, false), -ENOENT);
	ck_assert_int_eq(nc_unit_release(unit, 7), -EINVAL);
	ck_assert_int_eq(nc_unit_hold(unit, 7, false), 0);
	ck_assert_int_eq(nc_unit_hold(unit, 7, true), 0);
	ck_assert_uint_eq(nc_word_holds(nc_unit_word(unit)), 2);
	ck_assert_int_eq(nc_unit_release(unit, 6), -EINVAL);
	ck_assert_int_eq(nc_unit_release(unit, 7), 0);
	ck_assert_int_eq(nc_unit_unlink(unit, 8), -ENOENT);
	ck_assert_int_eq(nc_unit_unlink(unit, 7), 0);
	/* UNLINKED, and held */
	ck_assert_int_eq(nc_unit_unlink(unit, 7), -ENOENT);
	ck_assert_int_eq(nc_unit_hold(unit, 7, false), -ENOENT);
	ck_assert_int_eq(nc_unit_hold(unit, 7, true), 0);
	ck_assert_int_eq(nc_unit_release(unit, 7), 0);
	ck_assert_int_eq(nc_unit_release(unit, 7), 1);
	/* No longer held: the thread that saw the 1 reclaims it, no new hold is possible. */
	ck_assert_int_eq(nc_unit_hold(unit, 7, true), -ENOENT);
	ck_assert_int_eq(nc_unit_release(unit, 7), -EINVAL);
	nc_units_fini(&units);
}
END_TEST

START_TEST(test_holds_do_not_overflow)
{
	struct nc_unit *unit;
	struct nc_units units;

	ck_assert_int_eq(nc_units_init(&units, 1, 1), 0);
	unit = nc_units_take(&units);
	atomic_store(&unit->word, nc_word(1, NC_UNIT_LIVE, UINT32_MAX));
	ck_assert_int_eq(nc_unit_hold(unit, 1, false), -ENOENT);
	ck_assert_int_eq(nc_word_state(nc_unit_word(unit)), NC_UNIT_LIVE);
	ck_assert_int_eq(nc_unit_release(unit, 1), 0);
	ck_assert_int_eq(nc_unit_hold(unit, 1, false), 0);
	nc_units_fini(&units);
}
END_TEST

/* A table that mirrors another's is accessed in any order. */
START_TEST(test_reach)
{
	struct nc_unit *unit;
	struct nc_units units;

	ck_assert_int_eq(nc_units_init(&units, 5000, 9), 0);
	unit = nc_units_reach(&units, 4321);
	ck_assert_ptr_nonnull(unit);
	ck_assert_uint_eq(unit->slot, 4321);
	ck_assert_uint_eq(nc_word_generation(nc_unit_word(unit)), 8);
	ck_assert_ptr_eq(nc_units_reach(&units, 4321), unit);
	ck_assert_ptr_eq(nc_units_at(&units, 4321), unit);
	ck_assert_ptr_null(nc_units_at(&units, 0));
	ck_assert_uint_eq(nc_units_reach(&units, 0)->slot, 0);
	nc_units_fini(&units);
}
END_TEST

#define THREADS 4

static struct nc_unit *shared_unit;
static _Atomic unsigned shared_generation, reclaimed, held_dead;
static pthread_barrier_t barrier;

/* Of all threads that hold, release and unlink one unit, exactly one must reclaim it. */
static void *hold_and_unlink(void *context)
{
	unsigned rounds = *(unsigned *)context;

	for (unsigned round = 0; round < rounds; round++) {
		unsigned generation;

		pthread_barrier_wait(&barrier);
		generation = atomic_load(&shared_generation);
		for (unsigned i = 0; i < 4; i++) {
			if (nc_unit_hold(shared_unit, generation, false))
				continue;
			if (nc_word_generation(nc_unit_word(shared_unit)) != generation)
				atomic_fetch_add(&held_dead, 1);
			if (i == 2 && nc_unit_unlink(shared_unit, generation) == 1)
				atomic_fetch_add(&held_dead, 1);
			if (nc_unit_release(shared_unit, generation) == 1)
				atomic_fetch_add(&reclaimed, 1);
		}
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

START_TEST(test_threads)
{
	unsigned rounds = scaled(5000);
	pthread_t threads[THREADS];
	struct nc_units units;

	ck_assert_int_eq(nc_units_init(&units, 1, 1), 0);
	ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
	atomic_store(&reclaimed, 0);
	atomic_store(&held_dead, 0);
	shared_unit = nc_units_take(&units);
	nc_units_give(&units, shared_unit);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, hold_and_unlink, &rounds), 0);
	for (unsigned round = 0; round < rounds; round++) {
		struct nc_unit *unit = nc_units_take(&units);

		expect(unit == shared_unit);
		nc_unit_publish(unit, 0);
		atomic_store(&shared_generation, nc_word_generation(nc_unit_word(unit)));
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		expect(atomic_load(&reclaimed) == round + 1);
		expect(nc_word_holds(nc_unit_word(unit)) == 0);
		nc_units_give(&units, unit);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(atomic_load(&held_dead), 0);
	pthread_barrier_destroy(&barrier);
	nc_units_fini(&units);
}
END_TEST

/* --- moving ----------------------------------------------------------------- */

START_TEST(test_move_steps)
{
	struct nc_unit *unit;
	struct nc_units units;

	ck_assert_int_eq(nc_units_init(&units, 1, 7), 0);
	unit = nc_units_take(&units);
	/* Only a live unit that only the mover holds. */
	ck_assert(!nc_unit_move_begin(unit, 7));
	nc_unit_publish(unit, 0);
	ck_assert(!nc_unit_move_begin(unit, 7));
	ck_assert_int_eq(nc_unit_hold(unit, 7, false), 0);
	ck_assert(!nc_unit_move_begin(unit, 8));
	ck_assert_int_eq(nc_unit_hold(unit, 7, false), 0);
	ck_assert(!nc_unit_move_begin(unit, 7));
	ck_assert_int_eq(nc_unit_release(unit, 7), 0);
	ck_assert(nc_unit_move_begin(unit, 7));
	/* During the move other ids are refused at once, and no thread holds it. */
	ck_assert_int_eq(nc_unit_hold(unit, 6, false), -ENOENT);
	ck_assert_int_eq(nc_unit_release(unit, 7), -EINVAL);
	ck_assert(!nc_unit_unlink_idle(unit));
	nc_unit_move_end(unit, 7);
	ck_assert_int_eq(nc_unit_release(unit, 7), -EINVAL);
	ck_assert_int_eq(nc_unit_hold(unit, 7, false), 0);
	ck_assert_int_eq(nc_unit_unlink(unit, 7), 0);
	ck_assert(!nc_unit_move_begin(unit, 7));
	ck_assert_int_eq(nc_unit_release(unit, 7), 1);
	ck_assert(!nc_unit_unlink_idle(unit));
	nc_units_fini(&units);
}
END_TEST

static _Atomic pid_t waiter;

static void *hold_once(void *context)
{
	static int result;

	atomic_store(&waiter, (pid_t)syscall(SYS_gettid));
	result = nc_unit_hold(context, 7, false);
	return &result;
}

static void *unlink_once(void *context)
{
	static int result;

	atomic_store(&waiter, (pid_t)syscall(SYS_gettid));
	result = nc_unit_unlink(context, 7);
	return &result;
}

/* Whether a thread sleeps in the kernel: S in its stat, behind its name. */
static bool sleeps(pid_t thread)
{
	char path[64], line[200] = "";
	const char *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	file = thread ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	(void)!fgets(line, sizeof(line), file);
	fclose(file);
	end = strrchr(line, ')');
	return end && end[1] == ' ' && end[2] == 'S';
}

/*
 * A thread that wants to hold a unit during its move sleeps until the end: if it ran, and had a
 * real-time priority, the thread that moves the unit would not run on this processor.
 */
START_TEST(test_move_is_waited_for)
{
	void *(*const steps[])(void *) = {hold_once, unlink_once};
	struct nc_unit *unit;
	struct nc_units units;
	unsigned asleep;
	pthread_t thread;
	void *result;

	ck_assert_int_eq(nc_units_init(&units, 1, 7), 0);
	unit = nc_units_take(&units);
	nc_unit_publish(unit, 0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(nc_unit_hold(unit, 7, false), 0);
		ck_assert(nc_unit_move_begin(unit, 7));
		atomic_store(&waiter, 0);
		ck_assert_int_eq(pthread_create(&thread, NULL, steps[i], unit), 0);
		asleep = 0;
		for (unsigned looks = 0; looks < 200000 && asleep < 20; looks++) {
			asleep += sleeps(atomic_load(&waiter));
			sched_yield();
		}
		ck_assert_uint_eq(asleep, 20);
		/* The mark of the sleeper is no hold. */
		ck_assert_int_eq(nc_unit_release(unit, 7), -EINVAL);
		ck_assert_int_eq(nc_unit_hold(unit, 6, false), -ENOENT);
		ck_assert(!nc_unit_held(unit, 7));
		nc_unit_move_end(unit, 7);
		ck_assert_int_eq(pthread_join(thread, &result), 0);
		ck_assert_int_eq(*(int *)result, (int)i);
		if (!i)
			ck_assert_int_eq(nc_unit_release(unit, 7), 0);
	}
	nc_units_fini(&units);
}
END_TEST

/* Places with bytes that name their place: both change together or not at all. */
static uint64_t places[2][64];
static _Atomic unsigned torn, looked;
static _Atomic unsigned looking;

static void *look(void *context)
{
	struct nc_unit *unit = context;

	for (unsigned i = scaled(100000); i; i--) {
		uint64_t at;

		if (nc_unit_hold(unit, 1, false)) {
			atomic_fetch_add(&torn, 1);
			continue;
		}
		at = unit->at;
		if (unit->store != (struct nc_store *)(void *)places[at / 64] ||
		    places[at / 64][at % 64] != at)
			atomic_fetch_add(&torn, 1);
		/* A held unit does not move. */
		if (unit->at != at)
			atomic_fetch_add(&torn, 1);
		atomic_fetch_add(&looked, 1);
		if (nc_unit_release(unit, 1))
			atomic_fetch_add(&torn, 1);
	}
	atomic_fetch_sub(&looking, 1);
	return NULL;
}

START_TEST(test_move_under_holders)
{
	unsigned i;
	pthread_t threads[THREADS];
	struct nc_unit *unit;
	struct nc_units units;

	for (i = 0; i < 128; i++)
		places[i / 64][i % 64] = i;
	ck_assert_int_eq(nc_units_init(&units, 1, 1), 0);
	unit = nc_units_take(&units);
	unit->store = (struct nc_store *)(void *)places[0];
	unit->at = 0;
	nc_unit_publish(unit, 0);
	atomic_store(&looking, THREADS);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, look, unit), 0);
	for (i = 0; atomic_load(&looking); i++) {
		expect(nc_unit_hold(unit, 1, false) == 0);
		if (nc_unit_move_begin(unit, 1)) {
			unit->at = i % 128;
			unit->store = (struct nc_store *)(void *)places[unit->at / 64];
			nc_unit_move_end(unit, 1);
		} else {
			expect(nc_unit_release(unit, 1) == 0);
		}
		/*
		 * Valgrind stops threads after a number of blocks, which might always be during a
		 * move.
		 */
		sched_yield();
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(atomic_load(&torn), 0);
	ck_assert_uint_eq(atomic_load(&looked), THREADS * scaled(100000));
	/* The holds may have overlapped all the time; now all are released. */
	ck_assert_int_eq(nc_unit_hold(unit, 1, false), 0);
	ck_assert(nc_unit_move_begin(unit, 1));
	nc_unit_move_end(unit, 1);
	unit->store = NULL;
	nc_units_fini(&units);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_slots);
	tcase_add_test(tcase, test_generations_never_repeat);
	tcase_add_test(tcase, test_retired);
	tcase_add_test(tcase, test_word);
	tcase_add_test(tcase, test_holds_do_not_overflow);
	tcase_add_test(tcase, test_reach);
	tcase_add_test(tcase, test_threads);
	tcase_add_test(tcase, test_move_steps);
	tcase_add_test(tcase, test_move_is_waited_for);
	tcase_add_test(tcase, test_move_under_holders);
}

RUN_SUITE("unit", fill)
