/* SPDX-License-Identifier: MIT */
/*
 * session-frames.c - splits what a client sends into frames (RFC 9113, section 4.1): the library
 * does not report those that it ignores.
 */
#include <glib.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "h2/session-internal.h"

static void parse(struct session_frames *frames)
{
	const unsigned char *text = frames->text;

	frames->head = (nghttp2_frame_hd){
		.length = (size_t)text[0] << 16 | (size_t)text[1] << 8 | text[2],
		.type = text[3],
		.flags = text[4],
		.stream_id = (int32_t)((uint32_t)(text[5] & 0x7f) << 24 | (uint32_t)text[6] << 16 |
				       (uint32_t)text[7] << 8 | text[8]),
	};
	frames->have = 0;
	frames->left = frames->head.length;
}

size_t session_frames_split(struct session_frames *frames, const char *data, size_t length,
			    bool *begins)
{
	size_t now;

	*begins = false;
	if (frames->preface) {
		now = MIN(length, frames->preface);
		frames->preface -= (unsigned)now;
		return now;
	}
	if (frames->left) {
		now = MIN(length, frames->left);
		frames->left -= now;
		return now;
	}
	now = MIN(length, sizeof(frames->text) - frames->have);
	memcpy(frames->text + frames->have, data, now);
	frames->have += (unsigned)now;
	if (frames->have == sizeof(frames->text)) {
		size_t payload;

		*begins = true;
		parse(frames);
		payload = MIN(length - now, frames->left);
		frames->left -= payload;
		now += payload;
	}
	return now;
}
