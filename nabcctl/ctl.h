/* SPDX-License-Identifier: MIT */
/*
 * ctl.h - shared by the commands of nabcctl(1): its options, the cache that they
 * work on, parsing of numbers and names, and error messages.
 *
 * One thread.  Of the library's headers it uses only nabc.h.
 */
#ifndef CTL_H
#define CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include <nabc.h>

/* Exit statuses. */
#define CTL_FAILURE 1
#define CTL_USAGE 2

struct ctl;

struct ctl_command {
	const char *name, *arguments, *summary;
	const char *more; /* additional help text; may be NULL */
	int (*run)(struct ctl *ctl, int argc, char **argv);
};

struct ctl {
	const struct ctl_command *command; /* NULL: not known yet */
	char *path;			   /* of the cache's socket; NULL: not given */
	gboolean json;
	NC_cache *cache; /* NULL: not attached yet */
	bool operates;	 /* as an operator */
	char *versions;	 /* the library's message about incompatible versions, or NULL */
};

/* Print "nabcctl: " and a line to standard error. */
/* returns CTL_FAILURE */
int ctl_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
int ctl_misused(const struct ctl *ctl, const char *format, ...)
	__attribute__((format(printf, 2, 3))); /* returns CTL_USAGE */

/*
 * Parses the command's options and the common ones; leaves the command's name and
 * the other words in *argv.  --help prints and exits.  Returns 0 or CTL_USAGE.
 */
int ctl_options(struct ctl *ctl, const GOptionEntry *entries, int *argc, char ***argv);

enum ctl_role {
	CTL_ANYBODY, /* as an operator if permitted, otherwise as a member */
	CTL_OPERATOR,
};

/* Attaches to the cache.  Returns 0, or an exit status after an error message. */
int ctl_attach(struct ctl *ctl, enum ctl_role role);

/* Report that an operation on a unit or the cache failed with errno.  Return CTL_FAILURE. */
int ctl_unit_failed(const struct ctl *ctl, size_t id, int error);
int ctl_cache_failed(const struct ctl *ctl, const char *what, int error);

/* Flushes standard output and reports errors. */
int ctl_flush(void);

/* Parse words; false: invalid. */
bool ctl_read_id(const char *word, size_t *id); /* decimal or 0x... */
bool ctl_read_size(const char *word, uint64_t *size);

/* Grantees given on the command line, by PIDS, USERS and GROUPS; NULL: none. */
enum { CTL_PIDS, CTL_USERS, CTL_GROUPS, CTL_PRINCIPALS };

struct ctl_principals {
	char **words[CTL_PRINCIPALS];
};

/* Fills in their options, to be parsed with the command's own. */
void ctl_principals_entries(struct ctl_principals *principals,
			    GOptionEntry entries[CTL_PRINCIPALS]);

/* Options for lifetime and priority; NULL: not given. */
struct ctl_stay {
	char *seconds, *priority;
	uint64_t milliseconds;
	enum NC_priority rank;
};

#define CTL_STAY 2

void ctl_stay_entries(struct ctl_stay *stay, GOptionEntry entries[CTL_STAY]);

/* Parses the words.  Returns 0 or CTL_USAGE. */
int ctl_stay_check(const struct ctl *ctl, struct ctl_stay *stay);

/* Applies them to a unit.  Returns 0 or CTL_FAILURE. */
int ctl_stay_set(const struct ctl *ctl, const struct ctl_stay *stay, size_t id);
void ctl_stay_free(struct ctl_stay *stay);

typedef int ctl_principal_call(NC_cache *cache, size_t id, enum NC_principal principal,
			       uint32_t who);

/* Returns their number. */
unsigned ctl_principals_count(const struct ctl_principals *principals);

/* Checks them before anything is done.  Returns 0 or CTL_USAGE. */
int ctl_principals_check(const struct ctl *ctl, const struct ctl_principals *principals);

/* Calls `call` for each of them until one fails.  Returns 0 or CTL_FAILURE. */
int ctl_principals_each(const struct ctl *ctl, const struct ctl_principals *principals, size_t id,
			ctl_principal_call *call);
void ctl_principals_free(struct ctl_principals *principals);

/* The commands. */
int ctl_put(struct ctl *ctl, int argc, char **argv);
int ctl_get(struct ctl *ctl, int argc, char **argv);
int ctl_grant(struct ctl *ctl, int argc, char **argv);
int ctl_grants(struct ctl *ctl, int argc, char **argv);
int ctl_revoke(struct ctl *ctl, int argc, char **argv);
int ctl_destroy(struct ctl *ctl, int argc, char **argv);
int ctl_keep(struct ctl *ctl, int argc, char **argv);
int ctl_list(struct ctl *ctl, int argc, char **argv);
int ctl_stat(struct ctl *ctl, int argc, char **argv);
int ctl_routes(struct ctl *ctl, int argc, char **argv);
int ctl_purge(struct ctl *ctl, int argc, char **argv);
int ctl_top(struct ctl *ctl, int argc, char **argv);

#endif
