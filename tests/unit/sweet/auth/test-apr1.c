/* SPDX-License-Identifier: MIT */
/*
 * test-apr1.c - unit tests of apr1.c, against the output of other programs
 * (openssl-passwd(1), htpasswd(1)).
 */
#include <string.h>

#include "auth/apr1.h"

#include "suite.h"

START_TEST(test_known)
{
	static const struct {
		const char *password, *hash;
	} cases[] = {
		{"geheim", "$apr1$iHINf4B6$eb9IWmliR8ThvscuHGukk/"},
		{"", "$apr1$abcd$xc0GS6mcK/RPjawIVUTD1/"},
		{"grün 0123456789", "$apr1$ab$cYI.6ZLhG8CNLNWIhIDCH/"},
		{"16bytes-password", "$apr1$zzzz$WJi0JYLzPVfUxnzkJ04Iy0"},
		{"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		 "$apr1$12345678$Sts/Rx9VoFbtT8exXh3AJ/"},
	};
	char made[APR1_MAX];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		apr1_crypt(cases[i].password, cases[i].hash, made);
		ck_assert_str_eq(made, cases[i].hash);
		ck_assert_uint_lt(strlen(made), APR1_MAX);
	}
}
END_TEST

START_TEST(test_salt)
{
	char made[APR1_MAX], other[APR1_MAX];

	/* At most eight characters count, and nothing overflows. */
	apr1_crypt("geheim", "$apr1$12345678", made);
	apr1_crypt("geheim", "$apr1$123456789$x", other);
	ck_assert_str_eq(made, other);
	ck_assert_uint_eq(strlen(made), APR1_MAX - 1);
	apr1_crypt("geheim", "$apr1$", made);
	ck_assert_str_ne(made, other);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_known);
	tcase_add_test(tcase, test_salt);
}

RUN_SUITE("apr1", fill)
