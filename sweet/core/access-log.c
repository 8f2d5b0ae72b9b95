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

#include "base/timer.h"
#include "core/access-log.h"
#include "log/access-line.h"
#include "log/log-format.h"
#include "log/log.h"
#include "log/template-line.h"

int access_log_open(const char *where, int *fd)
{
	*fd = -1;
	if (!where || strcmp(where, "off") == 0)
		return 0;
	*fd = strcmp(where, "-") == 0
		      ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
		      : open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
	return *fd < 0 ? -errno : 0;
}

/* --- writing ------------------------------------------------------------------------ */

/* Returns 0 or -errno, and how much was written. */
static int write_all(int fd, const char *data, size_t length, size_t *done)
{
	*done = 0;
	while (*done < length) {
		ssize_t written = write(fd, data + *done, length - *done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		*done += (size_t)written;
	}
	return 0;
}

/* A full disk must not stop the server: lines are lost, and this is logged once. */
static void log_failure(struct access_log *log, int error)
{
	if (error && !log->failing)
		log_error("cannot write the access log: %s; its lines are lost until that ends",
			  strerror(-error));
	else if (!error && log->failing)
		log_notice("the access log can be written again");
	log->failing = error != 0;
}

void access_log_flush(struct access_log *log)
{
	size_t done = 0;
	int error = 0;

	timer_stop(&log->timer);
	if (!log->used)
		return;
	log->written_ms = loop_now_ms(log->loop);
	/* End a line that was cut when the disk was full, so that the next one is valid. */
	if (log->torn) {
		error = write_all(log->fd, "\n", 1, &done);
		log->torn = error != 0;
	}
	if (!error) {
		error = write_all(log->fd, log->buffer, log->used, &done);
		log->torn = done > 0 && log->buffer[done - 1] != '\n';
	}
	log->used = 0;
	log_failure(log, error);
}

static void expired(struct timer *timer)
{
	access_log_flush((struct access_log *)((char *)timer - offsetof(struct access_log, timer)));
}

/*
 * With few requests each line is written before the thread sleeps.  With many there is one write
 * each second; the timer wakes the thread for it if nothing else does.
 */
static bool before_sleep(struct loop_hook *hook)
{
	struct access_log *log =
		(struct access_log *)((char *)hook - offsetof(struct access_log, hook));

	if (!log->used)
		return false;
	if (loop_now_ms(log->loop) - log->written_ms >= ACCESS_LOG_MS)
		access_log_flush(log);
	else if (!log->timer.queue)
		loop_timer_start(log->loop, &log->timer, ACCESS_LOG_MS, expired);
	return false;
}

void access_log_put(struct access_log *log, const struct access_line *line)
{
	uint64_t now = loop_now_ns(log->loop);
	char *to, *end;
	bool template;
	size_t most;

	if (log->fd < 0)
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
	to = log->buffer + log->used;
	end = template ? template_line_write(to, log->format, line, &log->clock, now)
		       : access_line_write(to, log->format->kind, line, &log->clock, now);
	log->used += (size_t)(end - to);
}

void access_log_use(struct access_log *log, int fd, const struct log_format *format)
{
	access_log_flush(log);
	log->fd = fd;
	log->format = format;
	log->torn = log->failing = false;
}

void access_log_start(struct access_log *log, struct loop *loop, int fd,
		      const struct log_format *format)
{
	log->fd = fd;
	log->format = format;
	log->loop = loop;
	log->hook.before_sleep = before_sleep;
	/* As if a second had ended long ago: the first line is formatted and written at once. */
	log->clock.began_ns = loop_now_ns(loop) - UINT64_C(2000000000);
	log->written_ms = loop_now_ms(loop) - ACCESS_LOG_MS;
	loop_hook_add(loop, &log->hook);
}
