/* SPDX-License-Identifier: MIT */
/*
 * mode.h - whether a server of ours started this process.  It is settled once, when the library
 * is loaded: programs change their environment.
 */
#ifndef NABC_FCGI_MODE_H
#define NABC_FCGI_MODE_H

#include <stdbool.h>
#include <stdatomic.h>

/* All calls are answered here; otherwise libfcgi gets them. */
extern bool fcgi_is_worker;

/* To the server, for a worker: the program may clear its environment. */
extern int fcgi_socket;

/* The process is a child of the one that the server started: it cannot answer requests. */
extern bool fcgi_is_child;

/* No request is accepted any more.  Signal handlers set it. */
extern atomic_bool fcgi_is_shutting_down;

/* Called when the library is loaded. */
void fcgi_mode_settle(void);

/* Takes out of the environment what programs that this one starts must not have. */
void fcgi_mode_clear(void);

#endif
