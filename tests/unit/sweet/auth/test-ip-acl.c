/* SPDX-License-Identifier: MIT */
/*
 * test-ip-acl.c - unit tests of ip-acl.c: rules and their errors, the longest
 * prefix, mapped addresses; and many lists at random against the definition.
 */
#include <arpa/inet.h>
#include <glib.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "auth/ip-acl.h"

#include "suite.h"

static bool asks(const struct ip_acl *list, const char *client)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = 7};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = 7};
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	if (strcmp(client, "unix") == 0)
		return ip_acl_allows(list, (struct sockaddr *)&un);
	if (inet_pton(AF_INET, client, &in.sin_addr) == 1)
		return ip_acl_allows(list, (struct sockaddr *)&in);
	ck_assert_int_eq(inet_pton(AF_INET6, client, &in6.sin6_addr), 1);
	return ip_acl_allows(list, (struct sockaddr *)&in6);
}

/* Lists are separated by blanks; returns whether they admit the client. */
static bool allowed(const char *allow, const char *deny, const char *client)
{
	char **allows = *allow ? g_strsplit(allow, " ", -1) : NULL;
	char **denies = *deny ? g_strsplit(deny, " ", -1) : NULL;
	char *why = NULL;
	struct ip_acl *list = ip_acl_new(allows, denies, &why);
	bool answer;

	ck_assert_msg(list != NULL, "%s", why);
	ck_assert_ptr_null(why);
	answer = asks(list, client);
	ip_acl_free(list);
	g_strfreev(allows);
	g_strfreev(denies);
	return answer;
}

static const struct {
	const char *allow, *deny, *client;
	bool may;
} cases[] = {
	/* No rules, and rules of one kind. */
	{"", "", "192.0.2.1", true},
	{"", "", "2001:db8::1", true},
	{"", "", "unix", true},
	{"192.0.2.1", "", "192.0.2.1", true},
	{"192.0.2.1", "", "192.0.2.2", false},
	{"192.0.2.1", "", "2001:db8::1", false},
	{"192.0.2.1", "", "unix", false},
	{"", "192.0.2.1", "192.0.2.1", false},
	{"", "192.0.2.1", "192.0.2.2", true},
	{"", "192.0.2.1", "unix", true},
	/* Edges of networks. */
	{"192.0.2.0/24", "", "192.0.2.0", true},
	{"192.0.2.0/24", "", "192.0.2.255", true},
	{"192.0.2.0/24", "", "192.0.3.0", false},
	{"192.0.2.0/24", "", "192.0.1.255", false},
	{"192.0.2.128/25", "", "192.0.2.127", false},
	{"192.0.2.128/25", "", "192.0.2.128", true},
	{"192.0.2.254/31", "", "192.0.2.253", false},
	{"192.0.2.254/31", "", "192.0.2.255", true},
	{"192.0.2.254/32", "", "192.0.2.255", false},
	{"128.0.0.0/1", "", "127.255.255.255", false},
	{"128.0.0.0/1", "", "128.0.0.0", true},
	{"0.0.0.0/0", "", "192.0.2.1", true},
	{"0.0.0.0/0", "", "2001:db8::1", false},
	{"2001:db8::/32", "", "2001:db8:ffff::1", true},
	{"2001:db8::/32", "", "2001:db9::", false},
	{"2001:db8:0:8000::/49", "", "2001:db8:0:7fff::", false},
	{"2001:db8:0:8000::/49", "", "2001:db8:0:ffff::", true},
	{"2001:db8::5", "", "2001:db8::5", true},
	{"2001:db8::5", "", "2001:db8::4", false},
	{"::/0", "", "2001:db8::1", true},
	/* IPv4 in IPv6: the client as well as the rule. */
	{"192.0.2.0/24", "", "::ffff:192.0.2.9", true},
	{"192.0.2.0/24", "", "::ffff:192.0.3.9", false},
	{"::ffff:192.0.2.0/120", "", "192.0.2.9", true},
	{"::ffff:192.0.2.0/120", "", "192.0.3.9", false},
	{"::ffff:192.0.2.9", "", "::ffff:192.0.2.9", true},
	{"", "::/0", "192.0.2.1", true},
	{"", "::/0", "::ffff:192.0.2.1", true},
	{"", "::/0", "::1", false},
	/* All, and "unix". */
	{"all", "", "192.0.2.1", true},
	{"", "all", "192.0.2.1", false},
	{"", "all", "::1", false},
	{"", "all", "unix", false},
	{"all", "all", "192.0.2.1", false},
	{"unix", "", "unix", true},
	{"unix", "all", "unix", true},
	{"unix", "", "192.0.2.1", false},
	{"all", "unix", "unix", false},
	{"unix", "unix", "unix", false},
	/* Both: the longer prefix wins, and at the same length the deny rule. */
	{"192.0.2.0/24", "all", "192.0.2.1", true},
	{"192.0.2.0/24", "all", "198.51.100.1", false},
	{"all", "192.0.2.0/24", "192.0.2.1", false},
	{"all", "192.0.2.0/24", "198.51.100.1", true},
	{"192.0.2.7", "192.0.2.0/24", "192.0.2.7", true},
	{"192.0.2.7", "192.0.2.0/24", "192.0.2.8", false},
	{"192.0.2.0/24", "192.0.2.7", "192.0.2.7", false},
	{"192.0.2.0/24", "192.0.2.7", "192.0.2.8", true},
	{"192.0.2.0/24", "192.0.2.0/24", "192.0.2.8", false},
	{"10.0.0.0/8 10.1.1.0/24", "10.1.0.0/16", "10.1.1.1", true},
	{"10.0.0.0/8 10.1.1.0/24", "10.1.0.0/16", "10.1.2.1", false},
	{"10.0.0.0/8 10.1.1.0/24", "10.1.0.0/16", "10.2.2.1", true},
	{"10.0.0.0/8 10.1.1.0/24", "10.1.0.0/16", "11.0.0.1", false},
	{"2001:db8::/32", "2001:db8:5::/48", "2001:db8:5::1", false},
	{"2001:db8::/32", "2001:db8:5::/48", "2001:db8:6::1", true},
	{"0.0.0.0/0", "all", "192.0.2.1", true},
	{"192.0.2.1 192.0.2.1 192.0.2.2", "", "192.0.2.2", true},
};

START_TEST(test_lists)
{
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(allowed(cases[i].allow, cases[i].deny, cases[i].client) ==
				      cases[i].may,
			      "allow %s, deny %s, client %s", cases[i].allow, cases[i].deny,
			      cases[i].client);
	/* Without rules, everybody is admitted. */
	ck_assert(asks(NULL, "192.0.2.1"));
}
END_TEST

START_TEST(test_other_families)
{
	static char *nobody[] = {(char *)"192.0.2.1", NULL}, *everybody[] = {(char *)"all", NULL};
	struct sockaddr other = {.sa_family = AF_UNSPEC};
	char *why;
	struct ip_acl *list = ip_acl_new(nobody, NULL, &why);

	ck_assert(!ip_acl_allows(list, &other));
	ip_acl_free(list);
	list = ip_acl_new(everybody, NULL, &why);
	ck_assert(ip_acl_allows(list, &other));
	ip_acl_free(list);
	/* It may be the one that is denied. */
	list = ip_acl_new(NULL, nobody, &why);
	ck_assert(!ip_acl_allows(list, &other));
	ip_acl_free(list);
	list = ip_acl_new(everybody, nobody, &why);
	ck_assert(!ip_acl_allows(list, &other));
	ip_acl_free(list);
	ip_acl_free(NULL);
}
END_TEST

START_TEST(test_errors)
{
	static const struct {
		const char *rule, *part;
	} cases[] = {
		{"", "\"\" is not an address"},
		{"localhost", "\"localhost\" is not an address"},
		{"192.0.2", "is not an address"},
		{"192.0.2.256", "is not an address"},
		{"192.0.2.1:80", "is not an address"},
		{"[::1]", "is not an address"},
		{"ALL", "is not an address"},
		{"/8", "is not an address"},
		{"192.0.2.1/", "from 0 to 32"},
		{"192.0.2.1/33", "from 0 to 32"},
		{"192.0.2.1/-1", "from 0 to 32"},
		{"192.0.2.1/ 8", "from 0 to 32"},
		{"192.0.2.0/255.255.255.0", "from 0 to 32"},
		{"2001:db8::/129", "from 0 to 128"},
		{"2001:db8::/32/32", "from 0 to 128"},
		{"10.0.0.1/8", "write 10.0.0.0/8"},
		{"192.0.2.129/25", "write 192.0.2.128/25"},
		{"2001:db8::1/64", "write 2001:db8::/64"},
		{"::ffff:192.0.2.1/120", "write ::ffff:192.0.2.0/120"},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *rules[] = {(char *)"192.0.2.1", (char *)cases[i].rule, NULL};
		char *why = NULL;

		ck_assert_ptr_null(ip_acl_new(rules, NULL, &why));
		ck_assert_msg(strstr(why, cases[i].part) != NULL, "%s: %s", cases[i].rule, why);
		g_free(why);
		why = NULL;
		ck_assert_ptr_null(ip_acl_new(NULL, rules, &why));
		ck_assert_ptr_nonnull(why);
		g_free(why);
	}
}
END_TEST

/* By the definition: checks every rule, and the longest one counts. */
static bool defined(const uint32_t *nets, const unsigned *bits, unsigned allows, unsigned count,
		    uint32_t client)
{
	int best = -1;
	bool deny = false;

	for (unsigned i = 0; i < count; i++) {
		uint32_t keep = bits[i] ? UINT32_MAX << (32 - bits[i]) : 0;

		if ((client & keep) != nets[i] || (int)bits[i] < best)
			continue;
		deny = (int)bits[i] == best ? deny || i >= allows : i >= allows;
		best = (int)bits[i];
	}
	return best >= 0 ? !deny : allows == 0;
}

START_TEST(test_random)
{
	uint64_t random = 4711;

	for (unsigned round = 0; round < scaled(400); round++) {
		unsigned count = (unsigned)(random_next(&random) % 40);
		unsigned allows = count ? (unsigned)(random_next(&random) % count) : 0;
		GPtrArray *allow = g_ptr_array_new_with_free_func(g_free);
		GPtrArray *deny = g_ptr_array_new_with_free_func(g_free);
		struct ip_acl *list;
		uint32_t nets[40];
		unsigned bits[40];
		char *why = NULL;

		for (unsigned i = 0; i < count; i++) {
			struct in_addr net;

			bits[i] = (unsigned)(random_next(&random) % 33);
			/* Few addresses, so that networks contain each other. */
			nets[i] = (uint32_t)(random_next(&random) & 0xc0030303);
			nets[i] &= bits[i] ? UINT32_MAX << (32 - bits[i]) : 0;
			net.s_addr = htonl(nets[i]);
			g_ptr_array_add(i < allows ? allow : deny,
					g_strdup_printf("%s/%u", inet_ntoa(net), bits[i]));
		}
		g_ptr_array_add(allow, NULL);
		g_ptr_array_add(deny, NULL);
		list = ip_acl_new((char **)allow->pdata, (char **)deny->pdata, &why);
		ck_assert_msg(list != NULL, "%s", why);
		for (unsigned i = 0; i < 200; i++) {
			uint32_t client = (uint32_t)(random_next(&random) & 0xc0030303);
			struct sockaddr_in in = {.sin_family = AF_INET,
						 .sin_addr.s_addr = htonl(client)};

			expect(ip_acl_allows(list, (struct sockaddr *)&in) ==
			       defined(nets, bits, allows, count, client));
		}
		ip_acl_free(list);
		g_ptr_array_unref(allow);
		g_ptr_array_unref(deny);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_lists);
	tcase_add_test(tcase, test_other_families);
	tcase_add_test(tcase, test_errors);
	tcase_add_test(tcase, test_random);
}

RUN_SUITE("ip-acl", fill)
