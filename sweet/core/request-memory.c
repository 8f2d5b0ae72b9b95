/* SPDX-License-Identifier: MIT */
/*
 * request-memory.c - see request-memory.h.
 *
 * A table with one entry for each hash: a head that has the hash of another one replaces it, so
 * that clients cannot make the memory grow.  The hash need not resist clients, who gain nothing
 * by replacing what others use: it costs time only, as much as if there were no memory.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "core/request-memory.h"
#include "http/request.h"

#define SEEN 1024u	 /* heads that came once, by their hash; a power of 2 */
#define HASHED_FIRST 64u /* bytes of a head that are hashed: its line, as a rule, */
#define HASHED_LAST 16u	 /* and its end; all are compared */

struct stored_head {
	struct remembered known;
	size_t length;
	/* Then the request with its fields, which point into the head, then head and path. */
	char *head;
};

struct request_memory {
	struct stored_head *heads[REQUEST_MEMORY_HEADS];
	uint64_t hash; /* of the head that was looked for last */
	uint32_t seen[SEEN];
};

static uint64_t mix(uint64_t hash, const char *at)
{
	uint64_t bytes;

	memcpy(&bytes, at, sizeof(bytes));
	hash = (hash ^ bytes) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

/* The head has at least HASHED_LAST bytes. */
static uint64_t hash_of(const char *head, size_t length)
{
	size_t first = length < HASHED_FIRST ? length : HASHED_FIRST;
	uint64_t hash = length;

	for (size_t at = 0; at + 8 <= first; at += 8)
		hash = mix(hash, head + at);
	hash = mix(hash, head + length - HASHED_LAST);
	return mix(hash, head + length - HASHED_LAST / 2);
}

static struct stored_head **entry_of(struct request_memory *memory, uint64_t hash)
{
	return &memory->heads[hash % REQUEST_MEMORY_HEADS];
}

struct request_memory *request_memory_new(void)
{
	return calloc(1, sizeof(struct request_memory));
}

void request_memory_free(struct request_memory *memory)
{
	for (unsigned i = 0; memory && i < REQUEST_MEMORY_HEADS; i++)
		free(memory->heads[i]);
	free(memory);
}

static bool fits(size_t length)
{
	return length >= HASHED_LAST && length <= REQUEST_MEMORY_HEAD;
}

static bool is_of(const struct stored_head *stored, struct slice head, bool listed)
{
	return stored->length == head.length && stored->known.request->listed == listed &&
	       memcmp(stored->head, head.at, head.length) == 0;
}

struct remembered *request_memory_find(struct request_memory *memory, struct slice head,
				       bool listed)
{
	struct stored_head *stored;

	if (!fits(head.length))
		return NULL;
	memory->hash = hash_of(head.at, head.length);
	stored = *entry_of(memory, memory->hash);
	if (!stored || !is_of(stored, head, listed))
		return NULL;
	stored->known.users++;
	return &stored->known;
}

/* What is secret must not stay in memory longer than its request. */
static bool has_secrets(const struct request *request)
{
	return request_find(request, "Cookie") || request_find(request, "Authorization") ||
	       request_find(request, "Proxy-Authorization");
}

static bool is_plain(const struct request *request)
{
	return request_is_reading(request) && !request->content_length && !request->chunked &&
	       request->expect == EXPECT_NOTHING && request->path.at[0] == '/' &&
	       request->header_count <= REQUEST_MEMORY_FIELDS && !has_secrets(request);
}

static void move(struct slice *slice, ptrdiff_t by)
{
	slice->at += by;
}

/* Makes the request, a copy, point into a copy of its head. */
static void move_slices(struct request *request, ptrdiff_t by)
{
	move(&request->head, by);
	move(&request->method_name, by);
	move(&request->target, by);
	move(&request->path, by);
	move(&request->query, by);
	move(&request->host, by);
	for (unsigned i = 0; i < request->header_count; i++) {
		move(&request->headers[i].name, by);
		move(&request->headers[i].value, by);
	}
}

static struct stored_head *make_stored(const struct request *request)
{
	size_t fields = request_size(request), length = request->head.length;
	struct stored_head *stored =
		malloc(sizeof(*stored) + fields + length + request->target.length + 1);
	struct request *copy;

	if (!stored)
		return NULL;
	copy = (struct request *)(stored + 1);
	request_copy(copy, request);
	*stored = (struct stored_head){
		.known = {.request = copy}, .length = length, .head = (char *)copy + fields};
	stored->known.path = stored->head + length;
	memcpy(stored->head, request->head.at, length);
	move_slices(copy, stored->head - request->head.at);
	return stored;
}

struct remembered *request_memory_note(struct request_memory *memory, const struct request *request)
{
	struct stored_head **at, *made;
	const uint64_t hash = memory->hash;
	uint32_t *seen, mark;

	if (!fits(request->head.length))
		return NULL;
	seen = &memory->seen[hash / REQUEST_MEMORY_HEADS % SEEN];
	mark = (uint32_t)(hash >> 32);
	if (*seen != mark) {
		*seen = mark;
		return NULL;
	}
	at = entry_of(memory, hash);
	if (!is_plain(request) || (*at && (*at)->known.users))
		return NULL;
	made = make_stored(request);
	if (!made)
		return NULL;
	free(*at);
	*at = made;
	made->known.users = 1;
	return &made->known;
}
