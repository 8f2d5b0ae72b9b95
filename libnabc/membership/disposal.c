/* SPDX-License-Identifier: MIT */
/* disposal.c - see disposal.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "membership/disposal.h"
#include "os/peer.h"
#include "os/thread.h"

#define WAIT_SECONDS 2
#define PENDING_MAX 8		    /* threads for one process */
#define QUICK_MAX ((off_t)16 << 20) /* bytes of memory that are freed in some milliseconds */
#define BLOCK 512		    /* the unit of st_blocks */

struct nc_disposal {
	pthread_mutex_t lock;
	pthread_cond_t ended; /* a thread */
	struct task *tasks;
	bool closed; /* the last task frees it */
};

struct task {
	struct task *next;
	struct nc_disposal *disposal;
	struct nc_disposal_origin from;
	unsigned count;
	int fds[];
};

struct nc_disposal *nc_disposal_open(void)
{
	struct nc_disposal *disposal = calloc(1, sizeof(*disposal));
	pthread_condattr_t attributes;

	if (!disposal)
		return NULL;
	pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&disposal->ended, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_mutex_init(&disposal->lock, NULL);
	return disposal;
}

static void free_disposal(struct nc_disposal *disposal)
{
	pthread_cond_destroy(&disposal->ended);
	pthread_mutex_destroy(&disposal->lock);
	free(disposal);
}

void nc_disposal_close(struct nc_disposal *disposal)
{
	struct timespec until;
	int error = 0;
	bool done;

	if (!disposal)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_SECONDS;
	pthread_mutex_lock(&disposal->lock);
	while (disposal->tasks && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&disposal->ended, &disposal->lock, &until);
	disposal->closed = true;
	done = !disposal->tasks;
	pthread_mutex_unlock(&disposal->lock);
	if (done)
		free_disposal(disposal);
}

static bool is_memory(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

static bool is_pidfd(int fd)
{
	return syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0 || errno != EBADF;
}

/* Members pass memory and pidfds; any other descriptor may block. */
static bool is_quick(int fd)
{
	struct stat file;

	if (!is_memory(fd))
		return is_pidfd(fd);
	return fstat(fd, &file) == 0 && file.st_blocks <= QUICK_MAX / BLOCK;
}

static void end_task(struct task *task)
{
	struct nc_disposal *disposal = task->disposal;
	struct task **link = &disposal->tasks;
	bool last;

	pthread_mutex_lock(&disposal->lock);
	while (*link != task)
		link = &(*link)->next;
	*link = task->next;
	last = disposal->closed && !disposal->tasks;
	pthread_cond_signal(&disposal->ended);
	pthread_mutex_unlock(&disposal->lock);
	free(task);
	if (last)
		free_disposal(disposal);
}

static void *disposal_run(void *context)
{
	struct task *task = context;

	nc_peer_close_fds(task->fds, task->count);
	end_task(task);
	return NULL;
}

static bool start(struct nc_disposal *disposal, struct nc_disposal_origin from, const int *fds,
		  unsigned count)
{
	struct task *task = calloc(1, sizeof(*task) + count * sizeof(*fds));
	pthread_t thread;

	if (!task)
		return false;
	task->disposal = disposal;
	task->from = from;
	task->count = count;
	memcpy(task->fds, fds, count * sizeof(*fds));
	pthread_mutex_lock(&disposal->lock);
	task->next = disposal->tasks;
	disposal->tasks = task;
	pthread_mutex_unlock(&disposal->lock);
	if (nc_thread_start(&thread, "nabc-closing", disposal_run, task)) {
		end_task(task);
		return false;
	}
	pthread_detach(thread);
	return true;
}

static unsigned count_of(struct nc_disposal *disposal, pid_t pid)
{
	unsigned count = 0;

	pthread_mutex_lock(&disposal->lock);
	for (struct task *task = disposal->tasks; task; task = task->next)
		count += task->from.pid == pid;
	pthread_mutex_unlock(&disposal->lock);
	return count;
}

int nc_disposal_take(struct nc_disposal *disposal, struct nc_disposal_origin from, const int *fds,
		     unsigned count)
{
	bool quick = true;

	for (unsigned i = 0; i < count; i++)
		quick = quick && is_quick(fds[i]);
	if (quick || !disposal || !start(disposal, from, fds, count)) {
		nc_peer_close_fds(fds, count);
		return 0;
	}
	return count_of(disposal, from.pid) > PENDING_MAX ? -EBUSY : 0;
}

void nc_disposal_take_socket(struct nc_disposal *disposal, struct nc_disposal_origin from,
			     int socket)
{
	int fds[NC_PEER_FDS_ALL];
	unsigned count;

	while (nc_peer_drain(socket, fds, &count))
		(void)nc_disposal_take(disposal, from, fds, count);
	close(socket);
}

unsigned nc_disposal_pending(struct nc_disposal *disposal, uid_t uid, unsigned *own)
{
	unsigned all = 0;

	*own = 0;
	pthread_mutex_lock(&disposal->lock);
	for (struct task *task = disposal->tasks; task; task = task->next, all++)
		*own += task->from.uid == uid;
	pthread_mutex_unlock(&disposal->lock);
	return all;
}
