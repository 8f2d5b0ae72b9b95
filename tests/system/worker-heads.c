/* SPDX-License-Identifier: MIT */
/*
 * worker-heads.c - a worker that says more than its responses, as the end of the path says:
 *
 *	/pid       its process id
 *	/replace   the same; then it asks to be replaced
 *	/before    the same; it asks before it responds
 *	/last      begins a response, asks, reads a byte from the FIFO that the query names, and
 *	           continues with its process id
 *	/interim   interim responses, then its process id.  The query has their status and lines,
 *	           with '/' between two responses, '_' for a blank, and '|' for the
 *	           end of a line
 *	/pieces    the same before a response in pieces
 *	/trailers  a body of unknown length, then the trailers that the query has, as lines above;
 *	           /known announces the length
 *	/hints     as many of 103 with a Link as the query says
 *	/late      begins a response, then sends an interim one, past the library's checks
 *
 * With HEADS_AT_ONCE it asks to be replaced before it accepts a request.  Single-threaded; it says
 * when it ends, which is when its server does, or asks for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "wire/wire.h"
#include "worker/responder.h"

/* As in libnabc/api/worker.c, for records that the library does not send. */
struct worker_inside {
	struct NC_cache *cache;
	struct nc_responder *responder;
};

static NC_worker *worker;

static void die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static struct NC_range unit_of(const char *text)
{
	struct NC_range range = {.length = strlen(text)};
	NC_handle unit;

	if (NC_alloc(&unit, range.length, 0) < 0 || NC_write(&unit, text, range.length, 0) < 0 ||
	    NC_insert(&unit) < 0)
		die("worker-heads: cannot make a unit");
	range.id = NC_cache_id(&unit);
	NC_free(&unit);
	return range;
}

static struct NC_range process_id(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%9d\n", (int)getpid());
	return unit_of(text);
}

static void respond_pid(const struct NC_request *request)
{
	static const char line[] = "Cache-Control: max-age=60\r\n";
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200, .headers = line, .headers_length = sizeof(line) - 1,
				 .body = process_id());

	if (NC_worker_respond(worker, request, &response) < 0)
		die("worker-heads: cannot respond");
}

static void replace(void)
{
	if (NC_worker_replace(worker) < 0)
		die("worker-heads: cannot ask to be replaced");
}

static void begin(const struct NC_request *request)
{
	static const char length[] = "Content-Length: 10\r\n";
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE, .headers = length,
				 .headers_length = sizeof(length) - 1);

	if (NC_worker_respond(worker, request, &response) < 0)
		die("worker-heads: cannot begin");
}

/* Past all checks of the library. */
static void push_past_checks(const struct NC_request *request, const struct nc_wire_response *wire,
			     const char *lines)
{
	struct nc_responder *responder = ((struct worker_inside *)(void *)worker)->responder;

	nc_responder_lock(responder);
	if (nc_responder_push(responder, request, wire, NULL, lines) < 0)
		die("worker-heads: cannot push a record");
	nc_responder_unlock(responder);
}

/* Lines end with '|' in the text.  Returns their bytes. */
static size_t read_lines(const char *text, char *lines)
{
	size_t length = 0;

	for (; *text; text++) {
		if (*text == '|')
			lines[length++] = '\r';
		lines[length++] = *text == '|' ? '\n' : *text == '_' ? ' ' : *text;
	}
	return length;
}

static void say_interim(const struct NC_request *request, char *text)
{
	char lines[NC_BLOCK_MAX];
	struct NC_response response;

	response = (struct NC_response)NC_RESPONSE_INIT(.status = (int)strtol(text, &text, 10),
							.headers = lines);
	response.headers_length = read_lines(text, lines);
	if (NC_worker_interim(worker, request, &response) < 0)
		die("worker-heads: cannot send an interim response");
}

static void say_interims(const struct NC_request *request)
{
	char *text = strdup(NC_request_variable(request, "QUERY_STRING")), *left = text, *one;

	while ((one = strsep(&left, "/")))
		say_interim(request, one);
	free(text);
}

static void respond_with_trailers(const struct NC_request *request, bool known)
{
	struct NC_response head = NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE);
	struct NC_range range = process_id();
	char lines[NC_BLOCK_MAX];
	size_t length = read_lines(NC_request_variable(request, "QUERY_STRING"), lines);

	if (known)
		begin(request);
	else if (NC_worker_respond(worker, request, &head) < 0)
		die("worker-heads: cannot begin");
	/* A client of HEAD is gone then. */
	if (NC_worker_send(worker, request, &range, 1, NC_RESPONSE_MORE) < 0 ||
	    NC_worker_trailers(worker, request, lines, length, 0) < 0)
		if (errno != ECANCELED)
			die("worker-heads: cannot send trailers");
}

static void say_hints(const struct NC_request *request)
{
	unsigned long count = strtoul(NC_request_variable(request, "QUERY_STRING"), NULL, 10);

	for (unsigned long i = 0; i < count; i++) {
		char text[64];

		snprintf(text, sizeof(text), "103Link: </%lu>; rel=preload|", i);
		say_interim(request, text);
	}
}

/* An interim response within another one. */
static void say_late(const struct NC_request *request)
{
	const struct nc_wire_response wire = {
		.tag = request->tag, .status = 103, .flags = NC_RESPONSE_INTERIM};

	begin(request);
	push_past_checks(request, &wire, "");
}

static void send_pid(const struct NC_request *request)
{
	struct NC_range range = process_id();

	if (NC_worker_send(worker, request, &range, 1, 0) < 0)
		die("worker-heads: cannot send a piece");
}

static void wait_for_byte(const struct NC_request *request)
{
	int fifo = open(NC_request_variable(request, "QUERY_STRING"), O_RDONLY | O_CLOEXEC);
	char byte;

	if (fifo < 0 || read(fifo, &byte, 1) != 1)
		die("worker-heads: cannot wait");
	close(fifo);
	send_pid(request);
}

static void obey(const struct NC_request *request)
{
	char order[16];

	/* The variables are gone when the request is complete. */
	snprintf(order, sizeof(order), "%s", NC_request_variable(request, "PATH_INFO"));
	if (strcmp(order, "/last") == 0) {
		begin(request);
		replace();
		wait_for_byte(request);
		return;
	}
	if (strcmp(order, "/late") == 0) {
		say_late(request);
		return;
	}
	if (strcmp(order, "/trailers") == 0 || strcmp(order, "/known") == 0) {
		respond_with_trailers(request, strcmp(order, "/known") == 0);
		return;
	}
	if (strcmp(order, "/interim") == 0 || strcmp(order, "/pieces") == 0)
		say_interims(request);
	if (strcmp(order, "/pieces") == 0) {
		begin(request);
		send_pid(request);
		return;
	}
	if (strcmp(order, "/hints") == 0)
		say_hints(request);
	if (strcmp(order, "/before") == 0)
		replace();
	respond_pid(request);
	if (strcmp(order, "/replace") == 0)
		replace();
}

int main(void)
{
	struct NC_request request;

	worker = NC_worker_open(NULL);
	if (!worker)
		die("worker-heads: cannot join the server");
	if (getenv("HEADS_AT_ONCE"))
		replace();
	while (NC_worker_accept(worker, &request, sizeof(request), 0) > 0)
		obey(&request);
	fprintf(stderr, "worker-heads: %d ends\n", (int)getpid());
	NC_worker_close(worker);
	return EXIT_SUCCESS;
}
