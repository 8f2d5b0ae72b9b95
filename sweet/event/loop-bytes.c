/* SPDX-License-Identifier: MIT */
/*
 * loop-bytes.c - the bytes of a message, wherever they are: in memory, in units, in a file.
 */
#include <errno.h>
#include <nabc.h>
#include <stdbool.h>
#include <string.h>
#include <sys/param.h>
#include <sys/uio.h>
#include <unistd.h>

#include "event/data-path.h"
#include "event/loop.h"
#include "event/piece.h"

size_t loop_send_length(const struct loop_send *op)
{
	size_t total = op->message.header_length + op->file.length;

	for (unsigned i = 0; i < op->message.range_count; i++)
		total += op->message.ranges[i].length;
	for (unsigned i = 0; i < op->message.text_count; i++)
		total += op->message.texts[i].length;
	for (unsigned i = 0; i < op->piece_count; i++)
		total += op->pieces[i].iov_len;
	return total;
}

static const char *run_of_pieces(const struct loop_send *op, size_t at, size_t *run)
{
	const struct iovec *piece = op->pieces;

	for (; at >= piece->iov_len; piece++)
		at -= piece->iov_len;
	*run = piece->iov_len - at;
	return (const char *)piece->iov_base + at;
}

/* Finds the byte of the texts before a range; otherwise subtracts their lengths. */
static const char *run_of_texts(const struct NC_send *message, unsigned range, size_t *at,
				size_t *run)
{
	for (unsigned i = 0; i < message->text_count; i++) {
		const struct NC_text *text = &message->texts[i];

		if (text->before != range)
			continue;
		if (*at < text->length) {
			*run = text->length - *at;
			return (const char *)text->data + *at;
		}
		*at -= text->length;
	}
	return NULL;
}

const char *loop_send_run(const struct loop_send *op, size_t at, size_t *run)
{
	const struct NC_send *message = &op->message;

	if (op->pieces)
		return run_of_pieces(op, at, run);
	if (at < message->header_length) {
		*run = message->header_length - at;
		return (const char *)message->header + at;
	}
	at -= message->header_length;
	for (unsigned i = 0; i <= message->range_count; i++) {
		const char *data = run_of_texts(message, i, &at, run);
		const struct NC_range *range;

		if (data)
			return data;
		if (i == message->range_count)
			break;
		range = &message->ranges[i];
		if (at >= range->length) {
			at -= range->length;
			continue;
		}
		data = NC_data(data_path_hold(message, i), run, range->offset + at);
		*run = MIN(*run, range->length - at);
		return data;
	}
	errno = ENODATA;
	return NULL;
}

static bool is_in_file(const struct loop_send *op, size_t at)
{
	return op->file.length && at >= op->message.header_length;
}

static ssize_t copy_file(const struct loop_send *op, size_t at, char *room, size_t most)
{
	ssize_t got;

	do {
		got = pread(op->file.fd, room, most,
			    (off_t)(op->file.offset + at - op->message.header_length));
	} while (got < 0 && errno == EINTR);
	if (got == 0)
		errno = ERANGE;
	return got > 0 ? got : -1;
}

ssize_t loop_send_copy(const struct loop_send *op, size_t at, char *room, size_t most)
{
	size_t done = 0;

	while (done < most) {
		if (is_in_file(op, at + done)) {
			ssize_t got = copy_file(op, at + done, room + done, most - done);

			if (got < 0)
				return done ? (ssize_t)done : -1;
			done += (size_t)got;
		} else {
			size_t run;
			const char *data = loop_send_run(op, at + done, &run);

			if (!data)
				return -1;
			run = MIN(run, most - done);
			memcpy(room + done, data, run);
			done += run;
		}
	}
	return (ssize_t)done;
}
