/* SPDX-License-Identifier: MIT */
/*
 * config-ref.c - see config-ref.h.
 */
#include "config/config-ref.h"

struct config_ref *config_ref_open(struct config *config)
{
	struct config_ref *ref = g_new0(struct config_ref, 1);

	ref->config = config;
	ref->users = 1;
	return ref;
}

void config_ref_free(struct config_ref *ref)
{
	config_release(ref->config);
	g_free(ref);
}
