/* SPDX-License-Identifier: MIT */
/*
 * queue.c - single-producer, single-consumer byte queue; see queue.h.
 *
 * A record is a 32-bit length and its bytes, padded to 8, and may wrap around the
 * end of the data.  Sleeping uses Dekker's algorithm: the sleeper sets its flag,
 * then looks once more; the other side writes, then looks at the flag; both with a
 * full fence between, so one of them always notices.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/descriptor.h"
#include "os/queue.h"

#define HEADER 8u

static uint64_t footprint(uint64_t length)
{
	return HEADER + ((length + 7) & ~UINT64_C(7));
}

void nc_queue_init(struct nc_queue *queue, void *memory, uint32_t size)
{
	*queue = (struct nc_queue){.shared = memory, .size = size};
}

static void copy_in(struct nc_queue *queue, uint64_t at, const void *from, size_t length)
{
	size_t start = at & (queue->size - 1);
	size_t first = queue->size - start < length ? queue->size - start : length;

	if (length == 0)
		return;
	memcpy(queue->shared->data + start, from, first);
	memcpy(queue->shared->data, (const char *)from + first, length - first);
}

static void copy_out(const struct nc_queue *queue, uint64_t at, void *to, size_t length)
{
	size_t start = at & (queue->size - 1);
	size_t first = queue->size - start < length ? queue->size - start : length;

	memcpy(to, queue->shared->data + start, first);
	memcpy((char *)to + first, queue->shared->data, length - first);
}

static bool has_room(const struct nc_queue *queue, uint64_t bytes, bool *broken)
{
	uint64_t tail = atomic_load_explicit(&queue->shared->tail, memory_order_acquire);

	*broken = queue->own - tail > queue->size;
	return !*broken && queue->size - (queue->own - tail) >= bytes;
}

int nc_queue_push(struct nc_queue *queue, const void *head, size_t head_length, const void *body,
		  size_t body_length)
{
	return nc_queue_push_leaving(queue, head, head_length, body, body_length, 0);
}

int nc_queue_push_leaving(struct nc_queue *queue, const void *head, size_t head_length,
			  const void *body, size_t body_length, uint32_t leaving)
{
	uint64_t length = (uint64_t)head_length + body_length;
	uint32_t stored = (uint32_t)length;
	bool broken;

	if (length == 0 || length > queue->size || footprint(length) + leaving > queue->size)
		return -EMSGSIZE;
	if (!has_room(queue, footprint(length) + leaving, &broken))
		return broken ? -EPROTO : -EAGAIN;
	copy_in(queue, queue->own, &stored, sizeof(stored));
	copy_in(queue, queue->own + HEADER, head, head_length);
	copy_in(queue, queue->own + HEADER + head_length, body, body_length);
	queue->own += footprint(length);
	/* Pairs with the acquire in nc_queue_pop(). */
	atomic_store_explicit(&queue->shared->head, queue->own, memory_order_release);
	return 0;
}

bool nc_queue_must_ring(struct nc_queue *queue)
{
	uint32_t wanted;

	/* Between head and sleeping: pairs with the fence in nc_queue_arm(). */
	atomic_thread_fence(memory_order_seq_cst);
	wanted = atomic_load_explicit(&queue->shared->sleeping, memory_order_relaxed);
	/* The side that rings clears it, so one sleep costs one ring. */
	while (wanted) {
		if (atomic_compare_exchange_weak_explicit(&queue->shared->sleeping, &wanted,
							  wanted - 1, memory_order_relaxed,
							  memory_order_relaxed))
			return wanted == 1;
	}
	return false;
}

bool nc_queue_is_taken(const struct nc_queue *queue)
{
	return atomic_load_explicit(&queue->shared->tail, memory_order_relaxed) == queue->own;
}

bool nc_queue_must_ring_now(struct nc_queue *queue)
{
	/* As above.  A tail that is out of date costs one ring; it never exceeds what was read. */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&queue->shared->sleeping, memory_order_relaxed) &&
	       atomic_load_explicit(&queue->shared->tail, memory_order_relaxed) != queue->own &&
	       atomic_exchange_explicit(&queue->shared->sleeping, 0, memory_order_relaxed);
}

int64_t nc_queue_pop(struct nc_queue *queue, void *record, size_t limit)
{
	uint64_t ready =
		atomic_load_explicit(&queue->shared->head, memory_order_acquire) - queue->own;
	uint32_t length;

	if (ready == 0)
		return 0;
	if (ready > queue->size || ready < HEADER)
		return -EPROTO;
	copy_out(queue, queue->own, &length, sizeof(length));
	if (length == 0 || length > limit || footprint(length) > ready)
		return -EPROTO;
	copy_out(queue, queue->own + HEADER, record, length);
	queue->own += footprint(length);
	/* Pairs with the acquire in has_room(). */
	atomic_store_explicit(&queue->shared->tail, queue->own, memory_order_release);
	return length;
}

bool nc_queue_arm_shared(struct nc_queue *queue, uint32_t records)
{
	atomic_store_explicit(&queue->shared->sleeping, records, memory_order_relaxed);
	/* Pairs with the fences in nc_queue_must_ring() and nc_queue_must_ring_now(). */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&queue->shared->head, memory_order_relaxed) != queue->own;
}

bool nc_queue_arm(struct nc_queue *queue, uint32_t records)
{
	if (!nc_queue_arm_shared(queue, records))
		return false;
	nc_queue_disarm(queue);
	return true;
}

void nc_queue_disarm(struct nc_queue *queue)
{
	atomic_store_explicit(&queue->shared->sleeping, 0, memory_order_relaxed);
}

bool nc_queue_has_room(const struct nc_queue *queue, size_t length)
{
	bool broken, room = has_room(queue, footprint(length), &broken);

	return room || broken;
}

bool nc_queue_arm_room_shared(struct nc_queue *queue, size_t length)
{
	atomic_store_explicit(&queue->shared->blocked, 1, memory_order_relaxed);
	/* Between blocked and tail: pairs with the fence in nc_queue_must_ring_room(). */
	atomic_thread_fence(memory_order_seq_cst);
	return nc_queue_has_room(queue, length);
}

bool nc_queue_arm_room(struct nc_queue *queue, size_t length)
{
	bool room = nc_queue_arm_room_shared(queue, length);

	if (room)
		atomic_store_explicit(&queue->shared->blocked, 0, memory_order_relaxed);
	return room;
}

bool nc_queue_must_ring_room(struct nc_queue *queue)
{
	/* Between tail and blocked: pairs with the fence in nc_queue_arm_room(). */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&queue->shared->blocked, memory_order_relaxed) &&
	       atomic_exchange_explicit(&queue->shared->blocked, 0, memory_order_relaxed);
}

int nc_doorbell_open(void)
{
	return nc_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

int nc_doorbell_open_pipe(int *watch, int *ring)
{
	int ends[2], error = nc_descriptor_pair(pipe2(ends, O_CLOEXEC), ends);

	if (error)
		return error;
	if (fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0) {
		error = -errno;
		close(ends[0]);
		close(ends[1]);
		return error;
	}
	*watch = ends[0];
	*ring = ends[1];
	return 0;
}

void nc_doorbell_ring(int ring)
{
	uint64_t one = 1;

	/* EAGAIN: the pipe is full, so the other end is readable already. */
	while (write(ring, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

int nc_doorbell_wait(int watch)
{
	uint64_t rings[8];
	ssize_t got;

	do {
		got = read(watch, rings, sizeof(rings));
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got > 0;
}
