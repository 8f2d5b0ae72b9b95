/* SPDX-License-Identifier: MIT */
/*
 * prefetch.h - imports for a caller that must not wait: a thread asks the owner and
 * keeps what came until the caller asks again.
 *
 * The thread and its eventfd exist from the first unit that is not here.  Locked inside.
 */
#ifndef NC_PREFETCH_H
#define NC_PREFETCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nc_imports;
struct nc_unit;

#define NC_PREFETCH_MAX 64u /* units that were asked for and not collected */

/* A unit that a caller asked for. */
struct nc_prefetched {
	size_t id; /* 0: the place is free */
	bool done;
	int error;	      /* done: 0 or -errno */
	struct nc_unit *unit; /* complete, no error: held once for the caller */
	uint64_t number;      /* of the request, in order */
};

struct nc_prefetch {
	struct nc_imports *imports;
	pthread_mutex_t lock; /* all below */
	pthread_cond_t wanted;
	pthread_t thread;
	bool running, ending;
	bool calling; /* the thread waits for the owner */
	int event;    /* readable: something is done; -1: none yet */
	uint64_t requests;
	struct nc_prefetched units[NC_PREFETCH_MAX];
};

void nc_prefetch_init(struct nc_prefetch *prefetch, struct nc_imports *imports);

/* Ends the thread and releases what nobody collected; before nc_imports_fini(). */
void nc_prefetch_fini(struct nc_prefetch *prefetch);

/* The eventfd, or -errno. */
int nc_prefetch_fd(struct nc_prefetch *prefetch);

/* Makes the eventfd unreadable; 1: it was readable. */
int nc_prefetch_drain(struct nc_prefetch *prefetch);

/*
 * As nc_imports_hold(), without waiting: -EAGAIN: the owner is asked, and the eventfd will
 * be readable; -ENOBUFS: NC_PREFETCH_MAX requests are unanswered; -errno of starting a thread.
 */
int nc_prefetch_hold(struct nc_prefetch *prefetch, size_t id, struct nc_unit **unit);

#endif
