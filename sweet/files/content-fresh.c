/* SPDX-License-Identifier: MIT */
/*
 * content-fresh.c - a request for a file of which something is not kept: an
 * entry of its own, outside of the table, that is looked up or read anew and
 * goes with the answer.  What is kept after all is in the table: `known`.
 *
 * Without paths, that is found by what the opened file is.  Two requests that
 * do not find it at the same time read the file twice.
 */
#include "files/content-inside.h"

/* Sent once: short-lived memory without sums, which goes with the last hold. */
#define PASSING ((enum NC_kind)(NC_KIND_RECYCLED | NC_KIND_UNSUMMED))

/* What the entry has of a file, besides its unit. */
static void take_known(struct content_entry *entry, struct content_entry *known)
{
	entry->known = known;
	entry->view.version = known->view.version;
	entry->view.type = known->view.type;
	entry->view.head = known->view.head;
}

/* --- what is kept of files that no path leads to ------------------------------ */

static void identify(struct content_entry *entry)
{
	entry->identity = (struct identity){
		.device = entry->reading.version.device,
		.inode = entry->reading.version.inode,
		.type = mime_type(entry->content->options.mime, entry->path),
	};
}

/* True: all that is kept was found, and the unit is held if there is one. */
static bool find_known(struct content_entry *entry)
{
	struct content *content = entry->content;
	struct content_entry *known;

	identify(entry);
	pthread_mutex_lock(&content->lock);
	known = g_hash_table_lookup(content->table, &entry->identity);
	if (known)
		known->references++;
	pthread_mutex_unlock(&content->lock);
	if (!known)
		return false;
	if (!file_version_equal(&known->view.version, &entry->reading.version) ||
	    (known->view.id && NC_hold(known->view.id) < 0)) {
		content_drop(content, known);
		content_entry_unref(content, known);
		return false;
	}
	take_known(entry, known);
	entry->view.id = known->view.id;
	return true;
}

/* For the next request: what was learned of the file, and its unit if it is to be kept. */
static void keep_known(struct content_entry *entry, size_t unit)
{
	struct content *content = entry->content;
	struct content_entry *known = content_entry_new(content, entry->path), *before, *oldest;
	bool last = false;

	known->identity = entry->identity;
	known->view.id = unit;
	known->owner = unit != 0;
	content_describe(known, &entry->reading.version);
	known->state = ENTRY_READY;
	known->references++;
	pthread_mutex_lock(&content->lock);
	before = g_hash_table_lookup(content->table, &known->identity);
	if (before)
		last = content_drop_locked(content, before);
	oldest = content_enter_locked(content, known);
	pthread_mutex_unlock(&content->lock);
	if (last)
		content_entry_free(before);
	if (oldest)
		content_entry_free(oldest);
	take_known(entry, known);
}

/* --- looking up and reading ------------------------------------------------------ */

/* The unit, for this request alone or to be kept. */
static int read_unit(struct content_entry *entry, bool wait)
{
	bool passing = entry->content->options.no_contents;
	int error = reading_unit(&entry->reading, passing ? PASSING : NC_KIND_AUTO, wait,
				 &entry->view.id);

	/* What others are being sent fills the cache: sent like what is too large. */
	entry->no_room = error == -ENOMEM;
	if (entry->no_room)
		return 0;
	if (!error && passing)
		(void)NC_destroy(entry->view.id);
	if (!error && entry->content->options.drop_pages)
		reading_drop_pages(&entry->reading);
	return error;
}

/* What the path leads to now, at rest; true in found: that is known, and its unit held. */
static int look_up(struct content_entry *entry, bool keeps, bool wait)
{
	const struct content_options *options = &entry->content->options;
	int error = reading_open(&entry->reading, options->root, entry->path, wait);

	if (error)
		return error;
	if (keeps && !entry->known && find_known(entry))
		entry->found = true;
	/* What is known has rested. */
	return entry->known ? 0 : reading_rest(&entry->reading, entry->content->max_unit, wait);
}

static int read_once(struct content_entry *entry, bool wait)
{
	const struct content_options *options = &entry->content->options;
	bool keeps = options->no_paths && !(options->no_heads && options->no_contents);
	int error = options->no_paths ? look_up(entry, keeps, wait) : 0;

	if (!error && !entry->view.id && content_fits(entry->content, &entry->reading.version))
		error = read_unit(entry, wait);
	if (error || entry->known)
		return error;
	if (keeps && !entry->no_room)
		keep_known(entry, options->no_contents ? 0 : entry->view.id);
	else
		content_describe(entry, &entry->reading.version);
	return 0;
}

static void forget(struct content_entry *entry)
{
	reading_end(&entry->reading);
	if (entry->known)
		content_entry_unref(entry->content, entry->known);
	entry->known = NULL;
	entry->found = false;
}

/* 0, -errno, or READING_LATER: who may wait goes on. */
static int read_entry(struct content_entry *entry, bool wait)
{
	int error = -EAGAIN;

	for (int i = 0; i < CONTENT_TRIES; i++) {
		error = read_once(entry, wait);
		/* Not what its path led to: that is looked up again, by who asks. */
		if (error != -EAGAIN || entry->reading.borrowed)
			break;
		forget(entry);
		if (!wait)
			return READING_LATER; /* the loop is held up no longer */
	}
	entry->error = error;
	return error;
}

static void work(struct job *job)
{
	struct content_entry *entry =
		(struct content_entry *)((char *)job - offsetof(struct content_entry, job));

	(void)read_entry(entry, true);
}

/* --- on the thread of the loop that asks --------------------------------------------- */

static void count(const struct content_entry *entry, bool by_loop)
{
	struct content *content = entry->content;
	struct content_stat *stat = &content->stat;

	pthread_mutex_lock(&content->lock);
	if (!entry->found || content->options.no_contents)
		*(by_loop ? &stat->by_loops : &stat->by_helpers) += 1;
	/* With paths, content_get() has counted the rest. */
	if (content->options.no_paths) {
		bool hit = entry->found && entry->view.id && !content->options.no_contents;

		*(entry->found ? &stat->hits : &stat->misses) += 1;
		if (!entry->error)
			*(hit ? &stat->hit_bytes : &stat->miss_bytes) +=
				(uint64_t)entry->view.version.size;
	}
	pthread_mutex_unlock(&content->lock);
}

/* As content_get(). */
static bool finish(struct content_entry *entry, struct content_waiter *waiter, bool by_loop)
{
	struct content *content = entry->content;
	bool outdated = entry->error == -EAGAIN && entry->reading.borrowed;

	count(entry, by_loop);
	waiter->result = (struct content_result){.error = entry->error};
	if (!entry->error) {
		reading_end(&entry->reading);
		waiter->result.entry = entry;
		return true;
	}
	waiter->late = outdated;
	if (outdated)
		content_drop(content, entry->known);
	content_entry_unref(content, entry);
	return outdated ? content_ask(content, waiter->path, waiter) : true;
}

static void work_done(struct job *job)
{
	struct content_entry *entry =
		(struct content_entry *)((char *)job - offsetof(struct content_entry, job));
	struct content_waiter *waiter = entry->waiters;

	if (finish(entry, waiter, false))
		waiter->arrived(waiter);
}

bool content_fresh(struct content *content, const char *path, struct content_entry *known,
		   struct content_waiter *waiter)
{
	struct content_entry *entry = content_entry_new(content, path);

	if (known) {
		take_known(entry, known);
		entry->reading.fd = known->reading.fd;
		entry->reading.version = known->view.version;
		entry->reading.borrowed = true;
	}
	waiter->path = path;
	if (content->options.try_now && read_entry(entry, false) != READING_LATER)
		return finish(entry, waiter, true);
	entry->waiters = waiter;
	entry->job = (struct job){.work = work, .done = work_done, .loop = waiter->loop};
	helper_submit(content->options.helpers, &entry->job);
	return false;
}
