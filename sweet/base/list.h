/* SPDX-License-Identifier: MIT */
/*
 * list.h - doubly linked lists of structs that have their node as a member: no call allocates, and
 * a struct leaves its list, wherever in it it is, without the list being named.
 *
 * Zeros are an empty list, and a node that is in no list.  A list that is not empty does not move.
 */
#ifndef SWEET_LIST_H
#define SWEET_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_node {
	struct list_node *next, *previous; /* a ring with the list's own; NULL: in no list */
};

struct list {
	struct list_node ends;
};

static inline bool list_is_empty(const struct list *list)
{
	return !list->ends.next || list->ends.next == &list->ends;
}

static inline bool list_is_linked(const struct list_node *node)
{
	return node->next;
}

/* The node, which is in no list, enters behind one that is. */
static inline void list_insert_after(struct list_node *before, struct list_node *node)
{
	node->previous = before;
	node->next = before->next;
	before->next->previous = node;
	before->next = node;
}

/* Enters at the head. */
static inline void list_prepend(struct list *list, struct list_node *node)
{
	if (!list->ends.next)
		list->ends.next = list->ends.previous = &list->ends;
	list_insert_after(&list->ends, node);
}

/* Enters at the tail. */
static inline void list_append(struct list *list, struct list_node *node)
{
	if (!list->ends.next)
		list->ends.next = list->ends.previous = &list->ends;
	list_insert_after(list->ends.previous, node);
}

/* Nothing happens if it is in no list. */
static inline void list_remove(struct list_node *node)
{
	if (!node->next)
		return;
	node->next->previous = node->previous;
	node->previous->next = node->next;
	node->next = node->previous = NULL;
}

/* Moves everything to another list, which is overwritten. */
static inline void list_move(struct list *to, struct list *from)
{
	*to = (struct list){0};
	if (list_is_empty(from))
		return;
	*to = *from;
	to->ends.next->previous = to->ends.previous->next = &to->ends;
	*from = (struct list){0};
}

/* --- for the macros below ------------------------------------------------------------- */

/* The offset of a member that is a node: one of another type does not compile. */
#define LIST_OFFSET(type, member)                                                                  \
	(offsetof(type, member) +                                                                  \
	 0 * sizeof(1 ? &((type *)0)->member : (const struct list_node *)0))

/* The struct of a node that lies there in it; NULL for the end of the list, or of an empty one. */
static inline void *list_whole(const struct list *list, struct list_node *node, size_t offset)
{
	return node && node != &list->ends ? (char *)node - offset : NULL;
}

static inline void *list_take_whole(struct list *list, size_t offset)
{
	void *whole = list_whole(list, list->ends.next, offset);

	if (whole)
		list_remove(list->ends.next);
	return whole;
}

/* --- the structs of a list, whose nodes are their member: each may be NULL -------------- */

#define list_first(list, type, member)                                                             \
	((type *)list_whole(list, (list)->ends.next, LIST_OFFSET(type, member)))
#define list_last(list, type, member)                                                              \
	((type *)list_whole(list, (list)->ends.previous, LIST_OFFSET(type, member)))
#define list_next(list, of, member)                                                                \
	((__typeof__(of))list_whole(list, (of)->member.next,                                       \
				    LIST_OFFSET(__typeof__(*(of)), member)))
#define list_previous(list, of, member)                                                            \
	((__typeof__(of))list_whole(list, (of)->member.previous,                                   \
				    LIST_OFFSET(__typeof__(*(of)), member)))

/* Removes the first. */
#define list_take(list, type, member) ((type *)list_take_whole(list, LIST_OFFSET(type, member)))

/* A loop: `at` is one after the other.  The body may remove and free it, but not the next one. */
#define list_each(type, at, list, member)                                                          \
	for (type *at = list_first(list, type, member), *at##_next;                                \
	     at && (at##_next = list_next(list, at, member), true); at = at##_next)

#endif
