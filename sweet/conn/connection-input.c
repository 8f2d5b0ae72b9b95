/* SPDX-License-Identifier: MIT */
/*
 * connection-input.c - bytes that have come before their turn wait in `input`; past a
 * bound nothing more is read.
 */
#include <stdlib.h>
#include <string.h>

#include "conn/connection-internal.h"

#define INPUT_PAUSE 32768 /* bytes that wait before reading pauses */

bool connection_keep_input(struct connection *connection, const char *data, size_t length)
{
	size_t need = connection->input_length + length;

	if (need > connection->input_room) {
		size_t room = connection->input_room ? connection->input_room : 1024;
		char *input;

		while (room < need)
			room *= 2;
		input = realloc(connection->input, room);
		if (!input)
			return false;
		connection->input = input;
		connection->input_room = room;
	}
	memcpy(connection->input + connection->input_length, data, length);
	connection->input_length = need;
	if (need > INPUT_PAUSE && connection->state != READING && !connection->paused) {
		connection->paused = true;
		loop_receive_pause(connection->thread->loop, connection->fd);
	}
	return true;
}

void connection_consume_input(struct connection *connection,
			      void (*consumer)(struct connection *, const char *, size_t))
{
	char *input = connection->input;
	size_t length = connection->input_length;

	connection->input = NULL;
	connection->input_length = connection->input_room = connection->input_seen = 0;
	if (connection->paused)
		loop_receive_resume(connection->thread->loop, connection->fd);
	connection->paused = false;
	consumer(connection, input, length);
	free(input);
}
