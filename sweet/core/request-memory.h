/* SPDX-License-Identifier: MIT */
/*
 * request-memory.h - heads that clients have sent before, and what they mean.
 *
 * Byte for byte the same head is the same request, and leads to the same host, path and scope as
 * long as the configuration is the same.  Programs that ask again, health checks, and browsers of
 * one kind that fetch the files of a page without cookies send such heads: they are neither parsed
 * nor is their target decoded again.  What depends on anything else, such as the client's address
 * or the state of a file, is not remembered.
 *
 * A head is remembered when it comes for the second time.  One with credentials or cookies never
 * is, nor one that a body follows.
 */
#ifndef SWEET_REQUEST_MEMORY_H
#define SWEET_REQUEST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct host;
struct scope;

#define REQUEST_MEMORY_HEAD 1024u /* bytes of the longest head that is remembered */
#define REQUEST_MEMORY_FIELDS 32u /* that it has at most */
#define REQUEST_MEMORY_HEADS 256u /* a power of 2 */

/* Of one thread. */
struct request_memory;
struct request;

struct remembered {
	const struct request *request;
	/* Where it leads, with the configuration of that number; 0: not known. */
	unsigned config_number;
	const struct host *host;
	const struct scope *scope;
	char *path; /* decoded; room for the bytes of the target */
	size_t path_length;
	unsigned users; /* that are processing it now */
};

/* Returns NULL without memory. */
struct request_memory *request_memory_new(void);
void request_memory_free(struct request_memory *memory);

/*
 * Returns what is remembered of the head, for request_memory_put(); or NULL.  listed: it is a list
 * (http/request-list.h), which text of the same bytes is not.
 */
struct remembered *request_memory_find(struct request_memory *memory, struct slice head,
				       bool listed);

/*
 * Notes the head that request_memory_find() was called for last and did not find, and that was
 * parsed meanwhile.  Returns what is remembered of it from now on, for request_memory_put(); NULL:
 * nothing.
 */
struct remembered *request_memory_note(struct request_memory *memory,
				       const struct request *request);

/* The request is not used any more. */
static inline void request_memory_put(struct remembered *remembered)
{
	remembered->users--;
}

#endif
