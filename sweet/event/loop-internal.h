/* SPDX-License-Identifier: MIT */
/*
 * loop-internal.h - functions of loop-send.c that loop.c calls in each turn.
 */
#ifndef SWEET_LOOP_INTERNAL_H
#define SWEET_LOOP_INTERNAL_H

struct loop;

/* Runs the callbacks of completed sends, at most one turn's share. */
void loop_complete_sends(struct loop *loop);

/* Continues each long send for one turn. */
void loop_take_turns(struct loop *loop);

/* Removes a descriptor's sends from the lists of completed and of long sends. */
void loop_forget_sends(struct loop *loop, int fd);

#endif
