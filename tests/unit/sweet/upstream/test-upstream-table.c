/* SPDX-License-Identifier: MIT */
/*
 * test-upstream-table.c - unit tests of upstream-table.c: which places addresses of names get, and
 * that no place gets another address while a thread may have connections to the one before.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/balancer.h"
#include "upstream/name-lookup.h"
#include "upstream/upstream-table.h"

#include "suite.h"

#define THREADS 2u
#define PORT 8001

static struct upstream_table table;
static uint64_t known[THREADS]; /* places that each thread uses */
static struct listen_address copies[THREADS][BALANCER_MAX];

static void open_table(unsigned fixed, unsigned names)
{
	struct listen_address address;

	memset(known, 0, sizeof(known));
	upstream_table_init(&table, THREADS, names);
	for (unsigned i = 0; i < fixed; i++) {
		ck_assert(address_parse("10.9.9.9:80", &address));
		upstream_table_add(&table, &address);
	}
}

/* The addresses 10.0.0.X from first to the one before end. */
static struct upstream_table_change set(unsigned name, unsigned first, unsigned end)
{
	struct name_addresses addresses = {0};

	for (; first < end; first++) {
		struct sockaddr_in *in =
			(struct sockaddr_in *)(void *)&addresses.all[addresses.count++];

		in->sin_family = AF_INET;
		in->sin_addr.s_addr = htonl(0x0a000000 + first);
	}
	return upstream_table_set(&table, name, &addresses, PORT);
}

static unsigned count(uint64_t places)
{
	return (unsigned)__builtin_popcountll(places);
}

static void read_table(unsigned thread)
{
	known[thread] = upstream_table_read(&table, known[thread], copies[thread]);
}

/* The thread has no connection to an address that is gone. */
static void release(unsigned thread)
{
	for (unsigned i = 0; i < BALANCER_MAX; i++)
		if (!(known[thread] >> i & 1))
			upstream_table_release(&table, thread, i);
}

START_TEST(test_set)
{
	struct upstream_table_change change;

	open_table(2, 1);
	read_table(0);
	ck_assert_uint_eq(known[0], 3);
	change = set(0, 1, 3);
	ck_assert_uint_eq(change.added, 0xc);
	ck_assert_uint_eq(change.removed, 0);
	read_table(0);
	ck_assert_uint_eq(known[0], 0xf);
	ck_assert_str_eq(copies[0][0].text, "10.9.9.9:80");
	ck_assert_str_eq(copies[0][2].text, "10.0.0.1:8001");
	ck_assert_str_eq(copies[0][3].text, "10.0.0.2:8001");
	change = set(0, 1, 3);
	ck_assert_uint_eq(change.added | change.removed, 0);
	change = set(0, 2, 4);
	ck_assert_uint_eq(change.removed, 4);
	ck_assert_uint_eq(change.added, 0x10);
	ck_assert_uint_eq(change.left_out, 0);
	/* The first one is not free as long as a thread may use it. */
	read_table(0);
	release(0);
	ck_assert_uint_eq(set(0, 4, 5).added, 0x20);
	read_table(1);
	release(1);
	ck_assert_uint_eq(set(0, 5, 6).added, 4);
	upstream_table_clear(&table);
}
END_TEST

/* An address that comes back has its place, to which there still are connections. */
START_TEST(test_comes_back)
{
	open_table(0, 1);
	(void)set(0, 1, 2);
	read_table(0);
	(void)set(0, 2, 3);
	ck_assert_uint_eq(set(0, 1, 2).added, 1);
	/* What it says late changes nothing. */
	upstream_table_release(&table, 0, 0);
	read_table(1);
	(void)set(0, 2, 3);
	release(1);
	ck_assert_uint_ne(set(0, 3, 4).added, 1);
	upstream_table_clear(&table);
}
END_TEST

/* Names do not take the places of others; and a name of too many keeps the ones that it has. */
START_TEST(test_too_many)
{
	struct upstream_table_change change;
	uint64_t before;

	open_table(0, 2);
	change = set(0, 1, 60);
	ck_assert_uint_eq(count(change.added), 16);
	ck_assert_uint_eq(change.left_out, 59 - 16);
	change = set(1, 100, 102);
	ck_assert_uint_eq(count(change.added), 2);
	before = table.used;
	ck_assert_uint_eq(set(0, 1, 64).added, 0);
	/* Of the new set it has 6. */
	change = set(0, 11, 64);
	ck_assert_uint_eq(count(change.removed), 10);
	ck_assert_uint_eq(count(change.added), 10);
	ck_assert_uint_eq(count(before & table.used), 8);
	upstream_table_clear(&table);
}
END_TEST

/* Threads release nothing, and the addresses are others each time: the last ones stay. */
START_TEST(test_no_place)
{
	struct upstream_table_change change = {.added = 1};
	unsigned next = 1, rounds = 0;
	uint64_t last = 0;

	open_table(BALANCER_MAX - 4, 1);
	for (; change.added; next += 2, rounds++) {
		last = table.used;
		change = set(0, next, next + 2);
	}
	ck_assert_uint_eq(rounds, 3);
	ck_assert_uint_eq(table.used, last);
	ck_assert_uint_eq(change.left_out, 2);
	ck_assert_uint_eq(count(last), BALANCER_MAX - 4 + 2);
	for (unsigned i = 0; i < THREADS; i++) {
		read_table(i);
		release(i);
	}
	ck_assert_uint_eq(count(set(0, next, next + 2).added), 2);
	upstream_table_clear(&table);
}
END_TEST

/* As many names as places: each has one. */
START_TEST(test_many_names)
{
	open_table(0, BALANCER_MAX);
	for (unsigned i = 0; i < BALANCER_MAX; i++)
		ck_assert_uint_eq(count(set(i, 1, 3).added), 1);
	ck_assert_uint_eq(table.used, UINT64_MAX);
	ck_assert_uint_eq(set(0, 3, 5).removed, 0);
	upstream_table_clear(&table);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_set);
	tcase_add_test(tcase, test_comes_back);
	tcase_add_test(tcase, test_too_many);
	tcase_add_test(tcase, test_no_place);
	tcase_add_test(tcase, test_many_names);
}

RUN_SUITE("upstream-table", fill)
