/* SPDX-License-Identifier: MIT */
/*
 * content.c - see content.h: asking for a file, where a path leads to what is
 * kept of it; who waits while that is looked up and read.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "files/content-inside.h"

#define SIBLINGS_NS 1000000000 /* how long it is believed which siblings there are */

struct content *content_open(const struct content_options *options)
{
	struct content *content = g_new0(struct content, 1);

	atomic_init(&content->references, 1);
	content->options = *options;
	content->options.mime = mime_ref(options->mime);
	/* What is dropped from the page cache is not there to be tried. */
	content->options.try_now = options->try_now && !options->drop_pages;
	/* A larger one goes window by window: filestream.c. */
	content->max_unit = options->no_contents && options->max_unit > CONTENT_PASSING
				    ? CONTENT_PASSING
				    : options->max_unit;
	content_table_init(content);
	return content;
}

void content_close(struct content *content)
{
	if (!content ||
	    atomic_fetch_sub_explicit(&content->references, 1, memory_order_acq_rel) != 1)
		return;
	content_table_fini(content);
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
	const struct content_options *own = &content->options;
	struct stat ours, theirs;

	return fstat(own->root, &ours) == 0 && fstat(options->root, &theirs) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino &&
	       own->helpers == options->helpers && own->max_unit == options->max_unit &&
	       own->revalidate_ns == options->revalidate_ns &&
	       own->drop_pages == options->drop_pages &&
	       own->try_now == (options->try_now && !options->drop_pages) &&
	       own->no_paths == options->no_paths && own->no_heads == options->no_heads &&
	       own->no_contents == options->no_contents && mime_equal(own->mime, options->mime);
}

int content_root(const struct content *content)
{
	return content->options.root;
}

/* --- what a path leads to ----------------------------------------------------- */

void content_describe(struct content_entry *entry, const struct file_version *version)
{
	const struct content_options *options = &entry->content->options;

	entry->view.version = *version;
	entry->view.type = mime_type(options->mime, entry->path);
	if (options->no_heads)
		return;
	filehead_write(&entry->head, version, entry->view.type, time(NULL));
	entry->view.head = &entry->head;
}

/* Looks the file up, and reads it if its contents are kept. */
static int load_once(struct content_entry *entry, bool wait)
{
	const struct content_options *options = &entry->content->options;
	struct reading *reading = &entry->reading;
	int error;

	if (reading->fd < 0)
		atomic_store_explicit(&entry->checked_ns, clock_monotonic_ns(),
				      memory_order_relaxed);
	error = reading_open(reading, options->root, entry->path, wait);
	if (!error)
		error = reading_rest(reading, entry->content->max_unit, wait);
	if (error || options->no_contents || !content_fits(entry->content, &reading->version))
		return error;
	error = reading_unit(reading, NC_KIND_AUTO, wait, &entry->view.id);
	entry->owner = entry->view.id != 0;
	/* What others are being sent fills the cache: sent like what is too large. */
	entry->no_room = error == -ENOMEM;
	if (entry->owner && options->drop_pages)
		reading_drop_pages(reading);
	return entry->no_room ? 0 : error;
}

/* 0, -errno, or READING_LATER: who may wait goes on. */
static int load(struct content_entry *entry, bool wait)
{
	int error = -EAGAIN;

	for (int i = 0; i < CONTENT_TRIES; i++) {
		error = load_once(entry, wait);
		if (error != -EAGAIN)
			break;
		reading_end(&entry->reading);
		if (!wait)
			return READING_LATER; /* the loop is held up no longer */
	}
	if (error == READING_LATER)
		return error;
	entry->error = error;
	if (!error)
		content_describe(entry, &entry->reading.version);
	/* Where contents are not kept, each request reads from there. */
	if (error || !entry->content->options.no_contents ||
	    !content_fits(entry->content, &entry->view.version))
		reading_end(&entry->reading);
	return error;
}

static void work(struct job *job)
{
	(void)load((struct content_entry *)((char *)job - offsetof(struct content_entry, job)),
		   true);
}

/* --- hand-over to those who wait ------------------------------------------- */

static void arrive(struct loop_task *task)
{
	struct content_waiter *waiter =
		(struct content_waiter *)((char *)task - offsetof(struct content_waiter, task));

	/* What was seen may have changed before this one asked: look again. */
	if (waiter->late && !content_ask(waiter->content, waiter->path, waiter))
		return;
	waiter->arrived(waiter);
}

/* What was loaded, to one who wants it; or late: it has to ask again. */
static void give_locked(struct content_entry *entry, struct content_waiter *waiter)
{
	struct content *content = entry->content;
	uint64_t seen = atomic_load_explicit(&entry->checked_ns, memory_order_relaxed);

	waiter->late = waiter->since_ns > seen + content->options.revalidate_ns ||
		       (content->options.no_contents && !entry->error);
	/* One hold a waiter; somebody may have destroyed the unit by its id. */
	if (!waiter->late && !entry->error && entry->view.id)
		waiter->late = NC_hold(entry->view.id) < 0;
	if (waiter->late)
		return;
	waiter->result = (struct content_result){.error = entry->error};
	if (waiter->result.error)
		return;
	waiter->result.entry = entry;
	content->stat.miss_bytes += (uint64_t)entry->view.version.size;
	entry->references++;
}

/* On the thread of the loop that asked first, whose waiter is not among the others or NULL. */
static void loaded(struct content_entry *entry, struct content_waiter *first)
{
	struct content *content = entry->content;
	struct content_waiter *waiter;
	size_t held = entry->view.id;
	bool last = false;

	pthread_mutex_lock(&content->lock);
	waiter = entry->waiters;
	entry->waiters = NULL;
	entry->state = ENTRY_READY;
	*(first ? &content->stat.by_loops : &content->stat.by_helpers) += 1;
	if (first)
		give_locked(entry, first);
	for (struct content_waiter *at = waiter; at; at = at->next)
		give_locked(entry, at);
	/* Failures are not kept: the next request looks again, and for room. */
	if (entry->error || entry->no_room)
		last = content_drop_locked(content, entry);
	pthread_mutex_unlock(&content->lock);
	if (held)
		(void)NC_release(held); /* reading_unit()'s; the waiters have their own */
	while (waiter) {
		struct content_waiter *next = waiter->next;

		waiter->task.run = arrive;
		loop_post(waiter->loop, &waiter->task);
		waiter = next;
	}
	if (last)
		content_entry_free(entry);
}

static void work_done(struct job *job)
{
	loaded((struct content_entry *)((char *)job - offsetof(struct content_entry, job)), NULL);
}

static void wait_locked(struct content_entry *entry, struct content_waiter *waiter)
{
	waiter->next = entry->waiters;
	entry->waiters = waiter;
}

/*
 * Loads an entry that was not there.  True: that is done, and the waiter has a
 * result or is late; false: a helper is at it.
 */
static bool load_first(struct content_entry *entry, struct content_waiter *waiter)
{
	struct content *content = entry->content;

	if (content->options.try_now && load(entry, false) != READING_LATER) {
		loaded(entry, waiter);
		return true;
	}
	pthread_mutex_lock(&content->lock);
	wait_locked(entry, waiter);
	pthread_mutex_unlock(&content->lock);
	entry->job = (struct job){.work = work, .done = work_done, .loop = waiter->loop};
	helper_submit(content->options.helpers, &entry->job);
	return false;
}

/* --- asking ------------------------------------------------------------------- */

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
	if (entry->view.id)
		(void)NC_release(entry->view.id);
	content_entry_unref(content, entry);
}

/* Of an entry that is ready, with a reference that goes over; false: it is not what is wanted. */
static bool take(struct content *content, struct content_entry *entry,
		 struct content_waiter *waiter)
{
	if (!current(content, entry, waiter->loop) ||
	    (entry->view.id && NC_hold(entry->view.id) < 0)) {
		/* Changed or evicted: out of the table, and once more. */
		content_drop(content, entry);
		content_entry_unref(content, entry);
		return false;
	}
	waiter->result = (struct content_result){.entry = entry};
	return true;
}

static void count_hits_locked(const struct content_entry *entry, unsigned more, unsigned timely)
{
	struct content_stat *stat = &entry->content->stat;

	stat->hits += timely;
	*(entry->view.id ? &stat->hit_bytes : &stat->miss_bytes) +=
		more * (uint64_t)entry->view.version.size;
}

void content_count_hits(struct content *content, const struct content_entry *entry, unsigned more)
{
	pthread_mutex_lock(&content->lock);
	count_hits_locked(entry, more, more);
	pthread_mutex_unlock(&content->lock);
}

bool content_keeps(const struct content *content)
{
	return !content->options.no_paths && !content->options.no_contents;
}

bool content_get(struct content *content, const char *path, struct content_waiter *waiter)
{
	waiter->late = false;
	return content_ask(content, path, waiter);
}

bool content_ask(struct content *content, const char *path, struct content_waiter *waiter)
{
	waiter->content = content;
	waiter->path = path;
	if (content->options.no_paths)
		return content_fresh(content, path, NULL, waiter);
	for (;;) {
		struct content_entry *entry, *oldest;

		pthread_mutex_lock(&content->lock);
		entry = g_hash_table_lookup(content->table, path);
		if (entry && entry->state == ENTRY_READY) {
			count_hits_locked(entry, 1, !waiter->late);
			entry->references++;
			pthread_mutex_unlock(&content->lock);
			if (!take(content, entry, waiter))
				continue;
			return !content->options.no_contents || entry->reading.fd < 0 ||
			       content_fresh(content, path, entry, waiter);
		}
		content->stat.misses += !waiter->late;
		waiter->since_ns = clock_monotonic_ns();
		if (entry) {
			wait_locked(entry, waiter);
			pthread_mutex_unlock(&content->lock);
			return false;
		}
		entry = content_entry_new(content, path);
		oldest = content_enter_locked(content, entry);
		pthread_mutex_unlock(&content->lock);
		if (oldest)
			content_entry_free(oldest);
		if (!load_first(entry, waiter))
			return false;
		if (!waiter->late)
			return true;
	}
}

/* --- what was found ------------------------------------------------------------ */

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

/* Where it is remembered what lies beside a file; without paths, for this request alone. */
static struct content_entry *rememberer(struct content_entry *entry)
{
	return entry->known && !entry->content->options.no_paths ? entry->known : entry;
}

unsigned content_siblings(struct content_entry *entry, struct loop *loop)
{
	uint64_t trust = entry->content->options.revalidate_ns, seen;
	unsigned found;

	entry = rememberer(entry);
	seen = atomic_load_explicit(&entry->siblings_ns, memory_order_relaxed);
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
	atomic_fetch_and_explicit(&rememberer(entry)->siblings, ~(1u << coding),
				  memory_order_relaxed);
}

const struct content_view *content_view(const struct content_entry *entry)
{
	return &entry->view;
}

const struct filehead *content_head(const struct content_entry *entry, struct filehead *place)
{
	if (entry->view.head)
		return entry->view.head;
	filehead_write(place, &entry->view.version, entry->view.type, time(NULL));
	return place;
}

void content_stat(struct content *content, struct content_stat *sum)
{
	pthread_mutex_lock(&content->lock);
	sum->files += content->recent.length;
	sum->hits += content->stat.hits;
	sum->misses += content->stat.misses;
	sum->hit_bytes += content->stat.hit_bytes;
	sum->miss_bytes += content->stat.miss_bytes;
	sum->by_loops += content->stat.by_loops;
	sum->by_helpers += content->stat.by_helpers;
	pthread_mutex_unlock(&content->lock);
}
