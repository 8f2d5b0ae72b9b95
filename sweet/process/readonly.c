/* SPDX-License-Identifier: MIT */
/*
 * readonly.c - see readonly.h.
 *
 * Landlock (Linux 5.13) needs no privilege.  Where it is missing, root can create a
 * mount namespace in which everything is mounted read-only (Linux 5.12).  The
 * kernel's structures are declared here, because the C library's headers are often
 * older than the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/readonly.h"

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* --- Landlock -------------------------------------------------------------------- */

#define RULESET_VERSION 1u
#define RULE_PATH_BENEATH 1

enum access {
	WRITE_FILE = 1 << 1,
	REMOVE_DIR = 1 << 4,
	REMOVE_FILE = 1 << 5,
	MAKE_CHAR = 1 << 6,
	MAKE_DIR = 1 << 7,
	MAKE_REG = 1 << 8,
	MAKE_SOCK = 1 << 9,
	MAKE_FIFO = 1 << 10,
	MAKE_BLOCK = 1 << 11,
	MAKE_SYM = 1 << 12,
	REFER = 1 << 13,    /* since version 2 */
	TRUNCATE = 1 << 14, /* since version 3 */
};

struct ruleset {
	uint64_t handled_fs;
};

struct path_beneath {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

static void allow(int ruleset, const char *path, uint64_t access)
{
	struct path_beneath rule = {.allowed = access, .parent = open(path, O_PATH | O_CLOEXEC)};

	if (rule.parent < 0)
		return;
	(void)syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0);
	close(rule.parent);
}

static int landlock_enter(const char *const *writable)
{
	struct ruleset rules = {.handled_fs = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_CHAR |
					      MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO |
					      MAKE_BLOCK | MAKE_SYM};
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION);
	uint64_t on_files = WRITE_FILE;
	int ruleset, error = 0;

	if (version < 0)
		return -errno;
	if (version >= 2)
		rules.handled_fs |= REFER;
	if (version >= 3) {
		rules.handled_fs |= TRUNCATE;
		on_files |= TRUNCATE;
	}
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
	if (ruleset < 0)
		return -errno;
	/*
	 * Programs discard output in the first; the second is the kernel module,
	 * which stores no file.
	 */
	allow(ruleset, "/dev/null", on_files);
	allow(ruleset, "/dev/nabc", on_files);
	for (; *writable; writable++)
		allow(ruleset, *writable, rules.handled_fs);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		error = -errno;
	close(ruleset);
	return error;
}

/* --- a mount namespace --------------------------------------------------------------- */

#define ATTRIBUTE_RDONLY 1u

struct attributes {
	uint64_t set, clear, propagation, user_namespace;
};

static int set_attributes(const char *path, uint64_t set, uint64_t clear)
{
	struct attributes attributes = {.set = set, .clear = clear};

	return syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &attributes,
		       sizeof(attributes)) < 0
		       ? -errno
		       : 0;
}

static int mounts_enter(const char *const *writable)
{
	int error;

	if (unshare(CLONE_NEWNS) < 0)
		return -errno;
	/* Mounts made here stay private; later mounts of the system still arrive. */
	if (mount("none", "/", "none", MS_REC | MS_SLAVE, NULL) < 0)
		return -errno;
	for (unsigned i = 0; writable[i]; i++)
		if (mount(writable[i], writable[i], "none", MS_BIND | MS_REC, NULL) < 0 &&
		    errno != ENOENT)
			return -errno;
	error = set_attributes("/", ATTRIBUTE_RDONLY, 0);
	for (unsigned i = 0; writable[i] && !error; i++) {
		error = set_attributes(writable[i], 0, ATTRIBUTE_RDONLY);
		if (error == -ENOENT)
			error = 0;
	}
	return error;
}

/* --- either --------------------------------------------------------------------------- */

const struct readonly_method readonly_methods[] = {
	{"Landlock", landlock_enter}, {"a mount namespace", mounts_enter}, {NULL, NULL}};

bool readonly_enter(const char *const *writable, char *how, size_t size)
{
	size_t length = 0;

	*how = '\0';
	for (const struct readonly_method *method = readonly_methods; method->name; method++) {
		int error = method->enter(writable);

		if (!error) {
			snprintf(how, size, "%s", method->name);
			return true;
		}
		if (length < size)
			length += (size_t)snprintf(how + length, size - length, "%s%s: %s",
						   length ? "; " : "", method->name,
						   strerror(-error));
	}
	return false;
}
