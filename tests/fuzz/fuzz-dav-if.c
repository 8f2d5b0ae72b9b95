/* SPDX-License-Identifier: MIT */
/*
 * fuzz-dav-if.c - the field If of WebDAV (sweet/dav/dav-if.c): all that it names lies within the
 * field, and a list holds exactly if all its conditions do.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/slice.h"
#include "dav/dav-if.h"

#include "fuzz.h"

static bool holds(struct slice resource, const struct dav_if_condition *condition, void *context)
{
	(void)resource;
	(void)context;
	return condition->text.length % 2;
}

static bool lies_in(struct slice part, const char *copy, size_t size)
{
	return part.length && part.at >= copy && part.at + part.length <= copy + size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = exact_copy(data, size);
	bool one = false;
	struct dav_if parsed;

	if (dav_if_parse((struct slice){copy, size}, &parsed)) {
		unsigned next = 0;

		MUST(parsed.list_count && parsed.list_count <= DAV_IF_LISTS_MAX);
		MUST(parsed.condition_count <= DAV_IF_CONDITIONS_MAX);
		for (unsigned i = 0; i < parsed.list_count; i++) {
			const struct dav_if_list *list = &parsed.lists[i];
			bool all = true;

			MUST(list->count && list->first == next);
			next += list->count;
			MUST(!list->resource.at == !parsed.lists[0].resource.at);
			MUST(!list->resource.at || lies_in(list->resource, copy, size));
			for (unsigned k = list->first; k < next; k++) {
				MUST(lies_in(parsed.conditions[k].text, copy, size));
				all &= parsed.conditions[k].text.length % 2 !=
				       parsed.conditions[k].negated;
			}
			one |= all;
		}
		MUST(next == parsed.condition_count);
		MUST(dav_if_evaluate(&parsed, holds, NULL) == one);
	}
	free(copy);
	return 0;
}
