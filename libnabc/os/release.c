/* SPDX-License-Identifier: MIT */
/*
 * release.c - see release.h.
 *
 * Who unmaps and closes last frees the pages: 0.2 s for each GB.  The process that wrote them may be
 * gone for long.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/release.h"
#include "os/thread.h"

void nc_release_here(const struct nc_release *release)
{
	if (release->second)
		munmap(release->second, release->size);
	if (release->base)
		munmap(release->base, release->size);
	if (release->fd >= 0)
		close(release->fd);
}

static void *release_run(void *context)
{
	nc_release_here(context);
	free(context);
	return NULL;
}

void nc_release(const struct nc_release *release)
{
	struct nc_release *copy = release->size > NC_RELEASE_HERE ? malloc(sizeof(*copy)) : NULL;
	pthread_t thread;

	if (copy) {
		*copy = *release;
		if (nc_thread_start(&thread, "nabc-release", release_run, copy) == 0) {
			pthread_detach(thread);
			return;
		}
		free(copy);
	}
	nc_release_here(release);
}
