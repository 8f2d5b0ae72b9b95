/* SPDX-License-Identifier: MIT */
/*
 * docroot-fixture.h - a root with traps in it, in a folder of the test's own, and a process without
 * openat2(); single-threaded.
 */
#ifndef DOCROOT_FIXTURE_H
#define DOCROOT_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "files/docroot.h"

#include "suite.h"

static char base[64]; /* contains the root, and files that must be out of reach */
static struct docroot root;

/* Path of a file; valid until the next call but one. */
static inline const char *at(const char *name)
{
	static char paths[2][256];
	static unsigned turn;
	char *path = paths[turn++ % 2];

	snprintf(path, sizeof(paths[0]), "%s/%s", base, name);
	return path;
}

static inline void put(const char *name, const char *text)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static inline void link_to(const char *target, const char *name)
{
	ck_assert_int_eq(symlink(target, at(name)), 0);
}

static inline void set_up(void)
{
	struct sockaddr_un where = {.sun_family = AF_UNIX};
	int fd;

	make_directory(base);
	ck_assert_int_eq(mkdir(at("root"), 0755), 0);
	ck_assert_int_eq(mkdir(at("root/sub"), 0755), 0);
	ck_assert_int_eq(mkdir(at("root/sub/deep"), 0755), 0);
	ck_assert_int_eq(mkdir(at("root-secret"), 0755), 0);
	put("secret", "secret");
	put("root-secret/file", "secret");
	put("root/file", "file");
	put("root/empty", "");
	put("root/sub/file", "sub");
	put("root/sub/deep/file", "deep");
	put("root/ and \xc3\xa4?", "name");
	link_to("file", "root/to-file");
	link_to("sub", "root/to-sub");
	link_to("../file", "root/sub/up");
	link_to("to-file", "root/to-link");
	link_to("sub/../sub/deep/../file", "root/winding");
	link_to("../secret", "root/out");
	link_to("..", "root/out-folder");
	link_to("../../secret", "root/sub/out");
	link_to("/etc/passwd", "root/absolute");
	link_to("sub/../../root/file", "root/out-and-back");
	link_to("loop-b", "root/loop-a");
	link_to("loop-a", "root/loop-b");
	link_to("nothing", "root/dangling");
	link_to("/proc/self/fd/0", "root/magic");
	ck_assert_int_eq(mkfifo(at("root/fifo"), 0644), 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strcpy(where.sun_path, base);
	strcat(where.sun_path, "/root/socket");
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&where, sizeof(where)), 0);
	close(fd);
	/* The absolute path is inside the root, but must still be refused. */
	{
		char inside[256];

		snprintf(inside, sizeof(inside), "%s/root/file", base);
		link_to(inside, "root/absolute-inside");
	}
	root.fd = docroot_open(at("root"));
	ck_assert_int_ge(root.fd, 0);
}

static inline void tear_down(void)
{
	static const char *const names[] = {"root/file",
					    "root/empty",
					    "root/sub/file",
					    "root/sub/deep/file",
					    "root/ and \xc3\xa4?",
					    "root/to-file",
					    "root/to-sub",
					    "root/sub/up",
					    "root/to-link",
					    "root/winding",
					    "root/out",
					    "root/out-folder",
					    "root/sub/out",
					    "root/absolute",
					    "root/out-and-back",
					    "root/loop-a",
					    "root/loop-b",
					    "root/dangling",
					    "root/magic",
					    "root/fifo",
					    "root/socket",
					    "root/absolute-inside",
					    "root-secret/file",
					    "secret"};
	static const char *const folders[] = {"root/sub/deep", "root/sub", "root", "root-secret",
					      ""};

	close(root.fd);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_int_eq(unlink(at(names[i])), 0);
	for (unsigned i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		ck_assert_int_eq(rmdir(at(folders[i])), 0);
}

/* From now on openat2() is unavailable to this process. */
static inline void hide_openat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	ck_assert(!has_openat2());
}

#endif
