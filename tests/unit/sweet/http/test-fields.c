/* SPDX-License-Identifier: MIT */
/*
 * test-fields.c - unit tests of the fields of a response's head: known names, reading and writing of
 * lines, and what one responder changes in the head of another one.  test-response.c tests which
 * lines are refused.  Single-threaded; input is a heap copy of its exact size, so that memory
 * checkers detect a read beyond.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/fields.h"

#include "suite.h"

static struct slice copy_of(const char *text)
{
	size_t length = strlen(text);
	char *copy = must_alloc(length);

	memcpy(copy, text, length);
	return (struct slice){copy, length};
}

static void drop(struct slice copy)
{
	free((void *)(uintptr_t)copy.at);
}

/* --- names ------------------------------------------------------------------------------------ */

START_TEST(test_names)
{
	for (int i = FIELD_OTHER + 1; i < FIELD_IDS; i++) {
		enum field_id id = (enum field_id)i;
		struct slice name = field_name(id), lower = field_lower_name(id);
		char other[32];

		ck_assert_msg(name.length && name.length < sizeof(other), "%d", i);
		ck_assert(slice_same(name, lower));
		for (size_t at = 0; at < lower.length; at++)
			ck_assert(!isupper((unsigned char)lower.at[at]));
		ck_assert_int_eq(field_id(name), id);
		ck_assert_int_eq(field_id(lower), id);
		/* A name that has a byte more or less, or another one, is not known. */
		snprintf(other, sizeof(other), "%sx", name.at);
		ck_assert_int_eq(field_id((struct slice){other, name.length + 1}), FIELD_OTHER);
		ck_assert_int_ne(field_id((struct slice){other, name.length - 1}), id);
		other[0] = '!';
		ck_assert_int_eq(field_id((struct slice){other, name.length}), FIELD_OTHER);
	}
	ck_assert_int_eq(field_id(SLICE("")), FIELD_OTHER);
	ck_assert_int_eq(field_id(SLICE("X")), FIELD_OTHER);
	ck_assert_int_eq(field_id(SLICE("A-Name-That-Is-Longer-Than-Each-Known-One")), FIELD_OTHER);
	/* Bit 5 does not make a letter of it. */
	ck_assert_int_eq(field_id(SLICE("Content\rType")), FIELD_OTHER);
}
END_TEST

START_TEST(test_sets)
{
	const struct field tag = field_of(FIELD_ETAG, SLICE("x"));
	const struct field other = {.id = FIELD_OTHER, .name = SLICE("X-A")};

	ck_assert(field_is_in(&tag, FIELD_BIT(FIELD_AGE) | FIELD_BIT(FIELD_ETAG)));
	ck_assert(!field_is_in(&tag, FIELD_BIT(FIELD_AGE)));
	ck_assert(!field_is_in(&other, ~UINT64_C(0)));
	ck_assert(field_has_name(&other, FIELD_OTHER, SLICE("x-a")));
	ck_assert(!field_has_name(&other, FIELD_OTHER, SLICE("x-b")));
	ck_assert(field_has_name(&tag, FIELD_ETAG, SLICE("")));
}
END_TEST

/* --- lines ------------------------------------------------------------------------------------ */

START_TEST(test_next)
{
	struct slice lines = copy_of("Name: \t a b \t\netag:\r\nBlank:  \nA b: c\r\nD: e\r\n");
	struct slice rest = lines;
	struct field field;

	ck_assert(field_next(&rest, &field));
	ck_assert_int_eq(field.id, FIELD_OTHER);
	ck_assert(slice_equals(field.name, SLICE("Name")));
	ck_assert(slice_equals(field.value, SLICE("a b")));
	ck_assert(slice_equals(field.line, SLICE("Name: \t a b \t")));
	ck_assert(field_next(&rest, &field));
	ck_assert_int_eq(field.id, FIELD_ETAG);
	ck_assert(slice_equals(field.name, SLICE("etag")));
	ck_assert_uint_eq(field.value.length, 0);
	ck_assert(field_next(&rest, &field));
	ck_assert_uint_eq(field.value.length, 0);
	/* A line that is not safe to send stays. */
	ck_assert(!field_next(&rest, &field) && !field_next(&rest, &field));
	ck_assert(slice_equals(rest, SLICE("A b: c\r\nD: e\r\n")));
	drop(lines);
	rest = (struct slice){NULL, 0};
	ck_assert(!field_next(&rest, &field));
}
END_TEST

/* Runs of sixteen bytes and their rests; what is malformed at each place. */
START_TEST(test_lengths)
{
	for (size_t length = 1; length < 70; length++)
		for (size_t at = 0; at < length + 2; at++) {
			char *line = must_alloc(length + 5);
			struct slice rest = {line, length + 5};
			struct field field;
			bool name = at < length;

			memset(line, 'a', length);
			memcpy(line + length, ":bc\r\n", 5);
			if (at < length + 1)
				line[name ? at : at + 1] = name ? ' ' : '\x01';
			ck_assert_int_eq(field_next(&rest, &field), at == length + 1);
			if (at == length + 1)
				ck_assert_uint_eq(field.name.length, length);
			free(line);
		}
}
END_TEST

static void writes(const struct field *field, const char *expected)
{
	char *out = must_alloc(strlen(expected));

	ck_assert_uint_eq(field_size(field), strlen(expected));
	ck_assert_ptr_eq(field_write(field, out), out + strlen(expected));
	ck_assert_mem_eq(out, expected, strlen(expected));
	free(out);
}

/* A line that was read is written as it was; others have one space. */
START_TEST(test_write)
{
	struct slice rest = SLICE("a:b\nC: \t d \r\n");
	struct field field = field_of(FIELD_VARY, SLICE("Accept-Encoding"));

	writes(&field, "Vary: Accept-Encoding\r\n");
	field = (struct field){.name = SLICE("X"), .value = {NULL, 0}};
	writes(&field, "X: \r\n");
	ck_assert(field_next(&rest, &field));
	writes(&field, "a:b\r\n");
	ck_assert(field_next(&rest, &field));
	writes(&field, "C: \t d \r\n");
}
END_TEST

START_TEST(test_withheld)
{
	static const struct {
		struct slice name;
		bool withheld;
	} cases[] = {
		{SLICE_OF("connection"), true},
		{SLICE_OF("TE"), true},
		{SLICE_OF("Trailer"), true},
		{SLICE_OF("Proxy-Status"), true},
		{SLICE_OF("x-nabc-new"), true},
		{SLICE_OF("X-NABC-Tag"), true},
		{SLICE_OF("X-Accel-Redirect"), true},
		{SLICE_OF("x-accel-expires"), true},
		{SLICE_OF("cache-tag"), true},
		{SLICE_OF("Proxy"), false},
		{SLICE_OF("ETag"), false},
		{SLICE_OF("X-Request-Id"), false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct field field = {.id = field_id(cases[i].name), .name = cases[i].name};

		ck_assert_msg(field_is_withheld(&field) == cases[i].withheld, "%s",
			      cases[i].name.at);
	}
}
END_TEST

/* In place, with the ends that the lines have. */
START_TEST(test_filter)
{
	static const field_set set = FIELD_BIT(FIELD_ALLOW) | FIELD_BIT(FIELD_RETRY_AFTER);
	char lines[] = "A: b\r\nallow: GET\r\nAllowed: x\nRetry-After: 7\r\n";
	char copy[sizeof(lines)];
	size_t length = strlen(lines);

	ck_assert_uint_eq(field_filter((struct slice){lines, length}, set, false, copy), 17);
	ck_assert_mem_eq(copy, "A: b\r\nAllowed: x\n", 17);
	ck_assert_uint_eq(field_filter((struct slice){lines, length}, set, true, lines), 28);
	ck_assert_mem_eq(lines, "allow: GET\r\nRetry-After: 7\r\n", 28);
}
END_TEST

/* --- lists ------------------------------------------------------------------------------------ */

static void holds(struct fields *fields, const char *expected)
{
	char *out = must_alloc(strlen(expected));

	ck_assert(!fields->failed);
	ck_assert_uint_eq(fields_size(fields), strlen(expected));
	ck_assert_ptr_eq(fields_write(fields, out), out + strlen(expected));
	ck_assert_mem_eq(out, expected, strlen(expected));
	fields_free(fields);
	free(out);
}

static void merges(const char *lines, const char *added, const char *expected)
{
	struct slice one = copy_of(lines), other = copy_of(added);
	struct fields fields;

	fields_init(&fields);
	fields_read(&fields, one);
	fields_merge(&fields, other);
	holds(&fields, expected);
	drop(one);
	drop(other);
}

START_TEST(test_merge)
{
	merges("", "", "");
	merges("A: b\r\n", "", "A: b\r\n");
	merges("", "A: b\r\n", "A: b\r\n");
	merges("A: b\r\nC: d\r\na: e\r\n", "A: x\r\nA: y\r\nE: f\r\n",
	       "C: d\r\nA: x\r\nA: y\r\nE: f\r\n");
	merges("AB: c\r\n", "A: b\r\n", "AB: c\r\nA: b\r\n");
	/* A type of a whole body is not that of its parts. */
	merges("Content-Type: text/html\r\n", "content-type: text/plain\r\n",
	       "content-type: text/plain\r\n");
	merges("Content-Type: multipart/byteranges; boundary=a\r\n",
	       "B: c\r\ncontent-type: text/plain\r\n",
	       "Content-Type: multipart/byteranges; boundary=a\r\nB: c\r\n");
	merges("Content-Type: multipart/byterange\r\n", "content-type: a/b\r\n",
	       "content-type: a/b\r\n");
}
END_TEST

/* What stays is not replaced, and not added either. */
START_TEST(test_replace)
{
	struct fields fields, added;

	fields_init(&fields);
	fields_init(&added);
	fields_read(&fields, SLICE("Content-Type: a/b\r\nETag: 1\r\nX-A: 1\r\nX-B: 1\r\n"));
	fields_read(&added, SLICE("Content-Type: c/d\r\nContent-Length: 5\r\nx-a: 2\r\nETag: 2\r\n"
				  "ETag: 3\r\n"));
	fields_replace(&fields, &added,
		       FIELD_BIT(FIELD_CONTENT_TYPE) | FIELD_BIT(FIELD_CONTENT_LENGTH));
	holds(&fields, "Content-Type: a/b\r\nX-B: 1\r\nx-a: 2\r\nETag: 2\r\nETag: 3\r\n");
	fields_free(&added);
}
END_TEST

START_TEST(test_remove)
{
	struct fields fields;

	fields_init(&fields);
	fields_read(&fields, SLICE("ETag: 1\r\nX-A: 1\r\nx-a: 2\r\nX-B: 3\r\nVary: a\r\n"));
	ck_assert_uint_eq(fields.count, 5);
	ck_assert(slice_is(fields_find(&fields, FIELD_VARY)->value, "a"));
	ck_assert_ptr_null(fields_find(&fields, FIELD_AGE));
	fields_remove_name(&fields, FIELD_OTHER, SLICE("X-a"));
	fields_remove_name(&fields, FIELD_ETAG, SLICE("etag"));
	fields_add(&fields, field_of(FIELD_AGE, SLICE("7")));
	fields_remove(&fields, FIELD_BIT(FIELD_VARY) | FIELD_BIT(FIELD_DATE));
	holds(&fields, "X-B: 3\r\nAge: 7\r\n");
}
END_TEST

/* Valid lines are read as field_next() reads them, usual names or not. */
START_TEST(test_read)
{
	static const char *const lines[] = {
		"Content-Type: a/b\r\n",
		"Content-Types:c\n",
		"content-type: \t d \r\n",
		"ETag:\r\n",
		"Last-Modified:  \r\n",
		"Vary:\n",
		"V:\r\n",
		"Set-Cookie2: x\r\n",
		"Accept-Ranges: a: b\r\n",
		"Cache-Control:x\r\n",
		"Location: /\n",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct slice line = copy_of(lines[i]), rest = line;
		struct fields fields;
		struct field field;

		fields_init(&fields);
		fields_read(&fields, line);
		ck_assert_uint_eq(fields.count, 1);
		ck_assert(field_next(&rest, &field));
		ck_assert_int_eq(fields.at[0].id, field.id);
		ck_assert(slice_equals(fields.at[0].name, field.name));
		ck_assert(slice_equals(fields.at[0].value, field.value));
		ck_assert(slice_equals(fields.at[0].line, field.line));
		fields_free(&fields);
		drop(line);
	}
}
END_TEST

/* What is not valid does not lead beyond its end. */
START_TEST(test_read_invalid)
{
	static const char *const lines[] = {"", "ETag", "ETag:", "ETag: x\r", "a\n", ":\n", "\n"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct slice line = copy_of(lines[i]);
		struct fields fields;

		fields_init(&fields);
		fields_read(&fields, line);
		ck_assert_uint_le(fields.count, 1);
		fields_free(&fields);
		drop(line);
	}
}
END_TEST

/* More than a list has room for at first, and then for the second time. */
START_TEST(test_many)
{
	enum { MANY = 5 * FIELDS_USUAL, LINE = sizeof("X-100: y\r\n") - 1 };
	char lines[MANY * LINE + 1];
	struct fields fields;

	for (unsigned i = 0; i < MANY; i++)
		snprintf(lines + (size_t)i * LINE, LINE + 1, "X-%03u: y\r\n", i);
	fields_init(&fields);
	fields_read(&fields, (struct slice){lines, MANY * LINE});
	ck_assert_uint_eq(fields.count, MANY);
	holds(&fields, lines);
	/* It is empty, and can be used again. */
	fields_add(&fields, field_of(FIELD_AGE, SLICE("7")));
	holds(&fields, "Age: 7\r\n");
}
END_TEST

/* What is reserved does not fail later; what was lost before cannot be reserved. */
START_TEST(test_reserve)
{
	struct fields fields;

	fields_init(&fields);
	ck_assert(fields_reserve(&fields, FIELDS_USUAL));
	ck_assert_ptr_null(fields.allocated);
	fields_add(&fields, field_of(FIELD_AGE, SLICE("7")));
	ck_assert(fields_reserve(&fields, 5 * FIELDS_USUAL));
	ck_assert_uint_ge(fields.room, 5 * FIELDS_USUAL + 1);
	holds(&fields, "Age: 7\r\n");
	fields.failed = true;
	ck_assert(!fields_reserve(&fields, 1));
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_sets);
	tcase_add_test(tcase, test_next);
	tcase_add_test(tcase, test_lengths);
	tcase_add_test(tcase, test_write);
	tcase_add_test(tcase, test_withheld);
	tcase_add_test(tcase, test_filter);
	tcase_add_test(tcase, test_merge);
	tcase_add_test(tcase, test_replace);
	tcase_add_test(tcase, test_remove);
	tcase_add_test(tcase, test_read);
	tcase_add_test(tcase, test_read_invalid);
	tcase_add_test(tcase, test_many);
	tcase_add_test(tcase, test_reserve);
}

RUN_SUITE("fields", fill)
