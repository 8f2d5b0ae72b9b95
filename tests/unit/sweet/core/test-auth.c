/* SPDX-License-Identifier: MIT */
/*
 * test-auth.c - unit tests of auth.c: credentials as fields, what is checked
 * here and what elsewhere, files that change, clients that guess.
 */
#include <glib.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "core/auth.h"

#include "loop-fixture.h"

/* Both of the password "geheim". */
#define SHA "{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk="
#define CRYPT "$1$abcd$SA/FcM82AK5uXDR69GPXS0"
#define CHECKS 300
#define THREADS 2 /* of the authenticator */

struct ask {
	struct auth_check check; /* must be first */
	struct auth *auth;
	union {
		struct sockaddr_in client;
		struct sockaddr_in6 client6;
	};
	struct slice field;
	unsigned (*others)(void); /* how many answers others have, into before */
	unsigned before;
	enum auth_answer answer; /* given at once */
	unsigned answered;
	bool home; /* on the loop's thread */
};

static struct runner runner;
static struct client_limits *limits;
static struct authenticator *authenticator;
static struct ask asks[CHECKS + 1 + THREADS];
static char directory[64], path[80];

static void set_up(void)
{
	make_directory(directory);
	snprintf(path, sizeof(path), "%s/users", directory);
	limits = client_limits_open(1024);
	authenticator = authenticator_open(limits);
	ck_assert_ptr_nonnull(authenticator);
	runner_start(&runner, any_kind());
}

static void tear_down(void)
{
	call(&runner, runner_end, &runner);
	pthread_join(runner.thread, NULL);
	/* Its threads may yet be about to wake the loop. */
	authenticator_close(authenticator);
	loop_close(runner.loop);
	close(runner.ends[1]);
	client_limits_close(limits);
	unlink(path);
	rmdir(directory);
}

static void write_file(const char *text)
{
	ck_assert(g_file_set_contents(path, text, -1, NULL));
}

static struct auth *open_file(const char *text)
{
	struct auth *auth;
	char *why;

	write_file(text);
	auth = auth_open(authenticator, path, &why);
	ck_assert_msg(auth != NULL, "%s", why);
	return auth;
}

static void answered(struct auth_check *check)
{
	struct ask *ask = (struct ask *)check;

	ask->home = pthread_equal(pthread_self(), runner.thread);
	if (ask->others)
		ask->before = ask->others();
	EVENT(ask->answered++);
}

static void ask_now(void *argument)
{
	struct ask *ask = argument;

	ask->check.loop = runner.loop;
	ask->check.answered = answered;
	ask->answered = 0;
	ask->answer =
		auth_ask(ask->auth, &ask->check, (const struct sockaddr *)&ask->client, ask->field);
}

/* Asks with a field of that value. */
static enum auth_answer put(struct auth *auth, struct ask *ask, const char *field)
{
	ask->auth = auth;
	if (!ask->client.sin_family)
		ask->client = (struct sockaddr_in){.sin_family = AF_INET,
						   .sin_addr.s_addr = htonl(0xc0000201)};
	ask->field = (struct slice){field, strlen(field)};
	call(&runner, ask_now, ask);
	return ask->answer;
}

/* The answer in the end, for user and password in plain. */
static enum auth_answer answer(struct auth *auth, const char *plain)
{
	char *encoded = g_base64_encode((const guchar *)plain, strlen(plain));
	char *field = g_strconcat("Basic ", encoded, NULL);
	struct ask *ask = &asks[0];

	if (put(auth, ask, field) == AUTH_LATER)
		AWAIT(ask->answered == 1);
	g_free(encoded);
	g_free(field);
	return ask->check.answer;
}

/* Other numbers than those of times that are still moving. */
static void age_file(time_t when)
{
	struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};

	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

START_TEST(test_fields)
{
	/* anna:geheim */
	static const struct {
		const char *field;
		bool good;
	} cases[] = {
		{"Basic YW5uYTpnZWhlaW0=", true},
		{"basic YW5uYTpnZWhlaW0=", true},
		{"BASIC   YW5uYTpnZWhlaW0=", true},
		{"", false},
		{"Basic", false},
		{"Basic ", false},
		{"BasicYW5uYTpnZWhlaW0=", false},
		{"Bearer YW5uYTpnZWhlaW0=", false},
		{"Basic YW5uYTpnZWhlaW0", false},
		{"Basic YW5uYTpnZWhlaW0==", false},
		{"Basic YW5uYTpnZWhlaW0= ", false},
		{"Basic YW5uYTpn ZWhlaW0=", false},
		{"Basic =W5uYTpnZWhlaW0=", false},
		{"Basic ====", false},
		{"Basic YW5uYTpnZWhlaW0=YW5uYTpnZWhlaW0=", false},
		{"Basic YW5uYQ==", false},	   /* no colon */
		{"Basic YW5uYTpnZWhlaW0A", false}, /* a NUL at the end */
		{"Basic OmdlaGVpbQ==", false},	   /* no name */
	};
	struct auth *auth = open_file("anna:" SHA "\n");
	char *longest;

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		asks[0].client = (struct sockaddr_in){.sin_family = AF_INET,
						      .sin_addr.s_addr = htonl(0xc0000201 + i)};
		if (put(auth, &asks[0], cases[i].field) == AUTH_LATER)
			AWAIT(asks[0].answered == 1);
		ck_assert_msg((asks[0].check.answer == AUTH_YES) == cases[i].good, "%s",
			      cases[i].field);
		ck_assert_msg(asks[0].check.answer <= AUTH_NO, "%s", cases[i].field);
	}
	ck_assert_int_eq(answer(auth, "anna:geheim"), AUTH_YES);
	ck_assert_str_eq(asks[0].check.user, "anna");
	longest = g_strdup_printf("anna:%0*d", AUTH_PASSWORD_MAX, 7);
	ck_assert_int_eq(answer(auth, longest), AUTH_NO);
	ck_assert_str_eq(asks[0].check.user, "anna");
	g_free(longest);
	longest = g_strdup_printf("anna:%0*d", AUTH_PASSWORD_MAX + 1, 7);
	ck_assert_int_eq(answer(auth, longest), AUTH_NO);
	ck_assert_str_eq(asks[0].check.user, "");
	g_free(longest);
	longest = g_strdup_printf("%0*d:", HTPASSWD_USER_MAX + 1, 7);
	ck_assert_int_eq(answer(auth, longest), AUTH_NO);
	ck_assert_str_eq(asks[0].check.user, "");
	g_free(longest);
	longest = g_strdup_printf("anna:%05000d", 7);
	ck_assert_int_eq(answer(auth, longest), AUTH_NO);
	g_free(longest);
	auth_release(auth);
}
END_TEST

START_TEST(test_answers)
{
	struct auth *auth = open_file("anna:" SHA "\nbert:" CRYPT "\n");

	ck_assert_int_eq(answer(auth, "anna:geheim"), AUTH_YES);
	ck_assert(asks[0].home);
	ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_YES);
	ck_assert_int_eq(answer(auth, "bert:geheim:"), AUTH_NO);
	ck_assert_int_eq(answer(auth, "anna:"), AUTH_NO);
	ck_assert_int_eq(answer(auth, "anna:Geheim"), AUTH_NO);
	ck_assert_int_eq(answer(auth, "carl:geheim"), AUTH_NO);
	ck_assert_int_eq(answer(auth, ":geheim"), AUTH_NO);
	/* The wrong ones have done no harm to the right ones. */
	ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_YES);
	auth_release(auth);
}
END_TEST

/* What was right once is answered without a thread, but for the look at the file. */
START_TEST(test_remembered)
{
	struct auth *auth = open_file("anna:" SHA "\nbert:" SHA "\n");
	struct auth *other;
	unsigned here = 0, all = scaled(2000);
	char *why;

	ck_assert_int_eq(answer(auth, "anna:geheim"), AUTH_YES);
	for (unsigned i = 0; i < all; i++) {
		ck_assert_int_eq(answer(auth, "anna:geheim"), AUTH_YES);
		here += asks[0].answer == AUTH_YES;
	}
	/* One in a second, and so slow is nobody. */
	ck_assert_uint_ge(here, all - all / 4);
	/* For this user alone, although the hashes are the same. */
	ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_YES);
	ck_assert_int_eq(asks[0].answer, AUTH_LATER);
	/* In the file of another scope or generation as well. */
	other = auth_open(authenticator, path, &why);
	ck_assert_ptr_nonnull(other);
	ck_assert_int_eq(answer(other, "carl:geheim"), AUTH_NO); /* looks at the file */
	here = 0;
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_int_eq(answer(other, "anna:geheim"), AUTH_YES);
		here += asks[0].answer == AUTH_YES;
	}
	ck_assert_uint_ge(here, 50);
	auth_release(other);
	auth_release(auth);
}
END_TEST

/* Asks until the file was looked at again and the answer is as wanted. */
static void until(struct auth *auth, const char *plain, enum auth_answer wanted)
{
	for (unsigned i = 0; i < 600; i++) {
		if (answer(auth, plain) == wanted)
			return;
		/* Others fail instead of this client. */
		asks[0].client.sin_addr.s_addr = htonl(0x0a000000 + i);
		poll(NULL, 0, 50);
	}
	ck_abort_msg("%s: not in half a minute", plain);
}

START_TEST(test_changes)
{
	struct auth *auth = open_file("anna:" SHA "\n");

	ck_assert_int_eq(answer(auth, "anna:geheim"), AUTH_YES);
	ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_NO);
	/* Another user instead. */
	write_file("bert:" SHA "\n");
	until(auth, "bert:geheim", AUTH_YES);
	ck_assert_int_eq(answer(auth, "anna:geheim"), AUTH_NO);
	/* A bad line, and no file at all, change nothing. */
	write_file("carl:geheim\n");
	age_file(1000);
	for (unsigned i = 0; i < 25; i++) {
		ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_YES);
		poll(NULL, 0, 50);
	}
	unlink(path);
	for (unsigned i = 0; i < 25; i++) {
		ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_YES);
		poll(NULL, 0, 50);
	}
	/* The same user with another password. */
	write_file("bert:$apr1$abcd$xc0GS6mcK/RPjawIVUTD1/\n");
	until(auth, "bert:", AUTH_YES);
	ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_NO);
	auth_release(auth);
}
END_TEST

/* Who guesses must wait, others need not, and right passwords cost nothing. */
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
	/* Not even a right one is looked at, unless it is remembered. */
	ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_WAIT);
	ck_assert_int_eq(answer(auth, "anna:geheim"), AUTH_YES);
	asks[0].client.sin_addr.s_addr++;
	ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_YES);
	auth_release(auth);
}
END_TEST

/* A flood from everywhere: so many may wait for a thread, the rest is told to come again. */
START_TEST(test_busy)
{
	/* A form that takes its time; under Valgrind the quickest does. */
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
	/* Closed with most of them waiting: each has its answer, once. */
	tear_down();
	for (unsigned i = 0; i < CHECKS; i++)
		ck_assert_uint_eq(asks[i].answered, asks[i].answer == AUTH_LATER);
	set_up();
}
END_TEST

/* Threads that wait for a file are busy until the test lets them go on. */
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

static void unplug(void)
{
	for (unsigned i = 0; i < THREADS; i++) {
		/* Waits until the thread has opened the other end. */
		int fd = open(plug_paths[i], O_WRONLY | O_CLOEXEC);

		ck_assert_int_ge(fd, 0);
		unlink(plug_paths[i]);
		ck_assert_int_gt(write(fd, "anna:" SHA "\n", strlen("anna:" SHA "\n")), 0);
		close(fd);
	}
}

/* An address of the n-th network, another one of it each time. */
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

/* Of passwords that were looked at. */
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

/* Clients that guess fill the queue; another one has a place in it, and its turn. */
static void check_shares(bool six)
{
	static const unsigned guessers = 13, guesses = 20;
	struct auth *auth = open_file("anna:" SHA "\n");
	struct ask *honest = &asks[CHECKS];
	unsigned busy = 0;

	plug();
	for (unsigned i = 0; i < guessers * guesses; i++) {
		set_client(&asks[i], six, i / guesses, i);
		/* Of them the last ones are too many. */
		busy += put(auth, &asks[i], "Basic YW5uYTpmYWxzY2g=") == AUTH_BUSY;
		ck_assert(asks[i].answer == AUTH_BUSY || asks[i].answer == AUTH_LATER);
	}
	ck_assert_uint_le(busy, guessers * guesses + THREADS - 256);
	set_client(honest, six, 200, 1);
	honest->others = answers;
	ck_assert_int_eq(put(auth, honest, "Basic YW5uYTpnZWhlaW0="), AUTH_LATER);
	unplug();
	/* In the first round: one of each guesser may be before it, and what threads have meanwhile. */
	AWAIT(honest->answered == 1);
	ck_assert_int_eq(honest->check.answer, AUTH_YES);
	ck_assert_uint_le(honest->before, guessers + 2 * THREADS);
	AWAIT(all_answers() == guessers * guesses - busy);
	for (unsigned i = 0; i < THREADS; i++) {
		AWAIT(asks[CHECKS + 1 + i].answered == 1);
		auth_release(plugs[i]);
	}
	auth_release(auth);
}

START_TEST(test_shares)
{
	check_shares(false);
}
END_TEST

/* One of IPv6 is a /64: other addresses in it are no other clients. */
START_TEST(test_shares_of_networks)
{
	check_shares(true);
}
END_TEST

/* Of a house full of people behind one address each is checked, and none has to wait. */
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

START_TEST(test_open_errors)
{
	char *why;

	ck_assert_ptr_null(auth_open(authenticator, path, &why));
	ck_assert_ptr_nonnull(strstr(why, "No such file"));
	g_free(why);
	write_file("# users\nanna\n");
	ck_assert_ptr_null(auth_open(authenticator, path, &why));
	ck_assert_ptr_nonnull(strstr(why, "users:2: "));
	g_free(why);
	auth_release(NULL);
	authenticator_close(NULL);
}
END_TEST

/* A form that this crypt(3) does not know lets nobody in. */
START_TEST(test_unknown_form)
{
	struct auth *auth = open_file("anna:$gy$nonsense\n");

	ck_assert_int_eq(answer(auth, "anna:geheim"), AUTH_NO);
	ck_assert_int_eq(answer(auth, "anna:"), AUTH_NO);
	auth_release(auth);
}
END_TEST

START_TEST(test_challenge)
{
	static const struct {
		const char *realm, *field;
	} cases[] = {
		{"", "WWW-Authenticate: Basic realm=\"\", charset=\"UTF-8\"\r\n"},
		{"The \"inner\" \\ circle",
		 "WWW-Authenticate: Basic realm=\"The \\\"inner\\\" \\\\ circle\", "
		 "charset=\"UTF-8\"\r\n"},
		{"a\r\nb\x7f"
		 "c",
		 "WWW-Authenticate: Basic realm=\"a  b c\", charset=\"UTF-8\"\r\n"},
		{"Größe", "WWW-Authenticate: Basic realm=\"Größe\", charset=\"UTF-8\"\r\n"},
	};
	char out[200];

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		size_t length = auth_challenge(cases[i].realm, out, sizeof(out));

		ck_assert_uint_eq(length, strlen(cases[i].field));
		ck_assert_mem_eq(out, cases[i].field, length);
	}
	ck_assert_uint_eq(auth_challenge("realm", out, 60), 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_fields);
	tcase_add_test(tcase, test_answers);
	tcase_add_test(tcase, test_remembered);
	tcase_add_test(tcase, test_changes);
	tcase_add_test(tcase, test_guessing);
	tcase_add_test(tcase, test_busy);
	tcase_add_test(tcase, test_shares);
	tcase_add_test(tcase, test_shares_of_networks);
	tcase_add_test(tcase, test_many_users);
	tcase_add_test(tcase, test_open_errors);
	tcase_add_test(tcase, test_unknown_form);
	tcase_add_test(tcase, test_challenge);
}

RUN_SUITE("auth", fill)
