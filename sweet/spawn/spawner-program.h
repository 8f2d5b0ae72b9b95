/* SPDX-License-Identifier: MIT */
/*
 * spawner-program.h - what the spawner may start, and what a request selects: the
 * file and its environment.
 *
 * The operator configures the programs, and the spawner knows them from before the
 * server dropped its privileges.  Requests come from the server, which an attacker
 * may control since then: a request can only choose among the programs.
 */
#ifndef SWEET_SPAWNER_PROGRAM_H
#define SWEET_SPAWNER_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/filter.h>

#include "base/symlinks.h"
#include "spawn/spawner-wire.h"

/* The caller owns all of it, and keeps it until spawner_open() has returned. */
struct spawner_program {
	const char *path;	/* absolute: one program; or NULL, then folder counts */
	const char *folder;	/* absolute: each executable file in it is a CGI script */
	enum symlinks symlinks; /* to such scripts */
	char *const *argv;	/* of path, ends with NULL */
	const char *directory;	/* working directory; NULL: that of the script, or "/" */
	char *const *variables; /* "NAME=value", ends with NULL; they override a request's */
	/*
	 * Those that requests may set whatever their names: "NAME=value", or "NAME" with any value;
	 * ends with NULL.
	 */
	char *const *permitted;
	const struct privileges *privileges; /* the user; NULL: as the opener of the spawner */
	uint64_t memory;  /* bytes of address space; 0: unchanged, as for the others */
	uint64_t seconds; /* of processor time */
	uint64_t files;	  /* descriptors; 0: at most 1024, the limit of select() */
	int nice;	  /* increment */
	const struct sock_fprog *filter; /* filter of its system calls; NULL: all are permitted */
};

/* A checked request, with what it refers to. */
struct spawner_launch {
	const struct spawner_program *program;
	const char *path, *directory;
	char *const *argv;
	char *const *variables;
	size_t script_length; /* bytes of the request's script that name the program */
	/* Storage for the pointers above: */
	char *own_argv[2];
	char *all[SPAWNER_VARIABLES_MAX + 5];
	char file[PATH_MAX];
	char folder[PATH_MAX];
	char script_name[SPAWNER_PATH_MAX + 32];
	char path_info[SPAWNER_PATH_MAX + 32];
	char script_filename[PATH_MAX + 32];
	char path_translated[PATH_MAX + 32];
};

/*
 * Checks a message of length bytes with that many descriptors.  Returns 0, and
 * launch points into message and programs; -EBADMSG: not a valid START request;
 * -EPERM: a variable that requests may not set; -E2BIG: too many; -ENOENT, -EACCES,
 * ...: errors of the script.
 */
int spawner_launch_read(struct spawner_launch *launch, const struct spawner_program *programs,
			unsigned count, char *message, size_t length, unsigned fds);

/* Whether requests may set a variable of that name to any value. */
bool spawner_variable_is_free(const char *name, size_t length);

#endif
