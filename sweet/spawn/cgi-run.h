/* SPDX-License-Identifier: MIT */
/*
 * cgi-run.h - one running CGI program (RFC 3875): its input, output, standard
 * error, and end.
 *
 * The owner reads the response from out_fd.  A run is freed when its program and all
 * that this has left in its process group have ended, and the owner has released it.
 * For one thread.
 */
#ifndef SWEET_CGI_RUN_H
#define SWEET_CGI_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/byte-rate.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/timer.h"
#include "event/loop.h"
#include "spawn/cgi-input.h"
#include "spawn/spawner.h"

#define CGI_LINE_MAX 500u /* bytes of standard error in one line of the log */

struct cgi_run;
struct loop;
struct spawner_channel;

struct cgi_run_owner {
	/* out_fd is readable, or at its end. */
	void (*readable)(struct cgi_run *run);
	/* The program could not be started; error is an errno. */
	void (*refused)(struct cgi_run *run, int error);
	/* The body so far was written, and more will follow: cgi_run_body(). */
	void (*drained)(struct cgi_run *run);
	/* The program stopped reading although more was to follow. */
	void (*stopped_reading)(struct cgi_run *run);
	/* No output arrived within the time of cgi_run_expect(), whether the program runs or not. */
	void (*silent)(struct cgi_run *run);
	/* The result of cgi_run_await_end(); the run is still the owner's. */
	void (*settled)(struct cgi_run *run);
	/*
	 * Nothing of the program is left: its group has ended, and no other process can write a
	 * part of the response.  Called after refused() as well, and after cgi_run_release().
	 */
	void (*over)(struct cgi_run *run);
	/* The run will be freed now. */
	void (*freed)(struct cgi_run *run);
};

struct cgi_run {
	struct start start;
	struct loop *loop;
	const struct cgi_run_owner *owner;
	void *user; /* the owner's; NULL: released */
	void *home; /* the owner's, for its list */
	struct list_node node;
	int out_fd; /* -1: closed */
	/* The owner's: the run must not be freed; nobody waits for its response. */
	bool reading, unwanted;
	/* Read-only: the program has ended, with that status as of waitpid(), or -1. */
	bool over;
	int status;
	const char *command; /* as in struct cgi_program */

	/* Private to cgi-run.c: */
	struct loop_watch out, err;
	struct cgi_input input;
	struct timer timer, more;
	int err_fd, pidfd;
	bool started, ending, awaited;
	bool gone;	 /* its group has ended */
	bool counted;	 /* over() was called */
	unsigned errors; /* bytes of standard error that were logged */
	struct byte_rate error_rate;
	size_t line_length;
	char line[CGI_LINE_MAX];
	char text[]; /* mount, script, block */
};

/* The body, or its first unit; length 0: none. */
struct cgi_body {
	size_t unit; /* held as long as needed */
	size_t length;
	bool more; /* cgi_run_body() adds the rest */
};

/* What to run; command: its file, which must last, or NULL: the request names it. */
struct cgi_program {
	unsigned number;
	const char *command;
};

/*
 * Starts a program for the request that block describes. Without a command, its
 * SCRIPT_NAME is the path of the programs' folder, its PATH_INFO the name of the
 * program and the rest of the path.  Returns NULL with errno.  Later errors are
 * reported by the owner's functions.
 */
struct cgi_run *cgi_run_start(struct loop *loop, struct spawner_channel *channel,
			      struct cgi_program program, struct slice block, struct cgi_body body,
			      const char *cache_socket, const struct cgi_run_owner *owner);

/* Adds the next unit of the body, after drained() or earlier.  Returns false without memory. */
bool cgi_run_body(struct cgi_run *run, size_t unit, size_t length, bool more);

/* Sets the time in ms for the next output; 0: no limit. */
void cgi_run_expect(struct cgi_run *run, unsigned ms);

/*
 * The output has ended, but the program has not: either it is about to end, or it
 * continues with its output closed. settled() is called when this is known.
 */
void cgi_run_await_end(struct cgi_run *run);

/* Sends SIGTERM to its group, and later SIGKILL if that does not end. */
void cgi_run_end(struct cgi_run *run);

/* Releases the run; ms: how long the program, or what is left of its group, may continue. */
void cgi_run_release(struct cgi_run *run, unsigned ms);

/* Frees the run if nothing uses it. */
void cgi_run_settle(struct cgi_run *run);

/* Frees the run at once, even if the program runs. */
void cgi_run_free(struct cgi_run *run);

/* Writes "script /cgi-bin/page.sh (pid 12)". */
const char *cgi_run_name(const struct cgi_run *run, char *out, size_t size);

#endif
