/* SPDX-License-Identifier: MIT */
/*
 * helper.c - a small pool of threads around one queue; see helper.h.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "event/helper.h"

struct helpers {
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	struct job *first, **last;
	bool closing;
	unsigned count;
	pthread_t threads[];
};

static void finished(struct loop_task *task)
{
	struct job *job = (struct job *)((char *)task - offsetof(struct job, task));

	job->done(job);
}

static void do_job(struct job *job)
{
	job->work(job);
	job->task.run = finished;
	loop_post(job->loop, &job->task);
}

static void *run(void *argument)
{
	struct helpers *helpers = argument;

	pthread_mutex_lock(&helpers->lock);
	while (!helpers->closing) {
		struct job *job = helpers->first;

		if (!job) {
			pthread_cond_wait(&helpers->wanted, &helpers->lock);
			continue;
		}
		helpers->first = job->next;
		if (!helpers->first)
			helpers->last = &helpers->first;
		pthread_mutex_unlock(&helpers->lock);
		do_job(job);
		pthread_mutex_lock(&helpers->lock);
	}
	pthread_mutex_unlock(&helpers->lock);
	return NULL;
}

struct helpers *helper_open(unsigned threads)
{
	struct helpers *helpers = calloc(1, sizeof(*helpers) + threads * sizeof(pthread_t));
	sigset_t all, before;
	int error = 0;

	if (!helpers)
		return NULL;
	pthread_mutex_init(&helpers->lock, NULL);
	pthread_cond_init(&helpers->wanted, NULL);
	helpers->last = &helpers->first;
	/* Signals are the main loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (helpers->count < threads && !error) {
		error = pthread_create(&helpers->threads[helpers->count], NULL, run, helpers);
		if (!error)
			helpers->count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		helper_close(helpers);
		errno = error;
		return NULL;
	}
	return helpers;
}

void helper_close(struct helpers *helpers)
{
	if (!helpers)
		return;
	pthread_mutex_lock(&helpers->lock);
	helpers->closing = true;
	pthread_cond_broadcast(&helpers->wanted);
	pthread_mutex_unlock(&helpers->lock);
	for (unsigned i = 0; i < helpers->count; i++)
		pthread_join(helpers->threads[i], NULL);
	pthread_cond_destroy(&helpers->wanted);
	pthread_mutex_destroy(&helpers->lock);
	free(helpers);
}

void helper_submit(struct helpers *helpers, struct job *job)
{
	if (helpers->count == 0) {
		do_job(job);
		return;
	}
	job->next = NULL;
	pthread_mutex_lock(&helpers->lock);
	*helpers->last = job;
	helpers->last = &job->next;
	pthread_cond_signal(&helpers->wanted);
	pthread_mutex_unlock(&helpers->lock);
}
