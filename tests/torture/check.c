/* SPDX-License-Identifier: MIT */
/* check.c - see check.h. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

void check_begin(struct check *check, struct content_board *board, char kind, unsigned number)
{
	struct content_state *state = board ? content_state(board, kind, number) : NULL;

	*check = (struct check){.board = board,
				.key = content_key(kind, number),
				.number = number,
				.least = kind == CONTENT_STEADY ? CONTENT_FIRST
					 : state		? atomic_load(&state->least)
								: 0,
				.kind = kind};
}

void check_range(struct check *check, size_t from, size_t to)
{
	check->ranged = true;
	check->ranges[check->range_count++] = (struct check_range){.from = from, .to = to};
}

bool check_part(struct check *check, size_t first, size_t last, size_t size)
{
	for (unsigned i = 0; i < check->range_count; i++) {
		size_t to = check->ranges[i].to;

		if (check->ranges[i].from != first || last != (to < size ? to : size - 1))
			continue;
		check->from = first;
		check->to = last;
		check->size = size;
		check->done = 0;
		return true;
	}
	return false;
}

unsigned check_parts(const struct check *check, size_t size)
{
	unsigned count = 0;

	for (unsigned i = 0; i < check->range_count; i++)
		count += check->ranges[i].from < size;
	return count;
}

void check_all(struct check *check)
{
	check->ranged = false;
}

/* Returns the newest version that is possible. */
static uint32_t most(const struct check *check)
{
	struct content_state *state =
		check->board ? content_state(check->board, check->kind, check->number) : NULL;

	if (check->kind == CONTENT_STEADY)
		return CONTENT_FIRST;
	return state ? atomic_load(&state->most) : UINT32_MAX;
}

/* Whether that many bytes are the complete document of this version. */
static bool is_all(const struct check *check, uint32_t version)
{
	size_t size = content_size(check->kind, check->number, version);

	if (!check->ranged)
		return check->done == size;
	return check->size == size && check->done == check->to + 1 - check->from;
}

/* Writes to which document the word belongs, to help find the bug. */
static void find_owner(const char *bytes, char *text, size_t size)
{
	static const char kinds[] = CONTENT_FILE_KINDS CONTENT_WORKER_KINDS;
	uint64_t word, least = UINT64_MAX;

	memcpy(&word, bytes, sizeof(word));
	snprintf(text, size, "of no document");
	for (const char *kind = kinds; *kind; kind++) {
		for (unsigned i = 0; i < CONTENT_DOCUMENTS; i++) {
			uint64_t number = content_unscramble(word) ^ content_key(*kind, i);

			/*
			 * No document is larger; by chance the word fits version 10^9 of another
			 * one.
			 */
			if ((uint32_t)number >= 1u << 20 || number >= least)
				continue;
			least = number;
			snprintf(text, size, "of %c/%u, version %u, byte %u", *kind, i,
				 (unsigned)(number >> 32), (unsigned)number * 8);
		}
	}
}

static bool wrong_bytes(struct check *check, size_t at, const char *bytes, size_t length)
{
	char owner[80] = "too few to tell whose";
	size_t skip = (8 - at % 8) % 8;

	if (length >= skip + 8)
		find_owner(bytes + skip, owner, sizeof(owner));
	snprintf(check->why, sizeof(check->why),
		 "byte %zu (of the answer: %zu) is not of version %u; the next are %s", at,
		 at - check->from, check->version, owner);
	return false;
}

static bool match(struct check *check, const char *bytes, size_t length)
{
	size_t at = check->from + check->done;
	size_t same = content_match(check->key, check->version, at, bytes, length);

	check->done += same;
	return same == length || wrong_bytes(check, at + same, bytes + same, length - same);
}

/* Learns the version from the first bytes, once they contain a whole word. */
static bool learn(struct check *check)
{
	size_t skip = (8 - check->from % 8) % 8, had = check->done;
	uint64_t word;

	memcpy(&word, check->start + skip, sizeof(word));
	check->done = 0;
	if (!content_version(check->key, word, (check->from + skip) / 8, &check->version))
		return wrong_bytes(check, check->from, check->start, had);
	check->known = true;
	return match(check, check->start, had);
}

bool check_feed(struct check *check, const char *bytes, size_t length)
{
	size_t need = (8 - check->from % 8) % 8 + 8;

	if (!check->known) {
		size_t part = need - check->done < length ? need - check->done : length;

		memcpy(check->start + check->done, bytes, part);
		check->done += part;
		bytes += part;
		length -= part;
		if (check->done < need)
			return true;
		if (!learn(check))
			return false;
	}
	return match(check, bytes, length);
}

static bool wrong_end(struct check *check, const char *what, uint32_t newest)
{
	snprintf(check->why, sizeof(check->why),
		 "%s: %zu bytes, version %u (known: %d), there were %u to %u", what, check->done,
		 check->version, check->known, check->least, newest);
	return false;
}

/* Too short to show its version: any existing one. */
static bool is_any(const struct check *check, uint32_t newest)
{
	for (uint32_t version = check->least; version <= newest; version++)
		if (is_all(check, version) &&
		    content_match(check->key, version, check->from, check->start, check->done) ==
			    check->done)
			return true;
	return false;
}

bool check_end(struct check *check)
{
	uint32_t newest = most(check);

	/* A file that is written in place may have been empty for a moment. */
	if (check->kind == CONTENT_WRITTEN && !check->ranged && !check->done)
		return true;
	if (!check->known)
		return (newest != UINT32_MAX && is_any(check, newest)) ||
		       wrong_end(check, "not a version", newest);
	if (!is_all(check, check->version))
		return wrong_end(check, "another length", newest);
	return (check->version >= check->least && check->version <= newest) ||
	       wrong_end(check, "outdated", newest);
}

bool check_none(struct check *check)
{
	uint32_t newest = most(check);

	if (check->kind == CONTENT_WRITTEN)
		return true;
	for (uint32_t version = check->least; check->ranged && version <= newest; version++)
		if (!check_parts(check, content_size(check->kind, check->number, version)))
			return true;
	return wrong_end(check, "no such part", newest);
}
