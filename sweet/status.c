/* SPDX-License-Identifier: MIT */
/*
 * status.c - adds up what the threads have counted; see status.h.
 */
#include <time.h>

#include <glib.h>

#include <server.h>
#include <site.h>
#include <status.h>

struct sums {
	uint64_t connections, open, requests, responses[6], body_bytes, body_units;
	uint64_t worker_requests, worker_messages, worker_bodies, worker_failures;
};

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static struct sums add_up(const struct site *site)
{
	struct sums sums = {0};

	for (unsigned i = 0; i < site->threads; i++) {
		const struct server_counters *counters = &site->servers[i]->counters;

		sums.connections += read_counter(&counters->connections);
		sums.open += read_counter(&counters->open);
		sums.requests += read_counter(&counters->requests);
		for (unsigned j = 0; j < 6; j++)
			sums.responses[j] += read_counter(&counters->responses[j]);
		sums.body_bytes += read_counter(&counters->body_bytes);
		sums.body_units += read_counter(&counters->body_units);
		sums.worker_requests += read_counter(&counters->worker_requests);
		sums.worker_messages += read_counter(&counters->worker_messages);
		sums.worker_bodies += read_counter(&counters->worker_bodies);
		sums.worker_failures += read_counter(&counters->worker_failures);
	}
	return sums;
}

static void finish(struct transaction *transaction)
{
	g_free((void *)transaction->text);
}

#define U G_GUINT64_FORMAT

enum respond status_respond(struct transaction *transaction)
{
	const struct site *site = transaction->server->site;
	struct sums sums = add_up(site);
	struct NC_cache_stat cache = {0};
	struct content_stat files = {0};
	GString *text = g_string_new(NULL);
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	(void)NC_cache_stat(site->cache, &cache);
	site_stat(transaction->generation->config, &files);
	g_string_append_printf(text,
			       "{\n"
			       "  \"software\": \"" SERVER_SOFTWARE "\",\n"
			       "  \"uptime_s\": %" U ",\n"
			       "  \"threads\": %u,\n"
			       "  \"io\": \"%s\",\n",
			       (uint64_t)now.tv_sec - site->started_ns / 1000000000u, site->threads,
			       site->io);
	g_string_append_printf(text,
			       "  \"connections\": { \"accepted\": %" U ", \"open\": %" U " },\n"
			       "  \"requests\": %" U ",\n"
			       "  \"responses\": { \"2xx\": %" U ", \"3xx\": %" U ", \"4xx\": %" U
			       ", \"5xx\": %" U " },\n"
			       "  \"bodies\": { \"bytes\": %" U ", \"by_cache_id\": %" U " },\n",
			       sums.connections, sums.open, sums.requests, sums.responses[2],
			       sums.responses[3], sums.responses[4], sums.responses[5],
			       sums.body_bytes, sums.body_units);
	g_string_append_printf(text,
			       "  \"files\": { \"known\": %" U ", \"hits\": %" U ", \"misses\": %" U
			       " },\n"
			       "  \"workers\": { \"requests\": %" U ", \"message_bytes\": %" U
			       ", \"body_bytes_by_cache_id\": %" U ", \"failures\": %" U " },\n",
			       files.files, files.hits, files.misses, sums.worker_requests, sums.worker_messages,
			       sums.worker_bodies, sums.worker_failures);
	g_string_append_printf(text,
			       "  \"cache\": { \"size\": %" U ", \"used\": %" U ", \"units\": %" U
			       ", \"members\": %" U ", \"inserts\": %" U ", \"destroys\": %" U
			       ", \"evictions\": %" U ", \"segments_closed\": %" U
			       ", \"failures\": %" U ", \"stale\": %" U ", \"denied\": %" U " },\n",
			       cache.size, cache.used, cache.units, cache.members, cache.inserts,
			       cache.destroys, cache.evictions, cache.segments_closed,
			       cache.failures, cache.stale, cache.denied);
	g_string_append_printf(text,
			       "  \"transmit\": { \"copy\": { \"sends\": %" U ", \"bytes\": %" U
			       " }, \"splice\": { \"sends\": %" U ", \"bytes\": %" U
			       " }, \"zerocopy\": { \"sends\": %" U ", \"bytes\": %" U
			       ", \"copied\": %" U " }, \"io_uring\": \"%s\" }\n}\n",
			       cache.sends[NC_METHOD_COPY], cache.bytes[NC_METHOD_COPY],
			       cache.sends[NC_METHOD_SPLICE], cache.bytes[NC_METHOD_SPLICE],
			       cache.sends[NC_METHOD_ZEROCOPY], cache.bytes[NC_METHOD_ZEROCOPY],
			       cache.zerocopy_copied, cache.uring);
	transaction->status = 200;
	transaction->length = text->len;
	transaction->head_length =
		(size_t)g_snprintf(transaction->head_buffer, sizeof(transaction->head_buffer),
				   "Content-Type: application/json\r\nCache-Control: no-store\r\n"
				   "Content-Length: %zu\r\n",
				   text->len);
	transaction->head = transaction->head_buffer;
	transaction->text = g_string_free(text, FALSE);
	transaction->finish = finish;
	return RESPOND_NOW;
}
