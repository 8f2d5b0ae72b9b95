/* SPDX-License-Identifier: MIT */
/*
 * compressor.c - see compressor.h.
 *
 * The output grows in ordinary memory, up to 90 % of the source, and is then copied
 * into a unit of its size: a unit that is inserted shorter than it was allocated
 * keeps all of its memory.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/low-priority.h"
#include "files/compressor.h"
#include "coding/encoder.h"

#define WAITING_MAX 256u
#define PIECE ((size_t)64 << 10) /* bytes; always the same: they decide what is written */

struct compressor {
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	struct list waiting; /* jobs */
	bool started;
	_Atomic bool closing;
	pthread_t thread;
	struct compressor_stat stat;
};

/* --- one job ----------------------------------------------------------------------- */

/* The bytes of a job's ranges, in order. */
struct source {
	const struct compress_job *job;
	unsigned range;
	size_t at; /* in the range */
};

/* Copies the next bytes; returns fewer than PIECE at the end, or -1 if they cannot be read. */
static ssize_t read_piece(struct source *source, char *piece)
{
	const struct compress_job *job = source->job;
	size_t done = 0;

	while (done < PIECE && source->range < job->range_count) {
		const struct NC_range *range = &job->ranges[source->range];
		size_t left = range->length - source->at, run;
		const void *bytes;

		if (!left) {
			source->range++;
			source->at = 0;
			continue;
		}
		bytes = NC_data(&job->holds[source->range], &run, range->offset + source->at);
		if (!bytes)
			return -1;
		run = run < left ? run : left;
		run = run < PIECE - done ? run : PIECE - done;
		memcpy(piece + done, bytes, run);
		done += run;
		source->at += run;
	}
	return (ssize_t)done;
}

static size_t source_length(const struct compress_job *job)
{
	size_t length = 0;

	for (unsigned i = 0; i < job->range_count; i++)
		length += job->ranges[i].length;
	return length;
}

static enum compress_result encode(struct compressor *compressor, const struct compress_job *job,
				   const struct encoder *encoder, void *state,
				   struct encoder_output *output)
{
	struct source source = {.job = job};
	char *piece = malloc(PIECE);
	enum encoder_result result = ENCODER_FAILED;
	size_t left = source_length(job);
	ssize_t got = 0;
	bool cancelled = false;

	do {
		cancelled = atomic_load_explicit(&compressor->closing, memory_order_relaxed);
		if (!piece || cancelled)
			break;
		got = read_piece(&source, piece);
		if (got < 0) {
			result = ENCODER_FAILED;
			break;
		}
		left -= (size_t)got;
		result = encoder->write(state, piece, (size_t)got,
					left ? ENCODER_MORE : ENCODER_END, output);
	} while (left && result == ENCODER_GOOD);
	free(piece);
	if (cancelled)
		return COMPRESS_CANCELLED;
	return result == ENCODER_GOOD	     ? COMPRESS_GOOD
	       : result == ENCODER_TOO_LARGE ? COMPRESS_UNFIT
					     : COMPRESS_FAILED;
}

/* Makes the unit; returns false without memory. */
static bool store(struct compress_job *job, const struct encoder_output *output)
{
	NC_handle handle;
	bool good;

	if (NC_alloc(&handle, output->length, 0) < 0)
		return false;
	good = NC_write(&handle, output->bytes, output->length, 0) == (ssize_t)output->length &&
	       NC_insert(&handle) == 0 && NC_hold(NULL, NC_cache_id(&handle), &job->hold) == 0;
	if (good) {
		job->id = NC_cache_id(&handle);
		job->length = output->length;
	}
	(void)NC_free(&handle);
	return good;
}

static enum compress_result compress(struct compressor *compressor, struct compress_job *job)
{
	const struct encoder *encoder = encoder_of(job->coding);
	size_t length = source_length(job);
	struct encoder_output output = {.most = length - length / 10};
	enum compress_result result = COMPRESS_FAILED;
	void *state = encoder ? encoder->open(length) : NULL;

	if (!state)
		return COMPRESS_FAILED;
	result = encode(compressor, job, encoder, state, &output);
	encoder->close(state);
	if (result == COMPRESS_GOOD && !store(job, &output))
		result = COMPRESS_FAILED;
	free(output.bytes);
	return result;
}

/* --- the thread ----------------------------------------------------------------------- */

static void count_locked(struct compressor_stat *stat, enum compress_result result, size_t from,
			 size_t to)
{
	stat->waiting--;
	switch (result) {
	case COMPRESS_GOOD:
		stat->made++;
		stat->bytes_in += from;
		stat->bytes_out += to;
		break;
	case COMPRESS_UNFIT:
		stat->unfit++;
		break;
	case COMPRESS_FAILED:
		stat->failed++;
		break;
	case COMPRESS_CANCELLED:
		break;
	}
}

/* Counts when the caller has the result: then a request that sees the counter gets the unit. */
static void do_job(struct compressor *compressor, struct compress_job *job)
{
	enum compress_result result =
		job->begin(job) ? compress(compressor, job) : COMPRESS_CANCELLED;
	size_t from = source_length(job), to = job->length;

	job->result = result;
	job->done(job);
	pthread_mutex_lock(&compressor->lock);
	count_locked(&compressor->stat, result, from, to);
	pthread_mutex_unlock(&compressor->lock);
}

static void *compressor_run(void *argument)
{
	struct compressor *compressor = argument;

	low_priority_take();
	pthread_mutex_lock(&compressor->lock);
	while (!compressor->closing) {
		struct compress_job *job =
			list_take(&compressor->waiting, struct compress_job, node);

		if (!job) {
			pthread_cond_wait(&compressor->wanted, &compressor->lock);
			continue;
		}
		pthread_mutex_unlock(&compressor->lock);
		do_job(compressor, job);
		pthread_mutex_lock(&compressor->lock);
	}
	pthread_mutex_unlock(&compressor->lock);
	return NULL;
}

static bool start_locked(struct compressor *compressor)
{
	sigset_t all, before;

	if (compressor->started)
		return true;
	/* The main loop handles all signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	compressor->started =
		pthread_create(&compressor->thread, NULL, compressor_run, compressor) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return compressor->started;
}

bool compressor_submit(struct compressor *compressor, struct compress_job *job)
{
	bool good;

	pthread_mutex_lock(&compressor->lock);
	good = compressor->stat.waiting < WAITING_MAX && start_locked(compressor);
	if (good) {
		list_append(&compressor->waiting, &job->node);
		compressor->stat.waiting++;
		pthread_cond_signal(&compressor->wanted);
	} else {
		compressor->stat.refused++;
	}
	pthread_mutex_unlock(&compressor->lock);
	return good;
}

/* --- the whole ------------------------------------------------------------------------- */

struct compressor *compressor_open(void)
{
	struct compressor *compressor = calloc(1, sizeof(*compressor));

	if (!compressor)
		return NULL;
	pthread_mutex_init(&compressor->lock, NULL);
	pthread_cond_init(&compressor->wanted, NULL);
	return compressor;
}

void compressor_close(struct compressor *compressor)
{
	struct compress_job *job;

	if (!compressor)
		return;
	pthread_mutex_lock(&compressor->lock);
	compressor->closing = true;
	pthread_cond_signal(&compressor->wanted);
	pthread_mutex_unlock(&compressor->lock);
	if (compressor->started)
		pthread_join(compressor->thread, NULL);
	while ((job = list_take(&compressor->waiting, struct compress_job, node))) {
		job->result = COMPRESS_CANCELLED;
		job->done(job);
	}
	pthread_cond_destroy(&compressor->wanted);
	pthread_mutex_destroy(&compressor->lock);
	free(compressor);
}

void compressor_stat(struct compressor *compressor, struct compressor_stat *stat)
{
	pthread_mutex_lock(&compressor->lock);
	*stat = compressor->stat;
	pthread_mutex_unlock(&compressor->lock);
}

uint64_t compressor_revision(enum coding coding)
{
	const struct encoder *encoder = encoder_of(coding);

	return (uint64_t)(coding + 1) << 32 | (encoder ? encoder->revision() : 0);
}
