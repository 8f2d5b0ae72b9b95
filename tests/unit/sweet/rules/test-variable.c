/* SPDX-License-Identifier: MIT */
/*
 * test-variable.c - unit tests of the operator's variables for programs.  Single-threaded.
 */
#include <glib.h>
#include <string.h>

#include "base/slice.h"
#include "rules/template.h"
#include "rules/variable-expand.h"
#include "rules/variable.h"

#include "suite.h"

static struct slice value(const void *context, enum template_variable variable, unsigned number,
			  const char *name)
{
	(void)number;
	(void)name;
	ck_assert_int_eq(variable, TEMPLATE_CLIENT);
	return (struct slice){context, strlen(context)};
}

START_TEST(test_constant)
{
	char *list[] = {(char *)"A=b", (char *)"C={{d}={ }", (char *)"E=", NULL};
	struct variables variables = {0};
	const char *wrong;

	ck_assert_ptr_null(variables_compile(&variables, list, &wrong));
	ck_assert_ptr_null(variables_expand(&variables, value, ""));
	ck_assert_str_eq(variables.list[0], "A=b");
	ck_assert_str_eq(variables.list[1], "C={d}={ }");
	ck_assert_str_eq(variables.list[2], "E=");
	ck_assert_ptr_null(variables.list[3]);
	variables_free(&variables);
	ck_assert_ptr_null(variables.list);
	/* None. */
	ck_assert_ptr_null(variables_expand(&variables, value, ""));
	variables_free(&variables);
	ck_assert_ptr_null(variables_compile(&variables, &list[3], &wrong));
	ck_assert_ptr_null(variables.list[0]);
	variables_free(&variables);
}
END_TEST

START_TEST(test_expand)
{
	char *list[] = {(char *)"A=b", (char *)"C=d={client}", (char *)"E={{", NULL}, **expanded;
	struct variables variables = {0};
	const char *wrong;

	ck_assert_ptr_null(variables_compile(&variables, list, &wrong));
	expanded = variables_expand(&variables, value, "::1\n");
	ck_assert_uint_eq(g_strv_length(expanded), 3);
	ck_assert_str_eq(expanded[0], "A=b");
	ck_assert_str_eq(expanded[1], "C=d=::1?");
	ck_assert_str_eq(expanded[2], "E={");
	g_strfreev(expanded);
	variables_free(&variables);
}
END_TEST

START_TEST(test_wrong)
{
	static const char *const texts[] = {
		"",
		"A",
		"=b",
		"1A=b",
		"A-B=c",
		"A B=c",
		"{client}=a",
		"A={hots}",
		"A={client",
		"CONTENT_LENGTH=1",
		"REQUEST_METHOD=",
	};

	for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++) {
		char *list[] = {(char *)"GOOD=yes{client}", (char *)texts[i], NULL};
		struct variables variables = {0};
		const char *wrong = NULL;

		ck_assert_msg(variables_compile(&variables, list, &wrong) != NULL, "%s", texts[i]);
		ck_assert_str_eq(wrong, texts[i]);
		variables_free(&variables);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_constant);
	tcase_add_test(tcase, test_expand);
	tcase_add_test(tcase, test_wrong);
}

RUN_SUITE("variable", fill)
