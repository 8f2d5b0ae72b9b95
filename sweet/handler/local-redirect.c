/* SPDX-License-Identifier: MIT */
/*
 * local-redirect.c - see local-redirect.h.
 */

#include <nabc.h>
#include <stdbool.h>

#include "base/slice.h"
#include "base/syntax.h"
#include "core/transaction.h"
#include "handler/local-redirect.h"
#include "http/request-keep.h"
#include "http/request.h"
#include "log/log.h"

#define REDIRECTS_MAX 10

/* Whether the field describes a body, which the new request does not have. */
static bool is_of_body(struct slice name)
{
	return slice_is(name, "Content-Length") || slice_is(name, "Content-Type") ||
	       slice_is(name, "Transfer-Encoding") || slice_is(name, "Expect");
}

static void append_field(GString *text, struct slice name, struct slice value)
{
	g_string_append_printf(text, "%.*s: %.*s\r\n", (int)name.length, name.at, (int)value.length,
			       value.at);
}

static bool is_escape(const char *at, const char *end)
{
	return end - at >= 3 && g_ascii_isxdigit(at[1]) && g_ascii_isxdigit(at[2]);
}

/*
 * Programs write names as they are: with blanks, UTF-8 and all else that a client escapes.  Escapes
 * stay; a '%' that begins none is one of a name.
 */
static void append_target(GString *text, struct slice target)
{
	const char *end = target.at + target.length;

	for (const char *at = target.at; at < end; at++)
		if (syntax_is(*at, SYNTAX_TARGET) && (*at != '%' || is_escape(at, end)))
			g_string_append_c(text, *at);
		else
			g_string_append_printf(text, "%%%02X", (unsigned char)*at);
}

GString *local_redirect_request(struct transaction *transaction, const struct kept_request *kept,
				struct slice target, struct request *request, bool *good)
{
	GString *text = g_string_sized_new(kept->length + target.length);

	request_recall(request, kept);
	g_string_append(text, transaction->head_only ? "HEAD " : "GET ");
	append_target(text, target);
	g_string_append_printf(text, " HTTP/1.%u\r\n", request->minor);
	/* The host of an absolute target replaces the Host field. */
	if (request->host.length || request_find(request, "Host"))
		append_field(text, (struct slice){"Host", 4}, request->host);
	for (unsigned i = 0; i < request->header_count; i++) {
		const struct request_header *field = &request->headers[i];

		if (!is_of_body(field->name) && !slice_is(field->name, "Host"))
			append_field(text, field->name, field->value);
	}
	g_string_append(text, "\r\n");
	*good = ++transaction->route.redirects <= REDIRECTS_MAX &&
		!request_parse(request, text->str, text->len);
	if (!*good)
		log_warning("%s: a program redirects to \"%.*s\", %s",
			    transaction->peer.remote_addr, (int)target.length, target.at,
			    transaction->route.redirects > REDIRECTS_MAX
				    ? "for the eleventh time: refused"
				    : "which is not a path: refused");
	return text;
}
