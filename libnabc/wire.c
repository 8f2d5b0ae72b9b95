/* SPDX-License-Identifier: MIT */
/*
 * wire.c - checks on what came from another process.  Pure, any thread.
 */
#include <errno.h>
#include <string.h>

#include "fragment.h"
#include "id.h"
#include "wire.h"

int nc_wire_check_welcome(const struct nc_wire_welcome *welcome, size_t length, unsigned fds)
{
	if (length != sizeof(*welcome) || welcome->magic != NC_WIRE_MAGIC ||
	    welcome->version != NC_WIRE_VERSION)
		return -EPROTO;
	if (welcome->error != 0)
		return welcome->error > 0 && welcome->error < 4096 ? -welcome->error : -EPROTO;
	if (welcome->member == 0 || welcome->member >= NC_ID_MEMBERS_MAX || welcome->slots == 0 ||
	    welcome->slots > NC_ID_SLOTS_MAX || welcome->generation == 0 ||
	    welcome->generation > NC_ID_GENERATION_MAX || welcome->lanes > NC_WIRE_LANES_MAX)
		return -EPROTO;
	if (welcome->segment_size % NC_PAGE || welcome->data_offset % NC_PAGE ||
	    welcome->data_offset >= welcome->segment_size)
		return -EPROTO;
	return fds == nc_wire_welcome_fds(welcome->lanes) ? 0 : -EPROTO;
}

int nc_wire_check_request(const void *record, size_t length, struct nc_wire_request *request)
{
	if (length < sizeof(*request))
		return -EPROTO;
	memcpy(request, record, sizeof(*request));
	if (request->length > NC_WIRE_BLOCK_MAX || request->length != length - sizeof(*request))
		return -EPROTO;
	/* Variables are walked as strings, so the last must end inside. */
	if (request->length && ((const char *)record)[length - 1] != '\0')
		return -EPROTO;
	return 0;
}

int nc_wire_check_response(const void *record, size_t length, struct nc_wire_response *response)
{
	if (length < sizeof(*response))
		return -EPROTO;
	memcpy(response, record, sizeof(*response));
	if (response->headers_length > NC_WIRE_BLOCK_MAX ||
	    response->headers_length != length - sizeof(*response))
		return -EPROTO;
	if (response->status < 200 || response->status > 599)
		return -EPROTO;
	return 0;
}
