/* SPDX-License-Identifier: MIT */
/*
 * worker-fixture-stream.c - what worker-fixture does with bodies that come, and with
 * answers that go, in pieces.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/pending.h"
#include "worker/responder.h"

#include "worker-fixture.h"

/* The result of the last stream: reported by "outcome". */
static struct {
	int error;
	unsigned pieces;
} outcome;

static struct NC_range number_unit(unsigned value)
{
	char text[16];
	size_t length = (size_t)snprintf(text, sizeof(text), "%u,", value);

	return (struct NC_range){insert(text, length, length), 0, length};
}

/* Sends parts up to COUNT, unless it is told to stop. */
static void send_pieces(unsigned from, unsigned flags)
{
	unsigned count = (unsigned)number("COUNT");

	memset(&outcome, 0, sizeof(outcome));
	for (unsigned i = from; i <= count; i++) {
		struct NC_range range = number_unit(i);
		bool last = i == count;

		/* The end may be empty. */
		if (NC_worker_send(worker, &request, last ? NULL : &range, !last,
				   last ? 0 : flags | NC_RESPONSE_MORE) < 0) {
			outcome.error = errno;
			NC_destroy(NULL, range.id);
			return;
		}
		if (last)
			NC_destroy(NULL, range.id);
		outcome.pieces++;
	}
}

void stream(void)
{
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE,
				 .headers = "X-Stream: yes\r\n", .headers_length = 15,
				 .body = number_unit(0));

	if (NC_worker_respond(worker, &request, &response) < 0)
		die("NC_worker_respond");
	send_pieces(1, (unsigned)number("FLAGS"));
}

/* A stream whose part AT names an invalid unit. */
void bad_stream(void)
{
	struct NC_response response = NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE);
	struct NC_range bad = {.id = 1, .length = 1};
	struct nc_open_request *open;

	if (number("AT") == 0) {
		push_raw(200, NC_RESPONSE_MORE, &bad, 1);
		open = nc_pending_find(&worker->responder->pending, request.channel, request.tag);
		open->begun = true;
		worker->responder->pending.begun++;
	} else {
		if (NC_worker_respond(worker, &request, &response) < 0)
			die("NC_worker_respond");
		open = nc_pending_find(&worker->responder->pending, request.channel, request.tag);
		push_raw(0, NC_RESPONSE_PIECE | (number("LAST") ? 0 : NC_RESPONSE_MORE), &bad, 1);
	}
	open->unsent++;
	if (number("LAST"))
		nc_pending_remove(&worker->responder->pending, open);
	else
		send_pieces(1, 0);
}

/* Reads the body as it arrives, and responds with it, or with the error. */
void read_body(void)
{
	size_t length = 0;
	struct NC_range piece;
	int got;

	while ((got = NC_worker_body(worker, &request, &piece, 0)) == 1) {
		if (length + piece.length > sizeof(body) ||
		    NC_pread(NULL, piece.id, body + length, piece.length, piece.offset) !=
			    (ssize_t)piece.length)
			die("NC_pread");
		length += piece.length;
	}
	memset(&outcome, 0, sizeof(outcome));
	if (got < 0)
		outcome.error = errno;
	else if (NC_worker_body(worker, &request, &piece, 0) != 0)
		die("NC_worker_body after the end");
	respond(200, 0, NULL, length ? insert(body, length, length) : 0, length);
	if (NC_worker_body(worker, &request, &piece, 0) != -1 || errno != EINVAL ||
	    NC_worker_body(NULL, &request, &piece, 0) != -1 || errno != EINVAL ||
	    NC_worker_body(worker, &request, NULL, 0) != -1 || errno != EINVAL ||
	    NC_worker_body(worker, &request, &piece, 1) != -1 || errno != EINVAL)
		die("NC_worker_body of what is over");
}

/* Responds in parts, each of which is a part of the body. */
void echo_body(void)
{
	struct NC_response response = NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE);
	struct NC_range piece;

	if (NC_worker_respond(worker, &request, &response) < 0)
		die("NC_worker_respond");
	while (NC_worker_body(worker, &request, &piece, 0) == 1) {
		if (NC_pread(NULL, piece.id, body, piece.length, piece.offset) !=
		    (ssize_t)piece.length)
			die("NC_pread");
		piece = (struct NC_range){insert(body, piece.length, piece.length), 0,
					  piece.length};
		if (NC_worker_send(worker, &request, &piece, 1, NC_RESPONSE_MORE) < 0)
			die("NC_worker_send");
	}
	if (NC_worker_send(worker, &request, NULL, 0, 0) < 0)
		die("NC_worker_send");
}

void report_outcome(void)
{
	struct NC_range range = {insert(&outcome, sizeof(outcome), sizeof(outcome)), 0,
				 sizeof(outcome)};

	respond(200, 0, NULL, range.id, range.length);
}

void abort_it(void)
{
	struct NC_response response = NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE);

	if (number("BEGUN") && NC_worker_respond(worker, &request, &response) < 0)
		die("NC_worker_respond");
	if (NC_worker_abort(worker, &request) < 0)
		die("NC_worker_abort");
	/* The request is over: a second abort succeeds, a send fails. */
	if (NC_worker_abort(worker, &request) < 0)
		die("NC_worker_abort");
	if (NC_worker_send(worker, &request, NULL, 0, 0) == 0 || errno != EINVAL)
		die("NC_worker_send after the end");
}

/* Responds after its client has gone. */
void await_gone(void)
{
	int gone;

	while ((gone = NC_worker_gone(worker, &request)) == 0)
		sched_yield();
	if (gone < 0)
		die("NC_worker_gone");
	respond(200, 0, NULL, insert("gone", 4, 4), 4);
	/* After the response, the request counts as gone. */
	if (NC_worker_gone(worker, &request) != 1)
		die("NC_worker_gone after the end");
}

/*
 * Sends records as FLAGS lists them.  A part with NC_RESPONSE_MORE has a unit, but
 * no range if 'n' follows its flags, and a range of 0 bytes if 'z' follows.
 */
void raw_records(void)
{
	const char *flags = variable("FLAGS");

	while (*flags) {
		char *end;
		unsigned bits = (unsigned)strtoul(flags, &end, 16);
		bool piece = bits == (NC_RESPONSE_PIECE | NC_RESPONSE_MORE);
		struct NC_range range = piece ? number_unit(1) : (struct NC_range){0};

		if (*end == 'z')
			range.length = 0;
		push_raw(bits & ~(NC_RESPONSE_KEEP | NC_RESPONSE_MORE) ? 0 : 200, bits, &range,
			 piece && *end != 'n');
		end += *end == 'n' || *end == 'z';
		flags = *end ? end + 1 : end;
	}
}

void replace_me(void)
{
	if (NC_worker_replace(worker) < 0 || NC_worker_replace(worker) < 0)
		die("NC_worker_replace");
	respond(204, 0, NULL, 0, 0);
}

void say_interim(void)
{
	const struct NC_response hint =
		NC_RESPONSE_INIT(.status = 103, .headers = "A: b\r\n", .headers_length = 6);

	if (NC_worker_interim(worker, &request, &hint) < 0 ||
	    NC_worker_interim(worker, &request, &hint) < 0)
		die("NC_worker_interim");
	respond(204, 0, NULL, 0, 0);
	if (NC_worker_interim(worker, &request, &hint) == 0 || errno != EINVAL)
		die("NC_worker_interim after the end");
}

void end_with_trailers(void)
{
	respond(200, NC_RESPONSE_MORE, NULL, 0, 0);
	if (NC_worker_trailers(worker, &request, "A: b\r\n", 6, 0) < 0)
		die("NC_worker_trailers");
}

static bool send_fails(int error, const struct NC_range *ranges, unsigned count, unsigned flags)
{
	errno = 0;
	return NC_worker_send(worker, &request, ranges, count, flags) == -1 && errno == error;
}

/*
 * Checks what NC_worker_send(3) says about its errors; the number of the first
 * wrong statement ends the stream.
 */
void stream_errors(void)
{
	struct NC_range good = number_unit(1), bad[NC_RESPONSE_RANGES_MAX + 1];
	struct NC_range none = {.id = good.id};
	struct NC_response response = NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE);
	const unsigned more = NC_RESPONSE_MORE;
	struct NC_request wrong = request;
	int lie = 0;

	for (unsigned i = 0; i <= NC_RESPONSE_RANGES_MAX; i++)
		bad[i] = good;
	wrong.tag++;
	if (!send_fails(EINVAL, &good, 1, more))
		lie = 1;
	if (NC_worker_respond(worker, &wrong, &response) != -1 || errno != EINVAL)
		lie = 2;
	if (NC_worker_respond(worker, &request, &response) < 0)
		die("NC_worker_respond");
	if (NC_worker_respond(worker, &request, &response) != -1 || errno != EINVAL)
		lie = 3;
	response.flags = 0;
	if (NC_worker_respond(worker, &request, &response) != -1 || errno != EINVAL)
		lie = 4;
	if (!send_fails(EINVAL, NULL, 0, more) || !send_fails(EINVAL, NULL, 1, more) ||
	    !send_fails(EINVAL, &good, 1, NC_RESPONSE_PIECE) ||
	    !send_fails(EINVAL, &none, 1, more) ||
	    !send_fails(EINVAL, bad, NC_RESPONSE_RANGES_MAX + 1, more))
		lie = 5;
	bad[1].length = 3;
	if (!send_fails(ERANGE, bad, 2, more))
		lie = 6;
	bad[1].id = 1;
	if (!send_fails(EACCES, bad, 2, more))
		lie = 7;
	NC_destroy(NULL, bad[1].id = number_unit(2).id);
	if (!send_fails(ENOENT, bad, 2, more))
		lie = 8;
	if (NC_worker_send(NULL, &request, &good, 1, 0) != -1 || errno != EINVAL ||
	    NC_worker_abort(worker, NULL) != -1 || errno != EINVAL ||
	    NC_worker_gone(NULL, &request) != -1 || errno != EINVAL)
		lie = 9;
	wrong.channel = 64;
	if (NC_worker_gone(worker, &wrong) != -1 || errno != EINVAL ||
	    NC_worker_gone(worker, &request) != 0)
		lie = 10;
	bad[0] = number_unit((unsigned)lie);
	if (NC_worker_send(worker, &request, bad, 1, 0) < 0)
		die("NC_worker_send");
}
