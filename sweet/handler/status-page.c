/* SPDX-License-Identifier: MIT */
/*
 * status-page.c - see status-page.h.  No state: the hashes are computed on each request, which is
 * rare, so that they always match the page.
 */
#include <string.h>

#include "handler/status-page.h"

GString *status_page(void)
{
	return g_string_new_len((const char *)status_html, (gssize)status_html_length);
}

/* Adds the hash of the text between the only tags of that name. */
static void add_hash(GString *head, const char *tag)
{
	const char *page = (const char *)status_html;
	char *open = g_strdup_printf("\n<%s>", tag), *close = g_strdup_printf("</%s>\n", tag);
	const char *start = g_strstr_len(page, (gssize)status_html_length, open) + strlen(open);
	const char *end = g_strstr_len(start, (gssize)(page + status_html_length - start), close);
	GChecksum *checksum = g_checksum_new(G_CHECKSUM_SHA256);
	guint8 digest[32];
	gsize length = sizeof(digest);
	char *text;

	g_checksum_update(checksum, (const guchar *)start, end - start);
	g_checksum_get_digest(checksum, digest, &length);
	text = g_base64_encode(digest, length);
	g_string_append_printf(head, "; %s-src 'sha256-%s'", tag, text);
	g_free(text);
	g_checksum_free(checksum);
	g_free(open);
	g_free(close);
}

void status_page_policy(GString *head)
{
	g_string_append(head, "Content-Security-Policy: default-src 'none'");
	add_hash(head, "style");
	add_hash(head, "script");
	g_string_append(head, "; connect-src 'self'; img-src data:; base-uri 'none'"
			      "; form-action 'none'; frame-ancestors 'none'\r\n");
}
