/* SPDX-License-Identifier: MIT */
/*
 * output-identity.c - the id of a request, which the client, programs and logs see, and the trace that
 * it belongs to.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/random-id.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction.h"
#include "exchange/exchange-thread.h"
#include "exchange/output.h"
#include "http/request.h"
#include "http/traceparent.h"
#include "log/span-send.h"

/* Whether it can stand anywhere: in a log, a variable, a file name. */
static bool is_sane(struct slice id)
{
	if (id.length == 0 || id.length > TRANSACTION_ID_MAX)
		return false;
	for (size_t i = 0; i < id.length; i++)
		if (!g_ascii_isalnum(id.at[i]) && !strchr("._-", id.at[i]))
			return false;
	return true;
}

static void make_id(struct output *output, const struct request *request, bool trusted)
{
	struct transaction *transaction = &output->transaction;
	struct random_id *source = &transaction->thread->exchange->ids;
	unsigned use = transaction->config_ref->config->request_id;
	const struct slice *given = NULL;
	char *to = transaction->trace.id;

	if (use == REQUEST_ID_TRUST && trusted && request)
		given = request_find(request, "X-Request-Id");
	if (given && is_sane(*given)) {
		memcpy(to, given->at, given->length);
		to += given->length;
	} else {
		to = random_id_write(to, random_id_next(source), 16);
		to = random_id_write(to, random_id_next(source), 16);
	}
	*to = '\0';
}

/* A part of the new traces is sampled, by random bits of the id, as others can repeat. */
static bool is_sampled(const struct transaction *transaction, uint64_t random)
{
	uint64_t share = transaction->config_ref->config->trace_share;

	return (random & (CONFIG_SHARE_ALL - 1)) < share;
}

/*
 * Continues the trace of the request, or begins one.  Programs that decide by their parent, as they
 * do by default, record what is sampled.
 */
static void continue_trace(struct transaction *transaction, const struct request *request,
			   bool trusted)
{
	struct random_id *source = &transaction->thread->exchange->ids;
	char *to = transaction->trace.traceparent;
	struct slice given;
	uint64_t random;

	transaction->trace.begins = !trusted || !request || !traceparent_find(request, &given);
	if (transaction->trace.begins) {
		memcpy(to, "00-", TRACEPARENT_TRACE);
		/* Not zero, which no id may be. */
		to = random_id_write(to + TRACEPARENT_TRACE, random_id_next(source) | 1, 16);
		random = random_id_next(source);
		to = random_id_write(to, random, 16);
		memcpy(transaction->trace.traceparent + TRACEPARENT_FLAGS,
		       is_sampled(transaction, random) ? "01" : "00", 2);
	} else {
		memcpy(to, given.at, TRACEPARENT_LENGTH);
		memcpy(to, "00", 2);
		memcpy(transaction->trace.parent, to + TRACEPARENT_PARENT,
		       TRACEPARENT_PARENT_LENGTH);
		transaction->trace.parent[TRACEPARENT_PARENT_LENGTH] = '\0';
		to += TRACEPARENT_PARENT - 1;
	}
	*to++ = '-';
	to = random_id_write(to, random_id_next(source) | 1, TRACEPARENT_PARENT_LENGTH);
	*to = '-';
	transaction->trace.traceparent[TRACEPARENT_LENGTH] = '\0';
	transaction->trace.exported = transaction->config_ref->config->collector_url &&
				      traceparent_is_sampled(transaction->trace.traceparent);
}

void output_identify(struct output *output, const struct request *request, bool trusted)
{
	const struct config *config = output->transaction.config_ref->config;

	if (config->request_id != REQUEST_ID_OFF)
		make_id(output, request, trusted);
	if (config->trace)
		continue_trace(&output->transaction, request, trusted);
}
