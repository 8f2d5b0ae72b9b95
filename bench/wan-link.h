/* SPDX-License-Identifier: MIT */
/*
 * wan-link.h - a model of one direction of a wide-area link: packets enter at a time,
 * some get lost, the others wait for the wire and leave after a delay, in order;
 * optionally, some are duplicated and some late.  Uses neither clocks nor devices.
 * One thread.
 */
#ifndef WAN_LINK_H
#define WAN_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAN_PACKET_MAX 2048u
#define WAN_LATE_MAX 32u /* maximum of concurrent packets that others overtake */

struct wan_settings {
	uint64_t delay; /* ns */
	double loss;	/* share of the packets, 0 to 1 */
	uint64_t rate;	/* bits per second; 0: no limit */
	uint64_t queue; /* bytes that may wait for the wire, if there is a rate */
	uint64_t room;	/* bytes of memory for packets in flight */
	uint64_t seed;
	double duplicate; /* share of the packets that are duplicated */
	double reorder;	  /* share of those that are late ... */
	uint64_t late;	  /* ... by at most that many ns more */
};

struct wan_counts {
	uint64_t packets, bytes; /* entered */
	uint64_t lost;		 /* by chance */
	uint64_t overflowed;	 /* the queue or the memory was full */
	uint64_t delivered, delivered_bytes;
	uint64_t duplicated, late;
};

struct wan_late {
	uint64_t due;
	size_t length;
	char packet[WAN_PACKET_MAX];
};

struct wan_link {
	struct wan_settings settings;
	struct wan_counts counts;
	uint64_t random;   /* for losses */
	uint64_t disorder; /* for duplicates and late packets, so that these change no loss */
	uint64_t free_at;  /* when the wire has sent all earlier packets */
	char *ring;	   /* owned; records, each in one piece */
	size_t size, head, tail;
	bool wrapped;	       /* tail has wrapped, and is before head */
	struct wan_late *late; /* owned; in no order, NULL if none can be late */
	unsigned late_count;
};

/* Returns 0 or -errno; wan_link_fini() frees it. */
int wan_link_init(struct wan_link *link, const struct wan_settings *settings);
void wan_link_fini(struct wan_link *link);

/*
 * Returns memory for the next packet, WAN_PACKET_MAX bytes, until wan_link_put() sets
 * its length.  A full link also returns memory, and drops the packet.
 */
void *wan_link_room(struct wan_link *link);
void wan_link_put(struct wan_link *link, uint64_t now, size_t length);

/* Returns when the first packet leaves; UINT64_MAX: none is in flight. */
uint64_t wan_link_due(const struct wan_link *link);

/* Returns the first packet if it is due, until wan_link_drop(); else NULL. */
const void *wan_link_first(const struct wan_link *link, uint64_t now, size_t *length);
void wan_link_drop(struct wan_link *link);

#endif
