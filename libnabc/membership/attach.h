/* SPDX-License-Identifier: MIT */
/*
 * attach.h - attaching to another process's cache: the member's end of serve.h.
 */
#ifndef NC_ATTACH_H
#define NC_ATTACH_H

#include "cache/index.h"
#include "wire/wire.h"

/* Says what is wanted (NC_WIRE_*), and which versions this library speaks. */
int nc_attach_hello(int socket, uint32_t flags);

/* Reports that a peer, named by end ("worker", for example), speaks no version of ours. */
void nc_attach_report(struct nc_diagnostics *diagnostics, const char *end, pid_t pid,
		      uint32_t version, uint32_t oldest);

/*
 * Checks a message that is not a call.  -EPROTONOSUPPORT, and a report: the hello of a worker
 * that speaks no version of ours; -EPROTO: anything else.
 */
int nc_attach_last_word(struct nc_diagnostics *diagnostics, pid_t pid, const void *message,
			size_t length);

/*
 * Waits at most timeout_ms for the welcome on socket and sets cache up.  fds
 * receives the descriptors behind the segment's, the caller's from then on.
 * -EPROTONOSUPPORT: *welcome tells which versions the owner speaks.
 */
int nc_attach(struct nc_index *index, int socket, int timeout_ms, struct nc_wire_welcome *welcome,
	      int *fds);

#endif
