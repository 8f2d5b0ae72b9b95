/* SPDX-License-Identifier: MIT */
/*
 * gw-spool.h - windows of an answer that wait on the disk, so that a program
 * is done at its own speed, and its client reads at its own.
 *
 * In the line of a stream such a window is stored: it has no unit, and stands
 * for all windows that were written one after the other.  When it is the first
 * it is fetched, a window's bytes at a time.  A stream's thread.
 */
#ifndef SWEET_GW_SPOOL_H
#define SWEET_GW_SPOOL_H

#include "backend/gw-stream.h"

/* Whether a window more can be written now. */
bool gw_spool_has_room(const struct gw_stream *stream);

/*
 * Writes the window, which is given back when that is done; what stands for it
 * is the last in the line.  False: it is still the caller's.
 */
bool gw_spool_put(struct gw_stream *stream, struct gw_window *window);

/* Of the first window, which is stored: gw_stream_fetched() gets the next part.  0 or -errno. */
int gw_spool_fetch(struct gw_stream *stream);

/* Nothing of it is needed any more; there may be none. */
void gw_spool_end(struct gw_stream *stream);

#endif
