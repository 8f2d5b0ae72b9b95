/* SPDX-License-Identifier: MIT */
/*
 * ctl-word.c - parses words of the command line: numbers, grantees, lifetime and
 * priority; see ctl.h.
 */
#include <errno.h>
#include <glib.h>
#include <grp.h>
#include <nabc.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ctl.h"

bool ctl_read_id(const char *word, size_t *id)
{
	bool hexadecimal = g_ascii_strncasecmp(word, "0x", 2) == 0;
	guint64 number;

	if (!g_ascii_string_to_unsigned(word + (hexadecimal ? 2 : 0), hexadecimal ? 16 : 10, 1,
					SIZE_MAX, &number, NULL))
		return false;
	*id = number;
	return true;
}

bool ctl_read_size(const char *word, uint64_t *size)
{
	guint64 number;

	if (!g_ascii_string_to_unsigned(word, 10, 0, G_MAXUINT64, &number, NULL))
		return false;
	*size = number;
	return true;
}

static bool read_number(const char *word, guint64 least, guint64 most, uint32_t *who)
{
	guint64 number;

	if (!g_ascii_string_to_unsigned(word, 10, least, most, &number, NULL))
		return false;
	*who = (uint32_t)number;
	return true;
}

/* Like chown(1): first as a name, then as a number. */
static bool read_principal(enum NC_principal principal, const char *word, uint32_t *who)
{
	const struct passwd *user;
	const struct group *group;

	switch (principal) {
	case NC_USER:
		user = getpwnam(word);
		if (user)
			*who = user->pw_uid;
		return user || read_number(word, 0, G_MAXUINT32 - 1, who);
	case NC_GROUP:
		group = getgrnam(word);
		if (group)
			*who = group->gr_gid;
		return group || read_number(word, 0, G_MAXUINT32 - 1, who);
	default:
		return read_number(word, 1, G_MAXINT32, who);
	}
}

static const struct kind_of_principal {
	enum NC_principal principal;
	const char *name;
} kinds[CTL_PRINCIPALS] = {
	[CTL_PIDS] = {NC_PROCESS, "process"},
	[CTL_USERS] = {NC_USER, "user"},
	[CTL_GROUPS] = {NC_GROUP, "group"},
};

void ctl_principals_entries(struct ctl_principals *principals, GOptionEntry entries[CTL_PRINCIPALS])
{
	static const GOptionEntry all[CTL_PRINCIPALS] = {
		[CTL_PIDS] = {"pid", 0, 0, G_OPTION_ARG_STRING_ARRAY, NULL, "For a process", "PID"},
		[CTL_USERS] = {"user", 0, 0, G_OPTION_ARG_STRING_ARRAY, NULL,
			       "For all processes of a user", "NAME|UID"},
		[CTL_GROUPS] = {"group", 0, 0, G_OPTION_ARG_STRING_ARRAY, NULL,
				"For all processes of a group", "NAME|GID"},
	};

	for (unsigned i = 0; i < CTL_PRINCIPALS; i++) {
		entries[i] = all[i];
		entries[i].arg_data = &principals->words[i];
	}
}

unsigned ctl_principals_count(const struct ctl_principals *principals)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CTL_PRINCIPALS; i++)
		for (char **word = principals->words[i]; word && *word; word++)
			count++;
	return count;
}

int ctl_principals_check(const struct ctl *ctl, const struct ctl_principals *principals)
{
	uint32_t who;

	for (unsigned i = 0; i < CTL_PRINCIPALS; i++)
		for (char **word = principals->words[i]; word && *word; word++)
			if (!read_principal(kinds[i].principal, *word, &who))
				return ctl_misused(ctl, "\"%s\": no such %s", *word, kinds[i].name);
	return 0;
}

static int principal_failed(const struct ctl *ctl, const struct kind_of_principal *kind,
			    const char *word, size_t id, int error)
{
	switch (error) {
	case ESRCH:
		return ctl_complain("%s %s: no such process: it may have ended", kind->name, word);
	case ENOSPC:
		return ctl_complain("unit %zu: it has too many grants: revoke some", id);
	case EDQUOT:
		return ctl_complain("unit %zu: no quota is left for the copy that a grant needs",
				    id);
	case ENOENT:
		return ctl_complain("unit %zu, %s %s: no such unit, or no such grant", id,
				    kind->name, word);
	}
	return ctl_unit_failed(ctl, id, error);
}

int ctl_principals_each(const struct ctl *ctl, const struct ctl_principals *principals, size_t id,
			ctl_principal_call *call)
{
	uint32_t who;

	for (unsigned i = 0; i < CTL_PRINCIPALS; i++)
		for (char **word = principals->words[i]; word && *word; word++) {
			errno = ESRCH;
			if (!read_principal(kinds[i].principal, *word, &who) ||
			    call(ctl->cache, id, kinds[i].principal, who) < 0)
				return principal_failed(ctl, &kinds[i], *word, id, errno);
		}
	return 0;
}

void ctl_principals_free(struct ctl_principals *principals)
{
	for (unsigned i = 0; i < CTL_PRINCIPALS; i++)
		g_strfreev(principals->words[i]);
}

/* --- lifetime and priority ----------------------------------------------------- */

void ctl_stay_entries(struct ctl_stay *stay, GOptionEntry entries[CTL_STAY])
{
	entries[0] = (GOptionEntry){"ttl",
				    0,
				    0,
				    G_OPTION_ARG_STRING,
				    &stay->seconds,
				    "Expire after SECONDS (0: never)",
				    "SECONDS"};
	entries[1] = (GOptionEntry){"priority",
				    0,
				    0,
				    G_OPTION_ARG_STRING,
				    &stay->priority,
				    "low, normal, high or pinned",
				    "PRIORITY"};
}

static bool read_milliseconds(const char *word, uint64_t *milliseconds)
{
	char *end;
	double seconds = g_ascii_strtod(word, &end);

	if (!g_ascii_isdigit(*word) || *end || !(seconds >= 0 && seconds < 1e15))
		return false;
	*milliseconds = (uint64_t)(seconds * 1000);
	/* A very short time must not become 0, which means no expiry. */
	if (!*milliseconds && seconds > 0)
		*milliseconds = 1;
	return true;
}

int ctl_stay_check(const struct ctl *ctl, struct ctl_stay *stay)
{
	static const char *const ranks[] = {[NC_PRIORITY_LOW] = "low",
					    [NC_PRIORITY_NORMAL] = "normal",
					    [NC_PRIORITY_HIGH] = "high",
					    [NC_PRIORITY_PINNED] = "pinned"};
	unsigned rank = 0;

	if (stay->seconds && !read_milliseconds(stay->seconds, &stay->milliseconds))
		return ctl_misused(ctl, "--ttl \"%s\": must be a number of seconds", stay->seconds);
	if (!stay->priority)
		return 0;
	while (rank < G_N_ELEMENTS(ranks) && strcmp(stay->priority, ranks[rank]) != 0)
		rank++;
	if (rank == G_N_ELEMENTS(ranks))
		return ctl_misused(ctl, "--priority \"%s\": must be low, normal, high or pinned",
				   stay->priority);
	stay->rank = (enum NC_priority)rank;
	return 0;
}

int ctl_stay_set(const struct ctl *ctl, const struct ctl_stay *stay, size_t id)
{
	if (stay->priority && NC_set_priority(ctl->cache, id, stay->rank) < 0)
		return errno == EPERM
			       ? ctl_complain(
					 "unit %zu: only the owner of the cache and root may set "
					 "priority %s",
					 id, stay->priority)
			       : ctl_unit_failed(ctl, id, errno);
	if (stay->seconds && NC_set_lifetime(ctl->cache, id, stay->milliseconds) < 0)
		return errno == EINVAL
			       ? ctl_complain(
					 "unit %zu: a lifetime of %s seconds is more than a year",
					 id, stay->seconds)
			       : ctl_unit_failed(ctl, id, errno);
	return 0;
}

void ctl_stay_free(struct ctl_stay *stay)
{
	g_free(stay->seconds);
	g_free(stay->priority);
}
