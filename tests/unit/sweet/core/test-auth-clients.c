/* SPDX-License-Identifier: MIT */
/*
 * test-auth-clients.c - unit tests of auth.c: clients that guess, the shares of
 * clients and networks in the pending checks, and many users.
 */
#include <fcntl.h>
#include <glib.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/auth-check.h"
#include "core/auth.h"
#include "event/loop.h"

#include "auth-fixture.h"
#include "loop-fixture.h"
#include "suite.h"
#include "turn-fixture.h"

#define SAME 40u /* more than a client may have wrong */

/* A client that guesses must wait, others need not, and right passwords cost nothing. */
START_TEST(test_guessing)
{
	struct auth *auth = open_file("anna:" SHA "\nbert:" SHA "\n");
	unsigned guesses = 0;
	char plain[32];

	for (unsigned i = 0; i < 100; i++)
		ck_assert_int_eq(answer(auth, "anna:geheim"), AUTH_YES);
	do {
		snprintf(plain, sizeof(plain), "bert:%u", guesses++);
		ck_assert_uint_lt(guesses, 50);
	} while (answer(auth, plain) == AUTH_NO);
	ck_assert_int_eq(asks[0].answer, AUTH_WAIT);
	ck_assert_uint_ge(asks[0].check.wait_s, 1);
	ck_assert_uint_le(asks[0].check.wait_s, 2);
	ck_assert_uint_ge(guesses, 20);
	/* Not even a right one is checked, unless it is remembered. */
	ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_WAIT);
	ck_assert_int_eq(answer(auth, "anna:geheim"), AUTH_YES);
	asks[0].client.sin_addr.s_addr++;
	ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_YES);
	auth_release(auth);
}
END_TEST

/* A flood from everywhere: a limited number may wait for a thread, the others must retry. */
START_TEST(test_busy)
{
	/* A slow hash; under Valgrind the fastest one is slow enough. */
	bool quick = scaled(2) < 2;
	struct auth *auth = open_file(
		quick ? "anna:$2y$04$abcdefghijklmnopqrstuuPWRtT5yx7FBi4dcf6ROhboeNunUrLQ.\n"
		      : "anna:$2y$10$abcdefghijklmnopqrstuuPWRtT5yx7FBi4dcf6ROhboeNunUrLQ.\n");
	unsigned busy = 0;

	for (unsigned i = 0; i < CHECKS; i++) {
		asks[i].client = (struct sockaddr_in){.sin_family = AF_INET,
						      .sin_addr.s_addr = htonl(0x0a000000 + i)};
		put(auth, &asks[i], "Basic YW5uYTpmYWxzY2g=");
		busy += asks[i].answer == AUTH_BUSY;
		ck_assert(asks[i].answer == AUTH_BUSY || asks[i].answer == AUTH_LATER);
	}
	ck_assert(quick || busy >= 1);
	ck_assert_uint_le(busy, CHECKS - 256);
	auth_release(auth);
	/* Closed with most of them waiting: each gets its answer, once. */
	tear_down();
	for (unsigned i = 0; i < CHECKS; i++)
		ck_assert_uint_eq(asks[i].answered, asks[i].answer == AUTH_LATER);
	set_up();
}
END_TEST

/* Threads that wait for a file are busy until the test releases them. */
static struct auth *plugs[THREADS];
static char plug_paths[THREADS][96];

static void plug(void)
{
	for (unsigned i = 0; i < THREADS; i++) {
		struct ask *ask = &asks[CHECKS + 1 + i];
		char *why;

		snprintf(plug_paths[i], sizeof(plug_paths[i]), "%s/plug%u", directory, i);
		ck_assert(g_file_set_contents(plug_paths[i], "anna:" SHA "\n", -1, NULL));
		plugs[i] = auth_open(authenticator, plug_paths[i], &why);
		ck_assert_ptr_nonnull(plugs[i]);
		unlink(plug_paths[i]);
		ck_assert_int_eq(mkfifo(plug_paths[i], 0600), 0);
		ask->client = (struct sockaddr_in){.sin_family = AF_INET,
						   .sin_addr.s_addr = htonl(0xc6336401 + i)};
		ck_assert_int_eq(put(plugs[i], ask, "Basic YW5uYTpnZWhlaW0="), AUTH_LATER);
	}
}

/* Releases the threads from `first` on, before `end`. */
static void unplug(unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++) {
		/* Waits until the thread has opened the other end. */
		int fd = open(plug_paths[i], O_WRONLY | O_CLOEXEC);

		ck_assert_int_ge(fd, 0);
		unlink(plug_paths[i]);
		ck_assert_int_gt(write(fd, "anna:" SHA "\n", strlen("anna:" SHA "\n")), 0);
		close(fd);
	}
}

/* The same for the rest, and ends them all. */
static void release_plugs(unsigned first)
{
	unplug(first, THREADS);
	for (unsigned i = 0; i < THREADS; i++) {
		AWAIT(asks[CHECKS + 1 + i].answered == 1);
		auth_release(plugs[i]);
	}
}

/* An address of the n-th network, a different one each time. */
static void set_client(struct ask *ask, bool six, unsigned n, unsigned host)
{
	struct sockaddr_in6 *in6 = &ask->client6;

	memset(in6, 0, sizeof(*in6));
	if (six) {
		in6->sin6_family = AF_INET6;
		in6->sin6_addr.s6_addr[0] = 0x20;
		in6->sin6_addr.s6_addr[7] = (uint8_t)n;
		in6->sin6_addr.s6_addr[15] = (uint8_t)host;
	} else {
		ask->client = (struct sockaddr_in){.sin_family = AF_INET,
						   .sin_addr.s_addr = htonl(0x0a000000 + n)};
	}
}

/* Returns the number of checked passwords that were answered. */
static unsigned answers(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < CHECKS; i++)
		sum += asks[i].answered && asks[i].check.answer != AUTH_BUSY;
	return sum;
}

static unsigned all_answers(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < CHECKS; i++)
		sum += asks[i].answered;
	return sum;
}

/* Clients that guess fill the queue; another client has a place in it, and its turn. */
static void check_shares(bool six)
{
	static const unsigned guessers = 13, guesses = 20;
	struct auth *auth = open_file("anna:" SHA "\n");
	struct ask *honest = &asks[CHECKS];
	unsigned busy = 0;

	plug();
	for (unsigned i = 0; i < guessers * guesses; i++) {
		char plain[32];

		set_client(&asks[i], six, i / guesses, i);
		snprintf(plain, sizeof(plain), "anna:%u", i);
		/* Only the last ones are too many. */
		busy += put_plain(auth, &asks[i], plain) == AUTH_BUSY;
		ck_assert(asks[i].answer == AUTH_BUSY || asks[i].answer == AUTH_LATER);
	}
	ck_assert_uint_le(busy, guessers * guesses + THREADS - 256);
	set_client(honest, six, 200, 1);
	honest->others = answers;
	ck_assert_int_eq(put(auth, honest, "Basic YW5uYTpnZWhlaW0="), AUTH_LATER);
	/* One thread works, so that checks end in the order in which they begin. */
	unplug(0, 1);
	AWAIT(honest->answered == 1);
	ck_assert_int_eq(honest->check.answer, AUTH_YES);
	/* Its turn is in the first round: behind at most one check of each guesser. */
	ck_assert_uint_le(honest->before, guessers);
	release_plugs(1);
	AWAIT(all_answers() == guessers * guesses - busy);
	auth_release(auth);
}

START_TEST(test_shares)
{
	check_shares(false);
}
END_TEST

/* An IPv6 client is a /64 network: other addresses in it are the same client. */
START_TEST(test_shares_of_networks)
{
	check_shares(true);
}
END_TEST

/* Starts checks of the same credentials. */
static void put_same(struct auth *auth, const char *plain)
{
	for (unsigned i = 0; i < SAME; i++)
		ck_assert_int_eq(put_plain(auth, &asks[i], plain), AUTH_LATER);
}

/* The parts of a page: all are requested before the first answer. */
START_TEST(test_same_at_once)
{
	struct auth *auth = open_file("anna:" SHA "\nbert:" SHA "\n");

	plug();
	put_same(auth, "anna:geheim");
	/* Others, in the middle. */
	ck_assert_int_eq(put_plain(auth, &asks[SAME], "anna:geheim "), AUTH_LATER);
	ck_assert_int_eq(put_plain(auth, &asks[SAME + 1], "anna:"), AUTH_LATER);
	ck_assert_int_eq(put_plain(auth, &asks[SAME + 2], "bert:geheim"), AUTH_LATER);
	ck_assert_uint_eq(all_answers(), 0);
	release_plugs(0);
	AWAIT(all_answers() == SAME + 3);
	for (unsigned i = 0; i < SAME; i++) {
		ck_assert_int_eq(asks[i].check.answer, AUTH_YES);
		ck_assert(asks[i].home && asks[i].answered == 1);
	}
	ck_assert_int_eq(asks[SAME].check.answer, AUTH_NO);
	ck_assert_int_eq(asks[SAME + 1].check.answer, AUTH_NO);
	ck_assert_int_eq(asks[SAME + 2].check.answer, AUTH_YES);
	auth_release(auth);
}
END_TEST

/* One attempt, however often; the next one is another. */
START_TEST(test_same_wrong_at_once)
{
	struct auth *auth = open_file("anna:" SHA "\n");

	plug();
	put_same(auth, "anna:falsch");
	release_plugs(0);
	AWAIT(all_answers() == SAME);
	for (unsigned i = 0; i < SAME; i++)
		ck_assert_int_eq(asks[i].check.answer, AUTH_NO);
	for (unsigned i = 0; i < 19; i++)
		ck_assert_int_eq(answer(auth, "anna:falsch"), AUTH_NO);
	for (unsigned i = 0; answer(auth, "anna:falsch") == AUTH_NO; i++)
		ck_assert_uint_lt(i, 30);
	ck_assert_int_eq(asks[0].answer, AUTH_WAIT);
	auth_release(auth);
}
END_TEST

/* A check that is dropped in favour of another client takes with it what waits for it. */
START_TEST(test_same_dropped)
{
	static const unsigned guessers = 15, guesses = 17;
	const unsigned all = guessers * guesses;
	struct auth *auth = open_file("anna:" SHA "\n");
	unsigned busy = 0;
	char plain[32];

	plug();
	/* With those that have a thread, one is too many. */
	for (unsigned i = 0; i < all; i++) {
		set_client(&asks[i], false, i / guesses, i);
		snprintf(plain, sizeof(plain), "anna:%u", i);
		busy += put_plain(auth, &asks[i], plain) == AUTH_BUSY;
	}
	ck_assert_uint_le(busy, 1);
	/* The newest one of the first client, again. */
	set_client(&asks[all], false, 0, 0);
	snprintf(plain, sizeof(plain), "anna:%u", guesses - 1);
	ck_assert_int_eq(put_plain(auth, &asks[all], plain), AUTH_LATER);
	set_client(&asks[all + 1], false, 200, 0);
	ck_assert_int_eq(put_plain(auth, &asks[all + 1], "anna:geheim"), AUTH_LATER);
	AWAIT(asks[guesses - 1].answered == 1);
	AWAIT(asks[all].answered == 1);
	ck_assert_int_eq(asks[guesses - 1].check.answer, AUTH_BUSY);
	ck_assert_int_eq(asks[all].check.answer, AUTH_BUSY);
	release_plugs(0);
	AWAIT(all_answers() == all + 2 - busy);
	ck_assert_int_eq(asks[all + 1].check.answer, AUTH_YES);
	auth_release(auth);
}
END_TEST

/* Closed before their result: each gets an answer, once. */
START_TEST(test_same_at_close)
{
	struct auth *auth = open_file("anna:" SHA "\n");

	plug();
	put_same(auth, "anna:geheim");
	call(&runner, runner_end, &runner);
	unplug(0, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		auth_release(plugs[i]);
	auth_release(auth);
	close_all();
	for (unsigned i = 0; i < SAME; i++) {
		ck_assert_uint_eq(asks[i].answered, 1);
		ck_assert_int_eq(asks[i].check.answer, AUTH_BUSY);
	}
	set_up();
}
END_TEST

/* Many people behind one address: each is checked, and none has to wait. */
START_TEST(test_many_users)
{
	GString *text = g_string_new(NULL);
	struct auth *auth;
	char plain[32];

	for (unsigned i = 0; i < 60; i++)
		g_string_append_printf(text, "user%u:" SHA "\n", i);
	auth = open_file(text->str);
	for (unsigned i = 0; i < 60; i++) {
		snprintf(plain, sizeof(plain), "user%u:geheim", i);
		ck_assert_int_eq(answer(auth, plain), AUTH_YES);
	}
	g_string_free(text, TRUE);
	auth_release(auth);
}
END_TEST

/* Others guess, and a file cannot be read: who is remembered is answered at once, each time. */
START_TEST(test_remembered_while_busy)
{
	static const unsigned guesses = 200;
	struct auth *auth = open_file("bert:" SHA "\n"), *other;
	char plain[32], *why;
	unsigned pending = 0;
	int fd;

	ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_YES);
	other = auth_open(authenticator, path, &why);
	ck_assert_ptr_nonnull(other);
	ck_assert_int_eq(answer(other, "bert:geheim"), AUTH_YES);
	plug();
	for (unsigned i = 0; i < guesses; i++) {
		set_client(&asks[i], false, i, 0);
		snprintf(plain, sizeof(plain), "anna:%u", i);
		pending += put_plain(auth, &asks[i], plain) == AUTH_LATER;
	}
	ck_assert_uint_eq(pending, guesses);
	/* Meanwhile its file is due, and opening it waits for a writer. */
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	for (unsigned i = 0; i < 60; i++) {
		ck_assert_int_eq(put_plain(auth, &asks[CHECKS], "bert:geheim"), AUTH_YES);
		ck_assert_int_eq(put_plain(other, &asks[CHECKS], "bert:geheim"), AUTH_YES);
		poll(NULL, 0, 20);
	}
	ck_assert_uint_eq(all_answers(), 0);
	/* The look at the file is pending; what it finds counts. */
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert(g_file_set_contents(path, "carl:" SHA "\n", -1, NULL));
	ck_assert_int_gt(write(fd, "carl:" SHA "\n", strlen("carl:" SHA "\n")), 0);
	close(fd);
	while (put_plain(auth, &asks[CHECKS], "bert:geheim") == AUTH_YES &&
	       put_plain(other, &asks[CHECKS], "bert:geheim") == AUTH_YES)
		poll(NULL, 0, 1);
	release_plugs(0);
	AWAIT(all_answers() >= guesses);
	auth_release(other);
	auth_release(auth);
}
END_TEST

static void leave(void *argument)
{
	auth_leave(&((struct ask *)argument)->check);
}

/* Checks of clients that have left are not begun, and are no failures. */
START_TEST(test_left)
{
	struct auth *auth = open_file("anna:" SHA "\n");
	struct ask *honest = &asks[CHECKS];
	char plain[32];

	plug();
	for (unsigned i = 0; i < SAME; i++) {
		set_client(&asks[i], false, i % 2, i);
		snprintf(plain, sizeof(plain), "anna:%u", i / 4);
		/* Half of them are the same as another one. */
		(void)put_plain(auth, &asks[i], plain);
	}
	set_client(honest, false, 200, 1);
	ck_assert_int_eq(put(auth, honest, "Basic YW5uYTpnZWhlaW0="), AUTH_LATER);
	/* From the last on, the followers first. */
	for (unsigned i = SAME; i-- > 0;)
		if (asks[i].answer == AUTH_LATER)
			call(&runner, leave, &asks[i]);
	settle(&runner);
	SEEN(all_answers() == 0);
	release_plugs(0);
	AWAIT(honest->answered == 1);
	ck_assert_int_eq(honest->check.answer, AUTH_YES);
	for (unsigned i = 0; i < SAME; i++)
		if (asks[i].answer == AUTH_LATER)
			AWAIT(asks[i].answered == 1);
	auth_release(auth);
}
END_TEST

/* Who sends many different ones and leaves has no failures, and the queue is empty. */
START_TEST(test_left_alone)
{
	struct auth *auth = open_file("anna:" SHA "\n");
	char plain[32];

	plug();
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < 10; i++) {
			snprintf(plain, sizeof(plain), "anna:%u", round * 10 + i);
			ck_assert_int_eq(put_plain(auth, &asks[i], plain), AUTH_LATER);
		}
		/* In the middle, at the end, at the beginning. */
		for (unsigned i = 0; i < 10; i++)
			call(&runner, leave, &asks[(i * 7 + 5) % 10]);
		for (unsigned i = 0; i < 10; i++) {
			AWAIT(asks[i].answered == 1);
			ck_assert_int_eq(asks[i].check.answer, AUTH_BUSY);
		}
	}
	release_plugs(0);
	ck_assert_int_eq(answer(auth, "anna:falsch"), AUTH_NO);
	ck_assert_int_eq(answer(auth, "anna:geheim"), AUTH_YES);
	auth_release(auth);
}
END_TEST

static struct turn turn;
static unsigned disorder;

static unsigned count_answer(void)
{
	/* The first one is the check that the others follow. */
	for (unsigned i = 2; i < CHECKS; i++)
		EVENT(disorder += asks[i].answered && !asks[i - 1].answered);
	turn_count(&turn);
	return 0;
}

/* Many that wait for one check are answered in several turns, in their order. */
START_TEST(test_same_in_turns)
{
	struct auth *auth = open_file("anna:" SHA "\n");

	plug();
	turn_watch(&turn, &runner);
	for (unsigned i = 0; i < CHECKS; i++) {
		asks[i].others = count_answer;
		ck_assert_int_eq(put_plain(auth, &asks[i], "anna:falsch"), AUTH_LATER);
	}
	release_plugs(0);
	AWAIT(turn.all == CHECKS);
	SEEN(turn.most <= LOOP_QUEUED_MAX && disorder == 0);
	for (unsigned i = 0; i < CHECKS; i++)
		ck_assert_int_eq(asks[i].check.answer, AUTH_NO);
	auth_release(auth);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_guessing);
	tcase_add_test(tcase, test_busy);
	tcase_add_test(tcase, test_shares);
	tcase_add_test(tcase, test_shares_of_networks);
	tcase_add_test(tcase, test_same_at_once);
	tcase_add_test(tcase, test_same_wrong_at_once);
	tcase_add_test(tcase, test_same_in_turns);
	tcase_add_test(tcase, test_same_dropped);
	tcase_add_test(tcase, test_same_at_close);
	tcase_add_test(tcase, test_many_users);
	tcase_add_test(tcase, test_remembered_while_busy);
	tcase_add_test(tcase, test_left);
	tcase_add_test(tcase, test_left_alone);
}

RUN_SUITE("auth-clients", fill)
