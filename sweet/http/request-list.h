/* SPDX-License-Identifier: MIT */
/*
 * request-list.h - the head of a request as a list, as it comes in HTTP/2 (RFC 9113, section 8.3):
 * method and target, then the fields, each text with its length.
 *
 * No byte ends a text, so that none can become a line, or a field, of its own.  Functions of
 * request.c judge the texts of a list and those of lines: one request is the same whichever way it
 * came.
 */
#ifndef SWEET_REQUEST_LIST_H
#define SWEET_REQUEST_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct request;

#define REQUEST_LIST_LENGTHS (2 * sizeof(uint32_t)) /* bytes of an entry before its texts */

/* Returns the bytes of an entry. */
static inline size_t request_list_size(struct slice name, struct slice value)
{
	return REQUEST_LIST_LENGTHS + name.length + value.length;
}

/*
 * Writes an entry: first method and target, then name and value of each field; returns its end.
 * A text has less than 4 GB, which the caller checks.
 */
char *request_list_put(char *at, struct slice name, struct slice value);

/* Takes the first entry off *rest; returns false at the end. */
bool request_list_next(struct slice *rest, struct slice *name, struct slice *value);

/*
 * Makes the request of a list, whose slices point into it; the list may be anything.  Returns as
 * request_parse().
 */
int request_parse_list(struct request *request, const char *list, size_t length);

/* Parses a head of either form. */
int request_parse_head(struct request *request, const char *head, size_t length, bool listed);

/* As request_is_head(), of a list. */
bool request_list_is_head(const char *list, size_t length);

#endif
