/* SPDX-License-Identifier: MIT */
/*
 * test-address.c - unit tests of address.c: every form of an address, refused ones,
 * and which are equal.  Pure.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/address.h"

#include "suite.h"

#define TEN "abcdefghij"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define LONGEST "/" HUNDRED "123456" /* 107 bytes, and the zero */
#define LONGEST_NAME HUNDRED "123456"

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
	{"unix:/run/sweet/socket", "unix:/run/sweet/socket"},
	{"unix:relative", "unix:relative"},
	{"unix:/a:80", "unix:/a:80"},
	{"unix:/a,mode=660", "unix:/a"},
	{"unix:/a,mode=0", "unix:/a"},
	{"unix:/a,b,mode=0777", "unix:/a,b"},
	{"unix:@name", "unix:@name"},
	{"unix:@name,mode=600", "unix:@name"},
	{"unix:" LONGEST, "unix:" LONGEST},
	{"unix:@" LONGEST_NAME, "unix:@" LONGEST_NAME},
	{"", NULL},
	{"unix:", NULL},
	{"unix:@", NULL},
	{"unix:,mode=600", NULL},
	{"unix:/a,mode=", NULL},
	{"unix:/a,mode=8", NULL},
	{"unix:/a,mode=1000", NULL},
	{"unix:/a,mode=-1", NULL},
	{"unix:/a,mode=600x", NULL},
	{"unix:/a,tls,tls", NULL},
	{"unix:/a,tls,tls,mode=660", NULL},
	{"unix:/a,tls,mode=600,tls", NULL},
	{"unix:/a,mode=07777777777777777777777777777600", NULL},
	{"unix:" LONGEST "x", NULL},
	{"unix:@" LONGEST_NAME "x", NULL},
	{"UNIX:/a", NULL},
	{"unix", NULL},
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
		/* Of the exact size, so that a read beyond is detected. */
		size_t size = strlen(forms[i].text) + 1;
		struct listen_address address, again;
		char *text = must_alloc(size);
		bool good;

		memcpy(text, forms[i].text, size);
		memset(&address, 0x5a, sizeof(address));
		good = address_parse(text, &address);
		free(text);
		ck_assert_msg(good == !!forms[i].is, "%s", forms[i].text);
		if (!good)
			continue;
		ck_assert_str_eq(address.text, forms[i].is);
		/* Its text is another form of it. */
		ck_assert(address_parse(address.text, &again));
		ck_assert_uint_eq(address.length, again.length);
		ck_assert_mem_eq(&address.address, &again.address, sizeof(address.address));
		ck_assert(address_equal(&address, &again));
		if (address.address.ss_family == AF_UNIX)
			continue;
		ck_assert_uint_eq(address.length, forms[i].is[0] == '['
							  ? sizeof(struct sockaddr_in6)
							  : sizeof(struct sockaddr_in));
	}
}
END_TEST

START_TEST(test_unix)
{
	struct listen_address address;
	struct sockaddr_un *un = (struct sockaddr_un *)(void *)&address.address;

	ck_assert(address_parse("unix:/run/a", &address));
	ck_assert_uint_eq(address.mode, 0666);
	ck_assert_str_eq(address_path(&address), "/run/a");
	ck_assert_uint_eq(address.length, offsetof(struct sockaddr_un, sun_path) + 7);
	ck_assert(address_parse("unix:/run/a,mode=0640", &address));
	ck_assert_uint_eq(address.mode, 0640);
	ck_assert_str_eq(address_path(&address), "/run/a");
	/* An abstract name begins with a zero and does not end with one. */
	ck_assert(address_parse("unix:@ab", &address));
	ck_assert_ptr_null(address_path(&address));
	ck_assert_uint_eq(address.length, offsetof(struct sockaddr_un, sun_path) + 3);
	ck_assert_mem_eq(un->sun_path, "\0ab", 3);
	ck_assert(address_parse("80", &address));
	ck_assert_ptr_null(address_path(&address));
	/* As the kernel returns them: unnamed, and without the zero at the end. */
	memset(&address, 0, sizeof(address));
	address.address.ss_family = AF_UNIX;
	address.length = sizeof(sa_family_t);
	address_write(&address);
	ck_assert_str_eq(address.text, ADDRESS_UNIX);
	ck_assert_ptr_null(address_path(&address));
	memset(un->sun_path, 'x', sizeof(un->sun_path));
	address.length = sizeof(*un);
	address_write(&address);
	ck_assert_uint_eq(strlen(address.text), strlen(ADDRESS_UNIX) + sizeof(un->sun_path));
}
END_TEST

static const struct {
	const char *one, *other;
	bool equal;
} pairs[] = {
	{"80", "127.0.0.1:80", true},
	{"*:80", ":80", true},
	{"80", "81", false},
	{"[::1]:80", "[0::1]:80", true},
	{"[::1]:80", "127.0.0.1:80", false},
	{"[::]:80", ":80", false},
	{"unix:/a", "unix:/a,mode=600", true},
	{"unix:/a", "unix:/ab", false},
	{"unix:/a", "unix:/b", false},
	{"unix:@a", "unix:@a", true},
	{"unix:@a", "unix:@b", false},
	{"unix:@a", "unix:@ab", false},
	{"unix:@a", "unix:a", false},
	{"unix:80", "80", false},
	{"80", "80,tls", true},
};

START_TEST(test_tls)
{
	static const struct {
		const char *text, *written;
		bool tls;
		unsigned port;
	} cases[] = {
		{"443,tls", "127.0.0.1:443", true, 443},
		{":443,tls", "0.0.0.0:443", true, 443},
		{"[::1]:8443,tls", "[::1]:8443", true, 8443},
		{"unix:/a,tls", "unix:/a", true, 0},
		{"unix:/a,mode=660,tls", "unix:/a", true, 0},
		{"unix:/a,tls,mode=660", "unix:/a", true, 0},
		{"unix:/a,tlsx", "unix:/a,tlsx", false, 0},
		{"8443", "127.0.0.1:8443", false, 8443},
	};
	struct listen_address address;
	char many[300];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert(address_parse(cases[i].text, &address));
		ck_assert_str_eq(address.text, cases[i].written);
		ck_assert_int_eq(address.tls, cases[i].tls);
		ck_assert_uint_eq(address_port(&address), cases[i].port);
	}
	ck_assert(address_parse("unix:/a,mode=660,tls", &address));
	ck_assert_uint_eq(address.mode, 0660);
	ck_assert(!address_parse(",tls", &address));
	ck_assert(!address_parse("80,tls,tls", &address));
	memset(many, '1', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	ck_assert(!address_parse(many, &address));
}
END_TEST

START_TEST(test_equal)
{
	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct listen_address one, other;

		ck_assert(address_parse(pairs[i].one, &one));
		ck_assert(address_parse(pairs[i].other, &other));
		ck_assert_msg(address_equal(&one, &other) == pairs[i].equal, "%s %s", pairs[i].one,
			      pairs[i].other);
		ck_assert(address_equal(&other, &one) == pairs[i].equal);
	}
}
END_TEST

START_TEST(test_accepts)
{
	static const struct {
		const char *listen, *local;
		bool accepts;
	} cases[] = {
		{"127.0.0.1:80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "127.0.0.1:81", false},
		{"127.0.0.1:80", "127.0.0.2:80", false},
		{"127.0.0.1:0", "127.0.0.1:81", true},
		{":80", "192.0.2.1:80", true},
		{":80", "192.0.2.1:81", false},
		{":80", "[::1]:80", false},
		{"[::1]:80", "[::1]:80", true},
		{"[::1]:80", "[::1]:81", false},
		{"[::1]:80", "[::2]:80", false},
		{"[::1]:0", "[::1]:81", true},
		{"[::]:80", "[::1]:80", true},
		{"[::]:80", "[::1]:81", false},
		{"[::]:80", "127.0.0.1:80", false},
		{"unix:/a", "unix:/b", true},
		{"unix:/a", "127.0.0.1:80", false},
		{"127.0.0.1:80", "unix:/a", false},
	};
	struct listen_address listen, local;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert(address_parse(cases[i].listen, &listen));
		ck_assert(address_parse(cases[i].local, &local));
		ck_assert_msg(address_accepts(&listen, (const struct sockaddr *)&local.address) ==
				      cases[i].accepts,
			      "%s, %s", cases[i].listen, cases[i].local);
	}
}
END_TEST

#define LABEL TEN TEN TEN TEN TEN TEN "abc"
#define NAME_253 LABEL "." LABEL "." LABEL "." TEN TEN TEN TEN TEN TEN "a"

START_TEST(test_names)
{
	static const struct {
		const char *text, *host; /* host NULL: refused */
		unsigned port;
	} cases[] = {
		{"localhost:8001", "localhost", 8001},
		{"app:1", "app", 1},
		{"my_app-2.example.org:65535", "my_app-2.example.org", 65535},
		{"a.example.:80", "a.example.", 80},
		{"1.example:80", "1.example", 80},
		{"xn--mnchen-3ya.de:80", "xn--mnchen-3ya.de", 80},
		{"0x1g:80", "0x1g", 80},
		{LABEL ":80", LABEL, 80},
		{NAME_253 ":80", NAME_253, 80},
		{NAME_253 ".:80", NAME_253 ".", 80},
		{NAME_253 "a:80", NULL, 0},
		{LABEL "a:80", NULL, 0},
		{HUNDRED HUNDRED HUNDRED ":80", NULL, 0},
		{"", NULL, 0},
		{":80", NULL, 0},
		{"app", NULL, 0},
		{"app:", NULL, 0},
		{"app:0", NULL, 0},
		{"app:65536", NULL, 0},
		{"app:http", NULL, 0},
		{"app:80,tls", NULL, 0},
		{".:80", NULL, 0},
		{"..:80", NULL, 0},
		{"a..b:80", NULL, 0},
		{".a:80", NULL, 0},
		{"a..:80", NULL, 0},
		{"-a:80", NULL, 0},
		{"a-.b:80", NULL, 0},
		{"a b:80", NULL, 0},
		{"a/b:80", NULL, 0},
		{"http://a:80", NULL, 0},
		{"a%eth0:80", NULL, 0},
		{"m\303\274nchen.de:80", NULL, 0},
		/* Addresses with a mistake. */
		{"127.0.0.256:80", NULL, 0},
		{"127.1:80", NULL, 0},
		{"10.0.0.1.:80", NULL, 0},
		{"2130706433:80", NULL, 0},
		{"0x7f000001:80", NULL, 0},
		{"0x:80", NULL, 0},
		{"::1:80", NULL, 0},
		{"[::1]:80", NULL, 0},
	};
	struct host_port name;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool good = address_parse_name(cases[i].text, &name);

		ck_assert_msg(good == (cases[i].host != NULL), "%s", cases[i].text);
		if (!good)
			continue;
		ck_assert_str_eq(name.host, cases[i].host);
		ck_assert_uint_eq(name.port, cases[i].port);
	}
}
END_TEST

START_TEST(test_set_port)
{
	static const char *const cases[][2] = {
		{"127.0.0.1:0", "127.0.0.1:8001"},
		{"[::1]:80", "[::1]:8001"},
	};
	struct listen_address address;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert(address_parse(cases[i][0], &address));
		address_set_port(&address, 8001);
		ck_assert_str_eq(address.text, cases[i][1]);
		ck_assert_uint_eq(address_port(&address), 8001);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_set_port);
	tcase_add_test(tcase, test_forms);
	tcase_add_test(tcase, test_unix);
	tcase_add_test(tcase, test_tls);
	tcase_add_test(tcase, test_equal);
	tcase_add_test(tcase, test_accepts);
}

RUN_SUITE("address", fill)
