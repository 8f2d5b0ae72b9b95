/* SPDX-License-Identifier: MIT */
/*
 * config-draft.h - what was given for a configuration, as text: a section for
 * each group of the file, and the first for the command line and [sweet].
 */
#ifndef SWEET_CONFIG_DRAFT_H
#define SWEET_CONFIG_DRAFT_H

#include <glib.h>

struct given {
	char **values; /* NULL: not given */
	char *place;   /* "FILE:LINE" or "--"; see config-settle.c */
};

/* [sweet], [host NAME] or [path PREFIX], as given. */
struct section {
	unsigned levels; /* of the keys that may stand there */
	char *place;
	char *host;   /* its name; NULL in [sweet] and for the default host's paths */
	char *prefix; /* "" but in [path] */
	struct given *given;
};

struct draft {
	GPtrArray *errors;
	GPtrArray *sections; /* [0] is [sweet] with the command line */
	char *path;	     /* of the file */
};

void draft_init(struct draft *draft, GPtrArray *errors);
void draft_fini(struct draft *draft);

/* One line for the operator; place: "FILE:LINE", or NULL. */
void draft_complain(struct draft *draft, const char *place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The draft's; levels as in config-key.h. */
struct section *draft_add(struct draft *draft, unsigned levels, const char *place);

#endif
