/* SPDX-License-Identifier: MIT */
/*
 * status-data.h - all values of the status: status.c fills them in, status-json.c and
 * status-metrics.c write them.
 */
#ifndef SWEET_STATUS_DATA_H
#define SWEET_STATUS_DATA_H

#include <nabc.h>
#include <stdint.h>

#include "base/histogram.h"
#include "core/server.h"
#include "core/socket-options.h"
#include "core/thread-counters.h"
#include "event/thread-pool.h"
#include "files/compressor.h"
#include "files/file-cache.h"
#include "files/spool.h"
#include "log/span-export.h"
#include "respcache/respcache.h"

#define STATUS_ROUTES_MAX 16u

struct status_thread {
	const char *io;
	uint64_t accepted, open, requests, bytes;
};

/* One process of a pool, with those that had its place before. */
struct status_worker {
	uint64_t pid; /* 0: not running */
	uint64_t up;  /* 0 or 1 */
	uint64_t in_flight, requests, restarts, failures;
};

struct status_pool {
	const char *prefix;
	char **argv;
	char **addresses; /* of its applications now; NULL: it starts them */
	uint64_t waiting; /* requests that wait for a worker */
	uint64_t tunnels, tunnels_refused;
	unsigned count;
	struct status_worker *workers;
};

struct status_data {
	uint64_t pid, now_ms, started_ms /* since the epoch */, uptime_ms;
	uint64_t cpu_user_us, cpu_system_us, memory; /* bytes resident; 0: unknown */
	uint64_t locked, pinned;	/* bytes: VmLck and VmPin of proc(5); 0 if unknown */
	uint64_t generation, loaded_ms; /* of the configuration */
	const char *io;			/* why io is used */
	const char *data_path, *arch;
	char socket_options[SOCKET_OPTIONS_TEXT]; /* options that differ from the defaults */
	uint64_t draining;			  /* 1: it is ending */
	uint64_t threads;
	struct status_thread *thread; /* each of them */

	uint64_t accepted, open, states[CONNECTION_STATES];
	uint64_t connection_limit; /* 0: none */
	uint64_t sessions;
	uint64_t tls_handshakes, tls_resumed, tls_kernel, tls_failed;
	uint64_t requests, responses[6], bytes, pieces, ready;
	uint64_t loop_waits, loop_sends, loop_batched;	  /* see struct loop_counts */
	struct histogram_sum latency;			  /* us */
	uint64_t path_cache, header_cache, content_cache; /* 1: on */
	struct file_cache_stat files;
	struct thread_pool_stat jobs;
	uint64_t log_lost; /* lines */
	struct compressor_stat compress;
	uint64_t encoders, encoded, encoders_refused; /* of responses that are being sent */
	struct span_export_stat spans;
	struct respcache_stat answers; /* of the response cache */
	struct spools_stat spool;

	uint64_t worker_requests, worker_messages, worker_bodies, worker_failures;
	uint64_t slow_clients;
	uint64_t held, unsent, slow_files, slow_spooled, slow_reset;
	unsigned pool_count;
	struct status_pool *pools;

	struct NC_cache_stat cache;
	uint64_t bytes_avoided; /* bytes that went to a socket without a copy */
	unsigned route_count;
	struct NC_route routes[STATUS_ROUTES_MAX];
};

/* Returns part / (part + rest), or 0 if both are 0. */
static inline double status_share(uint64_t part, uint64_t rest)
{
	return part ? (double)part / ((double)part + (double)rest) : 0;
}

#endif
