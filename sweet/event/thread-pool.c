/* SPDX-License-Identifier: MIT */
/*
 * thread-pool.c - a small pool of threads with one queue; see thread-pool.h.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

#include "event/thread-pool.h"

struct thread_pool {
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
	struct thread_pool *thread_pool = argument;

	pthread_mutex_lock(&thread_pool->lock);
	while (!thread_pool->closing) {
		struct job *job = thread_pool->first;

		if (!job) {
			pthread_cond_wait(&thread_pool->wanted, &thread_pool->lock);
			continue;
		}
		thread_pool->first = job->next;
		if (!thread_pool->first)
			thread_pool->last = &thread_pool->first;
		pthread_mutex_unlock(&thread_pool->lock);
		do_job(job);
		pthread_mutex_lock(&thread_pool->lock);
	}
	pthread_mutex_unlock(&thread_pool->lock);
	return NULL;
}

struct thread_pool *thread_pool_open(unsigned threads)
{
	struct thread_pool *thread_pool =
		calloc(1, sizeof(*thread_pool) + threads * sizeof(pthread_t));
	sigset_t all, before;
	int error = 0;

	if (!thread_pool)
		return NULL;
	pthread_mutex_init(&thread_pool->lock, NULL);
	pthread_cond_init(&thread_pool->wanted, NULL);
	thread_pool->last = &thread_pool->first;
	/* The main loop handles all signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (thread_pool->count < threads && !error) {
		error = pthread_create(&thread_pool->threads[thread_pool->count], NULL, run,
				       thread_pool);
		if (!error)
			thread_pool->count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		thread_pool_close(thread_pool);
		errno = error;
		return NULL;
	}
	return thread_pool;
}

void thread_pool_close(struct thread_pool *thread_pool)
{
	if (!thread_pool)
		return;
	pthread_mutex_lock(&thread_pool->lock);
	thread_pool->closing = true;
	pthread_cond_broadcast(&thread_pool->wanted);
	pthread_mutex_unlock(&thread_pool->lock);
	for (unsigned i = 0; i < thread_pool->count; i++)
		pthread_join(thread_pool->threads[i], NULL);
	pthread_cond_destroy(&thread_pool->wanted);
	pthread_mutex_destroy(&thread_pool->lock);
	free(thread_pool);
}

void thread_pool_submit(struct thread_pool *thread_pool, struct job *job)
{
	if (thread_pool->count == 0) {
		do_job(job);
		return;
	}
	job->next = NULL;
	pthread_mutex_lock(&thread_pool->lock);
	*thread_pool->last = job;
	thread_pool->last = &job->next;
	pthread_cond_signal(&thread_pool->wanted);
	pthread_mutex_unlock(&thread_pool->lock);
}
