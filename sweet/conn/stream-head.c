/* SPDX-License-Identifier: MIT */
/*
 * stream-head.c - see stream-head.h.  A head belongs to one thread.
 *
 * The caller's HTTP/2 library has checked names and values as RFC 9113, section 8.2.1, requires;
 * what could change the meaning of the text is checked again.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/scan.h"
#include "http/request.h"
#include "conn/stream-head.h"

#define ROOM_FIRST 1024u /* bytes */
#define ROOM_KEPT 4096u	 /* bytes, until the next head comes */
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
	char *text;

	while (room < head->used + length)
		room *= 2;
	text = realloc(head->text, room);
	if (!text) {
		refuse(head, -503, "no memory for the head");
		return false;
	}
	head->text = text;
	head->room = room;
	return true;
}

static inline bool make_room(struct stream_head *head, size_t length)
{
	return head->used + length <= head->room || grow(head, length);
}

static inline char *append(char *at, struct slice part)
{
	if (part.length)
		memcpy(at, part.at, part.length);
	return at + part.length;
}

static void put_line(struct stream_head *head, struct slice name, struct slice value)
{
	char *at;

	if (!make_room(head, name.length + value.length + strlen(": \r\n")))
		return;
	at = append(append(head->text + head->used, name), SLICE(": "));
	at = append(append(at, value), SLICE("\r\n"));
	head->used = (size_t)(at - head->text);
}

/* A value that was put before the lines; to be found again once there is room. */
static struct slice pseudo(const struct stream_head *head, enum stream_head_pseudo which)
{
	return (struct slice){head->text + head->pseudo[which].at, head->pseudo[which].length};
}

static void begin(struct stream_head *head)
{
	size_t authority = head->pseudo[HEAD_AUTHORITY].length;
	bool tunnel = head->pseudo[HEAD_PATH].length == 0;
	char *at;

	if (head->start)
		return;
	head->start = head->used;
	if (!make_room(head, head->pseudo[HEAD_METHOD].length + head->pseudo[HEAD_PATH].length +
				     2 * authority + strlen("  HTTP/1.1\r\nHost: \r\n")))
		return;
	at = append(head->text + head->used, pseudo(head, HEAD_METHOD));
	at = append(at, SLICE(" "));
	at = append(at, pseudo(head, tunnel ? HEAD_AUTHORITY : HEAD_PATH));
	at = append(at, SLICE(" HTTP/1.1\r\n"));
	if (authority) {
		at = append(at, SLICE("Host: "));
		at = append(at, pseudo(head, HEAD_AUTHORITY));
		at = append(at, SLICE("\r\n"));
	}
	head->used = (size_t)(at - head->text);
}

/* Neither may end a line, or a word of the request line. */
static bool is_word(struct slice value)
{
	for (size_t i = 0; i < value.length; i++)
		if ((unsigned char)value.at[i] <= ' ' || value.at[i] == 0x7f)
			return false;
	return true;
}

static bool is_line(struct slice value)
{
	size_t i = 0;

	for (; value.length - i >= SCAN_WIDTH; i += SCAN_WIDTH)
		if (scan_first(scan_ends_line(scan_load(value.at + i))) < SCAN_WIDTH)
			return false;
	for (; i < value.length; i++)
		if (value.at[i] == '\r' || value.at[i] == '\n' || value.at[i] == '\0')
			return false;
	return true;
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
	if (head->start || !is_word(value))
		refuse(head, -400, "a malformed pseudo-field");
	/* As an absolute URL it would name another host than :authority. */
	if (which == HEAD_PATH && value.length && value.at[0] != '/' && !slice_is(value, "*"))
		refuse(head, -400, "a :path that is not a path");
	if (which == HEAD_PATH && value.length > REQUEST_TARGET_MAX)
		refuse(head, -414, "a target that is too long");
	if (head->error)
		return;
	head->pseudo[which].at = head->used;
	head->pseudo[which].length = value.length;
	if (make_room(head, value.length)) {
		append(head->text + head->used, value);
		head->used += value.length;
	}
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
	*head = (struct stream_head){.most = most, .text = head->text, .room = head->room};
}

void stream_head_add(struct stream_head *head, struct slice name, struct slice value)
{
	head->decoded += name.length + value.length + FIELD_COST;
	if (head->used + head->cookies_used + name.length + value.length > head->most)
		refuse(head, -431, "a head that is longer than max-header");
	if (head->error)
		return;
	if (name.length && name.at[0] == ':') {
		add_pseudo(head, name, value);
		return;
	}
	begin(head);
	if (!is_line(value) || memchr(name.at, ':', name.length))
		refuse(head, -400, "a malformed header field");
	else if (IS(name, "cookie"))
		add_cookie(head, value);
	else if (!IS(name, "host") || !is_host_again(head, value))
		put_line(head, name, value);
	head->length |= IS(name, "content-length");
}

struct slice stream_head_end(struct stream_head *head, bool body)
{
	begin(head);
	if (head->cookies_used)
		put_line(head, SLICE("cookie"), (struct slice){head->cookies, head->cookies_used});
	if (body && !head->length)
		put_line(head, SLICE("transfer-encoding"), SLICE("chunked"));
	if (make_room(head, strlen("\r\n")))
		head->used = (size_t)(append(head->text + head->used, SLICE("\r\n")) - head->text);
	return (struct slice){head->text + head->start, head->used - head->start};
}

void stream_head_shrink(struct stream_head *head)
{
	if (head->room > ROOM_KEPT || head->cookies_used > ROOM_KEPT)
		stream_head_free(head);
}

void stream_head_free(struct stream_head *head)
{
	free(head->text);
	free(head->cookies);
	*head = (struct stream_head){0};
}
