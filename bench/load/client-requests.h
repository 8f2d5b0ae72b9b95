/* SPDX-License-Identifier: MIT */
/*
 * client-requests.h - the requests of the clients: a list in order, and each request
 * once, ready to be sent.  Filled once, then only read.
 */
#ifndef CLIENT_REQUESTS_H
#define CLIENT_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define REQUEST_SIZE_ANY UINT64_MAX

struct request {
	char *text; /* the bytes to send; owned */
	uint32_t length;
	unsigned status; /* expected in the response */
	uint64_t size;	 /* of its body, or REQUEST_SIZE_ANY */
};

struct requests {
	struct request *made;
	uint32_t made_count;
	uint32_t *order; /* indices of made, as the list has them */
	uint32_t count;
	uint32_t *slots; /* finds existing ones */
	uint32_t slot_count;
};

/* The format of a request; fields: whole lines with their ends, or "". */
struct request_form {
	const char *host, *fields;
	bool close; /* HTTP/1.0: a connection for each request */
};

/*
 * Reads lines of "PATH [SIZE [STATUS]]", separated by blanks; SIZE "-" is any, STATUS
 * defaults to 200; empty lines and # comments are ignored.  Returns 0, or -errno:
 * EBADMSG and the number of the line in *line, ENOMEM, EIO.
 */
int requests_read(struct requests *requests, const struct request_form *form, FILE *file,
		  uint32_t *line);

/* Appends one to the list.  Returns 0, or -errno: EBADMSG for a path that cannot be sent. */
int requests_add(struct requests *requests, const struct request_form *form, const char *path,
		 uint64_t size, unsigned status);

void requests_free(struct requests *requests);

#endif
