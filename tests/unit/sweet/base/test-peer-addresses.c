/* SPDX-License-Identifier: MIT */
/*
 * test-peer-addresses.c - unit tests of peer-addresses.c: the text and port of
 * addresses of each family.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/peer-addresses.h"

#include "suite.h"

static struct sockaddr_storage address(int family, const char *text, uint16_t port)
{
	struct sockaddr_storage made = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&made;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&made;

	made.ss_family = (sa_family_t)family;
	if (family == AF_INET) {
		in->sin_port = htons(port);
		ck_assert_int_eq(inet_pton(family, text, &in->sin_addr), 1);
	} else if (family == AF_INET6) {
		in6->sin6_port = htons(port);
		ck_assert_int_eq(inet_pton(family, text, &in6->sin6_addr), 1);
	}
	return made;
}

static const struct {
	int family;
	const char *given, *text;
	uint16_t port;
} cases[] = {
	{AF_INET, "192.0.2.1", "192.0.2.1", 80},
	{AF_INET, "127.0.0.1", "127.0.0.1", 65535},
	{AF_INET, "127.255.255.254", "127.255.255.254", 1},
	{AF_INET, "128.0.0.1", "128.0.0.1", 1},
	{AF_INET, "0.0.0.127", "0.0.0.127", 1},
	{AF_INET6, "::1", "::1", 443},
	{AF_INET6, "::2", "::2", 443},
	{AF_INET6, "2001:db8::1", "2001:db8::1", 443},
	{AF_INET6, "::ffff:192.0.2.1", "192.0.2.1", 443},
	{AF_INET6, "::ffff:127.0.0.2", "127.0.0.2", 443},
	{AF_INET6, "::127.0.0.2", "::127.0.0.2", 443},
	{AF_INET6, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 0},
	{AF_UNIX, "", "unix:", 0},
};

START_TEST(test_describe)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sockaddr_storage one =
			address(cases[i].family, cases[i].given, cases[i].port);
		struct sockaddr_storage other = address(AF_INET, "127.9.9.9", 99);
		struct peer_addresses ends = {0};

		peer_addresses_set(&ends, &one, &other);
		ck_assert_str_eq(ends.remote, cases[i].text);
		ck_assert_uint_eq(ends.remote_port, cases[i].port);
		ck_assert_int_eq(ends.address.any.sa_family, cases[i].family);
		ck_assert_int_eq(memcmp(&ends.address, &one, sizeof(ends.address)), 0);
		ck_assert_str_eq(ends.local, "127.9.9.9");
		ck_assert_uint_eq(ends.local_port, 99);
		peer_addresses_set(&ends, &other, &one);
		ck_assert_str_eq(ends.local, cases[i].text);
		ck_assert_uint_eq(ends.local_port, cases[i].port);
	}
}
END_TEST

START_TEST(test_unknown)
{
	struct sockaddr_storage one = address(AF_INET, "127.0.0.1", 80);
	struct peer_addresses ends = {0};

	peer_addresses_set(&ends, &one, NULL);
	ck_assert_str_eq(ends.local, "");
	peer_addresses_set(&ends, NULL, NULL);
	peer_addresses_set_unknown(&ends);
	ck_assert_int_eq(ends.address.any.sa_family, AF_UNSPEC);
	ck_assert_str_eq(ends.remote, "127.0.0.1");
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_describe);
	tcase_add_test(tcase, test_unknown);
}

RUN_SUITE("peer-addresses", fill)
