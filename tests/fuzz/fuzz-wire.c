/* SPDX-License-Identifier: MIT */
/*
 * fuzz-wire.c - every record from another process (libnabc/wire/wire.c): an accepted
 * one can be walked to its end without leaving it.  The first byte selects the kind of
 * record, the second the number of its descriptors.
 */
#include <nabc-worker.h>
#include <nabc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

#include "base/id.h"

#include "fuzz.h"

static void check_welcome(const char *record, size_t length, unsigned fds)
{
	struct nc_wire_welcome welcome = {0};

	memcpy(&welcome, record, length < sizeof(welcome) ? length : sizeof(welcome));
	if (nc_wire_check_welcome(&welcome, length, fds))
		return;
	MUST(length == sizeof(welcome) && welcome.error == 0);
	MUST(fds == nc_wire_welcome_fds(&welcome) && welcome.channels <= NC_WIRE_CHANNELS_MAX);
	/* The table is inside the segment, and units after it. */
	MUST(welcome.slots == 0 || ((uint64_t)welcome.slots * NC_WIRE_SLOT <= welcome.data_offset &&
				    welcome.data_offset < welcome.segment_size &&
				    welcome.member > 0 && welcome.member < NC_ID_MEMBERS_MAX));
}

static void check_hello(const char *record, size_t length)
{
	struct nc_wire_hello hello = {0};

	memcpy(&hello, record, length < sizeof(hello) ? length : sizeof(hello));
	if (nc_wire_check_hello(&hello, length) == 0)
		MUST(length == sizeof(hello) && hello.magic == NC_WIRE_MAGIC);
}

static void check_call(const char *record, size_t length, unsigned fds)
{
	struct nc_wire_call call;

	if (nc_wire_check_call(record, length, fds, &call) == 0)
		MUST(call.op > 0 && fds <= 2 && call.length == length - sizeof(call));
}

static void check_reply(const char *record, size_t length, unsigned fds)
{
	struct nc_wire_reply reply;

	if (nc_wire_check_reply(record, length, fds, &reply) == 0)
		MUST(reply.error >= 0 && fds <= 2 && reply.length == length - sizeof(reply) &&
		     reply.length <= NC_WIRE_BEHIND_MAX);
}

static void check_request(const char *record, size_t length)
{
	struct nc_wire_request request;
	size_t walked = 0;

	if (nc_wire_check_request(record, length, &request))
		return;
	MUST(request.kind < NC_WIRE_KINDS);
	if (request.kind > NC_WIRE_REQUEST_BODY)
		return;
	while (walked < request.length)
		walked += strlen(record + sizeof(request) + walked) + 1;
	MUST(walked == request.length && sizeof(request) + walked == length);
}

static void check_response(const char *record, size_t length)
{
	struct nc_wire_response response;
	const struct NC_range *ranges;

	if (nc_wire_check_response(record, length, &response))
		return;
	ranges = nc_wire_ranges(record);
	MUST(response.ranges <= NC_WIRE_RANGES_MAX);
	for (unsigned i = 0; i < response.ranges; i++)
		MUST(ranges[i].id != 0);
	MUST(nc_wire_headers(record, &response) + response.headers_length == record + length);
	/* Each record is of one kind. */
	if (response.flags & (NC_RESPONSE_ABORTED | NC_RESPONSE_TAKEN))
		MUST(response.status == 0 && !response.ranges && !response.headers_length);
	else if (response.flags & NC_RESPONSE_PIECE)
		MUST(response.status == 0 && !response.headers_length);
	else
		MUST(response.status >= 200 && response.status <= 599);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	unsigned which = (unsigned)input_number(&input, 1) % 6;
	unsigned fds = (unsigned)input_number(&input, 1) % 72;
	size_t length = input.left;
	/* Aligned as records are, for any input. */
	char *record = exact_copy(input.at, length);

	switch (which) {
	case 0:
		check_welcome(record, length, fds);
		break;
	case 1:
		check_hello(record, length);
		break;
	case 2:
		check_call(record, length, fds);
		break;
	case 3:
		check_reply(record, length, fds);
		break;
	case 4:
		check_request(record, length);
		break;
	default:
		check_response(record, length);
		break;
	}
	free(record);
	return 0;
}
