/* SPDX-License-Identifier: MIT */
/*
 * request.c - parses the head of a request in the buffer it was read into.
 *
 * The caller owns the buffer and the struct request, whose slices point into
 * the buffer.  No state, no allocation, one pass: any thread may call it.
 *
 * Two servers that read one head differently are how requests are smuggled,
 * so what RFC 9112 lets a server tolerate is refused here: bare LF, bare CR,
 * folded lines, blanks before a colon, any doubt about the length of a body.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "base/scan.h"
#include "base/syntax.h"
#include "http/field.h"
#include "http/request.h"

#define LEADING_LINES 4	  /* empty lines tolerated before a request line */
#define VERSION_LENGTH 10 /* "HTTP/1.1\r\n" */

/* What the fields that decide where a message ends have said so far. */
struct framing {
	bool absolute; /* the target names the host, the Host field is overruled */
	bool host;
	bool length;
	bool coding;	    /* a Transfer-Encoding field, with */
	bool chunked;	    /* that as its last coding so far, */
	bool other;	    /* and others before, */
	bool coding_broken; /* or what is no list of codings */
	bool close;
	bool keep_alive;
};

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/*
 * Compares with a lower case literal of the same length.  Setting bit 5 folds
 * letters onto nothing but themselves, and CR onto '-': no token holds that.
 */
static bool same(const char *at, const char *lower, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++) {
		if ((at[i] | 0x20) != lower[i])
			return false;
	}
	return true;
}

size_t request_head_length(const char *data, size_t length, size_t seen)
{
	size_t at = 0;
	size_t bytes;
	int lines;

	for (lines = 0; (bytes = field_line_end(data + at, length - at)); lines++) {
		at += bytes;
		if (lines == LEADING_LINES)
			return at; /* nothing but empty lines: for the parser to refuse */
	}
	/* "\n\r" may have been seen, the newline that makes it an end was not. */
	if (seen >= 2 && seen - 2 > at)
		at = seen - 2;
	return field_section_end(data, length, at);
}

static int refuse(struct request *request, int status, const char *wrong)
{
	request->wrong = wrong;
	return status;
}

/* Methods are case-sensitive. */
static enum request_method find_method(struct slice name)
{
	static const struct {
		char name[8];
		enum request_method method;
	} known[] = {{"POST", METHOD_POST},	{"PUT", METHOD_PUT},
		     {"DELETE", METHOD_DELETE}, {"OPTIONS", METHOD_OPTIONS},
		     {"PATCH", METHOD_PATCH},	{"TRACE", METHOD_TRACE}};
	size_t i;

	if (name.length == 3 && memcmp(name.at, "GET", 3) == 0)
		return METHOD_GET;
	if (name.length == 4 && memcmp(name.at, "HEAD", 4) == 0)
		return METHOD_HEAD;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (name.length == strlen(known[i].name) &&
		    memcmp(name.at, known[i].name, name.length) == 0)
			return known[i].method;
	}
	return METHOD_OTHER;
}

/* What stands between the brackets: an address of IPv6 or, as RFC 3986 has it, of later versions. */
static bool is_literal(const char *at, size_t length)
{
	struct in6_addr address;
	char text[INET6_ADDRSTRLEN];
	size_t i;

	if (length > 0 && (at[0] | 0x20) == 'v') {
		for (i = 1; i < length && isxdigit((unsigned char)at[i]); i++)
			;
		if (i == 1 || length - i < 2 || at[i++] != '.')
			return false;
		while (i < length && (syntax_is(at[i], SYNTAX_HOST) || at[i] == ':'))
			i++;
		return i == length;
	}
	if (length >= sizeof(text))
		return false;
	memcpy(text, at, length);
	text[length] = '\0';
	/* A byte of 0 in the middle would end it early. */
	return strlen(text) == length && inet_pton(AF_INET6, text, &address) == 1;
}

/* "name", "name:port", "[address]" or "[address]:port". */
static bool is_host(struct slice host)
{
	const char *at = host.at;
	const char *end = host.at + host.length;
	bool bracket = at < end && *at == '[';
	const char *start = at += bracket;
	unsigned port = 0;

	while (at < end && (syntax_is(*at, SYNTAX_HOST) || (bracket && *at == ':')))
		at++;
	if (at == start)
		return false;
	if (bracket && (at == end || *at != ']' || !is_literal(start, (size_t)(at++ - start))))
		return false;
	if (at == end)
		return true;
	if (*at != ':')
		return false;
	for (at++; at < end && is_digit(*at) && port <= 65535; at++)
		port = port * 10 + (unsigned)(*at - '0');
	return at == end && port <= 65535;
}

/* The bytes of "http://" or "https://" that target begins with, or 0. */
static size_t scheme_length(struct slice target)
{
	size_t length;

	if (target.length < 8 || !same(target.at, "http", 4))
		return 0;
	length = (target.at[4] | 0x20) == 's' ? 5 : 4;
	return memcmp(target.at + length, "://", 3) == 0 ? length + 3 : 0;
}

static bool is_connect(struct slice method)
{
	return method.length == 7 && memcmp(method.at, "CONNECT", 7) == 0;
}

/* Splits the target into host, path and query. */
static int parse_target(struct request *request, struct framing *framing)
{
	struct slice target = request->target;
	const char *end = target.at + target.length;
	const char *path = target.at;
	const char *mark;

	request->query = (struct slice){end, 0};
	if (is_connect(request->method_name))
		/* No tunnels from here; only CONNECT has an authority for a target. */
		return is_host(target) && end[-1] != ']' && memchr(path, ':', target.length)
			       ? refuse(request, -501, "CONNECT")
			       : refuse(request, -400, "CONNECT without host and port");
	if (target.length == 1 && *path == '*') {
		request->path = target;
		return request->method == METHOD_OPTIONS
			       ? 0
			       : refuse(request, -400,
					"a target of * for another method than OPTIONS");
	}
	if (*path != '/') {
		path += scheme_length(target);
		if (path == target.at)
			return refuse(request, -400, "a target that is neither a path nor a URL");
		request->host.at = path;
		while (path < end && *path != '/' && *path != '?')
			path++;
		request->host.length = (size_t)(path - request->host.at);
		if (!is_host(request->host))
			return refuse(request, -400, "a malformed host in the target");
		framing->absolute = true;
	}
	mark = memchr(path, '?', (size_t)(end - path));
	if (mark)
		request->query = (struct slice){mark + 1, (size_t)(end - mark - 1)};
	else
		mark = end;
	request->path = (struct slice){path, (size_t)(mark - path)};
	if (mark == path) /* "http://host" means "/": the slash before the host serves */
		request->path = (struct slice){request->host.at - 1, 1};
	return 0;
}

#define LINE_WRONG "a malformed request line"

/* What begins at start and is none of HTTP from at on, in the words of whoever looks for it. */
static const char *not_http(const char *start, const char *at)
{
	if (*start == '\x16')
		return "TLS, which is not spoken here";
	if (at - start >= 4 && memcmp(start, "SSH-", 4) == 0)
		return "SSH, which is not spoken here";
	return LINE_WRONG;
}

static int parse_request_line(struct request *request, struct framing *framing, const char **from,
			      const char *end)
{
	const char *at = *from;
	const char *start = at;

	while (syntax_is(*at, SYNTAX_TOKEN))
		at++;
	if (at == start || *at != ' ')
		return refuse(request, -400, not_http(start, at));
	request->method_name = (struct slice){start, (size_t)(at - start)};
	request->method = find_method(request->method_name);

	start = ++at;
	at = scan_target(at, end);
	if (at == start || *at != ' ')
		return refuse(request, -400, LINE_WRONG);
	request->target = (struct slice){start, (size_t)(at - start)};
	if (request->target.length > REQUEST_TARGET_MAX)
		return refuse(request, -414, "a target that is too long");

	at++;
	if (end - at < VERSION_LENGTH || memcmp(at, "HTTP/", 5) != 0 || !is_digit(at[5]) ||
	    at[6] != '.' || !is_digit(at[7]) || at[8] != '\r' || at[9] != '\n')
		return refuse(request, -400, LINE_WRONG);
	if (at[5] != '1')
		return refuse(request, -505, "a version of HTTP that is not spoken here");
	request->minor = at[7] != '0';
	*from = at + VERSION_LENGTH;
	return parse_target(request, framing);
}

static int note_host(struct request *request, struct framing *framing, struct slice value)
{
	if (framing->host || (value.length > 0 && !is_host(value)))
		return refuse(request, -400, "a malformed Host field, or two of them");
	framing->host = true;
	if (!framing->absolute)
		request->host = value;
	return 0;
}

static int note_length(struct request *request, struct framing *framing, struct slice value)
{
	uint64_t length;

	/* No file is longer than that, and sums with other sizes must not wrap. */
	if (framing->length || !field_number(value, &length) || length > INT64_MAX)
		return refuse(request, -400, "a malformed Content-Length field, or two of them");
	framing->length = true;
	request->content_length = length;
	return 0;
}

/* Split at anything: a "close" in odd company still closes, which is safe. */
static void note_connection(struct framing *framing, struct slice value)
{
	const char *at = value.at;
	const char *end = value.at + value.length;
	const char *start;

	for (; at < end; at++) {
		for (start = at; at < end && syntax_is(*at, SYNTAX_TOKEN); at++)
			;
		if (at - start == 5 && same(start, "close", 5))
			framing->close = true;
		else if (at - start == 10 && same(start, "keep-alive", 10))
			framing->keep_alive = true;
	}
}

/*
 * A list of codings, each a token; nobody who means well sends parameters,
 * empty members or the like, and servers have differed about them.
 */
static void note_coding(struct framing *framing, struct slice value)
{
	const char *at = value.at;
	const char *end = value.at + value.length;

	framing->coding = true;
	for (;;) {
		const char *start = at;

		while (at < end && syntax_is(*at, SYNTAX_TOKEN))
			at++;
		framing->coding_broken |= at == start;
		/* Nothing may be done to a body that has been chunked. */
		framing->coding_broken |= framing->chunked;
		framing->chunked = at - start == 7 && same(start, "chunked", 7);
		framing->other |= !framing->chunked;
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		if (at == end)
			return;
		if (*at++ != ',') {
			framing->coding_broken = true;
			return;
		}
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
	}
}

static void note_expect(struct request *request, struct slice value)
{
	if (value.length == 0)
		return;
	if (value.length != 12 || !same(value.at, "100-continue", 12))
		request->expect = EXPECT_OTHER;
	else if (request->expect == EXPECT_NOTHING)
		request->expect = EXPECT_CONTINUE;
}

/* Looks at the fields that decide about the message or the connection. */
static int note_field(struct request *request, struct framing *framing,
		      const struct request_header *header)
{
	const char *name = header->name.at;

	switch (header->name.length) {
	case 4:
		if (same(name, "host", 4))
			return note_host(request, framing, header->value);
		return 0;
	case 6:
		if (same(name, "expect", 6))
			note_expect(request, header->value);
		return 0;
	case 5: /* Range */
		request->conditional |= same(name, "range", 5);
		return 0;
	case 8:	 /* If-Match, If-Range */
	case 13: /* If-None-Match */
	case 19: /* If-Unmodified-Since */
		request->conditional |= same(name, "if-", 3);
		return 0;
	case 10:
		if (same(name, "connection", 10))
			note_connection(framing, header->value);
		return 0;
	case 14:
		if (same(name, "content-length", 14))
			return note_length(request, framing, header->value);
		return 0;
	case 17: /* and If-Modified-Since */
		if (same(name, "transfer-encoding", 17))
			note_coding(framing, header->value);
		request->conditional |= same(name, "if-", 3);
		return 0;
	default:
		return 0;
	}
}

/* One field line; *from moves behind it. */
static bool parse_field(struct request_header *header, const char **from, const char *end)
{
	const char *at = *from;
	const char *start = at;
	const char *stop;

	at = scan_token(at, end);
	if (at == start || *at != ':')
		return false;
	header->name = (struct slice){start, (size_t)(at - start)};

	for (at++; *at == ' ' || *at == '\t'; at++)
		;
	start = at;
	at = scan_value(at, end);
	if (at[0] != '\r' || at[1] != '\n')
		return false;
	for (stop = at; stop > start && (stop[-1] == ' ' || stop[-1] == '\t'); stop--)
		;
	header->value = (struct slice){start, (size_t)(stop - start)};
	*from = at + 2;
	return true;
}

/* What only the whole of the fields can tell. */
static int check_framing(struct request *request, const struct framing *framing)
{
	if (request->minor >= 1 && !framing->host)
		return refuse(request, -400, "no Host field");
	if (framing->coding) {
		/* Without chunked as the last one nobody knows where the body ends. */
		if (framing->length || request->minor == 0 || framing->coding_broken ||
		    !framing->chunked)
			return refuse(request, -400,
				      "a Transfer-Encoding that leaves the end open");
		if (framing->other)
			return refuse(request, -501, "another transfer coding than chunked");
		request->chunked = true;
	}
	/* Clients of HTTP/1.0 wait for nothing (RFC 9110, section 10.1.1). */
	if (request->minor == 0)
		request->expect = EXPECT_NOTHING;
	request->keep_alive = !framing->close && (request->minor >= 1 || framing->keep_alive);
	return 0;
}

int request_parse(struct request *request, const char *head, size_t length)
{
	struct framing framing = {.absolute = false};
	const char *at = head;
	const char *end = head + length;
	struct request_header *header;
	int lines, status;

	request->head = (struct slice){head, length};
	request->header_count = 0;
	request->content_length = 0;
	request->keep_alive = false;
	request->chunked = false;
	request->expect = EXPECT_NOTHING;
	request->conditional = false;
	request->host = (struct slice){head, 0};

	/* The final newline stops every loop below, so none needs to test for the end. */
	if (length == 0 || end[-1] != '\n')
		return refuse(request, -400, "no end of the head");
	for (lines = 0; lines < LEADING_LINES && at < end && at[0] == '\r' && at[1] == '\n';
	     lines++)
		at += 2;
	if (at == end)
		return refuse(request, -400, "nothing but empty lines");
	status = parse_request_line(request, &framing, &at, end);
	if (status)
		return status;

	while (at < end && *at != '\r') {
		if (request->header_count == REQUEST_HEADERS_MAX)
			return refuse(request, -431, REQUEST_TOO_MANY);
		header = &request->headers[request->header_count];
		if (!parse_field(header, &at, end))
			return refuse(request, -400, "a malformed header field");
		status = note_field(request, &framing, header);
		if (status)
			return status;
		request->header_count++;
	}
	/* The empty line, and nothing behind it. */
	if (end - at != 2)
		return refuse(request, -400, "a malformed end of the head");
	return check_framing(request, &framing);
}

/* Whether a request line may begin so, which has no end yet. */
static bool may_begin(const char *at, const char *end)
{
	static const char version[] = "HTTP/1.1\r";
	const char *start = at;

	while (at < end && syntax_is(*at, SYNTAX_TOKEN))
		at++;
	if (at == end)
		return end - start < 4 || memcmp(start, "SSH-", 4) != 0;
	if (at == start || *at != ' ')
		return false;
	start = ++at;
	while (at < end && syntax_is(*at, SYNTAX_TARGET))
		at++;
	if (at == end)
		return true;
	if (at == start || *at != ' ' || end - ++at > (ptrdiff_t)sizeof(version) - 1)
		return false;
	for (size_t i = 0; at < end; i++, at++)
		if (is_digit(version[i]) ? !is_digit(*at) : *at != version[i])
			return false;
	return true;
}

int request_check_begin(struct request *request, const char *data, size_t length, size_t seen)
{
	struct framing framing = {.absolute = false};
	const char *at = data, *end = data + length, *newline;

	for (int lines = 0;
	     lines < LEADING_LINES && end - at >= 2 && at[0] == '\r' && at[1] == '\n'; lines++)
		at += 2;
	if (at == end || (end - at == 1 && *at == '\r'))
		return 0;
	newline = memchr(at, '\n', (size_t)(end - at));
	if (!newline && !may_begin(at, end))
		return refuse(request, -400, not_http(at, end));
	/* One that has been looked at was good. */
	if (newline && newline >= data + seen) {
		int status = parse_request_line(request, &framing, &at, newline + 1);

		if (status)
			return status;
	}
	if (memchr(data + seen, '\0', length - seen))
		return refuse(request, -400, "a byte of 0");
	return 0;
}

bool request_is_head(const char *head, size_t length)
{
	while (length && (*head == '\r' || *head == '\n')) {
		head++;
		length--;
	}
	return length >= 5 && memcmp(head, "HEAD ", 5) == 0;
}

const struct slice *request_find(const struct request *request, const char *name)
{
	size_t length = strlen(name);
	const struct request_header *header = request->headers;
	const struct request_header *end = header + request->header_count;

	for (; header < end; header++) {
		if (header->name.length == length &&
		    strncasecmp(header->name.at, name, length) == 0)
			return &header->value;
	}
	return NULL;
}
