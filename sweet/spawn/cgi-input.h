/* SPDX-License-Identifier: MIT */
/*
 * cgi-input.h - the input of a CGI program: writes the request's body to its pipe,
 * unit after unit, as fast as it reads.
 *
 * For one thread.  The callbacks come from the loop, never during a call; the
 * cgi-input code does not use the input after a callback.
 */
#ifndef SWEET_CGI_INPUT_H
#define SWEET_CGI_INPUT_H

#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/body-queue.h"
#include "event/loop.h"

struct loop;

struct cgi_input {
	struct loop *loop;
	int fd; /* -1: closed */
	/* Everything was written, and more will follow: cgi_input_add(). */
	void (*drained)(struct cgi_input *input);
	/* The program stopped reading although more was to follow: the input is closed. */
	void (*stopped_reading)(struct cgi_input *input);
	/* Private to cgi-input.c: */
	struct loop_watch watch;
	struct loop_send send;
	struct body_queue queue;
	struct NC_range piece; /* being written */
	bool running, sending;
};

/* Creates the pipe; *theirs is the program's end.  Returns 0 or -errno. */
int cgi_input_open(struct cgi_input *input, struct loop *loop, int *theirs);

/* Adds a unit of the body; at most BODY_QUEUE_MAX at a time; see body_queue_add(). */
int cgi_input_add(struct cgi_input *input, size_t id, size_t length, bool more);

/* The program runs: starts writing. */
void cgi_input_start(struct cgi_input *input);

/* Closes the pipe; the program will find the end of its input. */
void cgi_input_close(struct cgi_input *input);

#endif
