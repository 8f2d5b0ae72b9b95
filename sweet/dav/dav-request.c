/* SPDX-License-Identifier: MIT */
/*
 * dav-request.c - see dav-request.h.  No state.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/slice.h"
#include "dav/dav-request.h"
#include "http/request.h"

static const struct slice names[DAV_METHODS] = {
	[DAV_PUT] = SLICE_OF("PUT"),
	[DAV_DELETE] = SLICE_OF("DELETE"),
	[DAV_MKCOL] = SLICE_OF("MKCOL"),
	[DAV_COPY] = SLICE_OF("COPY"),
	[DAV_MOVE] = SLICE_OF("MOVE"),
	[DAV_PROPFIND] = SLICE_OF("PROPFIND"),
	[DAV_PROPPATCH] = SLICE_OF("PROPPATCH"),
	[DAV_LOCK] = SLICE_OF("LOCK"),
	[DAV_UNLOCK] = SLICE_OF("UNLOCK"),
};

enum dav_method dav_method_of(const struct request *request)
{
	unsigned method = 0;

	while (method < DAV_METHODS && !slice_equals(names[method], request->method_name))
		method++;
	return (enum dav_method)method;
}

static bool read_depth(struct dav_request *read, const struct request *request)
{
	const struct slice *field = request_find(request, "Depth");

	read->depth = DAV_DEPTH_INFINITY;
	if (!field || slice_is(*field, "infinity"))
		return true;
	read->depth = slice_is(*field, "0") ? DAV_DEPTH_0 : DAV_DEPTH_1;
	return slice_is(*field, "0") || slice_is(*field, "1");
}

static bool read_overwrite(struct dav_request *read, const struct request *request)
{
	const struct slice *field = request_find(request, "Overwrite");

	read->overwrite = !field || slice_is(*field, "T");
	return read->overwrite || slice_is(*field, "F");
}

/* Of the times that a client lists, the first counts (RFC 4918, section 10.7). */
static void read_timeout(struct dav_request *read, const struct request *request)
{
	static const struct slice second = SLICE_OF("Second-");
	const struct slice *field = request_find(request, "Timeout");
	unsigned seconds = 0;

	read->timeout_s = DAV_TIMEOUT_S;
	if (!field)
		return;
	if (field->length >= 8 && strncasecmp(field->at, "Infinite", 8) == 0) {
		read->timeout_s = DAV_TIMEOUT_MAX_S;
		return;
	}
	if (field->length <= second.length || strncasecmp(field->at, second.at, second.length) != 0)
		return;
	for (size_t i = second.length; i < field->length && g_ascii_isdigit(field->at[i]); i++)
		seconds = MIN(seconds * 10 + (unsigned)(field->at[i] - '0'), DAV_TIMEOUT_MAX_S);
	if (seconds)
		read->timeout_s = seconds;
}

/* "<TOKEN>" */
static bool read_lock_token(struct dav_request *read, const struct request *request)
{
	const struct slice *field = request_find(request, "Lock-Token");

	if (!field)
		return true;
	if (field->length < 3 || field->at[0] != '<' || field->at[field->length - 1] != '>')
		return false;
	read->lock_token = (struct slice){field->at + 1, field->length - 2};
	return true;
}

static unsigned count_fields(const struct request *request, const char *name)
{
	unsigned count = 0;

	for (unsigned i = 0; i < request->header_count; i++)
		count += slice_is(request->headers[i].name, name);
	return count;
}

static bool read_if(struct dav_request *read, const struct request *request)
{
	const struct slice *field = request_find(request, "If");

	if (!field)
		return true;
	/* A list of lists cannot be joined of several lines. */
	if (count_fields(request, "If") != 1 || !dav_if_parse(*field, &read->condition))
		return false;
	read->has_if = true;
	for (unsigned i = 0; i < read->condition.condition_count; i++)
		if (!read->condition.conditions[i].is_etag)
			read->tokens[read->token_count++] = read->condition.conditions[i].text;
	return true;
}

/* Makes a slice of the head one of the copy. */
static void move_slice(struct slice *slice, const struct request *request, const char *text)
{
	if (slice->at)
		slice->at = text + (slice->at - request->head.at);
}

/* Returns false without memory. */
static bool keep_text(struct dav_request *read, const struct request *request)
{
	read->text = malloc(request->head.length);
	if (!read->text)
		return false;
	memcpy(read->text, request->head.at, request->head.length);
	move_slice(&read->destination, request, read->text);
	move_slice(&read->lock_token, request, read->text);
	for (unsigned i = 0; i < read->condition.list_count; i++)
		move_slice(&read->condition.lists[i].resource, request, read->text);
	for (unsigned i = 0; i < read->condition.condition_count; i++)
		move_slice(&read->condition.conditions[i].text, request, read->text);
	for (unsigned i = 0; i < read->token_count; i++)
		move_slice(&read->tokens[i], request, read->text);
	return true;
}

static bool takes_depth(const struct dav_request *read)
{
	return read->depth != DAV_DEPTH_1 || (read->method != DAV_COPY && read->method != DAV_LOCK);
}

int dav_request_read(struct dav_request *read, const struct request *request, const char **reason)
{
	const struct slice *destination = request_find(request, "Destination");

	memset(read, 0, sizeof(*read));
	read->method = dav_method_of(request);
	read_timeout(read, request);
	*reason = !read_depth(read, request) || !takes_depth(read) ? "a wrong Depth"
		  : !read_overwrite(read, request)		   ? "a wrong Overwrite"
		  : !read_lock_token(read, request)		   ? "a malformed Lock-Token"
		  : !read_if(read, request)			   ? "a malformed If"
		  : !conditions_take(&read->conditions, request)   ? "conditions that are too long"
								   : NULL;
	if (destination)
		read->destination = *destination;
	if ((read->method == DAV_COPY || read->method == DAV_MOVE) && !destination)
		*reason = "no Destination";
	if (read->method == DAV_UNLOCK && !read->lock_token.at)
		*reason = "no Lock-Token";
	/* A part of a file cannot be written (RFC 9110, section 14.5). */
	if (read->method == DAV_PUT && request_find(request, "Content-Range"))
		*reason = "PUT with Content-Range";
	if (*reason)
		return 400;
	if (keep_text(read, request))
		return 0;
	*reason = "no memory for the request";
	return 503;
}

void dav_request_clear(struct dav_request *read)
{
	free(read->text);
	read->text = NULL;
}
