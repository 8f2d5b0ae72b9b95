/* SPDX-License-Identifier: MIT */
/*
 * test-span-export.c - unit tests of span-export.c, with a sender that notes instead of sending: which
 * collector gets which spans, however fast the configuration changes.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "log/span-export.h"
#include "log/span-send.h"
#include "log/span.h"

#include "suite.h"

#define ROUNDS 2000u

/* --- the sender ----------------------------------------------------------------------- */

struct span_sender {
	_Atomic unsigned spans[2]; /* of each collector */
	_Atomic bool posts;	   /* now */
	_Atomic bool shut;	   /* requests get no answer */
};

static struct span_sender noted;

const char *span_send_missing(void)
{
	return NULL;
}

struct span_sender *span_sender_open(void)
{
	return &noted;
}

void span_sender_close(struct span_sender *sender)
{
	(void)sender;
}

void span_sender_post(struct span_sender *sender, const struct span_target *target,
		      const char *text, size_t length, struct span_answer *answer)
{
	const bool other = strcmp(target->url, "http://a/") != 0;

	(void)length;
	atomic_store(&sender->posts, true);
	while (atomic_load(&sender->shut))
		sched_yield();
	for (const char *at = text; (at = strstr(at, "\"traceId\"")); at++)
		atomic_fetch_add(&sender->spans[other], 1);
	answer->outcome = SPAN_ACCEPTED;
}

/* It never waits, so that a change comes at all places of the thread's turn. */
void span_sender_wait(struct span_sender *sender, unsigned ms)
{
	(void)sender, (void)ms;
	sched_yield();
}

void span_sender_wake(struct span_sender *sender)
{
	(void)sender;
}

void span_sender_limit(struct span_sender *sender, uint64_t until_ns)
{
	(void)sender, (void)until_ns;
}

/* --- the tests ------------------------------------------------------------------------- */

static struct span_export *begun;

static void setup(void)
{
	memset(&noted, 0, sizeof(noted));
	begun = span_export_open(1);
	ck_assert_ptr_nonnull(begun);
}

static void teardown(void)
{
	span_export_close(begun);
}

static void use(unsigned collector)
{
	char a[] = "http://a/", b[] = "http://b/";
	struct span_target target = {.url = collector ? b : a};

	ck_assert_int_eq(span_export_use(begun, &target), 0);
}

static void put(void)
{
	static const struct span span = {.trace = "0af7651916cd43dd8448eb211c80319c",
					 .id = "b7ad6b7169203331",
					 .status = 200,
					 .began_ns = 1000,
					 .ended_ns = 9000};

	span_export_put(begun, 0, &span);
}

static void wait_accepted(unsigned count)
{
	struct span_export_stat stat;

	do {
		sched_yield();
		span_export_stat(begun, &stat);
	} while (stat.accepted < count);
}

static void check(unsigned a, unsigned b)
{
	wait_accepted(a + b);
	ck_assert_uint_eq(atomic_load(&noted.spans[0]), a);
	ck_assert_uint_eq(atomic_load(&noted.spans[1]), b);
}

/* Its thread may not have run before the second. */
START_TEST(test_change_at_once)
{
	use(0);
	put();
	use(1);
	check(1, 0);
}
END_TEST

/* A span from after the change, while the collector from before has not answered yet. */
START_TEST(test_change_while_sending)
{
	atomic_store(&noted.shut, true);
	use(0);
	put();
	while (!atomic_load(&noted.posts))
		sched_yield();
	put();
	use(1);
	put();
	atomic_store(&noted.shut, false);
	check(2, 1);
}
END_TEST

START_TEST(test_changes)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		use(i & 1);
		put();
	}
	check(ROUNDS / 2, ROUNDS / 2);
}
END_TEST

/* Some of them while a request is sent. */
START_TEST(test_changes_one_by_one)
{
	use(0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		put();
		use(~i & 1);
		check(i / 2 + 1, (i + 1) / 2);
	}
}
END_TEST

/* Its end is for all of them. */
START_TEST(test_close)
{
	atomic_store(&noted.shut, true);
	for (unsigned i = 0; i < 4; i++) {
		use(i & 1);
		put();
	}
	atomic_store(&noted.shut, false);
	span_export_close(begun);
	ck_assert_uint_eq(atomic_load(&noted.spans[0]), 2);
	ck_assert_uint_eq(atomic_load(&noted.spans[1]), 2);
	begun = NULL;
}
END_TEST

/* What waits while there is none is for the first. */
START_TEST(test_none_before)
{
	struct span_target none = {0};

	ck_assert_int_eq(span_export_use(begun, &none), 0);
	put();
	use(1);
	check(0, 1);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_change_at_once);
	tcase_add_test(tcase, test_change_while_sending);
	tcase_add_test(tcase, test_changes);
	tcase_add_test(tcase, test_changes_one_by_one);
	tcase_add_test(tcase, test_close);
	tcase_add_test(tcase, test_none_before);
}

RUN_SUITE("span-export", fill)
