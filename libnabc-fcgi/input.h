/* SPDX-License-Identifier: MIT */
/*
 * input.h - standard input of a request: its body, read where the server has put it.
 */
#ifndef NABC_FCGI_INPUT_H
#define NABC_FCGI_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <nabc.h>

struct NC_request;
struct fcgi_stream;

struct fcgi_input {
	struct NC_request *request;
	struct NC_range left; /* of the piece: what the stream has not shown */
	struct NC_hold hold;
	bool is_held;
	unsigned char *copy; /* of bytes that the program has changed; or NULL */
	void *saved;	     /* the rest of the body, in a file; or NULL */
	size_t saved_length;
};

void fcgi_input_open(struct fcgi_stream *stream, struct fcgi_input *input,
		     struct NC_request *request);

/* Releases the memory; the rest of the body is not read. */
void fcgi_input_close(struct fcgi_stream *stream);

/*
 * Takes the rest of the body into a file: the server gives no more of it when the response has
 * begun.  If that fails, the stream ends with an error.
 */
void fcgi_input_save(struct fcgi_stream *stream);

/* Puts back a byte that differs from the one that was read.  Returns 0, or -1 without memory. */
int fcgi_input_replace(struct fcgi_stream *stream, unsigned char byte);

/* Takes the body's memory away, which a child of the process does not have. */
void fcgi_input_forget(struct fcgi_stream *stream);

#endif
