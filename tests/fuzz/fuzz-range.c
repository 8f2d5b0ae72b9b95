/* SPDX-License-Identifier: MIT */
/*
 * fuzz-range.c - the Range field (sweet/http/range.c) and the body of its response
 * (sweet/http/multipart.c): ranges are within the file and do not overlap, were
 * requested, and the body has the announced length.  The first byte of the input
 * selects the size of the file.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "http/multipart.h"
#include "http/range.h"

#include "fuzz.h"

#define SMALL 64u

static const uint64_t sizes[] = {0, 1, 10, SMALL, 1000, INT64_MAX};

static void check_set(const struct range_set *set, uint64_t size)
{
	MUST(set->count >= 1 && set->count <= RANGES_MAX);
	for (unsigned i = 0; i < set->count; i++) {
		const struct range *range = &set->ranges[i];

		MUST(range->length > 0 && range->first < size);
		MUST(range->length <= size - range->first);
		for (unsigned k = 0; k < i; k++) {
			const struct range *other = &set->ranges[k];

			MUST(range->first > other->first + other->length ||
			     other->first > range->first + range->length);
		}
	}
}

/* Reads a number, as far as it matters for a small file. */
static unsigned small_number(struct input *input, bool *any)
{
	unsigned value = 0;

	*any = false;
	for (; input->left && *input->at >= '0' && *input->at <= '9'; input->left--) {
		value = value * 10 + (unsigned)(*input->at++ - '0');
		if (value > 10 * SMALL)
			value = 10 * SMALL;
		*any = true;
	}
	return value;
}

/* Returns the bytes that an accepted field requests, one bit each. */
static uint64_t asked(struct slice value, unsigned size)
{
	struct input input = {(const uint8_t *)value.at + 6, value.length - 6};
	uint64_t bits = 0;

	while (input.left) {
		unsigned first, last;
		bool from, to;

		if (strchr(" \t,", *input.at)) {
			input.at++;
			input.left--;
			continue;
		}
		first = small_number(&input, &from);
		MUST(input.left && *input.at == '-');
		input.at++;
		input.left--;
		last = small_number(&input, &to);
		if (!from) {
			first = last < size ? size - last : 0;
			last = size;
		}
		for (unsigned i = first; i < size && (!to || i <= last); i++)
			bits |= UINT64_C(1) << i;
	}
	return bits;
}

static uint64_t chosen(const struct range_set *set)
{
	uint64_t bits = 0;

	for (unsigned i = 0; i < set->count; i++)
		for (uint64_t k = 0; k < set->ranges[i].length; k++)
			bits |= UINT64_C(1) << (set->ranges[i].first + k);
	return bits;
}

static void check_multipart(const struct range_set *set, uint64_t size)
{
	static const unsigned char random[MULTIPART_RANDOM];
	char text[MULTIPART_PART_MAX];
	struct multipart multipart;
	uint64_t length = 0;

	multipart_init(&multipart, SLICE("text/plain"), size, random);
	for (unsigned i = 0; i <= set->count; i++) {
		size_t part = multipart_text(&multipart, set, i, text);

		MUST(part > 0 && part <= sizeof(text));
		length += part + (i < set->count ? set->ranges[i].length : 0);
	}
	MUST(length == multipart_length(&multipart, set));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	uint64_t of = sizes[input_number(&input, 1) % (sizeof(sizes) / sizeof(sizes[0]))];
	char *text = exact_copy(input.at, input.left);
	struct slice value = {text, input.left};
	struct range_set set;

	switch (range_parse(value, of, &set)) {
	case RANGE_GOOD:
		check_set(&set, of);
		check_multipart(&set, of);
		if (of <= SMALL)
			MUST(chosen(&set) == asked(value, (unsigned)of));
		break;
	case RANGE_UNSATISFIABLE:
		MUST(of > SMALL || asked(value, (unsigned)of) == 0);
		break;
	case RANGE_IGNORED:
		break;
	}
	free(text);
	return 0;
}
