/* SPDX-License-Identifier: MIT */
/*
 * test-backend-posix.c - unit tests of backends whose responses arrive as bytes: the
 * same workers, their responses, and invalid ones that must not harm the server.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "backend-fixture.h"
#include "suite.h"

#define BODY ((size_t)100 << 10)

static void open_posix(unsigned channels)
{
	backend_flags = NC_BACKEND_POSIX;
	open_all(channels, 0);
}

/* Returns the next response, which must have that tag; the caller frees its data. */
static void take(unsigned channel, uint64_t tag, int status, unsigned flags,
		 struct NC_response *response)
{
	uint64_t told;

	ck_assert_int_eq(reap(channel, &told, response), 1);
	ck_assert_uint_eq(told, tag);
	ck_assert_int_eq(response->status, status);
	ck_assert_uint_eq(response->flags, flags);
	ck_assert_uint_eq(response->range_count, 0);
	ck_assert_uint_eq(response->body.id, 0);
	ck_assert_int_eq(!response->data, !response->data_length);
}

static void expect_data(const struct NC_response *response, const char *text)
{
	ck_assert_uint_eq(response->data_length, strlen(text));
	ck_assert_mem_eq(response->data, text, strlen(text));
	NC_backend_data_free(response->data);
}

static void echo(unsigned channel, uint64_t tag)
{
	struct NC_response response;

	ck_assert_int_eq(submit(channel, tag, "DO=echo", "VALUE=in bytes", NULL), 0);
	take(channel, tag, 200, 0, &response);
	ck_assert_uint_eq(response.headers_length, 14);
	ck_assert_mem_eq(response.headers, "X-Channel: ", 11);
	ck_assert_int_eq(response.headers[11], '0' + (int)channel);
	expect_data(&response, "in bytes");
}

START_TEST(test_echo)
{
	struct NC_response response;
	unsigned descriptors;

	/* A cache may lack a ring: the user's locked memory is limited. */
	open_cache();
	ck_assert_int_eq(NC_cache_close(cache), 0);
	descriptors = open_descriptors();
	open_posix(2);
	echo(0, 1);
	echo(1, 2);
	echo(0, 3);
	/* No body at all. */
	ck_assert_int_eq(submit(1, 4, "DO=what", NULL, NULL), 0);
	take(1, 4, 404, 0, &response);
	close_all();
	ck_assert_uint_eq(open_descriptors(), descriptors);
	open_cache();
	backend_flags = 4;
	ck_assert_ptr_null(start_worker(1, 0));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(NC_cache_close(cache), 0);
	NC_backend_data_free(NULL);
}
END_TEST

/* Far more than pipe and segment hold: written memory belongs to the worker again. */
START_TEST(test_large)
{
	unsigned responses = scaled(1000), submitted = 0;

	open_posix(1);
	for (unsigned answered = 0; answered < responses; answered++) {
		struct NC_response response;
		const char *got;

		for (; submitted < responses && submitted < answered + 16; submitted++)
			ck_assert_int_eq(submit(0, submitted, "DO=large", NULL, NULL), 0);
		take(0, answered, 200, 0, &response);
		ck_assert_uint_eq(response.data_length, BODY);
		got = response.data;
		ck_assert_mem_eq(got, &(uint64_t){answered}, sizeof(uint64_t));
		for (size_t i = sizeof(uint64_t); i < BODY; i++)
			expect(got[i] == (char)(i * 31 + (i >> 8)));
		NC_backend_data_free(response.data);
	}
	close_all();
}
END_TEST

START_TEST(test_lists_and_kept)
{
	struct NC_response response;

	open_posix(1);
	ck_assert_int_eq(submit(0, 1, "DO=list", "COUNT=4", "FLAGS=0"), 0);
	take(0, 1, 200, 0, &response);
	expect_data(&response, "012<0>");
	ck_assert_int_eq(submit(0, 1, "DO=list", "COUNT=4", "FLAGS=1"), 0);
	take(0, 1, 200, 0, &response);
	expect_data(&response, "012<0>");
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(submit(0, i, "DO=keep", NULL, NULL), 0);
		take(0, i, 200, 0, &response);
		expect_data(&response, "kept");
	}
	/* At most the largest unit. */
	ck_assert_int_eq(submit(0, 5, "DO=repeat", "COUNT=10", NULL), 0);
	take(0, 5, 200, 0, &response);
	ck_assert_uint_eq(response.data_length, 10 * BODY);
	NC_backend_data_free(response.data);
	ck_assert_int_eq(submit(0, 6, "DO=repeat", "COUNT=11", NULL), 0);
	take(0, 6, 500, 0, &response);
	echo(0, 7);
	close_all();
}
END_TEST

START_TEST(test_stream)
{
	const unsigned piece = NC_RESPONSE_PIECE, more = NC_RESPONSE_MORE;
	struct NC_response response;
	char text[16];
	uint64_t tag;

	open_posix(1);
	ck_assert_int_eq(submit(0, 5, "DO=stream", "COUNT=50", NULL), 0);
	for (unsigned i = 0; i < 50; i++) {
		take(0, 5, i ? 0 : 200, i ? piece | more : more, &response);
		snprintf(text, sizeof(text), "%u,", i);
		expect_data(&response, text);
		ck_assert_int_eq(NC_backend_sent(backend, 0, 5), 0);
		ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	}
	take(0, 5, 0, piece, &response);
	ck_assert_int_eq(submit(0, 6, "DO=abort", "BEGUN=1", NULL), 0);
	take(0, 6, 200, more, &response);
	take(0, 6, 0, NC_RESPONSE_ABORTED, &response);
	/* A client that disconnects. */
	ck_assert_int_eq(submit(0, 7, "DO=stream", "COUNT=1000000", NULL), 0);
	ck_assert_int_eq(NC_backend_cancel(backend, 0, 7), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	do {
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		NC_backend_data_free(response.data);
	} while (response.flags & more);
	ck_assert_uint_eq(response.flags, NC_RESPONSE_ABORTED);
	echo(0, 8);
	close_all();
}
END_TEST

/* The body of a request still arrives by id, and is acknowledged among the responses. */
START_TEST(test_body)
{
	static const char variables[] = "DO=read-body";
	struct NC_range piece = {.length = 9};
	struct NC_response response;
	NC_handle unit;

	open_posix(1);
	ck_assert_int_eq(NC_unit_alloc(NULL, &unit, 9, 0, NC_KIND_SEALED, 0), 0);
	ck_assert_int_eq(NC_write(&unit, "some body", 9, 0), 9);
	ck_assert_int_eq(NC_insert(&unit), 0);
	piece.id = NC_cache_id(&unit);
	ck_assert_int_eq(NC_free(&unit), 0);
	ck_assert_int_eq(NC_grant(cache, piece.id, NC_PROCESS_FD, (id_t)NC_backend_pidfd(backend)),
			 0);
	ck_assert_int_eq(
		NC_backend_submit(backend, 0, 7, variables, sizeof(variables), NC_REQUEST_BODY), 0);
	ck_assert_int_eq(NC_backend_body(backend, 0, 7, &piece, NC_BODY_LAST), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	take(0, 7, 0, NC_RESPONSE_TAKEN, &response);
	take(0, 7, 200, 0, &response);
	expect_data(&response, "some body");
	close_all();
}
END_TEST

START_TEST(test_hostile)
{
	static const char *const noises[][2] = {
		{"DO=noise", "BYTE=255"},	 {"DO=noise", "BYTE=0"},
		{"DO=noise", "BYTE=1"},		 {"DO=raw-records", "FLAGS=4"},
		{"DO=raw-records", "FLAGS=2 0"}, {"DO=raw-records", "FLAGS=2 6 6 6 6 6 6 6 6"},
	};

	for (unsigned i = 0; i < sizeof(noises) / sizeof(noises[0]); i++) {
		struct NC_response response;
		uint64_t tag;
		int got;

		open_posix(1);
		echo(0, 1);
		ck_assert_int_eq(submit(0, 5, noises[i][0], noises[i][1], NULL), 0);
		while ((got = reap(0, &tag, &response)) == 1) {
			ck_assert_uint_eq(tag, 5);
			NC_backend_data_free(response.data);
		}
		ck_assert_int_eq(got, -1);
		ck_assert_int_eq(errno, EPROTO);
		close_all();
	}
}
END_TEST

/* A worker that exits in the middle of a response has given none. */
START_TEST(test_death)
{
	struct NC_response response;
	uint64_t tag;

	open_posix(1);
	ck_assert_int_eq(submit(0, 4, "DO=echo", "VALUE=before", NULL), 0);
	ck_assert_int_eq(submit(0, 5, "DO=half", NULL, NULL), 0);
	await(NC_backend_pidfd(backend), POLLIN);
	take(0, 4, 200, 0, &response);
	expect_data(&response, "before");
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(NC_backend_reap(backend, 0, &tag, &response, sizeof(response)), 0);
	ck_assert_int_eq(NC_backend_arm(backend, 0, 1), 0);
	close_all();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_echo);
	tcase_add_test(tcase, test_large);
	tcase_add_test(tcase, test_lists_and_kept);
	tcase_add_test(tcase, test_stream);
	tcase_add_test(tcase, test_body);
	tcase_add_test(tcase, test_hostile);
	tcase_add_test(tcase, test_death);
}

RUN_SUITE("backend-posix", fill)
