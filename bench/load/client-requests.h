/* SPDX-License-Identifier: MIT */
/*
 * client-requests.h - what the clients ask for: a list in order, and each of
 * its requests made once, ready to be sent.  Filled once, then only read.
 */
#ifndef CLIENT_REQUESTS_H
#define CLIENT_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define REQUEST_SIZE_ANY UINT64_MAX

struct request {
	char *text; /* what goes over the wire; owned */
	uint32_t length;
	unsigned status; /* that the answer should have */
	uint64_t size;	 /* of its body, or REQUEST_SIZE_ANY */
};

struct requests {
	struct request *made;
	uint32_t made_count;
	uint32_t *order; /* indices of made, as the list has them */
	uint32_t count;
	uint32_t *slots; /* finds what is made already */
	uint32_t slot_count;
};

/* How a request is written; fields: whole lines with their ends, or "". */
struct request_form {
	const char *host, *fields;
	bool close; /* HTTP/1.0: a connection for each request */
};

/*
 * Lines of "PATH [SIZE [STATUS]]", parted by blanks; SIZE "-" is any, STATUS
 * 200 if it is not there; empty lines and # comments count for nothing.  0, or
 * -errno: EBADMSG and the number of the line in *line, ENOMEM, EIO.
 */
int requests_read(struct requests *requests, const struct request_form *form, FILE *file,
		  uint32_t *line);

/* Adds one to the end of the list.  0, or -errno: EBADMSG for a path that cannot be sent. */
int requests_add(struct requests *requests, const struct request_form *form, const char *path,
		 uint64_t size, unsigned status);

void requests_free(struct requests *requests);

#endif
