/* SPDX-License-Identifier: MIT */
/*
 * settings.h - what the operator wants: command line over file over defaults.
 */
#ifndef SWEET_SETTINGS_H
#define SWEET_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include <loop.h>

/* Strings and lists are the structure's; lists end with NULL. */
struct settings {
	char **listen;
	char *root;
	int threads;
	char **worker;
	int workers;	      /* processes of each */
	size_t worker_memory; /* bytes */
	enum loop_kind io;
	char *access_log;
	size_t cache_size;  /* bytes */
	char *cache_socket; /* NULL: the cache is not served */
	int revalidate;	    /* ms */
	bool version;	    /* was asked for: print it and end */
};

/*
 * Reads argv (which is left as it is) and the file that --config names.
 * False: *why is one line for the operator (g_free).  --help prints and ends.
 */
bool settings_read(struct settings *settings, int argc, char **argv, char **why);
void settings_free(struct settings *settings);

#endif
