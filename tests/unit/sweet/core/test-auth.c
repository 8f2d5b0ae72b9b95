/* SPDX-License-Identifier: MIT */
/*
 * test-auth.c - unit tests of auth.c: credentials as fields, which checks are done
 * here and which by threads, files that change.
 */
#include <fcntl.h>
#include <glib.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/htpasswd.h"
#include "core/auth-check.h"
#include "core/auth-internal.h"
#include "core/auth.h"

#include "auth-fixture.h"
#include "loop-fixture.h"
#include "suite.h"

/* Sets a time of modification that is not recent. */
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
	/* The wrong ones did not affect the right ones. */
	ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_YES);
	auth_release(auth);
}
END_TEST

/* A right password is remembered and needs no thread. */
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
	ck_assert_uint_eq(here, all);
	/* For this user only, although the hashes are equal. */
	ck_assert_int_eq(answer(auth, "bert:geheim"), AUTH_YES);
	ck_assert_int_eq(asks[0].answer, AUTH_LATER);
	/* In the file of another scope or generation as well. */
	other = auth_open(authenticator, path, &why);
	ck_assert_ptr_nonnull(other);
	ck_assert_int_eq(answer(other, "carl:geheim"), AUTH_NO); /* checks the file */
	here = 0;
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_int_eq(answer(other, "anna:geheim"), AUTH_YES);
		here += asks[0].answer == AUTH_YES;
	}
	ck_assert_uint_eq(here, 100);
	auth_release(other);
	auth_release(auth);
}
END_TEST

/* For five minutes after each use, so that nobody is checked again while others guess. */
START_TEST(test_used_again)
{
	static const uint64_t minute = 60 * AUTH_SECOND_NS;
	struct auth *auth = open_file("anna:" SHA "\n");
	struct auth_check *check = &asks[0].check;

	ck_assert_int_eq(answer(auth, "anna:geheim"), AUTH_YES);
	strcpy(check->user, "anna");
	strcpy(check->password, "geheim");
	auth_remember(authenticator, SHA, check, minute);
	for (unsigned i = 1; i < 100; i += 4)
		ck_assert(auth_is_remembered(authenticator, SHA, check, i * minute));
	ck_assert(!auth_is_remembered(authenticator, SHA, check, 103 * minute));
	ck_assert(!auth_is_remembered(authenticator, SHA, check, 103 * minute));
	auth_release(auth);
}
END_TEST

/* Repeats until the file was checked again and the answer is as expected. */
static void until(struct auth *auth, const char *plain, enum auth_answer wanted)
{
	for (unsigned i = 0; i < 600; i++) {
		if (answer(auth, plain) == wanted)
			return;
		/* Failures count for others instead of this client. */
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
	/* An invalid line, or a missing file, changes nothing. */
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

/* A hash that this crypt(3) does not support rejects everybody. */
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
	tcase_add_test(tcase, test_used_again);
	tcase_add_test(tcase, test_changes);
	tcase_add_test(tcase, test_open_errors);
	tcase_add_test(tcase, test_unknown_form);
	tcase_add_test(tcase, test_challenge);
}

RUN_SUITE("auth", fill)
