/* SPDX-License-Identifier: MIT */
/*
 * cgi-internal.h - a pool of CGI programs as cgi.c, which has the pools and
 * the calls' life, and cgi-response.c, which reads what programs say, see it;
 * and nobody else.
 */
#ifndef SWEET_CGI_INTERNAL_H
#define SWEET_CGI_INTERNAL_H

#include <assert.h>

#include <glib.h>

#include "backend/response-stream.h"
#include "spawn/cgi-run.h"

/* What one thread has of a pool. */
struct cgi_seat {
	struct gateway_pool *pool;
	struct thread *thread;
	struct cgi_run *runs;
	struct loop_notice offer;
	struct loop_task end;
	struct timer again; /* a program could not be started, and somebody may wait */
	uint64_t logged_ms; /* when that was last said */
	bool ending;
};

struct cgi_pool {
	unsigned program;
	char *cache_socket; /* NULL: programs cannot attach */
	_Atomic unsigned running;
	_Atomic unsigned leaving; /* threads that have not let go of it */
	struct loop_task ended;
	struct gateway_pool *pool;
	unsigned count;
	struct cgi_seat seats[];
};

/* In a call's own part. */
struct cgi_call {
	struct response_stream stream; /* must be first */
	struct cgi_run *run;
	struct read_buffer *last; /* of the output, when its program's end is awaited; or NULL */
	bool at_end;		  /* it is, and the stream's release with it */
};

static_assert(sizeof(struct cgi_call) <= BACKEND_CALL_OWN, "fits a call");

static inline struct cgi_call *cgi_call_of(struct backend_call *call)
{
	return (struct cgi_call *)(void *)call->own;
}

/* --- cgi-response.c --- */

/* The call has no program any more; one that was in the middle of its answer is to end. */
void cgi_detach(struct backend_call *call);

/* Reads as long as there is something, and room for it. */
void cgi_read(struct cgi_run *run);

/* The answer ends here, as a failure. */
void cgi_break_off(struct cgi_run *run, const char *fault);

/* "script /cgi-bin/page.sh (pid 12)", or the pool's name. */
const char *cgi_name(struct backend_call *call, char *out, size_t size);

/* What cgi_run_owner asks for, of a run that has a call. */
void cgi_refused(struct cgi_run *run, int error);
void cgi_silent(struct cgi_run *run);
void cgi_settled(struct cgi_run *run);

extern const struct response_stream_source cgi_source;

#endif
