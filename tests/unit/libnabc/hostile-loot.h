/* SPDX-License-Identifier: MIT */
/* hostile-loot.h - the units of a victim, and what a hostile member may try on them. */
#ifndef HOSTILE_LOOT_H
#define HOSTILE_LOOT_H

#include <nabc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hostile-fixture.h"
#include "nabc-fixture.h"
#include "suite.h"

#define VICTIM 4001
#define HOSTILE 4002
#define NOBODY 65534

static const struct NC_cache_options options =
	NC_CACHE_OPTIONS_INIT(.memory = 16 * MIB, .member_size = 256 << 10,
			      .flags = NC_CACHE_NO_URING);

/* The targets: units of the owner, then of another member. */
enum { OWN_RECYCLED, OWN_APPENDED, OWN_SEALED, RECYCLED, SEALED, GRANTED, LOOT };
static size_t loot[LOOT];
static struct member victim;

/* Sealed, so that it can be granted and its content is frozen. */
static inline int be_victim(void)
{
	NC_cache *in = NC_cache_attach(path, &(struct NC_attach_options)NC_ATTACH_OPTIONS_INIT());
	size_t ids[3];

	CHILD(in);
	ids[0] = child_insert(in, RECYCLED, 5000, NC_KIND_RECYCLED);
	ids[1] = child_insert(in, SEALED, 5000, NC_KIND_SEALED);
	ids[2] = child_insert(in, GRANTED, 5000, NC_KIND_RECYCLED);
	CHILD(ids[0] && ids[1] && ids[2]);
	CHILD(NC_grant(in, ids[2], NC_USER, 4999) == 0);
	CHILD(said(ids, 3));
	stay();
	CHILD(holds_pattern(in, ids[0], RECYCLED, 5000));
	CHILD(holds_pattern(in, ids[1], SEALED, 5000));
	return 0;
}

static inline void open_loot_with(unsigned flags)
{
	static const enum NC_kind kinds[] = {NC_KIND_RECYCLED, NC_KIND_APPENDED, NC_KIND_SEALED};
	struct NC_cache_options these = options;

	these.flags |= flags;
	open_hostile(&these);
	for (unsigned i = 0; i < 3; i++) {
		NC_handle handle;
		char data[5000];

		pattern_fill(data, i, 0, sizeof(data));
		ck_assert_int_eq(NC_unit_alloc(NULL, &handle, sizeof(data), 0, kinds[i], 0), 0);
		ck_assert_int_eq(NC_write(&handle, data, sizeof(data), 0), sizeof(data));
		ck_assert_int_eq(NC_insert(&handle), 0);
		loot[i] = NC_cache_id(&handle);
		NC_free(&handle);
	}
	ck_assert_int_eq(NC_grant(cache, loot[OWN_SEALED], NC_USER, 4999), 0);
	victim = start_member(be_victim, VICTIM);
	hear_ids(&victim, loot + RECYCLED, 3);
}

static inline void open_loot(void)
{
	open_loot_with(0);
}

static inline void close_loot(void)
{
	for (unsigned i = 0; i < LOOT; i++)
		ck_assert_msg(holds_pattern(cache, loot[i], i, 5000), "%u", i);
	end_member(&victim);
	serve_until_alone();
	close_hostile();
}

static inline bool skip_unless_root(const char *what)
{
	if (geteuid() == 0)
		return false;
	printf("hostile: %s: skipped: only root can be other users\n", what);
	fflush(stdout);
	return true;
}

#endif
