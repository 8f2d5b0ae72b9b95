/* SPDX-License-Identifier: MIT */
/*
 * test-file-cache-tick.c - unit tests of file-cache-tick.c: one reference and hold for
 * all users of a file in a turn, none that leaks, and no result of an earlier turn.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <nabc.h>

#include "files/file-cache-tick.h"
#include "files/file-cache.h"

#include "file-cache-fixture.h"
#include "loop-fixture.h"
#include "suite.h"

#define USERS 100
#define SIZE 1000

static struct file_cache_tick *turn;

static void open_turn(void *unused)
{
	(void)unused;
	turn = file_cache_tick_open(runners[0].loop);
}

static void open_turns(void)
{
	open_all(4 << 20, 1 << 20, 1, 0);
	call(&runners[0], open_turn, NULL);
}

static void close_turns(void)
{
	close_all();
	file_cache_tick_close(turn);
}

static unsigned holds_of(size_t id)
{
	struct NC_stat stat;

	expect(NC_stat(NULL, id, &stat, sizeof(stat)) == 0);
	return stat.holds;
}

static uint64_t hits(void)
{
	struct file_cache_stat stat = {0};

	file_cache_stat(content, &stat);
	ck_assert_uint_eq(stat.hit_bytes, stat.hits * SIZE);
	return stat.hits;
}

static void no_work(void *unused)
{
	(void)unused;
}

/* The call has completed, and so has the turn of the loop. */
static void end_turn(void)
{
	call(&runners[0], no_work, NULL);
}

/* Requests of one turn; they keep their results. */
struct users {
	struct asker askers[USERS];
	const char *path;
	unsigned count;
};

static void ask_in_turn(struct asker *asker, const char *path)
{
	*asker = (struct asker){.waiter = {.arrived = arrived, .loop = runners[0].loop},
				.path = path};
	if (file_cache_tick_get(turn, content, asker->path, &asker->waiter))
		EVENT(asker->at_once = asker->done = true);
}

static void ask_all(void *argument)
{
	struct users *users = argument;

	for (unsigned i = 0; i < users->count; i++)
		ask_in_turn(&users->askers[i], users->path);
}

static void put_all(void *argument)
{
	struct users *users = argument;

	for (unsigned i = 0; i < users->count; i++)
		file_cache_tick_put(turn, content, users->askers[i].waiter.result.entry);
}

static struct file_cache_entry *entry_of(const struct users *users, unsigned i)
{
	ck_assert(users->askers[i].done);
	ck_assert_int_eq(users->askers[i].waiter.result.error, 0);
	return users->askers[i].waiter.result.entry;
}

START_TEST(test_once)
{
	static struct users users;
	size_t id;

	open_turns();
	put("file", 'a', SIZE);
	check_file(0, "/file", 'a', SIZE);
	users = (struct users){.path = "/file", .count = USERS};
	call(&runners[0], ask_all, &users);
	for (unsigned i = 0; i < USERS; i++) {
		ck_assert(users.askers[i].at_once);
		ck_assert_ptr_eq(entry_of(&users, i), entry_of(&users, 0));
	}
	id = file_cache_view(entry_of(&users, 0))->id;
	ck_assert_uint_eq(holds_of(id), 1);
	end_turn();
	ck_assert_uint_eq(hits(), USERS);
	/* All but one use it for longer than the turn. */
	users.count--;
	call(&runners[0], put_all, &users);
	ck_assert_uint_eq(holds_of(id), 1);
	users.askers[0] = users.askers[USERS - 1];
	users.count = 1;
	call(&runners[0], put_all, &users);
	end_turn();
	ck_assert_uint_eq(holds_of(id), 0);
	close_turns();
}
END_TEST

static void ask_and_put(void *argument)
{
	ask_all(argument);
	put_all(argument);
}

START_TEST(test_given_back_in_the_turn)
{
	static struct users users;

	open_turns();
	put("file", 'a', SIZE);
	check_file(0, "/file", 'a', SIZE);
	users = (struct users){.path = "/file", .count = USERS};
	for (unsigned round = 1; round < 4; round++) {
		call(&runners[0], ask_and_put, &users);
		end_turn();
		ck_assert_uint_eq(hits(), round * USERS);
		ck_assert_uint_eq(holds_of(file_cache_view(entry_of(&users, 0))->id), 0);
	}
	close_turns();
}
END_TEST

/* The next turn checks again, and users of the earlier version continue to use that. */
START_TEST(test_changed)
{
	static struct users before, after;
	size_t old, new;

	open_turns();
	put("file", 'a', SIZE);
	check_file(0, "/file", 'a', SIZE);
	before = (struct users){.path = "/file", .count = 3};
	call(&runners[0], ask_all, &before);
	put("file", 'b', 2 * SIZE);
	after = (struct users){.path = "/file", .count = 3};
	call(&runners[0], ask_all, &after);
	for (unsigned i = 0; i < 3; i++)
		AWAIT(after.askers[i].done);
	old = file_cache_view(entry_of(&before, 0))->id;
	new = file_cache_view(entry_of(&after, 0))->id;
	ck_assert_uint_ne(old, new);
	ck_assert(uniform(file_cache_view(entry_of(&before, 2)), 'a'));
	ck_assert(uniform(file_cache_view(entry_of(&after, 2)), 'b'));
	call(&runners[0], put_all, &before);
	call(&runners[0], put_all, &after);
	end_turn();
	ck_assert_uint_eq(holds_of(new), 0);
	close_turns();
}
END_TEST

/* Some had to wait for the file, others found it: they release it in any order. */
START_TEST(test_waited)
{
	static struct users first, second;
	size_t id;

	for (unsigned order = 0; order < 2; order++) {
		open_turns();
		put("file", 'a', SIZE);
		first = (struct users){.path = "/file", .count = 5};
		call(&runners[0], ask_all, &first);
		for (unsigned i = 0; i < first.count; i++)
			AWAIT(first.askers[i].done);
		second = (struct users){.path = "/file", .count = 7};
		call(&runners[0], ask_all, &second);
		id = file_cache_view(entry_of(&second, 0))->id;
		ck_assert_ptr_eq(entry_of(&first, 4), entry_of(&second, 0));
		ck_assert_uint_eq(holds_of(id), 5 + 1);
		call(&runners[0], put_all, order ? &second : &first);
		end_turn();
		ck_assert_uint_gt(holds_of(id), 0);
		call(&runners[0], put_all, order ? &first : &second);
		end_turn();
		ck_assert_uint_eq(holds_of(id), 0);
		close_turns();
	}
}
END_TEST

static void ask_for_many(void *argument)
{
	static char names[USERS][16];
	struct users *users = argument;

	for (unsigned i = 0; i < USERS; i++) {
		snprintf(names[i], sizeof(names[i]), "/file%u", i);
		ask_in_turn(&users->askers[i], names[i]);
	}
}

/* More files than a turn has places for. */
START_TEST(test_many)
{
	static struct users users;

	open_turns();
	for (unsigned i = 0; i < USERS; i++) {
		char name[16], path[17];

		snprintf(name, sizeof(name), "file%u", i);
		snprintf(path, sizeof(path), "/%s", name);
		put(name, (char)('a' + i % 26), SIZE);
		check_file(0, path, (char)('a' + i % 26), SIZE);
	}
	users = (struct users){.count = USERS};
	for (unsigned round = 0; round < 3; round++) {
		call(&runners[0], ask_for_many, &users);
		for (unsigned i = 0; i < USERS; i++)
			ck_assert(uniform(file_cache_view(entry_of(&users, i)),
					  (char)('a' + i % 26)));
		call(&runners[0], put_all, &users);
		end_turn();
		for (unsigned i = 0; i < USERS; i++)
			ck_assert_uint_eq(holds_of(file_cache_view(entry_of(&users, i))->id), 0);
	}
	ck_assert_uint_eq(hits(), 3 * USERS);
	close_turns();
}
END_TEST

/* Where each request reads a file again, it does so within a turn, too. */
START_TEST(test_not_kept)
{
	struct timespec long_ago[2] = {{.tv_sec = 784111777}, {.tv_sec = 784111777}};
	static struct users users;

	open_with(4 << 20,
		  (struct file_cache_options){
			  .max_unit = 1 << 20, .no_contents = true, .try_now = true},
		  1);
	call(&runners[0], open_turn, NULL);
	put("file", 'a', SIZE);
	ck_assert_int_eq(utimensat(AT_FDCWD, at("file"), long_ago, 0), 0);
	users = (struct users){.path = "/file", .count = 3};
	/* First by a helper, then on the loop's own thread. */
	for (unsigned round = 0; round < 2; round++) {
		call(&runners[0], ask_all, &users);
		for (unsigned i = 0; i < 3; i++)
			AWAIT(users.askers[i].done);
		ck_assert_ptr_ne(entry_of(&users, 0), entry_of(&users, 1));
		ck_assert_ptr_ne(entry_of(&users, 1), entry_of(&users, 2));
		call(&runners[0], put_all, &users);
	}
	ck_assert(users.askers[2].at_once || !reads_at_once());
	close_turns();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_once);
	tcase_add_test(tcase, test_given_back_in_the_turn);
	tcase_add_test(tcase, test_changed);
	tcase_add_test(tcase, test_waited);
	tcase_add_test(tcase, test_many);
	tcase_add_test(tcase, test_not_kept);
}

RUN_SUITE("file-cache-tick", fill)
