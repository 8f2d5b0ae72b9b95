/* SPDX-License-Identifier: MIT */
/*
 * reload-call.h - a reload that its caller waits for: "sweet --reload" sends
 * SIGHUP, and the server answers whether it took the new configuration.
 *
 * The signal carries a random number (sigqueue(3)).  The caller listens at the
 * abstract Unix socket that this number names; the server sends datagrams to
 * it.  Only a process that may signal the server can make it send one, and the
 * caller believes only the process that it has signalled (SCM_CREDENTIALS).
 * A SIGHUP without a number is a reload that nobody waits for.
 */
#ifndef SWEET_RELOAD_CALL_H
#define SWEET_RELOAD_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

#define RELOAD_CALLS_MAX 16

/* The server's end: callers of the reload that runs, and of the next one.  Main thread. */
struct reload_calls {
	uint64_t callers[RELOAD_CALLS_MAX]; /* those of the running one first */
	unsigned count, running;
};

/* Takes note of the caller of this SIGHUP, if it has one, and acknowledges the call. */
void reload_calls_add(struct reload_calls *calls, const struct signalfd_siginfo *info);

/* A reload begins: whoever has called so far waits for this one. */
void reload_calls_begin(struct reload_calls *calls);

/* The reload is over.  said: lines for its callers, why it was refused for instance; may be NULL. */
void reload_calls_answer(struct reload_calls *calls, bool good, const char *said);

/*
 * The caller's end: asks a server, by its number or its pid-file, and waits.
 * Logs what the server says.  False: nothing was reloaded, and it is logged why.
 */
bool reload_call(const char *server);

#endif
