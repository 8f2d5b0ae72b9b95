/* SPDX-License-Identifier: MIT */
/*
 * helper.h - threads for what may block: opening and reading files.
 *
 * The "asymmetric" half of AMPED (paper 003, section 3.4): the event loop
 * never waits for a disk.
 */
#ifndef SWEET_HELPER_H
#define SWEET_HELPER_H

#include <stdbool.h>

#include "event/loop.h"

struct helpers;

/* The memory of a job is the caller's, from helper_submit() to its done(). */
struct job {
	void (*work)(struct job *job); /* on a helper thread; may block */
	void (*done)(struct job *job); /* on the loop's thread */
	struct loop *loop;
	struct loop_task task; /* helper's */
	struct job *next;      /* helper's */
};

/*
 * NULL with errno when no thread can be started.  Without any, whoever submits
 * a job does it, and waits.
 */
struct helpers *helper_open(unsigned threads);

/* Ends the threads after their present jobs; jobs that wait are dropped.  Before their loops. */
void helper_close(struct helpers *helpers);

void helper_submit(struct helpers *helpers, struct job *job);

#endif
