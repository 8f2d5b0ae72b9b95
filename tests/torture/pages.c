/* SPDX-License-Identifier: MIT */
/*
 * pages.c - a worker, or CGI program, whose pages identify themselves (content.h); the
 * end of the path, /KIND/NUMBER, selects the page and how it is made.  Each response
 * is a new version, except for kept pages: these stay for some responses, and are
 * destroyed while others are still being sent.  Single-threaded; exits when its server
 * does, or is killed.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "content.h"

#define PARTS 5u
#define STANDING 16u /* parts that are destroyed later */
#define STAYS 6u     /* average number of responses with a kept page */

static const char cached[] = "X-NABC-Max-Age: 2\r\n";
static char buffer[2 << 20];
static uint64_t state;

static uint64_t draw(void)
{
	return content_next(&state);
}

struct page {
	uint64_t key;
	uint32_t version;
	size_t size;
};

static struct page page_of(char kind, unsigned number)
{
	struct page page = {.key = content_key(kind, number), .version = (uint32_t)draw()};

	page.size = content_size(kind, number, page.version);
	return page;
}

/* A part of a page as a unit; id 0: no memory. */
static struct NC_range unit_of(const struct page *page, size_t offset, size_t length)
{
	static const enum NC_kind kinds[] = {NC_KIND_AUTO, NC_KIND_AUTO, NC_KIND_RECYCLED,
					     NC_KIND_SEALED};
	unsigned way = (unsigned)draw() % 4;
	struct NC_range range = {.length = length};
	NC_handle unit;

	if (NC_unit_alloc(NULL, &unit, length, 0, kinds[way], way == 1 ? NC_UNIT_UNSUMMED : 0) < 0)
		return range;
	content_fill(page->key, page->version, offset, buffer, length);
	if (NC_write(&unit, buffer, length, 0) == (ssize_t)length && NC_insert(&unit) == 0)
		range.id = NC_cache_id(&unit);
	(void)NC_free(&unit);
	return range;
}

static struct NC_response whole(char kind, unsigned number)
{
	struct page page = page_of(kind, number);
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200, .body = unit_of(&page, 0, page.size));

	if (!response.body.id)
		response.status = 503;
	if (kind == CONTENT_CACHED) {
		response.headers = cached;
		response.headers_length = sizeof(cached) - 1;
	}
	return response;
}

/* The same unit repeatedly, for a while. */
static struct NC_response kept(unsigned number)
{
	static struct NC_range units[CONTENT_DOCUMENTS];
	struct NC_range *unit = &units[number];
	struct page page = page_of(CONTENT_KEPT, number);

	if (unit->id && draw() % STAYS == 0) {
		(void)NC_destroy(NULL, unit->id);
		unit->id = 0;
	}
	/* It may have been evicted. */
	if (!unit->id ||
	    NC_stat(NULL, unit->id, &(struct NC_stat){0}, sizeof((struct NC_stat){0})) < 0)
		*unit = unit_of(&page, 0, page.size);
	return (struct NC_response)NC_RESPONSE_INIT(.status = unit->id ? 200 : 503,
						    .flags = unit->id ? NC_RESPONSE_KEEP : 0,
						    .body = *unit);
}

/* The unit was evicted; the error may hide that it ever existed. */
static bool is_gone(int error)
{
	return error == ENOENT || error == EACCES;
}

/* Responds, or reports a failure: a unit of the response may have been evicted. */
static int respond(NC_worker *worker, const struct NC_request *request,
		   const struct NC_response *response)
{
	int result = NC_worker_respond(worker, request, response);

	if (result < 0 && is_gone(errno))
		result = NC_worker_respond(worker, request,
					   &(struct NC_response)NC_RESPONSE_INIT(.status = 503));
	return result;
}

/* After a number of others, or at once. */
static void destroy_soon(size_t id, bool now)
{
	static size_t recent[STANDING];
	static unsigned next;

	if (!now) {
		size_t oldest = recent[next % STANDING];

		recent[next++ % STANDING] = id;
		id = oldest;
	}
	if (id)
		(void)NC_destroy(NULL, id);
}

/* In units of any lengths; every other one is kept, and is destroyed a little later. */
static int answer_in_parts(NC_worker *worker, const struct NC_request *request, unsigned number)
{
	struct page page = page_of(CONTENT_PARTS, number);
	struct NC_range parts[PARTS];
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_KEEP, .ranges = parts);
	bool room = true;
	size_t at = 0;
	int result;

	while (at < page.size) {
		unsigned count = response.range_count++;
		size_t left = page.size - at;
		size_t length = count + 1 == PARTS ? left : 1 + draw() % left;

		parts[count] = unit_of(&page, at, length);
		room = room && parts[count].id;
		if (count % 2 == 0)
			response.flags |= NC_RESPONSE_DROP(count);
		at += length;
	}
	if (room)
		result = respond(worker, request, &response);
	else
		result = NC_worker_respond(worker, request,
					   &(struct NC_response)NC_RESPONSE_INIT(.status = 503));
	/* The server knows them only by their ids: some may be missing. */
	for (unsigned i = 0; i < response.range_count; i++)
		if (!room || i % 2)
			destroy_soon(parts[i].id, !room || draw() % 16 == 0);
	return result;
}

static int answer_in_pieces(NC_worker *worker, const struct NC_request *request, unsigned number)
{
	struct page page = page_of(CONTENT_PIECES, number);
	struct NC_response response = NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE);
	size_t at = 0;

	if (NC_worker_respond(worker, request, &response) < 0)
		return -1;
	while (at < page.size) {
		size_t left = page.size - at, length = 1 + draw() % (left < 100000 ? left : 100000);
		struct NC_range piece = unit_of(&page, at, length);
		unsigned more = length < left ? NC_RESPONSE_MORE : 0;

		if (!piece.id)
			return NC_worker_abort(worker, request);
		if (NC_worker_send(worker, request, &piece, 1, more) < 0) {
			int error = errno;

			(void)NC_destroy(NULL, piece.id);
			if (is_gone(error))
				return NC_worker_abort(worker, request);
			errno = error;
			return error == ECANCELED ? 0 : -1;
		}
		at += length;
	}
	return 0;
}

/* /KIND/NUMBER */
static bool read_path(const char *path, char *kind, unsigned *number)
{
	return path && sscanf(path, "/%c/%u", kind, number) == 2 && *number < CONTENT_DOCUMENTS &&
	       strchr(CONTENT_WORKER_KINDS, *kind);
}

/*
 * Puts the page into the server's cache and exits, before it is sent; through the pipe
 * if there is no such cache, or no memory.
 */
static int answer_as_cgi(void)
{
	struct page page;
	struct NC_range unit = {0};
	unsigned number;
	char kind;

	if (!read_path(getenv("PATH_INFO"), &kind, &number))
		return EXIT_FAILURE;
	page = page_of(kind, number);
	if (getenv("NABC_CACHE"))
		unit = unit_of(&page, 0, page.size);
	if (unit.id) {
		(void)NC_set_lifetime(NULL, unit.id, 5000);
		printf("X-NABC-Cache-Id: %zu\r\n\r\n", unit.id);
	} else {
		content_fill(page.key, page.version, 0, buffer, page.size);
		printf("Content-Length: %zu\r\n\r\n", page.size);
		(void)fwrite(buffer, 1, page.size, stdout);
	}
	return EXIT_SUCCESS;
}

static int answer(NC_worker *worker, const struct NC_request *request)
{
	const char *path = NC_request_variable(request, "PATH_INFO");
	struct NC_response response = NC_RESPONSE_INIT(.status = 404);
	unsigned number;
	char kind;

	if (read_path(path, &kind, &number)) {
		if (kind == CONTENT_PARTS)
			return answer_in_parts(worker, request, number);
		if (kind == CONTENT_PIECES)
			return answer_in_pieces(worker, request, number);
		response = kind == CONTENT_KEPT ? kept(number) : whole(kind, number);
	}
	if (response.status != 200)
		response = (struct NC_response)NC_RESPONSE_INIT(.status = response.status);
	return respond(worker, request, &response);
}

int main(void)
{
	NC_worker *worker;
	struct NC_request request;

	state = (uint64_t)getpid() << 32 | (uint64_t)time(NULL);
	if (!getenv("NABC_WORKER_FD"))
		return answer_as_cgi();
	worker = NC_worker_open(NULL);
	if (!worker) {
		perror("pages: cannot join the server");
		return EXIT_FAILURE;
	}
	while (NC_worker_accept(worker, &request, sizeof(request), 0) > 0) {
		if (answer(worker, &request) < 0) {
			perror("pages: cannot respond");
			break;
		}
	}
	NC_worker_close(worker);
	return EXIT_SUCCESS;
}
