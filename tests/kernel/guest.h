/* SPDX-License-Identifier: MIT */
/*
 * guest.h - shared by the programs that test nabc.ko in a guest: checks that end the
 * program, processes in the other network namespace, TCP connections between the two,
 * bytes that identify their place, and counters of the kernel.  Each program is one
 * process that prints a line for each tested item, and exits with 1 at the first
 * error.
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

/* Ends the program unless the condition holds. */
#define must(what) guest_must((what), #what, __FILE__, __LINE__)

/* Ends the program unless the call fails with the expected errno. */
#define must_fail(what, wanted) guest_must_fail((what), (wanted), #what, __FILE__, __LINE__)

void guest_must(bool good, const char *what, const char *file, int line);
void guest_must_fail(long result, int wanted, const char *what, const char *file, int line);

/* Prints what was tested. */
void guest_tested(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Runs a command in the shell; ends the program if it fails. */
void guest_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Enters another network namespace, such as "peer". */
void guest_enter(const char *namespace);

/*
 * Forks a child that runs body(context) and exits with what it returns.
 */
pid_t guest_fork(int (*body)(void *context), void *context);

/* Waits for a child; ends the program unless it exited with 0. */
void guest_join(pid_t child);

/* Loads /nabc.ko with parameters, or unloads it: 0, or -1 and errno. */
int guest_load(const char *parameters);
int guest_unload(void);

/* Milliseconds of a monotonic clock. */
uint64_t guest_now(void);

/*
 * Waits until a condition holds, which is checked every few milliseconds, at most a
 * minute; returns whether it does.  An emulated guest is slow.
 */
bool guest_wait(bool (*holds)(void *context), void *context);

/* Returns the next random number; state must not be 0. */
uint64_t guest_random(uint64_t *state);

/* Returns a number of /proc/meminfo, in KiB, or of /proc/vmstat. */
long guest_meminfo(const char *name);
long guest_vmstat(const char *name);

/* Returns the TCP segments that were sent again from this namespace. */
unsigned long guest_retransmitted(void);

/* Returns the byte at a place of the unit with that seed. */
unsigned char guest_byte(uint64_t seed, uint64_t place);

/* Fills memory with the bytes from place on; the other function checks them. */
void guest_fill(void *to, uint64_t seed, uint64_t place, size_t length);
bool guest_holds(const void *from, uint64_t seed, uint64_t place, size_t length);

/*
 * A connection to the peer: the near end in this process, the far end in one of the
 * other namespace, over the devices on which tc delays and loses packets.
 */
struct guest_pair {
	int near; /* here */
	int far;  /* there; usable here, too */
};

/* family is AF_INET or AF_INET6. */
struct guest_pair guest_connect(int family);

/* Connects to another address of the peer. */
struct guest_pair guest_connect_to(int family, const char *address);

void guest_disconnect(struct guest_pair *pair);

/* Sets whether the near device or the kernel makes checksums and segments. */
void guest_offload(bool on);
void guest_offload_of(const char *device, bool on);

/* Reads length bytes and returns whether all arrived and are those of the unit. */
bool guest_receive(int socket, uint64_t seed, uint64_t place, size_t length);

/* Returns whether the connection is at its end. */
bool guest_ended(int socket);

/* Waits until the other end has reset the connection, at most a minute; returns whether it has. */
bool guest_reset(int socket);

#endif
