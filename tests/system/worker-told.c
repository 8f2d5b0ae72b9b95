/* SPDX-License-Identifier: MIT */
/*
 * worker-told.c - a worker whose responses the query describes: pieces between '&',
 * '+' for a blank.
 *
 *	Name:value      a header line          status=N   the status
 *	wait=FIFO       responds when it has read a byte from there
 *	size=N          bytes of the body that follow its first line
 *	pieces=N        the body and N more of that size, one after the other
 *	abort           in the middle of those
 *	end             is sent separately, after the last of them
 *	keep            the same unit each time, until
 *	destroy         ends it
 *	mixed           that one, followed by a fresh one
 *
 * The body's first line is the number of the call, method, Accept-Language,
 * If-None-Match and Range as they came.  Single-threaded; ends when its
 * server does.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include <nabc-worker.h>
#include <nabc.h>

struct told {
	GString *headers;
	int status;
	size_t size;
	unsigned pieces;
	bool abort, end;
	bool keep, destroy, mixed;
};

static void take(struct told *told, char *word)
{
	char *colon = strchr(word, ':');

	g_strdelimit(word, "+", ' ');
	if (colon) {
		g_string_append_printf(told->headers, "%.*s: %s\r\n", (int)(colon - word), word,
				       colon + 1);
	} else if (g_str_has_prefix(word, "status=")) {
		told->status = atoi(word + 7);
	} else if (g_str_has_prefix(word, "size=")) {
		told->size = strtoul(word + 5, NULL, 10);
	} else if (g_str_has_prefix(word, "pieces=")) {
		told->pieces = (unsigned)atoi(word + 7);
	} else if (g_str_has_prefix(word, "wait=")) {
		char byte;
		int fd = open(word + 5, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || read(fd, &byte, 1) < 0)
			perror(word + 5);
		close(fd);
	}
	told->keep |= strcmp(word, "keep") == 0;
	told->abort |= strcmp(word, "abort") == 0;
	told->end |= strcmp(word, "end") == 0;
	told->mixed |= strcmp(word, "mixed") == 0;
	told->destroy |= strcmp(word, "destroy") == 0;
}

static const char *value(const struct NC_request *request, const char *name)
{
	const char *found = NC_request_variable(request, name);

	return found ? found : "-";
}

static struct NC_range make_body(const struct NC_request *request, size_t size)
{
	static unsigned calls;
	char line[1024];
	size_t length = (size_t)snprintf(
		line, sizeof(line), "%u %s %s %s %s\n", ++calls, value(request, "REQUEST_METHOD"),
		value(request, "HTTP_ACCEPT_LANGUAGE"), value(request, "HTTP_IF_NONE_MATCH"),
		value(request, "HTTP_RANGE"));
	struct NC_range body = {.length = length + size};
	char *bytes = g_malloc(body.length);
	NC_handle unit;

	memcpy(bytes, line, length);
	memset(bytes + length, 'x', size);
	if (NC_alloc(&unit, body.length, 0) < 0 || NC_write(&unit, bytes, body.length, 0) < 0 ||
	    NC_insert(&unit) < 0) {
		perror("worker-told: cannot make a unit");
		exit(EXIT_FAILURE);
	}
	body.id = NC_cache_id(&unit);
	NC_free(&unit);
	g_free(bytes);
	return body;
}

static void answer(NC_worker *worker, const struct NC_request *request)
{
	static struct NC_range kept;
	char **words = g_strsplit(value(request, "QUERY_STRING"), "&", 0);
	struct told told = {.headers = g_string_new(NULL), .status = 200};
	struct NC_response response = NC_RESPONSE_INIT();
	struct NC_range parts[2];

	for (char **word = words; *word; word++)
		take(&told, *word);
	if (told.destroy && kept.id) {
		if (NC_destroy(NULL, kept.id) < 0)
			perror("worker-told: NC_destroy");
		kept.id = 0;
	}
	response.status = told.status;
	response.headers = told.headers->str;
	response.headers_length = told.headers->len;
	if ((told.keep || told.mixed) && !kept.id)
		kept = make_body(request, told.size);
	if (told.keep || told.mixed)
		response.flags = NC_RESPONSE_KEEP;
	if (told.mixed) {
		parts[0] = kept;
		parts[1] = make_body(request, told.size);
		response.ranges = parts;
		response.range_count = 2;
		response.flags |= NC_RESPONSE_DROP(1);
	} else if (told.keep) {
		response.body = kept;
	} else if (told.status != 204 && told.status != 304) {
		response.body = make_body(request, told.size);
	}
	if (told.pieces || told.end)
		response.flags |= NC_RESPONSE_MORE;
	if (NC_worker_respond(worker, request, &response) < 0)
		perror("worker-told: cannot respond");
	for (unsigned i = 0; i < told.pieces; i++) {
		struct NC_range piece = make_body(request, told.size);

		if (told.abort && i + 1 == told.pieces)
			(void)NC_worker_abort(worker, request);
		/* The client may have disconnected. */
		else if (NC_worker_send(worker, request, &piece, 1,
					i + 1 < told.pieces || told.end ? NC_RESPONSE_MORE : 0) < 0)
			break;
	}
	if (told.end)
		(void)NC_worker_send(worker, request, NULL, 0, 0);
	g_string_free(told.headers, TRUE);
	g_strfreev(words);
}

int main(void)
{
	NC_worker *worker = NC_worker_open(NULL);
	struct NC_request request;

	if (!worker) {
		perror("worker-told: cannot join the server");
		return EXIT_FAILURE;
	}
	while (NC_worker_accept(worker, &request, sizeof(request), 0) > 0)
		answer(worker, &request);
	NC_worker_close(worker);
	return EXIT_SUCCESS;
}
