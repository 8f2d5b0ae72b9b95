/* SPDX-License-Identifier: MIT */
/*
 * client-pause.h - which client sleeps until when: a heap of numbers by their times.
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

/* For the maximum of sleeping clients.  Returns false without memory. */
bool pauses_open(struct pauses *pauses, uint32_t room);
void pauses_close(struct pauses *pauses);

/* Cannot fail: a client sleeps only once at a time. */
void pauses_add(struct pauses *pauses, uint64_t until, uint32_t who);

/* Returns when the next one wakes; UINT64_MAX: none sleeps. */
uint64_t pauses_next(const struct pauses *pauses);

/* Takes the next client whose pause is over.  Returns false if there is none. */
bool pauses_take(struct pauses *pauses, uint64_t now, uint32_t *who);

#endif
