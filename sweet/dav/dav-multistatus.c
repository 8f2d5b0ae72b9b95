/* SPDX-License-Identifier: MIT */
/*
 * dav-multistatus.c - see dav-multistatus.h.  No state: any thread.
 */

#include <string.h>

#include "dav/dav-multistatus.h"
#include "dav/dav-xml.h"
#include "http/response.h"
#include "http/uri.h"

#define DECLARATION "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"

void dav_write_href(GString *to, const char *path)
{
	g_string_append(to, "<D:href>");
	for (; *path; path++) {
		char escaped[4] = {0};

		/* What a URL permits, XML may not. */
		if (*path == '&' || *path == '\'') {
			g_string_append_printf(to, "%%%02X", (unsigned char)*path);
			continue;
		}
		g_string_append_len(to, escaped, (gssize)uri_escape(*path, escaped));
	}
	g_string_append(to, "</D:href>");
}

GString *dav_multistatus_begin(void)
{
	return g_string_new(DECLARATION "<D:multistatus xmlns:D=\"DAV:\">");
}

void dav_multistatus_end(GString *to)
{
	g_string_append(to, "</D:multistatus>\n");
}

static void write_status(GString *to, int status)
{
	g_string_append_printf(to, "<D:status>HTTP/1.1 %d %s</D:status>", status,
			       response_reason(status));
}

void dav_multistatus_add(GString *to, const char *path, int status, const char *condition)
{
	g_string_append(to, "<D:response>");
	dav_write_href(to, path);
	write_status(to, status);
	if (condition)
		g_string_append_printf(to, "<D:error><D:%s/></D:error>", condition);
	g_string_append(to, "</D:response>\n");
}

void dav_multistatus_properties(GString *to, const char *path, const struct dav_propstat *stats,
				unsigned count)
{
	gsize all = 0;

	for (unsigned i = 0; i < count; i++)
		all += stats[i].properties->len;
	g_string_append(to, "<D:response>");
	dav_write_href(to, path);
	for (unsigned i = 0; i < count; i++) {
		if (!stats[i].properties->len && (all || i))
			continue;
		g_string_append_printf(to, "<D:propstat><D:prop>%s</D:prop>",
				       stats[i].properties->str);
		write_status(to, stats[i].status);
		g_string_append(to, "</D:propstat>");
	}
	g_string_append(to, "</D:response>\n");
}

void dav_write_name(GString *to, const char *space, const char *local)
{
	if (strcmp(space, "DAV:") == 0) {
		g_string_append_printf(to, "<D:%s/>", local);
	} else if (!*space) {
		g_string_append_printf(to, "<%s/>", local);
	} else {
		g_string_append_printf(to, "<X:%s xmlns:X=\"", local);
		dav_xml_escape(to, space);
		g_string_append(to, "\"/>");
	}
}

GString *dav_error_text(const char *condition, const char *path)
{
	GString *text = g_string_new(DECLARATION "<D:error xmlns:D=\"DAV:\">");

	if (path) {
		g_string_append_printf(text, "<D:%s>", condition);
		dav_write_href(text, path);
		g_string_append_printf(text, "</D:%s></D:error>\n", condition);
	} else {
		g_string_append_printf(text, "<D:%s/></D:error>\n", condition);
	}
	return text;
}
