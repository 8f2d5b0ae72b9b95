/* SPDX-License-Identifier: MIT */
/*
 * server.h - what all threads share (struct server), and what one thread has
 * (struct thread: its loop, its logs, its counters).
 */
#ifndef SWEET_SERVER_H
#define SWEET_SERVER_H

#include <stdatomic.h>

#include "base/date.h"
#include "base/histogram.h"
#include "config/arch.h"
#include "config/configuration.h"
#include "core/access-log.h"
#include "event/thread-pool.h"
#include "event/loop.h"
#include "files/file-cache-tick.h"
#include "http/body.h"
#include "log/log.h"

#define SERVER_SOFTWARE "SWEET/" PACKAGE_VERSION
#define SERVER_THREADS_MAX 4096

struct gateway;
struct spawn_table;
struct respcache;
struct thread;
struct spools;

/* Set up by main, constant while the threads run. */
struct server {
	struct thread_pool *thread_pool;
	struct client_limits *limits;
	struct authenticator *authenticator;
	struct gateway *gateway;
	struct respcache *responses;
	struct spools *spools;		 /* NULL: there is no folder for them */
	struct spawn_table *spawn_table; /* NULL: none are started by the spawner */
	int log_fd;			 /* logs.c's, as the next */
	enum access_format log_format;
	size_t cache_size; /* bytes; of a process */
	size_t max_unit;   /* bytes */
	struct body_budget bodies;
	struct body_budget answers; /* of bytes, by data_path_posix */
	const struct data_path *path;
	const struct arch *arch;
	_Atomic uint64_t held; /* bytes of units that answers hold while they wait */
	uint64_t held_most;
	_Atomic uint64_t unsent; /* bytes in sockets, which clients have not acknowledged */
	uint64_t unsent_most;
	struct body_budget windows; /* of files, in memory */
	struct body_budget ahead;   /* of answers, which slow clients have not taken */
	NC_cache *cache;
	unsigned threads;
	struct thread *per_thread[SERVER_THREADS_MAX];
	char io[160];	      /* what the loops run on, and why */
	uint64_t started_ns;  /* monotonic */
	uint64_t started_ms;  /* of the epoch */
	_Atomic bool leaving; /* the end was asked for: nobody new should come */
};

/* What a connection is at, for the status. */
enum connection_state {
	CONNECTION_IDLE,      /* no byte of a request has come */
	CONNECTION_READING,   /* a part of its head */
	CONNECTION_WORKING,   /* the answer is being made */
	CONNECTION_SENDING,   /* and sent */
	CONNECTION_LINGERING, /* all said; until the client's end is closed as well */
	CONNECTION_STATES
};

/* Written by its own thread, read by any: relaxed, and added up by who asks. */
struct thread_counters {
	_Atomic uint64_t connections;		    /* accepted */
	_Atomic uint64_t open;			    /* now */
	_Atomic uint64_t states[CONNECTION_STATES]; /* of those */
	_Atomic uint64_t requests;
	_Atomic uint64_t responses[6]; /* by hundred: [2] is 2xx */
	_Atomic uint64_t body_bytes;   /* sent or being sent */
	_Atomic uint64_t body_units;   /* pieces of bodies that left by cache id */
	_Atomic uint64_t worker_requests;
	_Atomic uint64_t worker_messages; /* bytes to and from workers: heads, no bodies */
	_Atomic uint64_t worker_bodies;	  /* bytes of bodies that workers named by id */
	_Atomic uint64_t worker_failures;
	_Atomic uint64_t slow_files, slow_spooled; /* answers taken off their units, by where to */
	_Atomic uint64_t slow_reset;		   /* for which there was no other way */
	_Atomic uint64_t slow_clients; /* that kept a program waiting and were given up */
	/* us from a whole head to the last byte handed to the system, by the loop's clock */
	struct histogram latency;
};

struct connection;
struct transaction;
struct worker_hook;

struct thread {
	unsigned number;
	struct server *server;
	struct loop *loop;
	struct file_cache_tick *tick; /* of the loop: files' entries are had and given back by it */
	struct config_ref *config_ref; /* that new transactions begin with */
	struct access_log log;
	struct thread_counters counters;
	/* output.c's: the fields that all answers of a second have, and their date. */
	uint64_t date_until_ms; /* loop's clock; 0: none was made */
	const struct config *date_config;
	size_t lead_length;
	size_t lead_pad; /* where in it what pads a head goes */
	char lead[CONFIG_SERVER_HEADER_MAX + 64];
	char date[DATE_LENGTH];
	struct connection *connections; /* connection.c's */
	/* connection-slow.c's and connection-held.c's: who waits, longest first; units by id; the work. */
	struct connection *slow_first, **slow_last;
	GHashTable *held, *programs;
	GQueue lent; /* connections whose sockets may refer to a unit that their answer has left */
	struct loop_notice shed; /* who is to be taken off a unit that is needed elsewhere */
	struct timer slow_timer;
	/* connection-unsent.c's: connections whose sockets hold bytes, and how many; its work. */
	GQueue unsent;
	uint64_t unsent_bytes;
	struct loop_notice unsent_shed;
	struct timer unsent_timer;
	struct transaction *spare; /* output.c's, and the next */
	unsigned spare_count;
	struct worker_hook *workers; /* worker.c's */
	char *gateway_block; /* backend-call.c's: a request's variables, until they are handed on */
	bool draining;	     /* answers close their connections */
	/* The last connection has gone; NULL: nobody asks. */
	void (*vacated)(struct thread *thread);
};

static inline void counter_add(_Atomic uint64_t *counter, uint64_t more)
{
	/* One writer: no locked instruction is needed. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
			      memory_order_relaxed);
}

#endif
