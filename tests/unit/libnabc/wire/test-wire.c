/* SPDX-License-Identifier: MIT */
/*
 * test-wire.c - unit tests of wire.c: one good record of each kind, then each
 * field spoilt in turn, and random bytes.  Records are heap copies of their
 * exact length, so that memory checkers see a read too far.  Single-threaded.
 */
#include <stddef.h>

#include <nabc-worker.h>

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

/* What the other end names: the newest and the oldest version. */
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
		/* More than it can itself. */
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
		/* Whatever it was refused for: that is what it cannot mend. */
		welcome.error = EPROTO;
		ck_assert_int_eq(check_welcome(&welcome, sizeof(welcome), 0),
				 wanted ? wanted : -EPROTO);
	}
}
END_TEST

/* The head and what follows, cut to a length on the heap. */
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
	/* A newer member's operations, too. */
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
	/* As many descriptors as it says. */
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
	/* The last string must end inside. */
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
		/* Variables, a range, or nothing; length says which, or is just a count. */
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

/* Every combination of what a record may be, and of bits that mean nothing. */
START_TEST(test_response_kinds)
{
	const unsigned keep = NC_RESPONSE_KEEP, more = NC_RESPONSE_MORE;
	const unsigned piece = NC_RESPONSE_PIECE, aborted = NC_RESPONSE_ABORTED;
	const unsigned taken = NC_RESPONSE_TAKEN;
	struct nc_wire_response head = {.tag = 5};

	for (unsigned i = 0; i < 128 * 8; i++) {
		unsigned headers = i & 1 ? 9 : 0, ranges = i >> 1 & 1;
		bool good;

		head = (struct nc_wire_response){.status = i >> 2 & 1 ? 200 : 0,
						 .headers_length = headers,
						 .ranges = ranges,
						 .flags = i >> 3};
		if (head.flags & (aborted | taken))
			good = (head.flags == aborted || head.flags == taken) && !headers &&
			       !ranges && !head.status;
		else if (head.flags & piece)
			good = !(head.flags & ~(piece | keep | more)) && !headers && !head.status &&
			       (!(head.flags & more) || ranges);
		else
			good = !(head.flags & ~(keep | more)) && head.status;
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

/* Of ranges that there are, beside KEEP; which of them stay then. */
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

	/* As many as the record has, and no more than there is room for. */
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
		head.headers_length = (uint32_t) - (nonsense[i] * 24);
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

/* Whatever passes obeys the rules; nothing is read beyond the record. */
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
	tcase_add_test(tcase, test_request);
	tcase_add_test(tcase, test_request_limit);
	tcase_add_test(tcase, test_response);
	tcase_add_test(tcase, test_response_kinds);
	tcase_add_test(tcase, test_response_ranges);
	tcase_add_test(tcase, test_request_kinds);
	tcase_add_test(tcase, test_response_drops);
	tcase_add_test(tcase, test_random);
}

RUN_SUITE("wire", fill)
