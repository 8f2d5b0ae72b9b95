/* SPDX-License-Identifier: MIT */
/*
 * client-workload.h - in what order, and at what rate, the simulated clients send
 * requests.  One const table for each kind; a workload belongs to the caller that
 * opened it.
 */
#ifndef CLIENT_WORKLOAD_H
#define CLIENT_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "client-requests.h"

/* The next action of a client. */
struct step {
	const struct request *request;
	uint64_t pause; /* microseconds before it is sent */
	bool leave;	/* the connection, if one is kept, is closed before */
};

struct workload;

struct workload_kind {
	void (*next)(struct workload *workload, uint32_t client, struct step *step);
	void (*close)(struct workload *workload);
};

struct workload {
	const struct workload_kind *kind;
};

/* All clients share one circular list: each request in its order. */
struct workload *workload_in_order(const struct requests *requests);

/* Each client draws from the list independently; the same seed draws the same. */
struct workload *workload_shuffled(const struct requests *requests, uint32_t clients,
				   uint64_t seed);

/*
 * Users like those of SURGE (surge.h); the list contains the documents, the most
 * popular first. scale: of all times between requests. pages: a connection for each
 * page, otherwise the users keep theirs, or as the load says.
 */
struct workload *workload_surge(const struct requests *requests, uint32_t clients, uint64_t seed,
				double scale, bool pages);

#endif
