/* SPDX-License-Identifier: MIT */
/*
 * test-text-response.c - unit tests of text-response.c: texts of every length as
 * bodies, what they leave in the cache, and a full cache.
 */
#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <nabc.h>

#include "event/piece.h"
#include "core/server.h"
#include "core/text-response.h"
#include "core/transaction.h"

#include "suite.h"
#include "unit-holds.h"

#define MAX_UNIT ((size_t)256 << 10)

static struct server server = {.max_unit = MAX_UNIT};
static struct thread thread = {.server = &server};
static struct transaction transaction;
static NC_cache *cache;

static void begin(void)
{
	memset(&transaction, 0, sizeof(transaction));
	transaction.thread = &thread;
}

static void open_cache(size_t size)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = size, .flags = NC_CACHE_NO_THREAD);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	begin();
}

/* It must be empty. */
static void close_cache(void)
{
	struct NC_cache_stat stat;

	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	ck_assert_uint_eq(stat.units, 0);
	ck_assert_uint_eq(stat.inserts, stat.destroys);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

static GString *make_text(size_t length)
{
	GString *text = g_string_sized_new(length);

	g_string_set_size(text, length);
	pattern_fill(text->str, length, 0, length);
	return text;
}

/* The bytes of the current piece, as a socket gets them. */
static void receive(char *to)
{
	struct NC_send message =
		NC_SEND_INIT(.ranges = &transaction.piece.range, .holds = &transaction.piece.hold,
			     .range_count = 1, .hold_count = 1);
	size_t have = 0;
	int pair[2];

	tcp_pair(pair);
	set_nonblocking(pair[0]);
	while (have < transaction.piece.range.length) {
		ssize_t moved;

		if (message.skip < transaction.piece.range.length) {
			moved = NC_send(NULL, pair[0], &message);
			expect(moved > 0 || errno == EAGAIN);
			message.skip += moved > 0 ? (size_t)moved : 0;
		}
		await(pair[1], POLLIN);
		moved = recv(pair[1], to + have, transaction.piece.range.length - have,
			     MSG_DONTWAIT);
		expect(moved > 0);
		have += (size_t)moved;
	}
	close_pair(pair);
}

/* As a connection would; returns the number of pieces. */
static unsigned send_all(size_t length)
{
	char *got = must_alloc(length);
	size_t have = 0;
	unsigned pieces = 0;

	ck_assert_uint_eq(transaction.response.length, length);
	if (transaction.piece.kind == PIECE_TEXT) {
		memcpy(got, transaction.piece.data, length);
		have = length;
	}
	while (have < length) {
		ck_assert_int_eq(transaction.piece.kind, PIECE_RANGE);
		ck_assert_uint_le(transaction.piece.range.length, MAX_UNIT);
		receive(got + have);
		have += transaction.piece.range.length;
		pieces++;
		if (have < length) {
			ck_assert(transaction_has_next(&transaction));
			ck_assert_int_eq(transaction_next(&transaction), RESPOND_NOW);
			ck_assert_int_eq(transaction.response.status, 200);
		}
	}
	ck_assert_uint_eq(have, length);
	ck_assert_uint_eq(pattern_match(got, length, 0, length), length);
	transaction_finish(&transaction);
	free(got);
	return pieces;
}

static const struct {
	size_t length;
	unsigned pieces; /* 0: in memory */
} lengths[] = {
	{0, 0},	     {1, 0},	    {TRANSACTION_TEXT_MAX, 0}, {TRANSACTION_TEXT_MAX + 1, 1},
	{100000, 1}, {MAX_UNIT, 1}, {MAX_UNIT + 1, 2},	       {MAX_UNIT * 5 + 77, 6},
};

START_TEST(test_lengths)
{
	size_t length = lengths[_i].length;
	char head[128];

	open_cache(4 << 20);
	ck_assert_int_eq(text_response_set(&transaction, "text/x", make_text(length)), 0);
	ck_assert_int_eq(transaction.response.status, 200);
	ck_assert(transaction.response.bodiless == (length == 0));
	snprintf(head, sizeof(head), "Content-Type: text/x\r\nContent-Length: %zu\r\n", length);
	ck_assert_uint_eq(transaction.response.head_length, strlen(head));
	ck_assert_mem_eq(transaction.response.head, head, strlen(head));
	ck_assert_uint_eq(send_all(length), lengths[_i].pieces);
	close_cache();
}
END_TEST

/* A client that disconnects at any moment leaves nothing behind, not even a hold. */
START_TEST(test_gone)
{
	open_cache(4 << 20);
	for (unsigned i = 0; i < 60; i++) {
		begin();
		ck_assert_int_eq(text_response_set(&transaction, "text/x", make_text(MAX_UNIT * 3)),
				 0);
		if (i % 2)
			transaction_next(&transaction);
		ck_assert_int_eq(transaction.response.status, 200);
		transaction_finish(&transaction);
	}
	close_cache();
}
END_TEST

START_TEST(test_head_only)
{
	open_cache(4 << 20);
	transaction.head_only = true;
	ck_assert_int_eq(text_response_set(&transaction, "text/x", make_text(MAX_UNIT * 9)), 0);
	ck_assert_uint_eq(transaction.response.length, MAX_UNIT * 9);
	ck_assert_int_eq(transaction.piece.kind, PIECE_NONE);
	ck_assert(!transaction_has_next(&transaction));
	transaction_finish(&transaction);
	close_cache();
}
END_TEST

START_TEST(test_lines_before)
{
	static const char lines[] = "Cache-Control: no-store\r\n";
	static const char all[] = "Cache-Control: no-store\r\nContent-Type: text/y\r\n"
				  "Content-Length: 3\r\n";

	open_cache(4 << 20);
	memcpy(transaction.head_buffer, lines, sizeof(lines));
	transaction.response.head_length = sizeof(lines) - 1;
	transaction.response.status = 404;
	ck_assert_int_eq(text_response_set(&transaction, "text/y", g_string_new("abc")), 0);
	ck_assert_int_eq(transaction.response.status, 404);
	ck_assert_uint_eq(transaction.response.head_length, sizeof(all) - 1);
	ck_assert_mem_eq(transaction.response.head, all, sizeof(all) - 1);
	transaction_finish(&transaction);
	close_cache();
}
END_TEST

/* Refused as a whole: another handler can still fill the response. */
START_TEST(test_no_room)
{
	open_cache(1 << 20);
	server.max_unit = 8 << 20;
	ck_assert_int_eq(text_response_set(&transaction, "text/x", make_text(3 << 20)), -EFBIG);
	ck_assert_int_eq(transaction.response.status, 0);
	ck_assert_uint_eq(transaction.response.head_length, 0);
	ck_assert_int_eq(transaction.piece.kind, PIECE_NONE);
	ck_assert_ptr_null(transaction.responder);
	server.max_unit = MAX_UNIT;
	transaction.response.head_length = sizeof(transaction.head_buffer) - 20;
	ck_assert_int_eq(text_response_set(&transaction, "text/x", make_text(9)), -EMSGSIZE);
	ck_assert_uint_eq(transaction.response.head_length, sizeof(transaction.head_buffer) - 20);
	ck_assert_ptr_null(transaction.responder);
	close_cache();
}
END_TEST

/*
 * If the next piece does not fit, the response is cut off, not completed.  It reuses
 * the memory of the previous one, so here it is larger.
 */
START_TEST(test_no_room_later)
{
	size_t taken[64];
	unsigned count = 0;
	NC_handle handle;

	open_cache(1 << 20);
	server.max_unit = MAX_UNIT / 4;
	ck_assert_int_eq(text_response_set(&transaction, "text/x", make_text(MAX_UNIT * 2)), 0);
	server.max_unit = MAX_UNIT;
	/* Units that another response holds cannot be evicted. */
	while (count < 64 && NC_unit_alloc(NULL, &handle, 32 << 10, 0, NC_KIND_RECYCLED, 0) == 0) {
		ck_assert_int_eq(NC_insert(&handle), 0);
		taken[count] = NC_cache_id(&handle);
		ck_assert_int_eq(hold_id(NULL, taken[count++]), 0);
		ck_assert_int_eq(NC_free(&handle), 0);
	}
	ck_assert_uint_lt(count, 64);
	ck_assert_int_eq(transaction_next(&transaction), RESPOND_NOW);
	ck_assert_int_eq(transaction.response.status, 0);
	ck_assert_int_eq(transaction.piece.kind, PIECE_NONE);
	transaction_finish(&transaction);
	while (count--) {
		ck_assert_int_eq(release_id(NULL, taken[count]), 0);
		ck_assert_int_eq(NC_destroy(NULL, taken[count]), 0);
	}
	close_cache();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_lengths, 0, sizeof(lengths) / sizeof(lengths[0]));
	tcase_add_test(tcase, test_gone);
	tcase_add_test(tcase, test_head_only);
	tcase_add_test(tcase, test_lines_before);
	tcase_add_test(tcase, test_no_room);
	tcase_add_test(tcase, test_no_room_later);
}

RUN_SUITE("text-response", fill)
