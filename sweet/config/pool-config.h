/* SPDX-License-Identifier: MIT */
/*
 * pool-config.h - a pool as the operator wants it: programs that answer
 * requests, or addresses where such are.
 */
#ifndef SWEET_POOL_CONFIG_H
#define SWEET_POOL_CONFIG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum pool_protocol { POOL_WORKER, POOL_FASTCGI, POOL_CGI };

struct gateway_pool;

struct pool_config {
	_Atomic unsigned references;
	char *name;  /* of its section, or the prefix of an option */
	char *place; /* "FILE:LINE"; NULL: the command line */
	char *label; /* for messages: "pool NAME", or the option as it was given */

	unsigned protocol;     /* enum pool_protocol */
	char *command;	       /* of a worker; NULL */
	char **argv;	       /* made of it */
	char *folder;	       /* of CGI programs; NULL */
	char *script_suffix;   /* of the names of scripts that a FastCGI application runs */
	char **upstream;       /* addresses of FastCGI applications; may be empty */
	unsigned processes;    /* of command; at once, of CGI programs */
	unsigned in_flight;    /* requests of a thread in a process, connections to an address */
	unsigned keep_ms;      /* that a connection to an address is used */
	bool trust_cache_ids;  /* applications at upstream may name any member's units */
	char *user, *group;    /* NULL: the server's */
	char *directory;       /* to run in; NULL: the server's, a CGI program's own */
	char **environment;    /* NAME=VALUE */
	size_t memory;	       /* bytes of a worker's segment */
	size_t memory_limit;   /* bytes of a process; 0: any */
	bool seccomp;	       /* its programs cannot make some system calls */
	unsigned max_requests; /* of a process, before its successor comes; 0: any */
	unsigned queue;	       /* requests of a thread that may wait */
	size_t max_response_header;   /* bytes of the head of an answer */
	unsigned queue_ms, answer_ms; /* to wait in, to answer in */
	bool request_buffering;	      /* bodies come whole before a program is taken */
	bool response_buffering;      /* answers wait on the disk for slow clients */
	size_t stream_ahead;	      /* bytes of an answer that may wait for its client */
	unsigned slow_ms;	      /* that a client may keep a process waiting; 0: for ever */

	struct gateway_pool *running; /* gateway.c's */
	void (*let_go)(struct pool_config *pool);
};

/* A word for each protocol, NULL ends. */
extern const char *const pool_protocols[];

/* label: NULL for that of a section. */
struct pool_config *pool_config_new(const char *name, const char *place, const char *label);
struct pool_config *pool_config_ref(struct pool_config *pool);
void pool_config_unref(struct pool_config *pool);

/* Makes what is made of the values.  False: they do not fit together, with a line in *why (g_free). */
bool pool_config_finish(struct pool_config *pool, char **why);

/* Whether what it names is there; the same. */
bool pool_config_check(const struct pool_config *pool, char **why);

/* Whether its programs run as somebody else, elsewhere, or with a limit. */
bool pool_config_is_other(const struct pool_config *pool);

/* Whether the same programs are started in the same way. */
bool pool_config_same_program(const struct pool_config *one, const struct pool_config *other);

/* Whether processes of the one may go on for the other. */
bool pool_config_same(const struct pool_config *one, const struct pool_config *other);

#endif
