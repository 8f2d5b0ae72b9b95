/* SPDX-License-Identifier: MIT */
/*
 * input.c - see input.h.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "input.h"
#include "layout.h"
#include "server-link.h"

static struct fcgi_input *input_of(const struct fcgi_stream *stream)
{
	return stream->data;
}

static void show(struct fcgi_stream *stream, unsigned char *from, size_t length)
{
	stream->read_next = stream->stop_unget = from;
	stream->stop = stream->write_next = from + length;
}

static void end(struct fcgi_stream *stream, int error)
{
	show(stream, NULL, 0);
	stream->is_closed = 1;
	if (error)
		stream->error = error;
}

static void release(struct fcgi_input *input)
{
	if (input->is_held)
		(void)NC_release(&input->hold);
	input->is_held = false;
	free(input->copy);
	input->copy = NULL;
	if (input->saved)
		(void)munmap(input->saved, input->saved_length);
	input->saved = NULL;
}

/* Returns 1 with a piece that is held, 0 at the end of the body, or -1 with errno. */
static int next_piece(struct fcgi_input *input)
{
	int got;

	release(input);
	do
		got = fcgi_link_body(input->request, &input->left);
	while (got > 0 && input->left.length == 0);
	if (got > 0 && NC_hold(NULL, input->left.id, &input->hold))
		return -1;
	input->is_held = got > 0;
	return got;
}

/* Returns the next run of bytes, or 0 at the end of the body, or -1 with errno. */
static ssize_t next_run(struct fcgi_input *input, const void **data)
{
	size_t run;
	int got = input->left.length ? 1 : next_piece(input);

	if (got <= 0)
		return got;
	*data = NC_data(&input->hold, &run, input->left.offset);
	if (!*data)
		return -1;
	run = run < input->left.length ? run : input->left.length;
	input->left.offset += run;
	input->left.length -= run;
	return (ssize_t)run;
}

static void input_fill(struct fcgi_stream *stream)
{
	struct fcgi_input *input = input_of(stream);
	const void *data = NULL;
	ssize_t run;

	if (stream->is_closed)
		return;
	run = input->saved ? 0 : next_run(input, &data);
	if (run <= 0)
		end(stream, run ? errno : 0);
	else
		/* A program may only read there; see fcgi_input_replace(). */
		show(stream, (unsigned char *)(uintptr_t)data, (size_t)run);
}

/* Copies these bytes, and all that follow, into a file, which the stream then shows. */
static void keep_rest(struct fcgi_stream *stream, const void *data, ssize_t run)
{
	struct fcgi_input *input = input_of(stream);
	void *memory = MAP_FAILED;
	FILE *file = tmpfile();
	size_t length = 0;
	int error;

	if (!file) {
		end(stream, errno);
		return;
	}
	while (run > 0 && fwrite(data, 1, (size_t)run, file) == (size_t)run) {
		length += (size_t)run;
		run = next_run(input, &data);
	}
	if (run == 0 && fflush(file) == 0)
		memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
	error = errno;
	(void)fclose(file);
	release(input);
	if (memory == MAP_FAILED) {
		end(stream, error);
		return;
	}
	input->saved = memory;
	input->saved_length = length;
	show(stream, memory, length);
}

void fcgi_input_save(struct fcgi_stream *stream)
{
	struct fcgi_input *input = input_of(stream);
	const void *data = stream->read_next;
	ssize_t run = stream->stop - stream->read_next;

	if (stream->is_closed || input->saved)
		return;
	if (run == 0)
		run = next_run(input, &data);
	if (run > 0)
		keep_rest(stream, data, run);
	else
		end(stream, run ? errno : 0);
}

void fcgi_input_open(struct fcgi_stream *stream, struct fcgi_input *input,
		     struct NC_request *request)
{
	*input = (struct fcgi_input){.request = request};
	*stream = (struct fcgi_stream){.is_reader = 1, .fill = input_fill, .data = input};
}

void fcgi_input_close(struct fcgi_stream *stream)
{
	release(input_of(stream));
	end(stream, 0);
}

int fcgi_input_replace(struct fcgi_stream *stream, unsigned char byte)
{
	struct fcgi_input *input = input_of(stream);
	size_t before = (size_t)(stream->read_next - stream->stop_unget);
	size_t length = (size_t)(stream->stop - stream->stop_unget);

	if (!input->copy) {
		input->copy = malloc(length);
		if (!input->copy)
			return -1;
		memcpy(input->copy, stream->stop_unget, length);
		show(stream, input->copy, length);
		stream->read_next += before;
	}
	*--stream->read_next = byte;
	return 0;
}

void fcgi_input_forget(struct fcgi_stream *stream)
{
	end(stream, EACCES);
}
