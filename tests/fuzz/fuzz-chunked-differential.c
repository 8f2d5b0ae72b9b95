/* SPDX-License-Identifier: MIT */
/*
 * fuzz-chunked-differential.c - bodies in the chunked coding as sweet/http/chunked.c
 * and http-parser decode them.  Bodies that both accept have the same content and the
 * same end; one that only http-parser accepts must be of a kind that is listed here.
 */
#include <http_parser.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/slice.h"
#include "base/syntax.h"
#include "http/chunked.h"

#include "fuzz.h"
#include "theirs.h"

#define HEAD "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

struct decoded {
	int status; /* 0: complete; 1: incomplete; negative: refused */
	size_t end, length;
	char *content;
};

static struct decoded decode(const char *data, size_t length, char *content)
{
	struct decoded decoded = {.content = content};
	struct chunked chunked;

	chunked_init(&chunked);
	while (decoded.end < length && !chunked_is_over(&chunked)) {
		struct slice run;
		ssize_t used =
			chunked_decode(&chunked, data + decoded.end, length - decoded.end, &run);

		if (used < 0) {
			decoded.status = (int)used;
			return decoded;
		}
		memcpy(content + decoded.length, run.at, run.length);
		decoded.length += run.length;
		decoded.end += (size_t)used;
	}
	decoded.status = !chunked_is_over(&chunked);
	return decoded;
}

/* A line that is not content. */
struct line {
	const char *at;
	size_t length; /* with its end; 0: incomplete */
};

static struct line line_at(const char *data, size_t length, size_t at)
{
	const char *newline = at < length ? memchr(data + at, '\n', length - at) : NULL;

	return (struct line){data + at, newline ? (size_t)(newline - data) + 1 - at : 0};
}

/* Returns the size at the beginning of a line, and its digits. */
static uint64_t size_of(const struct line *line, size_t *digits)
{
	uint64_t size = 0;

	for (*digits = 0; *digits < line->length; ++*digits) {
		const char *all = "0123456789abcdef", *digit;
		char byte = line->at[*digits];

		digit = byte ? strchr(all, byte >= 'A' && byte <= 'F' ? byte | 0x20 : byte) : NULL;
		if (!digit)
			break;
		size = size << 4 | (uint64_t)(digit - all);
	}
	return size;
}

/*
 * RFC 9112, section 7.1: a line ends with CRLF; the line has bytes outside of its
 * grammar; RFC 9110, section 5.6.3: misplaced blanks.  Their parser checks a size line
 * up to its CR only.
 */
static bool odd_size_line(const struct line *line)
{
	size_t digits;

	(void)size_of(line, &digits);
	/* Limits of this server: section 7.1.1, and no size with more digits. */
	return digits > CHUNKED_DIGITS_MAX || line->length != digits + 2 ||
	       line->at[digits] != '\r';
}

/* Section 7.1.2: ordinary fields; they permit a blank in a name, and folded lines. */
static bool odd_trailer(const struct line *line)
{
	size_t at = 0;

	while (at < line->length && syntax_is_token(line->at[at]))
		at++;
	if (at == 0 || line->at[at] != ':')
		return true;
	for (at++; at < line->length && syntax_is_value(line->at[at]); at++)
		;
	return at + 2 != line->length || line->at[at] != '\r';
}

/* Returns whether any line of the body is one that only they accept. */
static bool is_odd(const char *data, size_t length, size_t end)
{
	size_t at = 0, digits, trailers = 0, extensions = 0;

	while (at < end) {
		struct line line = line_at(data, length, at);
		uint64_t size = size_of(&line, &digits);

		/* They treat an extension like a comment. */
		if (line.length == 0 || odd_size_line(&line))
			return true;
		extensions += line.length;
		at += line.length;
		if (size == 0)
			break;
		if (size > length - at || memcmp(data + at + size, "\r\n", 2) != 0)
			return true;
		at += size + 2;
	}
	while (at < end) {
		struct line line = line_at(data, length, at);

		if (line.length == 2 && line.at[0] == '\r')
			break;
		if (line.length == 0 || odd_trailer(&line))
			return true;
		trailers += line.length;
		at += line.length;
	}
	return trailers > CHUNKED_TRAILERS_MAX || extensions > CHUNKED_EXTENSIONS_MAX;
}

/* RFC 9112, section 7.1.1: before an extension's semicolon a blank is permitted, a tab too. */
static bool has_tab(const struct theirs *theirs, const char *data, size_t end)
{
	return HTTP_PARSER_ERRNO(&theirs->parser) == HPE_INVALID_CHUNK_SIZE &&
	       memchr(data, '\t', end);
}

/*
 * RFC 9112, section 7.1.2: a trailer must not change the framing; we drop it, they
 * refuse the body.
 */
static bool has_framing_trailer(const struct theirs *theirs)
{
	enum http_errno error = HTTP_PARSER_ERRNO(&theirs->parser);

	return error == HPE_UNEXPECTED_CONTENT_LENGTH || error == HPE_INVALID_CONTENT_LENGTH ||
	       error == HPE_INVALID_TRANSFER_ENCODING;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct theirs theirs;
	char *whole = malloc(strlen(HEAD) + size), *ours = malloc(size + 1);
	char *body = malloc(size + 1);
	struct decoded decoded;
	size_t end;

	MUST(whole && ours && body);
	memcpy(whole, HEAD, strlen(HEAD));
	if (size)
		memcpy(whole + strlen(HEAD), data, size);
	decoded = decode(whole + strlen(HEAD), size, ours);
	theirs_parse(&theirs, whole, strlen(HEAD) + size, body);
	MUST(theirs.complete);
	end = theirs.end - strlen(HEAD);
	if (decoded.status == 0 && theirs.over) {
		MUST(end == decoded.end && theirs.body_length == decoded.length);
		MUST(memcmp(body, ours, decoded.length) == 0);
	} else if (decoded.status == 0) {
		MUST(theirs_refused(&theirs));
		MUST(has_framing_trailer(&theirs) ||
		     has_tab(&theirs, whole + strlen(HEAD), decoded.end));
	} else if (theirs.over) {
		MUST(is_odd(whole + strlen(HEAD), size, end));
	}
	free(whole);
	free(ours);
	free(body);
	return 0;
}
