/* SPDX-License-Identifier: MIT */
/*
 * spawner.h - starts programs with a small process, which was forked before the
 * server dropped its privileges.
 *
 * So the cost of a start does not depend on the size of the server, programs can
 * run as users of their own although the server has dropped that privilege, and an
 * attacker who controls the server can start only what its operator configured.
 *
 * A thread has a channel; results arrive on the thread's loop.  A program ends, at
 * the latest, with its channel, or with the spawner.  The spawner has a monitor,
 * which forks the next one: at most one request is lost then.
 */
#ifndef SWEET_SPAWNER_H
#define SWEET_SPAWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "spawn/spawner-wire.h"

struct spawner;
struct spawner_channel;
struct loop;
struct spawner_program;

/*
 * One program to start, in the caller's memory from spawner_ask() until done() with
 * an error, or until gone().  What it points to, and its descriptors, must last
 * only until done().
 */
struct start {
	unsigned program;   /* its number */
	const char *mount;  /* for scripts: the URL path of their folder, "/cgi-bin" */
	const char *script; /* the path of the script below it, with what follows, "page.sh/more" */
	const char *block;  /* "NAME=value\0", the request's meta-variables */
	size_t block_length;  /* bytes */
	int fds[SPAWNER_FDS]; /* for descriptor 0, 1, ...; -1: none, see below */
	/*
	 * Called later, never during the request. error 0: the program runs; pidfd
	 * becomes readable when it ends, and now belongs to the callee.  Else an
	 * errno: ENOENT, EACCES, EISDIR ... of the script; EAGAIN: too many
	 * programs run; EOWNERDEAD: the spawner has ended, and the program, if it
	 * ran (the caller may try again); EPIPE: there is no spawner any more.
	 */
	void (*done)(struct start *start, int error, int pidfd);
	/* The program has ended; status as of waitpid(), -1: with its spawner.  May be NULL. */
	void (*ended)(struct start *start, int status);
	/*
	 * No process of its group is left, the last call: at once after ended(), unless the program
	 * has started others that are still running.  May be NULL.
	 */
	void (*gone)(struct start *start);
	/* Valid from done() on: */
	pid_t pid;
	uint64_t asked;	      /* ns of clock_boottime_ns(): before it started */
	size_t script_length; /* bytes of script that name the program */
	/* Private to spawner.c: */
	struct spawner_channel *channel;
	struct list_node node; /* what has not been sent, or reported */
	uint32_t place;
	uint8_t state, news, signal;
	bool doubtful;
	int error, pidfd, status;
};

/*
 * Forks the spawner and its monitor; call it with one thread, before privileges are
 * dropped.  A program without a descriptor 0 or 2 gets /dev/null there; without 1,
 * its own descriptor 2. threads: the number of channels.  Waits until the spawner is
 * ready.  Returns NULL with one line in *why (g_free).
 */
struct spawner *spawner_open(const struct spawner_program *programs, unsigned count,
			     unsigned threads, char **why);

/* Ends all programs and the spawner; no thread may use its channel any more.  May be NULL. */
void spawner_close(struct spawner *spawner);

/* Returns the channel of the thread with that number. */
struct spawner_channel *spawner_channel(struct spawner *spawner, unsigned thread);

/* From now on results arrive on that loop; call it on its thread.  Returns 0 or -errno. */
int spawner_attach(struct spawner_channel *channel, struct loop *loop);

/* All of these on the channel's thread. */
void spawner_ask(struct spawner_channel *channel, struct start *start);

/*
 * Before the loop runs: waits until all requests are answered, at most ms, and calls their
 * functions.
 */
void spawner_settle(struct spawner_channel *channel, unsigned ms);

/*
 * Sends SIGTERM or SIGKILL to a program's group from spawner_ask() until gone(): all that it has
 * started, too.  Before done() it ends the start, which counts as that of a program that has ended.
 */
void spawner_signal(struct start *start, int signal_number);

#endif
