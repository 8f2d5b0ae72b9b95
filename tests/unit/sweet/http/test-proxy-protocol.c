/* SPDX-License-Identifier: MIT */
/*
 * test-proxy-protocol.c - unit tests of proxy-protocol.c: valid headers of both
 * versions, in pieces that end at every byte, and invalid ones of every kind; results
 * are compared as text.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/proxy-protocol.h"

#include "suite.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V2(command, family, high, low) SIGNATURE command family high low
#define FROM4 "\300\0\2\1"
#define TO4 "\306\63\144\2"
#define PORTS "\x30\x39\x01\xbb"
#define FROM6 "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
#define TO6 "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2"
#define BYTES(text) text, sizeof(text) - 1

#define SAID4 "client 192.0.2.1:12345 198.51.100.2:443"
#define SAID6 "client [2001:db8::1]:12345 [2001:db8::2]:443"

/* A copy of the exact size, so that a read beyond is detected. */
static ssize_t parse(struct proxy_header *header, const char *data, size_t length)
{
	char *copy = must_alloc(length);
	ssize_t result;

	memcpy(copy, data, length);
	result = proxy_header_parse(header, copy, length);
	free(copy);
	return result;
}

static char *address(const struct sockaddr_storage *from, char *text)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)from;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)from;
	char host[INET6_ADDRSTRLEN];

	if (from->ss_family == AF_INET)
		sprintf(text, " %s:%u", inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host)),
			ntohs(in->sin_port));
	else if (from->ss_family == AF_INET6)
		sprintf(text, " [%s]:%u", inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host)),
			ntohs(in6->sin6_port));
	else if (from->ss_family == AF_UNIX)
		strcpy(text, " unix");
	else
		*text = '\0';
	return text + strlen(text);
}

static const char *said(const struct proxy_header *header)
{
	static const char *const clients[] = {"client", "itself", "unknown"};
	static char text[200];

	address(&header->to,
		address(&header->from, text + sprintf(text, "%s", clients[header->client])));
	return text;
}

static const struct good {
	const char *data;
	size_t length;
	const char *said;
} good[] = {
	{BYTES("PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r\n"), SAID4},
	{BYTES("PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n"),
	 "client 0.0.0.0:0 255.255.255.255:65535"},
	{BYTES("PROXY TCP6 2001:db8::1 2001:db8::2 12345 443\r\n"), SAID6},
	{BYTES("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
	       "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
	 "client [ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535 "
	 "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"},
	{BYTES("PROXY TCP6 ::ffff:1.2.3.4 ::1 1 2\r\n"), "client [::ffff:1.2.3.4]:1 [::1]:2"},
	{BYTES("PROXY UNKNOWN\r\n"), "unknown"},
	{BYTES("PROXY UNKNOWN and whatever  follows\r\n"), "unknown"},
	{BYTES("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
	       "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
	 "unknown"},
	{BYTES(V2("\x21", "\x11", "\0", "\x0c") FROM4 TO4 PORTS), SAID4},
	{BYTES(V2("\x21", "\x21", "\0", "\x24") FROM6 TO6 PORTS), SAID6},
	/* Extensions: an empty one, one of five bytes. */
	{BYTES(V2("\x21", "\x11", "\0", "\x17") FROM4 TO4 PORTS "\x04\0\0\x03\0\x05"
								"abcde"),
	 SAID4},
	{BYTES(V2("\x20", "\0", "\0", "\0")), "itself"},
	{BYTES(V2("\x20", "\x11", "\0", "\x0c") FROM4 TO4 PORTS), "itself"},
	/* Addresses after LOCAL are ignored. */
	{BYTES(V2("\x20", "\xff", "\0", "\3") "xyz"), "itself"},
	{BYTES(V2("\x21", "\0", "\0", "\0")), "unknown"},
	{BYTES(V2("\x21", "\0", "\0", "\5") "\1\2\3\4\5"), "unknown"},
};

/* Complete, followed by the request, and cut off at every byte. */
START_TEST(test_good)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct proxy_header header;
		char behind[300];

		for (size_t length = 0; length < good[i].length; length++)
			ck_assert_msg(parse(&header, good[i].data, length) == 0, "%zu at %zu", i,
				      length);
		ck_assert_msg(parse(&header, good[i].data, good[i].length) ==
				      (ssize_t)good[i].length,
			      "%zu", i);
		ck_assert_str_eq(said(&header), good[i].said);
		memset(behind, 'x', sizeof(behind));
		memcpy(behind, good[i].data, good[i].length);
		ck_assert_int_eq(parse(&header, behind, sizeof(behind)), (ssize_t)good[i].length);
		ck_assert_str_eq(said(&header), good[i].said);
	}
}
END_TEST

START_TEST(test_unix)
{
	char data[16 + 216 + 4] = V2("\x21", "\x31", "\0", "\xdc");
	struct proxy_header header;

	memset(data + 16, 'p', 216);
	data[16 + 216] = 5;
	data[16 + 217] = 0;
	data[16 + 218] = 1;
	data[16 + 219] = 'v';
	for (size_t length = 0; length < sizeof(data); length++)
		ck_assert_int_eq(parse(&header, data, length), 0);
	ck_assert_int_eq(parse(&header, data, sizeof(data)), sizeof(data));
	ck_assert_str_eq(said(&header), "client unix unix");
	data[15] = (char)0xd7;
	ck_assert_int_eq(parse(&header, data, sizeof(data)), -EINVAL);
}
END_TEST

static const struct {
	const char *data;
	size_t length;
	int error;
} bad[] = {
	/* Not a header at all. */
	{BYTES("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), -EINVAL},
	{BYTES("PUT / HTTP/1.1\r\n\r\n"), -EINVAL},
	{BYTES("proxy TCP4 1.2.3.4 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("PROXY\r\n"), -EINVAL},
	{BYTES("PROXY\tTCP4 1.2.3.4 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("\0"), -EINVAL},
	{BYTES(" PROXY TCP4 1.2.3.4 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("\r\n\r\nGET / HTTP/1.1\r\n"), -EINVAL},
	{BYTES("\r\n\r\n\0\r\nQUIX\n\x21\x11\0\x0c"), -EINVAL},
	/* Version 1: fields. */
	{BYTES("PROXY \r\n"), -EINVAL},
	{BYTES("PROXY TCP4\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 \r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 \r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 1 \r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 1 1\r\n"), -EINVAL},
	{BYTES("PROXY  TCP4 1.2.3.4 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4  1.2.3.4 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP5 1.2.3.4 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("PROXY tcp4 1.2.3.4 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("PROXY UNKNOWNS\r\n"), -EINVAL},
	{BYTES("PROXY UNKNOW\r\n"), -EINVAL},
	{BYTES("PROXY UDP4 1.2.3.4 1.2.3.4 1 1\r\n"), -EINVAL},
	/* Version 1: addresses and ports. */
	{BYTES("PROXY TCP4 ::1 ::1 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP6 1.2.3.4 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 ::1 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.256 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.04 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4\0 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 localhost 1.2.3.4 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP6 fe80::1%lo ::1 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP6 [::1] ::1 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP6 1:2:3:4:5:6:7:8:9 ::1 1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 65536 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 100000 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 01 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 -1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 +1 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1a 1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4  1\r\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1\0 1\r\n"), -EINVAL},
	/* Version 1: the end of the line. */
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 1\r\r\n"), -EINVAL},
	{BYTES("PROXY \n"), -EINVAL},
	{BYTES("PROXY UNKNOWN\n"), -EINVAL},
	{BYTES("PROXY UNKNOWN x\n"), -EINVAL},
	{BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 12\n"), -EINVAL},
	{BYTES("PROXY UNKNOWN 345678901234567890123456789012345678901234567890"
	       "12345678901234567890123456789012345678901234567890123456\r\n"),
	 -EMSGSIZE},
	/* Version 2. */
	{BYTES(V2("\x11", "\x11", "\0", "\x0c") FROM4 TO4 PORTS), -EINVAL},
	{BYTES(V2("\x31", "\x11", "\0", "\x0c") FROM4 TO4 PORTS), -EINVAL},
	{BYTES(V2("\x22", "\x11", "\0", "\x0c") FROM4 TO4 PORTS), -EINVAL},
	{BYTES(SIGNATURE "\x31"), -EINVAL},
	{BYTES(V2("\x21", "\x10", "\0", "\x0c") FROM4 TO4 PORTS), -EINVAL},
	{BYTES(V2("\x21", "\x01", "\0", "\x0c") FROM4 TO4 PORTS), -EINVAL},
	{BYTES(V2("\x21", "\x12", "\0", "\x0c") FROM4 TO4 PORTS), -EINVAL},
	{BYTES(V2("\x21", "\x41", "\0", "\x0c") FROM4 TO4 PORTS), -EINVAL},
	{BYTES(V2("\x21", "\x11", "\0", "\x0b") FROM4 TO4 PORTS), -EINVAL},
	{BYTES(V2("\x21", "\x11", "\0", "\0")), -EINVAL},
	{BYTES(V2("\x21", "\x21", "\0", "\x0c") FROM4 TO4 PORTS), -EINVAL},
	{BYTES(V2("\x21", "\x11", "\0", "\x0d") FROM4 TO4 PORTS "\4"), -EINVAL},
	{BYTES(V2("\x21", "\x11", "\0", "\x0e") FROM4 TO4 PORTS "\4\0"), -EINVAL},
	{BYTES(V2("\x21", "\x11", "\0", "\x0f") FROM4 TO4 PORTS "\4\0\1"), -EINVAL},
	{BYTES(V2("\x21", "\x11", "\0", "\x10") FROM4 TO4 PORTS "\4\xff\xff."), -EINVAL},
	{BYTES(V2("\x21", "\x11", "\0", "\x13") FROM4 TO4 PORTS "\4\0\0\3\0\2."), -EINVAL},
	{BYTES(V2("\x21", "\x11", "\xff", "\xff") FROM4 TO4 PORTS), -EMSGSIZE},
	{BYTES(V2("\x20", "\0", "\xff", "\xff")), -EMSGSIZE},
};

START_TEST(test_bad)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct proxy_header header;
		ssize_t result = 0;
		size_t length = 0;

		ck_assert_msg(parse(&header, bad[i].data, bad[i].length) == bad[i].error, "%zu: %s",
			      i, bad[i].data);
		/* In pieces: never accepted, and refused at the same byte. */
		while (result == 0 && length <= bad[i].length)
			result = parse(&header, bad[i].data, length++);
		ck_assert_msg(result == bad[i].error, "%zu: %s", i, bad[i].data);
	}
}
END_TEST

/* The limits of both versions: the longest valid header, and one byte more. */
START_TEST(test_longest)
{
	char *data = must_alloc(PROXY_HEADER_MAX + 1);
	struct proxy_header header;
	size_t rest = PROXY_HEADER_MAX - 16 - 12 - 3;

	memset(data, 'x', PROXY_HEADER_MAX + 1);
	memcpy(data, "PROXY UNKNOWN ", 14);
	memcpy(data + 105, "\r\n", 2);
	ck_assert_int_eq(parse(&header, data, 107), 107);
	memcpy(data + 105, "x\r\n", 3);
	ck_assert_int_eq(parse(&header, data, 106), 0);
	ck_assert_int_eq(parse(&header, data, 107), -EMSGSIZE);
	ck_assert_int_eq(parse(&header, data, 108), -EMSGSIZE);

	memcpy(data, V2("\x21", "\x11", "\0", "\0") FROM4 TO4 PORTS "\4", 29);
	data[14] = (char)((PROXY_HEADER_MAX - 16) >> 8);
	data[15] = (char)((PROXY_HEADER_MAX - 16) & 255);
	data[29] = (char)(rest >> 8);
	data[30] = (char)(rest & 255);
	ck_assert_int_eq(parse(&header, data, PROXY_HEADER_MAX - 1), 0);
	ck_assert_int_eq(parse(&header, data, PROXY_HEADER_MAX), PROXY_HEADER_MAX);
	ck_assert_str_eq(said(&header), SAID4);
	data[15]++;
	ck_assert_int_eq(parse(&header, data, 16), -EMSGSIZE);
	free(data);
}
END_TEST

/*
 * Changed, lost and inserted bytes: any result is within bounds, and is the same if
 * the bytes arrive one by one.
 */
START_TEST(test_mutated)
{
	uint64_t state = 4;

	for (unsigned round = 0; round < scaled(100000); round++) {
		const struct good *from =
			&good[random_next(&state) % (sizeof(good) / sizeof(*good))];
		size_t length = from->length;
		struct proxy_header header;
		ssize_t whole, piece = 0;
		char data[300];

		memcpy(data, from->data, length);
		for (unsigned i = 0; i <= round % 4; i++) {
			size_t at = random_next(&state) % length;

			switch (random_next(&state) % 4) {
			case 0:
				data[at] = (char)random_next(&state);
				break;
			case 1:
				data[at] ^= (char)(1 << random_next(&state) % 8);
				break;
			case 2:
				memmove(data + at, data + at + 1, length - at - 1);
				length -= length > 1;
				break;
			default:
				memmove(data + at + 1, data + at, length - at);
				length++;
			}
		}
		whole = parse(&header, data, length);
		expect(whole == -EINVAL || whole == -EMSGSIZE ||
		       (whole >= 0 && whole <= (ssize_t)length));
		if (whole > 0 && header.client == PROXY_CLIENT)
			expect(header.from.ss_family == header.to.ss_family &&
			       header.from.ss_family != AF_UNSPEC);
		else if (whole > 0)
			expect(header.from.ss_family == AF_UNSPEC &&
			       header.to.ss_family == AF_UNSPEC);
		for (size_t now = 0; now <= length && piece == 0; now++)
			piece = proxy_header_parse(&header, data, now);
		expect(piece == whole);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_good);
	tcase_add_test(tcase, test_unix);
	tcase_add_test(tcase, test_bad);
	tcase_add_test(tcase, test_longest);
	tcase_add_test(tcase, test_mutated);
}

RUN_SUITE("proxy-protocol", fill)
