/* SPDX-License-Identifier: MIT */
/*
 * cgi-internal.h - a pool of CGI programs; private to cgi.c, which has the pools and the life of a
 * call, and cgi-response.c, which reads the output of programs.
 */
#ifndef SWEET_CGI_INTERNAL_H
#define SWEET_CGI_INTERNAL_H

#include <assert.h>

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend-call.h"
#include "backend/response-stream.h"
#include "base/list.h"
#include "base/timer.h"
#include "event/loop.h"

struct cgi_run;

/* A channel: one thread's part of a pool, with its programs. */
struct cgi_channel {
	struct gateway_pool *pool;
	struct thread *thread;
	struct list runs;
	struct loop_notice offer;
	struct loop_task end;
	struct timer again; /* retries after a program could not be started */
	uint64_t logged_ms; /* when that was last logged */
	bool ending;
};

struct cgi_pool {
	unsigned program;
	char *cache_socket; /* NULL: programs cannot attach */
	_Atomic unsigned running;
	_Atomic unsigned leaving; /* threads that still use the pool */
	struct loop_task ended;
	struct gateway_pool *pool;
	unsigned count;
	struct cgi_channel channels[];
};

/* Lies in backend_call.own. */
struct cgi_call {
	struct response_stream stream;
	struct cgi_run *run;
	/* the last buffer, while the program's exit is awaited; or NULL */
	struct read_buffer *last;
	bool at_end; /* the output has ended; its end releases the stream */
};

static_assert(sizeof(struct cgi_call) <= BACKEND_CALL_OWN, "fits a call");

static inline struct cgi_call *cgi_call_of(struct backend_call *call)
{
	return (struct cgi_call *)(void *)call->own;
}

/* --- cgi-response.c --- */

/* Separates the call from its program; ends a program that has not completed its response. */
void cgi_detach(struct backend_call *call);

/* Reads while there is output and room for it. */
void cgi_read(struct cgi_run *run);

/* Ends the response with a failure. */
void cgi_break_off(struct cgi_run *run, const char *fault);

/* Writes a name for the log, as "script /cgi-bin/page.sh (pid 12)", or the pool's name. */
const char *cgi_name(struct backend_call *call, char *out, size_t size);

/* Callbacks of cgi_run_owner for a run that has a call. */
void cgi_refused(struct cgi_run *run, int error);
void cgi_silent(struct cgi_run *run);
void cgi_settled(struct cgi_run *run);

extern const struct response_stream_source cgi_source;

#endif
