/* SPDX-License-Identifier: MIT */
/*
 * loop-internal.h - what a turn of loop.c does with the sends of loop-send.c.
 */
#ifndef SWEET_LOOP_INTERNAL_H
#define SWEET_LOOP_INTERNAL_H

#include "event/loop-backend.h"

/* Tells results of sends, as many as are one turn's. */
void loop_tell_sent(struct loop *loop);

/* Each long message goes on for a turn. */
void loop_take_turns(struct loop *loop);

/* The descriptor's sends that wait for their turn, or to be told, are over. */
void loop_forget_sends(struct loop *loop, int fd);

#endif
