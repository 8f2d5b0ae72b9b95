/* SPDX-License-Identifier: MIT */
/*
 * wan-spoil.h - bytes of TCP made wrong on their way such that no checksum
 * tells, for trying whether who receives them finds out.  Pure; one thread.
 */
#ifndef WAN_SPOIL_H
#define WAN_SPOIL_H

#include <stddef.h>
#include <stdint.h>

struct wan_spoil {
	double share;	 /* of the packets that have bytes; 0: none */
	uint64_t random; /* any seed */
	uint64_t count;	 /* of those that were spoiled */
};

/* Maybe turns one bit of what an IPv4 packet of TCP carries. */
void wan_spoil(struct wan_spoil *spoil, unsigned char *packet, size_t length);

#endif
