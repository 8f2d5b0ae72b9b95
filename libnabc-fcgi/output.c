/* SPDX-License-Identifier: MIT */
/*
 * output.c - see output.h.
 *
 * A page of the usual length fits one unit: the first one is as large as recent pages were.  When a
 * unit is full, the response begins, and continues in pieces.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "head.h"
#include "input.h"
#include "layout.h"
#include "server-link.h"
#include "output.h"
#include "unit.h"

#define FIRST_MOST (((size_t)1 << 20) + FCGI_FRAGMENT) /* a page of 1 MiB with its head */
#define PIECE_MOST ((size_t)256 << 10)
#define HEAD_MOST ((size_t)64 << 10)
#define COPY_MOST ((size_t)64 << 10)

#define ROOM_WAIT_MS 2u
#define ROOM_WAITS 15000u

/* Bytes of recent pages with their heads. */
static _Atomic(size_t) usual = FCGI_FRAGMENT;

static struct fcgi_output *output_of(const struct fcgi_stream *stream)
{
	return stream->data;
}

static int fail(struct fcgi_stream *stream, int error)
{
	stream->error = error;
	stream->is_closed = 1;
	stream->read_next = stream->write_next = stream->stop;
	return -1;
}

static size_t used_in(const struct fcgi_stream *stream)
{
	const struct fcgi_unit *unit = output_of(stream)->unit;

	return unit ? (size_t)(stream->write_next - unit->base) : 0;
}

static void show(struct fcgi_stream *stream, unsigned char *from, unsigned char *to)
{
	stream->write_next = from;
	stream->stop = stream->read_next = to;
}

/* --- memory ------------------------------------------------------------------------------ */

/* The server returns memory when clients have read their pages. */
static struct fcgi_unit *take_waiting(const struct fcgi_output *output, size_t size)
{
	struct timespec pause = {.tv_nsec = ROOM_WAIT_MS * 1000000};
	struct fcgi_unit *unit = fcgi_unit_take(size);

	if (!unit && (errno == ENOMEM || errno == EFBIG))
		unit = fcgi_unit_take(FCGI_FRAGMENT);
	for (unsigned i = 0; !unit && errno == ENOMEM && i < ROOM_WAITS; i++) {
		int gone = fcgi_link_gone(output->request);

		if (gone) {
			errno = gone > 0 ? ECANCELED : errno;
			return NULL;
		}
		nanosleep(&pause, NULL);
		unit = fcgi_unit_take(FCGI_FRAGMENT);
	}
	return unit;
}

/* Begins a unit.  Returns 0 or -1. */
static int begin_unit(struct fcgi_stream *stream, size_t size)
{
	struct fcgi_output *output = output_of(stream);
	unsigned char *end;

	output->unit = take_waiting(output, size);
	end = output->unit ? fcgi_unit_window(output->unit, 0) : NULL;
	if (!end)
		return fail(stream, errno);
	show(stream, output->unit->base, end);
	return 0;
}

static int make_room(struct fcgi_stream *stream);

/* The unit is full before the end of the head, which is read in one piece. */
static int enlarge(struct fcgi_stream *stream)
{
	struct fcgi_output *output = output_of(stream);
	struct fcgi_unit *small = output->unit;
	size_t used = used_in(stream);
	int result;

	if (used >= HEAD_MOST)
		return fail(stream, EMSGSIZE);
	result = begin_unit(stream, 2 * used);
	if (!result &&
	    (output->unit->size <= used || fcgi_unit_write(output->unit, small->base, used, 0)))
		result = fail(stream, ENOMEM);
	fcgi_unit_put(small);
	if (!result)
		show(stream, output->unit->base + used, output->unit->base + used);
	return result ? -1 : make_room(stream);
}

/* The length of the first unit follows that of the pages: up at once, down slowly. */
static void note_length(uint64_t length)
{
	size_t before = atomic_load_explicit(&usual, memory_order_relaxed), now;

	now = length > FIRST_MOST ? FIRST_MOST : (size_t)length;
	if (now < before)
		now = before - (before - now) / 16;
	atomic_store_explicit(&usual, now, memory_order_relaxed);
}

/* --- the response ------------------------------------------------------------------------ */

/* Returns whether the head is complete. */
static bool find_head(struct fcgi_stream *stream)
{
	struct fcgi_output *output = output_of(stream);
	size_t used = used_in(stream);

	if (output->head || output->is_begun)
		return true;
	if (output->unit)
		output->head = fcgi_head_end(output->unit->base, used, output->searched);
	output->searched = used;
	return output->head != 0;
}

/*
 * Takes what the unit has for the body out of the stream, as a range.  id 0: it has no byte, or
 * errno says why it cannot be inserted, which is returned as -1.
 */
static int take_body(struct fcgi_stream *stream, struct NC_range *range)
{
	struct fcgi_output *output = output_of(stream);
	struct fcgi_unit *unit = output->unit;
	size_t used = used_in(stream), head = output->head;

	*range = (struct NC_range){.length = used - head};
	output->unit = NULL;
	output->head = 0;
	output->passed += used;
	show(stream, NULL, NULL);
	if (range->length == 0) {
		fcgi_unit_put(unit);
		return 0;
	}
	if (range->length <= COPY_MOST && range->length <= unit->size / 4) {
		range->id = fcgi_unit_insert_copy(unit->base + head, range->length);
		if (range->id) {
			fcgi_unit_put(unit);
			return 0;
		}
	}
	range->offset = head;
	range->id = fcgi_unit_insert(unit, used);
	if (!range->id)
		fcgi_unit_put(unit);
	return range->id ? 0 : -1;
}

/* An empty page of the server says more than a body that the program has not completed. */
static int refuse(struct fcgi_stream *stream, const char *wrong, int error)
{
	struct fcgi_output *output = output_of(stream);

	if (wrong)
		fprintf(stderr, "libnabc-fcgi: the head of a response: %s\n", wrong);
	output->is_over = true;
	(void)fcgi_link_abort(output->request);
	return fail(stream, error);
}

static int pass(struct fcgi_stream *stream, const struct NC_range *body, bool more)
{
	struct fcgi_output *output = output_of(stream);
	unsigned flags = more ? NC_RESPONSE_MORE : 0;
	int error;

	if (fcgi_link_send(output->request, body, body->length > 0, flags) == 0) {
		output->is_over = !more;
		return 0;
	}
	error = errno;
	if (body->id)
		(void)NC_destroy(NULL, body->id);
	return refuse(stream, NULL, error == ECANCELED ? EPIPE : error);
}

/* Whether less comes than the head announces, to a client that expects a body. */
static bool is_short(const struct fcgi_output *output, const struct fcgi_head *head, size_t length)
{
	const char *method = NC_request_variable(output->request, "REQUEST_METHOD");

	return head->has_length && length < head->length && head->status != 304 &&
	       !(method && strcmp(method, "HEAD") == 0);
}

/* The server compares the length in the head with what comes, if that comes in pieces. */
static bool must_split(const struct fcgi_head *head, size_t length)
{
	return head->has_length && head->length != length;
}

/* Returns 0, or the errno with which the server has not taken the head. */
static int respond(struct fcgi_stream *stream, const struct fcgi_head *head, bool more)
{
	struct fcgi_output *output = output_of(stream);
	struct NC_response response =
		NC_RESPONSE_INIT(.status = head->status, .headers = head->lines,
				 .headers_length = head->lines_size,
				 .flags = more ? NC_RESPONSE_MORE : 0);
	int error;

	if (take_body(stream, &response.body) == 0 &&
	    fcgi_link_respond(output->request, &response) == 0) {
		output->is_begun = true;
		output->is_over = !more;
		return 0;
	}
	error = errno;
	if (response.body.id)
		(void)NC_destroy(NULL, response.body.id);
	return error;
}

/* The head is read where it is: its lines are copied before the unit is inserted. */
static int begin(struct fcgi_stream *stream, bool more)
{
	struct fcgi_output *output = output_of(stream);
	size_t length = used_in(stream) - output->head;
	struct NC_range none = {0};
	struct fcgi_head head;
	const char *wrong = fcgi_head_parse(&head, output->unit->base, output->head);
	bool split;
	int error;

	if (wrong)
		return refuse(stream, wrong, EPROTO);
	if (!more && is_short(output, &head, length)) {
		free(head.lines);
		return refuse(stream, "the body is shorter than its Content-Length", EPROTO);
	}
	if (more)
		fcgi_input_save(output->in);
	split = !more && must_split(&head, length);
	error = respond(stream, &head, more || split);
	free(head.lines);
	if (error)
		return refuse(stream, error == EMSGSIZE ? "it is too long" : NULL, error);
	return split ? pass(stream, &none, false) : 0;
}

static int continue_with(struct fcgi_stream *stream, bool more)
{
	struct fcgi_output *output = output_of(stream);
	struct NC_range body;

	if (!output->is_begun)
		return begin(stream, more);
	if (more && used_in(stream) == 0)
		return 0;
	return take_body(stream, &body) ? refuse(stream, NULL, errno) : pass(stream, &body, more);
}

/* --- the stream -------------------------------------------------------------------------- */

/* There is no room left. */
static int make_room(struct fcgi_stream *stream)
{
	struct fcgi_output *output = output_of(stream);
	size_t used = used_in(stream), size;
	unsigned char *end;

	if (stream->is_closed)
		return -1;
	if (output->unit && used < output->unit->size) {
		end = fcgi_unit_window(output->unit, used);
		show(stream, stream->write_next, end);
		return end ? 0 : fail(stream, errno);
	}
	if (output->unit && !find_head(stream))
		return enlarge(stream);
	size = output->unit ? 2 * output->unit->size : atomic_load(&usual);
	if (output->unit && continue_with(stream, true))
		return -1;
	return begin_unit(stream, output->passed && size > PIECE_MOST ? PIECE_MOST : size);
}

static void output_empty(struct fcgi_stream *stream, int close)
{
	if (close)
		(void)fcgi_output_close(stream);
	else if (stream->write_next == stream->stop)
		(void)make_room(stream);
	else
		(void)fcgi_output_flush(stream);
}

void fcgi_output_open(struct fcgi_stream *stream, struct fcgi_output *output,
		      const struct NC_request *request, struct fcgi_stream *in)
{
	*output = (struct fcgi_output){.request = request, .in = in};
	*stream = (struct fcgi_stream){.empty = output_empty, .data = output};
}

bool fcgi_output_is(const struct fcgi_stream *stream)
{
	return stream->empty == output_empty;
}

/* What does not fit the window is copied past it: these bytes of the unit need not be cleared. */
int fcgi_output_write(struct fcgi_stream *stream, const char *data, size_t length)
{
	struct fcgi_output *output = output_of(stream);

	while (length) {
		size_t used = used_in(stream), run;

		if (stream->is_closed)
			return -1;
		if (!output->unit || used == output->unit->size) {
			if (make_room(stream))
				return -1;
			continue;
		}
		run = output->unit->size - used;
		run = run < length ? run : length;
		if (run <= (size_t)(stream->stop - stream->write_next))
			memcpy(stream->write_next, data, run);
		else if (fcgi_unit_write(output->unit, data, run, used))
			return fail(stream, errno);
		stream->write_next += run;
		if (stream->write_next > stream->stop)
			show(stream, stream->write_next, stream->write_next);
		data += run;
		length -= run;
	}
	return 0;
}

int fcgi_output_flush(struct fcgi_stream *stream)
{
	if (stream->is_closed)
		return -1;
	return find_head(stream) ? continue_with(stream, true) : 0;
}

int fcgi_output_close(struct fcgi_stream *stream)
{
	struct fcgi_output *output = output_of(stream);
	bool had_failed = stream->is_closed;
	int result;

	stream->is_closed = 1;
	if (output->is_over)
		return had_failed ? -1 : 0;
	if (had_failed || !find_head(stream))
		return refuse(stream,
			      had_failed     ? NULL
			      : output->unit ? "it has no end"
					     : "there is none",
			      EPROTO);
	result = continue_with(stream, false);
	if (!result)
		note_length(output->passed);
	return result;
}

void fcgi_output_abort(struct fcgi_stream *stream)
{
	struct fcgi_output *output = output_of(stream);

	if (!output->is_over)
		(void)refuse(stream, NULL, ECANCELED);
	fcgi_unit_put(output->unit);
	output->unit = NULL;
}

void fcgi_output_forget(struct fcgi_stream *stream)
{
	output_of(stream)->unit = NULL;
	(void)fail(stream, EACCES);
	show(stream, NULL, NULL);
}
