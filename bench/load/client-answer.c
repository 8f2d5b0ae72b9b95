/* SPDX-License-Identifier: MIT */
/*
 * client-answer.c - HTTP responses in pieces; see client-answer.h.  A line that is
 * complete in the given bytes is parsed in place; only a divided one is copied, and of
 * that no more than the relevant fields need.
 */
#include <string.h>
#include <strings.h>

#include "client-answer.h"

void answer_begin(struct answer *answer)
{
	answer->state = ANSWER_STATUS;
	answer->status = 0;
	answer->body = answer->left = answer->declared = 0;
	answer->head = answer->kept = 0;
	answer->begun = answer->minor_one = answer->with_length = false;
	answer->chunked = answer->close = answer->keep = false;
}

/* --- lines --------------------------------------------------------------- */

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

static enum answer_state bad(struct answer *answer)
{
	return answer->state = ANSWER_BAD;
}

/* "HTTP/1.1 200 words" */
static void read_status(struct answer *answer, const char *line, size_t length)
{
	if (length < 12 || memcmp(line, "HTTP/1.", 7) || (line[7] != '0' && line[7] != '1') ||
	    line[8] != ' ' || line[9] < '1' || line[9] > '5' || !digit(line[10]) ||
	    !digit(line[11]) || (length > 12 && line[12] != ' ')) {
		bad(answer);
		return;
	}
	answer->minor_one = line[7] == '1';
	answer->status = (unsigned)(line[9] - '0') * 100 + (unsigned)(line[10] - '0') * 10 +
			 (unsigned)(line[11] - '0');
	answer->state = ANSWER_FIELDS;
}

/* The value of a field if it has that name (with its colon), without blanks around it. */
static const char *value_of(const char *line, size_t *length, const char *name)
{
	size_t skip = strlen(name);

	if (*length < skip || strncasecmp(line, name, skip))
		return NULL;
	while (skip < *length && (line[skip] == ' ' || line[skip] == '\t'))
		skip++;
	*length -= skip;
	while (*length && (line[skip + *length - 1] == ' ' || line[skip + *length - 1] == '\t'))
		--*length;
	return line + skip;
}

static void read_length(struct answer *answer, const char *value, size_t length)
{
	uint64_t number = 0;

	if (!length || length > 18) {
		bad(answer);
		return;
	}
	for (size_t i = 0; i < length; i++) {
		if (!digit(value[i])) {
			bad(answer);
			return;
		}
		number = number * 10 + (unsigned)(value[i] - '0');
	}
	if (answer->with_length && number != answer->declared)
		bad(answer);
	answer->with_length = true;
	answer->declared = number;
}

static bool is(const char *value, size_t length, const char *word)
{
	return length == strlen(word) && !strncasecmp(value, word, length);
}

static void read_field(struct answer *answer, const char *line, size_t length)
{
	const char *value;
	size_t rest = length;

	switch (line[0] | 0x20) {
	case 'c':
		if ((value = value_of(line, &rest, "content-length:"))) {
			/* The end of such a long line may be missing. */
			if (length >= ANSWER_LINE_MAX)
				bad(answer);
			else
				read_length(answer, value, rest);
		} else if ((value = value_of(line, &rest, "connection:"))) {
			answer->close |= is(value, rest, "close");
			answer->keep |= is(value, rest, "keep-alive");
		}
		break;
	case 't':
		if ((value = value_of(line, &rest, "transfer-encoding:"))) {
			if (!is(value, rest, "chunked"))
				bad(answer); /* no other was offered */
			answer->chunked = true;
		}
		break;
	}
}

static void end_head(struct answer *answer)
{
	unsigned status = answer->status;

	if (status < 200) {
		/* Precedes the response; 101 was not requested. */
		if (status == 101)
			bad(answer);
		else
			answer->state = ANSWER_STATUS;
		answer->with_length = answer->chunked = false;
	} else if (status == 204 || status == 304) {
		answer->state = ANSWER_DONE;
	} else if (answer->chunked) {
		if (answer->with_length)
			bad(answer);
		else
			answer->state = ANSWER_SIZE;
	} else if (answer->with_length) {
		answer->left = answer->declared;
		answer->state = answer->left ? ANSWER_LENGTH : ANSWER_DONE;
	} else {
		answer->close = true;
		answer->state = ANSWER_CLOSE;
	}
}

/* Hexadecimal, maybe followed by an extension. */
static void read_size(struct answer *answer, const char *line, size_t length)
{
	uint64_t size = 0;
	size_t at;

	for (at = 0; at < length && at < 15; at++) {
		char c = line[at];

		if (digit(c))
			size = size * 16 + (unsigned)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			size = size * 16 + (unsigned)((c | 0x20) - 'a') + 10;
		else
			break;
	}
	if (!at || (at < length && line[at] != ';' && line[at] != ' ' && line[at] != '\t')) {
		bad(answer);
		return;
	}
	answer->left = size;
	answer->head = 0;
	answer->state = size ? ANSWER_CHUNK : ANSWER_TRAILER;
}

static void read_line(struct answer *answer, const char *line, size_t length)
{
	switch (answer->state) {
	case ANSWER_STATUS:
		read_status(answer, line, length);
		break;
	case ANSWER_FIELDS:
		if (length)
			read_field(answer, line, length);
		else
			end_head(answer);
		break;
	case ANSWER_SIZE:
		read_size(answer, line, length);
		break;
	case ANSWER_BREAK:
		answer->state = length ? ANSWER_BAD : ANSWER_SIZE;
		break;
	case ANSWER_TRAILER:
		if (!length)
			answer->state = ANSWER_DONE;
		break;
	default:
		bad(answer);
	}
}

/* Takes a line or a part of one; returns how many bytes. */
static size_t take_line(struct answer *answer, const char *bytes, size_t length)
{
	const char *end = memchr(bytes, '\n', length);
	size_t part = end ? (size_t)(end - bytes) : length;
	const char *line = bytes;
	size_t size = part;

	if (part + 1 > ANSWER_HEAD_MAX - answer->head) {
		bad(answer);
		return 0;
	}
	answer->head += (unsigned)part + (end != NULL);
	if (!end || answer->kept) {
		size_t room = ANSWER_LINE_MAX - answer->kept, copy = part < room ? part : room;

		memcpy(answer->line + answer->kept, bytes, copy);
		answer->kept += (unsigned)copy;
		if (!end)
			return part;
		line = answer->line;
		size = answer->kept;
		answer->kept = 0;
	}
	if (size && line[size - 1] == '\r')
		size--;
	read_line(answer, line, size);
	return part + 1;
}

/* --- the whole ----------------------------------------------------------- */

size_t answer_feed(struct answer *answer, const char *bytes, size_t length)
{
	size_t at = 0;

	if (length)
		answer->begun = true;
	while (at < length && answer->state < ANSWER_DONE) {
		uint64_t body = answer_droppable(answer);

		if (body) {
			if (body > length - at)
				body = length - at;
			answer_drop(answer, body);
			at += body;
		} else {
			at += take_line(answer, bytes + at, length - at);
		}
	}
	return at;
}

uint64_t answer_droppable(const struct answer *answer)
{
	switch (answer->state) {
	case ANSWER_LENGTH:
	case ANSWER_CHUNK:
		return answer->left;
	case ANSWER_CLOSE:
		return UINT64_MAX;
	default:
		return 0;
	}
}

void answer_drop(struct answer *answer, uint64_t length)
{
	answer->body += length;
	if (answer->state == ANSWER_CLOSE)
		return;
	answer->left -= length;
	if (!answer->left)
		answer->state = answer->state == ANSWER_LENGTH ? ANSWER_DONE : ANSWER_BREAK;
}

bool answer_end(struct answer *answer)
{
	if (answer->state == ANSWER_CLOSE)
		answer->state = ANSWER_DONE;
	return answer->state == ANSWER_DONE;
}

bool answer_keeps(const struct answer *answer)
{
	return !answer->close && (answer->minor_one || answer->keep);
}
