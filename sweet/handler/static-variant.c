/* SPDX-License-Identifier: MIT */
/*
 * static-variant.c - see static-variant.h.  Runs on the transaction's thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <glib.h>

#include "base/slice.h"
#include "coding/compress-rule.h"
#include "config/configuration.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction-file.h"
#include "core/transaction.h"
#include "files/docroot.h"
#include "files/file-cache-tick.h"
#include "files/file-cache.h"
#include "files/filehead.h"
#include "handler/static-variant.h"
#include "http/accept.h"
#include "http/conditional.h"

#if GLIB_CHECK_VERSION(2, 70, 0)
#define fits g_pattern_spec_match_string
#else
#define fits g_pattern_match_string
#endif

const struct cache_rule *static_cache_rule(const struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	const char *name = strrchr(transaction->path, '/') + 1;
	bool text = g_utf8_validate(name, -1, NULL);

	for (unsigned i = 0; i < scope->cache_rule_count; i++) {
		const struct cache_rule *rule = &scope->cache_rules[i];

		/* The matcher reads UTF-8, so it must not get invalid text. */
		if (!rule->pattern || (text && fits(rule->pattern, name)))
			return rule;
	}
	return NULL;
}

/* Whether the client has a part of the file itself, and wants the rest. */
static bool continues(const struct conditions *conditions, struct file_cache_entry *entry)
{
	struct filehead place;

	return conditions->any &&
	       conditions_name(conditions, filehead_etag(file_cache_head(entry, &place)));
}

static bool is_to_be_coded(const struct transaction *transaction,
			   const struct file_cache_view *view)
{
	const struct cache_rule *rule;

	if (!compress_rule_takes(&transaction->scope->compress,
				 (struct slice){view->type, strlen(view->type)},
				 (uint64_t)view->version.size))
		return false;
	rule = static_cache_rule(transaction);
	return !rule || !rule->no_transform;
}

struct file_cache_entry *static_variant(struct transaction *transaction,
					struct file_cache_entry *entry, const enum coding *order,
					unsigned orders, enum coding *coding, bool *varies)
{
	const struct scope *scope = transaction->scope;
	struct file_cache *cache = site_scope(transaction->config_ref, scope)->file_cache;
	struct conditions *conditions = &transaction_file(transaction)->conditions;
	unsigned codings = scope->compress.codings & file_cache_variants(entry);
	bool first = !transaction->head_only &&
		     !(conditions->any && conditions->present & 1u << CONDITION_RANGE);

	if (!codings || !is_to_be_coded(transaction, file_cache_view(entry)))
		return NULL;
	*varies = true;
	conditions_ignore_dated_range(conditions);
	if (continues(conditions, entry))
		return NULL;
	for (unsigned i = 0; i < orders; i++) {
		struct file_cache_entry *variant;

		if (!(codings & 1u << order[i]))
			continue;
		*coding = order[i];
		variant =
			file_cache_tick_variant(transaction->thread->tick, cache, entry, order[i]);
		if (variant)
			return variant;
		if (first)
			file_cache_compress(entry, order[i]);
		first = false;
	}
	return NULL;
}
