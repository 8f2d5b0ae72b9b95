/* SPDX-License-Identifier: MIT */
/*
 * output-export.c - the span of an output, for a collector: what the log remembers of the request, and
 * the parts of its time.
 */
#include <string.h>

#include "base/slice.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "exchange/output.h"
#include "http/traceparent.h"
#include "log/span-export.h"
#include "log/span.h"

static void set_text(struct span *span, enum span_text which, struct slice text)
{
	span->texts[which] = text.at;
	span->lengths[which] = text.length;
}

static struct slice text_of(const char *text)
{
	return (struct slice){text, text ? strlen(text) : 0};
}

void output_export(const struct output *output)
{
	const struct transaction *transaction = &output->transaction;
	const struct transaction_times *times = &transaction->times;
	const char *traceparent = transaction->trace.traceparent;
	struct thread *thread = transaction->thread;
	struct span span = {
		.https = transaction->peer.https,
		.client_port = transaction->peer.remote_port,
		.status = transaction->response.status,
		.began_ns = output->began_ns,
		.ended_ns = loop_now_ns(thread->loop),
		.ready_ns = times->ready_ns,
		.submitted_ns = times->submitted_ns,
		.answered_ns = times->answered_ns,
		.responded_ns = output->responded_ns,
	};

	memcpy(span.trace, traceparent + TRACEPARENT_TRACE, SPAN_TRACE_DIGITS);
	memcpy(span.id, traceparent + TRACEPARENT_PARENT, SPAN_ID_DIGITS);
	memcpy(span.parent, transaction->trace.parent, sizeof(span.parent));
	set_text(&span, SPAN_LINE, output->log_request);
	set_text(&span, SPAN_HOST, output->log_host);
	set_text(&span, SPAN_AGENT, output->log_agent);
	set_text(&span, SPAN_CLIENT, text_of(transaction->peer.remote_addr));
	set_text(&span, SPAN_POOL, text_of(transaction->response.pool_name));
	span_export_put(thread->server->spans, thread->number, &span);
}
