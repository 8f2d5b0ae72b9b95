/* SPDX-License-Identifier: MIT */
/*
 * configuration.h - the operator's settings as data: the command line overrides the
 * file, which overrides the defaults, for the server, its hosts and their paths.
 *
 * A configuration is text and decisions, and constant once it is read.  What is open for it while
 * it is in use is beside it, in a struct site (core/site.h), by the numbers of its parts.
 */
#ifndef SWEET_CONFIGURATION_H
#define SWEET_CONFIGURATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include "base/slice.h"
#include "coding/compress-rule.h"
#include "rules/variable.h"

#define CONFIG_NAME_MAX 255 /* bytes of a host's name (RFC 1035, section 2.3.4) */
#define CONFIG_SERVER_HEADER_MAX 128
#define CONFIG_SHARE_ALL (UINT64_C(1) << 56) /* of trace_share */

struct header_rule;
struct request_rule;
struct script_claim;
struct section;
struct ip_acl;
struct log_format;
struct path_pattern;
struct template;
struct pool_config;
struct sockaddr;

/* For files whose name matches the pattern; NULL: for all. */
struct cache_rule {
	GPatternSpec *pattern;
	char *value;	   /* of Cache-Control */
	bool no_transform; /* one of its directives */
};

struct error_page {
	int status;
	int as;	    /* the status that is sent */
	char *path; /* on the same host */
};

/* One of the things that try-files tries, in turn. */
struct try_file {
	enum try_kind { TRY_FILE, TRY_FOLDER, TRY_PATH, TRY_POOL, TRY_STATUS } kind;
	char *text; /* a path of the host, or the name of a pool; else NULL */
	int status;
	const struct pool_config *pool; /* of that name; the config owns it */
};

/* A [pattern NAME]. */
struct path_rule {
	unsigned number; /* of all rules of the config */
	char *name;
	struct path_pattern *pattern;
};

/* A [map NAME]. */
struct map_table {
	char *name, *place;
	char *text, **pairs, *file, *otherwise; /* as in the file; NULL: not given */
	struct template *lookup;
	GHashTable *values;
	bool used; /* a value names it */
};

/* In the order of the values of "access-log" of a path: auto is on, but off for the status pages. */
enum access_log_use { ACCESS_LOG_AUTO, ACCESS_LOG_ON, ACCESS_LOG_OFF };

/* All settings of a path, including inherited ones. */
struct scope {
	unsigned number; /* of all scopes of the config */
	char *prefix;	 /* "/images"; "" for the whole host */
	size_t prefix_length;
	/*
	 * Of a prefix: the scopes of the host's patterns for paths that have it, in their order,
	 * which the first match decides.  Of such a scope: its pattern, and no scopes.
	 */
	unsigned first_pattern, pattern_count;
	const struct path_rule *rule; /* the host owns it */
	/* The sections that it takes its keys from, the nearest first; NULL afterwards. */
	const struct section **chain;
	/* "FILE:LINE" of its folder, users, webdav and variables, for messages; NULL: the command line. */
	char *root_place, *auth_place, *webdav_place, *variable_place;

	char *root;
	/*
	 * Lengths of the path prefixes that these replace: of the prefix where each
	 * was configured.
	 */
	size_t alias_skip, rewrite_skip, redirect_skip;
	char *alias;	     /* folder that replaces the prefix; NULL */
	char *rewrite;	     /* path that replaces the prefix; NULL */
	int redirect_status; /* 0: none */
	bool redirect_tls;   /* the same URL with https, for clients without TLS */
	char *redirect_to;   /* if it ends with '/', the rest of the path is appended */
	struct template *redirect_text, *rewrite_text; /* instead, with variables; NULL */
	struct try_file *tries; /* only the last one may be other than a file or a folder */
	unsigned try_count;	/* 0: off */
	size_t try_skip;	/* length of the path prefix of a pool that is tried */
	char **index;		/* names */
	bool listing;
	bool precompressed;
	char *charset, *default_type; /* of text types; of unknown names; NULL: none, the usual */
	char **types;		      /* "TYPE EXTENSION..." */
	unsigned symlinks;	      /* enum symlinks */
	unsigned etag;		      /* enum etag_kind */
	bool hidden;		      /* serve names that begin with a dot */
	bool webdav;		      /* clients may write */
	bool internal;		      /* only the server itself leads requests here */
	char *accel_pool;    /* a folder whose files the pool of that name may send; else NULL */
	unsigned access_log; /* enum access_log_use */
	unsigned slow_ms;    /* longer requests are in the slow log; 0: none */
	bool server_timing;  /* send Server-Timing */
	struct compress_rule compress;
	struct cache_rule *cache_rules;
	unsigned cache_rule_count;
	struct header_rule *header_rules;
	unsigned header_rule_count;
	bool header_variables;		    /* some of them have variables */
	struct request_rule *request_rules; /* of the requests that programs get */
	unsigned request_rule_count;
	bool intercept_errors; /* error_pages also replace responses of programs */
	struct error_page *error_pages;
	unsigned error_page_count;
	struct variables variables;   /* for programs */
	char **allow, **deny;	      /* CIDR or "all"; empty: not given */
	struct ip_acl *access;	      /* made from them; NULL: everybody is permitted */
	char *auth_realm, *auth_file; /* NULL: no passwords */
	size_t send_rate;	      /* bytes of a connection per second; 0: unlimited */
	unsigned request_rate;	      /* per client and second; 0: unlimited */
	unsigned request_burst;
	char *rate_name;		/* of whose requests count together; NULL: no limit */
	size_t max_body;		/* bytes; 0: unlimited */
	unsigned cache_mode;		/* enum cacheable_mode: of responses of programs */
	uint32_t cache_seconds;		/* with CACHEABLE_TIME */
	char *pool_name;		/* NULL: files */
	const struct pool_config *pool; /* the pool of that name; the config owns it */
	size_t pool_skip;		/* length of the path prefix of its programs */
	bool no_scripts;		/* pool=off: no pool runs a file by its suffix either */
};

struct host {
	unsigned number; /* of the config's hosts */
	char *name;
	char **names;			  /* lower case; "*.example.org" matches any name below */
	char **listen;			  /* some of the config's; empty: all */
	struct listen_address *addresses; /* the same, parsed */
	unsigned address_count;
	char **certificates,
		**keys;	      /* of the same place belong together; no keys: in the same file */
	char **staples;	      /* OCSP responses, of the same place, too; none: no stapling */
	unsigned tls_profile; /* enum tls_profile */
	char **tls_groups;    /* for key exchange; empty: the library's choice */
	unsigned client_certificate; /* enum tls_client */
	char *client_ca;	     /* NULL: none */
	char *answer_folder;	     /* of tls-challenge.h; NULL: no challenge is answered */
	char *hsts;		     /* value of Strict-Transport-Security; NULL: off */
	unsigned escaped_slash;	     /* enum uri_slash: in paths */
	char *access_log;	     /* file, "-" or "off" */
	struct log_format *log_format;
	unsigned log;	 /* of both: an index of the config's logs */
	char *tls_place; /* of its certificate, for messages */
	/* The longest prefix first; after "" those of exact paths and of patterns. */
	struct scope *scopes;
	unsigned scope_count;
	GHashTable *exact; /* of a path, one more than the index of its scope; NULL: none */
	struct path_rule **rules;
	unsigned rule_count;
	struct script_claim *claims; /* of pools with a suffix: config-script.h */
	unsigned claim_count;
};

/* A file with a format: the hosts with both share it. */
struct config_log {
	const char *kind; /* "access" or "slow": of its key, without "-log" */
	const char *file; /* of the first host that has it, as the others */
	struct log_format *format;
	char *place; /* of its key; NULL: the command line */
};

/* A prefix that an option maps to a pool, for all hosts. */
struct mount {
	char *prefix;
	size_t length;
	const struct pool_config *pool; /* the config owns it */
};

#define CONFIG_CONNECTIONS_UNSET (~0u) /* as many as the memory permits */

struct config_limits {
	unsigned header_ms, body_ms, keep_alive_ms, send_ms, stop_ms;
	unsigned drain_ms;		 /* between "not ready" and the end of accepting */
	unsigned keep_alive_requests;	 /* 0: unlimited */
	unsigned max_connections;	 /* 0: unlimited; or CONFIG_CONNECTIONS_UNSET */
	unsigned connections_per_client; /* 0: unlimited */
	unsigned compress_streams;	 /* encoders at once */
	size_t max_header;		 /* bytes */
	bool raw_utf8;			 /* permit it in targets */
	unsigned max_fields;		 /* at most REQUEST_HEADERS_MAX */
	unsigned max_streams;		 /* of a client with HTTP/2, at once */
};

/* In the order of the values of "http2". */
enum http2_use { HTTP2_OFF, HTTP2_TLS, HTTP2_CLEAR };

/* In the order of the values of "request-id". */
enum request_id_use { REQUEST_ID_OFF, REQUEST_ID_ON, REQUEST_ID_TRUST };

/* In the order of the values of "send-method". */
enum send_method { SEND_AUTO, SEND_COPY, SEND_SPLICE, SEND_ZEROCOPY, SEND_KERNEL };

/* Options of TCP; see socket-options.h. */
struct config_sockets {
	/* Of listening sockets: */
	bool defer_accept; /* accept when the first bytes of a request are there */
	unsigned fastopen; /* connections opening with data at once; 0: none */
	bool delay_ack;	   /* of a first request, to send it with the response */
	/* Of responses: */
	unsigned send_method; /* enum send_method */
	bool header_option;   /* send the head together with the body */
	bool close_option;    /* send FIN with the last segment */
	bool linger;	      /* after the last response, until the client has closed its end */
};

/* In the order of the values of "tls-records": who makes those of TLS 1.3. */
enum tls_records_use { TLS_RECORDS_OWN, TLS_RECORDS_OPENSSL };

/* How files without a unit are sent; see filestream.h. */
enum large_files { LARGE_FILES_SENDFILE, LARGE_FILES_COPY };

struct config {
	_Atomic unsigned references;
	char *file;	    /* NULL: only the command line */
	GHashTable *places; /* of keys in [sweet]; see config_place() */

	/* Read once, at startup. */
	unsigned threads;	/* of mp: processes */
	unsigned arch;		/* enum arch_kind */
	unsigned io;		/* enum loop_kind */
	unsigned data_path;	/* enum data_path_kind */
	size_t cache_size;	/* bytes; 0: depends on the memory */
	unsigned tls_records;	/* enum tls_records_use */
	bool registered_memory; /* send zero-copy from memory that io_uring knows */
	bool pin;		/* lock the memory of the cache */
	char *cache_socket;	/* NULL: the cache is not served */
	char *user, *group;	/* NULL: as started */
	bool read_only;
	char *pid_file;
	size_t socket_memory;  /* bytes; 0: as the cache */
	char *spool_directory; /* NULL: see spool.h */
	size_t spool_size;     /* bytes */
	bool spool_memory;     /* the folder may be in memory */

	/* Read again by each reload. */
	bool scripts;	      /* a pool has a suffix */
	bool methods;	      /* a pool has methods */
	bool webdav;	      /* a scope has it */
	char **include;	      /* patterns of files; config-file.c has read them */
	char **worker;	      /* PREFIX=COMMAND */
	unsigned workers;     /* processes of each */
	size_t worker_memory; /* bytes */
	char **cgi;	      /* PREFIX=FOLDER */
	char **fastcgi;	      /* PREFIX=ADDRESS */
	char **listen;
	bool listen_given; /* not the default */
	unsigned http2;	   /* enum http2_use */
	bool tls;	   /* one of the addresses has TLS */
	unsigned tls_port; /* of the first such address; 0: the usual one, or none */
	unsigned revalidate_ms;
	struct config_sockets sockets;
	unsigned page_cache;			      /* enum page_cache */
	unsigned large_files;			      /* enum large_files */
	bool path_cache, header_cache, content_cache; /* what is cached of files: file-cache.h */
	unsigned header_align; /* pad heads to a multiple of these bytes; 0: no padding */
	char *mime_types;
	char *error_log;     /* "-", file, "syslog" or "journal" */
	unsigned log_level;  /* 0 errors to 4 debug */
	char *server_header; /* NULL: off */
	unsigned request_id; /* enum request_id_use */
	bool trace;
	uint64_t trace_share; /* of new traces that are sampled, of CONFIG_SHARE_ALL */
	char *collector_url;  /* of their spans: log/span-send.h */
	char *collector_service, *collector_ca, **collector_headers;
	struct config_limits limits;
	char **proxy_protocol; /* CIDR */
	bool status;
	char **trusted_proxies;	      /* CIDR */
	unsigned forwarded;	      /* enum forwarded_fields */
	char **status_listen;	      /* addresses for these pages alone; empty: as the sites */
	char **status_allow;	      /* CIDR */
	struct ip_acl *status_access; /* made from it */
	struct ip_acl *proxy_access;  /* made from proxy_protocol; NULL: nobody */
	struct ip_acl *proxies;	      /* made from trusted_proxies; NULL: none */

	const struct pool_config **pools;
	unsigned pool_count;
	struct mount *mounts;
	unsigned mount_count;
	struct map_table *maps;
	unsigned map_count;
	struct config_log *logs; /* [0] is the default host's */
	unsigned log_count;
	char *slow_log; /* file, "-" or "off" */
	struct log_format *slow_format;
	unsigned slow_number; /* of it in logs; not there: log_count */
	char **log_fields;    /* of requests, in templates of logs */
	unsigned log_field_count;
	struct host *hosts;    /* [0] is the default */
	unsigned first_folder; /* of its scopes: from here on they are folders of accel */
	unsigned host_count;
	unsigned scope_count, rule_count; /* of all hosts */
	GHashTable *names;		  /* to a GPtrArray of the hosts with the name */
	bool by_address;		  /* some host has addresses */

	GPtrArray *warnings; /* lines about what has no effect */
};

/* Any thread; the last release frees it. */
const struct config *config_hold(const struct config *config);
void config_release(const struct config *config);

/* Returns "FILE:LINE" where the file sets a key of the server; NULL if it does not. */
const char *config_place(const struct config *config, const char *key);

/* Returns false if another host has the name on one of the addresses. */
bool config_name_host(struct config *config, const char *name, struct host *host);

/*
 * Returns the host for a request's Host field, on a connection whose local address
 * is local: of the hosts that listen there, the one with the name; else the first
 * that lists that address; else the default.
 */
const struct host *config_host(const struct config *config, struct slice name,
			       const struct sockaddr *local);

/* Returns the longest prefix of path that an option maps to a pool, or NULL. */
const struct mount *config_mount(const struct config *config, const char *path);

/*
 * Returns the scope of the longest prefix of path; a prefix ends at the end of a segment.  Exact
 * paths and patterns come before it: path-rules.h.
 */
const struct scope *host_scope(const struct host *host, const char *path);

/*
 * Returns the path from which on requests of the scope, which is one of the host's, may get to the
 * pool, whatever other scopes and try-files do; NULL: none does.
 */
const char *scope_leads(const struct config *config, const struct host *host,
			const struct scope *scope, const struct pool_config *pool);

/* The scope has no try-files any more. */
void scope_free_tries(struct scope *scope);

#endif
