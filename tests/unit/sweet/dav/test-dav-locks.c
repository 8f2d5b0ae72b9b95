/* SPDX-License-Identifier: MIT */
/*
 * test-dav-locks.c - unit tests of dav-locks.c: which locks exclude each other, what a token
 * permits, and the end of locks.
 */
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "dav/dav-locks.h"

#include "suite.h"

#define NOW 1000u
#define LATER 2000u /* when the locks expire */
#define MOST 8u

static struct dav_locks *locks;

static int add(const char *path, const char *user, bool deep, bool shared, char *token)
{
	const struct dav_lock lock = {.path = path,
				      .href = path,
				      .user = user,
				      .deep = deep,
				      .shared = shared,
				      .expires_ns = LATER};
	char *other;
	int error = dav_locks_add(locks, &lock, NOW, token, &other);

	ck_assert(!!other == (error == -EBUSY));
	g_free(other);
	return error;
}

/* Whether a user with that token (NULL: none) may change the path. */
static bool may(const char *path, bool deep, const char *user, const char *token)
{
	struct slice tokens[] = {{token, token ? strlen(token) : 0}};
	struct dav_claim claim = {user, tokens, token ? 1 : 0};
	struct dav_change change = {.path = path, .deep = deep};
	char *other;
	int error = dav_locks_begin(locks, &change, 1, &claim, NOW, &other);

	ck_assert(!other == !error);
	g_free(other);
	if (!error)
		dav_locks_end(locks, &change, 1);
	return !error;
}

static struct slice slice_of(const char *token)
{
	return (struct slice){token, strlen(token)};
}

static void begin(void)
{
	locks = dav_locks_open(MOST);
	ck_assert_ptr_nonnull(locks);
}

START_TEST(test_conflicts)
{
	char token[DAV_TOKEN_SIZE];

	begin();
	ck_assert_int_eq(add("/r/a", "u", true, false, token), 0);
	ck_assert_int_eq(strncmp(token, "urn:uuid:", 9), 0);
	ck_assert_uint_eq(strlen(token), DAV_TOKEN_SIZE - 1);
	ck_assert_int_eq(add("/r/a", "u", false, false, token), -EBUSY);
	ck_assert_int_eq(add("/r/a", "v", false, true, token), -EBUSY);
	ck_assert_int_eq(add("/r/a/b", "u", false, false, token), -EBUSY);
	ck_assert_int_eq(add("/r", "u", true, false, token), -EBUSY);
	/* A folder that is not locked with all below it; names with the same beginning. */
	ck_assert_int_eq(add("/r", "u", false, false, token), 0);
	ck_assert_int_eq(add("/r/ab", "u", true, false, token), 0);
	dav_locks_close(locks);
}
END_TEST

START_TEST(test_shared)
{
	char one[DAV_TOKEN_SIZE], other[DAV_TOKEN_SIZE], token[DAV_TOKEN_SIZE];

	begin();
	ck_assert_int_eq(add("/a", "u", true, true, one), 0);
	ck_assert_int_eq(add("/a", "v", true, true, other), 0);
	ck_assert_str_ne(one, other);
	ck_assert_int_eq(add("/a/b", "w", false, false, token), -EBUSY);
	ck_assert(may("/a/b", false, "u", one));
	ck_assert(may("/a", false, "v", other));
	ck_assert(!may("/a", false, "v", one));
	ck_assert(!may("/a", false, "w", NULL));
	/* One of those at the same root is enough, also for what is above. */
	ck_assert(may("", true, "u", one));
	ck_assert(!may("", true, "w", NULL));
	dav_locks_close(locks);
}
END_TEST

START_TEST(test_tokens)
{
	char token[DAV_TOKEN_SIZE];

	begin();
	ck_assert_int_eq(add("/r/a", "u", false, false, token), 0);
	ck_assert(may("/r/a", false, "u", token));
	ck_assert(!may("/r/a", false, "v", token));
	ck_assert(!may("/r/a", false, "u", NULL));
	ck_assert(!may("/r/a", false, "u", "urn:uuid:other"));
	/* It covers its list of members, but not the members. */
	ck_assert(may("/r/a/b", false, "v", NULL));
	/* What is above is changed with it only as a whole. */
	ck_assert(may("/r", false, "v", NULL));
	ck_assert(!may("/r", true, "v", NULL));
	ck_assert(may("/r", true, "u", token));
	ck_assert(dav_locks_has(locks, "/r/a", slice_of(token), NOW));
	ck_assert(!dav_locks_has(locks, "/r/a/b", slice_of(token), NOW));
	ck_assert(!dav_locks_has(locks, "/r", slice_of(token), NOW));
	dav_locks_close(locks);
}
END_TEST

START_TEST(test_removal)
{
	char token[DAV_TOKEN_SIZE];

	begin();
	ck_assert_int_eq(add("/a", "u", true, false, token), 0);
	ck_assert_int_eq(dav_locks_remove(locks, "/b", slice_of(token), "u", NOW), -ENOENT);
	ck_assert_int_eq(dav_locks_remove(locks, "/a", slice_of("x"), "u", NOW), -ENOENT);
	ck_assert_int_eq(dav_locks_remove(locks, "/a", slice_of(token), "v", NOW), -EPERM);
	/* By any path that it covers. */
	ck_assert_int_eq(dav_locks_remove(locks, "/a/b/c", slice_of(token), "u", NOW), 0);
	ck_assert(may("/a", true, "v", NULL));
	ck_assert_int_eq(add("/a/b", "u", true, false, token), 0);
	ck_assert_int_eq(add("/ab", "u", true, false, token), 0);
	dav_locks_forget(locks, "/a");
	ck_assert(may("/a/b", true, "v", NULL));
	ck_assert(!may("/ab", true, "v", NULL));
	dav_locks_close(locks);
}
END_TEST

START_TEST(test_expiry)
{
	char token[DAV_TOKEN_SIZE], refreshed[DAV_TOKEN_SIZE];
	struct slice tokens[1];
	struct dav_claim claim = {"u", tokens, 1};

	begin();
	ck_assert_int_eq(add("/a", "u", true, false, token), 0);
	tokens[0] = slice_of(token);
	claim.user = "v";
	ck_assert_int_eq(dav_locks_refresh(locks, "/a", &claim, LATER + 9, NOW, refreshed),
			 -ENOENT);
	claim.user = "u";
	ck_assert_int_eq(dav_locks_refresh(locks, "/a/b", &claim, LATER + 9, NOW, refreshed), 0);
	ck_assert_str_eq(refreshed, token);
	ck_assert(dav_locks_has(locks, "/a", tokens[0], LATER));
	ck_assert(!dav_locks_has(locks, "/a", tokens[0], LATER + 9));
	ck_assert_int_eq(dav_locks_refresh(locks, "/a", &claim, LATER + 99, LATER + 9, refreshed),
			 -ENOENT);
	ck_assert(may("/a", true, "v", NULL));
	dav_locks_close(locks);
}
END_TEST

/* One user leaves room for the others. */
START_TEST(test_limits)
{
	char token[DAV_TOKEN_SIZE], path[16];
	unsigned count = 0;

	begin();
	for (; count < MOST; count++) {
		(void)snprintf(path, sizeof(path), "/%u", count);
		if (add(path, "u", false, false, token))
			break;
	}
	ck_assert_uint_eq(count, MOST / 2);
	ck_assert_int_eq(add("/x", "u", false, false, token), -ENOSPC);
	for (; count < MOST; count++) {
		(void)snprintf(path, sizeof(path), "/%u", count);
		ck_assert_int_eq(add(path, "v", false, false, token), 0);
	}
	ck_assert_int_eq(add("/x", "w", false, false, token), -ENOSPC);
	dav_locks_close(locks);
}
END_TEST

/* Nobody gets a lock of what is being changed. */
START_TEST(test_changes)
{
	struct dav_change changes[] = {{.path = "/a", .deep = true}, {.path = "/b/c"}};
	const struct dav_lock lock = {
		.path = "/a/x", .href = "/a/x", .user = "u", .expires_ns = LATER};
	struct dav_claim claim = {"u", NULL, 0};
	char token[DAV_TOKEN_SIZE], *other;

	begin();
	ck_assert_int_eq(dav_locks_begin(locks, changes, 2, &claim, NOW, &other), 0);
	ck_assert_int_eq(dav_locks_add(locks, &lock, NOW, token, &other), -EBUSY);
	ck_assert_ptr_null(other);
	ck_assert_int_eq(add("/b", "u", false, false, token), 0);
	dav_locks_end(locks, changes, 2);
	ck_assert_int_eq(dav_locks_add(locks, &lock, NOW, token, &other), 0);
	/* All or none are begun. */
	ck_assert_int_eq(dav_locks_begin(locks,
					 (struct dav_change[]){{.path = "/z"}, {.path = "/a/x"}}, 2,
					 &claim, NOW, &other),
			 -EBUSY);
	ck_assert_str_eq(other, "/a/x");
	g_free(other);
	ck_assert_int_eq(add("/z", "u", false, false, token), 0);
	dav_locks_close(locks);
}
END_TEST

static void count_one(const struct dav_lock *lock, const char *token, void *context)
{
	ck_assert_str_eq(lock->user, "u");
	ck_assert_uint_eq(strlen(token), DAV_TOKEN_SIZE - 1);
	++*(unsigned *)context;
}

START_TEST(test_each)
{
	char token[DAV_TOKEN_SIZE];
	unsigned count = 0;

	begin();
	ck_assert_int_eq(add("/a", "u", true, true, token), 0);
	ck_assert_int_eq(add("/a/b", "u", false, true, token), 0);
	ck_assert_int_eq(add("/a/b/c", "u", false, true, token), 0);
	dav_locks_each(locks, "/a/b", NOW, count_one, &count);
	ck_assert_uint_eq(count, 2);
	dav_locks_each(locks, "/x", NOW, count_one, &count);
	ck_assert_uint_eq(count, 2);
	dav_locks_close(locks);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_conflicts);
	tcase_add_test(tcase, test_shared);
	tcase_add_test(tcase, test_tokens);
	tcase_add_test(tcase, test_removal);
	tcase_add_test(tcase, test_expiry);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_changes);
	tcase_add_test(tcase, test_each);
}

RUN_SUITE("dav-locks", fill)
