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

#include <nabc.h>

struct scenario {
	const char *name;
	/* Before all rounds, and after: what is there besides.  May be NULL. */
	void (*open)(void);
	void (*close)(void);
	/* One round; it leaves nothing behind, whatever fails. */
	void (*round)(void);
};

extern const struct scenario scenario_units, scenario_sends, scenario_rings, scenario_owner,
	scenario_member, scenario_server, scenario_worker;

/* The program as a worker of scenario_server: its argument. */
#define AS_WORKER "as-worker"

int worker_main(void);

/* --- a round and its calls ------------------------------------------------------------ */

void call_begin(void);

/*
 * Notes what a call came to: good, or not, with errno and as its page says
 * (the driver looks it up).  Returns good.
 */
bool call_end(const char *call, bool good);

/* The same of a call that has to fail with that errno. */
bool call_end_refused(const char *call, bool failed, int error);

/* Of calls with a number: at least 0; with a pointer: not NULL. */
#define OK(call) (call_begin(), call_end(#call, (call) >= 0))
#define GOT(pointer, call) (call_begin(), call_end(#call, ((pointer) = (call)) != NULL))
#define NUMBER(number, call) (call_begin(), call_end(#call, ((number) = (call)) >= 0))
#define REFUSED(call, error) (call_begin(), call_end_refused(#call, (call) < 0, error))
/* Of those that cannot fail. */
#define DO(call) (call_begin(), (call), (void)call_end(#call, true))

/* Within a call of the library: its callback is none of it. */
void callback_begin(void);
void callback_end(void);

/* Something was not as it has to be, whatever has failed. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			wrong("%s:%d: not %s", __FILE__, __LINE__, #condition);                    \
	} while (0)

/* Whether nothing has failed in this round so far. */
bool is_clean(void);

/* Whether calls of that kind are to fail in this round. */
bool is_fault_of(const char *kind);

/* --- what scenarios share ------------------------------------------------------------- */

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* A file's path in the folder for such things. */
const char *scratch(const char *name);

/* Two ends of a stream: TCP of the loopback, or of Unix; the first does not block. */
void open_stream(int ends[2], bool tcp);
void close_pair(const int ends[2]);

/* The byte at that place of a unit. */
unsigned char byte_of(size_t at);

/* Fills a unit of that size in several ways and inserts it; its id, or 0. */
size_t make_unit(NC_cache *cache, enum NC_kind kind, size_t size, unsigned flags);

/* What has come to a socket is read, and is what a unit has from *at on, which is moved. */
void take_bytes(int socket, size_t *at, size_t size);

/* Waits until one of them can be read; false: not for a second. */
bool await_either(int one, int other);

/* A process that lives so, with a socket of messages to this one, whose end is *control. */
pid_t start_beside(void (*live)(int control), int *control);

#endif
