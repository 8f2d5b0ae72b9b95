/* SPDX-License-Identifier: MIT */
/*
 * test-loop-watch.c - unit tests of the event loop: watched descriptors.  Every test
 * is run with each kind of loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event/loop.h"

#include "loop-fixture.h"
#include "suite.h"

static struct runner runner;

struct bell {
	struct loop_watch watch; /* must be first */
	int fd;
	unsigned count;
	bool stop, read;
};

static void bell_ready(struct loop_watch *op)
{
	struct bell *bell = (struct bell *)op;
	uint64_t value;

	if (bell->read)
		(void)!read(bell->fd, &value, sizeof(value));
	if (bell->stop)
		loop_watch_stop(runner.loop, bell->fd);
	EVENT(bell->count++);
}

static void bell_begin(void *argument)
{
	struct bell *bell = argument;

	bell->watch.ready = bell_ready;
	if (loop_watch_start(runner.loop, &bell->watch, bell->fd))
		ck_abort_msg("loop_watch_start");
}

static void bell_end(void *argument)
{
	loop_watch_stop(runner.loop, ((struct bell *)argument)->fd);
}

static void ring(const struct bell *bell)
{
	uint64_t one = 1;

	ck_assert_int_eq(write(bell->fd, &one, sizeof(one)), sizeof(one));
}

/* Called once for each ring, whether or not it is ever read. */
START_TEST(test_watch)
{
	runner_start(&runner, kind_of(_i));
	for (unsigned reading = 0; reading < 2; reading++) {
		struct bell bell = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .read = reading};

		call(&runner, bell_begin, &bell);
		settle(&runner);
		SEEN(bell.count == 0);
		for (unsigned i = 1; i < 20; i++) {
			ring(&bell);
			AWAIT(bell.count == i);
			settle(&runner);
			SEEN(bell.count == i);
		}
		call(&runner, bell_end, &bell);
		close(bell.fd);
	}
	runner_stop(&runner);
}
END_TEST

START_TEST(test_watch_stop)
{
	struct bell bell = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

	runner_start(&runner, kind_of(_i));
	/* An event from before is reported. */
	ring(&bell);
	call(&runner, bell_begin, &bell);
	AWAIT(bell.count == 1);
	call(&runner, bell_end, &bell);
	ring(&bell);
	settle(&runner);
	SEEN(bell.count == 1);
	/* The descriptor is unchanged and may be watched again; here its callback stops it. */
	bell.stop = true;
	for (unsigned i = 2; i < 10; i++) {
		call(&runner, bell_begin, &bell);
		AWAIT(bell.count == i);
		ring(&bell);
		settle(&runner);
		SEEN(bell.count == i);
	}
	/* Stopped before it could be called. */
	close(bell.fd);
	runner_stop(&runner);
}
END_TEST

/* Stopped while the event is in flight: no callback, also not for a new descriptor. */
static struct bell twins[2];
static unsigned twin_calls[2];

static void twin_ready(struct loop_watch *op)
{
	unsigned own = (unsigned)((struct bell *)op - twins), other = !own;

	EVENT(twin_calls[own]++);
	loop_watch_stop(runner.loop, twins[other].fd);
	close(twins[other].fd);
	/* Most probably with the number that has just become free. */
	twins[other].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop_watch_start(runner.loop, &twins[other].watch, twins[other].fd))
		ck_abort_msg("loop_watch_start");
}

static void twins_begin(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < 2; i++) {
		twins[i].watch.ready = twin_ready;
		twins[i].fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
		if (loop_watch_start(runner.loop, &twins[i].watch, twins[i].fd))
			ck_abort_msg("loop_watch_start");
	}
}

static void twins_end(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < 2; i++) {
		loop_watch_stop(runner.loop, twins[i].fd);
		close(twins[i].fd);
	}
}

START_TEST(test_watch_stale)
{
	runner_start(&runner, kind_of(_i));
	for (unsigned i = 1; i <= scaled(200); i++) {
		call(&runner, twins_begin, NULL);
		AWAIT(twin_calls[0] + twin_calls[1] == i);
		settle(&runner);
		SEEN(twin_calls[0] + twin_calls[1] == i);
		call(&runner, twins_end, NULL);
	}
	runner_stop(&runner);
}
END_TEST

/* The exit of a child, as a gateway watches it. */
START_TEST(test_watch_child)
{
	struct bell bell = {0};
	pid_t pid;
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid = fork_alone();
	if (pid == 0) {
		char byte;

		close(ends[1]);
		_exit((int)read(ends[0], &byte, 1));
	}
	bell.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (bell.fd < 0 && errno == ENOSYS) {
		printf("no pidfd_open() (valgrind 3.19 lacks it)\n");
	} else {
		ck_assert_int_ge(bell.fd, 0);
		runner_start(&runner, kind_of(_i));
		call(&runner, bell_begin, &bell);
		settle(&runner);
		SEEN(bell.count == 0);
		close(ends[1]);
		ends[1] = -1;
		AWAIT(bell.count > 0);
		call(&runner, bell_end, &bell);
		runner_stop(&runner);
		close(bell.fd);
	}
	if (ends[1] >= 0)
		close(ends[1]);
	close(ends[0]);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

/* --- a socket that is watched and sent to --------------------------------------- */

#define LOAD ((size_t)4 << 20) /* bytes, more than a socket holds */

struct duplex {
	struct loop_watch watch; /* must be first */
	struct loop_send send;
	int fd, peer;
	char *load;
	size_t heard;
	int result; /* of the send; 1: pending */
	bool ended;
};

static void duplex_ready(struct loop_watch *op)
{
	struct duplex *duplex = (struct duplex *)op;
	char bytes[64];
	ssize_t got;

	while ((got = recv(duplex->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		EVENT(duplex->heard += (size_t)got);
	if (got == 0 || errno != EAGAIN)
		EVENT(duplex->ended = true);
}

static void duplex_sent(struct loop_send *op, int result)
{
	struct duplex *duplex = (struct duplex *)((char *)op - offsetof(struct duplex, send));

	EVENT(duplex->result = result);
}

static void duplex_begin(void *argument)
{
	struct duplex *duplex = argument;

	duplex->watch.ready = duplex_ready;
	duplex->send.sent = duplex_sent;
	if (loop_watch_socket(runner.loop, &duplex->watch, duplex->fd))
		ck_abort_msg("loop_watch_socket");
}

static void duplex_send(void *argument)
{
	struct duplex *duplex = argument;

	duplex->result = 1;
	duplex->send.message =
		(struct NC_send)NC_SEND_INIT(.header = duplex->load, .header_length = LOAD);
	loop_send_start(runner.loop, &duplex->send, duplex->fd);
}

static void duplex_end(void *argument)
{
	loop_close_fd(runner.loop, ((struct duplex *)argument)->fd);
}

/* Sends are those of the library, and it has no other default cache. */
static NC_cache *open_cache(void)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 1 << 20);
	NC_cache *cache = NC_cache_open(&options);

	ck_assert_ptr_nonnull(cache);
	return cache;
}

/* The peer's data is received while a send waits for space, and the send continues. */
START_TEST(test_socket)
{
	struct duplex duplex = {.load = must_alloc(LOAD)};
	char *got = must_alloc(LOAD);
	NC_cache *cache = open_cache();
	int pair[2];

	pattern_fill(duplex.load, 1, 0, LOAD);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	duplex.fd = pair[0];
	duplex.peer = pair[1];
	set_nonblocking(duplex.fd);
	runner_start(&runner, kind_of(_i));
	call(&runner, duplex_begin, &duplex);
	for (size_t round = 1; round <= 3; round++) {
		call(&runner, duplex_send, &duplex);
		ck_assert_int_eq(write(duplex.peer, "hello", 5), 5);
		AWAIT(duplex.heard == round * 5);
		SEEN(duplex.result == 1 && !duplex.ended);
		read_exactly(duplex.peer, got, LOAD);
		AWAIT(duplex.result == 0);
		ck_assert_uint_eq(pattern_match(got, 1, 0, LOAD), LOAD);
	}
	/* The end is reported, and a waiting send fails with it. */
	call(&runner, duplex_send, &duplex);
	SEEN(duplex.result == 1);
	close(duplex.peer);
	AWAIT(duplex.ended && duplex.result < 0);
	call(&runner, duplex_end, &duplex);
	runner_stop(&runner);
	free(duplex.load);
	free(got);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

/* No process listens there: a send that was started while connecting reports that. */
START_TEST(test_socket_refused)
{
	struct duplex duplex = {.load = must_alloc(LOAD), .result = 1};
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	NC_cache *cache = open_cache();
	int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	pattern_fill(duplex.load, 1, 0, LOAD);
	/* Bound, so that no other process gets the port, and not listening. */
	ck_assert_int_eq(bind(taken, (struct sockaddr *)&address, length), 0);
	ck_assert_int_eq(getsockname(taken, (struct sockaddr *)&address, &length), 0);
	duplex.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(connect(duplex.fd, (struct sockaddr *)&address, length), -1);
	runner_start(&runner, kind_of(_i));
	call(&runner, duplex_begin, &duplex);
	call(&runner, duplex_send, &duplex);
	AWAIT(duplex.result != 1);
	SEEN(duplex.result == -ECONNREFUSED || duplex.result == -EPIPE);
	call(&runner, duplex_end, &duplex);
	runner_stop(&runner);
	close(taken);
	free(duplex.load);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

#define MANY 700u

static struct loop *early_loop;
static unsigned early;

static void early_ready(struct loop_watch *op)
{
	(void)op;
	if (++early == MANY)
		loop_stop(early_loop);
}

/* More than the submissions of a ring, before the loop runs. */
START_TEST(test_many_before_run)
{
	static struct loop_watch watches[MANY];
	static int fds[MANY];
	char why[128];

	early_loop = loop_open(kind_of(_i), LOOP_MANY, why, sizeof(why));
	ck_assert_msg(early_loop != NULL, "%s", why);
	for (unsigned i = 0; i < MANY; i++) {
		fds[i] = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
		ck_assert_int_ge(fds[i], 0);
		watches[i].ready = early_ready;
		ck_assert_int_eq(loop_watch_start(early_loop, &watches[i], fds[i]), 0);
	}
	loop_run(early_loop);
	ck_assert_uint_eq(early, MANY);
	loop_close(early_loop);
	for (unsigned i = 0; i < MANY; i++)
		close(fds[i]);
}
END_TEST

static void fill(TCase *tcase)
{
	int first = first_kind();

	tcase_add_loop_test(tcase, test_watch, first, KINDS);
	tcase_add_loop_test(tcase, test_watch_stop, first, KINDS);
	tcase_add_loop_test(tcase, test_watch_stale, first, KINDS);
	tcase_add_loop_test(tcase, test_watch_child, first, KINDS);
	tcase_add_loop_test(tcase, test_socket, first, KINDS);
	tcase_add_loop_test(tcase, test_socket_refused, first, KINDS);
	tcase_add_loop_test(tcase, test_many_before_run, first, KINDS);
}

RUN_SUITE("loop-watch", fill)
