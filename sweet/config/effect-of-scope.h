/* SPDX-License-Identifier: MIT */
/*
 * effect-of-scope.h - what may answer the requests of a scope, so which of its keys have an effect.
 */
#ifndef SWEET_EFFECT_OF_SCOPE_H
#define SWEET_EFFECT_OF_SCOPE_H

struct config;
struct host;
struct scope;

enum effect {
	EFFECT_FILES = 1 << 0,		/* files are sent */
	EFFECT_PROGRAMS = 1 << 1,	/* programs answer */
	EFFECT_SCRIPTS = 1 << 2,	/* of files, by FastCGI or CGI */
	EFFECT_VARIABLES = 1 << 3,	/* programs with variables, and a document root */
	EFFECT_PAGES = 1 << 4,		/* error pages of any path: the caller knows */
	EFFECT_CODINGS = 1 << 5,	/* something is compressed */
	EFFECT_CODED_PROGRAMS = 1 << 6, /* what programs answer is */
	EFFECT_PAGED_PROGRAMS = 1 << 7, /* programs, and error pages of the scope */
	EFFECT_WRITERS = 1 << 8,	/* clients that write */
	EFFECT_TRIES = 1 << 9,		/* try-files decides */
	EFFECT_POOL = 1 << 10,		/* pool answers */
	EFFECT_REWRITES = 1 << 11,	/* rewrite is reached */
	EFFECT_REALM = 1 << 12,		/* passwords are asked for */
	EFFECT_RATE = 1 << 13,		/* requests are counted */
	EFFECT_FOLDERS = 1 << 15,	/* folders are answered, not only files */
	EFFECT_SLOW = 1 << 14,		/* there is a slow log */
};

/*
 * Returns a set of enum effect; in doubt, it has more.  *lost: the key that leads all requests
 * elsewhere, so that nothing answers there; or NULL.
 */
unsigned effect_of_scope(const struct config *config, const struct host *host,
			 const struct scope *scope, const char **lost);

#endif
