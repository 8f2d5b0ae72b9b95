/* SPDX-License-Identifier: MIT */
/* attach.h - attaches to another process's cache: the member's end of serve.h. */
#ifndef NC_ATTACH_H
#define NC_ATTACH_H

#include <stdint.h>
#include <sys/types.h>

struct nc_diagnostics;
struct nc_index;
struct nc_wire_welcome;

/* Sends the hello: the requested features (NC_WIRE_*) and the versions that this library speaks. */
int nc_attach_hello(int socket, uint32_t flags);

/* Reports that a peer, described by end ("worker", for example), speaks none of our versions. */
void nc_attach_report(struct nc_diagnostics *diagnostics, const char *end, pid_t pid,
		      uint32_t version, uint32_t oldest);

/*
 * Checks a message that is not a call.  Returns -EPROTONOSUPPORT and reports the
 * versions if it is the hello of a worker that speaks none of our versions, -EPROTO
 * for anything else.
 */
int nc_attach_last_word(struct nc_diagnostics *diagnostics, pid_t pid, const void *message,
			size_t length);

/*
 * Waits at most timeout_ms for the welcome on socket, then initialises index.
 * Stores in fds the descriptors that follow the segment's; the caller must close
 * them.  If it returns -EPROTONOSUPPORT, *welcome states the versions that the
 * owner speaks.
 */
int nc_attach(struct nc_index *index, int socket, int timeout_ms, struct nc_wire_welcome *welcome,
	      int *fds);

#endif
