/* SPDX-License-Identifier: MIT */
/*
 * test-peer.c - unit tests of peer.c: sockets and their modes, passed descriptors,
 * messages that do not fit, peers that have disconnected.  Makes a directory of its
 * own; single-threaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/peer.h"

#include "process-fixture.h"
#include "suite.h"

START_TEST(test_listen)
{
	char directory[64], path[128];
	struct stat stat_buffer;
	int listener, client, server;

	make_directory(directory);
	snprintf(path, sizeof(path), "%s/socket", directory);
	ck_assert_int_eq(nc_peer_connect(path, 5000), -ENOENT);
	listener = nc_peer_listen(path, 0600, (gid_t)-1);
	ck_assert_int_ge(listener, 0);
	ck_assert_int_eq(fcntl(listener, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(stat(path, &stat_buffer), 0);
	ck_assert_int_eq(stat_buffer.st_mode & 07777, 0600);
	ck_assert_int_eq(nc_peer_listen(path, 0600, (gid_t)-1), -EADDRINUSE);
	/* No client: does not block. */
	ck_assert_int_eq(nc_peer_accept(listener), -EAGAIN);
	client = nc_peer_connect(path, 5000);
	ck_assert_int_ge(client, 0);
	server = nc_peer_accept(listener);
	ck_assert_int_ge(server, 0);
	ck_assert_int_eq(fcntl(client, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(server, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(nc_peer_send(client, "hello", 5, NULL, 0), 0);
	await(server, POLLIN);
	close(client);
	close(server);
	close(listener);
	ck_assert_int_eq(nc_peer_connect(path, 5000), -ECONNREFUSED);
	unlink(path);
	rmdir(directory);
}
END_TEST

/* A socket that a killed owner has left is replaced, and nothing else. */
START_TEST(test_stale)
{
	struct sockaddr_un where = {.sun_family = AF_UNIX};
	unsigned descriptors = open_descriptors();
	char directory[64], path[100];
	int listener, stream;

	make_directory(directory);
	snprintf(path, sizeof(path), "%s/socket", directory);
	listener = nc_peer_listen(path, 0600, (gid_t)-1);
	ck_assert_int_ge(listener, 0);
	close(listener);
	listener = nc_peer_listen(path, 0600, (gid_t)-1);
	ck_assert_int_ge(listener, 0);
	ck_assert_int_eq(nc_peer_listen(path, 0600, (gid_t)-1), -EADDRINUSE);
	close(listener);
	unlink(path);
	/* The socket of another server. */
	memcpy(where.sun_path, path, strlen(path) + 1);
	stream = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(stream, (struct sockaddr *)&where, sizeof(where)), 0);
	ck_assert_int_eq(listen(stream, 1), 0);
	ck_assert_int_eq(nc_peer_listen(path, 0600, (gid_t)-1), -EADDRINUSE);
	close(stream);
	unlink(path);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	ck_assert_int_eq(nc_peer_listen(path, 0600, (gid_t)-1), -EADDRINUSE);
	unlink(path);
	rmdir(directory);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

START_TEST(test_bad_paths)
{
	unsigned descriptors = open_descriptors();
	char path[200];

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[108] = '\0';
	ck_assert_int_eq(nc_peer_listen(path, 0600, (gid_t)-1), -ENAMETOOLONG);
	ck_assert_int_eq(nc_peer_connect(path, 5000), -ENAMETOOLONG);
	path[107] = '\0';
	ck_assert_int_eq(nc_peer_connect(path, 5000), -ENOENT);
	ck_assert_int_eq(nc_peer_listen("", 0600, (gid_t)-1), -EINVAL);
	ck_assert_int_eq(nc_peer_connect("", 5000), -EINVAL);
	ck_assert_int_eq(nc_peer_listen("/nonexistent/directory/socket", 0600, (gid_t)-1), -ENOENT);
	ck_assert_int_eq(nc_peer_connect("/dev/null", 5000), -ECONNREFUSED);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

START_TEST(test_message)
{
	int pair[2], fds[NC_PEER_FDS_MAX];
	unsigned count = 99;
	char got[64];

	ck_assert_int_eq(nc_peer_pair(pair), 0);
	ck_assert_int_eq(nc_peer_receive(pair[1], got, sizeof(got), fds, &count, 1), -ETIMEDOUT);
	ck_assert_uint_eq(count, 0);
	ck_assert_int_eq(nc_peer_send(pair[0], "first", 5, NULL, 0), 0);
	ck_assert_int_eq(nc_peer_send(pair[0], "second", 6, NULL, 0), 0);
	/* Message boundaries are preserved. */
	ck_assert_int_eq(nc_peer_receive(pair[1], got, sizeof(got), fds, &count, -1), 5);
	ck_assert_mem_eq(got, "first", 5);
	ck_assert_int_eq(nc_peer_receive(pair[1], got, 6, fds, &count, -1), 6);
	close(pair[0]);
	ck_assert_int_eq(nc_peer_receive(pair[1], got, sizeof(got), fds, &count, -1), 0);
	ck_assert_int_eq(nc_peer_send(pair[1], "x", 1, NULL, 0), -EPIPE);
	close(pair[1]);
	ck_assert_int_eq(nc_peer_send(pair[1], "x", 1, NULL, 0), -EBADF);
}
END_TEST

START_TEST(test_descriptors)
{
	static const unsigned counts[] = {1, 2, 3, 67, NC_PEER_FDS_MAX};
	int pair[2], fds[NC_PEER_FDS_MAX], got[NC_PEER_FDS_MAX], ends[2];
	unsigned descriptors = open_descriptors(), count;
	char byte;

	ck_assert_int_eq(nc_peer_pair(pair), 0);
	ck_assert_int_eq(pipe(ends), 0);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (unsigned k = 0; k < NC_PEER_FDS_MAX; k++)
			fds[k] = ends[k % 2];
		ck_assert_int_eq(nc_peer_send(pair[0], "m", 1, fds, counts[i]), 0);
		ck_assert_int_eq(nc_peer_receive(pair[1], &byte, 1, got, &count, -1), 1);
		ck_assert_uint_eq(count, counts[i]);
		for (unsigned k = 0; k < count; k++)
			ck_assert_int_eq(fcntl(got[k], F_GETFD), FD_CLOEXEC);
		/* They are the sent ones, in order. */
		if (count > 1) {
			ck_assert_int_eq(write(got[1], "z", 1), 1);
			ck_assert_int_eq(read(got[0], &byte, 1), 1);
			ck_assert_int_eq(byte, 'z');
		}
		while (count)
			close(got[--count]);
	}
	ck_assert_int_eq(nc_peer_send(pair[0], "m", 1, fds, NC_PEER_FDS_MAX + 1), -EINVAL);
	close_pair(pair);
	close_pair(ends);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* A message, or descriptors, beyond the expected size: refused, and nothing leaks. */
START_TEST(test_truncated)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(100 * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = "m", .iov_len = 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int pair[2], fds[NC_PEER_FDS_MAX], many[100], ends[2];
	unsigned count, descriptors;
	char got[16];

	ck_assert_int_eq(nc_peer_pair(pair), 0);
	ck_assert_int_eq(pipe(ends), 0);
	descriptors = open_descriptors();
	ck_assert_int_eq(nc_peer_send(pair[0], "seventeen letters", 17, ends, 2), 0);
	ck_assert_int_eq(nc_peer_receive(pair[1], got, sizeof(got), fds, &count, -1), -EPROTO);
	ck_assert_uint_eq(count, 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);

	for (unsigned i = 0; i < 100; i++)
		many[i] = ends[0];
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(many));
	memcpy(CMSG_DATA(&control.header), many, sizeof(many));
	ck_assert_int_eq(sendmsg(pair[0], &message, 0), 1);
	ck_assert_int_eq(nc_peer_receive(pair[1], got, sizeof(got), fds, &count, -1), -EPROTO);
	ck_assert_uint_eq(count, 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	close_pair(pair);
	close_pair(ends);
}
END_TEST

START_TEST(test_never_blocks)
{
	int pair[2], error;
	unsigned sent = 0;
	char data[1000] = {0};

	ck_assert_int_eq(nc_peer_pair(pair), 0);
	while ((error = nc_peer_send(pair[0], data, sizeof(data), NULL, 0)) == 0)
		ck_assert_uint_lt(sent++, 100000);
	ck_assert_int_eq(error, -EAGAIN);
	ck_assert_uint_gt(sent, 0);
	close_pair(pair);
}
END_TEST

/* Descriptors come with an empty message, which looks like the end. */
START_TEST(test_empty_message)
{
	int pair[2], fds[NC_PEER_FDS_ALL];
	unsigned count = 9, descriptors;
	pid_t pid;
	char got;

	ck_assert_int_eq(nc_peer_pair(pair), 0);
	ck_assert_int_eq(nc_peer_ask_sender(pair[1]), 0);
	descriptors = open_descriptors();
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(nc_peer_send(pair[0], "", 0, pair, 2), 0);
		ck_assert_int_eq(nc_peer_receive_from(pair[1], &got, 1, fds, &count, &pid), 0);
		ck_assert_uint_eq(count, 2);
		nc_peer_close_fds(fds, count);
		ck_assert_int_eq(nc_peer_send(pair[1], "", 0, pair, 2), 0);
		ck_assert_int_eq(nc_peer_receive(pair[0], &got, 1, fds, &count, 1000), 0);
		ck_assert_uint_eq(count, 0);
	}
	ck_assert_uint_eq(open_descriptors(), descriptors);
	close_pair(pair);
}
END_TEST

/* The sender, and all descriptors, also with a message that does not fit. */
START_TEST(test_receive_from)
{
	int pair[2], many[NC_PEER_FDS_MAX], fds[NC_PEER_FDS_ALL];
	unsigned count, descriptors;
	pid_t pid;
	char got;

	ck_assert_int_eq(nc_peer_pair(pair), 0);
	ck_assert_int_eq(nc_peer_ask_sender(pair[1]), 0);
	for (unsigned i = 0; i < NC_PEER_FDS_MAX; i++)
		many[i] = pair[0];
	descriptors = open_descriptors();
	ck_assert_int_eq(nc_peer_receive_from(pair[1], &got, 1, fds, &count, &pid), -EAGAIN);
	for (unsigned length = 1; length <= 2; length++)
		for (unsigned sent = 0; sent <= NC_PEER_FDS_MAX; sent++) {
			ck_assert_int_eq(nc_peer_send(pair[0], "mm", length, many, sent), 0);
			ck_assert_int_eq(nc_peer_receive_from(pair[1], &got, 1, fds, &count, &pid),
					 length == 1 ? 1 : -EPROTO);
			ck_assert_int_eq(pid, getpid());
			ck_assert_uint_eq(count, sent);
			nc_peer_close_fds(fds, count);
		}
	ck_assert_uint_eq(open_descriptors(), descriptors);
	close_pair(pair);
}
END_TEST

/* The error of a process without free descriptors is not blamed on the sender. */
START_TEST(test_no_descriptors)
{
	int pair[2], fds[NC_PEER_FDS_ALL];
	unsigned count;
	pid_t pid;
	char got;

	if (skip_without_limits("peer: no descriptors"))
		return;
	ck_assert_int_eq(nc_peer_pair(pair), 0);
	ck_assert_int_eq(nc_peer_ask_sender(pair[1]), 0);
	for (unsigned spare = 0; spare < 3; spare++) {
		got = 'x';
		hog_descriptors(1024, spare);
		ck_assert_int_eq(nc_peer_send(pair[0], "m", 1, pair, 2), 0);
		ck_assert_int_eq(nc_peer_receive_from(pair[1], &got, 1, fds, &count, &pid),
				 spare < 2 ? -EMFILE : 1);
		ck_assert_uint_eq(count, spare);
		ck_assert_int_eq(got, 'm');
		ck_assert_int_eq(pid, getpid());
		free_descriptors();
		nc_peer_close_fds(fds, count);
	}
	close_pair(pair);
}
END_TEST

/* What waits in a connection can be taken out when it ends, also of empty messages. */
START_TEST(test_drain)
{
	int pair[2], fds[NC_PEER_FDS_ALL];
	unsigned count;

	for (int messages = 0; messages < 4; messages++) {
		ck_assert_int_eq(nc_peer_pair(pair), 0);
		ck_assert_int_eq(nc_peer_ask_sender(pair[1]), 0);
		for (int i = 0; i < messages; i++)
			ck_assert_int_eq(nc_peer_send(pair[0], "mm", (size_t)i, pair, 2), 0);
		/* The other end has ended already, with a message that it has not read. */
		if (messages % 2) {
			ck_assert_int_eq(nc_peer_send(pair[1], "m", 1, NULL, 0), 0);
			close(pair[0]);
		}
		for (int i = 0; i < messages; i++) {
			ck_assert(nc_peer_drain(pair[1], fds, &count));
			ck_assert_uint_eq(count, 2);
			nc_peer_close_fds(fds, count);
		}
		ck_assert(!nc_peer_drain(pair[1], fds, &count));
		if (messages % 2 == 0)
			close(pair[0]);
		close(pair[1]);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_drain);
	tcase_add_test(tcase, test_listen);
	tcase_add_test(tcase, test_stale);
	tcase_add_test(tcase, test_bad_paths);
	tcase_add_test(tcase, test_message);
	tcase_add_test(tcase, test_descriptors);
	tcase_add_test(tcase, test_truncated);
	tcase_add_test(tcase, test_empty_message);
	tcase_add_test(tcase, test_receive_from);
	tcase_add_test(tcase, test_no_descriptors);
	tcase_add_test(tcase, test_never_blocks);
}

RUN_SUITE("peer", fill)
