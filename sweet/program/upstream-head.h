/* SPDX-License-Identifier: MIT */
/*
 * upstream-head.h - the head of a response of an HTTP server behind this one (RFC 9112), which says
 * how the response ends.
 */
#ifndef SWEET_UPSTREAM_HEAD_H
#define SWEET_UPSTREAM_HEAD_H

#include <stdbool.h>

#include "base/slice.h"
#include "program/cgihead.h"

#define UPSTREAM_FIELDS_MAX 256u

struct upstream_head {
	int status;	       /* 100 to 599 */
	struct cgihead fields; /* unless it is an interim response */
	struct slice lines;    /* all header lines */
	bool chunked;	       /* the body is */
	struct slice upgrade;  /* a single Upgrade line's value, named by Connection; or empty */
	bool keep_alive;       /* the server will accept another request */
};

/*
 * Parses a complete head, with its empty line at the end.  Returns NULL, or a message for the log
 * that says what is wrong: then only the close of the connection shows where the response ends.
 */
const char *upstream_head_parse(struct upstream_head *head, struct slice text);

/* Returns what is wrong with the first bytes of a head; NULL: nothing yet. */
const char *upstream_head_check(struct slice begin);

#endif
