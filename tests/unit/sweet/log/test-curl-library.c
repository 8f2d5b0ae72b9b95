/* SPDX-License-Identifier: MIT */
/*
 * test-curl-library.c - unit tests of curl-library.c, through span-send.h: libcurl is loaded when it
 * is needed, and one that is missing or lacks a function is refused, until it is there.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include <glib.h>

#include "log/span-send.h"

#include "suite.h"

#define FILE_OF_IT "libcurl.so.4"

static const char *instead; /* another file of that name; NULL: itself */
static unsigned calls;

/* Before the system's own, since the program comes first. */
void *dlopen(const char *file, int flags)
{
	void *(*real)(const char *, int);

	*(void **)&real = dlsym(RTLD_NEXT, "dlopen");
	if (file && strcmp(file, FILE_OF_IT) == 0) {
		calls++;
		file = instead ? instead : file;
	}
	return real(file, flags);
}

static bool is_built_without(void)
{
	const char *missing = span_send_missing();

	return missing && strstr(missing, "built without");
}

START_TEST(test_loaded_once)
{
	if (is_built_without())
		return;
	ck_assert(!span_send_missing());
	ck_assert(!span_send_missing());
	ck_assert_uint_eq(calls, 1);
}
END_TEST

START_TEST(test_refused)
{
	static const char *const files[] = {"/no/" FILE_OF_IT, "libm.so.6"};

	for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
		instead = files[i];
		ck_assert(span_send_missing());
		if (is_built_without())
			continue;
		ck_assert(strstr(span_send_missing(), FILE_OF_IT " cannot be loaded"));
		ck_assert(!span_sender_open());
	}
	instead = NULL;
	ck_assert(is_built_without() || !span_send_missing());
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_loaded_once);
	tcase_add_test(tcase, test_refused);
}

RUN_SUITE("curl-library", fill)
