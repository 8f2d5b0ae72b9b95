/* SPDX-License-Identifier: MIT */
/*
 * response-head.h - the head of a program's response (RFC 3875, section 6), and the header lines of
 * a worker's.  No state, no allocation.
 */
#ifndef NC_RESPONSE_HEAD_H
#define NC_RESPONSE_HEAD_H

#include <stddef.h>
#include <sys/types.h>

struct nc_response_head {
	int status;	     /* 200 to 599 */
	const char *headers; /* within the text, without Status */
	size_t headers_length;
};

/*
 * Reads the head at the start of text, and may move its lines there.  Returns the bytes of the head
 * with its empty line, or -EAGAIN (it is not complete), -EBADMSG, -EMSGSIZE (longer than
 * NC_BLOCK_MAX).
 */
ssize_t nc_response_head_parse(struct nc_response_head *head, char *text, size_t length);

/* Returns 0, or -EBADMSG with the offset of the first wrong line in *wrong. */
int nc_response_head_check(const char *headers, size_t length, size_t *wrong);

#endif
