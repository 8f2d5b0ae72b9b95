/* SPDX-License-Identifier: MIT */
/*
 * config-startup.c - see config-startup.h.
 */

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <nabc.h>

#include "config/config-startup.h"
#include "config/configuration.h"

enum kind { NUMBER, SIZE, SWITCH, TEXT };

static const struct {
	const char *name;
	enum kind kind;
	size_t offset;
} fixed[] = {
	{"threads", NUMBER, offsetof(struct config, threads)},
	{"arch", NUMBER, offsetof(struct config, arch)},
	{"io", NUMBER, offsetof(struct config, io)},
	{"data-path", NUMBER, offsetof(struct config, data_path)},
	{"tls-records", NUMBER, offsetof(struct config, tls_records)},
	{"registered-memory", SWITCH, offsetof(struct config, registered_memory)},
	{"cache-size", SIZE, offsetof(struct config, cache_size)},
	{"pin", SWITCH, offsetof(struct config, pin)},
	{"cache-socket", TEXT, offsetof(struct config, cache_socket)},
	{"user", TEXT, offsetof(struct config, user)},
	{"group", TEXT, offsetof(struct config, group)},
	{"read-only", SWITCH, offsetof(struct config, read_only)},
	{"pid-file", TEXT, offsetof(struct config, pid_file)},
	{"socket-memory", SIZE, offsetof(struct config, socket_memory)},
	{"spool-directory", TEXT, offsetof(struct config, spool_directory)},
	{"spool-size", SIZE, offsetof(struct config, spool_size)},
	{"spool-memory", SWITCH, offsetof(struct config, spool_memory)},
};

static bool is_same(enum kind kind, const void *one, const void *other)
{
	switch (kind) {
	case NUMBER:
		return *(const unsigned *)one == *(const unsigned *)other;
	case SIZE:
		return *(const size_t *)one == *(const size_t *)other;
	case SWITCH:
		return *(const bool *)one == *(const bool *)other;
	default:
		return g_strcmp0(*(char *const *)one, *(char *const *)other) == 0;
	}
}

char *config_startup_changes(const struct config *one, const struct config *other)
{
	GString *names = g_string_new(NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(fixed); i++)
		if (!is_same(fixed[i].kind, (const char *)one + fixed[i].offset,
			     (const char *)other + fixed[i].offset))
			g_string_append_printf(names, "%s%s", names->len ? ", " : "",
					       fixed[i].name);
	return g_string_free(names, names->len == 0);
}
