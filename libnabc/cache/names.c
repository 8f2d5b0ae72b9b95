/* SPDX-License-Identifier: MIT */
/* names.c - a search tree of names, and a ring of its entries; see names.h. */
#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cache/names.h"

/* Entries that each new name looks at, so that those of ended units do not pile up. */
#define LOOKS 8u
#define LOOKS_FULL 4096u /* when there is no space for it */

struct nc_name {
	const char *name; /* must be first, for name_compare(): points to text */
	size_t id;
	size_t length;
	struct nc_name *next, *previous; /* in the ring */
	char text[];
};

static int name_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void nc_names_init(struct nc_names *names, bool (*stands)(void *context, size_t id), void *context)
{
	*names = (struct nc_names){.stands = stands, .context = context};
	pthread_mutex_init(&names->lock, NULL);
}

static struct nc_name *find_locked(const struct nc_names *names, const char *name)
{
	struct nc_name *const *found = tfind(&name, &names->tree, name_compare);

	return found ? *found : NULL;
}

/* Enters it as the last one that the hand comes to. */
static int enter_locked(struct nc_names *names, struct nc_name *entry)
{
	if (!tsearch(entry, &names->tree, name_compare))
		return -ENOMEM;
	if (names->hand) {
		entry->next = names->hand;
		entry->previous = names->hand->previous;
		entry->previous->next = entry->next->previous = entry;
	} else {
		names->hand = entry->next = entry->previous = entry;
	}
	names->count++;
	names->bytes += entry->length;
	return 0;
}

static void leave_locked(struct nc_names *names, struct nc_name *entry)
{
	(void)tdelete(entry, &names->tree, name_compare);
	entry->next->previous = entry->previous;
	entry->previous->next = entry->next;
	if (names->hand == entry)
		names->hand = entry->next == entry ? NULL : entry->next;
	names->count--;
	names->bytes -= entry->length;
	free(entry);
}

void nc_names_fini(struct nc_names *names)
{
	while (names->hand)
		leave_locked(names, names->hand);
	pthread_mutex_destroy(&names->lock);
}

static bool is_full(const struct nc_names *names, size_t length)
{
	return names->count >= NC_NAMES_MAX || names->bytes > NC_NAMES_BYTES - length;
}

/* Removes the names of ended units among the next ones. */
static void tidy_locked(struct nc_names *names, size_t length)
{
	unsigned looks = is_full(names, length) ? LOOKS_FULL : LOOKS;

	for (unsigned i = 0; i < looks && names->hand; i++) {
		struct nc_name *entry = names->hand;

		names->hand = entry->next;
		if (!names->stands(names->context, entry->id))
			leave_locked(names, entry);
	}
}

static int add_locked(struct nc_names *names, const char *name, size_t id)
{
	size_t length = strlen(name);
	struct nc_name *entry;
	int error;

	tidy_locked(names, length);
	if (is_full(names, length))
		return -ENOSPC;
	entry = malloc(sizeof(*entry) + length + 1);
	if (!entry)
		return -ENOMEM;
	*entry = (struct nc_name){.name = entry->text, .id = id, .length = length};
	memcpy(entry->text, name, length + 1);
	error = enter_locked(names, entry);
	if (error)
		free(entry);
	return error;
}

int nc_names_set(struct nc_names *names, const char *name, size_t id, bool added)
{
	struct nc_name *entry;
	int error = 0;

	pthread_mutex_lock(&names->lock);
	entry = find_locked(names, name);
	if (!entry)
		error = add_locked(names, name, id);
	else if (added && entry->id != id && names->stands(names->context, entry->id))
		error = -EEXIST;
	else
		entry->id = id;
	pthread_mutex_unlock(&names->lock);
	return error;
}

int nc_names_find(struct nc_names *names, const char *name, size_t *id)
{
	const struct nc_name *entry;

	pthread_mutex_lock(&names->lock);
	entry = find_locked(names, name);
	if (entry)
		*id = entry->id;
	pthread_mutex_unlock(&names->lock);
	return entry ? 0 : -ENOENT;
}

int nc_names_remove(struct nc_names *names, const char *name, size_t id)
{
	struct nc_name *entry;
	int error = -ENOENT;

	pthread_mutex_lock(&names->lock);
	entry = find_locked(names, name);
	if (entry && (id == 0 || entry->id == id)) {
		/* A unit that has ended had no name any more. */
		error = names->stands(names->context, entry->id) ? 0 : -ENOENT;
		leave_locked(names, entry);
	}
	pthread_mutex_unlock(&names->lock);
	return error;
}
