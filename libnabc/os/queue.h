/* SPDX-License-Identifier: MIT */
/*
 * queue.h - a bounded queue of records in shared memory, from one producer to one
 * consumer, and the doorbell that wakes a sleeping consumer.
 *
 * Each side keeps its own position in private memory and only reads the other's.
 * Invalid data from a peer results in -EPROTO, and harms only its own records
 * (invariant 2).
 */
#ifndef NC_QUEUE_H
#define NC_QUEUE_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * In shared memory; followed by the data, whose size is a power of two.  The release of head, in
 * nc_queue_push_leaving(), pairs with the acquire in nc_queue_pop(): the consumer sees the record.
 * The release of tail, in nc_queue_pop(), pairs with the acquire in has_room(): the producer
 * overwrites only what was read.  The flags are relaxed, and ordered by the fences of queue.c.
 */
struct nc_queue_shared {
	alignas(64) _Atomic uint64_t head; /* bytes ever written, by the producer */
	alignas(64) _Atomic uint64_t tail; /* bytes ever read, by the consumer */
	/* claim counter; on the consumer's cache line, but either side may claim */
	_Atomic uint64_t claims;
	/* records until the consumer wants the doorbell; 0: awake */
	alignas(64) _Atomic uint32_t sleeping;
	alignas(64) _Atomic uint32_t blocked; /* the producer waits for free space */
	alignas(64) unsigned char data[];
};

static_assert(sizeof(struct nc_queue_shared) == 256, "ABI of the queues");

struct nc_queue {
	struct nc_queue_shared *shared;
	uint32_t size; /* bytes of data */
	uint64_t own;  /* this side's position */
};

/* Returns the bytes of shared memory for a queue of size bytes. */
static inline size_t nc_queue_footprint(uint32_t size)
{
	return sizeof(struct nc_queue_shared) + size;
}

/* memory: zeroed at creation, 64-byte aligned; size: a power of two. */
void nc_queue_init(struct nc_queue *queue, void *memory, uint32_t size);

/*
 * Producer: appends one record of two parts.  Returns 0, -EAGAIN (full), -EMSGSIZE
 * (never fits), or -EPROTO (the consumer's position is impossible).
 */
int nc_queue_push(struct nc_queue *queue, const void *head, size_t head_length, const void *body,
		  size_t body_length);

/* Appends the record as nc_queue_push(), but only if `leaving` bytes remain free afterwards. */
int nc_queue_push_leaving(struct nc_queue *queue, const void *head, size_t head_length,
			  const void *body, size_t body_length, uint32_t leaving);

/* Producer, after pushing one record: whether the consumer sleeps and must be woken. */
bool nc_queue_must_ring(struct nc_queue *queue);

/* Producer: whether the consumer has taken all that was pushed. */
bool nc_queue_is_taken(const struct nc_queue *queue);

/*
 * Producer, before a pause: whether a sleeping consumer must be woken for records
 * that it was not woken for.
 */
bool nc_queue_must_ring_now(struct nc_queue *queue);

/*
 * Consumer: copies the next record out.  Returns its length, 0 if there is none, or
 * -EPROTO (the producer wrote invalid data, or a record larger than limit).
 */
int64_t nc_queue_pop(struct nc_queue *queue, void *record, size_t limit);

/*
 * Consumer: announces that it sleeps until that many records came, at least one.
 * True: do not sleep, the queue is not empty.
 */
bool nc_queue_arm(struct nc_queue *queue, uint32_t records);
void nc_queue_disarm(struct nc_queue *queue);

/* The same, but what it announces remains: another thread may sleep already. */
bool nc_queue_arm_shared(struct nc_queue *queue, uint32_t records);

/* Producer: whether length bytes fit, or never will. */
bool nc_queue_has_room(const struct nc_queue *queue, size_t length);

/* Producer: announces that it sleeps until length bytes fit; true: do not sleep. */
bool nc_queue_arm_room(struct nc_queue *queue, size_t length);

/* The same, but what it announces remains: another thread may sleep already. */
bool nc_queue_arm_room_shared(struct nc_queue *queue, size_t length);

/* Consumer, after popping: whether the producer waits for free space. */
bool nc_queue_must_ring_room(struct nc_queue *queue);

/*
 * A counter that both sides read; 0 at first.  Who sees a record that the setter pushes next sees
 * the new value, too, by the release of head; so does who sees the end of the setter's process.
 */
static inline void nc_queue_set_claims(struct nc_queue *queue, uint64_t number)
{
	atomic_store_explicit(&queue->shared->claims, number, memory_order_release);
}

static inline uint64_t nc_queue_claims(const struct nc_queue *queue)
{
	return atomic_load_explicit(&queue->shared->claims, memory_order_acquire);
}

/*
 * Either side: changes the counter from *from to `to`, atomically.  False: it has
 * another value, which is stored in *from.
 */
static inline bool nc_queue_claim(struct nc_queue *queue, uint64_t *from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(&queue->shared->claims, from, to,
						       memory_order_acq_rel, memory_order_acquire);
}

/*
 * Doorbells.  The O_NONBLOCK flag of an eventfd is shared by all its holders, so
 * the other side can make a process block when it rings or reads.  A member
 * therefore rings the owner by eventfd, which the owner watches edge-triggered and
 * never reads.  The owner rings a member through a pipe: the owner keeps its
 * writing end, and end of file tells the member that the owner is gone.
 */
int nc_doorbell_open(void);			  /* an eventfd, or -errno */
int nc_doorbell_open_pipe(int *watch, int *ring); /* 0 or -errno */
void nc_doorbell_ring(int ring);		  /* either kind; never fails */
int nc_doorbell_wait(int watch);		  /* pipe: 1 rung, 0 the owner is gone, -errno */

#endif
