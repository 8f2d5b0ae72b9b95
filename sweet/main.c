/* SPDX-License-Identifier: MIT */
/*
 * main.c - sweet(8): puts the parts together, starts the threads, waits for
 * a signal, and takes everything down again in the opposite order.
 *
 * Whatever can be wrong with the settings is found before anything starts.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <glib.h>

#include <config-read.h>
#include <connection.h>
#include <endpoint.h>
#include <gateway.h>
#include <listener.h>
#include <logs.h>
#include <server.h>
#include <site.h>

#define HELPERS 4
#define LIMIT_ENTRIES (1u << 16) /* of 16 bytes, once they are used */
#define DRAIN_MS 5000
#define DRAIN_STEP_MS 50

/* One thread: its server, its listeners, and how it is told to end. */
struct runner {
	struct server server;
	struct gw_hook workers;
	struct listener *listeners;
	unsigned listener_count;
	pthread_t thread;
	bool threaded;
	struct loop_task drain, stop, ended;
	struct timer drain_check;
	uint64_t drain_until_ms;
};

struct program {
	struct config *config;
	struct site site;
	struct endpoint **endpoints; /* NULL: not open yet */
	unsigned endpoint_count;
	struct runner *runners;
	int signal_fd;
	struct loop_watch signal;
	unsigned signals; /* to end, so far */
	unsigned running; /* threads besides the main one */
};

static struct program program;

static bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool complain(const char *format, ...)
{
	va_list arguments;
	char *line;

	va_start(arguments, format);
	line = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	log_error("%s", line);
	g_free(line);
	return false;
}

/* Frees the line. */
static bool complain_of(char *line)
{
	complain("%s", line);
	g_free(line);
	return false;
}

/* Logs what errors has, and lets go of it; true: it had nothing. */
static bool tell(GPtrArray *errors)
{
	bool good = errors->len == 0;

	for (unsigned i = 0; i < errors->len; i++)
		log_error("%s", (const char *)errors->pdata[i]);
	g_ptr_array_free(errors, TRUE);
	return good;
}

/* --- ending -------------------------------------------------------------------- */

static void stop_now(struct loop_task *task)
{
	struct runner *runner = (struct runner *)((char *)task - offsetof(struct runner, stop));

	loop_stop(runner->server.loop);
}

static void drain_check(struct timer *timer)
{
	struct runner *runner =
		(struct runner *)((char *)timer - offsetof(struct runner, drain_check));
	struct loop *loop = runner->server.loop;

	/* The main thread hears the second signal, so it stays until the last. */
	bool needed = runner->server.connections ||
		      (runner == &program.runners[0] && program.running > 0);

	if (!needed || loop_now_ms(loop) >= runner->drain_until_ms) {
		loop_stop(loop);
		return;
	}
	loop_timer_start(loop, timer, DRAIN_STEP_MS, drain_check);
}

static void drain(struct loop_task *task)
{
	struct runner *runner = (struct runner *)((char *)task - offsetof(struct runner, drain));

	for (unsigned i = 0; i < runner->listener_count; i++)
		listener_retire(&runner->listeners[i], false, NULL);
	connection_drain(&runner->server);
	runner->drain_until_ms = loop_now_ms(runner->server.loop) + DRAIN_MS;
	drain_check(&runner->drain_check);
}

/* Somebody has moved the files away. */
static void reopen_logs(void)
{
	char *why;

	if (logs_apply(&program.site, program.config, &why)) {
		log_notice("opened the logs anew");
		return;
	}
	log_error("%s; the old logs are kept", why);
	g_free(why);
}

static void on_signal(struct loop_watch *watch)
{
	struct signalfd_siginfo info;

	(void)watch;
	while (read(program.signal_fd, &info, sizeof(info)) == sizeof(info)) {
		bool again;

		if (info.ssi_signo == SIGUSR1) {
			reopen_logs();
			continue;
		}
		again = program.signals++ > 0;
		for (unsigned i = 0; i < program.site.threads; i++) {
			struct runner *runner = &program.runners[i];
			struct loop_task *task = again ? &runner->stop : &runner->drain;

			/* A third signal has nothing left to say. */
			if (program.signals > 2)
				continue;
			task->run = again ? stop_now : drain;
			loop_post(runner->server.loop, task);
		}
	}
}

/* --- starting ------------------------------------------------------------------- */

/* On the main thread. */
static void thread_ended(struct loop_task *task)
{
	(void)task;
	program.running--;
	if (program.runners[0].drain_until_ms)
		drain_check(&program.runners[0].drain_check);
}

static void *run(void *argument)
{
	struct runner *runner = argument;

	loop_run(runner->server.loop);
	runner->ended.run = thread_ended;
	loop_post(program.runners[0].server.loop, &runner->ended);
	return NULL;
}

static bool open_sockets(void)
{
	unsigned threads = program.site.threads;

	program.endpoint_count = g_strv_length(program.config->listen);
	program.endpoints = g_new0(struct endpoint *, program.endpoint_count);
	for (unsigned i = 0; i < threads; i++)
		program.runners[i].listeners = g_new0(struct listener, program.endpoint_count);
	for (unsigned e = 0; e < program.endpoint_count; e++) {
		struct listen_address address;

		if (!address_parse(program.config->listen[e], &address))
			return complain("listen \"%s\": must be ADDRESS:PORT, :PORT, PORT or "
					"unix:PATH",
					program.config->listen[e]);
		program.endpoints[e] = endpoint_open(&address, threads);
		if (!program.endpoints[e])
			return complain("cannot listen on %s: %s", address.text, strerror(errno));
	}
	return true;
}

static bool open_loops(void)
{
	char why[160] = "", *line;

	for (unsigned i = 0; i < program.site.threads; i++) {
		struct server *server = &program.runners[i].server;

		server->number = i;
		server->site = &program.site;
		server->loop = loop_open((enum loop_kind)program.config->io, why, sizeof(why));
		if (!server->loop)
			return complain("cannot start an event loop: %s", why);
		server->generation = generation_open(config_ref(program.config));
		if (!logs_join(&program.site, server, &line))
			return complain_of(line);
		gw_hook_add(&program.runners[i].workers, server);
		program.site.servers[i] = server;
	}
	snprintf(program.site.io, sizeof(program.site.io), "%s", why);
	return true;
}

static bool open_site(void)
{
	struct site *site = &program.site;
	const struct config *config = program.config;
	struct NC_cache_options options = {.size = config->cache_size, .flags = NC_CACHE_NO_THREAD};
	GPtrArray *errors;
	struct timespec now;
	char *why = NULL;

	if (config->io == LOOP_EPOLL)
		options.flags |= NC_CACHE_NO_URING;
	site->cache = NC_cache_open(&options);
	if (!site->cache)
		return complain("cannot open the cache of %zu bytes: %s", config->cache_size,
				strerror(errno));
	if (config->cache_socket && NC_cache_serve(site->cache, config->cache_socket) < 0)
		return complain("cannot serve the cache at \"%s\": %s%s", config->cache_socket,
				strerror(errno),
				errno == EADDRINUSE ? " (remove it if no server uses it)" : "");
	site->max_unit = config->cache_size / 4;
	site->bodies.most = site->max_unit;
	site->helpers = helper_open(HELPERS);
	if (!site->helpers)
		return complain("cannot start threads: %s", strerror(errno));
	site->limits = limits_open(LIMIT_ENTRIES);
	if (site->limits)
		site->authenticator = authenticator_open(site->limits);
	if (!site->authenticator)
		return complain("cannot count clients: %s", strerror(errno));
	errors = g_ptr_array_new_with_free_func(g_free);
	(void)site_open(
		program.config, NULL,
		&(struct site_options){.helpers = site->helpers,
				       .authenticator = site->authenticator,
				       .max_unit = site->max_unit},
		errors);
	if (!tell(errors))
		return false;
	if (!open_loops())
		return false;
	if (config->worker[0]) {
		site->gateway = gateway_open(site, config->worker, config->workers,
					     config->worker_memory, &why);
		if (!site->gateway)
			return complain_of(why);
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	site->started_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	site->started_ms = (uint64_t)g_get_real_time() / 1000;
	return true;
}

static bool check(void)
{
	char *why;

	program.site.threads = program.config->threads;
	program.runners = g_new0(struct runner, program.site.threads);
	if (!logs_apply(&program.site, program.config, &why))
		return complain_of(why);
	return open_sockets();
}

static bool open_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	/* A log that may not grow is a write that fails, like one on a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	program.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return program.signal_fd >= 0 ? true
				      : complain("cannot watch signals: %s", strerror(errno));
}

static bool start(void)
{
	struct loop *loop = program.runners[0].server.loop;
	int error = 0;

	program.signal.ready = on_signal;
	error = loop_watch_start(loop, &program.signal, program.signal_fd);
	if (!error && program.site.gateway)
		error = gateway_start(program.site.gateway);
	for (unsigned i = 0; i < program.site.threads && !error; i++) {
		struct runner *runner = &program.runners[i];

		for (unsigned e = 0; e < program.endpoint_count && !error; e++) {
			error = listener_start(&runner->listeners[e], &runner->server,
					       endpoint_take(program.endpoints[e], i));
			runner->listener_count++;
		}
		if (i > 0 && !error) {
			error = -pthread_create(&runner->thread, NULL, run, runner);
			runner->threaded = !error;
			program.running += !error;
		}
	}
	return error ? complain("cannot start: %s", strerror(-error)) : true;
}

/* The cache's own events (members that come and go) are the main loop's. */
static void on_cache(struct loop_watch *watch)
{
	(void)watch;
	(void)NC_cache_dispatch(program.site.cache);
}

static void announce(void)
{
	for (unsigned i = 0; i < program.endpoint_count; i++) {
		const struct listen_address *address = &program.endpoints[i]->bound;
		bool web = address->address.ss_family != AF_UNIX;

		log_notice("listening on %s%s%s (root %s, %u thread%s, %s)", web ? "http://" : "",
			   address->text, web ? "/" : "",
			   program.config->hosts[0]
				   .scopes[program.config->hosts[0].scope_count - 1]
				   .root,
			   program.site.threads, program.site.threads == 1 ? "" : "s",
			   program.site.io);
	}
}

/* --- taking down ------------------------------------------------------------------ */

static void take_down(void)
{
	struct site *site = &program.site;

	for (unsigned i = 1; program.runners && i < site->threads; i++) {
		struct runner *runner = &program.runners[i];

		if (!runner->threaded)
			continue;
		if (program.signals == 0) {
			runner->stop.run = stop_now;
			loop_post(runner->server.loop, &runner->stop);
		}
		pthread_join(runner->thread, NULL);
	}
	if (site->gateway)
		site->gateway->closing = true;
	helper_close(site->helpers);
	for (unsigned i = 0; program.runners && i < site->threads; i++) {
		struct runner *runner = &program.runners[i];

		if (runner->server.loop) {
			for (unsigned a = 0; a < runner->listener_count; a++)
				listener_close(&runner->listeners[a]);
			connection_close_all(&runner->server);
			access_log_stop(&runner->server.log);
		}
		g_free(runner->listeners);
	}
	gateway_close(site->gateway);
	authenticator_close(site->authenticator);
	/* What they had is given back now, with no connection to answer. */
	for (unsigned i = 0; program.runners && i < site->threads; i++)
		if (program.runners[i].server.loop)
			connection_close_all(&program.runners[i].server);
	for (unsigned i = 0; program.runners && i < site->threads; i++) {
		struct server *server = &program.runners[i].server;

		loop_close(server->loop);
		if (server->generation)
			generation_release(server->generation);
	}
	config_unref(program.config);
	limits_close(site->limits);
	if (site->cache && NC_cache_close(site->cache) < 0)
		log_warning("closing the cache: %s", strerror(errno));
	if (program.signal_fd >= 0)
		close(program.signal_fd);
	logs_close(site);
	log_close();
	g_free(program.runners);
	for (unsigned e = 0; e < program.endpoint_count; e++)
		endpoint_close(program.endpoints[e]);
	g_free(program.endpoints);
}

/* As many connections as the hard limit allows. */
static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int argc, char **argv)
{
	static struct loop_watch cache_watch = {.ready = on_cache};
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct config_request request = {0};
	bool good;

	program.site.log_fd = program.signal_fd = -1;
	program.config = config_read(argc, argv, &request, errors);
	if (program.config && request.check)
		(void)site_open(program.config, NULL, &(struct site_options){0}, errors);
	good = tell(errors);
	if (good && request.version)
		printf("sweet (nabc) %s\n", PACKAGE_VERSION);
	else if (good && request.check)
		printf("%s: good\n", program.config->file ? program.config->file : "settings");
	if (!good || request.version || request.check) {
		config_unref(program.config);
		return good ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	raise_limits();
	good = check() && open_signals() && open_site() && start();
	if (good)
		good = loop_watch_start(program.runners[0].server.loop, &cache_watch,
					NC_cache_fd(program.site.cache)) == 0;
	if (good) {
		announce();
		log_settled();
		loop_run(program.runners[0].server.loop);
	}
	take_down();
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
