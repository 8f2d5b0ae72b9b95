/* SPDX-License-Identifier: MIT */
/*
 * test-span-export.c - unit tests of span-export.c, with a sender that notes instead of sending: which
 * collector gets which spans, however fast the configuration changes.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "log/span-export.h"

#include "suite.h"

#define ROUNDS 2000u

/* --- the sender ----------------------------------------------------------------------- */

struct span_sender {
	_Atomic unsigned posts[2]; /* to each collector */
	_Atomic unsigned changes;  /* that are over: its thread has the new collector */
};

static struct span_sender noted;

const char *span_send_missing(void)
{
	return NULL;
}

struct span_sender *span_sender_open(void)
{
	atomic_store(&noted.posts[0], 0);
	atomic_store(&noted.posts[1], 0);
	atomic_store(&noted.changes, 0);
	return &noted;
}

void span_sender_close(struct span_sender *sender)
{
	(void)sender;
}

void span_sender_post(struct span_sender *sender, const struct span_target *target,
		      const char *text, size_t length, struct span_answer *answer)
{
	(void)text, (void)length;
	atomic_fetch_add(&sender->posts[strcmp(target->url, "http://a/") != 0], 1);
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
	if (!until_ns)
		atomic_fetch_add(&sender->changes, 1);
}

/* --- the tests ------------------------------------------------------------------------- */

static struct span_export *begun;

static void setup(void)
{
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

/* The thread of the exporter may not have run before the second. */
START_TEST(test_change_at_once)
{
	use(0);
	put();
	use(1);
	wait_accepted(1);
	ck_assert_uint_eq(atomic_load(&noted.posts[0]), 1);
	ck_assert_uint_eq(atomic_load(&noted.posts[1]), 0);
}
END_TEST

/* A change hurries what waits, and that is for the collector before the change. */
START_TEST(test_changes)
{
	use(0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		put();
		use(~i & 1);
		wait_accepted(i + 1);
		while (atomic_load(&noted.changes) <= i)
			sched_yield();
		ck_assert_uint_eq(atomic_load(&noted.posts[0]), i / 2 + 1);
		ck_assert_uint_eq(atomic_load(&noted.posts[1]), (i + 1) / 2);
	}
}
END_TEST

/* What waits while there is none is for the first. */
START_TEST(test_none_before)
{
	struct span_target none = {0};

	ck_assert_int_eq(span_export_use(begun, &none), 0);
	put();
	use(1);
	wait_accepted(1);
	ck_assert_uint_eq(atomic_load(&noted.posts[1]), 1);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_change_at_once);
	tcase_add_test(tcase, test_changes);
	tcase_add_test(tcase, test_none_before);
}

RUN_SUITE("span-export", fill)
