/* SPDX-License-Identifier: MIT */
/*
 * access-log.c - see access-log.h.  A struct access_log belongs to its thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/container.h"
#include "base/timer.h"
#include "core/access-log.h"
#include "log/access-line.h"
#include "log/log-format.h"
#include "log/log-output.h"
#include "log/log.h"
#include "log/template-line.h"

int access_log_open(const char *where, int *fd)
{
	*fd = -1;
	if (!where || strcmp(where, "off") == 0)
		return 0;
	if (strcmp(where, "-") != 0) {
		*fd = log_output_open(where);
		return *fd < 0 ? *fd : 0;
	}
	*fd = fcntl(log_output_standard(STDOUT_FILENO), F_DUPFD_CLOEXEC, 3);
	return *fd < 0 ? -errno : 0;
}

/* --- writing ------------------------------------------------------------------------ */

/* Lost lines must not stop the server: they are counted, and this is logged once. */
static void lose(struct access_log *log, unsigned lines, int error)
{
	log->lost += lines;
	log_output_lose(lines);
	if (lines && !log->failing)
		log_error("cannot write the access log: %s; its lines are lost until that ends",
			  error == -EAGAIN ? "nobody reads it" : strerror(-error));
	log->failing |= lines > 0;
}

static void log_success(struct access_log *log)
{
	if (log->failing)
		log_notice("the access log can be written again; %u lines are lost", log->lost);
	log->failing = false;
	log->lost = 0;
}

static unsigned count_lines(const char *data, size_t length)
{
	const char *end = data + length;
	unsigned lines = 0;

	for (; (data = memchr(data, '\n', (size_t)(end - data))); data++)
		lines++;
	return lines;
}

/* Returns 0 or -errno; then the rest is still there. */
static int flush(struct access_log *log)
{
	size_t done = 0;
	int error = 0;

	timer_stop(&log->timer);
	if (!log->used)
		return 0;
	log->written_ms = loop_now_ms(log->loop);
	/* End a line that was cut when the disk was full, so that the next one is valid. */
	if (log->torn) {
		error = log_output_write(&log->output, "\n", 1, &done);
		log->torn = error != 0;
		done = 0;
	}
	if (!error) {
		error = log_output_write(&log->output, log->buffer, log->used, &done);
		log->torn = error != -EAGAIN && done > 0 && log->buffer[done - 1] != '\n';
	}
	log->used -= done;
	memmove(log->buffer, log->buffer + done, log->used);
	if (!error)
		log_success(log);
	return error;
}

/* Drops what could not be written. */
static void drop(struct access_log *log, int error)
{
	lose(log, count_lines(log->buffer, log->used), error);
	log->used = 0;
}

void access_log_flush(struct access_log *log)
{
	int error = flush(log);

	if (error && error != -EAGAIN)
		drop(log, error);
}

static void access_log_expired(struct timer *timer)
{
	access_log_flush(container_of(timer, struct access_log, timer));
}

/*
 * With few requests each line is written before the thread sleeps.  With many there is one write
 * each second; the timer wakes the thread for it if nothing else does.
 */
static bool access_log_before_sleep(struct loop_hook *hook)
{
	struct access_log *log = container_of(hook, struct access_log, hook);

	if (!log->used)
		return false;
	if (loop_now_ms(log->loop) - log->written_ms >= ACCESS_LOG_MS)
		access_log_flush(log);
	else if (!timer_is_running(&log->timer))
		loop_timer_start(log->loop, &log->timer, ACCESS_LOG_MS, access_log_expired);
	return false;
}

void access_log_put(struct access_log *log, const struct access_line *line)
{
	uint64_t now = loop_now_ns(log->loop);
	char *to, *end;
	bool template;
	size_t most;

	if (log->output.fd < 0)
		return;
	if (!access_clock_good(&log->clock, now)) {
		struct timespec real;

		clock_gettime(CLOCK_REALTIME, &real);
		access_clock_set(&log->clock, real, now);
	}
	template = log->format->kind >= ACCESS_TEMPLATE;
	most = template ? template_line_most(log->format, line) : access_line_most(line);
	if (most > sizeof(log->buffer) - log->used)
		access_log_flush(log);
	if (most > sizeof(log->buffer) - log->used) {
		lose(log, 1, -EAGAIN);
		return;
	}
	to = log->buffer + log->used;
	end = template ? template_line_write(to, log->format, line, &log->clock, now)
		       : access_line_write(to, log->format->kind, line, &log->clock, now);
	log->used += (size_t)(end - to);
}

void access_log_use(struct access_log *log, int fd, const struct log_format *format)
{
	access_log_flush(log);
	if (fd < 0)
		drop(log, -EAGAIN);
	log->output = log_output_of(fd);
	log->format = format;
	log->torn = false;
}

void access_log_end(struct access_log *log)
{
	access_log_flush(log);
	drop(log, -EAGAIN);
}

void access_log_start(struct access_log *log, struct loop *loop, int fd,
		      const struct log_format *format)
{
	log->output = log_output_of(fd);
	log->format = format;
	log->loop = loop;
	log->hook.before_sleep = access_log_before_sleep;
	/* As if a second had ended long ago: the first line is formatted and written at once. */
	log->clock.began_ns = loop_now_ns(loop) - UINT64_C(2000000000);
	log->written_ms = loop_now_ms(loop) - ACCESS_LOG_MS;
	loop_hook_add(loop, &log->hook);
}
