/* SPDX-License-Identifier: MIT */
/*
 * test-spool.c - unit tests of spool.c: bytes to a file and back in order, the limit
 * of all spools, full disks, unusable folders, the end with pending operations.
 */
#include "loop-fixture.h"
#include "suite.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <glib.h>
#include <unistd.h>

#include "event/client-limit.h"
#include "event/thread-pool.h"
#include "files/spool.h"

#define FOLDER "/var/tmp" /* not in memory */
#define LIMIT 1000000u
#define PATTERN 300000u

struct task {
	struct spool_op op; /* must be first */
	struct iovec iov[200];
	int started; /* what its start returned */
	int result;  /* of done(); 1: not called */
	unsigned done, dropped;
};

static struct runner runner;
static struct thread_pool *thread_pool;
static struct spools *spools;
static struct spool *spool;
static char pattern[PATTERN], back[PATTERN];

static void op_done(struct spool_op *op, int result)
{
	struct task *task = (struct task *)op;

	EVENT(task->done++; task->result = result);
}

static void op_drop(struct spool_op *op)
{
	struct task *task = (struct task *)op;

	EVENT(task->dropped++);
}

static void open_it(void *argument)
{
	(void)argument;
	spool = spool_open(spools, runner.loop, client_address(NULL));
}

static void close_it(void *argument)
{
	(void)argument;
	spool_close(spool);
}

static void append_it(void *argument)
{
	struct task *task = argument;

	task->started = spool_append(spool, &task->op);
}

static void read_it(void *argument)
{
	struct task *task = argument;

	task->started = spool_read(spool, &task->op);
}

/* Of the spool, after an append. */
static void stat_file(struct stat *file)
{
	int fd = spool_reader(spool);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, file), 0);
	close(fd);
}

/* In the given number of parts. */
static struct task *new_task(void *data, size_t length, unsigned parts, uint64_t offset)
{
	struct task *task = calloc(1, sizeof(*task));

	ck_assert_ptr_nonnull(task);
	task->op = (struct spool_op){.iov = task->iov,
				     .count = parts,
				     .offset = offset,
				     .done = op_done,
				     .drop = op_drop};
	task->result = 1;
	for (unsigned i = 0; i < parts; i++) {
		size_t from = length * i / parts, to = length * (i + 1) / parts;

		task->iov[i] = (struct iovec){(char *)data + from, to - from};
	}
	return task;
}

static int append(void *data, size_t length, unsigned parts)
{
	struct task *task = new_task(data, length, parts, 0);
	int result;

	call(&runner, append_it, task);
	if (!task->started)
		AWAIT(task->dropped);
	result = task->started ? task->started : task->result;
	SEEN(task->done == task->dropped && task->dropped == !task->started);
	free(task);
	return result;
}

static int read_back(uint64_t offset, size_t length, unsigned parts)
{
	struct task *task = new_task(back, length, parts, offset);
	int result;

	memset(back, 0, sizeof(back));
	call(&runner, read_it, task);
	if (!task->started)
		AWAIT(task->dropped);
	result = task->started ? task->started : task->result;
	free(task);
	return result;
}

static struct spools_stat stat_now(void)
{
	struct spools_stat stat;

	spools_stat(spools, &stat);
	return stat;
}

static struct spools *try_open(const char *folder, bool memory, char **why)
{
	return spools_open(&(struct spools_options){.folder = folder,
						    .most = LIMIT,
						    .memory = memory,
						    .user = (uid_t)-1,
						    .group = (gid_t)-1},
			   why);
}

static void begin(unsigned threads)
{
	char *why;

	for (unsigned i = 0; i < PATTERN; i++)
		pattern[i] = (char)(i * 2654435761u >> 13);
	thread_pool = thread_pool_open(threads, threads);
	ck_assert_ptr_nonnull(thread_pool);
	runner_start(&runner, any_kind());
	spools = try_open(FOLDER, false, &why);
	ck_assert_msg(spools, "%s", why);
	spools_start(spools, thread_pool);
	call(&runner, open_it, NULL);
	ck_assert_ptr_nonnull(spool);
}

/* On the loop's thread: no operation of it is between its check and its job. */
static void stop_all(void *argument)
{
	(void)argument;
	spools_stop(spools);
}

static void end(void)
{
	call(&runner, stop_all, NULL);
	thread_pool_close(thread_pool);
	runner_stop(&runner);
	spools_close(spools);
}

/* A helper closes it: waits until that is done. */
static void close_and_wait(void)
{
	uint64_t before = stat_now().files;

	call(&runner, close_it, NULL);
	while (stat_now().files == before)
		settle(&runner);
}

/* Bytes appended in parts are read in other parts, from any offset; no other process sees them. */
START_TEST(test_bytes)
{
	struct stat file;
	int reader;

	begin(_i ? 2 : 0);
	ck_assert_int_eq(spool_reader(spool), -EBADF);
	ck_assert_int_eq(append(pattern, 1, 1), 0);
	ck_assert_int_eq(append(pattern + 1, 99999, 200), 0);
	ck_assert_int_eq(append(pattern + 100000, 200000, 3), 0);
	ck_assert_uint_eq(spool_length(spool), PATTERN);
	ck_assert_int_eq(read_back(0, PATTERN, 1), 0);
	ck_assert_mem_eq(back, pattern, PATTERN);
	ck_assert_int_eq(read_back(777, 250000, 199), 0);
	ck_assert_mem_eq(back, pattern + 777, 250000);
	ck_assert_int_eq(read_back(PATTERN - 1, 1, 1), 0);
	ck_assert_int_eq(read_back(PATTERN - 1, 2, 1), -EINVAL);
	ck_assert_int_eq(read_back(UINT64_MAX, 2, 1), -EINVAL);
	stat_file(&file);
	ck_assert_uint_eq(file.st_mode, S_IFREG | 0600);
	ck_assert_uint_eq(file.st_nlink, 0);
	/* The descriptor for a program has its own offset, and is read-only. */
	reader = spool_reader(spool);
	ck_assert_int_ge(reader, 0);
	ck_assert_int_eq(read(reader, back, PATTERN), PATTERN);
	ck_assert_mem_eq(back, pattern, PATTERN);
	ck_assert_int_eq(write(reader, "x", 1), -1);
	close(reader);
	ck_assert_uint_eq(stat_now().bytes, PATTERN);
	ck_assert_uint_eq(stat_now().files, 1);
	close_and_wait();
	ck_assert_uint_eq(stat_now().bytes, 0);
	ck_assert_uint_eq(stat_now().written, PATTERN);
	ck_assert_uint_eq(stat_now().refused, 0);
	end();
}
END_TEST

struct gate {
	struct job job; /* must be first */
	int ends[2];
};

static void gate_waits(struct job *job)
{
	char byte;

	(void)!read(((struct gate *)job)->ends[0], &byte, 1);
}

static void gate_done(struct job *job)
{
	(void)job;
}

/* What helpers have not begun when the spool is closed is not written. */
START_TEST(test_closed_before)
{
	struct gate gate = {.job = {.work = gate_waits, .done = gate_done}};
	struct task *task = new_task(pattern, PATTERN, 1, 0);

	begin(1);
	ck_assert_int_eq(pipe2(gate.ends, O_CLOEXEC), 0);
	gate.job.loop = runner.loop;
	thread_pool_submit(thread_pool, &gate.job);
	call(&runner, append_it, task);
	ck_assert_int_eq(task->started, 0);
	call(&runner, close_it, NULL);
	AWAIT(task->dropped);
	close(gate.ends[1]);
	while (stat_now().files)
		settle(&runner);
	SEEN(!task->done && task->dropped == 1);
	ck_assert_uint_eq(stat_now().written, 0);
	ck_assert_uint_eq(stat_now().refused, 0);
	free(task);
	end(); /* joins the helper that reads from the pipe */
	close(gate.ends[0]);
}
END_TEST

static struct task *line[100];

static void start_line(void *argument)
{
	(void)argument;
	/* Started together: appends and the reads of what these will have written. */
	for (unsigned i = 0; i < 100; i += 2) {
		line[i] = new_task(pattern + i * 1000, 2000, 2, 0);
		line[i + 1] = new_task(back + i * 1000, 2000, 1, (uint64_t)i * 1000);
		ck_assert_int_eq(spool_append(spool, &line[i]->op), 0);
		ck_assert_int_eq(spool_read(spool, &line[i + 1]->op), 0);
	}
}

/* A read finds earlier appends, though both are pending. */
START_TEST(test_order)
{
	begin(3);
	call(&runner, start_line, NULL);
	AWAIT(line[99]->dropped);
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_int_eq(line[i]->result, 0);
		ck_assert_uint_eq(line[i]->dropped, 1);
		free(line[i]);
	}
	ck_assert_mem_eq(back, pattern, 100000);
	close_and_wait();
	end();
}
END_TEST

/* All spools share one limit; bytes are returned when a spool ends. */
START_TEST(test_limit)
{
	struct spool *first;

	begin(2);
	first = spool;
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(append(pattern, PATTERN, 1), 0);
	ck_assert(!spools_have_room(spools, 1));
	call(&runner, open_it, NULL);
	ck_assert_int_eq(append(pattern, LIMIT - 3 * PATTERN + 1, 1), -EDQUOT);
	ck_assert_uint_eq(stat_now().refused, 1);
	ck_assert_int_eq(append(pattern, LIMIT - 3 * PATTERN, 1), 0);
	ck_assert_int_eq(append(pattern, 1, 1), -EDQUOT);
	ck_assert_int_eq(read_back(0, LIMIT - 3 * PATTERN, 1), 0);
	ck_assert_uint_eq(stat_now().bytes, LIMIT);
	close_and_wait();
	spool = first;
	close_and_wait();
	ck_assert_uint_eq(stat_now().bytes, 0);
	/* A quarter is reserved for data that cannot wait elsewhere. */
	ck_assert(spools_have_room(spools, LIMIT * 3 / 4));
	ck_assert(!spools_have_room(spools, LIMIT * 3 / 4 + 1));
	ck_assert(!spools_have_room(spools, UINT64_MAX));
	end();
}
END_TEST

/* A limit on the size of files simulates a full disk: the error is reported, and stays. */
START_TEST(test_full)
{
	struct rlimit limit = {.rlim_cur = 100000, .rlim_max = RLIM_INFINITY};

	signal(SIGXFSZ, SIG_IGN);
	begin(2);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(append(pattern, 60000, 1), 0);
	ck_assert_int_eq(append(pattern, 60000, 1), -EFBIG);
	ck_assert_int_eq(append(pattern, 1, 1), -EFBIG);
	ck_assert_uint_eq(stat_now().refused, 1);
	close_and_wait();
	ck_assert_uint_eq(stat_now().bytes, 0);
	call(&runner, open_it, NULL);
	ck_assert_int_eq(append(pattern, 60000, 1), 0);
	close_and_wait();
	end();
}
END_TEST

static void start_and_close(void *argument)
{
	struct task **tasks = argument;

	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(spool_append(spool, &tasks[i]->op), 0);
	ck_assert_int_eq(spool_read(spool, &tasks[3]->op), 0);
	spool_close(spool);
}

/* No callback for a closed spool; all resources of its operations are released. */
START_TEST(test_close)
{
	struct task *tasks[4];

	begin(2);
	for (unsigned i = 0; i < 4; i++)
		tasks[i] = new_task(i < 3 ? pattern : back, 1000, 1, 0);
	call(&runner, start_and_close, tasks);
	while (stat_now().files)
		settle(&runner);
	for (unsigned i = 0; i < 4; i++) {
		SEEN(tasks[i]->dropped == 1);
		SEEN(tasks[i]->done == 0);
		free(tasks[i]);
	}
	ck_assert_uint_eq(stat_now().bytes, 0);
	end();
}
END_TEST

static void close_inside(struct spool_op *op, int result)
{
	op_done(op, result);
	spool_close(spool);
}

static void start_two(void *argument)
{
	struct task **tasks = argument;

	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(spool_append(spool, &tasks[i]->op), 0);
}

/* A callback may close the spool. */
START_TEST(test_close_inside)
{
	struct task *tasks[2];

	begin(2);
	for (unsigned i = 0; i < 2; i++)
		tasks[i] = new_task(pattern, 1000, 1, 0);
	tasks[0]->op.done = close_inside;
	call(&runner, start_two, tasks);
	AWAIT(tasks[0]->dropped);
	while (stat_now().files)
		settle(&runner);
	SEEN(tasks[0]->done == 1 && tasks[0]->dropped == 1);
	SEEN(tasks[1]->done == 0 && tasks[1]->dropped == 1);
	free(tasks[0]);
	free(tasks[1]);
	end();
}
END_TEST

/* At the end the rest is released as well. */
START_TEST(test_stop)
{
	struct task *tasks[20];

	begin(1);
	for (unsigned i = 0; i < 20; i++) {
		tasks[i] = new_task(pattern, 10000, 1, 0);
		call(&runner, append_it, tasks[i]);
	}
	call(&runner, stop_all, NULL);
	thread_pool_close(thread_pool);
	runner_stop(&runner);
	ck_assert_int_eq(spool_append(spool, &tasks[0]->op), -ESHUTDOWN);
	spool_close(spool);
	spools_close(spools);
	for (unsigned i = 0; i < 20; i++) {
		ck_assert_uint_eq(tasks[i]->dropped, 1);
		free(tasks[i]);
	}
}
END_TEST

/* Refuses files without a name, as some file systems do. */
static void refuse_unnamed(void)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = G_N_ELEMENTS(filter), .filter = filter};

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* There a file is created with a name, which is removed at once. */
START_TEST(test_named)
{
	struct stat file;

	refuse_unnamed();
	ck_assert_int_eq(openat(AT_FDCWD, FOLDER, O_TMPFILE | O_RDWR, 0600), -1);
	begin(2);
	ck_assert_int_eq(append(pattern, PATTERN, 1), 0);
	stat_file(&file);
	ck_assert_uint_eq(file.st_nlink, 0);
	ck_assert_uint_eq(file.st_mode, S_IFREG | 0600);
	ck_assert_int_eq(read_back(0, PATTERN, 1), 0);
	ck_assert_mem_eq(back, pattern, PATTERN);
	close_and_wait();
	end();
}
END_TEST

static void refuse_folder(const char *folder, const char *what)
{
	char *why;

	ck_assert_ptr_null(try_open(folder, false, &why));
	ck_assert_msg(strstr(why, what) && strstr(why, folder), "%s", why);
	g_free(why);
}

/* Unusable folders are refused at the start. */
START_TEST(test_folders)
{
	struct statfs system;
	char *why;

	refuse_folder("/var/tmp/there-is-none", "No such file");
	refuse_folder("/dev/null", "Not a directory");
	refuse_folder("/proc/self", "cannot make files there");
	if (statfs("/dev/shm", &system) == 0 && system.f_type == 0x01021994) {
		refuse_folder("/dev/shm", "in memory (tmpfs)");
		spools = try_open("/dev/shm", true, &why);
		ck_assert_msg(spools, "%s", why);
		spools_close(spools);
	}
	/* systemd's folder is the first choice, and unusable ones are skipped. */
	setenv("CACHE_DIRECTORY", "/var/tmp/there-is-none:/var", 1);
	spools = try_open(NULL, false, &why);
	ck_assert_msg(spools, "%s", why);
	ck_assert_msg(g_str_has_prefix(spools_folder(spools), "/var/"), "%s",
		      spools_folder(spools));
	spools_close(spools);
	setenv("CACHE_DIRECTORY", FOLDER ":/proc", 1);
	spools = try_open(NULL, false, &why);
	ck_assert_str_eq(spools_folder(spools), FOLDER);
	spools_close(spools);
}
END_TEST

/* Appends by a new spool, and returns the result. */
static int append_anew(void)
{
	close_and_wait();
	call(&runner, open_it, NULL);
	return append(pattern, PATTERN, 1);
}

/* A folder that was deleted is used again as soon as there is one of the same owner in its place. */
START_TEST(test_deleted)
{
	char folder[] = FOLDER "/test-spool-XXXXXX", *why;
	struct stat file, place;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	begin(2);
	call(&runner, close_it, NULL);
	while (stat_now().files)
		settle(&runner);
	spools_close(spools);
	spools = try_open(folder, false, &why);
	ck_assert_msg(spools, "%s", why);
	spools_start(spools, thread_pool);
	call(&runner, open_it, NULL);
	ck_assert_int_eq(append(pattern, PATTERN, 1), 0);
	ck_assert_int_eq(rmdir(folder), 0);
	/* Its file is still there. */
	ck_assert_int_eq(read_back(0, PATTERN, 1), 0);
	ck_assert_mem_eq(back, pattern, PATTERN);
	ck_assert_int_eq(append_anew(), -ENOENT);
	ck_assert_int_eq(append_anew(), -ENOENT);
	if (geteuid() == 0) {
		ck_assert_int_eq(mkdir(folder, 0777), 0);
		ck_assert_int_eq(chown(folder, 12345, 12345), 0);
		ck_assert_int_eq(append_anew(), -ENOENT);
		ck_assert_int_eq(rmdir(folder), 0);
	}
	ck_assert_int_eq(symlink("/dev/null", folder), 0);
	ck_assert_int_eq(append_anew(), -ENOENT);
	ck_assert_int_eq(unlink(folder), 0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(mkdir(folder, 0700), 0);
		ck_assert_int_eq(append_anew(), 0);
		stat_file(&file);
		ck_assert_int_eq(stat(folder, &place), 0);
		ck_assert_uint_eq(file.st_dev, place.st_dev);
		ck_assert_int_eq(rmdir(folder), 0);
		ck_assert_int_eq(append_anew(), -ENOENT);
	}
	ck_assert_uint_eq(stat_now().refused, geteuid() == 0 ? 6 : 5);
	close_and_wait();
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_bytes, 0, 2);
	tcase_add_test(tcase, test_order);
	tcase_add_test(tcase, test_limit);
	tcase_add_test(tcase, test_full);
	tcase_add_test(tcase, test_close);
	tcase_add_test(tcase, test_closed_before);
	tcase_add_test(tcase, test_close_inside);
	tcase_add_test(tcase, test_stop);
	tcase_add_test(tcase, test_named);
	tcase_add_test(tcase, test_folders);
	tcase_add_test(tcase, test_deleted);
}

RUN_SUITE("spool", fill)
