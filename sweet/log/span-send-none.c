/* SPDX-License-Identifier: MIT */
/*
 * span-send-none.c - see span-send.h: a build without libcurl, whose configuration refuses a
 * collector.
 */

#include <stddef.h>
#include <stdint.h>

#include "log/span-send.h"

const char *span_send_missing(void)
{
	return "must be off: this server was built without libcurl (on Debian: apt-get install "
	       "libcurl4-openssl-dev, then build again)";
}

struct span_sender *span_sender_open(void)
{
	return NULL;
}

void span_sender_close(struct span_sender *sender)
{
	(void)sender;
}

void span_sender_post(struct span_sender *sender, const struct span_target *target,
		      const char *text, size_t length, struct span_answer *answer)
{
	(void)sender;
	(void)target;
	(void)text;
	(void)length;
	*answer = (struct span_answer){.outcome = SPAN_REFUSED};
}

void span_sender_wait(struct span_sender *sender, unsigned ms)
{
	(void)sender;
	(void)ms;
}

void span_sender_wake(struct span_sender *sender)
{
	(void)sender;
}

void span_sender_limit(struct span_sender *sender, uint64_t until_ns)
{
	(void)sender;
	(void)until_ns;
}
