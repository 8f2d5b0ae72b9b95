/* SPDX-License-Identifier: MIT */
/*
 * phase-rewrite.c - the key rewrite: changes the path to another one of the same host, whose rules
 * the request has to pass too.
 */
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "base/slice.h"
#include "config/configuration.h"
#include "core/transaction.h"
#include "handler/phase.h"
#include "core/request-value.h"
#include "http/uri.h"
#include "rules/template.h"

/* Replaces the scope's prefix by its replacement; returns false if the path becomes too long. */
static bool rewrite(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	char *rest = transaction->path + scope->rewrite_skip;
	size_t length = strlen(rest), before = strlen(scope->rewrite);

	/* The prefix "/" alone: the rest has its own slash. */
	if (before == 1 && length)
		before = 0;
	if (before + length >= sizeof(transaction->path))
		return false;
	memmove(transaction->path + before, rest, length + 1);
	memcpy(transaction->path, scope->rewrite, before);
	return true;
}

/* Puts the query of a rewrite before the client's, if there is one. */
static void set_query(struct transaction *transaction, const char *query)
{
	const struct template *template = transaction->scope->rewrite_text;
	struct slice own = transaction_query(transaction);

	if (own.length == 0 || template_uses(template, TEMPLATE_QUERY))
		transaction->route.query = g_strdup(query);
	else
		transaction->route.query =
			g_strdup_printf("%s&%.*s", query, (int)own.length, own.at);
}

/*
 * The text of a pattern's rewrite is a URI: what stands for its variables is escaped in it.  A
 * table may have nothing for this request: then there is no rewrite.
 */
static enum phase rewrite_to(struct transaction *transaction)
{
	GString *text = g_string_new(NULL);
	char *query;
	int length;

	template_expand(transaction->scope->rewrite_text, TEMPLATE_URI_PATH, request_value,
			transaction, text);
	if (!text->len) {
		g_string_free(text, TRUE);
		return PHASE_NEXT;
	}
	query = strchr(text->str, '?');
	if (query) {
		*query++ = '\0';
		set_query(transaction, query);
	}
	length = uri_decode_path((struct slice){text->str, strlen(text->str)}, URI_SLASH_REFUSE,
				 transaction->path, sizeof(transaction->path));
	g_string_free(text, TRUE);
	if (length >= 0)
		return PHASE_REWRITTEN;
	transaction->path[0] = '\0';
	return phase_responds(transaction_refuse(transaction, -length,
						 length == -414
							 ? "a rewritten path that is too long"
							 : "a rewritten path that is invalid"));
}

enum phase phase_rewrite(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;

	if (scope->rewrite_text) {
		enum phase phase = rewrite_to(transaction);

		if (phase != PHASE_REWRITTEN)
			return phase;
	} else if (!rewrite(transaction)) {
		return phase_responds(
			transaction_refuse(transaction, 414, "a rewritten path that is too long"));
	}
	transaction->route.rewritten_by = scope;
	return PHASE_REWRITTEN;
}
