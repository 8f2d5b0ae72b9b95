/* SPDX-License-Identifier: MIT */
/*
 * cgi-run.h - one CGI program that runs (RFC 3875): what it reads, what it
 * writes, its complaints, and its end.
 *
 * Its answer is left to the owner, who reads from out_fd.  A run goes when its
 * program has ended and the owner has let go of it.  One thread.
 */
#ifndef SWEET_CGI_RUN_H
#define SWEET_CGI_RUN_H

#include "base/slice.h"
#include "spawn/cgi-input.h"
#include "spawn/spawner.h"

#define CGI_LINE_MAX 500u /* bytes of a complaint in one line */

struct cgi_run;

struct cgi_run_owner {
	/* out_fd has something to read, or its end. */
	void (*readable)(struct cgi_run *run);
	/* It was not to be started: an errno. */
	void (*refused)(struct cgi_run *run, int error);
	/* It has taken what there was of its body, and more is to come: cgi_run_body(). */
	void (*hungry)(struct cgi_run *run);
	/* It reads no more, though more was to come. */
	void (*deaf)(struct cgi_run *run);
	/* Has written nothing since cgi_run_expect(). */
	void (*silent)(struct cgi_run *run);
	/* What cgi_run_await_end() was for; the run is still the owner's. */
	void (*settled)(struct cgi_run *run);
	/* Its place is free; told after refused() as well, and when nobody has the run any more. */
	void (*over)(struct cgi_run *run);
	/* It is about to be. */
	void (*freed)(struct cgi_run *run);
};

struct cgi_run {
	struct start start; /* must be first */
	struct loop *loop;
	const struct cgi_run_owner *owner;
	void *user; /* the owner's; NULL: it was let go of */
	void *home; /* the owner's, for its lists */
	struct cgi_run *next, *previous;
	int out_fd; /* -1: closed */
	/* The owner's: not to be freed; nobody waits for its answer. */
	bool reading, unwanted;
	/* To be read: it has ended, with that status as of waitpid() or -1. */
	bool over;
	int status;

	/* cgi-run.c's */
	struct loop_watch out, err;
	struct cgi_input input;
	struct timer timer, more;
	int err_fd, pidfd;
	bool started, ending, awaited;
	unsigned errors; /* bytes of them so far */
	size_t line_length;
	char line[CGI_LINE_MAX];
	char text[]; /* mount, script, block */
};

/* What it reads, or the first piece of that; length 0: nothing. */
struct cgi_body {
	size_t unit; /* held as long as it is needed */
	size_t length;
	bool more; /* cgi_run_body() brings it */
};

/*
 * Starts the program with that number for the request that block describes: its
 * SCRIPT_NAME says where the programs are, its PATH_INFO which one and what
 * follows.  NULL with errno; later nothing but the owner's functions is called.
 */
struct cgi_run *cgi_run_start(struct loop *loop, struct spawner_channel *channel, unsigned program,
			      struct slice block, struct cgi_body body, const char *cache_socket,
			      const struct cgi_run_owner *owner);

/* The next piece, when the program was hungry, or the rest before that.  False: no memory. */
bool cgi_run_body(struct cgi_run *run, size_t unit, size_t length, bool more);

/* Within ms it has to write something; 0: it need not. */
void cgi_run_expect(struct cgi_run *run, unsigned ms);

/*
 * Its output has come to an end, and it is not over: either it is about to be, or
 * it goes on with its output closed.  settled() is told when either is sure.
 */
void cgi_run_await_end(struct cgi_run *run);

/* Asks it to end, and makes it when it does not. */
void cgi_run_end(struct cgi_run *run);

/* The owner wants no more of it; ms: how long it may go on without anybody. */
void cgi_run_let_go(struct cgi_run *run, unsigned ms);

/* Frees it if nothing keeps it. */
void cgi_run_settle(struct cgi_run *run);

/* At once, program or not. */
void cgi_run_free(struct cgi_run *run);

/* "script /cgi-bin/page.sh (pid 12)" */
const char *cgi_run_name(const struct cgi_run *run, char *out, size_t size);

#endif
