/* SPDX-License-Identifier: MIT */
/*
 * loan.c - sealed units in a process that joined; see loan.h.
 *
 * The owner is asked without the lock, so that units that are here can be used
 * meanwhile.  Errands are run one at a time: a slot that is given back must not
 * be the one that another thread has just been lent.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/loan.h"
#include "store/revocation-map.h"

struct nc_loan {
	struct nc_hash_entry entry; /* must be first; key: the id */
	struct nc_unit unit;	    /* word: LIVE and holds, generation 1 */
	uint32_t slot;		    /* of the revocation map */
	struct nc_loan *newer, *older;
};

static struct nc_loan *loan_of(struct nc_unit *unit)
{
	return (struct nc_loan *)(void *)((char *)unit - offsetof(struct nc_loan, unit));
}

void nc_loans_init(struct nc_loans *loans, struct nc_rpc_client *rpc)
{
	*loans = (struct nc_loans){.rpc = rpc};
	pthread_mutex_init(&loans->errands, NULL);
	pthread_mutex_init(&loans->lock, NULL);
	nc_hash_table_init(&loans->table);
}

/* --- in order of use ------------------------------------------------------ */

static void unlink_loan(struct nc_loans *loans, struct nc_loan *loan)
{
	if (loan->newer)
		loan->newer->older = loan->older;
	else
		loans->newest = loan->older;
	if (loan->older)
		loan->older->newer = loan->newer;
	else
		loans->oldest = loan->newer;
}

static void link_newest(struct nc_loans *loans, struct nc_loan *loan)
{
	loan->newer = NULL;
	loan->older = loans->newest;
	if (loans->newest)
		loans->newest->newer = loan;
	else
		loans->oldest = loan;
	loans->newest = loan;
}

/* --- one loan -------------------------------------------------------------- */

static void free_loan(struct nc_loan *loan)
{
	nc_unit_forget(&loan->unit);
	if (loan->unit.store)
		nc_store_close(loan->unit.store);
	free(loan);
}

static void enter_locked(struct nc_loans *loans, struct nc_loan *loan, size_t id, uint32_t holds)
{
	atomic_store_explicit(&loan->unit.word, nc_word(1, NC_UNIT_LIVE, holds),
			      memory_order_release);
	nc_hash_table_enter(&loans->table, &loan->entry, id);
	link_newest(loans, loan);
}

static void leave_locked(struct nc_loans *loans, struct nc_loan *loan)
{
	nc_hash_table_leave(&loans->table, &loan->entry);
	unlink_loan(loans, loan);
}

static uint32_t holds_of(const struct nc_loan *loan)
{
	return nc_word_holds(nc_unit_word(&loan->unit));
}

static uint64_t shown(const struct nc_loans *loans, const struct nc_loan *loan)
{
	return nc_revocation_map_read(&loans->rpc->revocations, loan->slot);
}

/* The owner's slot is of use to somebody else; that it may not hear is its loss alone. */
static void drop(struct nc_loans *loans, uint32_t slot)
{
	struct nc_wire_call call = {.op = NC_WIRE_DROP, .slot = slot};
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;

	(void)nc_rpc_client_call(loans->rpc, &call, &load, &reply);
}

static void give_back(struct nc_loans *loans, struct nc_loan *loan)
{
	drop(loans, loan->slot);
	free_loan(loan);
}

void nc_loans_fini(struct nc_loans *loans)
{
	while (loans->newest) {
		struct nc_loan *loan = loans->newest;

		unlink_loan(loans, loan);
		free_loan(loan);
	}
	nc_hash_table_fini(&loans->table);
	pthread_mutex_destroy(&loans->lock);
	pthread_mutex_destroy(&loans->errands);
}

/*
 * One that nobody holds, taken out: one that stands no more, whose memory only
 * we keep, or else the least recently used, if there are too many; or NULL.
 */
static struct nc_loan *surplus_locked(struct nc_loans *loans)
{
	struct nc_loan *surplus = NULL;

	for (struct nc_loan *loan = loans->oldest; loan; loan = loan->newer) {
		bool stands = shown(loans, loan) == loan->entry.key;

		if (holds_of(loan) || (stands && (surplus || loans->table.count <= NC_LOANS_MAX)))
			continue;
		surplus = loan;
		if (!stands)
			break;
	}
	if (surplus)
		leave_locked(loans, surplus);
	return surplus;
}

/* --- made here -------------------------------------------------------------- */

static struct nc_loan *new_loan(const struct nc_layout *layout, struct nc_store *store)
{
	struct nc_loan *loan = calloc(1, sizeof(*loan));

	if (!loan)
		return NULL;
	loan->unit.store = store;
	loan->unit.layout = *layout;
	loan->unit.next = loan->unit.previous = NC_UNIT_NONE;
	atomic_init(&loan->unit.word, nc_word(1, NC_UNIT_FILLING, 0));
	return loan;
}

int nc_loans_alloc(struct nc_loans *loans, const struct nc_layout *layout, struct nc_unit **unit)
{
	int error;
	struct nc_store *store =
		nc_store_create(NC_KIND_SEALED, layout->extent, false, true, &error);
	struct nc_loan *loan;

	if (!store)
		return error;
	loan = new_loan(layout, store);
	if (!loan) {
		nc_store_close(store);
		return -ENOMEM;
	}
	pthread_mutex_lock(&loans->lock);
	loans->filling++;
	pthread_mutex_unlock(&loans->lock);
	*unit = &loan->unit;
	return 0;
}

void nc_loans_abandon(struct nc_loans *loans, struct nc_unit *unit)
{
	pthread_mutex_lock(&loans->lock);
	loans->filling--;
	pthread_mutex_unlock(&loans->lock);
	free_loan(loan_of(unit));
}

int nc_loans_insert(struct nc_loans *loans, struct nc_unit *unit, size_t *id)
{
	struct nc_loan *loan = loan_of(unit), *surplus;
	int fd = unit->store->segment.fd, error = 0;
	struct nc_wire_call call = {
		.op = NC_WIRE_SEAL, .size = unit->layout.size, .fraglen = unit->layout.fraglen};
	struct nc_rpc_client_load load = {.fds = &fd, .fd_count = 1};
	struct nc_wire_reply reply;

	/* A second attempt finds it frozen already. */
	if (!unit->store->frozen)
		error = nc_segment_freeze(&unit->store->segment);
	if (error)
		return error;
	unit->store->frozen = true;
	error = nc_rpc_client_call(loans->rpc, &call, &load, &reply);
	if (error)
		return error;
	if (reply.id == 0 || reply.slot >= NC_REVOCATION_MAP_SLOTS || !loans->rpc->revocations.base)
		return -EPROTO;
	loan->slot = reply.slot;
	*id = reply.id;
	pthread_mutex_lock(&loans->errands);
	pthread_mutex_lock(&loans->lock);
	loans->filling--;
	loans->inserts++;
	enter_locked(loans, loan, reply.id, 0);
	surplus = surplus_locked(loans);
	pthread_mutex_unlock(&loans->lock);
	if (surplus)
		give_back(loans, surplus);
	pthread_mutex_unlock(&loans->errands);
	return 0;
}

/* --- used here --------------------------------------------------------------- */

/* What was lent, which is closed if it cannot be used; NULL and *error. */
static struct nc_loan *adopt(const struct nc_wire_reply *reply, int fd, int *error)
{
	struct nc_segment segment;
	struct nc_layout layout;
	struct nc_store *store;
	struct nc_loan *loan;

	*error = -EPROTO;
	if (!nc_layout_init(&layout, reply->size, reply->fraglen))
		*error = nc_segment_adopt_frozen(&segment, fd, layout.extent);
	if (*error) {
		close(fd);
		return NULL;
	}
	store = nc_store_over_frozen(&segment, error);
	if (!store) {
		nc_segment_close(&segment);
		return NULL;
	}
	loan = new_loan(&layout, store);
	if (!loan) {
		nc_store_close(store);
		*error = -ENOMEM;
		return NULL;
	}
	loan->slot = reply->slot;
	return loan;
}

/* A loan of the unit, not entered yet; NULL and *error. */
static struct nc_loan *fetch(struct nc_loans *loans, size_t id, int *error)
{
	struct nc_wire_call call = {.op = NC_WIRE_FETCH, .id = id};
	struct nc_rpc_client_load load = {0};
	struct nc_wire_reply reply;
	struct nc_loan *loan;

	*error = nc_rpc_client_call(loans->rpc, &call, &load, &reply);
	if (*error)
		return NULL;
	*error = -EPROTO;
	if (load.fd < 0)
		return NULL;
	if (reply.slot >= NC_REVOCATION_MAP_SLOTS || !loans->rpc->revocations.base) {
		close(load.fd);
		return NULL;
	}
	loan = adopt(&reply, load.fd, error);
	/* The owner believes that it is in use. */
	if (!loan)
		drop(loans, reply.slot);
	return loan;
}

/* 0: held; -ENOENT; -EACCES; -EAGAIN: it is not here, or of no more use: an errand. */
static int hold_known_locked(struct nc_loans *loans, size_t id, bool unlinked,
			     struct nc_unit **unit)
{
	struct nc_loan *loan = (struct nc_loan *)nc_hash_table_find(&loans->table, id);
	uint64_t shows;

	if (!loan)
		return -EAGAIN;
	shows = shown(loans, loan);
	if (shows == id || (unlinked && holds_of(loan))) {
		unlink_loan(loans, loan);
		link_newest(loans, loan);
		*unit = &loan->unit;
		return nc_unit_hold(&loan->unit, 1, false);
	}
	if (holds_of(loan) == 0)
		return -EAGAIN;
	/* It may be granted again one day, but not while old holds last. */
	return shows == NC_REVOCATION_REVOKED ? -EACCES : -ENOENT;
}

/* Under errands: takes a spent loan out, fetches what is not here. */
static int fetch_and_hold(struct nc_loans *loans, size_t id, bool unlinked, struct nc_unit **unit)
{
	struct nc_loan *spent = NULL, *loan;
	bool destroyed = false;
	int error;

	pthread_mutex_lock(&loans->lock);
	error = hold_known_locked(loans, id, unlinked, unit);
	if (error == -EAGAIN)
		spent = (struct nc_loan *)nc_hash_table_find(&loans->table, id);
	if (spent) {
		destroyed = shown(loans, spent) != NC_REVOCATION_REVOKED;
		leave_locked(loans, spent);
	}
	pthread_mutex_unlock(&loans->lock);
	if (spent)
		give_back(loans, spent);
	if (error != -EAGAIN || destroyed)
		return destroyed ? -ENOENT : error;
	loan = fetch(loans, id, &error);
	if (!loan)
		return error;
	pthread_mutex_lock(&loans->lock);
	enter_locked(loans, loan, id, 1);
	*unit = &loan->unit;
	spent = surplus_locked(loans);
	pthread_mutex_unlock(&loans->lock);
	if (spent)
		give_back(loans, spent);
	return 0;
}

int nc_loans_hold(struct nc_loans *loans, size_t id, bool unlinked, struct nc_unit **unit)
{
	int error;

	pthread_mutex_lock(&loans->lock);
	error = hold_known_locked(loans, id, unlinked, unit);
	pthread_mutex_unlock(&loans->lock);
	if (error == -EAGAIN) {
		pthread_mutex_lock(&loans->errands);
		error = fetch_and_hold(loans, id, unlinked, unit);
		pthread_mutex_unlock(&loans->errands);
	}
	return error;
}

int nc_loans_release(struct nc_loans *loans, size_t id)
{
	struct nc_loan *loan;
	int error = -EINVAL;

	pthread_mutex_lock(&loans->lock);
	loan = (struct nc_loan *)nc_hash_table_find(&loans->table, id);
	if (loan)
		error = nc_unit_release(&loan->unit, 1);
	pthread_mutex_unlock(&loans->lock);
	return error < 0 ? error : 0;
}
