/* SPDX-License-Identifier: MIT */
/*
 * dav-change.c - DELETE, MKCOL, COPY and MOVE (RFC 4918, sections 9.3, 9.6, 9.8, 9.9).
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/configuration.h"
#include "dav/dav-call.h"
#include "dav/dav-locks.h"
#include "dav/dav-multistatus.h"
#include "dav/dav-place.h"
#include "dav/dav-request.h"
#include "dav/dav-tree.h"
#include "files/docroot.h"

/* Sets the response for the result of dav_tree_...(); status: if all is done. */
static void conclude(struct dav_call *call, struct dav_tree *tree, int error, int status,
		     const char *what)
{
	if (error > 0 && tree->failures) {
		dav_multistatus_end(tree->failures);
		call->text = g_steal_pointer(&tree->failures);
		dav_fail(call, 207, "some members failed");
	} else if (error) {
		dav_fail_with(call, error > 0 ? -EACCES : error, what);
	} else {
		call->status = status;
	}
}

static void open_tree(struct dav_tree *tree, const struct dav_call *call,
		      const struct dav_place *named, const struct dav_place *source)
{
	*tree = (struct dav_tree){
		.leaving = &call->dav->leaving,
		.hidden = source->scope->hidden,
		.shallow = call->request.depth == DAV_DEPTH_0,
		.replace = call->request.overwrite,
		.reads = dav_place_reads(source),
		.path = g_string_new(named->path),
		.file = g_string_new(source->file),
	};
}

static void close_tree(struct dav_tree *tree)
{
	g_string_free(tree->path, TRUE);
	g_string_free(tree->file, TRUE);
	if (tree->failures)
		g_string_free(tree->failures, TRUE);
}

/* A folder is changed with all that is below it: the same rules must apply to that. */
static bool check_whole(struct dav_call *call, const struct dav_place *place)
{
	if (dav_place_is_uniform(place, call->transaction))
		return true;
	dav_fail(call, 403, "a path below the folder has other rules");
	return false;
}

/* Opens the folder of a place; returns -1 after setting the response: status if there is none. */
static int open_parent(struct dav_call *call, const struct dav_place *place, int missing)
{
	int fd = dav_place_open_parent(place);

	if (fd == -ENOENT || fd == -ENOTDIR)
		dav_fail(call, missing, "no folder for it");
	else if (fd < 0)
		dav_fail_with(call, fd, "open the folder of");
	return fd < 0 ? -1 : fd;
}

/* --- DELETE -------------------------------------------------------------------------------- */

/* Returns 0 or as dav_tree_remove(). */
static int remove_place(struct dav_call *call, struct dav_tree *tree, const struct dav_place *place,
			int folder)
{
	int error = dav_tree_remove(tree, folder, place->name);

	if (!error)
		dav_locks_forget(call->dav->locks, place->key);
	return error;
}

static void delete_it(struct dav_call *call)
{
	int folder = open_parent(call, &call->at, 404);
	struct dav_tree tree;

	if (folder < 0)
		return;
	open_tree(&tree, call, &call->at, &call->at);
	conclude(call, &tree, remove_place(call, &tree, &call->at, folder), 204, "delete");
	close_tree(&tree);
	close(folder);
}

void dav_delete(struct dav_call *call)
{
	struct dav_state state;

	if (!dav_look(call, &call->at, &state) || !dav_check_conditions(call, &state))
		return;
	if (!state.exists)
		dav_fail(call, 404, NULL);
	else if (state.folder && call->request.depth != DAV_DEPTH_INFINITY)
		dav_fail(call, 400, "DELETE of a folder needs Depth: infinity");
	else if ((!state.folder || check_whole(call, &call->at)) &&
		 dav_begin_change(call, &call->at, true, true))
		delete_it(call);
	dav_end_changes(call);
}

/* --- MKCOL ----------------------------------------------------------------------------------- */

static void make_folder(struct dav_call *call)
{
	int folder = open_parent(call, &call->at, 409);

	if (folder < 0)
		return;
	if (mkdirat(folder, call->at.name, 0777) < 0)
		dav_fail_with(call, -errno, "create");
	else
		call->status = 201;
	close(folder);
}

void dav_mkcol(struct dav_call *call)
{
	struct dav_state state;

	if (!dav_look(call, &call->at, &state) || !dav_check_conditions(call, &state))
		return;
	if (state.exists)
		dav_fail(call, 405, "MKCOL of what exists");
	else if (dav_begin_change(call, &call->at, false, true))
		make_folder(call);
	dav_end_changes(call);
}

/* --- COPY and MOVE ------------------------------------------------------------------------- */

/* The source and the destination, open, and what there was. */
struct both {
	struct dav_state from, to;
	int folder_from, folder_to; /* that have them; -1: not open */
	struct dav_tree tree;
};

static bool check_both(struct dav_call *call, struct both *both)
{
	bool moves = call->request.method == DAV_MOVE;

	if (!dav_look(call, &call->at, &both->from) || !dav_look(call, &call->to, &both->to) ||
	    !dav_check_conditions(call, &both->from))
		return false;
	if (!both->from.exists)
		dav_fail(call, 404, NULL);
	else if (dav_place_lies_in(&call->to, &call->at) || dav_place_lies_in(&call->at, &call->to))
		dav_fail(call, 403, "source and destination lie in each other");
	else if (moves && both->from.folder && call->request.depth != DAV_DEPTH_INFINITY)
		dav_fail(call, 400, "MOVE of a folder needs Depth: infinity");
	else if (both->to.exists && !call->request.overwrite)
		dav_fail(call, 412, "the destination exists");
	else if (!both->from.folder && !both->to.exists && call->to.slash)
		dav_fail(call, 409, "the destination of a file has a slash at its end");
	if (call->status || (!both->from.folder && !both->to.folder))
		return !call->status;
	return check_whole(call, &call->at) && check_whole(call, &call->to);
}

static bool begin_both(struct dav_call *call, const struct both *both)
{
	return (call->request.method == DAV_COPY ||
		dav_begin_change(call, &call->at, true, true)) &&
	       dav_begin_change(call, &call->to, true, !both->to.exists);
}

static bool open_both(struct dav_call *call, struct both *both)
{
	both->folder_from = open_parent(call, &call->at, 404);
	if (both->folder_from < 0)
		return false;
	both->folder_to = open_parent(call, &call->to, 409);
	return both->folder_to >= 0;
}

/*
 * Removes what is at the destination, unless one call exchanges both.  Returns as
 * dav_tree_remove().
 */
static int clear_destination(struct dav_call *call, struct both *both)
{
	struct dav_tree tree;
	int error;

	if (!both->to.exists || (!both->from.folder && !both->to.folder))
		return 0;
	open_tree(&tree, call, &call->to, &call->to);
	error = remove_place(call, &tree, &call->to, both->folder_to);
	both->tree.failures = g_steal_pointer(&tree.failures);
	close_tree(&tree);
	return error;
}

/* Returns as dav_tree_copy(). */
static int copy_over(struct dav_call *call, struct both *both)
{
	struct file_version version;
	int source, error;

	source = both->from.folder ? docroot_open_folder(both->tree.reads, call->at.file)
				   : docroot_open_file(both->tree.reads, call->at.file, &version);
	if (source < 0)
		return source;
	error = dav_tree_copy(&both->tree, source, both->from.folder, both->folder_to,
			      call->to.name);
	close(source);
	return error;
}

/* Between file systems, a move is a copy and a removal. */
static int move_over(struct dav_call *call, struct both *both)
{
	int error = 0;

	if (renameat2(both->folder_from, call->at.name, both->folder_to, call->to.name,
		      call->request.overwrite ? 0 : RENAME_NOREPLACE) < 0)
		error = -errno;
	/* The file system cannot do this: the check before has to suffice. */
	if (error == -EINVAL && !call->request.overwrite &&
	    renameat(both->folder_from, call->at.name, both->folder_to, call->to.name) == 0)
		error = 0;
	if (error == -EXDEV) {
		/* All of it moves, also what a copy would leave out. */
		both->tree.hidden = true;
		both->tree.shallow = false;
		error = copy_over(call, both);
		if (!error)
			error = dav_tree_remove(&both->tree, both->folder_from, call->at.name);
	}
	if (!error)
		dav_locks_forget(call->dav->locks, call->at.key);
	return error;
}

static void transfer(struct dav_call *call, struct both *both,
		     int (*over)(struct dav_call *call, struct both *both))
{
	int error = clear_destination(call, both);

	if (!error)
		error = over(call, both);
	/* Another process made it meanwhile. */
	if (error == -EEXIST && !call->request.overwrite)
		dav_fail(call, 412, "the destination exists");
	else
		conclude(call, &both->tree, error, both->to.exists ? 204 : 201, "write to");
}

static void copy_or_move(struct dav_call *call,
			 int (*over)(struct dav_call *call, struct both *both))
{
	struct both both = {.folder_from = -1, .folder_to = -1};

	if (check_both(call, &both) && begin_both(call, &both) && open_both(call, &both)) {
		open_tree(&both.tree, call, &call->to, &call->at);
		transfer(call, &both, over);
		close_tree(&both.tree);
	}
	dav_end_changes(call);
	if (both.folder_from >= 0)
		close(both.folder_from);
	if (both.folder_to >= 0)
		close(both.folder_to);
}

void dav_copy(struct dav_call *call)
{
	copy_or_move(call, copy_over);
}

void dav_move(struct dav_call *call)
{
	copy_or_move(call, move_over);
}
