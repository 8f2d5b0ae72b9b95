/* SPDX-License-Identifier: MIT */
/*
 * upstream-request.c - see upstream-request.h.
 *
 * Nothing of the client's head is copied as it is: a line is written only from a name and a value
 * that were parsed.  Reads the request and its context, and has no state: any thread may call it.
 */

#include <stdbool.h>
#include <string.h>

#include "base/slice.h"
#include "base/syntax.h"
#include "http/field.h"
#include "http/request.h"
#include "program/upstream-request.h"
#include "http/uri.h"

struct out {
	char *at;
	char *end;
	bool full; /* something did not fit; all further output is dropped */
};

static void put(struct out *out, struct slice text)
{
	if (out->full || text.length > (size_t)(out->end - out->at)) {
		out->full = true;
		return;
	}
	if (text.length) /* the pointer of an empty slice may be invalid */
		memcpy(out->at, text.at, text.length);
	out->at += text.length;
}

static void put_string(struct out *out, const char *text)
{
	put(out, (struct slice){text, strlen(text)});
}

static void put_line(struct out *out, struct slice name, struct slice value)
{
	put(out, name);
	put(out, SLICE(": "));
	put(out, value);
	put(out, SLICE("\r\n"));
}

static int digit_of(char byte)
{
	return byte <= '9' ? byte - '0' : (byte | 0x20) - 'a' + 10;
}

/*
 * Whether the path, whose escapes were checked, is the decoded one without any other change than
 * that runs of slashes have become one.  The decoded path has no dot segment; so this has none.
 */
static bool is_plain(struct slice raw, const char *decoded)
{
	char before = '\0'; /* the last byte of the decoded path */
	size_t i = 0;

	while (i < raw.length) {
		char byte = raw.at[i];

		if (byte == '%' && raw.length - i < 3)
			return false;
		/* An escaped slash that is data. */
		if (byte == '%' && strncmp(decoded, "%2F", 3) == 0 && raw.at[i + 1] == '2' &&
		    (raw.at[i + 2] | 0x20) == 'f') {
			before = 'F';
			decoded += 3;
			i += 3;
			continue;
		}
		if (byte == '/' && before == '/') {
			i++;
			continue;
		}
		if (byte == '%')
			byte = (char)(digit_of(raw.at[i + 1]) << 4 | digit_of(raw.at[i + 2]));
		/* One that separates segments is sent as what it is. */
		if (byte == '\0' || byte != *decoded++ || (byte == '/' && raw.at[i] != '/'))
			return false;
		before = byte;
		i += raw.at[i] == '%' ? 3 : 1;
	}
	return *decoded == '\0';
}

/* Two slashes at the start of a reference begin a host, for who resolves it as one. */
static struct slice without_host(struct slice path)
{
	while (path.length > 1 && path.at[1] == '/') {
		path.at++;
		path.length--;
	}
	return path;
}

static void put_escaped(struct out *out, char byte)
{
	char escaped[3] = "";
	size_t length = uri_escape(byte, escaped);

	put(out, (struct slice){escaped, length});
}

static void put_target(struct out *out, const struct request *request, const char *path,
		       struct slice query)
{
	if (is_plain(request->path, path))
		put(out, without_host(request->path));
	else
		for (; *path; path++)
			put_escaped(out, *path);
	put(out, query.length ? SLICE("?") : SLICE(""));
	/* The query of a rule may have other bytes than a client can send. */
	for (size_t i = 0; i < query.length; i++)
		if (syntax_is(query.at[i], SYNTAX_TARGET))
			put(out, (struct slice){&query.at[i], 1});
		else
			put_escaped(out, query.at[i]);
}

static bool is_given(const char *text)
{
	return text && *text;
}

/* Whether the server has a field of its own, or the client's is of another trace. */
static bool is_replaced(struct slice name, const struct upstream_request_context *context)
{
	if (slice_is(name, "X-Request-Id"))
		return is_given(context->request_id);
	return is_given(context->traceparent) &&
	       (slice_is(name, "traceparent") ||
		(context->trace_begins && slice_is(name, "tracestate")));
}

static bool is_omitted(struct slice name, const struct upstream_request_context *context)
{
	static const struct slice names[] = {
		SLICE_OF("Connection"),
		SLICE_OF("Keep-Alive"),
		SLICE_OF("TE"),
		SLICE_OF("Trailer"),
		SLICE_OF("Upgrade"),
		SLICE_OF("Transfer-Encoding"),
		SLICE_OF("Content-Length"),
		SLICE_OF("Expect"),
		SLICE_OF("Host"),
		SLICE_OF("Proxy"),
		SLICE_OF("HTTP2-Settings"),
		SLICE_OF("Forwarded"),
		SLICE_OF("X-Forwarded-For"),
		SLICE_OF("X-Forwarded-Proto"),
		SLICE_OF("X-Real-IP"),
		SLICE_OF("X-Forwarded-Host"),
		SLICE_OF("X-Forwarded"),
		SLICE_OF("X-Forwarded-Port"),
		SLICE_OF("X-Forwarded-Ssl"),
		SLICE_OF("X-Forwarded-Server"),
	};

	if (field_is_ambiguous(name) ||
	    (name.length >= 6 && slice_is((struct slice){name.at, 6}, "Proxy-")))
		return true;
	if (slice_is(name, "Authorization"))
		return !context->authorization;
	return is_replaced(name, context) ||
	       slice_is_one_of(name, names, sizeof(names) / sizeof(names[0]));
}

/* Adds the fields that the client declares to be for one hop; returns false if too many. */
static bool find_options(const struct request *request, struct field_options *options)
{
	for (unsigned i = 0; i < request->header_count; i++)
		if (slice_is(request->headers[i].name, "Connection") &&
		    !field_options_add(options, request->headers[i].value))
			return false;
	return true;
}

/* HTTP/1.1 requires one; an address of IPv6 needs brackets. */
static void put_host(struct out *out, const struct request *request, const char *server_addr)
{
	bool bare = strchr(server_addr, ':') && server_addr[0] != '[';

	put(out, SLICE("Host: "));
	if (request->host.length) {
		put(out, request->host);
	} else {
		put_string(out, bare ? "[" : "");
		put_string(out, server_addr);
		put_string(out, bare ? "]" : "");
	}
	put(out, SLICE("\r\n"));
}

static void put_own(struct out *out, struct slice name, const char *value)
{
	if (is_given(value))
		put_line(out, name, (struct slice){value, strlen(value)});
}

static void put_forwarded(struct out *out, const struct request *request,
			  const struct upstream_request_context *context)
{
	put_line(out, SLICE("X-Forwarded-For"),
		 (struct slice){context->remote_addr, strlen(context->remote_addr)});
	put_line(out, SLICE("X-Forwarded-Proto"), context->https ? SLICE("https") : SLICE("http"));
	if (request->host.length)
		put_line(out, SLICE("X-Forwarded-Host"), request->host);
	put_own(out, SLICE("X-Request-Id"), context->request_id);
	put_own(out, SLICE("traceparent"), context->traceparent);
}

static bool has_option(const struct request *request, const char *option)
{
	for (unsigned i = 0; i < request->header_count; i++) {
		struct slice rest = request->headers[i].value, part;

		if (!slice_is(request->headers[i].name, "Connection"))
			continue;
		while (field_part(&rest, ',', &part))
			if (slice_is(part, option))
				return true;
	}
	return false;
}

const char *upstream_request_upgrade(const struct request *request, char **protocols)
{
	const struct slice *value = NULL;

	if (!protocols || !*protocols || request->method != METHOD_GET || request->minor == 0 ||
	    request->chunked || request->content_length || !has_option(request, "Upgrade"))
		return NULL;
	for (unsigned i = 0; i < request->header_count; i++) {
		if (!slice_is(request->headers[i].name, "Upgrade"))
			continue;
		if (value)
			return NULL;
		value = &request->headers[i].value;
	}
	for (; value && *protocols; protocols++)
		if (slice_is(*value, *protocols))
			return *protocols;
	return NULL;
}

long upstream_request_write(const struct request *request,
			    const struct upstream_request_context *context, char *out,
			    size_t out_size)
{
	struct out result = {out, out + out_size, false};
	struct field_options options = {0};

	if (!find_options(request, &options))
		return -1;
	put(&result, request->method_name);
	put(&result, SLICE(" "));
	put_target(&result, request, context->path, context->query);
	put(&result, SLICE(" HTTP/1.1\r\n"));
	put_host(&result, request, context->server_addr);
	for (unsigned i = 0; i < request->header_count && !result.full; i++) {
		const struct request_header *header = &request->headers[i];

		if (request_rules_have(context->rules, header->name) ||
		    (!is_omitted(header->name, context) &&
		     !field_options_have(&options, header->name)))
			put_line(&result, header->name, header->value);
	}
	put_forwarded(&result, request, context);
	if (context->upgrade) {
		put(&result, SLICE(UPSTREAM_REQUEST_UPGRADE));
		put_line(&result, SLICE("Upgrade"),
			 (struct slice){context->upgrade, strlen(context->upgrade)});
	}
	return result.full ? -1 : (long)(result.at - out);
}
