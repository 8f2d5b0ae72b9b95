/* SPDX-License-Identifier: MIT */
/*
 * frames.h - both directions of an HTTP/2 session as its client sees them: what the client's frames
 * permit, and that the server's frames are well-formed and permitted.
 *
 * The bounds are upper ones: a frame of the client counts from when it is sent.
 */
#ifndef FUZZ_FRAMES_H
#define FUZZ_FRAMES_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "fuzz.h"

#define FRAME_HEAD 9u
#define FRAME_MOST 16384u /* bytes of payload; the server never sends more */
#define OPENED_MAX 2000u
#define EXPECTED_NONE UINT64_MAX /* the end of the stream's content must not come */

struct frame {
	uint32_t length, stream;
	unsigned type, flags;
	const uint8_t *payload;
};

struct splitter {
	uint8_t bytes[FRAME_HEAD + FRAME_MOST];
	size_t have;
	uint32_t skip; /* bytes of a payload that is too long */
};

/* A stream that the client has opened. */
struct opened {
	uint32_t id;
	int64_t credit; /* bytes that the server may send */
	int64_t got;
	bool answered, ended, reset;
	bool known;	   /* the content is the pattern, of this length */
	uint64_t expected; /* bytes; or EXPECTED_NONE */
};

static struct {
	struct splitter out, in;
	struct opened opened[OPENED_MAX];
	unsigned count;
	int64_t initial, credit, got;
	bool settled;	     /* the server's first frame has come */
	bool resized;	     /* the client has set the size of the table: heads are not decoded */
	uint32_t continuing; /* the stream of a head that has not ended */
	bool final;	     /* ... has a status of a response */
	nghttp2_hd_inflater *inflater;
} frames;

static uint8_t frames_pattern[256];

static uint32_t frames_number(const uint8_t *at, unsigned bytes)
{
	uint32_t number = 0;

	for (unsigned i = 0; i < bytes; i++)
		number = number << 8 | at[i];
	return number;
}

static void frames_split(struct splitter *splitter, const uint8_t *data, size_t length,
			 void (*begins)(const struct frame *frame),
			 void (*take)(const struct frame *frame))
{
	while (length) {
		struct frame frame;
		size_t want = FRAME_HEAD, now;

		if (splitter->skip) {
			now = splitter->skip < length ? splitter->skip : length;
			splitter->skip -= (uint32_t)now;
			data += now;
			length -= now;
			continue;
		}
		if (splitter->have >= FRAME_HEAD)
			want += frames_number(splitter->bytes, 3);
		if (want > sizeof(splitter->bytes)) {
			splitter->skip = (uint32_t)(want - splitter->have);
			splitter->have = 0;
			continue;
		}
		now = want - splitter->have < length ? want - splitter->have : length;
		memcpy(splitter->bytes + splitter->have, data, now);
		splitter->have += now;
		data += now;
		length -= now;
		if (splitter->have < FRAME_HEAD)
			return;
		frame = (struct frame){.length = frames_number(splitter->bytes, 3),
				       .type = splitter->bytes[3],
				       .flags = splitter->bytes[4],
				       .stream = frames_number(splitter->bytes + 5, 4) & INT32_MAX,
				       .payload = splitter->bytes + FRAME_HEAD};
		if (splitter->have == FRAME_HEAD)
			begins(&frame);
		if (splitter->have == FRAME_HEAD + frame.length) {
			take(&frame);
			splitter->have = 0;
		}
	}
}

static struct opened *frames_find(uint32_t id)
{
	for (unsigned i = 0; i < frames.count; i++)
		if (frames.opened[i].id == id)
			return &frames.opened[i];
	return NULL;
}

/* --- what the client sends --------------------------------------------------------------- */

static void frames_set_initial(int64_t initial)
{
	/* The larger one of those that were set since the stream was opened. */
	for (unsigned i = 0; i < frames.count; i++)
		if (initial > frames.initial)
			frames.opened[i].credit += initial - frames.initial;
	frames.initial = initial;
}

static void frames_client_begins(const struct frame *frame)
{
	/* A head may be refused before its end. */
	if (frame->type == NGHTTP2_HEADERS && !frames_find(frame->stream) &&
	    frames.count < OPENED_MAX)
		frames.opened[frames.count++] =
			(struct opened){.id = frame->stream, .credit = frames.initial};
}

static void frames_client(const struct frame *frame)
{
	struct opened *opened = frames_find(frame->stream);

	if (frame->type == NGHTTP2_WINDOW_UPDATE && frame->length == 4) {
		uint32_t more = frames_number(frame->payload, 4) & INT32_MAX;

		if (opened)
			opened->credit += more;
		else if (frame->stream == 0)
			frames.credit += more;
	} else if (frame->type == NGHTTP2_SETTINGS && !(frame->flags & NGHTTP2_FLAG_ACK)) {
		for (uint32_t at = 0; at + 6 <= frame->length; at += 6) {
			uint32_t id = frames_number(frame->payload + at, 2);
			uint32_t value = frames_number(frame->payload + at + 2, 4);

			frames.resized |= id == NGHTTP2_SETTINGS_HEADER_TABLE_SIZE;
			if (id == NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE && value <= INT32_MAX)
				frames_set_initial(value);
		}
	}
}

/* --- what the server sends ------------------------------------------------------------------ */

static void frames_end(struct opened *opened)
{
	MUST(!opened->ended);
	opened->ended = true;
	MUST(!opened->known || (uint64_t)opened->got == opened->expected);
}

/* Decodes a part of a head; the first field is the status. */
static void frames_inflate(const struct frame *frame, bool first)
{
	const uint8_t *at = frame->payload;
	size_t left = frame->length;
	bool last = frame->flags & NGHTTP2_FLAG_END_HEADERS;

	for (unsigned i = 0; !frames.resized; i++) {
		nghttp2_nv field;
		int flags = 0;
		ssize_t used =
			nghttp2_hd_inflate_hd2(frames.inflater, &field, &flags, at, left, last);

		MUST(used >= 0);
		at += used;
		left -= (size_t)used;
		if (flags & NGHTTP2_HD_INFLATE_EMIT) {
			bool status = field.namelen == 7 && memcmp(field.name, ":status", 7) == 0;

			MUST(field.namelen && status == (first && i == 0));
			MUST(!status || field.valuelen == 3);
			if (status)
				frames.final = field.value[0] != '1';
		}
		if (flags & NGHTTP2_HD_INFLATE_FINAL) {
			MUST(last);
			nghttp2_hd_inflate_end_headers(frames.inflater);
			return;
		}
		if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && left == 0) {
			MUST(!last);
			return;
		}
	}
}

static void frames_head(const struct frame *frame, struct opened *opened, bool first)
{
	MUST(opened && !opened->ended && !opened->reset);
	MUST(first ? !frames.continuing : frames.continuing == frame->stream);
	MUST(!(frame->flags & (NGHTTP2_FLAG_PADDED | NGHTTP2_FLAG_PRIORITY)) || !first);
	frames_inflate(frame, first);
	frames.continuing = frame->flags & NGHTTP2_FLAG_END_HEADERS ? 0 : frame->stream;
	if (!frames.resized && first) {
		/* Those of interim responses come before. */
		MUST(!opened->answered);
		opened->answered = frames.final;
		MUST(frames.final || !(frame->flags & NGHTTP2_FLAG_END_STREAM));
	}
	if (first && frame->flags & NGHTTP2_FLAG_END_STREAM)
		frames_end(opened);
}

static void frames_data(const struct frame *frame, struct opened *opened)
{
	MUST(opened && !opened->ended && !opened->reset);
	MUST(opened->answered || frames.resized);
	MUST(!(frame->flags & NGHTTP2_FLAG_PADDED));
	for (uint32_t i = 0; opened->known && i < frame->length; i++)
		MUST(frame->payload[i] == frames_pattern[(opened->got + i) & 255]);
	opened->got += frame->length;
	frames.got += frame->length;
	MUST(frames.got <= frames.credit && opened->got <= opened->credit);
	if (frame->flags & NGHTTP2_FLAG_END_STREAM)
		frames_end(opened);
}

static void frames_server_begins(const struct frame *frame)
{
	MUST(frame->length <= FRAME_MOST);
}

static void frames_server(const struct frame *frame)
{
	struct opened *opened = frames_find(frame->stream);

	MUST(frames.settled || (frame->type == NGHTTP2_SETTINGS && frame->flags == 0));
	frames.settled = true;
	MUST(!frames.continuing || frame->type == NGHTTP2_CONTINUATION);
	switch (frame->type) {
	case NGHTTP2_DATA:
		frames_data(frame, opened);
		return;
	case NGHTTP2_HEADERS:
	case NGHTTP2_CONTINUATION:
		frames_head(frame, opened, frame->type == NGHTTP2_HEADERS);
		return;
	case NGHTTP2_RST_STREAM:
		MUST(opened && frame->length == 4);
		opened->reset = true;
		return;
	case NGHTTP2_SETTINGS:
		MUST(frame->stream == 0 && frame->length % 6 == 0);
		MUST(frame->length == 0 || !(frame->flags & NGHTTP2_FLAG_ACK));
		return;
	case NGHTTP2_PING:
		MUST(frame->stream == 0 && frame->length == 8 && frame->flags & NGHTTP2_FLAG_ACK);
		return;
	case NGHTTP2_GOAWAY:
		MUST(frame->stream == 0 && frame->length >= 8);
		return;
	case NGHTTP2_WINDOW_UPDATE:
		MUST((frame->stream == 0 || opened) && frame->length == 4);
		MUST(frames_number(frame->payload, 4) - 1 < INT32_MAX);
		return;
	default:
		MUST(!"the server sends frames of that type");
	}
}

/* --- for the target ----------------------------------------------------------------------- */

static inline void frames_open(void)
{
	if (frames.inflater)
		nghttp2_hd_inflate_del(frames.inflater);
	memset(&frames, 0, sizeof(frames));
	frames.initial = frames.credit = 65535;
	MUST(nghttp2_hd_inflate_new(&frames.inflater) == 0);
	for (unsigned i = 0; i < sizeof(frames_pattern); i++)
		frames_pattern[i] = (uint8_t)(7 * i + 1);
}

static inline void frames_close(void)
{
	nghttp2_hd_inflate_del(frames.inflater);
	frames.inflater = NULL;
}

static inline void frames_sent(const uint8_t *data, size_t length)
{
	frames_split(&frames.out, data, length, frames_client_begins, frames_client);
}

static inline void frames_came(const uint8_t *data, size_t length)
{
	frames_split(&frames.in, data, length, frames_server_begins, frames_server);
}

#endif
