/* SPDX-License-Identifier: MIT */
/*
 * cgi-input.c - see cgi-input.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "base/container.h"
#include "spawn/cgi-input.h"

#define WRITE_MAX ((size_t)1 << 20) /* maximum bytes of a write */
#define ROOM (256 << 10)	    /* capacity of the pipe in bytes */

void cgi_input_close(struct cgi_input *input)
{
	if (input->fd >= 0)
		loop_close_fd(input->loop, input->fd);
	input->fd = -1;
	body_queue_clear(&input->queue);
}

static void stop_input(struct cgi_input *input)
{
	bool more = input->queue.more;

	cgi_input_close(input);
	if (more)
		input->stopped_reading(input);
}

static void cgi_input_sent(struct loop_send *op, int result);

static void write_next(struct cgi_input *input)
{
	input->piece = body_queue_next(&input->queue, WRITE_MAX);
	if (input->piece.length) {
		input->send.message =
			(struct NC_send)NC_SEND_INIT(.ranges = &input->piece,
						     .holds = body_queue_hold(&input->queue),
						     .range_count = 1, .hold_count = 1);
		input->send.sent = cgi_input_sent;
		input->send.pipe = true;
		input->sending = true;
		loop_send_start(input->loop, &input->send, input->fd);
	} else if (!input->queue.more) {
		cgi_input_close(input);
	}
}

static void cgi_input_sent(struct loop_send *op, int result)
{
	struct cgi_input *input = container_of(op, struct cgi_input, send);

	input->sending = false;
	/* A program need not read its input. */
	if (result < 0) {
		stop_input(input);
		return;
	}
	body_queue_written(&input->queue, input->piece.length);
	write_next(input);
	if (input->fd >= 0 && !input->sending)
		input->drained(input);
}

/* The program cannot write to this pipe: the event is its end. */
static void cgi_input_closed(struct loop_watch *watch)
{
	stop_input(container_of(watch, struct cgi_input, watch));
}

int cgi_input_open(struct cgi_input *input, struct loop *loop, int *theirs)
{
	int ends[2];

	/*
	 * No socket: the program could send descriptors back, and closing them can
	 * block this thread.
	 */
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	input->loop = loop;
	input->fd = ends[1];
	*theirs = ends[0];
	(void)fcntl(input->fd, F_SETFL, O_NONBLOCK);
	/* Fails if the user has too many pages in pipes; then the capacity stays as it is. */
	(void)fcntl(input->fd, F_SETPIPE_SZ, ROOM);
	input->watch.ready = cgi_input_closed;
	return loop_watch_socket(loop, &input->watch, input->fd);
}

int cgi_input_add(struct cgi_input *input, size_t id, size_t length, bool more)
{
	int error;

	if (input->fd < 0)
		return 0; /* the program does not read it */
	error = body_queue_add(&input->queue, id, length, more);
	if (!error && input->running && !input->sending)
		write_next(input);
	return error;
}

void cgi_input_start(struct cgi_input *input)
{
	input->running = true;
	write_next(input);
}
