/* SPDX-License-Identifier: MIT */
/*
 * config-key.h - the table of all keys: the groups that may contain each, its
 * values, and its default.
 */
#ifndef SWEET_CONFIG_KEY_H
#define SWEET_CONFIG_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The groups that may contain a key. */
enum key_level {
	KEY_GLOBAL = 1, /* [sweet] and the command line */
	KEY_HOST = 2,	/* [host NAME] */
	/* [sweet], [host], [path] and [pattern], inherited in that order, paths also by paths */
	KEY_SCOPE = 4,
	KEY_PATH = 8,	   /* [path PREFIX] */
	KEY_POOL = 32,	   /* [pool NAME] */
	KEY_SITE = 64,	   /* [sweet] and [host NAME], inherited in that order */
	KEY_OWN = 16,	   /* with KEY_SCOPE: hosts do not inherit it from [sweet] */
	KEY_PATTERN = 128, /* [pattern NAME] */
	KEY_MAP = 256,	   /* [map NAME] */
};

struct key {
	const char *name;
	unsigned levels;
	bool list;
	const char *otherwise; /* the default as in the file; NULL: none */
	const char *(*store)(const struct key *key, char **values, void *base, const char **wrong);
	size_t offset; /* of the field in struct config, host, scope or pool_config */
	uint64_t least, most;
	const char *const *words;
	const char *range;	     /* in words, of a number; NULL: least and most */
	const char *help, *argument; /* for --help */
	bool experiment; /* only repeats an experiment of a paper: listed by --help-experiments */
};

extern const struct key config_keys[];
extern const unsigned config_key_count;

/* Returns the index of the key of that name at one of the levels, or -1. */
int key_find(const char *name, unsigned levels);

/* Returns the most similar name at those levels, or NULL. */
const char *key_like(const char *name, unsigned levels);

/* Returns the name of the group for a key. */
const char *key_home(const char *name);

/*
 * Stores values in the field of base.  Returns NULL, or what the value must be
 * (g_free), and sets *wrong to the invalid value.
 */
char *key_store(const struct key *key, char **values, void *base, const char **wrong);

#endif
