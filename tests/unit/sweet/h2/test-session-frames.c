/* SPDX-License-Identifier: MIT */
/*
 * test-session-frames.c - unit tests of the division of bytes into frames, for every size of
 * pieces in which they may come.  Single-threaded.
 */
#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "h2/session-internal.h"

#include "suite.h"

#define PREFACE 24u

static const struct {
	size_t length;
	uint8_t type, flags;
	int32_t stream;
} frames[] = {
	{0, 4, 0, 0}, {1, 0, 1, 1}, {300, 1, 4, 0x7fffffff}, {0, 6, 1, 0}, {70000, 0xee, 255, 3},
};

#define FRAMES (sizeof(frames) / sizeof(*frames))

static char data[PREFACE + FRAMES * 9 + 71000];

static size_t write_frames(void)
{
	char *at = data + PREFACE;

	for (unsigned i = 0; i < FRAMES; i++) {
		const uint32_t id = (uint32_t)frames[i].stream | 0x80000000u; /* reserved */

		*at++ = (char)(frames[i].length >> 16);
		*at++ = (char)(frames[i].length >> 8);
		*at++ = (char)frames[i].length;
		*at++ = (char)frames[i].type;
		*at++ = (char)frames[i].flags;
		for (int shift = 24; shift >= 0; shift -= 8)
			*at++ = (char)(id >> shift);
		memset(at, 0xa5, frames[i].length);
		at += frames[i].length;
	}
	return (size_t)(at - data);
}

START_TEST(test_split)
{
	size_t total = write_frames();

	for (size_t size = 1; size <= 400; size++) {
		struct session_frames split = {.preface = PREFACE};
		size_t done = 0, begun = 0, ends = PREFACE;

		while (done < total) {
			size_t at = 0, now = MIN(size, total - done);

			while (at < now) {
				bool begins, between = session_frames_between(&split);
				size_t used = session_frames_split(&split, data + done + at,
								   now - at, &begins);

				ck_assert(between == (done + at >= PREFACE && done + at == ends));
				ck_assert_uint_gt(used, 0);
				ck_assert_uint_le(used, now - at);
				if (begins) {
					/* Everything before it has been processed. */
					ck_assert_uint_le(done + at, ends + 8);
					ck_assert_uint_ge(done + at + used, ends + 9);
					ck_assert_uint_eq(split.head.length, frames[begun].length);
					ck_assert_uint_eq(split.head.type, frames[begun].type);
					ck_assert_uint_eq(split.head.flags, frames[begun].flags);
					ck_assert_int_eq(split.head.stream_id,
							 frames[begun].stream);
					ends += 9 + frames[begun++].length;
				}
				ck_assert_uint_le(done + at + used, MAX(ends, PREFACE) + 8);
				at += used;
			}
			done += now;
		}
		ck_assert_uint_eq(begun, FRAMES);
		ck_assert_uint_eq(ends, total);
	}
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_split);
}

RUN_SUITE("session-frames", fill)
