/* SPDX-License-Identifier: MIT */
/*
 * site.h - opens what a configuration names: the files of each directory, the users of each
 * password file, the certificates of each host.
 */
#ifndef SWEET_SITE_H
#define SWEET_SITE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

struct config;
struct file_cache_stat;

struct site_options {
	struct thread_pool *thread_pool;     /* NULL: only check that everything exists */
	struct compressor *compressor;	     /* NULL: no variants are made */
	struct authenticator *authenticator; /* NULL if thread_pool is NULL */
	size_t max_unit;		     /* bytes of the largest file to cache */
	struct tls_tickets *tickets;	     /* of TLS sessions; NULL: none are resumed */
	struct key_opener *opener;	     /* opens certificates; NULL: this process does */
};

/*
 * Opens what config names; directories that the previous configuration (may be NULL) also has keep
 * their cached files.  Everything is released with the last reference to config.  Returns false
 * with a line in errors (g_free()) for each failure; then the caller has to release config.
 */
bool site_open(struct config *config, const struct config *previous,
	       const struct site_options *options, GPtrArray *errors);

/*
 * Opens the certificates alone; site_open() does not open them again then.  For a process that will
 * drop the privilege.  Returns as site_open().
 */
bool site_open_tls(struct config *config, const struct site_options *options, GPtrArray *errors);

/* Adds the statistics of all directories to sum; each directory counts once. */
void site_stat(const struct config *config, struct file_cache_stat *sum);

#endif
