/* SPDX-License-Identifier: MIT */
/*
 * test-spawner.c - unit tests of spawner.c with a real spawner: what programs
 * begin with, how their end is told, and who ends with whom.  The spawner is
 * forked before the loop's thread is there, as in the server.
 */
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <glib.h>

#include "spawn/spawner.h"

#include "loop-fixture.h"
#include "process-fixture.h"

#define SHELL(command)                                                                             \
	{                                                                                          \
		.path = "/bin/sh", .argv = (char *const[]){"sh", "-c", command, NULL},             \
		.variables = base                                                                  \
	}

static char *const base[] = {"PATH=/usr/bin:/bin", NULL};

/* --- one asking, until it is over ---------------------------------------------------------- */

struct job {
	struct start start; /* must be first */
	bool done, ended;
	int error, pidfd, status;
	int output;	/* what it writes */
	unsigned calls; /* of done() */
};

static struct runner runner;
static struct spawner *spawner;
static struct spawner_channel *channel;

static void job_done(struct start *start, int error, int pidfd)
{
	struct job *job = (struct job *)start;

	EVENT(job->done = true; job->calls++; job->error = error; job->pidfd = pidfd);
}

static void job_ended(struct start *start, int status)
{
	struct job *job = (struct job *)start;

	EVENT(job->ended = true; job->status = status; job->calls += 100);
}

static void attach(void *argument)
{
	(void)argument;
	expect(spawner_attach(channel, runner.loop) == 0);
}

static void begin(const struct spawner_program *programs, unsigned count)
{
	char *why;

	spawner = spawner_open(programs, count, 2, &why);
	ck_assert_ptr_nonnull(spawner);
	runner_start(&runner, any_kind());
	channel = spawner_channel(spawner, 0);
	call(&runner, attach, NULL);
}

static void end(void)
{
	runner_stop(&runner);
	spawner_close(spawner);
}

static void job_init(struct job *job, unsigned program, const char *script)
{
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	*job = (struct job){.start = {.program = program,
				      .mount = script ? "/cgi" : NULL,
				      .script = script,
				      .fds = {-1, ends[1], -1, -1},
				      .done = job_done,
				      .ended = job_ended},
			    .pidfd = -1,
			    .output = ends[0]};
}

static void ask(void *argument)
{
	struct job *job = argument;

	spawner_ask(channel, &job->start);
	expect(!job->done);
}

static void send_term(void *argument)
{
	spawner_signal(argument, SIGTERM);
}

static void send_kill(void *argument)
{
	spawner_signal(argument, SIGKILL);
}

/* Asks, and gives the descriptor away. */
static void job_start(struct job *job)
{
	call(&runner, ask, job);
	AWAIT(job->done);
	close(job->start.fds[1]);
	SEEN(job->calls % 100 == 1);
}

static void job_clear(struct job *job)
{
	if (job->pidfd >= 0)
		close(job->pidfd);
	close(job->output);
}

/* What a program writes until its end, which is a good one. */
static const char *output_of(unsigned program, const char *script)
{
	struct job job;
	const char *text;

	job_init(&job, program, script);
	job_start(&job);
	ck_assert_msg(job.error == 0, "%s", strerror(job.error));
	text = read_to_end(job.output);
	AWAIT(job.ended);
	ck_assert_int_eq(job.status, 0);
	job_clear(&job);
	return text;
}

static int error_of(unsigned program, const char *script)
{
	struct job job;

	job_init(&job, program, script);
	job_start(&job);
	ck_assert_int_eq(job.pidfd, -1);
	ck_assert_str_eq(read_to_end(job.output), "");
	job_clear(&job);
	return job.error;
}

/* --- what a program begins with --------------------------------------------------------------- */

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

/* Nothing of the server's environment. */
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
		SHELL("cat; cat <&3")};
	int opened[40], input[2], errors[2], more[2];
	struct job job;

	for (unsigned i = 0; i < 40; i++)
		opened[i] = open("/dev/null", O_RDONLY); /* not close-on-exec */
	begin(programs, 3);
	ck_assert_str_eq(output_of(0, NULL), "0 1 2 ");
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
	/* Nor in the spawner: a program's number for its first one tells. */
	ck_assert_int_eq(error_of(1, NULL), ENOENT);
	end();
}
END_TEST

/* The spawner's, counted by a program while the spawner has nothing to do. */
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
	/* But for two that are the C library's own, and that it lets nobody set. */
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
	/* As nice as who runs the tests, and more. */
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
	/* What cannot be said at all. */
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

static void write_file(const char *folder, const char *name, const char *text, mode_t mode)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
	ck_assert_int_eq(chmod(path, mode), 0);
}

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
	if (!no_uring()) /* Valgrind dies of this one */
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

/* Who gave up being root still starts programs of another user, and ends them. */
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
	/* Also who else has its output. */
	ck_assert_str_eq(read_to_end(job.output), "");
	AWAIT(job.ended);
	ck_assert(WIFSIGNALED(job.status) && WTERMSIG(job.status) == SIGKILL);
	call(&runner, send_kill, &job.start); /* nobody any more */
	job_clear(&job);
	end();
}
END_TEST

START_TEST(test_close_ends_programs)
{
	const struct spawner_program programs[] = {SHELL("sleep 1000 & sleep 1000")};
	struct job job;

	begin(programs, 1);
	job_init(&job, 0, NULL);
	job_start(&job);
	end();
	ck_assert_str_eq(read_to_end(job.output), "");
	ck_assert(!job.ended);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
	job_clear(&job);
}
END_TEST

/* A server that is killed takes spawner and programs with it. */
START_TEST(test_death_of_the_server)
{
	const struct spawner_program programs[] = {SHELL("echo; sleep 1000")};
	struct job job;
	pid_t server;
	char byte;

	job_init(&job, 0, NULL);
	server = fork_alone();
	if (server == 0) {
		begin(programs, 1);
		job_start(&job);
		for (;;)
			pause();
	}
	close(job.start.fds[1]);
	read_exactly(job.output, &byte, 1);
	end_child(server);
	ck_assert_str_eq(read_to_end(job.output), "");
	job_clear(&job);
}
END_TEST

#define SLEEPING SHELL("echo $PPID; exec sleep 1000")

/* Starts that; its spawner's pid. */
static pid_t start_sleeping(struct job *job, unsigned program)
{
	char line[16] = "";

	job_init(job, program, NULL);
	job_start(job);
	ck_assert_int_eq(job->error, 0);
	for (size_t i = 0; i < sizeof(line) - 1 && (i == 0 || line[i - 1] != '\n'); i++)
		read_exactly(job->output, line + i, 1);
	return (pid_t)atoi(line);
}

static void check_ended(struct job *job)
{
	AWAIT(job->ended);
	ck_assert_int_eq(job->status, -1);
	ck_assert_str_eq(read_to_end(job->output), "");
	job_clear(job);
}

/* A spawner that is killed takes its programs along; there is another, for all threads. */
START_TEST(test_death_of_the_spawner)
{
	const struct spawner_program programs[] = {SLEEPING, SHELL("echo next")};
	struct spawner_channel *other;
	struct job job, waited;
	pid_t first, second;
	int pidfd;

	begin(programs, 2);
	other = spawner_channel(spawner, 1);
	first = start_sleeping(&job, 0);
	ck_assert_int_eq(kill(first, SIGKILL), 0);
	check_ended(&job);
	ck_assert_str_eq(output_of(1, NULL), "next\n");
	/* The other thread has not looked yet. */
	job_init(&waited, 1, NULL);
	ck_assert_int_eq(spawner_run(other, &waited.start, &pidfd), 0);
	close(waited.start.fds[1]);
	ck_assert_str_eq(read_to_end(waited.output), "next\n");
	close(pidfd);
	job_clear(&waited);
	/* Nor is the second the last. */
	second = start_sleeping(&job, 0);
	ck_assert_int_ne(second, first);
	ck_assert_int_eq(kill(second, SIGKILL), 0);
	check_ended(&job);
	ck_assert_str_eq(output_of(1, NULL), "next\n");
	end();
}
END_TEST

/* A folder with a script, open to be leased: who starts it waits then in opening it. */
static int open_slow(char *folder)
{
	char path[80];
	int fd;

	make_directory(folder);
	write_file(folder, "slow.sh", "#!/bin/sh\n", 0755);
	snprintf(path, sizeof(path), "%s/slow.sh", folder);
	signal(SIGIO, SIG_IGN);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

/* What it was just starting is lost; what waits behind that is not. */
START_TEST(test_death_in_a_start)
{
	char folder[64], command[256];
	struct spawner_program programs[] = {{.folder = folder}, SLEEPING, SHELL("echo next")};
	struct job sleeping, lost, waiting[3];
	pid_t first;
	int fd;

	fd = open_slow(folder);
	begin(programs, 3);
	first = start_sleeping(&sleeping, 1);
	ck_assert_int_eq(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	job_init(&lost, 0, "slow.sh");
	call(&runner, ask, &lost);
	/* It is at it as soon as somebody else wants to open the file. */
	while (fcntl(fd, F_GETLEASE) == F_WRLCK)
		sched_yield();
	for (unsigned i = 0; i < 3; i++) {
		job_init(&waiting[i], 2, NULL);
		call(&runner, ask, &waiting[i]);
	}
	ck_assert_int_eq(kill(first, SIGKILL), 0);
	AWAIT(lost.done);
	ck_assert_int_eq(lost.error, EOWNERDEAD);
	SEEN(!lost.ended);
	close(lost.start.fds[1]);
	ck_assert_str_eq(read_to_end(lost.output), "");
	job_clear(&lost);
	check_ended(&sleeping);
	for (unsigned i = 0; i < 3; i++) {
		AWAIT(waiting[i].done);
		ck_assert_int_eq(waiting[i].error, 0);
		close(waiting[i].start.fds[1]);
		ck_assert_str_eq(read_to_end(waiting[i].output), "next\n");
		AWAIT(waiting[i].ended);
		ck_assert_int_eq(waiting[i].status, 0);
		job_clear(&waiting[i]);
	}
	close(fd);
	end();
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

/* Without its monitor a spawner is as good, but the last. */
START_TEST(test_death_of_the_keeper)
{
	const struct spawner_program programs[] = {SLEEPING, SHELL("echo next")};
	struct job job, other;
	char path[64];
	pid_t last;
	int pidfd, monitor = 0;
	FILE *file;

	begin(programs, 2);
	last = start_sleeping(&job, 0);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)last);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%*d (sweet: starter) %*c %d", &monitor), 1);
	fclose(file);
	ck_assert_int_eq(kill(monitor, SIGKILL), 0);
	ck_assert_str_eq(output_of(1, NULL), "next\n");
	ck_assert_int_eq(kill(last, SIGKILL), 0);
	check_ended(&job);
	ck_assert_int_eq(error_of(1, NULL), EPIPE);
	job_init(&other, 1, NULL);
	/* The other thread has not looked yet. */
	ck_assert_int_eq(spawner_run(spawner_channel(spawner, 1), &other.start, &pidfd), -EPIPE);
	close(other.start.fds[1]);
	job_clear(&other);
	end();
}
END_TEST

/* What does not become its program is ended, and no longer waited for. */
START_TEST(test_hanging_start)
{
	char folder[64], command[256];
	struct spawner_program programs[] = {{.folder = folder}, SHELL("echo next")};
	struct job job;
	int fd;

	fd = open_slow(folder);
	begin(programs, 2);
	/* The kernel waits with each other opening until this is given back. */
	ck_assert_int_eq(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	job_init(&job, 0, "slow.sh");
	job_start(&job);
	ck_assert_int_eq(job.error, 0);
	AWAIT(job.ended);
	ck_assert(WIFSIGNALED(job.status) && WTERMSIG(job.status) == SIGKILL);
	ck_assert_str_eq(read_to_end(job.output), "");
	job_clear(&job);
	close(fd);
	ck_assert_str_eq(output_of(1, NULL), "next\n");
	end();
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

/* --- many ------------------------------------------------------------------------------------------- */

#define MANY (SPAWNER_PLACES + 20)

START_TEST(test_many)
{
	const struct spawner_program programs[] = {SHELL("read line; exit 5")};
	static struct job jobs[MANY];
	unsigned refused = 0, count = MANY;
	int input[2];

	begin(programs, 1);
	ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
	for (unsigned i = 0; i < count; i++) {
		job_init(&jobs[i], 0, NULL);
		jobs[i].start.fds[0] = input[0];
		call(&runner, ask, &jobs[i]);
	}
	for (unsigned i = 0; i < count; i++) {
		AWAIT(jobs[i].done);
		close(jobs[i].start.fds[1]);
		ck_assert(jobs[i].error == 0 || jobs[i].error == EAGAIN);
		refused += jobs[i].error != 0;
	}
	ck_assert_uint_eq(refused, MANY - SPAWNER_PLACES);
	close_pair(input);
	for (unsigned i = 0; i < count; i++) {
		if (jobs[i].error == 0) {
			AWAIT(jobs[i].ended);
			ck_assert_int_eq(WEXITSTATUS(jobs[i].status), 5);
		}
		job_clear(&jobs[i]);
	}
	/* Their places are free again. */
	job_init(&jobs[0], 0, NULL);
	job_start(&jobs[0]);
	ck_assert_int_eq(jobs[0].error, 0);
	AWAIT(jobs[0].ended);
	job_clear(&jobs[0]);
	end();
}
END_TEST

/* More than the socket holds at once. */
START_TEST(test_large_blocks)
{
	const struct spawner_program programs[] = {SHELL("printf %s \"$HTTP_A\" | wc -c")};
	static char block[SPAWNER_BLOCK_MAX - 8];
	static struct job jobs[40];
	unsigned count = scaled(40);
	char expected[32];

	memset(block, 'a', sizeof(block) - 1);
	memcpy(block, "HTTP_A=", 7);
	snprintf(expected, sizeof(expected), "%zu\n", sizeof(block) - 8);
	begin(programs, 1);
	for (unsigned i = 0; i < count; i++) {
		job_init(&jobs[i], 0, NULL);
		jobs[i].start.block = block;
		jobs[i].start.block_length = sizeof(block);
		call(&runner, ask, &jobs[i]);
	}
	for (unsigned i = 0; i < count; i++) {
		AWAIT(jobs[i].done);
		ck_assert_int_eq(jobs[i].error, 0);
		close(jobs[i].start.fds[1]);
		ck_assert_str_eq(read_to_end(jobs[i].output), expected);
		AWAIT(jobs[i].ended);
		job_clear(&jobs[i]);
	}
	end();
}
END_TEST

struct waiter {
	struct job *first, *job;
	int error, pidfd;
};

static void ask_and_wait(void *argument)
{
	struct waiter *waiter = argument;

	if (waiter->first)
		spawner_ask(channel, &waiter->first->start);
	waiter->error = spawner_run(channel, &waiter->job->start, &waiter->pidfd);
	/* Told later, by the loop. */
	expect(!waiter->job->done && (!waiter->first || !waiter->first->done));
}

/* Who waits for its own answer leaves the others' to the loop. */
START_TEST(test_waiting_for_an_answer)
{
	const struct spawner_program programs[] = {
		SHELL("echo one"),
		SHELL("echo two"),
		{.path = "/nonexistent/program", .argv = (char *const[]){"x", NULL}}};
	struct job one, two;
	struct waiter waiter = {&one, &two, 0, 0};

	begin(programs, 3);
	job_init(&one, 0, NULL);
	job_init(&two, 1, NULL);
	call(&runner, ask_and_wait, &waiter);
	ck_assert_int_eq(waiter.error, 0);
	ck_assert_int_ge(waiter.pidfd, 0);
	close(two.start.fds[1]);
	ck_assert_str_eq(read_to_end(two.output), "two\n");
	AWAIT(one.done);
	close(one.start.fds[1]);
	ck_assert_str_eq(read_to_end(one.output), "one\n");
	AWAIT(one.ended);
	AWAIT(two.ended);
	SEEN(one.calls == 101 && two.calls == 100);
	close(waiter.pidfd);
	job_clear(&one);
	job_clear(&two);
	job_init(&one, 2, NULL);
	waiter = (struct waiter){NULL, &one, 0, 0};
	call(&runner, ask_and_wait, &waiter);
	ck_assert_int_eq(waiter.error, -ENOENT);
	ck_assert_int_eq(waiter.pidfd, -1);
	close(one.start.fds[1]);
	job_clear(&one);
	end();
}
END_TEST

START_TEST(test_not_to_be_opened)
{
	char *const argv[] = {"true", NULL};
	struct spawner_program programs[] = {{.path = "bin/true", .argv = argv}};
	char *why;

	ck_assert_ptr_null(spawner_open(programs, 1, 1, &why));
	ck_assert_ptr_nonnull(strstr(why, "bin/true"));
	g_free(why);
	programs[0] = (struct spawner_program){.path = "/bin/true"};
	ck_assert_ptr_null(spawner_open(programs, 1, 1, &why));
	ck_assert_ptr_nonnull(strstr(why, "/bin/true"));
	g_free(why);
	ck_assert_ptr_null(spawner_open(programs, 0, SPAWNER_CHANNELS_MAX + 1, &why));
	g_free(why);
	spawner_close(NULL);
}
END_TEST

/* It has room for the channels, and the spawner for none of its own descriptors. */
START_TEST(test_no_room)
{
	char *const argv[] = {"true", NULL};
	struct spawner_program programs[] = {{.path = "/bin/true", .argv = argv}};
	struct rlimit limit, low;
	char *why = NULL;
	int next;

	if (skip_without_limits("spawner: no room"))
		return;
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	next = dup(STDERR_FILENO);
	ck_assert_int_ge(next, 0);
	close(next);
	low = limit;
	low.rlim_cur = (rlim_t)next + 4;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	ck_assert_ptr_null(spawner_open(programs, 1, 2, &why));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_ptr_nonnull(why);
	ck_assert_ptr_nonnull(strstr(why, g_strerror(EMFILE)));
	g_free(why);
	ck_assert_int_lt(waitpid(-1, NULL, WNOHANG), 0);
	ck_assert_int_eq(errno, ECHILD);
}
END_TEST

/* As many as 100 descriptors that nobody takes. */
static void leave_in_flight(int socket)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(100 * sizeof(int))];
	} control = {.header = {.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(100 * sizeof(int))}};
	struct iovec iov = {.iov_base = "", .iov_len = 1};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control.space)};

	for (unsigned i = 0; i < 100; i++)
		memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &(int){STDIN_FILENO},
		       sizeof(int));
	ck_assert_int_eq(sendmsg(socket, &message, 0), 1);
}

/* The kernel has a bound of those of all processes of a user: told as what it is. */
START_TEST(test_descriptors_in_flight)
{
	const struct spawner_program programs[] = {SHELL("echo here")};
	struct rlimit limit;
	int ends[2];

	if (skip_without_limits("spawner: in flight") || !become_a_user("spawner: in flight"))
		return;
	begin(programs, 1);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	leave_in_flight(ends[0]);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 64;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(error_of(0, NULL), EMFILE);
	close(ends[0]);
	close(ends[1]);
	ck_assert_str_eq(output_of(0, NULL), "here\n");
	end();
	become_root_again();
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
	tcase_add_test(tcase, test_close_ends_programs);
	tcase_add_test(tcase, test_death_of_the_server);
	tcase_add_test(tcase, test_death_of_the_spawner);
	tcase_add_test(tcase, test_death_in_a_start);
	tcase_add_test(tcase, test_death_of_the_keeper);
	tcase_add_test(tcase, test_hanging_start);
	tcase_add_test(tcase, test_many);
	tcase_add_test(tcase, test_large_blocks);
	tcase_add_test(tcase, test_waiting_for_an_answer);
	tcase_add_test(tcase, test_not_to_be_opened);
	tcase_add_test(tcase, test_no_room);
	tcase_add_test(tcase, test_descriptors_in_flight);
}

RUN_SUITE("spawner", fill)
