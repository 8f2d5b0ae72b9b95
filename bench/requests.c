/* SPDX-License-Identifier: MIT */
/*
 * requests.c - requests from a trace or by Zipf's law; see requests.h.
 */
#include <errno.h>
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "requests.h"

#define OBJECTS_MAX (1u << 24)
#define COLUMNS 6

/* Completes any list once objects and sizes are known. */
static int finish(struct requests *requests)
{
	uint32_t *later = malloc(((size_t)requests->objects + 1) * sizeof(later[0]));

	requests->next = malloc(((size_t)requests->count + 1) * sizeof(requests->next[0]));
	if (!later || !requests->next) {
		free(later);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < requests->objects; i++) {
		later[i] = NEVER;
		requests->distinct += requests->size[i];
	}
	for (uint32_t i = requests->count; i--;) {
		requests->next[i] = later[requests->object[i]];
		later[requests->object[i]] = i;
		requests->asked += requests->size[requests->object[i]];
	}
	free(later);
	return 0;
}

/* --- a trace ------------------------------------------------------------- */

/* Splits a line in place; returns the number of columns. */
static int split(char *line, char *columns[COLUMNS])
{
	int count = 0;

	line[strcspn(line, "\r\n")] = '\0';
	while (line && count < COLUMNS)
		columns[count++] = strsep(&line, "\t");
	return line ? COLUMNS + 1 : count;
}

/* Returns the number of the path's object, a new one if necessary; NEVER: no memory. */
static uint32_t object_of(struct requests *requests, const char *path, uint32_t *room)
{
	ENTRY *found, entry = {.key = (char *)path};
	uint64_t *size;

	found = hsearch(entry, FIND);
	if (found)
		return (uint32_t)(uintptr_t)found->data;
	if (requests->objects == *room) {
		size = reallocarray(requests->size, *room * 2, sizeof(size[0]));
		if (!size)
			return NEVER;
		requests->size = size;
		*room *= 2;
	}
	entry.key = strdup(path);
	entry.data = (void *)(uintptr_t)requests->objects;
	if (!entry.key || !hsearch(entry, ENTER)) {
		free(entry.key);
		return NEVER;
	}
	requests->size[requests->objects] = 0;
	return requests->objects++;
}

static int read_line(struct requests *requests, char *line, uint32_t rooms[2])
{
	char *columns[COLUMNS], *end;
	unsigned long long size;
	uint32_t object;

	if (line[0] == '#')
		return 0;
	if (split(line, columns) != COLUMNS)
		return -EBADMSG;
	errno = 0;
	size = strtoull(columns[5], &end, 10);
	if (errno || *end || columns[5][0] == '-' || size > UINT64_MAX >> 20)
		return -EBADMSG;
	if (strcmp(columns[2], "GET") || strcmp(columns[4], "200") || !size)
		return 0;
	if (requests->count == rooms[0]) {
		uint32_t *list = NULL;

		if (rooms[0] < NEVER / 2)
			list = reallocarray(requests->object, rooms[0] * 2, sizeof(list[0]));
		if (!list)
			return -ENOMEM;
		requests->object = list;
		rooms[0] *= 2;
	}
	object = object_of(requests, columns[3], &rooms[1]);
	if (object == NEVER)
		return -ENOMEM;
	if (requests->size[object] < size)
		requests->size[object] = size;
	requests->object[requests->count++] = object;
	return 0;
}

int requests_read(struct requests *requests, FILE *file)
{
	uint32_t rooms[2] = {1024, 1024};
	char *line = NULL;
	size_t length = 0;
	int error = 0;

	*requests = (struct requests){0};
	requests->object = malloc(rooms[0] * sizeof(requests->object[0]));
	requests->size = malloc(rooms[1] * sizeof(requests->size[0]));
	/* The names are never freed one by one: the program reads one trace. */
	if (!requests->object || !requests->size || !hcreate(OBJECTS_MAX / 16))
		error = -ENOMEM;
	while (!error && getline(&line, &length, file) >= 0)
		error = read_line(requests, line, rooms);
	if (!error && ferror(file))
		error = -EIO;
	free(line);
	if (!error)
		error = finish(requests);
	if (error)
		requests_free(requests);
	return error;
}

/* --- by Zipf's law ------------------------------------------------------- */

static uint64_t next_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* In (0, 1). */
static double next_part(uint64_t *state)
{
	return ((double)(next_number(state) >> 11) + 0.5) / (double)(1ull << 53);
}

/* SURGE's files: a lognormal body, 7 % in a Pareto tail. */
static uint64_t next_size(uint64_t *state)
{
	double part = next_part(state), a = next_part(state), b = next_part(state);
	double size;

	if (part < 0.07)
		size = 133e3 / pow(a, 1 / 1.1);
	else
		size = exp(9.357 + 1.318 * sqrt(-2 * log(a)) * cos(2 * M_PI * b));
	return (uint64_t)fmin(fmax(size, 100), 64e6);
}

int requests_make(struct requests *requests, uint32_t objects, uint32_t count, double alpha,
		  uint64_t seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
	double *until, sum = 0;
	int error = 0;

	if (!objects || objects > OBJECTS_MAX || !count || count >= NEVER / 2)
		return -EINVAL;
	*requests = (struct requests){.objects = objects, .count = count};
	requests->object = malloc(count * sizeof(requests->object[0]));
	requests->size = malloc(objects * sizeof(requests->size[0]));
	until = malloc(objects * sizeof(until[0]));
	if (!requests->object || !requests->size || !until)
		error = -ENOMEM;
	for (uint32_t i = 0; !error && i < objects; i++) {
		sum += pow(i + 1, -alpha);
		until[i] = sum;
		requests->size[i] = next_size(&state);
	}
	for (uint32_t i = 0; !error && i < count; i++) {
		double at = next_part(&state) * sum;
		uint32_t low = 0, high = objects - 1;

		while (low < high) {
			uint32_t middle = low + (high - low) / 2;

			if (until[middle] < at)
				low = middle + 1;
			else
				high = middle;
		}
		requests->object[i] = low;
	}
	free(until);
	if (!error)
		error = finish(requests);
	if (error)
		requests_free(requests);
	return error;
}

void requests_free(struct requests *requests)
{
	free(requests->object);
	free(requests->next);
	free(requests->size);
	*requests = (struct requests){0};
}
