/* SPDX-License-Identifier: MIT */
/*
 * main.c - sweet(8): puts the parts together, starts the threads, hears the
 * signals, and takes everything down again in the opposite order.
 *
 * Whatever can be wrong with the settings is found before anything starts;
 * whatever needs root is done before root is given up; and that, before there
 * are threads.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <glib.h>

#include <clock.h>
#include <config-read.h>
#include <check-config.h>
#include <confine.h>
#include <connection.h>
#include <gateway.h>
#include <gw-cache.h>
#include <logs.h>
#include <pidfile.h>
#include <programs.h>
#include <reload.h>
#include <site.h>
#include <supervisor.h>

#define HELPERS 4
#define LIMIT_ENTRIES (1u << 16) /* of 16 bytes, once they are used */

struct program {
	struct reload reload; /* with the present configuration */
	struct site site;
	struct endpoints endpoints;
	struct runners *runners;
	struct supervisor supervisor;
	char *pid_file; /* written; of the first configuration */
	int signal_fd;
	struct loop_watch signal, cache;
	struct timer delay, watchdog;
	unsigned watchdog_ms;
	unsigned signals; /* to end, so far */
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

static struct loop *main_loop(void)
{
	return program.runners->all[0].server.loop;
}

static void announce(void)
{
	const struct host *host = &program.reload.config->hosts[0];

	for (unsigned i = 0; i < program.endpoints.all->len; i++) {
		const struct endpoint *endpoint = program.endpoints.all->pdata[i];
		bool web = endpoint->bound.address.ss_family != AF_UNIX;

		log_notice("listening on %s%s%s (root %s, %u thread%s, %s%s)", web ? "http://" : "",
			   endpoint->bound.text, web ? "/" : "",
			   host->scopes[host->scope_count - 1].root, program.site.threads,
			   program.site.threads == 1 ? "" : "s", program.site.io,
			   program.site.path == &data_path_posix ? ", data path posix" : "");
	}
}

static void tell_ready(void)
{
	char status[64];

	snprintf(status, sizeof(status), "serving on %u address%s", program.endpoints.all->len,
		 program.endpoints.all->len == 1 ? "" : "es");
	supervisor_ready(&program.supervisor, status);
}

/* --- signals -------------------------------------------------------------------- */

static void delay_over(struct timer *timer)
{
	(void)timer;
	runners_drain(program.runners);
}

static void begin_end(void)
{
	unsigned delay = program.reload.config->limits.drain_ms;

	/* Before anybody is told: who hears of it may ask at once. */
	atomic_store(&program.site.leaving, true);
	log_notice("ending: %s", delay ? "not ready any more, still accepting" : "draining");
	supervisor_stopping(&program.supervisor, "draining");
	reload_end(&program.reload);
	if (delay)
		loop_timer_start(main_loop(), &program.delay, delay, delay_over);
	else
		runners_drain(program.runners);
}

/* Somebody has moved the files away. */
static void reopen_logs(void)
{
	char *why;

	if (logs_apply(&program.site, program.reload.config, &why)) {
		log_notice("opened the logs anew");
		return;
	}
	log_error("%s; the old logs are kept", why);
	g_free(why);
}

static void reload_over(struct reload *reload, bool good)
{
	if (good) {
		announce();
		log_notice("reloaded %s",
			   reload->config->file ? reload->config->file : "the settings");
	}
	tell_ready();
}

static void on_signal(struct loop_watch *watch)
{
	struct signalfd_siginfo info;

	(void)watch;
	while (read(program.signal_fd, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGUSR1:
			reopen_logs();
			break;
		case SIGHUP:
			if (program.signals == 0)
				supervisor_reloading(&program.supervisor);
			reload_begin(&program.reload);
			break;
		default:
			program.signals++;
			/* A third one has nothing left to say. */
			if (program.signals == 1)
				begin_end();
			else if (program.signals == 2)
				runners_stop(program.runners);
		}
	}
}

static bool open_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	/* A log that may not grow is a write that fails, like one on a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&set);
	for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
		sigaddset(&set, numbers[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	program.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return program.signal_fd >= 0 ? true
				      : complain("cannot watch signals: %s", strerror(errno));
}

/* A thread that hangs is for the supervisor to see. */
static void watchdog(struct timer *timer)
{
	if (runners_alive(program.runners))
		supervisor_alive(&program.supervisor);
	loop_timer_start(main_loop(), timer, program.watchdog_ms, watchdog);
}

/* --- what needs root ---------------------------------------------------------------- */

static bool open_sockets(void)
{
	const struct supervisor *supervisor = &program.supervisor;
	const struct config *config = program.reload.config;
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct endpoints_change change;

	endpoints_init(&program.endpoints, program.site.threads);
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
	if (endpoints_plan(&program.endpoints, config->listen, config->listen_given, &change,
			   errors))
		endpoints_commit(&program.endpoints, &change);
	return tell(errors);
}

static bool prepare(void)
{
	const struct config *config = program.reload.config;
	struct privileges privileges;
	bool good;
	char *why;
	int error;

	program.site.threads = config->threads;
	if (!privileges_find(&privileges, config->user, config->group, &why) ||
	    !logs_apply(&program.site, config, &why))
		return complain_of(why);
	good = open_sockets() && open_signals();
	if (good && config->pid_file) {
		error = pidfile_write(config->pid_file);
		if (error)
			good = complain("cannot write the pid-file \"%s\": %s", config->pid_file,
					strerror(-error));
		else
			program.pid_file = g_strdup(config->pid_file);
	}
	if (good && !programs_open(&program.site.programs, config, &privileges, &why))
		good = complain_of(why);
	if (good && !confine(config, &privileges, &program.endpoints, &why))
		good = complain_of(why);
	privileges_clear(&privileges);
	return good;
}

/* --- starting ------------------------------------------------------------------- */

static bool open_loops(void)
{
	const struct config *config = program.reload.config;
	char why[160] = "", *line;

	program.runners = runners_new(program.site.threads);
	for (unsigned i = 0; i < program.site.threads; i++) {
		struct runner *runner = &program.runners->all[i];
		struct server *server = &runner->server;

		server->number = i;
		server->site = &program.site;
		server->loop = loop_open((enum loop_kind)config->io, why, sizeof(why));
		if (!server->loop)
			return complain("cannot start an event loop: %s", why);
		loop_send_by(server->loop, program.site.path);
		if (program.site.programs &&
		    programs_attach(program.site.programs, i, server->loop) < 0)
			return complain("cannot watch the process that starts programs");
		server->generation = generation_open(config_ref(program.reload.config));
		if (!logs_join(&program.site, server, &line))
			return complain_of(line);
		gw_hook_add(&runner->workers, server);
		program.site.servers[i] = server;
	}
	snprintf(program.site.io, sizeof(program.site.io), "%s", why);
	return true;
}

static bool open_site(void)
{
	struct site *site = &program.site;
	const struct config *config = program.reload.config;
	struct NC_cache_options options = {.size = config->cache_size, .flags = NC_CACHE_NO_THREAD};
	GPtrArray *errors;

	site->path = data_paths[config->data_path];
	options.flags |= site->path->cache_flags;
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
	site->answers.most = config->cache_size;
	site->ahead.most = site->max_unit;
	site->helpers = helper_open(HELPERS);
	if (!site->helpers)
		return complain("cannot start threads: %s", strerror(errno));
	site->limits = limits_open(LIMIT_ENTRIES);
	if (site->limits)
		site->authenticator = authenticator_open(site->limits);
	if (!site->authenticator)
		return complain("cannot count clients: %s", strerror(errno));
	if (!gw_cache_open(site, config->cache_size))
		return complain("cannot keep answers: out of memory");
	errors = g_ptr_array_new_with_free_func(g_free);
	(void)site_open(program.reload.config, NULL,
			&(struct site_options){.helpers = site->helpers,
					       .authenticator = site->authenticator,
					       .max_unit = site->max_unit},
			errors);
	if (!tell(errors) || !open_loops())
		return false;
	site->gateway = gateway_open(site);
	site->started_ns = clock_monotonic_ns();
	site->started_ms = (uint64_t)g_get_real_time() / 1000;
	return true;
}

/* The cache's own events (members that come and go) are the main loop's. */
static void on_cache(struct loop_watch *watch)
{
	(void)watch;
	(void)NC_cache_dispatch(program.site.cache);
}

static bool start(void)
{
	struct loop *loop = main_loop();
	char *why = NULL;
	int error = 0;

	program.signal.ready = on_signal;
	program.cache.ready = on_cache;
	error = loop_watch_start(loop, &program.signal, program.signal_fd);
	if (!error)
		error = loop_watch_start(loop, &program.cache, NC_cache_fd(program.site.cache));
	if (!error && gateway_use(program.site.gateway, program.reload.config, &why) < 0)
		return complain_of(why);
	for (unsigned i = 0; i < program.site.threads && !error; i++) {
		struct runner *runner = &program.runners->all[i];

		for (unsigned k = 0; k < program.endpoints.all->len && !error; k++)
			error = runner_listen(runner,
					      runner_seat(runner, program.endpoints.all->pdata[k]));
		if (i > 0 && !error)
			error = runner_start(runner);
	}
	if (error)
		return complain("cannot start: %s", strerror(-error));
	program.watchdog_ms = (unsigned)(program.supervisor.watchdog_us / 2000 % UINT32_MAX);
	if (program.watchdog_ms)
		loop_timer_start(loop, &program.watchdog, 0, watchdog);
	program.reload.site = &program.site;
	program.reload.runners = program.runners;
	program.reload.endpoints = &program.endpoints;
	program.reload.over = reload_over;
	return true;
}

/* --- taking down ------------------------------------------------------------------ */

static void close_runners(void)
{
	struct site *site = &program.site;
	struct runners *runners = program.runners;

	if (program.signals == 0)
		runners_stop(runners);
	runners_join(runners);
	if (site->gateway)
		site->gateway->closing = true;
	helper_close(site->helpers);
	for (unsigned i = 0; i < runners->count; i++) {
		struct runner *runner = &runners->all[i];

		if (!runner->server.loop)
			continue;
		runner_close_seats(runner);
		connection_close_all(&runner->server);
		access_log_stop(&runner->server.log);
	}
	gw_cache_end(site);
	gateway_close(site->gateway);
	authenticator_close(site->authenticator);
	/* What they had is given back now, with no connection to answer. */
	for (unsigned i = 0; i < runners->count; i++)
		if (runners->all[i].server.loop)
			connection_close_all(&runners->all[i].server);
	for (unsigned i = 0; i < runners->count; i++) {
		struct server *server = &runners->all[i].server;

		loop_close(server->loop);
		if (server->generation)
			generation_release(server->generation);
	}
}

static void take_down(void)
{
	struct site *site = &program.site;

	if (program.runners) {
		close_runners();
	} else {
		helper_close(site->helpers);
		authenticator_close(site->authenticator);
	}
	programs_close(site->programs);
	reload_clear(&program.reload);
	gw_cache_close(site);
	if (site->cache && NC_cache_close(site->cache) < 0)
		log_warning("closing the cache: %s", strerror(errno));
	endpoints_clear(&program.endpoints);
	if (program.pid_file)
		pidfile_remove(program.pid_file);
	g_free(program.pid_file);
	limits_close(site->limits);
	if (program.signal_fd >= 0)
		close(program.signal_fd);
	logs_close(site);
	log_close();
	runners_free(program.runners);
	supervisor_close(&program.supervisor);
}

int main(int argc, char **argv)
{
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct config_request request = {0};
	struct config *config;
	bool good;

	program.site.log_fd = program.signal_fd = -1;
	supervisor_open(&program.supervisor);
	config = config_read(argc, argv, &request, errors);
	if (config && request.check) {
		(void)site_open(config, NULL, &(struct site_options){0}, errors);
		check_config(config, errors);
	}
	good = tell(errors);
	if (good && request.version)
		printf("sweet (nabc) %s\n", PACKAGE_VERSION);
	else if (good && request.check)
		printf("%s: good\n", config->file ? config->file : "settings");
	if (!good || request.version || request.check) {
		config_unref(config);
		supervisor_close(&program.supervisor);
		return good ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	program.reload = (struct reload){.argc = argc, .argv = argv, .config = config};
	privileges_raise_limits();
	good = prepare() && open_site() && start();
	if (good) {
		announce();
		log_settled();
		tell_ready();
		loop_run(main_loop());
	}
	take_down();
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
