/* SPDX-License-Identifier: MIT */
/*
 * test-loop.c - unit tests of loop.c, loop-uring.c and loop-epoll.c: accepting
 * connections and receiving from them.  Every test is run with each kind of
 * loop; the loop has a thread, the test is the peer.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "event/loop.h"

#include "loop-fixture.h"
#include "loop-pause-fixture.h"
#include "suite.h"

#define CROWD 450u /* connections: two descriptors each, of 1024 */

/* --- opening ----------------------------------------------------------------- */

START_TEST(test_open)
{
	enum loop_kind kind = kind_of(_i);
	unsigned descriptors = open_descriptors();
	char why[128];
	struct loop *loop = loop_open(kind, LOOP_MANY, why, sizeof(why));

	ck_assert_ptr_nonnull(loop);
	ck_assert_str_eq(loop_name(loop), kind == LOOP_URING ? "io_uring" : "epoll");
	ck_assert_str_eq(why, kind == LOOP_URING ? "io_uring" : "epoll");
	loop_close(loop);
	loop_close(NULL);
	loop = loop_open(LOOP_AUTO, LOOP_MANY, why, sizeof(why));
	ck_assert_ptr_nonnull(loop);
	ck_assert_int_eq(strncmp(why, loop_name(loop), strlen(loop_name(loop))), 0);
	loop_close(loop);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* No descriptors left: one error line, and nothing is leaked. */
START_TEST(test_open_refused)
{
	struct rlimit before, none;
	char why[128] = "";

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_ptr_null(loop_open(kind_of(_i), LOOP_MANY, why, sizeof(why)));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_str_ne(why, "");
	ck_assert_ptr_null(strchr(why, '\n'));
}
END_TEST

/* --- accept -------------------------------------------------------------------- */

struct door {
	struct loop_accept accept; /* must be first */
	int fd;
	int got[64];
	unsigned count, errors, stops;
	int error;
	bool close_at_first;
};

static void door_accepted(struct loop_accept *op, int fd)
{
	struct door *door = (struct door *)op;

	EVENT(if (fd < 0) {
		door->errors++;
		door->error = fd;
	} else door->got[door->count++] = fd);
	if (door->close_at_first)
		loop_close_fd(runner.loop, door->fd);
}

static void door_begin(void *argument)
{
	struct door *door = argument;

	if (loop_accept_start(runner.loop, &door->accept, door->fd))
		ck_abort_msg("loop_accept_start");
}

static void door_end(void *argument)
{
	loop_close_fd(runner.loop, ((struct door *)argument)->fd);
}

static struct sockaddr_in door_init(struct door *door)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);

	*door = (struct door){.accept.accepted = door_accepted};
	door->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_ge(door->fd, 0);
	ck_assert_int_eq(bind(door->fd, (struct sockaddr *)&address, length), 0);
	ck_assert_int_eq(listen(door->fd, 64), 0);
	ck_assert_int_eq(getsockname(door->fd, (struct sockaddr *)&address, &length), 0);
	return address;
}

static int try_connect(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0)
		return fd;
	ck_assert_int_eq(errno, ECONNREFUSED);
	close(fd);
	return -1;
}

START_TEST(test_accept)
{
	unsigned descriptors = open_descriptors();
	struct sockaddr_in address;
	struct door door;
	int client[30];

	runner_start(&runner, kind_of(_i));
	address = door_init(&door);
	/* Earlier connections are accepted as well as later ones. */
	for (unsigned i = 0; i < 10; i++)
		client[i] = try_connect(&address);
	call(&runner, door_begin, &door);
	AWAIT(door.count == 10);
	for (unsigned i = 10; i < 30; i++) {
		client[i] = try_connect(&address);
		ck_assert_int_ge(client[i], 0);
	}
	AWAIT(door.count == 30);
	call(&runner, door_end, &door);
	settle(&runner);
	ck_assert_int_eq(try_connect(&address), -1);
	SEEN(door.count == 30 && door.errors == 0);
	for (unsigned i = 0; i < 30; i++) {
		ck_assert(fcntl(door.got[i], F_GETFL) & O_NONBLOCK);
		ck_assert_int_eq(fcntl(door.got[i], F_GETFD), FD_CLOEXEC);
		close(door.got[i]);
		close(client[i]);
	}
	runner_stop(&runner);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

static void door_next(void *argument)
{
	ck_assert_int_eq(loop_accept_next(runner.loop, ((struct door *)argument)->fd), 0);
	ck_assert_int_eq(loop_accept_next(runner.loop, ((struct door *)argument)->fd), 0);
}

static void door_stopped(struct loop_accept *op)
{
	struct door *door = (struct door *)op;

	EVENT(door->stops++);
	loop_close_fd(runner.loop, door->fd);
}

static void door_stop(void *argument)
{
	loop_accept_stop(runner.loop, ((struct door *)argument)->fd);
}

/* A single accept takes one connection each time that it is restarted. */
START_TEST(test_accept_single)
{
	unsigned descriptors = open_descriptors();
	struct sockaddr_in address;
	struct door door;
	int client[5];

	runner_start(&runner, kind_of(_i));
	address = door_init(&door);
	door.accept.single = true;
	door.accept.stopped = door_stopped;
	for (unsigned i = 0; i < 5; i++)
		client[i] = try_connect(&address);
	call(&runner, door_begin, &door);
	for (unsigned i = 1; i <= 3; i++) {
		AWAIT(door.count == i);
		settle(&runner);
		SEEN(door.count == i && door.errors == 0);
		if (i < 3)
			call(&runner, door_next, &door);
	}
	/* A paused one stops as well; a connection that arrives meanwhile is accepted. */
	call(&runner, door_stop, &door);
	AWAIT(door.stops == 1);
	settle(&runner);
	SEEN(door.stops == 1 && door.count <= 4 && door.errors == 0);
	for (unsigned i = 0; i < door.count; i++)
		close(door.got[i]);
	for (unsigned i = 0; i < 5; i++)
		close(client[i]);
	runner_stop(&runner);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* The callback of the first of many connections closes the listening socket. */
START_TEST(test_accept_closes)
{
	unsigned descriptors = open_descriptors();
	struct sockaddr_in address;
	struct door door;
	int client[10];

	runner_start(&runner, kind_of(_i));
	address = door_init(&door);
	door.close_at_first = true;
	for (unsigned i = 0; i < 10; i++)
		client[i] = try_connect(&address);
	call(&runner, door_begin, &door);
	AWAIT(door.count == 1);
	settle(&runner);
	SEEN(door.count == 1 && door.errors == 0);
	ck_assert_int_eq(try_connect(&address), -1);
	close(door.got[0]);
	for (unsigned i = 0; i < 10; i++)
		close(client[i]);
	runner_stop(&runner);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* Without descriptors the callback gets an error, and accepting continues when there are some. */
START_TEST(test_accept_no_descriptors)
{
	struct rlimit before, few;
	struct sockaddr_in address;
	struct door door;
	int client, lowest;

	runner_start(&runner, kind_of(_i));
	address = door_init(&door);
	client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	lowest = dup(client);
	close(lowest);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = (rlim_t)lowest;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	call(&runner, door_begin, &door);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
	AWAIT(door.errors > 0);
	SEEN(door.error == -EMFILE && door.count == 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	AWAIT(door.count == 1);
	call(&runner, door_end, &door);
	runner_stop(&runner);
	close(door.got[0]);
	close(client);
}
END_TEST

/* --- receive ------------------------------------------------------------------- */

START_TEST(test_receive)
{
	static const size_t sizes[] = {1, 2047, 2048, 2049, 100, 32 << 10, 32769, 1 << 20};
	struct inlet inlet;
	size_t total = 0;
	int peer;

	runner_start(&runner, kind_of(_i));
	peer = inlet_open(&inlet, 2 << 20);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		write_pattern(peer, 1, total, sizes[i]);
		total += sizes[i];
		AWAIT(inlet.length == total);
	}
	SEEN(pattern_match(inlet.got, 1, 0, total) == total);
	SEEN(inlet.end == 1);
	/* The end of the stream, once; sending is not affected. */
	shutdown(peer, SHUT_WR);
	AWAIT(inlet.end == 0);
	settle(&runner);
	SEEN(inlet.late == 0 && inlet.length == total);
	inlet_close(&inlet);
	runner_stop(&runner);
	close(peer);
}
END_TEST

/* Bytes and end are there before the receive starts. */
START_TEST(test_receive_late)
{
	struct inlet inlet;
	int pair[2];

	runner_start(&runner, kind_of(_i));
	tcp_pair(pair);
	write_pattern(pair[0], 2, 0, 60000);
	shutdown(pair[0], SHUT_WR);
	inlet_init(&inlet, &runner, pair[1], 60000);
	call(&runner, inlet_begin, &inlet);
	AWAIT(inlet.end == 0);
	SEEN(inlet.length == 60000 && pattern_match(inlet.got, 2, 0, 60000) == 60000);
	inlet_close(&inlet);
	runner_stop(&runner);
	close(pair[0]);
}
END_TEST

static void crowd_begin(void *argument)
{
	struct inlet *inlets = argument;

	for (unsigned i = 0; i < CROWD; i++)
		inlet_begin(&inlets[i]);
}

static void crowd_end(void *argument)
{
	struct inlet *inlets = argument;

	for (unsigned i = 0; i < CROWD; i++)
		inlet_end(&inlets[i]);
}

/* One turn has far more events than the completion queue and the buffers of a small loop hold. */
START_TEST(test_receive_crowd)
{
	static struct inlet inlets[CROWD];
	int peers[CROWD];

	runner_start_in(&runner, kind_of(_i), LOOP_FEW);
	for (unsigned i = 0; i < CROWD; i++) {
		int pair[2];

		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		peers[i] = pair[0];
		write_pattern(pair[0], i, 0, 3000);
		shutdown(pair[0], SHUT_WR);
		inlet_init(&inlets[i], &runner, pair[1], 3000);
	}
	call(&runner, crowd_begin, inlets);
	for (unsigned i = 0; i < CROWD; i++) {
		AWAIT(inlets[i].end == 0);
		SEEN(inlets[i].length == 3000 && inlets[i].late == 0);
		SEEN(pattern_match(inlets[i].got, i, 0, 3000) == 3000);
	}
	call(&runner, crowd_end, inlets);
	runner_stop(&runner);
	for (unsigned i = 0; i < CROWD; i++) {
		close(peers[i]);
		free(inlets[i].got);
	}
}
END_TEST

START_TEST(test_receive_reset)
{
	struct linger now = {.l_onoff = 1};
	struct inlet inlet;
	int peer;

	runner_start(&runner, kind_of(_i));
	peer = inlet_open(&inlet, 100);
	write_pattern(peer, 3, 0, 100);
	AWAIT(inlet.length == 100);
	ck_assert_int_eq(setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(peer);
	AWAIT(inlet.end != 1);
	SEEN(inlet.end == -ECONNRESET);
	settle(&runner);
	SEEN(inlet.late == 0);
	inlet_close(&inlet);
	runner_stop(&runner);
}
END_TEST

static void fill(TCase *tcase)
{
	int first = first_kind();

	tcase_add_loop_test(tcase, test_open, first, KINDS);
	tcase_add_loop_test(tcase, test_open_refused, first, KINDS);
	tcase_add_loop_test(tcase, test_accept, first, KINDS);
	tcase_add_loop_test(tcase, test_accept_single, first, KINDS);
	tcase_add_loop_test(tcase, test_accept_closes, first, KINDS);
	/* Valgrind enforces the limit itself, and drops the connection with the error. */
	if (!no_uring())
		tcase_add_loop_test(tcase, test_accept_no_descriptors, first, KINDS);
	tcase_add_loop_test(tcase, test_receive, first, KINDS);
	tcase_add_loop_test(tcase, test_receive_late, first, KINDS);
	tcase_add_loop_test(tcase, test_receive_crowd, first, KINDS);
	tcase_add_loop_test(tcase, test_receive_reset, first, KINDS);
}

RUN_SUITE("loop", fill)
