/* SPDX-License-Identifier: MIT */
/*
 * pool-config.h - a pool as configured: programs that answer requests, or addresses
 * of such programs.
 */
#ifndef SWEET_POOL_CONFIG_H
#define SWEET_POOL_CONFIG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "rules/variable.h"

enum pool_protocol { POOL_WORKER, POOL_FASTCGI, POOL_CGI, POOL_HTTP };

struct pool_config {
	_Atomic unsigned references;
	unsigned number; /* of the config's pools */
	char *name;	 /* of its group, or the prefix of an option */
	char *place;	 /* "FILE:LINE"; NULL: the command line */
	char *label;	 /* for messages: "pool NAME", or the option as given */

	bool mounted; /* made by an option */

	unsigned protocol;    /* enum pool_protocol */
	char *command;	      /* of a worker; NULL */
	char **argv;	      /* parsed from command */
	char *folder;	      /* of CGI programs; NULL */
	char *script_suffix;  /* suffix of scripts that a FastCGI application runs */
	char *suffix;	      /* the pool gets all files with it, wherever they are; NULL */
	char **hosts;	      /* sections whose files these are; empty: all */
	char **upstream;      /* addresses of FastCGI applications or HTTP servers; may be empty */
	unsigned processes;   /* of command; for CGI, programs at a time */
	unsigned in_flight;   /* requests of a thread in a process, or connections to an address */
	unsigned resolve_ms;  /* from one lookup of upstream's names to the next one */
	unsigned keep_ms;     /* how long a connection to an address is kept */
	bool trust_cache_ids; /* applications at upstream may name units of any member */
	char *user, *group;   /* NULL: the server's */
	char *directory;      /* working directory; NULL: the server's, or a CGI program's own */
	char **environment;   /* NAME=VALUE */
	char *preload;	      /* library for programs of libfcgi: "fcgi", then its path; NULL */
	struct variables variables; /* of requests */
	bool pass_authorization;
	unsigned symlinks;   /* enum symlinks: to CGI programs */
	char **accel;	     /* "internal" and folders that its programs may send; or NULL */
	char **upgrade;	     /* protocols that clients may switch to; or NULL */
	unsigned upgrade_ms; /* how long these may be silent */
	unsigned tunnels;    /* connections in such a protocol at once; 0: unlimited */
	unsigned tunnels_per_client; /* of these; 0: unlimited */
	char **methods; /* that its programs know, beside those that the server knows; or NULL */
	size_t memory;	/* bytes of a worker's segment */
	size_t memory_limit;	      /* bytes of a process; 0: unlimited */
	bool seccomp;		      /* refuse some system calls to its programs */
	unsigned max_requests;	      /* of a process, before it is replaced; 0: unlimited */
	unsigned queue;		      /* maximum of waiting requests of a thread */
	size_t max_response_header;   /* bytes of the head of a response */
	unsigned queue_ms, answer_ms; /* time to wait in the queue; time to respond */
	bool request_buffering;	      /* receive bodies completely before selecting a program */
	bool response_buffering;      /* buffer responses for slow clients on disk */
	size_t stream_ahead;	      /* bytes of a response that may wait for its client */
	unsigned slow_ms;	      /* how long a client may make a process wait; 0: unlimited */
};

/* The name of each protocol; ends with NULL. */
extern const char *const pool_protocols[];

/* label: NULL for that of a group. */
struct pool_config *pool_config_new(const char *name, const char *place, const char *label);
const struct pool_config *pool_config_ref(const struct pool_config *pool);
void pool_config_unref(const struct pool_config *pool);

/*
 * Makes the derived fields.  Returns false with a line in *why (g_free) if the
 * values do not fit together.
 */
bool pool_config_finish(struct pool_config *pool, char **why);

/* Checks that its files exist; returns the same. */
bool pool_config_check(const struct pool_config *pool, char **why);

/*
 * Returns the first of these variables that its programs do not get, since the server, which finds
 * them in a folder, sets it; NULL: they get all.
 */
const char *pool_config_withholds(const struct pool_config *pool,
				  const struct variables *variables);

/* Returns true if its programs know that method, which the server does not. */
bool pool_config_takes(const struct pool_config *pool, struct slice method);

/* Returns true if an address of upstream is the name of a host. */
bool pool_config_has_names(const struct pool_config *pool);

/* Returns true if its programs may lead requests to internal paths. */
bool pool_config_leads(const struct pool_config *pool);

/* Returns true if its programs run as another user, in another folder, or with a limit. */
bool pool_config_is_other(const struct pool_config *pool);

/* Returns true if both start the same programs in the same way. */
bool pool_config_same_program(const struct pool_config *one, const struct pool_config *other);

/* Returns true if processes of the one can be kept for the other. */
bool pool_config_same(const struct pool_config *one, const struct pool_config *other);

#endif
