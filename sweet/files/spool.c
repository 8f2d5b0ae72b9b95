/* SPDX-License-Identifier: MIT */
/*
 * spool.c - see spool.h: runs the operations of a spool, one after the other, and fills units
 * by them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "base/container.h"
#include "base/list.h"
#include "event/client-limit.h"
#include "event/thread-pool.h"
#include "files/spool-folder.h"
#include "files/spool.h"
#include "log/log.h"

#define RESERVE 4 /* this fraction is reserved for bodies that cannot wait elsewhere */

struct spools {
	int folder;
	char *path;
	bool memory;	      /* the folder may be in memory */
	_Atomic bool missing; /* it is gone, and the log says so */
	uint64_t most;
	struct thread_pool *thread_pool;
	pthread_mutex_t lock;
	struct list all; /* protected by the lock */
	_Atomic uint64_t bytes, files, written, refused;
	_Atomic bool stopped;
};

struct spool {
	struct job job;
	struct spools *spools;
	struct list_node node;	  /* protected by the lock of spools */
	int fd;			  /* -1: no file yet */
	int made;		  /* the file, or an error, set by the running job */
	struct spool_op *running; /* in use by the helpers */
	struct list queued;	  /* operations */
	bool busy, closed;
	int broken;	  /* -errno of a failed append */
	uint64_t length;  /* bytes that were appended or are queued */
	uint64_t charged; /* its share of spools->bytes */
};

/* --- all spools ----------------------------------------------------------------------- */

struct spools *spools_open(const struct spools_options *options, char **why)
{
	struct spools *spools;
	char *path = NULL;
	int folder;

	*why = NULL;
	folder = spool_open_folder(options, &path, why);
	if (folder < 0)
		return NULL;
	spools = g_new0(struct spools, 1);
	spools->folder = folder;
	spools->path = path;
	spools->most = options->most;
	spools->memory = options->memory;
	pthread_mutex_init(&spools->lock, NULL);
	return spools;
}

const char *spools_folder(const struct spools *spools)
{
	return spools->path;
}

void spools_start(struct spools *spools, struct thread_pool *thread_pool)
{
	if (spools)
		spools->thread_pool = thread_pool;
}

void spools_stop(struct spools *spools)
{
	if (spools)
		atomic_store(&spools->stopped, true);
}

bool spools_stopped(const struct spools *spools)
{
	return atomic_load(&spools->stopped);
}

void spools_stat(const struct spools *spools, struct spools_stat *stat)
{
	*stat = (struct spools_stat){0};
	if (!spools)
		return;
	stat->most = spools->most;
	stat->bytes = atomic_load_explicit(&spools->bytes, memory_order_relaxed);
	stat->files = atomic_load_explicit(&spools->files, memory_order_acquire);
	stat->written = atomic_load_explicit(&spools->written, memory_order_relaxed);
	stat->refused = atomic_load_explicit(&spools->refused, memory_order_relaxed);
}

bool spools_have_room(const struct spools *spools, uint64_t bytes)
{
	uint64_t most = spools->most - spools->most / RESERVE;

	return bytes <= most &&
	       atomic_load_explicit(&spools->bytes, memory_order_relaxed) <= most - bytes;
}

static bool charge(struct spools *spools, uint64_t bytes)
{
	uint64_t before = atomic_fetch_add_explicit(&spools->bytes, bytes, memory_order_relaxed);

	if (before <= spools->most && bytes <= spools->most - before)
		return true;
	atomic_fetch_sub_explicit(&spools->bytes, bytes, memory_order_relaxed);
	return false;
}

static void spool_refused(struct spools *spools)
{
	atomic_fetch_add_explicit(&spools->refused, 1, memory_order_relaxed);
}

/* --- on a helper thread -------------------------------------------------------------- */

/* Returns 0, or -errno if not everything was transferred. */
static int move(int fd, const struct spool_op *op)
{
	struct iovec some[64];
	uint64_t offset = op->offset;
	unsigned next = 0; /* index in op->iov */
	size_t skip = 0;   /* bytes of that one already transferred */

	while (next < op->count) {
		unsigned count = MIN(op->count - next, (unsigned)G_N_ELEMENTS(some));
		ssize_t moved;

		memcpy(some, op->iov + next, count * sizeof(*some));
		some[0].iov_base = (char *)some[0].iov_base + skip;
		some[0].iov_len -= skip;
		moved = op->append ? pwritev(fd, some, (int)count, (off_t)offset)
				   : preadv(fd, some, (int)count, (off_t)offset);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0)
			return -errno;
		offset += (uint64_t)moved;
		if (offset == op->offset + op->length)
			return 0;
		if (moved == 0)
			return op->append ? -ENOSPC : -EIO;
		for (skip += (size_t)moved; skip >= op->iov[next].iov_len; next++)
			skip -= op->iov[next].iov_len;
	}
	return 0;
}

/*
 * Returns a descriptor or -errno.  A folder that was deleted is opened again as soon as there is a new
 * one; the log says once that it is gone.
 */
static int make_file(struct spools *spools)
{
	int fd = spool_make_file(spools->folder), error;

	if (fd >= 0 || !spool_folder_is_gone(spools->folder))
		return fd;
	error = spool_renew_folder(spools->folder, spools->path, spools->memory);
	if (!error)
		fd = spool_make_file(spools->folder);
	if (fd >= 0) {
		atomic_store(&spools->missing, false);
		log_notice("spool-directory \"%s\": was deleted, and is opened again",
			   spools->path);
	} else if (!atomic_exchange(&spools->missing, true)) {
		log_warning("spool-directory \"%s\": was deleted, and cannot be opened again: "
			    "%s: requests with large bodies get status 503; make the folder again, "
			    "for the same user",
			    spools->path,
			    error == -EPERM	    ? "it belongs to another user than before"
			    : error == -EMEDIUMTYPE ? "it is in memory, not on a disk"
						    : strerror(error ? -error : -fd));
	}
	return fd < 0 ? -ENOENT : fd;
}

static void spool_work(struct job *job)
{
	struct spool *spool = container_of(job, struct spool, job);
	struct spool_op *op = spool->running;

	op->result = op->append ? spool->broken : 0;
	if (op->result)
		return;
	if (spool->made < 0)
		spool->made = make_file(spool->spools);
	op->result = spool->made < 0 ? spool->made : move(spool->made, op);
}

/* Freeing the blocks of a large file takes time. */
static void spool_close_work(struct job *job)
{
	struct spool *spool = container_of(job, struct spool, job);

	if (spool->made >= 0)
		close(spool->made);
	spool->made = -1;
}

/* --- on the loop's thread ---------------------------------------------------------------- */

static void unlist(struct spool *spool)
{
	struct spools *spools = spool->spools;

	pthread_mutex_lock(&spools->lock);
	list_remove(&spool->node);
	pthread_mutex_unlock(&spools->lock);
}

static void free_spool(struct spool *spool)
{
	struct spools *spools = spool->spools;

	if (spool->made >= 0)
		close(spool->made);
	unlist(spool);
	atomic_fetch_sub_explicit(&spools->bytes, spool->charged, memory_order_relaxed);
	free(spool);
	/* Last: who sees that there is none may close the spools. */
	atomic_fetch_sub_explicit(&spools->files, 1, memory_order_release);
}

static void spool_was_closed(struct job *job)
{
	free_spool(container_of(job, struct spool, job));
}

static void spool_worked(struct job *job);

/* Starts the next operation, or closes the spool. */
static void start_next(struct spool *spool)
{
	/* After spools_stop(), spools_close() does the rest: no loop runs any more. */
	if (spool->busy || (list_is_empty(&spool->queued) && !spool->closed) ||
	    atomic_load(&spool->spools->stopped))
		return;
	spool->busy = true;
	spool->running = list_take(&spool->queued, struct spool_op, node);
	spool->job.work = spool->running ? spool_work : spool_close_work;
	spool->job.done = spool->running ? spool_worked : spool_was_closed;
	thread_pool_submit(spool->spools->thread_pool, &spool->job);
}

static void spool_worked(struct job *job)
{
	struct spool *spool = container_of(job, struct spool, job);
	struct spool_op *op = spool->running;

	spool->running = NULL;
	/* Then nobody waits for the operation. */
	if (!job->worked)
		op->result = -ECANCELED;
	spool->fd = spool->made >= 0 ? spool->made : -1;
	if (op->append && op->result < 0 && !spool->broken && job->worked) {
		spool->broken = op->result;
		spool_refused(spool->spools);
	} else if (op->append && !op->result) {
		atomic_fetch_add_explicit(&spool->spools->written, op->length,
					  memory_order_relaxed);
	}
	/* Still busy: done() may start further operations, or close the spool. */
	if (op->done)
		op->done(op, op->result);
	op->drop(op);
	spool->busy = false;
	start_next(spool);
}

static int start(struct spool *spool, struct spool_op *op)
{
	if (spool->broken)
		return spool->broken;
	if (atomic_load(&spool->spools->stopped))
		return -ESHUTDOWN;
	op->spool = spool;
	op->result = 0;
	list_append(&spool->queued, &op->node);
	start_next(spool);
	return 0;
}

static uint64_t sum(const struct spool_op *op)
{
	uint64_t length = 0;

	for (unsigned i = 0; i < op->count; i++)
		length += op->iov[i].iov_len;
	return length;
}

struct spool *spool_open(struct spools *spools, struct loop *loop, struct client_address client)
{
	struct spool *spool = calloc(1, sizeof(*spool));

	if (!spool)
		return NULL;
	spool->spools = spools;
	spool->job.loop = loop;
	spool->job.class = JOB_QUICK;
	spool->job.client = client;
	spool->fd = spool->made = -1;
	atomic_fetch_add_explicit(&spools->files, 1, memory_order_relaxed);
	pthread_mutex_lock(&spools->lock);
	list_prepend(&spools->all, &spool->node);
	pthread_mutex_unlock(&spools->lock);
	return spool;
}

int spool_append(struct spool *spool, struct spool_op *op)
{
	uint64_t length = sum(op);
	int error;

	if (spool->broken)
		return spool->broken;
	if (!charge(spool->spools, length)) {
		spool_refused(spool->spools);
		return -EDQUOT;
	}
	op->append = true;
	op->length = length;
	op->offset = spool->length;
	spool->length += length;
	spool->charged += length;
	error = start(spool, op);
	/* Nothing is read beyond what was appended. */
	if (error)
		spool->length -= length;
	return error;
}

int spool_read(struct spool *spool, struct spool_op *op)
{
	op->append = false;
	op->length = sum(op);
	if (op->length > spool->length || op->offset > spool->length - op->length)
		return -EINVAL;
	return start(spool, op);
}

static void drop_waiting(struct spool *spool)
{
	struct spool_op *op;

	while ((op = list_take(&spool->queued, struct spool_op, node)))
		op->drop(op);
}

void spool_close(struct spool *spool)
{
	if (!spool)
		return;
	spool->closed = true;
	if (spool->running) {
		spool->running->done = NULL;
		thread_pool_cancel(&spool->job);
	}
	drop_waiting(spool);
	start_next(spool);
}

uint64_t spool_length(const struct spool *spool)
{
	return spool->length;
}

int spool_reader(const struct spool *spool)
{
	char path[32];
	int fd;

	if (spool->fd < 0)
		return -EBADF;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", spool->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void spools_close(struct spools *spools)
{
	struct spool *spool;

	if (!spools)
		return;
	while ((spool = list_first(&spools->all, struct spool, node))) {
		if (spool->running)
			spool->running->drop(spool->running);
		drop_waiting(spool);
		free_spool(spool);
	}
	close(spools->folder);
	g_free(spools->path);
	pthread_mutex_destroy(&spools->lock);
	g_free(spools);
}

/* --- units that are filled from a spool -------------------------------------------- */

static void spool_dropped(struct spool_op *op)
{
	struct spool_unit *unit = container_of(op, struct spool_unit, op);

	if (!unit->taken)
		(void)NC_free(&unit->handle);
	free(unit);
}

int spool_unit_read(struct spool *spool, uint64_t offset, size_t length, size_t fragment,
		    void (*done)(struct spool_op *op, int result), void *user)
{
	struct spool_unit *unit = calloc(1, sizeof(*unit));
	size_t run;
	int error;

	if (!unit)
		return -ENOMEM;
	if (NC_unit_alloc(NULL, &unit->handle, length, fragment, NC_KIND_RECYCLED,
			  NC_UNIT_UNSUMMED) < 0) {
		error = -errno;
		free(unit);
		return error;
	}
	unit->user = user;
	unit->bytes = (struct iovec){NC_fragment(&unit->handle, 0, &run), length};
	unit->op = (struct spool_op){.iov = &unit->bytes,
				     .count = 1,
				     .offset = offset,
				     .done = done,
				     .drop = spool_dropped};
	error = unit->bytes.iov_base && run >= length ? spool_read(spool, &unit->op) : -ENOMEM;
	if (error)
		spool_dropped(&unit->op);
	return error;
}
