/* SPDX-License-Identifier: MIT */
/*
 * meta.h - CGI meta-variables of a request (RFC 3875, section 4.1).
 */
#ifndef SWEET_META_H
#define SWEET_META_H

#include <stdint.h>

#include "base/slice.h"
#include "http/request.h"

/* What is known about a request besides its head. */
struct meta_context {
	const char *script_name; /* the prefix the worker is mounted at, "/generate" */
	const char *path_info;	 /* decoded rest of the path, "" or begins with '/' */
	const char *remote_addr; /* "127.0.0.1" */
	uint16_t remote_port;
	const char *remote_user; /* who has shown a password; "" or NULL: nobody */
	const char *server_addr; /* for SERVER_NAME when the client sent no Host */
	uint16_t server_port;
	const char *software; /* "SWEET/0.1" */
	/* What programs that are run for their files want; NULL or 0: left out. */
	const char *document_root;   /* "/srv/www"; with it PATH_TRANSLATED */
	const char *script_filename; /* the program's or script's file */
	const char *request_scheme;  /* "http" */
	const char *local_addr;	     /* for SERVER_ADDR */
	int redirect_status; /* 200: without it php-cgi thinks it was not asked by a server */
	int server_pid;	     /* for NABC_SERVER_PID: whom a unit is granted to */
};

/*
 * Writes "NAME=value" strings, each ended by a NUL: the CGI/1.1 set
 * (GATEWAY_INTERFACE, PATH_INFO, QUERY_STRING, REMOTE_ADDR, REMOTE_PORT,
 * REQUEST_METHOD, REQUEST_URI, SCRIPT_NAME, SERVER_NAME, SERVER_PORT,
 * SERVER_PROTOCOL, SERVER_SOFTWARE, CONTENT_LENGTH and CONTENT_TYPE when the
 * request has them, AUTH_TYPE and REMOTE_USER when there is a user), what of
 * DOCUMENT_ROOT, PATH_TRANSLATED (the root with PATH_INFO, when that is not
 * empty), SCRIPT_FILENAME, REQUEST_SCHEME, SERVER_ADDR, REDIRECT_STATUS and
 * NABC_SERVER_PID the context has, and HTTP_* for the other fields: upper
 * case, '-' as '_'; a field sent more than once is joined with ", " (cookies
 * with "; "), but of Content-Type the first counts.  Of an absolute target
 * REQUEST_URI is path and query, and its host overrules the Host field in
 * SERVER_NAME and HTTP_HOST.
 * Left out: Proxy (httpoxy), Authorization, Proxy-Authorization, Connection,
 * Keep-Alive, Content-Length, Content-Type, Transfer-Encoding, TE, Trailer,
 * Upgrade, and names with characters other than letters, digits and '-'
 * (an underscore could imitate a '-').
 * Returns the bytes written, or -1 when out is too small.
 */
long meta_write(const struct request *request, const struct meta_context *context, char *out,
		size_t out_size);

/* The value of a variable in what was so written; ended by a NUL; "" if it is not there. */
struct slice meta_find(struct slice block, const char *name);

#endif
