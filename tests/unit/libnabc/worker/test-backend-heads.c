/* SPDX-License-Identifier: MIT */
/*
 * test-backend-heads.c - unit tests of backend.c with workers that say more than their responses.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdint.h>
#include <stdio.h>

#include "backend-fixture.h"
#include "suite.h"

static void submit_raw(uint64_t tag, const char *flags)
{
	char text[64];

	snprintf(text, sizeof(text), "FLAGS=%s", flags);
	ck_assert_int_eq(submit(0, tag, "DO=raw-records", text, NULL), 0);
}

static void check_replace(void)
{
	struct NC_response response;
	uint64_t tag;

	open_all(1, 0);
	ck_assert_int_eq(submit(0, 5, "DO=replace", NULL, NULL), 0);
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	ck_assert_uint_eq(response.flags, NC_RESPONSE_REPLACE);
	ck_assert_int_eq(response.status, 0);
	ck_assert_uint_eq(response.range_count, 0);
	ck_assert_uint_eq(tag, 0);
	/* The request is still pending, and is answered. */
	ck_assert_int_eq(submit(0, 5, "DO=echo", NULL, NULL), -1);
	ck_assert_int_eq(errno, EEXIST);
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	ck_assert_int_eq(response.status, 204);
	ck_assert_uint_eq(tag, 5);
	/* Once is enough. */
	submit_raw(6, "40");
	ck_assert_int_eq(reap(0, &tag, &response), -1);
	ck_assert_int_eq(errno, EPROTO);
	close_all();
}

START_TEST(test_replace)
{
	check_replace();
}
END_TEST

START_TEST(test_replace_posix)
{
	backend_flags = NC_BACKEND_POSIX;
	check_replace();
	backend_flags = 0;
}
END_TEST

static void check_interim(void)
{
	struct NC_response response;
	uint64_t tag;

	open_all(1, 0);
	ck_assert_int_eq(submit(0, 5, "DO=interim", NULL, NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		ck_assert_uint_eq(response.flags, NC_RESPONSE_INTERIM);
		ck_assert_int_eq(response.status, 103);
		ck_assert_uint_eq(response.headers_length, 6);
		ck_assert_mem_eq(response.headers, "A: b\r\n", 6);
		ck_assert_uint_eq(response.range_count, 0);
		ck_assert_uint_eq(tag, 5);
		/* The request is still pending. */
		ck_assert_int_eq(submit(0, 5, "DO=echo", NULL, NULL), -1);
		ck_assert_int_eq(errno, EEXIST);
	}
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	ck_assert_int_eq(response.status, 204);
	ck_assert_uint_eq(response.flags, 0);
	close_all();
}

START_TEST(test_interim)
{
	check_interim();
}
END_TEST

START_TEST(test_interim_posix)
{
	backend_flags = NC_BACKEND_POSIX;
	check_interim();
	backend_flags = 0;
}
END_TEST

static void check_trailers(void)
{
	struct NC_response response;
	uint64_t tag;

	open_all(1, 0);
	ck_assert_int_eq(submit(0, 5, "DO=trailers", NULL, NULL), 0);
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	ck_assert_int_eq(response.status, 200);
	ck_assert_int_eq(reap(0, &tag, &response), 1);
	ck_assert_uint_eq(response.flags, NC_RESPONSE_PIECE);
	ck_assert_int_eq(response.status, 0);
	ck_assert_uint_eq(response.headers_length, 6);
	ck_assert_mem_eq(response.headers, "A: b\r\n", 6);
	ck_assert_int_eq(submit(0, 5, "DO=echo", "VALUE=1", NULL), 0);
	close_all();
}

START_TEST(test_trailers)
{
	check_trailers();
}
END_TEST

START_TEST(test_trailers_posix)
{
	backend_flags = NC_BACKEND_POSIX;
	check_trailers();
	backend_flags = 0;
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_replace);
	tcase_add_test(tcase, test_replace_posix);
	tcase_add_test(tcase, test_interim);
	tcase_add_test(tcase, test_interim_posix);
	tcase_add_test(tcase, test_trailers);
	tcase_add_test(tcase, test_trailers_posix);
}

RUN_SUITE("backend-heads", fill)
