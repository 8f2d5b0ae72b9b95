/* SPDX-License-Identifier: MIT */
/*
 * layout.h - the structures that programs share with libfcgi, with its layout and names of our
 * own: programs read and write their fields.
 */
#ifndef NABC_FCGI_LAYOUT_H
#define NABC_FCGI_LAYOUT_H

#include <assert.h>
#include <stdio.h>

/* FCGX_Stream.  A reader has bytes from read_next to stop; a writer has room from write_next. */
struct fcgi_stream {
	unsigned char *read_next;  /* of a writer: stop */
	unsigned char *write_next; /* of a reader: stop */
	unsigned char *stop;
	unsigned char *stop_unget; /* a reader puts no byte back before this one */
	int is_reader;
	int is_closed; /* a reader: at its end */
	int was_closed;
	int error; /* errno, or one of FCGI_* below */
	void (*fill)(struct fcgi_stream *stream);
	void (*empty)(struct fcgi_stream *stream, int close);
	void *data;
};

/* FCGX_Request. */
struct fcgi_request {
	int id;
	int role;
	struct fcgi_stream *in, *out, *err;
	char **envp;
	void *exchange; /* libfcgi's parameters, which programs do not use */
	int connection;
	int is_begun;
	int keeps_connection;
	int exit_status;
	int writers;
	int flags;
	int listener;
	int detached;
};

/* FCGI_FILE: one of the two is set. */
struct fcgi_file {
	FILE *file;
	struct fcgi_stream *stream;
};

static_assert(sizeof(struct fcgi_stream) == 72, "as in libfcgi");
static_assert(sizeof(struct fcgi_request) == 80, "as in libfcgi");
static_assert(sizeof(struct fcgi_file) == 16, "as in libfcgi");

#define FCGI_ROLE_RESPONDER 1
#define FCGI_CALL_SEQUENCE (-5) /* FCGX_CALL_SEQ_ERROR */

#endif
