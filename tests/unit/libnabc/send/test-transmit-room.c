/* SPDX-License-Identifier: MIT */
/*
 * test-transmit-room.c - unit tests of how a message waits for space: on a network of
 * the test's own, whose segment size the test sets, with boundary values of pages,
 * segments, pipes, bounds and windows, every pair of them once.  The test checks TCP's
 * state and no clock: a message waits in vain if its socket reports no space while
 * bytes wait in it, none is in flight and the receiver's window is open.  Then a cork
 * or MSG_MORE holds them back until a timer ends that.  Without CAP_SYS_ADMIN the test
 * uses the machine's loopback, with segments that the receiver bounds.
 */
#include <nabc-async.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <linux/tcp.h>
#include <unistd.h>

#include "membership/handle.h"
#include "send/async.h"
#include "send/send-op.h"
#include "send/transmit.h"

#include "suite.h"
#include "tcp-info.h"
#include "transmit-fixture.h"

#define HEADERS 52 /* bytes of IPv4, TCP and its time stamps */
#define ROUNDS 4
#define BEHIND 700 /* bytes of the message after one with NC_SEND_MORE */

enum factor { MTU, OFFSET, LENGTH, HEAD, LIMIT, WINDOW, BUFFER, FLAGS, NAGLE, WAY, FACTORS };

/* How a message is sent, and how the caller waits. */
enum way { SPLICE, SPLICE_AWAY, COPY, RECYCLED, ZEROCOPY, RING, PLAIN_RING, BLOCKING, WAYS };

#define LEVELS 12
/* clang-format off */
#define LIST(...) {(size_t[]){__VA_ARGS__}, sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t)}
/* clang-format on */

static const struct {
	const size_t *levels;
	unsigned count;
} factors[FACTORS] = {
	/* Segments of an Ethernet, of jumbo frames, about half the bound and the bound, of lo. */
	[MTU] = LIST(1500, 9000, 8191 + HEADERS, 8193 + HEADERS, 16383 + HEADERS, 16384 + HEADERS,
		     16385 + HEADERS, 65535, 65536),
	[OFFSET] = LIST(0, 1, PAGE / 2, PAGE - 1, PAGE + 1),
	/* Pipes, segments of lo and its initial window; the size from which on lo splices. */
	[LENGTH] = LIST(65482, 65483, 65484, 65535, 65536, 65537, 256 * KIB - 1, 256 * KIB,
			256 * KIB + 1, MIB + 7),
	[HEAD] = LIST(0, 1, 300, PAGE - 1, PAGE, PAGE + 1, 16383, 16384, 16385),
	[LIMIT] = LIST(0, 16383, 16385, 65483, SIZE_MAX),
	[WINDOW] = LIST(8 * MIB, 0, 65535, 65536, 131072, 262145),
	[BUFFER] = LIST(0, 8192, 65483, 131072),
	[FLAGS] = LIST(0, NC_SEND_MORE, NC_SEND_CLOSE),
	[NAGLE] = LIST(0, 1),
	[WAY] = LIST(SPLICE, SPLICE_AWAY, COPY, RECYCLED, ZEROCOPY, RING, PLAIN_RING, BLOCKING),
};

struct trial {
	unsigned char level[FACTORS];
};

static size_t value(const struct trial *trial, enum factor factor)
{
	return factors[factor].levels[trial->level[factor]];
}

static const char *describe(const struct trial *trial)
{
	static char text[256];

	snprintf(text, sizeof(text),
		 "MTU %zu, offset %zu, length %zu, header %zu, limit %zd, window %zu, buffer %zu, "
		 "flags %zx, Nagle %zu, way %zu",
		 value(trial, MTU), value(trial, OFFSET), value(trial, LENGTH), value(trial, HEAD),
		 (ssize_t)value(trial, LIMIT), value(trial, WINDOW), value(trial, BUFFER),
		 value(trial, FLAGS), value(trial, NAGLE), value(trial, WAY));
	return text;
}

/* --- every pair of values ----------------------------------------------------------- */

static bool covered[FACTORS][LEVELS][FACTORS][LEVELS];

static unsigned gain(const struct trial *trial)
{
	unsigned fresh = 0;

	for (unsigned a = 0; a < FACTORS; a++)
		for (unsigned b = a + 1; b < FACTORS; b++)
			fresh += !covered[a][trial->level[a]][b][trial->level[b]];
	return fresh;
}

static unsigned cover(const struct trial *trial)
{
	unsigned fresh = gain(trial);

	for (unsigned a = 0; a < FACTORS; a++)
		for (unsigned b = a + 1; b < FACTORS; b++)
			covered[a][trial->level[a]][b][trial->level[b]] = true;
	return fresh;
}

/*
 * Finds a trial with a missing pair and, of some, as many others as possible; returns
 * false if none is missing.
 */
static bool next_trial(uint64_t *random, struct trial *best)
{
	unsigned most = 0, a, b, i = 0, j = 0;

	for (a = 0; a < FACTORS; a++)
		for (b = a + 1; b < FACTORS; b++)
			for (i = 0; i < factors[a].count; i++)
				for (j = 0; j < factors[b].count; j++)
					if (!covered[a][i][b][j])
						goto missing;
	return false;
missing:
	for (unsigned tries = 0; tries < 64; tries++) {
		struct trial trial;

		for (unsigned c = 0; c < FACTORS; c++)
			trial.level[c] =
				(unsigned char)((random_next(random) >> 33) % factors[c].count);
		trial.level[a] = (unsigned char)i;
		trial.level[b] = (unsigned char)j;
		if (gain(&trial) > most) {
			most = gain(&trial);
			*best = trial;
		}
	}
	return true;
}

/* --- the network ----------------------------------------------------------------------- */

static bool own_network;

static void set_link(size_t mtu)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_mtu = (int)mtu};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(ioctl(fd, SIOCSIFMTU, &request), 0);
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	close(fd);
}

static void open_network(void)
{
	own_network = unshare(CLONE_NEWNET) == 0;
	if (!own_network) {
		printf("transmit-room: no network of its own: %s\n", strerror(errno));
		fflush(stdout);
	}
}

static void connect_pair(const struct trial *trial, int pair[2])
{
	enum way way = (enum way)value(trial, WAY);
	const char *to = way == SPLICE_AWAY || way == ZEROCOPY ? "127.0.0.2" : "127.0.0.1";
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int size = (int)value(trial, WINDOW), mss = (int)value(trial, MTU) - 40, on;

	inet_pton(AF_INET, to, &address.sin_addr);
	if (own_network)
		set_link(value(trial, MTU));
	else if (mss < 32768)
		ck_assert_int_eq(setsockopt(listener, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss)),
				 0);
	if (size && setsockopt(listener, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* With a small buffer, a blocking sendfile() does this by itself. */
	size = (int)value(trial, BUFFER);
	if (size && way != BLOCKING)
		setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	on = !value(trial, NAGLE);
	ck_assert_int_eq(setsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
	if (way == SPLICE_AWAY || way == ZEROCOPY) {
		struct sockaddr_in from = {.sin_family = AF_INET};

		inet_pton(AF_INET, "127.0.0.1", &from.sin_addr);
		ck_assert_int_eq(bind(pair[0], (struct sockaddr *)&from, sizeof(from)), 0);
	}
	ck_assert_int_eq(connect(pair[0], (struct sockaddr *)&address, sizeof(address)), 0);
	pair[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	ck_assert_int_ge(pair[1], 0);
	close(listener);
	if (way != BLOCKING)
		set_nonblocking(pair[0]);
}

/*
 * A unit whose pages are not adjacent in memory, which is usual after a while: a
 * segment holds a limited number of runs, and single pages are the smallest ones.
 */
static size_t insert_scattered(uint64_t seed, size_t size, enum NC_kind kind)
{
	unsigned char data[PAGE];
	NC_handle handle;
	size_t id;

	ck_assert_int_eq(nc_handle_alloc(&handle, &cache, size, 0, kind, 0), 0);
	for (size_t odd = 0; odd < 2; odd++)
		for (size_t at = odd * PAGE; at < size; at += 2 * PAGE) {
			size_t length = size - at < PAGE ? size - at : PAGE;

			pattern_fill(data, seed, at, length);
			ck_assert_int_eq(nc_handle_write(&handle, at, data, length),
					 (ssize_t)length);
		}
	ck_assert_int_eq(nc_handle_insert(&handle, NC_WHOLE), 0);
	id = nc_handle_id(&handle);
	ck_assert_int_eq(nc_handle_free(&handle), 0);
	return id;
}

/* --- both ends ------------------------------------------------------------------------ */

static struct {
	char bytes[2 * MIB];
	size_t length;
} got;

/* Reads all available bytes, and has them acknowledged at once. */
static void drain(int fd)
{
	const int on = 1;
	ssize_t more;

	while (got.length < sizeof(got.bytes) &&
	       (more = recv(fd, got.bytes + got.length, sizeof(got.bytes) - got.length, 0)) > 0)
		got.length += (size_t)more;
	setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

static bool has_room(int fd)
{
	struct pollfd event = {.fd = fd, .events = POLLOUT};

	return poll(&event, 1, 0) == 1;
}

/*
 * Returns whether bytes wait that could leave: less than a segment, as full ones are
 * never held back; nothing is in flight whose acknowledgement they could wait for; and
 * the window is open.
 */
static bool held_back(int fd)
{
	struct tcp_info info = tcp_info(fd);

	return info.tcpi_unacked == 0 && info.tcpi_notsent_bytes &&
	       info.tcpi_notsent_bytes < info.tcpi_snd_mss &&
	       info.tcpi_notsent_bytes <= info.tcpi_snd_wnd;
}

/* A busy kernel sends them a moment later; a timer ends a real hold, after 200 ms. */
static bool stays_held_back(int fd)
{
	for (unsigned i = 0; i < 50 && held_back(fd); i++)
		(void)poll(NULL, 0, 1);
	return held_back(fd);
}

#define never_held_back(fd)                                                                        \
	ck_assert_msg(!stays_held_back(fd), "%u bytes of %zu are held back: %s",                   \
		      tcp_info(fd).tcpi_notsent_bytes, got.length, describe(trial))

/*
 * Lets the window grow: TCP limits segments to half of the largest window that it has
 * seen, so at first those of a loopback are not of full size.
 */
static void warm_up(const int pair[2])
{
	static const char bytes[MIB];
	size_t sent = 0;

	for (got.length = 0; got.length < sizeof(bytes); drain(pair[1])) {
		ssize_t more = send(pair[0], bytes + sent, sizeof(bytes) - sent, MSG_DONTWAIT);

		sent += more > 0 ? (size_t)more : 0;
	}
	while (tcp_info(pair[0]).tcpi_unacked)
		;
	got.length = 0;
}

/* --- ways -------------------------------------------------------------------------------- */

static void send_polling(const struct trial *trial, const int pair[2], struct NC_send *message,
			 size_t total)
{
	do {
		ssize_t sent = nc_transmit_send(&transmit, pair[0], message);

		ck_assert_msg(sent >= 0 || sent == -EAGAIN, "%zd: %s", sent, describe(trial));
		message->skip += sent > 0 ? (size_t)sent : 0;
		while (message->skip < total && !has_room(pair[0])) {
			never_held_back(pair[0]);
			drain(pair[1]);
		}
	} while (message->skip < total);
}

static void send_by_ring(const struct trial *trial, const int pair[2],
			 const struct NC_send *message, size_t total)
{
	struct nc_send_ops all = {0};
	struct NC_completion done;
	struct NC_sender *ring;
	int count;

	ck_assert_int_eq(nc_async_open(&all, &transmit, 4,
				       value(trial, WAY) == RING ? 0 : NC_SENDER_NO_URING, &ring),
			 0);
	ck_assert_int_eq(nc_async_send(ring, pair[0], message, NULL), 0);
	ck_assert_int_ge(nc_async_submit(ring), 0);
	while ((count = nc_async_reap(ring, &done, 1)) == 0) {
		drain(pair[1]);
		if (!has_room(pair[0]))
			never_held_back(pair[0]);
	}
	ck_assert_int_eq(count, 1);
	ck_assert_int_eq(done.error, 0);
	ck_assert_uint_eq(done.sent, total);
	nc_async_close(ring);
}

struct sender {
	int fd;
	_Atomic int task;
	_Atomic bool done;
	struct NC_send *message;
	ssize_t sent;
};

static void *send_blocking(void *context)
{
	struct sender *sender = context;

	atomic_store(&sender->task, (int)syscall(SYS_gettid));
	sender->sent = nc_transmit_send(&transmit, sender->fd, sender->message);
	atomic_store(&sender->done, true);
	return NULL;
}

/* Returns whether the thread sleeps; a running thread may be between two pieces. */
static bool sleeps(int task)
{
	char path[64], line[256], *state;
	ssize_t length = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", task);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, line, sizeof(line) - 1);
		close(fd);
	}
	line[length > 0 ? length : 0] = '\0';
	state = strrchr(line, ')');
	return state && state[1] == ' ' && state[2] == 'S';
}

static void send_asleep(const struct trial *trial, const int pair[2], struct NC_send *message,
			size_t total)
{
	struct sender sender = {.fd = pair[0], .message = message};
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, send_blocking, &sender), 0);
	while (!atomic_load(&sender.done)) {
		uint64_t before = tcp_info(pair[0]).tcpi_notsent_bytes;

		drain(pair[1]);
		if (held_back(pair[0]) && !has_room(pair[0]) && sleeps(atomic_load(&sender.task)) &&
		    tcp_info(pair[0]).tcpi_notsent_bytes == before && !atomic_load(&sender.done))
			never_held_back(pair[0]);
	}
	pthread_join(thread, NULL);
	ck_assert_int_eq(sender.sent, (ssize_t)total);
}

static void send_by(const struct trial *trial, const int pair[2], struct NC_send *message,
		    size_t total)
{
	enum way way = (enum way)value(trial, WAY);

	if (way == BLOCKING)
		send_asleep(trial, pair, message, total);
	else if (way == RING || way == PLAIN_RING)
		send_by_ring(trial, pair, message, total);
	else
		send_polling(trial, pair, message, total);
}

/* --- the test ----------------------------------------------------------------------------- */

static void run(const struct trial *trial)
{
	static char head[20000];
	enum way way = (enum way)value(trial, WAY);
	bool copied = way == COPY || way == RECYCLED || way == ZEROCOPY;
	struct NC_range range = {.offset = value(trial, OFFSET), .length = value(trial, LENGTH)};
	struct NC_send message =
		NC_SEND_INIT(.header = head, .header_length = value(trial, HEAD), .ranges = &range,
			     .range_count = 1, .flags = (unsigned)value(trial, FLAGS));
	struct NC_send behind = NC_SEND_INIT(.header = head, .header_length = BEHIND);
	size_t total = message.header_length + range.length;
	int pair[2];

	open_cache(32 * MIB, way == ZEROCOPY || way == RING ? 0 : NC_CACHE_NO_URING);
	transmit.unsent_limit = value(trial, LIMIT);
	range.id = insert_scattered(7, range.offset + range.length,
				    copied ? NC_KIND_RECYCLED : NC_KIND_APPENDED);
	if (way == COPY)
		message.flags |= NC_SEND_DONTWAIT;
	connect_pair(trial, pair);
	warm_up(pair);
	send_by(trial, pair, &message, total);
	if (message.flags & NC_SEND_MORE) {
		/* A program that waits for space before it continues. */
		while (!has_room(pair[0])) {
			never_held_back(pair[0]);
			drain(pair[1]);
		}
		send_by(trial, pair, &behind, BEHIND);
		total += BEHIND;
	}
	while (got.length < total) {
		drain(pair[1]);
		if (tcp_info(pair[0]).tcpi_unacked == 0)
			never_held_back(pair[0]);
	}
	ck_assert_uint_eq(got.length, total);
	ck_assert_uint_eq(
		pattern_match(got.bytes + message.header_length, 7, range.offset, range.length),
		range.length);
	close_pair(pair);
	close_cache();
}

/* Each run uses other values beside the pairs. */
START_TEST(test_pairs)
{
	uint64_t random = 1;
	struct trial trial;

	open_network();
	for (unsigned round = 0; round < scaled(ROUNDS); round++) {
		unsigned count = 0;

		memset(covered, 0, sizeof(covered));
		for (; next_trial(&random, &trial); count++) {
			ck_assert_uint_gt(cover(&trial), 0);
			run(&trial);
		}
		ck_assert_uint_gt(count, 50);
	}
}
END_TEST

/*
 * A header and a range that does not start at a page, to a proxy on this machine:
 * together less than a segment, in as many runs as it can hold.
 */
START_TEST(test_crooked)
{
	/* MTU 65536, offset 2048, 256 KiB, 300 bytes of header. */
	struct trial trial = {.level = {8, 2, 7, 2, [WAY] = (unsigned char)_i}};

	open_network();
	run(&trial);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_crooked, 0, WAYS);
	tcase_add_test(tcase, test_pairs);
}

RUN_SUITE("transmit-room", fill)
