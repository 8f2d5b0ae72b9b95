/* SPDX-License-Identifier: MIT */
/*
 * spawner.h - programs are started by a process that is small and was forked
 * while the server still was who started it.
 *
 * So a start costs the same however large the server is, programs can have
 * users of their own although the server has given that up, and a server that
 * was taken over can start nothing but what its operator named.
 *
 * A thread has a channel; what it asks for is answered on the thread's loop.
 * A program ends, at the latest, with its channel, or with the process that
 * started it.  That has a monitor, which forks the next: of what is asked at that
 * time one at most is lost.
 */
#ifndef SWEET_SPAWNER_H
#define SWEET_SPAWNER_H

#include <stdbool.h>

#include "event/loop.h"
#include "spawn/spawner-program.h"

struct spawner;
struct spawner_channel;

/*
 * One program that is to run, in the caller's memory from spawner_ask() until
 * done() with an error, or until ended().  What it points to, and its
 * descriptors, must last until done() alone.
 */
struct start {
	unsigned program;     /* its number */
	const char *mount;    /* of a folder: the path that the script's follows, "/cgi-bin" */
	const char *script;   /* and that, with what comes after it, "page.sh/more" */
	const char *block;    /* "NAME=value\0", as the request's meta-variables */
	size_t block_length;  /* bytes */
	int fds[SPAWNER_FDS]; /* for descriptor 0, 1, ...; -1: none, see below */
	/*
	 * Later, and never during the asking.  error 0: it runs; pidfd becomes
	 * readable when it ends, and is the callee's now.  Or an errno: ENOENT,
	 * EACCES, EISDIR ... of the script; EAGAIN: too many programs run;
	 * EOWNERDEAD: the spawner ended meanwhile, and the program, if it ran; the next
	 * spawner may be asked; EPIPE: there is no spawner any more.
	 */
	void (*done)(struct start *start, int error, int pidfd);
	/* It has ended; status as of waitpid(), -1: with its spawner.  May be NULL. */
	void (*ended)(struct start *start, int status);
	/* Good from done() on. */
	pid_t pid;
	uint64_t asked;	      /* ns of clock_boottime_ns(): before it started */
	size_t script_length; /* bytes of script that name the program */
	/* spawner.c's */
	struct spawner_channel *channel;
	struct start *next;
	uint32_t place;
	uint8_t state, news, signal;
	bool doubtful;
	int error, pidfd, status;
};

/*
 * Forks it, and its monitor; one thread, before privileges are given up.  Without a
 * descriptor 0 a program has an empty input, without 2 the errors of the
 * spawner, which are the server's of now, and without 1 its 2.  threads: how
 * many channels there are.  Waits until it is ready.  NULL: *why is one line
 * (g_free).
 */
struct spawner *spawner_open(const struct spawner_program *programs, unsigned count,
			     unsigned threads, char **why);

/* Ends all programs and the spawner; no thread uses its channel any more.  May be NULL. */
void spawner_close(struct spawner *spawner);

/* Of the thread with that number. */
struct spawner_channel *spawner_channel(struct spawner *spawner, unsigned thread);

/* From now on answers come, on that loop; on its thread.  0 or -errno. */
int spawner_attach(struct spawner_channel *channel, struct loop *loop);

/* All three on the channel's thread. */
void spawner_ask(struct spawner_channel *channel, struct start *start);

/* The same, but waits: 0 and the pidfd, or -errno; done() is not called. */
int spawner_run(struct spawner_channel *channel, struct start *start, int *pidfd);

/* SIGTERM or SIGKILL for a program that runs, and for all that it has started. */
void spawner_signal(struct start *start, int signal_number);

#endif
