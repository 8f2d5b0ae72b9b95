/* SPDX-License-Identifier: MIT */
/*
 * test-dav-xml.c - unit tests of dav-xml.c: trees, hostile documents, and elements that are written
 * again with the namespaces that they need.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "dav/dav-xml.h"

#include "suite.h"

static struct dav_node *read_text(const char *text)
{
	size_t length = strlen(text);
	char *copy = must_alloc(length);
	struct dav_node *root;

	memcpy(copy, text, length);
	root = dav_xml_read(copy, length);
	free(copy);
	return root;
}

static const char *const refused[] = {
	"",
	" ",
	"x",
	"<a>",
	"<a></b>",
	"<a/><b/>",
	"<a/>x",
	"<x:a/>",
	"<a x:b='1'/>",
	"<a xmlns:x=''/>",
	"<a b='1' b='2'/>",
	"<a>&b;</a>",
	"<a>&#0;</a>",
	"<a>\xff</a>",
	"<!DOCTYPE a><a/>",
	"<!DOCTYPE a SYSTEM '/etc/passwd'><a/>",
	"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
	"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
};

START_TEST(test_refused)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++)
		ck_assert_msg(!read_text(refused[i]), "%s", refused[i]);
}
END_TEST

START_TEST(test_limits)
{
	for (unsigned more = 0; more < 2; more++) {
		GString *deep = g_string_new(NULL), *wide = g_string_new("<a>");
		struct dav_node *root;

		for (unsigned i = 0; i < DAV_XML_DEPTH_MAX + more; i++)
			g_string_append(deep, "<a>");
		for (unsigned i = 0; i < DAV_XML_DEPTH_MAX + more; i++)
			g_string_append(deep, "</a>");
		for (unsigned i = 1; i < DAV_XML_NODES_MAX + more; i++)
			g_string_append(wide, "<b/>");
		g_string_append(wide, "</a>");
		root = read_text(deep->str);
		ck_assert((root == NULL) == (more == 1));
		dav_xml_free(root);
		root = read_text(wide->str);
		ck_assert((root == NULL) == (more == 1));
		dav_xml_free(root);
		g_string_free(deep, TRUE);
		g_string_free(wide, TRUE);
	}
}
END_TEST

START_TEST(test_tree)
{
	struct dav_node *root = read_text("<?xml version='1.0'?><x:a xmlns:x='DAV:'>t&amp;u<x:b/>"
					  "<b xmlns='other'/><x:c n='1'/></x:a>");
	const struct dav_node *c;

	ck_assert_ptr_nonnull(root);
	ck_assert(dav_node_is(root, "a"));
	ck_assert_uint_eq(dav_node_children(root), 4);
	ck_assert_str_eq(dav_node_at(root, 0)->text->str, "t&u");
	ck_assert(!dav_node_is(dav_node_at(root, 0), "a"));
	ck_assert(dav_node_is(dav_node_at(root, 1), "b"));
	ck_assert(!dav_node_is(dav_node_at(root, 2), "b"));
	c = dav_node_child(root, "c");
	ck_assert_ptr_nonnull(c);
	ck_assert_ptr_null(dav_node_child(root, "d"));
	ck_assert_str_eq(((struct dav_attribute *)c->attributes->pdata[0])->value, "1");
	dav_xml_free(root);
}
END_TEST

/* The first child of the root, as text; it must be read again as the same. */
static const struct {
	const char *from, *to;
} written[] = {
	{"<r><a/></r>", "<a/>"},
	{"<r><a>b</a></r>", "<a>b</a>"},
	{"<r xmlns='u'><a><b/></a></r>", "<a xmlns=\"u\"><b/></a>"},
	{"<r xmlns:p='u'><p:a><p:b/></p:a></r>", "<p:a xmlns:p=\"u\"><p:b/></p:a>"},
	{"<r xmlns:p='u'><a p:n='1'/></r>", "<a xmlns:p=\"u\" p:n=\"1\"/>"},
	{"<r xmlns='u'><a xmlns=''/></r>", "<a/>"},
	{"<r xmlns='u'><a><b xmlns=''/></a></r>", "<a xmlns=\"u\"><b xmlns=\"\"/></a>"},
	{"<r xmlns:p='u'><p:a><p:b xmlns:p='v'><p:c/></p:b><p:d/></p:a></r>",
	 "<p:a xmlns:p=\"u\"><p:b xmlns:p=\"v\"><p:c/></p:b><p:d/></p:a>"},
	{"<r><a xmlns:q='u'>q:name</a></r>", "<a xmlns:q=\"u\">q:name</a>"},
	/* Once, at the top: the text is hardly longer than what it was made of. */
	{"<r xmlns:p='u'><a><p:b/><c p:d=''/><p:b/></a></r>",
	 "<a xmlns:p=\"u\"><p:b/><c p:d=\"\"/><p:b/></a>"},
	{"<r xmlns='u'><p:a xmlns:p='v'><b/><b xmlns=''/></p:a></r>",
	 "<p:a xmlns:p=\"v\" xmlns=\"u\"><b/><b xmlns=\"\"/></p:a>"},
	{"<r xml:lang='de'><a/></r>", "<a xml:lang=\"de\"/>"},
	{"<r xml:lang='de'><a xml:lang='en'><b/></a></r>", "<a xml:lang=\"en\"><b/></a>"},
	{"<r><a n='&lt;&quot;&#10;'>&lt;&amp;&#13;</a></r>",
	 "<a n=\"&lt;&quot;&#10;\">&lt;&amp;&#13;</a>"},
	{"<r xmlns='a&amp;b'><a/></r>", "<a xmlns=\"a&amp;b\"/>"},
	{"<r><a><![CDATA[<b>]]><!-- c --></a></r>", "<a>&lt;b&gt;</a>"},
};

START_TEST(test_written)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(written); i++) {
		struct dav_node *root = read_text(written[i].from), *again;
		GString *text = g_string_new(NULL), *twice = g_string_new(NULL);

		ck_assert_ptr_nonnull(root);
		dav_xml_write(text, dav_node_at(root, 0));
		ck_assert_str_eq(text->str, written[i].to);
		again = read_text(text->str);
		ck_assert_ptr_nonnull(again);
		dav_xml_write(twice, again);
		ck_assert_str_eq(twice->str, text->str);
		dav_xml_free(root);
		dav_xml_free(again);
		g_string_free(text, TRUE);
		g_string_free(twice, TRUE);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_tree);
	tcase_add_test(tcase, test_written);
}

RUN_SUITE("dav-xml", fill)
