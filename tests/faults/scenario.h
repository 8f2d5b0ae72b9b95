/* SPDX-License-Identifier: MIT */
/*
 * scenario.h - what a program does with the library while its calls fail (library.c),
 * and how it reports that.  Faults occur, and calls and heap blocks are counted, only
 * within calls of the library: OK() and similar macros begin and end that.  All other
 * actions of a scenario never fail.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>
#include <stddef.h>
#include <stdint.h>

#include <nabc-async.h>
#include <nabc.h>

struct scenario {
	const char *name;
	/* Before all rounds, and after: what is there besides.  May be NULL. */
	void (*open)(void);
	void (*close)(void);
	/* One round; it leaves nothing behind, whatever fails. */
	void (*round)(void);
};

extern const struct scenario scenario_units, scenario_sends, scenario_rings, scenario_registered,
	scenario_owner, scenario_member, scenario_server, scenario_worker;

/* The program as a worker of scenario_server: its argument. */
#define AS_WORKER "as-worker"

int worker_main(void);

/* --- a round and its calls ------------------------------------------------------------ */

void call_begin(void);

/*
 * Records the result of a call: good, or failed, with an errno that its manual page
 * lists (the driver checks that).  Returns good.
 */
bool call_end(const char *call, bool good);

/* The same for a call that must fail with that errno. */
bool call_end_refused(const char *call, bool failed, int error);

/* For calls that return a number: at least 0; or a pointer: not NULL. */
#define OK(call) (call_begin(), call_end(#call, (call) >= 0))
#define GOT(pointer, call) (call_begin(), call_end(#call, ((pointer) = (call)) != NULL))
#define NUMBER(number, call) (call_begin(), call_end(#call, ((number) = (call)) >= 0))
#define REFUSED(call, error) (call_begin(), call_end_refused(#call, (call) < 0, error))
/* For those that cannot fail. */
#define DO(call) (call_begin(), (call), (void)call_end(#call, true))

/* Within a call of the library: a callback is not part of it. */
void callback_begin(void);
void callback_end(void);

/* Reports an error, whatever call has failed. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			wrong("%s:%d: not %s", __FILE__, __LINE__, #condition);                    \
	} while (0)

/* Returns whether nothing has failed in this round so far. */
bool is_clean(void);

/* Returns whether calls of that kind fail in this round. */
bool is_fault_of(const char *kind);

/* --- what scenarios share ------------------------------------------------------------- */

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Returns the path of a file in the folder for temporary files. */
const char *scratch(const char *name);

/* Opens both ends of a stream: TCP over loopback, or Unix; the first does not block. */
void open_stream(int ends[2], bool tcp);
void close_pair(const int ends[2]);

/* Returns the byte at that offset of a unit. */
unsigned char byte_of(size_t at);

/* Fills a unit of that size in several ways and inserts it; returns its id, or 0. */
size_t make_unit(NC_cache *cache, enum NC_kind kind, size_t size, unsigned flags);

/* Reads what a socket has received, which must be the unit's bytes from *at on; advances *at. */
void take_bytes(int socket, size_t *at, size_t size);

struct io_uring;

/*
 * Runs an operation's steps on the ring, from registered memory if buffers are given; accepted
 * bytes are read at once, as by take_bytes().  Returns whether it is complete.
 */
bool run_operation(struct io_uring *ring, NC_send_op *operation, NC_ring_buffers *buffers,
		   int socket, size_t *at, size_t size);

/* Closes it, or abandons it if its completions are lost. */
void end_operation(NC_send_op *operation);

/* Waits until one of them is readable; returns false after a second. */
bool await_either(int one, int other);

/* Starts a process that runs live(), with a message socket to this one, whose end is *control. */
pid_t start_beside(void (*live)(int control), int *control);

#endif
