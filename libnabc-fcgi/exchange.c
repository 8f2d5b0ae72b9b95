/* SPDX-License-Identifier: MIT */
/*
 * exchange.c - see exchange.h.
 *
 * A list of all exchanges is for children of the process: they have no segment of libnabc, and the
 * streams of a child must not lead there.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nabc-worker.h>

#include "exchange.h"
#include "input.h"
#include "layout.h"
#include "server-link.h"
#include "mode.h"
#include "output.h"

static const char role[] = "FCGI_ROLE=RESPONDER";

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fcgi_exchange *list;

/* --- children ---------------------------------------------------------------------------- */

static void lock_list(void)
{
	pthread_mutex_lock(&list_lock);
}

static void unlock_list(void)
{
	pthread_mutex_unlock(&list_lock);
}

static void forget_all(void)
{
	fcgi_is_child = true;
	for (struct fcgi_exchange *exchange = list; exchange; exchange = exchange->next) {
		fcgi_input_forget(&exchange->in);
		fcgi_output_forget(&exchange->out);
	}
	unlock_list();
}

/* Before the first fork: programs that manage processes of their own have accepted nothing by then. */
static void __attribute__((constructor)) settle_at_load(void)
{
	fcgi_mode_settle();
	if (fcgi_is_worker)
		(void)pthread_atfork(lock_list, unlock_list, forget_all);
}

static void add(struct fcgi_exchange *exchange)
{
	lock_list();
	exchange->next = list;
	exchange->link = &list;
	if (list)
		list->link = &exchange->next;
	list = exchange;
	unlock_list();
}

static void take_out(struct fcgi_exchange *exchange)
{
	lock_list();
	*exchange->link = exchange->next;
	if (exchange->next)
		exchange->next->link = exchange->link;
	unlock_list();
}

/* --- standard error ---------------------------------------------------------------------- */

static void errors_empty(struct fcgi_stream *stream, int close)
{
	struct fcgi_exchange *exchange = stream->data;
	const unsigned char *at = exchange->errors;

	while (at < stream->write_next) {
		ssize_t got = write(STDERR_FILENO, at, (size_t)(stream->write_next - at));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			stream->error = got ? errno : EIO;
			break;
		}
		at += got;
	}
	stream->write_next = exchange->errors;
	stream->is_closed |= close;
	/* A closed stream has no room. */
	stream->stop = stream->read_next =
		exchange->errors + (stream->is_closed ? 0 : sizeof(exchange->errors));
}

static void open_errors(struct fcgi_exchange *exchange)
{
	exchange->err = (struct fcgi_stream){.empty = errors_empty, .data = exchange};
	exchange->err.write_next = exchange->errors;
	exchange->err.stop = exchange->err.read_next = exchange->errors + sizeof(exchange->errors);
}

/* --- variables --------------------------------------------------------------------------- */

static size_t count_variables(const struct NC_request *request)
{
	size_t count = 0;

	for (size_t i = 0; i < request->variables_length; i++)
		count += request->variables[i] == '\0';
	return count;
}

/* The next request overwrites the library's block. */
static bool copy_variables(struct fcgi_exchange *exchange)
{
	struct NC_request *request = &exchange->request;
	size_t length = request->variables_length, count = 0;
	char *at;

	exchange->envp = malloc((count_variables(request) + 2) * sizeof(*exchange->envp));
	exchange->block = malloc(length + sizeof(role));
	if (!exchange->envp || !exchange->block)
		return false;
	memcpy(exchange->block, request->variables, length);
	memcpy(exchange->block + length, role, sizeof(role));
	exchange->envp[count++] = exchange->block + length;
	for (at = exchange->block; at < exchange->block + length; at += strlen(at) + 1)
		exchange->envp[count++] = at;
	exchange->envp[count] = NULL;
	request->variables = exchange->block;
	return true;
}

/* --- the exchange ------------------------------------------------------------------------ */

static void free_exchange(struct fcgi_exchange *exchange)
{
	free(exchange->envp);
	free(exchange->block);
	free(exchange);
}

static void connect(struct fcgi_exchange *exchange, struct fcgi_request *owner)
{
	exchange->owner = owner;
	fcgi_input_open(&exchange->in, &exchange->input, &exchange->request);
	fcgi_output_open(&exchange->out, &exchange->output, &exchange->request, &exchange->in);
	open_errors(exchange);
	owner->exchange = exchange;
	owner->in = &exchange->in;
	owner->out = &exchange->out;
	owner->err = &exchange->err;
	owner->envp = exchange->envp;
	owner->role = FCGI_ROLE_RESPONDER;
	owner->id = 1;
	owner->exit_status = 0;
	owner->is_begun = 1;
	add(exchange);
}

int fcgi_exchange_accept(struct fcgi_request *owner)
{
	struct fcgi_exchange *exchange = malloc(sizeof(*exchange));
	int got;

	if (!exchange)
		return -ENOMEM;
	exchange->block = NULL;
	exchange->envp = NULL;
	got = fcgi_link_accept(&exchange->request);
	if (got <= 0) {
		got = got ? -errno : -ECANCELED;
		free_exchange(exchange);
		return got;
	}
	if (!copy_variables(exchange)) {
		(void)fcgi_link_abort(&exchange->request);
		free_exchange(exchange);
		return -ENOMEM;
	}
	connect(exchange, owner);
	return 0;
}

static void disconnect(struct fcgi_exchange *exchange)
{
	struct fcgi_request *owner = exchange->owner;

	owner->exchange = NULL;
	owner->in = owner->out = owner->err = NULL;
	owner->envp = NULL;
	owner->is_begun = 0;
	fcgi_input_close(&exchange->in);
	fcgi_output_abort(&exchange->out);
	take_out(exchange);
	free_exchange(exchange);
}

void fcgi_exchange_finish(struct fcgi_request *owner)
{
	struct fcgi_exchange *exchange = owner->exchange;

	if (!exchange)
		return;
	if (!exchange->err.is_closed)
		errors_empty(&exchange->err, 1);
	if (!exchange->out.was_closed)
		(void)fcgi_output_close(&exchange->out);
	disconnect(exchange);
}

void fcgi_exchange_abort(struct fcgi_request *owner)
{
	if (owner->exchange)
		disconnect(owner->exchange);
}

struct fcgi_exchange *fcgi_exchange_of(const struct fcgi_stream *stream)
{
	struct fcgi_exchange *exchange;

	lock_list();
	for (exchange = list; exchange; exchange = exchange->next)
		if (stream == &exchange->in || stream == &exchange->out || stream == &exchange->err)
			break;
	unlock_list();
	return exchange;
}
