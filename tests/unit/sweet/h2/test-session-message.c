/* SPDX-License-Identifier: MIT */
/*
 * test-session-message.c - unit tests of the message of an HTTP/2 session: its bytes and their
 * order, streams that end while it is sent, and the completion of the others.  Single-threaded.
 */
#include <string.h>
#include <sys/uio.h>

#include "base/spare-memory.h"
#include "h2/session-internal.h"

#include "suite.h"

static struct spare_memory *memory;
static struct session_message message;
static struct stream streams[3];
static char text[4096];

static void begin(void)
{
	memory = message.memory = spare_memory_new();
	ck_assert_ptr_nonnull(memory);
}

static void end(void)
{
	spare_memory_free(memory);
}

static void check_bytes(const char *wanted)
{
	size_t length = 0;

	for (unsigned i = 0; i < message.count; i++) {
		memcpy(text + length, message.pieces[i].iov_base, message.pieces[i].iov_len);
		length += message.pieces[i].iov_len;
	}
	ck_assert_uint_eq(length, message.bytes);
	ck_assert_uint_eq(length, strlen(wanted));
	ck_assert(memcmp(text, wanted, length) == 0);
}

static void refer(unsigned stream, const char *bytes)
{
	ck_assert(session_message_include(&message, &streams[stream]));
	ck_assert(session_message_refer(&message, bytes, strlen(bytes), &streams[stream]));
}

static void put(const char *bytes)
{
	ck_assert(session_message_copy(&message, bytes, strlen(bytes)));
}

static unsigned done[3];

static void sent(struct stream *stream)
{
	done[stream - streams]++;
	ck_assert(!stream->in_message);
}

START_TEST(test_bytes)
{
	put("head ");
	put("more ");
	ck_assert_uint_eq(message.count, 1);
	refer(0, "memory ");
	put("last");
	ck_assert_uint_eq(message.count, 3);
	check_bytes("head more memory last");
	session_message_done(&message, sent);
	ck_assert_uint_eq(message.bytes, 0);
	ck_assert_uint_eq(done[0], 1);
	ck_assert_uint_eq(done[1], 0);
	/* The memory is used again. */
	put("next");
	check_bytes("next");
	session_message_free(&message);
}
END_TEST

START_TEST(test_release)
{
	char first[] = "first ", second[] = "second ", third[] = "third ";

	refer(0, first);
	put("and ");
	refer(1, second);
	refer(0, third);
	session_message_release(&message, &streams[0]);
	memset(first, 'x', sizeof(first) - 1);
	memset(third, 'x', sizeof(third) - 1);
	check_bytes("first and second third ");
	put("more");
	check_bytes("first and second third more");
	session_message_release(&message, &streams[2]); /* has nothing in it */
	session_message_done(&message, sent);
	ck_assert_uint_eq(done[0], 0);
	ck_assert_uint_eq(done[1], 1);
	session_message_free(&message);
}
END_TEST

/* When one stream is completed, another one ends. */
static void sent_and_ends_another(struct stream *stream)
{
	sent(stream);
	if (stream == &streams[0])
		session_message_release(&message, &streams[1]);
}

START_TEST(test_end_at_completion)
{
	refer(0, "a");
	refer(1, "b");
	refer(2, "c");
	session_message_done(&message, sent_and_ends_another);
	ck_assert_uint_eq(done[0], 1);
	ck_assert_uint_eq(done[1], 0);
	ck_assert_uint_eq(done[2], 1);
	session_message_free(&message);
}
END_TEST

/* Streams whose bytes are copies complete before the message is sent. */
START_TEST(test_copied)
{
	refer(0, "referred");
	put("copied");
	ck_assert(session_message_include(&message, &streams[1]));
	ck_assert(session_message_copied(&message, sent));
	ck_assert_uint_eq(done[0], 0);
	ck_assert_uint_eq(done[1], 1);
	ck_assert(!session_message_copied(&message, sent));
	/* The first one has more, which is copied. */
	ck_assert(session_message_include(&message, &streams[0]));
	ck_assert(!session_message_copied(&message, sent));
	check_bytes("referredcopied");
	session_message_done(&message, sent);
	ck_assert_uint_eq(done[0], 1);
	ck_assert_uint_eq(done[1], 1);
	session_message_free(&message);
}
END_TEST

START_TEST(test_full)
{
	static char block[10000];

	while (!session_message_is_full(&message))
		ck_assert(session_message_copy(&message, block, sizeof(block)));
	ck_assert_uint_ge(message.bytes, 100000);
	ck_assert_uint_lt(message.bytes, 200000);
	session_message_free(&message);
	for (unsigned i = 0; !session_message_is_full(&message); i++) {
		ck_assert_uint_lt(i, 1000);
		refer(i % 3, "a");
	}
	session_message_free(&message);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, test_bytes);
	tcase_add_test(tcase, test_release);
	tcase_add_test(tcase, test_end_at_completion);
	tcase_add_test(tcase, test_copied);
	tcase_add_test(tcase, test_full);
}

RUN_SUITE("session-message", fill)
