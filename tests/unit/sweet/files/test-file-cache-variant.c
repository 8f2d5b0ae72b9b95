/* SPDX-License-Identifier: MIT */
/*
 * test-file-cache-variant.c - unit tests of file-cache-variant.c, and of variants in a
 * turn (file-cache-tick.c): made once for a version, shared, and freed with it.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <nabc.h>

#include "base/slice.h"
#include "files/compressor.h"
#include "files/docroot.h"
#include "files/file-cache-tick.h"
#include "coding/encoder.h"
#include "files/file-cache.h"
#include "files/filehead.h"
#include "http/accept.h"

#include "file-cache-fixture.h"
#include "loop-fixture.h"
#include "suite.h"

#define SIZE 50000
#define SECOND UINT64_C(1000000000)

static struct compressor *compressor;
static struct file_cache_tick *turn;
static enum coding coding;

static void open_turn(void *unused)
{
	(void)unused;
	turn = file_cache_tick_open(runners[0].loop);
}

/* Returns false if no coding is built in. */
static bool open_variants(uint64_t revalidate_ns)
{
	while (!encoder_of(coding) && coding + 1 < CODINGS)
		coding++;
	compressor = compressor_open();
	ck_assert_ptr_nonnull(compressor);
	open_with(8 << 20,
		  (struct file_cache_options){.max_unit = 1 << 20,
					      .revalidate_ns = revalidate_ns,
					      .compressor = compressor},
		  1);
	call(&runners[0], open_turn, NULL);
	return encoder_of(coding);
}

static void close_variants(void)
{
	compressor_close(compressor);
	close_all();
	file_cache_tick_close(turn);
}

static struct compressor_stat stat_now(void)
{
	struct compressor_stat stat;

	do
		compressor_stat(compressor, &stat);
	while (stat.waiting);
	return stat;
}

/* Has it made, and waits for that. */
static void make(struct asker *asker)
{
	file_cache_compress(asker->waiter.result.entry, coding);
	(void)stat_now();
}

static unsigned holds_of(size_t id)
{
	struct NC_stat stat;

	return NC_stat(NULL, id, &stat, sizeof(stat)) ? 1000 : stat.holds;
}

START_TEST(test_once)
{
	const struct file_cache_view *view, *plain;
	struct file_cache_entry *variant;
	struct asker asker;
	struct slice tag;
	size_t id = 0;

	if (open_variants(3600 * SECOND)) {
		put("a.css", 'a', SIZE);
		asker = get(0, "/a.css");
		ck_assert_ptr_null(file_cache_variant(asker.waiter.result.entry, coding));
		for (unsigned i = 0; i < 3; i++)
			make(&asker);
		ck_assert_uint_eq(stat_now().made, 1);
		variant = file_cache_variant(asker.waiter.result.entry, coding);
		ck_assert_ptr_nonnull(variant);
		ck_assert_ptr_eq(variant,
				 file_cache_variant_peek(asker.waiter.result.entry, coding));
		view = file_cache_view(variant);
		plain = file_cache_view(asker.waiter.result.entry);
		id = view->id;
		ck_assert(view->coded && !plain->coded);
		ck_assert_uint_ne(id, plain->id);
		ck_assert_int_lt(view->version.size, SIZE / 10);
		ck_assert_ptr_eq(view->type, plain->type);
		tag = filehead_etag(view->head);
		ck_assert_int_ne(memcmp(tag.at, filehead_etag(plain->head).at, tag.length), 0);
		ck_assert_uint_eq(holds_of(id), 1);
		/* Neither a variant of a variant, nor a second unit. */
		ck_assert_uint_eq(file_cache_variants(variant), 0);
		file_cache_compress(variant, coding);
		file_cache_put(content, variant);
		ck_assert_uint_eq(holds_of(id), 0);
		ck_assert_uint_eq(inserts(), 2);
		give_back(0, &asker);
	}
	close_variants();
}
END_TEST

/* Its unit is destroyed when the last user of the old version has gone. */
START_TEST(test_new_version)
{
	struct file_cache_entry *variant;
	struct asker asker;
	size_t id;

	if (open_variants(0)) {
		put("file", 'a', SIZE);
		asker = get(0, "/file");
		make(&asker);
		variant = file_cache_variant(asker.waiter.result.entry, coding);
		id = file_cache_view(variant)->id;
		give_back(0, &asker);
		put("file", 'b', SIZE + 1);
		asker = get(0, "/file");
		ck_assert_ptr_null(file_cache_variant(asker.waiter.result.entry, coding));
		/* Its user continues with it. */
		ck_assert_uint_eq(holds_of(id), 1);
		file_cache_put(content, variant);
		ck_assert_uint_eq(holds_of(id), 1000);
		make(&asker);
		ck_assert_ptr_nonnull(file_cache_variant_peek(asker.waiter.result.entry, coding));
		give_back(0, &asker);
	}
	close_variants();
}
END_TEST

/* If its unit was evicted, the file is looked up again, and its variant made again. */
START_TEST(test_evicted)
{
	struct file_cache_entry *variant;
	struct asker asker;

	if (open_variants(3600 * SECOND)) {
		put("file", 'a', SIZE);
		asker = get(0, "/file");
		make(&asker);
		variant = file_cache_variant(asker.waiter.result.entry, coding);
		ck_assert_int_eq(NC_destroy(NULL, file_cache_view(variant)->id), 0);
		file_cache_put(content, variant);
		ck_assert_ptr_null(file_cache_variant(asker.waiter.result.entry, coding));
		give_back(0, &asker);
		asker = get(0, "/file");
		ck_assert_ptr_null(file_cache_variant(asker.waiter.result.entry, coding));
		make(&asker);
		variant = file_cache_variant(asker.waiter.result.entry, coding);
		ck_assert_ptr_nonnull(variant);
		file_cache_put(content, variant);
		give_back(0, &asker);
	}
	close_variants();
}
END_TEST

static void put_noise(const char *name)
{
	char *noise = must_alloc(SIZE);
	uint64_t state = 42;
	int fd;

	put(name, 'x', SIZE);
	for (size_t i = 0; i < SIZE; i++)
		noise[i] = (char)random_next(&state);
	fd = open(at(name), O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, noise, SIZE, 0), SIZE);
	close(fd);
	free(noise);
}

/* What does not become smaller is not tried again. */
START_TEST(test_unfit)
{
	struct asker asker;

	if (open_variants(3600 * SECOND)) {
		put_noise("noise");
		asker = get(0, "/noise");
		ck_assert_uint_eq(file_cache_variants(asker.waiter.result.entry),
				  (1u << CODINGS) - 1);
		make(&asker);
		make(&asker);
		ck_assert_uint_eq(stat_now().unfit, 1);
		ck_assert_uint_eq(file_cache_variants(asker.waiter.result.entry),
				  ((1u << CODINGS) - 1) & ~(1u << coding));
		give_back(0, &asker);
	}
	close_variants();
}
END_TEST

/* Where requests do not share entries and units, nothing is made. */
START_TEST(test_not_kept)
{
	struct asker asker;

	open_with(8 << 20,
		  (struct file_cache_options){
			  .max_unit = 1 << 20, .no_paths = _i == 0, .no_contents = _i == 1},
		  1);
	put("file", 'a', SIZE);
	asker = get(0, "/file");
	ck_assert_uint_eq(file_cache_variants(asker.waiter.result.entry), 0);
	file_cache_compress(asker.waiter.result.entry, CODING_GZIP);
	give_back(0, &asker);
	close_all();
}
END_TEST

/* --- in a turn ---------------------------------------------------------------------- */

#define USERS 50

struct users {
	struct file_cache_waiter waiter;
	struct file_cache_entry *entries[USERS];
	bool good;
};

static void never(struct file_cache_waiter *waiter)
{
	(void)waiter;
	expect(false);
}

/* In one turn: the file, and its variant for each user; then they give back all. */
static void use(void *argument)
{
	struct users *users = argument;
	struct file_cache_entry *file;

	users->waiter = (struct file_cache_waiter){.arrived = never, .loop = runners[0].loop};
	expect(file_cache_tick_get(turn, content, "/file", &users->waiter));
	file = users->waiter.result.entry;
	for (unsigned i = 0; i < USERS; i++)
		users->entries[i] = file_cache_tick_variant(turn, content, file, coding);
	users->good = true;
	for (unsigned i = 0; i < USERS; i++)
		users->good &= users->entries[i] && users->entries[i] == users->entries[0];
	users->good &= holds_of(file_cache_view(users->entries[0])->id) == 1;
	/* Its path finds the file, not the variant. */
	expect(file_cache_tick_get(turn, content, "/file", &users->waiter));
	users->good &= users->waiter.result.entry == file;
	file_cache_tick_put(turn, content, file);
	file_cache_tick_put(turn, content, file);
	for (unsigned i = 1; i < USERS; i++)
		file_cache_tick_put(turn, content, users->entries[i]);
}

static void put_last(void *argument)
{
	file_cache_tick_put(turn, content, ((struct users *)argument)->entries[0]);
}

START_TEST(test_turns)
{
	struct users users;
	struct asker asker;
	size_t id = 0;

	if (open_variants(3600 * SECOND)) {
		put("file", 'a', SIZE);
		asker = get(0, "/file");
		make(&asker);
		give_back(0, &asker);
		for (unsigned round = 0; round < 3; round++) {
			call(&runners[0], use, &users);
			ck_assert(users.good);
			settle(&runners[0]);
			id = file_cache_view(users.entries[0])->id;
			ck_assert_uint_eq(holds_of(id), 1);
			call(&runners[0], put_last, &users);
			settle(&runners[0]);
			ck_assert_uint_eq(holds_of(id), 0);
		}
	}
	close_variants();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_once);
	tcase_add_test(tcase, test_new_version);
	tcase_add_test(tcase, test_evicted);
	tcase_add_test(tcase, test_unfit);
	tcase_add_loop_test(tcase, test_not_kept, 0, 3);
	tcase_add_test(tcase, test_turns);
}

RUN_SUITE("file-cache-variant", fill)
