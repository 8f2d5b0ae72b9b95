/* SPDX-License-Identifier: MIT */
/*
 * test-transmit-wire.c - unit tests of transmit.c by the segments on the wire: which
 * one carries the FIN and which are not full.  A packet socket on the loopback device
 * records them, which requires CAP_NET_RAW; without it the tests say so and check only
 * the counters of the kernel.  Each test owns its cache and its reader threads.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <pthread.h>

#include <linux/filter.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/cork.h"
#include "os/ring.h"
#include "send/transmit.h"
#include "send/zerocopy.h"

#include "by-method.h"
#include "suite.h"
#include "tcp-info.h"
#include "transmit-fixture.h"

#define MSS 1448

struct segment {
	uint32_t at; /* sequence number */
	unsigned length;
	bool fin, syn;
};

/* --- recording ------------------------------------------------------------------- */

static bool refused;

/*
 * Opens a socket that records from now on what leaves a port of the loopback device;
 * the kernel filters, since others may use that device heavily.  Returns -1 if not
 * permitted.
 */
static int record(uint16_t port)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
				      .sll_protocol = htons(ETH_P_IP),
				      .sll_ifindex = (int)if_nametoindex("lo")};
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 3),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int size = 64 << 20;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (!refused)
			printf("transmit-wire: segments are not looked at: %s\n", strerror(errno));
		refused = true;
		fflush(stdout);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* Returns the next segment, in the order of sending; false: no more. */
static bool next_segment(int fd, struct segment *segment)
{
	unsigned char packet[128];
	struct sockaddr_ll from;
	socklen_t length = sizeof(from);
	ssize_t got;

	while ((got = recvfrom(fd, packet, sizeof(packet), MSG_TRUNC, (struct sockaddr *)&from,
			       &length)) >= 0) {
		size_t head = (packet[0] & 15u) * 4, tcp_head, total;
		const unsigned char *tcp = packet + head;

		length = sizeof(from);
		if (got < 40 || from.sll_pkttype == PACKET_OUTGOING)
			continue;
		tcp_head = (tcp[12] >> 4) * 4u;
		/* The length of a packet before segmentation may exceed its header field. */
		total = (size_t)(packet[2] << 8 | packet[3]);
		total = total ? total : (size_t)got;
		*segment = (struct segment){
			.at = (uint32_t)tcp[4] << 24 | (uint32_t)tcp[5] << 16 |
			      (uint32_t)tcp[6] << 8 | tcp[7],
			.length = (unsigned)(total - head - tcp_head),
			.fin = tcp[13] & 1,
			.syn = tcp[13] & 2,
		};
		return true;
	}
	ck_assert_int_eq(errno, EAGAIN);
	return false;
}

struct recorded {
	unsigned segments; /* of data; segments that are divided later count once */
	unsigned partial;  /* of them not multiples of the MSS */
	unsigned bytes;
	unsigned last; /* bytes of the last one */
	bool fin, fin_alone;
};

static int by_number(const void *one, const void *other)
{
	const struct segment *a = one, *b = other;
	int32_t apart = (int32_t)(a->at - b->at);

	/* With the same number, the longest first. */
	return apart ? (apart > 0) - (apart < 0)
		     : (b->length > a->length) - (b->length < a->length);
}

/* Two CPUs that send for one stream are recorded in any order. */
static struct recorded look(int fd, unsigned mss)
{
	static struct segment segments[4096];
	struct recorded all = {0};
	unsigned count = 0;
	uint32_t end;

	while (count < 4096 && next_segment(fd, &segments[count]))
		count++;
	ck_assert_uint_gt(count, 0);
	qsort(segments, count, sizeof(segments[0]), by_number);
	ck_assert(segments[0].syn);
	end = segments[0].at + 1;
	for (unsigned i = 1; i < count; i++) {
		const struct segment *segment = &segments[i];

		if (segment->fin) {
			all.fin = true;
			all.fin_alone = segment->length == 0;
		}
		/* Retransmitted bytes do not count. */
		if (segment->length == 0 || segment->at != end)
			continue;
		end += segment->length;
		all.segments++;
		all.bytes += segment->length;
		all.last = segment->length;
		if (segment->length % mss)
			all.partial++;
	}
	return all;
}

/* --- pairs and messages --------------------------------------------------------- */

struct wire {
	int pair[2], recorder;
	unsigned mss; /* of data, without options */
};

/* Segments as on an Ethernet, so that there are many; both ends are on this machine. */
static struct wire wire_open(const char *from, const char *to, bool nodelay)
{
	struct sockaddr_in here = {.sin_family = AF_INET}, there = {.sin_family = AF_INET};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = 8 << 20, mss = MSS;
	struct wire wire;
	socklen_t length = sizeof(there);
	int on = nodelay;

	ck_assert_int_eq(inet_pton(AF_INET, from, &here.sin_addr), 1);
	ck_assert_int_eq(inet_pton(AF_INET, to, &there.sin_addr), 1);
	ck_assert_int_eq(setsockopt(listener, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss)), 0);
	/* The window must never close, or segments would end early. */
	if (setsockopt(listener, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		ck_assert_int_eq(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)),
				 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&there, sizeof(there)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&there, &length), 0);
	wire.pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (setsockopt(wire.pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		ck_assert_int_eq(
			setsockopt(wire.pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	ck_assert_int_eq(setsockopt(wire.pair[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
	ck_assert_int_eq(bind(wire.pair[0], (struct sockaddr *)&here, sizeof(here)), 0);
	length = sizeof(here);
	ck_assert_int_eq(getsockname(wire.pair[0], (struct sockaddr *)&here, &length), 0);
	wire.recorder = record(ntohs(here.sin_port));
	ck_assert_int_eq(connect(wire.pair[0], (struct sockaddr *)&there, sizeof(there)), 0);
	wire.pair[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(wire.pair[1], 0);
	close(listener);
	wire.mss = tcp_info(wire.pair[0]).tcpi_snd_mss;
	ck_assert_uint_gt(wire.mss, 500);
	return wire;
}

static void wire_close(struct wire *wire)
{
	if (wire->recorder >= 0)
		close(wire->recorder);
	close_pair(wire->pair);
}

struct reader {
	int fd;
	char *to;
	size_t room, length;
};

static void *read_all(void *context)
{
	struct reader *reader = context;
	ssize_t got = 1;

	while (got > 0 && reader->length < reader->room) {
		got = read(reader->fd, reader->to + reader->length, reader->room - reader->length);
		reader->length += got > 0 ? (size_t)got : 0;
	}
	return NULL;
}

/* How a message is sent: from which memory, and by which expected method. */
static const struct way {
	const char *name, *from, *to;
	enum NC_kind kind;
	enum NC_method method;
	size_t size;
} ways[] = {
	{"copy", "127.0.0.1", "127.0.0.1", NC_KIND_RECYCLED, NC_METHOD_COPY, 200 * 1024},
	{"small copy", "127.0.0.1", "127.0.0.1", NC_KIND_RECYCLED, NC_METHOD_COPY, 2000},
	{"tiny copy", "127.0.0.1", "127.0.0.1", NC_KIND_RECYCLED, NC_METHOD_COPY, 100},
	{"splice", "127.0.0.1", "127.0.0.1", NC_KIND_APPENDED, NC_METHOD_SPLICE, 200 * 1024},
	{"zerocopy", "127.0.0.1", "127.0.0.2", NC_KIND_RECYCLED, NC_METHOD_ZEROCOPY, 200 * 1024},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))
#define HEAD 300

static bool unavailable(const struct way *way)
{
	return way->method == NC_METHOD_ZEROCOPY && !transmit.zerocopy.ring.usable;
}

/*
 * Waits until all is acknowledged, and nothing is left to be sent, unless the end is held
 * back: on a busy machine, the kernel may send it later (tcp_limit_output_bytes).
 */
static void await_sent(int fd, bool held_back)
{
	while (tcp_info(fd).tcpi_unacked || (!held_back && tcp_info(fd).tcpi_notsent_bytes))
		poll(NULL, 0, 1);
}

/* Sends header, body and, if requested, a second message behind it; reads all. */
static struct recorded backend(const struct way *way, unsigned flags, unsigned behind, bool nodelay)
{
	static const char head[1000] = "HTTP/1.1 200 OK";
	struct wire wire = wire_open(way->from, way->to, nodelay);
	struct NC_range range = {.length = way->size};
	struct NC_send message = NC_SEND_INIT(.header = head, .header_length = HEAD,
					      .ranges = &range, .range_count = 1, .flags = flags);
	struct NC_send second = NC_SEND_INIT(.header = head, .header_length = behind);
	struct reader reader = {.fd = wire.pair[1], .room = HEAD + way->size + behind + 1};
	struct recorded recorded = {0};
	pthread_t thread;

	range.id = insert(7, way->size, 0, way->kind);
	reader.to = must_alloc(reader.room);
	ck_assert_int_eq(pthread_create(&thread, NULL, read_all, &reader), 0);
	ck_assert_int_eq(nc_transmit_send(&transmit, wire.pair[0], &message),
			 (ssize_t)(HEAD + way->size));
	if (behind) {
		await_sent(wire.pair[0], flags & NC_SEND_MORE);
		ck_assert_int_eq(nc_transmit_send(&transmit, wire.pair[0], &second),
				 (ssize_t)behind);
	}
	if (!(flags & NC_SEND_CLOSE)) {
		/* Bytes that are held back longer than this are never sent. */
		await_sent(wire.pair[0], false);
		shutdown(wire.pair[0], SHUT_WR);
	}
	pthread_join(thread, NULL);
	ck_assert_uint_eq(reader.length, HEAD + way->size + behind);
	ck_assert_uint_eq(pattern_match(reader.to + HEAD, 7, 0, way->size), way->size);
	ck_assert_mem_eq(reader.to + HEAD + way->size, head, behind);
	ck_assert_uint_gt(BY_METHOD(statistics(), way->method).sends, 0);
	if (wire.recorder >= 0) {
		/* The FIN is recorded last; it was, as the reader has read the end. */
		recorded = look(wire.recorder, wire.mss);
		ck_assert_uint_eq(recorded.bytes, HEAD + way->size + behind);
		ck_assert(recorded.fin);
	}
	free(reader.to);
	wire_close(&wire);
	return recorded;
}

/* CLOSE: the last segment of data carries the FIN, and only that one is not full. */
START_TEST(test_close)
{
	const struct way *way = &ways[_i / 2];

	open_cache(32 * MIB, way->method == NC_METHOD_ZEROCOPY ? 0 : NC_CACHE_NO_URING);
	if (!unavailable(way)) {
		struct recorded recorded = backend(way, NC_SEND_CLOSE, 0, _i % 2);

		if (!refused) {
			ck_assert_msg(!recorded.fin_alone, "%s: FIN alone", way->name);
			ck_assert_uint_eq(recorded.partial, 1);
			ck_assert_uint_ne(recorded.last % MSS, 0);
		}
	}
	close_cache();
}
END_TEST

/* MORE: an incomplete segment waits for the next message, acknowledgements or not. */
START_TEST(test_more)
{
	const struct way *way = &ways[_i / 2];

	open_cache(32 * MIB, way->method == NC_METHOD_ZEROCOPY ? 0 : NC_CACHE_NO_URING);
	if (!unavailable(way)) {
		struct recorded recorded = backend(way, NC_SEND_MORE, 700, _i % 2);

		if (!refused) {
			ck_assert_uint_eq(recorded.partial, 1);
			ck_assert_uint_ne(recorded.last % MSS, 0);
		}
	}
	close_cache();
}
END_TEST

/* Without both, the end of the message leaves at once (and a pipe of sendfile()). */
START_TEST(test_plain)
{
	const struct way *way = &ways[_i / 2];

	open_cache(32 * MIB, way->method == NC_METHOD_ZEROCOPY ? 0 : NC_CACHE_NO_URING);
	if (!unavailable(way)) {
		struct recorded recorded = backend(way, 0, 700, _i % 2);

		if (!refused)
			ck_assert_uint_ge(recorded.partial, 2);
	}
	close_cache();
}
END_TEST

/* Several spliced ranges make one stream of full segments. */
START_TEST(test_ranges)
{
	struct wire wire;
	struct NC_range ranges[3];
	struct NC_send message = NC_SEND_INIT(.header = "head", .header_length = 4,
					      .ranges = ranges, .range_count = 3);
	size_t size = 50000, total = 4 + 3 * size;
	struct reader reader = {.room = total + 1, .to = must_alloc(total + 1)};
	struct recorded recorded;
	pthread_t thread;

	open_cache(32 * MIB, NC_CACHE_NO_URING);
	wire = wire_open("127.0.0.1", "127.0.0.1", true);
	for (unsigned i = 0; i < 3; i++)
		ranges[i] = (struct NC_range){.id = insert(i, size, 0, NC_KIND_APPENDED),
					      .length = size};
	reader.fd = wire.pair[1];
	ck_assert_int_eq(pthread_create(&thread, NULL, read_all, &reader), 0);
	ck_assert_int_eq(nc_transmit_send(&transmit, wire.pair[0], &message), (ssize_t)total);
	ck_assert_uint_eq(statistics().by_splice.sends, 3);
	/* Nothing is held back at the end. */
	while (tcp_info(wire.pair[0]).tcpi_unacked || tcp_info(wire.pair[0]).tcpi_notsent_bytes)
		poll(NULL, 0, 1);
	ck_assert(!nc_cork_is_set(&transmit.corks, wire.pair[0]));
	shutdown(wire.pair[0], SHUT_WR);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(reader.length, total);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(pattern_match(reader.to + 4 + i * size, i, 0, size), size);
	if (wire.recorder >= 0) {
		recorded = look(wire.recorder, wire.mss);
		ck_assert_uint_eq(recorded.bytes, total);
		ck_assert_uint_eq(recorded.partial, 1);
	}
	free(reader.to);
	wire_close(&wire);
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_close, 0, 2 * WAYS);
	tcase_add_loop_test(tcase, test_more, 0, 2 * WAYS);
	tcase_add_loop_test(tcase, test_plain, 0, 2 * WAYS);
	tcase_add_test(tcase, test_ranges);
}

RUN_SUITE("transmit-wire", fill)
