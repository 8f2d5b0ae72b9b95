/* SPDX-License-Identifier: MIT */
/*
 * nabc-glib.c - GLib event sources for the library's pollable descriptors.
 *
 * It uses only the public calls.  A source runs in the thread of the context that
 * it is attached to.
 */

#include <stddef.h>

#include "nabc-glib.h"

/* Completions handled at once, before the loop's other sources get their turn. */
#define BATCH 64

struct cache_source {
	GSource source;
	NC_cache *cache;
	gpointer tag;
};

struct ring_source {
	GSource source;
	NC_sender *sender;
	gpointer tag;
	gboolean more; /* completions are ready without an event */
};

static gboolean cache_check(GSource *source)
{
	struct cache_source *mine = (struct cache_source *)source;

	return g_source_query_unix_fd(source, mine->tag) != 0;
}

static gboolean cache_dispatch(GSource *source, GSourceFunc callback, gpointer user_data)
{
	struct cache_source *mine = (struct cache_source *)source;

	/* Work that fails now is due again at once. */
	(void)NC_cache_dispatch(mine->cache);
	return callback ? callback(user_data) : G_SOURCE_CONTINUE;
}

static GSourceFuncs cache_functions = {.check = cache_check, .dispatch = cache_dispatch};

/* Creates a source that polls fd; stores the tag with which to query it. */
static GSource *source_over(GSourceFuncs *functions, guint size, int fd, const char *name,
			    gpointer *tag)
{
	GSource *source = g_source_new(functions, size);

	g_source_set_name(source, name);
	*tag = g_source_add_unix_fd(source, fd, G_IO_IN);
	return source;
}

GSource *NC_source_new(NC_cache *cache)
{
	int fd = NC_cache_fd(cache);
	GSource *source;
	gpointer tag;

	if (fd < 0)
		return NULL;
	source = source_over(&cache_functions, sizeof(struct cache_source), fd, "nabc cache", &tag);
	((struct cache_source *)source)->cache = cache;
	((struct cache_source *)source)->tag = tag;
	return source;
}

static gboolean ring_prepare(GSource *source, gint *timeout)
{
	struct ring_source *mine = (struct ring_source *)source;

	*timeout = -1;
	/* Submit all messages that the other sources have queued. */
	mine->more = NC_sender_submit(mine->sender) > 0;
	return mine->more;
}

static gboolean ring_check(GSource *source)
{
	struct ring_source *mine = (struct ring_source *)source;

	return mine->more || g_source_query_unix_fd(source, mine->tag) != 0;
}

static gboolean ring_dispatch(GSource *source, GSourceFunc callback, gpointer user_data)
{
	struct ring_source *mine = (struct ring_source *)source;
	/* g_source_set_callback() requires this conversion for every type of callback. */
	NC_sender_source_func function = (NC_sender_source_func)(void (*)(void))callback;
	struct NC_completion done;

	/*
	 * One at a time: completions after the last one that the callback wants
	 * remain in the sender.
	 */
	for (unsigned i = 0; i < BATCH && !g_source_is_destroyed(source); i++) {
		if (NC_sender_reap(mine->sender, &done, sizeof(done), 1) <= 0)
			break;
		if (function && !function(mine->sender, &done, user_data))
			return G_SOURCE_REMOVE;
	}
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs ring_functions = {
	.prepare = ring_prepare, .check = ring_check, .dispatch = ring_dispatch};

GSource *NC_sender_source_new(NC_sender *sender)
{
	int fd = NC_sender_fd(sender);
	GSource *source;
	gpointer tag;

	if (fd < 0)
		return NULL;
	source = source_over(&ring_functions, sizeof(struct ring_source), fd, "nabc sender", &tag);
	((struct ring_source *)source)->sender = sender;
	((struct ring_source *)source)->tag = tag;
	return source;
}
