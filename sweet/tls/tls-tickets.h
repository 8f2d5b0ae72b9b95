/* SPDX-License-Identifier: MIT */
/*
 * tls-tickets.h - the keys of session tickets (RFC 5077; RFC 8446, section 2.2), the same for all
 * threads and processes without a word between them.
 *
 * Each hour has its key.  The key of an hour and the seed of the next are derived from its seed,
 * which is then erased, so that a process that reads the memory learns nothing about tickets that
 * have expired.  Processes that began with the same seed have the same keys at the same time.
 * Tickets are accepted in the hour of their key and in the next one.
 */
#ifndef SWEET_TLS_TICKETS_H
#define SWEET_TLS_TICKETS_H

#include <stdbool.h>
#include <stdint.h>

#define TLS_TICKET_LIFETIME 3600u /* seconds */
#define TLS_TICKET_NAME 16u	  /* bytes, which name the key in a ticket */

struct tls_tickets;

struct tls_ticket_key {
	unsigned char name[TLS_TICKET_NAME];
	unsigned char cipher[32]; /* AES-256 */
	unsigned char mac[32];	  /* HMAC-SHA-256 */
};

/* Begins with a random seed; now: seconds, by a clock that all processes share.  NULL: failure. */
struct tls_tickets *tls_tickets_open(uint64_t now);
void tls_tickets_close(struct tls_tickets *tickets);

/*
 * Derives the keys of the current hour, if it has begun since the last call.  Call it before a
 * process is forked, which continues from here.  Any thread.
 */
void tls_tickets_advance(struct tls_tickets *tickets, uint64_t now);

/* Copies the key for new tickets; OPENSSL_cleanse() it.  Any thread. */
void tls_tickets_current(struct tls_tickets *tickets, uint64_t now, struct tls_ticket_key *key);

/* Copies the key of that name; returns false if it does not exist any more.  Any thread. */
bool tls_tickets_find(struct tls_tickets *tickets, uint64_t now,
		      const unsigned char name[TLS_TICKET_NAME], struct tls_ticket_key *key);

#endif
