/* SPDX-License-Identifier: MIT */
/*
 * spawner-wire.h - the protocol between the server and its spawner: one message
 * each over a socket that preserves message boundaries (SOCK_SEQPACKET).
 *
 * A request is the structure, then mount, script and block, with the descriptors
 * for the program.  Every START has one answer, STARTED (with the pidfd) or
 * REFUSED; a program that was started, later an ENDED.  If it has left processes of
 * its group, a GONE follows when they have ended too.  Then its place, which the
 * server chose, is free again.  Before that, the first channel gets READY.
 *
 * A spawner that was killed is replaced by a new one on the same channels, which
 * sends RENEWED instead, on each: all programs of the old one have ended.  Requests
 * that the old one had not read are still there; but one request may have been lost
 * with it.  A MARK detects it: that request was sent before the MARK, and has no
 * answer when the MARKED arrives.  For starts that are not done by then, BEGUN comes
 * before.  Starts are not done in the order of requests.
 */
#ifndef SWEET_SPAWNER_WIRE_H
#define SWEET_SPAWNER_WIRE_H

#include <stdint.h>

#define SPAWNER_FDS 4 /* a program's descriptors 0, 1, 2 and 3 */
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
	SPAWNER_GONE,
	SPAWNER_BEGUN,
	SPAWNER_READY,
	SPAWNER_RENEWED,
	SPAWNER_MARKED
};

struct spawner_request {
	uint32_t kind;	  /* START, SIGNAL or MARK */
	uint32_t place;	  /* below SPAWNER_PLACES; for a MARK any number, which MARKED repeats */
	uint32_t program; /* its number */
	uint32_t fds;	  /* bit n: a descriptor for n is attached */
	int32_t signal;	  /* with SIGNAL */
	uint32_t mount_length, script_length, block_length; /* bytes */
};

struct spawner_answer {
	uint32_t kind;
	uint32_t place;
	int32_t pid;
	/* REFUSED: errno; READY: why it is not ready, or 0; ENDED: 1: a GONE follows */
	int32_t error;
	int32_t status;		/* ENDED: as of waitpid() */
	uint32_t script_length; /* bytes of the script's path that name the program */
};

_Static_assert(sizeof(struct spawner_request) == 32 && sizeof(struct spawner_answer) == 24,
	       "no holes: what was not written does not leave the process");

#define SPAWNER_MESSAGE_MAX (sizeof(struct spawner_request) + SPAWNER_PATH_MAX + SPAWNER_BLOCK_MAX)

#endif
