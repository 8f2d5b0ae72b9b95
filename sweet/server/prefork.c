/* SPDX-License-Identifier: MIT */
/*
 * prefork.c - see prefork.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <nabc-worker.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "config/config-read.h"
#include "config/configuration.h"
#include "core/site.h"
#include "log/log.h"
#include "process/reload-call.h"
#include "process/supervisor.h"
#include "server/check-config.h"
#include "server/prefork.h"
#include "server/reload.h"
#include "server/server-main.h"

/* After an earlier death the next process is not started at once. */
#define YOUNG_NS 1000000000u

struct child {
	pid_t pid;
	unsigned set; /* the set that it belongs to; one for each configuration */
	uint64_t born_ns;
	bool serving;
	bool reopening; /* the logs: requested, and not yet confirmed */
};

struct prefork {
	int argc;
	char **argv;
	struct supervisor *supervisor;
	struct reload_calls calls;
	unsigned wanted, set;
	GArray *children; /* struct child, of all sets */
	uint64_t not_before_ns;
	int signal_fd;
	int news[2];  /* a pipe: struct server_main_news of children */
	bool started; /* the first set is ready */
	bool settled; /* every older set was told to retire */
	bool ending, failed;
	/* Reopening of the logs: some children have not confirmed; */
	bool reopening, again; /* and it was requested again meanwhile */
	bool reopened;	       /* all children have confirmed */
};

static struct child *child_at(const struct prefork *all, unsigned i)
{
	return &g_array_index(all->children, struct child, i);
}

/* --- children ------------------------------------------------------------------- */

/* Returns true in the child. */
static bool spawn(struct prefork *all)
{
	struct child child = {.set = all->set, .born_ns = clock_monotonic_ns()};
	pid_t parent = getpid();

	child.pid = fork();
	if (child.pid < 0) {
		log_error("cannot start a process: %s", strerror(errno));
		all->not_before_ns = child.born_ns + YOUNG_NS;
		return false;
	}
	if (child.pid > 0) {
		g_array_append_val(all->children, child);
		return false;
	}
	close(all->signal_fd);
	close(all->news[0]);
	server_main_be_child(parent, all->news[1]);
	return true;
}

static unsigned count(const struct prefork *all, bool serving)
{
	unsigned found = 0;

	for (unsigned i = 0; i < all->children->len; i++)
		found += child_at(all, i)->set == all->set &&
			 (child_at(all, i)->serving || !serving);
	return found;
}

/*
 * Starts missing processes.  At first it starts one alone, so that an error is logged only once.
 * Returns true in a child.
 */
static bool spawn_missing(struct prefork *all)
{
	unsigned most = all->started ? all->wanted : count(all, true) ? all->wanted : 1;

	while (!all->ending && clock_monotonic_ns() >= all->not_before_ns &&
	       count(all, false) < most)
		if (spawn(all))
			return true;
	return false;
}

static void signal_children(const struct prefork *all, int number, bool present_set)
{
	for (unsigned i = 0; i < all->children->len; i++)
		if (present_set || child_at(all, i)->set != all->set)
			(void)kill(child_at(all, i)->pid, number);
}

static void bury(struct prefork *all, unsigned i, int status)
{
	struct child child = *child_at(all, i);
	uint64_t now = clock_monotonic_ns();

	g_array_remove_index_fast(all->children, i);
	if (all->ending || child.set != all->set)
		return;
	/* It is retried and the old processes continue, but the reload has failed. */
	if (all->started && !all->settled)
		reload_calls_answer(&all->calls, false,
				    "a process of the new configuration ended at once: see the "
				    "log; the old processes continue");
	if (!all->started) {
		all->ending = all->failed = true;
		signal_children(all, SIGTERM, true);
		return;
	}
	if (WIFSIGNALED(status))
		log_error("process %d was ended by signal %d (%s); starting another",
			  (int)child.pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		log_error("process %d ended with status %d; starting another", (int)child.pid,
			  WEXITSTATUS(status));
	if (now - child.born_ns < YOUNG_NS)
		all->not_before_ns = now + YOUNG_NS;
}

static void reap(struct prefork *all)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < all->children->len; i++)
			if (child_at(all, i)->pid == pid) {
				bury(all, i, status);
				break;
			}
}

/* --- news ------------------------------------------------------------------------ */

static void all_serve(struct prefork *all)
{
	if (!all->settled)
		signal_children(all, SIGHUP, false);
	all->settled = true;
	if (all->started)
		log_notice("reloaded: %u new processes serve", all->wanted);
	server_main_announce();
	if (!all->started)
		log_settled();
	all->started = true;
	server_main_report_ready(true);
	reload_calls_answer(&all->calls, true, NULL);
}

static void reopen_logs(struct prefork *all)
{
	if (all->reopening) {
		all->again = true;
		return;
	}
	all->again = false;
	all->reopening = true;
	all->reopened = server_main_reopen_logs();
	for (unsigned i = 0; i < all->children->len; i++)
		child_at(all, i)->reopening = true;
	signal_children(all, SIGUSR1, true);
}

/* A reader of this message may read the new logs at once: no process writes to the old ones. */
static void check_logs(struct prefork *all)
{
	for (unsigned i = 0; i < all->children->len; i++)
		if (child_at(all, i)->reopening)
			return;
	if (!all->reopening)
		return;
	all->reopening = false;
	if (all->reopened)
		log_notice("reopened the logs");
	if (all->again)
		reopen_logs(all);
}

static void hear_child(struct prefork *all, struct child *child, int what)
{
	if (what == SERVER_MAIN_SERVES) {
		child->serving = true;
		return;
	}
	child->reopening = false;
	all->reopened = all->reopened && what == SERVER_MAIN_REOPENED;
}

static void hear_children(struct prefork *all)
{
	struct server_main_news news;

	while (read(all->news[0], &news, sizeof(news)) == sizeof(news))
		for (unsigned i = 0; i < all->children->len; i++)
			if (child_at(all, i)->pid == news.pid)
				hear_child(all, child_at(all, i), news.what);
	if (!all->ending && (!all->started || !all->settled) && count(all, true) == all->wanted)
		all_serve(all);
}

static void reload(struct prefork *all)
{
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct config_request request = {0};
	const struct config *next;
	char *said;
	bool taken;

	supervisor_reloading(all->supervisor);
	reload_calls_begin(&all->calls);
	next = config_read(all->argc, all->argv, &request, errors);
	if (next) {
		site_check(next, errors);
		check_config(next, errors);
	}
	taken = next && errors->len == 0 && server_main_renew(next, errors);
	said = taken ? NULL : reload_lines(errors);
	(void)log_error_list(errors);
	if (taken) {
		log_warning_list(next->warnings);
		all->wanted = next->threads;
		all->set++;
		all->settled = false;
		all->not_before_ns = 0;
	} else {
		log_error("the old configuration stays");
		server_main_report_ready(false);
		reload_calls_answer(&all->calls, false, said);
	}
	g_free(said);
	config_release(next);
}

/* Refuses the callers of reloads. */
static void refuse_calls(struct prefork *all, const char *why)
{
	reload_calls_begin(&all->calls);
	reload_calls_answer(&all->calls, false, why);
}

static void end(struct prefork *all)
{
	if (!all->ending) {
		log_notice("ending: draining");
		supervisor_stopping(all->supervisor, "draining");
	}
	all->ending = true;
	signal_children(all, SIGTERM, true);
	refuse_calls(all, RELOAD_ENDING);
}

static void hear_signals(struct prefork *all)
{
	struct signalfd_siginfo info;

	while (read(all->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGCHLD:
			reap(all);
			break;
		case SIGUSR1:
			reopen_logs(all);
			break;
		case SIGHUP:
			reload_calls_add(&all->calls, &info);
			if (!all->ending && all->started)
				reload(all);
			else
				refuse_calls(all, all->ending ? RELOAD_ENDING
							      : "the server has not started yet");
			break;
		default:
			end(all);
		}
	}
}

/* Returns the ms until there is work without an event; -1: none. */
static int poll_timeout(const struct prefork *all)
{
	uint64_t now = clock_monotonic_ns();
	int ms = -1;

	if (!all->ending && all->not_before_ns > now)
		ms = (int)((all->not_before_ns - now) / 1000000u) + 1;
	if (all->supervisor->watchdog_us) {
		int beat = (int)(all->supervisor->watchdog_us / 2000u);

		ms = ms < 0 || beat < ms ? beat : ms;
	}
	return ms;
}

static bool open_news(struct prefork *all)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
		sigaddset(&set, numbers[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	all->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (all->signal_fd >= 0 && pipe2(all->news, O_CLOEXEC | O_NONBLOCK) == 0)
		return true;
	log_error("cannot watch processes: %s", strerror(errno));
	return false;
}

/* In a child: signals about the parent's children are not for it. */
static bool serve(struct prefork *all)
{
	sigset_t set;

	g_array_free(all->children, TRUE);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return server_main_run();
}

bool prefork_run(int argc, char **argv, const struct config *config, struct supervisor *supervisor)
{
	struct prefork all = {.argc = argc,
			      .argv = argv,
			      .supervisor = supervisor,
			      .wanted = config->threads,
			      .settled = true,
			      .signal_fd = -1,
			      .news = {-1, -1}};
	bool good = open_news(&all);

	all.children = g_array_new(FALSE, FALSE, sizeof(struct child));
	while (good && (!all.ending || all.children->len)) {
		struct pollfd polls[] = {{.fd = all.signal_fd, .events = POLLIN},
					 {.fd = all.news[0], .events = POLLIN}};

		if (spawn_missing(&all))
			return serve(&all);
		(void)poll(polls, G_N_ELEMENTS(polls), poll_timeout(&all));
		if (all.supervisor->watchdog_us)
			supervisor_alive(all.supervisor);
		/* Before the signals: a process may have reported before it died. */
		hear_children(&all);
		hear_signals(&all);
		check_logs(&all);
	}
	g_array_free(all.children, TRUE);
	for (unsigned i = 0; i < 2; i++)
		if (all.news[i] >= 0)
			close(all.news[i]);
	if (all.signal_fd >= 0)
		close(all.signal_fd);
	return good && !all.failed;
}
