/* SPDX-License-Identifier: MIT */
/*
 * test-privileges.c - unit tests of privileges.c: which users are found, and that
 * dropped privileges are gone.  Changes of the process are tested in a child; as root,
 * since other users have little to drop.
 */
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <glib.h>
#include <unistd.h>

#include "process/privileges.h"

#include "process-fixture.h"
#include "suite.h"

#define NUMBER "54321" /* a user without a name */

START_TEST(test_find)
{
	const struct passwd *nobody = getpwnam("nobody");
	struct privileges privileges;
	gid_t primary;
	char *why;

	ck_assert(privileges_find(&privileges, NULL, NULL, &why));
	ck_assert(!privileges.user && !privileges.group);
	privileges_clear(&privileges);
	ck_assert_ptr_nonnull(nobody);
	primary = nobody->pw_gid;
	ck_assert(privileges_find(&privileges, "nobody", NULL, &why));
	ck_assert(privileges.user && privileges.group);
	ck_assert_uint_eq(privileges.uid, getpwnam("nobody")->pw_uid);
	ck_assert_uint_eq(privileges.gid, primary);
	ck_assert_int_ge(privileges.group_count, 1);
	ck_assert_uint_eq(privileges.groups[0], primary);
	privileges_clear(&privileges);
	ck_assert(privileges_find(&privileges, "nobody", "daemon", &why));
	ck_assert_uint_eq(privileges.gid, getgrnam("daemon")->gr_gid);
	ck_assert_uint_eq(privileges.groups[0], privileges.gid);
	privileges_clear(&privileges);
	ck_assert(privileges_find(&privileges, NUMBER, "12345", &why));
	ck_assert_uint_eq(privileges.uid, 54321);
	ck_assert_uint_eq(privileges.gid, 12345);
	ck_assert_int_eq(privileges.group_count, 1);
	ck_assert_uint_eq(privileges.groups[0], 12345);
	privileges_clear(&privileges);
	/* A number that has a name. */
	ck_assert(privileges_find(&privileges, "0", NULL, &why));
	ck_assert_uint_eq(privileges.gid, getpwuid(0)->pw_gid);
	privileges_clear(&privileges);
}
END_TEST

START_TEST(test_find_nobody)
{
	static const char *const cases[][3] = {
		{"no-such-user", NULL, "no-such-user"},
		{"", NULL, "no such user"},
		{"-1", "0", "no such user"},
		{"4294967295", "0", "no such user"},
		{"4294967296", "0", "no such user"},
		{NUMBER, NULL, "a group is needed"},
		{"nobody", "no-such-group", "no-such-group"},
		{NULL, "", "no such group"},
		{NULL, "4294967295", "no such group"},
		{NULL, "1x", "no such group"},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct privileges privileges;
		char *why;

		ck_assert(!privileges_find(&privileges, cases[i][0], cases[i][1], &why));
		ck_assert_msg(strstr(why, cases[i][2]), "%s", why);
		g_free(why);
	}
}
END_TEST

/* --- in a child ------------------------------------------------------------------------ */

/* The line in /proc that shows a set of capabilities of the process. */
static bool status_says(const char *line)
{
	FILE *file = fopen("/proc/self/status", "re");
	char text[256];
	bool found = false;

	while (!found && fgets(text, sizeof(text), file))
		found = strncmp(text, line, strlen(line)) == 0;
	fclose(file);
	return found;
}

static bool drop(const char *user, const char *group, char **why)
{
	struct privileges privileges;
	bool good = privileges_find(&privileges, user, group, why);

	GOOD(good);
	good = privileges_drop(&privileges, why);
	privileges_clear(&privileges);
	return good;
}

static void dropped(void)
{
	gid_t groups[8];
	char *why;

	GOOD(drop(NUMBER, "12345", &why));
	GOOD(getuid() == 54321 && geteuid() == 54321 && getgid() == 12345 && getegid() == 12345);
	GOOD(getgroups(8, groups) == 1 && groups[0] == 12345);
	GOOD(setuid(0) < 0 && setgid(0) < 0 && setgroups(0, NULL) < 0);
	GOOD(status_says("CapPrm:\t0000000000000000") && status_says("CapEff:\t0000000000000000"));
	GOOD(status_says("CapInh:\t0000000000000000"));
	/* The same user again changes nothing; another one is refused. */
	GOOD(drop(NUMBER, "12345", &why));
	GOOD(!drop("54322", "12345", &why));
	GOOD(strstr(why, "54322") && strstr(why, "root"));
	g_free(why);
	GOOD(getuid() == 54321);
}

/* A bit that lets root's capabilities survive the change. */
static void dropped_with_kept_capabilities(void)
{
	char *why;

	GOOD(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
	GOOD(drop(NUMBER, "12345", &why));
	GOOD(status_says("CapPrm:\t0000000000000000") && status_says("CapEff:\t0000000000000000"));
	GOOD(setuid(0) < 0);
}

static void group_alone(void)
{
	char *why;

	GOOD(drop(NULL, "12345", &why));
	GOOD(geteuid() == 0 && getegid() == 12345);
}

static void nothing(void)
{
	gid_t groups[64];
	int before = getgroups(64, groups);
	char *why;

	GOOD(drop(NULL, NULL, &why));
	GOOD(geteuid() == 0 && getgroups(64, groups) == before);
}

static void given(void)
{
	struct privileges privileges;
	char path[] = "/tmp/nabc-test-XXXXXX", other[40], *why;
	int fd = mkostemp(path, O_CLOEXEC), null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct stat before, after;

	GOOD(fd >= 0 && privileges_find(&privileges, NUMBER, "12345", &why));
	/* That path may be a link to the file of another user. */
	snprintf(other, sizeof(other), "%s-link", path);
	GOOD(link(path, other) == 0);
	privileges_give(&privileges, fd);
	GOOD(fstat(fd, &after) == 0 && after.st_uid == 0);
	GOOD(unlink(other) == 0);
	privileges_give(&privileges, fd);
	GOOD(unlink(path) == 0);
	GOOD(fstat(fd, &after) == 0 && after.st_uid == 54321 && after.st_gid == 12345);
	/* Devices, and invalid descriptors, stay. */
	GOOD(fstat(null, &before) == 0);
	privileges_give(&privileges, null);
	privileges_give(&privileges, -1);
	GOOD(fstat(null, &after) == 0 && after.st_uid == before.st_uid);
	privileges_clear(&privileges);
	close(fd);
	close(null);
}

START_TEST(test_drop)
{
	if (geteuid() != 0) {
		printf("privileges: not root, nothing to drop\n");
		return;
	}
	in_child(dropped);
	in_child(dropped_with_kept_capabilities);
	in_child(group_alone);
	in_child(nothing);
	in_child(given);
}
END_TEST

static void sealed(void)
{
	GOOD(privileges_seal() == 0);
	GOOD(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	GOOD(privileges_seal() == 0);
}

START_TEST(test_seal)
{
	in_child(sealed);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_find);
	tcase_add_test(tcase, test_find_nobody);
	tcase_add_test(tcase, test_drop);
	tcase_add_test(tcase, test_seal);
}

RUN_SUITE("privileges", fill)
