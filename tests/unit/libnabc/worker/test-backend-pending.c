/* SPDX-License-Identifier: MIT */
/*
 * test-backend-untaken.c - unit tests of the number of requests that a worker never
 * began, which its exit shows; by id and by bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc-worker.h>

#include "os/queue.h"
#include "wire/channel.h"
#include "worker/backend.h"

#include "backend-fixture.h"
#include "suite.h"

static void await_end(void)
{
	await(NC_backend_pidfd(backend), POLLIN);
}

static void check_pending(unsigned channel, int expected)
{
	ck_assert_int_eq(NC_backend_pending(backend, channel), expected);
}

static void check_failure(unsigned channel, int error)
{
	errno = 0;
	ck_assert_int_eq(NC_backend_pending(backend, channel), -1);
	ck_assert_int_eq(errno, error);
}

static void submit_some(unsigned channel, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(submit(channel, 100 + i, "DO=echo", "VALUE=late", NULL), 0);
}

static void check_answer(uint64_t tag)
{
	struct NC_response response;
	uint64_t told;

	ck_assert_int_eq(reap(0, &told, &response), 1);
	ck_assert_uint_eq(told, tag);
	ck_assert_int_eq(response.status, 200);
	release_all(&response);
	NC_backend_data_free(response.data);
}

START_TEST(test_behind)
{
	/* By id, then by bytes. */
	backend_flags = (unsigned)_i;
	for (unsigned behind = 0; behind < 4; behind++) {
		open_all(1, 0);
		check_failure(0, EBUSY);
		submit_some(0, 2);
		check_answer(100);
		check_answer(101);
		ck_assert_int_eq(submit(0, 2, "DO=die", NULL, NULL), 0);
		submit_some(0, behind);
		await_end();
		check_pending(0, (int)behind);
		close_all();
	}
	backend_flags = 0;
}
END_TEST

/* Responses that were not reaped belong to begun requests. */
START_TEST(test_answered)
{
	open_all(1, 0);
	submit_some(0, 5);
	ck_assert_int_eq(submit(0, 2, "DO=exit", NULL, NULL), 0);
	await_end();
	check_pending(0, 0);
	for (uint64_t tag = 100; tag < 105; tag++)
		check_answer(tag);
	close_all();
}
END_TEST

/* Each channel for itself. */
START_TEST(test_channels)
{
	open_all(3, 0);
	/* Sleeping or not, it reads the first channel first. */
	ck_assert_int_eq(NC_backend_submit(backend, 0, 1, "DO=die", 7, 0), 0);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(NC_backend_submit(backend, 1, i, "DO=echo", 8, 0), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	await_end();
	check_pending(0, 0);
	check_pending(1, 2);
	check_pending(2, 0);
	close_all();
}
END_TEST

/* A program that never got that far. */
START_TEST(test_no_worker)
{
	char *const argv[] = {"true", NULL};

	open_cache();
	backend = start_program(argv, NULL, 1, 0);
	ck_assert_ptr_nonnull(backend);
	submit_some(0, 3);
	await_end();
	check_pending(0, 3);
	pollers[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close_all();
}
END_TEST

/* A request that does not fit into the queue was not passed. */
START_TEST(test_refused)
{
	char *const argv[] = {"sleep", "1000", NULL};
	char block[4000] = "";
	int count = 0;

	open_cache();
	backend = start_program(argv, NULL, 1, 0);
	ck_assert_ptr_nonnull(backend);
	while (NC_backend_submit(backend, 0, (uint64_t)count, block, sizeof(block), 0) == 0)
		count++;
	ck_assert_int_eq(errno, EAGAIN);
	/* A message about a request is not a request. */
	ck_assert_int_eq(NC_backend_cancel(backend, 0, 1), 0);
	ck_assert_int_eq(kill(NC_backend_pid(backend), SIGKILL), 0);
	await_end();
	check_pending(0, count);
	pollers[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close_all();
}
END_TEST

/* A worker that waits for a body takes others out of the queue, and begins none. */
START_TEST(test_kept)
{
	for (unsigned answered = 0; answered < 2; answered++) {
		open_all(1, 0);
		ck_assert_int_eq(
			NC_backend_submit(backend, 0, 1, "DO=read-body", 13, NC_REQUEST_BODY), 0);
		submit_some(0, 3);
		await_empty();
		if (answered) {
			ck_assert_int_eq(NC_backend_body(backend, 0, 1, NULL, NC_BODY_LAST), 0);
			ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
			check_answer(1);
			for (uint64_t tag = 100; tag < 103; tag++)
				check_answer(tag);
		}
		ck_assert_int_eq(kill(NC_backend_pid(backend), SIGKILL), 0);
		await_end();
		check_pending(0, answered ? 0 : 3);
		close_all();
	}
}
END_TEST

/* An impossible number is reported as unknown. */
START_TEST(test_lies)
{
	static const uint64_t lies[] = {
		0, 1, 4, UINT64_MAX, NC_CHANNEL_CLAIMS - 1, NC_CHANNEL_CLAIMS + 5};
	struct nc_queue_shared *shared;

	open_all(1, 0);
	shared = backend->channel[0].queues.requests.shared;
	ck_assert_int_eq(submit(0, 2, "DO=die", NULL, NULL), 0);
	submit_some(0, 3);
	await_end();
	check_pending(0, 3);
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		shared->claims = lies[i];
		check_failure(0, EPROTO);
	}
	/* This number is possible. */
	shared->claims = NC_CHANNEL_CLAIMS;
	check_pending(0, 4);
	shared->claims = NC_CHANNEL_CLAIMS + 4;
	check_pending(0, 0);
	close_all();
}
END_TEST

START_TEST(test_faces_refuse)
{
	open_all(2, 0);
	ck_assert_int_eq(NC_backend_pending(NULL, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
	check_failure(2, EINVAL);
	check_failure(1, EBUSY);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_behind, 0, NC_BACKEND_POSIX + 1);
	tcase_add_test(tcase, test_answered);
	tcase_add_test(tcase, test_channels);
	tcase_add_test(tcase, test_no_worker);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_kept);
	tcase_add_test(tcase, test_lies);
	tcase_add_test(tcase, test_faces_refuse);
}

RUN_SUITE("backend-pending", fill)
