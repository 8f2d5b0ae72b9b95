/* SPDX-License-Identifier: MIT */
/*
 * test-request-head.c - unit tests of the request head: where it ends, however its
 * bytes arrive, and random changes from a fixed seed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/request.h"

#include "request-fixture.h"
#include "suite.h"

/* No prefix of a head is a head, and parsing it must not read beyond it. */
START_TEST(test_prefixes)
{
	static const char head[] =
		"GET http://h/a?b HTTP/1.1\r\nHost: h:80\r\nContent-Length: 5\r\nA: b\r\n" E;
	size_t length;

	for (length = 0; length < sizeof(head) - 1; length++)
		ck_assert_int_eq(parse(head, length), -400);
	ck_assert_int_eq(parse(head, length), 0);
}
END_TEST

/* clang-format off */
#define END(head) {head "GET /next HTTP/1.1\r\n\r\n\r\n", sizeof(head) - 1}
/* clang-format on */

/* Heads with their end, and bytes that may follow it. */
static const struct {
	const char *text;
	size_t length;
} ends[] = {
	END(L H E),
	END(L E),
	END(E L H E),
	END(E E L H E),
	END(E E E E L H E),
	END(E E E E E), /* too many: the parser refuses it */
	END("\n" L H E),
	END("\n\r\n" L H E),
	END("\n\n\n\n\n"),
	END("\r\n\n\r\n\n\r\n"),
	END("GET / HTTP/1.1\n\n"),
	END("GET / HTTP/1.1\r\n\n"),
	END("GET / HTTP/1.1\n\r\n"),
	END(L "Host: h\n" E),
	END(L "Host: h\n\n"),
	END(L "A: \r \r\r\n" H E),
	END("\r" E E),
	END("\rx\n\n"),
	END("x\r\r\n\r\n"),
	END("x\n\r\r\n\r\n"),
#undef END
};

/* Every division into two pieces, and one byte at a time. */
START_TEST(test_head_length)
{
	size_t i, length, seen;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t total = strlen(ends[i].text);

		for (length = 0; length <= total; length++) {
			char *data = copy(ends[i].text, length);
			size_t expected = length < ends[i].length ? 0 : ends[i].length;

			for (seen = 0; seen <= length && seen < ends[i].length; seen++)
				ck_assert_msg(request_head_length(data, length, seen) == expected,
					      "%zu: %zu bytes, %zu seen", i, length, seen);
			free(data);
		}
	}
}
END_TEST

/* If they arrive byte by byte, heads end at the same byte as at once. */
START_TEST(test_head_length_random)
{
	static const char alphabet[] = "\r\r\r\n\n\nab";
	uint32_t state = 1;
	unsigned found = 0;
	int round, rounds = (int)scaled(20000);

	for (round = 0; round < rounds; round++) {
		char data[24];
		size_t i, whole, length;

		for (i = 0; i < sizeof(data); i++) {
			state = state * 1664525 + 1013904223;
			data[i] = alphabet[(state >> 16) % (sizeof(alphabet) - 1)];
		}
		whole = request_head_length(data, sizeof(data), 0);
		for (length = 1; length <= sizeof(data); length++) {
			size_t got = request_head_length(data, length, length - 1);

			if (got) {
				expect(got == length);
				break;
			}
		}
		if (length > sizeof(data))
			length = 0;
		expect(length == whole);
		found += whole > 0;
	}
	ck_assert_uint_gt(found, (unsigned)rounds / 20);
	ck_assert_uint_lt(found, (unsigned)rounds);
}
END_TEST

/* Changes a valid head at random; what is still accepted must be valid. */
START_TEST(test_mutations)
{
	static const char valid[] = "GET /some/path/index.html?query=value&x=%20y HTTP/1.1\r\n"
				    "Host: www.example.com:8080\r\n"
				    "User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n"
				    "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n"
				    "Connection: keep-alive\r\n"
				    "Content-Length: 12\r\n"
				    "Cookie: a=b; c=d\r\n"
				    "\r\n";
	static const char interesting[] = "\r\n\r\n :\t\0\x7f\xff,/?#*@[]%-09aZ";
	uint64_t state = 88172645463325252;
	unsigned accepted = 0, refused = 0;
	int round, rounds = (int)scaled(100000);

#define RANDOM(below)                                                                              \
	(state ^= state << 13, state ^= state >> 7, state ^= state << 17,                          \
	 (size_t)(state >> 11) % (below))
	for (round = 0; round < rounds; round++) {
		char data[sizeof(valid) * 2];
		size_t length = sizeof(valid) - 1;
		size_t changes = 1 + RANDOM(4), at, other, bytes, head_length;
		char *head;

		memcpy(data, valid, length);
		while (changes--) {
			at = RANDOM(length);
			switch (RANDOM(5)) {
			case 0: /* any byte */
				data[at] = (char)RANDOM(256);
				break;
			case 1: /* a byte with a meaning */
				data[at] = interesting[RANDOM(sizeof(interesting) - 1)];
				break;
			case 2: /* one byte less */
				memmove(data + at, data + at + 1, length - at - 1);
				length -= length > 1;
				break;
			case 3: /* a piece copied elsewhere */
				other = RANDOM(length);
				bytes = RANDOM(length - (at > other ? at : other));
				memmove(data + at, data + other, bytes);
				break;
			default: /* one byte more */
				memmove(data + at + 1, data + at, length - at);
				data[at] = interesting[RANDOM(sizeof(interesting) - 1)];
				length++;
			}
		}
		head = copy(data, length);
		head_length = request_head_length(head, length, 0);
		expect(head_length <= length);
		free(head);
		/* Both as a server would call it, and with the wrong length. */
		if (head_length && parse(data, head_length) == 0)
			accepted++;
		else
			refused++;
		parse(data, length);
	}
#undef RANDOM
	ck_assert_uint_gt(accepted, (unsigned)rounds / 100);
	ck_assert_uint_gt(refused, (unsigned)rounds / 100);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_prefixes);
	tcase_add_test(tcase, test_head_length);
	tcase_add_test(tcase, test_head_length_random);
	tcase_add_test(tcase, test_mutations);
}

RUN_SUITE("request-head", fill)
