/* SPDX-License-Identifier: MIT */
/*
 * test-tls-tickets.c - unit tests of tls-tickets.c.  Forks.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tls/tls-tickets.h"

#include "suite.h"

#define HOUR TLS_TICKET_LIFETIME
#define NOW (1000u * HOUR)

static struct tls_tickets *tickets;

static void set_up(void)
{
	tickets = tls_tickets_open(NOW);
	ck_assert_ptr_nonnull(tickets);
}

static void tear_down(void)
{
	tls_tickets_close(tickets);
}

static struct tls_ticket_key key_at(uint64_t now)
{
	struct tls_ticket_key key;

	tls_tickets_current(tickets, now, &key);
	return key;
}

static bool same(const struct tls_ticket_key *one, const struct tls_ticket_key *other)
{
	return memcmp(one, other, sizeof(*one)) == 0;
}

START_TEST(key_lasts_an_hour)
{
	struct tls_ticket_key first = key_at(NOW), last = key_at(NOW + HOUR - 1),
			      next = key_at(NOW + HOUR);

	ck_assert(same(&first, &last));
	ck_assert(memcmp(first.name, next.name, sizeof(first.name)) != 0);
	ck_assert(memcmp(first.cipher, next.cipher, sizeof(first.cipher)) != 0);
	ck_assert(memcmp(first.mac, next.mac, sizeof(first.mac)) != 0);
	ck_assert(memcmp(first.cipher, first.mac, sizeof(first.mac)) != 0);
}
END_TEST

START_TEST(key_is_accepted_in_the_next_hour)
{
	struct tls_ticket_key first = key_at(NOW), found;

	ck_assert(tls_tickets_find(tickets, NOW, first.name, &found) && same(&first, &found));
	ck_assert(tls_tickets_find(tickets, NOW + 2 * HOUR - 1, first.name, &found) &&
		  same(&first, &found));
	ck_assert(!tls_tickets_find(tickets, NOW + 2 * HOUR, first.name, &found));
}
END_TEST

START_TEST(unknown_name)
{
	unsigned char name[TLS_TICKET_NAME] = {0};
	struct tls_ticket_key found;

	ck_assert(!tls_tickets_find(tickets, NOW, name, &found));
}
END_TEST

START_TEST(clock_that_goes_back)
{
	struct tls_ticket_key first = key_at(NOW), earlier = key_at(NOW - 5 * HOUR);

	ck_assert(same(&first, &earlier));
}
END_TEST

START_TEST(days_without_a_call)
{
	struct tls_ticket_key first = key_at(NOW), later = key_at(NOW + 100 * HOUR), found;

	ck_assert(!same(&first, &later));
	ck_assert(tls_tickets_find(tickets, NOW + 101 * HOUR, later.name, &found));
}
END_TEST

/* The child calls at other times than its parent. */
START_TEST(processes_agree)
{
	struct tls_ticket_key own, other;
	int ends[2], status;
	pid_t pid;

	ck_assert_int_eq(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		tls_tickets_current(tickets, NOW + 7 * HOUR, &other);
		_exit(write(ends[1], &other, sizeof(other)) != sizeof(other));
	}
	for (unsigned i = 0; i < 7; i++)
		tls_tickets_advance(tickets, NOW + i * HOUR);
	own = key_at(NOW + 7 * HOUR + 5);
	ck_assert_int_eq(read(ends[0], &other, sizeof(other)), sizeof(other));
	ck_assert(same(&own, &other));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

START_TEST(servers_do_not_agree)
{
	struct tls_tickets *others = tls_tickets_open(NOW);
	struct tls_ticket_key own = key_at(NOW), other;

	tls_tickets_current(others, NOW, &other);
	ck_assert(!same(&own, &other));
	tls_tickets_close(others);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, key_lasts_an_hour);
	tcase_add_test(tcase, key_is_accepted_in_the_next_hour);
	tcase_add_test(tcase, unknown_name);
	tcase_add_test(tcase, clock_that_goes_back);
	tcase_add_test(tcase, days_without_a_call);
	tcase_add_test(tcase, processes_agree);
	tcase_add_test(tcase, servers_do_not_agree);
}

RUN_SUITE("tls-tickets", fill)
