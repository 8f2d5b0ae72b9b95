/* SPDX-License-Identifier: MIT */
/*
 * test-client-requests.c - unit tests of bench/load/client-requests.c and
 * bench/load/client-workload-list.c: valid and invalid lists, and the order in which
 * the clients request.
 */
#include <client-requests.h>
#include <client-workload.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"

static const struct request_form form = {.host = "h:1", .fields = "A: b\r\n"};
static struct requests requests;

static int read_text(const char *text, size_t length, uint32_t *line)
{
	FILE *file = fmemopen((void *)text, length, "r");
	int error;

	ck_assert_ptr_nonnull(file);
	error = requests_read(&requests, &form, file, line);
	fclose(file);
	return error;
}

static const struct request *nth(uint32_t at)
{
	return &requests.made[requests.order[at]];
}

START_TEST(test_list)
{
	static const char text[] = "# comment\n\n/a 10\n/b - 404\r\n  /a\t10\n/a\n/a 10 304\n/c 0";
	uint32_t line;

	ck_assert_int_eq(read_text(text, strlen(text), &line), 0);
	ck_assert_uint_eq(requests.count, 6);
	ck_assert_uint_eq(requests.made_count, 5); /* one path occurs twice */
	ck_assert_ptr_eq(nth(0), nth(2));
	ck_assert_str_eq(nth(0)->text, "GET /a HTTP/1.1\r\nHost: h:1\r\nA: b\r\n\r\n");
	ck_assert_uint_eq(nth(0)->length, strlen(nth(0)->text));
	ck_assert_uint_eq(nth(0)->size, 10);
	ck_assert_uint_eq(nth(0)->status, 200);
	ck_assert_uint_eq(nth(1)->size, REQUEST_SIZE_ANY);
	ck_assert_uint_eq(nth(1)->status, 404);
	ck_assert_uint_eq(nth(3)->size, REQUEST_SIZE_ANY);
	ck_assert_uint_eq(nth(4)->status, 304);
	ck_assert_uint_eq(nth(5)->size, 0);
	requests_free(&requests);
}
END_TEST

START_TEST(test_close)
{
	const struct request_form closing = {.host = "h:1", .fields = "", .close = true};

	ck_assert_int_eq(requests_add(&requests, &closing, "/", 1, 200), 0);
	ck_assert_str_eq(nth(0)->text, "GET / HTTP/1.0\r\nHost: h:1\r\n\r\n");
	requests_free(&requests);
}
END_TEST

START_TEST(test_bad_lines)
{
	static const char *const bad[] = {
		"a 1",	 "/a -1",    "/a 1x",	   "/a 1 99",
		"/a +1", "/a 1 600", "/a 1 200 x", "/a 99999999999999999999",
		"/\x80", "http://a/"};
	uint32_t line;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[64];

		snprintf(text, sizeof(text), "/fine 1\n%s\n/fine 2\n", bad[i]);
		ck_assert_msg(read_text(text, strlen(text), &line) == -EBADMSG, "%s", bad[i]);
		ck_assert_uint_eq(line, 2);
		requests_free(&requests);
	}
	/* A null byte does not end a line. */
	ck_assert_int_eq(read_text("/a\0b 1\n", 7, &line), -EBADMSG);
	requests_free(&requests);
}
END_TEST

/* Enough objects to make all tables grow. */
static void make_many(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/%u", i % (count / 2));
		ck_assert_int_eq(requests_add(&requests, &form, path, i % (count / 2), 200), 0);
	}
	ck_assert_uint_eq(requests.count, count);
	ck_assert_uint_eq(requests.made_count, count / 2);
}

START_TEST(test_many)
{
	make_many(10000);
	for (uint32_t i = 0; i < 10000; i++)
		expect(nth(i)->size == i % 5000);
	requests_free(&requests);
}
END_TEST

START_TEST(test_in_order)
{
	struct workload *workload;
	struct step step;

	make_many(10);
	workload = workload_in_order(&requests);
	ck_assert_ptr_nonnull(workload);
	for (uint32_t i = 0; i < 35; i++) {
		workload->kind->next(workload, i % 3, &step);
		ck_assert_uint_eq(step.request->size, i % 5);
		ck_assert_uint_eq(step.pause, 0);
		ck_assert(!step.leave);
	}
	workload->kind->close(workload);
	requests_free(&requests);
}
END_TEST

#define DRAWS 100000u
#define CHOICES 100u

/* Evenly, differently for each client, and equally for the same seed. */
START_TEST(test_shuffled)
{
	struct workload *one, *same, *other;
	unsigned counts[CHOICES] = {0}, alike[2] = {0};
	struct step steps[4];
	double chi = 0;

	make_many(2 * CHOICES);
	one = workload_shuffled(&requests, 2, 5);
	same = workload_shuffled(&requests, 2, 5);
	other = workload_shuffled(&requests, 2, 6);
	for (unsigned i = 0; i < DRAWS; i++) {
		one->kind->next(one, 0, &steps[0]);
		one->kind->next(one, 1, &steps[1]);
		same->kind->next(same, 0, &steps[2]);
		other->kind->next(other, 0, &steps[3]);
		expect(steps[0].request == steps[2].request);
		alike[0] += steps[0].request == steps[1].request;
		alike[1] += steps[0].request == steps[3].request;
		counts[steps[0].request->size]++;
	}
	for (unsigned i = 0; i < CHOICES; i++)
		chi += (counts[i] - (double)DRAWS / CHOICES) *
		       (counts[i] - (double)DRAWS / CHOICES) / ((double)DRAWS / CHOICES);
	ck_assert_msg(chi < 149, "chi-square %g of 99 degrees: one in 1,000", chi);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_msg(alike[i] > 800 && alike[i] < 1200, "%u alike", alike[i]);
	one->kind->close(one);
	same->kind->close(same);
	other->kind->close(other);
	requests_free(&requests);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_list);
	tcase_add_test(tcase, test_close);
	tcase_add_test(tcase, test_bad_lines);
	tcase_add_test(tcase, test_many);
	tcase_add_test(tcase, test_in_order);
	tcase_add_test(tcase, test_shuffled);
}

RUN_SUITE("client-requests", fill)
