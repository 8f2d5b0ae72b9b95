/* SPDX-License-Identifier: MIT */
/*
 * output.h - standard output of a request: the stream's memory is that of a unit, which becomes
 * the response.
 */
#ifndef NABC_FCGI_OUTPUT_H
#define NABC_FCGI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct NC_request;
struct fcgi_stream;
struct fcgi_unit;

struct fcgi_output {
	const struct NC_request *request;
	struct fcgi_stream *in; /* of the same request */
	struct fcgi_unit *unit; /* that is being filled; NULL: none yet */
	size_t head;		/* bytes of the head in it; 0: the head is not complete */
	size_t searched;	/* bytes in which the end of the head is not */
	uint64_t passed;	/* bytes in earlier units */
	bool is_begun;		/* the server has the head */
	bool is_over;		/* the server has all */
};

void fcgi_output_open(struct fcgi_stream *stream, struct fcgi_output *output,
		      const struct NC_request *request, struct fcgi_stream *in);

/* Appends bytes.  Returns 0, or -1 with the stream's error. */
int fcgi_output_write(struct fcgi_stream *stream, const char *data, size_t length);

/* Passes on what there is, if the head is complete.  Returns the same. */
int fcgi_output_flush(struct fcgi_stream *stream);

/* Completes the response.  Returns the same. */
int fcgi_output_close(struct fcgi_stream *stream);

/* Ends a request that has no complete response: its client gets an error. */
void fcgi_output_abort(struct fcgi_stream *stream);

/* Whether it is such a stream. */
bool fcgi_output_is(const struct fcgi_stream *stream);

/* Takes the unit's memory away, which a child of the process does not have. */
void fcgi_output_forget(struct fcgi_stream *stream);

#endif
