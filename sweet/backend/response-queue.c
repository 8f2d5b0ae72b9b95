/* SPDX-License-Identifier: MIT */
/*
 * response-queue.c - see response-queue.h.  A queue belongs to its call's thread.
 */
#include <assert.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "backend/response-queue.h"
#include "base/budget.h"
#include "base/holds.h"
#include "base/slice.h"
#include "event/piece.h"
#include "http/body.h"

#define UNIT_LEAST 4096u /* bytes that the smallest unit takes */

struct response_part {
	union {
		struct response_part *next;
		struct response_queue *queue; /* of a part that a piece owns */
	};
	struct slice bytes;    /* NULL: the part consists of ranges */
	struct budget *budget; /* the budget of the bytes */
	uint64_t room;	       /* bytes of memory that it takes */
	unsigned count;
	struct NC_range *ranges; /* behind the part, and the holds behind them */
	struct NC_hold *holds;
};

/* With the allocator's share of both. */
static_assert(sizeof(struct response_part) + 32 <= RESPONSE_QUEUE_PART, "the cost of a part");

void response_queue_release(const struct NC_response *response)
{
	holds_release(response->holds, response->range_count);
	NC_backend_data_free(response->data);
}

static void give_back(struct response_part *part)
{
	holds_release(part->holds, part->count);
	if (part->bytes.at) {
		NC_backend_data_free(part->bytes.at);
		budget_give(part->budget, part->room);
	}
	free(part);
}

static void append(struct response_queue *parts, struct response_part *part)
{
	if (parts->first)
		parts->last->next = part;
	else
		parts->first = part;
	parts->last = part;
	parts->count++;
	parts->bytes += part->room;
}

bool response_queue_add(struct response_queue *parts, const struct NC_range *ranges,
			const struct NC_hold *holds, unsigned count, uint64_t *left)
{
	struct response_part *part =
		malloc(sizeof(*part) + count * (sizeof(*part->ranges) + sizeof(*part->holds)));

	if (!part) {
		holds_release(holds, count);
		return false;
	}
	*part = (struct response_part){.ranges = (struct NC_range *)(void *)(part + 1)};
	part->holds = (struct NC_hold *)(void *)(part->ranges + count);
	for (unsigned i = 0; i < count; i++) {
		struct NC_range range = ranges[i];

		if (range.length > *left)
			range.length = (size_t)*left;
		*left -= range.length;
		if (range.length == 0) {
			holds_release(&holds[i], 1);
			continue;
		}
		part->holds[part->count] = holds[i];
		part->ranges[part->count++] = range;
		part->room += range.length > UNIT_LEAST ? range.length : UNIT_LEAST;
	}
	if (part->count)
		append(parts, part);
	else
		free(part);
	return true;
}

bool response_queue_add_bytes(struct response_queue *parts, struct slice bytes, uint64_t *left,
			      struct budget *budget)
{
	struct response_part *part;

	if (bytes.length == 0 || *left == 0) {
		NC_backend_data_free(bytes.at);
		return true;
	}
	part = malloc(sizeof(*part));
	if (!part || !budget_take(budget, bytes.length + RESPONSE_QUEUE_PART)) {
		NC_backend_data_free(bytes.at);
		free(part);
		return false;
	}
	*part = (struct response_part){
		.bytes = bytes, .budget = budget, .room = bytes.length + RESPONSE_QUEUE_PART};
	if (part->bytes.length > *left)
		part->bytes.length = (size_t)*left;
	*left -= part->bytes.length;
	append(parts, part);
	return true;
}

static void queue_release_part(struct piece *piece)
{
	struct response_part *part = piece->owner;

	part->queue->count--;
	part->queue->bytes -= part->room;
	give_back(part);
}

struct piece response_queue_take(struct response_queue *parts)
{
	struct response_part *part = parts->first;
	struct piece piece;

	if (!part)
		return (struct piece){0};
	piece = part->bytes.at ? piece_bytes(part->bytes.at, part->bytes.length)
			       : piece_ranges(part->ranges, part->count, part->holds, part->count);
	piece.release = queue_release_part;
	piece.owner = part;
	parts->first = part->next;
	part->queue = parts;
	return piece;
}

void response_queue_clear(struct response_queue *parts)
{
	while (parts->first) {
		struct response_part *part = parts->first;

		parts->first = part->next;
		give_back(part);
	}
	*parts = (struct response_queue){0};
}
