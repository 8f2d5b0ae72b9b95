/* SPDX-License-Identifier: MIT */
/*
 * ctl.c - messages, options, and the cache; see ctl.h.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl.h"

/* --- failures ------------------------------------------------------------------- */

/* Writes a whole line to standard error at once, so that lines of several processes do not mix. */
static void report(const char *format, va_list arguments, const char *end)
{
	char *text = g_strdup_vprintf(format, arguments);

	fprintf(stderr, "nabcctl: %s%s\n", text, end);
	g_free(text);
}

int ctl_complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report(format, arguments, "");
	va_end(arguments);
	return CTL_FAILURE;
}

int ctl_misused(const struct ctl *ctl, const char *format, ...)
{
	const char *name = ctl->command ? ctl->command->name : "";
	char *end = g_strdup_printf(" (see nabcctl %s%s--help)", name, *name ? " " : "");
	va_list arguments;

	va_start(arguments, format);
	report(format, arguments, end);
	va_end(arguments);
	g_free(end);
	return CTL_USAGE;
}

/* A path that refuses connections may not be a socket. */
static const char *why_refused(const char *path)
{
	struct stat found;

	if (stat(path, &found) == 0 && !S_ISSOCK(found.st_mode))
		return "is not a socket: give the path of the cache's socket";
	return "no process serves a cache there: restart its owner";
}

static const char *why_not_joined(const char *path, enum ctl_role role, int error)
{
	switch (error) {
	case ENOENT:
		return "no such socket: start the program that owns the cache, or give its path";
	case EACCES:
		return "permission denied: run as the owner of the cache or as root, or let the "
		       "owner admit this user";
	case EPERM:
		return role == CTL_OPERATOR ? "permission denied: only the owner of the "
					      "cache and root may run this command"
					    : "permission denied";
	case ECONNREFUSED:
		return why_refused(path);
	case EPROTOTYPE:
	case EPROTO:
		return "not the socket of a cache";
	case EPIPE:
	case ECONNRESET:
		return "the owner of the cache hung up: it has ended, or is out of memory";
	case ETIMEDOUT:
		return "the owner of the cache does not answer: it may be stopped or overloaded";
	}
	return strerror(error);
}

int ctl_cache_failed(const struct ctl *ctl, const char *what, int error)
{
	if (error == EPIPE)
		return ctl_complain("%s: %s: the owner of the cache has ended", ctl->path, what);
	return ctl_complain("%s: %s: %s", ctl->path, what,
			    why_not_joined(ctl->path, CTL_ANYBODY, error));
}

int ctl_unit_failed(const struct ctl *ctl, size_t id, int error)
{
	switch (error) {
	case ENOENT:
		return ctl_complain("unit %zu: not in the cache: it was destroyed or evicted, or "
				    "never existed",
				    id);
	case EACCES:
		return ctl_complain("unit %zu: permission denied: let its maker, the owner of the "
				    "cache or root grant it",
				    id);
	case EMFILE:
		return ctl_complain(
			"unit %zu: the owner has no free file descriptor: raise its RLIMIT_NOFILE",
			id);
	case ENOMEM:
		return ctl_complain("unit %zu: the cache has no memory left", id);
	case EPIPE:
	case ETIMEDOUT:
	case EPROTO:
		return ctl_cache_failed(ctl, "calling the owner", error);
	}
	return ctl_complain("unit %zu: %s", id, strerror(error));
}

int ctl_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	/* The reader of standard output has exited. */
	return errno == EPIPE ? CTL_FAILURE : ctl_complain("standard output: %s", strerror(errno));
}

/* --- options and the cache --------------------------------------------------------- */

int ctl_options(struct ctl *ctl, const GOptionEntry *entries, int *argc, char ***argv)
{
	char *path = NULL;
	const GOptionEntry common[] = {
		{"cache", 0, 0, G_OPTION_ARG_FILENAME, &path, "Socket of the cache ($NABC_CACHE)",
		 "PATH"},
		{"json", 0, 0, G_OPTION_ARG_NONE, &ctl->json, "Print JSON", NULL},
		{0},
	};
	const struct ctl_command *command = ctl->command;
	GOptionContext *context = g_option_context_new(command->arguments);
	char *name = g_strdup_printf("nabcctl %s", command->name);
	char *summary = g_strdup_printf("%s.", command->summary);
	GError *error = NULL;
	int status = 0;

	g_set_prgname(name);
	if (entries)
		g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_add_main_entries(context, common, NULL);
	g_option_context_set_summary(context, summary);
	g_option_context_set_description(context,
					 command->more ? command->more : "See nabcctl(1).");
	if (!g_option_context_parse(context, argc, argv, &error)) {
		status = ctl_misused(ctl, "%s: %s", command->name, error->message);
		g_error_free(error);
	} else if (*argc > 1 && strcmp((*argv)[1], "--") == 0) {
		/* It only ends the options: remove it. */
		memmove(*argv + 1, *argv + 2, ((size_t)*argc - 1) * sizeof(**argv));
		--*argc;
	}
	if (path) {
		g_free(ctl->path);
		ctl->path = path;
	}
	g_option_context_free(context);
	g_free(summary);
	g_free(name);
	return status;
}

/* Keeps the library's last message: it states why attaching failed. */
static void ctl_hear(void *context, int priority, const char *message)
{
	struct ctl *ctl = context;

	(void)priority;
	g_free(ctl->versions);
	ctl->versions = g_strdup(message);
}

static bool join(struct ctl *ctl, unsigned flags)
{
	struct NC_attach_options options =
		NC_ATTACH_OPTIONS_INIT(.flags = flags, .log = ctl_hear, .log_context = ctl);

	ctl->cache = NC_cache_attach(ctl->path, &options);
	return ctl->cache;
}

int ctl_attach(struct ctl *ctl, enum ctl_role role)
{
	const char *path = g_getenv("NABC_CACHE");
	bool joined;

	if (!ctl->path && path && *path)
		ctl->path = g_strdup(path);
	if (!ctl->path || !*ctl->path)
		return ctl_misused(ctl, "no cache given: use --cache PATH or set NABC_CACHE");
	ctl->operates = true;
	joined = join(ctl, NC_ATTACH_OPERATOR);
	if (!joined && role == CTL_ANYBODY && errno == EPERM) {
		ctl->operates = false;
		joined = join(ctl, NC_ATTACH_LIGHT);
	}
	if (joined)
		return 0;
	if (errno == EPROTONOSUPPORT && ctl->versions)
		return ctl_complain("%s: %s", ctl->path, ctl->versions);
	return ctl_complain("%s: %s", ctl->path, why_not_joined(ctl->path, role, errno));
}
