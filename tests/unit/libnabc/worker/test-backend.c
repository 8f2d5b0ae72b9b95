/* SPDX-License-Identifier: MIT */
/*
 * test-backend.c - unit tests of backend.c with correct workers: requests and
 * responses of every size, channels, returned memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/process.h"
#include "os/queue.h"
#include "wire/channel.h"
#include "worker/backend.h"

#include "backend-fixture.h"
#include "suite.h"
#include "unit-holds.h"

#define BODY ((size_t)100 << 10)

START_TEST(test_start_refused)
{
	char *const none[] = {NULL};
	char *const some[] = {"true", NULL};
	struct NC_cache_stat stat;
	unsigned descriptors;

	open_cache();
	descriptors = open_descriptors();
#define REFUSED(argv, channels, memory, error)                                                     \
	do {                                                                                       \
		ck_assert_ptr_null(start_program(argv, NULL, channels, memory));                   \
		ck_assert_int_eq(errno, error);                                                    \
		ck_assert_uint_eq(open_descriptors(), descriptors);                                \
	} while (0)
	REFUSED(some, 0, 0, EINVAL);
	REFUSED(some, NC_CHANNELS_MAX + 1, 0, EINVAL);
	REFUSED(none, 1, 0, EINVAL);
	REFUSED(NULL, 1, 0, EINVAL);
	REFUSED(some, 1, 1, EINVAL);
	REFUSED(some, 1, SIZE_MAX, EINVAL);
#undef REFUSED
	ck_assert_ptr_null(NC_backend_start(cache, NULL));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.members, 0);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

START_TEST(test_faces_refuse)
{
	struct NC_response response;
	uint64_t tag;

	open_all(2, 0);
#define REFUSED(call)                                                                              \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert_int_eq(call, -1);                                                        \
		ck_assert_int_eq(errno, EINVAL);                                                   \
	} while (0)
	REFUSED(NC_backend_pid(NULL));
	REFUSED(NC_backend_pidfd(NULL));
	REFUSED(NC_backend_fd(NULL, 0));
	REFUSED(NC_backend_fd(backend, 2));
	REFUSED(NC_backend_submit(NULL, 0, 0, "", 1, 0));
	REFUSED(NC_backend_submit(backend, 2, 0, "", 1, 0));
	REFUSED(NC_backend_submit(backend, 0, 0, NULL, 1, 0));
	REFUSED(NC_backend_submit(backend, 0, 0, "A=1", 3, 0));
	REFUSED(NC_backend_kick(backend, 2));
	REFUSED(NC_backend_reap(backend, 2, &tag, &response, sizeof(response)));
	REFUSED(NC_backend_reap(backend, 0, NULL, &response, sizeof(response)));
	REFUSED(NC_backend_reap(backend, 0, &tag, NULL, 1));
	REFUSED(NC_backend_arm(backend, 2, 1));
	REFUSED(NC_backend_arm(backend, 2, 1));
	REFUSED(NC_backend_arm(backend, 0, 0));
	REFUSED(NC_backend_close(NULL));
#undef REFUSED
	ck_assert_int_eq(NC_backend_reap(backend, 1, &tag, &response, sizeof(response)), 0);
	close_all();
}
END_TEST

START_TEST(test_echo)
{
	open_all(2, 0);
	ck_assert_int_eq(NC_backend_pid(backend), backend->process.pid);
	check_echo(0, 1);
	check_echo(1, UINT64_MAX);
	check_echo(0, 0);
	close_all();
}
END_TEST

/* The environment of a worker. */
static void open_poller(void)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	pollers[0] = epoll_create1(EPOLL_CLOEXEC);
	ck_assert_int_eq(epoll_ctl(pollers[0], EPOLL_CTL_ADD, NC_backend_fd(backend, 0), &event),
			 0);
}

/* A worker that passes the descriptor to NC_worker_open() itself, and a function for its log. */
START_TEST(test_worker_options)
{
	char *const argv[] = {(char *)helper_path("WORKER_FIXTURE", "worker-fixture"),
			      (char *)"socket", NULL};
	struct NC_response response;
	char got[BODY];
	uint64_t tag;

	open_cache();
	backend = start_program(argv, NULL, 1, 0);
	ck_assert_ptr_nonnull(backend);
	open_poller();
	ck_assert_int_eq(submit(0, 1, "DO=environment", NULL, NULL), 0);
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	ck_assert_int_eq(response.status, 200);
	(void)take_body(&response, got);
	close_all();
}
END_TEST

START_TEST(test_environment)
{
	char *const argv[] = {(char *)helper_path("WORKER_FIXTURE", "worker-fixture"), NULL};
	char *const more[] = {"FIRST=added", "HOME=/replaced", NULL};
	static const char *const names[] = {"NAME=FIRST", "NAME=HOME", "NAME=NABC_SERVER_PID",
					    "NAME=INHERITED"};
	char expected[4][64], got[256];

	snprintf(expected[0], sizeof(expected[0]), "added;%d;1;1", getpid());
	snprintf(expected[1], sizeof(expected[1]), "/replaced;%d;1;1", getpid());
	snprintf(expected[2], sizeof(expected[2]), "%d;%d;1;1", getpid(), getpid());
	snprintf(expected[3], sizeof(expected[3]), "yes;%d;1;1", getpid());
	setenv("INHERITED", "yes", 1);
	open_all(1, 0);
	ck_assert_int_eq(NC_backend_close(backend), 0);
	close(pollers[0]);
	backend = start_program(argv, more, 1, 0);
	ck_assert_ptr_nonnull(backend);
	open_poller();
	for (unsigned i = 0; i < 4; i++) {
		struct NC_response response;
		uint64_t tag;

		ck_assert_int_eq(submit(0, i, "DO=environment", names[i], NULL), 0);
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		ck_assert_uint_eq(response.body.length, strlen(expected[i]));
		take_body(&response, got);
		ck_assert_mem_eq(got, expected[i], strlen(expected[i]));
	}
	close_all();
}
END_TEST

/* Blocks of every size up to the largest, and one beyond. */
START_TEST(test_block_sizes)
{
	static const size_t sizes[] = {16, 4096, NC_BLOCK_MAX - 1, NC_BLOCK_MAX};
	char *block = must_alloc(NC_BLOCK_MAX + 1);
	struct NC_response response;
	uint64_t tag;

	open_all(1, 0);
	for (unsigned i = 0; i < 4; i++) {
		char *got = must_alloc(sizes[i]);

		memcpy(block, "DO=echo\0VALUE=", 14);
		memset(block + 14, 'v', sizes[i] - 15);
		block[sizes[i] - 1] = '\0';
		ck_assert_int_eq(NC_backend_submit(backend, 0, i, block, sizes[i], 0), 0);
		ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		ck_assert_uint_eq(response.body.length, sizes[i] - 15);
		take_body(&response, got);
		ck_assert_mem_eq(got, block + 14, sizes[i] - 15);
		free(got);
	}
	block[NC_BLOCK_MAX] = '\0';
	ck_assert_int_eq(NC_backend_submit(backend, 0, 9, block, NC_BLOCK_MAX + 1, 0), -1);
	ck_assert_int_eq(errno, EMSGSIZE);
	/* A request may have no variables at all. */
	ck_assert_int_eq(NC_backend_submit(backend, 0, 10, NULL, 0, 0), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	ck_assert_uint_eq(tag, 10);
	ck_assert_int_eq(response.status, 404);
	ck_assert_uint_eq(response.body.id, 0);
	ck_assert_uint_eq(response.headers_length, 0);
	free(block);
	close_all();
}
END_TEST

/* A thread of the server on its channel; returns errors as text. */
static void *serve_channel(void *context)
{
	unsigned channel = (unsigned)(uintptr_t)context, requests = scaled(3000);
	uint64_t submitted = 0, answered = 0;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return "socketpair";
	while (answered < requests) {
		struct NC_response response;
		char value[64], got[64];
		struct NC_hold hold;
		struct NC_send message = NC_SEND_INIT(.ranges = &response.body, .range_count = 1);
		uint64_t tag;
		int result;

		while (submitted < requests && submitted < answered + 8) {
			snprintf(value, sizeof(value), "VALUE=%u/%llu", channel,
				 (unsigned long long)submitted);
			if (submit(channel, submitted, "DO=echo", value, NULL))
				return "submit";
			submitted++;
		}
		result = NC_backend_reap(backend, channel, &tag, &response, sizeof(response));
		if (result < 0)
			return "reap";
		if (result == 0) {
			/*
			 * Channel 1 sleeps for several; it is woken for the last ones all the same.
			 */
			if (NC_backend_arm(backend, channel, channel ? 5 : 1) == 0 &&
			    !rung(channel))
				return "no ring in a minute";
			continue;
		}
		snprintf(value, sizeof(value), "%u/%llu", channel, (unsigned long long)answered);
		remember_response(&response);
		use_holds(&message, &hold);
		if (tag != answered || response.status != 200 ||
		    response.body.length != strlen(value))
			return "not the answer";
		if (NC_send(NULL, pair[0], &message) != (ssize_t)strlen(value) ||
		    read(pair[1], got, sizeof(got)) != (ssize_t)strlen(value) ||
		    memcmp(got, value, strlen(value)))
			return "not the body";
		if (release_id(NULL, response.body.id))
			return "release";
		answered++;
	}
	close_pair(pair);
	return NULL;
}

START_TEST(test_two_channels)
{
	pthread_t threads[2];
	void *complaint;

	open_all(2, 0);
	for (uintptr_t i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, serve_channel, (void *)i), 0);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(threads[i], &complaint);
		ck_assert_msg(!complaint, "channel %u: %s", i, (const char *)complaint);
	}
	close_all();
}
END_TEST

START_TEST(test_most_channels)
{
	open_all(NC_CHANNELS_MAX, 0);
	for (unsigned channel = 0; channel < NC_CHANNELS_MAX; channel++)
		check_echo(channel, channel);
	close_all();
}
END_TEST

/* The rules of NC_worker_respond(3), checked in the worker. */
START_TEST(test_worker_errors)
{
	struct NC_response response;
	uint64_t tag;

	open_all(1, 0);
	ck_assert_int_eq(submit(0, 1, "DO=errors", NULL, NULL), 0);
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	ck_assert_uint_eq(response.headers_length, 10);
	ck_assert_mem_eq(response.headers, "X-Bad: 0\r\n", 10);
	ck_assert_int_eq(release_id(NULL, response.body.id), 0);
	close_all();
}
END_TEST

/* --- returned memory ------------------------------------------------------------ */

/* A worker whose responses do not fit into the queue waits until the server reads. */
START_TEST(test_response_queue_full)
{
	unsigned count = 500;
	struct nc_queue_shared *shared;
	struct NC_response response;
	uint64_t tag;
	char text[32];

	open_all(1, 0);
	shared = backend->channel[0].queues.responses.shared;
	snprintf(text, sizeof(text), "COUNT=%u", count);
	ck_assert_int_eq(submit(0, 0, "DO=flood", text, NULL), 0);
	while (!atomic_load(&shared->blocked))
		sched_yield();
	ck_assert_uint_lt(atomic_load(&shared->head), (uint64_t)count * 1000);
	for (uint64_t i = 0; i < count; i++) {
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		ck_assert_uint_eq(tag, i);
		ck_assert_uint_eq(response.headers_length, 1000);
		ck_assert_int_eq(response.headers[999], 'h');
	}
	check_echo(0, 9);
	close_all();
}
END_TEST

/* Far more than the segment holds passes through it, since sent memory is returned. */
START_TEST(test_one_shot)
{
	unsigned responses = scaled(10000), submitted = 0;
	char *got = must_alloc(BODY);

	open_all(1, 4 * MIB);
	for (unsigned answered = 0; answered < responses; answered++) {
		struct NC_response response;
		uint64_t tag;

		for (; submitted < responses && submitted < answered + 16; submitted++)
			ck_assert_int_eq(submit(0, submitted, "DO=large", NULL, NULL), 0);
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		ck_assert_uint_eq(tag, answered);
		ck_assert_int_eq(response.status, 200);
		ck_assert_uint_eq(response.body.length, BODY);
		if (answered % 64) {
			ck_assert_int_eq(release_id(NULL, response.body.id), 0);
		} else {
			take_body(&response, got);
			ck_assert_mem_eq(got, &tag, sizeof(tag));
			for (size_t i = sizeof(tag); i < BODY; i++)
				expect(got[i] == (char)(i * 31 + (i >> 8)));
		}
		/* After sending, the id is dead. */
		ck_assert_int_eq(hold_id(NULL, response.body.id), -1);
		ck_assert_int_eq(errno, ENOENT);
		ck_assert_int_eq(release_id(NULL, response.body.id), -1);
		ck_assert_int_eq(errno, EINVAL);
	}
	free(got);
	close_all();
}
END_TEST

START_TEST(test_keep)
{
	struct NC_response response;
	size_t id = 0;
	uint64_t tag;
	char got[4];

	open_all(1, 0);
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert_int_eq(submit(0, i, "DO=keep", NULL, NULL), 0);
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		ck_assert_int_eq(response.status, 200);
		ck_assert_uint_eq(response.flags, NC_RESPONSE_KEEP);
		if (!id)
			id = response.body.id;
		ck_assert_uint_eq(response.body.id, id);
		if (i % 100 == 0) {
			take_body(&response, got);
			ck_assert_mem_eq(got, "kept", 4);
		} else {
			ck_assert_int_eq(release_id(NULL, id), 0);
		}
		/* Between responses it is still usable. */
		ck_assert_int_eq(hold_id(NULL, id), 0);
		ck_assert_int_eq(release_id(NULL, id), 0);
	}
	/* Two in flight concurrently, released one after the other. */
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(submit(0, i, "DO=keep", NULL, NULL), 0);
		ck_assert_int_eq(reap(0, &tag, &response), 1);
	}
	ck_assert_int_eq(release_id(NULL, id), 0);
	take_body(&response, got);
	ck_assert_mem_eq(got, "kept", 4);
	/* The server may drop it: the next message of the worker about it is stale. */
	ck_assert_int_eq(NC_destroy(NULL, id), 0);
	ck_assert_int_eq(submit(0, 5, "DO=keep", NULL, NULL), 0);
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	ck_assert_int_eq(response.status, 502);
	close_all();
}
END_TEST

/* Lists of every length; one-shot units are dead afterwards, kept ones live. */
START_TEST(test_lists)
{
	open_all(1, 0);
	for (unsigned count = 2; count <= NC_RESPONSE_RANGES_MAX; count++) {
		for (unsigned keep = 0; keep < 2; keep++) {
			struct NC_response response;
			char text[32], got[32];
			uint64_t tag;

			snprintf(text, sizeof(text), "COUNT=%u", count);
			ck_assert_int_eq(
				submit(0, count, "DO=list", text, keep ? "FLAGS=1" : "FLAGS=0"), 0);
			ck_assert_int_eq(reap(0, &tag, &response), 1);
			ck_assert_uint_eq(tag, count);
			ck_assert_int_eq(response.status, 200);
			ck_assert_uint_eq(response.flags, keep ? NC_RESPONSE_KEEP : 0);
			ck_assert_uint_eq(response.headers_length, 13);
			ck_assert_mem_eq(response.headers, "X-List: yes\r\n", 13);
			ck_assert_uint_eq(response.range_count, count);
			ck_assert_uint_eq(response.body.id, 0);
			/* A unit that is listed twice is held twice. */
			ck_assert_uint_eq(response.ranges[0].id, response.ranges[count - 1].id);
			ck_assert_uint_eq(take_body(&response, got), count + 2);
			for (unsigned i = 0; i + 1 < count; i++)
				ck_assert_int_eq(got[i], '0' + (int)i % 10);
			ck_assert_mem_eq(got + count - 1, "<0>", 3);
			for (unsigned i = 0; i < count; i++) {
				size_t id = response.ranges[i].id;

				ck_assert_int_eq(hold_id(NULL, id), keep ? 0 : -1);
				if (keep)
					ck_assert_int_eq(release_id(NULL, id), 0);
				ck_assert_int_eq(release_id(NULL, id), -1);
			}
			for (unsigned i = 0; keep && i + 1 < count; i++)
				ck_assert_int_eq(NC_destroy(NULL, response.ranges[i].id), 0);
		}
	}
	close_all();
}
END_TEST

/* Kept except some: for each set of them. */
START_TEST(test_drop)
{
	open_all(1, 0);
	for (unsigned drops = 0; drops < 8; drops++) {
		struct NC_response response;
		char text[32], got[8];
		uint64_t tag;

		/* Four ranges; the last is the first unit again, so either flag drops it. */
		snprintf(text, sizeof(text), "FLAGS=%u", drops << 16 | NC_RESPONSE_KEEP);
		ck_assert_int_eq(submit(0, drops, "DO=list", "COUNT=4", text), 0);
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		ck_assert_int_eq(response.status, 200);
		ck_assert_uint_eq(take_body(&response, got), 6);
		ck_assert_mem_eq(got, "012<0>", 6);
		for (unsigned i = 0; i < 3; i++) {
			bool dropped = drops >> i & 1;

			ck_assert_int_eq(hold_id(NULL, response.ranges[i].id), dropped ? -1 : 0);
			if (!dropped) {
				ck_assert_int_eq(NC_destroy(NULL, response.ranges[i].id), 0);
				ck_assert_int_eq(release_id(NULL, response.ranges[i].id), 0);
			}
		}
	}
	close_all();
}
END_TEST

/* It handles what it was sent before, and ends by itself; its process group ends with it. */
START_TEST(test_stop)
{
	struct NC_response response;
	siginfo_t ended;
	uint64_t tag;

	open_all(1, 1 << 20);
	check_echo(0, 1);
	ck_assert_int_eq(submit(0, 5, "DO=echo", "VALUE=last", NULL), 0);
	ck_assert_int_eq(NC_backend_stop(backend), 0);
	await(NC_backend_pidfd(backend), POLLIN);
	ck_assert_int_eq(waitid(P_PIDFD, (id_t)NC_backend_pidfd(backend), &ended,
				WEXITED | WNOWAIT | WNOHANG),
			 0);
	ck_assert(ended.si_code == CLD_EXITED && ended.si_status == 0);
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	ck_assert_uint_eq(tag, 5);
	release_all(&response);
	ck_assert_int_eq(NC_backend_stop(backend), 0);
	ck_assert_int_eq(NC_backend_stop(NULL), -1);
	ck_assert_int_eq(errno, EINVAL);
	close_all();
}
END_TEST

START_TEST(test_close_ends_the_group)
{
	int ends[2], errors = dup(STDERR_FILENO);

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	open_cache();
	/* Standard error is all that a worker's child keeps. */
	ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	close(ends[1]);
	backend = start_program(
		(char *const[]){"sh", "-c", "sleep 1000 & echo started >&2; exit 0", NULL}, NULL, 1,
		1 << 20);
	ck_assert_ptr_nonnull(backend);
	ck_assert_int_eq(dup2(errors, STDERR_FILENO), STDERR_FILENO);
	close(errors);
	await(NC_backend_pidfd(backend), POLLIN);
	ck_assert_int_eq(NC_backend_close(backend), 0);
	ck_assert_str_eq(read_to_end(ends[0]), "started\n");
	close(ends[0]);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_start_refused);
	tcase_add_test(tcase, test_faces_refuse);
	tcase_add_test(tcase, test_echo);
	tcase_add_test(tcase, test_worker_options);
	tcase_add_test(tcase, test_environment);
	tcase_add_test(tcase, test_block_sizes);
	tcase_add_test(tcase, test_two_channels);
	tcase_add_test(tcase, test_most_channels);
	tcase_add_test(tcase, test_worker_errors);
	tcase_add_test(tcase, test_response_queue_full);
	tcase_add_test(tcase, test_one_shot);
	tcase_add_test(tcase, test_keep);
	tcase_add_test(tcase, test_lists);
	tcase_add_test(tcase, test_drop);
	tcase_add_test(tcase, test_stop);
	tcase_add_test(tcase, test_close_ends_the_group);
}

RUN_SUITE("backend", fill)
