/* SPDX-License-Identifier: MIT */
/*
 * ctl-top.c - the command top: prints the cache's activity, one block per interval;
 * see ctl.h.  On a terminal each block replaces the previous one.
 */
#include <base/json.h>
#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <math.h>
#include <nabc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "ctl-counter.h"
#include "ctl-show.h"
#include "ctl.h"

#define INTERVAL_LEAST 0.01
#define INTERVAL_MOST 86400.0

/* Terminal codes: move to the top left, clear the screen. */
#define HOME "\033[H\033[J"

struct top {
	struct ctl *ctl;
	double interval; /* seconds */
	uint64_t blocks; /* how many to print; 0: no limit */
	bool terminal;	 /* input and output are terminals: redraw, and read keys */
	struct termios before;
	int signals; /* descriptor */
	struct NC_cache_stat last;
	double last_at; /* seconds */
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* --- one block ------------------------------------------------------------------ */

static void print_counters(const struct top *top, const struct NC_cache_stat *stat, double seconds)
{
	printf("%-20s %10s %15s\n", "", "/s", "total");
	for (size_t i = 0; i < ctl_counter_count; i++) {
		const struct ctl_counter *counter = &ctl_counters[i];
		uint64_t value = ctl_counter_value(counter, stat, 0);

		/* Counters that are 0 are omitted. */
		if (counter->gauge || counter->count > 1 || (!value && !counter->main))
			continue;
		printf("%-20s %10.1f %15" PRIu64 "  %s\n", counter->name,
		       ctl_rate(ctl_counter_value(counter, &top->last, 0), value, seconds), value,
		       counter->words);
	}
}

static void print_methods(const struct top *top, const struct NC_cache_stat *stat, double seconds)
{
	const size_t at = offsetof(struct NC_cache_stat, by_copy);

	printf("\n%-20s %10s %15s %12s\n", "sends", "/s", "total", "MB/s");
	for (unsigned i = 0; i < CTL_METHODS; i++) {
		struct NC_method_count before = ctl_by_method(&top->last, at, i);
		struct NC_method_count now = ctl_by_method(stat, at, i);

		printf("%-20s %10.1f %15" PRIu64 " %12.1f\n", ctl_methods[i],
		       ctl_rate(before.sends, now.sends, seconds), now.sends,
		       ctl_rate(before.bytes, now.bytes, seconds) / 1e6);
	}
}

static void print_block(const struct top *top, const struct NC_cache_stat *stat, double seconds)
{
	if (top->terminal)
		fputs(HOME, stdout);
	printf("%" PRIu64 " units, %" PRIu64 " of %" PRIu64 " bytes used (%.1f%%), %" PRIu64
	       " members\n\n",
	       stat->units, stat->used, stat->size,
	       stat->size ? 100.0 * (double)stat->used / (double)stat->size : 0.0, stat->members);
	print_counters(top, stat, seconds);
	print_methods(top, stat, seconds);
	fputs(top->terminal ? "\nq quits\n" : "\n", stdout);
}

static void print_json(const struct top *top, const struct NC_cache_stat *stat, double seconds)
{
	struct json json = {.to = stdout, .layout = JSON_FLAT};

	json_open(&json, NULL, '{');
	json_real(&json, "seconds", seconds, 1);
	json_open(&json, "counters", '{');
	ctl_counters_json(&json, stat);
	json_close(&json, '}');
	json_open(&json, "rates", '{');
	for (size_t i = 0; i < ctl_counter_count; i++) {
		const struct ctl_counter *counter = &ctl_counters[i];

		if (counter->gauge)
			continue;
		if (counter->count > 1)
			json_open(&json, counter->name, '{');
		for (unsigned at = 0; at < counter->count; at++)
			json_real(&json, counter->count > 1 ? ctl_methods[at] : counter->name,
				  ctl_rate(ctl_counter_value(counter, &top->last, at),
					   ctl_counter_value(counter, stat, at), seconds),
				  1);
		if (counter->count > 1)
			json_close(&json, '}');
	}
	json_close(&json, '}');
	json_close(&json, '}');
}

/* --- the view ----------------------------------------------------------------------- */

/* Keys are read one by one and not echoed; they can still raise signals. */
static void take_terminal(struct top *top)
{
	struct termios keys;

	top->terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !top->ctl->json &&
			tcgetattr(STDIN_FILENO, &top->before) == 0;
	if (!top->terminal)
		return;
	keys = top->before;
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN] = 0;
	keys.c_cc[VTIME] = 0;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &keys);
}

static void give_terminal_back(const struct top *top)
{
	if (top->terminal)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &top->before);
}

/* Whether q was pressed, or the terminal is gone. */
static bool wants_end(void)
{
	char keys[16];
	ssize_t got = read(STDIN_FILENO, keys, sizeof(keys));

	for (ssize_t i = 0; i < got; i++)
		if (keys[i] == 'q' || keys[i] == 'Q')
			return true;
	return got <= 0;
}

/* Waits until that moment; false: stop. */
static bool wait_until(const struct top *top, double moment)
{
	struct pollfd waits[2] = {{.fd = top->signals, .events = POLLIN},
				  {.fd = STDIN_FILENO, .events = POLLIN}};

	for (;;) {
		double left = moment - now();

		if (left <= 0)
			return true;
		if (poll(waits, top->terminal ? 2 : 1, (int)ceil(left * 1000)) < 0)
			continue;
		if (waits[0].revents || (top->terminal && waits[1].revents && wants_end()))
			return false;
	}
}

static int look(struct top *top, struct NC_cache_stat *stat, double *at)
{
	if (NC_cache_stat(top->ctl->cache, stat, sizeof(*stat)) < 0)
		return ctl_cache_failed(top->ctl, "statistics", errno);
	*at = now();
	return 0;
}

static int show(struct top *top)
{
	struct NC_cache_stat stat;
	int status = look(top, &top->last, &top->last_at);
	double next = top->last_at, at = next;

	for (uint64_t shown = 0; !status && (!top->blocks || shown < top->blocks); shown++) {
		next += top->interval;
		if (!wait_until(top, next))
			break;
		status = look(top, &stat, &at);
		if (status)
			break;
		if (top->ctl->json)
			print_json(top, &stat, at - top->last_at);
		else
			print_block(top, &stat, at - top->last_at);
		status = ctl_flush();
		top->last = stat;
		top->last_at = at;
		/* After a pause, skip the missed intervals. */
		if (next < at - top->interval)
			next = at;
	}
	return status;
}

static int run(struct top *top)
{
	sigset_t set;
	int status = ctl_attach(top->ctl, CTL_OPERATOR);

	if (status)
		return status;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	top->signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (top->signals < 0)
		return ctl_complain("watching signals: %s", g_strerror(errno));
	take_terminal(top);
	status = show(top);
	give_terminal_back(top);
	close(top->signals);
	return status;
}

static bool read_interval(const char *word, double *interval)
{
	char *end;

	*interval = g_ascii_strtod(word, &end);
	return *word && !*end && *interval >= INTERVAL_LEAST && *interval <= INTERVAL_MOST;
}

int ctl_top(struct ctl *ctl, int argc, char **argv)
{
	struct top top = {.ctl = ctl, .interval = 1};
	char *interval = NULL, *count = NULL;
	const GOptionEntry entries[] = {
		{"interval", 0, 0, G_OPTION_ARG_STRING, &interval, "Time between two blocks (1)",
		 "SECONDS"},
		{"count", 0, 0, G_OPTION_ARG_STRING, &count, "Exit after N blocks", "N"},
		{0},
	};
	int status = ctl_options(ctl, entries, &argc, &argv);

	if (!status && argc > 1)
		status = ctl_misused(ctl, "\"%s\": top takes no arguments", argv[1]);
	if (!status && interval && !read_interval(interval, &top.interval))
		status = ctl_misused(ctl, "--interval \"%s\": must be seconds, %g to %g", interval,
				     INTERVAL_LEAST, INTERVAL_MOST);
	if (!status && count && (!ctl_read_size(count, &top.blocks) || !top.blocks))
		status = ctl_misused(ctl, "--count \"%s\": must be a number from 1", count);
	if (!status)
		status = run(&top);
	g_free(interval);
	g_free(count);
	return status;
}
