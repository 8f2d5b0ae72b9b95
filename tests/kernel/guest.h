/* SPDX-License-Identifier: MIT */
/*
 * guest.h - what the programs share that test nabc.ko in a guest: checks that
 * end the program, processes in the other network namespace, TCP connections
 * between the two, bytes that tell where they belong, and counters of the
 * kernel's.
 *
 * Each program is one process that prints a line for each thing that it
 * tested, and exits with 1 at the first that is wrong.
 */
#ifndef NC_TEST_GUEST_H
#define NC_TEST_GUEST_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Ends the program unless what holds. */
#define must(what) guest_must((what), #what, __FILE__, __LINE__)

/* Ends the program unless what fails with the errno wanted. */
#define must_fail(what, wanted) guest_must_fail((what), (wanted), #what, __FILE__, __LINE__)

void guest_must(bool good, const char *what, const char *file, int line);
void guest_must_fail(long result, int wanted, const char *what, const char *file, int line);

/* Says what was tested. */
void guest_tested(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Runs a command by the shell; ends the program when it fails. */
void guest_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on in another network namespace, such as "peer". */
void guest_enter(const char *namespace);

/*
 * Forks a child that runs body(context) and exits with what it returns.
 */
pid_t guest_fork(int (*body)(void *context), void *context);

/* Waits for a child; ends the program unless it exited with 0. */
void guest_join(pid_t child);

/* Loads /nabc.ko with parameters, unloads it: 0, or -1 and errno. */
int guest_load(const char *parameters);
int guest_unload(void);

/* Milliseconds of a clock that only goes forward. */
uint64_t guest_now(void);

/*
 * Waits until a condition holds, which is looked at every few milliseconds, at
 * most a minute; whether it does.  A guest that is emulated beside others takes
 * its time.
 */
bool guest_wait(bool (*holds)(void *context), void *context);

/* The next of a row of random numbers; state must not be 0. */
uint64_t guest_random(uint64_t *state);

/* A number of /proc/meminfo, in KiB, or of /proc/vmstat. */
long guest_meminfo(const char *name);
long guest_vmstat(const char *name);

/* The byte at a place of the unit that a seed names. */
unsigned char guest_byte(uint64_t seed, uint64_t place);

/* Fills memory with the bytes from place on; says whether it holds them. */
void guest_fill(void *to, uint64_t seed, uint64_t place, size_t length);
bool guest_holds(const void *from, uint64_t seed, uint64_t place, size_t length);

/*
 * A connection to the peer: the near end in this process, the far end in one
 * of the other namespace, over the devices that tc delays and loses packets of.
 */
struct guest_pair {
	int near; /* here */
	int far;  /* there; usable here, too */
};

/* family is AF_INET or AF_INET6. */
struct guest_pair guest_connect(int family);

/* To another address of the peer's. */
struct guest_pair guest_connect_to(int family, const char *address);

void guest_disconnect(struct guest_pair *pair);

/* Whether the near device makes checksums and segments, or the kernel for it. */
void guest_offload(bool on);
void guest_offload_of(const char *device, bool on);

/* Reads length bytes and says whether all came and they are the unit's. */
bool guest_receive(int socket, uint64_t seed, uint64_t place, size_t length);

/* Whether the connection is at its end. */
bool guest_ended(int socket);

/* Waits until the other end has reset the connection, at most a minute; whether it has. */
bool guest_reset(int socket);

#endif
