/* SPDX-License-Identifier: MIT */
/*
 * queue.h - a bounded queue of records in shared memory, from one producer
 * to one consumer, and the doorbell that wakes a sleeping consumer.
 *
 * Each side keeps its own position privately and only reads the other's; a
 * peer that writes nonsense is told by -EPROTO and can spoil its own records
 * only (invariant 2).
 */
#ifndef NC_QUEUE_H
#define NC_QUEUE_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In shared memory; followed by the data, a power of two of bytes. */
struct nc_queue_shared {
	alignas(64) _Atomic uint64_t head; /* bytes ever written: the producer's */
	alignas(64) _Atomic uint64_t tail; /* bytes ever read: the consumer's */
	_Atomic uint64_t told;		   /* on the consumer's line; either side may claim it */
	alignas(64) _Atomic uint32_t sleeping; /* records until the doorbell is wanted; 0: awake */
	alignas(64) _Atomic uint32_t blocked;  /* the producer waits for room */
	alignas(64) unsigned char data[];
};

static_assert(sizeof(struct nc_queue_shared) == 256, "ABI of the queues");

struct nc_queue {
	struct nc_queue_shared *shared;
	uint32_t size; /* bytes of data */
	uint64_t own;  /* this side's position */
};

/* Bytes of shared memory for a queue of size bytes. */
static inline size_t nc_queue_footprint(uint32_t size)
{
	return sizeof(struct nc_queue_shared) + size;
}

/* memory: zeroed at creation, 64-byte aligned; size: a power of two. */
void nc_queue_init(struct nc_queue *queue, void *memory, uint32_t size);

/*
 * Producer: appends one record of two parts.  0; -EAGAIN: no room now;
 * -EMSGSIZE: never fits; -EPROTO: the consumer's position is impossible.
 */
int nc_queue_push(struct nc_queue *queue, const void *head, size_t head_length, const void *body,
		  size_t body_length);

/* The same, but only if that many bytes of room are left over. */
int nc_queue_push_leaving(struct nc_queue *queue, const void *head, size_t head_length,
			  const void *body, size_t body_length, uint32_t leaving);

/* Producer, after pushing one record: whether the consumer sleeps and must be rung. */
bool nc_queue_must_ring(struct nc_queue *queue);

/* Producer: whether the consumer has taken all that was pushed. */
bool nc_queue_is_taken(const struct nc_queue *queue);

/* Producer, when no more will come for a while: the same for what was not rung for. */
bool nc_queue_must_ring_now(struct nc_queue *queue);

/*
 * Consumer: copies the next record out.  Its bytes; 0: none; -EPROTO: the
 * producer wrote nonsense or a record larger than limit.
 */
int64_t nc_queue_pop(struct nc_queue *queue, void *record, size_t limit);

/*
 * Consumer: says that it will sleep until that many records came, at least
 * one.  True: do not, something is there.
 */
bool nc_queue_arm(struct nc_queue *queue, uint32_t records);
void nc_queue_disarm(struct nc_queue *queue);

/* Producer: the same for room to write length bytes. */
bool nc_queue_arm_room(struct nc_queue *queue, size_t length);

/* Consumer, after popping: whether the producer waits for room. */
bool nc_queue_must_ring_room(struct nc_queue *queue);

/*
 * A number that both sides read, whatever it means to them; 0 at first.  What
 * one side sets is seen before anything that it does next, should it end.
 */
static inline void nc_queue_tell(struct nc_queue *queue, uint64_t number)
{
	atomic_store_explicit(&queue->shared->told, number, memory_order_release);
}

static inline uint64_t nc_queue_told(const struct nc_queue *queue)
{
	return atomic_load_explicit(&queue->shared->told, memory_order_acquire);
}

/*
 * Either side: sets the number to `to` if it is `*from`, atomically.  False: it
 * is another one, which *from is set to.
 */
static inline bool nc_queue_claim(struct nc_queue *queue, uint64_t *from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(&queue->shared->told, from, to,
						       memory_order_acq_rel, memory_order_acquire);
}

/*
 * Doorbells.  An eventfd's O_NONBLOCK is shared with everyone who holds it,
 * so a process may ring or read one only if it does not mind being blocked
 * by the other: a member rings the owner by eventfd, which the owner watches
 * edge-triggered and never reads.  The owner rings a member through a pipe,
 * whose writing end stays its own and whose end of file tells the member
 * that the owner is gone.
 */
int nc_doorbell_open(void);			  /* an eventfd, or -errno */
int nc_doorbell_open_pipe(int *watch, int *ring); /* 0 or -errno */
void nc_doorbell_ring(int ring);		  /* either kind; never fails */
int nc_doorbell_wait(int watch);		  /* pipe: 1 rung, 0 the owner is gone, -errno */

#endif
