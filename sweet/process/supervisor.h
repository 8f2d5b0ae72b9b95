/* SPDX-License-Identifier: MIT */
/*
 * supervisor.h - reports to a supervisor: systemd, or another one with the same two
 * small protocols.  It passes listening sockets as descriptors (LISTEN_FDS), and
 * receives status messages on a datagram socket (NOTIFY_SOCKET).  Main thread only.
 */
#ifndef SWEET_SUPERVISOR_H
#define SWEET_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define SUPERVISOR_FDS_MAX 256

struct supervisor {
	int socket; /* -1: no supervisor */
	struct sockaddr_storage address;
	socklen_t length;
	uint64_t watchdog_us; /* interval of watchdog messages; 0: none required */
	int first_fd;	      /* passed: fd_count descriptors from here on */
	unsigned fd_count;
	char *names; /* one for each descriptor, separated by ":"; NULL: none */
};

/*
 * Reads the variables of the environment, and removes them so that no child uses
 * them.  Ignores variables for another process, and invalid ones.
 */
void supervisor_open(struct supervisor *supervisor);
void supervisor_close(struct supervisor *supervisor);

/* Writes the name of the n-th descriptor; "unknown" without one. */
const char *supervisor_name(const struct supervisor *supervisor, unsigned n, char *name,
			    size_t size);

/* Each sends one message; errors are ignored. */
void supervisor_ready(const struct supervisor *supervisor, const char *status);
void supervisor_reloading(const struct supervisor *supervisor);
void supervisor_stopping(const struct supervisor *supervisor, const char *status);
void supervisor_alive(const struct supervisor *supervisor);

#endif
