/* SPDX-License-Identifier: MIT */
/*
 * fuzz-accept.c - the encodings that a client prefers (sweet/http/accept.c): each
 * coding at most once, and only if the client named it or sent a star.
 */
#include "base/slice.h"
#include "http/accept.h"
#include "http/request.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "fuzz.h"
#include "head.h"

static bool names(const struct request *request, const char *token)
{
	for (unsigned i = 0; i < request->header_count; i++) {
		struct slice value = request->headers[i].value;

		if (!slice_is(request->headers[i].name, "Accept-Encoding"))
			continue;
		for (size_t at = 0; at < value.length; at++)
			if (value.at[at] == '*' ||
			    (value.length - at >= strlen(token) &&
			     strncasecmp(value.at + at, token, strlen(token)) == 0))
				return true;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum coding own[CODINGS] = {CODING_BR, CODING_ZSTD, CODING_GZIP};
	enum coding order[CODINGS];
	unsigned count, seen = 0;
	struct head head;

	if (!head_open(&head, "GET / HTTP/1.1\r\nHost: h\r\n", data, size, "\r\n\r\n"))
		return -1;
	count = accept_codings_by(&head.request, own, order);
	MUST(count <= CODINGS);
	for (unsigned i = 0; i < count; i++) {
		MUST((unsigned)order[i] < CODINGS && !(seen >> order[i] & 1));
		seen |= 1u << order[i];
		/* x-gzip is an alias that contains the name gzip. */
		MUST(names(&head.request, coding_token(order[i])));
	}
	if (accept_prefers_json(&head.request))
		MUST(request_find(&head.request, "Accept"));
	head_close(&head);
	return 0;
}
