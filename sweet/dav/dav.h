/* SPDX-License-Identifier: MIT */
/*
 * dav.h - responds to the methods of WebDAV, classes 1 and 2 (RFC 4918), where the key webdav
 * permits them: below a folder of files, for clients with a password or certificate.
 *
 * Helper threads do all that may block.  Those that copy and remove folders, and wait for the disk
 * at the end of an upload, are WebDAV's own, so that files are opened meanwhile.
 */
#ifndef SWEET_DAV_H
#define SWEET_DAV_H

#include <stdbool.h>

#include "core/transaction.h"

struct dav;
struct request;

#define DAV_ALLOW                                                                                  \
	"Allow: GET, HEAD, OPTIONS, PUT, DELETE, MKCOL, COPY, MOVE, PROPFIND, PROPPATCH, LOCK, "   \
	"UNLOCK\r\nDAV: 1, 2\r\nMS-Author-Via: DAV\r\n"

/*
 * helpers: these threads, which start with the first request that needs them; 0: none, as in
 * thread-pool.h.  NULL without memory.
 */
struct dav *dav_open(unsigned helpers);

/*
 * Ends the threads, as thread_pool_close() does, with the folders that they are at; then, when no
 * connection is left, the requests that wait for a thread; then frees it.
 */
void dav_stop(struct dav *dav);
void dav_end_requests(struct dav *dav);
void dav_close(struct dav *dav);

/* Returns true if the method is one that only WebDAV has, or that writes. */
bool dav_takes(const struct request *request);

/* Responds to such a request of a scope with webdav. */
enum respond dav_respond(struct transaction *transaction);

#endif
