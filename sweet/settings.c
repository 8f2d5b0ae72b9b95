/* SPDX-License-Identifier: MIT */
/*
 * settings.c - see settings.h.  Every key is one row of a table, used for the
 * command line (GOption) and for the file (GKeyFile) alike.
 */
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include <server.h>
#include <settings.h>

#define GROUP "sweet"

/* As given; NULL or empty: not given. */
struct given {
	char **listen, **worker;
	char *root, *threads, *workers, *worker_memory, *io, *access_log, *cache_size, *revalidate;
	char *cache_socket;
};

struct key {
	const char *name;
	size_t offset; /* in struct given */
	bool list;
	const char *help, *argument;
};

static const struct key keys[] = {
	{"listen", offsetof(struct given, listen), true,
	 "Address to serve on; may be repeated (127.0.0.1:8080)", "ADDRESS:PORT"},
	{"root", offsetof(struct given, root), false, "Folder to serve (.)", "DIR"},
	{"threads", offsetof(struct given, threads), false, "Event loops (one a CPU)", "N"},
	{"worker", offsetof(struct given, worker), true,
	 "Program that answers below a path; may be repeated", "/PREFIX=COMMAND"},
	{"workers", offsetof(struct given, workers), false, "Processes of each worker (2)", "N"},
	{"worker-memory", offsetof(struct given, worker_memory), false,
	 "Memory for the bodies of one process (64M)", "SIZE"},
	{"io", offsetof(struct given, io), false, "uring, epoll or auto (auto)", "KIND"},
	{"access-log", offsetof(struct given, access_log), false,
	 "File, - for standard output, or off (off)", "FILE"},
	{"cache-size", offsetof(struct given, cache_size), false, "Memory for the cache (256M)",
	 "SIZE"},
	{"cache-socket", offsetof(struct given, cache_socket), false,
	 "Let other processes attach to the cache there", "PATH"},
	{"revalidate", offsetof(struct given, revalidate), false,
	 "Trust a cached file that long before looking again, ms (0)", "MS"},
};

static void *field(struct given *given, const struct key *key)
{
	return (char *)given + key->offset;
}

static void given_free(struct given *given)
{
	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
		if (keys[i].list)
			g_strfreev(*(char ***)field(given, &keys[i]));
		else
			g_free(*(char **)field(given, &keys[i]));
	}
}

static bool read_arguments(struct given *given, char **config, gboolean *version, int argc,
			   char **argv, char **why)
{
	GOptionEntry entries[G_N_ELEMENTS(keys) + 3] = {{0}};
	GOptionContext *context = g_option_context_new(NULL);
	char **copy = g_new0(char *, argc + 1), **left = copy;
	GError *error = NULL;
	size_t n = 0;

	for (int i = 0; i < argc; i++)
		copy[i] = argv[i];
	for (; n < G_N_ELEMENTS(keys); n++)
		entries[n] = (GOptionEntry){
			keys[n].name,
			0,
			G_OPTION_FLAG_NONE,
			keys[n].list ? G_OPTION_ARG_STRING_ARRAY : G_OPTION_ARG_STRING,
			field(given, &keys[n]),
			keys[n].help,
			keys[n].argument};
	entries[n++] = (GOptionEntry){"config",
				      0,
				      G_OPTION_FLAG_NONE,
				      G_OPTION_ARG_STRING,
				      config,
				      "File with the same keys",
				      "FILE"};
	entries[n++] = (GOptionEntry){"version",
				      'V',
				      G_OPTION_FLAG_NONE,
				      G_OPTION_ARG_NONE,
				      version,
				      "Print the version and end",
				      NULL};
	g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_set_summary(context, "Serves files and workers' pages by cache id.");
	g_option_context_set_description(context, "See sweet(8) and sweet.conf(5).");
	if (!g_option_context_parse(context, &argc, &left, &error)) {
		*why = g_strdup_printf("%s (sweet --help lists the options)", error->message);
		g_error_free(error);
	} else if (argc > 1) {
		*why = g_strdup_printf("\"%s\": not an option (sweet --help lists them)", left[1]);
	}
	g_option_context_free(context);
	g_free(copy);
	return !*why;
}

static const struct key *find_key(const char *name)
{
	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

/* What the command line has not given comes from the file. */
static bool take_key(struct given *given, GKeyFile *file, const char *path, const char *name,
		     char **why)
{
	const struct key *key = find_key(name);
	GError *error = NULL;

	if (!key) {
		*why = g_strdup_printf("%s: unknown key \"%s\"", path, name);
		return false;
	}
	if (key->list) {
		char ***list = field(given, key);

		if (!*list)
			*list = g_key_file_get_string_list(file, GROUP, name, NULL, &error);
	} else {
		char **text = field(given, key);

		if (!*text)
			*text = g_key_file_get_string(file, GROUP, name, &error);
	}
	if (error) {
		*why = g_strdup_printf("%s: %s: %s", path, name, error->message);
		g_error_free(error);
		return false;
	}
	return true;
}

static bool read_file(struct given *given, const char *path, char **why)
{
	GKeyFile *file = g_key_file_new();
	char **groups = NULL, **names = NULL;
	GError *error = NULL;

	if (!g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, &error)) {
		*why = g_strdup_printf("%s: %s", path, error->message);
		g_error_free(error);
	}
	if (!*why)
		groups = g_key_file_get_groups(file, NULL);
	for (size_t i = 0; !*why && groups[i]; i++)
		if (strcmp(groups[i], GROUP) != 0)
			*why = g_strdup_printf("%s: unknown group [%s]", path, groups[i]);
	if (!*why)
		names = g_key_file_get_keys(file, GROUP, NULL, NULL);
	for (size_t i = 0; !*why && names && names[i]; i++)
		(void)take_key(given, file, path, names[i], why);
	g_strfreev(names);
	g_strfreev(groups);
	g_key_file_free(file);
	return !*why;
}

static bool read_number(const char *name, const char *text, int least, int most, int otherwise,
			int *value, char **why)
{
	guint64 number;

	*value = otherwise;
	if (!text)
		return true;
	if (g_ascii_string_to_unsigned(text, 10, (guint64)least, (guint64)most, &number, NULL)) {
		*value = (int)number;
		return true;
	}
	*why = g_strdup_printf("%s \"%s\": must be a number from %d to %d", name, text, least,
			       most);
	return false;
}

/* "64M": bytes, with K, M or G as powers of 1024. */
static bool read_size(const char *name, const char *text, size_t least, size_t otherwise,
		      size_t *value, char **why)
{
	const char *suffixes = "KMG", *suffix;
	guint64 number, unit = 1;
	char *end;

	*value = otherwise;
	if (!text)
		return true;
	number = g_ascii_isdigit(*text) ? g_ascii_strtoull(text, &end, 10) : 0;
	if (number && *end) {
		suffix = strchr(suffixes, g_ascii_toupper(*end));
		unit = suffix && !end[1] ? (guint64)1 << 10 * (suffix - suffixes + 1) : 0;
	}
	if (number && unit && number < ((guint64)1 << 40) / unit && number * unit >= least) {
		*value = number * unit;
		return true;
	}
	*why = g_strdup_printf("%s \"%s\": must be a size like 64M, at least %zuK", name, text,
			       least >> 10);
	return false;
}

static bool read_io(const char *text, enum loop_kind *kind, char **why)
{
	*kind = LOOP_AUTO;
	if (!text || strcmp(text, "auto") == 0)
		return true;
	*kind = LOOP_URING;
	if (strcmp(text, "uring") == 0)
		return true;
	*kind = LOOP_EPOLL;
	if (strcmp(text, "epoll") == 0)
		return true;
	*why = g_strdup_printf("io \"%s\": must be uring, epoll or auto", text);
	return false;
}

static bool settle(struct settings *settings, struct given *given, char **why)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int otherwise = cpus < 1 ? 1 : cpus > SERVER_THREADS_MAX ? SERVER_THREADS_MAX : (int)cpus;

	if (!read_number("threads", given->threads, 1, SERVER_THREADS_MAX, otherwise,
			 &settings->threads, why) ||
	    !read_number("workers", given->workers, 1, 256, 2, &settings->workers, why) ||
	    !read_number("revalidate", given->revalidate, 0, 3600000, 0, &settings->revalidate,
			 why) ||
	    !read_size("worker-memory", given->worker_memory, (size_t)1 << 20, (size_t)64 << 20,
		       &settings->worker_memory, why) ||
	    !read_size("cache-size", given->cache_size, (size_t)1 << 20, (size_t)256 << 20,
		       &settings->cache_size, why) ||
	    !read_io(given->io, &settings->io, why))
		return false;
	settings->listen =
		given->listen ? g_strdupv(given->listen) : g_strsplit("127.0.0.1:8080", ";", 0);
	settings->worker = given->worker ? g_strdupv(given->worker) : g_new0(char *, 1);
	settings->root = g_strdup(given->root ? given->root : ".");
	settings->cache_socket = g_strdup(given->cache_socket);
	settings->access_log = g_strdup(given->access_log ? given->access_log : "off");
	return true;
}

bool settings_read(struct settings *settings, int argc, char **argv, char **why)
{
	struct given given = {0};
	gboolean version = FALSE;
	char *config = NULL;
	bool good;

	*settings = (struct settings){0};
	*why = NULL;
	good = read_arguments(&given, &config, &version, argc, argv, why);
	if (good && config && !version)
		good = read_file(&given, config, why);
	if (good)
		good = settle(settings, &given, why);
	settings->version = version;
	g_free(config);
	given_free(&given);
	return good;
}

void settings_free(struct settings *settings)
{
	g_strfreev(settings->listen);
	g_strfreev(settings->worker);
	g_free(settings->root);
	g_free(settings->access_log);
	g_free(settings->cache_socket);
}
