/* SPDX-License-Identifier: MIT */
/*
 * head.h - a request whose header lines, or a part of them, are the input: for targets
 * that check the content of an accepted request.
 */
#ifndef FUZZ_HEAD_H
#define FUZZ_HEAD_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "http/request.h"

#include "fuzz.h"

struct head {
	struct request request;
	char *text; /* into which it points */
};

/* before and after surround the input; returns false if it is not a request. */
static inline bool head_open(struct head *head, const char *before, const void *input,
			     size_t length, const char *after)
{
	size_t first = strlen(before), last = strlen(after), whole = first + length + last;

	head->text = malloc(whole);
	MUST(head->text);
	memcpy(head->text, before, first);
	if (length)
		memcpy(head->text + first, input, length);
	memcpy(head->text + first + length, after, last);
	if (request_head_length(head->text, whole, 0) == whole &&
	    request_parse(&head->request, head->text, whole) == 0)
		return true;
	free(head->text);
	return false;
}

static inline void head_close(struct head *head)
{
	free(head->text);
}

#endif
