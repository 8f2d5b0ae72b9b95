/* SPDX-License-Identifier: MIT */
/*
 * nabc-glib.h - caches and senders of libnabc in GLib's main loop.
 *
 * Each source is attached with g_source_attach() and belongs to the caller,
 * who drops it with g_source_unref().  It must be destroyed before the cache
 * or the sender is closed.  See NC_source_new(3).
 */
#ifndef NABC_GLIB_H
#define NABC_GLIB_H

#include <glib.h>

#include <nabc-async.h>
#include <nabc.h>

G_BEGIN_DECLS

/*
 * Does a cache's pending work; only for its owner.  A callback, a GSourceFunc,
 * may be set and is called after each time.  NULL: see errno.
 */
GSource *NC_source_new(NC_cache *cache);

/* For each completion of a sender; FALSE destroys the source. */
typedef gboolean (*NC_sender_source_func)(NC_sender *sender, const struct NC_completion *done,
					  gpointer user_data);

/*
 * Submits the queued messages of a sender, and passes its completions to the callback:
 * g_source_set_callback(source, G_SOURCE_FUNC(function), ...).
 */
GSource *NC_sender_source_new(NC_sender *sender);

G_END_DECLS

#endif
