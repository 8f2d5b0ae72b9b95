// SPDX-License-Identifier: GPL-2.0-only
/*
 * Access rights to units.
 *
 * The process that made a unit may do everything with it.  Others may do what they
 * were granted: as a process, as a user or as a member of a group.  Rights are
 * checked at each call, so a process that changed its user has the rights of the
 * new one.  A process is identified with the program that it runs: the next program
 * after execve() inherits no rights.
 */
#include <linux/file.h>
#include <linux/slab.h>

#include "compat.h"
#include "nabc.h"

static bool grantee_is(const struct nabc_grantee *grantee, const struct nabc_file *file)
{
	switch (grantee->kind) {
	case NABC_PRINCIPAL_PROCESS:
		return nabc_program_same(&grantee->program, &file->program);
	case NABC_PRINCIPAL_USER:
		return uid_eq(grantee->uid, current_euid());
	default:
		return in_egroup_p(grantee->gid);
	}
}

/* Whether the file belongs to the program that made the unit; any of its files. */
bool nabc_is_maker(const struct nabc_unit *unit, const struct nabc_file *file)
{
	return nabc_program_same(&unit->maker->program, &file->program);
}

/* Whether the file may know of the unit: while it is being filled, only its maker's file may. */
bool nabc_known_locked(const struct nabc_unit *unit, const struct nabc_file *file)
{
	return unit->state == NABC_STATE_CACHED ||
	       (unit->state == NABC_STATE_FILLING && unit->maker == file);
}

/* Checks whether the file may fill the unit: returns 0, -ENOENT, -EACCES or -EROFS. */
int nabc_fillable_locked(const struct nabc_unit *unit, const struct nabc_file *file)
{
	if (!nabc_known_locked(unit, file))
		return -ENOENT;
	if (unit->maker != file)
		return -EACCES;
	return unit->state == NABC_STATE_CACHED ? -EROFS : 0;
}

/* Returns the rights of the calling process, without those that a hold gives. */
u32 nabc_rights_locked(const struct nabc_unit *unit, const struct nabc_file *file)
{
	u32 rights = 0;
	unsigned int i;

	if (nabc_is_maker(unit, file))
		return NABC_RIGHTS_ALL;
	for (i = 0; i < unit->grant_count; i++) {
		if (grantee_is(&unit->grants[i], file))
			rights |= unit->grants[i].rights;
	}
	return rights;
}

/* Returns an inserted unit, with a reference, if the caller has all these rights. */
int nabc_access(struct nabc_file *file, u64 id, u32 rights, struct nabc_unit **found)
{
	struct nabc_unit *unit = nabc_unit_get(id);
	u32 have = 0;
	int ret = 0;

	if (!unit)
		return -ENOENT;
	mutex_lock(&unit->lock);
	if (unit->state == NABC_STATE_FILLING) {
		ret = unit->maker == file ? -EBUSY : -ENOENT;
	} else {
		if (nabc_holds(file, id))
			have = NABC_RIGHT_SEND;
		else if (unit->state == NABC_STATE_DESTROYED)
			ret = -ENOENT;
		have |= nabc_rights_locked(unit, file);
		if (!ret && (have & rights) != rights)
			ret = -EACCES;
	}
	mutex_unlock(&unit->lock);
	if (ret)
		nabc_unit_put(unit);
	else
		*found = unit;
	return ret;
}

static void grantee_put(struct nabc_grantee *grantee)
{
	if (grantee->kind == NABC_PRINCIPAL_PROCESS)
		put_pid(grantee->program.pid);
}

static struct pid *pid_of_pidfd(int fd)
{
	struct file *file = fget(fd);
	struct pid *pid;

	if (!file)
		return ERR_PTR(-EBADF);
	pid = get_pid(nabc_pidfd_pid(file));
	fput(file);
	return pid ? pid : ERR_PTR(-EBADF);
}

/* Resolves a principal; takes a reference to it. */
static int grantee_find(u32 principal, u32 who, u32 rights, struct nabc_grantee *grantee)
{
	grantee->rights = rights;
	grantee->kind = principal;
	switch (principal) {
	case NABC_PRINCIPAL_PROCESS:
		grantee->program.pid = find_get_pid(who);
		return grantee->program.pid ? 0 : -ESRCH;
	case NABC_PRINCIPAL_PIDFD:
		grantee->kind = NABC_PRINCIPAL_PROCESS;
		grantee->program.pid = pid_of_pidfd(who);
		return PTR_ERR_OR_ZERO(grantee->program.pid);
	case NABC_PRINCIPAL_USER:
		grantee->uid = make_kuid(current_user_ns(), who);
		return uid_valid(grantee->uid) ? 0 : -EINVAL;
	case NABC_PRINCIPAL_GROUP:
		grantee->gid = make_kgid(current_user_ns(), who);
		return gid_valid(grantee->gid) ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

static bool grantee_same(const struct nabc_grantee *a, const struct nabc_grantee *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case NABC_PRINCIPAL_PROCESS:
		/* One grant for all programs of a process: the last one's. */
		return a->program.pid == b->program.pid;
	case NABC_PRINCIPAL_USER:
		return uid_eq(a->uid, b->uid);
	default:
		return gid_eq(a->gid, b->gid);
	}
}

/*
 * A grant to a process is for the program that it runs now.  Returns false for a
 * thread's number, and for a process that has ended.
 */
static bool grantee_settle(struct nabc_grantee *grantee)
{
	return grantee->kind != NABC_PRINCIPAL_PROCESS ||
	       nabc_program_find(grantee->program.pid, &grantee->program);
}

/* Returns the grant to that grantee, or NULL. */
static struct nabc_grantee *granted_locked(struct nabc_unit *unit,
					   const struct nabc_grantee *grantee)
{
	unsigned int i;

	for (i = 0; i < unit->grant_count; i++) {
		if (grantee_same(&unit->grants[i], grantee))
			return &unit->grants[i];
	}
	return NULL;
}

/* Allocates space for one more grant; the unit itself has space for the first one. */
static int grants_grow_locked(struct nabc_unit *unit)
{
	struct nabc_grantee *old = unit->grants == &unit->first ? NULL : unit->grants;
	struct nabc_grantee *more;

	if (!old && !unit->grant_count) {
		unit->grants = &unit->first;
		return 0;
	}
	more = krealloc(old, (unit->grant_count + 1) * sizeof(*more), GFP_KERNEL_ACCOUNT);
	if (!more)
		return -ENOMEM;
	if (!old)
		more[0] = unit->first;
	unit->grants = more;
	return 0;
}

/*
 * Replaces the grant to that grantee and returns 0, or adds it and returns 1: the
 * unit then owns its reference.
 */
static int grant_locked(struct nabc_unit *unit, const struct nabc_grantee *grantee)
{
	struct nabc_grantee *at = granted_locked(unit, grantee);
	int ret;

	if (at) {
		at->rights = grantee->rights;
		if (at->kind == NABC_PRINCIPAL_PROCESS)
			at->program.exec = grantee->program.exec;
		return 0;
	}
	if (unit->grant_count == NABC_GRANTS_MAX)
		return -ENOSPC;
	ret = grants_grow_locked(unit);
	if (ret)
		return ret;
	unit->grants[unit->grant_count++] = *grantee;
	return 1;
}

/* Removes the grant to that grantee, and drops the grant's reference. */
static int revoke_locked(struct nabc_unit *unit, const struct nabc_grantee *grantee)
{
	struct nabc_grantee *at = granted_locked(unit, grantee);

	if (!at)
		return -ENOENT;
	grantee_put(at);
	*at = unit->grants[--unit->grant_count];
	return 0;
}

static int grant_change(struct nabc_file *file, const struct nabc_grant *call, bool revoke)
{
	struct nabc_grantee grantee = {};
	struct nabc_unit *unit;
	int ret;

	ret = grantee_find(call->principal, call->who, call->rights, &grantee);
	if (ret)
		return ret;
	if (!revoke && !grantee_settle(&grantee)) {
		ret = -ESRCH;
		goto out;
	}
	unit = nabc_unit_get(call->id);
	if (!unit) {
		ret = -ENOENT;
		goto out;
	}
	mutex_lock(&unit->lock);
	if (!nabc_known_locked(unit, file))
		ret = -ENOENT;
	else if (!nabc_is_maker(unit, file))
		ret = -EACCES;
	else
		ret = revoke ? revoke_locked(unit, &grantee) : grant_locked(unit, &grantee);
	mutex_unlock(&unit->lock);
	nabc_unit_put(unit);
out:
	if (ret <= 0)
		grantee_put(&grantee);
	return min(ret, 0);
}

bool nabc_rights_valid(u32 rights)
{
	return rights && !(rights & ~NABC_RIGHTS_ALL);
}

/* For a unit that is not published yet. */
int nabc_grant_first(struct nabc_unit *unit, u32 principal, u32 who, u32 rights)
{
	int ret = grantee_find(principal, who, rights, &unit->first);

	if (ret)
		return ret;
	/* The unit owns the reference from now on. */
	unit->grants = &unit->first;
	unit->grant_count = 1;
	return grantee_settle(&unit->first) ? 0 : -ESRCH;
}

int nabc_grant(struct nabc_file *file, const struct nabc_grant *call)
{
	if (call->flags || !nabc_rights_valid(call->rights))
		return -EINVAL;
	return grant_change(file, call, false);
}

int nabc_revoke(struct nabc_file *file, const struct nabc_grant *call)
{
	if (call->flags || call->rights)
		return -EINVAL;
	return grant_change(file, call, true);
}

void nabc_grants_free(struct nabc_unit *unit)
{
	while (unit->grant_count)
		grantee_put(&unit->grants[--unit->grant_count]);
	if (unit->grants != &unit->first)
		kfree(unit->grants);
}
