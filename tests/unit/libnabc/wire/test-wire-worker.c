/* SPDX-License-Identifier: MIT */
/*
 * test-wire-worker.c - unit tests of wire.c: the records between a server and its
 * workers, requests and responses; each field is corrupted in turn.  Records are heap
 * copies of their exact length.  Single-threaded.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "wire/wire.h"

#include "suite.h"

static int check_request(const struct nc_wire_request *head, const void *block, size_t length,
			 size_t cut)
{
	char *record = must_alloc(sizeof(*head) + length);
	struct nc_wire_request request;
	int result;

	memcpy(record, head, sizeof(*head));
	memcpy(record + sizeof(*head), block, length);
	if (cut < sizeof(*head) + length)
		record = realloc(record, cut ? cut : 1);
	result = nc_wire_check_request(record, cut, &request);
	if (result == 0)
		ck_assert_mem_eq(&request, head, sizeof(request));
	free(record);
	return result;
}

START_TEST(test_request)
{
	static const char block[] = "A=1\0B=2";
	struct nc_wire_request head = {.tag = 77, .length = sizeof(block)};

	ck_assert_int_eq(check_request(&head, block, sizeof(block), 16 + sizeof(block)), 0);
	for (size_t cut = 0; cut < 16 + sizeof(block); cut++)
		ck_assert_int_eq(check_request(&head, block, sizeof(block), cut), -EPROTO);
	head.length++;
	ck_assert_int_eq(check_request(&head, block, sizeof(block), 16 + sizeof(block)), -EPROTO);
	/* The last string must end inside the record. */
	head.length = sizeof(block) - 1;
	ck_assert_int_eq(check_request(&head, block, sizeof(block) - 1, 15 + sizeof(block)),
			 -EPROTO);
	head.length = UINT32_MAX;
	ck_assert_int_eq(check_request(&head, block, sizeof(block), 16 + sizeof(block)), -EPROTO);
	head.length = 0;
	ck_assert_int_eq(check_request(&head, block, 0, 16), 0);
}
END_TEST

START_TEST(test_request_kinds)
{
	static const char text[] = "A=1";
	struct NC_range range = {.id = 1};
	struct nc_wire_request head = {.tag = 77};

	for (unsigned i = 0; i < 300; i++) {
		head.kind = i < 200 ? i : UINT32_MAX - i;
		/* Variables, a range, or nothing; the length selects which, or is just a count. */
		for (head.length = 0; head.length < 50; head.length++) {
			bool variables = head.kind <= NC_WIRE_REQUEST_BODY;
			bool piece = head.kind == NC_WIRE_PIECE || head.kind == NC_WIRE_LAST;
			bool note = head.kind == NC_WIRE_CANCEL || head.kind == NC_WIRE_SENT;
			bool none = note ||
				    ((variables || head.kind == NC_WIRE_LAST) && head.length == 0);

			ck_assert_int_eq(check_request(&head, text, 4, 20),
					 variables && head.length == 4 ? 0 : -EPROTO);
			ck_assert_int_eq(check_request(&head, text, 4, 16), none ? 0 : -EPROTO);
			ck_assert_int_eq(check_request(&head, text, 4, 15), -EPROTO);
			ck_assert_int_eq(check_request(&head, &range, 24, 40),
					 (piece || variables) && head.length == 24 ? 0 : -EPROTO);
			ck_assert_int_eq(check_request(&head, &range, 24, 39),
					 variables && head.length == 23 ? 0 : -EPROTO);
		}
		if (head.kind == NC_WIRE_PIECE || head.kind == NC_WIRE_LAST) {
			struct NC_range nothing = {.length = 5};

			head.length = sizeof(nothing);
			ck_assert_int_eq(check_request(&head, &nothing, 24, 40), -EPROTO);
		}
	}
}
END_TEST

START_TEST(test_request_limit)
{
	struct nc_wire_request head = {.length = NC_WIRE_BLOCK_MAX};
	char *block = must_alloc(NC_WIRE_BLOCK_MAX + 1);

	memset(block, 0, NC_WIRE_BLOCK_MAX + 1);
	ck_assert_int_eq(check_request(&head, block, NC_WIRE_BLOCK_MAX, 16 + NC_WIRE_BLOCK_MAX), 0);
	head.length++;
	ck_assert_int_eq(check_request(&head, block, NC_WIRE_BLOCK_MAX + 1, 17 + NC_WIRE_BLOCK_MAX),
			 -EPROTO);
	free(block);
}
END_TEST

static int check_response(const struct nc_wire_response *head, size_t length, size_t cut)
{
	char *record = must_alloc(cut < sizeof(*head) + length ? cut : sizeof(*head) + length);
	struct nc_wire_response response;
	int result;

	memset(record, 'h', cut);
	memcpy(record, head, cut < sizeof(*head) ? cut : sizeof(*head));
	result = nc_wire_check_response(record, cut, &response);
	if (result == 0) {
		ck_assert_mem_eq(&response, head, sizeof(response));
		ck_assert_ptr_eq(nc_wire_ranges(record), record + sizeof(*head));
		ck_assert_ptr_eq(nc_wire_headers(record, head),
				 record + cut - head->headers_length);
	}
	free(record);
	return result;
}

START_TEST(test_response)
{
	struct nc_wire_response head = {.tag = 5, .status = 200, .headers_length = 30};

	for (size_t cut = 0; cut <= 54; cut++)
		ck_assert_int_eq(check_response(&head, 30, cut), cut == 54 ? 0 : -EPROTO);
	head.headers_length = UINT32_MAX;
	ck_assert_int_eq(check_response(&head, 30, 54), -EPROTO);
	head.headers_length = 0;
	for (int status = -1; status < 1100; status++) {
		head.status = status;
		ck_assert_int_eq(check_response(&head, 0, 24),
				 status >= 200 && status <= 599 ? 0 : -EPROTO);
	}
	/* 101 begins a stream, or is none. */
	head.flags = NC_RESPONSE_MORE;
	for (int status = -1; status < 300; status++) {
		head.status = status;
		ck_assert_int_eq(check_response(&head, 0, 24),
				 status >= 200 || status == 101 ? 0 : -EPROTO);
	}
	head.flags = 0;
	head.status = INT32_MIN;
	ck_assert_int_eq(check_response(&head, 0, 24), -EPROTO);
	head.status = 200;
	head.headers_length = NC_WIRE_BLOCK_MAX;
	ck_assert_int_eq(check_response(&head, NC_WIRE_BLOCK_MAX, 24 + NC_WIRE_BLOCK_MAX), 0);
	head.headers_length++;
	ck_assert_int_eq(check_response(&head, NC_WIRE_BLOCK_MAX + 1, 25 + NC_WIRE_BLOCK_MAX),
			 -EPROTO);
}
END_TEST

/* Every combination of the flags of a record, and of meaningless bits. */
START_TEST(test_response_kinds)
{
	const unsigned keep = NC_RESPONSE_KEEP, more = NC_RESPONSE_MORE;
	const unsigned piece = NC_RESPONSE_PIECE, aborted = NC_RESPONSE_ABORTED;
	const unsigned taken = NC_RESPONSE_TAKEN, replace = NC_RESPONSE_REPLACE;
	const unsigned interim = NC_RESPONSE_INTERIM;
	struct nc_wire_response head = {.tag = 5};

	for (unsigned i = 0; i < 256 * 16; i++) {
		unsigned headers = i & 1 ? 9 : 0, ranges = i >> 1 & 1;
		bool good;

		head = (struct nc_wire_response){.status = i >> 2 & 1 ? 200 : 0,
						 .headers_length = headers,
						 .ranges = ranges,
						 .flags = i >> 4};
		if (i >> 3 & 1)
			head.status = 103;
		if (head.flags & (aborted | taken | replace))
			good = (head.flags == aborted || head.flags == taken ||
				head.flags == replace) &&
			       !headers && !ranges && !head.status;
		else if (head.flags & interim)
			good = head.flags == interim && !ranges && head.status == 103;
		else if (head.flags & piece)
			good = !(head.flags & ~(piece | keep | more)) && !head.status &&
			       (!headers || (head.flags == piece && !ranges)) &&
			       (!(head.flags & more) || ranges);
		else
			good = !(head.flags & ~(keep | more)) && head.status == 200;
		ck_assert_int_eq(
			check_response(&head, ranges * 24 + headers, 24 + ranges * 24 + headers),
			good ? 0 : -EPROTO);
	}
	for (unsigned bit = 5; bit < 32; bit++) {
		head = (struct nc_wire_response){.status = 200, .flags = 1u << bit};
		ck_assert_int_eq(check_response(&head, 0, 24), -EPROTO);
		head.flags |= piece;
		head.status = 0;
		ck_assert_int_eq(check_response(&head, 0, 24), -EPROTO);
	}
}
END_TEST

START_TEST(test_interim)
{
	struct nc_wire_response head = {.flags = NC_RESPONSE_INTERIM};

	for (head.status = -1; head.status < 1100; head.status++)
		ck_assert_int_eq(check_response(&head, 0, 24),
				 head.status >= 100 && head.status <= 199 && head.status != 101
					 ? 0
					 : -EPROTO);
}
END_TEST

/* Flags for existing ranges, beside KEEP; which of them stay then. */
START_TEST(test_response_drops)
{
	struct nc_wire_response head = {.status = 200};

	for (head.ranges = 0; head.ranges <= NC_WIRE_RANGES_MAX; head.ranges++) {
		size_t bytes = head.ranges * sizeof(struct NC_range);

		for (unsigned i = 0; i < 16; i++) {
			head.flags = NC_RESPONSE_DROP(i);
			ck_assert_int_eq(check_response(&head, bytes, 24 + bytes), -EPROTO);
			head.flags |= NC_RESPONSE_KEEP;
			ck_assert_int_eq(check_response(&head, bytes, 24 + bytes),
					 i < head.ranges ? 0 : -EPROTO);
			for (unsigned j = 0; j < 16; j++)
				ck_assert_int_eq(nc_wire_keeps(head.flags, j), i != j);
		}
	}
	ck_assert(nc_wire_keeps(NC_RESPONSE_KEEP, 15));
	ck_assert(!nc_wire_keeps(0, 0));
}
END_TEST

START_TEST(test_response_ranges)
{
	struct nc_wire_response head = {.tag = 5, .status = 200};
	_Alignas(16) char spoilt[sizeof(head) + 2 * sizeof(struct NC_range)];

	/* As many ranges as the record has, and at most as many as fit. */
	for (size_t have = 0; have < 20; have++) {
		for (head.ranges = 0; head.ranges < 20; head.ranges++) {
			bool good = head.ranges == have && have <= NC_WIRE_RANGES_MAX;

			ck_assert_int_eq(check_response(&head, have * 24, 24 + have * 24),
					 good ? 0 : -EPROTO);
		}
	}
	static const uint32_t nonsense[] = {UINT32_MAX, 1u << 31, UINT32_MAX / 24 + 1,
					    UINT32_MAX / 24 + 2};
	for (unsigned i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		head.ranges = nonsense[i];
		ck_assert_int_eq(check_response(&head, 24, 48), -EPROTO);
		head.headers_length = 0 - nonsense[i] * 24;
		ck_assert_int_eq(check_response(&head, 24, 48), -EPROTO);
		head.headers_length = 0;
	}
	/* No unit has the id 0. */
	head.ranges = 2;
	memset(spoilt, 'r', sizeof(spoilt));
	memcpy(spoilt, &head, sizeof(head));
	ck_assert_int_eq(nc_wire_check_response(spoilt, sizeof(spoilt), &head), 0);
	for (unsigned i = 0; i < 2; i++) {
		memset(spoilt, 'r', sizeof(spoilt));
		memcpy(spoilt, &head, sizeof(head));
		memset(spoilt + sizeof(head) + i * sizeof(struct NC_range), 0, sizeof(size_t));
		ck_assert_int_eq(nc_wire_check_response(spoilt, sizeof(spoilt), &head), -EPROTO);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_request);
	tcase_add_test(tcase, test_request_limit);
	tcase_add_test(tcase, test_response);
	tcase_add_test(tcase, test_response_kinds);
	tcase_add_test(tcase, test_interim);
	tcase_add_test(tcase, test_response_ranges);
	tcase_add_test(tcase, test_request_kinds);
	tcase_add_test(tcase, test_response_drops);
}

RUN_SUITE("wire-worker", fill)
