/* SPDX-License-Identifier: MIT */
/*
 * test-ctl.c - unit tests of ctl.c and of the text functions of ctl-show.c: words that
 * are numbers or names, and what must not reach a terminal.
 */
#include <errno.h>
#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <nabc.h>

#include "ctl-show.h"

#include "ctl.h"
#include "suite.h"

START_TEST(test_ids)
{
	static const char *const wrong[] = {
		"",
		"0",
		"0x",
		"0x0",
		"x1",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1.0",
		"0xg",
		"0x0x1",
		"0x-1",
		"18446744073709551616",
		"one",
		"1x",
		"0x 1",
		("\xff"
		 "1"),
	};
	size_t id = 7;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_msg(!ctl_read_id(wrong[i], &id), "%s", wrong[i]);
		ck_assert_uint_eq(id, 7);
	}
	ck_assert(ctl_read_id("1", &id) && id == 1);
	ck_assert(ctl_read_id("010", &id) && id == 10);
	ck_assert(ctl_read_id("0xfF", &id) && id == 255);
	ck_assert(ctl_read_id("0X10000000", &id) && id == 1 << 28);
	ck_assert(ctl_read_id("18446744073709551615", &id) && id == SIZE_MAX);
	ck_assert(ctl_read_id("0xffffffffffffffff", &id) && id == SIZE_MAX);
}
END_TEST

START_TEST(test_sizes)
{
	static const char *const wrong[] = {"", "-1", "0x10", "1K", "1e3", "18446744073709551616"};
	uint64_t size = 7;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_msg(!ctl_read_size(wrong[i], &size), "%s", wrong[i]);
		ck_assert_uint_eq(size, 7);
	}
	ck_assert(ctl_read_size("0", &size) && size == 0);
	ck_assert(ctl_read_size("18446744073709551615", &size) && size == UINT64_MAX);
}
END_TEST

START_TEST(test_printable)
{
	static const struct {
		const char *given, *wanted;
	} cases[] = {
		{"", ""},
		{"refused: EPERM", "refused: EPERM"},
		{"\x1b]0;title\x07\r\n\x7f", "?]0;title????"},
		{"\u00fc\xc2\x9b"
		 "2J",
		 "\u00fc??2J"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *got = ctl_printable(cases[i].given);

		ck_assert_str_eq(got, cases[i].wanted);
		g_free(got);
	}
}
END_TEST

START_TEST(test_stay)
{
	static const struct {
		const char *word;
		uint64_t wanted;
	} right[] = {{"0", 0},	    {"0.0", 0},	   {"60", 60000},
		     {"1.5", 1500}, {"0.0001", 1}, {"1e3", 1000000}};
	static const char *const wrong[] = {"", " 1", "-1", "+1", "1 ", "1s", "inf", "nan", "1e99"};
	static const char *const ranks[] = {"low", "normal", "high", "pinned"};
	struct ctl ctl = {0};

	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		struct ctl_stay stay = {.seconds = (char *)right[i].word};

		ck_assert_int_eq(ctl_stay_check(&ctl, &stay), 0);
		ck_assert_uint_eq(stay.milliseconds, right[i].wanted);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct ctl_stay stay = {.seconds = (char *)wrong[i]};

		ck_assert_int_eq(ctl_stay_check(&ctl, &stay), CTL_USAGE);
	}
	for (unsigned i = 0; i < 4; i++) {
		struct ctl_stay stay = {.priority = (char *)ranks[i]};

		ck_assert_int_eq(ctl_stay_check(&ctl, &stay), 0);
		ck_assert_int_eq(stay.rank, (int)i);
	}
}
END_TEST

/* --- principals --------------------------------------------------------------- */

static unsigned calls;
static enum NC_principal principals[8];
static id_t whom[8];

static int note(NC_cache *cache, size_t id, enum NC_principal principal, id_t who)
{
	ck_assert_ptr_null(cache);
	ck_assert_uint_eq(id, 42);
	principals[calls] = principal;
	whom[calls++] = who;
	errno = ENOSPC;
	return calls == 5 ? -1 : 0;
}

START_TEST(test_principals)
{
	char *pids[] = {"1", "2147483647", NULL}, *users[] = {"root", "4294967294", NULL};
	char *groups[] = {"root", "0", NULL};
	struct ctl_principals given = {.words = {pids, users, groups}}, none = {{NULL}};
	struct ctl ctl = {0};

	ck_assert_uint_eq(ctl_principals_count(&none), 0);
	ck_assert_int_eq(ctl_principals_check(&ctl, &none), 0);
	ck_assert_int_eq(ctl_principals_each(&ctl, &none, 42, note), 0);
	ck_assert_uint_eq(calls, 0);
	ck_assert_uint_eq(ctl_principals_count(&given), 6);
	ck_assert_int_eq(ctl_principals_check(&ctl, &given), 0);
	/* The fifth call fails, and the loop ends there. */
	ck_assert_int_eq(ctl_principals_each(&ctl, &given, 42, note), CTL_FAILURE);
	ck_assert_uint_eq(calls, 5);
	ck_assert_int_eq(principals[0], NC_PROCESS);
	ck_assert_uint_eq(whom[0], 1);
	ck_assert_uint_eq(whom[1], INT32_MAX);
	ck_assert_int_eq(principals[2], NC_USER);
	ck_assert_uint_eq(whom[2], 0);
	ck_assert_uint_eq(whom[3], UINT32_MAX - 1);
	ck_assert_int_eq(principals[4], NC_GROUP);
	ck_assert_uint_eq(whom[4], 0);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_ids);
	tcase_add_test(tcase, test_sizes);
	tcase_add_test(tcase, test_printable);
	tcase_add_test(tcase, test_stay);
	tcase_add_test(tcase, test_principals);
}

RUN_SUITE("ctl", fill)
