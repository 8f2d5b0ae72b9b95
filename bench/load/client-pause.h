/* SPDX-License-Identifier: MIT */
/*
 * client-pause.h - who sleeps until when: a heap of numbers by their times.
 * Pure; one thread.
 */
#ifndef CLIENT_PAUSE_H
#define CLIENT_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct pause {
	uint64_t until;
	uint32_t who;
};

struct pauses {
	struct pause *heap;
	uint32_t count, room;
};

/* For as many sleepers as there can be at a time.  False: no memory. */
bool pauses_open(struct pauses *pauses, uint32_t room);
void pauses_close(struct pauses *pauses);

/* There is room: nobody sleeps twice at a time. */
void pauses_add(struct pauses *pauses, uint64_t until, uint32_t who);

/* When the next wakes; UINT64_MAX: nobody sleeps. */
uint64_t pauses_next(const struct pauses *pauses);

/* Takes the next sleeper whose time has come.  False: none. */
bool pauses_take(struct pauses *pauses, uint64_t now, uint32_t *who);

#endif
