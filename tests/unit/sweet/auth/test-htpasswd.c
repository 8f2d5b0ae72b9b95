/* SPDX-License-Identifier: MIT */
/*
 * test-htpasswd.c - unit tests of htpasswd.c: every form of hash, as other programs
 * write it; valid and invalid files.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "auth/htpasswd.h"

#include "suite.h"

/* All of the password "geheim". */
static const char *const hashes[] = {
	"$apr1$iHINf4B6$eb9IWmliR8ThvscuHGukk/",
	"$1$abcd$SA/FcM82AK5uXDR69GPXS0",
	"$5$9CPwFuAQSeubrrnZ$.A62ldsMjswmPePhX3uM0X9GFvz12Gx0RdEXaAf7212",
	"$5$rounds=1000$abcdefgh$gzXh90B7DNRvED/UqfwXC2mPTZTEIhQ4YZOYqKQr2k7",
	("$6$rounds=1000$abcdefgh$hNWV3710B01PtGd5gYCv63YkS8oo9IIeqTEUJHviy9fvppwU3reFqFFBfxg/"
	 "qZSYskUYQ.RC.dFh9YoQLVC2L."),
	"$2y$04$abcdefghijklmnopqrstuuPWRtT5yx7FBi4dcf6ROhboeNunUrLQ.",
	"$2b$04$abcdefghijklmnopqrstuuPWRtT5yx7FBi4dcf6ROhboeNunUrLQ.",
	"$2y$05$y05dGWN.f1t7MHCaRWCZp.Xwkg/Q7Zeztv/Wcdz7UhCYXqOJxdY1G",
	"$y$j75$abcdefgh$BNDMLQXNfxYvp1kwneELSFVpSGYRoN6/y0Pa9exxy//",
	"{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=",
	"{SSHA}2Hv+WkhaRq35eiwps2Po39ZGEzpzYWx6",
	"XpJsnzNP05jTM",
};

#define HASHES (sizeof(hashes) / sizeof(hashes[0]))

static struct htpasswd *parse(const char *text, char **why)
{
	return htpasswd_parse("users", text, strlen(text), why);
}

START_TEST(test_forms)
{
	char *line = g_strdup_printf("u:%s\n", hashes[_i]);
	char *changed = g_strdup(hashes[_i]), *why;
	struct htpasswd *file = parse(line, &why);

	ck_assert_msg(file != NULL, "%s", why);
	ck_assert_str_eq(htpasswd_find(file, "u"), hashes[_i]);
	ck_assert_int_eq(htpasswd_verify(hashes[_i], "geheim"), 0);
	ck_assert_int_eq(htpasswd_verify(hashes[_i], "geheiM"), -EACCES);
	ck_assert_int_eq(htpasswd_verify(hashes[_i], "gehei"), -EACCES);
	ck_assert_int_eq(htpasswd_verify(hashes[_i], ""), -EACCES);
	changed[strlen(changed) / 2 + 3] ^= 1;
	ck_assert_int_ne(htpasswd_verify(changed, "geheim"), 0);
	htpasswd_release(file);
	g_free(changed);
	g_free(line);
}
END_TEST

START_TEST(test_unknown_form)
{
	ck_assert_int_eq(htpasswd_verify("$nobody$knows", "geheim"), -ENOTSUP);
	ck_assert_int_eq(htpasswd_verify("$6$", "geheim"), -EACCES);
	ck_assert_int_eq(htpasswd_verify("{SHA}", ""), -EACCES);
	ck_assert_int_eq(htpasswd_verify("{SSHA}AAAA", ""), -EACCES);
}
END_TEST

START_TEST(test_file)
{
	static const char text[] = "# users\n"
				   "\n"
				   "   \n"
				   "anna:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=\r\n"
				   "bert:$1$abcd$SA/FcM82AK5uXDR69GPXS0:Bert B.:more\n"
				   "carl der große:XpJsnzNP05jTM  \n"
				   "#dora:XpJsnzNP05jTM\n"
				   "emil:XpJsnzNP05jTM";
	char *why;
	struct htpasswd *file = parse(text, &why);

	ck_assert_msg(file != NULL, "%s", why);
	ck_assert_str_eq(htpasswd_find(file, "anna"), "{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=");
	ck_assert_str_eq(htpasswd_find(file, "bert"), "$1$abcd$SA/FcM82AK5uXDR69GPXS0");
	ck_assert_str_eq(htpasswd_find(file, "carl der große"), "XpJsnzNP05jTM");
	ck_assert_str_eq(htpasswd_find(file, "emil"), "XpJsnzNP05jTM");
	ck_assert_ptr_null(htpasswd_find(file, "dora"));
	ck_assert_ptr_null(htpasswd_find(file, "#dora"));
	ck_assert_ptr_null(htpasswd_find(file, "Anna"));
	ck_assert_ptr_null(htpasswd_find(file, ""));
	ck_assert_ptr_eq(htpasswd_any(file), htpasswd_find(file, "anna"));
	ck_assert_ptr_eq(htpasswd_hold(file), file);
	htpasswd_release(file);
	ck_assert_ptr_nonnull(htpasswd_find(file, "anna"));
	htpasswd_release(file);
	htpasswd_release(NULL);
	file = parse("", &why);
	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_null(htpasswd_any(file));
	htpasswd_release(file);
}
END_TEST

START_TEST(test_errors)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"anna\n", "users:1: there must be USER:HASH"},
		{"# a\n\nanna:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhzk=\nbert\n", "users:4: there must be"},
		{":XpJsnzNP05jTM\n", "users:1: the user's name is missing"},
		{"a:XpJsnzNP05jTM\nb:XpJsnzNP05jTM\na:XpJsnzNP05jTM",
		 "users:3: this user already has"},
		{"a:\n", "users:1: the format of the password is unknown"},
		{"a:geheim\n", "users:1: the format of the password is unknown"},
		{"a:geheim\n", "htpasswd -B"},
		{"a:$\n", "format of the password is unknown"},
		{"a:$1$\n", "format of the password is unknown"},
		{"a:$99$salt$hash\n", "format of the password is unknown"},
		{"a:$apr1$salt\n", "format of the password is unknown"},
		{"a:$apr1$salt$short\n", "format of the password is unknown"},
		{"a:$apr1$saltsalts$eb9IWmliR8ThvscuHGukk/\n", "format of the password is unknown"},
		{"a:{SHA}kGByAB793z4R5tK1eC9Hd/4Dhz=\n", "format of the password is unknown"},
		{"a:{SHA}kGByAB793z4R5tK1eC9Hd/4D\n", "format of the password is unknown"},
		{"a:{SHA}kGByAB793z4R5tK1eC9Hd!4Dhzk=\n", "format of the password is unknown"},
		{"a:{SSHA}kGByAB793z4R5tK1eC9Hdw==\n", "format of the password is unknown"},
		{"a:{PLAIN}geheim\n", "format of the password is unknown"},
		{"a:XpJsnzNP05jT!\n", "format of the password is unknown"},
		{"a:*\n", "format of the password is unknown"},
	};
	char name[HTPASSWD_USER_MAX + 2], *text, *why;
	struct htpasswd *file;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		why = NULL;
		ck_assert_ptr_null(parse(cases[i].text, &why));
		ck_assert_msg(strstr(why, cases[i].says) != NULL, "%s: %s", cases[i].text, why);
		g_free(why);
	}
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	for (unsigned more = 0; more < 2; more++) {
		text = g_strdup_printf("%s:XpJsnzNP05jTM", name + 1 - more);
		file = parse(text, &why);
		ck_assert((file != NULL) == (more == 0));
		if (more)
			ck_assert_ptr_nonnull(strstr(why, "longer than 127"));
		g_free(why);
		g_free(text);
		htpasswd_release(file);
	}
	ck_assert_ptr_null(htpasswd_parse("users", "a:XpJsn\0zNP05jTM\n", 17, &why));
	ck_assert_str_eq(why, "users:1: the line has a NUL byte in it");
	g_free(why);
}
END_TEST

START_TEST(test_read)
{
	char directory[64], *path, *why;
	struct htpasswd *file;

	make_directory(directory);
	path = g_strdup_printf("%s/users", directory);
	ck_assert_ptr_null(htpasswd_read(path, &why));
	ck_assert_ptr_nonnull(strstr(why, path));
	ck_assert_ptr_nonnull(strstr(why, "No such file"));
	g_free(why);
	ck_assert(g_file_set_contents(path, "a:XpJsnzNP05jTM\n", -1, NULL));
	file = htpasswd_read(path, &why);
	ck_assert_msg(file != NULL, "%s", why);
	ck_assert_str_eq(htpasswd_find(file, "a"), "XpJsnzNP05jTM");
	htpasswd_release(file);
	ck_assert(g_file_set_contents(path, "\na:b\n", -1, NULL));
	ck_assert_ptr_null(htpasswd_read(path, &why));
	ck_assert(g_str_has_prefix(why, path));
	ck_assert_ptr_nonnull(strstr(why, "users:2: the format of the password"));
	g_free(why);
	ck_assert_int_eq(truncate(path, HTPASSWD_FILE_MAX + 1), 0);
	ck_assert_ptr_null(htpasswd_read(path, &why));
	ck_assert_ptr_nonnull(strstr(why, "16777216 bytes"));
	g_free(why);
	unlink(path);
	rmdir(directory);
	g_free(path);
}
END_TEST

START_TEST(test_equal)
{
	ck_assert(htpasswd_equal("abc", "abc", 3));
	ck_assert(htpasswd_equal("abc", "xyz", 0));
	for (unsigned i = 0; i < 3; i++) {
		char other[4] = "abc";

		other[i] ^= 0x80;
		ck_assert(!htpasswd_equal("abc", other, 3));
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_forms, 0, HASHES);
	tcase_add_test(tcase, test_unknown_form);
	tcase_add_test(tcase, test_file);
	tcase_add_test(tcase, test_errors);
	tcase_add_test(tcase, test_read);
	tcase_add_test(tcase, test_equal);
}

RUN_SUITE("htpasswd", fill)
