/* SPDX-License-Identifier: MIT */
/*
 * header-lines.h - the lines of a response's head, each ended by CR LF or LF, where one responder
 * changes those of another one.
 */
#ifndef SWEET_HEADER_LINES_H
#define SWEET_HEADER_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/*
 * Takes the next line, with its end, and its name, which is empty without a colon; returns false at
 * the end.
 */
bool header_next(struct slice *rest, struct slice *line, struct slice *name);

/*
 * Copies the lines whose names are in the table, or the others.  Returns the bytes; out: has space
 * for all, and may be the lines' own memory.
 */
size_t header_filter(struct slice lines, const struct slice *names, size_t count, bool listed,
		     char *out);

/*
 * Copies lines without those whose names the added ones have, and the added ones; out: has space
 * for all.  What describes parts of a body (multipart/byteranges) stays.  Returns the bytes.
 */
size_t header_merge(struct slice lines, struct slice added, char *out);

/*
 * Copies a program's lines without those that describe its body: they are others for the body that
 * is sent.  As header_filter().
 */
size_t header_without_body(struct slice lines, char *out);

#endif
