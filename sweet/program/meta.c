/* SPDX-License-Identifier: MIT */
/*
 * meta.c - turns a request into the variables for a worker, a CGI program or a
 * FastCGI application.
 *
 * Reads the request and its context, writes into the caller's buffer, and has no
 * state: any thread may call it.  Names come from the client, so only names that
 * map to exactly one variable, and back, pass.
 */

#include <stdbool.h>
#include <string.h>

#include "base/decimal.h"
#include "http/field.h"
#include "http/request.h"
#include "program/meta.h"

struct out {
	char *at;
	char *end;
	char *entry; /* the beginning of the current one */
	bool full;   /* something did not fit; all further output is dropped */
	const struct meta_context *context;
};

static void put(struct out *out, const char *text, size_t length)
{
	if (out->full || length > (size_t)(out->end - out->at)) {
		out->full = true;
		return;
	}
	if (length > 0) /* the pointer of an empty slice may be invalid */
		memcpy(out->at, text, length);
	out->at += length;
}

static void put_string(struct out *out, const char *text)
{
	put(out, text, strlen(text));
}

static void put_slice(struct out *out, struct slice slice)
{
	put(out, slice.at, slice.length);
}

static void put_number(struct out *out, uint64_t number)
{
	char digits[DECIMAL_MAX];

	put(out, digits, (size_t)(decimal_write(digits, number) - digits));
}

/* Whether a list has a variable of the same name. */
static bool has_name(char **variables, const char *entry, size_t name)
{
	for (; variables && *variables; variables++)
		if (strncmp(*variables, entry, name) == 0 && (*variables)[name] == '=')
			return true;
	return false;
}

static bool is_replaced(const struct out *out, const char *entry)
{
	char **const *variables = out->context->variables;
	size_t name;

	if (!variables[0] && !variables[1])
		return false;
	name = strcspn(entry, "=");
	return has_name(variables[0], entry, name) || has_name(variables[1], entry, name);
}

static void finish(struct out *out)
{
	put(out, "", 1);
	if (out->full)
		return;
	if (is_replaced(out, out->entry))
		out->at = out->entry;
	out->entry = out->at;
}

static void add_string(struct out *out, struct slice name, const char *value)
{
	put_slice(out, name);
	put_string(out, value);
	finish(out);
}

static void add_slice(struct out *out, struct slice name, struct slice value)
{
	put_slice(out, name);
	put_slice(out, value);
	finish(out);
}

static void add_number(struct out *out, struct slice name, uint64_t value)
{
	put_slice(out, name);
	put_number(out, value);
	finish(out);
}

/* The host without its port; if there is no host, the server's address. */
static void add_server_name(struct out *out, const struct request *request,
			    const struct meta_context *context)
{
	struct slice host = request->host;
	const char *stop = NULL;
	bool bare_ipv6;

	if (host.length > 0) {
		if (host.at[0] == '[') {
			stop = memchr(host.at, ']', host.length);
			if (stop)
				stop++;
		} else {
			stop = memchr(host.at, ':', host.length);
		}
		if (stop)
			host.length = (size_t)(stop - host.at);
		add_slice(out, SLICE("SERVER_NAME="), host);
		return;
	}
	bare_ipv6 = strchr(context->server_addr, ':') && context->server_addr[0] != '[';
	put_string(out, bare_ipv6 ? "SERVER_NAME=[" : "SERVER_NAME=");
	put_string(out, context->server_addr);
	put_string(out, bare_ipv6 ? "]" : "");
	finish(out);
}

/* Programs expect a path here, whatever the form of the target. */
static void add_request_uri(struct out *out, const struct request *request)
{
	if (request->target.length > 0 && request->target.at[0] == '/') {
		add_slice(out, SLICE("REQUEST_URI="), request->target);
		return;
	}
	put_string(out, "REQUEST_URI=");
	put_slice(out, request->path);
	if (request->query.length > 0) {
		put_string(out, "?");
		put_slice(out, request->query);
	}
	finish(out);
}

static void add_standard(struct out *out, const struct request *request,
			 const struct meta_context *context)
{
	const struct slice *type = request_find(request, "Content-Type");

	add_string(out, SLICE("GATEWAY_INTERFACE="), "CGI/1.1");
	add_string(out, SLICE("PATH_INFO="), context->path_info);
	add_slice(out, SLICE("QUERY_STRING="), context->query.at ? context->query : request->query);
	add_string(out, SLICE("REMOTE_ADDR="), context->remote_addr);
	add_number(out, SLICE("REMOTE_PORT="), context->remote_port);
	if (context->remote_user && *context->remote_user) {
		add_string(out, SLICE("AUTH_TYPE="), "Basic");
		add_string(out, SLICE("REMOTE_USER="), context->remote_user);
	}
	add_slice(out, SLICE("REQUEST_METHOD="), request->method_name);
	add_request_uri(out, request);
	add_string(out, SLICE("SCRIPT_NAME="), context->script_name);
	add_server_name(out, request, context);
	add_number(out, SLICE("SERVER_PORT="), context->server_port);
	add_string(out, SLICE("SERVER_PROTOCOL="),
		   context->http2   ? "HTTP/2.0"
		   : request->minor ? "HTTP/1.1"
				    : "HTTP/1.0");
	add_string(out, SLICE("SERVER_SOFTWARE="), context->software);
	if (context->https)
		add_string(out, SLICE("HTTPS="), "on");
	put_slice(out, context->tls_variables);
	out->entry = out->at;
	if (request_find(request, "Content-Length"))
		add_number(out, SLICE("CONTENT_LENGTH="), request->content_length);
	if (type)
		add_slice(out, SLICE("CONTENT_TYPE="), *type);
}

static void add_optional(struct out *out, struct slice name, const char *value)
{
	if (value)
		add_string(out, name, value);
}

/* Additional variables for CGI and FastCGI programs. */
static void add_extras(struct out *out, const struct meta_context *context)
{
	add_optional(out, SLICE("DOCUMENT_ROOT="), context->document_root);
	if (context->document_root && *context->path_info) {
		put_string(out, "PATH_TRANSLATED=");
		put_string(out, context->document_root);
		put_string(out, context->path_info);
		finish(out);
	}
	add_optional(out, SLICE("SCRIPT_FILENAME="), context->script_filename);
	add_optional(out, SLICE("REQUEST_SCHEME="), context->request_scheme);
	add_optional(out, SLICE("SERVER_ADDR="), context->local_addr);
	if (context->redirect_status > 0)
		add_number(out, SLICE("REDIRECT_STATUS="), (uint64_t)context->redirect_status);
	if (context->server_pid > 0)
		add_number(out, SLICE("NABC_SERVER_PID="), (uint64_t)context->server_pid);
}

static bool is_letter(char byte)
{
	byte |= 0x20;
	return byte >= 'a' && byte <= 'z';
}

static bool is_given(const char *text)
{
	return text && *text;
}

static bool is_withheld(struct slice name, const struct meta_context *context)
{
	static const struct slice names[] = {
		SLICE_OF("Proxy"),
		SLICE_OF("Proxy-Authorization"),
		SLICE_OF("Connection"),
		SLICE_OF("Keep-Alive"),
		SLICE_OF("Content-Length"),
		SLICE_OF("Content-Type"),
		SLICE_OF("Transfer-Encoding"),
		SLICE_OF("TE"),
		SLICE_OF("Trailer"),
		SLICE_OF("Upgrade"),
	};
	if (field_is_ambiguous(name))
		return true;
	if (slice_is(name, "Authorization"))
		return !context->authorization && !request_rules_have(context->rules, name);
	if (slice_is(name, "X-Request-Id"))
		return is_given(context->request_id);
	if (is_given(context->traceparent) &&
	    (slice_is(name, "traceparent") ||
	     (context->trace_begins && slice_is(name, "tracestate"))))
		return true;
	return slice_is_one_of(name, names, sizeof(names) / sizeof(names[0]));
}

static bool came_before(const struct request *request, unsigned index)
{
	unsigned i;

	for (i = 0; i < index; i++) {
		if (slice_same(request->headers[i].name, request->headers[index].name))
			return true;
	}
	return false;
}

static void put_variable_name(struct out *out, struct slice name)
{
	size_t i;

	put_string(out, "HTTP_");
	if (out->full || name.length > (size_t)(out->end - out->at)) {
		out->full = true;
		return;
	}
	for (i = 0; i < name.length; i++) {
		char byte = name.at[i];

		if (byte == '-')
			byte = '_';
		else if (is_letter(byte))
			byte &= ~0x20;
		*out->at++ = byte;
	}
	put(out, "=", 1);
}

/* Adds the field at index, joined with all later fields of its name. */
static void add_field(struct out *out, const struct request *request, unsigned index)
{
	const struct request_header *header = &request->headers[index];
	const char *separator = slice_is(header->name, "Cookie") ? "; " : ", ";
	unsigned i;

	put_variable_name(out, header->name);
	/* An absolute target overrides the Host field (RFC 9112, section 3.2.2). */
	put_slice(out, slice_is(header->name, "Host") ? request->host : header->value);
	for (i = index + 1; i < request->header_count; i++) {
		if (slice_same(header->name, request->headers[i].name)) {
			put_string(out, separator);
			put_slice(out, request->headers[i].value);
		}
	}
	finish(out);
}

/* Those of the operator. */
static void add_variables(struct out *out)
{
	char **const *lists = out->context->variables;

	for (unsigned i = 0; i < 2; i++)
		for (char **at = lists[i]; at && *at; at++)
			if (i == 0 || !has_name(lists[0], *at, strcspn(*at, "=")))
				put(out, *at, strlen(*at) + 1);
}

long meta_write(const struct request *request, const struct meta_context *context, char *out,
		size_t out_size)
{
	struct out result = {.at = out, .end = out + out_size, .entry = out, .context = context};
	unsigned i;

	add_standard(&result, request, context);
	add_extras(&result, context);
	if (is_given(context->request_id))
		add_string(&result, SLICE("HTTP_X_REQUEST_ID="), context->request_id);
	if (is_given(context->traceparent))
		add_string(&result, SLICE("HTTP_TRACEPARENT="), context->traceparent);
	if (context->upgrade) {
		add_string(&result, SLICE("HTTP_CONNECTION="), "Upgrade");
		add_string(&result, SLICE("HTTP_UPGRADE="), context->upgrade);
	}
	for (i = 0; i < request->header_count && !result.full; i++) {
		if (!is_withheld(request->headers[i].name, context) && !came_before(request, i))
			add_field(&result, request, i);
	}
	add_variables(&result);
	return result.full ? -1 : (long)(result.at - out);
}

struct slice meta_find(struct slice block, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = block.at; at < block.at + block.length; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return (struct slice){at + length + 1, strlen(at + length + 1)};
	return (struct slice){"", 0};
}
