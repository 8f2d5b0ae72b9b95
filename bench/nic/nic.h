/* SPDX-License-Identifier: MIT */
/*
 * nic.h - shared by the parts of "bench nic", one program that runs in two guests of
 * QEMU with a network card each: beside the server under test, which it starts, and
 * on the machine of the clients.  The server's end decides what happens, and sends
 * the client's end a line for each step over a TCP connection.  must() ends it on any
 * failure.
 */
#ifndef NC_BENCH_NIC_H
#define NC_BENCH_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest.h"

#define NIC_DEVICE "eth0"
#define NIC_SERVER "10.9.1.1"
#define NIC_CLIENT "10.9.1.2"
#define NIC_CONTROL_PORT 7
#define NIC_PATH_MAX 256

/* One case: requests for one path, on some connections, in rounds. */
struct nic_load {
	unsigned int port;
	size_t size; /* of each body */
	bool check;  /* the bytes of the warm-up are those of nic_fill() */
	unsigned int warm_up, requests, connections;
	char path[NIC_PATH_MAX];
};

/* --- end.c: what both ends do --------------------------------------------------- */

/* Sets up this guest's card; address: its own. */
void nic_set_up(const char *address, unsigned int mtu, bool offload);

/* Fills memory with the body of every document from byte `at` on. */
void nic_fill(char *to, size_t at, size_t size);

/* Sends a line to the other end, and reads one of at most `most` bytes, without its end. */
void nic_say(int control, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nic_hear(int control, char *line, size_t most);

/* --- the roles ------------------------------------------------------------------ */

/* Measures each case of a file: see server.c. */
int nic_server(const char *cases);

/* Obeys the server's end until it closes the connection. */
int nic_client(void);

/* --- load.c: the clients of one case --------------------------------------------- */

struct load;

/* Opens the connections, and sends the requests of the warm-up. */
struct load *load_open(const struct nic_load *what);

/* Sends the requests of a round, and returns when all are answered. */
void load_round(struct load *load, unsigned int requests);

void load_close(struct load *load);

#endif
