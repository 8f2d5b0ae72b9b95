/* SPDX-License-Identifier: MIT */
/*
 * glib-server.c - GLib's main loop with a source for the cache and one for a sender
 * of libnabc.
 *
 * 	cc -o glib-server glib-server.c $(pkg-config --cflags --libs nabc-glib)
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <glib-unix.h>
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nabc-async.h>
#include <nabc-glib.h>
#include <nabc.h>

#include "example.h"

struct client {
	int fd;
	guint watch;  /* the source that waits for requests; 0: none */
	bool sending; /* the sender has a response */
	bool last;    /* which is the last one */
	struct input input;
};

static NC_sender *sender;
static struct NC_range body;
static GHashTable *clients;

static gboolean readable(gint fd, GIOCondition condition, gpointer data);

/* Also the table's destroy function. */
static void drop(gpointer data)
{
	struct client *client = data;

	if (client->watch)
		g_source_remove(client->watch);
	close(client->fd);
	g_free(client);
}

static bool respond(struct client *client, size_t request)
{
	char head[200];
	struct NC_send message = NC_SEND_INIT(.header = head, .ranges = &body, .range_count = 1);

	client->last = input_take(&client->input, request);
	message.header_length = response_head(head, sizeof(head), body.length, client->last);
	if (client->last)
		message.flags = NC_SEND_CLOSE;
	client->sending = NC_sender_send(sender, client->fd, &message, client) == 0;
	return client->sending;
}

/* Answers the next request, or waits for it. */
static void serve(struct client *client)
{
	size_t request = input_request(&client->input);

	if (!request)
		client->watch = g_unix_fd_add(client->fd, G_IO_IN, readable, client);
	else if (!respond(client, request))
		g_hash_table_remove(clients, client);
}

static gboolean readable(gint fd, GIOCondition condition, gpointer data)
{
	struct client *client = data;
	struct input *input = &client->input;
	ssize_t got = recv(fd, input->data + input->have, REQUEST_MAX - input->have, 0);

	(void)condition;
	if (got < 0 && errno == EAGAIN)
		return G_SOURCE_CONTINUE;
	/* This source ends; serve() adds a new one if necessary. */
	client->watch = 0;
	if (got > 0) {
		input->have += (size_t)got;
		serve(client);
	} else {
		g_hash_table_remove(clients, client);
	}
	return G_SOURCE_REMOVE;
}

static gboolean welcome(gint listener, GIOCondition condition, gpointer data)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client *client;

	(void)condition;
	(void)data;
	if (fd < 0)
		return G_SOURCE_CONTINUE;
	client = g_new0(struct client, 1);
	client->fd = fd;
	g_hash_table_add(clients, client);
	serve(client);
	return G_SOURCE_CONTINUE;
}

/* A response is complete, or failed. */
static gboolean sent(NC_sender *of, const struct NC_completion *done, gpointer data)
{
	struct client *client = done->data;

	(void)of;
	(void)data;
	client->sending = false;
	/* Only now may its socket be closed. */
	if (done->error || client->last)
		g_hash_table_remove(clients, client);
	else
		serve(client);
	return G_SOURCE_CONTINUE;
}

static gboolean stop(gint signals, GIOCondition condition, gpointer loop)
{
	(void)signals;
	(void)condition;
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static void begin(GSource *source)
{
	if (!source)
		err(1, "source");
	g_source_attach(source, NULL);
}

static void end(GSource *source)
{
	g_source_destroy(source);
	g_source_unref(source);
}

int main(int argc, char **argv)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	GSource *maintenance, *source;
	NC_cache *cache;
	guint listening;
	int listener, signals = example_signals();

	if (argc != 3)
		errx(2, "usage: glib-server PORT FILE");
	clients = g_hash_table_new_full(NULL, NULL, drop, NULL);
	cache = example_cache(argv[2], &body);
	sender = NC_sender_open(cache, 1024, 0);
	if (!sender)
		err(1, "sender");
	maintenance = NC_source_new(cache);
	begin(maintenance);
	source = NC_sender_source_new(sender);
	g_source_set_callback(source, G_SOURCE_FUNC(sent), NULL, NULL);
	begin(source);
	g_unix_fd_add(signals, G_IO_IN, stop, loop);
	listener = example_listen(argv[1], SOCK_NONBLOCK);
	listening = g_unix_fd_add(listener, G_IO_IN, welcome, NULL);
	g_main_loop_run(loop);
	/* Destroy sources before the objects that they serve. */
	end(source);
	end(maintenance);
	g_source_remove(listening);
	NC_sender_close(sender);
	g_hash_table_destroy(clients);
	g_main_loop_unref(loop);
	close(listener);
	close(signals);
	return NC_cache_close(cache) < 0;
}
