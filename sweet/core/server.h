/* SPDX-License-Identifier: MIT */
/*
 * server.h - what all threads share (struct server), and what each thread has (struct thread: its
 * loop, its logs, its counters).
 */
#ifndef SWEET_SERVER_H
#define SWEET_SERVER_H

#include <glib.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/budget.h"
#include "base/date.h"
#include "base/histogram.h"
#include "base/list.h"
#include "base/random-id.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "core/thread-logs.h"
#include "event/loop.h"
#include "http/body.h"

#define SERVER_SOFTWARE "SWEET/" PACKAGE_VERSION
#define SERVER_THREADS_MAX 4096

struct dav;
struct gateway;
struct path_memory;
struct spawn_table;
struct key_opener;
struct group_guard;
struct respcache;
struct thread;
struct spools;

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
static inline unsigned server_connections_most(const struct server *server,
					       const struct config *config)
{
	unsigned most = config->limits.max_connections;

	return most == CONFIG_CONNECTIONS_UNSET ? server->connections_most : most;
}

/* The state of a connection, for the status. */
enum connection_state {
	CONNECTION_IDLE,      /* no byte of a request has come */
	CONNECTION_READING,   /* a part of a head has come */
	CONNECTION_WORKING,   /* the response is being made */
	CONNECTION_SENDING,   /* the response is being sent */
	CONNECTION_LINGERING, /* our end is closed, the client's not yet */
	CONNECTION_STATES
};

/* Written by its own thread, read by any thread: relaxed, and summed up by the reader. */
struct thread_counters {
	_Atomic uint64_t connections;		    /* accepted */
	_Atomic uint64_t open;			    /* currently open */
	_Atomic uint64_t states[CONNECTION_STATES]; /* open ones by state */
	_Atomic uint64_t requests;
	_Atomic uint64_t responses[6]; /* by hundred: [2] is 2xx */
	_Atomic uint64_t body_bytes;   /* sent or being sent */
	_Atomic uint64_t body_units;   /* pieces of bodies that were sent by cache id */
	_Atomic uint64_t body_ready;   /* of these, in responses that were ready (conn/ready.h) */
	_Atomic uint64_t worker_requests;
	_Atomic uint64_t worker_messages; /* bytes to and from workers: heads, no bodies */
	_Atomic uint64_t worker_bodies;	  /* bytes of bodies that workers sent by id */
	_Atomic uint64_t worker_failures;
	/* responses moved off their units: to files, to the spool */
	_Atomic uint64_t slow_files, slow_spooled;
	_Atomic uint64_t slow_reset;   /* that could not be moved */
	_Atomic uint64_t slow_clients; /* closed because a program waited for them */
	_Atomic uint64_t sessions;     /* connections that use HTTP/2 */
	/* Handshakes that succeeded, resumed a session, gave the kernel the key; that failed. */
	_Atomic uint64_t tls_handshakes, tls_resumed, tls_kernel, tls_failed;
	/* us from a complete head to the last byte passed to the kernel, by the loop's clock */
	struct histogram latency;
};

struct conn_thread;
struct worker_hook;

struct thread {
	unsigned number;
	struct server *server;
	struct loop *loop;
	struct file_cache_tick *tick;  /* of the loop: counts references to entries of files */
	struct config_ref *config_ref; /* for new transactions */
	struct thread_logs logs;
	struct thread_counters counters;
	struct path_memory *paths;   /* of phase_scope(); NULL until it is needed */
	struct list listings;	     /* of autoindex.c: those that are being made */
	struct worker_hook *workers; /* of worker.c */
	char *gateway_block; /* of backend-call.c: a request's variables until they are submitted */
	bool draining;	     /* connections close after their response */
	struct conn_thread *conn; /* of the connections */
	/* Called when the last connection has ended; or NULL. */
	void (*vacated)(struct thread *thread);
	/* Set by the connections, called by any thread: thread_shed(). */
	void (*shed)(struct thread *thread);
};

/* Asks the thread for the memory of units that responses hold while they wait. */
static inline void thread_shed(struct thread *thread)
{
	if (thread->shed)
		thread->shed(thread);
}

#endif
