/* SPDX-License-Identifier: MIT */
/*
 * site.h - a configuration in use: the text, which is constant, and beside it what is open for each
 * of its parts: the files of each directory, the users of each password file, the certificates of
 * each host, the programs of each pool.
 *
 * Each start and each reload makes one (a generation).  A part is found by its number, in an array:
 * a request takes no lock for it.
 */
#ifndef SWEET_SITE_H
#define SWEET_SITE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/configuration.h"

struct auth;
struct file_cache;
struct file_cache_stat;
struct gateway_pool;
struct pool_config;
struct rate_limit;
struct tls_file;
struct tls_identity;

/* What is open for a scope. */
struct site_scope {
	char *folder;		       /* its alias or root as an absolute path */
	struct file_cache *file_cache; /* the files in it */
	struct auth *auth;	       /* its users; NULL: no passwords */
	struct rate_limit *rate;       /* NULL: none */
};

/* What is open for a host. */
struct site_host {
	struct tls_identity *tls; /* NULL: no address has TLS */
	struct tls_file *answers; /* its answer_folder; NULL: it is not open */
};

struct site {
	_Atomic unsigned references;
	const struct config *config; /* a reference */
	unsigned number;    /* of the generation: 1, incremented by each reload; 0: not open */
	uint64_t opened_ms; /* since 1970 */
	struct site_scope *scopes; /* by the number of the scope */
	struct site_host *hosts;   /* by that of the host */
	_Atomic bool *reported;	   /* by the number of the pattern: that it backtracks too much */
	/* Of gateway/gateway.c: by that of the pool; and what releases one. */
	struct gateway_pool **pools;
	void (*release_pool)(struct gateway_pool *pool);
};

struct site_options {
	struct thread_pool *thread_pool;     /* NULL: only check that everything exists */
	struct compressor *compressor;	     /* NULL: no variants are made */
	struct authenticator *authenticator; /* NULL if thread_pool is NULL */
	size_t max_unit;		     /* bytes of the largest file to cache */
	struct tls_tickets *tickets;	     /* of TLS sessions; NULL: none are resumed */
	struct key_opener *opener;	     /* opens certificates; NULL: this process does */
};

/* Takes the caller's reference to config.  Nothing is open yet. */
struct site *site_new(const struct config *config);

/* Any thread; the last release (NULL: of none) closes everything. */
struct site *site_hold(struct site *site);
void site_release(struct site *site);

/*
 * Opens what the configuration names; directories that the previous site (may be NULL) also has keep
 * their cached files.  Returns false with a line in errors (g_free()) for each failure; then the
 * caller has to release the site.
 */
bool site_open(struct site *site, const struct site *previous, const struct site_options *options,
	       GPtrArray *errors);

/*
 * Opens the certificates alone; site_open() does not open them again then.  For a process that will
 * drop the privilege.  Returns as site_open().
 */
bool site_open_tls(struct site *site, const struct site_options *options, GPtrArray *errors);

/* Checks that what config names can be opened; nothing stays open.  Adds errors as site_open(). */
void site_check(const struct config *config, GPtrArray *errors);

/* Adds the statistics of all directories to sum; each directory counts once. */
void site_stat(const struct site *site, struct file_cache_stat *sum);

/*
 * One thread's reference to a site: a transaction ends with the configuration that it began with,
 * while new ones use the next.  It belongs to one thread, so the counter needs no atomics.
 */
struct config_ref {
	struct site *site;	     /* referenced */
	const struct config *config; /* its configuration */
	unsigned users; /* includes the thread's own, while this is the current configuration */
};

/* Returns what is open for a scope of that configuration. */
static inline const struct site_scope *site_scope(const struct config_ref *ref,
						  const struct scope *scope)
{
	return &ref->site->scopes[scope->number];
}

/* The same for a host. */
static inline const struct site_host *site_host(const struct config_ref *ref,
						const struct host *host)
{
	return &ref->site->hosts[host->number];
}

/* Returns what runs for a pool. */
struct gateway_pool *site_pool(const struct config_ref *ref, const struct pool_config *pool);

/* Takes the caller's reference to site. */
struct config_ref *config_ref_open(struct site *site);

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
