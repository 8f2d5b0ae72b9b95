/* SPDX-License-Identifier: MIT */
/*
 * test-wire.c - unit tests of wire.c: one valid record of each kind between an owner
 * and its members, then each field is corrupted in turn; random bytes as a record of
 * any kind.  Records are heap copies of their exact length, so that memory checkers
 * detect a read beyond.  Single-threaded.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "base/id.h"
#include "wire/wire.h"

#include "suite.h"

static const struct nc_wire_welcome good = {
	.magic = NC_WIRE_MAGIC,
	.version = NC_WIRE_VERSION,
	.member = 1,
	.slots = 64,
	.generation = 1,
	.channels = 2,
	.queue_size = 65536,
	.segment_size = 1 << 20,
	.data_offset = 4096,
	.max_unit = 1 << 18,
};

static int check_welcome(const struct nc_wire_welcome *welcome, size_t length, unsigned fds)
{
	struct nc_wire_welcome *copy = must_alloc(sizeof(*copy));
	int result;

	*copy = *welcome;
	result = nc_wire_check_welcome(copy, length, fds);
	free(copy);
	return result;
}

START_TEST(test_welcome)
{
	struct nc_wire_welcome welcome = good;

	ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 5), 0);
	welcome.channels = 0;
	ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 1), 0);
	welcome.channels = NC_WIRE_CHANNELS_MAX;
	ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 3 + NC_WIRE_CHANNELS_MAX), 0);
	welcome.member = NC_ID_MEMBERS_MAX - 1;
	welcome.slots = NC_ID_SLOTS_MAX;
	welcome.data_offset = (uint64_t)NC_ID_SLOTS_MAX * NC_WIRE_SLOT;
	welcome.segment_size = 2 * welcome.data_offset;
	welcome.generation = NC_ID_GENERATION_MAX;
	ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 3 + NC_WIRE_CHANNELS_MAX), 0);
	/* A guest without a segment. */
	welcome = (struct nc_wire_welcome){.magic = NC_WIRE_MAGIC, .version = NC_WIRE_VERSION};
	ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 0), 0);
	ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 1), -EPROTO);
	welcome.member = 1;
	ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 0), -EPROTO);
	welcome.member = 0;
	welcome.channels = 1;
	ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 3), -EPROTO);
}
END_TEST

#define SPOILT(field, value)                                                                       \
	do {                                                                                       \
		struct nc_wire_welcome welcome = good;                                             \
		welcome.field = (value);                                                           \
		ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 5), -EPROTO);            \
	} while (0)

START_TEST(test_spoilt_welcome)
{
	SPOILT(magic, 0);
	SPOILT(magic, NC_WIRE_MAGIC + 1);
	SPOILT(member, 0);
	SPOILT(member, NC_ID_MEMBERS_MAX);
	SPOILT(member, UINT32_MAX);
	SPOILT(slots, 0);
	SPOILT(slots, NC_ID_SLOTS_MAX + 1);
	SPOILT(generation, 0);
	SPOILT(generation, NC_ID_GENERATION_MAX + 1);
	SPOILT(channels, 3); /* and descriptors for two */
	SPOILT(channels, NC_WIRE_CHANNELS_MAX + 1);
	SPOILT(channels, UINT32_MAX);
	SPOILT(segment_size, 0);
	SPOILT(segment_size, (1 << 20) + 1);
	SPOILT(segment_size, 4096);
	SPOILT(data_offset, 4097);
	SPOILT(data_offset, 1 << 20);
	SPOILT(data_offset, UINT64_MAX);
	SPOILT(error, -1);
	SPOILT(error, 4096);
	SPOILT(error, INT32_MIN);
}
END_TEST

START_TEST(test_length_and_descriptors)
{
	for (size_t length = 0; length < sizeof(good); length++)
		ck_assert_int_eq(check_welcome(&good, length, 5), -EPROTO);
	ck_assert_int_eq(check_welcome(&good, sizeof(good) + 1, 5), -EPROTO);
	for (unsigned fds = 0; fds < 72; fds++)
		ck_assert_int_eq(check_welcome(&good, sizeof(good), fds), fds == 5 ? 0 : -EPROTO);
}
END_TEST

START_TEST(test_refusal)
{
	struct nc_wire_welcome welcome = {.magic = NC_WIRE_MAGIC, .version = NC_WIRE_VERSION};

	welcome.error = EUSERS;
	ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 0), -EUSERS);
	welcome.error = EACCES;
	ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 0), -EACCES);
}
END_TEST

START_TEST(test_hello)
{
	struct nc_wire_hello good_hello = {.magic = NC_WIRE_MAGIC, .version = NC_WIRE_VERSION};
	struct nc_wire_hello hello;

	for (unsigned flags = 0; flags < 4; flags++) {
		hello = good_hello;
		hello.flags = flags;
		ck_assert_int_eq(nc_wire_check_hello(&hello, sizeof(hello)), 0);
	}
	for (unsigned bit = 2; bit < 32; bit++) {
		hello = good_hello;
		hello.flags = 1u << bit;
		ck_assert_int_eq(nc_wire_check_hello(&hello, sizeof(hello)), -EPROTO);
	}
	for (size_t length = 0; length < 100; length++)
		ck_assert_int_eq(nc_wire_check_hello(&good_hello, length),
				 length == sizeof(hello) ? 0 : -EPROTO);
	for (unsigned bit = 0; bit < 32; bit++) {
		hello = good_hello;
		hello.magic ^= 1u << bit;
		ck_assert_int_eq(nc_wire_check_hello(&hello, sizeof(hello)), -EPROTO);
	}
}
END_TEST

/* The peer's newest and oldest versions. */
START_TEST(test_versions)
{
	static const struct {
		uint32_t version, oldest, common;
	} ends[] = {
		{NC_WIRE_VERSION, NC_WIRE_OLDEST, NC_WIRE_VERSION},
		{NC_WIRE_VERSION, 0, NC_WIRE_VERSION},
		{NC_WIRE_VERSION + 1, NC_WIRE_VERSION, NC_WIRE_VERSION},
		{UINT32_MAX, 1, NC_WIRE_VERSION},
		{NC_WIRE_VERSION + 1, NC_WIRE_VERSION + 1, 0},
		{NC_WIRE_VERSION + 1, 0, 0},
		{NC_WIRE_OLDEST - 1, 0, 0},
		{NC_WIRE_OLDEST - 1, 1, 0},
		{7, 0, 0},
		{0, 0, 0},
		{UINT32_MAX, UINT32_MAX, 0},
		/* More than it supports itself. */
		{NC_WIRE_VERSION, NC_WIRE_VERSION + 1, 0},
	};

	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct nc_wire_hello hello = {.magic = NC_WIRE_MAGIC,
					      .version = ends[i].version,
					      .oldest = ends[i].oldest};
		struct nc_wire_welcome welcome = good;
		int wanted = ends[i].common ? 0 : -EPROTONOSUPPORT;

		ck_assert_uint_eq(nc_wire_common(ends[i].version, ends[i].oldest), ends[i].common);
		ck_assert_int_eq(nc_wire_check_hello(&hello, sizeof(hello)), wanted);
		welcome.version = ends[i].version;
		welcome.oldest = ends[i].oldest;
		ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 5), wanted);
		/* Any other error that it cannot correct by another version. */
		welcome.error = EPROTO;
		ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 0),
				 wanted ? wanted : -EPROTO);
	}
}
END_TEST

/* Checks a head and the following bytes, as a heap block of that length. */
static int check_call(const struct nc_wire_call *head, size_t length, unsigned fds)
{
	char *message = must_alloc(length);
	struct nc_wire_call call;
	int result;

	memset(message, 'b', length);
	memcpy(message, head, length < sizeof(*head) ? length : sizeof(*head));
	result = nc_wire_check_call(message, length, fds, &call);
	if (result == 0)
		ck_assert_mem_eq(&call, head, sizeof(call));
	free(message);
	return result;
}

START_TEST(test_call)
{
	const size_t head = sizeof(struct nc_wire_call);
	struct nc_wire_call call = {.magic = NC_WIRE_MAGIC, .op = NC_WIRE_SEAL};

	for (size_t length = 0; length <= 2 * head; length++)
		ck_assert_int_eq(check_call(&call, length, 0), length == head ? 0 : -EPROTO);
	for (unsigned fds = 0; fds < 80; fds++)
		ck_assert_int_eq(check_call(&call, head, fds), fds <= 2 ? 0 : -EPROTO);
	/* Operations of a newer member, too. */
	for (unsigned op = 0; op < 100; op++) {
		call.op = op;
		ck_assert_int_eq(check_call(&call, head, 0), op >= NC_WIRE_SEAL ? 0 : -EPROTO);
	}
	call.op = UINT32_MAX;
	ck_assert_int_eq(check_call(&call, head, 0), 0);
	call.op = NC_WIRE_ROUTE;
	for (unsigned length = 0; length < 100; length++) {
		call.length = length;
		ck_assert_int_eq(check_call(&call, head + 50, 0), length == 50 ? 0 : -EPROTO);
	}
	call.length = NC_WIRE_BEHIND_MAX;
	ck_assert_int_eq(check_call(&call, head + NC_WIRE_BEHIND_MAX, 0), 0);
	call.length++;
	ck_assert_int_eq(check_call(&call, head + NC_WIRE_BEHIND_MAX + 1, 0), -EPROTO);
	call.length = UINT32_MAX;
	ck_assert_int_eq(check_call(&call, head, 0), -EPROTO);
	ck_assert_int_eq(check_call(&call, head - 1, 0), -EPROTO);
	call.length = 0;
	call.magic++;
	ck_assert_int_eq(check_call(&call, head, 0), -EPROTO);
}
END_TEST

static int check_reply(const struct nc_wire_reply *head, size_t length, unsigned fds)
{
	char *message = must_alloc(length);
	struct nc_wire_reply reply;
	int result;

	memset(message, 'b', length);
	memcpy(message, head, length < sizeof(*head) ? length : sizeof(*head));
	result = nc_wire_check_reply(message, length, fds, &reply);
	if (result == 0)
		ck_assert_mem_eq(&reply, head, sizeof(reply));
	free(message);
	return result;
}

START_TEST(test_reply)
{
	const size_t head = sizeof(struct nc_wire_reply);
	struct nc_wire_reply reply = {.magic = NC_WIRE_MAGIC};

	for (size_t length = 0; length <= 2 * head; length++)
		ck_assert_int_eq(check_reply(&reply, length, 0), length == head ? 0 : -EPROTO);
	/* As many descriptors as the flags require. */
	for (unsigned flags = 0; flags < 4; flags++)
		for (unsigned fds = 0; fds < 80; fds++) {
			reply.flags = flags;
			ck_assert_int_eq(check_reply(&reply, head, fds),
					 fds == (flags & 1) + (flags >> 1) ? 0 : -EPROTO);
		}
	reply.flags = 0;
	for (int error = -3; error < 5000; error++) {
		reply.error = error;
		ck_assert_int_eq(check_reply(&reply, head, 0),
				 error >= 0 && error < 4096 ? 0 : -EPROTO);
	}
	reply.error = INT32_MIN;
	ck_assert_int_eq(check_reply(&reply, head, 0), -EPROTO);
	reply.error = 0;
	for (unsigned length = 0; length < 100; length++) {
		reply.length = length;
		ck_assert_int_eq(check_reply(&reply, head + 50, 0), length == 50 ? 0 : -EPROTO);
	}
	reply.length = NC_WIRE_BEHIND_MAX;
	ck_assert_int_eq(check_reply(&reply, head + NC_WIRE_BEHIND_MAX, 0), 0);
	reply.length++;
	ck_assert_int_eq(check_reply(&reply, head + NC_WIRE_BEHIND_MAX + 1, 0), -EPROTO);
	reply.length = UINT32_MAX;
	ck_assert_int_eq(check_reply(&reply, head - 1, 0), -EPROTO);
	reply.length = 0;
	reply.magic ^= 0x80;
	ck_assert_int_eq(check_reply(&reply, head, 0), -EPROTO);
}
END_TEST

/* Any accepted record obeys the rules; nothing is read beyond it. */
START_TEST(test_random)
{
	uint64_t state = 41;

	for (unsigned i = 0; i < scaled(20000); i++) {
		size_t length = random_next(&state) % 120;
		unsigned char *record = must_alloc(length);
		struct nc_wire_request request;
		struct nc_wire_response response;
		struct nc_wire_reply reply;
		struct nc_wire_call call;

		for (size_t at = 0; at < length; at++)
			record[at] =
				random_next(&state) % 3 ? 0 : (unsigned char)random_next(&state);
		if (nc_wire_check_request(record, length, &request) == 0) {
			ck_assert_uint_eq(request.length + sizeof(request), length);
			ck_assert(!request.length || record[length - 1] == 0);
		}
		if (nc_wire_check_response(record, length, &response) == 0)
			ck_assert_uint_eq(response.headers_length + sizeof(response) +
						  response.ranges * sizeof(struct NC_range),
					  length);
		if (length >= 4)
			memcpy(record, &(uint32_t){NC_WIRE_MAGIC}, 4);
		if (nc_wire_check_call(record, length, 0, &call) == 0)
			ck_assert_uint_eq(call.length + sizeof(call), length);
		if (nc_wire_check_reply(record, length, 0, &reply) == 0)
			ck_assert_uint_eq(reply.length + sizeof(reply), length);
		free(record);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_welcome);
	tcase_add_test(tcase, test_spoilt_welcome);
	tcase_add_test(tcase, test_length_and_descriptors);
	tcase_add_test(tcase, test_refusal);
	tcase_add_test(tcase, test_hello);
	tcase_add_test(tcase, test_versions);
	tcase_add_test(tcase, test_call);
	tcase_add_test(tcase, test_reply);
	tcase_add_test(tcase, test_random);
}

RUN_SUITE("wire", fill)
