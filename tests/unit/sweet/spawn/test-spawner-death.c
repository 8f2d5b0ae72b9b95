/* SPDX-License-Identifier: MIT */
/*
 * test-spawner-death.c - unit tests of spawner.c with a real spawner: the death of the
 * server, of the spawner and of its monitor; programs that hang at their start; many
 * concurrent requests, and failures due to a lack of descriptors or memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spawn/spawner-program.h"
#include "spawn/spawner-wire.h"
#include "spawn/spawner.h"

#include "loop-fixture.h"
#include "process-fixture.h"
#include "spawner-fixture.h"
#include "suite.h"

/* --- ends ------------------------------------------------------------------------------------------- */

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

/* If the server is killed, spawner and programs end with it. */
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

/* Starts that program; returns the pid of its spawner. */
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

#define PATIENCE_MS 60000

/* If a spawner is killed, its programs end; all threads get a new spawner. */
START_TEST(test_death_of_the_spawner)
{
	const struct spawner_program programs[] = {SLEEPING, SHELL("echo next")};
	struct spawner_channel *other;
	struct job job, waited;
	pid_t first, second;

	begin(programs, 2);
	other = spawner_channel(spawner, 1);
	first = start_sleeping(&job, 0);
	ck_assert_int_eq(kill(first, SIGKILL), 0);
	check_ended(&job);
	ck_assert_str_eq(output_of(1, NULL), "next\n");
	/* The other thread has not noticed yet. */
	job_init(&waited, 1, NULL);
	spawner_ask(other, &waited.start);
	spawner_settle(other, PATIENCE_MS);
	ck_assert(waited.done && waited.error == 0);
	close(waited.start.fds[1]);
	ck_assert_str_eq(read_to_end(waited.output), "next\n");
	close(waited.pidfd);
	close(waited.output);
	/* The second one is replaced, too. */
	second = start_sleeping(&job, 0);
	ck_assert_int_ne(second, first);
	ck_assert_int_eq(kill(second, SIGKILL), 0);
	check_ended(&job);
	ck_assert_str_eq(output_of(1, NULL), "next\n");
	end();
}
END_TEST

/* A folder with a script, opened for a lease: the process that starts it then waits in open(). */
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

/* The current start is lost; requests that were not read are not. */
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
	/* The start is in progress when the lease is being broken. */
	while (fcntl(fd, F_GETLEASE) == F_WRLCK)
		sched_yield();
	ck_assert_int_eq(kill(first, SIGSTOP), 0);
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

/* Without its monitor a spawner works as well, but is the last one. */
START_TEST(test_death_of_the_keeper)
{
	const struct spawner_program programs[] = {SLEEPING, SHELL("echo next")};
	struct job job, other;
	char path[64];
	pid_t last;
	int monitor = 0;
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
	/* The other thread has not noticed yet. */
	spawner_ask(spawner_channel(spawner, 1), &other.start);
	spawner_settle(spawner_channel(spawner, 1), PATIENCE_MS);
	ck_assert(other.done && other.error == EPIPE);
	close(other.start.fds[1]);
	job_clear(&other);
	end();
}
END_TEST

static void send_kill(void *argument)
{
	spawner_signal(argument, SIGKILL);
}

/* What holds one start delays no other, on the same channel; and it can be ended. */
START_TEST(test_hanging_start)
{
	char folder[64], command[256];
	struct spawner_program programs[] = {{.folder = folder}, SHELL("echo next")};
	struct job jobs[3];
	int fd;

	fd = open_slow(folder);
	begin(programs, 2);
	/* The kernel delays other opens until the lease is returned. */
	ck_assert_int_eq(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	for (unsigned i = 0; i < 3; i++) {
		job_init(&jobs[i], 0, "slow.sh");
		call(&runner, ask, &jobs[i]);
		ck_assert_str_eq(output_of(1, NULL), "next\n");
	}
	for (unsigned i = 0; i < 3; i++)
		SEEN(!jobs[i].done);
	for (unsigned i = 0; i < 2; i++) {
		call(&runner, send_kill, &jobs[i].start);
		AWAIT(jobs[i].ended);
		SEEN(jobs[i].error == 0 && WTERMSIG(jobs[i].status) == SIGKILL);
		close(jobs[i].start.fds[1]);
		ck_assert_str_eq(read_to_end(jobs[i].output), "");
		job_clear(&jobs[i]);
	}
	/* The third one is told what its file is, once that is known. */
	ck_assert_int_eq(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
	AWAIT(jobs[2].done);
	ck_assert_int_eq(jobs[2].error, ETXTBSY);
	close(jobs[2].start.fds[1]);
	job_clear(&jobs[2]);
	close(fd);
	ck_assert_str_eq(output_of(1, NULL), "next\n");
	end();
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

/* A start that is held when the spawner's channel closes ends with it, and so does the spawner. */
START_TEST(test_hanging_start_at_the_end)
{
	char folder[64], command[256];
	struct spawner_program programs[] = {{.folder = folder}};
	struct job job;
	int fd;

	fd = open_slow(folder);
	begin(programs, 1);
	ck_assert_int_eq(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	job_init(&job, 0, "slow.sh");
	call(&runner, ask, &job);
	while (fcntl(fd, F_GETLEASE) == F_WRLCK)
		sched_yield();
	end();
	close(job.start.fds[1]);
	ck_assert_str_eq(read_to_end(job.output), "");
	job_clear(&job);
	close(fd);
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

static void ask_and_settle(void *argument)
{
	struct job **jobs = argument;

	for (unsigned i = 0; jobs[i]; i++)
		spawner_ask(channel, &jobs[i]->start);
	spawner_settle(channel, PATIENCE_MS);
	for (unsigned i = 0; jobs[i]; i++)
		expect(jobs[i]->done);
}

/* For the start of a server: all answers are there, of programs that run and of others. */
START_TEST(test_settle)
{
	const struct spawner_program programs[] = {
		SHELL("echo one"),
		{.path = "/nonexistent/program", .argv = (char *const[]){"x", NULL}}};
	struct job one, two;

	begin(programs, 2);
	job_init(&one, 0, NULL);
	job_init(&two, 1, NULL);
	call(&runner, ask_and_settle, (struct job *[]){&one, &two, NULL});
	SEEN(one.error == 0 && two.error == ENOENT);
	close(one.start.fds[1]);
	close(two.start.fds[1]);
	ck_assert_str_eq(read_to_end(one.output), "one\n");
	AWAIT(one.ended);
	job_clear(&one);
	job_clear(&two);
	end();
}
END_TEST

static void settle_now(void *argument)
{
	(void)argument;
	spawner_settle(channel, 1);
}

/* It waits no longer than it may. */
START_TEST(test_settle_ends)
{
	char folder[64], command[256];
	struct spawner_program programs[] = {{.folder = folder}};
	struct job job;
	int fd;

	fd = open_slow(folder);
	begin(programs, 1);
	ck_assert_int_eq(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	job_init(&job, 0, "slow.sh");
	call(&runner, ask, &job);
	call(&runner, settle_now, NULL);
	SEEN(!job.done);
	end();
	close(job.start.fds[1]);
	job_clear(&job);
	close(fd);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
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

/* It has enough descriptors for the channels, but the spawner has none for its own. */
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

/* As many as 100 descriptors that no process receives. */
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

/* The kernel limits those of all processes of a user: reported as that error. */
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
	tcase_add_test(tcase, test_close_ends_programs);
	tcase_add_test(tcase, test_death_of_the_server);
	tcase_add_test(tcase, test_death_of_the_spawner);
	tcase_add_test(tcase, test_death_in_a_start);
	tcase_add_test(tcase, test_death_of_the_keeper);
	tcase_add_test(tcase, test_hanging_start);
	tcase_add_test(tcase, test_hanging_start_at_the_end);
	tcase_add_test(tcase, test_many);
	tcase_add_test(tcase, test_large_blocks);
	tcase_add_test(tcase, test_settle);
	tcase_add_test(tcase, test_settle_ends);
	tcase_add_test(tcase, test_not_to_be_opened);
	tcase_add_test(tcase, test_no_room);
	tcase_add_test(tcase, test_descriptors_in_flight);
}

RUN_SUITE("spawner-death", fill)
