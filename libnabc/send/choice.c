/* SPDX-License-Identifier: MIT */
/* choice.c - see choice.h. */
#include "send/choice.h"

/*
 * Messages of each way at the start, and of each trial.  The first is not measured: caches are
 * cold.
 */
#define FIRST 6u
#define TRIAL 4u

/*
 * Turns from one trial to the next, at level 0; more if the trials would cost more than a part of
 * SHARE of what the best way costs.
 */
#define PERIOD 128u
#define LEVEL_MAX 6u
#define SHARE 100u

/* The best way is measured in one turn of these; one of those turns is never settled before. */
#define SAMPLE 8u
#define UNSETTLED 64u

/* Each sample of the best way has this part of the weight of its average. */
#define STEADY 8

/* A new best way is measured in each of its first turns, and a mistake is found soon. */
#define PROBATION 32u
#define NEW 4

/*
 * A sample counts at most twice the average, and 5/4 of it once the way is well known: an
 * interrupt is no cost of the way.
 */
#define OUTLIER(cost, known) ((known) ? 5 * (uint64_t)(cost) / 4 : 2 * (uint64_t)(cost))

/* Another way must cost less by a part of 16, so that equal ones do not alternate. */
#define BETTER(cost, best) (16 * (uint64_t)(cost) < 15 * (uint64_t)(best))

#define COST_MAX (UINT32_MAX / 64)

static uint32_t get(const _Atomic uint32_t *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

static void set(_Atomic uint32_t *value, uint32_t to)
{
	atomic_store_explicit(value, to, memory_order_relaxed);
}

static bool is_new(const struct nc_choice *choice, uint32_t turn)
{
	return turn - get(&choice->since) < PROBATION;
}

static bool is_candidate(unsigned candidates, unsigned way)
{
	return candidates >> way & 1;
}

unsigned nc_choice_best(const struct nc_choice *choice, unsigned candidates, unsigned first)
{
	unsigned best = get(&choice->best) - 1;

	if (best >= NC_WAYS || !is_candidate(candidates, best))
		best = NC_WAYS;
	for (unsigned way = 0; way < NC_WAYS; way++) {
		uint32_t cost = nc_choice_cost(choice, way);

		if (is_candidate(candidates, way) && cost &&
		    (best == NC_WAYS || BETTER(cost, nc_choice_cost(choice, best))))
			best = way;
	}
	return best == NC_WAYS ? first : best;
}

/* Returns the candidate with the fewest picks at the start, from `first` on; NC_WAYS: none. */
static unsigned begin_with(const struct nc_choice *choice, unsigned candidates, unsigned first)
{
	unsigned found = NC_WAYS;
	uint32_t fewest = FIRST;

	for (unsigned i = 0; i < NC_WAYS; i++) {
		unsigned way = (first + i) % NC_WAYS;
		const struct nc_way *it = &choice->ways[way];

		/* Once trials have begun, picks counts these. */
		if (is_candidate(candidates, way) && !get(&it->due) && get(&it->picks) < fewest) {
			found = way;
			fewest = get(&it->picks);
		}
	}
	return found;
}

/* Returns the turns to the next trial of a way. */
static uint32_t period(uint32_t level, uint64_t cost, uint64_t best)
{
	uint64_t turns = PERIOD << level, cheap = 0;

	if (best && cost > best)
		cheap = (cost - best) * TRIAL * SHARE / best;
	if (cheap > PERIOD << LEVEL_MAX)
		cheap = PERIOD << LEVEL_MAX;
	return (uint32_t)(turns > cheap ? turns : cheap);
}

/* Sets when a way is tried again: later if it costs more than the best. */
static void schedule(struct nc_choice *choice, unsigned way, unsigned best, uint32_t turn)
{
	struct nc_way *it = &choice->ways[way];
	uint32_t cost = nc_choice_cost(choice, way), level = get(&it->level), due;

	due = turn + period(level, cost, nc_choice_cost(choice, best));
	if (cost && cost < nc_choice_cost(choice, best))
		level = 0;
	else if (level < LEVEL_MAX)
		level++;
	set(&it->level, level);
	set(&it->picks, 0);
	set(&it->due, due ? due : 1);
}

static bool is_due(const struct nc_way *way, uint32_t turn)
{
	return (int32_t)(turn - get(&way->due)) >= 0;
}

bool nc_choice_settled(struct nc_choice *choice, unsigned candidates, unsigned way)
{
	uint32_t turn = nc_choice_turns(choice);

	if (turn % UNSETTLED == 0 || is_new(choice, turn) ||
	    begin_with(choice, candidates, way) < NC_WAYS ||
	    nc_choice_best(choice, candidates, NC_WAYS) != way)
		return false;
	for (unsigned other = 0; other < NC_WAYS; other++) {
		const struct nc_way *it = &choice->ways[other];

		if (other != way && is_candidate(candidates, other) &&
		    (!get(&it->due) || is_due(it, turn)))
			return false;
	}
	atomic_fetch_add_explicit(&choice->turn, 1, memory_order_relaxed);
	return true;
}

struct nc_pick nc_choice_pick(struct nc_choice *choice, unsigned candidates, unsigned first)
{
	uint32_t turn = atomic_fetch_add_explicit(&choice->turn, 1, memory_order_relaxed);
	unsigned way, best;

	if (!(candidates & (candidates - 1)))
		return (struct nc_pick){.way = first};
	way = begin_with(choice, candidates, first);
	if (way < NC_WAYS)
		return (struct nc_pick){way, atomic_fetch_add_explicit(&choice->ways[way].picks, 1,
								       memory_order_relaxed) > 0};
	best = nc_choice_best(choice, candidates, first);
	if (get(&choice->best) != best + 1) {
		set(&choice->best, best + 1);
		set(&choice->since, turn);
	}
	for (way = 0; way < NC_WAYS; way++) {
		struct nc_way *it = &choice->ways[way];
		uint32_t picks;

		if (way == best || !is_candidate(candidates, way))
			continue;
		if (!get(&it->due))
			schedule(choice, way, best, turn);
		if (!is_due(it, turn))
			continue;
		picks = atomic_fetch_add_explicit(&it->picks, 1, memory_order_relaxed);
		if (picks >= TRIAL) {
			schedule(choice, way, best, turn);
			continue;
		}
		return (struct nc_pick){way, picks > 0};
	}
	return (struct nc_pick){best, turn % SAMPLE == 0 || is_new(choice, turn)};
}

/* Moves the average towards a sample: of all the last ones, or of those of the trial. */
static void average(struct nc_choice *choice, unsigned way, uint64_t sample)
{
	struct nc_way *it = &choice->ways[way];
	const bool is_best = get(&choice->best) == way + 1,
		   known = is_best && !is_new(choice, nc_choice_turns(choice));
	int64_t cost = get(&it->cost), part = known ? STEADY : NEW;

	if (!is_best)
		part = get(&it->picks) > 2 ? get(&it->picks) - 1 : 1;
	if (sample > COST_MAX)
		sample = COST_MAX;
	if (sample == 0)
		sample = 1;
	if (cost && sample > OUTLIER(cost, known))
		sample = OUTLIER(cost, known);
	/* Never 0 again: the average of two that are not. */
	if (cost)
		cost += ((int64_t)sample - cost) / part;
	else
		cost = (int64_t)sample;
	set(&it->cost, (uint32_t)cost);
}

void nc_choice_measured(struct nc_choice *choice, unsigned way, uint64_t ns, size_t bytes,
			size_t whole)
{
	struct nc_way *it = &choice->ways[way];
	uint64_t all = atomic_fetch_add_explicit(&it->bytes, bytes, memory_order_relaxed) + bytes;
	uint64_t time = atomic_fetch_add_explicit(&it->ns, ns, memory_order_relaxed) + ns;

	if (all < whole || !all)
		return;
	atomic_store_explicit(&it->bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&it->ns, 0, memory_order_relaxed);
	average(choice, way, time > UINT64_MAX / 1000 ? COST_MAX : time * 1000 / all);
}

void nc_choice_forget(struct nc_choice *choice)
{
	for (unsigned way = 0; way < NC_WAYS; way++) {
		struct nc_way *it = &choice->ways[way];

		set(&it->cost, 0);
		set(&it->picks, 0);
		set(&it->level, 0);
		set(&it->due, 0);
		atomic_store_explicit(&it->ns, 0, memory_order_relaxed);
		atomic_store_explicit(&it->bytes, 0, memory_order_relaxed);
	}
	set(&choice->turn, 0);
	set(&choice->best, 0);
	set(&choice->since, 0);
}
