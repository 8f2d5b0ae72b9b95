/* SPDX-License-Identifier: MIT */
/*
 * wan-spoil.h - corrupts bytes of TCP in flight such that no checksum detects it, to
 * test whether the receiver does.  Pure; one thread.
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

/* By chance, flips one bit in the data of an IPv4 packet of TCP. */
void wan_spoil(struct wan_spoil *spoil, unsigned char *packet, size_t length);

#endif
