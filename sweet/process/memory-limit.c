/* SPDX-License-Identifier: MIT */
/*
 * memory-limit.c - see memory-limit.h.
 *
 * The kernel names the groups by their paths in a hierarchy (/proc/self/cgroup),
 * and the mount points of the hierarchies (/proc/self/mountinfo), which may show
 * only a subtree.  A limit applies to all groups below it, so this reads the limits
 * in each folder from the process's own up to the mount point.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/memory-limit.h"

#define MIB ((uint64_t)1 << 20)
#define CACHE_LEAST MIB /* minimum of the library */
#define CACHE_PART 4	/* of the memory: without swap a cache cannot be paged out */
#define CONNECTIONS_PART 2
#define CONNECTIONS_LEAST 64u
#define LINE_MAX_BYTES 4096
#define PATH_BYTES (2 * LINE_MAX_BYTES + 64)

struct search {
	struct memory_limit *limit;
	const char *root;
};

/* Reads a file's first line, without its end; returns false if it cannot be read. */
static bool read_line(const char *path, char line[LINE_MAX_BYTES])
{
	FILE *file = fopen(path, "re");
	bool good = file && fgets(line, LINE_MAX_BYTES, file);

	if (file)
		fclose(file);
	if (good)
		line[strcspn(line, "\n")] = '\0';
	return good;
}

static void take(struct search *search, uint64_t bytes, const char *what)
{
	if (bytes >= search->limit->bytes)
		return;
	search->limit->bytes = bytes;
	snprintf(search->limit->what, sizeof(search->limit->what), "%s", what);
}

/* Takes the number in text, if it is one: "max" is not. */
static void take_text(struct search *search, const char *text, const char *what)
{
	unsigned long long bytes;
	char *end;

	if (*text < '0' || *text > '9')
		return;
	errno = 0;
	bytes = strtoull(text, &end, 10);
	if (!errno && !*end)
		take(search, bytes, what);
}

static void look_at(struct search *search, const char *folder)
{
	/*
	 * Above memory.high the kernel does not kill the process, but stops it to
	 * reclaim memory.
	 */
	static const char *const names[] = {"memory.max", "memory.limit_in_bytes", "memory.high"};
	char path[PATH_BYTES], line[LINE_MAX_BYTES];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		if (read_line(path, line))
			take_text(search, line, path + strlen(search->root));
	}
}

/* Version 1 also reports the limit of groups that are not visible from here. */
static void look_above(struct search *search, const char *folder)
{
	static const char key[] = "hierarchical_memory_limit ";
	char path[PATH_BYTES], line[LINE_MAX_BYTES];
	FILE *file;

	snprintf(path, sizeof(path), "%s/memory.stat", folder);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, key, sizeof(key) - 1) == 0)
			take_text(search, line + sizeof(key) - 1, path + strlen(search->root));
	}
	if (file)
		fclose(file);
}

/* Returns true if word is in a list separated by commas. */
static bool lists(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
		if (strncmp(list, word, length) == 0 && (!list[length] || list[length] == ','))
			return true;
	return false;
}

/*
 * Finds the path of this process's group in the hierarchy of that version; returns
 * false if it has none.
 */
static bool find_group(const struct search *search, bool second, char group[LINE_MAX_BYTES])
{
	char path[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", search->root);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file)) {
		char *at = line, *number, *controllers;

		line[strcspn(line, "\n")] = '\0';
		number = strsep(&at, ":");
		controllers = strsep(&at, ":");
		if (!at)
			continue;
		found = second ? strcmp(number, "0") == 0 && !*controllers
			       : lists(controllers, "memory");
		if (found)
			snprintf(group, LINE_MAX_BYTES, "%s", at);
	}
	if (file)
		fclose(file);
	return found;
}

/* In mountinfo, "\\040" is a blank. */
static void decode(char *text)
{
	char *to = text;

	for (; *text; to++) {
		unsigned value;

		if (*text == '\\' && sscanf(text + 1, "%3o", &value) == 1 && value < 256) {
			*to = (char)value;
			text += 4;
		} else {
			*to = *text++;
		}
	}
	*to = '\0';
}

/* Returns the group's path below a mount that shows the hierarchy from top; "": not visible. */
static const char *below(const char *group, const char *top)
{
	size_t length = strcmp(top, "/") == 0 ? 0 : strlen(top);

	/* "/..": it is outside of this process's namespace. */
	if (strncmp(group, top, length) != 0 || (group[length] && group[length] != '/') ||
	    strstr(group, "/.."))
		return "";
	return strcmp(group + length, "/") == 0 ? "" : group + length;
}

static void look_at_mount(struct search *search, const char *top, const char *mount, bool second)
{
	char group[LINE_MAX_BYTES], folder[2 * LINE_MAX_BYTES], own[2 * LINE_MAX_BYTES];
	size_t least;

	if (!find_group(search, second, group))
		return;
	least = (size_t)snprintf(folder, sizeof(folder), "%s%s", search->root, mount);
	snprintf(folder + least, sizeof(folder) - least, "%s", below(group, top));
	snprintf(own, sizeof(own), "%s", folder);
	for (char *slash = folder; slash;) {
		look_at(search, folder);
		slash = strrchr(folder + least, '/');
		if (slash)
			*slash = '\0';
	}
	/* Last, so that of equal limits those that name their group count. */
	if (!second)
		look_above(search, own);
}

/* "36 35 98:0 TOP MOUNT OPTIONS [MORE...] - TYPE SOURCE SUPER". */
static void look_at_line(struct search *search, char *line)
{
	char *at = line, *top = NULL, *mount = NULL, *type, *super;

	for (unsigned i = 0; i < 5 && at; i++) {
		top = mount;
		mount = strsep(&at, " ");
	}
	at = at ? strstr(at, " - ") : NULL;
	if (!at)
		return;
	at += 3;
	type = strsep(&at, " ");
	(void)strsep(&at, " ");
	super = at;
	if (!super)
		return;
	super[strcspn(super, "\n")] = '\0';
	decode(top);
	decode(mount);
	if (strcmp(type, "cgroup2") == 0)
		look_at_mount(search, top, mount, true);
	else if (strcmp(type, "cgroup") == 0 && lists(super, "memory"))
		look_at_mount(search, top, mount, false);
}

static void look_at_machine(struct search *search)
{
	char path[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
	unsigned long long kib;

	snprintf(path, sizeof(path), "%s/proc/meminfo", search->root);
	if (read_line(path, line) && sscanf(line, "MemTotal: %llu kB", &kib) == 1 &&
	    kib <= UINT64_MAX / 1024)
		take(search, kib * 1024, "this machine");
}

void memory_limit_find(struct memory_limit *limit, const char *root)
{
	struct search search = {.limit = limit, .root = root};
	char path[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
	FILE *file;

	*limit = (struct memory_limit){.bytes = UINT64_MAX, .what = "this machine"};
	look_at_machine(&search);
	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		look_at_line(&search, line);
	if (file)
		fclose(file);
}

size_t memory_limit_cache(const struct memory_limit *limit)
{
	uint64_t part = limit->bytes / CACHE_PART / MIB * MIB;

	if (part > MEMORY_LIMIT_CACHE_MOST)
		return MEMORY_LIMIT_CACHE_MOST;
	return part < CACHE_LEAST ? CACHE_LEAST : part;
}

unsigned memory_limit_connections(const struct memory_limit *limit)
{
	uint64_t count = limit->bytes / CONNECTIONS_PART / MEMORY_LIMIT_CONNECTION;

	if (count > MEMORY_LIMIT_CONNECTIONS_MOST)
		return MEMORY_LIMIT_CONNECTIONS_MOST;
	return count < CONNECTIONS_LEAST ? CONNECTIONS_LEAST : (unsigned)count;
}

const char *memory_text(uint64_t bytes, char text[MEMORY_TEXT_MAX])
{
	bool large = bytes >= MIB;

	snprintf(text, MEMORY_TEXT_MAX, "%llu%c",
		 (unsigned long long)(bytes / (large ? MIB : 1024)), large ? 'M' : 'K');
	return text;
}
