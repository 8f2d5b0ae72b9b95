/* SPDX-License-Identifier: MIT */
/*
 * hostile-frames.h - what hostile clients of HTTP/2 say first: sessions of frames that cost the
 * server more than the client.  Each writes to text, which has room for FRAMES_MAX bytes, and
 * returns how many it wrote.
 */
#ifndef HOSTILE_FRAMES_H
#define HOSTILE_FRAMES_H

#include <stddef.h>

#define FRAMES_MAX (256 << 10)

/* Streams beyond the number that the server permits, which it refuses one by one. */
size_t frames_refused(char *text);

/* Streams that the server must reset itself, after the request (CVE-2025-8671, "MadeYouReset"). */
size_t frames_reset(char *text);

/* Heads whose fields are a byte here and 4 KB there (a bomb of HPACK). */
size_t frames_hpack(char *text);

#endif
