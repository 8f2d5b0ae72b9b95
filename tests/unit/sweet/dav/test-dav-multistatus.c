/* SPDX-License-Identifier: MIT */
/*
 * test-dav-multistatus.c - unit tests of dav-multistatus.c: whatever a name has, the text is XML
 * that names the same path.
 */
#include <glib.h>
#include <string.h>

#include "base/slice.h"
#include "dav/dav-multistatus.h"
#include "dav/dav-xml.h"
#include "http/uri.h"

#include "suite.h"

static const char *const paths[] = {
	"/", "/a b", "/<a>&\"'", "/ä", "/\xff\xfe", "/%41", "/a?b#c", "/]]>", "/a;b=c,d",
};

/* Returns the text of an element's only child. */
static const char *text_of(const struct dav_node *node)
{
	ck_assert_uint_eq(dav_node_children(node), 1);
	return dav_node_at(node, 0)->text->str;
}

START_TEST(test_paths)
{
	GString *text = dav_multistatus_begin();
	struct dav_node *root;
	char path[64];

	for (unsigned i = 0; i < G_N_ELEMENTS(paths); i++)
		dav_multistatus_add(text, paths[i], 423, i % 2 ? "some-condition" : NULL);
	dav_multistatus_end(text);
	root = dav_xml_read(text->str, text->len);
	ck_assert_ptr_nonnull(root);
	ck_assert(dav_node_is(root, "multistatus"));
	for (unsigned i = 0, at = 0; i < G_N_ELEMENTS(paths); i++, at += 2) {
		const struct dav_node *response = dav_node_at(root, at);
		const char *href = text_of(dav_node_child(response, "href"));

		ck_assert_int_gt(uri_decode_path((struct slice){href, strlen(href)},
						 URI_SLASH_REFUSE, path, sizeof(path)),
				 0);
		ck_assert_str_eq(path, paths[i]);
		ck_assert_str_eq(text_of(dav_node_child(response, "status")),
				 "HTTP/1.1 423 Locked");
		ck_assert(!dav_node_child(response, "error") == !(i % 2));
	}
	dav_xml_free(root);
	g_string_free(text, TRUE);
}
END_TEST

static unsigned count_stats(const char *first, const char *second)
{
	GString *one = g_string_new(first), *other = g_string_new(second);
	struct dav_propstat stats[] = {{200, one}, {404, other}};
	GString *text = dav_multistatus_begin();
	struct dav_node *root;
	unsigned count;

	dav_multistatus_properties(text, "/a", stats, 2);
	dav_multistatus_end(text);
	root = dav_xml_read(text->str, text->len);
	ck_assert_ptr_nonnull(root);
	count = dav_node_children(dav_node_at(root, 0)) - 1;
	dav_xml_free(root);
	g_string_free(text, TRUE);
	g_string_free(one, TRUE);
	g_string_free(other, TRUE);
	return count;
}

START_TEST(test_properties)
{
	ck_assert_uint_eq(count_stats("", ""), 1);
	ck_assert_uint_eq(count_stats("<a/>", ""), 1);
	ck_assert_uint_eq(count_stats("", "<a/>"), 1);
	ck_assert_uint_eq(count_stats("<a/>", "<b/>"), 2);
}
END_TEST

START_TEST(test_names)
{
	GString *text = g_string_new(NULL);

	dav_write_name(text, "DAV:", "a");
	dav_write_name(text, "", "b");
	dav_write_name(text, "u\"&", "c");
	ck_assert_str_eq(text->str, "<D:a/><b/><X:c xmlns:X=\"u&quot;&amp;\"/>");
	g_string_free(text, TRUE);
}
END_TEST

START_TEST(test_errors)
{
	GString *text = dav_error_text("lock-token-submitted", "/a&b");
	struct dav_node *root = dav_xml_read(text->str, text->len);

	ck_assert_ptr_nonnull(root);
	ck_assert(dav_node_is(root, "error"));
	ck_assert_str_eq(
		text_of(dav_node_child(dav_node_child(root, "lock-token-submitted"), "href")),
		"/a%26b");
	dav_xml_free(root);
	g_string_free(text, TRUE);
	text = dav_error_text("propfind-finite-depth", NULL);
	root = dav_xml_read(text->str, text->len);
	ck_assert_ptr_nonnull(dav_node_child(root, "propfind-finite-depth"));
	dav_xml_free(root);
	g_string_free(text, TRUE);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_paths);
	tcase_add_test(tcase, test_properties);
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_errors);
}

RUN_SUITE("dav-multistatus", fill)
