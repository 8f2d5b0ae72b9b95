/* SPDX-License-Identifier: MIT */
/*
 * filestream.c - see filestream.h.  A stream belongs to its transaction's
 * thread, but for the time that its job is with a helper; a transaction that
 * ends then leaves it to the job's end.
 *
 * Each window is read into memory of our own, the file's version is compared,
 * and only then a byte of it is sent.  sendfile(2) or splice(2) from the file
 * would save the copy, but what they have put into a socket is the page cache
 * itself: bytes that are written to the file until the client has them change
 * what it gets, after any comparison.  Nothing that was sent here can change.
 *
 * What is compared are the times that the kernel keeps.  A program that maps
 * the file and writes to its pages moves them once in a while only; no server
 * can see that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <glib.h>

#include <filestream.h>
#include <server.h>

#define WINDOW ((size_t)1 << 20)       /* bytes */
#define WINDOW_LEAST ((size_t)1 << 16) /* that memory which is short makes of it */
#define WAIT_MS 20		       /* for others to give back some */

struct filestream {
	struct job job;
	struct transaction *transaction; /* NULL: it has ended */
	const struct filestream_owner *owner;
	struct content_turn *turn;
	struct content *content;
	struct content_entry *entry;
	int fd;
	struct file_version version;
	unsigned part; /* range of the next read */
	uint64_t at;   /* bytes of that range that have been read */
	struct range_set ranges;
	size_t window;		    /* bytes at most in a unit */
	size_t ready, ready_length; /* id and bytes of a read window; 0: none */
	bool ready_leads;	    /* it is the first of its range */
	size_t sending;		    /* id; 0: none */
	bool reading;		    /* the job is with a helper */
	bool wanted;		    /* the connection waits */
	bool begun;		    /* a window has been handed over */
	bool renewed;		    /* another version was opened than was looked up */
	int error;
	struct timer patience; /* until memory is asked for again */
};

/* --- reading, on a helper thread ------------------------------------------------ */

static int read_window(struct filestream *stream)
{
	const struct range *range = &stream->ranges.ranges[stream->part];
	uint64_t left = range->length - stream->at;
	size_t length = left < stream->window ? (size_t)left : stream->window;
	struct file_version after;
	NC_handle handle;
	ssize_t got;
	int error = 0;

	if (lseek(stream->fd, (off_t)(range->first + stream->at), SEEK_SET) < 0 ||
	    NC_alloc_kind(&handle, length, 0, NC_KIND_RECYCLED | NC_KIND_UNSUMMED) < 0)
		return -errno;
	got = NC_read(stream->fd, &handle, 0, length);
	if (got != (ssize_t)length)
		error = got < 0 ? -errno : -EAGAIN;
	if (!error)
		error = docroot_version(stream->fd, &after);
	/* A file that was renamed or unlinked is sent to its end. */
	if (!error && !file_version_same_bytes(&after, &stream->version))
		error = -EAGAIN;
	if (!error && NC_insert(&handle) < 0)
		error = -errno;
	if (!error) {
		/* Nobody else may name it: the hold is all that keeps it. */
		stream->ready = NC_cache_id(&handle);
		stream->ready_length = length;
		stream->ready_leads = stream->at == 0;
		if (NC_hold(stream->ready) < 0)
			error = -ENOMEM; /* evicted already */
		(void)NC_destroy(stream->ready);
		if (error)
			stream->ready = 0;
	}
	(void)NC_free(&handle);
	if (!error)
		stream->at += length;
	return error;
}

/* A version that is not the one that was looked up must be at rest as well. */
static int open_file(struct filestream *stream)
{
	struct file_version now;
	int error;

	stream->fd = docroot_open_file(content_root(stream->content),
				       content_view(stream->entry)->path, &now);
	if (stream->fd < 0)
		return stream->fd;
	(void)posix_fadvise(stream->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	if (file_version_equal(&now, &stream->version))
		return 0;
	stream->version = now;
	stream->renewed = true;
	file_version_rest(&now);
	error = docroot_version(stream->fd, &now);
	return !error && !file_version_same_bytes(&now, &stream->version) ? -EAGAIN : error;
}

static void work(struct job *job)
{
	struct filestream *stream = (struct filestream *)job;

	if (stream->fd < 0) {
		stream->error = open_file(stream);
		/* What is to be read of it, its thread has to say. */
		if (stream->error || stream->renewed)
			return;
	}
	stream->error = read_window(stream);
}

/* --- on the transaction's thread -------------------------------------------------- */

static void stream_free(struct filestream *stream)
{
	if (stream->ready)
		(void)NC_release(stream->ready);
	if (stream->sending)
		(void)NC_release(stream->sending);
	if (stream->fd >= 0)
		close(stream->fd);
	content_turn_put(stream->turn, stream->content, stream->entry);
	content_close(stream->content);
	g_free(stream);
}

static void read_ahead(struct filestream *stream)
{
	if (stream->reading || stream->ready || stream->error)
		return;
	if (stream->at == stream->ranges.ranges[stream->part].length) {
		if (stream->part + 1 >= stream->ranges.count)
			return;
		stream->part++;
		stream->at = 0;
	}
	stream->reading = true;
	helper_submit(stream->transaction->server->site->helpers, &stream->job);
}

/* The text behind the last range of several. */
static void hand_over_end(struct filestream *stream)
{
	struct transaction *transaction = stream->transaction;

	transaction->selection.part = stream->ranges.count;
	stream->owner->lead(transaction);
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
	if (transaction->selection.parts && stream->ready_leads) {
		transaction->selection.part = stream->part;
		stream->owner->lead(transaction);
	}
	read_ahead(stream);
}

/* A stream that breaks before its head has left is an ordinary error. */
static void break_off(struct filestream *stream)
{
	struct transaction *transaction = stream->transaction;

	if (stream->begun) {
		transaction->status = 0;
		return;
	}
	/* Without the file's own lines and length, and with a page in their place. */
	transaction->head_length = 0;
	transaction->length = 0;
	transaction->next = NULL;
	if (stream->error == -EAGAIN)
		transaction_fail(transaction, 503, "The file is being changed.");
	else if (stream->error == -ENOENT || stream->error == -ENOTDIR)
		transaction_fail(transaction, 404, NULL);
	else
		transaction_fail(transaction, 503, "The file cannot be read now.");
}

static void go_on(struct timer *timer)
{
	struct filestream *stream =
		(struct filestream *)((char *)timer - offsetof(struct filestream, patience));

	read_ahead(stream);
}

/*
 * There was no room for a window.  True: it is asked for again, a smaller one,
 * beside what is sent now, and later.
 */
static bool again(struct filestream *stream)
{
	if (stream->error != -ENOMEM)
		return false;
	stream->error = 0;
	if (stream->window > WINDOW_LEAST)
		stream->window /= 2;
	loop_timer_start(stream->job.loop, &stream->patience, WAIT_MS, go_on);
	return true;
}

/* The answer, as far as it is known by now; false: not yet. */
static bool answer(struct filestream *stream)
{
	struct transaction *transaction = stream->transaction;

	if (stream->renewed && !stream->error) {
		stream->renewed = false;
		if (!stream->owner->renewed(transaction, &stream->version)) {
			transaction->next = NULL;
			return true;
		}
		stream->ranges = transaction->selection.ranges;
		read_ahead(stream);
		return false;
	}
	if (stream->error)
		break_off(stream);
	else
		hand_over(stream);
	return true;
}

static void work_done(struct job *job)
{
	struct filestream *stream = (struct filestream *)job;

	stream->reading = false;
	if (!stream->transaction) {
		stream_free(stream);
		return;
	}
	if (again(stream) || !stream->wanted || !answer(stream))
		return;
	stream->wanted = false;
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
	/* While a helper reads, what it leaves here is not to be looked at. */
	if (!stream->reading && stream->patience.queue) {
		/* There may be room now, where that window was. */
		timer_stop(&stream->patience);
		read_ahead(stream);
	}
	if (stream->reading) {
		stream->wanted = true;
		return RESPOND_LATER;
	}
	if (stream->error)
		break_off(stream);
	else if (stream->ready)
		hand_over(stream);
	else
		hand_over_end(stream);
	return RESPOND_NOW;
}

static void finish(struct transaction *transaction)
{
	struct filestream *stream = *stream_of(transaction);

	stream->transaction = NULL;
	timer_stop(&stream->patience);
	if (!stream->reading)
		stream_free(stream);
}

enum respond filestream_respond(struct transaction *transaction, struct content *content,
				struct content_entry *entry, const struct filestream_owner *owner)
{
	const struct site *site = transaction->server->site;
	struct filestream *stream = g_new0(struct filestream, 1);

	*stream_of(transaction) = stream;
	stream->transaction = transaction;
	stream->owner = owner;
	stream->job =
		(struct job){.work = work, .done = work_done, .loop = transaction->server->loop};
	stream->turn = transaction->server->turn;
	stream->content = content_ref(content);
	stream->entry = entry;
	stream->fd = -1;
	stream->version = content_view(entry)->version;
	stream->ranges = transaction->selection.ranges;
	stream->window = site->max_unit < WINDOW ? site->max_unit : WINDOW;
	stream->wanted = true;
	transaction->next = next;
	transaction->finish = finish;
	read_ahead(stream);
	return RESPOND_LATER;
}
