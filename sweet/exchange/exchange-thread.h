/* SPDX-License-Identifier: MIT */
/*
 * exchange-thread.h - what this folder keeps for each thread (thread->exchange): private to its
 * sources.
 */
#ifndef SWEET_EXCHANGE_THREAD_H
#define SWEET_EXCHANGE_THREAD_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/date.h"
#include "base/random-id.h"
#include "config/configuration.h"

struct output;
struct ready_memory;

struct exchange_thread {
	/* Of output.c: the fields that all responses of a second share, and their date. */
	uint64_t date_until_ms; /* loop's clock; 0: not made yet */
	const struct config *date_config;
	time_t dated; /* the second of the date */
	size_t lead_length;
	size_t lead_pad; /* offset in it where padding is inserted */
	char lead[CONFIG_SERVER_HEADER_MAX + 64];
	char date[DATE_LENGTH];
	time_t other_date; /* the last date of a response from elsewhere; 0: none */
	char other_date_text[DATE_LENGTH];
	struct output *spare;		   /* the first that is not used */
	unsigned spare_count, spare_least; /* in this second */
	struct random_id ids;		   /* of output-identity.c */
	struct ready_memory *ready;	   /* of ready.c; NULL until it is needed */
};

#endif
