/* SPDX-License-Identifier: MIT */
/*
 * accept.c - see accept.h.  No state, no allocation: any thread may call it.
 *
 * An element with an invalid weight counts as refused: it is safe to omit what a
 * client may not accept.
 */

#include <stddef.h>

#include "base/slice.h"
#include "http/accept.h"
#include "http/field.h"
#include "http/request.h"

#define BEST 1000    /* weights are in thousandths */
#define NOT_NAMED -1 /* no element names it */

static const struct {
	const char *token, *suffix;
} codings[CODINGS] = {
	[CODING_BR] = {"br", ".br"},
	[CODING_ZSTD] = {"zstd", ".zst"},
	[CODING_GZIP] = {"gzip", ".gz"},
};

const char *coding_token(enum coding coding)
{
	return codings[coding].token;
}

const char *coding_suffix(enum coding coding)
{
	return codings[coding].suffix;
}

/* "0.5" is 500; an invalid weight is 0. */
static int parse_weight(struct slice text)
{
	int weight, unit = BEST / 10;

	if (!text.length || (text.at[0] != '0' && text.at[0] != '1'))
		return 0;
	weight = (text.at[0] - '0') * BEST;
	if (text.length > 1 && text.at[1] != '.')
		return 0;
	/* The grammar permits three digits; more digits do no harm. */
	for (size_t i = 2; i < text.length; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return 0;
		weight += (text.at[i] - '0') * unit;
		unit /= 10;
	}
	return weight <= BEST ? weight : 0;
}

/* Splits an element; returns the weight from its parameters. */
static int split_element(struct slice element, struct slice *value)
{
	struct slice parameter;
	int weight = BEST;

	(void)field_part(&element, ';', value);
	while (field_part(&element, ';', &parameter)) {
		if (parameter.length >= 2 && (parameter.at[0] | 0x20) == 'q' &&
		    parameter.at[1] == '=')
			weight = parse_weight(
				(struct slice){parameter.at + 2, parameter.length - 2});
	}
	return weight;
}

/* --- fields ------------------------------------------------------------------- */

/*
 * Calls element() for each element of all fields of that name; returns true if
 * there is such a field.
 */
static bool weigh(const struct request *request, const char *field,
		  void (*element)(void *context, struct slice value, int weight), void *context)
{
	bool found = false;

	for (unsigned i = 0; i < request->header_count; i++) {
		struct slice rest = request->headers[i].value, part, value;

		if (!slice_is(request->headers[i].name, field))
			continue;
		found = true;
		while (field_part(&rest, ',', &part)) {
			int weight;

			/* Skip empty elements (section 5.6.1). */
			if (!part.length)
				continue;
			weight = split_element(part, &value);
			element(context, value, weight);
		}
	}
	return found;
}

struct coding_weights {
	int of[CODINGS], identity, others;
};

static void weigh_coding(void *context, struct slice value, int weight)
{
	struct coding_weights *weights = context;

	if (slice_is(value, "*"))
		weights->others = weight;
	else if (slice_is(value, "identity"))
		weights->identity = weight;
	/* Section 8.4.1.3. */
	else if (slice_is(value, "x-gzip"))
		weights->of[CODING_GZIP] = weight;
	for (unsigned i = 0; i < CODINGS; i++)
		if (slice_is(value, codings[i].token))
			weights->of[i] = weight;
}

unsigned accept_codings_by(const struct request *request, const enum coding own[CODINGS],
			   enum coding order[CODINGS])
{
	struct coding_weights weights = {.identity = NOT_NAMED, .others = NOT_NAMED};
	unsigned count = 0;

	for (unsigned i = 0; i < CODINGS; i++)
		weights.of[i] = NOT_NAMED;
	if (!weigh(request, "Accept-Encoding", weigh_coding, &weights))
		return 0;
	if (weights.identity == NOT_NAMED)
		weights.identity = weights.others;
	for (unsigned k = 0; k < CODINGS; k++) {
		unsigned at = count, i = own[k];

		if (weights.of[i] == NOT_NAMED)
			weights.of[i] = weights.others;
		if (weights.of[i] <= 0 || weights.of[i] < weights.identity)
			continue;
		/* After all codings of the same or a higher weight. */
		for (; at > 0 && weights.of[order[at - 1]] < weights.of[i]; at--)
			order[at] = order[at - 1];
		order[at] = (enum coding)i;
		count++;
	}
	return count;
}

struct type_weight {
	const char *type, *range; /* the type itself; all subtypes */
	int weight;
	unsigned precision; /* of the element that set the weight */
};

static void weigh_type(void *context, struct slice value, int weight)
{
	struct type_weight *types = context;

	for (unsigned i = 0; i < 2; i++) {
		unsigned precision = slice_is(value, types[i].type)    ? 3
				     : slice_is(value, types[i].range) ? 2
				     : slice_is(value, "*/*")	       ? 1
								       : 0;

		if (precision < types[i].precision || !precision)
			continue;
		types[i].precision = precision;
		types[i].weight = weight;
	}
}

bool accept_prefers_json(const struct request *request)
{
	struct type_weight types[2] = {{.type = "text/html", .range = "text/*"},
				       {.type = "application/json", .range = "application/*"}};

	(void)weigh(request, "Accept", weigh_type, types);
	return types[1].weight > types[0].weight;
}
