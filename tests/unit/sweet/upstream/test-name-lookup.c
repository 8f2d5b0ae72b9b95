/* SPDX-License-Identifier: MIT */
/*
 * test-name-lookup.c - unit tests of name-lookup.c: the set that it makes of what name servers say,
 * also of what no good one would; and names that need none.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "upstream/name-lookup.h"

#include "suite.h"

#define ANSWERS_MAX 4000u

static struct name_addresses found;
static struct addrinfo answers[ANSWERS_MAX];
static struct sockaddr_in6 places[ANSWERS_MAX];
static unsigned count;

static void set_up(void)
{
	count = 0;
	memset(answers, 0, sizeof(answers));
	memset(places, 0, sizeof(places));
}

static void answer(const char *text, unsigned scope)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&places[count];
	struct addrinfo *at = &answers[count];

	at->ai_addr = (struct sockaddr *)&places[count];
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		at->ai_addrlen = sizeof(*in);
	} else {
		ck_assert_int_eq(inet_pton(AF_INET6, text, &places[count].sin6_addr), 1);
		places[count].sin6_family = AF_INET6;
		places[count].sin6_scope_id = scope;
		places[count].sin6_port = 80;
		at->ai_addrlen = sizeof(places[count]);
	}
	at->ai_family = at->ai_addr->sa_family;
	if (count)
		answers[count - 1].ai_next = at;
	count++;
}

/* Writes the set. */
static const char *set(bool (*can_reach)(const struct sockaddr *address))
{
	static char text[8192];
	char host[INET6_ADDRSTRLEN];
	size_t length = 0;

	name_addresses_set(&found, count ? answers : NULL, can_reach);
	text[0] = '\0';
	for (unsigned i = 0; i < found.count; i++) {
		const struct sockaddr_storage *at = &found.all[i];
		const void *address =
			at->ss_family == AF_INET
				? (const void *)&((const struct sockaddr_in *)(const void *)at)
					  ->sin_addr
				: &((const struct sockaddr_in6 *)(const void *)at)->sin6_addr;

		inet_ntop(at->ss_family, address, host, sizeof(host));
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
					   i ? " " : "", host);
	}
	return text;
}

static bool without_v6(const struct sockaddr *address)
{
	return address->sa_family == AF_INET;
}

static bool no_way(const struct sockaddr *address)
{
	(void)address;
	return false;
}

START_TEST(test_set)
{
	ck_assert_str_eq(set(NULL), "");
	answer("10.0.0.2", 0);
	answer("2001:db8::1", 0);
	answer("10.0.0.1", 0);
	answer("10.0.0.2", 0);
	answer("2001:db8::1", 0);
	ck_assert_str_eq(set(NULL), "10.0.0.1 10.0.0.2 2001:db8::1");
	ck_assert_uint_eq(found.left_out, 0);
	ck_assert_uint_eq(((const struct sockaddr_in6 *)(const void *)&found.all[2])->sin6_port, 0);
	ck_assert_str_eq(set(without_v6), "10.0.0.1 10.0.0.2");
	/* Then the log says what is wrong with them. */
	ck_assert_str_eq(set(no_way), "10.0.0.1 10.0.0.2 2001:db8::1");
}
END_TEST

START_TEST(test_scopes)
{
	answer("fe80::1", 2);
	answer("fe80::1", 1);
	answer("fe80::1", 2);
	ck_assert_str_eq(set(NULL), "fe80::1 fe80::1");
}
END_TEST

/* No connection can be meant for these; 0.0.0.0 would be this host. */
START_TEST(test_no_hosts)
{
	static const char *const texts[] = {
		"0.0.0.0",   "0.1.2.3", "224.0.0.1", "239.255.255.255", "255.255.255.255",
		"240.0.0.1", "::",	"ff02::1",   "::ffff:0.0.0.0",	"::ffff:255.255.255.255",
		"ff0e::1",
	};

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		answer(texts[i], 0);
	ck_assert_str_eq(set(NULL), "");
	answer("::ffff:10.0.0.1", 0);
	answer("127.0.0.1", 0);
	answer("::1", 0);
	ck_assert_str_eq(set(NULL), "127.0.0.1 ::1 ::ffff:10.0.0.1");
}
END_TEST

/* Of thousands, the same ones are taken, in whatever order they come. */
START_TEST(test_too_many)
{
	struct name_addresses first;
	char text[64];

	for (unsigned round = 0; round < 2; round++) {
		set_up();
		for (unsigned i = 0; i < ANSWERS_MAX; i++) {
			unsigned number = round ? ANSWERS_MAX - 1 - i : i;

			snprintf(text, sizeof(text), "10.0.%u.%u", number / 200, number % 200);
			answer(text, 0);
		}
		(void)set(NULL);
		ck_assert_uint_eq(found.count, NAME_ADDRESSES_MAX);
		ck_assert_uint_eq(found.left_out, ANSWERS_MAX - NAME_ADDRESSES_MAX);
		if (round)
			ck_assert_mem_eq(found.all, first.all, sizeof(first.all));
		first = found;
	}
}
END_TEST

START_TEST(test_lookup)
{
	char why[128] = "", host[300];

	ck_assert_msg(name_lookup("localhost", &found, why, sizeof(why)), "%s", why);
	ck_assert_uint_ge(found.count, 1);
	memset(host, 'a', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	ck_assert(!name_lookup(host, &found, why, sizeof(why)));
	ck_assert_uint_eq(found.count, 0);
	ck_assert_uint_gt(strlen(why), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_add_test(tcase, test_set);
	tcase_add_test(tcase, test_scopes);
	tcase_add_test(tcase, test_no_hosts);
	tcase_add_test(tcase, test_too_many);
	tcase_add_test(tcase, test_lookup);
}

RUN_SUITE("name-lookup", fill)
