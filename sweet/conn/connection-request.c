/* SPDX-License-Identifier: MIT */
/*
 * connection-request.c - starts a request whose head has come: makes the transaction, refuses what
 * is malformed or above a limit, and passes it to the responders.
 */
#include <assert.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "auth/ip-acl.h"
#include "base/address.h"
#include "base/container.h"
#include "base/counter.h"
#include "base/escape.h"
#include "base/peer-addresses.h"
#include "base/slice.h"
#include "base/timer.h"
#include "config/configuration.h"
#include "conn/conn-thread.h"
#include "conn/connection-base.h"
#include "conn/connection-mux.h"
#include "conn/connection-tls-internal.h"
#include "core/client-calls.h"
#include "core/request-memory.h"
#include "core/server.h"
#include "core/site.h"
#include "core/thread-counters.h"
#include "core/thread-logs.h"
#include "core/transaction.h"
#include "exchange/output.h"
#include "handler/route.h"
#include "http/body.h"
#include "http/forwarded.h"
#include "http/request-escape.h"
#include "http/request-list.h"
#include "http/request.h"
#include "log/log-format.h"
#include "log/log.h"
#include "log/span-send.h"

#define WRONG_LOGGED_MAX 100 /* bytes of a wrong entry of a proxy */
#define CLEAR_TEXT "This address expects TLS: use https."

/* The reason, which the client gets as well. */
static const char clear_text[] = "HTTP in clear text on an address that expects TLS";

/* The resume() of struct transaction_owner. */
static void request_resume(struct transaction *transaction,
			   enum respond (*respond)(struct transaction *transaction, void *context),
			   void *context)
{
	struct connection *connection = transaction->connection;
	enum respond answer;

	assert(connection->state == WORKING && !connection->calling);
	connection->calling = true;
	answer = respond(transaction, context);
	connection->calling = false;
	if (answer == RESPOND_NOW)
		connection_done(transaction);
	else if (connection->state == RECEIVING)
		connection_consume_input(connection, connection_start_receiving);
}

/* The give_up() of struct transaction_owner. */
static void request_give_up(struct transaction *transaction)
{
	struct connection *connection = transaction->connection;

	assert(connection->state == RECEIVING || connection->state == SENDING);
	if (connection->state == RECEIVING)
		connection_refuse_slow_body(connection);
	else
		connection_close(connection);
}

static const struct transaction_owner owner = {
	.done = connection_done,
	.resume = request_resume,
	.receive = connection_receive,
	.receive_piece = connection_receive_piece,
	.drop_upload = connection_drop_upload,
	.moved = connection_moved,
	.give_up = request_give_up,
	.hold_input = connection_hold_input,
	.interim = connection_interim,
};

static bool trusts(const struct sockaddr *address, const void *list)
{
	return ip_acl_allows(list, address);
}

static void log_wrong(const struct transaction *transaction, struct slice entry)
{
	char text[WRONG_LOGGED_MAX * ESCAPE_MOST + 1];

	entry.length = MIN(entry.length, (size_t)WRONG_LOGGED_MAX);
	*escape_message(text, entry) = '\0';
	log_info("%s: this proxy's %s has no address in \"%s\": the client counts as unknown",
		 transaction->peer.remote_addr,
		 transaction->config_ref->config->forwarded == FORWARDED_X ? "X-Forwarded-For"
									   : "Forwarded",
		 text);
}

static void take_client(struct transaction *transaction, const struct forwarded *forwarded)
{
	struct output *output = container_of(transaction, struct output, transaction);
	struct peer_addresses *client = &output->client;

	if (forwarded->unknown) {
		peer_addresses_set_unknown(client);
		g_strlcpy(client->remote, ADDRESS_UNKNOWN, sizeof(client->remote));
		client->remote_port = 0;
	} else {
		peer_addresses_set(client, &forwarded->client, NULL);
	}
	transaction->peer.remote = &client->address.any;
	transaction->peer.remote_addr = client->remote;
	transaction->peer.remote_port = client->remote_port;
}

/*
 * With trusted proxies: takes from a request of one what it says about its client, and from all
 * requests the fields in which proxies say this.  Returns the head that the request consists of
 * now; NULL: the same.
 */
static GString *take_forwarded(struct transaction *transaction, struct request *request, int *error)
{
	const struct config *config = transaction->config_ref->config;
	struct forwarded forwarded = {.client.ss_family = AF_UNSPEC};
	GString *text;

	if (!config->proxies)
		return NULL;
	if (ip_acl_allows(config->proxies, transaction->peer.remote))
		forwarded_read(&forwarded, request, (enum forwarded_fields)config->forwarded,
			       trusts, config->proxies);
	if (forwarded.wrong.length)
		log_wrong(transaction, forwarded.wrong);
	if (forwarded.unknown || forwarded.client.ss_family != AF_UNSPEC)
		take_client(transaction, &forwarded);
	if (forwarded.scheme.length)
		transaction->peer.https = slice_is(forwarded.scheme, "https");
	text = forwarded_rewrite(request, &forwarded);
	if (text)
		*error = request_parse(request, text->str, text->len);
	return text;
}

/* Returns the thread's memory of heads; NULL: they are to be parsed. */
static struct request_memory *memory_of(struct thread *thread)
{
	/* What a trusted proxy says changes the request. */
	if (thread->config_ref->config->proxies)
		return NULL;
	if (!thread->conn->requests)
		thread->conn->requests = request_memory_new();
	return thread->conn->requests;
}

static void remember_line(struct output *output, struct slice head, bool listed)
{
	if (listed)
		output_remember_list(output, head);
	else
		output_remember_line(output, head.at, head.length);
}

/* The request does not exist any longer. */
static void end_request(struct remembered *known, GString *forwarded, GString *escaped)
{
	if (known)
		request_memory_put(known);
	if (forwarded)
		g_string_free(forwarded, TRUE);
	if (escaped)
		g_string_free(escaped, TRUE);
}

/* What the transaction knows of TLS. */
static void describe_tls(const struct connection_tls *tls, struct transaction *transaction)
{
	transaction->peer.secure = transaction->peer.https = tls != NULL;
	if (!tls)
		return;
	transaction->peer.policy = tls->policy;
	transaction->peer.tls = tls->channel;
}

bool connection_start_request(struct connection *connection, const char *head, size_t length,
			      int error, const char *wrong)
{
	struct carrier *carrier = connection->carrier;
	struct thread *thread = connection->thread;
	const struct config_limits *limits = connection_limits(connection);
	struct output *output = output_open(thread);
	struct transaction *transaction;
	struct request_memory *memory;
	struct remembered *known = NULL;
	const struct request *request;
	struct request parsed;
	GString *forwarded = NULL, *escaped = NULL;
	/* A stream's head is a list, all others are text. */
	bool listed = connection_is_stream(connection), may_continue, trusted;

	if (!output) {
		connection_close(connection);
		return false;
	}
	connection->output = output;
	transaction = &output->transaction;
	transaction->peer.remote_addr = carrier->addresses.remote;
	transaction->peer.remote_port = carrier->addresses.remote_port;
	transaction->peer.remote = &carrier->addresses.address.any;
	transaction->peer.local = &carrier->own.any;
	transaction->peer.server_addr = carrier->addresses.local;
	transaction->peer.server_port = carrier->addresses.local_port;
	transaction->connection = connection;
	transaction->peer.status_only = carrier->status_only;
	describe_tls(carrier->tls, transaction);
	transaction->peer.http2 = listed;
	if (transaction->peer.http2)
		transaction->peer.calls = client_calls_hold(carrier->calls);
	transaction->owner = &owner;
	transaction->router = &route_router;
	counter_add(&thread->counters->requests, 1);
	if (thread->logs->wants || transaction->config_ref->config->collector_url)
		remember_line(output, (struct slice){head, length}, listed);
	memory = error ? NULL : memory_of(thread);
	if (memory)
		known = request_memory_find(memory, (struct slice){head, length}, listed);
	if (!error && !known) {
		error = request_parse_head(&parsed, head, length, listed);
		if (error == -400 && limits->raw_utf8)
			escaped = listed ? request_escape_list(head, length)
					 : request_escape(head, length);
		if (escaped)
			error = request_parse_head(&parsed, escaped->str, escaped->len, listed);
		wrong = error ? parsed.wrong : NULL;
		if (memory && !error && !escaped)
			known = request_memory_note(memory, &parsed);
	}
	request = known ? known->request : &parsed;
	/* Without proxies that are known, the operator says that all clients may choose their id. */
	trusted = !transaction->config_ref->config->proxies ||
		  ip_acl_allows(transaction->config_ref->config->proxies, transaction->peer.remote);
	output_identify(output, error ? NULL : request, trusted);
	if (!error && !known) {
		forwarded = take_forwarded(transaction, &parsed, &error);
		wrong = error ? parsed.wrong : wrong;
	}
	if (!error && request->header_count > limits->max_fields) {
		error = -431;
		wrong = REQUEST_TOO_MANY;
	}
	if (!error && request->expect == EXPECT_OTHER) {
		error = -417;
		wrong = "an unknown expectation";
	}
	if (error) {
		/* What follows cannot be separated from the rest of this head. */
		connection->http10 = transaction->peer.http2;
		transaction->head_only =
			listed ? request_list_is_head(head, length) : request_is_head(head, length);
		connection_refuse_because(connection, -error, wrong,
					  wrong == clear_text ? CLEAR_TEXT : NULL);
		end_request(known, forwarded, escaped);
		return true;
	}
	if (thread->logs->wants & ~(unsigned)LOG_WANTS_LINE || transaction->trace.exported)
		output_remember_fields(output, request);
	carrier->requests++;
	may_continue =
		!limits->keep_alive_requests || carrier->requests < limits->keep_alive_requests;
	connection->keep_alive = request->keep_alive && may_continue && !transaction->peer.http2;
	/* The end of a stream ends its response, too. */
	connection->http10 = request->minor == 0 || transaction->peer.http2;
	/* Each client of HTTP/2 reads them, or knows to skip them. */
	transaction->peer.trailers = listed || request->trailers;
	body_begin(&connection->body, request, CONNECTION_DROPPED_MAX);
	if (transaction->peer.http2) {
		body_open(&connection->body);
		if (!may_continue)
			carrier->connection.mux->leave(&carrier->connection);
	}
	transaction->upload.has = !body_is_over(&connection->body);
	connection->expecting = transaction->upload.has && request->expect == EXPECT_CONTINUE;
	transaction->request = request;
	transaction->route.known = known;
	transaction->head_only = request->method == METHOD_HEAD;
	connection->state = WORKING;
	connection_count_as(connection, CONNECTION_WORKING);
	timer_stop(&connection->timer);
	connection->calling = true;
	if (route(transaction) == RESPOND_NOW)
		connection_respond(connection);
	connection->calling = false;
	transaction->request = NULL;
	transaction->route.known = NULL;
	end_request(known, forwarded, escaped);
	return true;
}

void connection_start_stream(struct connection *connection, const char *head, size_t length,
			     int error, const char *wrong)
{
	if (connection_start_request(connection, head, length, error, wrong) &&
	    connection->state == RECEIVING)
		connection_start_receiving(connection, "", 0);
}

void connection_refuse_clear(struct connection *connection, const char *data, size_t length)
{
	(void)connection_start_request(connection, data, length < 512 ? length : 512, -400,
				       clear_text);
}
