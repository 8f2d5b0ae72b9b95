/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations shared by the sources of nabc.ko.
 *
 * A file (struct nabc_file) is one open /dev/nabc of one process: its identity, its
 * arena, its pool of memory and what counts against its RLIMIT_MEMLOCK.  A unit
 * consists of chunks (contiguous physical pages) and is found by its id.  A program
 * (struct nabc_program) is a process until its next execve().
 *
 * Rules that the code relies on, by number in its comments:
 *  1. Bytes of a unit change only while it is FILLING.  A chunk is written
 *     again only when only its pool refers to its pages: sockets keep
 *     references until data is acknowledged.
 *  2. Chunks pass from unit to unit within one file without being cleared.
 *     They reach another file only through the page allocator, cleared.
 *  3. A unit's pages are mapped by page frame number (VM_PFNMAP), so they
 *     cannot be pinned, and no reference of user space survives the insert.
 *  4. Checksums are found by page frame number.  They are erased from the index
 *     before their chunk is passed on, so the checksums found for an skb's page
 *     always match the bytes of the skb.
 *  5. A page counts against its file, or against the user of a closed file, and
 *     against the machine's limit until it is no longer referenced.  So chunks
 *     that sockets still refer to are never returned to the kernel: they wait in
 *     their file's pool, also when the file is closed.
 *
 * Lock order, outermost first; user memory is never accessed under one:
 *   file->empty_lock > file->holds_lock, unit->lock, file->charge_lock
 *   mmap_lock > unit->lock > i_mmap_rwsem, page tables
 *   file->charge_lock > mmap_lock
 *   file->holds_lock > unit->lock, file->charge_lock
 *   unit->lock > file->units_lock, file->arena_lock, the orphans' lock
 *   unit->lock > file->used_lock
 *   nabc_files_lock; users_lock; file->pool.lock
 * From units_lock on they are spinlocks.  None is taken in interrupts; the hook on
 * egress takes no lock, only RCU.
 */
#ifndef NABC_H
#define NABC_H

#include <linux/cred.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

#include "nabc-uapi.h"

struct bio_vec;

#ifndef CONFIG_64BIT
#error "nabc needs a 64-bit kernel: ids are 64 bits and never come again"
#endif

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#define NABC_ORDER_MAX 3u
#define NABC_ORDERS (NABC_ORDER_MAX + 1)
#define NABC_CHUNK_SIZE (PAGE_SIZE << NABC_ORDER_MAX)
#define NABC_CHUNK_PAGES BIT(NABC_ORDER_MAX)
/* The arena is allocated in chunks; the arenas of all files follow one another in i_mapping. */
#define NABC_ARENA_SIZE (16ull << 30)
#define NABC_ARENA_SLOTS ((unsigned int)(NABC_ARENA_SIZE / NABC_CHUNK_SIZE))
#define NABC_ARENA_PAGES (NABC_ARENA_SIZE >> PAGE_SHIFT)
#define NABC_UNIT_MAX BIT_ULL(30)
#define NABC_LINGER_MAX 3600000u
#define NABC_SUM_GRAIN 128u

/* --- counters and gauges ------------------------------------------------------ */

enum nabc_counter {
	NABC_ALLOCATED,
	NABC_POOL_HITS,
	NABC_POOL_MISSES,
	NABC_INSERTED,
	NABC_DESTROYED,
	NABC_COLLECTED,
	NABC_READ_BYTES,
	NABC_SENDS,
	NABC_SENT_BYTES,
	NABC_HEADER_BYTES,
	NABC_REFUSED,
	NABC_SHRUNK,
	NABC_AGED,
	NABC_SUM_MADE,
	NABC_SUM_REUSED,
	NABC_SUM_TOUCHED,
	NABC_SUM_PACKETS,
	NABC_SUM_FALLBACKS,
	NABC_COUNTERS
};

struct nabc_counters {
	u64 n[NABC_COUNTERS];
};

DECLARE_PER_CPU(struct nabc_counters, nabc_counters);

static inline void nabc_count(enum nabc_counter counter, u64 n)
{
	this_cpu_add(nabc_counters.n[counter], n);
}

/* Pages, and units of all files. */
struct nabc_gauges {
	atomic_long_t pages; /* that exist, including pooled ones */
	atomic_long_t pooled;
	atomic_long_t in_flight; /* of destroyed units, that sockets refer to */
	atomic_long_t units;
	atomic_long_t orphans;
	atomic_long_t orphan_pages;
	atomic_long_t files;
	atomic_long_t sum_bytes;
	atomic_long_t hooks;
};

extern struct nabc_gauges nabc_gauges;

/* --- memory.c: chunks and their pools ------------------------------------- */

struct nabc_sums; /* of one chunk */

struct nabc_chunk {
	struct list_head link; /* in a pool */
	struct page *page;     /* head of a compound page */
	struct nabc_sums *sums;
	u8 order;
};

struct nabc_pool {
	spinlock_t lock; /* protects all of it */
	bool closed;
	bool waits; /* for busy chunks: it has a reference to its file */
	unsigned long idle_pages;
	unsigned long busy_count[NABC_ORDERS]; /* of chunks */
	unsigned long idle_published;	       /* pages already added to nabc_gauges */
	unsigned long busy_published;
	unsigned long low; /* fewest idle pages since the collector's last visit */
	/*
	 * Idle chunks are not referenced, and the last freed comes first; sockets
	 * may refer to busy ones.
	 */
	struct list_head idle[NABC_ORDERS];
	struct list_head busy[NABC_ORDERS];
};

struct nabc_file;
struct nabc_unit;

void nabc_pool_init(struct nabc_pool *pool);
int nabc_memory_get(struct nabc_file *file, struct nabc_unit *unit);
void nabc_memory_put(struct nabc_file *file, struct nabc_unit *unit, unsigned int from);
unsigned long nabc_pool_drain(struct nabc_file *file, unsigned long pages);
void nabc_pool_sweep(struct nabc_file *file);
void nabc_pool_forget(struct nabc_file *file);
int nabc_memory_init(void);
void nabc_memory_exit(void);

/* --- limits.c: accounting of memory -------------------------------------------- */

/* The user who is charged for what closed files left behind. */
struct nabc_user {
	struct hlist_node node;
	kuid_t uid;
	unsigned int refs;  /* number of files */
	atomic_long_t left; /* pages */
};

struct nabc_user *nabc_user_get(void);
void nabc_user_put(struct nabc_user *user);
int nabc_charge(struct nabc_file *file, unsigned long pages);
void nabc_uncharge(struct nabc_file *file, unsigned long pages);
void nabc_charge_holders(struct nabc_file *file, unsigned long pages);
void nabc_charge_maker(struct nabc_file *file, unsigned long pages);
void nabc_charge_trim(struct nabc_file *file);
void nabc_charge_close(struct nabc_file *file);
int nabc_limit_take(unsigned long pages);
void nabc_limit_give(unsigned long pages);
u64 nabc_limit_bytes(void);
unsigned long nabc_pool_limit(void);

/* --- file.c: one open file of one process ----------------------------------- */

struct nabc_program {
	struct pid *pid; /* the thread group's, referenced */
	u64 exec;	 /* number of its program, counted by execve() */
};

static inline bool nabc_program_same(const struct nabc_program *a, const struct nabc_program *b)
{
	return a->pid == b->pid && a->exec == b->exec;
}

struct nabc_file {
	refcount_t refs; /* the open file, each of its units, and a waiting pool */
	unsigned int index;
	struct nabc_program program;
	struct nabc_user *user;
	struct mm_struct *mm;
	struct address_space *mapping; /* valid while the file is open */
	struct list_head link;	       /* in nabc_files */

	spinlock_t units_lock;	/* protects units and unit_count */
	struct list_head units; /* those that it made, without orphans */
	unsigned long unit_count;

	spinlock_t arena_lock; /* protects arena, slots and slot_hint */
	struct rb_root arena;  /* units being filled, by slot */
	unsigned long *slots;  /* bitmap of used slots; allocated with the first unit */
	unsigned int slot_hint;

	struct xarray holds;	 /* id to struct nabc_hold */
	struct mutex holds_lock; /* protects holds and hold_count */
	unsigned long hold_count;

	struct nabc_pool pool;

	struct mutex charge_lock; /* protects charged, and closing */
	unsigned long charged;	  /* pages charged to the process */

	spinlock_t used_lock; /* protects what follows */
	unsigned long used;   /* pages that it has */
	unsigned long held;   /* of these, pages of destroyed units with holders */
	bool charge_closed;   /* what is used and not held is charged to the user */

	struct mutex empty_lock; /* protects emptied */
	bool emptied;		 /* its process is gone, and what it owned is freed */
};

extern struct list_head nabc_files;
extern spinlock_t nabc_files_lock;

struct nabc_file *nabc_file_open(struct address_space *mapping);
void nabc_file_close(struct nabc_file *file);
void nabc_file_collect(struct nabc_file *file);
struct nabc_file *nabc_file_next(struct nabc_file *after);
void nabc_file_put(struct nabc_file *file);
int nabc_file_check(struct nabc_file *file);
bool nabc_program_find(struct pid *pid, struct nabc_program *program);
bool nabc_program_runs(const struct nabc_program *program);
void nabc_files_exit(void);

/* --- unit.c: units and their ids ------------------------------------------- */

struct nabc_grantee {
	u32 kind; /* NABC_PRINCIPAL_PROCESS, _USER or _GROUP */
	u32 rights;
	union {
		struct nabc_program program;
		kuid_t uid;
		kgid_t gid;
	};
};

struct nabc_unit {
	refcount_t refs; /* one of the table, one per hold, and those of calls in progress */
	u64 id;
	struct nabc_file *maker;
	kuid_t uid;
	u64 size;
	unsigned long pages;
	unsigned int chunk_count;
	atomic64_t sent;

	struct mutex lock; /* protects what follows */
	u8 state;	   /* NABC_STATE_* */
	bool orphan;
	bool in_table;
	bool in_arena;
	bool summed;
	unsigned int fills; /* NABC_IOC_READs in progress */
	u32 holds;
	u32 linger;
	unsigned int grant_count;
	struct nabc_grantee *grants;
	struct nabc_grantee first; /* space for one */

	unsigned long expires; /* jiffies; for an orphan */
	struct list_head link; /* in maker->units or among the orphans */
	struct rb_node node;   /* in maker->arena */
	unsigned int slot;
	struct rcu_head rcu;
	struct nabc_chunk *chunks[];
};

struct nabc_hold {
	struct nabc_unit *unit; /* referenced */
	u32 count;
};

struct nabc_unit *nabc_unit_new(struct nabc_file *file, u64 size);
int nabc_unit_publish(struct nabc_unit *unit);
struct nabc_unit *nabc_unit_make(struct nabc_file *file, u64 size);
struct nabc_unit *nabc_unit_get(u64 id);
struct nabc_unit *nabc_unit_next(u64 after);
bool nabc_unit_tryget(struct nabc_unit *unit);
void nabc_unit_put(struct nabc_unit *unit);
void nabc_unit_destroy_locked(struct nabc_unit *unit);
void nabc_unit_orphan(struct nabc_unit *unit);
int nabc_unit_insert(struct nabc_file *file, const struct nabc_insert *call);
int nabc_unit_destroy(struct nabc_file *file, u64 id);
void nabc_unit_drop_hold(struct nabc_unit *unit);
bool nabc_orphans_collect(bool all);
void nabc_units_exit(void);

static inline bool nabc_within(const struct nabc_unit *unit, u64 offset, u64 length)
{
	return offset <= unit->size && length <= unit->size - offset;
}

/* --- access.c: access rights ----------------------------------------------------- */

#define NABC_RIGHTS_ALL (NABC_RIGHT_SEND | NABC_RIGHT_DESTROY)

bool nabc_is_maker(const struct nabc_unit *unit, const struct nabc_file *file);
bool nabc_known_locked(const struct nabc_unit *unit, const struct nabc_file *file);
int nabc_fillable_locked(const struct nabc_unit *unit, const struct nabc_file *file);
u32 nabc_rights_locked(const struct nabc_unit *unit, const struct nabc_file *file);
int nabc_access(struct nabc_file *file, u64 id, u32 rights, struct nabc_unit **unit);
bool nabc_rights_valid(u32 rights);
int nabc_grant_first(struct nabc_unit *unit, u32 principal, u32 who, u32 rights);
int nabc_grant(struct nabc_file *file, const struct nabc_grant *call);
int nabc_revoke(struct nabc_file *file, const struct nabc_grant *call);
void nabc_grants_free(struct nabc_unit *unit);

/* --- hold.c ------------------------------------------------------------------ */

int nabc_hold(struct nabc_file *file, u64 id);
int nabc_release(struct nabc_file *file, u64 id);
bool nabc_holds(const struct nabc_file *file, u64 id);
void nabc_holds_end(struct nabc_file *file);

/* --- arena.c: the mapping ---------------------------------------------------- */

int nabc_arena_reserve(struct nabc_file *file, struct nabc_unit *unit);
void nabc_arena_leave_locked(struct nabc_unit *unit);
int nabc_arena_mmap(struct nabc_file *file, struct vm_area_struct *vma);

/* --- fill.c: bytes in and out of units ---------------------------------------- */

unsigned int nabc_unit_pages(const struct nabc_unit *unit, u64 offset, u64 length,
			     struct bio_vec *pages, unsigned int room, u64 *covered);
int nabc_fill(struct nabc_file *file, struct nabc_read *call);
int nabc_copy(struct nabc_file *file, const struct nabc_copy *call);

/* --- put.c: a unit from memory in one call ------------------------------------- */

int nabc_put(struct nabc_file *file, struct nabc_put *call);

/* --- send.c ------------------------------------------------------------------- */

int nabc_socksend(struct nabc_file *file, struct nabc_socksend *call);
int nabc_socksendv(struct nabc_file *file, struct nabc_socksendv *call);

/* --- sums.c: checksums of chunks ------------------------------------------------ */

/* Cache of the last lookup; initialised to zero, and valid within one rcu_read_lock(). */
struct nabc_sums_near {
	const struct page *head;
	const struct nabc_sums *sums;
};

int nabc_sums_make(struct nabc_unit *unit);
void nabc_sums_drop(struct nabc_chunk *chunk);
__wsum nabc_sums_range(struct nabc_sums_near *near, struct page *page, size_t offset, size_t length,
		       size_t *reused);
bool nabc_sums_known(struct page *page);
bool nabc_sums_none(void);
int nabc_sum(struct nabc_file *file, struct nabc_sum *call);
void nabc_sums_exit(void);

/* --- egress.c: checksums of outgoing packets --------------------------------------- */

struct sock;

bool nabc_egress_wants(struct sock *sk, bool asked, int *flags);
bool nabc_egress_able(void);
int nabc_egress_init(void);
void nabc_egress_exit(void);

/* --- report.c: stat, list, statistics -------------------------------------------- */

int nabc_stat(struct nabc_file *file, struct nabc_stat *stat);
int nabc_list(struct nabc_file *file, struct nabc_list *call);
void nabc_statistics(struct nabc_file *file, struct nabc_statistics *statistics);

/* --- shrinker.c: memory back to the kernel, and the collector --------------------- */

unsigned long nabc_pools_shrink(unsigned long pages);
int nabc_shrinker_init(void);
void nabc_shrinker_exit(void);
void nabc_collector_wake(void);

#endif
