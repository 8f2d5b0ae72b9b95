/* SPDX-License-Identifier: MIT */
/*
 * connection-input.c - bytes that come before they can be processed are saved in `input`; above a
 * limit, reading pauses.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "conn/connection-base.h"
#include "core/transaction.h"
#include "exchange/output.h"

#define INPUT_PAUSE 32768 /* bytes that are saved before reading pauses */

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
		connection->transport->pause(connection);
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
		connection->transport->resume(connection);
	connection->paused = false;
	consumer(connection, input ? input : "", length);
	free(input);
}

bool connection_has_tunnel(const struct connection *connection)
{
	return connection->output && transaction_has_tunnel(&connection->output->transaction);
}

static void input_pass_on(struct connection *connection, const char *data, size_t length)
{
	struct transaction *transaction = &connection->output->transaction;

	if (length)
		transaction_tunnel(transaction, data, length);
	if (connection->ended)
		transaction_tunnel(transaction, NULL, 0);
}

void connection_begin_tunnel(struct connection *connection)
{
	connection_consume_input(connection, input_pass_on);
}
