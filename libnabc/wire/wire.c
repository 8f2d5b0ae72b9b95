/* SPDX-License-Identifier: MIT */
/* wire.c - checks what came from another process.  No state; any thread. */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <string.h>

#include "base/fragment.h"
#include "base/id.h"
#include "wire/wire.h"

uint32_t nc_wire_common(uint32_t version, uint32_t oldest)
{
	uint32_t common = version < NC_WIRE_VERSION ? version : NC_WIRE_VERSION;

	if (oldest == 0)
		oldest = version;
	return common >= NC_WIRE_OLDEST && common >= oldest ? common : 0;
}

int nc_wire_check_welcome(const struct nc_wire_welcome *welcome, size_t length, unsigned fds)
{
	if (length != sizeof(*welcome) || welcome->magic != NC_WIRE_MAGIC)
		return -EPROTO;
	if (!nc_wire_common(welcome->version, welcome->oldest))
		return -EPROTONOSUPPORT;
	if (welcome->error != 0)
		return welcome->error > 0 && welcome->error < 4096 ? -welcome->error : -EPROTO;
	if (welcome->channels > NC_WIRE_CHANNELS_MAX || fds != nc_wire_welcome_fds(welcome))
		return -EPROTO;
	/* A guest without a segment has no number, table or channels. */
	if (welcome->slots == 0)
		return welcome->channels || welcome->member ? -EPROTO : 0;
	if (welcome->member == 0 || welcome->member >= NC_ID_MEMBERS_MAX ||
	    welcome->slots > NC_ID_SLOTS_MAX || welcome->generation == 0 ||
	    welcome->generation > NC_ID_GENERATION_MAX)
		return -EPROTO;
	if (welcome->segment_size % NC_PAGE || welcome->data_offset % NC_PAGE ||
	    welcome->data_offset >= welcome->segment_size ||
	    welcome->slots > welcome->data_offset / NC_WIRE_SLOT)
		return -EPROTO;
	return 0;
}

int nc_wire_check_hello(const struct nc_wire_hello *hello, size_t length)
{
	if (length != sizeof(*hello) || hello->magic != NC_WIRE_MAGIC)
		return -EPROTO;
	if (!nc_wire_common(hello->version, hello->oldest))
		return -EPROTONOSUPPORT;
	return hello->flags & ~(NC_WIRE_SEGMENT | NC_WIRE_OPERATOR) ? -EPROTO : 0;
}

int nc_wire_check_call(const void *message, size_t length, unsigned fds, struct nc_wire_call *call)
{
	if (length < sizeof(*call))
		return -EPROTO;
	memcpy(call, message, sizeof(*call));
	return call->magic != NC_WIRE_MAGIC || call->op == 0 || fds > 2 ||
			       call->length > NC_WIRE_BEHIND_MAX ||
			       call->length != length - sizeof(*call)
		       ? -EPROTO
		       : 0;
}

int nc_wire_check_reply(const void *message, size_t length, unsigned fds,
			struct nc_wire_reply *reply)
{
	unsigned flags;

	if (length < sizeof(*reply))
		return -EPROTO;
	memcpy(reply, message, sizeof(*reply));
	flags = reply->flags;
	return reply->magic != NC_WIRE_MAGIC || reply->error < 0 || reply->error >= 4096 ||
			       reply->length > NC_WIRE_BEHIND_MAX ||
			       reply->length != length - sizeof(*reply) ||
			       fds != (flags & NC_WIRE_HAS_UNIT ? 1u : 0u) +
					       (flags & NC_WIRE_HAS_MAP ? 1u : 0u)
		       ? -EPROTO
		       : 0;
}

static int check_piece(const void *record, size_t length, const struct nc_wire_request *request)
{
	struct NC_range range;

	if (request->length != length - sizeof(*request))
		return -EPROTO;
	if (request->length == 0 && request->kind == NC_WIRE_LAST)
		return 0;
	if (request->length != sizeof(range))
		return -EPROTO;
	memcpy(&range, (const char *)record + sizeof(*request), sizeof(range));
	return range.id ? 0 : -EPROTO;
}

int nc_wire_check_request(const void *record, size_t length, struct nc_wire_request *request)
{
	if (length < sizeof(*request))
		return -EPROTO;
	memcpy(request, record, sizeof(*request));
	switch (request->kind) {
	case NC_WIRE_REQUEST:
	case NC_WIRE_REQUEST_BODY:
		break;
	case NC_WIRE_PIECE:
	case NC_WIRE_LAST:
		return check_piece(record, length, request);
	case NC_WIRE_CANCEL:
	case NC_WIRE_SENT:
		return length != sizeof(*request) ? -EPROTO : 0;
	default:
		return -EPROTO;
	}
	if (request->length > NC_WIRE_BLOCK_MAX || request->length != length - sizeof(*request))
		return -EPROTO;
	/* Variables are read as strings, so the last one must end inside the record. */
	if (request->length && ((const char *)record)[length - 1] != '\0')
		return -EPROTO;
	return 0;
}

static bool has_one_flag(uint32_t flags)
{
	return (flags & (flags - 1)) == 0;
}

/* A last piece, without a body: it may have trailer fields. */
static bool is_end(const struct nc_wire_response *response)
{
	return response->flags == NC_RESPONSE_PIECE && response->ranges == 0;
}

/*
 * Each kind has its own fields and no others.  A piece that others follow must have
 * a byte: an empty piece is sent at once and never fills the window, so the number
 * of such pieces would be unlimited.
 */
static int check_kind(const struct nc_wire_response *response, const struct NC_range *ranges)
{
	bool good;

	if (response->flags & (NC_RESPONSE_ABORTED | NC_RESPONSE_TAKEN | NC_RESPONSE_REPLACE))
		good = has_one_flag(response->flags) && response->status == 0 &&
		       response->ranges == 0 && response->headers_length == 0;
	else if (response->flags & NC_RESPONSE_INTERIM)
		good = has_one_flag(response->flags) && nc_wire_is_interim(response->status) &&
		       response->ranges == 0;
	else if (response->flags & NC_RESPONSE_PIECE)
		good = nc_wire_flags_good(response->flags & ~NC_RESPONSE_PIECE, response->ranges) &&
		       response->status == 0 &&
		       (response->headers_length == 0 || is_end(response)) &&
		       (!(response->flags & NC_RESPONSE_MORE) ||
			nc_wire_has_bytes(ranges, response->ranges));
	else
		good = nc_wire_flags_good(response->flags, response->ranges) &&
		       (nc_wire_switches(response->status, response->flags) ||
			(response->status >= 200 && response->status <= 599));
	return good ? 0 : -EPROTO;
}

int nc_wire_check_response(const void *record, size_t length, struct nc_wire_response *response)
{
	const struct NC_range *ranges = nc_wire_ranges(record);

	if (length < sizeof(*response))
		return -EPROTO;
	memcpy(response, record, sizeof(*response));
	if (response->headers_length > NC_WIRE_BLOCK_MAX || response->ranges > NC_WIRE_RANGES_MAX ||
	    length != sizeof(*response) + response->ranges * sizeof(*ranges) +
			      response->headers_length)
		return -EPROTO;
	for (uint32_t i = 0; i < response->ranges; i++)
		if (ranges[i].id == 0)
			return -EPROTO;
	/* Nearly all responses are of the first kind. */
	if (!(response->flags & ~NC_RESPONSE_KEEP))
		return response->status < 200 || response->status > 599 ? -EPROTO : 0;
	return check_kind(response, ranges);
}

const char *nc_wire_variable(const char *variables, size_t length, const char *name)
{
	const char *at = variables, *end = variables + length;
	size_t wanted = strlen(name);

	while (at < end) {
		size_t here = strlen(at);

		if (here > wanted && at[wanted] == '=' && memcmp(at, name, wanted) == 0)
			return at + wanted + 1;
		at += here + 1;
	}
	return NULL;
}
