/* SPDX-License-Identifier: MIT */
/* method.c - the accounting that all methods share; see method.h. */
#include "send/method.h"

int nc_sending_moved(struct nc_sending *sending, enum NC_method method, size_t offered,
		     size_t moved)
{
	const struct nc_message *message = &sending->message;
	/* The size class is that of the whole range, however much of it is left. */
	size_t whole = message->range < message->spec->range_count
			       ? message->spec->ranges[message->range].length
			       : 0;
	size_t body = nc_message_moved(&sending->message, method, moved);

	if (body) {
		sending->tally.sends[method]++;
		sending->tally.bytes[method] += body;
	}
	if (moved < offered)
		sending->tally.partial++;
	/*
	 * Units in the module teach nothing about other methods, which would have
	 * to fetch them first.
	 */
	if (sending->sampled && method != NC_METHOD_COPY && method != NC_METHOD_KERNEL)
		nc_route_took(&sending->route, method, whole, moved);
	return moved == offered || (moved && sending->retry_short);
}
