/* SPDX-License-Identifier: MIT */
/*
 * configuration.h - what the operator wants, as data: the command line over the file
 * over the defaults, for all of the server, its hosts and their paths.
 *
 * A configuration does not change once it is read.  A reload reads the next
 * one; who still answers by the old one holds it (struct config_ref).
 */
#ifndef SWEET_CONFIGURATION_H
#define SWEET_CONFIGURATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include "base/address.h"
#include "base/slice.h"
#include "config/pool-config.h"
#include "event/loop.h"
#include "http/cacheable.h"

#define CONFIG_NAME_MAX 255 /* bytes of a host's name (RFC 1035, section 2.3.4) */
#define CONFIG_SERVER_HEADER_MAX 128

struct ip_acl;

/* For files whose name fits the pattern; NULL: for all. */
struct cache_rule {
	GPatternSpec *pattern;
	char *value; /* of Cache-Control */
};

struct error_page {
	int status;
	char *path; /* on the same host */
};

/* All that holds below a path, what it inherits included. */
struct scope {
	char *prefix; /* "/images"; "" for the whole host */
	size_t prefix_length;
	/* "FILE:LINE" of its folder and of its users, for messages; NULL: the command line. */
	char *root_place, *auth_place;

	char *root;
	/* The bytes of path that each of these stands for: the prefix that it was given for. */
	size_t alias_skip, rewrite_skip, redirect_skip;
	char *alias;	     /* folder that stands for it; NULL */
	char *folder;	     /* that or the root, as an absolute path; site.c's */
	char *rewrite;	     /* what replaces it; NULL */
	int redirect_status; /* 0: none */
	char *redirect_to;   /* what follows it is appended if it ends with '/' */
	char **index;	     /* names */
	bool listing;
	bool precompressed;
	bool hidden; /* names that begin with a dot are served */
	struct cache_rule *cache_rules;
	unsigned cache_rule_count;
	struct error_page *error_pages;
	unsigned error_page_count;
	char **allow, **deny;	      /* CIDR or "all"; empty: not given */
	struct ip_acl *access;	      /* made of them; NULL: everybody may */
	char *auth_realm, *auth_file; /* NULL: no passwords */
	unsigned request_rate;	      /* a client and second; 0: any */
	unsigned request_burst;
	struct rate_limit *rate; /* made of them; NULL: none */
	size_t max_body;	 /* bytes; 0: any */
	struct cacheable_rule response_cache;
	char *pool_name;	  /* NULL: files */
	struct pool_config *pool; /* the same, found; config's */
	size_t pool_skip;	  /* bytes of path that are its programs' name */

	/* Opened by site.c: */
	struct file_cache *file_cache; /* the files of alias or root */
	struct auth *auth;	       /* NULL: no passwords */
};

struct host {
	char *name;
	char **names;			  /* lower case; "*.example.org" is any name below */
	char **listen;			  /* of config's; empty: all */
	struct listen_address *addresses; /* the same, read */
	unsigned address_count;
	struct scope *scopes; /* the longest prefix first; the last is "" */
	unsigned scope_count;
};

/* A prefix that an option gives to a pool, for all hosts. */
struct mount {
	char *prefix;
	size_t length;
	struct pool_config *pool; /* config's */
};

struct config_limits {
	unsigned header_ms, body_ms, keep_alive_ms, send_ms, stop_ms;
	unsigned drain_ms;	      /* from not being ready to accepting no more */
	unsigned keep_alive_requests; /* 0: any number */
	unsigned max_connections, connections_per_client; /* 0: any number */
	size_t max_header;				  /* bytes */
	unsigned max_fields;				  /* REQUEST_HEADERS_MAX at most */
};

/* As the words of "send-method" stand. */
enum send_method { SEND_AUTO, SEND_COPY, SEND_SPLICE, SEND_ZEROCOPY, SEND_KERNEL };

/* How TCP is made use of; see socket-options.h. */
struct config_sockets {
	/* Of what listens: */
	bool defer_accept; /* until the first bytes of a request are there */
	unsigned fastopen; /* connections opening with data at once; 0: none may */
	bool delay_ack;	   /* of a first request, to go with its answer */
	/* Of answers: */
	unsigned send_method; /* enum send_method */
	bool header_option;   /* the head leaves with the body that follows it */
	bool close_option;    /* the last segment brings the end of the stream */
	bool linger;	      /* after the last one, until the client has closed its end */
};

/* How files without a unit leave; see filestream.h. */
enum large_files { LARGE_FILES_SENDFILE, LARGE_FILES_COPY };

struct config {
	_Atomic unsigned references;
	char *file;	    /* NULL: the command line alone */
	GHashTable *places; /* of keys in [sweet]; see config_place() */
	unsigned number;    /* 1, and one more with each reload; by site.c */
	uint64_t read_ms;   /* of the epoch; by site.c */

	/* Read once, at the start. */
	unsigned threads;   /* of mp: processes */
	unsigned arch;	    /* enum arch_kind */
	unsigned io;	    /* enum loop_kind */
	unsigned data_path; /* enum data_path_kind */
	size_t cache_size;  /* bytes; 0: by the memory that there is */
	char *cache_socket; /* NULL: the cache is not served */
	char *user, *group; /* NULL: as started */
	bool read_only;
	char *pid_file;
	size_t socket_memory;  /* bytes; 0: as the cache */
	char *spool_directory; /* NULL: see spool.h */
	size_t spool_size;     /* bytes */
	bool spool_memory;     /* it may be in memory */

	/* Read again with each reload. */
	char **worker;	      /* PREFIX=COMMAND */
	unsigned workers;     /* processes of each */
	size_t worker_memory; /* bytes */
	char **cgi;	      /* PREFIX=FOLDER */
	char **fastcgi;	      /* PREFIX=ADDRESS */
	char **listen;
	bool listen_given; /* it is not the default */
	unsigned revalidate_ms;
	struct config_sockets sockets;
	bool page_cache;      /* what the cache holds may stay in the page cache too */
	unsigned large_files; /* enum large_files */
	bool path_cache, header_cache, content_cache; /* what is kept of files: file-cache.h */
	unsigned header_align; /* bytes that heads are a multiple of; 0: any */
	char *mime_types;
	char *access_log;    /* file, "-" or "off" */
	unsigned log_format; /* enum access_format */
	char *error_log;     /* "-", file, "syslog" or "journal" */
	unsigned log_level;  /* 0 errors to 4 debug */
	char *server_header; /* NULL: off */
	struct config_limits limits;
	char **proxy_protocol; /* CIDR */
	bool status;
	char **status_allow;	      /* CIDR */
	struct ip_acl *status_access; /* made of it */
	struct ip_acl *proxy_access;  /* made of proxy_protocol; NULL: nobody */

	struct pool_config **pools;
	unsigned pool_count;
	struct mount *mounts;
	unsigned mount_count;
	struct host *hosts; /* [0] is the default */
	unsigned host_count;
	GHashTable *names; /* to a GPtrArray of the hosts that have the name */
	bool by_address;   /* a host has addresses */

	/* Gives back what others keep in it, before it is freed; may be NULL. */
	void (*let_go)(struct config *config);
};

/* Any thread; the last reference frees it. */
struct config *config_hold(struct config *config);
void config_release(struct config *config);

/* Where the file sets a key of the server, as "FILE:LINE"; NULL: it does not. */
const char *config_place(const struct config *config, const char *key);

/* False: another host has the name on one of the addresses. */
bool config_name_host(struct config *config, const char *name, struct host *host);

/*
 * The host for a request's Host field on a connection whose own address is
 * local: of those that listen there the one with the name; else the first
 * that lists that address; else the default.
 */
const struct host *config_host(const struct config *config, struct slice name,
			       const struct sockaddr *local);

/* The longest prefix of path that an option gives to a pool, or NULL. */
const struct mount *config_mount(const struct config *config, const char *path);

/* The scope of the longest prefix of path; a prefix ends where a segment does. */
const struct scope *host_scope(const struct host *host, const char *path);

/*
 * One thread's use of a configuration: transactions end with the one that they
 * began with, while new ones begin with the next.  The thread's own, so counting needs no
 * atomics.
 */
struct config_ref {
	struct config *config; /* referenced */
	unsigned users;	       /* the thread's is one while it is the present one */
};

/* Takes over the caller's reference to config. */
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
