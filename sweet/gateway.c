/* SPDX-License-Identifier: MIT */
/*
 * gateway.c - supervision of workers; see gateway.h.  Runs on the main
 * thread, which starts the workers, so that they end with it.
 *
 * A worker's end is seen on its pidfd.  Every thread is told to let go of it;
 * when the last one has, the exchange is closed and, after a pause that grows
 * with quick failures, the next process is started.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include <glib.h>

#include <gateway.h>

#define BACKOFF_FIRST 0 /* ms: the first restart comes at once */
#define BACKOFF_STEP 200
#define BACKOFF_MAX 10000
#define LIVED_MS 1000 /* a worker that lived so long has not failed at its start */

static struct gateway *gateway_of(const struct gateway_worker *worker)
{
	return worker->pool->queues[0].server->site->gateway;
}

static int start(struct gateway_worker *worker);

static void restart(struct timer *timer)
{
	struct gateway_worker *worker =
		(struct gateway_worker *)((char *)timer - offsetof(struct gateway_worker, restart));
	struct gateway *gateway = gateway_of(worker);
	int error;

	if (gateway->closing)
		return;
	error = start(worker);
	if (error) {
		log_error("worker %s[%u]: cannot start: %s", worker->pool->prefix, worker->number,
			  strerror(-error));
		loop_timer_start(gateway->main->loop, &worker->restart, BACKOFF_MAX, restart);
	}
}

/* On the main thread, when no thread uses the exchange any more. */
static void gone(struct loop_task *task)
{
	struct gateway_worker *worker =
		(struct gateway_worker *)((char *)task - offsetof(struct gateway_worker, gone));
	struct gateway *gateway = gateway_of(worker);
	uint64_t lived = loop_now_ms(gateway->main->loop) - worker->started_ms;

	(void)NC_exchange_close(worker->exchange);
	worker->exchange = NULL;
	worker->state = WORKER_DOWN;
	if (gateway->closing)
		return;
	if (lived >= LIVED_MS) {
		worker->backoff = BACKOFF_FIRST;
	} else {
		if (worker->backoff >= BACKOFF_STEP * 2)
			atomic_fetch_add_explicit(&worker->pool->failing, 1, memory_order_relaxed);
		worker->backoff = worker->backoff ? worker->backoff * 2 : BACKOFF_STEP;
		if (worker->backoff > BACKOFF_MAX)
			worker->backoff = BACKOFF_MAX;
	}
	log_notice("worker %s[%u]: starting again%s", worker->pool->prefix, worker->number,
		   worker->backoff ? " after a pause" : "");
	loop_timer_start(gateway->main->loop, &worker->restart, worker->backoff, restart);
}

void gateway_left(struct gateway_worker *worker)
{
	if (atomic_fetch_sub_explicit(&worker->leaving, 1, memory_order_acq_rel) != 1)
		return;
	worker->gone.run = gone;
	loop_post(gateway_of(worker)->main->loop, &worker->gone);
}

void gateway_kill(struct gateway_worker *worker, const char *why)
{
	/* Not reaped before every lane is down, so the number is still its own. */
	pid_t pid = NC_exchange_pid(worker->exchange);

	log_warning("worker %s[%u] (pid %d) %s: ending it", worker->pool->prefix, worker->number,
		    (int)pid, why);
	kill(pid, SIGKILL);
}

static void ended(struct loop_watch *watch)
{
	struct gateway_worker *worker =
		(struct gateway_worker *)((char *)watch - offsetof(struct gateway_worker, ended));
	struct gateway *gateway = gateway_of(worker);
	struct site *site = gateway->site;

	if (worker->state != WORKER_UP)
		return;
	worker->state = WORKER_LEAVING;
	atomic_store_explicit(&worker->pid, 0, memory_order_relaxed);
	if (!gateway->closing)
		log_notice("worker %s[%u] (pid %d) has ended", worker->pool->prefix, worker->number,
			   (int)NC_exchange_pid(worker->exchange));
	loop_watch_stop(gateway->main->loop, NC_exchange_pidfd(worker->exchange));
	atomic_store_explicit(&worker->leaving, site->threads, memory_order_release);
	for (unsigned i = 0; i < site->threads; i++) {
		worker->lanes[i].down.run = gw_lane_down;
		loop_post(site->servers[i]->loop, &worker->lanes[i].down);
	}
}

static int start(struct gateway_worker *worker)
{
	struct gateway *gateway = gateway_of(worker);
	struct site *site = gateway->site;
	struct NC_exchange_options options = {
		.argv = worker->pool->argv, .lanes = site->threads, .memory = gateway->memory};
	int error;

	worker->exchange = NC_exchange_start(site->cache, &options);
	if (!worker->exchange)
		return -errno;
	worker->ended.ready = ended;
	error = loop_watch_start(gateway->main->loop, &worker->ended,
				 NC_exchange_pidfd(worker->exchange));
	if (error) {
		(void)NC_exchange_close(worker->exchange);
		worker->exchange = NULL;
		return error;
	}
	worker->state = WORKER_UP;
	atomic_store_explicit(&worker->pid, (int)NC_exchange_pid(worker->exchange),
			      memory_order_relaxed);
	server_count(&worker->starts, 1);
	worker->started_ms = loop_now_ms(gateway->main->loop);
	/* A failing worker that came back is believed until it fails again. */
	if (worker->backoff >= BACKOFF_STEP * 4)
		atomic_fetch_sub_explicit(&worker->pool->failing, 1, memory_order_relaxed);
	for (unsigned i = 0; i < site->threads; i++) {
		worker->lanes[i].up.run = gw_lane_up;
		loop_post(site->servers[i]->loop, &worker->lanes[i].up);
	}
	return 0;
}

static bool parse(struct gateway_pool *pool, const char *spec, char **why)
{
	const char *equals = strchr(spec, '=');
	GError *error = NULL;

	if (!equals || spec[0] != '/' || equals - spec < 2) {
		*why = g_strdup_printf("worker \"%s\": must be /PREFIX=COMMAND", spec);
		return false;
	}
	pool->prefix = g_strndup(spec, (gsize)(equals - spec));
	while (g_str_has_suffix(pool->prefix, "/"))
		pool->prefix[strlen(pool->prefix) - 1] = '\0';
	pool->prefix_length = strlen(pool->prefix);
	if (pool->prefix_length < 2) {
		*why = g_strdup_printf("worker \"%s\": the prefix must be more than \"/\"", spec);
		return false;
	}
	if (!g_shell_parse_argv(equals + 1, NULL, &pool->argv, &error)) {
		*why = g_strdup_printf("worker \"%s\": %s", spec, error->message);
		g_error_free(error);
		return false;
	}
	/* Said now rather than with each restart. */
	{
		char *program = g_find_program_in_path(pool->argv[0]);

		if (!program) {
			*why = g_strdup_printf("worker \"%s\": no program \"%s\" that can be run",
					       spec, pool->argv[0]);
			return false;
		}
		g_free(program);
	}
	return true;
}

char *gateway_check(const char *spec)
{
	struct gateway_pool pool = {0};
	char *why = NULL;

	(void)parse(&pool, spec, &why);
	g_free(pool.prefix);
	g_strfreev(pool.argv);
	return why;
}

static void set_up_pool(struct gateway *gateway, struct gateway_pool *pool, unsigned workers)
{
	unsigned threads = gateway->site->threads;

	pool->count = workers;
	pool->workers = g_new0(struct gateway_worker, workers);
	pool->queues = g_new0(struct gw_queue, threads);
	for (unsigned i = 0; i < threads; i++) {
		pool->queues[i].server = gateway->site->servers[i];
		pool->queues[i].pool = pool;
		pool->queues[i].last = &pool->queues[i].first;
	}
	for (unsigned i = 0; i < workers; i++) {
		struct gateway_worker *worker = &pool->workers[i];

		worker->pool = pool;
		worker->number = i;
		worker->lanes = g_new0(struct gw_lane, threads);
		for (unsigned lane = 0; lane < threads; lane++) {
			worker->lanes[lane].worker = worker;
			worker->lanes[lane].server = gateway->site->servers[lane];
		}
	}
}

struct gateway *gateway_open(struct site *site, char **specs, unsigned workers, size_t memory,
			     char **why)
{
	struct gateway *gateway = g_new0(struct gateway, 1);

	gateway->site = site;
	gateway->main = site->servers[0];
	gateway->memory = memory;
	gateway->pool_count = g_strv_length(specs);
	gateway->pools = g_new0(struct gateway_pool, gateway->pool_count);
	for (unsigned i = 0; i < gateway->pool_count; i++) {
		if (!parse(&gateway->pools[i], specs[i], why)) {
			gateway_close(gateway);
			return NULL;
		}
	}
	for (unsigned i = 0; i < gateway->pool_count; i++)
		set_up_pool(gateway, &gateway->pools[i], workers);
	return gateway;
}

int gateway_start(struct gateway *gateway)
{
	for (unsigned i = 0; i < gateway->pool_count; i++) {
		for (unsigned j = 0; j < gateway->pools[i].count; j++) {
			int error = start(&gateway->pools[i].workers[j]);

			if (error)
				return error;
		}
	}
	return 0;
}

void gateway_close(struct gateway *gateway)
{
	if (!gateway)
		return;
	for (unsigned i = 0; i < gateway->pool_count; i++) {
		struct gateway_pool *pool = &gateway->pools[i];

		for (unsigned j = 0; pool->queues && j < gateway->site->threads; j++)
			gw_queue_abandon(&pool->queues[j]);
		for (unsigned j = 0; j < pool->count; j++) {
			for (unsigned lane = 0; lane < gateway->site->threads; lane++)
				gw_lane_abandon(&pool->workers[j].lanes[lane]);
			if (pool->workers[j].exchange)
				(void)NC_exchange_close(pool->workers[j].exchange);
			g_free(pool->workers[j].lanes);
		}
		g_free(pool->workers);
		g_free(pool->queues);
		g_free(pool->prefix);
		g_strfreev(pool->argv);
	}
	g_free(gateway->pools);
	g_free(gateway);
}

struct gateway_pool *gateway_find(struct gateway *gateway, const char *path)
{
	struct gateway_pool *best = NULL;

	for (unsigned i = 0; i < gateway->pool_count; i++) {
		struct gateway_pool *pool = &gateway->pools[i];

		if (strncmp(path, pool->prefix, pool->prefix_length) == 0 &&
		    (path[pool->prefix_length] == '/' || path[pool->prefix_length] == '\0') &&
		    (!best || pool->prefix_length > best->prefix_length))
			best = pool;
	}
	return best;
}
