/* SPDX-License-Identifier: MIT */
/*
 * config-tree.h - the settings as text: a section for each group of the file; the
 * first one for the command line and [sweet].
 */
#ifndef SWEET_CONFIG_TREE_H
#define SWEET_CONFIG_TREE_H

#include <stdbool.h>

#include <glib.h>

struct given {
	char **values; /* NULL: not given */
	char *place;   /* "FILE:LINE" or "--"; see config-resolve.c */
	/* Of config-effect.c: it has an effect somewhere, or what leads requests elsewhere. */
	bool works;
	const char *lost;
};

/* [sweet], [host NAME], [path PREFIX] or [pattern NAME], as in the file. */
struct section {
	unsigned levels; /* of the keys that it may contain */
	char *place;
	char *host;    /* its name; NULL in [sweet] and for the default host's paths */
	char *prefix;  /* "" except in [path] */
	bool exact;    /* of [path]: only that path, and none below it */
	char *pattern; /* name of a [pattern]; else NULL */
	struct given *given;
};

struct config_tree {
	GPtrArray *errors;
	GPtrArray *warnings; /* the same, of what is accepted but has no effect */
	GPtrArray *sections; /* [0] is [sweet] with the command line */
	char *path;	     /* of the file */
};

void config_tree_init(struct config_tree *tree, GPtrArray *errors);
void config_tree_fini(struct config_tree *tree);

/* Adds a line for the operator; place: "FILE:LINE", or NULL. */
void config_tree_complain(struct config_tree *tree, const char *place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds a warning: what it says does no harm. */
void config_tree_warn(struct config_tree *tree, const char *place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The tree owns the section; levels as in config-key.h. */
struct section *config_tree_add(struct config_tree *tree, unsigned levels, const char *place);

#endif
