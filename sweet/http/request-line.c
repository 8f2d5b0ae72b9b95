/* SPDX-License-Identifier: MIT */
/*
 * request-line.c - the first line of a request: method, target and version; also of
 * an incomplete head.  Part of request.c.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/scan.h"
#include "base/slice.h"
#include "base/syntax.h"
#include "http/request-internal.h"
#include "http/request.h"

#define VERSION_LENGTH 10 /* "HTTP/1.1\r\n" */

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

/*
 * Checks the text between the brackets: an IPv6 address or, by RFC 3986, one of a
 * later version.
 */
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
	/* A zero byte in the middle would end the string early. */
	return strlen(text) == length && inet_pton(AF_INET6, text, &address) == 1;
}

/* "name", "name:port", "[address]" or "[address]:port". */
bool request_is_host(struct slice host)
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
	for (at++; at < end && request_is_digit(*at) && port <= 65535; at++)
		port = port * 10 + (unsigned)(*at - '0');
	return at == end && port <= 65535;
}

/* Returns the length of "http://" or "https://" at the start of target, or 0. */
static size_t scheme_length(struct slice target)
{
	size_t length;

	if (target.length < 8 || !request_same(target.at, "http", 4))
		return 0;
	length = (target.at[4] | 0x20) == 's' ? 5 : 4;
	return memcmp(target.at + length, "://", 3) == 0 ? length + 3 : 0;
}

static bool is_connect(struct slice method)
{
	return method.length == 7 && memcmp(method.at, "CONNECT", 7) == 0;
}

/* Splits the target into host, path and query. */
static int parse_target(struct request *request, struct request_framing *framing)
{
	struct slice target = request->target;
	const char *end = target.at + target.length;
	const char *path = target.at;
	const char *mark;

	request->query = (struct slice){end, 0};
	if (is_connect(request->method_name))
		/* The server does not tunnel; only CONNECT has an authority as its target. */
		return request_is_host(target) && end[-1] != ']' && memchr(path, ':', target.length)
			       ? request_refuse(request, -501, "CONNECT")
			       : request_refuse(request, -400, "CONNECT without host and port");
	if (target.length == 1 && *path == '*') {
		request->path = target;
		return request->method == METHOD_OPTIONS
			       ? 0
			       : request_refuse(request, -400,
						"the target * with a method other than OPTIONS");
	}
	if (*path != '/') {
		path += scheme_length(target);
		if (path == target.at)
			return request_refuse(request, -400,
					      "a target that is neither a path nor a URL");
		request->host.at = path;
		while (path < end && *path != '/' && *path != '?')
			path++;
		request->host.length = (size_t)(path - request->host.at);
		if (!request_is_host(request->host))
			return request_refuse(request, -400, "a malformed host in the target");
		framing->absolute = true;
	}
	mark = memchr(path, '?', (size_t)(end - path));
	if (mark)
		request->query = (struct slice){mark + 1, (size_t)(end - mark - 1)};
	else
		mark = end;
	request->path = (struct slice){path, (size_t)(mark - path)};
	if (mark == path) /* "http://host" means "/": use the slash before the host */
		request->path = (struct slice){request->host.at - 1, 1};
	return 0;
}

#define LINE_WRONG "a malformed request line"
#define HANDSHAKE_RECORD 0x16 /* its first byte (RFC 8446, section 5.1) */

/* Describes a line that begins at start and is not HTTP from at on. */
static const char *not_http(const char *start, const char *at)
{
	if (*start == HANDSHAKE_RECORD)
		return "TLS on an address that expects HTTP in clear text";
	if (at - start >= 4 && memcmp(start, "SSH-", 4) == 0)
		return "SSH instead of HTTP";
	return LINE_WRONG;
}

static const char raw_target[] = "a target with bytes that are not ASCII";

static void set_method(struct request *request, struct slice method)
{
	request->method_name = method;
	request->method = find_method(method);
}

static int set_target(struct request *request, struct slice target)
{
	request->target = target;
	return target.length > REQUEST_TARGET_MAX
		       ? request_refuse(request, -414, "a target that is too long")
		       : 0;
}

/* Whether the first byte that is not valid in a target is not ASCII. */
static bool is_raw(struct slice target)
{
	size_t at = 0;

	while (at < target.length && syntax_is(target.at[at], SYNTAX_TARGET))
		at++;
	return at < target.length && (unsigned char)target.at[at] >= 0x80;
}

int request_parse_line(struct request *request, struct request_framing *framing, const char **from,
		       const char *end)
{
	const char *at = *from;
	const char *start = at;

	while (syntax_is(*at, SYNTAX_TOKEN))
		at++;
	if (at == start || *at != ' ')
		return request_refuse(request, -400, not_http(start, at));
	set_method(request, (struct slice){start, (size_t)(at - start)});

	start = ++at;
	at = scan_target(at, end);
	if ((unsigned char)*at >= 0x80)
		return request_refuse(request, -400, raw_target);
	if (at == start || *at != ' ')
		return request_refuse(request, -400, LINE_WRONG);
	if (set_target(request, (struct slice){start, (size_t)(at - start)}))
		return -414;

	at++;
	if (end - at < VERSION_LENGTH || memcmp(at, "HTTP/", 5) != 0 || !request_is_digit(at[5]) ||
	    at[6] != '.' || !request_is_digit(at[7]) || at[8] != '\r' || at[9] != '\n')
		return request_refuse(request, -400, LINE_WRONG);
	if (at[5] != '1')
		return request_refuse(request, -505, "an unsupported version of HTTP");
	request->minor = at[7] != '0';
	*from = at + VERSION_LENGTH;
	return parse_target(request, framing);
}

int request_take_line(struct request *request, struct request_framing *framing, struct slice method,
		      struct slice target)
{
	if (method.length == 0 ||
	    !scan_all(method, method.at + method.length, SYNTAX_TOKEN, scan_not_name))
		return request_refuse(request, -400, LINE_WRONG);
	set_method(request, method);
	if (target.length == 0 ||
	    !scan_all(target, target.at + target.length, SYNTAX_TARGET, scan_not_target))
		return request_refuse(request, -400, is_raw(target) ? raw_target : LINE_WRONG);
	if (set_target(request, target))
		return -414;
	request->minor = 1;
	return parse_target(request, framing);
}

/* Returns true if an incomplete request line may begin with these bytes. */
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
	/* Raw UTF-8 may be permitted, see request-escape.h. */
	while (at < end && (syntax_is(*at, SYNTAX_TARGET) || (unsigned char)*at >= 0x80))
		at++;
	if (at == end)
		return true;
	if (at == start || *at != ' ' || end - ++at > (ptrdiff_t)sizeof(version) - 1)
		return false;
	for (size_t i = 0; at < end; i++, at++)
		if (request_is_digit(version[i]) ? !request_is_digit(*at) : *at != version[i])
			return false;
	return true;
}

int request_check_begin(struct request *request, const char *data, size_t length, size_t seen)
{
	struct request_framing framing = {.absolute = false};
	const char *at = data, *end = data + length, *newline;

	for (int lines = 0;
	     lines < REQUEST_LEADING_LINES && end - at >= 2 && at[0] == '\r' && at[1] == '\n';
	     lines++)
		at += 2;
	if (at == end || (end - at == 1 && *at == '\r'))
		return 0;
	newline = memchr(at, '\n', (size_t)(end - at));
	if (!newline && !may_begin(at, end))
		return request_refuse(request, -400, not_http(at, end));
	/* An earlier call has accepted a line before data + seen. */
	if (newline && newline >= data + seen) {
		int status = request_parse_line(request, &framing, &at, newline + 1);

		/* It may be permitted: request-escape.h. */
		if (status && request->wrong != raw_target)
			return status;
	}
	if (memchr(data + seen, '\0', length - seen))
		return request_refuse(request, -400, "a byte of 0");
	return 0;
}
