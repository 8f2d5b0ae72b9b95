/* SPDX-License-Identifier: MIT */
/*
 * server.h - what all threads share (struct server), and what each thread has (struct thread).
 */
#ifndef SWEET_SERVER_H
#define SWEET_SERVER_H

#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"

#define SERVER_SOFTWARE "SWEET/" PACKAGE_VERSION
#define SERVER_THREADS_MAX 4096

struct arch;
struct authenticator;
struct backend_thread;
struct client_limits;
struct compressor;
struct config;
struct config_ref;
struct conn_thread;
struct exchange_thread;
struct h2_thread;
struct data_path;
struct dav;
struct file_cache_tick;
struct gateway;
struct gateway_thread;
struct group_guard;
struct handler_thread;
struct key_opener;
struct log_set;
struct loop;
struct path_memory;
struct pressure_thread;
struct respcache;
struct span_export;
struct spawn_table;
struct spools;
struct thread;
struct thread_counters;
struct thread_logs;
struct thread_pool;
struct tls_tickets;

/* Set up by the main thread, constant while the threads run. */
struct server {
	struct thread_pool *thread_pool;
	struct thread_pool *slow_pool; /* with low priority: reads whole folders */
	struct compressor *compressor;
	struct client_limits *limits;
	struct authenticator *authenticator;
	struct dav *dav;
	struct gateway *gateway;
	struct respcache *responses;
	struct spools *spools;		 /* NULL: no directory for them */
	struct spawn_table *spawn_table; /* NULL: the spawner starts no programs */
	struct log_set *logs;		 /* of logs.c */
	struct span_export *spans;	 /* the same; NULL: not open */
	size_t cache_size;		 /* bytes; for this process */
	size_t max_unit;		 /* bytes */
	struct budget bodies;
	struct budget answers; /* of responses by data_path_posix */
	const struct data_path *path;
	const struct arch *arch;
	_Atomic unsigned encoders; /* of responses that are compressed while they are sent */
	_Atomic uint64_t encoded, encoders_refused; /* such responses; those beyond the limit */
	_Atomic uint64_t held;			    /* bytes of units that waiting responses hold */
	uint64_t held_most;
	_Atomic uint64_t unsent; /* bytes in sockets that clients have not acknowledged */
	uint64_t unsent_most;
	struct budget windows;	     /* of files, copied into memory */
	struct budget ahead;	     /* of responses that wait for slow clients */
	unsigned connections_most;   /* by the memory, where max-connections is not set */
	unsigned streams_most;	     /* of HTTP/2, of a thread: each takes as much; 0: any number */
	struct tls_tickets *tickets; /* for all processes */
	struct key_opener *opener;   /* opens keys at reloads; NULL: this process can */
	struct group_guard *guard;   /* ends what workers started; NULL: no workers */
	bool kernel_tls;	     /* the kernel can encrypt */
	NC_cache *cache;
	unsigned threads;
	struct thread *per_thread[SERVER_THREADS_MAX];
	char io[160];	      /* which interface the loops use, and why */
	uint64_t started_ns;  /* monotonic */
	uint64_t started_ms;  /* since the epoch */
	_Atomic bool leaving; /* the server is ending: no new clients should come */
};

/* Returns how many connections there may be at a time; 0: any number. */
unsigned server_connections_most(const struct server *server, const struct config *config);

/*
 * What a thread has; the other sources see only pointers of what a folder keeps for itself, which
 * the table in server/thread-modules.c opens and closes.
 */
struct thread {
	unsigned number;
	struct server *server;
	struct loop *loop;
	struct config_ref *config_ref;	  /* for new transactions */
	struct thread_counters *counters; /* core/thread-counters.h */
	bool draining;			  /* connections close after their response */
	/* Each of one folder: */
	struct path_memory *paths;    /* config: of phase_scope(); NULL until it is needed */
	struct file_cache_tick *tick; /* files: counts references to entries of files */
	struct thread_logs *logs;     /* core */
	struct backend_thread *backend;
	struct gateway_thread *gateway;
	struct handler_thread *handler;
	struct exchange_thread *exchange;
	struct pressure_thread *pressure;
	struct conn_thread *conn;
	struct h2_thread *h2;
	/* Called when the last connection has ended; or NULL. */
	void (*vacated)(struct thread *thread);
	/* Set by the connections, called by any thread: thread_shed(). */
	void (*shed)(struct thread *thread);
};

/* Returns loop_now_ns() of its loop. */
uint64_t thread_now_ns(const struct thread *thread);

/* Asks the thread for the memory of units that responses hold while they wait. */
static inline void thread_shed(struct thread *thread)
{
	if (thread->shed)
		thread->shed(thread);
}

#endif
