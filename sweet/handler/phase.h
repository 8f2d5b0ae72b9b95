/* SPDX-License-Identifier: MIT */
/*
 * phase.h - what the server does to a request before it responds: one function for each phase, in
 * phase-checks.c or the file of its name. route.c has the table of them.
 *
 * Those of rules are called only if the scope has the rule: see due() in route.c.
 *
 * A phase reads the request and sets what later phases need (path, host, scope, user), or it ends
 * the request: it fills in the response, or calls a responder.  `transaction->request` is set only
 * while a phase runs.
 *
 * A rewrite, try-files, or an index, changes the path, and so the scope.  The phases that are
 * marked for this in the table then run once more: `transaction->rewritten_by` is the scope that
 * had the rule, else NULL.
 */
#ifndef SWEET_PHASE_H
#define SWEET_PHASE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/transaction.h"

struct pool_config;
struct scope;

enum phase {
	PHASE_NOW = RESPOND_NOW, /* the response is ready */
	/* a responder calls done() later, or the phase calls proceed() */
	PHASE_LATER = RESPOND_LATER,
	PHASE_NEXT,	 /* the request passes */
	PHASE_REWRITTEN, /* the path has changed */
};

/* phase-checks.c: methods that are unknown or not supported, and "OPTIONS *". */
enum phase phase_method(struct transaction *transaction);

/* phase-target.c: sets path and host. */
enum phase phase_target(struct transaction *transaction);

/*
 * phase-target.c: whether the client's certificate satisfies the rules of this host.  The handshake may
 * have been for another host, with other rules (RFC 9110, section 7.4).
 */
bool phase_target_keeps_policy(const struct transaction *transaction);

/* phase-checks.c: sets the scope of the path. */
enum phase phase_scope(struct transaction *transaction);

/* Returns the scope of a path of the request's host; NULL: phase_scope() would refuse it. */
const struct scope *phase_scope_of(const struct transaction *transaction, const char *path);

/* phase-header.c: makes the fields of header that have variables. */
enum phase phase_header(struct transaction *transaction);

/* phase-checks.c: paths that only the server itself leads to. */
enum phase phase_internal(struct transaction *transaction);

/* phase-checks.c: responds with the status page. */
enum phase phase_status(struct transaction *transaction);

/* phase-checks.c: request-rate. */
enum phase phase_rate(struct transaction *transaction);

/* phase-checks.c: allow and deny. */
enum phase phase_address(struct transaction *transaction);

/* phase-password.c: auth; sets remote_user. */
enum phase phase_password(struct transaction *transaction);

/* phase-redirect.c: redirect. */
enum phase phase_redirect(struct transaction *transaction);

/* phase-rewrite.c: rewrite; changes the path. */
enum phase phase_rewrite(struct transaction *transaction);

/* phase-script.c: the pool of a script's suffix responds. */
enum phase phase_script(struct transaction *transaction);

/* phase-try.c: try-files; may change the path. */
enum phase phase_try(struct transaction *transaction);

/* phase-index.c: the index of a folder, if other rules hold for it; changes the path. */
enum phase phase_index(struct transaction *transaction);

/* phase-handler.c: a pool or a file responds; the last phase, which ends every request. */
enum phase phase_handler(struct transaction *transaction);

/*
 * What phases call when a pool responds (phase-pool.c), with skip as for cache_lookup(), or when none
 * does (phase-checks.c).
 */
enum phase phase_pool(struct transaction *transaction, const struct pool_config *pool, size_t skip);
enum phase phase_no_pool(struct transaction *transaction);

/*
 * What these call: of phase-index.c, whether the path names a folder with an index for the pool,
 * without the slash at its end that the index needs; of phase-folder.c, the redirect to the path with
 * it.
 */
bool phase_is_folder(struct transaction *transaction, const struct pool_config *pool, size_t skip);
enum phase phase_folder(struct transaction *transaction);

/*
 * What these and phase-script.c call, of phase-index.c: puts an index name behind the path's first
 * bytes, which end with a slash; false: it has no room.  Then: PHASE_NEXT if the path has the rules of
 * the scope still, else PHASE_REWRITTEN.
 */
bool phase_add_index(struct transaction *transaction, size_t length, const char *name);
enum phase phase_take_index(struct transaction *transaction);

/* Whether the first index that is in the folder is a script, by the rules of the folder. */
bool phase_has_script_index(struct transaction *transaction);

/*
 * Called by phase-pool.c: looks which rules the folder's index has that the pool would run.  After
 * PHASE_NEXT, it has those of the folder, and the path is as before.
 */
enum phase phase_script_index(struct transaction *transaction, const struct pool_config *pool,
			      size_t skip);

/*
 * Whether the path with a slash at its end leads to a folder, too: its rules may be others, if those
 * of the path are of it alone.  Without one, no client is sent there.
 */
bool phase_folder_is_there(struct transaction *transaction);

/* Converts what a responder returned. */
static inline enum phase phase_responds(enum respond respond)
{
	return respond == RESPOND_NOW ? PHASE_NOW : PHASE_LATER;
}

/*
 * Of phase-header.c: the same for a response before that phase, which gets the fields and the error
 * page of the scope, or, if that is not known, of all paths of the host.
 */
enum phase phase_responds_early(struct transaction *transaction, enum respond respond);

#endif
