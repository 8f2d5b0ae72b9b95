/* SPDX-License-Identifier: MIT */
/*
 * nabcctl.c - nabcctl(1): finds the command among the words and runs it.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

static const struct ctl_command commands[] = {
	{"stat", "[ID...]", "Show what the cache has done, or what units are",
	 "Without an id the counters of the whole cache, for its owner and root alone.", ctl_stat},
	{"top", "", "Show what the cache does, again and again",
	 "On a terminal q or Ctrl-C ends it.  For the owner of the cache and root alone.", ctl_top},
	{"routes", "[set ADDRESS METHOD]", "Show how messages are sent, or say how they are to be",
	 "Methods are copy, splice, zerocopy, and learn: the owner chooses again.  Addresses are "
	 "local\nones, \"unix\", or * for all.  For the owner of the cache and root alone.",
	 ctl_routes},
	{"list", "", "List the units",
	 "All of them for the owner of the cache and root; for others those that they were "
	 "granted.",
	 ctl_list},
	{"get", "ID", "Write a unit to standard output", NULL, ctl_get},
	{"put", "FILE|-", "Make a unit of a file or of standard input, and print its id",
	 "What the owner of the cache or root puts stays until it is destroyed or evicted.  What\n"
	 "others put stays for as long as the owner lets it, unless --ttl is given, and they "
	 "cannot\n"
	 "use it later unless it is granted here.",
	 ctl_put},
	{"grant", "ID", "Let others use a unit", NULL, ctl_grant},
	{"grants", "ID", "Show whom a unit is granted to",
	 "For the owner of the cache and root alone.", ctl_grants},
	{"revoke", "ID", "Take that leave away", NULL, ctl_revoke},
	{"keep", "ID", "Say how long a unit stays", NULL, ctl_keep},
	{"destroy", "ID...", "Destroy units", NULL, ctl_destroy},
	{"purge", "URL|TAG...", "Let the owner forget answers that it keeps",
	 "A URL is http://HOST/PATH, or /PATH for all hosts; with a * at its end it stands for\n"
	 "all that begin so.  For the owner of the cache and root alone.",
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
	g_string_append(text, "\nnabcctl COMMAND --help tells more of each.  See nabcctl(1).");
	return g_string_free(text, FALSE);
}

static const struct ctl_command *find_command(const char *name)
{
	for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* What stands before the command. */
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
	g_option_context_set_summary(context, "Looks into a running cache, and changes it.");
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
		return ctl_misused(ctl, "which command?");
	ctl->command = find_command(argv[1]);
	if (!ctl->command)
		return ctl_misused(ctl, "\"%s\": no such command", argv[1]);
	return ctl->command->run(ctl, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	struct ctl ctl = {0};
	int status;

	/* Names of files are bytes, numbers have points: only letters are the user's. */
	setlocale(LC_CTYPE, "");
	status = run(&ctl, argc, argv);
	if (ctl.cache)
		(void)NC_cache_close(ctl.cache);
	g_free(ctl.path);
	g_free(ctl.versions);
	return status;
}
