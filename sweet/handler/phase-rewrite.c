/* SPDX-License-Identifier: MIT */
/*
 * phase-rewrite.c - the key rewrite: the request is for another path of the same
 * host, whose rules it has to pass too.
 */
#include <string.h>

#include "core/server.h"
#include "handler/phase.h"

/* Puts the scope's replacement in the place of its prefix; false: too long. */
static bool rewrite(struct transaction *transaction)
{
	const struct scope *scope = transaction->scope;
	char *rest = transaction->path + scope->rewrite_skip;
	size_t length = strlen(rest), before = strlen(scope->rewrite);

	/* "/" alone: the rest brings its own. */
	if (before == 1 && length)
		before = 0;
	if (before + length >= sizeof(transaction->path))
		return false;
	memmove(transaction->path + before, rest, length + 1);
	memcpy(transaction->path, scope->rewrite, before);
	return true;
}

enum phase phase_rewrite(struct transaction *transaction)
{
	if (!transaction->scope->rewrite)
		return PHASE_NEXT;
	if (!rewrite(transaction))
		return phase_responds(
			transaction_refuse(transaction, 414, "a rewritten path that is too long"));
	transaction->rewritten_by = transaction->scope;
	return PHASE_REWRITTEN;
}
