/* SPDX-License-Identifier: MIT */
/*
 * fastcgi-spawn.c - the FastCGI applications that the server starts itself, all with one listening
 * socket, which is their descriptor 0.  Runs on the main thread.
 *
 * The socket is created in a private directory, and both are removed at once: a process that can
 * connect could forge requests, for example with any user name as authenticated; and a server that
 * is killed removes nothing.  The server connects by its own descriptor of the socket file.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <glib.h>
#include <glib/gstdio.h>

#include "backend/pool.h"
#include "base/address.h"
#include "config/configuration.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/site.h"
#include "event/sender.h"
#include "gateway/gateway.h"
#include "gateway/pool-process.h"
#include "gateway/upstream-internal.h"
#include "log/log.h"
#include "spawn/spawn-child.h"
#include "spawn/spawner.h"

#define BACKLOG 1024

struct fastcgi_spawn {
	struct gateway_pool *pool;
	int listener;
	int file; /* the socket file, to connect by; -1: connect by name */
	unsigned program;
	char *folder, *path; /* of the socket; NULL: removed */
	char *block;	     /* variables, each terminated by a NUL */
	size_t block_length;
};

static int fastcgi_start(struct pool_process *process, pid_t *pid, int *pidfd)
{
	const struct fastcgi_spawn *spawn = process->own;
	const struct start what = {.program = spawn->program,
				   .block = spawn->block,
				   .block_length = spawn->block_length,
				   .fds = {spawn->listener, -1, -1, -1}};

	*pid = 0;
	*pidfd = -1;
	return pool_process_run(process, &what);
}

/* The processes share the socket, which exists already. */
static void fastcgi_up(struct pool_process *process)
{
	(void)process;
}

static void fastcgi_retire(struct pool_process *process)
{
	const struct thread *main = process->pool->gateway->main;

	spawn_child_ask_to_end(process->child, main->config_ref->config->limits.stop_ms);
}

static void fastcgi_down(struct pool_process *process)
{
	if (process->planned)
		pool_process_left(process);
	pool_process_left(process);
}

/* --- the pool ----------------------------------------------------------------------- */

static void remove_name(struct fastcgi_spawn *spawn)
{
	if (spawn->path)
		(void)g_unlink(spawn->path);
	if (spawn->folder)
		(void)g_rmdir(spawn->folder);
	g_clear_pointer(&spawn->path, g_free);
	g_clear_pointer(&spawn->folder, g_free);
}

/* Replaces the name in the address by the descriptor; without /proc the name stays. */
static void hide(struct fastcgi_spawn *spawn, struct listen_address *address)
{
	struct listen_address by_file;
	char text[64];

	spawn->file = open(spawn->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (spawn->file < 0)
		return;
	g_snprintf(text, sizeof(text), ADDRESS_UNIX "/proc/self/fd/%d", spawn->file);
	if (!address_parse(text, &by_file) || access(address_path(&by_file), W_OK) < 0)
		return;
	/* Messages still show the original name. */
	memcpy(by_file.text, address->text, sizeof(by_file.text));
	*address = by_file;
	remove_name(spawn);
}

static int listen_at(struct fastcgi_spawn *spawn, struct listen_address *address)
{
	char text[sizeof(address->text)];

	spawn->folder = g_dir_make_tmp("sweet-XXXXXX", NULL);
	if (!spawn->folder)
		return -errno;
	spawn->path = g_build_filename(spawn->folder, "socket", NULL);
	if (g_snprintf(text, sizeof(text), ADDRESS_UNIX "%s", spawn->path) >= (int)sizeof(text) ||
	    !address_parse(text, address))
		return -ENAMETOOLONG;
	spawn->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (spawn->listener < 0 ||
	    bind(spawn->listener, (struct sockaddr *)&address->address, address->length) < 0 ||
	    listen(spawn->listener, BACKLOG) < 0)
		return -errno;
	hide(spawn, address);
	return 0;
}

static void make_block(struct fastcgi_spawn *spawn)
{
	const struct gateway *gateway = spawn->pool->gateway;
	const char *cache = gateway->main->config_ref->config->cache_socket;
	GString *block = g_string_new(NULL);

	g_string_append_printf(block, "NABC_SERVER_PID=%d", gateway->pid);
	g_string_append_c(block, '\0');
	if (cache) {
		char *path = g_canonicalize_filename(cache, NULL);

		g_string_append_printf(block, "NABC_CACHE=%s", path);
		g_string_append_c(block, '\0');
		g_free(path);
	}
	spawn->block_length = block->len;
	spawn->block = g_string_free(block, FALSE);
}

int fastcgi_spawn_open(struct fastcgi_spawn **out, struct gateway_pool *pool,
		       struct listen_address *address)
{
	static const struct pool_process_kind kind = {.start = fastcgi_start,
						      .up = fastcgi_up,
						      .retire = fastcgi_retire,
						      .down = fastcgi_down};
	struct fastcgi_spawn *spawn = *out = g_new0(struct fastcgi_spawn, 1);
	int program = pool_processes_program(pool), error;

	spawn->pool = pool;
	spawn->listener = spawn->file = -1;
	if (program < 0)
		return program;
	spawn->program = (unsigned)program;
	error = listen_at(spawn, address);
	if (error) {
		log_error("pool %s: cannot create a socket for its processes: %s",
			  pool->settings->name, strerror(-error));
		return error;
	}
	make_block(spawn);
	pool->count = pool->settings->processes;
	pool->processes = g_new0(struct pool_process, pool->count);
	for (unsigned i = 0; i < pool->count; i++)
		pool->processes[i].own = spawn;
	return pool_processes_open(pool, &kind, pool->count, 1);
}

void fastcgi_spawn_close(struct fastcgi_spawn *spawn)
{
	struct gateway_pool *pool = spawn->pool;

	pool_processes_close(pool);
	g_free(pool->processes);
	pool->processes = NULL;
	pool->count = 0;
	if (spawn->listener >= 0)
		close(spawn->listener);
	if (spawn->file >= 0)
		close(spawn->file);
	remove_name(spawn);
	g_free(spawn->block);
	g_free(spawn);
}

bool fastcgi_spawn_made(const struct gateway_pool *pool, size_t unit)
{
	for (unsigned i = 0; i < pool->count; i++) {
		const struct pool_process *process = &pool->processes[i];
		/* Read first: afterwards another process may have replaced this one. */
		pid_t pid = atomic_load_explicit(&process->pid, memory_order_acquire);

		if (sender_leads_maker(
			    pid, atomic_load_explicit(&process->asked, memory_order_relaxed), unit))
			return true;
	}
	return false;
}
