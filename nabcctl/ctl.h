/* SPDX-License-Identifier: MIT */
/*
 * ctl.h - what the commands of nabcctl(1) share: its options, the cache that
 * they work on, numbers and names as words, and how failures are told.
 *
 * One thread.  Of the library's headers nabc.h alone is used.
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
	const char *more; /* the rest of its help; may be NULL */
	int (*run)(struct ctl *ctl, int argc, char **argv);
};

struct ctl {
	const struct ctl_command *command; /* NULL: before one is known */
	char *path;			   /* of the cache's socket; NULL: not given */
	gboolean json;
	NC_cache *cache; /* NULL: not attached yet */
	bool operates;	 /* as an operator */
	char *versions;	 /* what the library said of the owner's, when they do not fit; or NULL */
};

/* "nabcctl: " and a line on standard error. */
int ctl_complain(const char *format, ...) __attribute__((format(printf, 1, 2))); /* CTL_FAILURE */
int ctl_misused(const struct ctl *ctl, const char *format, ...)
	__attribute__((format(printf, 2, 3))); /* CTL_USAGE */

/*
 * Reads the command's options and those that all have; leaves in *argv the
 * name and the other words.  --help prints and ends.  0 or CTL_USAGE.
 */
int ctl_options(struct ctl *ctl, const GOptionEntry *entries, int *argc, char ***argv);

enum ctl_role {
	CTL_ANYBODY, /* an operator if that may be, else a member */
	CTL_OPERATOR,
};

/* Joins the cache.  0, or an exit status: it was told why. */
int ctl_attach(struct ctl *ctl, enum ctl_role role);

/* Tells that something about a unit or the cache failed with errno.  CTL_FAILURE. */
int ctl_unit_failed(const struct ctl *ctl, size_t id, int error);
int ctl_cache_failed(const struct ctl *ctl, const char *what, int error);

/* The whole of standard output is out, or it is told that it is not. */
int ctl_flush(void);

/* Words.  False: it is no such thing. */
bool ctl_read_id(const char *word, size_t *id); /* decimal or 0x... */
bool ctl_read_size(const char *word, uint64_t *size);

/* Words about whom a unit is for, by PIDS, USERS and GROUPS; NULL: none is given. */
enum { CTL_PIDS, CTL_USERS, CTL_GROUPS, CTL_PRINCIPALS };

struct ctl_principals {
	char **words[CTL_PRINCIPALS];
};

/* Their options, to be read with the command's own. */
void ctl_principals_entries(struct ctl_principals *principals,
			    GOptionEntry entries[CTL_PRINCIPALS]);

/* Words about how long a unit stays; NULL: not given. */
struct ctl_stay {
	char *seconds, *priority;
	uint64_t milliseconds;
	enum NC_priority rank;
};

#define CTL_STAY 2

void ctl_stay_entries(struct ctl_stay *stay, GOptionEntry entries[CTL_STAY]);

/* Reads the words.  0 or CTL_USAGE. */
int ctl_stay_check(const struct ctl *ctl, struct ctl_stay *stay);

/* Does what they say.  0 or CTL_FAILURE. */
int ctl_stay_set(const struct ctl *ctl, const struct ctl_stay *stay, size_t id);
void ctl_stay_free(struct ctl_stay *stay);

typedef int ctl_principal_call(NC_cache *cache, size_t id, enum NC_principal principal,
			       uint32_t who);

/* How many there are. */
unsigned ctl_principals_count(const struct ctl_principals *principals);

/* Checks them before anything is done.  0 or CTL_USAGE. */
int ctl_principals_check(const struct ctl *ctl, const struct ctl_principals *principals);

/* Does the same for each of them, up to the first failure.  0 or CTL_FAILURE. */
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
