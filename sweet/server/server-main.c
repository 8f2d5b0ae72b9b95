/* SPDX-License-Identifier: MIT */
/*
 * server-main.c - see server-main.h: messages about the process, its signals, and the order in
 * which its parts are started.
 */
#include <errno.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <glib.h>

#include "base/address.h"
#include "config/arch.h"
#include "config/configuration.h"
#include "core/logs.h"
#include "core/server.h"
#include "core/site.h"
#include "core/socket-options.h"
#include "event/data-path.h"
#include "event/loop.h"
#include "gateway/gateway.h"
#include "log/log.h"
#include "process/endpoint.h"
#include "process/endpoints.h"
#include "process/reload-call.h"
#include "process/supervisor.h"
#include "server/reload.h"
#include "server/server-main-internal.h"
#include "server/server-main.h"
#include "server/thread.h"

#define FIRST_STARTS_MS 1000 /* that the server waits for its programs before it serves */

struct program program;

bool server_main_complain(const char *format, ...)
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

bool server_main_complain_of(char *line)
{
	server_main_complain("%s", line);
	g_free(line);
	return false;
}

static struct loop *main_loop(void)
{
	return program.runners->all[0].thread.loop;
}

void server_main_announce(void)
{
	const struct config *config = program.reload.site->config;
	const struct host *host = &config->hosts[0];
	const struct arch *arch = program.server.arch;
	bool usual = arch == &archs[ARCH_AMPED];
	char options[SOCKET_OPTIONS_TEXT];

	socket_options_check(&config->sockets);
	socket_options_write(&config->sockets, options);
	for (unsigned i = 0; i < program.endpoints.all->len; i++) {
		const struct endpoint *endpoint = program.endpoints.all->pdata[i];
		bool web = endpoint->bound.address.ss_family != AF_UNIX;

		if (endpoint->status_only) {
			log_notice("listening on %s%s%s (status pages only)",
				   !web			  ? ""
				   : endpoint->wanted.tls ? "https://"
							  : "http://",
				   endpoint->bound.text, web ? "/" : "");
			continue;
		}
		log_notice("listening on %s%s%s (root %s, %s%s%u %s%s%s%s%s%s%s%s%s)",
			   !web			  ? ""
			   : endpoint->wanted.tls ? "https://"
						  : "http://",
			   endpoint->bound.text, web ? "/" : "", host_scope(host, "")->root,
			   usual ? "" : arch->name, usual ? "" : ", ", config->threads,
			   arch->processes ? "process" : "thread",
			   config->threads == 1 ? ""
			   : arch->processes	? "es"
						: "s",
			   *program.server.io ? ", " : "", program.server.io,
			   config->data_path == DATA_PATH_POSIX ? ", data path posix" : "",
			   config->registered_memory ? "" : ", memory not registered",
			   config->pin ? ", memory pinned" : "", *options ? ", " : "", options);
	}
}

void server_main_report_ready(bool good)
{
	char status[128];

	snprintf(status, sizeof(status), "%sserving on %u address%s",
		 good ? "" : "the new configuration was refused; ", program.endpoints.all->len,
		 program.endpoints.all->len == 1 ? "" : "es");
	if (program.supervisor)
		supervisor_ready(program.supervisor, status);
}

/* --- signals -------------------------------------------------------------------- */

static void delay_over(struct timer *timer)
{
	(void)timer;
	server_threads_drain(program.runners, false);
}

static void begin_end(void)
{
	unsigned delay = program.reload.site->config->limits.drain_ms;

	/* Before any message: a reader of it may send a request at once. */
	atomic_store(&program.server.leaving, true);
	if (!program.parent)
		log_notice("ending: %s",
			   delay ? "not ready any more, still accepting" : "draining");
	if (program.supervisor)
		supervisor_stopping(program.supervisor, "draining");
	reload_end(&program.reload);
	if (delay)
		loop_timer_start(main_loop(), &program.delay, delay, delay_over);
	else
		server_threads_drain(program.runners, false);
}

/* Other processes take over, and with them the clients in the queues. */
static void retire(void)
{
	atomic_store(&program.server.leaving, true);
	if (program.signals == 0)
		server_threads_drain(program.runners, true);
	program.signals++;
}

bool server_main_reopen_logs(void)
{
	char *why;

	if (logs_apply(&program.server, program.reload.site->config, &why))
		return true;
	log_error("%s; the old logs are kept", why);
	g_free(why);
	return false;
}

static void notify_parent(int what)
{
	struct server_main_news news = {.pid = getpid(), .what = what};

	if (write(program.news_fd, &news, sizeof(news)) != sizeof(news))
		log_warning("cannot notify the parent process: %s", strerror(errno));
}

static void reopen_logs(void)
{
	bool good = server_main_reopen_logs();

	if (program.parent)
		notify_parent(good ? SERVER_MAIN_REOPENED : SERVER_MAIN_KEPT);
	else if (good)
		log_notice("reopened the logs");
}

static void server_reload_over(struct reload *reload, bool good)
{
	if (good) {
		const struct config *config = reload->site->config;

		server_main_announce();
		log_warning_list(config->warnings);
		log_notice("reloaded %s", config->file ? config->file : "the settings");
	}
	server_main_report_ready(good);
}

static void server_on_signal(struct loop_watch *watch)
{
	struct signalfd_siginfo info;

	(void)watch;
	while (read(program.signal_fd, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGUSR1:
			reopen_logs();
			break;
		case SIGHUP:
			if (program.parent) {
				retire();
				break;
			}
			if (program.signals == 0)
				supervisor_reloading(program.supervisor);
			reload_calls_add(&program.reload.calls, &info);
			reload_begin(&program.reload);
			break;
		default:
			program.signals++;
			/* A third signal has no further effect. */
			if (program.signals == 1)
				begin_end();
			else if (program.signals == 2)
				server_threads_stop(program.runners);
		}
	}
}

bool server_main_open_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	/* A log that reaches a file size limit fails to write, as on a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&set);
	for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
		sigaddset(&set, numbers[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	program.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return program.signal_fd >= 0
		       ? true
		       : server_main_complain("cannot watch signals: %s", strerror(errno));
}

/* The supervisor detects a thread that hangs. */
static void watchdog(struct timer *timer)
{
	if (server_threads_alive(program.runners))
		supervisor_alive(program.supervisor);
	loop_timer_start(main_loop(), timer, program.watchdog_ms, watchdog);
}

/* --- the cache's work -------------------------------------------------------------- */

/*
 * The main loop processes the cache's events, except members that attach or leave.  The cache's
 * descriptor stays readable while there is more work, but a watch reports it only once: so the loop
 * processes a part, and the rest after the other events.
 */
static void serve_cache(void)
{
	struct pollfd left = {.fd = NC_cache_fd(program.server.cache), .events = POLLIN};

	(void)NC_cache_dispatch(program.server.cache);
	if (program.more_posted || poll(&left, 1, 0) == 0)
		return;
	program.more_posted = true;
	loop_post(main_loop(), &program.more);
}

static void server_on_more(struct loop_task *task)
{
	(void)task;
	program.more_posted = false;
	serve_cache();
}

static void server_on_cache(struct loop_watch *watch)
{
	(void)watch;
	serve_cache();
}

static bool start(void)
{
	struct loop *loop = main_loop();
	char *why = NULL;
	int error = 0;

	program.signal.ready = server_on_signal;
	program.cache.ready = server_on_cache;
	program.more.run = server_on_more;
	error = loop_watch_start(loop, &program.signal, program.signal_fd);
	if (!error)
		error = loop_watch_start(loop, &program.cache, NC_cache_fd(program.server.cache));
	if (!error && gateway_use(program.server.gateway, program.reload.site, &why) < 0)
		return server_main_complain_of(why);
	/* Nobody is served yet; later, nothing waits for a start. */
	if (!error && !gateway_settle(program.server.gateway, FIRST_STARTS_MS, &why))
		return server_main_complain_of(why);
	for (unsigned i = 0; i < program.server.threads && !error; i++) {
		struct server_thread *runner = &program.runners->all[i];

		for (unsigned k = 0; k < program.endpoints.all->len && !error; k++)
			error = server_thread_listen(
				runner,
				server_thread_seat(runner, program.endpoints.all->pdata[k]));
		if (i > 0 && !error)
			error = server_thread_start(runner);
	}
	if (error)
		return server_main_complain("cannot start: %s", strerror(-error));
	if (program.supervisor)
		program.watchdog_ms =
			(unsigned)(program.supervisor->watchdog_us / 2000 % UINT32_MAX);
	if (program.watchdog_ms)
		loop_timer_start(loop, &program.watchdog, 0, watchdog);
	program.reload.server = &program.server;
	program.reload.runners = program.runners;
	program.reload.endpoints = &program.endpoints;
	program.reload.over = server_reload_over;
	return true;
}

/* --- serving ------------------------------------------------------------------------ */

bool server_main_run(void)
{
	if (!server_main_enter() || !server_main_open_shared() || !start())
		return false;
	if (program.parent) {
		notify_parent(SERVER_MAIN_SERVES);
	} else {
		server_main_announce();
		server_main_report_ready(true);
	}
	log_settled();
	loop_run(main_loop());
	return true;
}
