/* SPDX-License-Identifier: MIT */
/*
 * privileges.c - see privileges.h.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <glib.h>

#include "process/privileges.h"

#define ID_MAX ((guint64)(uid_t)(-1) - 1) /* -1 means "unchanged" in the system calls */

static bool fail(char **why, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fail(char **why, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	*why = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	return false;
}

static bool read_id(const char *text, guint64 *id)
{
	return g_ascii_string_to_unsigned(text, 10, 0, ID_MAX, id, NULL);
}

static bool find_group(struct privileges *privileges, const char *name, char **why)
{
	const struct group *group = getgrnam(name);
	guint64 id;

	if (!group && !read_id(name, &id))
		return fail(why, "group \"%s\": there is no such group", name);
	privileges->gid = group ? group->gr_gid : (gid_t)id;
	privileges->group = true;
	return true;
}

/* Finds the supplementary groups of a user, and gid. */
static void find_groups(struct privileges *privileges, const char *name)
{
	int room = 32;

	do {
		privileges->group_count = room;
		privileges->groups = g_renew(gid_t, privileges->groups, room);
		room *= 2;
	} while (name && getgrouplist(name, privileges->gid, privileges->groups,
				      &privileges->group_count) < 0);
	if (!name) {
		privileges->groups[0] = privileges->gid;
		privileges->group_count = 1;
	}
}

bool privileges_find(struct privileges *privileges, const char *user, const char *group, char **why)
{
	const struct passwd *passwd = NULL;
	guint64 id;

	*privileges = (struct privileges){.uid = geteuid(), .gid = getegid()};
	*why = NULL;
	if (user) {
		passwd = getpwnam(user);
		if (!passwd && read_id(user, &id))
			passwd = getpwuid((uid_t)id);
		else if (!passwd)
			return fail(why, "user \"%s\": there is no such user", user);
		if (!passwd && !group)
			return fail(why, "user \"%s\": a group is needed for a user without a name",
				    user);
		privileges->user = privileges->group = true;
		privileges->uid = passwd ? passwd->pw_uid : (uid_t)id;
		privileges->gid = passwd ? passwd->pw_gid : (gid_t)-1;
	}
	if (group && !find_group(privileges, group, why)) {
		privileges_clear(privileges);
		return false;
	}
	if (privileges->group)
		find_groups(privileges, passwd ? passwd->pw_name : NULL);
	return true;
}

void privileges_clear(struct privileges *privileges)
{
	g_free(privileges->groups);
	*privileges = (struct privileges){0};
}

void privileges_give(const struct privileges *privileges, int fd)
{
	struct stat file;

	if (privileges->user && fd >= 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
	    file.st_uid == geteuid() && file.st_nlink == 1)
		(void)!fchown(fd, privileges->uid, privileges->gid);
}

/* Returns true if all ids of this process are already that user and group. */
static bool is_already(const struct privileges *privileges)
{
	uid_t uid, euid, suid;
	gid_t gid, egid, sgid;

	return getresuid(&uid, &euid, &suid) == 0 && getresgid(&gid, &egid, &sgid) == 0 &&
	       uid == privileges->uid && euid == uid && suid == uid && gid == privileges->gid &&
	       egid == gid && sgid == gid;
}

/* Includes those kept across the change of user by securebits. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}}, now[2] = {{0}};

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &header, none) < 0 || syscall(SYS_capget, &header, now) < 0)
		return -errno;
	return memcmp(now, none, sizeof(now)) == 0 ? 0 : -EPERM;
}

/* Tries the calls that must fail now. */
static bool can_come_back(const struct privileges *privileges)
{
	if (setuid(0) == 0 || seteuid(0) == 0 || setreuid((uid_t)-1, 0) == 0)
		return true;
	return privileges->gid != 0 && (setgid(0) == 0 || setegid(0) == 0);
}

bool privileges_drop(const struct privileges *privileges, char **why)
{
	int error;

	*why = NULL;
	if (!privileges->group)
		return true;
	if (is_already(privileges) && privileges->uid != 0)
		return true;
	if (geteuid() != 0)
		return fail(why,
			    "cannot become user %lu, group %lu: only root can (leave out user and "
			    "group, or start as root)",
			    (unsigned long)privileges->uid, (unsigned long)privileges->gid);
	if (setgroups((size_t)privileges->group_count, privileges->groups) < 0)
		return fail(why, "cannot drop the groups of root: %s", strerror(errno));
	if (setresgid(privileges->gid, privileges->gid, privileges->gid) < 0)
		return fail(why, "cannot become group %lu: %s", (unsigned long)privileges->gid,
			    strerror(errno));
	if (setresuid(privileges->uid, privileges->uid, privileges->uid) < 0)
		return fail(why, "cannot become user %lu: %s", (unsigned long)privileges->uid,
			    strerror(errno));
	if (privileges->uid == 0)
		return true;
	error = drop_capabilities();
	if (error)
		return fail(why, "cannot drop the capabilities: %s", strerror(-error));
	if (!is_already(privileges) || can_come_back(privileges))
		return fail(why, "user %lu could become root again",
			    (unsigned long)privileges->uid);
	return true;
}

int privileges_limit(uint64_t own, uint64_t programs)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct now[2] = {{0}};

	/* If this fails for lack of CAP_SETPCAP, programs cannot gain capabilities anyway. */
	for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (i > 63 || !(programs >> i & 1))
			(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (syscall(SYS_capget, &header, now) < 0)
		return -errno;
	for (unsigned i = 0; i < 2; i++) {
		now[i].permitted &= (uint32_t)(own >> 32 * i);
		now[i].effective &= (uint32_t)(own >> 32 * i);
		now[i].inheritable &= (uint32_t)(programs >> 32 * i);
	}
	return syscall(SYS_capset, &header, now) < 0 ? -errno : 0;
}

int privileges_trim(void)
{
	/*
	 * Access to all files, privileged ports, locked memory and limits, and for
	 * programs that change their user themselves, the ids.
	 */
	static const int kept[] = {CAP_CHOWN,	 CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH,
				   CAP_FOWNER,	 CAP_KILL,	   CAP_SETGID,
				   CAP_SETUID,	 CAP_SETPCAP,	   CAP_NET_BIND_SERVICE,
				   CAP_IPC_LOCK, CAP_SYS_NICE,	   CAP_SYS_RESOURCE};
	uint64_t all = 0;

	for (unsigned i = 0; i < G_N_ELEMENTS(kept); i++)
		all |= UINT64_C(1) << kept[i];
	return privileges_limit(all, all);
}

void privileges_raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int privileges_seal(void)
{
	int was = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	/*
	 * Before Linux 5.14, a process that is not dumpable could not read the pid
	 * of its own pidfds.
	 */
	if (access("/proc/self/fdinfo", X_OK) < 0 && errno == EACCES)
		(void)prctl(PR_SET_DUMPABLE, was, 0, 0, 0);
	return 0;
}
