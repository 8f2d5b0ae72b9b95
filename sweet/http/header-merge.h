/* SPDX-License-Identifier: MIT */
/*
 * header-merge.h - the fields of a response whose body another one has: those of a program that
 * lets the server send a file.
 */
#ifndef SWEET_HEADER_MERGE_H
#define SWEET_HEADER_MERGE_H

#include "base/slice.h"

/*
 * Copies lines, each ended by CR LF or LF, without those whose names the added ones have, and the
 * added ones; out: has space for all.  What describes parts of a body (multipart/byteranges) stays.
 * Returns the bytes.
 */
size_t header_merge(struct slice lines, struct slice added, char *out);

/*
 * Copies a program's lines without those that describe its body: they are others for the body that
 * is sent.  Returns the bytes; out: has space for all.
 */
size_t header_without_body(struct slice lines, char *out);

#endif
