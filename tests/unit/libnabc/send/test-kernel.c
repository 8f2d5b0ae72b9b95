/* SPDX-License-Identifier: MIT */
/*
 * test-kernel.c - unit tests of kernel.c over real sockets and a model of the module:
 * whole and mixed messages, parts, ends of streams, sockets that the module refuses,
 * and sends that complete later.
 */
#include <errno.h>
#include <liburing.h>
#include <nabc-async.h>
#include <nabc-uapi.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "send/async.h"
#include "send/send-op.h"
#include "send/transmit.h"

#include "device-model.h"
#include "kernel-fixture.h"
#include "suite.h"
#include "transmit-fixture.h"

#define SIZE (60 * KIB + 7)

/* Four units, two of them in the module, and a header. */
struct mix {
	struct NC_range ranges[6];
	struct NC_send message;
	size_t total, kernel, other;
};

static const unsigned which[6] = {0, 1, 2, 3, 1, 0};

static void make_mix(struct mix *mix, unsigned flags, size_t header)
{
	static const enum NC_kind kinds[4] = {NC_KIND_KERNEL, NC_KIND_RECYCLED, NC_KIND_KERNEL,
					      NC_KIND_APPENDED};
	static char head[NABC_HEADER_MAX + 1000];
	size_t ids[4];

	*mix = (struct mix){
		.ranges = {{.offset = 0, .length = SIZE},
			   {.offset = 5, .length = 1000},
			   {.offset = 77, .length = 40000},
			   {.offset = 4096, .length = 40 * KIB},
			   {.offset = 9, .length = 0},
			   {.offset = SIZE - 1, .length = 1}},
		.message = {.header = head, .header_length = header, .flags = flags},
	};
	pattern_fill(head, 99, 0, header);
	for (unsigned i = 0; i < 4; i++)
		ids[i] = insert(i + 1, SIZE, 0, kinds[i]);
	for (unsigned i = 0; i < 6; i++) {
		mix->ranges[i].id = ids[which[i]];
		*(which[i] % 2 ? &mix->other : &mix->kernel) += mix->ranges[i].length;
	}
	mix->message.ranges = mix->ranges;
	mix->message.range_count = 6;
	mix->total = header + mix->kernel + mix->other;
}

static void check_mix(const struct mix *mix, const char *got)
{
	size_t at = mix->message.header_length;

	ck_assert_uint_eq(pattern_match(got, 99, 0, at), at);
	for (unsigned i = 0; i < 6; i++) {
		const struct NC_range *range = &mix->ranges[i];

		ck_assert_uint_eq(
			pattern_match(got + at, which[i] + 1, range->offset, range->length),
			range->length);
		at += range->length;
	}
}

/*
 * Sends what the socket accepts and reads what has arrived, in turns; `to` has space
 * for one byte more.
 */
static unsigned send_and_read(const int pair[2], struct NC_send message, size_t total, char *to)
{
	size_t have = 0;
	unsigned pieces = 0;

	set_nonblocking(pair[0]);
	while (have < total) {
		ssize_t sent =
			message.skip < total ? nc_transmit_send(&transmit, pair[0], &message) : 0;
		ssize_t got;

		ck_assert(sent >= 0 || sent == -EAGAIN);
		message.skip += sent > 0 ? (size_t)sent : 0;
		pieces += sent > 0;
		await(pair[1], POLLIN);
		got = recv(pair[1], to + have, total + 1 - have, MSG_DONTWAIT);
		ck_assert_int_gt(got, 0);
		have += (size_t)got;
	}
	ck_assert_uint_eq(have, total);
	return pieces;
}

static void check_message(unsigned flags, size_t header, int send_size)
{
	struct mix mix;
	char *got, byte;
	int pair[2];

	open_with_module(16 * MIB);
	make_mix(&mix, flags, header);
	got = must_alloc(mix.total + 1);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", send_size, send_size ? 4096 : 0);
	ck_assert_uint_ge(send_and_read(pair, mix.message, mix.total, got), send_size ? 8 : 1);
	check_mix(&mix, got);
	ck_assert_uint_eq(counters().by_kernel.bytes, mix.kernel);
	ck_assert_uint_eq(counters().by_copy.bytes + counters().by_splice.bytes, mix.other);
	ck_assert_uint_eq(counters().kernel_copies, 0);
	if (flags & NC_SEND_CLOSE)
		ck_assert_int_eq(read(pair[1], &byte, 1), 0);
	else
		ck_assert(!readable(pair[1]));
	for (unsigned i = 0; i < 6; i++)
		ck_assert_uint_eq(holds_of(mix.ranges[i].id), 0);
	free(got);
	close_pair(pair);
	close_cache();
}

START_TEST(test_messages)
{
	static const unsigned flags[] = {0, NC_SEND_CLOSE, NC_SEND_DONTWAIT,
					 NC_SEND_DONTWAIT | NC_SEND_CLOSE};

	check_message(flags[_i], 300, 0);
	check_message(flags[_i], 0, 0);
	check_message(flags[_i], 300, 4608);
	/* A header that needs several calls of the module. */
	check_message(flags[_i], NABC_HEADER_MAX, 0);
	check_message(flags[_i], NABC_HEADER_MAX + 1000, 0);
}
END_TEST

/* From every offset at which an earlier call may have ended. */
START_TEST(test_skip)
{
	struct mix mix;
	char *got;

	open_with_module(16 * MIB);
	make_mix(&mix, 0, 100);
	got = must_alloc(mix.total + 1);
	for (size_t skip = 1; skip < mix.total; skip += skip < 110 ? 9 : 3331) {
		int pair[2];

		mix.message.skip = skip;
		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
		ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &mix.message),
				 (ssize_t)(mix.total - skip));
		memset(got, 0, mix.total);
		pattern_fill(got, 99, 0, 100);
		read_exactly(pair[1], got + skip, mix.total - skip);
		if (skip < 100)
			check_mix(&mix, got);
		close_pair(pair);
	}
	free(got);
	close_cache();
}
END_TEST

/* Reads what a message with a header of 4 bytes, texts of 6 and units of 20000 sends. */
static void expect_texts(int fd, const char *wanted, size_t skip)
{
	static char got[4 + 3 * 20000 + 3 * 6];

	read_exactly(fd, got, sizeof(got) - skip);
	ck_assert(memcmp(got, wanted + skip, sizeof(got) - skip) == 0);
	ck_assert(!readable(fd));
}

/*
 * Texts between units of the module: the one ahead of a unit leaves with it.  A limit ends calls
 * anywhere, and CLOSE waits for the last one.
 */
START_TEST(test_texts)
{
	static const size_t limits[] = {3, 7, 15000, 20010, 40000, SIZE_MAX};
	static char wanted[4 + 3 * 20000 + 3 * 6];
	struct NC_text texts[] = {{"<text>", 6, 0}, {"<next>", 6, 1}, {"</end>", 6, 3}};
	struct NC_range ranges[3];
	struct NC_send message =
		NC_SEND_INIT(.ranges = ranges, .range_count = 3, .texts = texts, .text_count = 3);
	size_t at = 4;
	char byte;

	open_with_module(16 * MIB);
	memcpy(wanted, "head", 4);
	for (unsigned i = 0; i < 3; i++) {
		ranges[i] = (struct NC_range){.id = insert(i + 1, 20000, 0, NC_KIND_AUTO),
					      .length = 20000};
		if (i < 2)
			memcpy(wanted + at, texts[i].data, 6);
		at += i < 2 ? 6 : 0;
		pattern_fill(wanted + at, i + 1, 0, 20000);
		at += 20000;
	}
	memcpy(wanted + at, "</end>", 6);
	/* With a header, the first text is in its way; alone it is the module's header. */
	for (unsigned i = 0; i < 2; i++) {
		unsigned before = model_calls(NABC_IOC_SOCKSENDV);
		int pair[2];

		message.header = "head";
		message.header_length = i ? 0 : 4;
		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
		ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message),
				 (ssize_t)sizeof(wanted) - 4 * i);
		ck_assert_uint_eq(model_calls(NABC_IOC_SOCKSENDV) - before, 2);
		expect_texts(pair[1], wanted, 4 * i);
		close_pair(pair);
	}
	message.header_length = 4;
	ck_assert_uint_eq(counters().by_kernel.bytes, 2 * 60000);
	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		int pair[2];

		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
		message.flags = NC_SEND_CLOSE;
		message.limit = limits[i];
		for (message.skip = 0; message.skip < sizeof(wanted);) {
			size_t left = sizeof(wanted) - message.skip;

			ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message),
					 (ssize_t)(limits[i] < left ? limits[i] : left));
			message.skip += limits[i] < left ? limits[i] : left;
			ck_assert_uint_eq(model.closes, 0);
		}
		for (at = 0; at < sizeof(wanted); at++) {
			read_exactly(pair[1], &byte, 1);
			expect(byte == wanted[at]);
		}
		ck_assert_int_eq(read(pair[1], &byte, 1), 0);
		close_pair(pair);
	}
	ck_assert_uint_eq(counters().by_kernel.bytes + counters().by_copy.bytes,
			  (2 + sizeof(limits) / sizeof(limits[0])) * 60000);
	ck_assert_uint_eq(counters().by_copy.bytes, 0);
	close_cache();
}
END_TEST

/* One call for header, units and end, as in the paper. */
START_TEST(test_one_call)
{
	struct NC_range range = {.length = 20000};
	struct NC_send message =
		NC_SEND_INIT(.header = "head", .header_length = 4, .ranges = &range,
			     .range_count = 1, .flags = NC_SEND_CLOSE);
	char got[20004];
	int pair[2];

	open_with_module(MIB);
	range.id = insert(1, 20000, 0, NC_KIND_AUTO);
	tcp_pair(pair);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), 20004);
	ck_assert_uint_eq(model_calls(NABC_IOC_SOCKSENDV), 1);
	ck_assert_uint_eq(model.closes, 1);
	read_exactly(pair[1], got, sizeof(got));
	ck_assert_uint_eq(pattern_match(got + 4, 1, 0, 20000), 20000);
	ck_assert_int_eq(read(pair[1], got, 1), 0);
	ck_assert_uint_eq(counters().by_copy.sends, 0);
	ck_assert_uint_eq(counters().copies_avoided, 1);
	/* The socket's own errors. */
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), -EPIPE);
	close_pair(pair);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), -EBADF);
	close_cache();
}
END_TEST

/* A message that does not fit into the socket does not block with DONTWAIT. */
START_TEST(test_dontwait)
{
	struct NC_range range = {.length = 3 * MIB};
	struct NC_send message =
		NC_SEND_INIT(.ranges = &range, .range_count = 1, .flags = NC_SEND_DONTWAIT);
	ssize_t sent;
	int pair[2];

	open_with_module(16 * MIB);
	range.id = insert(1, range.length, 0, NC_KIND_AUTO);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4608, 4096);
	while ((sent = nc_transmit_send(&transmit, pair[0], &message)) > 0)
		message.skip += (size_t)sent;
	ck_assert_int_eq(sent, -EAGAIN);
	ck_assert_uint_lt(message.skip, range.length);
	close_pair(pair);
	close_cache();
}
END_TEST

static void check_copied(const int pair[2], const struct mix *mix, char *got)
{
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &mix->message), (ssize_t)mix->total);
	read_exactly(pair[1], got, mix->total);
	check_mix(mix, got);
}

/* Not plain TCP: a copy in memory, made once, and the module is not called again. */
START_TEST(test_refused)
{
	int size = 4 << 20, pair[2];
	struct mix mix;
	char *got;

	open_with_module(16 * MIB);
	make_mix(&mix, 0, 100);
	got = must_alloc(mix.total);
	if (_i == 0) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		ck_assert_int_eq(
			setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) &&
				setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)),
			0);
	} else {
		/* A socket with an upper protocol looks the same to the library. */
		model.no_sockets = true;
		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", size, size);
	}
	for (unsigned i = 1; i < 4; i++) {
		check_copied(pair, &mix, got);
		ck_assert_uint_eq(counters().kernel_refused, i);
		ck_assert_uint_eq(model_calls(NABC_IOC_SOCKSENDV), 1);
		ck_assert_uint_eq(counters().kernel_copies, 2);
	}
	ck_assert_uint_eq(counters().by_kernel.bytes, 0);
	close_pair(pair);
	/* That applied to this socket, not to all. */
	model.no_sockets = false;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", size, size);
	check_copied(pair, &mix, got);
	ck_assert_uint_eq(counters().by_kernel.bytes, mix.kernel);
	close_pair(pair);
	free(got);
	close_cache();
}
END_TEST

/* A connection on this machine with segments of at most that many bytes. */
static void small_pair(int pair[2], int segment)
{
	struct sockaddr_in here = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(here);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&here, sizeof(here)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&here, &length), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(setsockopt(pair[0], IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment)),
			 0);
	ck_assert_int_eq(connect(pair[0], (struct sockaddr *)&here, sizeof(here)), 0);
	pair[1] = accept(listener, NULL, NULL);
	ck_assert_int_ge(pair[1], 0);
	close(listener);
}

/* Kept checksums are asked for where they pay: in large segments; small messages do not ask. */
START_TEST(test_sums)
{
	for (unsigned i = 0; i < 8; i++) {
		const bool able = i & 1, large = i & 2, small_message = i & 4;
		struct NC_range range = {.length = small_message ? 10000 : 40000};
		struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
		char *got = must_alloc(range.length);
		int pair[2];

		model.sums = able;
		open_with_module(MIB);
		model.asked = 0;
		range.id = insert(1, range.length, 0, NC_KIND_AUTO);
		small_pair(pair, large ? 9000 : 1400);
		/* Known from the connection, then from the memo. */
		for (unsigned times = 0; times < 2; times++) {
			ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message),
					 (ssize_t)range.length);
			read_exactly(pair[1], got, range.length);
			ck_assert_uint_eq(pattern_match(got, 1, 0, range.length), range.length);
		}
		ck_assert_uint_eq(counters().by_kernel.sends, 2);
		ck_assert_uint_eq(model.asked, able && large && !small_message ? 2 : 0);
		free(got);
		close_pair(pair);
		close_cache();
	}
}
END_TEST

/* Another method is fixed: then the module is not used. */
START_TEST(test_fixed)
{
	static const int methods[] = {NC_METHOD_COPY, NC_METHOD_SPLICE, NC_METHOD_KERNEL,
				      NC_ROUTE_LEARN};
	struct mix mix;
	char *got;
	int pair[2];

	open_with_module(16 * MIB);
	make_mix(&mix, 0, 100);
	got = must_alloc(mix.total);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t before = counters().by_kernel.bytes;

		ck_assert_int_eq(nc_transmit_route_set(&transmit, "*", methods[i]), 0);
		check_copied(pair, &mix, got);
		ck_assert_uint_eq(counters().by_kernel.bytes - before, i < 2 ? 0 : mix.kernel);
	}
	close_pair(pair);
	free(got);
	close_cache();
}
END_TEST

/* --- sends that complete later ------------------------------------------------- */

/* Through the library's ring, with more messages for a socket than it accepts at once. */
START_TEST(test_ring)
{
	struct nc_send_ops all = {0};
	struct NC_completion done[4];
	struct NC_sender *ring;
	struct mix mix;
	size_t have = 0;
	unsigned over = 0;
	bool no_uring = !(_i & 2) || getenv("NABC_TEST_NO_URING");
	char *got;
	int pair[2];

	open_with_module(16 * MIB);
	make_mix(&mix, 0, 100);
	got = must_alloc(3 * mix.total);
	model.no_sockets = _i & 1;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 8192, 8192);
	ck_assert_int_eq(
		nc_async_open(&all, &transmit, 8, no_uring ? NC_SENDER_NO_URING : 0, &ring), 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(nc_async_send(ring, pair[0], &mix.message, NULL), 0);
	while (over < 3 || have < 3 * mix.total) {
		int reaped;

		ck_assert_int_ge(nc_async_submit(ring), 0);
		reaped = nc_async_reap(ring, done, 4);
		ck_assert_int_ge(reaped, 0);
		for (int i = 0; i < reaped; i++) {
			ck_assert_int_eq(done[i].error, 0);
			ck_assert_uint_eq(done[i].sent, mix.total);
		}
		over += (unsigned)reaped;
		while (readable(pair[1])) {
			ssize_t got_now = read(pair[1], got + have, 3 * mix.total - have);

			ck_assert_int_gt(got_now, 0);
			have += (size_t)got_now;
		}
	}
	for (unsigned i = 0; i < 3; i++)
		check_mix(&mix, got + i * mix.total);
	ck_assert_uint_eq(counters().by_kernel.bytes, _i & 1 ? 0 : 3 * mix.kernel);
	ck_assert_uint_eq(counters().kernel_copies, _i & 1 ? 2 : 0);
	nc_async_close(ring);
	close_pair(pair);
	free(got);
	close_cache();
}
END_TEST

/* One step of an operation, as a ring would complete it. */
static int step(struct NC_send_op *operation, const int pair[2])
{
	struct io_uring_sqe sqe;
	int32_t result = 0;

	memset(&sqe, 0, sizeof(sqe));
	ck_assert_int_eq(nc_send_op_prep(operation, &sqe), 0);
	ck_assert_int_eq(nc_send_op_prep(operation, &sqe), -EINVAL);
	if (sqe.opcode == IORING_OP_POLL_ADD) {
		ck_assert_int_eq(sqe.fd, pair[0]);
		await(pair[0], POLLOUT);
		result = POLLOUT;
	} else if (sqe.opcode == IORING_OP_SENDMSG) {
		result = (int32_t)sendmsg(pair[0], (struct msghdr *)(uintptr_t)sqe.addr,
					  (int)(sqe.msg_flags & ~(unsigned)MSG_WAITALL) |
						  MSG_DONTWAIT);
		result = result < 0 ? -errno : result;
	} else {
		ck_assert_int_eq(sqe.opcode, IORING_OP_NOP);
	}
	return nc_send_op_complete(operation, result, 0);
}

START_TEST(test_operation)
{
	unsigned flags = _i & 1 ? NC_SEND_DONTWAIT : 0;
	struct nc_send_ops all = {0};
	struct NC_send_op *operation;
	size_t have = 0;
	struct mix mix;
	char *got;
	int pair[2], progress = NC_PROGRESS_AGAIN;
	unsigned full = 0;

	open_with_module(16 * MIB);
	make_mix(&mix, flags | NC_SEND_CLOSE, 100);
	got = must_alloc(mix.total + 1);
	model.no_sockets = _i & 2;
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 8192, 8192);
	ck_assert_int_eq(nc_send_op_open(&all, &transmit, pair[0], &mix.message,
					 _i & 4 ? 0 : NC_SEND_OP_UNLINKED, false, &operation),
			 0);
	while (progress != NC_PROGRESS_DONE || have < mix.total) {
		if (progress != NC_PROGRESS_DONE)
			progress = step(operation, pair);
		ck_assert_int_ge(progress, 0);
		full += progress == NC_PROGRESS_FULL;
		/* The test reads more slowly than it sends, so that the socket fills up. */
		if (progress == NC_PROGRESS_FULL || progress == NC_PROGRESS_DONE || !flags) {
			ssize_t now = recv(pair[1], got + have, mix.total + 1 - have, MSG_DONTWAIT);

			have += now > 0 ? (size_t)now : 0;
		}
	}
	ck_assert(full || !flags);
	check_mix(&mix, got);
	ck_assert_int_eq(read(pair[1], got, 1), 0);
	ck_assert_uint_eq(counters().by_kernel.bytes, _i & 6 ? 0 : mix.kernel);
	ck_assert_uint_eq(counters().kernel_refused, (_i & 6) == 2 ? 1 : 0);
	nc_send_op_free(operation);
	close_pair(pair);
	free(got);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_messages, 0, 4);
	tcase_add_test(tcase, test_skip);
	tcase_add_test(tcase, test_one_call);
	tcase_add_test(tcase, test_texts);
	tcase_add_test(tcase, test_dontwait);
	tcase_add_loop_test(tcase, test_refused, 0, 2);
	tcase_add_test(tcase, test_sums);
	tcase_add_test(tcase, test_fixed);
	tcase_add_loop_test(tcase, test_ring, 0, 4);
	tcase_add_loop_test(tcase, test_operation, 0, 8);
}

RUN_SUITE("kernel", fill)
