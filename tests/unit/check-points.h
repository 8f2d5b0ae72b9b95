/* SPDX-License-Identifier: MIT */
/*
 * check-points.h - Check, with assertions that are cheap in loops.
 *
 * Check writes the place of each assertion that holds to a file, so that it can name
 * the last one after a crash or a timeout.  In loops this takes most of the time.
 * With this header, it writes only lines that differ from the last POINTS written:
 * the place that it names is the last assertion, or in the same loop.
 */
#ifndef CHECK_POINTS_H
#define CHECK_POINTS_H

#include <check.h>

#define POINTS 16u

static inline void check_point(const char *file, int line)
{
	static _Thread_local int lines[POINTS];
	static _Thread_local unsigned next;

	for (unsigned i = 0; i < POINTS; i++)
		if (lines[i] == line)
			return;
	lines[next++ % POINTS] = line;
	_mark_point(file, line);
}

#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                   \
	((expr) ? check_point(__FILE__, __LINE__)                                                  \
		: _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed",            \
				    ##__VA_ARGS__))

#endif
