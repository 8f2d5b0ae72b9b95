/* SPDX-License-Identifier: MIT */
/*
 * supervisor.h - whoever started this process and wants to know how it is:
 * systemd, or anything that speaks its two small protocols.  Listening
 * sockets come by descriptor (LISTEN_FDS), news goes to a datagram socket
 * (NOTIFY_SOCKET).  Main thread only.
 */
#ifndef SWEET_SUPERVISOR_H
#define SWEET_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define SUPERVISOR_FDS_MAX 256

struct supervisor {
	int socket; /* -1: nobody wants to be told */
	struct sockaddr_storage address;
	socklen_t length;
	uint64_t watchdog_us; /* to be heard of that often; 0: need not */
	int first_fd;	      /* handed over: fd_count descriptors from here on */
	unsigned fd_count;
	char *names; /* one a descriptor, with ":" between; NULL: none */
};

/*
 * Takes what the environment says and removes it there, so that no child
 * takes it for its own.  What is meant for another process, or makes no
 * sense, counts as not there.
 */
void supervisor_open(struct supervisor *supervisor);
void supervisor_close(struct supervisor *supervisor);

/* The name of the n-th descriptor, into a buffer; "unknown" without one. */
const char *supervisor_name(const struct supervisor *supervisor, unsigned n, char *name,
			    size_t size);

/* Each is one message; a supervisor that does not listen is none of our concern. */
void supervisor_ready(const struct supervisor *supervisor, const char *status);
void supervisor_reloading(const struct supervisor *supervisor);
void supervisor_stopping(const struct supervisor *supervisor, const char *status);
void supervisor_alive(const struct supervisor *supervisor);

#endif
