/* SPDX-License-Identifier: MIT */
/*
 * respcache-entry.c - entries: creation, lookup, and eviction (SIEVE: the oldest
 * entry that was not used since the hand passed it); see respcache-internal.h.
 */
#include <assert.h>
#include <nabc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/date.h"
#include "base/holds.h"
#include "base/list.h"
#include "base/slice.h"
#include "http/accept.h"
#include "http/cachecontrol.h"
#include "http/cachekey.h"
#include "http/fields.h"
#include "program/cacheable.h"
#include "program/cgihead.h"
#include "respcache/respcache-internal.h"
#include "respcache/respcache.h"

#define SECOND UINT64_C(1000000000)
#define YEAR_S (365 * 24 * 3600u)

/* --- creation ------------------------------------------------------------------------ */

/* Where to write the next bytes of an entry. */
struct writer {
	char *at;
};

static struct slice put(struct writer *writer, struct slice text)
{
	struct slice copy = {writer->at, text.length};

	/* The pointer of an empty slice may be NULL. */
	if (text.length)
		memcpy(writer->at, text.at, text.length);
	writer->at += text.length;
	return copy;
}

/* Of the fields that describe a body, a 304 has only Content-Location. */
static bool is_of_body(const struct field *field)
{
	return field->name.length > 8 && strncasecmp(field->name.at, "Content-", 8) == 0 &&
	       field->id != FIELD_CONTENT_LOCATION;
}

static void remove_body(struct fields *fields)
{
	size_t count = 0;

	for (size_t i = 0; i < fields->count; i++)
		if (!is_of_body(&fields->at[i]))
			fields->at[count++] = fields->at[i];
	fields->count = count;
}

static struct slice put_lines(struct writer *writer, const struct fields *fields)
{
	struct slice copy = {writer->at, fields_size(fields)};

	writer->at = fields_write(fields, writer->at);
	return copy;
}

/* Returns the number of tags and their hashes; -1: too many tags to find them again. */
static long read_tags(const struct respcache *cache, const struct cacheable *said, uint64_t *hashes)
{
	unsigned count = 0;
	struct slice tag;

	if (said->tag_count > CACHEABLE_TAGS_MAX)
		return -1;
	for (unsigned i = 0; i < said->tag_count; i++)
		for (struct slice rest = said->tags[i]; cacheable_tag(&rest, &tag);) {
			if (count == RESPCACHE_TAGS_MAX)
				return -1;
			hashes[count++] = respcache_hash(cache, tag);
		}
	return (long)count;
}

/* Tags are not among the lines, and would be lost. */
uint64_t respcache_validated_s(const struct respcache_answer *answer)
{
	const struct cacheable *said = answer->said;
	bool may = said->head->http && said->head->status == 200 && answer->range_count <= 1 &&
		   !said->tag_count && (said->etag.length || said->modified.length);

	return may ? RESPCACHE_VALIDATED_S : 0;
}

static void set_times(struct respcache_entry *entry, const struct respcache_answer *answer,
		      uint64_t now_ns)
{
	entry->age = answer->terms.age;
	entry->stored_ns = now_ns;
	entry->fresh_ns = now_ns + answer->terms.fresh * SECOND;
	entry->stale_ns = entry->fresh_ns + answer->terms.stale * SECOND;
	entry->kept_ns = entry->stale_ns + respcache_validated_s(answer) * SECOND;
}

/* In room that is large enough. */
static void set_ranges(struct respcache_entry *entry, void *room,
		       const struct respcache_answer *answer)
{
	struct NC_range *ranges = room;
	struct NC_hold *holds = (struct NC_hold *)(void *)(ranges + answer->range_count);

	for (unsigned i = 0; i < answer->range_count; i++) {
		ranges[i] = answer->ranges[i];
		/* Holds of a unit are counted and equal: this one names it, and keeps nothing. */
		holds[i] = answer->holds[i];
		entry->view.length += ranges[i].length;
	}
	entry->view.ranges = ranges;
	entry->view.holds = holds;
	entry->view.range_count = answer->range_count;
}

/* fields: of the head, without those that are generated for each response. */
static struct respcache_entry *make(const struct respcache_flight *flight,
				    const struct respcache_answer *answer, struct fields *fields,
				    uint64_t now_ns)
{
	const struct cacheable *said = answer->said;
	struct slice names = {said->head->vary.names, said->head->vary.length};
	uint64_t hashes[RESPCACHE_TAGS_MAX];
	char values[CACHEKEY_VALUES_MAX];
	long tags = read_tags(flight->cache, said, hashes);
	long values_length = cachekey_values(&flight->copy->request, names, values);
	struct respcache_entry *entry;
	struct writer writer;
	size_t size;

	if (answer->range_count > RESPCACHE_RANGES_MAX || tags < 0 || values_length < 0)
		return NULL;
	size = sizeof(*entry) + (size_t)tags * sizeof(struct respcache_tag) +
	       answer->range_count * (sizeof(struct NC_range) + sizeof(struct NC_hold)) +
	       flight->key.text.length + names.length + (size_t)values_length + said->etag.length +
	       2 * fields_size(fields) + answer->phrase.length;
	entry = calloc(1, size);
	if (!entry)
		return NULL;
	entry->tags = (struct respcache_tag *)(entry + 1);
	entry->tag_count = (unsigned)tags;
	for (long i = 0; i < tags; i++)
		entry->tags[i] = (struct respcache_tag){.hash = hashes[i], .entry = entry};
	set_ranges(entry, entry->tags + tags, answer);
	writer.at = (char *)(uintptr_t)(entry->view.holds + answer->range_count);
	entry->key = flight->key;
	entry->key.text = put(&writer, flight->key.text);
	entry->names = put(&writer, names);
	entry->values = put(&writer, (struct slice){values, (size_t)values_length}).at;
	entry->view.status = said->head->status;
	entry->view.empty = !answer->range_count &&
			    (said->head->status < 400 || said->head->http || said->head->has_type);
	entry->view.etag = put(&writer, said->etag);
	entry->view.phrase = put(&writer, answer->phrase);
	entry->view.head = put_lines(&writer, fields);
	remove_body(fields);
	entry->view.lean = put_lines(&writer, fields);
	assert(writer.at <= (char *)entry + size);
	if (!date_parse(said->modified, time(NULL), &entry->view.modified))
		entry->view.modified = 0;
	entry->view.date = answer->date;
	respcache_variant_describe(entry, &said->head->control);
	set_times(entry, answer, now_ns);
	atomic_init(&entry->references, 1);
	entry->shared = answer->terms.shared;
	entry->owned = answer->owned;
	entry->size = size;
	return entry;
}

struct respcache_entry *respcache_entry_new(const struct respcache_flight *flight,
					    const struct respcache_answer *answer, uint64_t now_ns)
{
	struct respcache_entry *entry = NULL;
	struct fields fields;

	fields_init(&fields);
	fields_read(&fields, answer->lines);
	fields_remove(&fields, FIELD_BIT(FIELD_AGE) | FIELD_BIT(FIELD_CONTENT_LENGTH));
	/* A hit adds its own lines, in a buffer that is no larger than the first response's. */
	if (!fields.failed && fields_size(&fields) <= RESPCACHE_HEAD_MAX)
		entry = make(flight, answer, &fields, now_ns);
	fields_free(&fields);
	return entry;
}

void respcache_entry_ref(struct respcache_entry *entry)
{
	atomic_fetch_add_explicit(&entry->references, 1, memory_order_relaxed);
}

void respcache_entry_unref(struct respcache_entry *entry)
{
	if (atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel) != 1)
		return;
	/* Variants have none. */
	for (unsigned i = 0; i < CODINGS; i++)
		if (entry->variants[i])
			respcache_entry_unref(entry->variants[i]);
	free(entry);
}

/* --- units ------------------------------------------------------------------------------- */

bool respcache_entry_hold(struct respcache_entry *entry)
{
	const struct respcache_view *view = &entry->view;
	struct NC_hold same;

	for (unsigned i = 0; i < view->range_count; i++)
		if (NC_hold(NULL, view->ranges[i].id, &same) < 0) {
			holds_release(view->holds, i);
			return false;
		}
	return true;
}

void respcache_put(struct respcache_entry *entry)
{
	holds_release(entry->view.holds, entry->view.range_count);
	respcache_entry_unref(entry);
}

/*
 * --- comparisons
 * ------------------------------------------------------------------------------
 */

bool respcache_key_equal(const struct respcache_key *one, const struct respcache_key *other)
{
	return one->hash == other->hash && one->text.length == other->text.length &&
	       memcmp(one->text.at, other->text.at, one->text.length) == 0;
}

bool respcache_key_has_url(const struct respcache_key *key, uint64_t hash, struct slice url)
{
	return key->hash == hash && key->url_length == url.length &&
	       memcmp(key->text.at, url.at, url.length) == 0;
}

bool respcache_entry_answers(const struct respcache_entry *entry, const struct request *request,
			     bool authorized)
{
	return (entry->shared || !authorized) &&
	       cachekey_matches(request, entry->names, entry->values);
}

struct list *respcache_chain(struct respcache *cache, uint64_t hash)
{
	return &respcache_shard(cache, hash)->chains[hash >> 32 & (cache->chain_count - 1)];
}

struct list *respcache_tag_chain(struct respcache *cache, struct respcache_shard *shard,
				 uint64_t hash)
{
	return &shard->tags[hash & (cache->chain_count - 1)];
}

/*
 * --- the table
 * --------------------------------------------------------------------------------
 */

static void link_tags(struct respcache *cache, struct respcache_entry *entry)
{
	struct respcache_shard *shard = respcache_shard(cache, entry->key.hash);

	for (unsigned i = 0; i < entry->tag_count; i++) {
		struct respcache_tag *tag = &entry->tags[i];

		list_prepend(respcache_tag_chain(cache, shard, tag->hash), &tag->node);
	}
}

static void unlink_tags(struct respcache_entry *entry)
{
	for (unsigned i = 0; i < entry->tag_count; i++)
		list_remove(&entry->tags[i].node);
}

static struct respcache_entry *newer(const struct respcache_shard *shard,
				     struct respcache_entry *entry)
{
	return list_previous(&shard->ages, entry, by_age);
}

void respcache_unlink_locked(struct respcache_shard *shard, struct respcache_entry *entry,
			     struct list *dropped)
{
	list_remove(&entry->node);
	unlink_tags(entry);
	if (shard->hand == entry)
		shard->hand = newer(shard, entry);
	list_remove(&entry->by_age);
	shard->entries--;
	shard->bytes -= entry->size;
	entry->linked = false;
	list_prepend(dropped, &entry->node);
}

/* Returns the next victim, but not spared, which is an entry; NULL: there is no other. */
static struct respcache_entry *choose(struct respcache_shard *shard,
				      const struct respcache_entry *spared)
{
	if (shard->entries == 1)
		return NULL;
	for (;;) {
		struct respcache_entry *entry = shard->hand;

		if (!entry)
			entry = list_last(&shard->ages, struct respcache_entry, by_age);
		shard->hand = newer(shard, entry);
		if (entry != spared &&
		    !atomic_exchange_explicit(&entry->used, false, memory_order_relaxed))
			return entry;
	}
}

void respcache_link_locked(struct respcache *cache, struct respcache_entry *entry,
			   struct list *dropped)
{
	struct respcache_shard *shard = respcache_shard(cache, entry->key.hash);

	list_prepend(respcache_chain(cache, entry->key.hash), &entry->node);
	link_tags(cache, entry);
	list_prepend(&shard->ages, &entry->by_age);
	shard->entries++;
	shard->bytes += entry->size;
	entry->linked = true;
	while (shard->entries > cache->entries_max || shard->bytes > cache->bytes_max) {
		struct respcache_entry *victim = choose(shard, entry);

		if (!victim)
			break;
		respcache_unlink_locked(shard, victim, dropped);
		respcache_count(shard, COUNT_DROPPED);
	}
}

void respcache_destroy(const struct NC_range *ranges, unsigned count, uint64_t owned)
{
	for (unsigned i = 0; i < count && i < RESPCACHE_RANGES_MAX; i++)
		if (owned & UINT64_C(1) << i)
			(void)NC_destroy(NULL, ranges[i].id);
}

void respcache_set_lifetime(size_t id, uint64_t seconds)
{
	seconds = seconds < YEAR_S ? seconds + 1 : YEAR_S;
	(void)NC_set_lifetime(NULL, id, seconds * 1000);
}

void respcache_drop(struct list *dropped)
{
	list_each (struct respcache_entry, entry, dropped, node) {
		respcache_destroy(entry->view.ranges, entry->view.range_count, entry->owned);
		respcache_variants_destroy(entry);
		respcache_entry_unref(entry);
	}
}
