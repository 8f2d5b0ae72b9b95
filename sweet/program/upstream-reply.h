/* SPDX-License-Identifier: MIT */
/*
 * upstream-reply.h - a response of an HTTP server behind this one, as it arrives: its head, the
 * bytes of its body, and its end.
 */
#ifndef SWEET_UPSTREAM_REPLY_H
#define SWEET_UPSTREAM_REPLY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/slice.h"
#include "http/chunked.h"
#include "program/upstream-head.h"

enum upstream_event {
	UPSTREAM_NOTHING, /* yet */
	UPSTREAM_HEAD,
	UPSTREAM_BODY,
	UPSTREAM_END,
};

/* In the caller's memory, zeroed before its first use. */
struct upstream_reply {
	char *part; /* bytes of an incomplete head; or NULL */
	size_t length, most;
	uint64_t left; /* missing bytes of a body of known length */
	struct chunked chunked;
	uint8_t state;
	const char *upgrade; /* a protocol that the request asks for; or NULL */
	bool no_body;	     /* the request was HEAD */
	bool taken;	     /* part was a head, and is not needed any more */
	bool keep_alive;     /* after the end: the connection can be used again */
};

/* What upstream_reply_read() found. */
struct upstream_found {
	enum upstream_event event;
	struct slice run;	   /* UPSTREAM_BODY: content */
	struct upstream_head head; /* UPSTREAM_HEAD; points to bytes valid until the next call */
	const char *fault;
};

/*
 * Begins with the response to a request. most: bytes of a head.  The caller may set upgrade: a
 * response 101 with that protocol is final then, and what follows until the end is its body.
 */
void upstream_reply_init(struct upstream_reply *reply, bool head_only, size_t most);

/* Whether upstream_reply_read() returns UPSTREAM_END next. */
bool upstream_reply_is_over(const struct upstream_reply *reply);

/*
 * Reads a part of data[0, length), which may be split anywhere.  Returns the bytes consumed; the
 * caller calls it again with the rest, or if the response is over.  Interim responses are skipped,
 * any number of them, and trailers dropped.  Runs are never empty and point into data.  After
 * UPSTREAM_END it reads nothing.  Returns -1 if the response is invalid, with found->fault for the
 * log; then the connection must be closed.
 */
ssize_t upstream_reply_read(struct upstream_reply *reply, const char *data, size_t length,
			    struct upstream_found *found);

/* The connection has ended.  Returns NULL if that completes the response, else the fault. */
const char *upstream_reply_ended(const struct upstream_reply *reply);

void upstream_reply_clear(struct upstream_reply *reply);

#endif
