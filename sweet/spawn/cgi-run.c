/* SPDX-License-Identifier: MIT */
/*
 * cgi-run.c - see cgi-run.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#include "base/body-queue.h"
#include "base/byte-rate.h"
#include "base/container.h"
#include "base/escape.h"
#include "base/timer.h"
#include "event/loop.h"
#include "program/meta.h"
#include "log/log.h"
#include "spawn/cgi-run.h"
#include "spawn/spawner-wire.h"

#define GRACE_MS 2000u	  /* between SIGTERM and SIGKILL */
#define CLOSING_MS 500u	  /* a program that runs longer with its output closed does so on purpose */
#define ERRORS_MAX 16384u /* bytes of standard error that are logged */
#define EXTRA_MAX 160	  /* bytes of the server's own variables, without the path of the cache */
#define READS_MAX 16u	  /* reads of standard error at a time */
#define ERROR_RATE ((size_t)1 << 20) /* bytes of it in a second */

const char *cgi_run_name(const struct cgi_run *run, char *out, size_t size)
{
	const struct start *start = &run->start;
	size_t length = start->script_length ? start->script_length : strcspn(start->script, "/");
	char script[CGI_LINE_MAX * ESCAPE_MOST + 1], pid[32] = "";

	if (start->pid)
		snprintf(pid, sizeof(pid), " (pid %d)", (int)start->pid);
	if (run->command) {
		snprintf(out, size, "script %s%s", run->command, pid);
		return out;
	}
	*escape_message(script, (struct slice){start->script, MIN(length, CGI_LINE_MAX)}) = '\0';
	snprintf(out, size, "script %s/%s%s", start->mount, script, pid);
	return out;
}

static void close_watched(struct cgi_run *run, int *fd)
{
	if (*fd >= 0)
		loop_close_fd(run->loop, *fd);
	*fd = -1;
}

/* --- standard error ----------------------------------------------------------------------- */

static void log_line(struct cgi_run *run)
{
	char line[CGI_LINE_MAX * ESCAPE_MOST + 1], name[512];

	if (run->line_length == 0)
		return;
	*escape_message(line, (struct slice){run->line, run->line_length}) = '\0';
	log_warning("%s: says: %s", cgi_run_name(run, name, sizeof(name)), line);
	run->line_length = 0;
}

static void take_errors(struct cgi_run *run, const char *at, size_t length)
{
	char name[512];

	for (; length && run->errors < ERRORS_MAX; at++, length--) {
		if (*at != '\n')
			run->line[run->line_length++] = *at;
		if (*at == '\n' || run->line_length == sizeof(run->line))
			log_line(run);
		if (++run->errors < ERRORS_MAX)
			continue;
		log_line(run);
		log_warning("%s: says more, which is left out",
			    cgi_run_name(run, name, sizeof(name)));
	}
}

static void run_read_more_errors(struct timer *timer);

/*
 * Reads at most a pipe's content; a program that writes without end must not stop the thread, nor
 * keep it busy.
 */
static void read_errors(struct cgi_run *run)
{
	char bytes[4096];
	bool enough = false;

	for (unsigned i = 0; run->err_fd >= 0; i++) {
		if (i == READS_MAX || enough) {
			loop_timer_start(run->loop, &run->more, enough ? BYTE_RATE_MS : 1,
					 run_read_more_errors);
			return;
		}
		ssize_t got = read(run->err_fd, bytes, sizeof(bytes));

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got > 0) {
			take_errors(run, bytes, (size_t)got);
			enough = byte_rate_take(&run->error_rate, (size_t)got, ERROR_RATE,
						loop_now_ms(run->loop));
		} else {
			log_line(run);
			close_watched(run, &run->err_fd);
		}
	}
}

static void run_read_more_errors(struct timer *timer)
{
	read_errors(container_of(timer, struct cgi_run, more));
}

static void run_errors_readable(struct loop_watch *watch)
{
	struct cgi_run *run = container_of(watch, struct cgi_run, err);

	/* Else the timer reads on. */
	if (!timer_is_running(&run->more))
		read_errors(run);
}

/* --- input ---------------------------------------------------------------------------------- */

static void run_drained(struct cgi_input *input)
{
	struct cgi_run *run = container_of(input, struct cgi_run, input);

	if (run->user)
		run->owner->drained(run);
}

static void run_stopped_reading(struct cgi_input *input)
{
	struct cgi_run *run = container_of(input, struct cgi_run, input);

	if (run->user)
		run->owner->stopped_reading(run);
}

bool cgi_run_body(struct cgi_run *run, size_t unit, size_t length, bool more)
{
	return cgi_input_add(&run->input, unit, length, more) == 0;
}

/*
 * --- the end
 * -----------------------------------------------------------------------------------
 */

static void run_kill(struct timer *timer)
{
	struct cgi_run *run = container_of(timer, struct cgi_run, timer);
	char name[512];

	log_warning("%s: does not end after SIGTERM: killing it",
		    cgi_run_name(run, name, sizeof(name)));
	spawner_signal(&run->start, SIGKILL);
}

void cgi_run_end(struct cgi_run *run)
{
	if (run->gone || run->ending)
		return;
	run->ending = true;
	spawner_signal(&run->start, SIGTERM);
	loop_timer_start(run->loop, &run->timer, GRACE_MS, run_kill);
}

static void run_is_silent(struct timer *timer)
{
	struct cgi_run *run = container_of(timer, struct cgi_run, timer);

	run->owner->silent(run);
}

void cgi_run_expect(struct cgi_run *run, unsigned ms)
{
	if (run->ending)
		return;
	timer_stop(&run->timer);
	if (ms)
		loop_timer_start(run->loop, &run->timer, ms, run_is_silent);
}

/* Returns true if the spawner will report its end; without a pidfd this is unknown. */
static bool has_ended(const struct cgi_run *run)
{
	struct pollfd state = {.fd = run->pidfd, .events = POLLIN};

	return poll(&state, 1, 0) > 0;
}

static void settled(struct cgi_run *run)
{
	run->awaited = false;
	run->reading = true;
	run->owner->settled(run);
	run->reading = false;
	cgi_run_settle(run);
}

static void run_check_ended(struct timer *timer)
{
	struct cgi_run *run = container_of(timer, struct cgi_run, timer);

	if (has_ended(run)) {
		loop_timer_start(run->loop, timer, CLOSING_MS, run_check_ended);
		return;
	}
	settled(run);
}

void cgi_run_await_end(struct cgi_run *run)
{
	run->awaited = true;
	/* Otherwise it is being ended anyway. */
	if (run->ending)
		return;
	timer_stop(&run->timer);
	loop_timer_start(run->loop, &run->timer, CLOSING_MS, run_check_ended);
}

static void run_too_long(struct timer *timer)
{
	struct cgi_run *run = container_of(timer, struct cgi_run, timer);
	char name[512];

	log_warning("%s: continues after its response: ending it",
		    cgi_run_name(run, name, sizeof(name)));
	cgi_run_end(run);
}

void cgi_run_release(struct cgi_run *run, unsigned ms)
{
	run->user = NULL;
	run->awaited = false;
	close_watched(run, &run->out_fd);
	/* The program may read what was queued already; nothing more will follow. */
	if (run->input.queue.more)
		cgi_input_close(&run->input);
	if (!run->ending)
		timer_stop(&run->timer);
	if (!run->gone && !run->ending)
		loop_timer_start(run->loop, &run->timer, ms, run_too_long);
	cgi_run_settle(run);
}

void cgi_run_free(struct cgi_run *run)
{
	if (run->home)
		run->owner->freed(run);
	timer_stop(&run->timer);
	timer_stop(&run->more);
	cgi_input_close(&run->input);
	close_watched(run, &run->out_fd);
	close_watched(run, &run->err_fd);
	if (run->pidfd >= 0)
		close(run->pidfd);
	free(run);
}

/* Whether a process that has left the group may still write a part of the response. */
static bool is_written(const struct cgi_run *run)
{
	struct pollfd state = {.fd = run->out_fd};

	return run->user && run->out_fd >= 0 && poll(&state, 1, 0) == 0;
}

static void check_over(struct cgi_run *run)
{
	if (!run->gone || run->counted || is_written(run))
		return;
	run->counted = true;
	run->owner->over(run);
}

void cgi_run_settle(struct cgi_run *run)
{
	check_over(run);
	if (!run->gone || run->user || run->reading)
		return;
	/* Read its last output before the pipe's other writers, if any, write more. */
	read_errors(run);
	log_line(run);
	cgi_run_free(run);
}

static void run_gone(struct start *start)
{
	struct cgi_run *run = container_of(start, struct cgi_run, start);

	run->over = run->gone = true;
	/* The timer of cgi_run_expect() continues: the output may still be open. */
	if (run->ending || !run->user)
		timer_stop(&run->timer);
	run->ending = false;
	cgi_run_settle(run);
}

static void run_ended(struct start *start, int status)
{
	struct cgi_run *run = container_of(start, struct cgi_run, start);
	char name[512];

	run->status = status;
	if (status >= 0 && WIFSIGNALED(status) && !run->ending)
		log_warning("%s: was ended by signal %d", cgi_run_name(run, name, sizeof(name)),
			    WTERMSIG(status));
	else if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status))
		log_info("%s: ended with status %d", cgi_run_name(run, name, sizeof(name)),
			 WEXITSTATUS(status));
	run->over = true;
	if (!run->awaited)
		return;
	/* Otherwise it measures the time until SIGKILL. */
	if (!run->ending)
		timer_stop(&run->timer);
	settled(run);
}

/* --- the start --------------------------------------------------------------------------- */

static void run_output_readable(struct loop_watch *watch)
{
	struct cgi_run *run = container_of(watch, struct cgi_run, out);

	/* Output may arrive before the report of its start. */
	if (!run->started)
		return;
	check_over(run);
	run->owner->readable(run);
}

static void close_theirs(struct start *start)
{
	for (unsigned i = 0; i < SPAWNER_FDS; i++) {
		if (start->fds[i] >= 0)
			close(start->fds[i]);
		start->fds[i] = -1;
	}
}

static int watch(struct cgi_run *run)
{
	int error;

	run->out.ready = run_output_readable;
	run->err.ready = run_errors_readable;
	error = loop_watch_start(run->loop, &run->out, run->out_fd);
	if (!error)
		error = loop_watch_start(run->loop, &run->err, run->err_fd);
	return error;
}

static void run_started(struct start *start, int error, int pidfd)
{
	struct cgi_run *run = container_of(start, struct cgi_run, start);

	close_theirs(start);
	run->pidfd = pidfd;
	if (!error) {
		run->started = true;
		if (run->input.fd >= 0)
			cgi_input_start(&run->input);
		/* cgi_run_end() was called before it had started. */
		if (run->ending)
			spawner_signal(start, SIGTERM);
		run->owner->readable(run);
		return;
	}
	run->reading = true;
	if (run->user)
		run->owner->refused(run, error);
	run->reading = false;
	run_gone(start);
}

static int open_pipes(struct cgi_run *run)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	run->out_fd = ends[0];
	run->start.fds[STDOUT_FILENO] = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	run->err_fd = ends[0];
	run->start.fds[STDERR_FILENO] = ends[1];
	/* Only the server's ends: programs do not expect EAGAIN. */
	(void)fcntl(run->out_fd, F_SETFL, O_NONBLOCK);
	(void)fcntl(run->err_fd, F_SETFL, O_NONBLOCK);
	return watch(run);
}

static char *put(char *to, struct slice text)
{
	memcpy(to, text.at, text.length);
	to[text.length] = '\0';
	return to + text.length + 1;
}

/* Writes what the spawner needs: the paths, and the variables with the server's own. */
static void write_text(struct cgi_run *run, struct slice block, const char *cache_socket)
{
	struct slice mount = meta_find(block, "SCRIPT_NAME"), path = meta_find(block, "PATH_INFO");
	char *at = run->text;

	/* The spawner finds a program by these, and takes none for a command. */
	if (run->command)
		mount.length = path.length = 0;
	if (path.length && path.at[0] == '/')
		path = (struct slice){path.at + 1, path.length - 1};
	run->start.mount = at;
	at = put(at, mount);
	run->start.script = at;
	at = put(at, path);
	run->start.block = at;
	memcpy(at, block.at, block.length);
	at += block.length;
	/* php-cgi requires it. */
	at += sprintf(at, "REDIRECT_STATUS=200") + 1;
	at += sprintf(at, "NABC_SERVER_PID=%d", (int)getpid()) + 1;
	if (cache_socket)
		at += sprintf(at, "NABC_CACHE=%s", cache_socket) + 1;
	run->start.block_length = (size_t)(at - run->start.block);
}

struct cgi_run *cgi_run_start(struct loop *loop, struct spawner_channel *channel,
			      struct cgi_program program, struct slice block, struct cgi_body body,
			      const char *cache_socket, const struct cgi_run_owner *owner)
{
	size_t cache_length = cache_socket ? strlen(cache_socket) : 0;
	struct cgi_run *run = calloc(1, sizeof(*run) + block.length * 2 + cache_length + EXTRA_MAX);
	int error = 0;

	if (!run)
		return NULL;
	run->loop = loop;
	run->owner = owner;
	run->command = program.command;
	run->input.fd = run->out_fd = run->err_fd = run->pidfd = -1;
	run->start = (struct start){.program = program.number,
				    .fds = {-1, -1, -1, -1},
				    .done = run_started,
				    .ended = run_ended,
				    .gone = run_gone};
	write_text(run, block, cache_socket);
	run->input.drained = run_drained;
	run->input.stopped_reading = run_stopped_reading;
	if (body.length)
		error = cgi_input_open(&run->input, loop, &run->start.fds[STDIN_FILENO]);
	if (!error)
		error = cgi_input_add(&run->input, body.unit, body.length, body.more);
	if (!error)
		error = open_pipes(run);
	if (error) {
		close_theirs(&run->start);
		cgi_run_free(run);
		errno = -error;
		return NULL;
	}
	spawner_ask(channel, &run->start);
	return run;
}
