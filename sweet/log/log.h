/* SPDX-License-Identifier: MIT */
/*
 * log.h - messages for the operator, a line each, with a level.
 *
 * The process has one error log, as it has one standard error, which is where
 * messages go until log_open() says otherwise.  Any thread may write.  Texts
 * of strangers may be part of a message: what could end the line or move the
 * cursor is escaped.
 */
#ifndef SWEET_LOG_H
#define SWEET_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

#include <glib.h>

/* In the order of the words for log-level. */
enum log_level {
	LOG_LEVEL_ERROR,   /* something does not work; do something */
	LOG_LEVEL_WARNING, /* it works, but not as it should */
	LOG_LEVEL_NOTICE,  /* what an operator wants to know: started, reloaded, ended */
	LOG_LEVEL_INFO,	   /* what a client did wrong */
	LOG_LEVEL_DEBUG,
};

#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_at(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* The most talkative level that is written; log_set_level() changes it. */
extern _Atomic int log_threshold;

/* Below the threshold: one comparison, and the arguments are not looked at. */
#define log_at(level, ...)                                                                         \
	do {                                                                                       \
		if ((int)(level) <= atomic_load_explicit(&log_threshold, memory_order_relaxed))    \
			log_write(level, __VA_ARGS__);                                             \
	} while (0)

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Each line of errors as one, and lets go of it; true: it had none. */
bool log_told(GPtrArray *errors);

void log_set_level(enum log_level level);

/*
 * Where messages go from now on: "-" (standard error), "syslog", "journal",
 * or a file that is appended to; the same again opens the file anew, after
 * somebody moved it.  0, or -errno with nothing changed.
 * Until log_settled(), a file's and syslog's messages go to standard error as
 * well, where whoever starts the server sees why it does not start.
 */
int log_open(const char *where);
void log_settled(void);

/* The journal at another socket than the system's; for tests. */
int log_open_journal(const char *socket);

/* Back to standard error. */
void log_close(void);

#endif
