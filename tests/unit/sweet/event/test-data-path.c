/* SPDX-License-Identifier: MIT */
/*
 * test-data-path.c - unit tests of data-path.c and data-path-posix.c: a socket
 * delivers header, ranges and memory in order, wherever a write stopped.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "event/data-path.h"

#include "suite.h"
#include "unit-holds.h"

#define FRAGMENT 100u
#define LENGTH 1000u

static const char header[] = "HTTP/1.1 200 OK\r\n\r\n";
static NC_cache *cache;
static int pair[2];

static void begin(void)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 8 << 20);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
}

static void end(void)
{
	close(pair[0]);
	close(pair[1]);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

/* A held unit in fragments with gaps. */
static size_t held(uint64_t seed)
{
	unsigned char data[LENGTH];
	NC_handle unit;
	size_t id;

	pattern_fill(data, seed, 0, LENGTH);
	ck_assert_int_eq(NC_alloc(&unit, LENGTH, FRAGMENT), 0);
	ck_assert_int_eq(NC_write(&unit, data, LENGTH, 0), LENGTH);
	ck_assert_int_eq(NC_insert(&unit), 0);
	id = NC_cache_id(&unit);
	ck_assert_int_eq(hold_id(NULL, id), 0);
	ck_assert_int_eq(NC_free(&unit), 0);
	return id;
}

static ssize_t send_by(const struct data_path *path, const struct NC_send *message,
		       const void *data, size_t length)
{
	const struct NC_text text = {
		.data = data, .length = length, .before = message->range_count};
	struct NC_send with = *message;

	with.texts = &text;
	with.text_count = 1;
	return path->send(pair[0], &with);
}

static ssize_t send_posix(const struct NC_send *message, const void *data, size_t length)
{
	return send_by(&data_path_posix, message, data, length);
}

/* Reads all available bytes. */
static size_t take(unsigned char *got, size_t room)
{
	ssize_t more = recv(pair[1], got, room, MSG_DONTWAIT);

	return more > 0 ? (size_t)more : 0;
}

START_TEST(test_table)
{
	ck_assert_str_eq(data_paths[DATA_PATH_NABC]->name, "nabc");
	ck_assert_str_eq(data_paths[DATA_PATH_POSIX]->name, "posix");
	ck_assert_uint_eq(data_paths[DATA_PATH_NABC]->backend_flags, 0);
	ck_assert_uint_eq(data_paths[DATA_PATH_POSIX]->backend_flags, NC_BACKEND_POSIX);
}
END_TEST

/* For every number of bytes that were sent before. */
START_TEST(test_every_skip)
{
	struct NC_range ranges[] = {{.offset = 150, .length = 300},
				    {.offset = 7, .length = 0},
				    {.offset = 0, .length = LENGTH}};
	struct NC_send message = NC_SEND_INIT(.header = header, .header_length = sizeof(header) - 1,
					      .ranges = ranges, .range_count = 3);
	struct NC_hold holds[3];
	size_t head = sizeof(header) - 1, total = head + 300 + LENGTH + 50;
	unsigned char whole[2000], got[2000];

	begin();
	memcpy(whole, header, head);
	pattern_fill(whole + head, 1, 150, 300);
	pattern_fill(whole + head + 300, 2, 0, LENGTH);
	pattern_fill(whole + head + 300 + LENGTH, 3, 0, 50);
	ranges[0].id = ranges[1].id = held(1);
	ranges[2].id = held(2);
	use_holds(&message, holds);
	for (unsigned kind = 0; kind < DATA_PATHS; kind++)
		for (message.skip = 0; message.skip <= total; message.skip++) {
			size_t left = total - message.skip;

			ck_assert_int_eq(
				send_by(data_paths[kind], &message, whole + total - 50, 50),
				(ssize_t)left);
			ck_assert_uint_eq(take(got, sizeof(got)), left);
			expect(memcmp(got, whole + message.skip, left) == 0);
		}
	message.skip = 0;
	ck_assert_int_eq(data_path_nabc.send(pair[0], &message), (ssize_t)total - 50);
	ck_assert_uint_eq(take(got, sizeof(got)), total - 50);
	ck_assert_mem_eq(got, whole, total - 50);
	end();
}
END_TEST

/* With texts everywhere, and every limit, from every byte on; then the rest, and the end. */
START_TEST(test_every_limit)
{
	static const struct NC_text texts[] = {{"<a>", 3, 0}, {"<b>", 3, 1}, {NULL, 0, 1},
					       {"", 0, 2},    {"<c>", 3, 2}, {"!", 1, 2}};
	struct NC_range ranges[] = {{.offset = 95, .length = 30}, {.offset = 7, .length = 9}};
	struct NC_send message =
		NC_SEND_INIT(.header = header, .header_length = sizeof(header) - 1,
			     .ranges = ranges, .range_count = 2, .texts = texts, .text_count = 6);
	struct NC_hold holds[2];
	size_t head = sizeof(header) - 1, total = head + 3 + 30 + 3 + 9 + 4;
	unsigned char whole[200], got[200];

	begin();
	memcpy(whole, header, head);
	memcpy(whole + head, "<a>", 3);
	pattern_fill(whole + head + 3, 1, 95, 30);
	memcpy(whole + head + 33, "<b>", 3);
	pattern_fill(whole + head + 36, 2, 7, 9);
	memcpy(whole + head + 45, "<c>!", 4);
	ranges[0].id = held(1);
	ranges[1].id = held(2);
	use_holds(&message, holds);
	for (unsigned kind = 0; kind < DATA_PATHS; kind++)
		for (size_t at = 0; at < total * (total + 1); at++) {
			size_t left = total - at % total, limit = 1 + at / total;
			size_t part = limit < left ? limit : left;

			message.skip = at % total;
			message.limit = limit;
			expect(data_paths[kind]->send(pair[0], &message) == (ssize_t)part);
			message.skip += part;
			message.limit = 0;
			expect(data_paths[kind]->send(pair[0], &message) == (ssize_t)(left - part));
			expect(take(got, sizeof(got)) == left);
			expect(memcmp(got, whole + total - left, left) == 0);
		}
	message.flags = NC_SEND_CLOSE;
	for (message.skip = 0; message.skip < total; message.skip += 7) {
		message.limit = 7;
		expect(data_path_posix.send(pair[0], &message) ==
		       (ssize_t)(total - message.skip < 7 ? total - message.skip : 7));
		expect(take(got, sizeof(got)) > 0);
	}
	ck_assert_int_eq(recv(pair[1], got, 1, MSG_DONTWAIT), 0);
	end();
}
END_TEST

/* A header and a part of a file, for every number of bytes that were sent before. */
START_TEST(test_file)
{
	struct NC_sendfile message = NC_SENDFILE_INIT();
	size_t head = sizeof(header) - 1, total = head + 500;
	unsigned char whole[600], got[600];
	FILE *file = tmpfile();

	begin();
	ck_assert_ptr_nonnull(file);
	signal(SIGPIPE, SIG_IGN);
	memcpy(whole, header, head);
	pattern_fill(whole + head, 8, 0, 500);
	ck_assert_int_eq(pwrite(fileno(file), whole + head, 500, 100), 500);
	message.header = header;
	message.header_length = head;
	message.file = fileno(file);
	message.offset = 100;
	message.length = 500;
	for (unsigned apart = 0; apart < 2; apart++)
		for (message.skip = 0; message.skip <= total; message.skip++) {
			size_t left = total - message.skip;

			ck_assert_int_eq(data_path_file(&data_path_nabc, pair[0], &message, apart),
					 (ssize_t)left);
			ck_assert_uint_eq(take(got, sizeof(got)), left);
			expect(memcmp(got, whole + message.skip, left) == 0);
		}
	/* The bytes of the header's call are reported though that of the file failed. */
	message.offset = 700;
	message.skip = 3;
	ck_assert_int_eq(data_path_file(&data_path_nabc, pair[0], &message, true),
			 (ssize_t)head - 3);
	message.skip = head;
	ck_assert_int_eq(data_path_file(&data_path_nabc, pair[0], &message, true), -1);
	ck_assert_int_eq(errno, ERANGE);
	fclose(file);
	end();
}
END_TEST

/* The header is sent separately if more follows; bytes that were sent before are skipped. */
START_TEST(test_apart)
{
	struct NC_range range = {.length = LENGTH};
	struct NC_send message = NC_SEND_INIT(.header = header, .header_length = sizeof(header) - 1,
					      .ranges = &range, .range_count = 1);
	struct NC_hold hold;
	const size_t head = sizeof(header) - 1;

	for (unsigned kind = 0; kind < DATA_PATHS; kind++) {
		const struct data_path *path = data_paths[kind];
		unsigned char got[2000];

		/* Records show which bytes one call sent. */
		begin();
		close(pair[0]);
		close(pair[1]);
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		range.id = held(7);
		use_holds(&message, &hold);
		message.range_count = 1;
		message.skip = 0;
		ck_assert_int_eq(path->send_apart(pair[0], &message), (ssize_t)(head + LENGTH));
		ck_assert_uint_eq(take(got, sizeof(got)), head);
		ck_assert_mem_eq(got, header, head);
		ck_assert_uint_eq(take(got, sizeof(got)), LENGTH);
		ck_assert_uint_eq(pattern_match(got, 7, 0, LENGTH), LENGTH);
		message.skip = 5;
		ck_assert_int_eq(path->send_apart(pair[0], &message), (ssize_t)(head + LENGTH - 5));
		ck_assert_uint_eq(take(got, sizeof(got)), head - 5);
		ck_assert_uint_eq(take(got, sizeof(got)), LENGTH);
		message.skip = head + 10;
		ck_assert_int_eq(path->send_apart(pair[0], &message), (ssize_t)LENGTH - 10);
		ck_assert_uint_eq(take(got, sizeof(got)), LENGTH - 10);
		message.range_count = 0;
		message.skip = 0;
		ck_assert_int_eq(path->send_apart(pair[0], &message), (ssize_t)head);
		ck_assert_uint_eq(take(got, sizeof(got)), head);
		close(pair[1]);
		pair[1] = dup(pair[0]);
		message.range_count = 1;
		ck_assert_int_eq(path->send_apart(pair[0], &message), -1);
		ck_assert_int_eq(errno, EPIPE);
		end();
	}
}
END_TEST

/* Ten runs in each of these ranges are far more than there are vectors. */
START_TEST(test_many_runs)
{
	struct NC_range ranges[NC_RANGES_MAX];
	struct NC_send message = NC_SEND_INIT(.ranges = ranges, .range_count = NC_RANGES_MAX);
	struct NC_hold holds[NC_RANGES_MAX];
	size_t total = NC_RANGES_MAX * LENGTH + 5;
	unsigned char *got = must_alloc(total);
	size_t id, have;
	ssize_t sent;

	begin();
	id = held(4);
	for (unsigned i = 0; i < NC_RANGES_MAX; i++)
		ranges[i] = (struct NC_range){.id = id, .length = LENGTH};
	use_holds(&message, holds);
	sent = send_posix(&message, "a end", 5);
	ck_assert_int_eq(sent, (ssize_t)total);
	for (have = 0; have < total; have += (size_t)sent) {
		sent = read(pair[1], got + have, total - have);
		ck_assert_int_gt(sent, 0);
	}
	for (unsigned i = 0; i < NC_RANGES_MAX; i++)
		ck_assert_uint_eq(pattern_match(got + i * LENGTH, 4, 0, LENGTH), LENGTH);
	ck_assert_mem_eq(got + total - 5, "a end", 5);
	free(got);
	end();
}
END_TEST

/* A full socket accepts a part, then nothing, then the rest. */
START_TEST(test_short)
{
	size_t length = 4 << 20, have = 0, parts = 0;
	unsigned char *data = must_alloc(length), *got = must_alloc(length);
	struct NC_send message =
		NC_SEND_INIT(.header = "head", .header_length = 4, .flags = NC_SEND_CLOSE);

	begin();
	pattern_fill(data, 5, 0, length);
	while (message.skip < 4 + length) {
		ssize_t sent = send_posix(&message, data, length);

		ck_assert_int_gt(sent, 0);
		message.skip += (size_t)sent;
		parts++;
		if (message.skip < 4 + length) {
			ck_assert_int_eq(send_posix(&message, data, length), -1);
			ck_assert_int_eq(errno, EAGAIN);
		}
		if (have == 0) {
			char head[4];

			ck_assert_int_eq(read(pair[1], head, 4), 4);
			ck_assert_mem_eq(head, "head", 4);
		}
		while (have + 4 < message.skip) {
			size_t more = take(got + have, length - have);

			ck_assert_uint_gt(more, 0);
			have += more;
		}
	}
	ck_assert_uint_gt(parts, 1);
	ck_assert_uint_eq(pattern_match(got, 5, 0, length), length);
	/* Only with the last byte. */
	ck_assert_int_eq(read(pair[1], got, 1), 0);
	free(data);
	free(got);
	end();
}
END_TEST

START_TEST(test_errors)
{
	struct NC_range range = {.length = LENGTH + 1};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .range_count = 1);
	struct NC_hold hold;
	unsigned char got[10];

	begin();
	range.id = held(6);
	use_holds(&message, &hold);
	ck_assert_int_eq(send_posix(&message, NULL, 0), -1);
	ck_assert_int_eq(errno, ERANGE);
	range.length = LENGTH;
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	ck_assert_int_eq(send_posix(&message, NULL, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(NC_destroy(NULL, range.id), 0);
	ck_assert_int_eq(send_posix(&message, NULL, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_uint_eq(take(got, sizeof(got)), 0);
	message.range_count = 0;
	ck_assert_int_eq(send_posix(&message, NULL, 0), 0);
	/* And no signal is raised. */
	signal(SIGPIPE, SIG_DFL);
	close(pair[1]);
	ck_assert_int_eq(send_posix(&message, "x", 1), -1);
	ck_assert_int_eq(errno, EPIPE);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_table);
	tcase_add_test(tcase, test_every_skip);
	tcase_add_test(tcase, test_every_limit);
	tcase_add_test(tcase, test_file);
	tcase_add_test(tcase, test_apart);
	tcase_add_test(tcase, test_many_runs);
	tcase_add_test(tcase, test_short);
	tcase_add_test(tcase, test_errors);
}

RUN_SUITE("data-path", fill)
