/* SPDX-License-Identifier: MIT */
/*
 * passage.c - checks and follows one message; see passage.h.
 */
#include <errno.h>
#include <limits.h>

#include "send/passage.h"

static int check(const struct NC_send *message, size_t *total)
{
	if (!message || message->range_count > NC_RANGES_MAX || (message->flags & ~NC_SEND_FLAGS) ||
	    (message->header_length && !message->header) ||
	    (message->range_count && !message->ranges))
		return -EINVAL;
	*total = message->header_length;
	for (unsigned i = 0; i < message->range_count; i++)
		if (__builtin_add_overflow(*total, message->ranges[i].length, total))
			return -ERANGE;
	if (*total > SSIZE_MAX)
		return -ERANGE;
	return message->skip > *total ? -EINVAL : 0;
}

static void release(struct nc_passage *passage, unsigned held)
{
	while (held)
		nc_index_return(passage->index, &passage->views[--held]);
}

int nc_passage_open(struct nc_passage *passage, struct nc_index *index,
		    const struct NC_send *message, struct nc_view *views, bool brief)
{
	bool unlinked;
	int error;

	*passage = (struct nc_passage){.index = index, .message = message, .views = views};
	error = check(message, &passage->total);
	if (error)
		return error;
	unlinked = message->flags & NC_SEND_HELD;
	for (unsigned i = 0; i < message->range_count; i++) {
		const struct NC_range *range = &message->ranges[i];
		unsigned held = i;

		error = brief && unlinked ? nc_index_borrow(index, range->id, &views[i])
					  : nc_index_hold(index, range->id, unlinked, &views[i]);
		if (!error) {
			size_t size = views[i].unit->layout.size;

			nc_unit_end_grace(views[i].unit);
			held++;
			if (range->offset > size || range->length > size - range->offset)
				error = -ERANGE;
		}
		if (error) {
			release(passage, held);
			return error;
		}
	}
	nc_passage_advance(passage, message->skip);
	return 0;
}

void nc_passage_close(struct nc_passage *passage)
{
	release(passage, passage->message->range_count);
}

unsigned nc_passage_plan(const struct nc_passage *passage, unsigned end, struct iovec *iov,
			 unsigned max, size_t *planned)
{
	const struct NC_send *message = passage->message;
	size_t within = passage->within;
	unsigned count = 0;

	*planned = 0;
	if (passage->at < message->header_length && max) {
		iov[0].iov_base = (char *)message->header + passage->at;
		iov[0].iov_len = message->header_length - passage->at;
		*planned = iov[0].iov_len;
		count = 1;
	}
	for (unsigned i = passage->range; i < end && count < max; i++) {
		const struct NC_range *range = &message->ranges[i];
		const struct nc_unit *unit = passage->views[i].unit;
		size_t covered = 0;

		count +=
			nc_layout_iovec(&unit->layout, nc_unit_base(unit), range->offset + within,
					range->length - within, iov + count, max - count, &covered);
		*planned += covered;
		within = 0;
	}
	return count;
}

int nc_passage_fetch(const struct nc_passage *passage, unsigned end)
{
	int error = 0;

	for (unsigned i = passage->range; i < end && !error; i++)
		error = nc_index_fetch(passage->index, &passage->views[i]);
	return error;
}

void nc_passage_advance(struct nc_passage *passage, size_t bytes)
{
	const struct NC_send *message = passage->message;

	if (passage->at < message->header_length) {
		size_t head = message->header_length - passage->at;

		head = bytes < head ? bytes : head;
		passage->at += head;
		bytes -= head;
	}
	passage->at += bytes;
	passage->within += bytes;
	while (passage->range < message->range_count &&
	       passage->within >= message->ranges[passage->range].length) {
		passage->within -= message->ranges[passage->range].length;
		passage->range++;
	}
}

size_t nc_passage_moved(struct nc_passage *passage, enum NC_method method, size_t bytes)
{
	size_t head = passage->message->header_length;
	size_t body;

	head = passage->at < head ? head - passage->at : 0;
	body = bytes > head ? bytes - head : 0;
	if (body)
		nc_index_count(passage->index, method, body);
	nc_passage_advance(passage, bytes);
	return body;
}
