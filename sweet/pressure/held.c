/* SPDX-License-Identifier: MIT */
/*
 * held.c - counts the units of a thread that responses hold while they wait for their sockets, or
 * that sockets refer to: bytes in the cache, and bytes in the memory of each program; and whether they
 * exceed a limit.
 *
 * A thread counts a unit once, even if several of its clients wait with it.
 */
#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/page-memory.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/piece.h"
#include "pressure/pressure-internal.h"
#include "pressure/pressure-thread.h"

/* A unit that responses of this thread hold while they wait. */
struct held {
	size_t id; /* must be first: the key */
	uint64_t bytes;
	unsigned waiters;
	struct program *program; /* NULL: the unit is in the cache */
};

/* A program whose memory has such units. */
struct program {
	const struct page_memory *of;
	unsigned units;
	uint64_t bytes, most;
};

static struct program *find_program(struct thread *thread, const struct transaction *transaction)
{
	struct program *program;

	if (transaction->piece.kind != PIECE_RANGE || !transaction->piece.pages)
		return NULL;
	if (!thread->pressure->programs)
		thread->pressure->programs = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	program = g_hash_table_lookup(thread->pressure->programs, transaction->piece.pages);
	if (!program) {
		program = g_new0(struct program, 1);
		program->of = transaction->piece.pages;
		/* Half of its memory, divided among the threads. */
		program->most = program->of->most / 2 / thread->server->threads;
		g_hash_table_insert(thread->pressure->programs, (void *)(uintptr_t)program->of,
				    program);
	}
	return program;
}

void held_add(struct thread *thread, size_t id, uint64_t bytes,
	      const struct transaction *transaction)
{
	struct held *held;

	if (!thread->pressure->held)
		thread->pressure->held =
			g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
	held = g_hash_table_lookup(thread->pressure->held, &id);
	if (!held) {
		held = g_new0(struct held, 1);
		held->id = id;
		held->bytes = bytes;
		held->program = transaction ? find_program(thread, transaction) : NULL;
		if (held->program) {
			held->program->units++;
			held->program->bytes += bytes;
		}
		g_hash_table_add(thread->pressure->held, held);
		atomic_fetch_add_explicit(&thread->server->held, bytes, memory_order_relaxed);
	}
	held->waiters++;
}

void held_remove(struct thread *thread, size_t id)
{
	struct held *held = g_hash_table_lookup(thread->pressure->held, &id);
	struct program *program = held->program;

	if (--held->waiters)
		return;
	atomic_fetch_sub_explicit(&thread->server->held, held->bytes, memory_order_relaxed);
	if (program) {
		program->bytes -= held->bytes;
		if (--program->units == 0)
			g_hash_table_remove(thread->pressure->programs, program->of);
	}
	g_hash_table_remove(thread->pressure->held, held);
}

uint64_t held_bytes(const struct server *server)
{
	return atomic_load_explicit(&server->held, memory_order_relaxed);
}

bool held_cache_is_over(const struct server *server)
{
	return held_bytes(server) > server->held_most;
}

static bool program_is_over(const struct program *program)
{
	return program && (program->bytes > program->most || page_memory_has_waiters(program->of));
}

static bool program_is_full(const struct program *program)
{
	return program && program->units > 1 && program->bytes > program->most + program->most / 2;
}

static const struct program *program_of(const struct thread *thread, size_t id)
{
	const struct held *held = g_hash_table_lookup(thread->pressure->held, &id);

	return held->program;
}

bool held_program_is_full(const struct thread *thread, size_t id)
{
	return program_is_full(program_of(thread, id));
}

bool held_may_be_over(const struct thread *thread)
{
	return held_cache_is_over(thread->server) ||
	       (thread->pressure->programs && g_hash_table_size(thread->pressure->programs));
}

bool held_is_over(const struct thread *thread, size_t id)
{
	return held_cache_is_over(thread->server) || program_is_over(program_of(thread, id));
}

void held_close(struct thread *thread)
{
	g_clear_pointer(&thread->pressure->held, g_hash_table_unref);
	g_clear_pointer(&thread->pressure->programs, g_hash_table_unref);
}
