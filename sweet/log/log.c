/* SPDX-License-Identifier: MIT */
/*
 * log.c - see log.h.  The process has one log, from its first message to its last,
 * so it is the one object that main does not own.
 *
 * A message is formatted on its thread's stack and written with one call, under the
 * lock that protects the destination.  Messages are rare: no code that runs for
 * each request writes one.
 */
#include <errno.h>
#include <fcntl.h>
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
#include "log/log.h"

#define NAME "sweet"
#define TEXT_MAX 1016 /* bytes of a message */
#define FRONT_MAX 128 /* bytes before the text */
#define JOURNAL "/run/systemd/journal/socket"

enum kind { TO_STDERR, TO_FILE, TO_SYSLOG, TO_JOURNAL };

_Atomic int log_threshold = LOG_LEVEL_NOTICE;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Protected by the lock: */
static enum kind kind = TO_STDERR;
static int fd = -1;		   /* the file, or a socket to the journal */
static char *path;		   /* of the file */
static struct sockaddr_un journal; /* address of the journal */
static bool settled;

/* Returns syslog's priority; syslog has more severe ones, for systems. */
static int priority(enum log_level level)
{
	return LOG_ERR + (int)level;
}

/* --- destinations ------------------------------------------------------------------- */

static void write_line(int to, const char *front, const char *text)
{
	char line[FRONT_MAX + TEXT_MAX + 2];
	int length = snprintf(line, sizeof(line), "%s%s\n", front, text);

	/* An error cannot be reported anywhere. */
	(void)!write(to, line, (size_t)length);
}

static void write_file(enum log_level level, const char *text)
{
	static const char *const words[] = {"error", "warning", "notice", "info", "debug"};
	char front[FRONT_MAX], when[64] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S%z", &tm);
	snprintf(front, sizeof(front), "%s [%s] ", when, words[level]);
	write_line(fd, front, text);
}

/* Sends each message by address, so that it reaches a restarted journal. */
static bool write_journal(enum log_level level, const char *text)
{
	char entry[FRONT_MAX + TEXT_MAX];
	int length = snprintf(entry, sizeof(entry),
			      "PRIORITY=%d\nSYSLOG_IDENTIFIER=" NAME "\nMESSAGE=%s\n",
			      priority(level), text);

	return sendto(fd, entry, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&journal, sizeof(journal)) == length;
}

/* The caller holds the lock. */
static void write_out(enum log_level level, const char *text)
{
	bool copy = !settled && (kind == TO_FILE || kind == TO_SYSLOG);
	char front[32];

	if (kind == TO_FILE)
		write_file(level, text);
	else if (kind == TO_SYSLOG)
		syslog(priority(level), "%s", text);
	if (kind == TO_STDERR || copy)
		write_line(STDERR_FILENO, NAME ": ", text);
	if (kind == TO_JOURNAL && !write_journal(level, text)) {
		/* Readers of standard error may know these prefixes (sd-daemon(3)). */
		snprintf(front, sizeof(front), "<%d>" NAME ": ", priority(level));
		write_line(STDERR_FILENO, front, text);
	}
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
	write_out(level, text);
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

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_threshold, (int)level, memory_order_relaxed);
}

/* --- where messages go --------------------------------------------------------------- */

static int open_file(const char *name)
{
	int opened = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);

	return opened < 0 ? -errno : opened;
}

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
		openlog(NAME, LOG_PID | LOG_NDELAY, LOG_DAEMON);
	kind = next;
	fd = next_fd;
	path = next_path;
	pthread_mutex_unlock(&lock);
	if (old_fd >= 0)
		close(old_fd);
	free(old_path);
}

int log_open_journal(const char *name)
{
	struct sockaddr_un there = {.sun_family = AF_UNIX};
	int opened;

	if (strlen(name) >= sizeof(there.sun_path))
		return -ENAMETOOLONG;
	opened = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (opened < 0)
		return -errno;
	strcpy(there.sun_path, name);
	pthread_mutex_lock(&lock);
	journal = there;
	pthread_mutex_unlock(&lock);
	switch_to(TO_JOURNAL, opened, NULL);
	return 0;
}

int log_open(const char *where)
{
	char *name;
	int opened;

	if (!where || strcmp(where, "-") == 0) {
		log_close();
		return 0;
	}
	if (strcmp(where, "syslog") == 0) {
		switch_to(TO_SYSLOG, -1, NULL);
		return 0;
	}
	if (strcmp(where, "journal") == 0)
		return log_open_journal(JOURNAL);
	name = strdup(where);
	if (!name)
		return -ENOMEM;
	opened = open_file(name);
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
