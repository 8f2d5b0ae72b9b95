/* SPDX-License-Identifier: MIT */
/*
 * coded-head.h - the header lines of a response whose body is compressed while it is sent.  Pure.
 */
#ifndef SWEET_CODED_HEAD_H
#define SWEET_CODED_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

#define CODED_HEAD_MORE 80 /* bytes that the lines may become longer */

struct coded_head {
	struct slice type; /* media type; no bytes: none */
	bool fixed;	   /* its bytes must stay as they are */
};

void coded_head_read(struct coded_head *head, struct slice lines);

/*
 * Writes the lines, which end with CRLF, with Vary: Accept-Encoding.  weak: for a body, or a 304,
 * of other bytes than the program's; the entity tag becomes weak.  token: of the body's coding;
 * NULL: it has none.  Returns the bytes.
 */
size_t coded_head_write(struct slice lines, bool weak, const char *token, char *out);

#endif
