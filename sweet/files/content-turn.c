/* SPDX-License-Identifier: MIT */
/*
 * content-turn.c - see content-turn.h.
 *
 * A place has one reference and one hold of its entry for all requests that
 * use it.  In the turn in which the table named the entry, its path finds the
 * place; later, while slow clients still take it, only what is given back
 * does.  Which of an entry's users had it by a place and which by themselves
 * (who had to wait for it) makes no difference: there are as many references
 * as users, or one for those of the place.
 */
#include <string.h>

#include <glib.h>

#include "files/content-turn.h"

#define PLACES 64u /* files in a turn; more of them are the table's business */

struct place {
	struct content *content;     /* referenced; NULL: the place is free */
	struct content_entry *entry; /* referenced, its unit held */
	const char *path;	     /* the entry's */
	struct place **by_path;	     /* its bucket */
	unsigned users;
	unsigned hits; /* that the table has not counted */
	bool named;    /* in this turn */
	struct place *next_by_path, *next_by_entry;
};

struct content_turn {
	struct loop_hook hook; /* must be first */
	struct place places[PLACES];
	struct place *free;	     /* by next_by_path */
	struct place *named[PLACES]; /* in this turn */
	unsigned named_count;
	struct place *by_path[PLACES];	/* of those named */
	struct place *by_entry[PLACES]; /* of all */
};

static struct place **bucket_of_entry(struct content_turn *turn, const struct content_entry *entry)
{
	/* Entries are larger than a cache line. */
	return &turn->by_entry[(uintptr_t)entry / 64 % PLACES];
}

static struct place *find_entry(struct content_turn *turn, const struct content_entry *entry)
{
	struct place *place = *bucket_of_entry(turn, entry);

	while (place && place->entry != entry)
		place = place->next_by_entry;
	return place;
}

/* Out of the turn and of memory: nobody uses it. */
static void vacate(struct content_turn *turn, struct place *place)
{
	struct place **link = bucket_of_entry(turn, place->entry);

	while (*link != place)
		link = &(*link)->next_by_entry;
	*link = place->next_by_entry;
	content_put(place->content, place->entry);
	content_close(place->content);
	place->content = NULL;
	place->next_by_path = turn->free;
	turn->free = place;
}

/* The turn is over: its paths lead nowhere any more. */
static bool before_sleep(struct loop_hook *hook)
{
	struct content_turn *turn = (struct content_turn *)hook;

	for (unsigned i = 0; i < turn->named_count; i++) {
		struct place *place = turn->named[i];

		*place->by_path = NULL;
		place->named = false;
		if (place->hits)
			content_count_hits(place->content, place->entry, place->hits);
		place->hits = 0;
		if (!place->users)
			vacate(turn, place);
	}
	turn->named_count = 0;
	return false;
}

/* From now on until the turn ends, the path leads to the place. */
static void name(struct content_turn *turn, struct place *place)
{
	place->next_by_path = *place->by_path;
	*place->by_path = place;
	place->named = true;
	turn->named[turn->named_count++] = place;
}

/* An entry that the table named, with a reference and a hold. */
static void enter(struct content_turn *turn, struct content *content, struct content_entry *entry,
		  struct place **by_path)
{
	struct place *place = find_entry(turn, entry), **link;

	if (place) {
		content_put(content, entry);
	} else if (turn->free) {
		place = turn->free;
		turn->free = place->next_by_path;
		link = bucket_of_entry(turn, entry);
		*place = (struct place){.content = content_ref(content),
					.entry = entry,
					.path = content_view(entry)->path,
					.by_path = by_path,
					.next_by_entry = *link};
		*link = place;
	} else {
		return;
	}
	place->users++;
	if (!place->named)
		name(turn, place);
}

bool content_turn_get(struct content_turn *turn, struct content *content, const char *path,
		      struct content_waiter *waiter)
{
	struct place **by_path = &turn->by_path[g_str_hash(path) % PLACES], *place = *by_path;

	while (place && (place->content != content || strcmp(place->path, path) != 0))
		place = place->next_by_path;
	if (place) {
		place->users++;
		place->hits++;
		waiter->result = (struct content_result){.entry = place->entry};
		return true;
	}
	if (!content_get(content, path, waiter))
		return false;
	if (!waiter->result.error && content_keeps(content))
		enter(turn, content, waiter->result.entry, by_path);
	return true;
}

void content_turn_put(struct content_turn *turn, struct content *content,
		      struct content_entry *entry)
{
	struct place *place = find_entry(turn, entry);

	if (!place || !place->users)
		content_put(content, entry);
	else if (--place->users == 0 && !place->named)
		vacate(turn, place);
}

struct content_turn *content_turn_open(struct loop *loop)
{
	struct content_turn *turn = g_new0(struct content_turn, 1);

	for (unsigned i = 0; i < PLACES; i++) {
		turn->places[i].next_by_path = turn->free;
		turn->free = &turn->places[i];
	}
	turn->hook.before_sleep = before_sleep;
	loop_hook_add(loop, &turn->hook);
	return turn;
}

void content_turn_close(struct content_turn *turn)
{
	if (!turn)
		return;
	(void)before_sleep(&turn->hook);
	g_free(turn);
}
