/* SPDX-License-Identifier: MIT */
/* message.c - checks one message and tracks its progress; see message.h. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "base/fragment.h"
#include "cache/hold.h"
#include "cache/index.h"
#include "send/message.h"
#include "store/store.h"
#include "store/unit.h"

/* Adds the lengths of the texts to *total; returns false if something is wrong with them. */
static bool check_texts(const struct NC_send *spec, size_t *total)
{
	unsigned before = 0;

	if (spec->text_count > NC_TEXTS_MAX || !spec->texts)
		return false;
	for (unsigned i = 0; i < spec->text_count; i++) {
		const struct NC_text *text = &spec->texts[i];

		if ((text->length && !text->data) || text->before < before ||
		    text->before > spec->range_count ||
		    __builtin_add_overflow(*total, text->length, total))
			return false;
		before = text->before;
	}
	return *total <= SSIZE_MAX;
}

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
	if (spec->text_count && !check_texts(spec, total))
		return -EINVAL;
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

/* Counts the texts before the current range as memory that comes before it. */
static void pass_texts(struct nc_message *message)
{
	const struct NC_send *spec = message->spec;

	for (; message->text < spec->text_count &&
	       spec->texts[message->text].before <= message->range;
	     message->text++)
		message->memory += spec->texts[message->text].length;
}

/* The current range is sent: the next one that is not empty follows. */
static inline void pass_range(struct nc_message *message)
{
	const struct NC_send *spec = message->spec;

	do {
		message->within = 0;
		message->range++;
		if (message->text < spec->text_count)
			pass_texts(message);
	} while (message->range < spec->range_count && !spec->ranges[message->range].length);
}

/* Positions the message at the first byte to send. */
static void begin(struct nc_message *message)
{
	const struct NC_send *spec = message->spec;

	message->end = message->total;
	if (spec->limit && spec->limit < message->total - spec->skip)
		message->end = spec->skip + spec->limit;
	message->memory = spec->header_length;
	if (spec->text_count)
		pass_texts(message);
	if (spec->range_count && !spec->ranges[0].length)
		pass_range(message);
	if (spec->skip)
		nc_message_advance(message, spec->skip);
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
	begin(message);
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

/* Describes texts, without the first `skip` bytes, and adds to *bytes. */
static unsigned plan_texts(const struct NC_text *text, const struct NC_text *end, size_t skip,
			   struct iovec *iov, unsigned max, size_t *bytes)
{
	unsigned count = 0;

	for (; text < end && count < max; text++, skip = 0) {
		if (text->length == skip)
			continue;
		iov[count].iov_base = (char *)(uintptr_t)text->data + skip;
		iov[count].iov_len = text->length - skip;
		*bytes += iov[count++].iov_len;
	}
	return count;
}

/* Describes the last `left` bytes of the texts before the current range, and adds to *bytes. */
static unsigned plan_last(const struct nc_message *message, size_t left, struct iovec *iov,
			  unsigned max, size_t *bytes)
{
	const struct NC_text *end = message->spec->texts + message->text, *text = end;
	size_t skip = 0;

	while (skip < left)
		skip += (--text)->length;
	return plan_texts(text, end, skip - left, iov, max, bytes);
}

/* Describes what is left of the header and of the texts before the current range. */
static inline unsigned plan_memory(const struct nc_message *message, struct iovec *iov,
				   unsigned max, size_t *bytes)
{
	const struct NC_send *spec = message->spec;
	size_t head;

	if (message->at >= spec->header_length)
		return plan_last(message, message->memory, iov, max, bytes);
	head = spec->header_length - message->at;
	iov[0].iov_base = (char *)spec->header + message->at;
	iov[0].iov_len = *bytes = head;
	if (message->memory == head)
		return 1;
	return 1 + plan_last(message, message->memory - head, iov + 1, max - 1, bytes);
}

/* Describes the texts from *text on, up to the range, passes them, and adds to *bytes. */
static unsigned plan_until(const struct NC_send *spec, unsigned range, unsigned *text,
			   struct iovec *iov, unsigned max, size_t *bytes)
{
	unsigned from = *text;

	while (*text < spec->text_count && spec->texts[*text].before <= range)
		++*text;
	return plan_texts(spec->texts + from, spec->texts + *text, 0, iov, max, bytes);
}

/* Takes bytes off the end; returns how many iovecs are left. */
static unsigned trim(struct iovec *iov, unsigned count, size_t excess)
{
	while (excess >= iov[count - 1].iov_len)
		excess -= iov[--count].iov_len;
	iov[count - 1].iov_len -= excess;
	return count;
}

unsigned nc_message_plan(const struct nc_message *message, unsigned end, struct iovec *iov,
			 unsigned max, size_t *planned)
{
	const struct NC_send *spec = message->spec;
	const size_t most = message->end - message->at;
	size_t within = message->within;
	unsigned count = 0, text = message->text;

	*planned = 0;
	if (message->memory && max)
		count = plan_memory(message, iov, max, planned);
	for (unsigned i = message->range; i < end && count < max && *planned < most; i++) {
		const struct NC_range *range = &spec->ranges[i];
		const struct nc_unit *unit = message->views[i].unit;
		char *base = message->lent ? nc_unit_lent_base(unit) : nc_unit_base(unit);
		size_t covered = 0;

		count +=
			nc_layout_iovec(&unit->layout, base, range->offset + within,
					range->length - within, iov + count, max - count, &covered);
		*planned += covered;
		within = 0;
		if (text < spec->text_count)
			count += plan_until(spec, i + 1, &text, iov + count, max - count, planned);
	}
	if (*planned > most) {
		count = trim(iov, count, *planned - most);
		*planned = most;
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

size_t nc_message_advance(struct nc_message *message, size_t bytes)
{
	const struct NC_send *spec = message->spec;
	size_t body = 0;

	message->at += bytes;
	while (bytes) {
		size_t part = bytes < message->memory ? bytes : message->memory;

		message->memory -= part;
		bytes -= part;
		if (!bytes || message->range == spec->range_count)
			break;
		part = spec->ranges[message->range].length - message->within;
		if (part > bytes)
			part = bytes;
		message->within += part;
		body += part;
		bytes -= part;
		if (message->within == spec->ranges[message->range].length)
			pass_range(message);
	}
	return body;
}

size_t nc_message_moved(struct nc_message *message, enum NC_method method, size_t bytes)
{
	size_t body = nc_message_advance(message, bytes);

	if (body)
		nc_index_count(message->index, method, body);
	return body;
}
