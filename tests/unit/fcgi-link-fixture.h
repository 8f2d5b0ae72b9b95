/* SPDX-License-Identifier: MIT */
/*
 * fcgi-link-fixture.h - the server's end for tests of libnabc-fcgi: in place of server-link.c, it keeps
 * what a request's output becomes, and gives pieces of a body.  One request at a time; the units are
 * those of the test's own cache.
 */
#ifndef FCGI_LINK_FIXTURE_H
#define FCGI_LINK_FIXTURE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "server-link.h"
#include "nabc-fixture.h"
#include "suite.h"
#include "unit.h"

#define LINK_PIECES 8

static struct {
	int status;
	char headers[NC_BLOCK_MAX + 1];
	unsigned char *body;
	size_t length;
	unsigned records;
	bool is_over, is_aborted;
	int send_error; /* that the next pieces meet; 0: none */
	struct NC_range pieces[LINK_PIECES];
	unsigned given, count;
	int body_error; /* after the last piece; 0: the end */
} answer;

static inline void link_reset(void)
{
	free(answer.body);
	memset(&answer, 0, sizeof(answer));
}

/* A unit that is kept for the next request: the cache cannot be closed with it. */
static inline void link_drop_spare(void)
{
	ck_assert_ptr_null(fcgi_unit_take((size_t)1 << 50));
}

static inline void link_take(const struct NC_range *range)
{
	if (!range->length)
		return;
	answer.body = realloc(answer.body, answer.length + range->length);
	ck_assert_ptr_nonnull(answer.body);
	ck_assert_int_eq(NC_pread(NULL, range->id, answer.body + answer.length, range->length,
				  range->offset),
			 (ssize_t)range->length);
	answer.length += range->length;
	ck_assert_int_eq(NC_destroy(NULL, range->id), 0);
}

static inline void link_note(const struct NC_range *range, unsigned flags)
{
	ck_assert(!answer.is_over && !answer.is_aborted);
	link_take(range);
	answer.records++;
	answer.is_over = !(flags & NC_RESPONSE_MORE);
}

int fcgi_link_respond(const struct NC_request *request, const struct NC_response *response)
{
	(void)request;
	ck_assert_int_eq(answer.status, 0);
	ck_assert_uint_lt(response->headers_length, sizeof(answer.headers));
	memcpy(answer.headers, response->headers, response->headers_length);
	answer.status = response->status;
	link_note(&response->body, response->flags);
	return 0;
}

int fcgi_link_send(const struct NC_request *request, const struct NC_range *ranges, unsigned count,
		   unsigned flags)
{
	static const struct NC_range none;

	(void)request;
	ck_assert_int_ne(answer.status, 0);
	if (answer.send_error) {
		errno = answer.send_error;
		return -1;
	}
	ck_assert(count || !(flags & NC_RESPONSE_MORE));
	link_note(count ? ranges : &none, flags);
	return 0;
}

int fcgi_link_body(struct NC_request *request, struct NC_range *piece)
{
	(void)request;
	if (answer.given < answer.count) {
		*piece = answer.pieces[answer.given++];
		return 1;
	}
	errno = answer.body_error;
	return answer.body_error ? -1 : 0;
}

int fcgi_link_abort(const struct NC_request *request)
{
	(void)request;
	answer.is_aborted = true;
	return 0;
}

int fcgi_link_gone(const struct NC_request *request)
{
	(void)request;
	return 1;
}

int fcgi_link_accept(struct NC_request *request)
{
	(void)request;
	return 0;
}

/* Adds a piece of the request's body, which has gaps in memory. */
static inline void link_give(const void *data, size_t length)
{
	NC_handle handle;

	memset(&handle, 0, sizeof(handle));
	ck_assert_uint_lt(answer.count, LINK_PIECES);
	ck_assert_int_eq(NC_alloc(&handle, length, 1448), 0);
	ck_assert_int_eq(NC_write(&handle, data, length, 0), (ssize_t)length);
	ck_assert_int_eq(NC_insert(&handle), 0);
	answer.pieces[answer.count++] =
		(struct NC_range){.id = NC_cache_id(&handle), .length = length};
	ck_assert_int_eq(NC_free(&handle), 0);
}

static inline void link_check_body(uint64_t seed, size_t length)
{
	ck_assert_uint_eq(answer.length, length);
	ck_assert_uint_eq(pattern_match(answer.body, seed, 0, length), length);
}

#endif
