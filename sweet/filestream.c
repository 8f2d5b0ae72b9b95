/* SPDX-License-Identifier: MIT */
/*
 * filestream.c - see filestream.h.  A stream belongs to its transaction's
 * thread, but for the time that its job is with a helper; a transaction that
 * ends then leaves it to the job's end.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <glib.h>

#include <filestream.h>
#include <server.h>

#define WINDOW ((size_t)1 << 20) /* bytes */

struct filestream {
	struct job job;
	struct transaction *transaction; /* NULL: it has ended */
	struct content *content;
	int fd;
	char *path;
	struct file_version version;
	off_t offset;		    /* of the next read */
	size_t window;		    /* bytes at most in a unit */
	size_t ready, ready_length; /* id and bytes of a read window; 0: none */
	size_t sending;		    /* id; 0: none */
	bool reading;		    /* the job is with a helper */
	bool wanted;		    /* the connection waits */
	bool begun;		    /* a window has been handed over */
	int error;
};

static int read_window(struct filestream *stream)
{
	size_t length = stream->window;
	struct file_version after;
	NC_handle handle;
	ssize_t got;
	int error = 0;

	if ((off_t)length > stream->version.size - stream->offset)
		length = (size_t)(stream->version.size - stream->offset);
	if (lseek(stream->fd, stream->offset, SEEK_SET) < 0 ||
	    NC_alloc_kind(&handle, length, 0, NC_KIND_RECYCLED) < 0)
		return -errno;
	got = NC_read(stream->fd, &handle, 0, length);
	if (got != (ssize_t)length)
		error = got < 0 ? -errno : -EAGAIN;
	if (!error)
		error = docroot_version(stream->fd, &after);
	if (!error && !file_version_equal(&after, &stream->version))
		error = -EAGAIN;
	if (!error && NC_insert(&handle) < 0)
		error = -errno;
	if (!error) {
		/* Nobody else may name it: the hold is all that keeps it. */
		stream->ready = NC_cache_id(&handle);
		stream->ready_length = length;
		if (NC_hold(stream->ready) < 0)
			error = -errno;
		(void)NC_destroy(stream->ready);
		if (error)
			stream->ready = 0;
	}
	(void)NC_free(&handle);
	stream->offset += (off_t)length;
	return error;
}

static void work(struct job *job)
{
	struct filestream *stream = (struct filestream *)job;
	struct file_version now;

	if (stream->fd < 0) {
		stream->fd = docroot_open_file(content_root(stream->content), stream->path, &now);
		if (stream->fd < 0) {
			stream->error = stream->fd;
			return;
		}
		if (!file_version_equal(&now, &stream->version)) {
			stream->error = -EAGAIN;
			return;
		}
	}
	stream->error = read_window(stream);
}

static void stream_free(struct filestream *stream)
{
	if (stream->ready)
		(void)NC_release(stream->ready);
	if (stream->sending)
		(void)NC_release(stream->sending);
	if (stream->fd >= 0)
		close(stream->fd);
	content_close(stream->content);
	g_free(stream->path);
	g_free(stream);
}

static void read_ahead(struct filestream *stream)
{
	if (stream->reading || stream->ready || stream->error ||
	    stream->offset >= stream->version.size)
		return;
	stream->reading = true;
	helper_submit(stream->transaction->server->site->helpers, &stream->job);
}

/* Hands the window that is ready to the connection. */
static void hand_over(struct filestream *stream)
{
	struct transaction *transaction = stream->transaction;

	stream->begun = true;
	stream->sending = stream->ready;
	stream->ready = 0;
	transaction->body =
		(struct NC_range){.id = stream->sending, .length = stream->ready_length};
	read_ahead(stream);
}

/* A stream that breaks before its head has left is an ordinary error. */
static void break_off(struct filestream *stream)
{
	if (stream->begun) {
		stream->transaction->status = 0;
		return;
	}
	/* Without the file's own lines and length, and with a page in their place. */
	stream->transaction->head_length = 0;
	stream->transaction->length = 0;
	transaction_fail(stream->transaction, 503,
			 stream->error == -EAGAIN ? "The file is being changed."
						  : "The file cannot be read now.");
	stream->transaction->next = NULL;
}

static void work_done(struct job *job)
{
	struct filestream *stream = (struct filestream *)job;

	stream->reading = false;
	if (!stream->transaction) {
		stream_free(stream);
		return;
	}
	if (!stream->wanted)
		return;
	stream->wanted = false;
	if (stream->error)
		break_off(stream);
	else
		hand_over(stream);
	stream->transaction->done(stream->transaction);
}

static struct filestream **stream_of(struct transaction *transaction)
{
	return (struct filestream **)(void *)transaction->scratch;
}

static enum respond next(struct transaction *transaction)
{
	struct filestream *stream = *stream_of(transaction);

	if (stream->sending)
		(void)NC_release(stream->sending);
	stream->sending = 0;
	transaction->body = (struct NC_range){0};
	/* There was no room for it beside the window that is sent now. */
	if (!stream->reading && stream->error == -ENOMEM) {
		stream->error = 0;
		read_ahead(stream);
	}
	/* While a helper reads, what it leaves here is not to be looked at. */
	if (stream->reading) {
		stream->wanted = true;
		return RESPOND_LATER;
	}
	if (stream->error)
		break_off(stream);
	else
		hand_over(stream);
	return RESPOND_NOW;
}

static void finish(struct transaction *transaction)
{
	struct filestream *stream = *stream_of(transaction);

	stream->transaction = NULL;
	if (!stream->reading)
		stream_free(stream);
}

enum respond filestream_respond(struct transaction *transaction, const char *path,
				const struct file_version *version)
{
	const struct site *site = transaction->server->site;
	struct filestream *stream = g_new0(struct filestream, 1);

	*stream_of(transaction) = stream;
	stream->transaction = transaction;
	stream->job =
		(struct job){.work = work, .done = work_done, .loop = transaction->server->loop};
	stream->content = content_ref(transaction->scope->content);
	stream->fd = -1;
	stream->path = g_strdup(path);
	stream->version = *version;
	stream->window = site->max_unit < WINDOW ? site->max_unit : WINDOW;
	stream->wanted = true;
	transaction->next = next;
	transaction->finish = finish;
	read_ahead(stream);
	return RESPOND_LATER;
}
