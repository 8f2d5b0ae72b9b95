/* SPDX-License-Identifier: MIT */
/*
 * test-client-hello.c - unit tests of client-hello.c: when a ClientHello is whole, however its bytes
 * are spread over records; and what is none.
 */
#include <stdlib.h>
#include <string.h>

#include "tls/client-hello.h"

#include "suite.h"

#define ROOM (256u << 10)

static char bytes[ROOM];
static size_t used;

static void put(const void *data, size_t length)
{
	ck_assert_uint_le(used + length, ROOM);
	memcpy(bytes + used, data, length);
	used += length;
}

static void put_record(unsigned type, const char *content, size_t length)
{
	const unsigned char head[] = {(unsigned char)type, 3, 1, (unsigned char)(length >> 8),
				      (unsigned char)length};

	put(head, sizeof(head));
	put(content, length);
}

/* A message of `length` bytes after its head, in records of at most `size` bytes. */
static void put_message(unsigned type, size_t length, size_t size)
{
	char *message = must_alloc(length + 4);

	memset(message, 'x', length + 4);
	message[0] = (char)type;
	message[1] = (char)(length >> 16);
	message[2] = (char)(length >> 8);
	message[3] = (char)length;
	used = 0;
	for (size_t at = 0; at < length + 4; at += size)
		put_record(22, message + at, length + 4 - at < size ? length + 4 - at : size);
	free(message);
}

/* Each shorter part must be a part, and all of it whole; as well with bytes behind it. */
static void check_whole(void)
{
	for (size_t length = 0; length < used; length++)
		ck_assert_int_eq(client_hello_look(bytes, length), CLIENT_HELLO_PART);
	ck_assert_int_eq(client_hello_look(bytes, used), CLIENT_HELLO_WHOLE);
	put("\x14\x03\x03\0\1\1", 6);
	ck_assert_int_eq(client_hello_look(bytes, used), CLIENT_HELLO_WHOLE);
}

START_TEST(test_whole)
{
	static const size_t sizes[] = {16384, 100, 7, 3, 1};

	put_message(1, 512, sizes[_i]);
	check_whole();
}
END_TEST

/* Records without content, before and within the message. */
START_TEST(test_empty_records)
{
	used = 0;
	put_record(22, "", 0);
	put_record(22, "\1\0", 2);
	put_record(22, "", 0);
	put_record(22, "\0\3ab", 4);
	put_record(22, "c", 1);
	check_whole();
}
END_TEST

/* In the format of SSL 2. */
START_TEST(test_old)
{
	used = 0;
	put("\x80\x20\1\3\3", 5);
	put("0123456789012345678901234567", 29);
	for (size_t length = 0; length < used; length++)
		ck_assert_int_eq(client_hello_look(bytes, length), CLIENT_HELLO_PART);
	ck_assert_int_eq(client_hello_look(bytes, used), CLIENT_HELLO_WHOLE);
	ck_assert_int_eq(client_hello_look("\xff\xff\1\3\3", 5), CLIENT_HELLO_WHOLE);
}
END_TEST

/* Of what is no ClientHello, a library finds that out as soon as a record is there. */
START_TEST(test_other)
{
	ck_assert_int_eq(client_hello_look("get /", 5), CLIENT_HELLO_WHOLE);
	ck_assert_int_eq(client_hello_look("\0\0\0\0\0", 5), CLIENT_HELLO_WHOLE);
	ck_assert_int_eq(client_hello_look("\x16\3\1\x40\1", 5), CLIENT_HELLO_WHOLE);
	ck_assert_int_eq(client_hello_look("\x15\3\1\0\2\2", 6), CLIENT_HELLO_PART);
	ck_assert_int_eq(client_hello_look("\x15\3\1\0\2\2\x28", 7), CLIENT_HELLO_WHOLE);
	put_message(2, 100, 50);
	ck_assert_int_eq(client_hello_look(bytes, 54), CLIENT_HELLO_PART);
	ck_assert_int_eq(client_hello_look(bytes, 55), CLIENT_HELLO_WHOLE);
}
END_TEST

START_TEST(test_long)
{
	put_message(1, CLIENT_HELLO_MAX, 8192);
	ck_assert_int_eq(client_hello_look(bytes, used - 1), CLIENT_HELLO_PART);
	ck_assert_int_eq(client_hello_look(bytes, used), CLIENT_HELLO_WHOLE);
	/* Its length says it, before it has come. */
	put_message(1, CLIENT_HELLO_MAX + 1, 10);
	ck_assert_int_eq(client_hello_look(bytes, 14), CLIENT_HELLO_PART);
	ck_assert_int_eq(client_hello_look(bytes, 15), CLIENT_HELLO_LONG);
	/* Most of it are the headers of records. */
	put_message(1, CLIENT_HELLO_MAX, 1);
	ck_assert_int_eq(client_hello_look(bytes, CLIENT_HELLO_BYTES), CLIENT_HELLO_PART);
	ck_assert_int_eq(client_hello_look(bytes, CLIENT_HELLO_BYTES + 1), CLIENT_HELLO_LONG);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_whole, 0, 5);
	tcase_add_test(tcase, test_empty_records);
	tcase_add_test(tcase, test_old);
	tcase_add_test(tcase, test_other);
	tcase_add_test(tcase, test_long);
}

RUN_SUITE("client-hello", fill)
