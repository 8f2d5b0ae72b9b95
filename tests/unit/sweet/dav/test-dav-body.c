/* SPDX-License-Identifier: MIT */
/*
 * test-dav-body.c - unit tests of dav-body.c: what bodies of PROPFIND, PROPPATCH and LOCK say.
 */
#include <glib.h>
#include <string.h>

#include "dav/dav-body.h"

#include "suite.h"

#define IN(name, text) "<D:" name " xmlns:D='DAV:'>" text "</D:" name ">"
#define ENTRY(scope, type) "<D:lockscope>" scope "</D:lockscope><D:locktype>" type "</D:locktype>"

typedef int reader(const char *data, size_t length, struct dav_body *body);

static const struct {
	reader *read;
	const char *text;
	int status;
} statuses[] = {
	{dav_body_propfind, IN("propfind", "<D:allprop/>"), 0},
	{dav_body_propfind, IN("propfind", "<D:propname/><unknown/>"), 0},
	{dav_body_propfind, IN("propfind", "<D:prop/>"), 0},
	{dav_body_propfind, IN("propfind", ""), 422},
	{dav_body_propfind, IN("propfind", "<D:allprop/><D:propname/>"), 422},
	{dav_body_propfind, IN("other", "<D:allprop/>"), 422},
	{dav_body_propfind, "<propfind><allprop/></propfind>", 422},
	{dav_body_propfind, "<propfind>", 400},
	{dav_body_propfind, "", 400},
	{dav_body_proppatch, IN("propertyupdate", "<D:set><D:prop><a/></D:prop></D:set>"), 0},
	{dav_body_proppatch, IN("propertyupdate", "<D:remove><D:prop><a/></D:prop></D:remove>"), 0},
	{dav_body_proppatch, IN("propertyupdate", "<D:set/>"), 422},
	{dav_body_proppatch, IN("propertyupdate", ""), 422},
	{dav_body_proppatch, IN("propertyupdate", "<D:other><D:prop><a/></D:prop></D:other>"), 422},
	{dav_body_proppatch, IN("propfind", "<D:allprop/>"), 422},
	{dav_body_lock, IN("lockinfo", ENTRY("<D:exclusive/>", "<D:write/>")), 0},
	{dav_body_lock, IN("lockinfo", ENTRY("<D:shared/>", "<D:write/>")), 0},
	{dav_body_lock, IN("lockinfo", ENTRY("<D:shared/><D:exclusive/>", "<D:write/>")), 422},
	{dav_body_lock, IN("lockinfo", ENTRY("", "<D:write/>")), 422},
	{dav_body_lock, IN("lockinfo", ENTRY("<D:shared/>", "<D:read/>")), 422},
	{dav_body_lock, IN("lockinfo", ""), 422},
};

START_TEST(test_statuses)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(statuses); i++) {
		struct dav_body body;
		int status = statuses[i].read(statuses[i].text, strlen(statuses[i].text), &body);

		ck_assert_msg(status == statuses[i].status, "%d: %s", status, statuses[i].text);
		if (!status)
			dav_body_clear(&body);
		ck_assert_ptr_null(body.properties);
		ck_assert_ptr_null(body.owner);
	}
}
END_TEST

static const struct dav_property *property(const struct dav_body *body, unsigned number)
{
	ck_assert_uint_lt(number, body->properties->len);
	return body->properties->pdata[number];
}

START_TEST(test_find)
{
	static const char text[] = IN("propfind", "<D:prop> <D:a/><b/><c xmlns='u'/></D:prop>");
	static const char all[] = IN("propfind", "<D:allprop/><D:include><D:x/></D:include>");
	struct dav_body body;

	ck_assert_int_eq(dav_body_propfind(text, sizeof(text) - 1, &body), 0);
	ck_assert_int_eq(body.find, DAV_FIND_SOME);
	ck_assert_uint_eq(body.properties->len, 3);
	ck_assert_str_eq(property(&body, 0)->space, "DAV:");
	ck_assert_str_eq(property(&body, 1)->space, "");
	ck_assert_str_eq(property(&body, 2)->space, "u");
	ck_assert_str_eq(property(&body, 2)->local, "c");
	dav_body_clear(&body);
	ck_assert_int_eq(dav_body_propfind(all, sizeof(all) - 1, &body), 0);
	ck_assert_int_eq(body.find, DAV_FIND_ALL);
	ck_assert_str_eq(property(&body, 0)->local, "x");
	dav_body_clear(&body);
}
END_TEST

/* In the order of the document. */
START_TEST(test_patch)
{
	static const char text[] =
		IN("propertyupdate", "<D:set><D:prop><a>1</a></D:prop></D:set>"
				     "<D:remove><D:prop><a/><b/></D:prop></D:remove>"
				     "<D:set><D:prop><a>2</a></D:prop></D:set>");
	struct dav_body body;

	ck_assert_int_eq(dav_body_proppatch(text, sizeof(text) - 1, &body), 0);
	ck_assert_uint_eq(body.properties->len, 4);
	ck_assert_str_eq(property(&body, 0)->xml, "<a>1</a>");
	ck_assert(property(&body, 1)->remove && property(&body, 2)->remove);
	ck_assert_ptr_null(property(&body, 2)->xml);
	ck_assert_str_eq(property(&body, 3)->xml, "<a>2</a>");
	dav_body_clear(&body);
}
END_TEST

START_TEST(test_lock)
{
	static const char text[] =
		IN("lockinfo", ENTRY("<D:shared/>", "<D:write/>") "<D:owner>me <b/></D:owner>");
	struct dav_body body;

	ck_assert_int_eq(dav_body_lock(text, sizeof(text) - 1, &body), 0);
	ck_assert(body.shared);
	ck_assert_str_eq(body.owner, "<D:owner xmlns:D=\"DAV:\">me <b/></D:owner>");
	dav_body_clear(&body);
}
END_TEST

START_TEST(test_too_many)
{
	for (unsigned more = 0; more < 2; more++) {
		GString *text = g_string_new("<D:propfind xmlns:D='DAV:'><D:prop>");
		struct dav_body body;
		int status;

		for (unsigned i = 0; i < DAV_PROPERTIES_MAX + more; i++)
			g_string_append(text, "<a/>");
		g_string_append(text, "</D:prop></D:propfind>");
		status = dav_body_propfind(text->str, text->len, &body);
		ck_assert_int_eq(status, more ? 400 : 0);
		if (!status)
			dav_body_clear(&body);
		g_string_free(text, TRUE);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_statuses);
	tcase_add_test(tcase, test_find);
	tcase_add_test(tcase, test_patch);
	tcase_add_test(tcase, test_lock);
	tcase_add_test(tcase, test_too_many);
}

RUN_SUITE("dav-body", fill)
