/* SPDX-License-Identifier: MIT */
/* message.c - checks one message and tracks its progress; see message.h. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "base/fragment.h"
#include "cache/hold.h"
#include "cache/index.h"
#include "send/message.h"
#include "store/store.h"
#include "store/unit.h"

static int check(const struct NC_send *spec, size_t *total)
{
	if (!spec || spec->range_count > NC_RANGES_MAX || (spec->flags & ~NC_SEND_FLAGS) ||
	    (spec->header_length && !spec->header) || (spec->range_count && !spec->ranges) ||
	    spec->hold_count > NC_RANGES_MAX || (spec->hold_count && !spec->holds))
		return -EINVAL;
	*total = spec->header_length;
	for (unsigned i = 0; i < spec->range_count; i++)
		if (__builtin_add_overflow(*total, spec->ranges[i].length, total))
			return -ERANGE;
	if (*total > SSIZE_MAX)
		return -ERANGE;
	return spec->skip > *total ? -EINVAL : 0;
}

static void release(struct nc_message *message, unsigned held)
{
	while (held)
		nc_index_return(message->index, &message->views[--held]);
}

/*
 * The caller's hold of the unit, or NULL.  *at: where the last one was found, since holds
 * are one for each range, or one for all, as a rule.
 */
static const struct NC_hold *find_hold(const struct NC_send *spec, size_t id, unsigned *at)
{
	for (unsigned tried = 0; tried < spec->hold_count; tried++) {
		if (nc_hold_read(&spec->holds[*at]).id == id)
			return &spec->holds[*at];
		*at = (*at + 1) % spec->hold_count;
	}
	return NULL;
}

static int hold_unit(struct nc_message *message, size_t id, struct nc_view *view, unsigned *at)
{
	const struct NC_hold *hold = find_hold(message->spec, id, at);

	return hold ? nc_hold_borrow(hold, message->index, view)
		    : nc_index_hold(message->index, id, false, view);
}

int nc_message_open(struct nc_message *message, struct nc_index *index, const struct NC_send *spec,
		    struct nc_view *views)
{
	unsigned at = 0;
	int error;

	*message = (struct nc_message){.index = index, .spec = spec, .views = views};
	error = check(spec, &message->total);
	if (error)
		return error;
	for (unsigned i = 0; i < spec->range_count; i++) {
		const struct NC_range *range = &spec->ranges[i];
		unsigned held = i;

		error = hold_unit(message, range->id, &views[i], &at);
		if (!error) {
			size_t size = views[i].unit->layout.size;

			nc_unit_end_grace(views[i].unit);
			held++;
			if (range->offset > size || range->length > size - range->offset)
				error = -ERANGE;
		}
		if (error) {
			release(message, held);
			return error;
		}
	}
	nc_message_advance(message, spec->skip);
	return 0;
}

int nc_message_keep(struct nc_message *message)
{
	int error = 0;

	for (unsigned i = 0; i < message->spec->range_count && !error; i++)
		error = nc_index_keep(&message->views[i]);
	return error;
}

void nc_message_release_early(struct nc_message *message)
{
	release(message, message->spec->range_count);
	for (unsigned i = 0; i < message->spec->range_count; i++)
		message->views[i].borrowed = true;
}

void nc_message_close(struct nc_message *message)
{
	release(message, message->spec->range_count);
}

unsigned nc_message_plan(const struct nc_message *message, unsigned end, struct iovec *iov,
			 unsigned max, size_t *planned)
{
	const struct NC_send *spec = message->spec;
	size_t within = message->within;
	unsigned count = 0;

	*planned = 0;
	if (message->at < spec->header_length && max) {
		iov[0].iov_base = (char *)spec->header + message->at;
		iov[0].iov_len = spec->header_length - message->at;
		*planned = iov[0].iov_len;
		count = 1;
	}
	for (unsigned i = message->range; i < end && count < max; i++) {
		const struct NC_range *range = &spec->ranges[i];
		const struct nc_unit *unit = message->views[i].unit;
		char *base = message->lent ? nc_unit_lent_base(unit) : nc_unit_base(unit);
		size_t covered = 0;

		count +=
			nc_layout_iovec(&unit->layout, base, range->offset + within,
					range->length - within, iov + count, max - count, &covered);
		*planned += covered;
		within = 0;
	}
	return count;
}

int nc_message_fetch(const struct nc_message *message, unsigned end)
{
	int error = 0;

	for (unsigned i = message->range; i < end && !error; i++)
		error = nc_index_fetch(message->index, &message->views[i]);
	return error;
}

void nc_message_advance(struct nc_message *message, size_t bytes)
{
	const struct NC_send *spec = message->spec;

	if (message->at < spec->header_length) {
		size_t head = spec->header_length - message->at;

		head = bytes < head ? bytes : head;
		message->at += head;
		bytes -= head;
	}
	message->at += bytes;
	message->within += bytes;
	while (message->range < spec->range_count &&
	       message->within >= spec->ranges[message->range].length) {
		message->within -= spec->ranges[message->range].length;
		message->range++;
	}
}

size_t nc_message_moved(struct nc_message *message, enum NC_method method, size_t bytes)
{
	size_t head = message->spec->header_length;
	size_t body;

	head = message->at < head ? head - message->at : 0;
	body = bytes > head ? bytes - head : 0;
	if (body)
		nc_index_count(message->index, method, body);
	nc_message_advance(message, bytes);
	return body;
}
