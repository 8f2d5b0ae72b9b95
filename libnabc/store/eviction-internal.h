/* SPDX-License-Identifier: MIT */
/*
 * eviction-internal.h - what eviction.c, compaction.c and page-window.c share: a
 * search for memory, and the steps of compaction.  For these three alone.
 */
#ifndef NC_EVICTION_INTERNAL_H
#define NC_EVICTION_INTERNAL_H

#include "store/eviction.h"

/* One search for room; stores that it has to leave carry its number. */
struct nc_search {
	unsigned pass;
	/* Nobody waits: the holders of what is in the way are to say when they let go. */
	bool ahead;
	/* Only what has a descriptor of those that are counted helps. */
	bool descriptor;
	/* Also what somebody was told of, and has not come for. */
	bool also_in_grace;
	uint64_t now_ns;
};

/* Nobody holds it, nobody fills it. */
static inline bool nc_search_idle(struct nc_unit *unit, bool mark)
{
	uint64_t word = nc_unit_word(unit);

	if (nc_word_state(word) == NC_UNIT_LIVE && nc_word_holds(word) && mark) {
		/* Marked before the second look: whoever lets go sees one or the other. */
		atomic_store(&unit->wake_on_release, true);
		word = atomic_load(&unit->word);
	}
	return nc_word_state(word) == NC_UNIT_LIVE && nc_word_holds(word) == 0;
}

static inline bool nc_search_pinned(const struct nc_unit *unit)
{
	return atomic_load_explicit(&unit->priority, memory_order_relaxed) >= NC_PRIORITIES;
}

/* The unit that should go next, or NULL: none may. */
struct nc_unit *nc_search_victim(struct nc_member *member, struct nc_search *search);

/* --- compaction ---------------------------------------------------------------- */

/* Bytes that can be copied out of the store, into what is there. */
size_t nc_compaction_room(const struct nc_member *member, const struct nc_store *store);

/* Whether the store is one that can be cleaned, as far as its counts tell. */
bool nc_compaction_may_clean(const struct nc_store *store, const struct nc_search *search);

/*
 * Which segment of the log to clean: the one where the victim lies and some in
 * turn are weighed anew; older weights of the others are good enough.
 */
struct nc_store *nc_compaction_choose(struct nc_member *member, struct nc_store *coldest,
				      const struct nc_search *search);

/*
 * 0: the store is gone; -errno: it is not, with nothing evicted unless its units were just
 * taken.
 */
int nc_compaction_clean(struct nc_member *member, struct nc_store *store,
			const struct nc_search *search);

#endif
