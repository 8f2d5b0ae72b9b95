/* SPDX-License-Identifier: MIT */
/*
 * log.c - see log.h.  The process has one log, from its first message to its last,
 * so it is the one object that main does not own.
 *
 * A message is formatted on its thread's stack and written with one call, under the
 * lock that protects the destination.  Messages are rare: no code that runs for
 * each request writes one.
 *
 * No call waits for the reader of the log: a message that cannot be written now is lost, and the
 * next one that can is preceded by the number of those.  The kernel buffers what a pipe or socket
 * has room for.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/slice.h"
#include "log/log-output.h"
#include "log/log.h"

#define NAME "sweet"
#define TEXT_MAX 1016 /* bytes of a message */
#define FRONT_MAX 128 /* bytes before the text */
#define JOURNAL "/run/systemd/journal/socket"
#define SYSLOG "/dev/log"

enum kind { TO_STDERR, TO_FILE, TO_SYSLOG, TO_JOURNAL };

_Atomic int log_threshold = LOG_LEVEL_NOTICE;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Protected by the lock: */
static enum kind kind = TO_STDERR;
static int fd = -1;		 /* the file, or a socket to the journal or syslog */
static char *path;		 /* of the file */
static struct sockaddr_un there; /* address of the journal or syslog */
static bool settled;
static unsigned lost; /* messages since the last one that was written */

/* Returns syslog's priority; syslog has more severe ones, for systems. */
static int priority(enum log_level level)
{
	return LOG_ERR + (int)level;
}

/* --- destinations ------------------------------------------------------------------- */

static bool write_line(int to, const char *front, const char *text)
{
	char line[FRONT_MAX + TEXT_MAX + 2];
	int length = snprintf(line, sizeof(line), "%s%s\n", front, text);
	struct log_output output = log_output_of(to);
	size_t done;

	return log_output_write(&output, line, (size_t)length, &done) == 0;
}

static bool write_standard_error(const char *front, const char *text)
{
	/* It may have been replaced since the last message. */
	return write_line(log_output_standard(STDERR_FILENO), front, text);
}

static bool write_file(enum log_level level, const char *text)
{
	static const char *const words[] = {"error", "warning", "notice", "info", "debug"};
	char front[FRONT_MAX], when[64] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S%z", &tm);
	snprintf(front, sizeof(front), "%s [%s] ", when, words[level]);
	return write_line(fd, front, text);
}

/* By address, so that each message reaches a journal or syslog that was restarted. */
static bool send_message(const char *message, int length)
{
	return sendto(fd, message, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&there, sizeof(there)) == length;
}

/* As syslog(3), which waits for its daemon. */
static bool write_syslog(enum log_level level, const char *text)
{
	char message[FRONT_MAX + TEXT_MAX], when[64] = "";
	time_t now = time(NULL);
	struct tm tm;
	int length;

	if (localtime_r(&now, &tm))
		(void)strftime(when, sizeof(when), "%b %e %H:%M:%S", &tm);
	length = snprintf(message, sizeof(message), "<%d>%s " NAME "[%d]: %s",
			  LOG_DAEMON | priority(level), when, (int)getpid(), text);
	if (send_message(message, length))
		return true;
	if (errno != EPROTOTYPE)
		return false;
	/* A daemon with a stream. */
	syslog(LOG_DAEMON | priority(level), "%s", text);
	return true;
}

static bool write_journal(enum log_level level, const char *text)
{
	char entry[FRONT_MAX + TEXT_MAX];
	int length = snprintf(entry, sizeof(entry),
			      "PRIORITY=%d\nSYSLOG_IDENTIFIER=" NAME "\nMESSAGE=%s\n",
			      priority(level), text);

	return send_message(entry, length);
}

/* The caller holds the lock.  Returns false if the message is lost. */
static bool write_out(enum log_level level, const char *text)
{
	bool copied = !settled && (kind == TO_FILE || kind == TO_SYSLOG) &&
		      write_standard_error(NAME ": ", text);
	char front[32];

	switch (kind) {
	case TO_FILE:
		return write_file(level, text) || copied;
	case TO_SYSLOG:
		return write_syslog(level, text) || copied;
	case TO_JOURNAL:
		if (write_journal(level, text))
			return true;
		/* Readers of standard error may know these prefixes (sd-daemon(3)). */
		snprintf(front, sizeof(front), "<%d>" NAME ": ", priority(level));
		return write_standard_error(front, text);
	default:
		return write_standard_error(NAME ": ", text);
	}
}

/* The same, with the number of messages that were lost before. */
static void write_or_lose(enum log_level level, const char *text)
{
	char note[80];

	snprintf(note, sizeof(note), "messages that were lost before the next one: %u", lost);
	if (lost && write_out(LOG_LEVEL_WARNING, note))
		lost = 0;
	if (!lost && write_out(level, text))
		return;
	lost++;
	log_output_lose(1);
}

/* Escapes the text, and cuts it to TEXT_MAX. */
static void make_safe(const char *raw, char *text)
{
	char escaped[TEXT_MAX * ESCAPE_MOST];
	size_t length = strlen(raw), used;

	/*
	 * Cut the raw text, not the escaped one, to keep escapes complete: each has
	 * four bytes.
	 */
	while ((used = (size_t)(escape_message(escaped, (struct slice){raw, length}) - escaped)) >=
	       TEXT_MAX)
		length -= (used - TEXT_MAX) / 4 + 1;
	memcpy(text, escaped, used);
	text[used] = '\0';
}

void log_write(enum log_level level, const char *format, ...)
{
	char raw[TEXT_MAX], text[TEXT_MAX];
	int before = errno;
	va_list arguments;

	va_start(arguments, format);
	if (vsnprintf(raw, sizeof(raw), format, arguments) < 0)
		raw[0] = '\0';
	va_end(arguments);
	make_safe(raw, text);
	pthread_mutex_lock(&lock);
	write_or_lose(level, text);
	pthread_mutex_unlock(&lock);
	errno = before;
}

bool log_error_list(GPtrArray *errors)
{
	bool good = errors->len == 0;

	for (unsigned i = 0; i < errors->len; i++)
		log_error("%s", (const char *)errors->pdata[i]);
	g_ptr_array_free(errors, TRUE);
	return good;
}

void log_warning_list(const GPtrArray *warnings)
{
	for (unsigned i = 0; i < warnings->len; i++)
		log_warning("%s", (const char *)warnings->pdata[i]);
}

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_threshold, (int)level, memory_order_relaxed);
}

/* --- where messages go --------------------------------------------------------------- */

/* Takes ownership of the descriptor and the path. */
static void switch_to(enum kind next, int next_fd, char *next_path)
{
	char *old_path;
	int old_fd;

	pthread_mutex_lock(&lock);
	old_fd = fd;
	old_path = path;
	if (kind == TO_SYSLOG && next != TO_SYSLOG)
		closelog();
	if (next == TO_SYSLOG)
		openlog(NAME, LOG_PID, LOG_DAEMON); /* for a daemon with a stream */
	kind = next;
	fd = next_fd;
	path = next_path;
	pthread_mutex_unlock(&lock);
	if (old_fd >= 0)
		close(old_fd);
	free(old_path);
}

static int open_socket(enum kind next, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int opened;

	if (strlen(name) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	opened = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (opened < 0)
		return -errno;
	strcpy(address.sun_path, name);
	pthread_mutex_lock(&lock);
	there = address;
	pthread_mutex_unlock(&lock);
	switch_to(next, opened, NULL);
	return 0;
}

int log_open_journal(const char *name)
{
	return open_socket(TO_JOURNAL, name);
}

int log_open(const char *where)
{
	char *name;
	int opened;

	if (!where || strcmp(where, "-") == 0) {
		log_close();
		return 0;
	}
	if (strcmp(where, "syslog") == 0)
		return open_socket(TO_SYSLOG, SYSLOG);
	if (strcmp(where, "journal") == 0)
		return log_open_journal(JOURNAL);
	name = strdup(where);
	if (!name)
		return -ENOMEM;
	opened = log_output_open(name);
	if (opened < 0) {
		free(name);
		return opened;
	}
	switch_to(TO_FILE, opened, name);
	return 0;
}

void log_settled(void)
{
	pthread_mutex_lock(&lock);
	settled = true;
	pthread_mutex_unlock(&lock);
}

void log_close(void)
{
	switch_to(TO_STDERR, -1, NULL);
}
