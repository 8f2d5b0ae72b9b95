/* SPDX-License-Identifier: MIT */
/*
 * server-link.h - the calls of NC_worker, for any number of threads.
 *
 * Each returns as the call of libnabc does, and sets errno; in a child of the worker, and in a
 * signal handler that interrupted such a call, it fails with EACCES or EBUSY.
 */
#ifndef NABC_FCGI_SERVER_LINK_H
#define NABC_FCGI_SERVER_LINK_H

struct NC_range;
struct NC_request;
struct NC_response;

int fcgi_link_accept(struct NC_request *request);
int fcgi_link_respond(const struct NC_request *request, const struct NC_response *response);
int fcgi_link_send(const struct NC_request *request, const struct NC_range *ranges, unsigned count,
		   unsigned flags);
int fcgi_link_body(struct NC_request *request, struct NC_range *piece);
int fcgi_link_abort(const struct NC_request *request);
int fcgi_link_gone(const struct NC_request *request);

#endif
