/* SPDX-License-Identifier: MIT */
/*
 * data-path-posix.c - sends header and body from ordinary memory in one call.  Here
 * the data of a unit (a file, a window of a CGI program's output) is plain memory
 * of this process.
 *
 * sendmsg() is a writev() that raises no SIGPIPE and accepts MSG_MORE.  The kernel
 * gets no reference to a page, the socket's limits remain, and closing the stream
 * is another call.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "event/data-path.h"

#define VECTORS 64u

/* The rest of a message, as far as the vectors and the limit suffice. */
struct gathered {
	struct iovec iov[VECTORS];
	unsigned count;
	size_t skip;  /* bytes of the next data that were sent already */
	size_t left;  /* bytes that may still be sent */
	size_t bytes; /* in iov */
	bool full;
	bool cut; /* by the limit */
};

/* Whether no more can be gathered. */
static bool is_complete(const struct gathered *gathered)
{
	return gathered->full || gathered->cut;
}

static void put(struct gathered *gathered, const void *data, size_t length)
{
	size_t skip = gathered->skip;

	if (skip >= length) {
		gathered->skip -= length;
		return;
	}
	gathered->skip = 0;
	length -= skip;
	gathered->cut |= length > gathered->left;
	if (length > gathered->left)
		length = gathered->left;
	gathered->full |= length && gathered->count == VECTORS;
	if (gathered->full || !length)
		return;
	gathered->iov[gathered->count++] = (struct iovec){
		.iov_base = (char *)(uintptr_t)data + skip,
		.iov_len = length,
	};
	gathered->bytes += length;
	gathered->left -= length;
}

/* Returns false and sets errno if the hold was released, or the unit is shorter. */
static bool put_range(struct gathered *gathered, const struct NC_range *range,
		      const struct NC_hold *hold)
{
	size_t done = 0, run;

	if (gathered->skip >= range->length) {
		gathered->skip -= range->length;
		return true;
	}
	while (done < range->length && !is_complete(gathered)) {
		const void *data = NC_data(hold, &run, range->offset + done);

		if (!data)
			return false;
		if (run > range->length - done)
			run = range->length - done;
		put(gathered, data, run);
		done += run;
	}
	return true;
}

/* done: bytes that were sent since the message's skip. */
static bool gather(struct gathered *gathered, const struct NC_send *message, size_t done)
{
	unsigned text = 0;

	gathered->count = 0;
	gathered->skip = message->skip + done;
	gathered->left = message->limit ? message->limit - done : SIZE_MAX;
	gathered->bytes = 0;
	gathered->full = gathered->cut = false;
	put(gathered, message->header, message->header_length);
	for (unsigned i = 0; i <= message->range_count && !is_complete(gathered); i++) {
		for (; text < message->text_count && message->texts[text].before <= i; text++)
			put(gathered, message->texts[text].data, message->texts[text].length);
		if (i < message->range_count &&
		    !put_range(gathered, &message->ranges[i], data_path_hold(message, i)))
			return false;
	}
	return true;
}

static ssize_t posix_send(int socket, const struct NC_send *message)
{
	struct gathered gathered;
	size_t done = 0;

	for (;;) {
		struct msghdr header = {.msg_iov = gathered.iov};
		int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
		ssize_t sent = -1;

		if (!gather(&gathered, message, done))
			return -1;
		if (gathered.count == 0)
			break;
		/*
		 * If the end of the stream follows, it leaves together with the
		 * held-back data.
		 */
		if (is_complete(&gathered) || message->flags & (NC_SEND_MORE | NC_SEND_CLOSE))
			flags |= MSG_MORE;
		header.msg_iovlen = gathered.count;
		sent = sendmsg(socket, &header, flags);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return done ? (ssize_t)done : -1;
		done += (size_t)sent;
		/*
		 * Usually everything was sent; after a short write, the next call
		 * returns EAGAIN.
		 */
		if (!gathered.full && (size_t)sent == gathered.bytes)
			break;
	}
	if (message->flags & NC_SEND_CLOSE && !gathered.cut && shutdown(socket, SHUT_WR) < 0)
		return -1;
	return (ssize_t)done;
}

ssize_t data_path_write(int pipe, const struct NC_send *message)
{
	size_t done = 0;

	for (;;) {
		struct gathered gathered;
		ssize_t written;

		if (!gather(&gathered, message, done))
			return -1;
		if (gathered.count == 0)
			break;
		written = writev(pipe, gathered.iov, (int)gathered.count);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return done ? (ssize_t)done : -1;
		done += (size_t)written;
		if (!gathered.full && (size_t)written == gathered.bytes)
			break;
	}
	return (ssize_t)done;
}

static ssize_t posix_send_apart(int socket, const struct NC_send *message)
{
	return data_path_part(&data_path_posix, socket, message);
}

const struct data_path data_path_posix = {
	.name = "posix",
	.cache_flags = NC_CACHE_NO_URING | NC_CACHE_NO_KERNEL,
	.backend_flags = NC_BACKEND_POSIX,
	.send = posix_send,
	.send_apart = posix_send_apart,
};
