/* SPDX-License-Identifier: MIT */
/*
 * test-spawner.c - unit tests of spawner.c with a real spawner: the initial state of
 * programs, refused requests, and how exits are reported.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/privileges.h"
#include "spawn/spawner-program.h"
#include "spawn/spawner-wire.h"
#include "spawn/spawner.h"

#include "loop-fixture.h"
#include "spawner-fixture.h"
#include "suite.h"

/* --- one request, until it is complete ----------------------------------------------------- */

static void send_term(void *argument)
{
	spawner_signal(argument, SIGTERM);
}

static void send_kill(void *argument)
{
	spawner_signal(argument, SIGKILL);
}

/* --- the initial state of a program ------------------------------------------------------- */

START_TEST(test_run)
{
	const struct spawner_program programs[] = {
		SHELL("echo $$ $0 $REQUEST_METHOD $HTTP_A; pwd; exit 3")};
	static const char block[] = "REQUEST_METHOD=GET\0HTTP_A=b";
	char expected[128];
	struct job job;

	setenv("SERVERS_OWN", "secret", 1);
	begin(programs, 1);
	job_init(&job, 0, NULL);
	job.start.block = block;
	job.start.block_length = sizeof(block);
	job_start(&job);
	ck_assert_int_eq(job.error, 0);
	snprintf(expected, sizeof(expected), "%d sh GET b\n/\n", (int)job.start.pid);
	ck_assert_str_eq(read_to_end(job.output), expected);
	await(job.pidfd, POLLIN);
	AWAIT(job.ended);
	ck_assert(WIFEXITED(job.status) && WEXITSTATUS(job.status) == 3);
	job_clear(&job);
	end();
}
END_TEST

/* Nothing of the server's environment is inherited. */
START_TEST(test_environment)
{
	const struct spawner_program programs[] = {
		{.path = "/usr/bin/env", .argv = (char *const[]){"env", NULL}, .variables = base},
		{.path = "/usr/bin/env", .argv = (char *const[]){"env", NULL}}};

	setenv("SERVERS_OWN", "secret", 1);
	begin(programs, 2);
	ck_assert_str_eq(output_of(0, NULL), "PATH=/usr/bin:/bin\n");
	ck_assert_str_eq(output_of(1, NULL), "");
	end();
}
END_TEST

#define LIST "for i in $(seq 0 199); do [ -e /proc/$$/fd/$i ] && printf '%s ' $i; done; :"

START_TEST(test_descriptors)
{
	const struct spawner_program programs[] = {
		SHELL(LIST), SHELL("cat; readlink /proc/$$/fd/0; echo to errors >&2"),
		SHELL("cat; cat <&3"), SHELL("readlink /proc/$$/fd/2")};
	int opened[40], input[2], errors[2], more[2];
	struct job job;

	for (unsigned i = 0; i < 40; i++)
		opened[i] = open("/dev/null", O_RDONLY); /* not close-on-exec */
	begin(programs, 4);
	ck_assert_str_eq(output_of(0, NULL), "0 1 2 ");
	/* Not that of the spawner, which is the server's. */
	ck_assert_str_eq(output_of(3, NULL), "/dev/null\n");
	ck_assert_str_eq(output_of(1, NULL), "/dev/null\n");
	/* All four, and each its own. */
	ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(errors, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(more, O_CLOEXEC), 0);
	job_init(&job, 0, NULL);
	job.start.fds[0] = input[0];
	job.start.fds[2] = errors[1];
	job.start.fds[3] = more[0];
	job_start(&job);
	ck_assert_str_eq(read_to_end(job.output), "0 1 2 3 ");
	AWAIT(job.ended);
	job_clear(&job);
	job_init(&job, 1, NULL);
	job.start.fds[2] = errors[1];
	job_start(&job);
	close(errors[1]);
	ck_assert_str_eq(read_to_end(job.output), "/dev/null\n");
	ck_assert_str_eq(read_to_end(errors[0]), "to errors\n");
	AWAIT(job.ended);
	job_clear(&job);
	job_init(&job, 2, NULL);
	job.start.fds[0] = input[0];
	job.start.fds[3] = more[0];
	job_start(&job);
	ck_assert_int_eq(write(input[1], "input, ", 7), 7);
	ck_assert_int_eq(write(more[1], "more", 4), 4);
	close(input[1]);
	close(more[1]);
	ck_assert_str_eq(read_to_end(job.output), "input, more");
	AWAIT(job.ended);
	job_clear(&job);
	close(input[0]);
	close(errors[0]);
	close(more[0]);
	for (unsigned i = 0; i < 40; i++)
		close(opened[i]);
	end();
}
END_TEST

START_TEST(test_nothing_left_open)
{
	const struct spawner_program programs[] = {
		SHELL(":"), {.path = "/nonexistent/program", .argv = (char *const[]){"x", NULL}}};
	unsigned before;

	begin(programs, 2);
	(void)output_of(0, NULL);
	before = open_descriptors();
	for (unsigned i = 0; i < scaled(40); i++) {
		(void)output_of(0, NULL);
		ck_assert_int_eq(error_of(1, NULL), ENOENT);
	}
	ck_assert_uint_eq(open_descriptors(), before);
	/* Nor in the spawner: the number of a program's first descriptor shows that. */
	ck_assert_int_eq(error_of(1, NULL), ENOENT);
	end();
}
END_TEST

/* A program counts the descriptors of the idle spawner. */
START_TEST(test_starters_descriptors)
{
	const struct spawner_program programs[] = {
		SHELL("read line; ls /proc/$PPID/fd | wc -l"),
		{.path = "/nonexistent/program", .argv = (char *const[]){"x", NULL}}};
	char first[16] = "";

	if (geteuid() != 0) {
		printf("spawner: not root, its descriptors are not to be seen\n");
		return;
	}
	begin(programs, 2);
	for (unsigned i = 0; i < 5; i++) {
		struct job job;
		int input[2];

		ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
		job_init(&job, 0, NULL);
		job.start.fds[0] = input[0];
		job_start(&job);
		(void)error_of(1, NULL);
		close_pair(input);
		if (!first[0])
			snprintf(first, sizeof(first), "%.15s", read_to_end(job.output));
		else
			ck_assert_str_eq(read_to_end(job.output), first);
		AWAIT(job.ended);
		job_clear(&job);
	}
	end();
}
END_TEST

START_TEST(test_signals)
{
	const struct spawner_program programs[] = {
		{.path = "/bin/grep",
		 .argv = (char *const[]){"grep", "-E", "Sig(Blk|Ign)", "/proc/self/status", NULL}},
		SHELL("kill -TERM $$")};
	unsigned long long blocked, ignored;
	const char *output;
	struct job job;
	sigset_t all;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	begin(programs, 2);
	output = output_of(0, NULL);
	ck_assert_int_eq(sscanf(output, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
	ck_assert_uint_eq(blocked, 0);
	/* Except two that belong to the C library, which does not permit setting them. */
	ck_assert_uint_eq(ignored & ~0x180000000ull, 0);
	job_init(&job, 1, NULL);
	job_start(&job);
	AWAIT(job.ended);
	ck_assert(WIFSIGNALED(job.status) && WTERMSIG(job.status) == SIGTERM);
	job_clear(&job);
	end();
}
END_TEST

START_TEST(test_limits)
{
	const struct spawner_program programs[] = {
		{.path = "/bin/sh",
		 .argv = (char *const[]){"sh", "-c",
					 "ulimit -v; ulimit -t; ulimit -n; ulimit -Hn; nice; pwd",
					 NULL},
		 .variables = base,
		 .directory = "/proc",
		 .memory = UINT64_C(1) << 30,
		 .seconds = 7,
		 .files = 33,
		 .nice = 3},
		SHELL("ulimit -n")};
	struct rlimit limit;
	char expected[64];

	if (no_uring()) {
		printf("spawner: skipped: Valgrind keeps limits to itself\n");
		return;
	}
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 2000;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	begin(programs, 2);
	/* The nice value of the user who runs the tests, plus the configured one. */
	snprintf(expected, sizeof(expected), "1048576\n7\n33\n33\n%d\n/proc\n",
		 MIN(getpriority(PRIO_PROCESS, 0) + 3, 19));
	ck_assert_str_eq(output_of(0, NULL), expected);
	ck_assert_str_eq(output_of(1, NULL), "1024\n");
	end();
}
END_TEST

START_TEST(test_refused)
{
	const struct spawner_program programs[] = {
		{.path = "/nonexistent/program", .argv = (char *const[]){"x", NULL}},
		{.path = "/etc/passwd", .argv = (char *const[]){"x", NULL}},
		{.path = "/bin", .argv = (char *const[]){"x", NULL}},
		{.path = "/bin/true", .argv = (char *const[]){"x", NULL}, .directory = "/none"},
		{.path = "/bin/true", .argv = (char *const[]){"x", NULL}}};
	struct job job;
	static char long_path[SPAWNER_PATH_MAX + 2];

	begin(programs, 5);
	ck_assert_int_eq(error_of(0, NULL), ENOENT);
	ck_assert_int_eq(error_of(1, NULL), EACCES);
	ck_assert_int_eq(error_of(2, NULL), EACCES);
	ck_assert_int_eq(error_of(3, NULL), ENOENT);
	ck_assert_int_eq(error_of(5, NULL), EBADMSG);
	ck_assert_int_eq(error_of(4, "page.sh"), EBADMSG);
	/* A request that cannot be expressed. */
	memset(long_path, 'a', sizeof(long_path) - 1);
	ck_assert_int_eq(error_of(4, long_path), ENAMETOOLONG);
	job_init(&job, 4, NULL);
	job.start.block = long_path;
	job.start.block_length = SPAWNER_BLOCK_MAX + 1;
	job_start(&job);
	ck_assert_int_eq(job.error, E2BIG);
	job_clear(&job);
	job_init(&job, 4, NULL);
	job.start.fds[0] = 9999;
	job_start(&job);
	ck_assert_int_eq(job.error, EBADF);
	job_clear(&job);
	(void)output_of(4, NULL);
	end();
}
END_TEST

/* --- a folder ---------------------------------------------------------------------------------- */

START_TEST(test_folder)
{
	static const char script[] = "#!/bin/sh\n"
				     "echo \"$0|$SCRIPT_NAME|$PATH_INFO|$SCRIPT_FILENAME|$(pwd)\"";
	char folder[64], expected[512], command[256];
	struct spawner_program programs[] = {{.folder = folder, .variables = base}};
	struct job job;

	make_directory(folder);
	snprintf(expected, sizeof(expected), "%s/sub", folder);
	ck_assert_int_eq(mkdir(expected, 0755), 0);
	write_file(folder, "page.sh", script, 0755);
	write_file(folder, "sub/page.sh", script, 0755);
	write_file(folder, "data", script, 0644);
	write_file(folder, "text", "echo no interpreter\n", 0755);
	write_file(folder, "lost", "#!/nonexistent/interpreter\n", 0755);
	begin(programs, 1);
	snprintf(expected, sizeof(expected), "%s/page.sh|/cgi/page.sh||%s/page.sh|%s\n", folder,
		 folder, folder);
	ck_assert_str_eq(output_of(0, "page.sh"), expected);
	snprintf(expected, sizeof(expected),
		 "%s/sub/page.sh|/cgi/sub/page.sh|/a/../b|%s/sub/page.sh|%s/sub\n", folder, folder,
		 folder);
	ck_assert_str_eq(output_of(0, "sub/page.sh/a/../b"), expected);
	job_init(&job, 0, "sub/page.sh/more");
	job_start(&job);
	ck_assert_uint_eq(job.start.script_length, strlen("sub/page.sh"));
	AWAIT(job.ended);
	job_clear(&job);
	ck_assert_int_eq(error_of(0, "none"), ENOENT);
	ck_assert_int_eq(error_of(0, "../bin/true"), ENOENT);
	ck_assert_int_eq(error_of(0, "sub"), EISDIR);
	ck_assert_int_eq(error_of(0, "data"), EACCES);
	ck_assert_int_eq(error_of(0, "text"), ENOEXEC);
	if (!no_uring()) /* this one crashes Valgrind */
		ck_assert_int_eq(error_of(0, "lost"), ENOENT);
	/* Another folder in its place. */
	snprintf(command, sizeof(command), "mv %s %s.old && mkdir %s", folder, folder, folder);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(error_of(0, "page.sh"), ENOENT);
	end();
	snprintf(command, sizeof(command), "rm -r %s %s.old", folder, folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

/* --- users ------------------------------------------------------------------------------------------ */

START_TEST(test_user)
{
	gid_t groups[] = {54321, 23};
	const struct privileges other = {.user = true,
					 .group = true,
					 .uid = 54321,
					 .gid = 12345,
					 .groups = groups,
					 .group_count = 2};
	const struct privileges group = {
		.group = true, .uid = 0, .gid = 12345, .groups = groups, .group_count = 1};
	char *const list[] = {
		"sh", "-c",
		"id -u; id -g; id -G; grep -E 'Uid|Gid|Cap(Inh|Prm|Eff|Amb)|NoNew' /proc/$$/status",
		NULL};
	char folder[64], command[256];
	struct spawner_program programs[] = {
		{.path = "/bin/sh", .argv = list, .variables = base, .privileges = &other},
		{.path = "/bin/sh", .argv = list, .variables = base, .privileges = &group},
		{.folder = folder, .privileges = &other}};
	char *why;

	if (geteuid() != 0) {
		ck_assert_ptr_null(spawner_open(programs, 1, 1, &why));
		ck_assert_msg(strstr(why, "54321") && strstr(why, "root"), "%s", why);
		g_free(why);
		return;
	}
	make_directory(folder);
	ck_assert_int_eq(chmod(folder, 0755), 0);
	write_file(folder, "mine.sh", "#!/bin/sh\necho mine\n", 0700);
	write_file(folder, "all.sh", "#!/bin/sh\necho all\n", 0755);
	begin(programs, 3);
	ck_assert_str_eq(output_of(0, NULL), "54321\n12345\n12345 23 54321\n"
					     "Uid:\t54321\t54321\t54321\t54321\n"
					     "Gid:\t12345\t12345\t12345\t12345\n"
					     "CapInh:\t0000000000000000\n"
					     "CapPrm:\t0000000000000000\n"
					     "CapEff:\t0000000000000000\n"
					     "CapAmb:\t0000000000000000\n"
					     "NoNewPrivs:\t1\n");
	ck_assert_ptr_nonnull(strstr(output_of(1, NULL), "0\n12345\n12345 54321\n"));
	ck_assert_int_eq(error_of(2, "mine.sh"), EACCES);
	ck_assert_str_eq(output_of(2, "all.sh"), "all\n");
	end();
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

/* After dropping root, it still starts programs of another user, and stops them. */
START_TEST(test_after_the_drop)
{
	gid_t groups[] = {12345};
	const struct privileges other = {.user = true,
					 .group = true,
					 .uid = 54321,
					 .gid = 12345,
					 .groups = groups,
					 .group_count = 1};
	struct spawner_program programs[] = {SHELL("id -u; echo ready; sleep 1000")};
	struct job job;
	char line[32];

	if (geteuid() != 0) {
		printf("spawner: not root, nothing to drop\n");
		return;
	}
	programs[0].privileges = &other;
	begin(programs, 1);
	ck_assert_int_eq(setgroups(0, NULL), 0);
	ck_assert_int_eq(setresgid(54000, 54000, 54000), 0);
	ck_assert_int_eq(setresuid(54000, 54000, 54000), 0);
	job_init(&job, 0, NULL);
	job_start(&job);
	ck_assert_int_eq(job.error, 0);
	read_exactly(job.output, line, 12);
	ck_assert(memcmp(line, "54321\nready\n", 12) == 0);
	ck_assert_int_lt(kill(job.start.pid, SIGKILL), 0);
	call(&runner, send_kill, &job.start);
	AWAIT(job.ended);
	ck_assert(WIFSIGNALED(job.status) && WTERMSIG(job.status) == SIGKILL);
	ck_assert_str_eq(read_to_end(job.output), "");
	job_clear(&job);
	end();
}
END_TEST

/* --- ends ------------------------------------------------------------------------------------------- */

START_TEST(test_signal)
{
	const struct spawner_program programs[] = {
		SHELL("trap 'echo caught' TERM; sleep 1000 & echo ready; wait; wait; sleep 1000")};
	struct job job;
	char line[16];

	begin(programs, 1);
	job_init(&job, 0, NULL);
	job_start(&job);
	read_exactly(job.output, line, 6);
	call(&runner, send_term, &job.start);
	read_exactly(job.output, line, 7);
	ck_assert(memcmp(line, "caught\n", 7) == 0);
	call(&runner, send_kill, &job.start);
	/* Also other processes that have its output. */
	ck_assert_str_eq(read_to_end(job.output), "");
	AWAIT(job.ended);
	ck_assert(WIFSIGNALED(job.status) && WTERMSIG(job.status) == SIGKILL);
	call(&runner, send_kill, &job.start); /* already exited */
	job_clear(&job);
	end();
}
END_TEST

/* What a program leaves in its group keeps its place, and can be signalled. */
START_TEST(test_left)
{
	const struct spawner_program programs[] = {SHELL("sleep 1000 & exit 3"), SHELL(":")};
	struct job job, other;

	begin(programs, 2);
	job_init(&job, 0, NULL);
	job_start(&job);
	AWAIT(job.ended);
	ck_assert(WIFEXITED(job.status) && WEXITSTATUS(job.status) == 3);
	ck_assert_uint_eq(job.start.place, 0);
	job_init(&other, 1, NULL);
	job_start(&other);
	ck_assert_uint_eq(other.start.place, 1);
	AWAIT(other.ended);
	job_clear(&other);
	SEEN(!job.gone);
	call(&runner, send_term, &job.start);
	ck_assert_str_eq(read_to_end(job.output), "");
	AWAIT(job.gone);
	job_clear(&job);
	/* It can be used again. */
	job_init(&other, 1, NULL);
	job_start(&other);
	ck_assert_uint_eq(other.start.place, 0);
	AWAIT(other.ended);
	job_clear(&other);
	end();
}
END_TEST

/* Without a signal: the end of the last one is reported, also of a grandchild. */
START_TEST(test_left_ends_by_itself)
{
	const struct spawner_program programs[] = {SHELL("(read line; (read line) <&3 &) <&3 &"),
						   SHELL("setsid sh -c 'echo; read line' <&3 &")};
	struct job job;
	char line[4];
	int input[2];

	begin(programs, 2);
	ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
	job_init(&job, 0, NULL);
	job.start.fds[3] = input[0];
	job_start(&job);
	AWAIT(job.ended);
	ck_assert_int_eq(write(input[1], "1\n", 2), 2);
	SEEN(!job.gone);
	ck_assert_int_eq(write(input[1], "2\n", 2), 2);
	AWAIT(job.gone);
	job_clear(&job);
	/* A process of another session is no part of the program. */
	job_init(&job, 1, NULL);
	job.start.fds[3] = input[0];
	job_start(&job);
	read_exactly(job.output, line, 1);
	AWAIT(job.gone);
	close_pair(input);
	ck_assert_str_eq(read_to_end(job.output), "");
	job_clear(&job);
	end();
}
END_TEST

START_TEST(test_left_ends_with_the_channel)
{
	const struct spawner_program programs[] = {SHELL("sleep 1000 & exit 3")};
	struct job job;

	begin(programs, 1);
	job_init(&job, 0, NULL);
	job_start(&job);
	AWAIT(job.ended);
	end();
	ck_assert_str_eq(read_to_end(job.output), "");
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_run);
	tcase_add_test(tcase, test_environment);
	tcase_add_test(tcase, test_descriptors);
	tcase_add_test(tcase, test_nothing_left_open);
	tcase_add_test(tcase, test_starters_descriptors);
	tcase_add_test(tcase, test_signals);
	tcase_add_test(tcase, test_limits);
	tcase_add_test(tcase, test_refused);
	tcase_add_test(tcase, test_folder);
	tcase_add_test(tcase, test_user);
	tcase_add_test(tcase, test_after_the_drop);
	tcase_add_test(tcase, test_signal);
	tcase_add_test(tcase, test_left);
	tcase_add_test(tcase, test_left_ends_by_itself);
	tcase_add_test(tcase, test_left_ends_with_the_channel);
}

RUN_SUITE("spawner", fill)
