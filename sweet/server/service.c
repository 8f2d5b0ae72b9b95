/* SPDX-License-Identifier: MIT */
/*
 * service.c - see service.h: puts the parts together, starts the threads, hears
 * the signals, and takes everything down again in the opposite order.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <glib.h>

#include "backend/gateway.h"
#include "backend/gw-cache.h"
#include "base/clock.h"
#include "conn/connection.h"
#include "core/logs.h"
#include "core/site.h"
#include "core/socket-options.h"
#include "files/spool.h"
#include "server/reload.h"
#include "server/service.h"
#include "spawn/confine.h"
#include "spawn/memory-limit.h"
#include "spawn/pidfile.h"
#include "spawn/programs.h"

#define CACHE_MIN ((size_t)1 << 20) /* bytes; the library's */
#define ADDRESSES_NS 1000000000u    /* to wait for those of a server that was killed */
#define ADDRESSES_STEP_US 5000u
#define LIMIT_ENTRIES (1u << 16) /* of 16 bytes, once they are used */

struct program {
	struct reload reload; /* with the present configuration */
	struct site site;
	struct endpoints endpoints;
	struct runners *runners;
	struct supervisor *supervisor; /* NULL: the parent's, whose child this is */
	pid_t parent;		       /* 0: this is nobody's child */
	int told;		       /* hears what the child does; -1: it has no parent */
	char *pid_file;		       /* written; of the first configuration */
	int signal_fd;
	struct loop_watch signal, cache;
	struct loop_task more; /* of the cache's work */
	bool more_posted;
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

static struct loop *main_loop(void)
{
	return program.runners->all[0].server.loop;
}

void service_announce(void)
{
	const struct config *config = program.reload.config;
	const struct host *host = &config->hosts[0];
	const struct arch *arch = program.site.arch;
	bool usual = arch == &archs[ARCH_AMPED];
	char options[SOCKET_OPTIONS_TEXT];

	socket_options_check(&config->sockets);
	socket_options_write(&config->sockets, options);
	for (unsigned i = 0; i < program.endpoints.all->len; i++) {
		const struct endpoint *endpoint = program.endpoints.all->pdata[i];
		bool web = endpoint->bound.address.ss_family != AF_UNIX;

		log_notice("listening on %s%s%s (root %s, %s%s%u %s%s%s%s%s%s%s)",
			   web ? "http://" : "", endpoint->bound.text, web ? "/" : "",
			   host->scopes[host->scope_count - 1].root, usual ? "" : arch->name,
			   usual ? "" : ", ", config->threads,
			   arch->processes ? "process" : "thread",
			   config->threads == 1 ? ""
			   : arch->processes	? "es"
						: "s",
			   *program.site.io ? ", " : "", program.site.io,
			   config->data_path == DATA_PATH_POSIX ? ", data path posix" : "",
			   *options ? ", " : "", options);
	}
}

void service_tell_ready(bool good)
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
	runners_drain(program.runners, false);
}

static void begin_end(void)
{
	unsigned delay = program.reload.config->limits.drain_ms;

	/* Before anybody is told: who hears of it may ask at once. */
	atomic_store(&program.site.leaving, true);
	if (!program.parent)
		log_notice("ending: %s",
			   delay ? "not ready any more, still accepting" : "draining");
	if (program.supervisor)
		supervisor_stopping(program.supervisor, "draining");
	reload_end(&program.reload);
	if (delay)
		loop_timer_start(main_loop(), &program.delay, delay, delay_over);
	else
		runners_drain(program.runners, false);
}

/* Others take over, and the clients that wait in the queues. */
static void retire(void)
{
	atomic_store(&program.site.leaving, true);
	if (program.signals == 0)
		runners_drain(program.runners, true);
	program.signals++;
}

bool service_reopen_logs(void)
{
	char *why;

	if (logs_apply(&program.site, program.reload.config, &why))
		return true;
	log_error("%s; the old logs are kept", why);
	g_free(why);
	return false;
}

static void tell_parent(int what)
{
	struct service_news news = {.pid = getpid(), .what = what};

	if (write(program.told, &news, sizeof(news)) != sizeof(news))
		log_warning("cannot tell the parent process: %s", strerror(errno));
}

static void reopen_logs(void)
{
	bool good = service_reopen_logs();

	if (program.parent)
		tell_parent(good ? SERVICE_REOPENED : SERVICE_KEPT);
	else if (good)
		log_notice("opened the logs anew");
}

static void reload_over(struct reload *reload, bool good)
{
	if (good) {
		service_announce();
		log_notice("reloaded %s",
			   reload->config->file ? reload->config->file : "the settings");
	}
	service_tell_ready(good);
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
		supervisor_alive(program.supervisor);
	loop_timer_start(main_loop(), timer, program.watchdog_ms, watchdog);
}

/* --- what needs root ---------------------------------------------------------------- */

/*
 * A server that was killed may have its addresses for a moment still: the kernel
 * ends its rings later than the process, and processes of mp have to hear of
 * their parent's end.  Nobody can be asked about that; the errors are those of
 * the last try.  What is wrong otherwise will not be better in a second.
 */
static bool plan_sockets(const struct config *config, struct endpoints_change *change,
			 GPtrArray *errors)
{
	uint64_t until = clock_monotonic_ns() + ADDRESSES_NS;
	unsigned before = errors->len;

	while (!endpoints_plan(&program.endpoints, config->listen, config->listen_given, change,
			       errors)) {
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
	const struct config *config = program.reload.config;
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
	return log_told(errors);
}

static bool write_pid_file(void)
{
	const char *file = program.reload.config->pid_file;
	int error = file ? pidfile_write(file) : 0;

	if (error)
		return complain("cannot write the pid-file \"%s\": %s", file, strerror(-error));
	program.pid_file = g_strdup(file);
	return true;
}

/* What the programs of all pools may take together. */
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

/* All of it; tells what was taken, and what will not fit. */
static size_t cache_size(const struct config *config)
{
	uint64_t programs = program_memory(config), size = config->cache_size;
	char cache[MEMORY_TEXT_MAX], there[MEMORY_TEXT_MAX], more[MEMORY_TEXT_MAX];
	struct memory_limit limit;

	memory_limit_find(&limit, "");
	if (!size) {
		size = memory_limit_cache(&limit);
		log_at(size < MEMORY_LIMIT_CACHE_MOST ? LOG_LEVEL_NOTICE : LOG_LEVEL_INFO,
		       "cache of %s: cache-size is not set, and %s allows %s",
		       memory_text(size, cache), limit.what, memory_text(limit.bytes, there));
	}
	if (size + programs > limit.bytes)
		log_warning("a cache of %s and workers with %s may take more memory than there is: "
			    "%s allows %s (see cache-size, worker-memory)",
			    memory_text(size, cache), memory_text(programs, more), limit.what,
			    memory_text(limit.bytes, there));
	return size;
}

/* Of a process: all of it, or its part if there are several. */
static size_t cache_share(const struct config *config)
{
	size_t size = cache_size(config);

	return archs[config->arch].processes ? MAX(size / config->threads, CACHE_MIN) : size;
}

bool service_open(int argc, char **argv, struct config *config, struct supervisor *supervisor)
{
	struct site *site = &program.site;
	struct privileges privileges;
	char *why;

	program.reload = (struct reload){.argc = argc, .argv = argv, .config = config};
	program.supervisor = supervisor;
	site->log_fd = program.signal_fd = program.told = -1;
	site->arch = &archs[config->arch];
	site->threads = config->threads;
	if (site->arch->processes)
		site->threads = 1;
	endpoints_init(&program.endpoints, site->threads, site->arch->single);
	/* What is wrong with it is told before anything is there. */
	if (!privileges_find(&privileges, config->user, config->group, &why))
		return complain_of(why);
	privileges_clear(&privileges);
	if (!logs_apply(site, config, &why))
		return complain_of(why);
	site->cache_size = cache_share(config);
	return open_sockets() && write_pid_file();
}

bool service_renew(struct config *next, GPtrArray *errors)
{
	struct endpoints_change change;
	char *why;

	if (&archs[next->arch] != program.site.arch) {
		g_ptr_array_add(errors, g_strdup("arch is read at the start only: restart to "
						 "use another"));
		return false;
	}
	if (!endpoints_plan(&program.endpoints, next->listen, next->listen_given, &change, errors))
		return false;
	if (!logs_apply(&program.site, next, &why)) {
		endpoints_abandon(&change);
		g_ptr_array_add(errors, why);
		return false;
	}
	endpoints_commit(&program.endpoints, &change);
	config_unref(program.reload.config);
	program.reload.config = config_ref(next);
	program.site.cache_size = cache_share(next);
	return true;
}

void service_be_child(pid_t parent, int told)
{
	program.parent = parent;
	program.told = told;
	program.supervisor = NULL;
	g_free(program.pid_file);
	program.pid_file = NULL;
	endpoints_disown(&program.endpoints);
}

/*
 * The end of the parent is its children's, as at a reload: the addresses are for
 * its successor at once.  Asked for again after a change of user.
 */
static bool follow_parent(void)
{
	if (!program.parent)
		return true;
	(void)prctl(PR_SET_PDEATHSIG, SIGHUP);
	return getppid() == program.parent;
}

/* Without a folder of the operator's the server goes on without one. */
static bool open_spools(const struct config *config, const struct privileges *privileges)
{
	struct spools_options options = {.folder = config->spool_directory,
					 .most = config->spool_size,
					 .memory = config->spool_memory,
					 .user = privileges->user ? privileges->uid : (uid_t)-1,
					 .group = privileges->group ? privileges->gid : (gid_t)-1};
	char *why;

	if (program.site.arch->processes)
		options.most /= config->threads;
	program.site.spools = spools_open(&options, &why);
	if (program.site.spools)
		return true;
	if (config->spool_directory) {
		complain("spool-directory %s", why);
		g_free(why);
		return false;
	}
	log_notice("bodies that wait have no place on a disk: %s", why);
	g_free(why);
	return true;
}

/* What needs root; then that is given up. */
static bool enter(void)
{
	const struct config *config = program.reload.config;
	const struct spools *spools;
	struct privileges privileges;
	bool good;
	char *why;

	if (!privileges_find(&privileges, config->user, config->group, &why))
		return complain_of(why);
	/* What many of them would say in one voice. */
	if (program.parent && config->log_level > LOG_LEVEL_WARNING)
		log_set_level(LOG_LEVEL_WARNING);
	good = open_signals();
	if (good &&
	    !programs_open(&program.site.programs, config, program.site.threads, &privileges, &why))
		good = complain_of(why);
	good = good && open_spools(config, &privileges);
	spools = program.site.spools;
	if (good && !confine(config, &privileges, &program.endpoints,
			     spools ? spools_folder(spools) : NULL, &why))
		good = complain_of(why);
	privileges_clear(&privileges);
	log_set_level((enum log_level)config->log_level);
	return good && follow_parent();
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
		server->loop = loop_open((enum loop_kind)config->io,
					 program.site.arch->single ? LOOP_FEW : LOOP_MANY, why,
					 sizeof(why));
		if (!server->loop)
			return complain("cannot start an event loop: %s", why);
		server->turn = content_turn_open(server->loop);
		loop_send_by(server->loop, program.site.path);
		if (program.site.programs &&
		    programs_attach(program.site.programs, i, server->loop) < 0)
			return complain("cannot watch the process that starts programs");
		server->generation = generation_open(config_ref(program.reload.config));
		if (!logs_join(&program.site, server, &line))
			return complain_of(line);
		gw_hook_add(&runner->workers, server);
		connection_init(server);
		program.site.servers[i] = server;
	}
	snprintf(program.site.io, sizeof(program.site.io), "%s", why);
	return true;
}

/* Some fast clients over long links have as much on its way. */
#define SOCKET_MEMORY_LEAST ((size_t)64 << 20)

static bool open_site(void)
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
		return complain("cannot open the cache of %zu bytes: %s", site->cache_size,
				strerror(errno));
	if (!send_method_use(site->cache, NULL, config, &why))
		return complain_of(why);
	if (config->cache_socket && NC_cache_serve(site->cache, config->cache_socket) < 0)
		return complain("cannot serve the cache at \"%s\": %s%s", config->cache_socket,
				strerror(errno),
				errno == EADDRINUSE ? " (somebody serves it, or it is no socket)"
						    : "");
	site->max_unit = site->cache_size / 4;
	site->bodies.most = site->max_unit;
	site->answers.most = site->cache_size;
	site->ahead.most = site->max_unit;
	site->windows.most = site->max_unit;
	site->held_most = site->cache_size / 2;
	site->unsent_most = config->socket_memory ? config->socket_memory
						  : MAX(site->cache_size, SOCKET_MEMORY_LEAST);
	site->helpers = helper_open(site->arch->helpers);
	if (!site->helpers)
		return complain("cannot start threads: %s", strerror(errno));
	spools_start(site->spools, site->helpers);
	site->limits = limits_open(LIMIT_ENTRIES);
	if (site->limits)
		site->authenticator = authenticator_open(site->limits);
	if (!site->authenticator)
		return complain("cannot count clients: %s", strerror(errno));
	if (!gw_cache_open(site, site->cache_size))
		return complain("cannot keep answers: out of memory");
	errors = g_ptr_array_new_with_free_func(g_free);
	(void)site_open(program.reload.config, NULL,
			&(struct site_options){.helpers = site->helpers,
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

/*
 * The cache's own events are the main loop's, but for members that come and go.  Its
 * descriptor stays readable while there is more to do, which a watch tells but
 * once: so it is looked at, and the rest done when others had their turn.
 */
static void serve_cache(void)
{
	struct pollfd left = {.fd = NC_cache_fd(program.site.cache), .events = POLLIN};

	(void)NC_cache_dispatch(program.site.cache);
	if (program.more_posted || poll(&left, 1, 0) == 0)
		return;
	program.more_posted = true;
	loop_post(main_loop(), &program.more);
}

static void on_more(struct loop_task *task)
{
	(void)task;
	program.more_posted = false;
	serve_cache();
}

static void on_cache(struct loop_watch *watch)
{
	(void)watch;
	serve_cache();
}

static bool start(void)
{
	struct loop *loop = main_loop();
	char *why = NULL;
	int error = 0;

	program.signal.ready = on_signal;
	program.cache.ready = on_cache;
	program.more.run = on_more;
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
	if (program.supervisor)
		program.watchdog_ms =
			(unsigned)(program.supervisor->watchdog_us / 2000 % UINT32_MAX);
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
	spools_stop(site->spools);
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

		content_turn_close(server->turn);
		loop_close(server->loop);
		if (server->generation)
			generation_release(server->generation);
	}
}

void service_close(void)
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
	spools_close(site->spools);
	if (site->cache && NC_cache_close(site->cache) < 0)
		log_warning("closing the cache: %s", strerror(errno));
	endpoints_clear(&program.endpoints);
	if (program.pid_file)
		pidfile_remove(program.pid_file);
	g_free(program.pid_file);
	limits_close(site->limits);
	if (program.signal_fd >= 0)
		close(program.signal_fd);
	if (program.told >= 0)
		close(program.told);
	logs_close(site);
	log_close();
	runners_free(program.runners);
}

/* --- serving ------------------------------------------------------------------------ */

bool service_run(void)
{
	if (!enter() || !open_site() || !start())
		return false;
	if (program.parent) {
		tell_parent(SERVICE_SERVES);
	} else {
		service_announce();
		service_tell_ready(true);
	}
	log_settled();
	loop_run(main_loop());
	return true;
}
