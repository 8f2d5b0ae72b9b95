/* SPDX-License-Identifier: MIT */
/*
 * reload-call.h - a reload whose caller waits for the result: "sweet --reload"
 * sends SIGHUP, and the server responds whether it accepted the new configuration.
 *
 * The signal carries a random number (sigqueue(3)).  The caller listens on the
 * abstract Unix socket that this number names, and the server sends datagrams to
 * it.  Only a process that may signal the server can trigger a response, and the
 * caller accepts only responses of the process that it signalled (SCM_CREDENTIALS).
 * For a SIGHUP without a number, nobody waits.
 */
#ifndef SWEET_RELOAD_CALL_H
#define SWEET_RELOAD_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

struct signalfd_siginfo;

#define RELOAD_CALLS_MAX 16

/* The server's side: callers of the current reload, and of the next one.  Main thread. */
struct reload_calls {
	uint64_t callers[RELOAD_CALLS_MAX]; /* those of the current reload first */
	unsigned count, running;
};

/* Notes the caller of this SIGHUP, if it has one, and acknowledges the call. */
void reload_calls_add(struct reload_calls *calls, const struct signalfd_siginfo *info);

/* A reload begins: all callers so far wait for this one. */
void reload_calls_begin(struct reload_calls *calls);

/* The reload is over. said: lines for its callers, for example the errors; may be NULL. */
void reload_calls_answer(struct reload_calls *calls, bool good, const char *said);

/*
 * The caller's side: makes a server reload, given its pid or its pid-file, and
 * waits.  Logs the server's messages.  Returns false if nothing was reloaded; the
 * reason is logged.
 */
bool reload_call(const char *server);

#endif
