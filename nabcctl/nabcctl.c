/* SPDX-License-Identifier: MIT */
/* nabcctl.c - nabcctl(1): finds the command among the words and runs it. */
#include <glib.h>
#include <locale.h>
#include <nabc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

static const struct ctl_command commands[] = {
	{"stat", "[ID...]", "Print the cache's counters, or data of units",
	 "Without an id: the counters of the whole cache.  Owner of the cache and root only.",
	 ctl_stat},
	{"top", "", "Print the cache's activity at intervals",
	 "On a terminal, q or Ctrl-C quits.  Owner of the cache and root only.", ctl_top},
	{"routes", "[set ADDRESS METHOD]", "Print how messages are sent, or fix a method",
	 "Methods are copy, splice, zerocopy, and learn: the owner chooses again.  Addresses are "
	 "local\nones, \"unix\", or * for all.  Owner of the cache and root only.",
	 ctl_routes},
	{"list", "", "List the units",
	 "The owner of the cache and root see all of them, others those that they were "
	 "granted.",
	 ctl_list},
	{"get", "ID", "Write a unit to standard output", NULL, ctl_get},
	{"put", "FILE|-", "Create a unit from a file or standard input, print its id",
	 "A unit of the cache's owner or root remains until it is destroyed or evicted.  A unit\n"
	 "of another user remains for the owner's time limit unless --ttl is given, and the user\n"
	 "cannot use it later unless it is granted here.",
	 ctl_put},
	{"grant", "ID", "Permit others to use a unit", NULL, ctl_grant},
	{"grants", "ID", "Show to whom a unit is granted",
	 "Only the owner of the cache and root may run this.", ctl_grants},
	{"revoke", "ID", "Revoke a grant", NULL, ctl_revoke},
	{"keep", "ID", "Set lifetime and priority of a unit", NULL, ctl_keep},
	{"destroy", "ID...", "Destroy units", NULL, ctl_destroy},
	{"purge", "URL|TAG...", "Make the owner drop cached responses",
	 "A URL is http://HOST/PATH, or /PATH for all hosts; a * at its end matches all URLs\n"
	 "with that prefix.  Owner of the cache and root only.",
	 ctl_purge},
};

static char *list_commands(void)
{
	GString *text = g_string_new("Commands:\n");

	for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
		char *form = g_strdup_printf("%s %s", commands[i].name, commands[i].arguments);

		g_string_append_printf(text, "  %-27s %s\n", form, commands[i].summary);
		g_free(form);
	}
	g_string_append(text, "\nnabcctl COMMAND --help describes a command.  See nabcctl(1).");
	return g_string_free(text, FALSE);
}

static const struct ctl_command *find_command(const char *name)
{
	for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* Parses options before the command. */
static int read_options(struct ctl *ctl, gboolean *version, int *argc, char ***argv)
{
	const GOptionEntry entries[] = {
		{"cache", 0, 0, G_OPTION_ARG_FILENAME, &ctl->path,
		 "Socket of the cache ($NABC_CACHE)", "PATH"},
		{"json", 0, 0, G_OPTION_ARG_NONE, &ctl->json, "Print JSON", NULL},
		{"version", 'V', 0, G_OPTION_ARG_NONE, version, "Print the version and end", NULL},
		{0},
	};
	GOptionContext *context = g_option_context_new("COMMAND [ARGUMENT...]");
	char *text = list_commands();
	GError *error = NULL;
	int status = 0;

	g_set_prgname("nabcctl");
	g_option_context_set_strict_posix(context, TRUE);
	g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_set_summary(context, "Inspects and changes a running cache.");
	g_option_context_set_description(context, text);
	if (!g_option_context_parse(context, argc, argv, &error)) {
		status = ctl_misused(ctl, "%s", error->message);
		g_error_free(error);
	}
	g_option_context_free(context);
	g_free(text);
	return status;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	gboolean version = FALSE;
	int status = read_options(ctl, &version, &argc, &argv);

	if (status)
		return status;
	if (version) {
		printf("nabcctl (nabc) %s\n", PACKAGE_VERSION);
		return ctl_flush();
	}
	if (argc < 2)
		return ctl_misused(ctl, "no command given");
	ctl->command = find_command(argv[1]);
	if (!ctl->command)
		return ctl_misused(ctl, "\"%s\": no such command", argv[1]);
	return ctl->command->run(ctl, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	struct ctl ctl = {0};
	int status;

	/*
	 * File names are bytes, and numbers have decimal points: only characters
	 * depend on the locale.
	 */
	setlocale(LC_CTYPE, "");
	status = run(&ctl, argc, argv);
	if (ctl.cache)
		(void)NC_cache_close(ctl.cache);
	g_free(ctl.path);
	g_free(ctl.versions);
	return status;
}
