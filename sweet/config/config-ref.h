/* SPDX-License-Identifier: MIT */
/*
 * config-ref.h - one thread's reference to a configuration: a transaction ends with
 * the configuration that it began with, while new ones use the next.
 *
 * Each belongs to one thread, so the counter needs no atomics.
 */
#ifndef SWEET_CONFIG_REF_H
#define SWEET_CONFIG_REF_H

#include "config/configuration.h"

struct config_ref {
	struct config *config; /* referenced */
	unsigned users; /* includes the thread's own, while this is the current configuration */
};

/* Takes the caller's reference to config. */
struct config_ref *config_ref_open(struct config *config);

static inline struct config_ref *config_ref_hold(struct config_ref *ref)
{
	ref->users++;
	return ref;
}

void config_ref_free(struct config_ref *ref);

static inline void config_ref_release(struct config_ref *ref)
{
	if (--ref->users == 0)
		config_ref_free(ref);
}

#endif
