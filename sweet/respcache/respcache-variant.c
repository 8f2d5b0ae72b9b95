/* SPDX-License-Identifier: MIT */
/*
 * respcache-variant.c - compressed variants of stored responses: entries outside of
 * the table, which only the entry of their source refers to; see respcache-internal.h.
 *
 * A variant is made once, has the age of its source, and ends with it: it is stored
 * only while its source is in the table, and its unit is destroyed when that leaves it.
 */
#include <inttypes.h>
#include <nabc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/holds.h"
#include "base/slice.h"
#include "coding/coded-fields.h"
#include "coding/compress-rule.h"
#include "files/compressor.h"
#include "http/accept.h"
#include "http/cachecontrol.h"
#include "http/fields.h"
#include "respcache/respcache-internal.h"
#include "respcache/respcache.h"

#define TAG_MAX 48 /* bytes that its entity tag is longer */

/* --- which responses ---------------------------------------------------------------- */

static bool varies(const struct respcache_entry *entry)
{
	const char *at = entry->names.at, *end = at + entry->names.length;

	for (; at < end; at += strlen(at) + 1)
		if (strcmp(at, "accept-encoding") == 0)
			return true;
	return false;
}

void respcache_variant_describe(struct respcache_entry *entry, const struct cachecontrol *control)
{
	struct slice lines = entry->view.head;
	struct field field;

	entry->view.varies = varies(entry);
	if (entry->view.status != 200 || !entry->view.range_count || control->no_transform)
		return;
	while (field_next(&lines, &field)) {
		if (compress_rule_excludes(&field))
			return;
		if (field.id == FIELD_CONTENT_TYPE)
			entry->view.type = field.value;
	}
	entry->view.can_code = entry->view.type.length > 0;
}

/* --- a variant --------------------------------------------------------------------- */

/* Inserts the coding before the closing quote; returns no bytes for a tag without one. */
static size_t write_tag(struct slice tag, enum coding coding, char *out)
{
	int length;

	if (tag.length < 2 || tag.at[tag.length - 1] != '"')
		return 0;
	memcpy(out, tag.at, tag.length - 1);
	length = snprintf(out + tag.length - 1, TAG_MAX, "-%s.%" PRIx64 "\"", coding_token(coding),
			  compressor_revision(coding) & UINT32_MAX);
	return tag.length - 1 + (size_t)length;
}

/* Reads the lines of a head as those of the variant, which has another tag; token: or NULL. */
static void read_lines(struct fields *fields, struct slice lines, struct slice tag,
		       const char *token)
{
	fields_init(fields);
	fields_read(fields, lines);
	coded_fields_set_tag(fields, tag);
	coded_fields_set_coding(fields, token);
}

static struct slice put_lines(const struct fields *fields, char **at)
{
	struct slice copy = {*at, fields_size(fields)};

	*at = fields_write(fields, *at);
	return copy;
}

static struct slice put(struct slice text, char **at)
{
	struct slice copy = {*at, text.length};

	if (text.length)
		memcpy(*at, text.at, text.length);
	*at += text.length;
	return copy;
}

/* lean: the fields of a 304.  Returns NULL without memory. */
static struct respcache_entry *make(const struct respcache_entry *source,
				    const struct compress_job *job, struct slice tag,
				    const struct fields *head, const struct fields *lean)
{
	const struct respcache_view *from = &source->view;
	size_t size = sizeof(struct respcache_entry) + sizeof(struct NC_range) +
		      sizeof(struct NC_hold) + tag.length + fields_size(head) + fields_size(lean) +
		      from->phrase.length;
	struct respcache_entry *variant = calloc(1, size);
	struct NC_range *range;
	struct NC_hold *hold;
	char *at;

	if (!variant)
		return NULL;
	range = (struct NC_range *)(void *)(variant + 1);
	hold = (struct NC_hold *)(void *)(range + 1);
	*range = (struct NC_range){.id = job->id, .length = job->length};
	*hold = job->hold;
	at = (char *)(hold + 1);
	variant->view = (struct respcache_view){.status = from->status,
						.modified = from->modified,
						.date = from->date,
						.ranges = range,
						.holds = hold,
						.range_count = 1,
						.length = job->length,
						.varies = true};
	variant->view.etag = put(tag, &at);
	variant->view.head = put_lines(head, &at);
	variant->view.lean = put_lines(lean, &at);
	variant->view.phrase = put(from->phrase, &at);
	variant->age = source->age;
	variant->stored_ns = source->stored_ns;
	variant->owned = 1;
	variant->size = size;
	atomic_init(&variant->references, 1);
	return variant;
}

/* Returns NULL if its lines are too long, or without memory. */
static struct respcache_entry *variant_new(const struct respcache_entry *source,
					   const struct compress_job *job)
{
	const struct respcache_view *from = &source->view;
	char *text = malloc(from->etag.length + TAG_MAX);
	struct respcache_entry *variant = NULL;
	struct fields head, lean;
	struct slice tag;

	if (!text)
		return NULL;
	tag = (struct slice){text, write_tag(from->etag, job->coding, text)};
	read_lines(&head, from->head, tag, coding_token(job->coding));
	read_lines(&lean, from->lean, tag, NULL);
	if (!head.failed && !lean.failed && fields_size(&head) <= RESPCACHE_HEAD_MAX)
		variant = make(source, job, tag, &head, &lean);
	fields_free(&head);
	fields_free(&lean);
	free(text);
	return variant;
}

void respcache_variants_destroy(struct respcache_entry *entry)
{
	for (unsigned i = 0; i < CODINGS; i++)
		if (entry->variants[i])
			respcache_destroy(entry->variants[i]->view.ranges, 1, 1);
}

struct respcache_entry *respcache_variant(struct respcache_entry *entry, enum coding coding)
{
	/* The caller has a reference to entry, which has one to it. */
	struct respcache_entry *variant =
		atomic_load_explicit(&entry->variants[coding], memory_order_acquire);

	if (!variant || !respcache_entry_hold(variant))
		return NULL;
	respcache_entry_ref(variant);
	return variant;
}

/* --- making one -------------------------------------------------------------------- */

struct variant_job {
	struct compress_job job;
	struct respcache *cache;
	struct respcache_entry *entry; /* referenced */
	bool held;		       /* its units are held */
};

/* Stores it if its source still is in the table; returns false otherwise. */
static bool publish(struct respcache *cache, struct respcache_entry *entry,
		    struct respcache_entry *variant, enum coding coding)
{
	struct respcache_shard *shard = respcache_shard(cache, entry->key.hash);
	bool linked;

	pthread_mutex_lock(&shard->lock);
	linked = entry->linked;
	if (linked) {
		entry->size += variant->size;
		shard->bytes += variant->size;
		/* Pairs with the acquire in respcache_variant(). */
		atomic_store_explicit(&entry->variants[coding], variant, memory_order_release);
	}
	pthread_mutex_unlock(&shard->lock);
	return linked;
}

static bool response_variant_begin(struct compress_job *job)
{
	struct variant_job *made = container_of(job, struct variant_job, job);

	made->held = respcache_entry_hold(made->entry);
	return made->held;
}

static void response_variant_done(struct compress_job *job)
{
	struct variant_job *made = container_of(job, struct variant_job, job);
	struct respcache_entry *entry = made->entry;
	struct respcache_entry *variant =
		job->result == COMPRESS_GOOD ? variant_new(entry, job) : NULL;
	uint64_t now_ns = clock_monotonic_ns();

	if (!variant && job->result != COMPRESS_CANCELLED)
		atomic_fetch_or_explicit(&entry->unfit, 1u << job->coding, memory_order_relaxed);
	if (variant && !publish(made->cache, entry, variant, job->coding)) {
		respcache_entry_unref(variant);
		variant = NULL;
	}
	if (variant && entry->stale_ns > now_ns)
		respcache_set_lifetime(job->id, (entry->stale_ns - now_ns) / 1000000000u);
	if (job->result == COMPRESS_GOOD && !variant)
		(void)NC_destroy(NULL, job->id);
	if (job->result == COMPRESS_GOOD)
		holds_release(&job->hold, 1);
	atomic_store_explicit(&entry->coding, false, memory_order_release);
	if (made->held)
		holds_release(entry->view.holds, entry->view.range_count);
	respcache_entry_unref(entry);
	free(made);
}

unsigned respcache_codings(const struct respcache_entry *entry)
{
	unsigned all = (1u << CODINGS) - 1;

	return entry->view.can_code
		       ? all & ~atomic_load_explicit(&entry->unfit, memory_order_relaxed)
		       : 0;
}

void respcache_compress(struct respcache *cache, struct respcache_entry *entry, enum coding coding,
			struct compressor *compressor)
{
	struct variant_job *made;

	if (!(respcache_codings(entry) & 1u << coding) ||
	    atomic_load_explicit(&entry->variants[coding], memory_order_relaxed) ||
	    atomic_exchange_explicit(&entry->coding, true, memory_order_acquire))
		return;
	made = calloc(1, sizeof(*made));
	/* It may exist already: the exchange pairs with the release in response_variant_done(). */
	if (!made || atomic_load_explicit(&entry->variants[coding], memory_order_relaxed)) {
		atomic_store_explicit(&entry->coding, false, memory_order_release);
		free(made);
		return;
	}
	made->cache = cache;
	made->entry = entry;
	made->job = (struct compress_job){.coding = coding,
					  .ranges = entry->view.ranges,
					  .holds = entry->view.holds,
					  .range_count = entry->view.range_count,
					  .begin = response_variant_begin,
					  .done = response_variant_done};
	respcache_entry_ref(entry);
	if (compressor_submit(compressor, &made->job))
		return;
	atomic_store_explicit(&entry->coding, false, memory_order_release);
	respcache_entry_unref(entry);
	free(made);
}
