/* SPDX-License-Identifier: MIT */
/*
 * gw-window.c - see gw-window.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <glib.h>

#include "backend/gw-window.h"

struct gw_window *gw_window_of(NC_handle *handle, size_t length, int *error)
{
	struct gw_window *window = malloc(sizeof(*window));
	size_t size;

	if (!window || NC_insert(handle) < 0) {
		*error = -ENOMEM;
		(void)NC_free(handle);
		free(window);
		return NULL;
	}
	/* Nobody else may name it: the hold is all that keeps it. */
	window->id = NC_cache_id(handle);
	*error = NC_hold(window->id) < 0 ? -errno : 0;
	(void)NC_destroy(window->id);
	(void)NC_free(handle);
	window->data = *error ? NULL : NC_data(NULL, window->id, 0, &size);
	if (!window->data || size < length) {
		if (!*error)
			(void)NC_release(window->id);
		*error = -ENOMEM; /* evicted already */
		free(window);
		return NULL;
	}
	window->next = NULL;
	window->length = length;
	window->ranges = window->few;
	window->range_count = window->handed = 0;
	window->range_room = GW_WINDOW_RANGES;
	window->offset = window->stored = 0;
	return window;
}

struct gw_window *gw_window_stored(uint64_t offset)
{
	struct gw_window *window = calloc(1, sizeof(*window));

	if (!window)
		return NULL;
	window->offset = offset;
	window->ranges = window->few;
	return window;
}

struct gw_window *gw_window_read(int fd, int *error)
{
	NC_handle handle;
	int there = 0;
	ssize_t got;
	size_t size;

	/* As large as what is there, so that many small answers take little. */
	(void)ioctl(fd, FIONREAD, &there);
	size = (size_t)CLAMP(there, (int)GW_WINDOW_LEAST, (int)GW_WINDOW);
	if (NC_alloc_kind(&handle, size, 0, NC_KIND_RECYCLED | NC_KIND_UNSUMMED) < 0) {
		*error = -errno;
		return NULL;
	}
	/* No more than there is, or another read would look for it. */
	got = NC_read(fd, &handle, 0, there > 0 && (size_t)there < size ? (size_t)there : size);
	if (got <= 0) {
		*error = got < 0 ? -errno : 0;
		(void)NC_free(&handle);
		return NULL;
	}
	return gw_window_of(&handle, (size_t)got, error);
}

void gw_window_free(struct gw_window *window)
{
	if (!window)
		return;
	if (window->id)
		(void)NC_release(window->id);
	if (window->ranges != window->few)
		free(window->ranges);
	free(window);
}

bool gw_window_add(struct gw_window *window, struct slice run)
{
	if (window->range_count == window->range_room) {
		size_t room = (size_t)window->range_room * 2;
		bool few = window->ranges == window->few;
		struct NC_range *more = realloc(few ? NULL : window->ranges, room * sizeof(*more));

		if (!more)
			return false;
		if (few)
			memcpy(more, window->few, sizeof(window->few));
		window->ranges = more;
		window->range_room = (unsigned)room;
	}
	window->ranges[window->range_count++] = (struct NC_range){
		.id = window->id, .offset = (size_t)(run.at - window->data), .length = run.length};
	return true;
}

uint64_t gw_window_bytes(const struct gw_window *window)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < window->range_count; i++)
		bytes += window->ranges[i].length;
	return bytes;
}
