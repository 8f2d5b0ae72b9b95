/* SPDX-License-Identifier: MIT */
/*
 * fcgi.h - the records of FastCGI 1.0, as a server writes and reads them.
 *
 * A connection carries one request at a time.  Each has an id of its own, so that records which an
 * application sends too late for one request are not taken for the response to the next.
 */
#ifndef SWEET_FCGI_H
#define SWEET_FCGI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/slice.h"

#define FCGI_ID_FIRST 1u
#define FCGI_ID_MAX 65535u
#define FCGI_HEADER_SIZE 8
#define FCGI_CONTENT_MAX 65535 /* bytes in a record */

enum fcgi_type {
	FCGI_BEGIN_REQUEST = 1,
	FCGI_ABORT_REQUEST = 2,
	FCGI_END_REQUEST = 3,
	FCGI_PARAMS = 4,
	FCGI_STDIN = 5,
	FCGI_STDOUT = 6,
	FCGI_STDERR = 7,
	FCGI_DATA = 8,
	FCGI_GET_VALUES = 9,
	FCGI_GET_VALUES_RESULT = 10,
	FCGI_UNKNOWN_TYPE = 11,
};

/* --- to the application ----------------------------------------------------- */

/*
 * Writes the header of a record of the request with that id, with length bytes of content, at most
 * FCGI_CONTENT_MAX, and no padding.  Length 0 ends a stream; an FCGI_ABORT_REQUEST
 * consists of this header only.
 */
void fcgi_header(char out[FCGI_HEADER_SIZE], enum fcgi_type type, unsigned id, size_t length);

/* Writes the complete record that begins a request to a responder; its id is FCGI_ID_FIRST. */
#define FCGI_BEGIN_SIZE (FCGI_HEADER_SIZE + 8)
void fcgi_begin(char out[FCGI_BEGIN_SIZE], bool keep_connection);

/*
 * Gives all records the id of another request; the content of the last one need not be there.
 * They were written here.
 */
void fcgi_set_id(char *records, size_t length, unsigned id);
unsigned fcgi_id(const char record[FCGI_HEADER_SIZE]);

/*
 * Writes the next record of a request's variables: as many of block's "NAME=value"
 * strings (each ended by a NUL) as fit, and removes them from block.  It never
 * splits a string, because some applications cannot join the parts.  If block is
 * empty, it writes the empty record that ends the variables.  The id is FCGI_ID_FIRST.
 * Returns the bytes written, or -1 if the next string does not fit.
 */
ssize_t fcgi_params(struct slice *block, char *out, size_t out_size);

/* --- from the application --------------------------------------------------- */

enum fcgi_event {
	FCGI_NOTHING, /* yet */
	FCGI_OUT,     /* content of the response */
	FCGI_ERR,     /* text for the error log */
	FCGI_VALUES,  /* a part of values, for which no one asked */
	FCGI_END,     /* the end of the request */
};

/* Records being received.  In the caller's memory; only fcgi.c uses the fields, but for id. */
struct fcgi {
	char bytes[FCGI_HEADER_SIZE]; /* of a header or an end record, as received so far */
	uint16_t left;		      /* missing bytes of content */
	uint16_t id;		      /* of the request */
	uint8_t have;		      /* number of bytes[] */
	uint8_t padding;	      /* missing bytes of padding */
	uint8_t type;
	uint8_t state;
	bool out_over; /* the application has ended FCGI_OUT */
};

enum fcgi_status { FCGI_COMPLETE, FCGI_CANT_MULTIPLEX, FCGI_OVERLOADED, FCGI_UNKNOWN_ROLE };

/* What fcgi_read() found. */
struct fcgi_found {
	enum fcgi_event event;
	struct slice run; /* FCGI_OUT, FCGI_ERR, FCGI_VALUES: content */
	/* For FCGI_END: */
	uint32_t exit_status;	 /* as the exit status of a CGI program */
	enum fcgi_status status; /* not FCGI_COMPLETE: the application refused the request */
};

/* The request with that id, from 1 to FCGI_ID_MAX, begins. */
void fcgi_init(struct fcgi *fcgi, unsigned id);

/*
 * Reads a part of data[0, length), which may be split anywhere.  Returns the number
 * of bytes consumed, at least one if length > 0 and the request is not over; the
 * caller calls it again with the rest.  Runs are never empty and point into data.
 * After FCGI_END it reads nothing.  A negative result is a fault: the data is not
 * FastCGI, or not of this request; fcgi_fault() returns its description, and the
 * connection must be closed.
 */
ssize_t fcgi_read(struct fcgi *fcgi, const char *data, size_t length, struct fcgi_found *found);
const char *fcgi_fault(ssize_t fault);

/* Returns true if the response was read completely. */
bool fcgi_is_over(const struct fcgi *fcgi);

#endif
