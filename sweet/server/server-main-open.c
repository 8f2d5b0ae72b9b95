/* SPDX-License-Identifier: MIT */
/*
 * server-main-open.c - what all threads share, and each thread's own loop: opened
 * when privileges are given up, and closed again in the opposite order.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "backend/gateway.h"
#include "backend/cache-lookup.h"
#include "base/clock.h"
#include "conn/connection.h"
#include "core/logs.h"
#include "core/site.h"
#include "core/socket-options.h"
#include "files/spool.h"
#include "server/server-main-internal.h"
#include "spawn/pidfile.h"
#include "spawn/spawn-table.h"

#define LIMIT_ENTRIES (1u << 16) /* of 16 bytes, once they are used */

static bool open_loops(void)
{
	const struct config *config = program.reload.config;
	char why[160] = "", *line;

	program.runners = server_threads_new(program.site.threads);
	for (unsigned i = 0; i < program.site.threads; i++) {
		struct server_thread *runner = &program.runners->all[i];
		struct thread *thread = &runner->thread;

		thread->number = i;
		thread->site = &program.site;
		thread->loop = loop_open((enum loop_kind)config->io,
					 program.site.arch->single ? LOOP_FEW : LOOP_MANY, why,
					 sizeof(why));
		if (!thread->loop)
			return server_main_complain("cannot start an event loop: %s", why);
		thread->tick = file_cache_tick_open(thread->loop);
		loop_send_by(thread->loop, program.site.path);
		if (program.site.spawn_table &&
		    spawn_table_attach(program.site.spawn_table, i, thread->loop) < 0)
			return server_main_complain(
				"cannot watch the process that starts programs");
		thread->config_ref = config_ref_open(config_hold(program.reload.config));
		if (!logs_join(&program.site, thread, &line))
			return server_main_complain_of(line);
		worker_hook_add(&runner->workers, thread);
		connection_init(thread);
		program.site.per_thread[i] = thread;
	}
	snprintf(program.site.io, sizeof(program.site.io), "%s", why);
	return true;
}

/* Some fast clients over long links have as much on its way. */
#define SOCKET_MEMORY_LEAST ((size_t)64 << 20)

bool server_main_open_shared(void)
{
	struct site *site = &program.site;
	const struct config *config = program.reload.config;
	/* A member may make who talks with it wait: that is no loop. */
	struct NC_cache_options options = {.size = site->cache_size,
					   .flags = NC_CACHE_NO_THREAD | NC_CACHE_MEMBERS_THREAD};
	GPtrArray *errors;
	char *why;

	site->path = data_paths[config->data_path];
	options.flags |= site->path->cache_flags;
	if (config->io == LOOP_EPOLL)
		options.flags |= NC_CACHE_NO_URING;
	site->cache = NC_cache_open(&options);
	if (!site->cache)
		return server_main_complain("cannot open the cache of %zu bytes: %s",
					    site->cache_size, strerror(errno));
	if (!send_method_use(site->cache, NULL, config, &why))
		return server_main_complain_of(why);
	if (config->cache_socket && NC_cache_serve(site->cache, config->cache_socket) < 0)
		return server_main_complain(
			"cannot serve the cache at \"%s\": %s%s", config->cache_socket,
			strerror(errno),
			errno == EADDRINUSE ? " (somebody serves it, or it is no socket)" : "");
	site->max_unit = site->cache_size / 4;
	site->bodies.most = site->max_unit;
	site->answers.most = site->cache_size;
	site->ahead.most = site->max_unit;
	site->windows.most = site->max_unit;
	site->held_most = site->cache_size / 2;
	site->unsent_most = config->socket_memory ? config->socket_memory
						  : MAX(site->cache_size, SOCKET_MEMORY_LEAST);
	site->thread_pool = thread_pool_open(site->arch->helpers);
	if (!site->thread_pool)
		return server_main_complain("cannot start threads: %s", strerror(errno));
	spools_start(site->spools, site->thread_pool);
	site->limits = client_limits_open(LIMIT_ENTRIES);
	if (site->limits)
		site->authenticator = authenticator_open(site->limits);
	if (!site->authenticator)
		return server_main_complain("cannot count clients: %s", strerror(errno));
	if (!cache_lookup_open(site, site->cache_size))
		return server_main_complain("cannot keep answers: out of memory");
	errors = g_ptr_array_new_with_free_func(g_free);
	(void)site_open(program.reload.config, NULL,
			&(struct site_options){.thread_pool = site->thread_pool,
					       .authenticator = site->authenticator,
					       .max_unit = site->max_unit},
			errors);
	if (!log_told(errors) || !open_loops())
		return false;
	site->gateway = gateway_open(site);
	site->started_ns = clock_monotonic_ns();
	site->started_ms = (uint64_t)g_get_real_time() / 1000;
	return true;
}

/* --- taking down ------------------------------------------------------------------ */

static void close_runners(void)
{
	struct site *site = &program.site;
	struct server_threads *runners = program.runners;

	if (program.signals == 0)
		server_threads_stop(runners);
	server_threads_join(runners);
	if (site->gateway)
		site->gateway->closing = true;
	spools_stop(site->spools);
	thread_pool_close(site->thread_pool);
	for (unsigned i = 0; i < runners->count; i++) {
		struct server_thread *runner = &runners->all[i];

		if (!runner->thread.loop)
			continue;
		server_thread_close_seats(runner);
		connection_close_all(&runner->thread);
		access_log_stop(&runner->thread.log);
	}
	cache_lookup_end(site);
	gateway_close(site->gateway);
	authenticator_close(site->authenticator);
	/* What they had is given back now, with no connection to answer. */
	for (unsigned i = 0; i < runners->count; i++)
		if (runners->all[i].thread.loop)
			connection_close_all(&runners->all[i].thread);
	for (unsigned i = 0; i < runners->count; i++) {
		struct thread *thread = &runners->all[i].thread;

		file_cache_tick_close(thread->tick);
		loop_close(thread->loop);
		if (thread->config_ref)
			config_ref_release(thread->config_ref);
	}
}

void server_main_close(void)
{
	struct site *site = &program.site;

	if (program.runners) {
		close_runners();
	} else {
		thread_pool_close(site->thread_pool);
		authenticator_close(site->authenticator);
	}
	spawn_table_close(site->spawn_table);
	reload_clear(&program.reload);
	cache_lookup_close(site);
	spools_close(site->spools);
	if (site->cache && NC_cache_close(site->cache) < 0)
		log_warning("closing the cache: %s", strerror(errno));
	endpoints_clear(&program.endpoints);
	if (program.pid_file)
		pidfile_remove(program.pid_file);
	g_free(program.pid_file);
	client_limits_close(site->limits);
	if (program.signal_fd >= 0)
		close(program.signal_fd);
	if (program.told >= 0)
		close(program.told);
	logs_close(site);
	log_close();
	server_threads_free(program.runners);
}
