/* SPDX-License-Identifier: MIT */
/*
 * fuzz-fcgi.c - FastCGI records (sweet/program/fcgi.c): the bytes of an application have
 * the same meaning for any division into pieces, and written variables can be read
 * again.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/slice.h"
#include "program/fcgi.h"

#include "fcgi-pair.h"
#include "fuzz.h"

#define OUT_MAX 4096

/* The result: content of each kind, concatenated. */
struct found {
	ssize_t result; /* bytes that were read, or the error */
	size_t length[FCGI_END];
	char *content[FCGI_END];
	uint32_t exit_status;
	enum fcgi_status status;
	bool over;
};

static void keep(struct found *found, const struct fcgi_found *now, const char *data, size_t used)
{
	MUST(now->event != FCGI_NOTHING && now->event <= FCGI_END);
	if (now->event == FCGI_END) {
		found->exit_status = now->exit_status;
		found->status = now->status;
		return;
	}
	MUST(now->run.length > 0 && now->run.at >= data &&
	     now->run.at + now->run.length <= data + used);
	memcpy(found->content[now->event] + found->length[now->event], now->run.at,
	       now->run.length);
	found->length[now->event] += now->run.length;
}

static struct found read_all(const char *data, size_t length, size_t step)
{
	struct found found = {.result = 0};
	struct fcgi fcgi;

	for (unsigned i = 0; i < FCGI_END; i++)
		found.content[i] = exact_copy(data, length);
	fcgi_init(&fcgi, FCGI_ID_FIRST);
	while ((size_t)found.result < length && !fcgi_is_over(&fcgi)) {
		size_t rest = length - (size_t)found.result, now = rest < step ? rest : step;
		char *cut = exact_copy(data + found.result, now);
		struct fcgi_found event;
		ssize_t used = fcgi_read(&fcgi, cut, now, &event);

		if (used < 0) {
			MUST(fcgi_fault(used));
			found.result = used;
			free(cut);
			break;
		}
		MUST(used > 0 && (size_t)used <= now);
		if (event.event != FCGI_NOTHING)
			keep(&found, &event, cut, (size_t)used);
		found.result += used;
		free(cut);
	}
	found.over = fcgi_is_over(&fcgi);
	return found;
}

static void check_equal(const struct found *a, const struct found *b)
{
	MUST(a->result == b->result && a->over == b->over);
	MUST(a->exit_status == b->exit_status && a->status == b->status);
	for (unsigned i = 0; i < FCGI_END; i++)
		MUST(a->length[i] == b->length[i] &&
		     memcmp(a->content[i], b->content[i], a->length[i]) == 0);
}

static void free_found(const struct found *found)
{
	for (unsigned i = 0; i < FCGI_END; i++)
		free(found->content[i]);
}

/* A pair in a record is the next string of the block. */
static void check_pairs(const char *record, size_t length, struct slice *block)
{
	struct slice rest = {record + FCGI_HEADER_SIZE, length - FCGI_HEADER_SIZE}, name, value;

	MUST(((size_t)(unsigned char)record[4] << 8 | (unsigned char)record[5]) == rest.length);
	while (fcgi_pair(&rest, &name, &value)) {
		size_t whole = strnlen(block->at, block->length);

		MUST(name.length <= whole && memcmp(name.at, block->at, name.length) == 0);
		MUST(name.length == whole ||
		     (block->at[name.length] == '=' && value.length == whole - name.length - 1 &&
		      memcmp(value.at, block->at + name.length + 1, value.length) == 0));
		whole += whole < block->length;
		*block = (struct slice){block->at + whole, block->length - whole};
	}
	MUST(rest.length == 0);
}

static void check_params(const char *data, size_t length, size_t room)
{
	struct slice block = {data, length}, checked = block;
	char out[OUT_MAX];

	while (block.length) {
		ssize_t bytes = fcgi_params(&block, out, room);

		if (bytes < 0)
			return;
		MUST(bytes > FCGI_HEADER_SIZE && (size_t)bytes <= room);
		check_pairs(out, (size_t)bytes, &checked);
		MUST(checked.at == block.at && checked.length == block.length);
	}
	if (room >= FCGI_HEADER_SIZE)
		MUST(fcgi_params(&block, out, room) == FCGI_HEADER_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = {1, 5, 8, 100}, rooms[] = {0, 8, 20, 200, OUT_MAX};
	struct found whole = read_all((const char *)data, size, SIZE_MAX);

	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct found cut = read_all((const char *)data, size, steps[i]);

		check_equal(&whole, &cut);
		free_found(&cut);
	}
	free_found(&whole);
	for (unsigned i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++)
		check_params((const char *)data, size, rooms[i]);
	return 0;
}
