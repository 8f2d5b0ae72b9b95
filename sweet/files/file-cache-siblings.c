/* SPDX-License-Identifier: MIT */
/*
 * file-cache-siblings.c - which compressed copies are beside a file: "page.html.gz".  What a search
 * has found is used for a second, or as long as the file is trusted; see file-cache.h.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "event/loop.h"
#include "files/docroot.h"
#include "files/file-cache-internal.h"
#include "files/file-cache.h"
#include "http/accept.h"
#include "http/request.h"

#define SIBLINGS_NS 1000000000 /* how long a result of the search for siblings is valid */

/* A race with another thread may lose one bit; the next search finds it again. */
static unsigned look_for_siblings(const struct file_cache_entry *entry)
{
	size_t length = strlen(entry->path);
	char path[REQUEST_TARGET_MAX + 1 + 8];
	struct file_version version;
	unsigned found = 0;

	if (length + 8 > sizeof(path))
		return 0;
	memcpy(path, entry->path, length);
	for (unsigned i = 0; i < CODINGS; i++) {
		strcpy(path + length, coding_suffix((enum coding)i));
		if (docroot_peek(entry->cache->options.root, path, &version) == 0 &&
		    file_version_follows(&version, &entry->view.version))
			found |= 1u << i;
	}
	return found;
}

/*
 * Returns the entry that stores a file's siblings; without the cache of paths, the
 * request's own.
 */
static struct file_cache_entry *siblings_owner(struct file_cache_entry *entry)
{
	return entry->known && !entry->cache->options.no_paths ? entry->known : entry;
}

unsigned file_cache_siblings(struct file_cache_entry *entry, struct loop *loop)
{
	uint64_t trust = entry->cache->options.revalidate_ns, seen;
	unsigned found;

	entry = siblings_owner(entry);
	/* Who sees the time sees what was found: pairs with the release below. */
	seen = atomic_load_explicit(&entry->siblings_ns, memory_order_acquire);
	if (trust < SIBLINGS_NS)
		trust = SIBLINGS_NS;
	if (seen && loop_now_ns(loop) <= seen + trust)
		return atomic_load_explicit(&entry->siblings, memory_order_relaxed);
	seen = clock_monotonic_ns();
	found = look_for_siblings(entry);
	atomic_store_explicit(&entry->siblings, found, memory_order_relaxed);
	atomic_store_explicit(&entry->siblings_ns, seen, memory_order_release);
	return found;
}

void file_cache_sibling_unfit(struct file_cache_entry *entry, enum coding coding)
{
	atomic_fetch_and_explicit(&siblings_owner(entry)->siblings, ~(1u << coding),
				  memory_order_relaxed);
}
