/* SPDX-License-Identifier: MIT */
/* worker-fixture.h - what the two files of the program worker-fixture share. */
#ifndef WORKER_FIXTURE_H
#define WORKER_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include <nabc-worker.h>

#include "api/registry.h"
#include "worker/responder.h"
#include "unit-holds.h"

struct NC_range;

/* As in worker.c, to access the queues and the table. */
struct NC_worker {
	struct NC_cache *cache;
	struct nc_responder *responder;
};

#define BODY ((size_t)100 << 10)

extern NC_worker *worker;
extern struct NC_request request; /* which is being answered */
extern char body[BODY];

void die(const char *what);

/* A variable of the request: "" or 0 if there is none. */
const char *variable(const char *name);
uint64_t number(const char *name);

/* The id of a new unit of size bytes, of which the first are data; 0: there was no memory. */
size_t insert(const void *data, size_t length, size_t size);
void respond(int status, unsigned flags, const char *headers, size_t id, size_t length);

/* Past all the checks of NC_worker_respond(). */
void push_raw(int status, unsigned flags, const struct NC_range *ranges, unsigned count);

/* What a request can ask for. */
void stream(void);
void bad_stream(void);
void read_body(void);
void echo_body(void);
void report_outcome(void);
void abort_it(void);
void await_gone(void);
void raw_records(void);
void replace_me(void);
void say_interim(void);
void end_with_trailers(void);
void stream_errors(void);

#endif
