/* SPDX-License-Identifier: MIT */
/*
 * test-async.c - unit tests of async.c and its two backends through the calls
 * of nabc-async.h.  Every test is run with each mechanism and owns its cache,
 * its ring and its threads.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc-async.h>
#include <nabc.h>

#include "send/async.h"

#include "async-fixture.h"
#include "async-mechanism.h"
#include "nabc-fixture.h"
#include "suite.h"

START_TEST(test_one)
{
	char head[] = "head";
	struct NC_range range = {.offset = 7, .length = 900};
	struct NC_send message = NC_SEND_INIT(.header = head, .header_length = 4, .ranges = &range,
					      .range_count = 1);
	struct NC_completion done;
	int pair[2];

	if (!open_ring(_i, MIB, 0))
		return;
	tcp_pair(pair);
	range.id = insert(1, 1000);
	ck_assert(!readable(NC_sender_fd(ring)));
	ck_assert_int_eq(NC_sender_send(ring, pair[0], &message, &message), 0);
	/* The header is copied, the unit held; nothing is sent before the submission. */
	memset(head, 'x', 4);
	range.length = 5;
	message.header_length = 0;
	ck_assert_uint_eq(holds_of(range.id), 1);
	ck_assert_int_eq(NC_destroy(NULL, range.id), 0);
	ck_assert(!readable(pair[1]));
	ck_assert_int_ge(NC_sender_submit(ring), 0);
	expect_text(pair[1], "head");
	expect_pattern(pair[1], 1, 7, 900);
	await(NC_sender_fd(ring), POLLIN);
	done = next_completion();
	ck_assert_ptr_eq(done.data, &message);
	ck_assert_int_eq(done.sock_fd, pair[0]);
	ck_assert_int_eq(done.error, 0);
	ck_assert_uint_eq(done.sent, 904);
	ck_assert(!alive(range.id));
	/* Afterwards there is nothing to reap, and the descriptor is not readable. */
	ck_assert_int_eq(NC_sender_reap(ring, &done, sizeof(done), 1), 0);
	ck_assert(!readable(NC_sender_fd(ring)));
	ck_assert_uint_eq(statistics().by_copy.bytes, 900);
	close_pair(pair);
	close_ring();
}
END_TEST

/*
 * Texts and a limit, by both ways to send: small messages in memory, large ones by page.  The
 * stream ends with the last part only.
 */
START_TEST(test_texts)
{
	static const size_t sizes[] = {100, 200000}, limits[] = {0, 5, 111, 150000};

	if (!open_ring(_i % MECHANISMS, 16 * MIB, 0))
		return;
	for (unsigned i = 0; i < 8; i++) {
		const size_t size = sizes[i % 2], limit = limits[i / 2];
		char text[] = "text", end[] = "end";
		struct NC_text texts[2];
		struct NC_range range = {.length = size};
		struct NC_send message =
			NC_SEND_INIT(.header = "head", .header_length = 4, .ranges = &range,
				     .range_count = 1, .texts = texts, .text_count = 2,
				     .flags = NC_SEND_CLOSE);
		const size_t total = 4 + 4 + size + 3;
		int pair[2];

		if (limit == 5 && size > 1000)
			continue;
		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 1 << 20, 1 << 20);
		if (_i >= MECHANISMS)
			set_nonblocking(pair[0]);
		range.id = insert_as(NULL, i, size, 0, NC_KIND_APPENDED);
		while (message.skip < total) {
			size_t left = total - message.skip;
			struct NC_completion done;

			texts[0] = (struct NC_text){text, 4, 0};
			texts[1] = (struct NC_text){end, 3, 1};
			memcpy(text, "text", 4);
			memcpy(end, "end", 3);
			message.limit = limit;
			ck_assert_int_eq(NC_sender_send(ring, pair[0], &message, NULL), 0);
			memset(text, 'x', 4);
			memset(end, 'x', 3);
			memset(texts, 0, sizeof(texts));
			ck_assert_int_ge(NC_sender_submit(ring), 0);
			done = next_completion();
			ck_assert_int_eq(done.error, 0);
			ck_assert_uint_eq(done.sent, limit && limit < left ? limit : left);
			message.skip += done.sent;
		}
		expect_text(pair[1], "headtext");
		expect_pattern(pair[1], i, 0, size);
		expect_text(pair[1], "end");
		expect_end(pair[1]);
		close_pair(pair);
	}
	close_ring();
}
END_TEST

#define SOCKETS 5
#define MESSAGES 12

/* What a reader thread does with its socket. */
struct reader {
	int fd;
	unsigned number;
	pthread_t thread;
};

/* Sizes below a segment, of a few pages, and larger than the buffers. */
static size_t size_of(unsigned number, unsigned message)
{
	static const size_t sizes[] = {1, 1448, 100 * KIB, 4095, 20 * KIB, 70 * KIB};

	return sizes[(number + message) % 6] + message;
}

static void *read_messages(void *context)
{
	struct reader *reader = context;

	for (unsigned i = 0; i < MESSAGES; i++) {
		char text[32];

		snprintf(text, sizeof(text), "message %u\n", i);
		expect_text(reader->fd, text);
		expect_pattern(reader->fd, reader->number * 100 + i, 0, size_of(reader->number, i));
	}
	expect_end(reader->fd);
	return NULL;
}

/* The mode of the socket, the size of its buffers, the location of the peer. */
static const struct {
	bool nonblocking;
	int buffer;
	const char *to;
} sockets[SOCKETS] = {
	{false, 4608, "127.0.0.1"}, {true, 4608, "127.0.0.1"}, {true, 0, "127.0.0.1"},
	{false, 0, "127.0.0.2"},    {true, 0, "127.0.0.2"},
};

/* Each socket gets its messages complete and in order, the last one with the end of the stream. */
START_TEST(test_order)
{
	struct reader readers[SOCKETS];
	unsigned next[SOCKETS] = {0}, left = SOCKETS * MESSAGES;
	int pairs[SOCKETS][2];

	if (!open_ring(_i, 64 * MIB, SOCKETS * MESSAGES))
		return;
	for (unsigned s = 0; s < SOCKETS; s++) {
		tcp_pair_between(pairs[s], "127.0.0.1", sockets[s].to, sockets[s].buffer,
				 sockets[s].buffer);
		if (sockets[s].nonblocking)
			set_nonblocking(pairs[s][0]);
		readers[s] = (struct reader){.fd = pairs[s][1], .number = s};
		ck_assert_int_eq(
			pthread_create(&readers[s].thread, NULL, read_messages, &readers[s]), 0);
	}
	for (unsigned i = 0; i < MESSAGES; i++) {
		for (unsigned s = 0; s < SOCKETS; s++) {
			size_t size = size_of(s, i);
			size_t id = insert_as(NULL, s * 100 + i, size, i % 4 == 3 ? 1448 : 0,
					      i % 2 ? NC_KIND_APPENDED : NC_KIND_RECYCLED);
			struct NC_range range = {.id = id, .length = size};
			char text[32];
			struct NC_send message =
				NC_SEND_INIT(.header = text,
					     .header_length = (size_t)snprintf(text, sizeof(text),
									       "message %u\n", i),
					     .ranges = &range, .range_count = 1,
					     .flags = i + 1 == MESSAGES ? NC_SEND_CLOSE
						      : i % 3 == 1	? NC_SEND_MORE
									: 0);

			ck_assert_int_eq(NC_sender_send(ring, pairs[s][0], &message,
							(void *)(uintptr_t)(s * 100 + i)),
					 0);
			/* No other user is left. */
			ck_assert_int_eq(NC_destroy(NULL, id), 0);
		}
		if (i % 5 == 0)
			ck_assert_int_ge(NC_sender_submit(ring), 0);
	}
	ck_assert_int_ge(NC_sender_submit(ring), 0);
	while (left) {
		struct NC_completion done[7];
		int count = NC_sender_reap(ring, done, sizeof(*done), 7);

		ck_assert_int_ge(count, 0);
		ck_assert_int_le(count, 7);
		if (count == 0)
			await(NC_sender_fd(ring), POLLIN);
		left -= (unsigned)count;
		for (int i = 0; i < count; i++) {
			unsigned s = (unsigned)(uintptr_t)done[i].data / 100;
			unsigned number = (unsigned)(uintptr_t)done[i].data % 100;

			ck_assert_int_eq(done[i].error, 0);
			ck_assert_int_eq(done[i].sock_fd, pairs[s][0]);
			ck_assert_uint_eq(number, next[s]++);
			ck_assert_uint_eq(done[i].sent,
					  size_of(s, number) + (number < 10 ? 10 : 11));
		}
	}
	for (unsigned s = 0; s < SOCKETS; s++) {
		pthread_join(readers[s].thread, NULL);
		close_pair(pairs[s]);
	}
	/* Pages were lent where possible. */
	ck_assert_uint_gt(statistics().by_splice.sends + statistics().by_zerocopy.sends, 0);
	close_ring();
}
END_TEST

START_TEST(test_skip_and_empty)
{
	struct NC_send message = NC_SEND_INIT(.header = "abcdef", .header_length = 6, .skip = 4);
	struct NC_completion done;
	int pair[2];

	if (!open_ring(_i, MIB, 0))
		return;
	tcp_pair(pair);
	ck_assert_int_eq(NC_sender_send(ring, pair[0], &message, NULL), 0);
	message.skip = 6;
	ck_assert_int_eq(NC_sender_send(ring, pair[0], &message, NULL), 0);
	message = (struct NC_send)NC_SEND_INIT(.flags = NC_SEND_CLOSE);
	ck_assert_int_eq(NC_sender_send(ring, pair[0], &message, NULL), 0);
	ck_assert_int_ge(NC_sender_submit(ring), 0);
	done = next_completion();
	ck_assert_uint_eq(done.sent, 2);
	for (unsigned i = 0; i < 2; i++) {
		done = next_completion();
		ck_assert_int_eq(done.error, 0);
		ck_assert_uint_eq(done.sent, 0);
	}
	expect_text(pair[1], "ef");
	expect_end(pair[1]);
	close_pair(pair);
	close_ring();
}
END_TEST

/* At most depth messages; accepted ones are not lost. */
START_TEST(test_depth)
{
	struct NC_send message = NC_SEND_INIT(.header = "x", .header_length = 1);
	struct NC_completion done[8];
	unsigned got = 0;
	int pair[2];
	size_t id;

	if (!open_ring(_i, MIB, 4))
		return;
	tcp_pair(pair);
	id = insert(1, 100);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 4; i++)
			ck_assert_int_eq(NC_sender_send(ring, pair[0], &message, NULL), 0);
		message.ranges = &(struct NC_range){.id = id, .length = 100};
		message.range_count = 1;
		FAILS(NC_sender_send(ring, pair[0], &message, NULL), EAGAIN);
		ck_assert_uint_eq(holds_of(id), 0);
		message.range_count = 0;
		ck_assert_int_ge(NC_sender_submit(ring), 0);
		/* Sent, but not reaped. */
		expect_text(pair[1], "x");
		FAILS(NC_sender_send(ring, pair[0], &message, NULL), EAGAIN);
		for (got = 0; got < 4;) {
			int count = NC_sender_reap(ring, done, sizeof(*done), 3);

			ck_assert_int_ge(count, 0);
			got += (unsigned)count;
			if (count == 0)
				await(NC_sender_fd(ring), POLLIN);
		}
		ck_assert_uint_eq(got, 4);
		expect_text(pair[1], "xxx");
	}
	close_pair(pair);
	close_ring();
}
END_TEST

/* An error of one descriptor does not affect the others. */
START_TEST(test_bad_descriptors)
{
	struct NC_send message = NC_SEND_INIT(.header = "x", .header_length = 1);
	int ends[2], pair[2];

	if (!open_ring(_i, MIB, 0))
		return;
	ck_assert_int_eq(pipe(ends), 0);
	tcp_pair(pair);
	ck_assert_int_eq(NC_sender_send(ring, -1, &message, NULL), 0);
	ck_assert_int_eq(NC_sender_send(ring, ends[1], &message, NULL), 0);
	ck_assert_int_eq(NC_sender_send(ring, pair[0], &message, NULL), 0);
	shutdown(pair[1], SHUT_RD);
	ck_assert_int_ge(NC_sender_submit(ring), 0);
	for (unsigned i = 0; i < 3; i++) {
		struct NC_completion done = next_completion();

		ck_assert_int_eq(done.error, done.sock_fd == -1	       ? EBADF
					     : done.sock_fd == ends[1] ? ENOTSOCK
								       : 0);
	}
	close_pair(ends);
	close_pair(pair);
	close_ring();
}
END_TEST

#define SENDERS 4

struct sender {
	int pair[2];
	unsigned count;
	pthread_t thread, reader;
	size_t id;
};

static void *send_many(void *context)
{
	struct sender *sender = context;

	for (unsigned i = 0; i < sender->count; i++) {
		struct NC_range range = {.id = sender->id, .length = 3000};
		struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);

		while (NC_sender_send(ring, sender->pair[0], &message, sender) < 0) {
			ck_assert_int_eq(errno, EAGAIN);
			sched_yield();
		}
		ck_assert_int_ge(NC_sender_submit(ring), 0);
	}
	return NULL;
}

static void *read_many(void *context)
{
	struct sender *sender = context;

	for (unsigned i = 0; i < sender->count; i++)
		expect_pattern(sender->pair[1], 9, 0, 3000);
	return NULL;
}

/* Several threads send, one reaps. */
START_TEST(test_threads)
{
	struct sender senders[SENDERS];
	unsigned left = 0;

	if (!open_ring(_i, 4 * MIB, 16))
		return;
	for (unsigned i = 0; i < SENDERS; i++) {
		senders[i] = (struct sender){.count = scaled(500), .id = insert(9, 3000)};
		tcp_pair(senders[i].pair);
		left += senders[i].count;
		ck_assert_int_eq(pthread_create(&senders[i].reader, NULL, read_many, &senders[i]),
				 0);
		ck_assert_int_eq(pthread_create(&senders[i].thread, NULL, send_many, &senders[i]),
				 0);
	}
	while (left--)
		ck_assert_int_eq(next_completion().error, 0);
	for (unsigned i = 0; i < SENDERS; i++) {
		pthread_join(senders[i].thread, NULL);
		pthread_join(senders[i].reader, NULL);
		ck_assert_uint_eq(holds_of(senders[i].id), 0);
		close_pair(senders[i].pair);
	}
	close_ring();
}
END_TEST

START_TEST(test_bad_input)
{
	struct NC_range range = {.length = 101};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	struct NC_completion done;

	FAILS(NC_sender_fd(NULL), EINVAL);
	FAILS(NC_sender_send(NULL, 0, &message, NULL), EINVAL);
	FAILS(NC_sender_submit(NULL), EINVAL);
	FAILS(NC_sender_reap(NULL, &done, sizeof(done), 1), EINVAL);
	FAILS(NC_sender_cancel(NULL, 0), EINVAL);
	FAILS(NC_sender_close(NULL), EINVAL);
	if (!open_ring(_i, MIB, 2))
		return;
	range.id = insert(1, 100);
	FAILS(NC_sender_send(ring, 0, NULL, NULL), EINVAL);
	FAILS(NC_sender_send(ring, 0, &message, NULL), ERANGE);
	range.length = 100;
	range.offset = SIZE_MAX;
	FAILS(NC_sender_send(ring, 0, &message, NULL), ERANGE);
	range.offset = 0;
	message.range_count = NC_RANGES_MAX + 1;
	FAILS(NC_sender_send(ring, 0, &message, NULL), EINVAL);
	message.range_count = 1;
	message.flags = 0x100;
	FAILS(NC_sender_send(ring, 0, &message, NULL), EINVAL);
	message.flags = 0;
	range.id++;
	FAILS(NC_sender_send(ring, 0, &message, NULL), ENOENT);
	FAILS(NC_sender_reap(ring, NULL, 1, 1), EINVAL);
	FAILS(NC_sender_reap(ring, &done, sizeof(done), 0), EINVAL);
	/* None of these is in the ring. */
	ck_assert_int_eq(NC_sender_submit(ring), 0);
	ck_assert_int_eq(NC_sender_reap(ring, &done, sizeof(done), 1), 0);
	ck_assert(!readable(NC_sender_fd(ring)));
	ck_assert_uint_eq(holds_of(range.id - 1), 0);
	close_ring();
}
END_TEST

START_TEST(test_open)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .flags = NC_CACHE_NO_URING);

	setenv("NABC_CACHE", "/nonexistent/socket", 1);
	NULL_FAILS(NC_sender_open(NULL, 0, 0), ENOENT);
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	NULL_FAILS(NC_sender_open((NC_cache *)&options, 0, 0), EINVAL);
	NULL_FAILS(NC_sender_open(NULL, NC_SENDER_DEPTH_MAX + 1, 0), EINVAL);
	NULL_FAILS(NC_sender_open(NULL, 0, 2), EINVAL);
	/* Limits of the cache apply to its rings. */
	ring = NC_sender_open(NULL, NC_SENDER_DEPTH_MAX, 0);
	ck_assert_ptr_nonnull(ring);
	ck_assert_ptr_eq(ring->backend, &nc_async_epoll);
	ck_assert_str_ne(ring->why, "");
	close_ring();
}
END_TEST

static char notice[300];
static unsigned notices;

static void hear(void *context, int priority, const char *message)
{
	(void)context;
	(void)priority;
	notices++;
	snprintf(notice, sizeof(notice), "%s", message);
}

/* Leaves that many descriptors free; returns the previous limit. */
static struct rlimit leave_descriptors(unsigned count)
{
	struct rlimit before, few;
	int fds[4];

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned i = 0; i <= count; i++)
		fds[i] = dup(0);
	for (unsigned i = 0; i <= count; i++)
		close(fds[i]);
	/* The lowest free ones are assigned first: the last one is the first above the limit. */
	few = before;
	few.rlim_cur = (rlim_t)fds[count];
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	return before;
}

/* When a limit is reached, the call fails, leaves nothing behind, and reports it. */
START_TEST(test_no_descriptors)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = MIB, .flags = NC_CACHE_NO_URING, .log = hear);
	unsigned descriptors;
	struct rlimit before;

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	notices = 0;
	descriptors = open_descriptors();
	for (unsigned room = 0; room < 3; room++) {
		before = leave_descriptors(room);
		if (room < 2)
			NULL_FAILS(NC_sender_open(cache, 0, 0), EMFILE);
		else
			ring = NC_sender_open(cache, 0, 0);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	}
	ck_assert_ptr_nonnull(ring);
	ck_assert_uint_eq(notices, 1);
	ck_assert_ptr_nonnull(strstr(notice, "RLIMIT_NOFILE"));
	ck_assert_int_eq(NC_sender_close(ring), 0);
	ck_assert_uint_eq(open_descriptors(), descriptors);
	close_cache();
}
END_TEST

/* No descriptor for io_uring: falls back to epoll, with a message. */
START_TEST(test_fallback)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = MIB, .log = hear);
	struct NC_send message = NC_SEND_INIT(.header = "x", .header_length = 1);
	struct rlimit before;
	int pair[2];

	if (!may_use_uring())
		return;
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	notices = 0;
	tcp_pair(pair);
	before = leave_descriptors(2);
	ring = NC_sender_open(cache, 0, 0);
	ck_assert_ptr_nonnull(ring);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_ptr_eq(ring->backend, &nc_async_epoll);
	ck_assert_uint_eq(notices, 1);
	ck_assert_ptr_nonnull(strstr(notice, "io_uring"));
	ck_assert_int_eq(NC_sender_send(ring, pair[0], &message, NULL), 0);
	ck_assert_int_eq(NC_sender_submit(ring), 1);
	ck_assert_int_eq(next_completion().error, 0);
	expect_text(pair[1], "x");
	close_pair(pair);
	close_ring();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_one, 0, MECHANISMS);
	tcase_add_loop_test(tcase, test_texts, 0, 2 * MECHANISMS);
	tcase_add_loop_test(tcase, test_order, 0, MECHANISMS);
	tcase_add_loop_test(tcase, test_skip_and_empty, 0, MECHANISMS);
	tcase_add_loop_test(tcase, test_depth, 0, MECHANISMS);
	tcase_add_loop_test(tcase, test_bad_descriptors, 0, MECHANISMS);
	tcase_add_loop_test(tcase, test_threads, 0, MECHANISMS);
	tcase_add_loop_test(tcase, test_bad_input, 0, MECHANISMS);
	tcase_add_test(tcase, test_open);
	tcase_add_test(tcase, test_no_descriptors);
	tcase_add_test(tcase, test_fallback);
}

RUN_SUITE("async", fill)
