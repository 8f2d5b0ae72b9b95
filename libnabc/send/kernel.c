/* SPDX-License-Identifier: MIT */
/*
 * kernel.c - NABC_IOC_SOCKSENDV with header and ranges; see kernel.h.
 *
 * The module keeps the bytes until they are acknowledged, so the library need not
 * hold units in flight (invariant 1).  The FIN is sent with the last bytes, and
 * needs no cork.
 */
#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "cache/index.h"
#include "os/device.h"
#include "send/kernel.h"
#include "send/message.h"
#include "send/route.h"
#include "store/store.h"
#include "store/unit.h"

static bool kernel_takes(const struct nc_sending *sending, unsigned range)
{
	return nc_kernel_has(nc_sending_unit(sending, range));
}

/*
 * Finds what is to be sent before the units.  Returns false if the module cannot send that with
 * them at once: then another method sends it.
 */
static bool find_head(const struct nc_message *message, struct iovec *head)
{
	struct iovec pieces[2];
	size_t length;
	unsigned count = nc_message_plan(message, message->range, pieces, 2, &length);

	*head = count ? pieces[0] : (struct iovec){0};
	return count < 2 && length == message->memory &&
	       length <= message->index->device.header_max && length < message->end - message->at;
}

bool nc_kernel_next(const struct nc_message *message)
{
	struct iovec head;

	return message->range < message->spec->range_count &&
	       nc_kernel_has(message->views[message->range].unit) && find_head(message, &head);
}

/* Returns the first range behind the next text. */
static unsigned text_behind(const struct nc_message *message)
{
	const struct NC_send *spec = message->spec;

	return message->text < spec->text_count ? spec->texts[message->text].before
						: spec->range_count;
}

/*
 * Collects the consecutive ranges that are in the module, as far as they may be sent; returns
 * their number.  *length: bytes before them, then with them.
 */
static unsigned gather(const struct nc_message *message, struct nc_device_range *ranges,
		       size_t *length)
{
	const struct NC_send *spec = message->spec;
	const unsigned end = text_behind(message);
	size_t left = message->end - message->at - *length, within = message->within;
	unsigned count = 0;

	for (unsigned i = message->range; i < end && left; i++) {
		const struct NC_range *range = &spec->ranges[i];
		const struct nc_unit *unit = message->views[i].unit;
		size_t part = range->length - within;

		part = part < left ? part : left;
		if (range->length && !nc_kernel_has(unit))
			break;
		if (range->length)
			ranges[count++] = (struct nc_device_range){.id = unit->store->name,
								   .offset = range->offset + within,
								   .length = part};
		*length += part;
		left -= part;
		within = 0;
	}
	return count;
}

static unsigned flags_of(const struct nc_message *message, size_t length)
{
	unsigned flags = message->spec->flags & NC_SEND_DONTWAIT;

	if (message->at + length == message->total && message->spec->flags & NC_SEND_CLOSE)
		return flags | NC_SEND_CLOSE;
	return nc_message_more(message, length) ? flags | NC_SEND_MORE : flags;
}

ssize_t nc_kernel_send(const struct nc_message *message, int socket, unsigned flags,
		       struct nc_kernel_step *step)
{
	struct nc_device_range ranges[NC_RANGES_MAX];
	struct nc_device_send send = {.ranges = ranges};
	struct iovec head;
	ssize_t sent;

	(void)find_head(message, &head);
	send.header = head.iov_base;
	send.header_length = head.iov_len;
	step->offered = head.iov_len;
	send.range_count = gather(message, ranges, &step->offered);
	send.flags = flags_of(message, step->offered) | flags;
	sent = nc_device_send(&message->index->device, socket, &send);
	step->closed = send.flags & NC_SEND_CLOSE && sent == (ssize_t)step->offered;
	return sent;
}

static int kernel_send(struct nc_sending *sending)
{
	struct nc_kernel_step step;
	ssize_t sent = nc_kernel_send(&sending->message, sending->socket,
				      sending->route.large ? NC_DEVICE_SUMS : 0, &step);

	if (sent == -EOPNOTSUPP) {
		nc_sending_drop(sending, NC_METHOD_KERNEL, NC_KERNEL_REFUSED);
		nc_route_kernel_refused(sending->routes, &sending->route);
		return 1;
	}
	if (sent < 0)
		return (int)sent;
	sending->closed = step.closed;
	return nc_sending_moved(sending, NC_METHOD_KERNEL, step.offered, (size_t)sent);
}

const struct nc_method nc_kernel_method = {.id = NC_METHOD_KERNEL,
					   .name = "kernel",
					   .headed = true,
					   .takes = kernel_takes,
					   .send = kernel_send};
