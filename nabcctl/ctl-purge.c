/* SPDX-License-Identifier: MIT */
/*
 * ctl-purge.c - the command purge: makes the owner of a cache drop what it caches
 * under names; see ctl.h.
 */
#include <errno.h>
#include <glib.h>
#include <nabc.h>
#include <stdint.h>
#include <stdio.h>

#include <base/json.h>

#include "ctl.h"

static int failed(const struct ctl *ctl, const char *name, int error)
{
	switch (error) {
	case EINVAL:
		return ctl_complain("\"%s\": neither a URL (http://HOST/PATH or /PATH) nor a tag "
				    "(without blanks and commas)",
				    name);
	case EOPNOTSUPP:
		return ctl_complain("%s: the owner of the cache does not cache by name", ctl->path);
	}
	return ctl_cache_failed(ctl, "purging", error);
}

int ctl_purge(struct ctl *ctl, int argc, char **argv)
{
	gboolean soft = FALSE;
	const GOptionEntry entries[] = {
		{"soft", 0, 0, G_OPTION_ARG_NONE, &soft,
		 "Make them stale: they are used until new ones have come", NULL},
		{0},
	};
	int status = ctl_options(ctl, entries, &argc, &argv);
	struct json json = {.to = stdout};
	uint64_t purged = 0;

	if (!status && argc < 2)
		status = ctl_misused(ctl, "purge needs at least one URL or tag");
	if (!status)
		status = ctl_attach(ctl, CTL_OPERATOR);
	if (status)
		return status;
	/* If one fails, the others are still purged. */
	for (int i = 1; i < argc; i++) {
		char *name = g_strconcat(soft ? "soft " : "", argv[i], NULL);
		int count = NC_purge(ctl->cache, name), error = errno;

		g_free(name);
		if (count < 0)
			status = failed(ctl, argv[i], error);
		else
			purged += (uint64_t)count;
	}
	if (ctl->json) {
		json_open(&json, NULL, '{');
		json_number(&json, "purged", purged);
		json_close(&json, '}');
	} else {
		printf("%" G_GUINT64_FORMAT "\n", purged);
	}
	return ctl_flush() ? CTL_FAILURE : status;
}
