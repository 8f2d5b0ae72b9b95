/* SPDX-License-Identifier: MIT */
/*
 * forwarded.c - see forwarded.h.  Pure.
 *
 * What cannot be read ends the list, and the client is unknown: clients write the beginning of the
 * list, and so must not become the proxy that passed it on.  For the same reason the fields
 * X-Forwarded-* have no quotation marks, in which a client could enclose what the proxy adds, and
 * those of Forwarded must be closed.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "base/slice.h"
#include "http/field.h"
#include "http/forwarded.h"
#include "http/request-internal.h"
#include "http/request.h"

/* The elements of a list that may be in several fields; only the last ones are kept. */
struct hops {
	struct slice at[FORWARDED_HOPS_MAX];
	unsigned count;
};

/* Whether all quoted strings are whole values of parameters (RFC 7239, section 4). */
static bool quotes_well(struct slice value)
{
	bool quoted = false, closed = false;

	for (size_t i = 0; i < value.length; i++) {
		char c = value.at[i];

		if (quoted && c == '\\') {
			i++;
		} else if (c == '"') {
			if (!quoted && (i == 0 || value.at[i - 1] != '='))
				return false;
			closed = quoted;
			quoted = !quoted;
		} else if (c == ',' || c == ';') {
			closed = false;
		} else if (closed && !quoted && c != ' ' && c != '\t') {
			return false;
		}
	}
	return !quoted;
}

static void add_hop(struct hops *hops, struct slice hop)
{
	if (hops->count == FORWARDED_HOPS_MAX)
		memmove(hops->at, hops->at + 1, --hops->count * sizeof(hops->at[0]));
	hops->at[hops->count++] = hop;
}

/* As field_part(), of a list that has no quoted strings. */
static bool plain_part(struct slice *rest, struct slice *part)
{
	const char *comma;

	if (!rest->at)
		return false;
	comma = memchr(rest->at, ',', rest->length);
	if (comma) {
		size_t length = (size_t)(comma - rest->at);

		*part = field_trim((struct slice){rest->at, length});
		*rest = (struct slice){comma + 1, rest->length - length - 1};
	} else {
		*part = field_trim(*rest);
		*rest = (struct slice){NULL, 0};
	}
	return true;
}

/* A field whose quotation marks are wrong is one element; plain: there are none. */
static void collect(struct hops *hops, const struct request *request, const char *name, bool plain)
{
	hops->count = 0;
	for (unsigned i = 0; i < request->header_count; i++) {
		struct slice rest = request->headers[i].value, part;

		if (!slice_is(request->headers[i].name, name))
			continue;
		if (!plain && !quotes_well(rest)) {
			add_hop(hops, rest);
			continue;
		}
		while (plain ? plain_part(&rest, &part) : field_part(&rest, ',', &part))
			if (part.length)
				add_hop(hops, part);
	}
}

static struct slice unquote(struct slice value)
{
	if (value.length < 2 || value.at[0] != '"' || value.at[value.length - 1] != '"')
		return value;
	return (struct slice){value.at + 1, value.length - 2};
}

/* Returns the value of a parameter of an element of Forwarded; at is NULL if there is none. */
static struct slice parameter(struct slice element, const char *name)
{
	struct slice part;

	while (field_part(&element, ';', &part)) {
		const char *equals = memchr(part.at, '=', part.length);
		size_t length = equals ? (size_t)(equals - part.at) : 0;

		if (equals && slice_is((struct slice){part.at, length}, name))
			return unquote((struct slice){equals + 1, part.length - length - 1});
	}
	return (struct slice){0};
}

/* Removes ":port"; of an IPv6 address the brackets, too. */
static struct slice without_port(struct slice node)
{
	const char *end = node.at + node.length, *colon;

	if (!node.length)
		return node;
	if (node.at[0] == '[') {
		const char *close = memchr(node.at, ']', node.length);

		if (!close || (close + 1 < end && close[1] != ':'))
			return (struct slice){0};
		return (struct slice){node.at + 1, (size_t)(close - node.at) - 1};
	}
	colon = memchr(node.at, ':', node.length);
	/* Several colons: an IPv6 address, as many proxies write it. */
	if (colon && !memchr(colon + 1, ':', (size_t)(end - colon - 1)))
		node.length = (size_t)(colon - node.at);
	return node;
}

/* Returns false for what is no address: "unknown", a name, or nonsense. */
static bool read_address(struct sockaddr_storage *address, struct slice node)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)address;
	char text[INET6_ADDRSTRLEN];

	node = without_port(node);
	if (!node.length || node.length >= sizeof(text) || memchr(node.at, '\0', node.length))
		return false;
	memcpy(text, node.at, node.length);
	text[node.length] = '\0';
	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
		address->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
		address->ss_family = AF_INET6;
	return address->ss_family != AF_UNSPEC;
}

/* Whether a proxy says that it does not name the client (RFC 7239, section 6). */
static bool is_unnamed(struct slice element, struct slice node)
{
	if (!node.at)
		return memchr(element.at, '=', element.length);
	node = without_port(node);
	return slice_is(node, "unknown") || (node.length > 1 && node.at[0] == '_');
}

/* Sets the client; returns the number of its hop, from the right, or -1 if there is none. */
static int find_client(struct forwarded *forwarded, const struct hops *hops,
		       enum forwarded_fields fields, forwarded_trusts *trusts, const void *context)
{
	int found = -1;

	for (unsigned i = 0; i < hops->count; i++) {
		struct slice element = hops->at[hops->count - 1 - i];
		bool broken = fields != FORWARDED_X && !quotes_well(element);
		struct slice node = fields == FORWARDED_X ? element : parameter(element, "for");
		struct sockaddr_storage address;

		if (broken || !read_address(&address, node)) {
			if (broken || !is_unnamed(element, node))
				forwarded->wrong = element;
			forwarded->client.ss_family = AF_UNSPEC;
			forwarded->unknown = true;
			break;
		}
		forwarded->client = address;
		found = (int)i;
		if (!trusts((const struct sockaddr *)&address, context))
			break;
	}
	return found;
}

static void take_host(struct forwarded *forwarded, struct slice host)
{
	if (host.length && request_is_host(host))
		forwarded->host = host;
}

static void take_scheme(struct forwarded *forwarded, struct slice scheme)
{
	if (slice_is(scheme, "http") || slice_is(scheme, "https"))
		forwarded->scheme = scheme;
}

/* Returns the element of a field X-Forwarded-* for that hop. */
static struct slice element_of(const struct request *request, const char *name, unsigned hops,
			       unsigned hop)
{
	struct hops list;

	collect(&list, request, name, true);
	if (list.count == 0)
		return (struct slice){0};
	return list.at[list.count - 1 - (list.count == hops ? hop : 0)];
}

void forwarded_read(struct forwarded *forwarded, const struct request *request,
		    enum forwarded_fields fields, forwarded_trusts *trusts, const void *context)
{
	struct hops hops;
	int found;
	unsigned hop;

	*forwarded = (struct forwarded){.client.ss_family = AF_UNSPEC};
	collect(&hops, request, fields == FORWARDED_X ? "X-Forwarded-For" : "Forwarded",
		fields == FORWARDED_X);
	found = find_client(forwarded, &hops, fields, trusts, context);
	/* What stands beside nonsense is not taken, either. */
	if (found < 0 && forwarded->wrong.length)
		return;
	hop = found < 0 ? 0 : (unsigned)found;
	if (fields == FORWARDED_X) {
		take_scheme(forwarded, element_of(request, "X-Forwarded-Proto", hops.count, hop));
		take_host(forwarded, element_of(request, "X-Forwarded-Host", hops.count, hop));
	} else if (hops.count) {
		struct slice element = hops.at[hops.count - 1 - hop];

		take_scheme(forwarded, parameter(element, "proto"));
		take_host(forwarded, parameter(element, "host"));
	}
}

/* Any field by which proxies name a client or its request: a program could believe it. */
static bool is_of_family(struct slice name)
{
	static const struct slice names[] = {SLICE_OF("Forwarded"), SLICE_OF("X-Forwarded"),
					     SLICE_OF("X-Real-IP")};
	static const char x[] = "X-Forwarded-";

	return slice_is_one_of(name, names, sizeof(names) / sizeof(names[0])) ||
	       (name.length >= sizeof(x) - 1 &&
		slice_is((struct slice){name.at, sizeof(x) - 1}, x));
}

static bool has_family(const struct request *request)
{
	for (unsigned i = 0; i < request->header_count; i++)
		if (is_of_family(request->headers[i].name))
			return true;
	return false;
}

static void add_slice(GString *text, struct slice slice)
{
	g_string_append_len(text, slice.at, (gssize)slice.length);
}

static void add_field(GString *text, struct slice name, struct slice value)
{
	add_slice(text, name);
	g_string_append(text, ": ");
	add_slice(text, value);
	g_string_append(text, "\r\n");
}

GString *forwarded_rewrite(const struct request *request, const struct forwarded *forwarded)
{
	bool other_host = forwarded->host.length != 0;
	GString *text;

	if (!other_host && !has_family(request))
		return NULL;
	text = g_string_sized_new(request->head.length + 64);
	add_slice(text, request->method_name);
	g_string_append_c(text, ' ');
	if (other_host) {
		/* The host of an absolute target would count. */
		add_slice(text, request->path);
		if (request->query.length) {
			g_string_append_c(text, '?');
			add_slice(text, request->query);
		}
	} else {
		add_slice(text, request->target);
	}
	g_string_append_printf(text, " HTTP/1.%u\r\n", request->minor);
	if (other_host)
		add_field(text, SLICE("Host"), forwarded->host);
	for (unsigned i = 0; i < request->header_count; i++) {
		const struct request_header *field = &request->headers[i];

		if (!is_of_family(field->name) && !(other_host && slice_is(field->name, "Host")))
			add_field(text, field->name, field->value);
	}
	g_string_append(text, "\r\n");
	return text;
}
