/* SPDX-License-Identifier: MIT */
/*
 * test-unit-checksum-make.c - unit tests of unit-checksum.c: checksums that are computed
 * when first needed, at once or in steps, by one thread or by many.
 */
#include <errno.h>
#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/fragment.h"
#include "store/unit-checksum.h"
#include "store/unit.h"

#include "suite.h"
#include "unit-checksum-fixture.h"

/* The first call that needs sums computes all of them; later changes are found. */
START_TEST(test_first_needed)
{
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < SHAPES; i++) {
			size_t size = shapes[i].size, fraglen;
			unsigned char *bytes;
			struct nc_unit unit;

			make_unit(&unit, size, shapes[i].fraglen, i);
			ck_assert_int_eq(nc_unit_checksum_init(&unit, kinds[k]), 0);
			bytes = flat(&unit);
			fraglen = unit.layout.fraglen;
			/* The other kind, no bytes, and parts of fragments need no sums. */
			check_range(&unit, bytes, 0, 0);
			check_range(&unit, bytes, size, 0);
			if (fraglen > 2 && size > 2)
				check_range(&unit, bytes, 1, 1);
			(void)nc_unit_checksum_range(&unit, kinds[!k], 0, size);
			ck_assert(!nc_unit_checksum_kept(&unit));
			ck_assert(nc_unit_checksum_reads(&unit, kinds[k], 0, size));
			ck_assert_int_eq(nc_unit_checksum_verify(&unit, 0, SIZE_MAX), -ENODATA);
			if (i % 2)
				ck_assert_int_eq(nc_unit_checksum_make(&unit), 1);
			/* The last fragment, whole or not. */
			check_range(&unit, bytes, (size - 1) / fraglen * fraglen,
				    size - (size - 1) / fraglen * fraglen);
			ck_assert(nc_unit_checksum_kept(&unit));
			ck_assert(!nc_unit_checksum_reads(&unit, kinds[k], 0, size));
			ck_assert_int_eq(nc_unit_checksum_make(&unit), 0);
			ck_assert_int_gt(nc_unit_checksum_verify(&unit, 0, SIZE_MAX), 0);
			*byte_at(&unit, size / 2) ^= 1;
			ck_assert_int_eq(nc_unit_checksum_make(&unit), 0);
			ck_assert_int_eq(nc_unit_checksum_verify(&unit, 0, SIZE_MAX), -EBADMSG);
			ck_assert_uint_eq(nc_unit_checksum_range(&unit, kinds[k], 0, size),
					  sum_of(kinds[k], bytes, size));
			free(bytes);
			free_unit(&unit);
		}
}
END_TEST

/* In steps, as the scrubber does; the first to publish wins. */
START_TEST(test_draft)
{
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < SHAPES; i++) {
			size_t at = 0, fragments;
			struct nc_unit unit;
			void *draft, *late;

			make_unit(&unit, shapes[i].size, shapes[i].fraglen, i);
			ck_assert_int_eq(nc_unit_checksum_init(&unit, kinds[k]), 0);
			fragments = unit.layout.fragments;
			draft = nc_unit_checksum_draft(&unit);
			late = nc_unit_checksum_draft(&unit);
			ck_assert(draft && late);
			while (at < fragments) {
				size_t done = nc_unit_checksum_draft_step(&unit, draft, at,
									  3 * unit.layout.fraglen);

				ck_assert(done == 3 || at + done == fragments);
				at += done;
			}
			*byte_at(&unit, 0) ^= 1;
			ck_assert_uint_eq(nc_unit_checksum_draft_step(&unit, late, 0, SIZE_MAX),
					  fragments);
			*byte_at(&unit, 0) ^= 1;
			ck_assert(!nc_unit_checksum_kept(&unit));
			nc_unit_checksum_publish(&unit, draft);
			ck_assert(nc_unit_checksum_kept(&unit));
			nc_unit_checksum_publish(&unit, late);
			ck_assert_int_eq(nc_unit_checksum_verify(&unit, 0, SIZE_MAX),
					 (ssize_t)fragments);
			free_unit(&unit);
		}
}
END_TEST

#define THREADS 4u

struct crowd {
	pthread_barrier_t begin, end;
	struct nc_unit unit;
	enum NC_checksum_kind kind;
	uint32_t expected;
	_Atomic unsigned wrong;
	_Atomic bool stop;
};

static void *need_sums(void *context)
{
	struct crowd *crowd = context;
	struct nc_unit *unit = &crowd->unit;

	for (;;) {
		pthread_barrier_wait(&crowd->begin);
		if (crowd->stop)
			return NULL;
		if (nc_unit_checksum_range(unit, crowd->kind, 0, unit->layout.size) !=
		    crowd->expected)
			crowd->wrong++;
		if (nc_unit_checksum_make(unit) < 0)
			crowd->wrong++;
		/* Its own sums may meet those that another thread is just storing. */
		if (nc_unit_checksum_kept(unit) &&
		    nc_unit_checksum_verify(unit, 0, SIZE_MAX) != (ssize_t)unit->layout.fragments)
			crowd->wrong++;
		pthread_barrier_wait(&crowd->end);
	}
}

/* All at once: the same result for each, one array, nothing lost (memory checkers). */
START_TEST(test_threads)
{
	pthread_t threads[THREADS];
	struct crowd crowd = {0};

	ck_assert_int_eq(pthread_barrier_init(&crowd.begin, NULL, THREADS + 1), 0);
	ck_assert_int_eq(pthread_barrier_init(&crowd.end, NULL, THREADS + 1), 0);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, need_sums, &crowd), 0);
	for (unsigned round = 0; round < scaled(300); round++) {
		unsigned shape = round % SHAPES;
		unsigned char *bytes;

		make_unit(&crowd.unit, shapes[shape].size, shapes[shape].fraglen, round);
		crowd.kind = kinds[round / SHAPES % 2];
		ck_assert_int_eq(nc_unit_checksum_init(&crowd.unit, crowd.kind), 0);
		bytes = flat(&crowd.unit);
		crowd.expected = sum_of(crowd.kind, bytes, crowd.unit.layout.size);
		pthread_barrier_wait(&crowd.begin);
		pthread_barrier_wait(&crowd.end);
		ck_assert_uint_eq(crowd.wrong, 0);
		ck_assert(nc_unit_checksum_kept(&crowd.unit));
		free(bytes);
		free_unit(&crowd.unit);
	}
	crowd.stop = true;
	pthread_barrier_wait(&crowd.begin);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	pthread_barrier_destroy(&crowd.begin);
	pthread_barrier_destroy(&crowd.end);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_first_needed);
	tcase_add_test(tcase, test_draft);
	tcase_add_test(tcase, test_threads);
}

RUN_SUITE("unit-checksum-make", fill)
