/* SPDX-License-Identifier: MIT */
/*
 * test-endpoint.c - unit tests of endpoint.c: binding to addresses, files of Unix
 * sockets, inherited sockets.  Single-threaded, on the loopback interface and in a
 * folder of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address.h"
#include "process/endpoint.h"

#include "suite.h"

static void name(int fd, struct listen_address *address)
{
	address->length = sizeof(address->address);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address->address, &address->length),
			 0);
	address_write(address);
}

/* Returns whether this system has the loopback address of a family. */
static bool has(const char *text)
{
	struct listen_address address;
	int fd;

	ck_assert(address_parse(text, &address));
	fd = endpoint_bind(&address, false);
	if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
		return false;
	ck_assert_int_ge(fd, 0);
	close(fd);
	return true;
}

static void check_bound(const char *text)
{
	struct listen_address address, bound, again;
	int fd, client, guest;

	ck_assert(address_parse(text, &address));
	fd = endpoint_bind(&address, false);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	/* The port that the kernel chose. */
	bound = address;
	name(fd, &bound);
	ck_assert_str_ne(bound.text, text);
	ck_assert(address_parse(bound.text, &again));
	ck_assert(address_equal(&bound, &again));
	client = socket(bound.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&bound.address, bound.length), 0);
	await(fd, POLLIN);
	guest = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(guest, 0);
	close(guest);
	close(client);
	/* The socket of another program is detected, even if this one would share. */
	ck_assert_int_eq(endpoint_bind(&bound, false), -EADDRINUSE);
	ck_assert_int_eq(endpoint_bind(&bound, true), -EADDRINUSE);
	close(fd);
	/* Bound again at once, though a connection is in TIME_WAIT; shared by two. */
	fd = endpoint_bind(&bound, true);
	ck_assert_int_ge(fd, 0);
	guest = endpoint_bind(&bound, true);
	ck_assert_int_ge(guest, 0);
	ck_assert_int_eq(endpoint_bind(&bound, false), -EADDRINUSE);
	close(guest);
	close(fd);
}

START_TEST(test_bind)
{
	unsigned descriptors = open_descriptors();

	check_bound("127.0.0.1:0");
	if (has("[::1]:0"))
		check_bound("[::1]:0");
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* IPv6 and IPv4 may use the same port for all their addresses. */
START_TEST(test_both_families)
{
	struct listen_address four, six;
	int fd4, fd6;

	if (!has("[::]:0")) {
		printf("endpoint: no IPv6 here\n");
		return;
	}
	ck_assert(address_parse(":0", &four));
	fd4 = endpoint_bind(&four, false);
	ck_assert_int_ge(fd4, 0);
	name(fd4, &four);
	ck_assert(address_parse("[::]:0", &six));
	((struct sockaddr_in6 *)(void *)&six.address)->sin6_port =
		((struct sockaddr_in *)(void *)&four.address)->sin_port;
	fd6 = endpoint_bind(&six, false);
	ck_assert_int_ge(fd6, 0);
	close(fd4);
	close(fd6);
}
END_TEST

START_TEST(test_bind_refused)
{
	struct listen_address address;

	/* A documentation address, which no machine has. */
	ck_assert(address_parse("192.0.2.1:0", &address));
	ck_assert_int_eq(endpoint_bind(&address, false), -EADDRNOTAVAIL);
}
END_TEST

static struct listen_address parsed(const char *text)
{
	struct listen_address address;

	ck_assert_msg(address_parse(text, &address), "%s", text);
	return address;
}

static int connect_to(const struct listen_address *address)
{
	int fd = socket(address->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	if (connect(fd, (const struct sockaddr *)&address->address, address->length) < 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

START_TEST(test_threads)
{
	unsigned descriptors = open_descriptors();

	for (unsigned i = 0; i < 2; i++) {
		struct endpoint *endpoint;
		struct listen_address wanted;
		char text[64];
		int taken;

		snprintf(text, sizeof(text), "unix:@nabc-test-%d", (int)getpid());
		wanted = parsed(i ? text : "127.0.0.1:0");
		endpoint = endpoint_open(&wanted, 3, false);
		ck_assert_ptr_nonnull(endpoint);
		ck_assert(!endpoint->inherited);
		ck_assert_str_eq(endpoint->wanted.text, wanted.text);
		for (unsigned j = 0; j < 3; j++) {
			struct listen_address bound;

			name(endpoint->fds[j], &bound);
			ck_assert_str_eq(bound.text, endpoint->bound.text);
			ck_assert_int_eq(fcntl(endpoint->fds[j], F_GETFD), FD_CLOEXEC);
		}
		/* No other process can bind in between, not even one that would share. */
		ck_assert_ptr_null(endpoint_open(&endpoint->bound, 3, false));
		ck_assert_int_eq(errno, EADDRINUSE);
		ck_assert_ptr_null(endpoint_open(&endpoint->bound, 1, false));
		ck_assert_int_eq(errno, EADDRINUSE);
		taken = endpoint_take(endpoint, 1);
		ck_assert_int_ge(taken, 0);
		ck_assert_int_eq(endpoint_take(endpoint, 1), -1);
		endpoint_close(endpoint);
		ck_assert_int_eq(fcntl(taken, F_GETFD), FD_CLOEXEC);
		close(taken);
	}
	endpoint_close(NULL);
	ck_assert_uint_eq(open_descriptors(), descriptors);
}
END_TEST

/* Any thread can accept a connection that waits in the queue. */
START_TEST(test_one_queue)
{
	struct listen_address wanted = parsed("127.0.0.1:0");
	struct endpoint *endpoint = endpoint_open(&wanted, 3, true);
	int shares = 1, client, first;
	socklen_t length = sizeof(shares);

	ck_assert_ptr_nonnull(endpoint);
	ck_assert_int_eq(getsockopt(endpoint->fds[2], SOL_SOCKET, SO_REUSEPORT, &shares, &length),
			 0);
	ck_assert_int_eq(shares, 0);
	client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&endpoint->bound.address,
				 endpoint->bound.length),
			 0);
	first = accept(endpoint->fds[2], NULL, NULL);
	ck_assert_int_ge(first, 0);
	ck_assert_int_lt(accept(endpoint->fds[0], NULL, NULL), 0);
	close(first);
	close(client);
	endpoint_close(endpoint);
}
END_TEST

/* A Unix socket in a folder of its own. */
struct place {
	char folder[64];
	char path[80];
	struct listen_address address;
};

static void make_place(struct place *place, const char *mode)
{
	char text[160];

	make_directory(place->folder);
	snprintf(place->path, sizeof(place->path), "%s/socket", place->folder);
	snprintf(text, sizeof(text), "unix:%s%s", place->path, mode);
	place->address = parsed(text);
}

static void remove_place(const struct place *place)
{
	ck_assert_int_eq(rmdir(place->folder), 0);
}

static unsigned mode_of(const char *path)
{
	struct stat file;

	ck_assert_int_eq(lstat(path, &file), 0);
	return file.st_mode & 07777;
}

START_TEST(test_mode)
{
	static const struct {
		const char *text;
		unsigned mode;
	} modes[] = {{"", 0666}, {",mode=600", 0600}, {",mode=0777", 0777}, {",mode=662", 0662}};

	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct endpoint *endpoint;
		struct place place;

		umask(i & 1 ? 077 : 0);
		make_place(&place, modes[i].text);
		endpoint = endpoint_open(&place.address, 1, false);
		ck_assert_ptr_nonnull(endpoint);
		ck_assert_uint_eq(mode_of(place.path), modes[i].mode);
		endpoint_close(endpoint);
		remove_place(&place);
	}
}
END_TEST

/* A socket is replaced only if no process listens on it; other files never are. */
START_TEST(test_stale)
{
	struct endpoint *endpoint, *later;
	struct place place;
	int fd, held;

	make_place(&place, "");
	fd = endpoint_bind(&place.address, false);
	ck_assert_int_ge(fd, 0);
	ck_assert_ptr_null(endpoint_open(&place.address, 2, false));
	ck_assert_int_eq(errno, EADDRINUSE);
	/* The check has left a connection that has ended. */
	await(fd, POLLIN);
	held = connect_to(&place.address);
	ck_assert_int_ge(held, 0);
	close(held);
	close(fd);
	ck_assert_int_eq(connect_to(&place.address), -ECONNREFUSED);
	endpoint = endpoint_open(&place.address, 2, false);
	ck_assert_ptr_nonnull(endpoint);
	held = connect_to(&place.address);
	ck_assert_int_ge(held, 0);
	/* The file of a successor must not be removed. */
	ck_assert_int_eq(unlink(place.path), 0);
	later = endpoint_open(&place.address, 1, false);
	ck_assert_ptr_nonnull(later);
	endpoint_close(endpoint);
	ck_assert_int_eq(access(place.path, F_OK), 0);
	endpoint_close(later);
	ck_assert_int_lt(access(place.path, F_OK), 0);
	close(held);
	/* Other files stay. */
	fd = open(place.path, O_CREAT | O_EXCL | O_CLOEXEC | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_ptr_null(endpoint_open(&place.address, 1, false));
	ck_assert_int_eq(errno, EADDRINUSE);
	ck_assert_int_eq(access(place.path, F_OK), 0);
	close(fd);
	ck_assert_int_eq(unlink(place.path), 0);
	remove_place(&place);
	ck_assert_ptr_null(endpoint_open(&place.address, 1, false));
	ck_assert_int_eq(errno, ENOENT);
}
END_TEST

/* A full queue is not a stale socket. */
START_TEST(test_full_queue)
{
	struct place place;
	int fd, client;

	make_place(&place, "");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&place.address.address, place.address.length),
			 0);
	ck_assert_int_eq(listen(fd, 0), 0);
	client = connect_to(&place.address);
	ck_assert_int_ge(client, 0);
	ck_assert_int_eq(endpoint_bind(&place.address, false), -EADDRINUSE);
	ck_assert_int_eq(access(place.path, F_OK), 0);
	close(client);
	close(fd);
	ck_assert_int_eq(unlink(place.path), 0);
	remove_place(&place);
}
END_TEST

START_TEST(test_adopt)
{
	struct listen_address address = parsed("127.0.0.1:0");
	struct endpoint *endpoint;
	struct place place;
	int fd = socket(AF_INET, SOCK_STREAM, 0), pair[2], client;

	/* Not listening; not a stream; a connection; not a socket. */
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address.address, address.length), 0);
	ck_assert_ptr_null(endpoint_adopt(fd, 2));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	ck_assert_ptr_null(endpoint_adopt(pair[0], 2));
	ck_assert_int_eq(errno, EINVAL);
	close_pair(pair);
	tcp_pair(pair);
	ck_assert_ptr_null(endpoint_adopt(pair[0], 2));
	close_pair(pair);
	ck_assert_int_eq(pipe(pair), 0);
	ck_assert_ptr_null(endpoint_adopt(pair[0], 2));
	close_pair(pair);

	endpoint = endpoint_adopt(fd, 2);
	ck_assert_ptr_nonnull(endpoint);
	ck_assert(endpoint->inherited);
	name(fd, &address);
	ck_assert_str_eq(endpoint->wanted.text, address.text);
	ck_assert_str_eq(endpoint->bound.text, address.text);
	ck_assert_int_eq(endpoint->fds[0], fd);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert(fcntl(endpoint->fds[1], F_GETFL) & O_NONBLOCK);
	client = connect_to(&address);
	ck_assert_int_ge(client, 0);
	await(endpoint->fds[1], POLLIN);
	close(client);
	endpoint_close(endpoint);
	ck_assert_int_lt(fcntl(fd, F_GETFD), 0);

	/* Only the creator of the file of a Unix socket removes it. */
	make_place(&place, "");
	fd = endpoint_bind(&place.address, false);
	endpoint = endpoint_adopt(fd, 1);
	ck_assert_ptr_nonnull(endpoint);
	ck_assert(address_equal(&endpoint->wanted, &place.address));
	endpoint_close(endpoint);
	ck_assert_int_eq(unlink(place.path), 0);
	remove_place(&place);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_bind);
	tcase_add_test(tcase, test_both_families);
	tcase_add_test(tcase, test_bind_refused);
	tcase_add_test(tcase, test_threads);
	tcase_add_test(tcase, test_one_queue);
	tcase_add_test(tcase, test_mode);
	tcase_add_test(tcase, test_stale);
	tcase_add_test(tcase, test_full_queue);
	tcase_add_test(tcase, test_adopt);
}

RUN_SUITE("endpoint", fill)
