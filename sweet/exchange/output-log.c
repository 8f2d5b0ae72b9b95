/* SPDX-License-Identifier: MIT */
/*
 * output-log.c - the line of an output in the access log: saves what the log wants of the request,
 * which exists only while its response is started, and writes the line at the end.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/counter.h"
#include "base/histogram.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "core/log-set.h"
#include "core/server.h"
#include "core/site.h"
#include "core/thread-counters.h"
#include "core/thread-logs.h"
#include "core/transaction.h"
#include "exchange/exchange-thread.h"
#include "exchange/output.h"
#include "http/request-list.h"
#include "http/request.h"
#include "http/traceparent.h"
#include "log/access-line.h"
#include "log/log-format.h"
#include "tls/tls.h"

#define STATUS_GONE 499 /* the client disconnected; as in other servers */

/* Cuts the text if it is longer than most, or than what is free. */
static void remember(struct output *output, struct slice *logged, struct slice text, size_t most)
{
	char *to = output->log_text + output->log_used;

	text.length = MIN(MIN(text.length, most), sizeof(output->log_text) - output->log_used);
	memcpy(to, text.at, text.length);
	*logged = (struct slice){.at = to, .length = text.length};
	output->log_used += text.length;
}

void output_remember_line(struct output *output, const char *head, size_t length)
{
	const char *start = head, *end;

	while (length && (*start == '\r' || *start == '\n')) {
		start++;
		length--;
	}
	end = memchr(start, '\r', length);
	if (end)
		length = (size_t)(end - start);
	end = memchr(start, '\n', length);
	if (end)
		length = (size_t)(end - start);
	remember(output, &output->log_request, (struct slice){start, length}, ACCESS_REQUEST_MAX);
}

void output_remember_list(struct output *output, struct slice list)
{
	struct slice method, target, part;

	if (!request_list_next(&list, &method, &target))
		return;
	remember(output, &output->log_request, method, ACCESS_REQUEST_MAX);
	/* It is the first thing in that memory, and the others follow it. */
	remember(output, &part, SLICE(" "), ACCESS_REQUEST_MAX - output->log_used);
	remember(output, &part, target, ACCESS_REQUEST_MAX - output->log_used);
	remember(output, &part, SLICE(" HTTP/2.0"), ACCESS_REQUEST_MAX - output->log_used);
	output->log_request.length = output->log_used;
}

static void remember_usual(struct output *output, const struct request *request)
{
	const struct slice *referer = request_find(request, "Referer");
	const struct slice *agent = request_find(request, "User-Agent");

	if (referer)
		remember(output, &output->log_referer, *referer, ACCESS_REFERER_MAX);
	if (agent)
		remember(output, &output->log_agent, *agent, ACCESS_AGENT_MAX);
	if (request->host.at)
		remember(output, &output->log_host, request->host, ACCESS_HOST_MAX);
}

static void remember_named(struct output *output, const struct request *request)
{
	const struct config *config = output->transaction.config_ref->config;

	for (unsigned i = 0; i < config->log_field_count; i++) {
		const struct slice *value = request_find(request, config->log_fields[i]);

		if (value)
			remember(output, &output->log_fields[i], *value, ACCESS_FIELD_MAX);
	}
}

void output_remember_fields(struct output *output, const struct request *request)
{
	const struct transaction *transaction = &output->transaction;
	unsigned wants = transaction->thread->logs->wants;

	if (wants & LOG_WANTS_USUAL || transaction->trace.exported)
		remember_usual(output, request);
	if (wants & LOG_WANTS_FIELDS)
		remember_named(output, request);
	if (wants & LOG_WANTS_TLS && transaction->peer.tls) {
		struct tls_agreed agreed;

		tls_library->agreed(transaction->peer.tls, &agreed);
		output->log_tls_version = agreed.version;
		output->log_tls_cipher = agreed.cipher;
	}
}

/*
 * Returns the fields as the templates of the logs count them: if the configuration has changed
 * meanwhile, in places.
 */
static const struct slice *logged_fields(const struct output *output, const struct config *logs,
					 struct slice *places)
{
	const struct config *config = output->transaction.config_ref->config;

	if (config == logs || !logs->log_field_count)
		return output->log_fields;
	for (unsigned i = 0; i < logs->log_field_count; i++) {
		places[i] = (struct slice){0};
		for (unsigned k = 0; k < config->log_field_count; k++)
			if (strcasecmp(config->log_fields[k], logs->log_fields[i]) == 0)
				places[i] = output->log_fields[k];
	}
	return places;
}

/* Only the values that templates name. */
static void add_details(const struct output *output, struct access_line *line)
{
	const struct transaction *transaction = &output->transaction;

	line->head_bytes = output->head_length;
	line->tls_version = output->log_tls_version;
	line->tls_cipher = output->log_tls_cipher;
	line->pool = transaction->response.pool_name;
	if (*transaction->trace.traceparent)
		line->trace_id = (struct slice){transaction->trace.traceparent + TRACEPARENT_TRACE,
						TRACEPARENT_TRACE_LENGTH};
	line->request_id = *transaction->trace.id ? transaction->trace.id : NULL;
	line->cache = transaction->response.cache_verdict;
	/* The lines exist until finish(), if this responder has sent them. */
	if (output->head_length && transaction->response.head)
		line->head = (struct slice){transaction->response.head,
					    transaction->response.head_length};
}

/* The slow log is by path: some are slow by nature. */
static bool is_slow(const struct transaction *transaction, const struct config *logs,
		    const struct output_times *times)
{
	const struct scope *scope = transaction->scope;

	return logs->slow_number < logs->log_count && scope && scope->slow_ms &&
	       times->total_us >= (uint64_t)scope->slow_ms * 1000;
}

void output_log(struct output *output)
{
	const struct thread_logs *logs = output->transaction.thread->logs;
	struct slice places[LOG_FIELDS_MAX];
	const struct transaction *transaction = &output->transaction;
	struct thread *thread = transaction->thread;
	struct access_line line;
	int hundred = transaction->response.status / 100;
	struct output_times times = output_times(output);

	counter_add(&thread->counters->responses[hundred < 6 ? hundred : 5], 1);
	counter_add(&thread->counters->body_bytes, output->sent);
	histogram_record(&thread->counters->latency, times.total_us);
	if (transaction->trace.exported)
		output_export(output);
	if (!logs->wants)
		return;
	if (!thread->exchange->date_until_ms)
		output_refresh_date(thread);
	line = (struct access_line){
		.remote = transaction->peer.remote_addr,
		.remote_port = transaction->peer.remote_port,
		.date = thread->exchange->date,
		.user = {*transaction->remote_user ? transaction->remote_user : NULL,
			 strlen(transaction->remote_user)},
		.request = output->log_request,
		.referer = output->log_referer,
		.agent = output->log_agent,
		.host = output->log_host,
		.status = transaction->response.status ? transaction->response.status : STATUS_GONE,
		.bytes = output->sent,
		.microseconds = times.total_us,
		.queue_us = times.queue_us,
		.program_us = times.program_us,
		.send_us = times.send_us,
	};
	add_details(output, &line);
	line.fields = logged_fields(output, logs->set->config, places);
	line.field_count = logs->set->config->log_field_count;
	if (!transaction->response.unlogged &&
	    !(transaction->scope && transaction->scope->access_log == ACCESS_LOG_OFF))
		thread_logs_put(thread->logs,
				log_set_number(logs->set, transaction->config_ref->config,
					       transaction->host),
				&line);
	if (is_slow(transaction, logs->set->config, &times))
		thread_logs_put(thread->logs, logs->set->config->slow_number, &line);
}
