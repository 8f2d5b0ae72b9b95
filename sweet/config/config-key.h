/* SPDX-License-Identifier: MIT */
/*
 * config-key.h - the table of all keys: where each may stand, what its values
 * are, what stands for it when it is not given.
 */
#ifndef SWEET_CONFIG_KEY_H
#define SWEET_CONFIG_KEY_H

#include "config/configuration.h"

/* Where a key may stand. */
enum key_level {
	KEY_GLOBAL = 1, /* [sweet] and the command line */
	KEY_HOST = 2,	/* [host NAME] */
	KEY_SCOPE =
		4, /* [sweet], [host NAME] and [path PREFIX], inherited in that order, paths also by paths */
	KEY_PATH = 8,  /* [path PREFIX] */
	KEY_POOL = 32, /* [pool NAME] */
	KEY_OWN = 16,  /* with KEY_SCOPE: hosts do not inherit it from [sweet] */
};

struct key {
	const char *name;
	unsigned levels;
	bool list;
	const char *otherwise; /* the default as it would be written; NULL: nothing */
	const char *(*store)(const struct key *key, char **values, void *base, const char **wrong);
	size_t offset; /* of the field in struct config, host, scope or pool_config */
	uint64_t least, most;
	const char *const *words;
	const char *help, *argument; /* for --help */
	bool experiment; /* it only repeats an experiment of a paper: for --help-experiments */
};

extern const struct key config_keys[];
extern const unsigned config_key_count;

/* The place in the table of the key of that name at one of the levels, or -1. */
int key_find(const char *name, unsigned levels);

/* The name at those levels that is most like this one; NULL: none is. */
const char *key_like(const char *name, unsigned levels);

/* The groups that a key belongs into, as words. */
const char *key_home(const char *name);

/*
 * Puts values into the field of base.  NULL, or what the value must be
 * (g_free), with the one that is not.
 */
char *key_store(const struct key *key, char **values, void *base, const char **wrong);

#endif
