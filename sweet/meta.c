/* SPDX-License-Identifier: MIT */
/*
 * meta.c - turns a request into the environment of a CGI worker.
 *
 * Reads the request and its context, writes into the caller's buffer, keeps
 * nothing: any thread may call it.  Names come from the client, so only those
 * that map to one variable in exactly one way get through.
 */
#include <meta.h>

struct out {
	char *at;
	char *end;
	bool full; /* something did not fit; nothing is written any more */
};

static void put(struct out *out, const char *text, size_t length)
{
	if (out->full || length > (size_t)(out->end - out->at)) {
		out->full = true;
		return;
	}
	if (length > 0) /* an empty slice may point nowhere */
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
	char digits[20]; /* of UINT64_MAX */
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	put(out, digits + at, sizeof(digits) - at);
}

static void finish(struct out *out)
{
	put(out, "", 1);
}

static void add_string(struct out *out, const char *name, const char *value)
{
	put_string(out, name);
	put_string(out, value);
	finish(out);
}

static void add_slice(struct out *out, const char *name, struct slice value)
{
	put_string(out, name);
	put_slice(out, value);
	finish(out);
}

static void add_number(struct out *out, const char *name, uint64_t value)
{
	put_string(out, name);
	put_number(out, value);
	finish(out);
}

/* The host without its port; without a host the address it was reached at. */
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
		add_slice(out, "SERVER_NAME=", host);
		return;
	}
	bare_ipv6 = strchr(context->server_addr, ':') && context->server_addr[0] != '[';
	put_string(out, bare_ipv6 ? "SERVER_NAME=[" : "SERVER_NAME=");
	put_string(out, context->server_addr);
	put_string(out, bare_ipv6 ? "]" : "");
	finish(out);
}

/* Programs expect a path here, whatever form the target was sent in. */
static void add_request_uri(struct out *out, const struct request *request)
{
	if (request->target.length > 0 && request->target.at[0] == '/') {
		add_slice(out, "REQUEST_URI=", request->target);
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

	add_string(out, "GATEWAY_INTERFACE=", "CGI/1.1");
	add_string(out, "PATH_INFO=", context->path_info);
	add_slice(out, "QUERY_STRING=", request->query);
	add_string(out, "REMOTE_ADDR=", context->remote_addr);
	add_number(out, "REMOTE_PORT=", context->remote_port);
	if (context->remote_user && *context->remote_user) {
		add_string(out, "AUTH_TYPE=", "Basic");
		add_string(out, "REMOTE_USER=", context->remote_user);
	}
	add_slice(out, "REQUEST_METHOD=", request->method_name);
	add_request_uri(out, request);
	add_string(out, "SCRIPT_NAME=", context->script_name);
	add_server_name(out, request, context);
	add_number(out, "SERVER_PORT=", context->server_port);
	add_string(out, "SERVER_PROTOCOL=", request->minor ? "HTTP/1.1" : "HTTP/1.0");
	add_string(out, "SERVER_SOFTWARE=", context->software);
	if (request_find(request, "Content-Length"))
		add_number(out, "CONTENT_LENGTH=", request->content_length);
	if (type)
		add_slice(out, "CONTENT_TYPE=", *type);
}

static bool is_letter(char byte)
{
	byte |= 0x20;
	return byte >= 'a' && byte <= 'z';
}

static bool is_withheld(struct slice name)
{
	static const char *const names[] = {
		"Proxy",	"Authorization",     "Proxy-Authorization",
		"Connection",	"Keep-Alive",	     "Content-Length",
		"Content-Type", "Transfer-Encoding", "TE",
		"Trailer",	"Upgrade",
	};
	size_t i;

	for (i = 0; i < name.length; i++) {
		char byte = name.at[i];

		if (!is_letter(byte) && !(byte >= '0' && byte <= '9') && byte != '-')
			return true;
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (slice_is(name, names[i]))
			return true;
	}
	return false;
}

static bool same_name(const struct request_header *a, const struct request_header *b)
{
	return a->name.length == b->name.length &&
	       strncasecmp(a->name.at, b->name.at, a->name.length) == 0;
}

static bool came_before(const struct request *request, unsigned index)
{
	unsigned i;

	for (i = 0; i < index; i++) {
		if (same_name(&request->headers[i], &request->headers[index]))
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

/* The field at index with all later ones of its name. */
static void add_field(struct out *out, const struct request *request, unsigned index)
{
	const struct request_header *header = &request->headers[index];
	const char *separator = slice_is(header->name, "Cookie") ? "; " : ", ";
	unsigned i;

	put_variable_name(out, header->name);
	/* An absolute target overrules the Host field (RFC 9112, section 3.2.2). */
	put_slice(out, slice_is(header->name, "Host") ? request->host : header->value);
	for (i = index + 1; i < request->header_count; i++) {
		if (same_name(header, &request->headers[i])) {
			put_string(out, separator);
			put_slice(out, request->headers[i].value);
		}
	}
	finish(out);
}

long meta_write(const struct request *request, const struct meta_context *context, char *out,
		size_t out_size)
{
	struct out result = {out, out + out_size, false};
	unsigned i;

	add_standard(&result, request, context);
	for (i = 0; i < request->header_count && !result.full; i++) {
		if (!is_withheld(request->headers[i].name) && !came_before(request, i))
			add_field(&result, request, i);
	}
	return result.full ? -1 : (long)(result.at - out);
}
