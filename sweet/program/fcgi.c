/* SPDX-License-Identifier: MIT */
/*
 * fcgi.c - writes and reads FastCGI records; see fcgi.h.
 *
 * The reader is a state machine without a buffer for content: the caller owns data
 * and state, and content stays where it was received, so that it can be sent from
 * there.  No allocation: any thread may call it.
 *
 * An application that answers another request than the current one, as an earlier one of the
 * connection, or continues
 * after the end of a stream, is out of step: the reader reports a fault.
 */
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "program/fcgi.h"

#define VERSION 1
#define RESPONDER 1
#define KEEP_CONNECTION 1
#define SHORT_MAX 127 /* lengths up to this take one byte, others four */

enum state {
	HEADER,
	CONTENT,
	PADDING,
	OVER,
};

enum fault {
	BAD_VERSION = -1,
	BAD_TYPE = -2,
	BAD_ID = -3,
	BAD_LENGTH = -4,
	BAD_ORDER = -5,
	BAD_STATUS = -6,
};

/* --- writing ------------------------------------------------------------------ */

void fcgi_header(char out[FCGI_HEADER_SIZE], enum fcgi_type type, unsigned id, size_t length)
{
	assert(length <= FCGI_CONTENT_MAX);
	out[0] = VERSION;
	out[1] = (char)type;
	out[2] = (char)(id >> 8);
	out[3] = (char)id;
	out[4] = (char)(length >> 8);
	out[5] = (char)length;
	out[6] = 0;
	out[7] = 0;
}

void fcgi_begin(char out[FCGI_BEGIN_SIZE], bool keep_connection)
{
	fcgi_header(out, FCGI_BEGIN_REQUEST, FCGI_ID_FIRST, 8);
	memset(out + FCGI_HEADER_SIZE, 0, 8);
	out[FCGI_HEADER_SIZE + 1] = RESPONDER;
	out[FCGI_HEADER_SIZE + 2] = keep_connection ? KEEP_CONNECTION : 0;
}

static unsigned pair_at(const char *at)
{
	return (unsigned)(unsigned char)at[0] << 8 | (unsigned char)at[1];
}

void fcgi_set_id(char *records, size_t length, unsigned id)
{
	size_t at = 0;

	while (at < length) {
		records[at + 2] = (char)(id >> 8);
		records[at + 3] = (char)id;
		at += FCGI_HEADER_SIZE + pair_at(records + at + 4);
	}
}

unsigned fcgi_id(const char record[FCGI_HEADER_SIZE])
{
	return pair_at(record + 2);
}

static size_t length_size(size_t length)
{
	return length <= SHORT_MAX ? 1 : 4;
}

static char *put_length(char *at, size_t length)
{
	if (length > SHORT_MAX) {
		*at++ = (char)(length >> 24 | 0x80);
		*at++ = (char)(length >> 16);
		*at++ = (char)(length >> 8);
	}
	*at++ = (char)length;
	return at;
}

static char *put_bytes(char *at, struct slice bytes)
{
	if (bytes.length)
		memcpy(at, bytes.at, bytes.length);
	return at + bytes.length;
}

/*
 * Writes pairs of block's strings to out, and removes them from block.  Returns the
 * bytes written.
 */
static size_t put_pairs(struct slice *block, char *out, size_t room)
{
	char *at = out;

	if (room > FCGI_CONTENT_MAX)
		room = FCGI_CONTENT_MAX;
	while (block->length) {
		size_t length = strnlen(block->at, block->length);
		const char *equals = memchr(block->at, '=', length);
		struct slice name = {block->at, equals ? (size_t)(equals - block->at) : length};
		struct slice value = {"", 0};
		size_t size;

		if (equals)
			value = (struct slice){equals + 1, length - name.length - 1};
		size = length_size(name.length) + name.length + length_size(value.length) +
		       value.length;
		if (size > room - (size_t)(at - out))
			break;
		at = put_length(at, name.length);
		at = put_length(at, value.length);
		at = put_bytes(at, name);
		at = put_bytes(at, value);
		length += length < block->length; /* its NUL */
		*block = (struct slice){block->at + length, block->length - length};
	}
	return (size_t)(at - out);
}

ssize_t fcgi_params(struct slice *block, char *out, size_t out_size)
{
	bool last = block->length == 0;
	size_t length;

	if (out_size < FCGI_HEADER_SIZE)
		return -1;
	length = put_pairs(block, out + FCGI_HEADER_SIZE, out_size - FCGI_HEADER_SIZE);
	if (!length && !last)
		return -1;
	fcgi_header(out, FCGI_PARAMS, FCGI_ID_FIRST, length);
	return (ssize_t)(FCGI_HEADER_SIZE + length);
}

/* --- reading ------------------------------------------------------------------ */

void fcgi_init(struct fcgi *fcgi, unsigned id)
{
	assert(id && id <= FCGI_ID_MAX);
	*fcgi = (struct fcgi){.state = HEADER, .id = (uint16_t)id};
}

bool fcgi_is_over(const struct fcgi *fcgi)
{
	return fcgi->state == OVER;
}

const char *fcgi_fault(ssize_t fault)
{
	switch (fault) {
	case BAD_VERSION:
		return "data that is not FastCGI 1.0";
	case BAD_TYPE:
		return "a record of a type that no application sends";
	case BAD_ID:
		return "a record with the id of another request";
	case BAD_LENGTH:
		return "a record whose length does not match its type";
	case BAD_ORDER:
		return "content after the end of the response";
	default:
		return "an end of the request with an unknown protocol status";
	}
}

/* Parses a complete header; returns 0 or the fault. */
static int take_header(struct fcgi *fcgi)
{
	unsigned type = (unsigned char)fcgi->bytes[1];
	unsigned id = pair_at(fcgi->bytes + 2), length = pair_at(fcgi->bytes + 4);
	bool management = type >= FCGI_GET_VALUES;

	if (fcgi->bytes[0] != VERSION)
		return BAD_VERSION;
	if (type != FCGI_END_REQUEST && type != FCGI_STDOUT && type != FCGI_STDERR &&
	    type != FCGI_GET_VALUES_RESULT && type != FCGI_UNKNOWN_TYPE)
		return BAD_TYPE;
	if (id != (management ? 0 : fcgi->id))
		return BAD_ID;
	if ((type == FCGI_END_REQUEST || type == FCGI_UNKNOWN_TYPE) && length != 8)
		return BAD_LENGTH;
	if (type == FCGI_STDOUT) {
		if (fcgi->out_over && length)
			return BAD_ORDER;
		fcgi->out_over = length == 0;
	}
	fcgi->type = (uint8_t)type;
	fcgi->left = (uint16_t)length;
	fcgi->padding = (uint8_t)fcgi->bytes[6];
	fcgi->have = 0;
	fcgi->state = CONTENT;
	return 0;
}

/* Collects bytes of a header or of an end record; returns how many it took. */
static size_t gather(struct fcgi *fcgi, const char *data, size_t length)
{
	size_t missing = sizeof(fcgi->bytes) - fcgi->have;

	if (length > missing)
		length = missing;
	memcpy(fcgi->bytes + fcgi->have, data, length);
	fcgi->have = (uint8_t)(fcgi->have + length);
	return length;
}

static size_t take_content(struct fcgi *fcgi, const char *data, size_t length,
			   struct fcgi_found *found)
{
	if (length > fcgi->left)
		length = fcgi->left;
	fcgi->left = (uint16_t)(fcgi->left - length);
	if (fcgi->type == FCGI_END_REQUEST) {
		(void)gather(fcgi, data, length);
		return length;
	}
	if (fcgi->type == FCGI_UNKNOWN_TYPE)
		return length;
	found->event = fcgi->type == FCGI_STDOUT   ? FCGI_OUT
		       : fcgi->type == FCGI_STDERR ? FCGI_ERR
						   : FCGI_VALUES;
	found->run = (struct slice){data, length};
	return length;
}

/* Parses a complete end record, after its padding. */
static int take_end(struct fcgi *fcgi, struct fcgi_found *found)
{
	unsigned status = (unsigned char)fcgi->bytes[4];

	if (status > FCGI_UNKNOWN_ROLE)
		return BAD_STATUS;
	found->event = FCGI_END;
	found->exit_status = (uint32_t)pair_at(fcgi->bytes) << 16 | pair_at(fcgi->bytes + 2);
	found->status = (enum fcgi_status)status;
	fcgi->state = OVER;
	return 0;
}

/* Leaves states that need no further byte; returns 0 or the fault. */
static int step(struct fcgi *fcgi, struct fcgi_found *found)
{
	if (fcgi->state == HEADER && fcgi->have == FCGI_HEADER_SIZE) {
		int fault = take_header(fcgi);

		if (fault)
			return fault;
	}
	if (fcgi->state == CONTENT && !fcgi->left)
		fcgi->state = PADDING;
	if (fcgi->state == PADDING && !fcgi->padding) {
		if (fcgi->type == FCGI_END_REQUEST)
			return take_end(fcgi, found);
		fcgi->have = 0;
		fcgi->state = HEADER;
	}
	return 0;
}

ssize_t fcgi_read(struct fcgi *fcgi, const char *data, size_t length, struct fcgi_found *found)
{
	size_t at = 0;

	*found = (struct fcgi_found){.event = FCGI_NOTHING};
	while (at < length && fcgi->state != OVER && found->event == FCGI_NOTHING) {
		size_t rest = length - at;
		int fault;

		if (fcgi->state == HEADER) {
			at += gather(fcgi, data + at, rest);
		} else if (fcgi->state == CONTENT) {
			at += take_content(fcgi, data + at, rest, found);
		} else {
			size_t skipped = rest < fcgi->padding ? rest : fcgi->padding;

			fcgi->padding = (uint8_t)(fcgi->padding - skipped);
			at += skipped;
		}
		fault = step(fcgi, found);
		if (fault)
			return fault;
	}
	return (ssize_t)at;
}
