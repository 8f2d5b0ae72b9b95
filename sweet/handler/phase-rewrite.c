/* SPDX-License-Identifier: MIT */
/*
 * phase-rewrite.c - the key rewrite: changes the path to another one of the same host, whose rules
 * the request has to pass too.
 */
#include <string.h>

#include "core/server.h"
#include "handler/phase.h"

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
