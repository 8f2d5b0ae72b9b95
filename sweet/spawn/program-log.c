/* SPDX-License-Identifier: MIT */
/*
 * program-log.c - see program-log.h.
 *
 * A process that writes faster than READ_RATE waits for its full pipe; below that, lines beyond
 * BYTES_MAX of its pool are left out and counted.  The limit belongs to the name of the pool: neither
 * a new process nor a reload begins a new period.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib.h>

#include "base/byte-rate.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/escape.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/timer.h"
#include "event/loop.h"
#include "log/log.h"
#include "spawn/program-log.h"

#define LINE_BYTES 800u /* bytes of a line; the rest is cut off */
#define TEXT_BYTES 900u /* of these with escapes: a message has room for them and the name */
#define NAME_SHOWN 80	/* bytes of the pool's name */
#define READS_MAX 16u	/* reads of a pipe at a time */
#define READ_RATE ((size_t)1 << 20) /* bytes of a process in a second */
#define PERIOD_MS 10000u
#define BYTES_MAX ((size_t)256 << 10) /* of a pool's lines in a period */
#define LINE_COST 64u	 /* bytes that each line counts in addition, for time and name */
#define PARTIAL_MS 1000u /* until a line without an end is logged */
#define FIRST_FREE (STDERR_FILENO + 1)

/* The lines of all processes of the pools with one name. */
struct program_voice {
	struct program_log *log;
	char *pool;
	unsigned pipes;
	uint64_t since_ms; /* when the period began */
	size_t bytes;	   /* logged in it */
	unsigned lost;	   /* lines since the limit was reached */
	struct timer over; /* runs from then on, until a new period begins */
};

struct program_pipe {
	struct program_voice *voice;
	int fd;
	struct loop_watch watch;
	struct timer timer;
	bool paused;  /* the timer reads on; otherwise it logs a line without an end */
	bool cutting; /* the rest of the line is left out */
	struct byte_rate rate;
	struct list_node node;
	size_t length;
	char line[LINE_BYTES];
};

struct program_log {
	struct loop *loop;
	GHashTable *voices; /* by pool */
	struct list pipes;
};

/* The loop's clock stands still when the loop has ended. */
static uint64_t now_ms(void)
{
	return clock_monotonic_ns() / 1000000;
}

/* --- lines -------------------------------------------------------------------------------- */

static void report_lost(struct program_voice *voice)
{
	if (voice->lost)
		log_warning("pool %.*s: lines of its programs that were left out, after %zu KiB in "
			    "less than %u s: %u",
			    NAME_SHOWN, voice->pool, BYTES_MAX >> 10, PERIOD_MS / 1000,
			    voice->lost);
	voice->lost = 0;
}

static void period_over(struct timer *timer)
{
	struct program_voice *voice = container_of(timer, struct program_voice, over);

	report_lost(voice);
	voice->bytes = 0;
	voice->since_ms = now_ms();
}

/* Returns false if a line of that many bytes exceeds the limit, and counts it. */
static bool is_allowed(struct program_voice *voice, size_t length)
{
	if (!voice->lost && now_ms() - voice->since_ms >= PERIOD_MS) {
		voice->bytes = 0;
		voice->since_ms = now_ms();
	}
	if (!voice->lost && voice->bytes < BYTES_MAX) {
		voice->bytes += length + LINE_COST;
		return true;
	}
	if (voice->lost++ == 0)
		loop_timer_start(voice->log->loop, &voice->over, PERIOD_MS, period_over);
	return false;
}

/* Logs what there is of a line; cut: more follows, which is left out. */
static void log_line(struct program_pipe *pipe, bool cut)
{
	char text[LINE_BYTES * ESCAPE_MOST + 1];
	size_t length = pipe->length, used;

	pipe->length = 0;
	if (length == 0 || !is_allowed(pipe->voice, length))
		return;
	/* Cuts the raw bytes, so that no escape is cut; each has four. */
	while ((used = (size_t)(escape_message(text, (struct slice){pipe->line, length}) - text)) >
	       TEXT_BYTES) {
		length -= (used - TEXT_BYTES) / 4 + 1;
		cut = true;
	}
	text[used] = '\0';
	log_warning("pool %.*s: %s%s", NAME_SHOWN, pipe->voice->pool, text,
		    cut ? "... (line cut)" : "");
}

static void take(struct program_pipe *pipe, const char *at, size_t length)
{
	for (; length; at++, length--) {
		if (*at == '\n') {
			log_line(pipe, false);
			pipe->cutting = false;
		} else if (pipe->cutting) {
			continue;
		} else if (pipe->length < LINE_BYTES) {
			pipe->line[pipe->length++] = *at;
		} else {
			log_line(pipe, true);
			pipe->cutting = true;
		}
	}
}

/* --- pipes --------------------------------------------------------------------------------- */

static void free_voice(void *data)
{
	struct program_voice *voice = data;

	report_lost(voice);
	timer_stop(&voice->over);
	g_free(voice->pool);
	g_free(voice);
}

static void free_pipe(struct program_pipe *pipe)
{
	log_line(pipe, false);
	timer_stop(&pipe->timer);
	loop_close_fd(pipe->voice->log->loop, pipe->fd);
	pipe->voice->pipes--;
	list_remove(&pipe->node);
	g_free(pipe);
}

static void time_over(struct timer *timer);

static void pause_reading(struct program_pipe *pipe, unsigned ms)
{
	pipe->paused = true;
	loop_timer_start(pipe->voice->log->loop, &pipe->timer, ms, time_over);
}

/*
 * Reads at most a pipe's content; a program that writes without end must not stop the thread, nor
 * keep it busy.  Frees the pipe at its end.
 */
static void read_pipe(struct program_pipe *pipe)
{
	char bytes[4096];

	timer_stop(&pipe->timer);
	pipe->paused = false;
	for (unsigned i = 0; i < READS_MAX; i++) {
		ssize_t got = read(pipe->fd, bytes, sizeof(bytes));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN) {
			if (pipe->length)
				loop_timer_start(pipe->voice->log->loop, &pipe->timer, PARTIAL_MS,
						 time_over);
			return;
		}
		if (got <= 0) {
			free_pipe(pipe);
			return;
		}
		take(pipe, bytes, (size_t)got);
		if (byte_rate_take(&pipe->rate, (size_t)got, READ_RATE, now_ms())) {
			pause_reading(pipe, BYTE_RATE_MS);
			return;
		}
	}
	pause_reading(pipe, 1);
}

static void time_over(struct timer *timer)
{
	struct program_pipe *pipe = container_of(timer, struct program_pipe, timer);

	if (pipe->paused)
		read_pipe(pipe);
	else
		log_line(pipe, false);
}

static void program_log_readable(struct loop_watch *watch)
{
	struct program_pipe *pipe = container_of(watch, struct program_pipe, watch);

	if (!pipe->paused)
		read_pipe(pipe);
}

static gboolean is_unused(void *name, void *data, void *user)
{
	const struct program_voice *voice = data;

	(void)name;
	return voice->pipes == 0 && !timer_is_running(&voice->over) &&
	       now_ms() - voice->since_ms >= *(const uint64_t *)user;
}

static struct program_voice *find_voice(struct program_log *log, const char *pool)
{
	static const uint64_t period = PERIOD_MS;
	struct program_voice *voice = g_hash_table_lookup(log->voices, pool);

	if (voice)
		return voice;
	/* A new name is rare: after a reload. */
	g_hash_table_foreach_remove(log->voices, is_unused, (void *)(uintptr_t)&period);
	voice = g_new0(struct program_voice, 1);
	voice->log = log;
	voice->pool = g_strdup(pool);
	g_hash_table_insert(log->voices, voice->pool, voice);
	return voice;
}

/* Standard descriptors that are closed must not become the pipe. */
static int moved_up(int fd)
{
	int copy;

	if (fd >= FIRST_FREE)
		return fd;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE);
	if (copy < 0)
		copy = -errno;
	close(fd);
	return copy;
}

static int open_pipe(int ends[2])
{
	int error;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	ends[0] = moved_up(ends[0]);
	ends[1] = moved_up(ends[1]);
	error = ends[0] < 0 ? ends[0] : ends[1];
	if (error >= 0) {
		/* Only the server's end: programs do not expect EAGAIN. */
		(void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
		/* Programs of other users may open /dev/stderr. */
		(void)fchmod(ends[1], S_IRUSR | S_IWUSR | S_IWGRP | S_IWOTH);
		return 0;
	}
	for (unsigned i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	return error;
}

int program_log_pipe(struct program_log *log, const char *pool)
{
	struct program_pipe *pipe;
	int ends[2], error = open_pipe(ends);

	if (error)
		return error;
	pipe = g_new0(struct program_pipe, 1);
	pipe->fd = ends[0];
	pipe->watch.ready = program_log_readable;
	error = loop_watch_start(log->loop, &pipe->watch, pipe->fd);
	if (error) {
		close(ends[0]);
		close(ends[1]);
		g_free(pipe);
		return error;
	}
	pipe->voice = find_voice(log, pool);
	pipe->voice->pipes++;
	list_prepend(&log->pipes, &pipe->node);
	return ends[1];
}

/* --- all of them ---------------------------------------------------------------------------- */

struct program_log *program_log_open(struct loop *loop)
{
	struct program_log *log = g_new0(struct program_log, 1);

	log->loop = loop;
	log->voices = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_voice);
	return log;
}

void program_log_read(struct program_log *log, const char *pool)
{
	list_each (struct program_pipe, pipe, &log->pipes, node)
		if (!pool || strcmp(pipe->voice->pool, pool) == 0)
			read_pipe(pipe);
}

unsigned program_log_poll(const struct program_log *log, struct pollfd *polls)
{
	unsigned count = 0;

	list_each (const struct program_pipe, pipe, &log->pipes, node) {
		if (polls)
			polls[count] = (struct pollfd){.fd = pipe->fd, .events = POLLIN};
		count++;
	}
	return count;
}

void program_log_close(struct program_log *log)
{
	if (!log)
		return;
	program_log_read(log, NULL);
	list_each (struct program_pipe, pipe, &log->pipes, node)
		free_pipe(pipe);
	g_hash_table_destroy(log->voices);
	g_free(log);
}
