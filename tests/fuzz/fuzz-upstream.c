/* SPDX-License-Identifier: MIT */
/*
 * fuzz-upstream.c - the response of an HTTP server behind this one, as it arrives
 * (sweet/program/upstream-reply.c, upstream-head.c), and what a client gets of its head (response.c).
 * However the bytes are divided, the response is the same.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/slice.h"
#include "http/fields.h"
#include "http/response.h"
#include "program/cgihead.h"
#include "program/upstream-head.h"
#include "program/upstream-reply.h"

#include "fuzz.h"

#define HEAD_MOST 512 /* bytes */

struct outcome {
	uint64_t body; /* a sum of its bytes */
	size_t length, used;
	int status;
	bool over, failed, keep_alive;
};

static void check_head(const struct upstream_head *head)
{
	size_t room = head->lines.length + 1;
	char *out = malloc(room);
	struct response_facts facts;
	long length;

	MUST(out);
	MUST((head->status >= 200 || head->status == 101) && head->status <= 599 &&
	     head->status == head->fields.status);
	MUST(!(head->chunked && head->fields.has_length));
	MUST(head->fields.length <= INT64_MAX && !head->fields.unit &&
	     !head->fields.local_redirect);
	/* Lines end with CRLF already. */
	length = response_filter_headers(head->lines, out, room, &facts);
	MUST(length >= 0);
	for (struct slice rest = {out, (size_t)length}; rest.length;) {
		struct field field;

		MUST(field_next(&rest, &field));
		MUST(!field_is_withheld(&field) && field.line.at[field.line.length] == '\r');
	}
	free(out);
}

static void feed(struct upstream_reply *reply, struct outcome *outcome, const char *data,
		 size_t length)
{
	size_t at = 0;

	while (!outcome->over && !outcome->failed) {
		struct upstream_found found;
		ssize_t used = upstream_reply_read(reply, data + at, length - at, &found);

		MUST(used <= (ssize_t)(length - at));
		if (used < 0) {
			MUST(found.fault);
			outcome->failed = true;
			return;
		}
		at += (size_t)used;
		outcome->used += (size_t)used;
		if (found.event == UPSTREAM_HEAD) {
			check_head(&found.head);
			MUST(!outcome->status);
			outcome->status = found.head.status;
		}
		for (size_t i = 0; found.event == UPSTREAM_BODY && i < found.run.length; i++)
			outcome->body = outcome->body * 31 + (unsigned char)found.run.at[i];
		if (found.event == UPSTREAM_BODY)
			outcome->length += found.run.length;
		outcome->over = found.event == UPSTREAM_END;
		if (at == length && !upstream_reply_is_over(reply))
			return;
	}
}

static struct outcome run(const uint8_t *data, size_t size, bool head_only, size_t step)
{
	struct upstream_reply reply = {0};
	struct outcome outcome = {0};

	upstream_reply_init(&reply, head_only, HEAD_MOST);
	reply.upgrade = "websocket";
	for (size_t at = 0; at < size && !outcome.over && !outcome.failed;) {
		size_t part = step && step < size - at ? step : size - at;
		char *copy = exact_copy(data + at, part);

		feed(&reply, &outcome, copy, part);
		free(copy);
		at += part;
	}
	if (!outcome.over && !outcome.failed)
		outcome.failed = upstream_reply_ended(&reply) != NULL;
	outcome.keep_alive = reply.keep_alive;
	upstream_reply_clear(&reply);
	return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (unsigned head_only = 0; head_only < 2; head_only++) {
		struct outcome whole = run(data, size, head_only, 0);

		for (size_t step = 1; step < 8; step += 2) {
			struct outcome parts = run(data, size, head_only, step);

			MUST(parts.failed == whole.failed);
			if (whole.failed)
				continue;
			MUST(parts.status == whole.status && parts.body == whole.body);
			MUST(parts.length == whole.length && parts.used == whole.used);
			MUST(parts.keep_alive == whole.keep_alive);
		}
	}
	return 0;
}
