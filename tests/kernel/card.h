/* SPDX-License-Identifier: MIT */
/*
 * card.h - shared by the programs that test zero-copy sends of libnabc through a network
 * card.  The guest has two emulated cards on one hub, with scatter-gather and checksums
 * of their own; the second one belongs to the peer.  A veth pair is not enough: what
 * crosses it is copied.
 */
#ifndef NC_TEST_CARD_H
#define NC_TEST_CARD_H

#include <stdbool.h>
#include <stddef.h>

#include "library.h"

/* The first card, and the address of the second one. */
#define CARD "eth0"
#define CARD_PEER "10.9.2.2"

/* Sets up both cards, and waits until they reach each other. */
void card_set_up(void);

/* Sets whether the card sends packets of several pieces of memory. */
void card_scatter(bool on);

/* Sends a unit until the socket of a peer that does not read is full; returns how much. */
size_t card_send_some(int socket, size_t id, size_t size);

/* Sends a unit from where `skip` says, to its end. */
void card_send(int socket, size_t id, size_t size, size_t skip);

/* Waits until the kernel has reported the end of all zero-copy sends. */
void card_settle(void);

/* Returns how many KiB of this process are pinned. */
unsigned long card_pinned(void);

/* Waits until that many KiB are; ends the program if they never are. */
void card_await_pinned(unsigned long kib);

#endif
