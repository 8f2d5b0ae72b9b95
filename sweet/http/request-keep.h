/* SPDX-License-Identifier: MIT */
/*
 * request-keep.h - copies of requests, for what outlives the memory of their heads.
 *
 * A head is copied, and parsed again: it is much smaller than a struct request, and what others have
 * changed in that, such as fields which they left out, is not copied.
 */
#ifndef SWEET_REQUEST_KEEP_H
#define SWEET_REQUEST_KEEP_H

#include <stdbool.h>
#include <stddef.h>

struct request;

/* A head that was parsed. */
struct kept_request {
	bool listed; /* as in struct request */
	size_t length;
	char head[];
};

/* Returns a copy of the request's head, for free(); NULL without memory. */
struct kept_request *request_keep(const struct request *request);

/* Makes the request of that head again; it points into `kept`. */
void request_recall(struct request *request, const struct kept_request *kept);

/*
 * Makes *copy the request that its head was parsed into, of a copy of the head in memory that has
 * room for its bytes.
 */
void request_copy_head(struct request *copy, const struct request *request, char *memory);

#endif
