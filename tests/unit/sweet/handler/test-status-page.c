/* SPDX-License-Identifier: MIT */
/*
 * test-status-page.c - unit tests of status-page.c: the page is complete, loads
 * nothing from other servers, and works under its security policy.
 */
#include <glib.h>
#include <string.h>
#include <nabc.h>

#include "handler/status-page.h"

#include "status-fixture.h"
#include "suite.h"

static char *between(const GString *page, const char *open, const char *close)
{
	const char *start = strstr(page->str, open), *end;

	ck_assert_ptr_nonnull(start);
	start += strlen(open);
	end = strstr(start, close);
	ck_assert_ptr_nonnull(end);
	ck_assert_ptr_null(strstr(start, open));
	return g_strndup(start, (gsize)(end - start));
}

START_TEST(test_alone)
{
	GString *page = status_page();
	const char *at = page->str;

	ck_assert(g_str_has_prefix(at, "<!DOCTYPE html>\n"));
	ck_assert(g_str_has_suffix(at, "</html>\n"));
	ck_assert_uint_eq(strlen(at), page->len);
	/* The only URLs are names that are never requested: those of SVG. */
	while ((at = strstr(at, "http"))) {
		ck_assert_msg(g_str_has_prefix(at, "http://www.w3.org/2000/svg'") ||
				      g_str_has_prefix(at, "http-equiv"),
			      "%.60s", at);
		at++;
	}
	/* What the policy would forbid. */
	has_not(page, " style=");
	has_not(page, " onclick=");
	has_not(page, "eval(");
	has_not(page, "innerHTML");
	has_not(page, "url(");
	has_not(page, "@import");
	has_not(page, "<script src");
	g_string_free(page, TRUE);
}
END_TEST

static void check_hash(const char *policy, const char *kind, const char *text)
{
	g_autofree char *hex = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
	guint8 digest[32];
	g_autofree char *base64 = NULL, *wanted = NULL;

	for (unsigned i = 0; i < sizeof(digest); i++)
		digest[i] = (guint8)(g_ascii_xdigit_value(hex[2 * i]) * 16 +
				     g_ascii_xdigit_value(hex[2 * i + 1]));
	base64 = g_base64_encode(digest, sizeof(digest));
	wanted = g_strdup_printf("; %s-src 'sha256-%s';", kind, base64);
	ck_assert_msg(strstr(policy, wanted), "no %s in %s", wanted, policy);
}

START_TEST(test_policy)
{
	GString *page = status_page(), *head = g_string_new("X: y\r\n");
	g_autofree char *style = between(page, "<style>", "</style>");
	g_autofree char *script = between(page, "<script>", "</script>");

	status_page_policy(head);
	ck_assert(g_str_has_prefix(head->str,
				   "X: y\r\nContent-Security-Policy: default-src 'none'; "));
	ck_assert(g_str_has_suffix(head->str, "\r\n"));
	ck_assert_ptr_eq(strchr(head->str + 6, '\n'), head->str + head->len - 1);
	check_hash(head->str, "style", style);
	check_hash(head->str, "script", script);
	has_not(head, "unsafe");
	g_string_free(head, TRUE);
	g_string_free(page, TRUE);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_alone);
	tcase_add_test(tcase, test_policy);
}

RUN_SUITE("status-page", fill)
