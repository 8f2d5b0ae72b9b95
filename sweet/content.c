/* SPDX-License-Identifier: MIT */
/*
 * content.c - see content.h.
 *
 * The lock guards the table, entries' states and counts of references; no
 * system call is made under it.  An entry leaves the table when its file has
 * changed or its unit was evicted; those who hold it go on with the version
 * they have, and the last reference frees it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <glib.h>

#include <clock.h>
#include <content.h>

#define TRIES 5
#define SIBLINGS_NS 1000000000 /* how long it is believed which siblings there are */

enum entry_state { ENTRY_LOADING, ENTRY_READY, ENTRY_GONE };

struct content_entry {
	struct content_view view; /* must be first */
	struct content *content;
	enum entry_state state;
	unsigned references;		/* the table's is one */
	_Atomic uint64_t checked_ns;	/* when the version was last seen to be the file's */
	_Atomic unsigned siblings;	/* bit of each coding */
	_Atomic uint64_t siblings_ns;	/* when they were looked for; 0: not yet */
	struct content_waiter *waiters; /* while loading */
	int error;
	bool no_room; /* for its unit, when it was loaded */
	struct job job;
	GList link; /* in content->recent */
	char path[];
};

struct content {
	_Atomic unsigned references;
	struct content_options options;
	pthread_mutex_t lock;
	GHashTable *table;	  /* path to entry */
	GQueue recent;		  /* entries in the table, most recently loaded first */
	struct content_stat stat; /* but the files */
};

#define ENTRIES_MAX 100000u

struct content *content_open(const struct content_options *options)
{
	struct content *content = g_new0(struct content, 1);

	atomic_init(&content->references, 1);
	content->options = *options;
	content->options.mime = mime_ref(options->mime);
	pthread_mutex_init(&content->lock, NULL);
	content->table = g_hash_table_new(g_str_hash, g_str_equal);
	return content;
}

static void free_entry(struct content_entry *entry)
{
	if (entry->view.id)
		(void)NC_destroy(entry->view.id);
	g_free(entry);
}

/* True: the caller frees the entry, outside the lock. */
static bool unref_locked(struct content_entry *entry)
{
	return --entry->references == 0;
}

static bool drop_locked(struct content *content, struct content_entry *entry)
{
	if (entry->state == ENTRY_GONE)
		return false;
	entry->state = ENTRY_GONE;
	g_hash_table_remove(content->table, entry->path);
	g_queue_unlink(&content->recent, &entry->link);
	return unref_locked(entry);
}

static void drop(struct content *content, struct content_entry *entry)
{
	bool last;

	pthread_mutex_lock(&content->lock);
	last = drop_locked(content, entry);
	pthread_mutex_unlock(&content->lock);
	if (last)
		free_entry(entry);
}

void content_close(struct content *content)
{
	if (!content ||
	    atomic_fetch_sub_explicit(&content->references, 1, memory_order_acq_rel) != 1)
		return;
	while (content->recent.head) {
		struct content_entry *entry = content->recent.head->data;

		if (drop_locked(content, entry))
			free_entry(entry);
	}
	g_hash_table_destroy(content->table);
	pthread_mutex_destroy(&content->lock);
	mime_close(content->options.mime);
	close(content->options.root);
	g_free(content);
}

struct content *content_ref(struct content *content)
{
	atomic_fetch_add_explicit(&content->references, 1, memory_order_relaxed);
	return content;
}

bool content_serves(const struct content *content, const struct content_options *options)
{
	struct stat ours, theirs;

	return fstat(content->options.root, &ours) == 0 && fstat(options->root, &theirs) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino &&
	       content->options.helpers == options->helpers &&
	       content->options.max_unit == options->max_unit &&
	       content->options.revalidate_ns == options->revalidate_ns &&
	       content->options.drop_pages == options->drop_pages &&
	       mime_equal(content->options.mime, options->mime);
}

int content_root(const struct content *content)
{
	return content->options.root;
}

/* --- reading a file into a unit, on a helper thread ------------------------ */

/*
 * Reads all of an open file into a unit that is held; 0, -EAGAIN when it
 * changed meanwhile, or -errno.
 */
static int read_unit(int fd, const struct file_version *version, size_t *id)
{
	struct file_version after;
	NC_handle handle;
	ssize_t got;
	int error = 0;

	if (NC_alloc(&handle, (size_t)version->size, 0) < 0)
		return -errno;
	got = NC_read(fd, &handle, 0, (size_t)version->size);
	if (got < 0)
		error = -errno;
	else if (got != version->size)
		error = -EAGAIN;
	if (!error)
		error = docroot_version(fd, &after);
	if (!error && !file_version_equal(version, &after))
		error = -EAGAIN;
	if (!error && NC_insert(&handle) < 0)
		error = -errno;
	/* Until all that wait for it have it.  Evicted already: there is no room. */
	if (!error && NC_hold(NC_cache_id(&handle)) < 0)
		error = -ENOMEM;
	if (!error)
		*id = NC_cache_id(&handle);
	(void)NC_free(&handle);
	return error;
}

/* The version of an open file has rested since it was the one before. */
static int load_version(struct content_entry *entry, int fd, const struct file_version *before)
{
	const struct file_version *now = &entry->view.version;
	bool fits = now->size > 0 && (uint64_t)now->size <= entry->content->options.max_unit;
	int error;

	/* Changed again meanwhile: it has not rested, so a change may go unseen. */
	if (!(fits ? file_version_equal(before, now) : file_version_same_bytes(before, now)))
		return -EAGAIN;
	error = fits ? read_unit(fd, now, &entry->view.id) : 0;
	/* What others are being sent fills the cache: sent like what is too large. */
	entry->no_room = error == -ENOMEM;
	return entry->no_room ? 0 : error;
}

static int load_once(struct content_entry *entry)
{
	const struct content_options *options = &entry->content->options;
	struct file_version version;
	int error = 0, fd = docroot_open_file(options->root, entry->path, &version);

	if (fd < 0)
		return fd;
	file_version_rest(&version);
	error = docroot_version(fd, &entry->view.version);
	if (!error)
		error = load_version(entry, fd, &version);
	/* Its pages would be a second copy; those that wait to be written stay. */
	if (!error && entry->view.id && options->drop_pages)
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	return error;
}

static void load(struct job *job)
{
	struct content_entry *entry =
		(struct content_entry *)((char *)job - offsetof(struct content_entry, job));

	for (int i = 0; i < TRIES; i++) {
		uint64_t began = clock_monotonic_ns();

		entry->error = load_once(entry);
		atomic_store_explicit(&entry->checked_ns, began, memory_order_relaxed);
		if (entry->error != -EAGAIN)
			break;
	}
	if (!entry->error)
		filehead_write(&entry->view.head, &entry->view.version,
			       mime_type(entry->content->options.mime, entry->path), time(NULL));
}

/* --- hand-over to those who wait ------------------------------------------- */

static void arrive(struct loop_task *task)
{
	struct content_waiter *waiter =
		(struct content_waiter *)((char *)task - offsetof(struct content_waiter, task));

	/* What was seen may have changed before this one asked: look again. */
	if (waiter->late && !content_get(waiter->content, waiter->path, waiter))
		return;
	waiter->arrived(waiter);
}

/* On the thread of the loop that asked first. */
static void loaded(struct job *job)
{
	struct content_entry *entry =
		(struct content_entry *)((char *)job - offsetof(struct content_entry, job));
	struct content *content = entry->content;
	struct content_waiter *waiter;
	size_t held = entry->view.id;
	bool last = false;

	pthread_mutex_lock(&content->lock);
	waiter = entry->waiters;
	entry->waiters = NULL;
	entry->state = ENTRY_READY;
	for (struct content_waiter *at = waiter; at; at = at->next) {
		uint64_t seen = atomic_load_explicit(&entry->checked_ns, memory_order_relaxed);

		at->late = at->since_ns > seen + content->options.revalidate_ns;
		if (at->late)
			continue;
		at->result = (struct content_result){.error = entry->error};
		/* One hold a waiter; somebody may have destroyed the unit by its id. */
		if (!entry->error && entry->view.id && NC_hold(entry->view.id) < 0)
			at->result.error = -EAGAIN;
		if (at->result.error)
			continue;
		at->result.entry = entry;
		content->stat.miss_bytes += (uint64_t)entry->view.version.size;
		entry->references++;
	}
	/* Failures are not kept: the next request looks again, and for room. */
	if (entry->error || entry->no_room)
		last = drop_locked(content, entry);
	pthread_mutex_unlock(&content->lock);
	if (held)
		(void)NC_release(held); /* read_unit()'s; the waiters have their own */
	while (waiter) {
		struct content_waiter *next = waiter->next;

		waiter->task.run = arrive;
		loop_post(waiter->loop, &waiter->task);
		waiter = next;
	}
	if (last)
		free_entry(entry);
}

static struct content_entry *enter_locked(struct content *content, const char *path,
					  struct content_entry **oldest)
{
	size_t length = strlen(path) + 1;
	struct content_entry *entry = g_malloc0(sizeof(*entry) + length);

	memcpy(entry->path, path, length);
	entry->view.path = entry->path;
	entry->content = content;
	entry->references = 1;
	entry->link.data = entry;
	g_hash_table_insert(content->table, entry->path, entry);
	g_queue_push_head_link(&content->recent, &entry->link);
	*oldest = NULL;
	if (content->recent.length > ENTRIES_MAX) {
		*oldest = content->recent.tail->data;
		if ((*oldest)->state != ENTRY_READY || !drop_locked(content, *oldest))
			*oldest = NULL;
	}
	return entry;
}

/* Whether a ready entry still is what is on the disk. */
static bool current(struct content *content, struct content_entry *entry, struct loop *loop)
{
	uint64_t checked = atomic_load_explicit(&entry->checked_ns, memory_order_relaxed);
	uint64_t now = loop_now_ns(loop);
	struct file_version version;

	/* Seen since this loop woke up, or recently enough. */
	if (checked + content->options.revalidate_ns >= now)
		return true;
	now = clock_monotonic_ns();
	if (docroot_peek(content->options.root, entry->path, &version) ||
	    !file_version_equal(&version, &entry->view.version))
		return false;
	atomic_store_explicit(&entry->checked_ns, now, memory_order_relaxed);
	return true;
}

void content_put(struct content *content, struct content_entry *entry)
{
	bool last;

	if (entry->view.id)
		(void)NC_release(entry->view.id);
	pthread_mutex_lock(&content->lock);
	last = unref_locked(entry);
	pthread_mutex_unlock(&content->lock);
	if (last)
		free_entry(entry);
}

bool content_get(struct content *content, const char *path, struct content_waiter *waiter)
{
	for (;;) {
		struct content_entry *entry, *oldest = NULL;
		bool last;

		pthread_mutex_lock(&content->lock);
		entry = g_hash_table_lookup(content->table, path);
		if (!entry || entry->state == ENTRY_LOADING) {
			bool first = !entry;

			if (first)
				entry = enter_locked(content, path, &oldest);
			content->stat.misses++;
			waiter->content = content;
			waiter->path = path;
			waiter->since_ns = clock_monotonic_ns();
			waiter->next = entry->waiters;
			entry->waiters = waiter;
			pthread_mutex_unlock(&content->lock);
			if (oldest)
				free_entry(oldest);
			if (first) {
				entry->job.work = load;
				entry->job.done = loaded;
				entry->job.loop = waiter->loop;
				helper_submit(content->options.helpers, &entry->job);
			}
			return false;
		}
		content->stat.hits++;
		*(entry->view.id ? &content->stat.hit_bytes : &content->stat.miss_bytes) +=
			(uint64_t)entry->view.version.size;
		entry->references++;
		pthread_mutex_unlock(&content->lock);
		if (current(content, entry, waiter->loop) &&
		    (!entry->view.id || NC_hold(entry->view.id) == 0)) {
			waiter->result = (struct content_result){.entry = entry};
			return true;
		}
		/* Changed or evicted: out of the table, and once more. */
		drop(content, entry);
		pthread_mutex_lock(&content->lock);
		last = unref_locked(entry);
		pthread_mutex_unlock(&content->lock);
		if (last)
			free_entry(entry);
	}
}

/* One bit may be lost to another thread that looks too; it comes back. */
static unsigned look_for_siblings(const struct content_entry *entry)
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
		if (docroot_peek(entry->content->options.root, path, &version) == 0 &&
		    file_version_follows(&version, &entry->view.version))
			found |= 1u << i;
	}
	return found;
}

unsigned content_siblings(struct content_entry *entry, struct loop *loop)
{
	uint64_t trust = entry->content->options.revalidate_ns;
	uint64_t seen = atomic_load_explicit(&entry->siblings_ns, memory_order_relaxed);
	unsigned found;

	if (trust < SIBLINGS_NS)
		trust = SIBLINGS_NS;
	if (seen && loop_now_ns(loop) <= seen + trust)
		return atomic_load_explicit(&entry->siblings, memory_order_relaxed);
	seen = clock_monotonic_ns();
	found = look_for_siblings(entry);
	atomic_store_explicit(&entry->siblings, found, memory_order_relaxed);
	atomic_store_explicit(&entry->siblings_ns, seen, memory_order_relaxed);
	return found;
}

void content_sibling_unfit(struct content_entry *entry, enum coding coding)
{
	atomic_fetch_and_explicit(&entry->siblings, ~(1u << coding), memory_order_relaxed);
}

const struct content_view *content_view(const struct content_entry *entry)
{
	return &entry->view;
}

void content_stat(struct content *content, struct content_stat *sum)
{
	pthread_mutex_lock(&content->lock);
	sum->files += content->recent.length;
	sum->hits += content->stat.hits;
	sum->misses += content->stat.misses;
	sum->hit_bytes += content->stat.hit_bytes;
	sum->miss_bytes += content->stat.miss_bytes;
	pthread_mutex_unlock(&content->lock);
}
