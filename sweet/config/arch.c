/* SPDX-License-Identifier: MIT */
/*
 * arch.c - see arch.h.  The numbers of threads and processes are the paper's.
 */
#include <unistd.h>

#include <nabc-worker.h>

#include "config/arch.h"
#include "config/config-tree.h"
#include "config/configuration.h"
#include "config/pool-config.h"

#define LOOPS_MAX 64 /* ARCH_THREADS_RANGE says so */

/* Threads and processes are as many as the paper took. */
const struct arch archs[ARCHS] = {
	[ARCH_AMPED] = {.name = "amped", .helpers = 4},
	[ARCH_SPED] = {.name = "sped"},
	[ARCH_MT] = {.name = "mt", .threads = 64, .single = true},
	[ARCH_MP] = {.name = "mp", .threads = 32, .single = true, .processes = true},
};

/* Each loop serves many connections, so more loops than CPUs are of no use. */
void config_arch_threads(struct config_tree *tree, struct config *config)
{
	const struct arch *arch = &archs[config->arch];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned loops = cpus < 1 ? 1 : cpus > LOOPS_MAX ? LOOPS_MAX : (unsigned)cpus;

	if (!config->threads)
		config->threads = arch->threads ? arch->threads : loops;
	if (!arch->single && config->threads > LOOPS_MAX) {
		const char *place = config_place(config, "threads");

		config_tree_complain(tree, place,
				     "%sthreads \"%u\": must be a number " ARCH_THREADS_RANGE,
				     place ? "" : "--", config->threads);
	}
	if (arch->processes && config->cache_socket)
		config_tree_complain(tree, config_place(config, "cache-socket"),
				     "cache-socket is not possible with arch mp: each process has "
				     "its own cache");
}

/*
 * A worker has a limited number of channels, one per thread; with mp, each process
 * has workers of its own.
 */
void config_arch_pools(struct config_tree *tree, const struct config *config)
{
	if (config->threads <= NC_CHANNELS_MAX || archs[config->arch].processes)
		return;
	for (unsigned i = 0; i < config->pool_count; i++)
		if (config->pools[i]->protocol == POOL_WORKER)
			config_tree_complain(tree, config->pools[i]->place,
					     "%s: workers answer at most %u threads, not %u",
					     config->pools[i]->label, NC_CHANNELS_MAX,
					     config->threads);
}
