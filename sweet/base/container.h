/* SPDX-License-Identifier: MIT */
/*
 * From a member to the struct that has it: a callback gets the member that was
 * given away (a timer, a task, a job), and its owner needs the whole.
 */
#ifndef SWEET_CONTAINER_H
#define SWEET_CONTAINER_H

#include <stddef.h>

/*
 * Returns the struct of that type whose member is at pointer.  A pointer to
 * another type than the member's does not compile.
 */
#define container_of(pointer, type, member)                                                        \
	((type *)(void *)((char *)(1 ? (pointer) : &((type *)0)->member) - offsetof(type, member)))

#endif
