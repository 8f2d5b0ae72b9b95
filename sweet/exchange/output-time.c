/* SPDX-License-Identifier: MIT */
/*
 * output-time.c - the parts of a request's time, by the loop's clock: what is recorded costs no
 * reading of a clock.
 */
#include <stdint.h>
#include <stdio.h>

#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "exchange/output.h"
#include "log/access-line.h"

static uint64_t us_between(uint64_t from, uint64_t to)
{
	return from && to >= from ? (to - from) / 1000 : ACCESS_UNKNOWN;
}

struct output_times output_times(const struct output *output)
{
	const struct transaction_times *times = &output->transaction.times;
	uint64_t now = loop_now_ns(output->transaction.thread->loop);

	return (struct output_times){
		.queue_us = us_between(times->ready_ns,
				       times->submitted_ns ? times->submitted_ns : now),
		.program_us = us_between(times->submitted_ns,
					 times->answered_ns ? times->answered_ns : now),
		.send_us = us_between(output->responded_ns, now),
		.total_us = (now - output->began_ns) / 1000,
	};
}

static char *append_time(char *at, const char *name, uint64_t us)
{
	return at + sprintf(at, "%s;dur=%llu.%03u", name, (unsigned long long)us / 1000,
			    (unsigned)(us % 1000));
}

char *output_write_timing(char *at, const struct output *output)
{
	struct output_times times = output_times(output);

	if (times.queue_us != ACCESS_UNKNOWN)
		at = append_time(at, "queue", times.queue_us);
	if (times.program_us != ACCESS_UNKNOWN)
		at = append_time(at, ", program", times.program_us);
	if (times.queue_us != ACCESS_UNKNOWN)
		at += sprintf(at, ", ");
	return append_time(at, "total", times.total_us);
}
