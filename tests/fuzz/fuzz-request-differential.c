/* SPDX-License-Identifier: MIT */
/*
 * fuzz-request-differential.c - heads of requests as sweet/http/request.c and
 * http-parser parse them.  If both accept a head it must be the same request; a head
 * that only one of them accepts must be of a kind that is listed here, with a
 * reference to the RFC. Any other difference would permit to smuggle a request past
 * one parser through the other.  Over 500 lines, because each permitted difference is
 * a function with its reason.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <http_parser.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/slice.h"
#include "http/request.h"

#include "fuzz.h"
#include "theirs.h"

struct sight {
	struct slice head;
	int status; /* ours */
	struct request request;
	struct theirs theirs;
};

/* --- content of the bytes, by neither parser -------------------------------------- */

static bool has(struct slice text, bool (*is)(struct slice text, size_t at))
{
	for (size_t i = 0; i < text.length; i++)
		if (is(text, i))
			return true;
	return false;
}

static char byte_at(struct slice text, size_t at)
{
	return at < text.length ? text.at[at] : '\0';
}

static bool is_bare_newline(struct slice text, size_t at)
{
	return text.at[at] == '\n' && (at == 0 || text.at[at - 1] != '\r');
}

static bool is_bare_return(struct slice text, size_t at)
{
	return text.at[at] == '\r' && byte_at(text, at + 1) != '\n';
}

static bool is_fold(struct slice text, size_t at)
{
	return text.at[at] == '\n' &&
	       (byte_at(text, at + 1) == ' ' || byte_at(text, at + 1) == '\t');
}

static bool is_unsendable(struct slice text, size_t at)
{
	return (unsigned char)text.at[at] <= 0x20 || (unsigned char)text.at[at] >= 0x7f ||
	       text.at[at] == '#';
}

static bool is_no_token(struct slice text, size_t at)
{
	return (unsigned char)text.at[at] <= 0x20 || (unsigned char)text.at[at] >= 0x7f ||
	       strchr("\"(),/:;<=>?@[\\]{}", text.at[at]);
}

static struct slice trim(struct slice text)
{
	while (text.length && strchr(" \t", text.at[text.length - 1]))
		text.length--;
	while (text.length && strchr(" \t", text.at[0]))
		text = (struct slice){text.at + 1, text.length - 1};
	return text;
}

/* Returns the number of fields with a name, and the value of the last one. */
static unsigned count_of(const struct sight *sight, const char *name, struct slice *value)
{
	unsigned count = 0;

	*value = (struct slice){"", 0};
	for (unsigned i = 0; i < sight->theirs.header_count; i++) {
		if (!slice_is(sight->theirs.headers[i].name, name))
			continue;
		count++;
		if (sight->theirs.headers[i].value.at)
			*value = trim(sight->theirs.headers[i].value);
	}
	return count;
}

static bool method_is(const struct sight *sight, const char *name)
{
	return strcmp(http_method_str(sight->theirs.parser.method), name) == 0;
}

/* --- refused by us and accepted by them --------------------------------------------- */

/* RFC 9112, section 2.2: a recipient MAY accept a bare LF as the end of a line; it need not. */
static bool bare_newline(const struct sight *sight)
{
	return has(sight->head, is_bare_newline);
}

/* Section 2.2: a bare CR is invalid, or counts as a blank. */
static bool bare_return(const struct sight *sight)
{
	return has(sight->head, is_bare_return);
}

/* Section 2.2: at least one empty line must be ignored; we ignore up to four. */
static bool many_empty_lines(const struct sight *sight)
{
	return sight->head.length >= 10 && memcmp(sight->head.at, "\r\n\r\n\r\n\r\n\r\n", 10) == 0;
}

/* Section 5.2: a server MUST reject a folded line, or unfold it. */
static bool folded(const struct sight *sight)
{
	return has(sight->head, is_fold);
}

/* Section 5.1: no blank between name and colon; RFC 9110, section 5.1: a name is a token. */
static bool no_name(const struct sight *sight)
{
	for (unsigned i = 0; i < sight->theirs.header_count; i++)
		if (has(sight->theirs.headers[i].name, is_no_token))
			return true;
	return false;
}

static bool is_control(struct slice text, size_t at)
{
	return ((unsigned char)text.at[at] < 0x20 && text.at[at] != '\t') || text.at[at] == 0x7f;
}

/* RFC 9110, section 5.5: no control characters; they permit one as the first byte of a value. */
static bool no_value(const struct sight *sight)
{
	for (unsigned i = 0; i < sight->theirs.header_count; i++)
		if (has(sight->theirs.headers[i].value, is_control))
			return true;
	return false;
}

/* Section 3: one SP between the parts of the request line. */
static bool wide_line(const struct sight *sight)
{
	const char *url = sight->theirs.url.at, *behind = url + sight->theirs.url.length;

	return url[-2] == ' ' || behind[1] == ' ';
}

/* RFC 3986, section 3.2.2: an IPv6 address, or "v", a version, "." and something. */
static bool bad_literal(const char *at, size_t length)
{
	char text[64] = "";
	struct in6_addr address;
	size_t digits;

	if (length > 0 && (*at == 'v' || *at == 'V')) {
		for (digits = 1; digits < length && isxdigit((unsigned char)at[digits]); digits++)
			;
		return digits == 1 || length - digits < 2 || at[digits] != '.';
	}
	if (length >= sizeof(text))
		return true;
	memcpy(text, at, length);
	return inet_pton(AF_INET6, text, &address) != 1;
}

/* Section 3.2: exactly one Host field in HTTP/1.1, with a valid value. */
static bool bad_host(const struct sight *sight)
{
	const char *good = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	struct slice host;
	unsigned count = count_of(sight, "Host", &host);
	size_t name = 0, port;
	uint64_t number = 0;

	if (count != 1)
		return count > 1 || sight->theirs.parser.http_minor > 0;
	if (host.length == 0)
		return false;
	/* A name or an address in brackets, then perhaps a port of 16 bits. */
	if (host.at[0] == '[')
		for (name = 1; name < host.length && host.at[name] != ']'; name++)
			if (host.at[name] != ':' && !strchr(good, host.at[name]))
				return true;
	if (name && (name == host.length || bad_literal(host.at + 1, name - 1)))
		return true;
	name += name > 0;
	while (host.at[0] != '[' && name < host.length && host.at[name] &&
	       strchr(good, host.at[name]))
		name++;
	if (name == 0)
		return true;
	if (name == host.length)
		return false;
	for (port = name + 1; port < host.length && number < 65536; port++) {
		if (host.at[port] < '0' || host.at[port] > '9')
			return true;
		number = 10 * number + (uint64_t)(host.at[port] - '0');
	}
	return host.at[name] != ':' || number > 65535;
}

/* RFC 3986: the characters of a URI; section 3.2 of RFC 9112: no fragment is sent. */
static bool no_uri(const struct sight *sight)
{
	return has(sight->theirs.url, is_unsendable);
}

/* Sections 3.2.1 to 3.2.4: each form with its methods, and only the schemes of this server. */
static bool other_target(const struct sight *sight)
{
	struct slice url = sight->theirs.url;

	if (method_is(sight, "CONNECT"))
		return true;
	if (url.length == 1 && url.at[0] == '*')
		return !method_is(sight, "OPTIONS");
	return url.at[0] == '*' || (url.at[0] != '/' && strncasecmp(url.at, "http://", 7) != 0 &&
				    strncasecmp(url.at, "https://", 8) != 0);
}

/* RFC 9110, sections 4.2.1 and 4.2.4: a host, and no user before it. */
static bool bad_authority(const struct sight *sight)
{
	struct slice url = sight->theirs.url;
	const char *at = memchr(url.at, ':', url.length), *end = url.at + url.length;
	struct sight other = {.theirs = {.header_count = 1}};
	const char *stop;

	if (url.at[0] == '/' || !at || end - at < 3)
		return false;
	at += 3;
	for (stop = at; stop < end && *stop != '/' && *stop != '?'; stop++)
		;
	other.theirs.headers[0].name = SLICE("Host");
	other.theirs.headers[0].value = (struct slice){at, (size_t)(stop - at)};
	return stop == at || bad_host(&other);
}

/* RFC 9110, section 15.5.15 and RFC 6585, section 5: limits of this server. */
static bool too_large(const struct sight *sight)
{
	return sight->theirs.url.length > REQUEST_TARGET_MAX ||
	       sight->theirs.header_count > REQUEST_HEADERS_MAX;
}

/* Section 2.3: this is HTTP/1.x, and its name is case-sensitive. */
static bool other_version(const struct sight *sight)
{
	const char *at = sight->theirs.url.at + sight->theirs.url.length + 1;

	return sight->theirs.parser.http_major != 1 || memcmp(at, "HTTP/", 5) != 0;
}

/*
 * Section 6.1: HTTP/1.0 has no transfer codings, and the only supported one is
 * chunked; section 7: its name has no parameters.
 */
static bool other_coding(const struct sight *sight)
{
	struct slice value;
	unsigned count = count_of(sight, "Transfer-Encoding", &value);

	return count > 1 || (count == 1 &&
			     (sight->theirs.parser.http_minor == 0 || !slice_is(value, "chunked")));
}

/* RFC 9110, section 8.6: digits; and at most the maximum size of a file. */
static bool bad_length(const struct sight *sight)
{
	struct slice value;

	return count_of(sight, "Content-Length", &value) == 1 &&
	       (value.length == 0 || sight->theirs.parser.content_length > INT64_MAX);
}

static bool (*const refused_by_us[])(const struct sight *sight) = {
	bare_newline,  bare_return, many_empty_lines, folded,	    no_name,
	no_value,      wide_line,   bad_host,	      no_uri,	    other_target,
	bad_authority, too_large,   other_version,    other_coding, bad_length,
};

/* --- refused by them and accepted by us ------------------------------------------------ */

/* RFC 9110, section 9.1: a method is any token; an unknown one gets a 501. */
static bool unknown_method(const struct sight *sight)
{
	return HTTP_PARSER_ERRNO(&sight->theirs.parser) == HPE_INVALID_METHOD;
}

/*
 * RFC 9110, section 5.1: a name is compared as a whole.  They take one with the same
 * beginning for Transfer-Encoding, until they reach its value: it cancels an earlier
 * field, and conflicts with a Content-Length.
 */
static bool has_like_coding(const struct sight *sight)
{
	const struct slice coding = SLICE("Transfer-Encoding");

	for (unsigned i = 0; i < sight->theirs.header_count; i++) {
		struct slice name = sight->theirs.headers[i].name;

		if (name.length > coding.length &&
		    slice_same((struct slice){name.at, coding.length}, coding))
			return true;
	}
	return false;
}

static bool like_coding(const struct sight *sight)
{
	enum http_errno error = HTTP_PARSER_ERRNO(&sight->theirs.parser);

	return (error == HPE_UNEXPECTED_CONTENT_LENGTH || error == HPE_INVALID_TRANSFER_ENCODING) &&
	       has_like_coding(sight);
}

/* RFC 9110, section 5.6.3: tabs are blanks, also around a length or a coding. */
static bool tabs_beside(const struct sight *sight)
{
	enum http_errno error = HTTP_PARSER_ERRNO(&sight->theirs.parser);

	return (error == HPE_INVALID_CONTENT_LENGTH || error == HPE_INVALID_TRANSFER_ENCODING) &&
	       memchr(sight->head.at, '\t', sight->head.length);
}

static bool (*const refused_by_them[])(const struct sight *sight) = {unknown_method, like_coding,
								     tabs_beside};

/* --- both accept -------------------------------------------------------------------------- */

static bool is_no_list(struct slice text, size_t at)
{
	return is_no_token(text, at) && !strchr(" \t,", text.at[at]);
}

/* Two tokens with a blank between them, but no comma. */
static bool is_gap(struct slice text, size_t at)
{
	size_t next = at + 1;

	while (next < text.length && strchr(" \t", text.at[next]))
		next++;
	return !is_no_token(text, at) && next > at + 1 && next < text.length &&
	       !is_no_token(text, next);
}

/* RFC 9110, section 5.6.1: whether a list has that element. */
static bool lists(struct slice list, const char *element)
{
	while (list.length) {
		const char *comma = memchr(list.at, ',', list.length);
		size_t length = comma ? (size_t)(comma - list.at) : list.length;

		if (slice_is(trim((struct slice){list.at, length}), element))
			return true;
		length += comma != NULL;
		list = (struct slice){list.at + length, list.length - length};
	}
	return false;
}

/* Blanks by RFC 9110, section 5.6.3, also at the end; they take them for a part of the element. */
static bool has_tabs(const struct sight *sight, const char *name)
{
	for (unsigned i = 0; i < sight->theirs.header_count; i++) {
		struct slice value = sight->theirs.headers[i].value;

		if (slice_is(sight->theirs.headers[i].name, name) && value.length &&
		    memchr(value.at, '\t', value.length))
			return true;
	}
	return false;
}

/* An empty element (RFC 9110, section 5.6.1.2: must be ignored). */
static bool is_missed(struct slice text, size_t at)
{
	if (text.at[at] != ',')
		return false;
	while (at > 0 && text.at[at - 1] == ' ')
		at--;
	return at == 0 || text.at[at - 1] == ',';
}

/*
 * An element that is a prefix of one that they know, such as "c" of "close": they skip
 * the next one too.
 */
static bool is_cut(struct slice text, size_t at)
{
	static const char *const known[] = {"close", "keep-alive", "upgrade"};
	size_t begin = at, length = 0;

	while (begin > 0 && strchr(" \t", text.at[begin - 1]))
		begin--;
	while (at + length < text.length && !strchr(" \t,", text.at[at + length]))
		length++;
	if ((begin > 0 && text.at[begin - 1] != ',') || length == 0)
		return false;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (length < strlen(known[i]) && strncasecmp(text.at + at, known[i], length) == 0)
			return true;
	return false;
}

/*
 * RFC 9112, section 9.3: close overrides keep-alive.  RFC 9110, section 7.6.1, defines
 * a list, which we must read as such; they differ for empty or truncated elements,
 * beside tabs, and for close beside keep-alive in HTTP/1.0, and obey Proxy-Connection,
 * which is not a field of HTTP (RFC 9112, section C.2.2).
 */
static void check_connection(const struct sight *sight)
{
	const unsigned both = F_CONNECTION_CLOSE | F_CONNECTION_KEEP_ALIVE;
	bool ours = sight->request.keep_alive, known;
	struct slice value, other;
	unsigned count = count_of(sight, "Connection", &value);
	bool is_list = count <= 1 && !has(value, is_no_list) && !has(value, is_gap);

	if (is_list)
		MUST(ours == (!lists(value, "close") &&
			      (sight->request.minor || lists(value, "keep-alive"))));
	known = count_of(sight, "Proxy-Connection", &other) || has_tabs(sight, "Connection") ||
		has(value, is_missed) || has(value, is_cut) ||
		(sight->theirs.parser.flags & both) == both;
	MUST(ours == http_should_keep_alive(&sight->theirs.parser) || known || !is_list);
}

static bool same(struct slice a, struct slice b)
{
	return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

static void check_same(const struct sight *sight)
{
	const struct theirs *theirs = &sight->theirs;
	const struct request *ours = &sight->request;

	/* Both find the same end: a body, or another request, follows. */
	MUST(theirs->end == sight->head.length);
	MUST(same(ours->method_name,
		  (struct slice){http_method_str(theirs->parser.method),
				 strlen(http_method_str(theirs->parser.method))}));
	MUST(same(ours->target, theirs->url));
	MUST(theirs->parser.http_major == 1);
	MUST(ours->minor == (theirs->parser.http_minor != 0));
	MUST(ours->header_count == theirs->header_count);
	for (unsigned i = 0; i < ours->header_count; i++) {
		MUST(same(ours->headers[i].name, theirs->headers[i].name));
		MUST(same(ours->headers[i].value, theirs->headers[i].value.at
							  ? trim(theirs->headers[i].value)
							  : (struct slice){"", 0}));
	}
	/* They take a tab after a coding for a part of its name. */
	MUST(ours->chunked == !!(theirs->parser.flags & F_CHUNKED) ||
	     has_tabs(sight, "Transfer-Encoding") || has_like_coding(sight));
	if (theirs->parser.flags & F_CONTENTLENGTH)
		MUST(ours->content_length == theirs->parser.content_length);
	else
		MUST(ours->content_length == 0);
	check_connection(sight);
}

static void expect_listed(const struct sight *sight, bool (*const *kinds)(const struct sight *),
			  size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (kinds[i](sight))
			return;
	fprintf(stderr, "ours: %d, theirs: %s\n", sight->status,
		http_errno_name(HTTP_PARSER_ERRNO(&sight->theirs.parser)));
	MUST(!"this disagreement is listed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sight sight;
	size_t length = request_head_length((const char *)data, size, 0);
	bool theirs;
	char *head;

	if (length == 0 || length > REQUEST_HEAD_MAX)
		return -1;
	head = exact_copy(data, length);
	sight.head = (struct slice){head, length};
	sight.status = request_parse(&sight.request, head, length);
	theirs_parse(&sight.theirs, head, length, NULL);
	theirs = sight.theirs.complete && !theirs_refused(&sight.theirs);
	if (sight.status == 0 && theirs)
		check_same(&sight);
	else if (theirs)
		expect_listed(&sight, refused_by_us,
			      sizeof(refused_by_us) / sizeof(refused_by_us[0]));
	else if (sight.status == 0)
		expect_listed(&sight, refused_by_them,
			      sizeof(refused_by_them) / sizeof(refused_by_them[0]));
	free(head);
	return 0;
}
