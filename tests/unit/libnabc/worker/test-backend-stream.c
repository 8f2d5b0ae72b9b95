/* SPDX-License-Identifier: MIT */
/*
 * test-backend-stream.c - unit tests of responses in several pieces, through backend.c
 * and a worker: windows, clients that disconnect, workers that send invalid pieces.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "os/queue.h"
#include "wire/channel.h"
#include "worker/backend.h"

#include "backend-fixture.h"
#include "suite.h"
#include "unit-holds.h"

/* Waits for the next record, which must have that tag and those flags. */
static void expect_record(uint64_t tag, unsigned flags, struct NC_response *response)
{
	uint64_t told;

	ck_assert_int_eq(reap(0, &told, response), 1);
	ck_assert_uint_eq(told, tag);
	ck_assert_uint_eq(response->flags, flags);
	ck_assert_int_eq(response->status,
			 flags & (NC_RESPONSE_PIECE | NC_RESPONSE_ABORTED) ? 0 : 200);
}

static void sent(uint64_t tag)
{
	ck_assert_int_eq(NC_backend_sent(backend, 0, tag), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
}

/* Checks the worker's report on its last stream. */
static void expect_outcome(int error, unsigned pieces)
{
	struct NC_response response;
	struct {
		int error;
		unsigned pieces;
	} told;

	ck_assert_int_eq(submit(0, 999, "DO=outcome", NULL, NULL), 0);
	expect_record(999, 0, &response);
	ck_assert_uint_eq(take_body(&response, (char *)&told), sizeof(told));
	ck_assert_int_eq(told.error, error);
	ck_assert_uint_eq(told.pieces, pieces);
}

/* Waits until the worker only waits for its server. */
static void await_sleep(void)
{
	struct nc_queue_shared *shared = backend->channel[0].queues.requests.shared;

	while (!atomic_load(&shared->sleeping) ||
	       atomic_load(&shared->head) != atomic_load(&shared->tail))
		sched_yield();
}

START_TEST(test_stream)
{
	const unsigned count = 100;
	char got[1000], wanted[1000] = "";
	struct NC_response response;
	size_t length = 0;

	open_all(1, 0);
	ck_assert_int_eq(submit(0, 5, "DO=stream", "COUNT=100", NULL), 0);
	expect_record(5, NC_RESPONSE_MORE, &response);
	ck_assert_uint_eq(response.headers_length, 15);
	for (unsigned i = 0; i < count; i++) {
		if (i)
			expect_record(5, NC_RESPONSE_PIECE | NC_RESPONSE_MORE, &response);
		length += take_body(&response, got + length);
		/* Once sent, it belongs to the worker. */
		ck_assert_int_eq(hold_id(NULL, response.body.id), -1);
		sent(5);
	}
	expect_record(5, NC_RESPONSE_PIECE, &response);
	ck_assert_uint_eq(response.range_count, 0);
	for (unsigned i = 0; i < count; i++)
		snprintf(wanted + strlen(wanted), 16, "%u,", i);
	ck_assert_uint_eq(length, strlen(wanted));
	ck_assert_mem_eq(got, wanted, length);
	expect_outcome(0, count);
	/* Nothing is reported of an ended stream. */
	sent(5);
	check_echo(0, 6);
	close_all();
}
END_TEST

static const unsigned kept_piece = NC_RESPONSE_PIECE | NC_RESPONSE_MORE | NC_RESPONSE_KEEP;

/* Eleven pieces: as many as the window has; the worker then sleeps. */
static void begin_stream(void)
{
	struct NC_response response;

	ck_assert_int_eq(submit(0, 5, "DO=stream", "COUNT=11", "FLAGS=1"), 0);
	for (unsigned i = 0; i < NC_WORKER_WINDOW; i++) {
		expect_record(5, i ? kept_piece : NC_RESPONSE_MORE, &response);
		release_all(&response);
	}
	await_sleep();
}

/* The remaining pieces. */
static void expect_rest(void)
{
	struct NC_response response;

	for (unsigned i = 0; i < 3; i++) {
		expect_record(5, kept_piece, &response);
		release_all(&response);
	}
	expect_record(5, NC_RESPONSE_PIECE, &response);
	expect_outcome(0, 11);
}

/* A worker is at most its window ahead, and gets credit in batches. */
START_TEST(test_window)
{
	struct NC_response response;
	uint64_t tag;

	open_all(1, 0);
	begin_stream();
	ck_assert_int_eq(NC_backend_reap(backend, 0, &tag, &response, sizeof(response)), 0);
	for (unsigned i = 0; i < NC_WORKER_WINDOW / 2 - 1; i++)
		sent(5);
	await_sleep();
	ck_assert_int_eq(NC_backend_reap(backend, 0, &tag, &response, sizeof(response)), 0);
	sent(5);
	expect_rest();
	close_all();
}
END_TEST

/* Credit that does not fit into a full queue is sent as soon as it fits. */
START_TEST(test_owed)
{
	struct nc_queue_shared *shared;
	unsigned words = 0;

	open_all(1, 0);
	shared = backend->channel[0].queues.requests.shared;
	begin_stream();
	ck_assert_int_eq(kill(NC_backend_pid(backend), SIGSTOP), 0);
	/* Messages about tags that the worker does not know have no effect. */
	while (NC_backend_cancel(backend, 0, 1000 + words) == 0)
		words++;
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_uint_ge(words, NC_CHANNEL_QUEUE / 64);
	for (unsigned i = 0; i < NC_WORKER_WINDOW / 2; i++)
		sent(5);
	ck_assert(backend->channel[0].notify_pending);
	ck_assert_int_eq(kill(NC_backend_pid(backend), SIGCONT), 0);
	while (atomic_load(&shared->head) != atomic_load(&shared->tail))
		sched_yield();
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	ck_assert(!backend->channel[0].notify_pending);
	expect_rest();
	close_all();
}
END_TEST

/* Requests that arrive while a stream waits are accepted afterwards, in order. */
START_TEST(test_others_are_kept)
{
	const unsigned others = 300;
	struct NC_response response;
	char value[64], got[64];

	/* One unit for each of them. */
	open_all(1, 16 * MIB);
	ck_assert_int_eq(submit(0, 5, "DO=stream", "COUNT=9", NULL), 0);
	for (unsigned i = 0; i < NC_WORKER_WINDOW; i++) {
		expect_record(5, i ? NC_RESPONSE_PIECE | NC_RESPONSE_MORE : NC_RESPONSE_MORE,
			      &response);
		release_all(&response);
	}
	for (unsigned i = 0; i < others; i++) {
		snprintf(value, sizeof(value), "VALUE=number %u of the others", i);
		ck_assert_int_eq(submit(0, 100 + i, "DO=echo", value, NULL), 0);
		if (i % 50 == 0)
			await_sleep();
	}
	/* Some clients disconnect before their turn: the worker never sees these requests. */
	for (unsigned i = 0; i < others; i += 7)
		ck_assert_int_eq(NC_backend_cancel(backend, 0, 100 + i), 0);
	for (unsigned i = 0; i < NC_WORKER_WINDOW; i++)
		sent(5);
	expect_record(5, NC_RESPONSE_PIECE | NC_RESPONSE_MORE, &response);
	release_all(&response);
	expect_record(5, NC_RESPONSE_PIECE, &response);
	for (unsigned i = 0; i < others; i++) {
		expect_record(100 + i, i % 7 ? 0 : NC_RESPONSE_ABORTED, &response);
		if (i % 7 == 0)
			continue;
		snprintf(value, sizeof(value), "number %u of the others", i);
		ck_assert_uint_eq(take_body(&response, got), strlen(value));
		ck_assert_mem_eq(got, value, strlen(value));
	}
	check_echo(0, 6);
	close_all();
}
END_TEST

/* The client disconnects while the worker waits for it, or is about to send. */
START_TEST(test_cancel)
{
	struct NC_response response;
	unsigned reaped = 0;
	uint64_t tag;

	open_all(1, 0);
	ck_assert_int_eq(submit(0, 5, "DO=stream", "COUNT=20", NULL), 0);
	for (; reaped < NC_WORKER_WINDOW; reaped++) {
		expect_record(5, reaped ? NC_RESPONSE_PIECE | NC_RESPONSE_MORE : NC_RESPONSE_MORE,
			      &response);
		release_all(&response);
	}
	await_sleep();
	ck_assert_int_eq(NC_backend_cancel(backend, 0, 5), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	expect_record(5, NC_RESPONSE_ABORTED, &response);
	ck_assert_uint_eq(response.range_count, 0);
	expect_outcome(ECANCELED, NC_WORKER_WINDOW - 1);
	/* Its tag can be used again. */
	ck_assert_int_eq(submit(0, 5, "DO=stream", "COUNT=1000000", NULL), 0);
	for (reaped = 0;; reaped++) {
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		if (response.flags & NC_RESPONSE_ABORTED)
			break;
		release_all(&response);
		sent(5);
		if (reaped == 10)
			ck_assert_int_eq(NC_backend_cancel(backend, 0, 5), 0);
		ck_assert_uint_lt(reaped, 100);
	}
	/* If no such request is pending, this has no effect. */
	ck_assert_int_eq(NC_backend_cancel(backend, 0, 77), 0);
	check_echo(0, 6);
	close_all();
}
END_TEST

START_TEST(test_gone)
{
	struct NC_response response;
	char got[8];

	open_all(1, 0);
	ck_assert_int_eq(submit(0, 5, "DO=gone", NULL, NULL), 0);
	ck_assert_int_eq(submit(0, 6, "DO=outcome", NULL, NULL), 0);
	ck_assert_int_eq(NC_backend_cancel(backend, 0, 5), 0);
	expect_record(5, 0, &response);
	ck_assert_uint_eq(take_body(&response, got), 4);
	expect_record(6, 0, &response);
	release_all(&response);
	close_all();
}
END_TEST

START_TEST(test_abort)
{
	struct NC_response response;

	open_all(1, 0);
	ck_assert_int_eq(submit(0, 5, "DO=abort", NULL, NULL), 0);
	expect_record(5, NC_RESPONSE_ABORTED, &response);
	ck_assert_int_eq(submit(0, 6, "DO=abort", "BEGUN=1", NULL), 0);
	expect_record(6, NC_RESPONSE_MORE, &response);
	expect_record(6, NC_RESPONSE_ABORTED, &response);
	check_echo(0, 7);
	close_all();
}
END_TEST

START_TEST(test_errors)
{
	struct NC_response response;
	char got[8] = "";

	open_all(1, 0);
	ck_assert_int_eq(submit(0, 5, "DO=stream-errors", NULL, NULL), 0);
	expect_record(5, NC_RESPONSE_MORE, &response);
	expect_record(5, NC_RESPONSE_PIECE, &response);
	(void)take_body(&response, got);
	ck_assert_str_eq(got, "0,");
	ck_assert_int_eq(NC_backend_sent(backend, 1, 5), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(NC_backend_cancel(NULL, 0, 5), -1);
	ck_assert_int_eq(errno, EINVAL);
	close_all();
}
END_TEST

/* --- workers that send invalid pieces ---------------------------------------------- */

/* An invalid unit ends the stream for the caller, and soon for the worker. */
START_TEST(test_bad_units)
{
	struct NC_response response;
	struct NC_stat units[8];
	size_t cursor = 0;
	uint64_t tag;

	open_all(1, 0);
	ck_assert_int_eq(submit(0, 5, "DO=bad-stream", "AT=0", "COUNT=50"), 0);
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	ck_assert_uint_eq(tag, 5);
	ck_assert_int_eq(response.status, 502);
	ck_assert_uint_eq(response.flags, 0);
	/* What it sent meanwhile is dropped. */
	ck_assert_int_eq(submit(0, 6, "DO=echo", NULL, NULL), 0);
	expect_record(6, 0, &response);

	ck_assert_int_eq(submit(0, 7, "DO=bad-stream", "AT=1", "COUNT=50"), 0);
	expect_record(7, NC_RESPONSE_MORE, &response);
	expect_record(7, NC_RESPONSE_PIECE | NC_RESPONSE_ABORTED, &response);
	ck_assert_uint_eq(response.range_count, 0);
	check_echo(0, 8);
	ck_assert_int_eq(submit(0, 9, "DO=bad-stream", "AT=1", "LAST=1"), 0);
	expect_record(9, NC_RESPONSE_MORE, &response);
	expect_record(9, NC_RESPONSE_PIECE | NC_RESPONSE_ABORTED, &response);
	check_echo(0, 10);
	/* All dropped units were returned. */
	ck_assert_int_eq(NC_list(cache, &cursor, units, sizeof(*units), 8), 0);
	close_all();
}
END_TEST

/*
 * Pieces of a stream that was not begun, after its end, out of the window, without a
 * byte, and worse.
 */
START_TEST(test_hostile)
{
	static const char *const records[] = {
		"FLAGS=4",
		"FLAGS=6",
		"FLAGS=2 6 4 4",
		"FLAGS=2 6 4 6",
		"FLAGS=2 2",
		"FLAGS=2 0",
		"FLAGS=2 6 6 6 6 6 6 6 6 6",
		"FLAGS=8 6",
		"FLAGS=2 8 4",
		"FLAGS=c",
		"FLAGS=a",
		"FLAGS=10",
		"FLAGS=80000000",
		"FLAGS=2 4 4",
		"FLAGS=2 6n",
		"FLAGS=2 6z",
	};

	for (unsigned i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		struct NC_response response;
		uint64_t tag;
		int got;

		open_all(1, 0);
		ck_assert_int_eq(submit(0, 5, "DO=raw-records", records[i], NULL), 0);
		while ((got = reap(0, &tag, &response)) == 1)
			ck_assert_uint_eq(tag, 5);
		ck_assert_int_eq(got, -1);
		ck_assert_int_eq(errno, EPROTO);
		close_all();
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_stream);
	tcase_add_test(tcase, test_window);
	tcase_add_test(tcase, test_owed);
	tcase_add_test(tcase, test_others_are_kept);
	tcase_add_test(tcase, test_cancel);
	tcase_add_test(tcase, test_gone);
	tcase_add_test(tcase, test_abort);
	tcase_add_test(tcase, test_errors);
	tcase_add_test(tcase, test_bad_units);
	tcase_add_test(tcase, test_hostile);
}

RUN_SUITE("backend-stream", fill)
