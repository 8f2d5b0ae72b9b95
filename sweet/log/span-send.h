/* SPDX-License-Identifier: MIT */
/*
 * span-send.h - sends spans to a collector by HTTP, and says what its answer means (OTLP 1, "OTLP/HTTP
 * Response").  A build without libcurl has none of this.
 *
 * A sender belongs to one thread, which it blocks; others may limit or wake it.
 */
#ifndef SWEET_SPAN_SEND_H
#define SWEET_SPAN_SEND_H

#include <stddef.h>
#include <stdint.h>

struct span_sender;

/* What is sent, to whom. */
struct span_target {
	char *url; /* NULL: none */
	char *service;
	char *ca;	/* file of certificates that certify it; NULL: the system's */
	char **headers; /* "NAME: VALUE" */
};

enum span_outcome {
	SPAN_ACCEPTED,
	SPAN_RETRY,   /* later */
	SPAN_REFUSED, /* and would be again */
	SPAN_STOPPED, /* the time limit is over */
};

struct span_answer {
	enum span_outcome outcome;
	unsigned code;		/* distinguishes reasons */
	unsigned retry_after_s; /* at least; 0: not said */
	uint64_t rejected;	/* spans that an accepted request lost */
	char why[256];		/* unless it is accepted */
};

/* Returns NULL, or what is missing in this build or on this machine, for a message. */
const char *span_send_missing(void);

/* Returns NULL without memory or libcurl.  Main thread, both. */
struct span_sender *span_sender_open(void);
void span_sender_close(struct span_sender *sender); /* may be NULL */

/* Sends the text and waits for the answer. */
void span_sender_post(struct span_sender *sender, const struct span_target *target,
		      const char *text, size_t length, struct span_answer *answer);

/* Waits so long, or until it is woken. */
void span_sender_wait(struct span_sender *sender, unsigned ms);

/* Any thread: wakes it; sends nothing after that moment of clock_monotonic_ns(), 0: no limit. */
void span_sender_wake(struct span_sender *sender);
void span_sender_limit(struct span_sender *sender, uint64_t until_ns);

#endif
