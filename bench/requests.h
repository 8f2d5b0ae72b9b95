/* SPDX-License-Identifier: MIT */
/*
 * requests.h - a list of requests for objects of a size: from a trace, or generated.
 * One thread reads it; the caller that fills it frees it.
 */
#ifndef REQUESTS_H
#define REQUESTS_H

#include <stdint.h>
#include <stdio.h>

#define NEVER UINT32_MAX

struct requests {
	uint32_t *object; /* the object of each request */
	uint32_t *next;	  /* when it is requested again, or NEVER */
	uint32_t count;
	uint64_t *size; /* bytes of each object */
	uint32_t objects;
	uint64_t asked;	   /* bytes of all requests */
	uint64_t distinct; /* bytes of all objects */
};

/*
 * Lines of "seconds client method path status bytes", separated by tabs, # before
 * comments.  Only GET with status 200 and a body counts.  A path is one object of the
 * largest size in the trace: a smaller one was an interrupted transfer or an earlier
 * version of a page.  Returns 0, or -errno: EBADMSG, ENOMEM, EIO.
 */
int requests_read(struct requests *requests, FILE *file);

/*
 * Popularity by Zipf's law with exponent alpha; sizes lognormal with a Pareto tail,
 * like those of web servers' files (Barford and Crovella, 1998), between 100 bytes and
 * 64 MB. The same seed makes the same list.
 */
int requests_make(struct requests *requests, uint32_t objects, uint32_t count, double alpha,
		  uint64_t seed);

void requests_free(struct requests *requests);

#endif
