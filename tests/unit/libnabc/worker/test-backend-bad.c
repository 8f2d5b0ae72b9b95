/* SPDX-License-Identifier: MIT */
/*
 * test-backend-bad.c - unit tests of backend.c with workers that send invalid
 * responses, and with workers that exit.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend-fixture.h"
#include "suite.h"
#include "unit-holds.h"

#define BODY ((size_t)100 << 10)

/* --- workers that send invalid responses ---------------------------------- */

static void check_502(const char *first, const char *second, const char *third)
{
	char request[256] = "DO=raw", *at = request + 7;
	const char *part[3] = {first, second, third};
	struct NC_response response;
	uint64_t tag;

	for (unsigned i = 0; i < 3 && part[i]; i++)
		at = stpcpy(at, part[i]) + 1;
	ck_assert_int_eq(NC_backend_submit(backend, 0, 77, request, (size_t)(at - request), 0), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	memset(&response, 0xff, sizeof(response));
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	ck_assert_uint_eq(tag, 77);
	ck_assert_int_eq(response.status, 502);
	ck_assert_uint_eq(response.headers_length, 0);
	ck_assert_uint_eq(response.body.id, 0);
	ck_assert_uint_eq(response.body.length, 0);
	ck_assert_uint_eq(response.flags, 0);
}

START_TEST(test_bad_bodies)
{
	NC_backend *other, *mine;
	struct NC_response response;
	char text[64];
	NC_handle handle;
	uint64_t tag;
	size_t id;

	open_all(1, 0);
	mine = backend;
	/* A unit of the server. */
	ck_assert_int_eq(NC_alloc(&handle, 100, 0), 0);
	ck_assert_int_eq(NC_insert(&handle), 0);
	snprintf(text, sizeof(text), "ID=%zu", NC_cache_id(&handle));
	check_502(text, "LENGTH=10", NULL);
	/* A living unit of another worker. */
	other = backend = start_worker(1, 0);
	ck_assert_ptr_nonnull(other);
	ck_assert_int_eq(submit(0, 5, "DO=keep", NULL, NULL), 0);
	while (NC_backend_reap(other, 0, &tag, &response, sizeof(response)) == 0)
		sched_yield();
	ck_assert_int_eq(response.status, 200);
	id = response.body.id;
	backend = mine;
	snprintf(text, sizeof(text), "ID=%zu", id);
	check_502(text, "LENGTH=4", NULL);
	/* It is not affected. */
	ck_assert_int_eq(hold_id(NULL, id), 0);
	ck_assert_int_eq(release_id(NULL, id), 0);
	ck_assert_int_eq(release_id(NULL, id), 0);
	ck_assert_int_eq(NC_backend_close(other), 0);
	/* Dead, beyond its end, with wrong fields, nonexistent. */
	check_502(text, "LENGTH=4", NULL);
	check_502("WHOSE=stale", "LENGTH=1", NULL);
	check_502("WHOSE=own", "LENGTH=11", NULL);
	check_502("WHOSE=own", "OFFSET=11", NULL);
	check_502("WHOSE=own", "OFFSET=10", "LENGTH=1");
	check_502("WHOSE=own", "OFFSET=18446744073709551615", "LENGTH=2");
	check_502("WHOSE=lie", "LENGTH=1", NULL);
	check_502("ID=18446744073709551615", "LENGTH=1", NULL);
	check_502("ID=1", "LENGTH=1", NULL);
	/* The worker's own error; it may continue. */
	check_echo(0, 3);
	ck_assert_int_eq(NC_free(&handle), 0);
	close_all();
}
END_TEST

/* One bad range invalidates the whole list: nothing stays held, the others are returned or stay. */
START_TEST(test_spoilt_lists)
{
	static const char ways[][32] = {"DO=spoilt\0HOW=foreign", "DO=spoilt\0HOW=stale",
					"DO=spoilt\0HOW=length"};

	open_all(1, 0);
	for (unsigned i = 0; i < 4 * 3 * 2; i++) {
		unsigned at = i % 4, way = i / 4 % 3, keep = i / 12;
		struct NC_response response;
		char variables[128], *end;
		size_t ids[4];
		uint64_t tag;

		memcpy(variables, ways[way], sizeof(ways[way]));
		end = variables + 10;
		end += strlen(end) + 1;
		end += sprintf(end, "COUNT=4") + 1;
		end += sprintf(end, "AT=%u", at) + 1;
		end += sprintf(end, "FLAGS=%u", keep) + 1;
		ck_assert_int_eq(
			NC_backend_submit(backend, 0, i, variables, (size_t)(end - variables), 0),
			0);
		ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
		memset(&response, 0xff, sizeof(response));
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		ck_assert_int_eq(response.status, 502);
		ck_assert_uint_eq(response.flags, 0);
		ck_assert_uint_eq(response.range_count, 0);
		ck_assert_uint_eq(response.headers_length, 0);
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		ck_assert_int_eq(response.status, 200);
		take_body(&response, (char *)ids);
		for (unsigned j = 0; j < 3; j++) {
			/* Of the list, units out of its bounds are lost. */
			bool lives = keep && !(way == 2 && (at == j || (at == 3 && j == 0)));

			ck_assert_int_eq(release_id(NULL, ids[j]), -1);
			ck_assert_int_eq(errno, EINVAL);
			lives |= !keep && way < 2 && at && j == at;
			ck_assert_int_eq(hold_id(NULL, ids[j]), lives ? 0 : -1);
			if (release_id(NULL, ids[j]) == 0)
				ck_assert_int_eq(NC_destroy(NULL, ids[j]), 0);
		}
	}
	check_echo(0, 3);
	close_all();
}
END_TEST

START_TEST(test_garbage)
{
	static const char *const kinds[] = {"WHERE=head", "WHERE=status", "WHERE=short",
					    "WHERE=data"};

	for (unsigned i = 0; i < 4; i++) {
		struct NC_response response;
		uint64_t tag;

		open_all(1, 0);
		check_echo(0, 1);
		ck_assert_int_eq(submit(0, 2, "DO=garbage", kinds[i], NULL), 0);
		ck_assert_int_eq(reap(0, &tag, &response), -1);
		ck_assert_int_eq(errno, EPROTO);
		close_all();
	}
}
END_TEST

/* A worker that corrupts the server's write position. */
START_TEST(test_garbage_tail)
{
	open_all(1, 0);
	ck_assert_int_eq(NC_backend_arm(backend, 0, 1), 0);
	ck_assert_int_eq(submit(0, 1, "DO=garbage", "WHERE=tail", NULL), 0);
	ck_assert(rung(0));
	ck_assert_int_eq(submit(0, 2, "DO=echo", NULL, NULL), -1);
	ck_assert_int_eq(errno, EPROTO);
	close_all();
}
END_TEST

/* --- workers that exit -------------------------------------------------------- */

static siginfo_t ended(void)
{
	siginfo_t info = {0};

	await(NC_backend_pidfd(backend), POLLIN);
	ck_assert_int_eq(waitid(P_PIDFD, (id_t)NC_backend_pidfd(backend), &info, WEXITED | WNOWAIT),
			 0);
	return info;
}

START_TEST(test_death)
{
	struct NC_hold hold;
	static const char *const ways[] = {"DO=die", "DO=exit"};

	for (unsigned i = 0; i < 2; i++) {
		struct NC_response response;
		uint64_t tag;
		char got[BODY];
		siginfo_t info;

		open_all(1, 0);
		ck_assert_int_eq(submit(0, 1, "DO=large", NULL, NULL), 0);
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		ck_assert_int_eq(response.status, 200);
		ck_assert(!readable(NC_backend_pidfd(backend)));
		ck_assert_int_eq(submit(0, 2, ways[i], NULL, NULL), 0);
		info = ended();
		if (i == 0) {
			ck_assert_int_eq(info.si_code, CLD_KILLED);
			ck_assert_int_eq(info.si_status, SIGKILL);
		} else {
			ck_assert_int_eq(info.si_code, CLD_EXITED);
			ck_assert_int_eq(info.si_status, 5);
		}
		ck_assert_int_eq(NC_backend_reap(backend, 0, &tag, &response, sizeof(response)), 0);
		close_all();
		/* A new cache, and another worker, whose unit outlives the backend. */
		open_all(1, 0);
		ck_assert_int_eq(submit(0, 1, "DO=large", NULL, NULL), 0);
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		/* Pointers into the backend end with it. */
		hold = response.holds[0];
		response.holds = &hold;
		response.ranges = &response.body;
		ck_assert_int_eq(NC_backend_close(backend), 0);
		close(pollers[0]);
		ck_assert_int_eq(hold_id(NULL, response.body.id), -1);
		ck_assert_int_eq(errno, ENOENT);
		take_body(&response, got);
		ck_assert_uint_eq(*(uint64_t *)(void *)got, 1);
		ck_assert_int_eq(NC_cache_close(cache), 0);
	}
}
END_TEST

START_TEST(test_exec_fails)
{
	char *const argv[] = {"/nonexistent/worker", NULL};
	siginfo_t info;

	open_cache();
	backend = start_program(argv, NULL, 1, 0);
	/* The start succeeds; its failure shows afterwards. */
	ck_assert_ptr_nonnull(backend);
	ck_assert_int_eq(submit(0, 1, "DO=echo", NULL, NULL), 0);
	info = ended();
	ck_assert_int_eq(info.si_code, CLD_EXITED);
	ck_assert_int_eq(info.si_status, 127);
	pollers[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close_all();
}
END_TEST

/* The worker does not read: the queue fills up; after its exit, submission reports that. */
START_TEST(test_request_queue_full)
{
	char *const argv[] = {"sleep", "1000", NULL};
	char block[4000];
	unsigned count = 0;

	open_cache();
	backend = start_program(argv, NULL, 1, 0);
	ck_assert_ptr_nonnull(backend);
	memset(block, 'x', sizeof(block));
	block[sizeof(block) - 1] = '\0';
	while (NC_backend_submit(backend, 0, count, block, sizeof(block), 0) == 0)
		ck_assert_uint_lt(count++, 1000);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_uint_gt(count, 4);
	/* The server can still report that a client has disconnected. */
	for (unsigned i = 0; i < 600; i++)
		ck_assert_int_eq(NC_backend_cancel(backend, 0, i), 0);
	while (NC_backend_cancel(backend, 0, 0) == 0)
		ck_assert_uint_lt(count++, 10000);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	ck_assert_int_eq(kill(NC_backend_pid(backend), SIGKILL), 0);
	await(NC_backend_pidfd(backend), POLLIN);
	ck_assert_int_eq(NC_backend_submit(backend, 0, count, block, sizeof(block), 0), -1);
	ck_assert_int_eq(errno, EPIPE);
	ck_assert_int_eq(NC_backend_cancel(backend, 0, 0), -1);
	ck_assert_int_eq(errno, EPIPE);
	pollers[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close_all();
}
END_TEST

/* The caller may have waited for the worker itself. */
START_TEST(test_reaped_by_caller)
{
	struct NC_response response;
	uint64_t tag;

	open_all(1, 0);
	ck_assert_int_eq(submit(0, 2, "DO=exit", NULL, NULL), 0);
	await(NC_backend_pidfd(backend), POLLIN);
	ck_assert_int_eq(waitid(P_PIDFD, (id_t)NC_backend_pidfd(backend), &(siginfo_t){0}, WEXITED),
			 0);
	ck_assert_int_eq(NC_backend_reap(backend, 0, &tag, &response, sizeof(response)), 0);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_bad_bodies);
	tcase_add_test(tcase, test_spoilt_lists);
	tcase_add_test(tcase, test_garbage);
	tcase_add_test(tcase, test_garbage_tail);
	tcase_add_test(tcase, test_death);
	tcase_add_test(tcase, test_exec_fails);
	tcase_add_test(tcase, test_request_queue_full);
	tcase_add_test(tcase, test_reaped_by_caller);
}

RUN_SUITE("backend-bad", fill)
