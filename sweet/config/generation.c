/* SPDX-License-Identifier: MIT */
/*
 * generation.c - see generation.h.
 */
#include "config/generation.h"

struct generation *generation_open(struct config *config)
{
	struct generation *generation = g_new0(struct generation, 1);

	generation->config = config;
	generation->users = 1;
	return generation;
}

void generation_free(struct generation *generation)
{
	config_unref(generation->config);
	g_free(generation);
}
