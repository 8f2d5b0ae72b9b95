/* SPDX-License-Identifier: MIT */
/*
 * server-main-privileged.c - what a process opens while it has all privileges: logs, addresses,
 * pid-file, spools, the spawner.  Then it drops its privileges.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <glib.h>

#include "base/clock.h"
#include "base/user-open.h"
#include "config/arch.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/logs.h"
#include "core/server.h"
#include "core/site.h"
#include "files/spool.h"
#include "log/log.h"
#include "process/endpoints.h"
#include "process/privileges.h"
#include "process/supervisor.h"
#include "server/reload.h"
#include "server/server-main-internal.h"
#include "process/sandbox.h"
#include "process/memory-limit.h"
#include "process/pidfile.h"
#include "server/server-main.h"
#include "spawn/group-guard.h"
#include "spawn/key-opener.h"
#include "spawn/spawn-table.h"
#include "tls/tls-kernel.h"
#include "tls/tls-tickets.h"
#include "tls/tls.h"

#define STREAMS_LEAST 256u	    /* of a thread: those of a few clients */
#define CACHE_MIN ((size_t)1 << 20) /* bytes; of libnabc */
#define ADDRESSES_NS 1000000000u    /* to wait for the addresses of a killed server */
#define ADDRESSES_STEP_US 5000u

/*
 * A killed server may keep its addresses for a moment: the kernel closes its rings later than the
 * process, and processes of arch mp have to notice the end of their parent.  So it retries; the
 * errors are those of the last attempt.  Other errors do not go away within a second.
 */
static bool plan_sockets(const struct config *config, struct endpoints_change *change,
			 GPtrArray *errors)
{
	struct endpoints_wanted wanted = reload_endpoints(config);
	uint64_t until = clock_monotonic_ns() + ADDRESSES_NS;
	unsigned before = errors->len;

	while (!endpoints_plan(&program.endpoints, &wanted, change, errors)) {
		if (!change->in_use || clock_monotonic_ns() >= until)
			return false;
		g_ptr_array_set_size(errors, (int)before);
		g_usleep(ADDRESSES_STEP_US);
	}
	return true;
}

static bool open_sockets(void)
{
	const struct supervisor *supervisor = program.supervisor;
	const struct config *config = program.reload.site->config;
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct endpoints_change change;

	for (unsigned i = 0; i < supervisor->fd_count; i++) {
		int error = endpoints_adopt(&program.endpoints, supervisor->first_fd + (int)i);
		char name[64];

		if (error)
			g_ptr_array_add(
				errors,
				g_strdup_printf("socket %u (\"%s\") from the supervisor: %s", i,
						supervisor_name(supervisor, i, name, sizeof(name)),
						error == -EINVAL ? "not a listening stream socket "
								   "(Accept=yes cannot be served)"
								 : strerror(-error)));
	}
	if (plan_sockets(config, &change, errors))
		endpoints_commit(&program.endpoints, &change);
	return log_error_list(errors);
}

static bool write_pid_file(void)
{
	const char *file = program.reload.site->config->pid_file;
	int error = file ? pidfile_write(file) : 0;

	if (error)
		return server_main_complain("cannot write the pid-file \"%s\": %s", file,
					    strerror(-error));
	program.pid_file = g_strdup(file);
	return true;
}

/* Returns the memory limit of the programs of all pools together. */
static uint64_t program_memory(const struct config *config)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < config->pool_count; i++) {
		const struct pool_config *pool = config->pools[i];

		if (pool->protocol == POOL_WORKER)
			sum += (uint64_t)pool->processes * pool->memory;
	}
	return archs[config->arch].processes ? sum * config->threads : sum;
}

/*
 * Returns the total size of the cache; logs the size that was chosen, what will not fit, and the
 * number of connections that was chosen.
 */
static size_t find_sizes(const struct config *config, unsigned *connections)
{
	uint64_t programs = program_memory(config), size = config->cache_size;
	char cache[MEMORY_TEXT_MAX], there[MEMORY_TEXT_MAX], more[MEMORY_TEXT_MAX];
	struct memory_limit limit;
	enum log_level level;

	memory_limit_find(&limit, "");
	/* Little memory is news. */
	level = memory_limit_cache(&limit) < MEMORY_LIMIT_CACHE_MOST ? LOG_LEVEL_NOTICE
								     : LOG_LEVEL_INFO;
	*connections = memory_limit_connections(&limit);
	if (config->limits.max_connections == CONFIG_CONNECTIONS_UNSET)
		log_at(level,
		       "at most %u connections: max-connections is not set, and %s allows %s",
		       *connections, limit.what, memory_text(limit.bytes, there));
	if (!size) {
		size = memory_limit_cache(&limit);
		log_at(level, "cache of %s: cache-size is not set, and %s allows %s",
		       memory_text(size, cache), limit.what, memory_text(limit.bytes, there));
	}
	if (size + programs > limit.bytes)
		log_warning("a cache of %s and workers with %s may take more memory than there is: "
			    "%s allows %s (see cache-size, worker-memory)",
			    memory_text(size, cache), memory_text(programs, more), limit.what,
			    memory_text(limit.bytes, there));
	return size;
}

/* Returns the part of one process: all, or less with several processes. */
static size_t cache_share(const struct config *config, size_t size)
{
	return archs[config->arch].processes ? MAX(size / config->threads, CACHE_MIN) : size;
}

/* Sets the sizes of one process, before there are threads. */
static void set_sizes(struct server *server, const struct config *config)
{
	unsigned connections;

	server->cache_size = cache_share(config, find_sizes(config, &connections));
	if (archs[config->arch].processes)
		connections = MAX(connections / config->threads, 1u);
	server->connections_most = connections;
	server->streams_most = MAX(connections / server->threads, STREAMS_LEAST);
}

bool server_main_open(int argc, char **argv, const struct config *config,
		      struct supervisor *supervisor)
{
	struct server *server = &program.server;
	struct privileges privileges;
	char *why;

	program.reload = (struct reload){.argc = argc, .argv = argv, .site = site_new(config)};
	program.supervisor = supervisor;
	program.signal_fd = program.news_fd = -1;
	server->arch = &archs[config->arch];
	server->threads = config->threads;
	if (server->arch->processes)
		server->threads = 1;
	endpoints_init(&program.endpoints, server->threads, server->arch->single);
	/* Report errors before anything is created. */
	if (!privileges_find(&privileges, config->user, config->group, &why))
		return server_main_complain_of(why);
	if (privileges.user)
		user_open_set(privileges.uid, privileges.gid, privileges.groups,
			      privileges.group_count);
	privileges_clear(&privileges);
	if (!logs_apply(server, config, &why))
		return server_main_complain_of(why);
	set_sizes(server, config);
	/* Before other processes are forked, which share the keys. */
	server->tickets = tls_tickets_open(clock_boottime_ns() / 1000000000u);
	if (!server->tickets)
		return server_main_complain("no random bytes for the keys of TLS sessions");
	return open_sockets() && write_pid_file();
}

bool server_main_renew(const struct config *next, GPtrArray *errors)
{
	struct endpoints_wanted wanted = reload_endpoints(next);
	struct endpoints_change change;
	unsigned connections;
	char *why;

	if (&archs[next->arch] != program.server.arch) {
		g_ptr_array_add(errors, g_strdup("arch is read at the start only: restart to "
						 "use another"));
		return false;
	}
	if (!endpoints_plan(&program.endpoints, &wanted, &change, errors))
		return false;
	if (!logs_apply(&program.server, next, &why)) {
		endpoints_abandon(&change);
		g_ptr_array_add(errors, why);
		return false;
	}
	endpoints_commit(&program.endpoints, &change);
	tls_tickets_advance(program.server.tickets, clock_boottime_ns() / 1000000000u);
	site_release(program.reload.site);
	program.reload.site = site_new(config_hold(next));
	/* The number of connections is read by threads; it depends on the memory alone. */
	program.server.cache_size = cache_share(next, find_sizes(next, &connections));
	return true;
}

void server_main_be_child(pid_t parent, int news_fd)
{
	program.parent = parent;
	program.news_fd = news_fd;
	program.supervisor = NULL;
	g_free(program.pid_file);
	program.pid_file = NULL;
	endpoints_disown(&program.endpoints);
}

/*
 * The children end with their parent, as at a reload, so that its successor can use the addresses
 * at once.  A change of user clears this setting, so it is set again.
 */
static bool follow_parent(void)
{
	if (!program.parent)
		return true;
	(void)prctl(PR_SET_PDEATHSIG, SIGHUP);
	return getppid() == program.parent;
}

/* Without a configured directory the server runs without spools. */
static bool open_spools(const struct config *config, const struct privileges *privileges)
{
	struct spools_options options = {.folder = config->spool_directory,
					 .most = config->spool_size,
					 .memory = config->spool_memory,
					 .user = privileges->user ? privileges->uid : (uid_t)-1,
					 .group = privileges->group ? privileges->gid : (gid_t)-1};
	char *why;

	if (program.server.arch->processes)
		options.most /= config->threads;
	program.server.spools = spools_open(&options, &why);
	if (program.server.spools)
		return true;
	if (config->spool_directory) {
		server_main_complain("spool-directory %s", why);
		g_free(why);
		return false;
	}
	log_notice("buffering on disk is disabled: %s", why);
	g_free(why);
	return true;
}

/*
 * The server's memory has private keys from now on: no core file contains them, and no other
 * process of the same user may read them.
 */
static bool protect_keys(void)
{
	const struct rlimit none = {0, 0};

	if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return server_main_complain("cannot protect the keys of TLS: %s", strerror(errno));
	return true;
}

/* Who makes the records of TLS 1.3, for the log. */
static const char *encrypts(const struct config *config)
{
	if (program.server.kernel_tls)
		return "the kernel, as far as it knows their ciphers";
	if (config->tls_records == TLS_RECORDS_OWN && tls_library->can_make_records())
		return "the server (the kernel has no module \"tls\")";
	return "OpenSSL (the kernel has no module \"tls\")";
}

/* Opens the certificates; and what opens them at a reload, if this process will not be able to. */
static bool open_tls(const struct privileges *privileges)
{
	struct site *site = program.reload.site;
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct server *server = &program.server;
	const struct site_options options = {.tickets = server->tickets};
	bool good = protect_keys();

	/* Of several processes, new ones are forked by one that has all privileges. */
	if (good && privileges->user && !server->arch->processes) {
		server->opener = key_opener_open(program.reload.argc, program.reload.argv);
		if (!server->opener)
			good = server_main_complain("cannot start the process that opens keys: %s",
						    strerror(errno));
	}
	if (good)
		(void)site_open_tls(site, &options, errors);
	server->kernel_tls = tls_kernel_probe();
	log_info("TLS by OpenSSL %s; records are encrypted by %s", tls_library->name(),
		 encrypts(site->config));
	return log_error_list(errors) && good;
}

/* Before the process has the private keys, which the guard does not need. */
static bool open_guard(const struct config *config, const struct privileges *privileges)
{
	bool needed = false;

	for (unsigned i = 0; i < config->pool_count; i++)
		needed |= config->pools[i]->protocol == POOL_WORKER &&
			  !pool_config_is_other(config->pools[i]);
	if (!needed)
		return true;
	program.server.guard = group_guard_open(privileges);
	return program.server.guard
		       ? true
		       : server_main_complain("cannot start the process that guards workers: %s",
					      strerror(errno));
}

bool server_main_enter(void)
{
	const struct config *config = program.reload.site->config;
	const struct spools *spools;
	struct privileges privileges;
	bool good;
	char *why;

	if (!privileges_find(&privileges, config->user, config->group, &why))
		return server_main_complain_of(why);
	/* Messages that each of several processes would repeat. */
	if (program.parent && config->log_level > LOG_LEVEL_WARNING)
		log_set_level(LOG_LEVEL_WARNING);
	good = server_main_open_signals();
	if (good && !spawn_table_open(&program.server.spawn_table, config, program.server.threads,
				      &privileges, &why))
		good = server_main_complain_of(why);
	good = good && open_guard(config, &privileges);
	good = good && (!config->tls || open_tls(&privileges));
	good = good && open_spools(config, &privileges);
	spools = program.server.spools;
	if (good && !sandbox_enter(config, &privileges, &program.endpoints,
				   spools ? spools_folder(spools) : NULL, &why))
		good = server_main_complain_of(why);
	privileges_clear(&privileges);
	log_set_level((enum log_level)config->log_level);
	return good && follow_parent();
}
