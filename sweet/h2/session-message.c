/* SPDX-License-Identifier: MIT */
/*
 * session-message.c - the message of a session: bytes that were copied into blocks, and between
 * them memory of streams, by reference, until the message was sent.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/spare-memory.h"
#include "h2/session-internal.h"

/*
 * A large message costs fewer calls; a small one lets an urgent response, which comes meanwhile,
 * leave earlier.  With one more frame it still fits into two bursts of a cipher.
 */
#define BYTES_MAX (112u << 10)
#define PIECES_MAX 60u
#define BLOCK_ROOM (8192u - sizeof(struct session_block)) /* bytes */

struct session_block {
	struct session_block *next;
	size_t used, room;
	char data[];
};

bool session_message_is_full(const struct session_message *message)
{
	return message->bytes >= BYTES_MAX || message->count >= PIECES_MAX;
}

static struct session_block *add_block(struct session_message *message, size_t room)
{
	struct session_block *block = spare_memory_take(message->memory, sizeof(*block) + room);

	if (!block)
		return NULL;
	*block = (struct session_block){.next = message->blocks, .room = room};
	message->blocks = block;
	return block;
}

char *session_message_reserve(struct session_message *message, size_t length)
{
	struct session_block *block = message->blocks;

	if (!block || length > block->room - block->used) {
		block = add_block(message, MAX(length, BLOCK_ROOM));
		if (!block)
			return NULL;
	}
	return block->data + block->used;
}

bool session_message_refer(struct session_message *message, const void *data, size_t length,
			   struct stream *owner)
{
	if (message->count == message->room) {
		unsigned room = message->room ? 2 * message->room : 8;
		struct iovec *pieces = realloc(message->pieces, room * sizeof(*pieces));
		struct stream **owners;

		if (!pieces)
			return false;
		message->pieces = pieces;
		owners = realloc(message->owners, room * sizeof(*owners));
		if (!owners)
			return false;
		message->owners = owners;
		message->room = room;
	}
	if (owner)
		owner->referred = true;
	message->owners[message->count] = owner;
	message->pieces[message->count++] = (struct iovec){(void *)(uintptr_t)data, length};
	message->bytes += length;
	return true;
}

bool session_message_add_reserved(struct session_message *message, char *at, size_t length)
{
	struct iovec *last = message->count ? &message->pieces[message->count - 1] : NULL;

	if (last && !message->owners[message->count - 1] &&
	    (char *)last->iov_base + last->iov_len == at) {
		last->iov_len += length;
		message->bytes += length;
	} else if (!session_message_refer(message, at, length, NULL)) {
		return false;
	}
	message->blocks->used += length;
	return true;
}

bool session_message_copy(struct session_message *message, const void *data, size_t length)
{
	char *at = session_message_reserve(message, length);

	if (!at)
		return false;
	memcpy(at, data, length);
	return session_message_add_reserved(message, at, length);
}

bool session_message_include(struct session_message *message, struct stream *stream)
{
	if (stream->in_message)
		return true;
	if (message->stream_count == message->stream_room) {
		unsigned room = message->stream_room ? 2 * message->stream_room : 8;
		struct stream **streams = realloc(message->streams, room * sizeof(*streams));

		if (!streams)
			return false;
		message->streams = streams;
		message->stream_room = room;
	}
	message->streams[message->stream_count++] = stream;
	stream->in_message = true;
	return true;
}

void session_message_release(struct session_message *message, struct stream *stream)
{
	struct session_block *block;
	size_t bytes = 0;
	char *at;

	if (!stream->in_message)
		return;
	for (unsigned i = 0; i < message->count; i++)
		if (message->owners[i] == stream)
			bytes += message->pieces[i].iov_len;
	block = add_block(message, bytes);
	if (!block)
		g_error("no memory");
	block->used = bytes;
	at = block->data;
	for (unsigned i = 0; i < message->count; i++) {
		struct iovec *piece = &message->pieces[i];

		if (message->owners[i] != stream)
			continue;
		memcpy(at, piece->iov_base, piece->iov_len);
		piece->iov_base = at;
		at += piece->iov_len;
		message->owners[i] = NULL;
	}
	for (unsigned i = 0; i < message->stream_count; i++)
		if (message->streams[i] == stream)
			message->streams[i] = NULL;
	stream->in_message = stream->referred = false;
}

static void free_blocks(struct session_message *message)
{
	while (message->blocks) {
		struct session_block *block = message->blocks;

		message->blocks = block->next;
		spare_memory_give_back(message->memory, block);
	}
}

/* Calls sent() for the streams, or for those of which nothing is referred to. */
static bool complete(struct session_message *message, bool all, void (*sent)(struct stream *stream))
{
	unsigned count = message->stream_count, kept = 0;

	/* A stream that closes another one clears its place in the list. */
	for (unsigned i = 0; i < count; i++) {
		struct stream *stream = message->streams[i];

		if (!stream || (stream->referred && !all))
			continue;
		message->streams[i] = NULL;
		stream->in_message = stream->referred = false;
		sent(stream);
	}
	for (unsigned i = 0; i < count; i++)
		if (message->streams[i])
			message->streams[kept++] = message->streams[i];
	message->stream_count = kept;
	return kept < count;
}

bool session_message_copied(struct session_message *message, void (*sent)(struct stream *stream))
{
	return complete(message, false, sent);
}

void session_message_done(struct session_message *message, void (*sent)(struct stream *stream))
{
	free_blocks(message);
	message->count = 0;
	message->bytes = 0;
	(void)complete(message, true, sent);
}

void session_message_free(struct session_message *message)
{
	free_blocks(message);
	free(message->pieces);
	free(message->owners);
	free(message->streams);
	*message = (struct session_message){0};
}
