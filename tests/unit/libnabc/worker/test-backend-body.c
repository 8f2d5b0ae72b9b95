/* SPDX-License-Identifier: MIT */
/*
 * test-backend-body.c - unit tests of request bodies that arrive in pieces, through
 * backend.c and a worker that reads them.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "backend-fixture.h"
#include "suite.h"

#define PIECE ((size_t)1000)

static uint64_t taken; /* pieces that the worker returned */

/* A unit that the worker may read, not held: it is destroyed when the worker has taken it. */
static struct NC_range make_piece(unsigned number)
{
	struct NC_range piece = {.offset = 3, .length = PIECE};
	char bytes[PIECE + 3];
	NC_handle unit;

	pattern_fill(bytes, 9, number * PIECE - (number ? 3 : 0), sizeof(bytes));
	if (number == 0)
		pattern_fill(bytes + 3, 9, 0, PIECE);
	ck_assert_int_eq(NC_unit_alloc(NULL, &unit, sizeof(bytes), 0, NC_KIND_SEALED, 0), 0);
	ck_assert_int_eq(NC_write(&unit, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
	ck_assert_int_eq(NC_insert(&unit), 0);
	piece.id = NC_cache_id(&unit);
	ck_assert_int_eq(NC_free(&unit), 0);
	ck_assert_int_eq(NC_grant(cache, piece.id, NC_PROCESS_FD, (id_t)NC_backend_pidfd(backend)),
			 0);
	return piece;
}

static void submit_body(uint64_t tag, const char *what)
{
	ck_assert_int_eq(
		NC_backend_submit(backend, 0, tag, what, strlen(what) + 1, NC_REQUEST_BODY), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
}

/* Returns the next record that is not about the body. */
static void reap_answer(uint64_t tag, struct NC_response *response)
{
	uint64_t told;

	do {
		ck_assert_int_eq(reap(0, &told, response), 1);
		ck_assert_uint_eq(told, tag);
		if (response->flags == NC_RESPONSE_TAKEN) {
			ck_assert_int_eq(response->status, 0);
			taken++;
		}
	} while (response->flags == NC_RESPONSE_TAKEN);
}

/* Passes one piece, and waits until the worker takes another if there are too many. */
static size_t give(uint64_t tag, unsigned number, unsigned flags)
{
	struct NC_range piece = make_piece(number);
	struct NC_response response;
	uint64_t told;

	while (NC_backend_body(backend, 0, tag, &piece, flags) < 0) {
		ck_assert_int_eq(errno, EAGAIN);
		ck_assert_int_eq(reap(0, &told, &response), 1);
		ck_assert_uint_eq(told, tag);
		ck_assert_uint_eq(response.flags, NC_RESPONSE_TAKEN);
		taken++;
	}
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	return piece.id;
}

static void end(uint64_t tag)
{
	ck_assert_int_eq(NC_backend_body(backend, 0, tag, NULL, NC_BODY_LAST), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
}

START_TEST(test_bodies)
{
	/* Ended by the last piece, or by an empty one. */
	for (unsigned with = 0; with < 2; with++) {
		for (unsigned count = 0; count < 40; count += count < 3 ? 1 : 17) {
			struct NC_response response;
			char *got = must_alloc(40 * PIECE);

			open_all(1, 0);
			taken = 0;
			submit_body(7, "DO=read-body");
			for (unsigned i = 0; i < count; i++)
				(void)give(7, i, with && i + 1 == count ? NC_BODY_LAST : 0);
			if (!with || !count)
				end(7);
			reap_answer(7, &response);
			ck_assert_int_eq(response.status, 200);
			ck_assert_uint_eq(taken, count);
			ck_assert_uint_eq(take_body(&response, got), count * PIECE);
			ck_assert_uint_eq(pattern_match(got, 9, 0, count * PIECE), count * PIECE);
			/* It has ended, and its tag may be used again. */
			ck_assert_int_eq(NC_backend_body(backend, 0, 7, NULL, NC_BODY_LAST), -1);
			ck_assert_int_eq(errno, ENOENT);
			check_echo(0, 7);
			free(got);
			close_all();
		}
	}
}
END_TEST

/* A server passes at most a window, and the worker takes in order. */
START_TEST(test_window)
{
	struct NC_range piece;
	struct NC_response response;

	open_all(1, 0);
	submit_body(7, "DO=nothing");
	for (unsigned i = 0; i < NC_WORKER_WINDOW; i++) {
		piece = make_piece(i);
		ck_assert_int_eq(NC_backend_body(backend, 0, 7, &piece, 0), 0);
	}
	ck_assert_int_eq(NC_backend_body(backend, 0, 7, &piece, 0), -1);
	ck_assert_int_eq(errno, EAGAIN);
	/* The end can always be sent, once. */
	end(7);
	ck_assert_int_eq(NC_backend_body(backend, 0, 7, NULL, NC_BODY_LAST), -1);
	ck_assert_int_eq(errno, EINVAL);
	check_echo(0, 8);
	/* A body for each of several concurrent requests, the later one first. */
	submit_body(1, "DO=read-body");
	submit_body(2, "DO=read-body");
	ck_assert_int_eq(submit(0, 3, "DO=nothing", NULL, NULL), 0);
	piece = make_piece(0);
	ck_assert_int_eq(NC_backend_body(backend, 0, 2, &piece, NC_BODY_LAST), 0);
	ck_assert_int_eq(NC_backend_body(backend, 0, 1, &piece, NC_BODY_LAST), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	for (unsigned i = 1; i <= 2; i++) {
		char got[PIECE];

		reap_answer(i, &response);
		ck_assert_uint_eq(take_body(&response, got), PIECE);
		ck_assert_uint_eq(pattern_match(got, 9, 0, PIECE), PIECE);
	}
	close_all();
}
END_TEST

/* Body and response concurrently, far more than the windows hold. */
START_TEST(test_echo_body)
{
	const unsigned count = scaled(200);
	unsigned given = 0, got = 0;
	size_t ids[200];
	bool over = false;

	open_all(1, 0);
	taken = 0;
	submit_body(7, "DO=echo-body");
	while (!over) {
		struct NC_response response;
		char bytes[PIECE];
		uint64_t tag;

		while (given < count && given < taken + NC_WORKER_WINDOW) {
			ids[given] = give(7, given, given + 1 == count ? NC_BODY_LAST : 0);
			given++;
		}
		ck_assert_int_eq(reap(0, &tag, &response), 1);
		if (response.flags == NC_RESPONSE_TAKEN) {
			ck_assert_int_eq(NC_destroy(NULL, ids[taken++]), 0);
			continue;
		}
		over = !(response.flags & NC_RESPONSE_MORE);
		if (response.range_count) {
			ck_assert_uint_eq(take_body(&response, bytes), PIECE);
			ck_assert_uint_eq(pattern_match(bytes, 9, got++ * PIECE, PIECE), PIECE);
		}
		ck_assert_int_eq(NC_backend_sent(backend, 0, 7), 0);
		ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	}
	ck_assert_uint_eq(got, count);
	ck_assert_uint_eq(taken, count);
	close_all();
}
END_TEST

/* The client disconnects in the middle: the worker is told and sends no more response. */
START_TEST(test_cancel)
{
	struct NC_response response;
	struct {
		int error;
		unsigned pieces;
	} told;

	open_all(1, 0);
	submit_body(7, "DO=read-body");
	(void)give(7, 0, 0);
	ck_assert_int_eq(NC_backend_cancel(backend, 0, 7), 0);
	ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
	reap_answer(7, &response);
	release_all(&response);
	ck_assert_int_eq(submit(0, 8, "DO=outcome", NULL, NULL), 0);
	reap_answer(8, &response);
	ck_assert_uint_eq(take_body(&response, (char *)&told), sizeof(told));
	ck_assert_int_eq(told.error, ECANCELED);
	close_all();
}
END_TEST

/* A worker that ignores the body responds; passed pieces are dropped. */
START_TEST(test_unread)
{
	struct NC_response response;
	struct NC_range piece;

	open_all(1, 0);
	submit_body(7, "DO=keep");
	piece = make_piece(0);
	(void)NC_backend_body(backend, 0, 7, &piece, 0);
	reap_answer(7, &response);
	release_all(&response);
	ck_assert_int_eq(NC_backend_body(backend, 0, 7, &piece, 0), -1);
	ck_assert_int_eq(errno, ENOENT);
	/* A piece that arrives after the response does no harm. */
	check_echo(0, 8);
	close_all();
}
END_TEST

/* A body that arrives at once is one piece to the worker. */
START_TEST(test_whole)
{
	struct NC_response response;
	struct NC_range piece;
	char id[64], got[PIECE + 3];

	open_all(1, 0);
	piece = make_piece(0);
	snprintf(id, sizeof(id), "NABC_BODY_ID=%zu", piece.id);
	ck_assert_int_eq(submit(0, 7, "DO=read-body", id, "CONTENT_LENGTH=1003"), 0);
	reap_answer(7, &response);
	ck_assert_uint_eq(take_body(&response, got), PIECE + 3);
	ck_assert_uint_eq(pattern_match(got + 3, 9, 0, PIECE), PIECE);
	/* Nor is there always a body. */
	ck_assert_int_eq(submit(0, 8, "DO=read-body", NULL, NULL), 0);
	reap_answer(8, &response);
	ck_assert_uint_eq(response.range_count, 0);
	close_all();
}
END_TEST

START_TEST(test_errors)
{
	struct NC_range piece;

	open_all(1, 0);
	piece = make_piece(0);
	submit_body(7, "DO=nothing");
#define REFUSED(call, error)                                                                       \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert_int_eq(call, -1);                                                        \
		ck_assert_int_eq(errno, error);                                                    \
	} while (0)
	REFUSED(NC_backend_submit(backend, 0, 7, "A=1", 4, NC_REQUEST_BODY), EEXIST);
	REFUSED(NC_backend_submit(backend, 0, 8, "A=1", 4, 2), EINVAL);
	REFUSED(NC_backend_body(NULL, 0, 7, &piece, 0), EINVAL);
	REFUSED(NC_backend_body(backend, 1, 7, &piece, 0), EINVAL);
	REFUSED(NC_backend_body(backend, 0, 7, NULL, 0), EINVAL);
	REFUSED(NC_backend_body(backend, 0, 7, &piece, 2), EINVAL);
	REFUSED(NC_backend_body(backend, 0, 8, &piece, 0), ENOENT);
	piece.id = 0;
	REFUSED(NC_backend_body(backend, 0, 7, &piece, 0), EINVAL);
#undef REFUSED
	close_all();
}
END_TEST

/* More taken than passed, and of a request without a body. */
START_TEST(test_floods)
{
	for (unsigned pieces = 0; pieces < 4; pieces++) {
		static const char variables[] = "DO=raw-records\0FLAGS=10 10 10 10";
		struct NC_response response;
		uint64_t tag;

		open_all(1, 0);
		ck_assert_int_eq(NC_backend_submit(backend, 0, 7, variables, sizeof(variables),
						   NC_REQUEST_BODY),
				 0);
		for (unsigned i = 0; i < pieces; i++) {
			struct NC_range piece = make_piece(i);

			ck_assert_int_eq(NC_backend_body(backend, 0, 7, &piece, 0), 0);
		}
		ck_assert_int_eq(NC_backend_kick(backend, 0), 0);
		for (unsigned i = 0; i < pieces; i++)
			ck_assert_int_eq(reap(0, &tag, &response), 1);
		ck_assert_int_eq(reap(0, &tag, &response), -1);
		ck_assert_int_eq(errno, EPROTO);
		close_all();
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_bodies);
	tcase_add_test(tcase, test_window);
	tcase_add_test(tcase, test_echo_body);
	tcase_add_test(tcase, test_cancel);
	tcase_add_test(tcase, test_unread);
	tcase_add_test(tcase, test_whole);
	tcase_add_test(tcase, test_errors);
	tcase_add_test(tcase, test_floods);
}

RUN_SUITE("backend-body", fill)
