/* SPDX-License-Identifier: MIT */
/*
 * test-listener.c - unit tests of listener.c: forms of addresses, and binding
 * to them.  Single-threaded, on the loopback interface.
 */
#include <listener.h>

#include "suite.h"

static const struct {
	const char *text;
	const char *is; /* NULL: refused */
} forms[] = {
	{"8080", "127.0.0.1:8080"},
	{"0", "127.0.0.1:0"},
	{"65535", "127.0.0.1:65535"},
	{"008080", "127.0.0.1:8080"},
	{":8080", "0.0.0.0:8080"},
	{"*:8080", "0.0.0.0:8080"},
	{"0.0.0.0:1", "0.0.0.0:1"},
	{"127.0.0.1:8080", "127.0.0.1:8080"},
	{"255.255.255.255:65535", "255.255.255.255:65535"},
	{"[::1]:8080", "[::1]:8080"},
	{"[::]:80", "[::]:80"},
	{"[0:0:0:0:0:0:0:1]:0", "[::1]:0"},
	{"[2001:DB8::a]:443", "[2001:db8::a]:443"},
	{"[::ffff:192.0.2.1]:80", "[::ffff:192.0.2.1]:80"},
	{"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
	 "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"},
	{"[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535",
	 "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"},
	{"", NULL},
	{":", NULL},
	{"*", NULL},
	{"*:", NULL},
	{"**:80", NULL},
	{"x", NULL},
	{"-1", NULL},
	{":-1", NULL},
	{"+80", NULL},
	{" 80", NULL},
	{"80 ", NULL},
	{": 80", NULL},
	{"80x", NULL},
	{"0x50", NULL},
	{"65536", NULL},
	{":65536", NULL},
	{"4294967376", NULL},
	{"18446744073709551696", NULL},
	{"99999999999999999999999999999", NULL},
	{"127.0.0.1", NULL},
	{"127.0.0.1:", NULL},
	{"127.0.0.1:http", NULL},
	{"127.0.0:80", NULL},
	{"127.0.0.256:80", NULL},
	{"127.0.0.1.1:80", NULL},
	{"localhost:80", NULL},
	{"::1:80", NULL},
	{"::1", NULL},
	{"[::1]", NULL},
	{"[::1]80", NULL},
	{"[::1:80", NULL},
	{"::1]:80", NULL},
	{"[]:80", NULL},
	{"[:80", NULL},
	{"]:80", NULL},
	{"[127.0.0.1]:80", NULL},
	{"[::1]]:80", NULL},
	{"[[::1]]:80", NULL},
	{"[::1%lo]:80", NULL},
	{"[::g]:80", NULL},
	{"http://127.0.0.1:80", NULL},
	{"127.0.0.1:80:80", NULL},
	{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:80",
	 NULL},
};

START_TEST(test_forms)
{
	for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		/* Of the exact size, so that a read too far is seen. */
		size_t size = strlen(forms[i].text) + 1;
		struct listen_address address, again;
		char *text = must_alloc(size);
		bool good;

		memcpy(text, forms[i].text, size);
		memset(&address, 0x5a, sizeof(address));
		good = listener_parse(text, &address);
		free(text);
		ck_assert_msg(good == !!forms[i].is, "%s", forms[i].text);
		if (!good)
			continue;
		ck_assert_str_eq(address.text, forms[i].is);
		/* What it is called is another form of it. */
		ck_assert(listener_parse(address.text, &again));
		ck_assert_uint_eq(address.length, again.length);
		ck_assert_mem_eq(&address.address, &again.address, sizeof(address.address));
		ck_assert_uint_eq(address.length, forms[i].is[0] == '['
							  ? sizeof(struct sockaddr_in6)
							  : sizeof(struct sockaddr_in));
	}
}
END_TEST

/* Whether this system has the loopback address of a family. */
static bool has(const char *text)
{
	struct listen_address address;
	int fd;

	ck_assert(listener_parse(text, &address));
	fd = listener_bind(&address, false);
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

	ck_assert(listener_parse(text, &address));
	fd = listener_bind(&address, false);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	/* The port that was found. */
	bound = address;
	listener_name(fd, &bound);
	ck_assert_str_ne(bound.text, text);
	ck_assert(listener_parse(bound.text, &again));
	ck_assert_mem_eq(&bound.address, &again.address, bound.length);
	client = socket(bound.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&bound.address, bound.length), 0);
	await(fd, POLLIN);
	guest = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(guest, 0);
	close(guest);
	close(client);
	/* Another program's socket is noticed, even when this one would share. */
	ck_assert_int_eq(listener_bind(&bound, false), -EADDRINUSE);
	ck_assert_int_eq(listener_bind(&bound, true), -EADDRINUSE);
	close(fd);
	/* Taken again at once, though a connection is in TIME_WAIT; shared by two. */
	fd = listener_bind(&bound, true);
	ck_assert_int_ge(fd, 0);
	guest = listener_bind(&bound, true);
	ck_assert_int_ge(guest, 0);
	ck_assert_int_eq(listener_bind(&bound, false), -EADDRINUSE);
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

/* All of IPv6 and all of IPv4 may have the same port. */
START_TEST(test_both_families)
{
	struct listen_address four, six;
	int fd4, fd6;

	if (!has("[::]:0")) {
		printf("listener: no IPv6 here\n");
		return;
	}
	ck_assert(listener_parse(":0", &four));
	fd4 = listener_bind(&four, false);
	ck_assert_int_ge(fd4, 0);
	listener_name(fd4, &four);
	ck_assert(listener_parse("[::]:0", &six));
	((struct sockaddr_in6 *)(void *)&six.address)->sin6_port =
		((struct sockaddr_in *)(void *)&four.address)->sin_port;
	fd6 = listener_bind(&six, false);
	ck_assert_int_ge(fd6, 0);
	close(fd4);
	close(fd6);
}
END_TEST

START_TEST(test_bind_refused)
{
	struct listen_address address;

	/* Documentation's address: nobody's. */
	ck_assert(listener_parse("192.0.2.1:0", &address));
	ck_assert_int_eq(listener_bind(&address, false), -EADDRNOTAVAIL);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_forms);
	tcase_add_test(tcase, test_bind);
	tcase_add_test(tcase, test_both_families);
	tcase_add_test(tcase, test_bind_refused);
}

RUN_SUITE("listener", fill)
