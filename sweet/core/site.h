/* SPDX-License-Identifier: MIT */
/*
 * site.h - what a configuration names, opened: the files of every folder, the
 * users of every password file.
 */
#ifndef SWEET_SITE_H
#define SWEET_SITE_H

#include "config/configuration.h"
#include "core/auth.h"
#include "event/thread-pool.h"
#include "files/file-cache.h"

struct site_options {
	struct thread_pool *thread_pool;     /* NULL: only to see whether all is there */
	struct authenticator *authenticator; /* NULL without a pool */
	size_t max_unit;		     /* bytes of the largest file to be cached */
};

/*
 * Opens what config names; folders that the previous configuration (may be
 * NULL) has too go on with what is cached of them.  It is given back with
 * config's last reference.  False: errors has a line for each that cannot be
 * opened (g_free), and config is to be let go of.
 */
bool site_open(struct config *config, const struct config *previous,
	       const struct site_options *options, GPtrArray *errors);

/* Adds what all folders have to what is there; each is counted once. */
void site_stat(const struct config *config, struct file_cache_stat *sum);

#endif
