/* SPDX-License-Identifier: MIT */
/*
 * test-transmit-reasons.c - unit tests of transmit-plan.c: when it does not offer the
 * route's method, and the reasons that it counts: small or unaligned ranges, locked
 * memory, unsent bytes, sockets of the same machine, TLS.
 */
#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "cache/index.h"
#include "os/ring.h"
#include "send/transmit.h"
#include "send/zerocopy.h"

#include "suite.h"
#include "transmit-fixture.h"
#include "transmit-learn-fixture.h"

#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#ifndef SOL_TLS
#define SOL_TLS 282
#endif

/* --- reasons ------------------------------------------------------------------------ */

START_TEST(test_reasons)
{
	struct NC_range range = {.length = 100 * KIB};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	char *got = must_alloc(100 * KIB);
	struct NC_cache_stat stat;
	int pair[2];

	open_cache(8 * MIB, 0);
	range.id = insert(1, range.length, 0, NC_KIND_APPENDED);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", ROOM, ROOM);
	signal(SIGPIPE, SIG_DFL);
	deliver(pair, range.id, 1, range.length, 0);
	signal(SIGPIPE, SIG_IGN);
	deliver(pair, range.id, 1, range.length, NC_SEND_DONTWAIT);
	settle();
	stat = all_statistics();
	ck_assert_uint_eq(stat.splice_sigpipe, 1);
	ck_assert_uint_eq(stat.splice_dontwait, 1);
	ck_assert_uint_eq(stat.by_splice.sends, 0);
	ck_assert_uint_eq(stat.sends_failed, 0);
	shutdown(pair[0], SHUT_WR);
	ck_assert_int_eq(nc_transmit_send(&transmit, pair[0], &message), -EPIPE);
	ck_assert_int_eq(nc_transmit_send(&transmit, -1, &message), -EBADF);
	ck_assert_uint_eq(all_statistics().sends_failed, 2);
	close_pair(pair);
	/* A Unix socket does not support zero-copy; the bytes arrive all the same. */
	ck_assert(pair_of(AF_UNIX, pair));
	if (nc_transmit_route_set(&transmit, "unix", NC_METHOD_ZEROCOPY) == 0) {
		deliver(pair, range.id, 1, 50 * KIB, 0);
		ck_assert_uint_eq(all_statistics().zerocopy_refused, 1);
		ck_assert_uint_eq(all_statistics().by_zerocopy.sends, stat.by_zerocopy.sends);
	}
	ck_assert_int_eq(nc_transmit_reap(&transmit), 0);
	ck_assert_uint_eq(holds_of(range.id), 0);
	set_nonblocking(pair[0]);
	while (nc_transmit_send(&transmit, pair[0], &message) > 0)
		;
	ck_assert_uint_ge(all_statistics().sends_full, 1);
	free(got);
	close_pair(pair);
	close_cache();
}
END_TEST

/* With a low limit on locked memory everything is copied, and the reason is reported. */
START_TEST(test_memlock)
{
	struct rlimit little = {64 * KIB, 64 * KIB};
	struct NC_cache_stat stat;
	int pair[2];
	size_t id;

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &little), 0);
	/* Root has no limit on locked memory; this process belongs to the test. */
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0) {
		printf("transmit-learn: cannot give up privileges\n");
		return;
	}
	open_cache(8 * MIB, 0);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", 1 << 20, 1 << 20);
	id = insert(1, 100 * KIB, 0, NC_KIND_RECYCLED);
	for (unsigned i = 0; i < 40; i++)
		deliver(pair, id, 1, 100 * KIB, 0);
	stat = all_statistics();
	if (transmit.zerocopy.ring.usable && stat.by_zerocopy.sends == 0) {
		ck_assert_uint_ge(stat.zerocopy_memory, 1);
		/* It is not tried again at once. */
		ck_assert_uint_le(stat.zerocopy_memory, 3);
		ck_assert_uint_eq(stat.zerocopy_memory + stat.zerocopy_learnt, 40);
	} else {
		printf("transmit-learn: locked memory is not limited here, or %s\n",
		       transmit.zerocopy.ring.why);
	}
	ck_assert_uint_eq(stat.zerocopy_refused, 0);
	/* The kernel did not copy what was not sent. */
	ck_assert_uint_le(stat.zerocopy_copied, stat.by_zerocopy.sends);
	ck_assert_uint_le(holds_of(id), stat.by_zerocopy.sends);
	close_pair(pair);
	close_cache();
}
END_TEST

/* --- messages sent in parts ------------------------------------------------------------ */

/*
 * The method that is chosen at the start of a message is used to its end: even a small
 * rest is spliced, and the route is not looked up again.
 */
START_TEST(test_resumed)
{
	const int size = 65536;
	struct NC_range range = {.length = MIB + 7};
	struct NC_send message = NC_SEND_INIT(.header = "head", .header_length = 4,
					      .ranges = &range, .range_count = 1);
	size_t total = 4 + range.length, length = 0;
	char *bytes = must_alloc(total);
	struct NC_route route;
	unsigned calls = 0;
	int pair[2];

	open_cache(8 * MIB, NC_CACHE_NO_URING);
	transmit.local_splice = 256 * KIB;
	range.id = insert(3, range.length, 0, NC_KIND_APPENDED);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", size, size);
	set_nonblocking(pair[0]);
	set_nonblocking(pair[1]);
	while (length < total) {
		ssize_t sent = 0, got;

		if (message.skip < total) {
			sent = nc_transmit_send(&transmit, pair[0], &message);
			calls += sent > 0;
			ck_assert(sent > 0 || sent == -EAGAIN);
			message.skip += sent > 0 ? (size_t)sent : 0;
			/* New messages are not affected by the method of this one. */
			signal(SIGPIPE, SIG_DFL);
		}
		got = recv(pair[1], bytes + length, total - length, 0);
		length += got > 0 ? (size_t)got : 0;
	}
	signal(SIGPIPE, SIG_IGN);
	ck_assert_uint_gt(calls, 2);
	ck_assert_uint_eq(pattern_match(bytes + 4, 3, 0, range.length), range.length);
	ck_assert_int_eq(nc_transmit_routes(&transmit, &route, 1), 1);
	ck_assert_uint_eq(route.by_copy.bytes, 0);
	ck_assert_uint_eq(route.by_splice.bytes, range.length);
	ck_assert_uint_eq(statistics().splice_sigpipe, 0);
	close_pair(pair);
	close_cache();
	free(bytes);
}
END_TEST

/* Some parts are copied on demand; the others, without the flag, use the learnt method. */
START_TEST(test_copy_flag)
{
	struct NC_range range = {.length = MIB};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1,
					      .flags = NC_SEND_COPY | NC_SEND_MORE);
	char *bytes = must_alloc(range.length);
	struct NC_route route;
	size_t copied, length = 0;
	int pair[2];

	open_cache(8 * MIB, NC_CACHE_NO_URING);
	transmit.local_splice = 32 * KIB;
	range.id = insert(3, range.length, 0, NC_KIND_APPENDED);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 65536, 65536);
	set_nonblocking(pair[0]);
	set_nonblocking(pair[1]);
	while (length < range.length) {
		ssize_t sent = 0, got;

		if (message.skip < range.length) {
			sent = nc_transmit_send(&transmit, pair[0], &message);
			ck_assert(sent > 0 || sent == -EAGAIN);
			message.skip += sent > 0 ? (size_t)sent : 0;
		}
		/* Behind the first half. */
		if (message.flags & NC_SEND_COPY && message.skip >= range.length / 2) {
			message.flags = 0;
			copied = message.skip;
		}
		got = recv(pair[1], bytes + length, range.length - length, 0);
		length += got > 0 ? (size_t)got : 0;
	}
	ck_assert_uint_eq(pattern_match(bytes, 3, 0, range.length), range.length);
	ck_assert_int_eq(nc_transmit_routes(&transmit, &route, 1), 1);
	ck_assert_uint_eq(route.by_copy.bytes, copied);
	ck_assert_uint_eq(route.by_splice.bytes, range.length - copied);
	close_pair(pair);
	close_cache();
	free(bytes);
}
END_TEST

/* --- unsent bytes -------------------------------------------------------------------- */

static void open_limited(size_t limit)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB, .flags = NC_CACHE_NO_URING,
				      .unsent_limit = limit);

	ck_assert_int_eq(nc_index_init_owner(&cache, &options), 0);
	nc_transmit_init(&transmit, &cache);
	ck_assert_int_eq(nc_transmit_route_set(&transmit, "*", NC_METHOD_SPLICE), 0);
}

/* Sends what the socket accepts at once. */
static void offer(const int pair[2], size_t id)
{
	struct NC_range range = {.id = id, .length = 128 * KIB};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	ssize_t sent;

	set_nonblocking(pair[0]);
	sent = nc_transmit_send(&transmit, pair[0], &message);
	ck_assert(sent > 0 || sent == -EAGAIN);
}

START_TEST(test_unsent)
{
	const unsigned own = 300000, none = 0;
	size_t large, small;
	int pair[2];

	open_limited(0);
	large = insert(1, 128 * KIB, 0, NC_KIND_AUTO);
	small = insert(2, 100 * KIB, 0, NC_KIND_AUTO);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", ROOM, ROOM);
	deliver(pair, small, 2, 100 * KIB, 0);
	ck_assert_uint_eq(lowat(pair[0]), 0);
	/* Copied bytes are sent at once. */
	deliver(pair, large, 1, 128 * KIB, NC_SEND_DONTWAIT);
	ck_assert_uint_eq(lowat(pair[0]), 0);
	/* A call that itself waits for space is not bounded either. */
	deliver(pair, large, 1, 128 * KIB, 0);
	ck_assert_uint_eq(lowat(pair[0]), 0);
	offer(pair, large);
	ck_assert_uint_eq(lowat(pair[0]), 16384);
	/* It is set once: later changes by the program stay. */
	ck_assert_int_eq(setsockopt(pair[0], IPPROTO_TCP, TCP_NOTSENT_LOWAT, &none, sizeof(none)),
			 0);
	offer(pair, large);
	ck_assert_uint_eq(lowat(pair[0]), none);
	close_pair(pair);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", ROOM, ROOM);
	ck_assert_int_eq(setsockopt(pair[0], IPPROTO_TCP, TCP_NOTSENT_LOWAT, &own, sizeof(own)), 0);
	deliver(pair, large, 1, 128 * KIB, 0);
	ck_assert_uint_eq(lowat(pair[0]), own);
	close_pair(pair);
	/* For other machines the limit is higher, so that no timer finds nothing to send. */
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", ROOM, ROOM);
	deliver(pair, large, 1, 128 * KIB, 0);
	ck_assert_uint_eq(lowat(pair[0]), MIB);
	close_pair(pair);
	/* A reused descriptor number is a different socket. */
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", ROOM, ROOM);
	offer(pair, large);
	ck_assert_uint_eq(lowat(pair[0]), 16384);
	close_pair(pair);
	close_cache();
	open_limited(100000);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", ROOM, ROOM);
	/* Copied bytes leave their memory as soon as possible. */
	large = insert(1, 128 * KIB, 0, NC_KIND_RECYCLED);
	deliver(pair, large, 1, 128 * KIB, 0);
	ck_assert_uint_eq(lowat(pair[0]), 0);
	large = insert(1, 128 * KIB, 0, NC_KIND_AUTO);
	offer(pair, large);
	ck_assert_uint_eq(lowat(pair[0]), 100000);
	close_pair(pair);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.2", ROOM, ROOM);
	offer(pair, large);
	ck_assert_uint_eq(lowat(pair[0]), 100000);
	close_pair(pair);
	close_cache();
	open_limited(SIZE_MAX);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", ROOM, ROOM);
	large = insert(1, 128 * KIB, 0, NC_KIND_AUTO);
	deliver(pair, large, 1, 128 * KIB, 0);
	ck_assert_uint_eq(lowat(pair[0]), 0);
	close_pair(pair);
	close_cache();
}
END_TEST

/* --- TLS in the kernel ---------------------------------------------------------------- */

static unsigned last_flags;

/* The library's own calls use this function, too. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	last_flags = (unsigned)flags;
	return syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t send(int fd, const void *data, size_t length, int flags)
{
	last_flags = flags;
	return syscall(SYS_sendto, fd, data, length, flags, NULL, 0);
}

static bool start_tls(const int pair[2])
{
	static bool said;
	struct tls12_crypto_info_aes_gcm_128 keys = {
		.info = {.version = TLS_1_2_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128}};

	if (setsockopt(pair[0], IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) < 0 ||
	    setsockopt(pair[1], IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) < 0 ||
	    setsockopt(pair[0], SOL_TLS, TLS_TX, &keys, sizeof(keys)) < 0 ||
	    setsockopt(pair[1], SOL_TLS, TLS_RX, &keys, sizeof(keys)) < 0) {
		if (!said)
			printf("transmit-learn: no TLS in this kernel (%s): flags only\n",
			       strerror(errno));
		said = true;
		return false;
	}
	return true;
}

/* Data within this machine is copied up to a size that CPU caches hold. */
START_TEST(test_local)
{
	static const struct {
		size_t size;
		bool spliced;
	} cases[] = {{32 * KIB, false}, {100 * KIB, false}, {256 * KIB, true}, {MIB, true}};
	int pair[2];

	ck_assert_int_eq(nc_index_init_owner(
				 &cache, &(struct NC_cache_options)
						 NC_CACHE_OPTIONS_INIT(.memory = 8 * MIB,
								       .flags = NC_CACHE_NO_URING)),
			 0);
	nc_transmit_init(&transmit, &cache);
	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", ROOM, ROOM);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t before = statistics().by_splice.sends;

		deliver(pair, insert(i, cases[i].size, 0, NC_KIND_APPENDED), i, cases[i].size, 0);
		ck_assert_uint_eq(statistics().by_splice.sends > before, cases[i].spliced);
	}
	close_pair(pair);
	close_cache();
}
END_TEST

/*
 * MSG_MORE would keep a record open: at the end of a message it is permitted only if
 * more follows.
 */
START_TEST(test_tls)
{
	static const struct {
		enum NC_kind kind;
		size_t size;
		unsigned flags;
	} cases[] = {
		{NC_KIND_RECYCLED, 1000, 0},
		{NC_KIND_RECYCLED, 1000, NC_SEND_CLOSE},
		{NC_KIND_RECYCLED, 100 * KIB, 0},
		{NC_KIND_RECYCLED, 100 * KIB, NC_SEND_CLOSE},
		{NC_KIND_APPENDED, 100 * KIB, 0},
		{NC_KIND_APPENDED, 100 * KIB, NC_SEND_CLOSE},
		{NC_KIND_APPENDED, 300 * KIB, NC_SEND_MORE},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t id;
		int pair[2];

		open_cache(8 * MIB, NC_CACHE_NO_URING);
		tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", ROOM, ROOM);
		(void)start_tls(pair);
		id = insert(i, cases[i].size, 0, cases[i].kind);
		deliver(pair, id, i, cases[i].size, cases[i].flags);
		/* The header before a spliced piece was the last copied part. */
		ck_assert_uint_eq(last_flags & MSG_MORE,
				  cases[i].kind == NC_KIND_APPENDED ? MSG_MORE : 0);
		ck_assert_uint_eq(statistics().by_splice.sends > 0,
				  cases[i].kind == NC_KIND_APPENDED);
		close_pair(pair);
		close_cache();
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_reasons);
	tcase_add_test(tcase, test_memlock);
	tcase_add_test(tcase, test_resumed);
	tcase_add_test(tcase, test_copy_flag);
	tcase_add_test(tcase, test_unsent);
	tcase_add_test(tcase, test_local);
	tcase_add_test(tcase, test_tls);
}

RUN_SUITE("transmit-learn-reasons", fill)
