/* SPDX-License-Identifier: MIT */
/*
 * test-backend-withdraw.c - unit tests of requests that the server withdraws from a
 * living worker: each is begun or withdrawn, never both or neither.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "base/hash-table.h"
#include "os/queue.h"
#include "wire/channel.h"
#include "wire/pending.h"
#include "wire/send-window.h"
#include "worker/backend.h"

#include "backend-fixture.h"
#include "suite.h"

#define FIRST 100 /* tag of the first request that can be withdrawn */

static void check_withdraw(unsigned most, int count, unsigned left)
{
	unsigned stays = 1000000;

	ck_assert_int_eq(NC_backend_withdraw(backend, 0, most, &stays), count);
	ck_assert_uint_eq(stays, left);
}

static void check_refused(unsigned channel, unsigned *left, int error)
{
	errno = 0;
	ck_assert_int_eq(NC_backend_withdraw(backend, channel, 1, left), -1);
	ck_assert_int_eq(errno, error);
}

static void submit_some(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(submit(0, FIRST + i, "DO=echo", "VALUE=late", NULL), 0);
}

static uint64_t reap_tag(void)
{
	struct NC_response response;
	uint64_t tag;

	do
		ck_assert_int_eq(reap(0, &tag, &response), 1);
	while (response.flags & NC_RESPONSE_TAKEN);
	ck_assert_int_eq(response.status, 200);
	release_all(&response);
	NC_backend_data_free(response.data);
	return tag;
}

/* The worker does nothing in between. */
static void stop_worker(void)
{
	siginfo_t info;

	ck_assert_int_eq(kill(NC_backend_pid(backend), SIGSTOP), 0);
	ck_assert_int_eq(waitid(P_PID, (id_t)NC_backend_pid(backend), &info, WSTOPPED | WNOWAIT),
			 0);
}

static void continue_worker(void)
{
	ck_assert_int_eq(kill(NC_backend_pid(backend), SIGCONT), 0);
}

static void check_works(void)
{
	ck_assert_int_eq(submit(0, 7, "DO=echo", "VALUE=next", NULL), 0);
	ck_assert_uint_eq(reap_tag(), 7);
}

/* By id, then by bytes. */
START_TEST(test_oldest_first)
{
	backend_flags = (unsigned)_i;
	open_all(1, 0);
	check_works();
	check_withdraw(5, 0, 0);
	stop_worker();
	submit_some(6);
	check_withdraw(0, 0, 6);
	check_withdraw(1, 1, 5);
	check_withdraw(3, 3, 2);
	continue_worker();
	ck_assert_uint_eq(reap_tag(), FIRST + 4);
	ck_assert_uint_eq(reap_tag(), FIRST + 5);
	check_withdraw(5, 0, 0);
	check_works();
	close_all();
	backend_flags = 0;
}
END_TEST

static void check_pending(uint64_t tag)
{
	errno = 0;
	ck_assert_int_eq(submit(0, tag, "DO=echo", "VALUE=twice", NULL), -1);
	ck_assert_int_eq(errno, EEXIST);
}

/* A tag is free again when its response is reaped, and when its request is withdrawn. */
START_TEST(test_tags)
{
	backend_flags = (unsigned)_i;
	open_all(2, 0);
	check_works();
	stop_worker();
	submit_some(3);
	for (unsigned i = 0; i < 3; i++)
		check_pending(FIRST + i);
	/* Another channel has tags of its own. */
	ck_assert_int_eq(NC_backend_submit(backend, 1, FIRST, NULL, 0, 0), 0);
	check_withdraw(1, 1, 2);
	ck_assert_int_eq(submit(0, FIRST, "DO=echo", "VALUE=again", NULL), 0);
	check_pending(FIRST);
	check_pending(FIRST + 1);
	/* One that failed is not pending. */
	ck_assert_int_eq(NC_backend_submit(backend, 0, 8, "no end", 6, 0), -1);
	ck_assert_int_eq(submit(0, 8, "DO=echo", "VALUE=late", NULL), 0);
	continue_worker();
	ck_assert_uint_eq(reap_tag(), FIRST + 1);
	ck_assert_uint_eq(reap_tag(), FIRST + 2);
	ck_assert_uint_eq(reap_tag(), FIRST);
	ck_assert_uint_eq(reap_tag(), 8);
	submit_some(3);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(reap_tag(), FIRST + i);
	close_all();
	backend_flags = 0;
}
END_TEST

/*
 * A worker that never started, and one that has exited: withdrawn requests are not
 * counted as untaken.
 */
START_TEST(test_no_worker)
{
	char *const argv[] = {"sleep", "1000", NULL};

	open_cache();
	backend = start_program(argv, NULL, 1, 0);
	ck_assert_ptr_nonnull(backend);
	submit_some(5);
	check_withdraw(2, 2, 3);
	ck_assert_int_eq(kill(NC_backend_pid(backend), SIGKILL), 0);
	await(NC_backend_pidfd(backend), POLLIN);
	ck_assert_int_eq(NC_backend_pending(backend, 0), 3);
	check_withdraw(1, 1, 2);
	ck_assert_int_eq(NC_backend_pending(backend, 0), 2);
	check_withdraw(9, 2, 0);
	ck_assert_int_eq(NC_backend_pending(backend, 0), 0);
	pollers[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close_all();
}
END_TEST

static void begin_body(void)
{
	ck_assert_int_eq(NC_backend_submit(backend, 0, 1, "DO=read-body", 13, NC_REQUEST_BODY), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
}

static void end_body(void)
{
	ck_assert_int_eq(NC_backend_body(backend, 0, 1, NULL, NC_BODY_LAST), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	ck_assert_uint_eq(reap_tag(), 1);
}

/* A worker that waits for a body keeps others in its own memory: they can be withdrawn. */
START_TEST(test_kept)
{
	open_all(1, 0);
	begin_body();
	submit_some(5);
	await_empty();
	check_withdraw(3, 3, 2);
	/* The tag of the withdrawn one is free; that of the current one is not. */
	ck_assert_int_eq(submit(0, FIRST, "DO=echo", "VALUE=again", NULL), 0);
	await_empty();
	end_body();
	ck_assert_uint_eq(reap_tag(), FIRST + 3);
	ck_assert_uint_eq(reap_tag(), FIRST + 4);
	ck_assert_uint_eq(reap_tag(), FIRST);
	check_works();
	close_all();
}
END_TEST

/* Any number of requests can be withdrawn while it waits: the next one still fits. */
START_TEST(test_many_kept)
{
	static char block[30000] = "DO=echo";

	open_all(1, 0);
	begin_body();
	for (size_t bytes = 0; bytes < 2 * NC_PENDING_KEPT_MAX; bytes += sizeof(block)) {
		ck_assert_int_eq(NC_backend_submit(backend, 0, FIRST, block, sizeof(block), 0), 0);
		ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
		await_empty();
		check_withdraw(1, 1, 0);
	}
	end_body();
	check_works();
	close_all();
}
END_TEST

/* Messages about a request before and after its withdrawal do no harm. */
START_TEST(test_bodies)
{
	struct NC_range piece = {.id = 77, .length = 1};

	open_all(1, 0);
	check_works();
	stop_worker();
	for (uint64_t tag = FIRST; tag < FIRST + 3; tag++) {
		ck_assert_int_eq(
			NC_backend_submit(backend, 0, tag, "DO=read-body", 13, NC_REQUEST_BODY), 0);
		if (tag < FIRST + 2)
			ck_assert_int_eq(NC_backend_body(backend, 0, tag, &piece, 0), 0);
	}
	ck_assert_int_eq(NC_backend_cancel(backend, 0, FIRST + 1), 0);
	check_withdraw(2, 2, 1);
	ck_assert_uint_eq(backend->channel[0].windows.table.count, 1);
	errno = 0;
	ck_assert_int_eq(NC_backend_body(backend, 0, FIRST, NULL, NC_BODY_LAST), -1);
	ck_assert_int_eq(errno, ENOENT);
	/* The same tags again, with and without bodies. */
	ck_assert_int_eq(NC_backend_submit(backend, 0, FIRST, "DO=read-body", 13, NC_REQUEST_BODY),
			 0);
	ck_assert_int_eq(submit(0, FIRST + 1, "DO=echo", "VALUE=again", NULL), 0);
	for (uint64_t tag = FIRST; tag < FIRST + 3; tag += 2)
		ck_assert_int_eq(NC_backend_body(backend, 0, tag, NULL, NC_BODY_LAST), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	continue_worker();
	ck_assert_uint_eq(reap_tag(), FIRST + 2);
	ck_assert_uint_eq(reap_tag(), FIRST);
	ck_assert_uint_eq(reap_tag(), FIRST + 1);
	ck_assert_uint_eq(backend->channel[0].windows.table.count, 0);
	check_works();
	close_all();
}
END_TEST

/* While the worker takes them: no withdrawn request gets a response, and no other one is lost. */
START_TEST(test_race)
{
	unsigned begun = 0, withdrawn = 0;

	open_all(1, 0);
	check_works();
	for (unsigned round = 0; round < scaled(2000); round++) {
		unsigned count = 1 + round % 8, left, first = count;
		/*
		 * Stopped, so that some are left for certain: otherwise the worker might take all
		 * of them.
		 */
		bool stopped = round % 16 == 7;
		int got;

		if (stopped)
			stop_worker();
		for (unsigned i = 0; i < count; i++)
			ck_assert_int_eq(submit(0, FIRST + i, "DO=echo", "VALUE=x", NULL), 0);
		if (round % 3)
			sched_yield();
		got = NC_backend_withdraw(backend, 0, round % 5 + 1, &left);
		ck_assert_int_ge(got, 0);
		if (stopped) {
			ck_assert_int_gt(got, 0);
			continue_worker();
		}
		if (got)
			first = count - left - (unsigned)got;
		for (unsigned i = 0; i < count; i++)
			if (i < first || i >= first + (unsigned)got)
				ck_assert_uint_eq(reap_tag(), FIRST + i);
		begun += count - (unsigned)got;
		withdrawn += (unsigned)got;
	}
	ck_assert_uint_gt(begun, 0);
	ck_assert_uint_gt(withdrawn, 0);
	check_withdraw(1, 0, 0);
	close_all();
}
END_TEST

/* An impossible number is refused, by the server and by a worker. */
START_TEST(test_lies)
{
	static const uint64_t lies[] = {0, 1, UINT64_MAX, NC_CHANNEL_CLAIMS - 1,
					NC_CHANNEL_CLAIMS + 5};
	struct nc_queue_shared *shared;
	unsigned left;

	open_all(1, 0);
	check_works();
	stop_worker();
	submit_some(3);
	shared = backend->channel[0].queues.requests.shared;
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		shared->claims = lies[i];
		check_refused(0, &left, EPROTO);
	}
	shared->claims = 5;
	continue_worker();
	await(NC_backend_pidfd(backend), POLLIN);
	close_all();
}
END_TEST

START_TEST(test_faces_refuse)
{
	unsigned left;

	open_all(2, 0);
	ck_assert_int_eq(NC_backend_withdraw(NULL, 0, 1, &left), -1);
	ck_assert_int_eq(errno, EINVAL);
	check_refused(2, &left, EINVAL);
	check_refused(1, NULL, EINVAL);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_oldest_first, 0, NC_BACKEND_POSIX + 1);
	tcase_add_loop_test(tcase, test_tags, 0, NC_BACKEND_POSIX + 1);
	tcase_add_test(tcase, test_no_worker);
	tcase_add_test(tcase, test_kept);
	tcase_add_test(tcase, test_many_kept);
	tcase_add_test(tcase, test_bodies);
	tcase_add_test(tcase, test_race);
	tcase_add_test(tcase, test_lies);
	tcase_add_test(tcase, test_faces_refuse);
}

RUN_SUITE("backend-withdraw", fill)
