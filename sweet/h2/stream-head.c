/* SPDX-License-Identifier: MIT */
/*
 * stream-head.c - see stream-head.h.  A head belongs to one thread.
 *
 * The fields are copied into a list, and checked once, when it is complete and no request that is
 * known has the same list (http/request-list.c).
 *
 * The library of the caller checks the fields, too, as RFC 9113, section 8, requires: each name and
 * value, which pseudo-fields there are and where, fields of one hop, the length of the content.
 * It resets the stream of a request that it refuses.  What it accepts is not decided by that: the
 * functions that judge a head of HTTP/1.1 decide, so that no version of the library can let a
 * request pass which they refuse.  This file checks only what the list does not show.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/slice.h"
#include "h2/stream-head.h"
#include "http/request-list.h"
#include "http/request.h"

#define ROOM_FIRST 1024u /* bytes */
#define ROOM_KEPT 4096u	 /* bytes, until the next head comes */
#define MOST (1u << 30)	 /* bytes, whatever max-header is: the list has lengths of 32 bits */
#define FIELD_COST 32u	 /* bytes, as in RFC 9113, section 6.5.2 */
/* Names are in lower case (RFC 9113, section 8.2). */
#define IS(name, text) slice_equals(name, SLICE(text))

static void refuse(struct stream_head *head, int error, const char *wrong)
{
	if (head->error)
		return;
	head->error = error;
	head->wrong = wrong;
}

static bool grow(struct stream_head *head, size_t length)
{
	size_t room = head->room ? head->room : ROOM_FIRST;
	char *memory;

	while (room < head->used + length)
		room *= 2;
	memory = realloc(head->memory, room);
	if (!memory) {
		refuse(head, -503, "no memory for the head");
		return false;
	}
	head->memory = memory;
	head->room = room;
	return true;
}

static inline bool make_room(struct stream_head *head, size_t length)
{
	return head->used + length <= head->room || grow(head, length);
}

/* Adds an entry for which there is room. */
static void put(struct stream_head *head, struct slice name, struct slice value)
{
	head->used =
		(size_t)(request_list_put(head->memory + head->used, name, value) - head->memory);
}

static void put_field(struct stream_head *head, struct slice name, struct slice value)
{
	if (!make_room(head, request_list_size(name, value)))
		return;
	put(head, name, value);
	head->bytes += name.length + value.length + strlen(": \r\n");
}

/* A value that was put before the list; to be found again once there is room. */
static struct slice pseudo(const struct stream_head *head, enum stream_head_pseudo which)
{
	return (struct slice){head->memory + head->pseudo[which].at, head->pseudo[which].length};
}

/* Makes room for both entries first: memory that grows may move, with the values in it. */
static void begin(struct stream_head *head)
{
	size_t authority = head->pseudo[HEAD_AUTHORITY].length;
	bool tunnel = head->pseudo[HEAD_PATH].length == 0;

	if (head->begun)
		return;
	head->begun = true;
	head->start = head->used;
	if (!make_room(head, 2 * REQUEST_LIST_LENGTHS + head->pseudo[HEAD_METHOD].length +
				     head->pseudo[HEAD_PATH].length + strlen("Host") +
				     2 * authority))
		return;
	put(head, pseudo(head, HEAD_METHOD), pseudo(head, tunnel ? HEAD_AUTHORITY : HEAD_PATH));
	head->bytes += head->used - head->start - REQUEST_LIST_LENGTHS + strlen("  HTTP/1.1\r\n");
	if (authority)
		put_field(head, SLICE("Host"), pseudo(head, HEAD_AUTHORITY));
}

/* They are words of the line in the log, which a blank would end. */
static bool is_word(struct slice value)
{
	for (size_t i = 0; i < value.length; i++)
		if ((unsigned char)value.at[i] <= ' ' || value.at[i] == 0x7f)
			return false;
	return true;
}

static void put_pseudo(struct stream_head *head, enum stream_head_pseudo which, struct slice value)
{
	if (!make_room(head, value.length))
		return;
	head->pseudo[which].at = head->used;
	head->pseudo[which].length = value.length;
	memcpy(head->memory + head->used, value.at, value.length);
	head->used += value.length;
	head->bytes += value.length;
}

static void add_pseudo(struct stream_head *head, struct slice name, struct slice value)
{
	enum stream_head_pseudo which;

	if (IS(name, ":method")) {
		which = HEAD_METHOD;
	} else if (IS(name, ":path")) {
		which = HEAD_PATH;
	} else if (IS(name, ":authority")) {
		which = HEAD_AUTHORITY;
	} else {
		/* The library accepts any :path with others. */
		if (IS(name, ":scheme") && !slice_is(value, "http") && !slice_is(value, "https"))
			refuse(head, -400, "a :scheme that is neither http nor https");
		return;
	}
	if (head->begun || !is_word(value))
		refuse(head, -400, "a malformed pseudo-field");
	/* As an absolute URL it would name another host than :authority. */
	if (which == HEAD_PATH && value.length && value.at[0] != '/' && !slice_is(value, "*"))
		refuse(head, -400, "a :path that is not a path");
	if (which == HEAD_PATH && value.length > REQUEST_TARGET_MAX)
		refuse(head, -414, "a target that is too long");
	if (!head->error && value.length)
		put_pseudo(head, which, value);
}

static void add_cookie(struct stream_head *head, struct slice value)
{
	size_t used = head->cookies_used;
	char *cookies = realloc(head->cookies, used + 2 + value.length);

	if (!cookies) {
		refuse(head, -503, "no memory for the head");
		return;
	}
	head->cookies = cookies;
	if (used) {
		memcpy(cookies + used, "; ", 2);
		used += 2;
	}
	memcpy(cookies + used, value.at, value.length);
	head->cookies_used = used + value.length;
}

/* A Host field must not differ from the pseudo-field (RFC 9113, section 8.3.1). */
static bool is_host_again(struct stream_head *head, struct slice value)
{
	struct slice host = pseudo(head, HEAD_AUTHORITY);

	if (host.length == 0)
		return false;
	if (host.length != value.length || strncasecmp(host.at, value.at, host.length) != 0)
		refuse(head, -400, "a Host field that differs from :authority");
	return true;
}

void stream_head_reset(struct stream_head *head, size_t most)
{
	free(head->cookies);
	*head = (struct stream_head){
		.most = most < MOST ? most : MOST, .memory = head->memory, .room = head->room};
}

void stream_head_add(struct stream_head *head, struct slice name, struct slice value)
{
	head->decoded += name.length + value.length + FIELD_COST;
	if (head->bytes + head->cookies_used + name.length + value.length > head->most)
		refuse(head, -431, "a head that is longer than max-header");
	if (head->error)
		return;
	if (name.length && name.at[0] == ':') {
		add_pseudo(head, name, value);
		return;
	}
	begin(head);
	if (IS(name, "cookie"))
		add_cookie(head, value);
	else if (!IS(name, "host") || !is_host_again(head, value))
		put_field(head, name, value);
	head->length |= IS(name, "content-length");
}

struct slice stream_head_end(struct stream_head *head, bool body)
{
	begin(head);
	if (head->cookies_used)
		put_field(head, SLICE("cookie"), (struct slice){head->cookies, head->cookies_used});
	if (body && !head->length)
		put_field(head, SLICE("transfer-encoding"), SLICE("chunked"));
	return (struct slice){head->memory + head->start, head->used - head->start};
}

void stream_head_shrink(struct stream_head *head)
{
	if (head->room > ROOM_KEPT || head->cookies_used > ROOM_KEPT)
		stream_head_free(head);
}

void stream_head_free(struct stream_head *head)
{
	free(head->memory);
	free(head->cookies);
	*head = (struct stream_head){0};
}
