/* SPDX-License-Identifier: MIT */
/*
 * request-keep.c - see request-keep.h.  No state: any thread may call it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/request-keep.h"
#include "http/request-list.h"
#include "http/request.h"

/* The bytes were parsed successfully before. */
static void parse_again(struct request *request, const char *head, size_t length, bool listed)
{
	(void)request_parse_head(request, head, length, listed);
}

struct kept_request *request_keep(const struct request *request)
{
	struct kept_request *kept = malloc(sizeof(*kept) + request->head.length);

	if (!kept)
		return NULL;
	kept->listed = request->listed;
	kept->length = request->head.length;
	memcpy(kept->head, request->head.at, request->head.length);
	return kept;
}

void request_recall(struct request *request, const struct kept_request *kept)
{
	parse_again(request, kept->head, kept->length, kept->listed);
}

void request_copy_head(struct request *copy, const struct request *request, char *memory)
{
	memcpy(memory, request->head.at, request->head.length);
	parse_again(copy, memory, request->head.length, request->listed);
}
