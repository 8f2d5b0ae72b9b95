/* SPDX-License-Identifier: MIT */
/*
 * fcgi.h - the records of FastCGI 1.0, as a server writes and reads them.
 *
 * One request at a time goes over a connection, under the id FCGI_ID.
 */
#ifndef SWEET_FCGI_H
#define SWEET_FCGI_H

#include <stdint.h>
#include <sys/types.h>

#include "base/slice.h"

#define FCGI_ID 1
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

/* --- what goes to the application ------------------------------------------ */

/*
 * The header of a record of length bytes, FCGI_CONTENT_MAX at most, that
 * follow it unpadded.  Length 0 ends a stream; of FCGI_ABORT_REQUEST it is all.
 */
void fcgi_header(char out[FCGI_HEADER_SIZE], enum fcgi_type type, size_t length);

/* The whole record that begins a request to a responder. */
#define FCGI_BEGIN_SIZE (FCGI_HEADER_SIZE + 8)
void fcgi_begin(char out[FCGI_BEGIN_SIZE], bool keep_connection);

/*
 * Writes the next record of a request's variables: as many of block's
 * "NAME=value" strings, each ended by a NUL, as fit, and takes them off it; a
 * string is never spread over two records, which not every application puts
 * together again.  With no string left it writes the empty record that ends
 * them.  Returns the bytes written, or -1: the next string does not fit.
 */
ssize_t fcgi_params(struct slice *block, char *out, size_t out_size);

/*
 * Asks for the values of the names in block ("NAME", each ended by a NUL).
 * Returns the bytes written, or -1: they do not fit.
 */
ssize_t fcgi_get_values(struct slice block, char *out, size_t out_size);

/* --- what comes from it ------------------------------------------------------ */

enum fcgi_event {
	FCGI_NOTHING, /* yet */
	FCGI_OUT,     /* content of the answer */
	FCGI_ERR,     /* text for the error log */
	FCGI_VALUES,  /* a piece of the answer to fcgi_get_values() */
	FCGI_END,     /* the request is over */
};

/* Records that are on their way.  The caller's memory; the inside is fcgi.c's. */
struct fcgi {
	char bytes[FCGI_HEADER_SIZE]; /* of the header or of the end that is coming in */
	uint16_t left;		      /* bytes of content that are still to come */
	uint8_t have;		      /* of bytes */
	uint8_t padding;	      /* that is still to come */
	uint8_t type;
	uint8_t state;
	bool out_over; /* the application has ended FCGI_OUT */
};

enum fcgi_status { FCGI_COMPLETE, FCGI_CANT_MULTIPLEX, FCGI_OVERLOADED, FCGI_UNKNOWN_ROLE };

/* What fcgi_read() found. */
struct fcgi_found {
	enum fcgi_event event;
	struct slice run; /* FCGI_OUT, FCGI_ERR, FCGI_VALUES: content */
	/* FCGI_END: */
	uint32_t exit_status;	 /* what the application's program would have exited with */
	enum fcgi_status status; /* other than FCGI_COMPLETE: it did not take the request */
};

/* For the first request of a connection, or behind FCGI_END the next. */
void fcgi_init(struct fcgi *fcgi);

/*
 * Reads what it can of data[0, length), which may be cut anywhere.  Returns
 * the bytes that it is done with, at least one if there are any and the
 * request is not over; the caller comes again with the rest.  Runs are never
 * empty and point into data.  Behind FCGI_END nothing is read.  Below 0: it
 * is not FastCGI, or not of this request; fcgi_fault() has the words, and the
 * connection must be closed.
 */
ssize_t fcgi_read(struct fcgi *fcgi, const char *data, size_t length, struct fcgi_found *found);
const char *fcgi_fault(ssize_t fault);

/* The last byte of the request's answer was read. */
bool fcgi_is_over(const struct fcgi *fcgi);

/* Nothing is half read: between two records. */
bool fcgi_is_between(const struct fcgi *fcgi);

/*
 * Splits the first pair off the content of FCGI_VALUES.  False: there is none,
 * or what is left of it is malformed.
 */
bool fcgi_pair(struct slice *rest, struct slice *name, struct slice *value);

#endif
