/* SPDX-License-Identifier: MIT */
/*
 * head.c - see head.h.
 *
 * The server checks the lines that it gets.  Here is what it does not see: the status, and what
 * the lines of the program end with.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "head.h"

struct line {
	const char *at;
	size_t length; /* without CR and LF */
};

/* Bytes of the line end at data: 0 if there is none. */
static size_t empty_line(const unsigned char *data, size_t length)
{
	if (length > 0 && data[0] == '\n')
		return 1;
	return length > 1 && data[0] == '\r' && data[1] == '\n' ? 2 : 0;
}

size_t fcgi_head_end(const unsigned char *data, size_t length, size_t seen)
{
	size_t at = empty_line(data, length);

	if (at)
		return at;
	/* The bytes seen may end with "\n\r". */
	at = seen > 2 ? seen - 2 : 0;
	while (at < length) {
		const unsigned char *newline = memchr(data + at, '\n', length - at);
		size_t empty;

		if (!newline)
			return 0;
		at = (size_t)(newline - data) + 1;
		empty = empty_line(data + at, length - at);
		if (empty)
			return at + empty;
	}
	return 0;
}

static struct line next_line(const char **at, const char *end)
{
	const char *newline = memchr(*at, '\n', (size_t)(end - *at));
	struct line line = {*at, (size_t)(newline - *at)};

	*at = newline + 1;
	if (line.length && line.at[line.length - 1] == '\r')
		line.length--;
	return line;
}

static bool is_named(const struct line *line, const char *name)
{
	size_t length = strlen(name);

	return line->length > length && line->at[length] == ':' &&
	       strncasecmp(line->at, name, length) == 0;
}

static struct line value_of(const struct line *line)
{
	const char *colon = memchr(line->at, ':', line->length);
	const char *end = line->at + line->length, *at = colon + 1;

	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (struct line){at, (size_t)(end - at)};
}

/* Reads "200" or "200 OK".  Returns the status, or -1. */
static int status_in(struct line value)
{
	int status = 0;

	if (value.length < 3 || (value.length > 3 && value.at[3] != ' ' && value.at[3] != '\t'))
		return -1;
	for (unsigned i = 0; i < 3; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return -1;
		status = status * 10 + (value.at[i] - '0');
	}
	return status < 200 || status > 599 ? -1 : status;
}

static bool read_number(struct line value, uint64_t *number)
{
	*number = 0;
	for (size_t i = 0; i < value.length; i++) {
		if (value.at[i] < '0' || value.at[i] > '9' || *number > INT64_MAX / 10 - 1)
			return false;
		*number = *number * 10 + (uint64_t)(value.at[i] - '0');
	}
	return value.length > 0;
}

static const char *note_status(struct fcgi_head *head, struct line value)
{
	if (head->status)
		return "two Status lines";
	head->status = status_in(value);
	return head->status < 0 ? "an invalid Status" : NULL;
}

static const char *note_length(struct fcgi_head *head, struct line value)
{
	if (head->has_length)
		return "two Content-Length lines";
	head->has_length = true;
	return read_number(value, &head->length) ? NULL : "an invalid Content-Length";
}

static void keep(struct fcgi_head *head, const struct line *line)
{
	memcpy(head->lines + head->lines_size, line->at, line->length);
	memcpy(head->lines + head->lines_size + line->length, "\r\n", 2);
	head->lines_size += line->length + 2;
}

/* Some programs begin as HTTP does: "HTTP/1.1 200 OK" (RFC 3875, section 5). */
static bool is_status_line(const struct line *line)
{
	return line->length > 8 && memcmp(line->at, "HTTP/1.", 7) == 0 && line->at[8] == ' ';
}

static const char *note(struct fcgi_head *head, const struct line *line, bool *redirects)
{
	const char *colon = memchr(line->at, ':', line->length);

	if (!colon || colon == line->at || line->at[0] == ' ' || line->at[0] == '\t')
		return "a malformed header line";
	if (is_named(line, "Status"))
		return note_status(head, value_of(line));
	keep(head, line);
	if (is_named(line, "Content-Length"))
		return note_length(head, value_of(line));
	*redirects |= is_named(line, "Location");
	return NULL;
}

static const char *read_lines(struct fcgi_head *head, const char *at, const char *end)
{
	struct line line = next_line(&at, end);
	const char *wrong = NULL;
	bool redirects = false;

	if (line.length == 0)
		return "no header line";
	if (is_status_line(&line)) {
		wrong = note_status(head, (struct line){line.at + 9, line.length - 9});
		line = next_line(&at, end);
	}
	for (; !wrong && line.length; line = next_line(&at, end))
		wrong = note(head, &line, &redirects);
	if (!wrong && !head->status)
		head->status = redirects ? 302 : 200;
	return wrong;
}

const char *fcgi_head_parse(struct fcgi_head *head, const unsigned char *data, size_t length)
{
	const char *at = (const char *)data, *wrong;

	/* A line has a byte or more, and CR and LF instead of LF. */
	*head = (struct fcgi_head){.lines = malloc(2 * length)};
	if (!head->lines)
		return "no memory for it";
	wrong = read_lines(head, at, at + length);
	if (wrong) {
		free(head->lines);
		head->lines = NULL;
	}
	return wrong;
}
