/* SPDX-License-Identifier: MIT */
/*
 * upstream-link-fixture.h - a client with a link, on the thread of a loop, and the application at
 * the other end, which is the test.
 */
#ifndef UPSTREAM_LINK_FIXTURE_H
#define UPSTREAM_LINK_FIXTURE_H

#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address.h"
#include "base/balancer.h"
#include "base/slice.h"
#include "program/fcgi.h"
#include "upstream/fcgi-message.h"
#include "upstream/http-message.h"
#include "upstream/upstream-link.h"

#include "loop-fixture.h"
#include "suite.h"

#define RECORD 65528u		/* bytes of a body in a record */
#define LARGE ((size_t)4 << 20) /* more than a socket holds */
#define FD_NONE (-1)

static const char variables[] = "REQUEST_METHOD=POST\0QUERY_STRING=\0SCRIPT_NAME=/app";

static struct runner runner;
static NC_cache *cache;
static int listener;
static unsigned id; /* of the request that was sent last */

/* A request, and the callbacks of its link. */
struct client {
	struct upstream upstream;
	struct upstream_message message;
	struct upstream_link *link;
	struct NC_range piece; /* the next piece */
	bool more;	       /* more follows */
	int peer;	       /* the application's end */
	int error;	       /* of the call that was made */
	int broke;	       /* 1: not called */
	unsigned readable, drained, idled;
};

static inline struct client *client_of(const struct upstream_link *link)
{
	return link->upstream->own;
}

static inline void readable_now(struct upstream_link *link)
{
	EVENT(client_of(link)->readable++);
}

static inline void broke(struct upstream_link *link, int error)
{
	EVENT(client_of(link)->broke = error);
}

static inline void drained(struct upstream_link *link)
{
	EVENT(client_of(link)->drained++);
}

static inline void idled(struct upstream_link *link)
{
	EVENT(client_of(link)->idled++);
}

static const struct upstream_link_owner owner = {.readable = readable_now,
						 .broke = broke,
						 .drained = drained,
						 .idled = idled,
						 .abandon = fcgi_message_abandon};

static inline struct slice block(void)
{
	return (struct slice){variables, sizeof(variables)};
}

/* --- the application ----------------------------------------------------------------------- */

static inline void listen_somewhere(struct client *client)
{
	struct sockaddr_un *address = (struct sockaddr_un *)&client->upstream.address.address;
	socklen_t length = sizeof(client->upstream.address.address);

	/* The kernel chooses a name. */
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)address, sizeof(sa_family_t)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)address, &length), 0);
	client->upstream.address.length = length;
}

/* Reads the content of the next record, which must have that type and length. */
static inline void take_record(int peer, enum fcgi_type type, size_t length, void *content)
{
	char header[FCGI_HEADER_SIZE], wanted[FCGI_HEADER_SIZE];

	fcgi_header(wanted, type, id, length);
	read_exactly(peer, header, sizeof(header));
	ck_assert_mem_eq(header, wanted, sizeof(header));
	read_exactly(peer, content, length);
}

/* Reads everything before the body. keep: the connection may have another request. */
static inline void take_beginning(int peer, bool keep)
{
	char begin[FCGI_BEGIN_SIZE], wanted[FCGI_BEGIN_SIZE], content[512];
	struct slice rest = block();
	char params[512];
	ssize_t length = fcgi_params(&rest, params, sizeof(params));

	fcgi_begin(wanted, keep);
	fcgi_set_id(wanted, sizeof(wanted), id);
	read_exactly(peer, begin, sizeof(begin));
	ck_assert_mem_eq(begin, wanted, sizeof(begin));
	take_record(peer, FCGI_PARAMS, (size_t)length - FCGI_HEADER_SIZE, content);
	ck_assert_mem_eq(content, params + FCGI_HEADER_SIZE, (size_t)length - FCGI_HEADER_SIZE);
	take_record(peer, FCGI_PARAMS, 0, content);
}

/* Checks a body by its pattern, in records of maximum length. */
static inline void take_body(int peer, uint64_t seed, size_t from, size_t length)
{
	char *content = must_alloc(RECORD);

	while (length) {
		size_t part = length < RECORD ? length : RECORD;

		take_record(peer, FCGI_STDIN, part, content);
		ck_assert_uint_eq(pattern_match(content, seed, from, part), part);
		from += part;
		length -= part;
	}
	free(content);
}

static inline void take_end(int peer)
{
	take_record(peer, FCGI_STDIN, 0, NULL);
}

/* --- the client ------------------------------------------------------------------------------ */

static inline void begin(struct client *client, int kind)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = 32 << 20);

	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	*client = (struct client){.broke = 1, .peer = FD_NONE};
	client->upstream.own = client;
	listen_somewhere(client);
	runner_start(&runner, kind_of(kind));
}

static inline void close_link(void *argument)
{
	struct client *client = argument;

	if (client->link)
		upstream_link_close(client->link);
	client->link = NULL;
}

/* If no link holds the body any more, it ends with the cache. */
static inline void end(struct client *client)
{
	call(&runner, close_link, client);
	if (client->peer >= 0)
		close(client->peer);
	runner_stop(&runner);
	close(listener);
	upstream_message_free(&client->message);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}

/* A body that only links hold. */
static inline struct NC_range body_of(uint64_t seed, size_t size)
{
	unsigned char *data = must_alloc(size);
	struct NC_range range = {.length = size};
	NC_handle handle;

	pattern_fill(data, seed, 0, size);
	ck_assert_int_eq(NC_alloc(&handle, size, 0), 0);
	ck_assert_int_eq(NC_write(&handle, data, size, 0), (ssize_t)size);
	ck_assert_int_eq(NC_insert(&handle), 0);
	range.id = NC_cache_id(&handle);
	ck_assert_int_eq(NC_free(&handle), 0);
	free(data);
	return range;
}

static inline void open_link(void *argument)
{
	struct client *client = argument;

	client->link = upstream_link_open(runner.loop, &client->upstream, &owner, &client->error);
}

static inline void request(void *argument)
{
	struct client *client = argument;

	client->error = upstream_link_request(client->link, &client->message);
}

static inline void request_fcgi(void *argument)
{
	struct client *client = argument;

	fcgi_message_begin(&client->message, client->link);
	id = client->link->requests + 1;
	request(client);
}

/* Returns when the application has accepted the link. */
static inline void connect_to(struct client *client)
{
	call(&runner, open_link, client);
	ck_assert_ptr_nonnull(client->link);
	client->peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(client->peer, 0);
}

static inline void ask(struct client *client, struct NC_range body, bool more)
{
	ck_assert_int_eq(fcgi_message_make(&client->message, block(), body, more), 0);
	call(&runner, request_fcgi, client);
	ck_assert_int_eq(client->error, 0);
}

/* A request without a body was sent, and the application has received it. */
static inline void begin_asked(struct client *client, int kind)
{
	begin(client, kind);
	connect_to(client);
	ask(client, (struct NC_range){0}, false);
	take_beginning(client->peer, true);
	take_end(client->peer);
	settle(&runner);
}

static inline void look(void *argument)
{
	struct client *client = argument;

	client->error = upstream_link_is_alive(client->link);
}

static inline bool is_alive(struct client *client)
{
	call(&runner, look, client);
	return client->error;
}

static inline void rest_long(void *argument)
{
	upstream_link_rest(((struct client *)argument)->link, 3600000);
}

static inline void rest_briefly(void *argument)
{
	upstream_link_rest(((struct client *)argument)->link, 1);
}

static inline void go_on(void *argument)
{
	struct client *client = argument;

	client->error = upstream_link_body(client->link, client->piece, client->more);
}

#endif
