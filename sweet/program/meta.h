/* SPDX-License-Identifier: MIT */
/*
 * meta.h - CGI meta-variables of a request (RFC 3875, section 4.1).
 */
#ifndef SWEET_META_H
#define SWEET_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "rules/request-rule.h"

struct request;

/* What is known about a request beside its head. */
struct meta_context {
	const char *script_name; /* the path prefix of the worker, "/generate" */
	const char *path_info;	 /* decoded rest of the path; "" or begins with '/' */
	const char *remote_addr; /* "127.0.0.1" */
	uint16_t remote_port;
	const char *remote_user; /* authenticated user; "" or NULL: none */
	const char *server_addr; /* for SERVER_NAME if the client sent no Host */
	uint16_t server_port;
	const char *software; /* "SWEET/0.1" */
	/* For CGI and FastCGI programs; NULL or 0: omitted. */
	const char *document_root;   /* "/srv/www"; with it PATH_TRANSLATED */
	const char *script_filename; /* the program's or script's file */
	const char *request_scheme;  /* "http" or "https" */
	const char *local_addr;	     /* for SERVER_ADDR */
	bool https;		     /* for HTTPS=on, of every kind of program */
	bool http2;		     /* the request came in a stream of HTTP/2 */
	struct slice tls_variables;  /* as this function writes them */
	struct slice query;	     /* at NULL: the request's own */
	bool authorization;	     /* pass that field as well */
	const char *upgrade;	     /* that the program may switch to; or NULL */
	/* Of the operator, "NAME=value", lists that end with NULL; or NULL.  The first one wins. */
	char **variables[2];
	struct request_rules rules; /* whose fields pass, if they may not else */
	const char *request_id;	    /* replaces the field X-Request-Id; NULL or "": does not */
	const char *traceparent;    /* the same, of the field of that name */
	bool trace_begins;   /* then the field tracestate is omitted: it is of another trace */
	int redirect_status; /* 200: php-cgi requires it, to know that a server started it */
	int server_pid;	     /* for NABC_SERVER_PID: the process to grant units to */
};

/*
 * Writes "NAME=value" strings, each ended by a NUL: the CGI/1.1 set
 * (GATEWAY_INTERFACE, PATH_INFO, QUERY_STRING, REMOTE_ADDR, REMOTE_PORT,
 * REQUEST_METHOD, REQUEST_URI, SCRIPT_NAME, SERVER_NAME, SERVER_PORT,
 * SERVER_PROTOCOL, SERVER_SOFTWARE; CONTENT_LENGTH and CONTENT_TYPE if the request
 * has them; AUTH_TYPE and REMOTE_USER if there is a user; HTTPS with TLS).  Then those of
 * DOCUMENT_ROOT, PATH_TRANSLATED (the root with PATH_INFO, if that is not empty),
 * SCRIPT_FILENAME, REQUEST_SCHEME, SERVER_ADDR, REDIRECT_STATUS and NABC_SERVER_PID
 * that the context sets.  Then HTTP_* for the other fields: in upper case, '-' as
 * '_'; repeated fields are joined with ", " (cookies with "; "), but of
 * Content-Type the first counts.  If the target is absolute, REQUEST_URI is its
 * path and query, and its host overrides the Host field in SERVER_NAME and
 * HTTP_HOST.
 * Last come the operator's variables, which replace those of the same name.
 * Omitted: Proxy (httpoxy), Authorization unless the context asks for it,
 * Proxy-Authorization, Connection, Keep-Alive, Content-Length, Content-Type,
 * Transfer-Encoding, TE, Trailer, Upgrade (HTTP_UPGRADE and HTTP_CONNECTION have the
 * context's, if it has one), and names with characters other than
 * letters, digits and '-' (an underscore could imitate a '-').
 * Returns the bytes written, or -1 if out is too small.
 */
long meta_write(const struct request *request, const struct meta_context *context, char *out,
		size_t out_size);

/* Returns the value of a variable in the output of meta_write(), ended by a NUL; "" if absent. */
struct slice meta_find(struct slice block, const char *name);

#endif
