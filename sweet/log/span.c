/* SPDX-License-Identifier: MIT */
/*
 * span.c - see span.h.  Pure.
 */
#include <string.h>

#include "log/span.h"

size_t span_size(const struct span *span)
{
	size_t size = sizeof(*span);

	for (unsigned i = 0; i < SPAN_TEXTS; i++)
		if (span->texts[i])
			size += span->lengths[i] + 1;
	return size;
}

void span_copy(void *to, const struct span *span)
{
	struct span *copy = to;
	char *text = (char *)(copy + 1);

	*copy = *span;
	for (unsigned i = 0; i < SPAN_TEXTS; i++) {
		if (!span->texts[i])
			continue;
		memcpy(text, span->texts[i], span->lengths[i]);
		text[span->lengths[i]] = '\0';
		copy->texts[i] = text;
		text += span->lengths[i] + 1;
	}
}
