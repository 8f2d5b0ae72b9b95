/* SPDX-License-Identifier: MIT */
/*
 * test-fcgi.c - unit tests of FastCGI records: written ones, byte by byte and read
 * back; responses of applications, valid and hostile, each whole, byte by byte and in
 * every division into three pieces.  Single-threaded; pieces are heap copies of their
 * exact size, so that memory checkers detect a read beyond.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "program/fcgi.h"

#include "fcgi-pair.h"
#include "suite.h"

/* Headers: version, type, request id, length, padding, reserved. */
#define OUT(length) "\1\6\0\1\0" length "\0\0"
#define ERR(length) "\1\7\0\1\0" length "\0\0"
#define END "\1\3\0\1\0\10\0\0\0\0\0\0\0\0\0\0"
#define REST "\1\6\0\1" /* the beginning of the next record */

/* clang-format off */
#define GOOD(raw, says) {raw, sizeof(raw) - 1, says, true, NULL}
#define OPEN(raw, says) {raw, sizeof(raw) - 1, says, false, NULL}
#define BAD(raw, says, wrong) {raw, sizeof(raw) - 1, says, false, wrong}
/* clang-format on */

static const struct answer_case {
	const char *raw;
	size_t length;
	const char *says;
	bool over;
	const char *wrong; /* a part of the error message */
} cases[] = {
	GOOD(END, "end 0/0"),
	GOOD(OUT("\5") "hello" OUT("\0") END, "out hello;end 0/0"),
	GOOD(OUT("\5") "hello" END, "out hello;end 0/0"),
	GOOD(OUT("\2") "he" OUT("\3") "llo" OUT("\0") END, "out hello;end 0/0"),
	GOOD(OUT("\1") "a" ERR("\4") "oops" OUT("\1") "b" END, "out a;err oops;out b;end 0/0"),
	GOOD(OUT("\1") "a" OUT("\0") ERR("\1") "e" ERR("\0") END, "out a;err e;end 0/0"),
	GOOD(OUT("\0") OUT("\0") ERR("\0") ERR("\1") "e" END, "err e;end 0/0"),
	/* content that looks like a record */
	GOOD(OUT("\20") END END, "out ................;end 0/0"),
	/* padding, of all records that can have it */
	GOOD("\1\6\0\1\0\1\3\0aPPP" END, "out a;end 0/0"),
	GOOD("\1\6\0\1\0\0\7\0\1\2\3\4\5\6\7" END, "end 0/0"),
	GOOD("\1\7\0\1\0\1\1\377e\0\1\3\0\1\0\10\2\0\0\0\0\0\0\0\0\0\1\3", "err e;end 0/0"),
	/* status at the end */
	GOOD("\1\3\0\1\0\10\0\0\0\0\0\3\0\0\0\0", "end 3/0"),
	GOOD("\1\3\0\1\0\10\0\0\377\376\375\374\0\377\377\377", "end 4294901244/0"),
	GOOD("\1\3\0\1\0\10\0\0\0\0\0\0\1\0\0\0", "end 0/1"),
	GOOD("\1\3\0\1\0\10\0\0\0\0\0\0\2\0\0\0", "end 0/2"),
	GOOD("\1\3\0\1\0\10\0\0\0\0\0\0\3\0\0\0", "end 0/3"),
	BAD("\1\3\0\1\0\10\0\0\0\0\0\0\4\0\0\0", "", "status"),
	BAD("\1\3\0\1\0\10\0\0\0\0\0\0\377\0\0\0", "", "status"),
	/* management */
	GOOD("\1\12\0\0\0\4\0\0\1\1ab" END, "values ..ab;end 0/0"),
	GOOD("\1\13\0\0\0\10\0\0\11\0\0\0\0\0\0\0" END, "end 0/0"),
	BAD("\1\13\0\0\0\7\0\0", "", "length"),
	BAD("\1\12\0\1\0\4\0\0", "", "request"),
	/* not over yet */
	OPEN("", ""),
	OPEN("\1", ""),
	OPEN(OUT("\5"), ""),
	OPEN(OUT("\5") "hel", "out hel"),
	OPEN(OUT("\5") "hello", "out hello"),
	OPEN("\1\6\0\1\0\1\3\0aPP", "out a"),
	OPEN("\1\3\0\1\0\10\0\0\0\0\0\0\0\0\0", ""),
	OPEN("\1\3\0\1\0\10\2\0\0\0\0\0\0\0\0\0\1", ""),
	/* not FastCGI */
	BAD("HTTP/1.1 200 OK\r\n", "", "not FastCGI"),
	BAD("\0\6\0\1\0\0\0\0", "", "not FastCGI"),
	BAD("\2\6\0\1\0\0\0\0", "", "not FastCGI"),
	BAD("\201\6\0\1\0\0\0\0", "", "not FastCGI"),
	/* types */
	BAD("\1\0\0\1\0\0\0\0", "", "type"),
	BAD("\1\1\0\1\0\10\0\0", "", "type"),
	BAD("\1\2\0\1\0\0\0\0", "", "type"),
	BAD("\1\4\0\1\0\0\0\0", "", "type"),
	BAD("\1\5\0\1\0\0\0\0", "", "type"),
	BAD("\1\10\0\1\0\0\0\0", "", "type"),
	BAD("\1\11\0\0\0\0\0\0", "", "type"),
	BAD("\1\14\0\0\0\0\0\0", "", "type"),
	BAD("\1\206\0\1\0\0\0\0", "", "type"),
	BAD("\1\377\0\1\0\0\0\0", "", "type"),
	/* requests */
	BAD("\1\6\0\0\0\1\0\0a", "", "request"),
	BAD("\1\6\0\2\0\1\0\0a", "", "request"),
	BAD("\1\6\1\1\0\1\0\0a", "", "request"),
	BAD("\1\7\0\2\0\1\0\0a", "", "request"),
	BAD("\1\3\0\2\0\10\0\0", "", "request"),
	BAD(OUT("\1") "a\1\3\0\2\0\10\0\0", "out a", "request"),
	/* lengths */
	BAD("\1\3\0\1\0\0\0\0", "", "length"),
	BAD("\1\3\0\1\0\7\0\0", "", "length"),
	BAD("\1\3\0\1\0\11\0\0", "", "length"),
	BAD("\1\3\0\1\1\10\0\0", "", "length"),
	/* order */
	BAD(OUT("\1") "a" OUT("\0") OUT("\1") "b" END, "out a", "after"),
	BAD(OUT("\0") OUT("\1") "b" END, "", "after"),
};

/* A response that arrives in pieces; the content so far, as text. */
struct reading {
	struct fcgi fcgi;
	char says[256];
	size_t length;
	enum fcgi_event last;
	ssize_t fault;
	size_t used;
};

static void say(struct reading *reading, const struct fcgi_found *found)
{
	static const char *const names[] = {
		[FCGI_OUT] = "out ", [FCGI_ERR] = "err ", [FCGI_VALUES] = "values "};
	char *at = reading->says + reading->length;

	if (found->event == FCGI_NOTHING)
		return;
	if (reading->last != found->event) {
		at += sprintf(at, "%s", reading->length ? ";" : "");
		at += sprintf(at, "%s", found->event == FCGI_END ? "end " : names[found->event]);
	}
	if (found->event == FCGI_END)
		at += sprintf(at, "%u/%d", found->exit_status, (int)found->status);
	for (size_t i = 0; i < found->run.length; i++)
		*at++ = found->run.at[i] >= ' ' ? found->run.at[i] : '.';
	*at = '\0';
	reading->length = (size_t)(at - reading->says);
	reading->last = found->event;
}

static void feed(struct reading *reading, const char *data, size_t length)
{
	char *piece = must_alloc(length);
	size_t at = 0;

	memcpy(piece, data, length);
	while (at < length && !reading->fault && !fcgi_is_over(&reading->fcgi)) {
		struct fcgi_found found;
		ssize_t used = fcgi_read(&reading->fcgi, piece + at, length - at, &found);

		if (used < 0) {
			reading->fault = used;
			break;
		}
		expect(used > 0 && (size_t)used <= length - at);
		expect((found.event == FCGI_END) == fcgi_is_over(&reading->fcgi));
		if (found.event == FCGI_OUT || found.event == FCGI_ERR ||
		    found.event == FCGI_VALUES)
			expect(found.run.length && found.run.at >= piece + at &&
			       found.run.at + found.run.length == piece + at + used);
		else
			expect(!found.run.length);
		say(reading, &found);
		at += (size_t)used;
	}
	reading->used += at;
	free(piece);
}

static void judge(const struct reading *reading, size_t i, size_t first, size_t second)
{
	const struct answer_case *c = &cases[i];

	ck_assert_msg(!reading->fault == !c->wrong, "case %zu cut at %zu, %zu: %zd", i, first,
		      second, reading->fault);
	if (c->wrong)
		ck_assert_msg(strstr(fcgi_fault(reading->fault), c->wrong), "case %zu: %s", i,
			      fcgi_fault(reading->fault));
	ck_assert_msg(strcmp(reading->says, c->says) == 0, "case %zu cut at %zu, %zu: %s", i, first,
		      second, reading->says);
	ck_assert_msg(fcgi_is_over(&reading->fcgi) == c->over, "case %zu", i);
	if (c->over)
		ck_assert_msg(reading->used == c->length, "case %zu: %zu bytes", i, reading->used);
}

START_TEST(test_cut_anywhere)
{
	char raw[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* After its end more bytes may follow, which are not touched. */
		size_t length = cases[i].length;
		size_t whole = length + (cases[i].over ? sizeof(REST) - 1 : 0);

		memcpy(raw, cases[i].raw, length);
		memcpy(raw + length, REST, whole - length);
		for (size_t first = 0; first <= whole; first++) {
			for (size_t second = first; second <= whole; second++) {
				struct reading reading = {.length = 0};

				fcgi_init(&reading.fcgi, 1);
				feed(&reading, raw, first);
				feed(&reading, raw + first, second - first);
				feed(&reading, raw + second, whole - second);
				judge(&reading, i, first, second);
			}
		}
	}
}
END_TEST

START_TEST(test_byte_by_byte)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reading reading = {.length = 0};

		fcgi_init(&reading.fcgi, 1);
		for (size_t at = 0; at < cases[i].length; at++)
			feed(&reading, cases[i].raw + at, 1);
		judge(&reading, i, 1, 1);
	}
}
END_TEST

/* Only the records of this request are its response, whatever ids others had. */
START_TEST(test_ids)
{
	static const unsigned ids[] = {1, 2, 255, 256, FCGI_ID_MAX};
	const unsigned count = sizeof(ids) / sizeof(ids[0]);

	for (unsigned i = 0; i < count * count; i++) {
		unsigned wanted = ids[i / count], sent = ids[i % count];
		struct reading reading = {.length = 0};
		char raw[FCGI_HEADER_SIZE + 1];

		fcgi_header(raw, FCGI_STDOUT, sent, 1);
		raw[FCGI_HEADER_SIZE] = 'a';
		fcgi_init(&reading.fcgi, wanted);
		feed(&reading, raw, sizeof(raw));
		if (sent == wanted)
			ck_assert_str_eq(reading.says, "out a");
		else
			ck_assert_str_eq(fcgi_fault(reading.fault),
					 "a record with the id of another request");
	}
}
END_TEST

/* The largest record, with the largest padding. */
START_TEST(test_largest)
{
	static const char header[] = "\1\6\0\1\377\377\377";
	size_t length = FCGI_HEADER_SIZE + 65535 + 255, content = 0, at = 0;
	char *raw = must_alloc(length);
	struct fcgi fcgi;

	memset(raw, 1, length);
	memcpy(raw, header, sizeof(header)); /* its NUL is reserved */
	fcgi_init(&fcgi, 1);
	while (at < length) {
		struct fcgi_found found;
		ssize_t used = fcgi_read(&fcgi, raw + at, length - at, &found);

		ck_assert_int_gt(used, 0);
		content += found.run.length;
		at += (size_t)used;
	}
	ck_assert_uint_eq(content, 65535);
	free(raw);
}
END_TEST

/* Any input is consumed, refused or the end. */
START_TEST(test_noise)
{
	static const char alphabet[] = "\0\0\0\1\1\1\1\3\6\7\10\12\13\377";
	uint64_t state = 3;

	for (unsigned i = 0; i < scaled(50000); i++) {
		struct fcgi fcgi;
		char noise[64] = "\1\6\0\1";
		size_t at = 0;

		for (size_t n = i % 5; n < sizeof(noise); n++)
			noise[n] = alphabet[random_next(&state) % (sizeof(alphabet) - 1)];
		fcgi_init(&fcgi, 1);
		while (at < sizeof(noise) && !fcgi_is_over(&fcgi)) {
			struct fcgi_found found;
			ssize_t used = fcgi_read(&fcgi, noise + at, sizeof(noise) - at, &found);

			if (used < 0)
				break;
			expect(used > 0 && at + (size_t)used <= sizeof(noise));
			at += (size_t)used;
		}
	}
}
END_TEST

/* --- writing -------------------------------------------------------------------- */

START_TEST(test_headers)
{
	char out[FCGI_BEGIN_SIZE];

	fcgi_begin(out, true);
	ck_assert_mem_eq(out, "\1\1\0\1\0\10\0\0\0\1\1\0\0\0\0\0", 16);
	fcgi_begin(out, false);
	ck_assert_mem_eq(out, "\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0", 16);
	fcgi_header(out, FCGI_STDIN, 1, 0);
	ck_assert_mem_eq(out, "\1\5\0\1\0\0\0\0", 8);
	fcgi_header(out, FCGI_STDIN, 1, FCGI_CONTENT_MAX);
	ck_assert_mem_eq(out, "\1\5\0\1\377\377\0\0", 8);
	fcgi_header(out, FCGI_STDIN, 1, 0x1234);
	ck_assert_mem_eq(out, "\1\5\0\1\x12\x34\0\0", 8);
	fcgi_header(out, FCGI_STDIN, 0x1234, 0);
	ck_assert_mem_eq(out, "\1\5\x12\x34\0\0\0\0", 8);
	ck_assert_uint_eq(fcgi_id(out), 0x1234);
	fcgi_header(out, FCGI_ABORT_REQUEST, 1, 0);
	ck_assert_mem_eq(out, "\1\2\0\1\0\0\0\0", 8);
}
END_TEST

/* All records of a request get its id; the content of the last one follows later. */
START_TEST(test_set_id)
{
	static const char wanted[] = "\1\1\1\2\0\10\0\0\0\1\1\0\0\0\0\0"
				     "\1\4\1\2\0\5\0\0\1\2Abc\1\4\1\2\0\0\0\0"
				     "\1\5\1\2\377\377\0\0";
	struct slice block = {"A=bc", 5};
	char out[sizeof(wanted) - 1];
	char *at = out;

	fcgi_begin(at, true);
	at += FCGI_BEGIN_SIZE;
	at += fcgi_params(&block, at, (size_t)(out + sizeof(out) - at));
	at += fcgi_params(&block, at, (size_t)(out + sizeof(out) - at));
	fcgi_header(at, FCGI_STDIN, 1, FCGI_CONTENT_MAX);
	ck_assert_ptr_eq(at + FCGI_HEADER_SIZE, out + sizeof(out));
	fcgi_set_id(out, sizeof(out), 0x102);
	ck_assert_mem_eq(out, wanted, sizeof(out));
}
END_TEST

#define BLOCK(text) ((struct slice){text, sizeof(text)})

START_TEST(test_params)
{
	struct slice block = BLOCK("A=bc\0D=");
	char out[64];

	ck_assert_int_eq(fcgi_params(&block, out, sizeof(out)), 8 + 5 + 3);
	ck_assert_mem_eq(out, "\1\4\0\1\0\10\0\0\1\2Abc\1\0D", 16);
	ck_assert_uint_eq(block.length, 0);
	ck_assert_int_eq(fcgi_params(&block, out, sizeof(out)), 8);
	ck_assert_mem_eq(out, "\1\4\0\1\0\0\0\0", 8);
	/* Without an equals sign; with two; without the last NUL; an empty string. */
	block = (struct slice){"A\0B=c=d\0\0E=f", 12};
	ck_assert_int_eq(fcgi_params(&block, out, sizeof(out)), 8 + 3 + 6 + 2 + 4);
	ck_assert_mem_eq(out, "\1\4\0\1\0\17\0\0\1\0A\1\3Bc=d\0\0\1\1Ef", 23);
}
END_TEST

/* A block of `count` variables, "V0042=xxx...", of `value` bytes each. */
static struct slice make_block(unsigned count, size_t value)
{
	size_t each = 6 + value + 1;
	char *text = must_alloc(count * each);

	for (unsigned i = 0; i < count; i++) {
		char *at = text + i * each;

		snprintf(at, 7, "V%04u=", i % 10000);
		memset(at + 6, 'a' + (int)(i % 26), value);
		at[each - 1] = '\0';
	}
	return (struct slice){text, count * each};
}

/* Writes block in records of at most `size` bytes; reads them back and compares. */
static unsigned round_trip(struct slice block, size_t size, unsigned count, size_t value_length)
{
	unsigned records = 0, pairs = 0;

	for (;; records++) {
		char *out = must_alloc(size), text[16];
		ssize_t length = fcgi_params(&block, out, size);
		struct slice rest, name, value;

		ck_assert_int_ge(length, 8);
		ck_assert_mem_eq(out, "\1\4\0\1", 4);
		rest = (struct slice){out + 8, (size_t)(length - 8)};
		ck_assert_uint_eq((size_t)(unsigned char)out[4] << 8 | (unsigned char)out[5],
				  rest.length);
		/* No variable is divided between two records. */
		while (fcgi_pair(&rest, &name, &value)) {
			snprintf(text, sizeof(text), "V%04u", pairs);
			expect(slice_is(name, text) && value.length == value_length);
			expect(value.length == 0 ||
			       value.at[value.length - 1] == 'a' + (int)(pairs % 26));
			pairs++;
		}
		ck_assert_uint_eq(rest.length, 0);
		free(out);
		if (length == 8)
			break;
	}
	ck_assert_uint_eq(pairs, count);
	return records;
}

START_TEST(test_records)
{
	static const size_t lengths[] = {0, 1, 126, 127, 128, 255, 256, 1000};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct slice block = make_block(100, lengths[i]);
		size_t pair = 1 + (lengths[i] > 127 ? 4 : 1) + 5 + lengths[i];

		ck_assert_uint_eq(round_trip(block, 8 + pair, 100, lengths[i]), 100);
		ck_assert_uint_eq(round_trip(block, 8 + 2 * pair - 1, 100, lengths[i]), 100);
		ck_assert_uint_eq(round_trip(block, 8 + 2 * pair, 100, lengths[i]), 50);
		/* A record has a limit, for any size of the memory. */
		ck_assert_uint_eq(round_trip(block, 1000000, 100, lengths[i]),
				  pair * 100 > 65535 ? 2 : 1);
		free((char *)block.at);
	}
}
END_TEST

START_TEST(test_no_room)
{
	struct slice block = make_block(1, 100), before = block;
	char out[128];

	for (size_t size = 0; size < 8 + 2 + 5 + 100; size++)
		ck_assert_int_eq(fcgi_params(&block, out, size), -1);
	ck_assert(block.at == before.at && block.length == before.length);
	ck_assert_int_eq(fcgi_params(&block, out, 8 + 2 + 5 + 100), 8 + 2 + 5 + 100);
	for (size_t size = 0; size < 8; size++)
		ck_assert_int_eq(fcgi_params(&block, out, size), -1);
	free((char *)before.at);

	/* A value that fits into no record. */
	block = before = make_block(1, 65526);
	{
		char *large = must_alloc(100000);

		ck_assert_int_eq(fcgi_params(&block, large, 100000), -1);
		free((char *)before.at);
		block = before = make_block(1, 65525);
		ck_assert_int_eq(fcgi_params(&block, large, 100000), 8 + 65535);
		free(large);
	}
	free((char *)before.at);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_cut_anywhere);
	tcase_add_test(tcase, test_byte_by_byte);
	tcase_add_test(tcase, test_ids);
	tcase_add_test(tcase, test_largest);
	tcase_add_test(tcase, test_noise);
	tcase_add_test(tcase, test_headers);
	tcase_add_test(tcase, test_set_id);
	tcase_add_test(tcase, test_params);
	tcase_add_test(tcase, test_records);
	tcase_add_test(tcase, test_no_room);
}

RUN_SUITE("fcgi", fill)
