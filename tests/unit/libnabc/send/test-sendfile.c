/* SPDX-License-Identifier: MIT */
/*
 * test-sendfile.c - unit tests of NC_sendfile(): header and file arrive as one stream,
 * by every method (spliced, copied), in parts, followed by the end of the stream;
 * every bad input has its errno and sends nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nabc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nabc-fixture.h"
#include "suite.h"

#define SEED 7
#define LARGE (3 * MIB + 77)
#define HEAD "the header"

static int pair[2], file;

static void setup(void)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .flags = NC_CACHE_NO_THREAD);
	char folder[64], path[80];
	unsigned char *data = must_alloc(LARGE);

	signal(SIGPIPE, SIG_IGN);
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	tcp_pair(pair);
	make_directory(folder);
	snprintf(path, sizeof(path), "%s/file", folder);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(file, 0);
	pattern_fill(data, SEED, 0, LARGE);
	ck_assert_int_eq(write(file, data, LARGE), (ssize_t)LARGE);
	free(data);
	unlink(path);
	rmdir(folder);
}

static void teardown(void)
{
	close(file);
	close_pair(pair);
	close_cache();
}

static struct NC_sendfile whole(void)
{
	struct NC_sendfile message = NC_SENDFILE_INIT();

	message.header = HEAD;
	message.header_length = strlen(HEAD);
	message.file = file;
	message.length = LARGE;
	return message;
}

/* Sends a whole message on a non-blocking socket, while the other end reads it. */
static void backend(struct NC_sendfile *message, unsigned char *got, size_t length)
{
	size_t total = message->header_length + message->length, have = 0;

	set_nonblocking(pair[0]);
	set_nonblocking(pair[1]);
	while (message->skip < total || have < length) {
		ssize_t moved = 0;

		if (message->skip < total) {
			moved = NC_sendfile(cache, pair[0], message);
			ck_assert(moved >= 0 || errno == EAGAIN);
			message->skip += moved > 0 ? (size_t)moved : 0;
		}
		if (moved <= 0)
			await(pair[1], POLLIN);
		moved = read(pair[1], got + have, length - have);
		ck_assert(moved >= 0 || errno == EAGAIN);
		have += moved > 0 ? (size_t)moved : 0;
	}
}

static void check_whole(struct NC_sendfile message)
{
	size_t total = message.header_length + message.length;
	unsigned char *got = must_alloc(total);

	backend(&message, got, total);
	ck_assert_mem_eq(got, HEAD, message.header_length);
	ck_assert_uint_eq(
		pattern_match(got + message.header_length, SEED, message.offset, message.length),
		message.length);
	free(got);
}

START_TEST(test_lent)
{
	check_whole(whole());
	ck_assert_int_eq(lseek(file, 0, SEEK_CUR), LARGE);
}
END_TEST

START_TEST(test_range)
{
	struct NC_sendfile message = whole();

	message.offset = 4097;
	message.length = MIB + 1;
	check_whole(message);
}
END_TEST

START_TEST(test_copied)
{
	struct NC_sendfile message = whole();

	message.flags = NC_SEND_DONTWAIT;
	check_whole(message);
}
END_TEST

/* sendfile(2) would raise SIGPIPE: here a closed peer is an error, never a signal. */
START_TEST(test_sigpipe_not_ignored)
{
	struct NC_sendfile message = whole();
	ssize_t sent;

	signal(SIGPIPE, SIG_DFL);
	close(pair[1]);
	do {
		sent = NC_sendfile(cache, pair[0], &message);
	} while (sent >= 0);
	ck_assert(errno == EPIPE || errno == ECONNRESET);
	FAILS(NC_sendfile(cache, pair[0], &message), EPIPE);
	pair[1] = dup(pair[0]);
}
END_TEST

START_TEST(test_unix_socket)
{
	close_pair(pair);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	check_whole(whole());
}
END_TEST

START_TEST(test_close)
{
	struct NC_sendfile message = whole();
	unsigned char byte;

	message.flags = NC_SEND_CLOSE;
	check_whole(message);
	await(pair[1], POLLIN);
	ck_assert_int_eq(read(pair[1], &byte, 1), 0);
}
END_TEST

/*
 * The bytes leave at once, though all of them are less than a segment: no cork is left
 * behind.  With MORE they wait for the end of the message.
 */
START_TEST(test_more)
{
	struct NC_sendfile message = whole();
	char got[1200];
	int corked = 1, unsent;
	socklen_t length = sizeof(corked);

	message.length = 1000;
	message.flags = NC_SEND_MORE;
	ck_assert_int_eq(NC_sendfile(cache, pair[0], &message), 1000 + (int)strlen(HEAD));
	ck_assert_int_eq(ioctl(pair[0], TIOCOUTQ, &unsent), 0);
	ck_assert_int_eq(unsent, 1000 + (int)strlen(HEAD));
	message.flags = 0;
	message.header = NULL;
	message.header_length = 0;
	message.length = 100;
	ck_assert_int_eq(NC_sendfile(cache, pair[0], &message), 100);
	ck_assert_int_eq(getsockopt(pair[0], IPPROTO_TCP, TCP_CORK, &corked, &length), 0);
	ck_assert_int_eq(corked, 0);
	read_exactly(pair[1], got, 1100 + strlen(HEAD));
}
END_TEST

/* Bytes that a full socket has accepted are pushed: none waits for a timer of the system. */
START_TEST(test_full)
{
	struct NC_sendfile message = whole();
	int corked = 1;
	socklen_t length = sizeof(corked);

	set_nonblocking(pair[0]);
	for (;;) {
		ssize_t sent = NC_sendfile(cache, pair[0], &message);

		if (sent < 0)
			break;
		message.skip += (size_t)sent;
		if (message.skip == message.header_length + message.length)
			message.skip = 0;
	}
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(getsockopt(pair[0], IPPROTO_TCP, TCP_CORK, &corked, &length), 0);
	ck_assert_int_eq(corked, 0);
}
END_TEST

START_TEST(test_truncated)
{
	struct NC_sendfile message = whole();
	ssize_t sent;

	ck_assert_int_eq(ftruncate(file, 5000), 0);
	message.skip = 0;
	sent = NC_sendfile(cache, pair[0], &message);
	ck_assert_int_eq(sent, 5000 + (int)strlen(HEAD));
	message.skip = (size_t)sent;
	FAILS(NC_sendfile(cache, pair[0], &message), ERANGE);
	message.flags = NC_SEND_DONTWAIT;
	FAILS(NC_sendfile(cache, pair[0], &message), ERANGE);
}
END_TEST

START_TEST(test_bad_input)
{
	struct NC_sendfile message = whole();
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	FAILS(NC_sendfile(cache, pair[0], NULL), EINVAL);
	message.size--;
	FAILS(NC_sendfile(cache, pair[0], &message), EINVAL);
	message = whole();
	FAILS(NC_sendfile(cache, -1, &message), EBADF);
	FAILS(NC_sendfile(cache, ends[1], &message), ENOTSOCK);
	message.flags = NC_SEND_COPY;
	FAILS(NC_sendfile(cache, pair[0], &message), EINVAL);
	message = whole();
	message.header = NULL;
	FAILS(NC_sendfile(cache, pair[0], &message), EINVAL);
	message = whole();
	message.skip = LARGE + strlen(HEAD) + 1;
	FAILS(NC_sendfile(cache, pair[0], &message), EINVAL);
	message = whole();
	message.length = SIZE_MAX;
	FAILS(NC_sendfile(cache, pair[0], &message), ERANGE);
	message = whole();
	message.offset = INT64_MAX;
	FAILS(NC_sendfile(cache, pair[0], &message), ERANGE);
	message = whole();
	message.header_length = 0;
	message.file = -1;
	FAILS(NC_sendfile(cache, pair[0], &message), EBADF);
	message.file = ends[0];
	FAILS(NC_sendfile(cache, pair[0], &message), ESPIPE);
	message.file = file;
	message.offset = LARGE;
	message.length = 1;
	FAILS(NC_sendfile(cache, pair[0], &message), ERANGE);
	ck_assert(!readable(pair[1]));
	close_pair(ends);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_lent);
	tcase_add_test(tcase, test_range);
	tcase_add_test(tcase, test_copied);
	tcase_add_test(tcase, test_sigpipe_not_ignored);
	tcase_add_test(tcase, test_unix_socket);
	tcase_add_test(tcase, test_close);
	tcase_add_test(tcase, test_more);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_truncated);
	tcase_add_test(tcase, test_bad_input);
}

RUN_SUITE("sendfile", fill)
