/* SPDX-License-Identifier: MIT */
/*
 * thread-pool.c - a small pool of threads with one queue for each class of jobs; see thread-pool.h.
 *
 * A queue has the clients with queued jobs, in the order of their turns.  A client's own jobs keep
 * their order.  Deferred jobs have a queue of their own, which is served when the others have no job
 * that may run.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <glib.h>

#include "base/container.h"
#include "base/list.h"
#include "base/low-priority.h"
#include "base/siphash.h"
#include "event/thread-pool.h"

/* In the queue while it has queued jobs. */
struct client {
	struct client_address address;
	struct list jobs;
	struct list_node turn;
};

struct queue {
	GHashTable *clients; /* address to client */
	struct list turns;   /* of clients */
};

#define DEFERRED JOB_CLASSES /* the queue of deferred slow jobs, after those of the classes */
#define QUEUES (JOB_CLASSES + 1)

struct thread_pool {
	pthread_mutex_t lock; /* of all but the threads */
	pthread_cond_t wanted;
	struct queue queues[QUEUES];
	unsigned running[JOB_CLASSES], most[JOB_CLASSES];
	unsigned turn; /* the class that is next if both have jobs */
	struct thread_pool_stat stat;
	bool closing, low;
	unsigned count;
	pthread_t threads[];
};

static uint8_t hash_key[16];

/* --- the queues ------------------------------------------------------------------- */

/* Clients choose their addresses.  Soon after boot the key may be weak. */
static void pool_choose_key(void)
{
	(void)!getrandom(hash_key, sizeof(hash_key), GRND_NONBLOCK);
}

static guint hash_address(gconstpointer address)
{
	return (guint)siphash(hash_key, address, sizeof(struct client_address));
}

static gboolean same_address(gconstpointer a, gconstpointer b)
{
	return memcmp(a, b, sizeof(struct client_address)) == 0;
}

static struct queue *queue_of(struct thread_pool *thread_pool, const struct job *job)
{
	return &thread_pool->queues[job->deferred ? DEFERRED : job->class];
}

static void add_locked(struct thread_pool *thread_pool, struct job *job)
{
	struct queue *queue = queue_of(thread_pool, job);
	struct client *client = g_hash_table_lookup(queue->clients, &job->client);

	if (!client) {
		client = g_new0(struct client, 1);
		client->address = job->client;
		g_hash_table_insert(queue->clients, &client->address, client);
		list_append(&queue->turns, &client->turn);
	}
	list_append(&client->jobs, &job->queued);
	atomic_store(&job->pool, thread_pool);
	thread_pool->stat.waiting[job->class]++;
}

static void remove_locked(struct thread_pool *thread_pool, struct job *job)
{
	struct queue *queue = queue_of(thread_pool, job);
	struct client *client = g_hash_table_lookup(queue->clients, &job->client);

	atomic_store(&job->pool, NULL);
	thread_pool->stat.waiting[job->class]--;
	list_remove(&job->queued);
	if (!list_is_empty(&client->jobs))
		return;
	list_remove(&client->turn);
	g_hash_table_remove(queue->clients, &client->address);
	g_free(client);
}

/* Takes the next job of the client whose turn it is. */
static struct job *take_from_locked(struct thread_pool *thread_pool, struct queue *queue)
{
	struct client *client = list_take(&queue->turns, struct client, turn);
	struct job *job = list_first(&client->jobs, struct job, queued);

	list_append(&queue->turns, &client->turn);
	remove_locked(thread_pool, job);
	return job;
}

/* Returns the next job, or NULL if none may run now. */
static struct job *take_locked(struct thread_pool *thread_pool)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		unsigned number = i < JOB_CLASSES ? (thread_pool->turn + i) % JOB_CLASSES : i;
		unsigned class = number == DEFERRED ? JOB_SLOW : number;
		struct queue *queue = &thread_pool->queues[number];

		if (list_is_empty(&queue->turns) ||
		    thread_pool->running[class] == thread_pool->most[class])
			continue;
		if (number != DEFERRED)
			thread_pool->turn = class + 1;
		thread_pool->stat.run[class]++;
		thread_pool->running[class]++;
		return take_from_locked(thread_pool, queue);
	}
	return NULL;
}

/* --- jobs --------------------------------------------------------------------------- */

static void pool_finished(struct loop_task *task)
{
	struct job *job = container_of(task, struct job, task);

	job->done(job);
}

static void post(struct job *job)
{
	job->task.run = pool_finished;
	loop_queue(job->loop, &job->task);
}

static void do_job(struct job *job)
{
	job->worked = true;
	job->work(job);
	post(job);
}

static void *pool_run(void *argument)
{
	struct thread_pool *thread_pool = argument;

	if (thread_pool->low)
		low_priority_take();
	pthread_mutex_lock(&thread_pool->lock);
	while (!thread_pool->closing) {
		struct job *job = take_locked(thread_pool);
		enum job_class class;

		if (!job) {
			pthread_cond_wait(&thread_pool->wanted, &thread_pool->lock);
			continue;
		}
		class = job->class; /* the job may be gone as soon as it is done */
		pthread_mutex_unlock(&thread_pool->lock);
		do_job(job);
		pthread_mutex_lock(&thread_pool->lock);
		/* This thread looks for the next job itself: there is nobody to signal. */
		thread_pool->running[class]--;
	}
	pthread_mutex_unlock(&thread_pool->lock);
	return NULL;
}

void thread_pool_submit(struct thread_pool *thread_pool, struct job *job)
{
	job->worked = job->deferred = false;
	atomic_store_explicit(&job->cancelled, false, memory_order_relaxed);
	atomic_store_explicit(&job->pool, NULL, memory_order_relaxed);
	pthread_mutex_lock(&thread_pool->lock);
	if (thread_pool->count) {
		add_locked(thread_pool, job);
		pthread_cond_signal(&thread_pool->wanted);
	} else {
		thread_pool->stat.run[job->class]++;
	}
	pthread_mutex_unlock(&thread_pool->lock);
	if (!thread_pool->count)
		do_job(job);
}

/* Removes the job from the queue it is in, and puts it into another one if it is deferred. */
static bool remove_queued(struct job *job, bool defer)
{
	/* The pool outlives its queued jobs, but not every job that it has run. */
	struct thread_pool *thread_pool = atomic_load(&job->pool);
	bool removed;

	if (!thread_pool)
		return false;
	pthread_mutex_lock(&thread_pool->lock);
	removed = atomic_load(&job->pool);
	if (removed)
		remove_locked(thread_pool, job);
	if (removed && defer) {
		job->deferred = true;
		add_locked(thread_pool, job);
	} else if (removed) {
		thread_pool->stat.cancelled++;
	}
	pthread_mutex_unlock(&thread_pool->lock);
	return removed;
}

void thread_pool_cancel(struct job *job)
{
	atomic_store_explicit(&job->cancelled, true, memory_order_relaxed);
	if (remove_queued(job, false))
		post(job);
}

void thread_pool_defer(struct job *job)
{
	(void)remove_queued(job, true);
}

/* --- opening and closing -------------------------------------------------------------- */

static struct thread_pool *open_pool(unsigned threads, unsigned slow, bool low)
{
	struct thread_pool *thread_pool =
		calloc(1, sizeof(*thread_pool) + threads * sizeof(pthread_t));
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t all, before;
	int error = 0;

	if (!thread_pool)
		return NULL;
	pthread_once(&once, pool_choose_key);
	pthread_mutex_init(&thread_pool->lock, NULL);
	pthread_cond_init(&thread_pool->wanted, NULL);
	thread_pool->low = low;
	thread_pool->most[JOB_QUICK] = threads;
	thread_pool->most[JOB_SLOW] = slow ? slow : 1;
	for (unsigned i = 0; i < QUEUES; i++)
		thread_pool->queues[i].clients = g_hash_table_new(hash_address, same_address);
	/* The main loop handles all signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (thread_pool->count < threads && !error) {
		error = pthread_create(&thread_pool->threads[thread_pool->count], NULL, pool_run,
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

struct thread_pool *thread_pool_open(unsigned threads, unsigned slow)
{
	return open_pool(threads, slow, false);
}

struct thread_pool *thread_pool_open_low(unsigned threads, unsigned slow)
{
	return open_pool(threads, slow, true);
}

static void drop_all(struct thread_pool *thread_pool, struct queue *queue)
{
	while (!list_is_empty(&queue->turns))
		(void)take_from_locked(thread_pool, queue); /* no thread is left */
	g_hash_table_destroy(queue->clients);
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
	for (unsigned i = 0; i < QUEUES; i++)
		drop_all(thread_pool, &thread_pool->queues[i]);
	pthread_cond_destroy(&thread_pool->wanted);
	pthread_mutex_destroy(&thread_pool->lock);
	free(thread_pool);
}

void thread_pool_stat(struct thread_pool *thread_pool, struct thread_pool_stat *stat)
{
	pthread_mutex_lock(&thread_pool->lock);
	*stat = thread_pool->stat;
	pthread_mutex_unlock(&thread_pool->lock);
}
