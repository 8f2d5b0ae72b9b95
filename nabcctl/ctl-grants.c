/* SPDX-License-Identifier: MIT */
/*
 * ctl-grants.c - the command grants: to whom a unit is granted; see ctl.h.
 *
 * Users and groups have names here; a process has none, because its pid is as the owner
 * of the cache sees it.
 */
#include <base/json.h>
#include <errno.h>
#include <glib.h>
#include <grp.h>
#include <inttypes.h>
#include <nabc.h>
#include <pwd.h>
#include <stdio.h>

#include "ctl-show.h"
#include "ctl.h"

#define MANY 4096u /* more than any unit has */

static const char *principal_name(enum NC_principal principal)
{
	switch (principal) {
	case NC_PROCESS:
		return "process";
	case NC_USER:
		return "user";
	case NC_GROUP:
		return "group";
	default:
		return "unknown";
	}
}

/* "": it has none. */
static const char *name_of(const struct NC_grant_info *grant)
{
	const struct passwd *user = grant->principal == NC_USER ? getpwuid(grant->who) : NULL;
	const struct group *group = grant->principal == NC_GROUP ? getgrgid(grant->who) : NULL;

	return user ? user->pw_name : group ? group->gr_name : "";
}

static void grant_json(struct json *json, const struct NC_grant_info *grant)
{
	json_open(json, NULL, '{');
	json_text(json, "principal", principal_name(grant->principal));
	json_number(json, "who", grant->who);
	json_text(json, "name", name_of(grant));
	json_number(json, "imports", grant->imports);
	json_close(json, '}');
}

static void print_grant(const struct NC_grant_info *grant)
{
	char *name = ctl_printable(name_of(grant));

	printf("%-9s %10" PRIu32 " %-24s %7u\n", principal_name(grant->principal), grant->who,
	       *name ? name : "-", grant->imports);
	g_free(name);
}

static void print_grants(const struct ctl *ctl, const struct NC_grant_info *grants, unsigned count)
{
	struct json json = {.to = stdout};

	if (ctl->json)
		json_open(&json, NULL, '[');
	else
		printf("%-9s %10s %-24s %7s\n", "PRINCIPAL", "WHO", "NAME", "IMPORTS");
	for (unsigned i = 0; i < count; i++) {
		if (ctl->json)
			grant_json(&json, &grants[i]);
		else
			print_grant(&grants[i]);
	}
	if (ctl->json)
		json_close(&json, ']');
}

static int show(struct ctl *ctl, size_t id)
{
	struct NC_grant_info *grants = g_new(struct NC_grant_info, MANY);
	int count = NC_grants(ctl->cache, id, grants, sizeof(*grants), MANY), status;

	if (count >= 0) {
		print_grants(ctl, grants, (unsigned)count < MANY ? (unsigned)count : MANY);
		status = ctl_flush();
	} else if (errno == EOPNOTSUPP) {
		status = ctl_complain("%s: the owner of the cache is older than nabcctl, and does "
				      "not list grants",
				      ctl->path);
	} else {
		status = ctl_unit_failed(ctl, id, errno);
	}
	g_free(grants);
	return status;
}

int ctl_grants(struct ctl *ctl, int argc, char **argv)
{
	int status = ctl_options(ctl, NULL, &argc, &argv);
	size_t id = 0;

	if (!status && argc != 2)
		status = ctl_misused(ctl, "grants takes one id");
	if (!status && !ctl_read_id(argv[1], &id))
		status = ctl_misused(ctl, "\"%s\": not a cache id", argv[1]);
	if (!status)
		status = ctl_attach(ctl, CTL_OPERATOR);
	return status ? status : show(ctl, id);
}
