/* SPDX-License-Identifier: MIT */
/*
 * spawner-program.h - what the spawner may start, and what a request makes of
 * it: which file, with which environment.
 *
 * The programs are the operator's word, from before the server gave up what it
 * may.  A request is the server's, which may have been taken over since: it
 * chooses among the programs, and no more.
 */
#ifndef SWEET_SPAWNER_PROGRAM_H
#define SWEET_SPAWNER_PROGRAM_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/filter.h>

#include "spawn/privileges.h"
#include "spawn/spawner-wire.h"

/* All of it stays the caller's, and must last until spawner_open() has returned. */
struct spawner_program {
	const char *path;	/* absolute: one program; or NULL, and then ... */
	const char *folder;	/* absolute: each executable file in it, as CGI scripts */
	char *const *argv;	/* of path, ends with NULL */
	const char *directory;	/* to work in; NULL: that of the script, or "/" */
	char *const *variables; /* "NAME=value", ends with NULL: they count before a request's */
	const struct privileges *privileges; /* who to be; NULL: as who opened the spawner */
	uint64_t memory;  /* bytes of address space; 0: as it is, as the others */
	uint64_t seconds; /* of processor time */
	uint64_t files;	  /* descriptors; 0: at most 1024, since select() has no more */
	int nice;	  /* added */
	const struct sock_fprog *filter; /* of its system calls; NULL: it may make any */
};

/* A request, checked, with what it refers to. */
struct spawner_launch {
	const struct spawner_program *program;
	const char *path, *directory;
	char *const *argv;
	char *const *variables;
	size_t script_length; /* bytes of the request's script that name the program */
	/* What these point into. */
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
 * Looks at a message of length bytes with that many descriptors.  0, and
 * launch points into message and programs; -EBADMSG: not a request to start
 * something; -EPERM: a variable that requests do not have; -E2BIG: too many;
 * -ENOENT, -EACCES, ...: about the script.
 */
int spawner_launch_read(struct spawner_launch *launch, const struct spawner_program *programs,
			unsigned count, char *message, size_t length, unsigned fds);

#endif
