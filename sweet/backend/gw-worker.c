/* SPDX-License-Identifier: MIT */
/*
 * gw-worker.c - see gw-worker.h.  On the server's thread, but for the starts
 * and ends of processes, which are the main thread's.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <glib.h>

#include "backend/gw-call.h"
#include "backend/gw-worker.h"
#include "core/page-memory.h"
#include "spawn/starter.h"

/* What a place has. */
struct place {
	NC_exchange *exchange; /* main thread's; a lane has its copy while up */
	struct gw_lane lanes[];
};

static struct place *place_of(const struct gw_process *process)
{
	return process->own;
}

const struct gw_lane *gw_worker_lanes(const struct gw_process *process)
{
	return place_of(process)->lanes;
}

/* --- calls ------------------------------------------------------------------------------ */

static unsigned load_of(const struct gw_process *process)
{
	return atomic_load_explicit(&process->load, memory_order_relaxed);
}

/*
 * Smaller is better: slow ones last, then by the requests of all threads, then
 * by ours, then by their numbers, so that no two are equal.
 */
static uint64_t cost_of(const struct gw_lane *lane, uint64_t now_ms)
{
	const struct gw_process *process = lane->process;

	return (uint64_t)gw_process_is_slow(process, now_ms) << 63 |
	       (uint64_t)load_of(process) << 24 | (uint64_t)lane->in_flight << 8 | process->number;
}

/*
 * Whether the process has memory for the page of one request more.  If not,
 * slow clients are to give some back, and gw_room_everywhere() comes then.
 */
static bool has_room(struct gateway_pool *pool, unsigned number)
{
	const struct site *site = pool->gateway->site;
	struct page_memory *pages = &pool->pages[number];
	const struct gw_process *process = &pool->processes[number];

	if (page_memory_fits(pages, load_of(process)))
		return true;
	if (!atomic_exchange(&pages->wanted, true))
		for (unsigned i = 0; i < site->threads; i++)
			loop_notify(site->servers[i]->loop, &site->servers[i]->shed);
	/* It may have come before it was wanted. */
	return page_memory_fits(pages, load_of(process));
}

/*
 * The lane of the pool whose process has the least to do, for whichever thread,
 * of those that cost at least `*least`, which is set to its cost; or NULL.  A worker
 * does one thing at a time, so that all that it is given waits behind what it is at.
 */
static struct gw_lane *choose(struct gateway_pool *pool, const struct server *server,
			      uint64_t *least)
{
	uint64_t now_ms = loop_now_ms(server->loop), found = UINT64_MAX;
	struct gw_lane *best = NULL;

	for (unsigned i = 0; i < pool->count; i++) {
		struct gw_lane *lane = &place_of(&pool->processes[i])->lanes[server->number];
		uint64_t cost;

		if (!lane->exchange || lane->retiring ||
		    atomic_load_explicit(&pool->processes[i].doomed, memory_order_relaxed) ||
		    lane->in_flight >= pool->settings->in_flight || !has_room(pool, i))
			continue;
		cost = cost_of(lane, now_ms);
		if (cost >= *least && cost < found) {
			best = lane;
			found = cost;
		}
	}
	*least = found;
	return best;
}

static void watch_calls(struct gw_lane *lane);

static bool submit(struct gw_call *call, const char *block, size_t length)
{
	struct gateway_pool *pool = call->pool;
	unsigned tries = call->moves ? 1 : pool->count;
	uint64_t least = 0;

	/*
	 * The queue of one may be full of requests that were withdrawn from it.  A call
	 * that moves waits then: the next choice may be the process that it comes from.
	 */
	for (; tries--; least++) {
		struct gw_lane *lane = choose(pool, call->transaction->server, &least);

		if (!lane)
			return false;
		if (gw_lane_submit(lane, call, block, length)) {
			watch_calls(lane);
			return true;
		}
	}
	return false;
}

/* --- calls that wait behind a long one ---------------------------------------------------- */

static void set_behind(struct gw_lane *lane, bool behind)
{
	if (lane->behind == behind)
		return;
	lane->behind = behind;
	lane->process->pool->queues[lane->server->number].behind += behind ? 1u : -1u;
}

static void look(struct timer *timer)
{
	struct gw_lane *lane = (struct gw_lane *)((char *)timer - offsetof(struct gw_lane, look));
	struct server *server = lane->server;
	bool waits = gw_lane_waiting(lane) > 0;

	if (waits)
		watch_calls(lane);
	set_behind(lane, waits && gw_process_is_slow(lane->process, loop_now_ms(server->loop)));
	if (lane->behind)
		gw_room(lane->process->pool, server);
}

/*
 * Looks whether calls wait in the lane when its process may be slow, and from
 * then on as long as they do: another thread may see that a process is idle.
 */
static void watch_calls(struct gw_lane *lane)
{
	if (lane->process->pool->count > 1 && !lane->look.queue)
		loop_timer_start(lane->server->loop, &lane->look, GW_SLOW_MS + 1, look);
}

/*
 * Whether another process begins sooner with a call that waits in the lane: one
 * that is not slow ends at least one request in GW_SLOW_MS, and the lane's has
 * stalled for longer than that one needs for all it has.  So no call moves to and
 * fro between processes whose requests all take long.  The last call of a process
 * waits behind none: one that is stopped, or still starts, is not idle without it.
 */
static bool is_better_elsewhere(const struct gw_lane *lane)
{
	uint64_t now_ms = loop_now_ms(lane->server->loop), least = 0;
	const struct gw_lane *best = choose(lane->process->pool, lane->server, &least);

	return load_of(lane->process) > 1 && best && best != lane &&
	       !gw_process_is_slow(best->process, now_ms) &&
	       gw_process_stalled_ms(lane->process, now_ms) >
		       (uint64_t)GW_SLOW_MS * (load_of(best->process) + 1);
}

/* One call: with that the other process has more to do. */
static void relieve(struct gateway_pool *pool, struct server *server)
{
	for (unsigned i = 0; i < pool->count; i++) {
		struct gw_lane *lane = &place_of(&pool->processes[i])->lanes[server->number];

		if (!lane->behind || !is_better_elsewhere(lane))
			continue;
		if (gw_lane_withdraw(lane))
			return;
		set_behind(lane, false);
	}
}

static bool is_hopeless(struct gateway_pool *pool)
{
	return gw_processes_fail(pool);
}

static void let_go(struct gw_lane *lane);

static void rung(struct loop_watch *watch)
{
	(void)gw_lane_reap((struct gw_lane *)((char *)watch - offsetof(struct gw_lane, doorbell)));
}

/* Kicks once for all calls of the turn, then looks, then lets sleep. */
static bool before_sleep(struct loop_hook *hook)
{
	struct gw_hook *all = (struct gw_hook *)hook;
	struct gw_lane *next;
	bool work = false;

	for (struct gw_lane *lane = all->active; lane; lane = next) {
		next = lane->next_active;
		work |= gw_lane_settle(lane);
		if (lane->retiring && lane->in_flight == 0)
			let_go(lane);
	}
	return work;
}

void gw_hook_add(struct gw_hook *hook, struct server *server)
{
	hook->hook.before_sleep = before_sleep;
	server->workers = hook;
	loop_hook_add(server->loop, &hook->hook);
}

/* --- workers that come and go, on each thread ------------------------------------------ */

static void lane_up(struct loop_task *task)
{
	struct gw_lane *lane = (struct gw_lane *)((char *)task - offsetof(struct gw_lane, up));
	struct server *server = lane->server;

	gw_lane_reset(lane, place_of(lane->process)->exchange);
	lane->doorbell.ready = rung;
	if (loop_watch_start(server->loop, &lane->doorbell,
			     NC_exchange_fd(lane->exchange, server->number)) < 0) {
		lane->exchange = NULL;
		gw_process_kill(lane->process, "cannot be watched: out of memory");
		return;
	}
	lane->next_active = server->workers->active;
	server->workers->active = lane;
	gw_room(lane->process->pool, server);
}

/* The lane's calls are over or will be failed. */
static void detach(struct gw_lane *lane)
{
	struct server *server = lane->server;
	struct gw_lane **link = &server->workers->active;

	loop_watch_stop(server->loop, NC_exchange_fd(lane->exchange, server->number));
	while (*link != lane)
		link = &(*link)->next_active;
	*link = lane->next_active;
	timer_stop(&lane->look);
	set_behind(lane, false);
	lane->exchange = NULL;
}

static void let_go(struct gw_lane *lane)
{
	detach(lane);
	lane->retiring = false;
	gw_process_left(lane->process);
}

static void lane_retire(struct loop_task *task)
{
	struct gw_lane *lane = (struct gw_lane *)((char *)task - offsetof(struct gw_lane, retire));

	if (!lane->exchange)
		gw_process_left(lane->process);
	else if (lane->in_flight == 0)
		let_go(lane);
	else
		lane->retiring = true;
}

static void lane_down(struct loop_task *task)
{
	struct gw_lane *lane = (struct gw_lane *)((char *)task - offsetof(struct gw_lane, down));
	bool owed = lane->retiring;

	if (lane->exchange) {
		/* What it answered before its end is good, and nothing new is for it. */
		lane->retiring = true;
		gw_lane_reap_last(lane);
		gw_lane_take_back(lane);
		detach(lane);
		lane->retiring = false;
		gw_lane_abandon(lane);
		gw_room(lane->process->pool, lane->server);
	}
	if (owed)
		gw_process_left(lane->process);
	gw_process_left(lane->process);
}

/* --- the same on the main thread --------------------------------------------------------- */

/* By the starter: with the pool's own variables, which it knows, and these. */
static int start_other(void *context, int socket, char *const *environment, pid_t *pid, int *pidfd)
{
	struct gw_process *process = context;
	int program = gw_processes_program(process->pool), error;
	struct start what = {.program = (unsigned)program, .fds = {-1, -1, -1, socket}};
	GString *block;

	if (program < 0) {
		errno = -program;
		return -1;
	}
	block = g_string_new(NULL);
	for (unsigned i = 0; environment[i]; i++)
		g_string_append_len(block, environment[i], (gssize)strlen(environment[i]) + 1);
	what.block = block->str;
	what.block_length = block->len;
	error = gw_process_run(process, &what, pid, pidfd);
	g_string_free(block, TRUE);
	errno = -error;
	return error ? -1 : 0;
}

static int start(struct gw_process *process, pid_t *pid, int *pidfd)
{
	const struct pool_config *settings = process->pool->settings;
	struct site *site = process->pool->gateway->site;
	struct place *place = place_of(process);
	struct NC_exchange_options options = {.argv = settings->argv,
					      .environment = settings->environment,
					      .lanes = site->threads,
					      .memory = settings->memory,
					      .flags = site->path->exchange_flags};

	if (pool_config_is_other(settings)) {
		options.environment = NULL;
		options.start = start_other;
		options.context = process;
	}
	place->exchange = NC_exchange_start(site->cache, &options);
	if (!place->exchange)
		return -errno;
	*pid = NC_exchange_pid(place->exchange);
	*pidfd = NC_exchange_pidfd(place->exchange);
	return 0;
}

/* Has a task of each lane run on its thread. */
static void tell(struct gw_process *process, size_t task, void (*run)(struct loop_task *task))
{
	struct place *place = place_of(process);

	for (unsigned i = 0; i < process->parts; i++) {
		struct loop_task *at = (void *)((char *)&place->lanes[i] + task);

		at->run = run;
		loop_post(place->lanes[i].server->loop, at);
	}
}

static void up(struct gw_process *process)
{
	tell(process, offsetof(struct gw_lane, up), lane_up);
}

static void retire(struct gw_process *process)
{
	tell(process, offsetof(struct gw_lane, retire), lane_retire);
}

static void down(struct gw_process *process)
{
	tell(process, offsetof(struct gw_lane, down), lane_down);
}

static void close_process(struct gw_process *process)
{
	struct place *place = place_of(process);

	(void)NC_exchange_close(place->exchange);
	place->exchange = NULL;
}

static int open_pool(struct gateway_pool *pool)
{
	static const struct gw_process_kind kind = {
		.start = start, .up = up, .retire = retire, .down = down, .close = close_process};
	struct site *site = pool->gateway->site;

	pool->count = pool->settings->processes;
	pool->processes = g_new0(struct gw_process, pool->count);
	pool->ahead = g_new0(struct body_budget, pool->count);
	pool->pages = g_new0(struct page_memory, pool->count);
	for (unsigned i = 0; i < pool->count; i++) {
		struct place *place =
			g_malloc0(sizeof(*place) + site->threads * sizeof(place->lanes[0]));

		pool->processes[i].own = place;
		/* The rest is for what it makes meanwhile. */
		pool->ahead[i].most = pool->settings->memory / 2;
		page_memory_init(&pool->pages[i], pool->settings->memory);
		for (unsigned k = 0; k < site->threads; k++) {
			place->lanes[k].process = &pool->processes[i];
			place->lanes[k].server = site->servers[k];
		}
	}
	return gw_processes_open(pool, &kind, pool->count, site->threads);
}

static void close_pool(struct gateway_pool *pool)
{
	for (unsigned i = 0; i < pool->count; i++)
		for (unsigned k = 0; k < pool->gateway->site->threads; k++) {
			struct gw_lane *lane = &place_of(&pool->processes[i])->lanes[k];

			timer_stop(&lane->look);
			gw_lane_abandon(lane);
		}
	gw_processes_close(pool);
	for (unsigned i = 0; i < pool->count; i++)
		g_free(pool->processes[i].own);
	g_free(pool->processes);
	pool->processes = NULL;
	pool->count = 0;
}

const struct gw_protocol gw_worker = {
	.takes_back = true,
	.open = open_pool,
	.end = gw_processes_end,
	.close = close_pool,
	.renew = gw_processes_renew,
	.submit = submit,
	.relieve = relieve,
	.is_hopeless = is_hopeless,
	.body = gw_lane_body,
	.too_late = gw_lane_too_late,
	.gone = gw_lane_gone,
	.finish = gw_lane_finish,
};
