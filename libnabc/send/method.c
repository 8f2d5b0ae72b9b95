/* SPDX-License-Identifier: MIT */
/* method.c - the accounting that all methods share; see method.h. */

#include <nabc-worker.h>

#include "send/method.h"

int nc_sending_moved(struct nc_sending *sending, enum NC_method method, size_t offered,
		     size_t moved)
{
	size_t body = nc_message_moved(&sending->message, method, moved);

	if (body) {
		sending->tally.sends[method]++;
		sending->tally.bytes[method] += body;
	}
	if (moved < offered)
		sending->tally.partial++;
	return moved == offered || (moved && sending->retry_short);
}
