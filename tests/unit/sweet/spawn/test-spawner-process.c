/* SPDX-License-Identifier: MIT */
/*
 * test-spawner-process.c - unit tests of spawner-process.c and spawner-monitor.c
 * against a compromised server: for any bytes on a channel, only permitted programs
 * are started, no other channel is affected, and nothing accumulates; and what
 * channels receive when the spawner is killed.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "spawn/spawner-process.h"
#include "spawn/spawner-program.h"
#include "spawn/spawner-wire.h"

#include "suite.h"

static char *const base[] = {"PATH=/usr/bin:/bin", NULL};
static char *const sleeping[] = {"sleep", "1000", NULL};
static char *const nothing[] = {"true", NULL};
static const struct spawner_program programs[] = {
	{.path = "/bin/sleep", .argv = sleeping, .variables = base},
	{.path = "/bin/true", .argv = nothing, .variables = base},
};

static int channels[2];
static pid_t process;

static struct spawner_answer hear(int channel);

static void set_up(void)
{
	struct spawner_answer answer;
	int theirs[2];

	for (unsigned i = 0; i < 2; i++) {
		int pair[2];

		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		channels[i] = pair[0];
		theirs[i] = pair[1];
	}
	process = fork_alone();
	if (process == 0)
		spawner_monitor(programs, 2, theirs, 2);
	close_pair(theirs);
	answer = hear(channels[0]);
	ck_assert(answer.kind == SPAWNER_READY && answer.error == 0);
}

static void tear_down(void)
{
	int status;

	close_pair(channels);
	ck_assert_int_eq(waitpid(process, &status, 0), process);
	ck_assert_int_eq(status, 0);
}

/* Sends a message with copies of descriptor 0; returns false if it does not fit. */
static bool say(int channel, const void *data, size_t length, unsigned fds)
{
	alignas(struct cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = length};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *header = (struct cmsghdr *)control;
	ssize_t sent;

	if (fds) {
		*header = (struct cmsghdr){.cmsg_len = CMSG_LEN(fds * sizeof(int)),
					   .cmsg_level = SOL_SOCKET,
					   .cmsg_type = SCM_RIGHTS};
		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE(fds * sizeof(int));
	}
	sent = sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	ck_assert(sent == (ssize_t)length || (sent < 0 && errno == EAGAIN));
	return sent >= 0;
}

static bool say_start(int channel, uint32_t place, uint32_t program)
{
	const struct spawner_request request = {
		.kind = SPAWNER_START, .place = place, .program = program};

	return say(channel, &request, sizeof(request), 0);
}

/* Returns the next reply, without its pidfd; kind 0: the channel was closed. */
static struct spawner_answer hear(int channel)
{
	struct spawner_answer answer = {0};
	ssize_t length;

	await(channel, POLLIN);
	length = recv(channel, &answer, sizeof(answer), 0);
	ck_assert(length == sizeof(answer) || length == 0 || (length < 0 && errno == ECONNRESET));
	return answer;
}

/* The programs of the other channel start and exit as before. */
static void check_other(void)
{
	struct spawner_answer answer;

	ck_assert(say_start(channels[1], 7, 1));
	answer = hear(channels[1]);
	ck_assert_uint_eq(answer.kind, SPAWNER_STARTED);
	answer = hear(channels[1]);
	ck_assert(answer.kind == SPAWNER_ENDED && answer.place == 7 && answer.status == 0);
}

/* --- refused: the channel stays open ---------------------------------------------------- */

START_TEST(test_refused)
{
	struct spawner_request request = {.kind = SPAWNER_START, .program = 2};
	struct spawner_answer answer;
	char bytes[64] = {0};

	ck_assert(say(channels[0], &request, sizeof(request), 0));
	answer = hear(channels[0]);
	ck_assert(answer.kind == SPAWNER_REFUSED && answer.error == EBADMSG);
	request.program = 1;
	/* Descriptors that the message does not announce, and missing ones. */
	ck_assert(say(channels[0], &request, sizeof(request), 4));
	ck_assert_uint_eq(hear(channels[0]).kind, SPAWNER_REFUSED);
	request.fds = 15;
	ck_assert(say(channels[0], &request, sizeof(request), 3));
	ck_assert_uint_eq(hear(channels[0]).kind, SPAWNER_REFUSED);
	request.fds = 0;
	/* Longer than announced. */
	memcpy(bytes, &request, sizeof(request));
	ck_assert(say(channels[0], bytes, sizeof(bytes), 0));
	ck_assert_uint_eq(hear(channels[0]).kind, SPAWNER_REFUSED);
	/* A signal that it does not send, and one without a target. */
	request = (struct spawner_request){.kind = SPAWNER_SIGNAL, .place = 5, .signal = SIGKILL};
	ck_assert(say(channels[0], &request, sizeof(request), 0));
	ck_assert(say_start(channels[0], 0, 0));
	ck_assert_uint_eq(hear(channels[0]).kind, SPAWNER_STARTED);
	request = (struct spawner_request){.kind = SPAWNER_SIGNAL, .signal = SIGABRT};
	ck_assert(say(channels[0], &request, sizeof(request), 0));
	request.signal = SIGTERM;
	ck_assert(say(channels[0], &request, sizeof(request), 0));
	answer = hear(channels[0]);
	ck_assert(answer.kind == SPAWNER_ENDED && WTERMSIG(answer.status) == SIGTERM);
	check_other();
}
END_TEST

/* --- closed: messages that no server would send ------------------------------------------- */

static void check_closed(void)
{
	ck_assert_uint_eq(hear(channels[0]).kind, 0);
	check_other();
}

START_TEST(test_short)
{
	struct spawner_request request = {.kind = SPAWNER_START};

	ck_assert(say(channels[0], &request, sizeof(request) - 1, 0));
	check_closed();
}
END_TEST

START_TEST(test_long)
{
	static char bytes[SPAWNER_MESSAGE_MAX + 1];
	struct spawner_request request = {.kind = SPAWNER_START};

	memcpy(bytes, &request, sizeof(request));
	ck_assert(say(channels[0], bytes, sizeof(bytes), 4));
	check_closed();
}
END_TEST

START_TEST(test_many_descriptors)
{
	struct spawner_request request = {.kind = SPAWNER_START, .fds = 15, .program = 1};

	ck_assert(say(channels[0], &request, sizeof(request), 16));
	check_closed();
}
END_TEST

START_TEST(test_wrong_place)
{
	ck_assert(say_start(channels[0], SPAWNER_PLACES, 1));
	check_closed();
}
END_TEST

/* Closing it ends only what was started through it. */
START_TEST(test_taken_place)
{
	struct spawner_request end = {.kind = SPAWNER_SIGNAL, .place = 3, .signal = SIGKILL};
	pid_t mine, others;

	ck_assert(say_start(channels[0], 3, 0));
	mine = hear(channels[0]).pid;
	ck_assert(say_start(channels[1], 3, 0));
	others = hear(channels[1]).pid;
	ck_assert(mine > 0 && others > 0);
	ck_assert(say_start(channels[0], 3, 0));
	check_closed();
	/* The spawner has reaped it before it reads the next request. */
	while (kill(mine, 0) == 0)
		check_other();
	ck_assert_int_eq(kill(others, 0), 0);
	ck_assert(say(channels[1], &end, sizeof(end), 0));
	ck_assert_uint_eq(hear(channels[1]).kind, SPAWNER_ENDED);
}
END_TEST

/* --- floods ------------------------------------------------------------------------------------- */

/* Requests whose replies are not read: the spawner stops reading from that channel. */
START_TEST(test_flood)
{
	struct spawner_answer answer;
	unsigned sent = 0, refused = 0, more;

	do {
		struct pollfd wait = {.fd = channels[0], .events = POLLOUT};

		for (more = 0; say_start(channels[0], 0, 9); more++)
			;
		sent += more;
		(void)poll(&wait, 1, 200);
		ck_assert_uint_lt(sent, 100000);
	} while (more);
	check_other();
	while (refused < sent) {
		answer = hear(channels[0]);
		ck_assert_uint_eq(answer.kind, SPAWNER_REFUSED);
		refused++;
	}
	ck_assert(say_start(channels[0], 0, 1));
	ck_assert_uint_eq(hear(channels[0]).kind, SPAWNER_STARTED);
	ck_assert_uint_eq(hear(channels[0]).kind, SPAWNER_ENDED);
}
END_TEST

/* The same with programs that exit: each exit is reported in the end, after its start. */
START_TEST(test_flood_of_programs)
{
	static unsigned told[SPAWNER_PLACES];
	unsigned count = scaled(SPAWNER_PLACES), ended = 0;

	for (unsigned i = 0; i < count; i++)
		ck_assert(say_start(channels[0], i, 1));
	check_other();
	while (ended < count) {
		struct spawner_answer answer = hear(channels[0]);

		ck_assert_uint_lt(answer.place, count);
		if (answer.kind == SPAWNER_STARTED) {
			ck_assert_uint_eq(told[answer.place]++, 0);
			continue;
		}
		ck_assert_uint_eq(answer.kind, SPAWNER_ENDED);
		ck_assert_uint_eq(told[answer.place]++, 1);
		ended++;
	}
}
END_TEST

START_TEST(test_noise)
{
	static char bytes[SPAWNER_MESSAGE_MAX];
	uint64_t seed = 5;

	for (unsigned i = 0; i < scaled(300); i++) {
		struct spawner_request request = {.kind = SPAWNER_START};

		for (size_t at = 0; at < 256; at += 8) {
			uint64_t number = random_next(&seed);

			memcpy(bytes + at, &number, 8);
		}
		memcpy(&request, bytes, sizeof(request));
		/* Similar to a valid one. */
		request.kind = 1 + request.kind % 3;
		request.place %= SPAWNER_PLACES;
		request.program %= 3;
		request.fds %= 4;
		request.mount_length %= 3;
		request.script_length %= 3;
		request.block_length %= 128;
		memcpy(bytes, &request, sizeof(request));
		ck_assert(say(channels[0], bytes, sizeof(request) + random_next(&seed) % 128, 0));
		if (request.kind == SPAWNER_START)
			ck_assert_uint_eq(hear(channels[0]).kind, SPAWNER_REFUSED);
		else if (request.kind == SPAWNER_MARK)
			ck_assert_uint_eq(hear(channels[0]).kind, SPAWNER_MARKED);
	}
	check_other();
}
END_TEST

/* --- a spawner that is killed ------------------------------------------------------------------- */

/* Returns the spawner that has started it. */
static pid_t parent_of(pid_t pid)
{
	char path[64];
	int parent = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%*d (%*[^)]) %*c %d", &parent), 1);
	fclose(file);
	return parent;
}

static bool say_mark(int channel, uint32_t number)
{
	const struct spawner_request request = {.kind = SPAWNER_MARK, .place = number};

	return say(channel, &request, sizeof(request), 0);
}

/* Its successor reports that first on each channel, and serves waiting requests. */
START_TEST(test_renewed)
{
	struct spawner_answer answer;
	unsigned heard = 0; /* bits of kinds */
	bool begun = false;
	pid_t spawner;

	ck_assert(say_mark(channels[0], 7));
	answer = hear(channels[0]);
	ck_assert(answer.kind == SPAWNER_MARKED && answer.place == 7);
	ck_assert(say_start(channels[0], 3, 0));
	spawner = parent_of(hear(channels[0]).pid);
	ck_assert_int_ne(spawner, process);
	ck_assert_int_eq(parent_of(spawner), process);
	ck_assert_int_eq(kill(spawner, SIGSTOP), 0);
	ck_assert(say_start(channels[0], 4, 1));
	ck_assert(say_mark(channels[0], ~0u));
	ck_assert_int_eq(kill(spawner, SIGKILL), 0);
	ck_assert_uint_eq(hear(channels[0]).kind, SPAWNER_RENEWED);
	/* The marker comes when the start has begun, or later; the rest in its order. */
	while (heard != (1u << SPAWNER_MARKED | 1u << SPAWNER_STARTED | 1u << SPAWNER_ENDED)) {
		answer = hear(channels[0]);
		if (answer.kind == SPAWNER_BEGUN) {
			ck_assert(answer.place == 4 && heard == 0 && !begun);
			begun = true;
			continue;
		}
		ck_assert(!(heard & 1u << answer.kind));
		ck_assert_uint_eq(answer.place, answer.kind == SPAWNER_MARKED ? ~0u : 4);
		ck_assert(answer.kind != SPAWNER_MARKED || begun || heard & 1u << SPAWNER_STARTED);
		ck_assert(answer.kind != SPAWNER_ENDED ||
			  (answer.status == 0 && heard & 1u << SPAWNER_STARTED));
		heard |= 1u << answer.kind;
	}
	/* The places of the dead spawner's programs are free. */
	ck_assert(say_start(channels[0], 3, 1));
	ck_assert_uint_eq(hear(channels[0]).kind, SPAWNER_STARTED);
	ck_assert_uint_eq(hear(channels[0]).kind, SPAWNER_ENDED);
	ck_assert_uint_eq(hear(channels[1]).kind, SPAWNER_RENEWED);
	check_other();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_short);
	tcase_add_test(tcase, test_long);
	tcase_add_test(tcase, test_many_descriptors);
	tcase_add_test(tcase, test_wrong_place);
	tcase_add_test(tcase, test_taken_place);
	tcase_add_test(tcase, test_flood);
	tcase_add_test(tcase, test_flood_of_programs);
	tcase_add_test(tcase, test_noise);
	tcase_add_test(tcase, test_renewed);
}

RUN_SUITE("spawner-process", fill)
