/* SPDX-License-Identifier: MIT */
/*
 * spawner-places.h - the programs of one channel in the spawner, and what it must report of them.
 *
 * Nothing here waits: what cannot be sent yet is kept.
 */
#ifndef SWEET_SPAWNER_PLACES_H
#define SWEET_SPAWNER_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "spawn/spawner-wire.h"

/* What must be reported of a place, in this order. */
enum { PLACE_BEGUN = 1, PLACE_RESULT = 2, PLACE_ENDED = 4, PLACE_GONE = 8 };

/* A program: starting, then running, then what it has left; free again when PLACE_GONE was reported. */
struct spawner_place {
	pid_t pid;    /* 0: free */
	int report;   /* of its start; -1: it has started */
	int pidfd;    /* -1: none, or reported */
	int error;    /* PLACE_RESULT: why it could not start */
	bool reaped;  /* the program has ended */
	bool left;    /* then: processes of its group are left */
	uint8_t news; /* PLACE_BEGUN, ... */
	int status;
	uint32_t script_length;
};

struct spawner_places {
	int fd;			      /* -1: closed */
	struct spawner_answer answer; /* RENEWED or MARKED; kind 0: sent */
	unsigned starting;	      /* number of such places */
	unsigned news;		      /* number of places with news */
	struct spawner_place places[SPAWNER_PLACES];
};

/* Sends one answer; returns true if it was sent. */
bool spawner_send(int channel, const struct spawner_answer *answer, int fd);

/* Whether an errno of a message means that it can be sent, or received, later. */
bool spawner_is_later(int error);

/*
 * Whether the group of a program that was reaped has processes.  Those whose parent has ended are
 * children of the spawner, so none can be missed.
 */
bool spawner_group_exists(pid_t pid);

/* Signals the program and its group if they exist; one that is starting may have no group yet. */
void spawner_place_signal(const struct spawner_place *place, int number);

void spawner_place_report(struct spawner_places *channel, struct spawner_place *place,
			  unsigned what);
void spawner_place_free(struct spawner_place *place);

/* Sends as many pending answers as possible; returns true if none is left. */
bool spawner_places_send(struct spawner_places *channel);

/* The server has closed its end, or sent an invalid message: ends all programs. */
void spawner_places_close(struct spawner_places *channel);

#endif
