/* SPDX-License-Identifier: MIT */
/*
 * surge.c - SURGE's distributions; see surge.h.  Each sample is drawn by the inverse
 * of its distribution function, normal ones by the method of Box and Muller.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "surge.h"

#define TAIL_SHARE 0.07
#define TAIL_FROM 133e3
#define PAGE_MOST 1000.0 /* documents: one page in 20 million would have more */

/* splitmix64 */
static uint64_t next_number(struct surge *surge)
{
	uint64_t mixed = surge->state += 0x9e3779b97f4a7c15ull;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ull;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
	return mixed ^ mixed >> 31;
}

double surge_part(struct surge *surge)
{
	return ((double)(next_number(surge) >> 11) + 0.5) / 0x1p53;
}

static double lognormal(struct surge *surge, double mu, double sigma)
{
	double radius = sqrt(-2 * log(surge_part(surge)));

	return exp(mu + sigma * radius * cos(2 * M_PI * surge_part(surge)));
}

static double pareto(struct surge *surge, double k, double alpha)
{
	return k * pow(surge_part(surge), -1 / alpha);
}

uint64_t surge_size(struct surge *surge)
{
	double size;

	if (surge_part(surge) < TAIL_SHARE) {
		size = pareto(surge, TAIL_FROM, 1.1);
	} else {
		do {
			size = lognormal(surge, 9.357, 1.318);
		} while (size >= TAIL_FROM);
	}
	return (uint64_t)fmin(fmax(size, 1), (double)SURGE_SIZE_MOST);
}

uint32_t surge_embedded(struct surge *surge)
{
	return (uint32_t)fmin(pareto(surge, 1, 2.43), PAGE_MOST);
}

double surge_active_off(struct surge *surge)
{
	return 1.46 * pow(-log(surge_part(surge)), 1 / 0.382);
}

double surge_inactive_off(struct surge *surge)
{
	return pareto(surge, 1, 1.5);
}

double surge_distance(struct surge *surge)
{
	return lognormal(surge, 1.5, 0.80);
}

void surge_counts(uint32_t *counts, uint32_t documents, uint32_t length)
{
	double sum = 0, due = 0;
	uint64_t given = 0;

	for (uint32_t i = 0; i < documents; i++)
		sum += 1.0 / (i + 1);
	for (uint32_t i = 0; i < documents; i++) {
		due += length / (sum * (i + 1));
		counts[i] = (uint32_t)((uint64_t)(due + 0.5) - given);
		given += counts[i];
	}
}

/* --- a sequence ---------------------------------------------------------- */

/* Documents with requests left, the most recently requested first. */
struct stack {
	uint32_t *documents, *left;
	uint32_t count;
};

static void shuffle(struct stack *stack, struct surge *surge)
{
	for (uint32_t i = stack->count; i > 1; i--) {
		uint32_t at = (uint32_t)(surge_part(surge) * i), document = stack->documents[at];

		stack->documents[at] = stack->documents[i - 1];
		stack->documents[i - 1] = document;
	}
}

/*
 * Chooses a place about as deep as the distance; among neighbours, one with more
 * requests left is more likely.
 */
static uint32_t choose(const struct stack *stack, struct surge *surge)
{
	double distance = surge_distance(surge), at = 0;
	uint32_t from = (uint32_t)(distance / 2), until = (uint32_t)(distance * 1.5) + 1;
	uint64_t sum = 0;

	if (from >= stack->count)
		from = stack->count - 1;
	if (until > stack->count)
		until = stack->count;
	for (uint32_t i = from; i < until; i++)
		sum += stack->left[stack->documents[i]];
	at = surge_part(surge) * (double)sum;
	while (from + 1 < until && at >= stack->left[stack->documents[from]])
		at -= stack->left[stack->documents[from++]];
	return from;
}

/* Takes one request of the document at a place, which moves to the top. */
static uint32_t take(struct stack *stack, uint32_t at)
{
	uint32_t document = stack->documents[at];

	if (--stack->left[document]) {
		memmove(stack->documents + 1, stack->documents, at * sizeof(stack->documents[0]));
		stack->documents[0] = document;
	} else {
		stack->count--;
		memmove(stack->documents + at, stack->documents + at + 1,
			(stack->count - at) * sizeof(stack->documents[0]));
	}
	return document;
}

int surge_sequence(uint32_t *sequence, uint32_t length, uint32_t documents, uint64_t seed)
{
	struct stack stack = {.documents = malloc(documents * sizeof(stack.documents[0])),
			      .left = malloc(documents * sizeof(stack.left[0]))};
	struct surge surge = {seed};
	int error = stack.documents && stack.left ? 0 : -ENOMEM;

	if (!error) {
		surge_counts(stack.left, documents, length);
		for (uint32_t i = 0; i < documents; i++)
			if (stack.left[i])
				stack.documents[stack.count++] = i;
		shuffle(&stack, &surge);
		for (uint32_t i = 0; i < length; i++)
			sequence[i] = take(&stack, choose(&stack, &surge));
	}
	free(stack.documents);
	free(stack.left);
	return error;
}
