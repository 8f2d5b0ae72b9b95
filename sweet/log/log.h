/* SPDX-License-Identifier: MIT */
/*
 * log.h - messages for the operator, one line each, with a level.
 *
 * The process has one error log.  It is standard error until log_open() changes it.
 * Any thread may write.  Messages may contain untrusted text: characters that could
 * end the line or move the cursor are escaped.
 *
 * Nothing waits for the reader of the log.  Messages that cannot be written are lost, counted
 * (log-output.h), and reported before the next one.
 */
#ifndef SWEET_LOG_H
#define SWEET_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

#include <glib.h>

/* In the order of the values of log-level. */
enum log_level {
	LOG_LEVEL_ERROR,   /* something does not work; the operator must act */
	LOG_LEVEL_WARNING, /* it works, but not as it should */
	LOG_LEVEL_NOTICE,  /* events of interest: started, reloaded, ended */
	LOG_LEVEL_INFO,	   /* a client's error */
	LOG_LEVEL_DEBUG,
};

#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_at(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* The least severe level that is written; log_set_level() changes it. */
extern _Atomic int log_threshold;

/* Below the threshold this is one comparison, and the arguments are not evaluated. */
#define log_at(level, ...)                                                                         \
	do {                                                                                       \
		if ((int)(level) <= atomic_load_explicit(&log_threshold, memory_order_relaxed))    \
			log_write(level, __VA_ARGS__);                                             \
	} while (0)

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Logs each line of errors, and frees errors; returns true if there was none. */
bool log_error_list(GPtrArray *errors);

/* Logs each line of warnings. */
void log_warning_list(const GPtrArray *warnings);

void log_set_level(enum log_level level);

/*
 * Sets the destination of messages: "-" (standard error), "syslog", "journal", or a
 * file, to which messages are appended.  The same file again is reopened, after it
 * was moved.  Returns 0, or -errno with nothing changed.  Until log_settled(),
 * messages to a file or syslog also go to standard error, so that the user who
 * starts the server sees why it does not start.
 */
int log_open(const char *where);
void log_settled(void);

/* Uses another socket of a journal than the system's; for tests. */
int log_open_journal(const char *socket);

/* Returns to standard error. */
void log_close(void);

#endif
