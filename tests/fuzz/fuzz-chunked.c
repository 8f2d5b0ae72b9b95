/* SPDX-License-Identifier: MIT */
/*
 * fuzz-chunked.c - bodies in the chunked coding (sweet/http/chunked.c) and their
 * collection (sweet/http/body.c): for any division into pieces, the content is the
 * same.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/budget.h"
#include "base/slice.h"
#include "http/body.h"
#include "http/chunked.h"
#include "http/request.h"

#include "fuzz.h"

#define LIMIT 2000u /* bytes of content */
#define KEPT 1500u  /* limit of all bodies together */

/* The result for a body. */
struct found {
	int status; /* 0: complete; 1: incomplete; negative: refused */
	size_t used, length;
	char *content;
};

/* At most `step` bytes at a time; 0: all at once. */
static struct found decode(const char *data, size_t length, size_t step)
{
	struct found found = {.status = 1, .content = malloc(length ? length : 1)};
	struct chunked chunked;

	MUST(found.content);
	chunked_init(&chunked);
	while (found.used < length && !chunked_is_over(&chunked)) {
		size_t rest = length - found.used, now = step && step < rest ? step : rest;
		char *cut = exact_copy(data + found.used, now);
		struct slice run;
		ssize_t used = chunked_decode(&chunked, cut, now, &run);

		if (used < 0) {
			MUST(used == -400 || used == -431);
			found.status = (int)used;
			free(cut);
			return found;
		}
		MUST(used > 0 && (size_t)used <= now);
		MUST(run.at >= cut && run.length <= (size_t)used &&
		     (size_t)(run.at - cut) + run.length <= (size_t)used);
		if (run.length)
			memcpy(found.content + found.length, run.at, run.length);
		found.length += run.length;
		found.used += (size_t)used;
		free(cut);
	}
	found.status = !chunked_is_over(&chunked);
	return found;
}

static void check_equal(const struct found *a, const struct found *b)
{
	MUST(a->status == b->status && a->length == b->length);
	/* A refused part may have been read in other pieces before. */
	MUST(a->status < 0 || a->used == b->used);
	MUST(memcmp(a->content, b->content, a->length) == 0);
}

/* The same body, collected within a limit and a budget. */
static void check_body(const char *data, size_t length, const struct found *whole, size_t step)
{
	struct budget budget = {.most = KEPT};
	struct request request = {.chunked = true};
	struct body body = {.framing = BODY_NONE};
	size_t at = 0;
	ssize_t used = 0;

	body_begin(&body, &request, LIMIT);
	MUST(body_keep(&body, LIMIT, BODY_WHOLE, &budget) == 0);
	while (at < length && !body_is_over(&body)) {
		size_t now = length - at < step ? length - at : step;

		used = body_take(&body, data + at, now);
		if (used < 0)
			break;
		MUST(used == (ssize_t)now || body_is_over(&body));
		at += (size_t)used;
		MUST(atomic_load(&budget.used) == body.room && body.room <= KEPT);
		MUST(body.gathered == body.length && body.gathered <= body.room);
		MUST(body.gathered <= whole->length &&
		     memcmp(body.content ? body.content : "", whole->content, body.gathered) == 0);
	}
	MUST(used >= 0 || used == -413 || used == -503 || used == whole->status);
	if (used >= 0)
		MUST(body.length == whole->length && at == whole->used &&
		     body_is_over(&body) == (whole->status == 0));
	body_end(&body);
	MUST(atomic_load(&budget.used) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = {1, 2, 3, 7, 16};
	const char *bytes = (const char *)data;
	struct found whole = decode(bytes, size, 0);

	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct found cut = decode(bytes, size, steps[i]);

		check_equal(&whole, &cut);
		free(cut.content);
		check_body(bytes, size, &whole, steps[i]);
	}
	free(whole.content);
	return 0;
}
