/* SPDX-License-Identifier: MIT */
/*
 * content-turn.h - the files that one turn of a loop sends: what the table of
 * all threads (content.h) said of a path is good till the turn ends.
 *
 * A file that is asked for again and again is looked up, referenced and held
 * once a turn, however many requests the turn answers; the rest of them take no
 * lock and write nothing that another thread reads.  As in the table, what a
 * file is was seen since the loop woke up.  On the loop's thread alone.
 */
#ifndef SWEET_CONTENT_TURN_H
#define SWEET_CONTENT_TURN_H

#include "files/content.h"

struct content_turn;

struct content_turn *content_turn_open(struct loop *loop);

/* After the last content_turn_put(), when the loop runs no more. */
void content_turn_close(struct content_turn *turn);

/* As content_get() and content_put(), with a waiter of this loop. */
bool content_turn_get(struct content_turn *turn, struct content *content, const char *path,
		      struct content_waiter *waiter);
void content_turn_put(struct content_turn *turn, struct content *content,
		      struct content_entry *entry);

#endif
