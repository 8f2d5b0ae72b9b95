/* SPDX-License-Identifier: MIT */
/*
 * test-socket-options.c - unit tests of socket-options.c: the system returns the
 * options that were set on listening sockets, and connections inherit them.
 * Single-threaded, on the loopback interface.
 */
#include <glib.h>
#include <nabc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "config/configuration.h"
#include "core/socket-options.h"
#include "process/endpoint.h"

#include "suite.h"

static const struct config_sockets usual = {
	.header_option = true, .close_option = true, .linger = true};

static int listening(const char *text, struct listen_address *bound)
{
	struct listen_address address;
	int fd;

	ck_assert(address_parse(text, &address));
	fd = endpoint_bind(&address, false);
	ck_assert_int_ge(fd, 0);
	*bound = address;
	bound->length = sizeof(bound->address);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&bound->address, &bound->length), 0);
	return fd;
}

static int option(int fd, int number)
{
	int value = -1;
	socklen_t length = sizeof(value);

	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, number, &value, &length), 0);
	return value;
}

START_TEST(test_set_and_taken_back)
{
	struct config_sockets sockets = usual;
	struct listen_address bound;
	int fd = listening("127.0.0.1:0", &bound);

	sockets.defer_accept = true;
	sockets.fastopen = 17;
	sockets.delay_ack = true;
	socket_options_set(fd, &sockets, 30000);
	/* The system counts retransmissions of its own packet: 1, 3, 7, 15, 31 s and so on. */
	ck_assert_int_ge(option(fd, TCP_DEFER_ACCEPT), 30);
	ck_assert_int_eq(option(fd, TCP_FASTOPEN), 17);
	ck_assert_int_eq(option(fd, TCP_QUICKACK), 0);
	socket_options_set(fd, &usual, 30000);
	ck_assert_int_eq(option(fd, TCP_DEFER_ACCEPT), 0);
	ck_assert_int_eq(option(fd, TCP_FASTOPEN), 0);
	ck_assert_int_eq(option(fd, TCP_QUICKACK), 1);
	close(fd);
}
END_TEST

/* A connection inherits it from its listening socket. */
START_TEST(test_inherited)
{
	struct config_sockets sockets = usual;
	struct listen_address bound;
	int fd = listening("127.0.0.1:0", &bound);

	for (unsigned delayed = 0; delayed < 2; delayed++) {
		int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), guest;

		sockets.delay_ack = delayed;
		socket_options_set(fd, &sockets, 30000);
		ck_assert_int_eq(connect(client, (struct sockaddr *)&bound.address, bound.length),
				 0);
		await(fd, POLLIN);
		guest = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		ck_assert_int_ge(guest, 0);
		ck_assert_int_eq(option(guest, TCP_QUICKACK), !delayed);
		ck_assert(!socket_is_opening(guest));
		close(guest);
		close(client);
	}
	close(fd);
}
END_TEST

/* A connection that has sent nothing is not accepted. */
START_TEST(test_deferred)
{
	struct config_sockets sockets = usual;
	struct listen_address bound;
	int fd = listening("127.0.0.1:0", &bound);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	sockets.defer_accept = true;
	socket_options_set(fd, &sockets, 30000);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&bound.address, bound.length), 0);
	ck_assert_int_eq(poll(&ready, 1, 50), 0);
	ck_assert_int_eq(send(client, "x", 1, MSG_NOSIGNAL), 1);
	await(fd, POLLIN);
	close(client);
	close(fd);
}
END_TEST

/* Unix sockets have no such option, and there is no warning. */
START_TEST(test_unix)
{
	struct config_sockets sockets = usual;
	struct listen_address bound;
	int fd = listening("unix:@sweet-test-socket-options", &bound);

	sockets.defer_accept = true;
	sockets.fastopen = 1;
	socket_options_set(fd, &sockets, 30000);
	ck_assert(!socket_is_opening(fd));
	close(fd);
}
END_TEST

static void check_text(const struct config_sockets *sockets, const char *expected)
{
	char text[SOCKET_OPTIONS_TEXT];

	socket_options_write(sockets, text);
	ck_assert_str_eq(text, expected);
}

START_TEST(test_text)
{
	struct config_sockets sockets = usual;

	check_text(&usual, "");
	sockets.send_method = SEND_COPY;
	check_text(&sockets, "send-method copy");
	sockets = (struct config_sockets){.defer_accept = true,
					  .fastopen = 65535,
					  .delay_ack = true,
					  .send_method = SEND_ZEROCOPY};
	check_text(&sockets, "defer-accept, fastopen 65535, delay-ack, send-method zerocopy, "
			     "header-option off, close-option off, linger off");
}
END_TEST

static void check_method(NC_cache *cache, unsigned before, unsigned method, const char *refused)
{
	struct config old = {.sockets.send_method = before},
		      config = {.sockets.send_method = method};
	char *why = NULL;
	bool good = send_method_use(cache, &old, &config, &why);

	ck_assert_int_eq(good, refused == NULL);
	ck_assert(good || strstr(why, refused));
	g_free(why);
	/* A caller without a use for it passes NULL. */
	ck_assert_int_eq(send_method_use(cache, &old, &config, NULL), good);
}

START_TEST(test_method)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 8 << 20,
				      .flags = NC_CACHE_NO_URING | NC_CACHE_NO_KERNEL);
	NC_cache *cache = NC_cache_open(&options);

	ck_assert_ptr_nonnull(cache);
	check_method(cache, SEND_AUTO, SEND_SPLICE, NULL);
	check_method(cache, SEND_SPLICE, SEND_COPY, NULL);
	check_method(cache, SEND_COPY, SEND_AUTO, NULL);
	check_method(cache, SEND_AUTO, SEND_KERNEL,
		     "send-method \"kernel\": the kernel module nabc is not used: disabled");
	check_method(cache, SEND_AUTO, SEND_ZEROCOPY, "send-method \"zerocopy\": the cache has no");
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_set_and_taken_back);
	tcase_add_test(tcase, test_inherited);
	tcase_add_test(tcase, test_deferred);
	tcase_add_test(tcase, test_unix);
	tcase_add_test(tcase, test_text);
	tcase_add_test(tcase, test_method);
}

RUN_SUITE("socket-options", fill)
