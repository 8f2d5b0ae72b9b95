/* SPDX-License-Identifier: MIT */
/*
 * spawner-wire.h - what the server and its spawner say to each other: one
 * message each over a socket that keeps messages whole (SOCK_SEQPACKET).
 *
 * A request is the structure, then mount, script and block; with it come the
 * descriptors that the program gets.  Every START has one answer, STARTED
 * (with the pidfd) or REFUSED; a program that was started, later an ENDED.
 * From then on its place, which the server chose, is free again.
 * Before all that, the first channel alone says READY.
 *
 * A spawner that was killed has a successor at the same channels, which says
 * RENEWED instead, on each: nothing runs of what the other one had started.
 * What the other one had not read is still there to be read; but one request
 * may have gone with it.  As answers come in the order of requests, a MARK tells
 * that one: it was asked before, and has no answer when the MARKED comes.
 */
#ifndef SWEET_SPAWNER_WIRE_H
#define SWEET_SPAWNER_WIRE_H

#include <stdint.h>

#define SPAWNER_FDS 4 /* a program's descriptors: 0, 1, 2 and 3 */
#define SPAWNER_CHANNELS_MAX 128u
#define SPAWNER_PLACES 256u	    /* programs of one channel at a time */
#define SPAWNER_PATH_MAX 8192u	    /* bytes of mount and script together */
#define SPAWNER_BLOCK_MAX 65536u    /* bytes of "NAME=value\0" */
#define SPAWNER_VARIABLES_MAX 1024u /* of one program */

enum spawner_kind {
	SPAWNER_START = 1,
	SPAWNER_SIGNAL,
	SPAWNER_MARK,
	SPAWNER_STARTED,
	SPAWNER_REFUSED,
	SPAWNER_ENDED,
	SPAWNER_READY,
	SPAWNER_RENEWED,
	SPAWNER_MARKED
};

struct spawner_request {
	uint32_t kind;	  /* START, SIGNAL or MARK */
	uint32_t place;	  /* below SPAWNER_PLACES; of a MARK any number, which comes back */
	uint32_t program; /* its number */
	uint32_t fds;	  /* bit n: a descriptor for n comes along */
	int32_t signal;	  /* with SIGNAL */
	uint32_t mount_length, script_length, block_length; /* bytes */
};

struct spawner_answer {
	uint32_t kind;
	uint32_t place;
	int32_t pid;
	int32_t error;		/* errno, with REFUSED; READY: why it is not, or 0 */
	int32_t status;		/* as of waitpid(), with ENDED */
	uint32_t script_length; /* bytes of the script's path that name the program */
};

_Static_assert(sizeof(struct spawner_request) == 32 && sizeof(struct spawner_answer) == 24,
	       "no holes: what was not written does not leave the process");

#define SPAWNER_MESSAGE_MAX (sizeof(struct spawner_request) + SPAWNER_PATH_MAX + SPAWNER_BLOCK_MAX)

#endif
