/* SPDX-License-Identifier: MIT */
/*
 * wan-link.h - one direction of a wide-area link, as a model: packets go in at
 * a time, some get lost, the rest waits for its turn on the wire and comes out
 * a delay later, in order; but some come twice and some late, if that is wanted.
 * Knows neither clocks nor devices.  One thread.
 */
#ifndef WAN_LINK_H
#define WAN_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAN_PACKET_MAX 2048u
#define WAN_LATE_MAX 32u /* packets that others overtake, at once */

struct wan_settings {
	uint64_t delay; /* ns */
	double loss;	/* share of the packets, 0 to 1 */
	uint64_t rate;	/* bits per second; 0: as many as come */
	uint64_t queue; /* bytes that may wait for the wire, if there is a rate */
	uint64_t room;	/* bytes of memory for what is under way */
	uint64_t seed;
	double duplicate; /* share of the packets that come out twice */
	double reorder;	  /* share of those that are late ... */
	uint64_t late;	  /* ... by at most that many ns more */
};

struct wan_counts {
	uint64_t packets, bytes; /* went in */
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
	uint64_t random;   /* for what gets lost */
	uint64_t disorder; /* for what comes twice or late, so that it changes no loss */
	uint64_t free_at;  /* when the wire has sent what was put so far */
	char *ring;	   /* owned; records, each in one piece */
	size_t size, head, tail;
	bool wrapped;	       /* tail has wrapped, and is before head */
	struct wan_late *late; /* owned; in no order, NULL if none can be late */
	unsigned late_count;
};

/* 0 or -errno; wan_link_fini() frees what it made. */
int wan_link_init(struct wan_link *link, const struct wan_settings *settings);
void wan_link_fini(struct wan_link *link);

/*
 * Where the next packet may be written, WAN_PACKET_MAX bytes, until
 * wan_link_put() says how many it has.  A full link gives room, too, and loses it.
 */
void *wan_link_room(struct wan_link *link);
void wan_link_put(struct wan_link *link, uint64_t now, size_t length);

/* When the first packet comes out; UINT64_MAX: none is under way. */
uint64_t wan_link_due(const struct wan_link *link);

/* The first packet if it is due, until wan_link_drop(); else NULL. */
const void *wan_link_first(const struct wan_link *link, uint64_t now, size_t *length);
void wan_link_drop(struct wan_link *link);

#endif
