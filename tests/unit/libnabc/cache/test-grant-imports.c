/* SPDX-License-Identifier: MIT */
/*
 * test-grant-imports.c - unit tests of grant.c: to which member each unit is exported
 * and charged, how it is returned, and what stays when its creator exits.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/hash-table.h"
#include "base/id.h"
#include "cache/grant.h"
#include "os/segment.h"
#include "store/revocation-map.h"

#include "grant-fixture.h"
#include "process-fixture.h"
#include "suite.h"

START_TEST(test_return)
{
	struct nc_subject subject;
	uint32_t slot, again;

	open_grants();
	join(&subject, 0, 1000, PAGE);
	ck_assert_int_eq(nc_grants_return(&grants, &subject, 0), -EINVAL);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, &subject, NULL, 100, 64), 0);
	ck_assert_int_eq(export_unit(5, &subject, &slot), 0);
	for (uint32_t bad = 0; bad < NC_REVOCATION_MAP_SLOTS; bad++)
		expect(bad == slot || nc_grants_return(&grants, &subject, bad) == -EINVAL);
	ck_assert_int_eq(nc_grants_return(&grants, &subject, NC_REVOCATION_MAP_SLOTS), -EINVAL);
	ck_assert_int_eq(nc_grants_return(&grants, &subject, UINT32_MAX), -EINVAL);
	ck_assert_int_eq(nc_grants_return(&grants, &subject, slot), 0);
	ck_assert_int_eq(nc_grants_return(&grants, &subject, slot), -EINVAL);
	/* A revoked export can be returned, too. */
	ck_assert_int_eq(export_unit(5, &subject, &again), 0);
	nc_grants_drop(&grants, 5);
	ck_assert_int_eq(nc_grants_return(&grants, &subject, again), 0);
	part(&subject);
	close_grants();
}
END_TEST

/* A member that returns nothing has at most 4096 exports; this does not limit others. */
START_TEST(test_many_imports)
{
	struct nc_subject greedy, other;
	struct nc_grantee all = user(1000);
	unsigned descriptors;
	uint32_t slot;

	open_grants();
	join(&greedy, 0, 1000, PAGE);
	join(&other, 0, 1000, PAGE);
	for (size_t id = 1; id <= NC_REVOCATION_MAP_SLOTS + 1; id++) {
		expect(nc_grants_enter(&grants, id, NULL, NULL, 100, 64) == 0);
		expect(give(id, all) == 0);
	}
	for (size_t id = 1; id <= NC_REVOCATION_MAP_SLOTS; id++)
		expect(export_unit(id, &greedy, &slot) == 0);
	descriptors = open_descriptors();
	ck_assert_int_eq(export_unit(NC_REVOCATION_MAP_SLOTS + 1, &greedy, &slot), -ENOSPC);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	ck_assert_int_eq(export_unit(NC_REVOCATION_MAP_SLOTS + 1, &other, &slot), 0);
	/* A revoked export occupies its slot until it is returned. */
	nc_grants_drop(&grants, 17);
	ck_assert_int_eq(export_unit(NC_REVOCATION_MAP_SLOTS + 1, &greedy, &slot), -ENOSPC);
	ck_assert_int_eq(nc_grants_return(&grants, &greedy, 16), 0);
	ck_assert_int_eq(export_unit(NC_REVOCATION_MAP_SLOTS + 1, &greedy, &slot), 0);
	ck_assert_uint_eq(slot, 16);
	part(&greedy);
	part(&other);
	close_grants();
}
END_TEST

START_TEST(test_part)
{
	struct nc_segment copy = frozen(PAGE);
	struct nc_subject maker, other;
	size_t own = nc_id(3, 7, 1), sealed[3] = {nc_id(0, 1, 1), nc_id(0, 2, 1), nc_id(0, 3, 9)};
	uint32_t slot, mine;
	bool made;

	descriptors_before = open_descriptors() - 1;
	nc_grants_init(&grants, 16 * PAGE);
	orphan_count = 0;
	join(&maker, 3, 1000, 10 * PAGE);
	join(&other, 0, 1001, 10 * PAGE);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(nc_grants_enter(&grants, sealed[i], &maker, NULL, 100, 64), 0);
	ck_assert_int_eq(nc_grants_enter(&grants, own, &maker, &copy, 100, 64), 0);
	ck_assert_int_eq(give(own, user(1001)), 0);
	ck_assert_int_eq(give(sealed[1], user(1001)), 0);
	ck_assert_int_eq(export_unit(own, &other, &mine), 0);
	ck_assert_int_eq(export_unit(sealed[1], &other, &slot), 0);
	ck_assert_int_eq(export_unit(sealed[1], &maker, &(uint32_t){0}), 0);
	/* Copies of units in its segment are dropped with it; units that it sealed stay. */
	part(&maker);
	ck_assert_uint_eq(orphan_count, 3);
	ck_assert_uint_eq(orphans[0] ^ orphans[1] ^ orphans[2], sealed[0] ^ sealed[1] ^ sealed[2]);
	ck_assert_uint_eq(shown(&other, mine), NC_REVOCATION_DESTROYED);
	ck_assert_uint_eq(shown(&other, slot), sealed[1]);
	ck_assert(!nc_grants_known(&grants, own, NULL, &made));
	ck_assert_int_eq(export_unit(sealed[1], &other, &mine), 0);
	ck_assert_int_eq(export_unit(sealed[0], &other, &mine), -EACCES);
	/* A member without units leaves nothing behind. */
	orphan_count = 0;
	part(&other);
	ck_assert_uint_eq(orphan_count, 0);
	ck_assert_uint_eq(grants.records.count, 3);
	close_grants();
}
END_TEST

START_TEST(test_list)
{
	struct nc_subject maker, other;
	size_t ids[300], cursor = 0, seen = 0;
	unsigned count;

	open_grants();
	join(&maker, 0, 1000, SIZE_MAX / 2);
	join(&other, 0, 1001, PAGE);
	for (size_t i = 0; i < 250; i++) {
		size_t id = (i * 7919 % 250 + 1) << 28 | 1;

		expect(nc_grants_enter(&grants, id, i % 2 ? &maker : NULL, NULL, 1, 0) == 0);
	}
	ck_assert_uint_eq(nc_grants_list(&grants, &other, 0, ids, 300), 0);
	ck_assert_uint_eq(nc_grants_list(&grants, &maker, 0, ids, 0), 0);
	ck_assert_uint_eq(nc_grants_list(&grants, &maker, SIZE_MAX, ids, 10), 0);
	/* All of them, in order, each once, for any number of them in a step. */
	for (unsigned step = 1; step < 200; step += 33) {
		cursor = seen = 0;
		while ((count = nc_grants_list(&grants, &maker, cursor, ids, step))) {
			for (unsigned i = 0; i < count; i++) {
				expect(ids[i] > cursor);
				cursor = ids[i];
			}
			seen += count;
		}
		ck_assert_uint_eq(seen, 125);
	}
	ck_assert_int_eq(give(1 << 28 | 1, user(1001)), 0);
	ck_assert_uint_eq(nc_grants_list(&grants, &other, 0, ids, 300), 1);
	ck_assert_uint_eq(ids[0], 1 << 28 | 1);
	other.operates = true;
	ck_assert_uint_eq(nc_grants_list(&grants, &other, 0, ids, 300), 250);
	part(&other);
	orphan_count = 0;
	part(&maker);
	ck_assert_uint_eq(orphan_count, 125);
	close_grants();
}
END_TEST

/* Units and processes cost descriptors: each member has a share, and all together have a limit. */
START_TEST(test_shares)
{
	struct nc_subject makers[6];
	struct rlimit limit;
	size_t id = 0, first = 0;
	unsigned made = 0;
	int error = 0;

	open_grants();
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 80;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (unsigned i = 0; i < 6; i++)
		join(&makers[i], 0, 1000 + i, SIZE_MAX / 2);
	ck_assert(!nc_grants_orphan(&grants, &id));
	for (unsigned i = 0; i < 5; i++) {
		while ((error = nc_grants_enter(&grants, ++made, &makers[i], NULL, 1, 0)) == 0)
			ck_assert_int_eq(nc_grants_room(&grants, &makers[i], 1),
					 makers[i].descriptors < 10 ? made < 40 ? 0 : -EMFILE
								    : -EDQUOT);
		made--;
		ck_assert_int_eq(error, i < 4 ? -EDQUOT : -EMFILE);
		ck_assert_uint_eq(makers[i].descriptors, i < 4 ? 10 : 0);
	}
	ck_assert_uint_eq(made, 40);
	/* The owner's own units are not counted. */
	ck_assert_int_eq(nc_grants_enter(&grants, 1000, NULL, NULL, 1, 0), 0);
	if (has_pidfds()) {
		ck_assert_int_eq(give(1000, process(getpid())), 0);
		ck_assert_int_eq(give(1, process(getpid())), -EDQUOT);
		nc_grants_drop(&grants, 2);
		ck_assert_int_eq(give(1, process(getpid())), 0);
		ck_assert_int_eq(give(1, process(getpid())), 0);
		ck_assert_uint_eq(makers[0].descriptors, 10);
		nc_grants_drop(&grants, 1);
		ck_assert_uint_eq(makers[0].descriptors, 8);
	}
	/* Orphaned units still count, and the oldest of them is evicted first. */
	orphan_count = 0;
	part(&makers[2]);
	first = orphans[0];
	part(&makers[1]);
	ck_assert_uint_eq(grants.descriptors, has_pidfds() ? 38 : 40);
	for (unsigned i = 0; i < 20; i++) {
		ck_assert(nc_grants_orphan(&grants, &id));
		ck_assert_uint_eq(id, i ? orphans[i] : first);
		nc_grants_drop(&grants, id);
	}
	ck_assert(!nc_grants_orphan(&grants, &id));
	ck_assert_int_eq(nc_grants_room(&grants, &makers[4], 1), 0);
	part(&makers[0]);
	part(&makers[3]);
	part(&makers[4]);
	part(&makers[5]);
	for (id = 1; id <= 1000; id++)
		nc_grants_drop(&grants, id);
	ck_assert_uint_eq(grants.descriptors, 0);
	close_grants();
}
END_TEST

/* Without descriptors: refused, and the state is unchanged. */
START_TEST(test_no_descriptors)
{
	struct nc_subject subject;
	uint32_t slot = 0;

	open_grants();
	join(&subject, 0, 1000, PAGE);
	ck_assert_int_eq(nc_grants_enter(&grants, 5, &subject, NULL, 100, 64), 0);
	/* One descriptor is enough for the unit, not for the revocation map. */
	for (unsigned spare = 0; spare < 3; spare++) {
		hog_descriptors(1024, spare);
		ck_assert_int_eq(export_unit(5, &subject, &slot), spare < 2 ? -EMFILE : 0);
		free_descriptors();
	}
	ck_assert_uint_eq(shown(&subject, slot), 5);
	ck_assert_int_eq(export_unit(5, &subject, &slot), 0);
	part(&subject);
	close_grants();
}
END_TEST

/* --- many threads ------------------------------------------------------------ */

static struct nc_subject crowd[3];

static void *use_grants(void *context)
{
	unsigned number = (unsigned)(uintptr_t)context;
	uint64_t state = number + 1;

	for (unsigned i = 0; i < scaled(20000); i++) {
		size_t id = random_next(&state) % 20 + 1;
		struct nc_grantee to = user(1000 + (unsigned)(random_next(&state) % 3));
		uint32_t slot;
		size_t ids[8];
		bool made;

		switch (random_next(&state) % 8) {
		case 0:
			(void)nc_grants_enter(&grants, id, &crowd[number], NULL, 100, 64);
			break;
		case 1:
			(void)nc_grants_add(&grants, id, &to);
			break;
		case 2:
			(void)nc_grants_revoke(&grants, id, &to);
			break;
		case 3:
			nc_grants_drop(&grants, id);
			break;
		case 4:
			(void)nc_grants_list(&grants, &crowd[number], 0, ids, 8);
			break;
		case 5:
			(void)nc_grants_known(&grants, id, &crowd[number], &made);
			break;
		case 6:
			(void)nc_grants_return(&grants, &crowd[number], (uint32_t)id);
			break;
		default:
			(void)export_unit(id, &crowd[number], &slot);
		}
	}
	return NULL;
}

START_TEST(test_threads)
{
	pthread_t threads[3];

	open_grants();
	for (unsigned i = 0; i < 3; i++)
		join(&crowd[i], 0, 1000 + i, SIZE_MAX / 2);
	for (uintptr_t i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, use_grants, (void *)i), 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (size_t id = 1; id <= 20; id++)
		nc_grants_drop(&grants, id);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(crowd[i].sealed, 0);
		part(&crowd[i]);
	}
	ck_assert_uint_eq(grants.records.count, 0);
	ck_assert_uint_eq(grants.count, 0);
	close_grants();
}
END_TEST

/* The owner's copies are limited like those of a member; sealed units cost it no copy. */
START_TEST(test_owners_quota)
{
	struct nc_segment copy, other;

	nc_grants_init(&grants, 4 * PAGE);
	ck_assert_int_eq(nc_segment_create(&copy, 3 * PAGE, false, false), 0);
	ck_assert_int_eq(nc_segment_create(&other, 2 * PAGE, false, false), 0);
	ck_assert_int_eq(nc_grants_enter(&grants, 1, NULL, &copy, 3 * PAGE, PAGE), 0);
	ck_assert_int_eq(nc_grants_enter(&grants, 2, NULL, &other, 2 * PAGE, PAGE), -EDQUOT);
	ck_assert_int_eq(nc_grants_enter(&grants, 3, NULL, NULL, 100 * PAGE, PAGE), 0);
	nc_grants_drop(&grants, 3);
	nc_grants_drop(&grants, 1);
	ck_assert_int_eq(nc_grants_enter(&grants, 2, NULL, &other, 2 * PAGE, PAGE), 0);
	nc_grants_drop(&grants, 2);
	ck_assert_uint_eq(grants.copied, 0);
	nc_grants_fini(&grants);
}
END_TEST

static void *drop_all(void *context)
{
	(void)context;
	for (size_t id = 1; id <= 40; id++)
		nc_grants_drop(&grants, id);
	return NULL;
}

static void ignore_orphan(void *context, size_t id)
{
	(void)context;
	(void)id;
}

/* One thread drops its units while another one detaches it: it may be freed at once. */
START_TEST(test_part_and_drop)
{
	pthread_t thread;

	open_grants();
	for (unsigned i = 0; i < scaled(500); i++) {
		struct nc_subject *maker = must_alloc(sizeof(*maker));

		join(maker, 0, 1000, SIZE_MAX / 2);
		for (size_t id = 1; id <= 40; id++)
			expect(nc_grants_enter(&grants, id, maker, NULL, 100, 64) == 0);
		ck_assert_int_eq(pthread_create(&thread, NULL, drop_all, NULL), 0);
		nc_grants_part(&grants, maker, ignore_orphan, NULL);
		memset(maker, 0xee, sizeof(*maker));
		free(maker);
		pthread_join(thread, NULL);
		ck_assert_uint_eq(grants.records.count, 0);
		ck_assert_uint_eq(grants.descriptors, 0);
	}
	close_grants();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_owners_quota);
	tcase_add_test(tcase, test_return);
	tcase_add_test(tcase, test_many_imports);
	tcase_add_test(tcase, test_part);
	tcase_add_test(tcase, test_list);
	tcase_add_test(tcase, test_shares);
	tcase_add_test(tcase, test_no_descriptors);
	tcase_add_test(tcase, test_threads);
	tcase_add_test(tcase, test_part_and_drop);
}

RUN_SUITE("grant-imports", fill)
