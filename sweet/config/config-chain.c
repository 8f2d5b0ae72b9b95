/* SPDX-License-Identifier: MIT */
/*
 * config-chain.c - see config-chain.h.
 */
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <string.h>

#include "config/config-chain.h"
#include "config/config-key.h"
#include "config/config-tree.h"

static void complain_of(struct config_tree *tree, const struct key *key, const char *place,
			const char *wrong, const char *must)
{
	if (place)
		config_tree_complain(tree, place, "%s \"%s\": %s", key->name, wrong, must);
	else
		config_tree_complain(tree, NULL, "--%s \"%s\": %s", key->name, wrong, must);
}

/* Returns what the section at that place of the chain says about the key, or NULL. */
static const struct given *given_at(const struct section *const *chain, unsigned place, unsigned at)
{
	const struct section *section = chain[place];
	unsigned levels = config_keys[at].levels;
	bool looks = true;

	if (levels & KEY_PATH)
		looks = section->levels & KEY_PATH;
	/*
	 * [sweet] also defines the default host, but other hosts do not inherit
	 * this key from it.
	 */
	if (levels & KEY_OWN && section->levels & KEY_GLOBAL)
		looks = place == 0 || chain[place - 1]->levels & (KEY_PATH | KEY_PATTERN);
	return looks && section->given[at].values ? &section->given[at] : NULL;
}

unsigned chain_nearest(const struct section *const *chain, unsigned at)
{
	unsigned place = 0;

	while (chain[place] && !given_at(chain, place, at))
		place++;
	return place;
}

/* Stores the nearest values, or the default. */
static void resolve_key(struct config_tree *tree, unsigned at, const struct section *const *chain,
			void *base)
{
	const struct key *key = &config_keys[at];
	const struct section *of = chain[chain_nearest(chain, at)];
	const struct given *given = of ? &of->given[at] : NULL;
	char **otherwise = NULL, *must;
	const char *wrong = "";

	if (!given && key->otherwise)
		otherwise = key->list ? g_strsplit(key->otherwise, ";", 0)
				      : g_strsplit(key->otherwise, "\n", 0);
	if (!given && !otherwise)
		return;
	must = key_store(key, given ? given->values : otherwise, base, &wrong);
	if (must)
		complain_of(tree, key, given ? given->place : "default", wrong, must);
	g_free(must);
	g_strfreev(otherwise);
}

void chain_resolve(struct config_tree *tree, unsigned levels, const struct section *const *chain,
		   void *base)
{
	for (unsigned i = 0; i < config_key_count; i++)
		if (config_keys[i].levels & levels)
			resolve_key(tree, i, chain, base);
}

unsigned chain_index(const struct section *const *chain, const char *name)
{
	return chain_nearest(chain, (unsigned)key_find(name, KEY_SCOPE | KEY_PATH));
}

const struct section *chain_giver(const struct section *const *chain, const char *name)
{
	return chain[chain_index(chain, name)];
}

const char *chain_place(const struct section *const *chain, const char *name)
{
	const struct section *section = chain_giver(chain, name);

	return section ? section->given[key_find(name, KEY_SCOPE | KEY_PATH)].place : NULL;
}

size_t chain_skip(const struct section *const *chain, unsigned place)
{
	return chain[place] ? strlen(chain[place]->prefix) : 0;
}
