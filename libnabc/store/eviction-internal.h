/* SPDX-License-Identifier: MIT */
/*
 * eviction-internal.h - shared by eviction.c, compaction.c and page-window.c only:
 * a search for memory, and the steps of compaction.
 */
#ifndef NC_EVICTION_INTERNAL_H
#define NC_EVICTION_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/pool.h"
#include "store/unit.h"

struct nc_store;

/* One search for memory.  A store that it cannot reclaim is marked with its number. */
struct nc_search {
	unsigned pass;
	/* No allocation waits: set wake_on_release on held units that are in the way. */
	bool ahead;
	/* Only evicting stores whose descriptor is counted helps. */
	bool descriptor;
	/* Also consider units in their grace period (unit.h). */
	bool also_in_grace;
	uint64_t now_ns;
};

/* Whether the unit is live and not held. */
static inline bool nc_search_idle(struct nc_unit *unit, bool mark)
{
	uint64_t word = nc_unit_word(unit);

	if (nc_word_state(word) == NC_UNIT_LIVE && nc_word_holds(word) && mark) {
		/*
		 * Set the mark before the second look: the holder sees the mark, or
		 * we see its release.  Sequentially consistent, like nc_unit_release()
		 * and the look at the mark in nc_member_release().
		 */
		atomic_store(&unit->wake_on_release, true);
		word = atomic_load(&unit->word);
	}
	return nc_word_state(word) == NC_UNIT_LIVE && nc_word_holds(word) == 0;
}

static inline bool nc_search_pinned(const struct nc_unit *unit)
{
	return atomic_load_explicit(&unit->priority, memory_order_relaxed) >= NC_PRIORITIES;
}

/* Returns the next victim, or NULL if no unit may be evicted. */
struct nc_unit *nc_search_victim(struct nc_member *member, struct nc_search *search);

/* --- compaction ---------------------------------------------------------------- */

/* Returns how many bytes of the store can be copied into existing segments. */
size_t nc_compaction_room(const struct nc_member *member, const struct nc_store *store);

/* Whether the store can be compacted, judged by its counts. */
bool nc_compaction_may_clean(const struct nc_store *store, const struct nc_search *search);

/*
 * Selects the log segment to compact.  Rates again the segment of the victim and a few
 * others in turn; for the rest, older ratings are good enough.
 */
struct nc_store *nc_compaction_choose(struct nc_member *member, struct nc_store *coldest,
				      const struct nc_search *search);

/*
 * Returns 0 if the store is closed, -errno if not; then nothing was evicted, except
 * if a unit was taken into use during the copy.
 */
int nc_compaction_clean(struct nc_member *member, struct nc_store *store,
			const struct nc_search *search);

#endif
