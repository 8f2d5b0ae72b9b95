/* SPDX-License-Identifier: MIT */
/*
 * test-send.c - socksend and socksendv over IPv4 and IPv6: the received bytes, the
 * flags, partial sends, refused sockets, and every bad argument.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc-uapi.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"

#define NEVER 0x7777777777777777u

static struct device device;

static void test_one(int family)
{
	static const uint64_t sizes[] = {1, 100, 1448, 4096, 10240, 32768, 32769, 60001};
	struct guest_pair pair = guest_connect(family);
	struct nabc_stat stat;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t size = sizes[i], id = device_unit(&device, i, size);

		device_send(&device, pair.near, id, 0, size, 0);
		must(guest_receive(pair.far, i, 0, size));
		/* Odd beginnings and ends. */
		device_send(&device, pair.near, id, size / 3, size - size / 3 - size / 5, 0);
		must(guest_receive(pair.far, i, size / 3, size - size / 3 - size / 5));
		must(nabc_stat(device.fd, id, &stat) == 0);
		must(stat.sent == size + size - size / 3 - size / 5);
		must(nabc_destroy(device.fd, id) == 0);
	}
	guest_disconnect(&pair);
	guest_tested("socksend, IPv%d", family == AF_INET ? 4 : 6);
}

struct reader {
	int socket;
	uint64_t seed;
	size_t length;
};

static int reading(void *context)
{
	struct reader *reader = context;

	return guest_receive(reader->socket, reader->seed, 0, reader->length) &&
			       guest_ended(reader->socket)
		       ? 0
		       : 1;
}

/* One call that blocks until all is sent, and one FIN. */
static void test_large(int family)
{
	struct guest_pair pair = guest_connect(family);
	struct reader reader = {pair.far, 11, 8 << 20};
	uint64_t id = device_unit(&device, 11, reader.length);
	pid_t child = guest_fork(reading, &reader);

	must(nabc_socksend(device.fd, pair.near, id, 0, reader.length, NABC_SEND_CLOSE) ==
	     (ssize_t)reader.length);
	guest_join(child);
	must_fail(nabc_socksend(device.fd, pair.near, id, 0, 1, 0), EPIPE);
	must(nabc_destroy(device.fd, id) == 0);
	guest_disconnect(&pair);
	guest_tested("8 MiB and close, IPv%d", family == AF_INET ? 4 : 6);
}

static void test_message(int family)
{
	static const char header[] = "HTTP/1.1 200 OK\r\nContent-Length: 25000\r\n\r\n";
	const size_t head = sizeof(header) - 1;
	struct guest_pair pair = guest_connect(family);
	uint64_t first = device_unit(&device, 1, 10000), second = device_unit(&device, 2, 40000);
	const struct nabc_range ranges[] = {{first, 1, 9999}, {second, 7, 20001}, {first, 0, 1}};
	const size_t all = head + 9999 + 20001 + 1;
	char got[sizeof(header)];

	must(nabc_socksendv(device.fd, pair.near, header, head, ranges, 3, 0, 0) == (ssize_t)all);
	must(recv(pair.far, got, head, MSG_WAITALL) == (ssize_t)head);
	must(memcmp(got, header, head) == 0);
	must(guest_receive(pair.far, 1, 1, 9999));
	must(guest_receive(pair.far, 2, 7, 20001));
	must(guest_receive(pair.far, 1, 0, 1));

	/* As after a partial send: in the header, in each range, at their boundaries. */
	for (size_t skip = 1; skip < all; skip += skip < head + 2 ? 7 : 3331) {
		size_t left = all - skip, from = skip;

		must(nabc_socksendv(device.fd, pair.near, header, head, ranges, 3, skip, 0) ==
		     (ssize_t)left);
		if (from < head) {
			must(recv(pair.far, got, head - from, MSG_WAITALL) ==
			     (ssize_t)(head - from));
			must(memcmp(got, header + from, head - from) == 0);
			from = head;
		}
		from -= head;
		if (from < 9999) {
			must(guest_receive(pair.far, 1, 1 + from, 9999 - from));
			from = 9999;
		}
		from -= 9999;
		if (from < 20001) {
			must(guest_receive(pair.far, 2, 7 + from, 20001 - from));
			from = 20001;
		}
		must(from == 20001);
		must(guest_receive(pair.far, 1, 0, 1));
	}
	must_fail(nabc_socksendv(device.fd, pair.near, header, head, ranges, 3, all, 0), EINVAL);
	must_fail(nabc_socksendv(device.fd, pair.near, header, head, ranges, 3, UINT64_MAX, 0),
		  EINVAL);

	/* Only a header; only ranges; a message that is the last. */
	must(nabc_socksendv(device.fd, pair.near, header, head, NULL, 0, 0, NABC_SEND_MORE) ==
	     (ssize_t)head);
	must(nabc_socksendv(device.fd, pair.near, NULL, 0, ranges, 1, 0,
			    NABC_SEND_CLOSE | NABC_SEND_SUMS) == 9999);
	must(recv(pair.far, got, head, MSG_WAITALL) == (ssize_t)head);
	must(guest_receive(pair.far, 1, 1, 9999));
	must(guest_ended(pair.far));
	guest_disconnect(&pair);
	must(nabc_destroy(device.fd, first) == 0);
	must(nabc_destroy(device.fd, second) == 0);
	guest_tested("socksendv, IPv%d", family == AF_INET ? 4 : 6);
}

static void test_most_ranges(void)
{
	static char header[NABC_HEADER_MAX + 1];
	struct nabc_range ranges[NABC_RANGES_MAX + 1];
	struct guest_pair pair = guest_connect(AF_INET);
	uint64_t id = device_unit(&device, 3, 1000);

	for (size_t i = 0; i < NABC_RANGES_MAX + 1; i++)
		ranges[i] = (struct nabc_range){id, i, 100};
	must(nabc_socksendv(device.fd, pair.near, NULL, 0, ranges, NABC_RANGES_MAX, 0, 0) ==
	     NABC_RANGES_MAX * 100);
	for (size_t i = 0; i < NABC_RANGES_MAX; i++)
		must(guest_receive(pair.far, 3, i, 100));
	must_fail(nabc_socksendv(device.fd, pair.near, NULL, 0, ranges, NABC_RANGES_MAX + 1, 0, 0),
		  EINVAL);
	must_fail(nabc_socksendv(device.fd, pair.near, NULL, 0, ranges, UINT32_MAX, 0, 0), EINVAL);
	must_fail(
		nabc_socksendv(device.fd, pair.near, header, NABC_HEADER_MAX + 1, ranges, 1, 0, 0),
		EINVAL);
	must_fail(nabc_socksendv(device.fd, pair.near, NULL, 0, NULL, 0, 0, 0), EINVAL);
	must_fail(nabc_socksendv(device.fd, pair.near, (void *)8, 10, ranges, 1, 0, 0), EFAULT);
	must_fail(nabc_socksendv(device.fd, pair.near, NULL, 0, (void *)8, 1, 0, 0), EFAULT);
	must_fail(nabc_socksendv(device.fd, pair.near, (void *)0xffff888000000000u, 10, ranges, 1,
				 0, 0),
		  EFAULT);
	ranges[1].length = 0;
	must_fail(nabc_socksendv(device.fd, pair.near, NULL, 0, ranges, 2, 0, 0), EINVAL);
	ranges[1].length = 1000;
	must_fail(nabc_socksendv(device.fd, pair.near, NULL, 0, ranges, 2, 0, 0), ERANGE);
	ranges[1].length = UINT64_MAX;
	must_fail(nabc_socksendv(device.fd, pair.near, NULL, 0, ranges, 2, 0, 0), ERANGE);
	ranges[1].id = NEVER;
	must_fail(nabc_socksendv(device.fd, pair.near, NULL, 0, ranges, 2, 0, 0), ENOENT);
	must_fail(nabc_socksendv(device.fd, pair.near, NULL, 0, ranges, 1, 0, 0x80000000u), EINVAL);
	must_fail(nabc_socksendv(device.fd, pair.near, NULL, 0, ranges, 1, 0,
				 NABC_SEND_MORE | NABC_SEND_CLOSE),
		  EINVAL);
	/* Refused calls have sent nothing. */
	must(nabc_socksendv(device.fd, pair.near, NULL, 0, ranges, 1, 0,
			    NABC_SEND_CLOSE | NABC_SEND_DESTROY) == 100);
	must(guest_receive(pair.far, 3, 0, 100));
	must(guest_ended(pair.far));
	must_fail(nabc_destroy(device.fd, id), ENOENT);
	guest_disconnect(&pair);
	guest_tested("socksendv's bad arguments");
}

static void test_bad(void)
{
	struct guest_pair pair = guest_connect(AF_INET);
	uint64_t id = device_unit(&device, 3, 1000), filling;
	unsigned char *bytes;
	int pipe_ends[2];

	filling = device_alloc(&device, 100, &bytes);
	must_fail(nabc_socksend(device.fd, pair.near, filling, 0, 100, 0), EBUSY);
	must(nabc_destroy(device.fd, filling) == 0);
	must_fail(nabc_socksend(device.fd, pair.near, id, 0, 0, 0), EINVAL);
	must_fail(nabc_socksend(device.fd, pair.near, id, 0, 1001, 0), ERANGE);
	must_fail(nabc_socksend(device.fd, pair.near, id, 1000, 1, 0), ERANGE);
	must_fail(nabc_socksend(device.fd, pair.near, id, UINT64_MAX, 2, 0), ERANGE);
	must_fail(nabc_socksend(device.fd, pair.near, NEVER, 0, 1, 0), ENOENT);
	must_fail(nabc_socksend(device.fd, pair.near, 0, 0, 1, 0), ENOENT);
	must_fail(nabc_socksend(device.fd, pair.near, id, 0, 1, NABC_SEND_MORE | NABC_SEND_CLOSE),
		  EINVAL);
	must_fail(nabc_socksend(device.fd, pair.near, id, 0, 1, 0x20u), EINVAL);
	must_fail(nabc_socksend(device.fd, -1, id, 0, 1, 0), EBADF);
	must_fail(nabc_socksend(device.fd, 5000, id, 0, 1, 0), EBADF);
	must(pipe(pipe_ends) == 0);
	must_fail(nabc_socksend(device.fd, pipe_ends[1], id, 0, 1, 0), ENOTSOCK);
	must_fail(nabc_socksend(device.fd, device.fd, id, 0, 1, 0), ENOTSOCK);
	must_fail(ioctl(device.fd, NABC_IOC_SOCKSEND, NULL), EFAULT);
	must_fail(ioctl(device.fd, NABC_IOC_SOCKSENDV, NULL), EFAULT);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	must(nabc_destroy(device.fd, id) == 0);
	must(shutdown(pair.near, SHUT_WR) == 0);
	must(guest_ended(pair.far));
	guest_disconnect(&pair);
	guest_tested("socksend's bad arguments");
}

/* Sockets that are not plain TCP. */
static void test_refused(void)
{
	static const struct {
		int family, type, protocol;
	} kinds[] = {
		{AF_UNIX, SOCK_STREAM, 0},
		{AF_UNIX, SOCK_SEQPACKET, 0},
		{AF_INET, SOCK_DGRAM, 0},
		{AF_INET6, SOCK_DGRAM, 0},
		{AF_INET, SOCK_RAW, IPPROTO_ICMP},
		{AF_NETLINK, SOCK_RAW, 0},
		{AF_PACKET, SOCK_RAW, 0},
		{AF_INET, SOCK_STREAM, IPPROTO_MPTCP},
		{AF_INET6, SOCK_STREAM, IPPROTO_MPTCP},
	};
	uint64_t id = device_unit(&device, 3, 1000);
	uint64_t refused = device_statistics(device.fd).refused;
	struct guest_pair pair;
	int made = 0, plain;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int fd = socket(kinds[i].family, kinds[i].type | SOCK_CLOEXEC, kinds[i].protocol);

		if (fd < 0)
			continue;
		made++;
		must_fail(nabc_socksend(device.fd, fd, id, 0, 10, 0), EOPNOTSUPP);
		close(fd);
	}
	must(made >= 6);
	must(device_statistics(device.fd).refused >= refused + (uint64_t)made);

	/* With TLS in the kernel. */
	pair = guest_connect(AF_INET);
	must(setsockopt(pair.near, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) == 0);
	must_fail(nabc_socksend(device.fd, pair.near, id, 0, 10, 0), EOPNOTSUPP);
	must(shutdown(pair.near, SHUT_WR) == 0);
	must(guest_ended(pair.far));
	guest_disconnect(&pair);

	/* Not connected, listening, reset. */
	plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(nabc_socksend(device.fd, plain, id, 0, 10, 0) == -1);
	must(errno == ENOTCONN || errno == EPIPE);
	must(listen(plain, 1) == 0);
	must(nabc_socksend(device.fd, plain, id, 0, 10, 0) == -1);
	must(errno == ENOTCONN || errno == EPIPE);
	close(plain);
	pair = guest_connect(AF_INET6);
	must(setsockopt(pair.far, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0},
			sizeof(struct linger)) == 0);
	close(pair.far);
	must(guest_reset(pair.near));
	must(nabc_socksend(device.fd, pair.near, id, 0, 10, 0) == -1);
	must(errno == ECONNRESET || errno == EPIPE);
	close(pair.near);
	must(nabc_destroy(device.fd, id) == 0);
	guest_tested("sockets that are not plain TCP, or not connected");
}

/* A full socket: a part, then EAGAIN; the rest arrives. */
static void test_full(int family)
{
	struct guest_pair pair = guest_connect(family);
	const uint64_t size = 8 << 20;
	uint64_t id = device_unit(&device, 13, size), done = 0, received = 0;
	bool full = false;

	while (done < size) {
		ssize_t sent = nabc_socksend(device.fd, pair.near, id, done, size - done,
					     NABC_SEND_DONTWAIT);

		if (sent > 0) {
			done += (uint64_t)sent;
			continue;
		}
		must(sent == -1 && errno == EAGAIN);
		full = true;
		must(done > received);
		must(guest_receive(pair.far, 13, received, done - received));
		received = done;
	}
	must(full);
	must(guest_receive(pair.far, 13, received, size - received));

	/* With a timeout of the socket. */
	must(setsockopt(pair.near, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){0, 100000},
			sizeof(struct timeval)) == 0);
	done = 0;
	for (;;) {
		ssize_t sent = nabc_socksend(device.fd, pair.near, id, done, size - done, 0);

		if (sent < 0)
			break;
		must((uint64_t)sent < size - done);
		done += (uint64_t)sent;
	}
	must(errno == EAGAIN);
	must(guest_receive(pair.far, 13, 0, done));

	/* CLOSE and DESTROY have no effect if the send is incomplete. */
	done = (uint64_t)nabc_socksend(device.fd, pair.near, id, 0, size,
				       NABC_SEND_CLOSE | NABC_SEND_DESTROY);
	must(done > 0 && done < size);
	must(guest_receive(pair.far, 13, 0, done));
	device_send(&device, pair.near, id, 0, 10, 0);
	must(guest_receive(pair.far, 13, 0, 10));
	must(nabc_destroy(device.fd, id) == 0);
	guest_disconnect(&pair);
	guest_tested("a full socket, IPv%d", family == AF_INET ? 4 : 6);
}

static void interrupt(int signal)
{
	(void)signal;
}

/* A signal during the wait: the number of sent bytes, or EINTR. */
static void test_signal(void)
{
	struct sigaction action = {.sa_handler = interrupt};
	struct guest_pair pair = guest_connect(AF_INET);
	const uint64_t size = 8 << 20;
	uint64_t id = device_unit(&device, 17, size), done = 0;
	ssize_t sent;

	sigaction(SIGALRM, &action, NULL);
	do {
		alarm(1);
		sent = nabc_socksend(device.fd, pair.near, id, done, size - done, 0);
		if (sent > 0)
			done += (uint64_t)sent;
	} while (sent > 0 && done < size);
	alarm(0);
	must(sent == -1 && errno == EINTR);
	must(guest_receive(pair.far, 17, 0, done));
	must(nabc_destroy(device.fd, id) == 0);
	guest_disconnect(&pair);
	guest_tested("a signal while the socket is full");
}

/* A result that cannot be written: any outcome, but no crash. */
static void test_result_fault(void)
{
	struct nabc_socksend *call =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct guest_pair pair = guest_connect(AF_INET);

	must(call != MAP_FAILED);
	*call = (struct nabc_socksend){
		.id = device_unit(&device, 1, 100), .length = 100, .socket = pair.near};
	must(mprotect(call, 4096, PROT_READ) == 0);
	must_fail(ioctl(device.fd, NABC_IOC_SOCKSEND, call), EFAULT);
	must(nabc_destroy(device.fd, call->id) == 0);
	munmap(call, 4096);
	guest_disconnect(&pair);
	guest_tested("a result that cannot be written");
}

int main(void)
{
	static const int families[] = {AF_INET, AF_INET6};

	/* No send may raise it. */
	signal(SIGPIPE, SIG_DFL);
	device_open(&device);
	for (int i = 0; i < 2; i++) {
		test_one(families[i]);
		test_large(families[i]);
		test_message(families[i]);
		test_full(families[i]);
	}
	test_most_ranges();
	test_bad();
	test_refused();
	test_signal();
	test_result_fault();
	device_close(&device);
	return 0;
}
