/* SPDX-License-Identifier: MIT */
/*
 * server-main-open.c - what all threads share, and each thread's loop: opened after privileges are
 * dropped, closed in reverse order.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "base/budget.h"
#include "base/clock.h"
#include "config/arch.h"
#include "config/configuration.h"
#include "conn/connection.h"
#include "core/auth.h"
#include "core/logs.h"
#include "core/server.h"
#include "core/site.h"
#include "core/socket-options.h"
#include "core/thread-logs.h"
#include "dav/dav.h"
#include "event/client-limit.h"
#include "event/data-path.h"
#include "event/loop.h"
#include "event/thread-pool.h"
#include "files/compressor.h"
#include "files/spool.h"
#include "gateway/cache-lookup.h"
#include "gateway/gateway.h"
#include "http/body.h"
#include "log/log.h"
#include "log/span-export.h"
#include "process/endpoints.h"
#include "process/pidfile.h"
#include "server/reload.h"
#include "server/server-main-internal.h"
#include "server/server-main.h"
#include "server/thread-modules.h"
#include "server/thread.h"
#include "spawn/group-guard.h"
#include "spawn/key-opener.h"
#include "spawn/spawn-table.h"
#include "tls/tls-tickets.h"

#define LIMIT_ENTRIES (1u << 16) /* of 16 bytes each, when used */
#define DAV_THREADS 4u

static bool open_loops(void)
{
	const struct config *config = program.reload.site->config;
	char why[160] = "";

	program.runners = server_threads_new(program.server.threads);
	for (unsigned i = 0; i < program.server.threads; i++) {
		struct server_thread *runner = &program.runners->all[i];
		struct thread *thread = &runner->thread;

		thread->number = i;
		thread->server = &program.server;
		thread->loop = loop_open((enum loop_kind)config->io,
					 program.server.arch->single ? LOOP_FEW : LOOP_MANY, why,
					 sizeof(why));
		if (!thread->loop)
			return server_main_complain("cannot start an event loop: %s", why);
		loop_send_by(thread->loop, program.server.path);
		if (program.server.spawn_table &&
		    spawn_table_attach(program.server.spawn_table, i, thread->loop) < 0)
			return server_main_complain(
				"cannot watch the process that starts programs");
		thread->config_ref = config_ref_open(site_hold(program.reload.site));
		thread_modules_open(thread);
		program.server.per_thread[i] = thread;
	}
	snprintf(program.server.io, sizeof(program.server.io), "%s", why);
	return true;
}

/* A few fast clients over long distances have as many bytes in flight. */
#define SOCKET_MEMORY_LEAST ((size_t)64 << 20)

/*
 * An NC_log; context: whether the cache is open.  What is missing when it is opened is in
 * the first line of the log and in the status, in the server's words.
 */
static void server_log_of_cache(void *context, int priority, const char *message)
{
	(void)priority;
	if (atomic_load((_Atomic bool *)context))
		log_warning("%s", message);
}

bool server_main_open_shared(void)
{
	struct server *server = &program.server;
	const struct config *config = program.reload.site->config;
	static _Atomic bool cache_is_open;
	/*
	 * A member may block the thread that serves it, so no loop does that.  The limits of
	 * unsent bytes are those of connection-unsent.c.
	 */
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = server->cache_size,
				      .flags = NC_CACHE_NO_THREAD | NC_CACHE_MEMBERS_THREAD,
				      .unsent_limit = SIZE_MAX, .log = server_log_of_cache,
				      .log_context = &cache_is_open);
	GPtrArray *errors;
	char *why;

	server->path = data_paths[config->data_path];
	options.flags |= server->path->cache_flags;
	if (config->io == LOOP_EPOLL)
		options.flags |= NC_CACHE_NO_URING;
	if (!config->registered_memory)
		options.flags |= NC_CACHE_NO_REGISTER;
	if (config->pin)
		options.flags |= NC_CACHE_PIN;
	server->cache = NC_cache_open(&options);
	if (!server->cache)
		return server_main_complain("cannot open the cache of %zu bytes: %s",
					    server->cache_size, strerror(errno));
	atomic_store(&cache_is_open, true);
	if (!send_method_use(server->cache, NULL, config, &why))
		return server_main_complain_of(why);
	if (config->cache_socket && NC_cache_serve(server->cache, config->cache_socket, NULL) < 0)
		return server_main_complain(
			"cannot serve the cache at \"%s\": %s%s", config->cache_socket,
			strerror(errno),
			errno == EADDRINUSE ? " (somebody serves it, or it is no socket)" : "");
	server->max_unit = server->cache_size / 4;
	server->bodies.most = server->max_unit;
	server->answers.most = server->cache_size;
	server->ahead.most = server->max_unit;
	server->windows.most = server->max_unit;
	server->held_most = server->cache_size / 2;
	server->unsent_most = config->socket_memory ? config->socket_memory
						    : MAX(server->cache_size, SOCKET_MEMORY_LEAST);
	server->thread_pool = thread_pool_open(server->arch->helpers, server->arch->helpers / 2);
	server->slow_pool =
		thread_pool_open_low(server->arch->helpers / 2, server->arch->helpers / 2);
	if (!server->thread_pool || !server->slow_pool)
		return server_main_complain("cannot start threads: %s", strerror(errno));
	server->dav = dav_open(MIN(server->arch->helpers, DAV_THREADS));
	if (!server->dav)
		return server_main_complain("cannot keep locks: out of memory");
	server->compressor = compressor_open();
	if (!server->compressor)
		return server_main_complain("cannot compress: out of memory");
	server->spans = span_export_open(server->threads);
	if (!server->spans)
		return server_main_complain("cannot record spans: out of memory");
	logs_use_collector(server, config);
	spools_start(server->spools, server->thread_pool);
	server->limits = client_limits_open(LIMIT_ENTRIES);
	if (server->limits)
		server->authenticator = authenticator_open(server->limits);
	if (!server->authenticator)
		return server_main_complain("cannot count clients: %s", strerror(errno));
	if (!cache_lookup_open(server))
		return server_main_complain("cannot open the response cache: out of memory");
	errors = g_ptr_array_new_with_free_func(g_free);
	(void)site_open(program.reload.site, NULL,
			&(struct site_options){.thread_pool = server->thread_pool,
					       .compressor = server->compressor,
					       .authenticator = server->authenticator,
					       .tickets = server->tickets,
					       .max_unit = server->max_unit},
			errors);
	if (!log_error_list(errors) || !open_loops())
		return false;
	server->gateway = gateway_open(server);
	server->started_ns = clock_monotonic_ns();
	server->started_ms = (uint64_t)g_get_real_time() / 1000;
	return true;
}

/* --- taking down ------------------------------------------------------------------ */

static void close_runners(void)
{
	struct server *server = &program.server;
	struct server_threads *runners = program.runners;

	if (program.signals == 0)
		server_threads_stop(runners);
	server_threads_join(runners);
	if (server->gateway)
		server->gateway->closing = true;
	spools_stop(server->spools);
	thread_pool_close(server->thread_pool);
	thread_pool_close(server->slow_pool);
	dav_stop(server->dav);
	compressor_close(server->compressor);
	for (unsigned i = 0; i < runners->count; i++) {
		struct server_thread *runner = &runners->all[i];

		if (!runner->thread.loop)
			continue;
		server_thread_close_seats(runner);
		connection_close_all(&runner->thread);
		thread_logs_stop(runner->thread.logs);
	}
	dav_end_requests(server->dav);
	cache_lookup_end(server);
	/* The second signal, also a later one, ends the wait. */
	gateway_close(server->gateway,
		      program.signals > 1 ? 0 : program.reload.site->config->limits.stop_ms,
		      program.signal_fd);
	authenticator_close(server->authenticator);
	/* Released here, when no connection needs a response any more. */
	thread_modules_close(runners);
	g_clear_pointer(&server->spans, span_export_close);
	for (unsigned i = 0; i < runners->count; i++) {
		struct thread *thread = &runners->all[i].thread;

		loop_close(thread->loop);
		if (thread->config_ref)
			config_ref_release(thread->config_ref);
	}
}

void server_main_close(void)
{
	struct server *server = &program.server;

	if (program.runners) {
		close_runners();
	} else {
		thread_pool_close(server->thread_pool);
		thread_pool_close(server->slow_pool);
		dav_stop(server->dav);
		compressor_close(server->compressor);
		authenticator_close(server->authenticator);
		span_export_close(server->spans);
	}
	dav_close(server->dav);
	spawn_table_close(server->spawn_table);
	group_guard_close(server->guard);
	key_opener_close(server->opener);
	/* The last site: its files leave the cache. */
	reload_clear(&program.reload);
	cache_lookup_close(server);
	spools_close(server->spools);
	logs_close(server);
	if (server->cache && NC_cache_close(server->cache) < 0)
		log_warning("closing the cache: %s", strerror(errno));
	endpoints_clear(&program.endpoints);
	if (program.pid_file)
		pidfile_remove(program.pid_file);
	g_free(program.pid_file);
	client_limits_close(server->limits);
	tls_tickets_close(server->tickets);
	if (program.signal_fd >= 0)
		close(program.signal_fd);
	if (program.news_fd >= 0)
		close(program.news_fd);
	log_close();
	server_threads_free(program.runners);
}
