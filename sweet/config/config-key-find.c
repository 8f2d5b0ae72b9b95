/* SPDX-License-Identifier: MIT */
/*
 * config-key-find.c - finds keys by their names, suggests similar ones, and stores their values; see
 * config-key.h.
 */
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <glib.h>

#include "config/config-key.h"
#include "config/config-store.h"

#define DISTANCE_MAX 40 /* maximum length of a name for which similar keys are suggested */

/* The key "listen" of [host] has another meaning. */
int key_find(const char *name, unsigned levels)
{
	for (unsigned i = 0; i < config_key_count; i++)
		if (strcmp(config_keys[i].name, name) == 0 && config_keys[i].levels & levels)
			return (int)i;
	return -1;
}

/* Returns the number of letters to insert, delete or change to get from one to the other. */
static unsigned distance(const char *from, const char *to)
{
	unsigned row[DISTANCE_MAX + 1], length = (unsigned)strlen(to);

	if (length > DISTANCE_MAX)
		return UINT_MAX;
	for (unsigned k = 0; k <= length; k++)
		row[k] = k;
	for (unsigned i = 0; from[i]; i++) {
		unsigned diagonal = row[0];

		row[0] = i + 1;
		for (unsigned k = 0; k < length; k++) {
			unsigned other = diagonal + (from[i] != to[k]);

			diagonal = row[k + 1];
			row[k + 1] = MIN(other, MIN(row[k], diagonal) + 1);
		}
	}
	return row[length];
}

const char *key_like(const char *name, unsigned levels)
{
	unsigned least = (unsigned)strlen(name) / 3 + 1;
	char *lower = g_ascii_strdown(name, -1);
	const char *like = NULL;

	g_strdelimit(lower, "_ ", '-');
	for (unsigned i = 0; i < config_key_count; i++) {
		unsigned away = distance(lower, config_keys[i].name);

		if (config_keys[i].levels & levels && away < least) {
			least = away;
			like = config_keys[i].name;
		}
	}
	g_free(lower);
	return like;
}

const char *key_home(const char *name)
{
	if (key_find(name, KEY_GLOBAL | KEY_SITE) >= 0)
		return "[sweet]";
	if (key_find(name, KEY_POOL) >= 0)
		return "[pool NAME]";
	if (key_find(name, KEY_MAP) >= 0)
		return "[map NAME]";
	if (key_find(name, KEY_PATTERN) >= 0 && key_find(name, KEY_PATH) < 0)
		return "[pattern NAME]";
	return key_find(name, KEY_PATH) >= 0 ? "[path PREFIX]" : "[host NAME]";
}

char *key_store(const struct key *key, char **values, void *base, const char **wrong)
{
	const char *must = key->store(key, values, base, wrong);

	if (!must)
		return NULL;
	if (key->words) {
		char *words = g_strjoinv(", ", (char **)(uintptr_t)key->words);
		char *text = g_strdup_printf("%s %s", must, words);

		g_free(words);
		return text;
	}
	if (key->range)
		return g_strdup_printf("%s %s", must, key->range);
	if (key->store == store_number)
		return g_strdup_printf("%s from %llu to %llu", must, (unsigned long long)key->least,
				       (unsigned long long)key->most);
	return g_strdup(must);
}
