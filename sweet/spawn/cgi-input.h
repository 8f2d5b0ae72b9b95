/* SPDX-License-Identifier: MIT */
/*
 * cgi-input.h - what a CGI program reads: the request's body, which is written
 * to it as it takes it, piece by piece.
 *
 * One thread.  The callbacks come from the loop, never during a call, and are
 * the last that is done with an input.
 */
#ifndef SWEET_CGI_INPUT_H
#define SWEET_CGI_INPUT_H

#include "base/body-queue.h"
#include "event/loop.h"

struct cgi_input {
	struct loop *loop;
	int fd; /* -1: closed */
	/* It has taken what there was, and more is to come: cgi_input_add(). */
	void (*hungry)(struct cgi_input *input);
	/* It reads no more, though more was to come: the input is closed. */
	void (*deaf)(struct cgi_input *input);
	/* cgi-input.c's */
	struct loop_watch watch;
	struct loop_send send;
	struct body_queue queue;
	struct NC_range piece; /* that is being written */
	bool running, sending;
};

/* Makes the connection; *theirs is for the program.  0 or -errno. */
int cgi_input_open(struct cgi_input *input, struct loop *loop, int *theirs);

/* A further piece, BODY_QUEUE_MAX of them at a time; see body_queue_add(). */
int cgi_input_add(struct cgi_input *input, size_t id, size_t length, bool more);

/* The program runs: nothing is written before. */
void cgi_input_start(struct cgi_input *input);

/* The program finds the end of its input, sooner or later. */
void cgi_input_close(struct cgi_input *input);

#endif
