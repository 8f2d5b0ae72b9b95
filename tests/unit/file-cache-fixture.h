/* SPDX-License-Identifier: MIT */
/*
 * file-cache-fixture.h - shared by the tests of file-cache.c: a folder, two loops
 * with helpers, a cache, and requests for files.
 */
#ifndef FILE_CACHE_FIXTURE_H
#define FILE_CACHE_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <nabc.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "event/thread-pool.h"
#include "files/docroot.h"
#include "files/file-cache.h"
#include "http/mime.h"

#include "loop-fixture.h"
#include "suite.h"

#define LOOPS 2
#define KIB ((size_t)1 << 10)

static struct runner runners[LOOPS];
static struct thread_pool *thread_pool;
static struct file_cache *content;
static struct mime *mime;
static NC_cache *cache;
static char directory[64];
static struct docroot root;

/* Returns the path of a file; valid until the next call but one. */
static inline const char *at(const char *name)
{
	static _Thread_local char paths[2][128];
	static _Thread_local unsigned turn;
	char *path = paths[turn++ % 2];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

/* Writes a file that consists of the letter; in place if it exists. */
static inline void put(const char *name, char letter, size_t size)
{
	char *data = must_alloc(size);
	int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	memset(data, letter, size);
	ck_assert_int_eq(pwrite(fd, data, size, 0), (ssize_t)size);
	free(data);
	close(fd);
}

/* Returns whether files of the folder can be read without waiting (RWF_NOWAIT); tmpfs has no such reads. */
static inline bool reads_at_once(void)
{
	struct iovec byte = {(char[1]){0}, 1};
	int fd = openat(root.fd, "probe", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool possible;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	possible = preadv2(fd, &byte, 1, 0, RWF_NOWAIT) == 1;
	close(fd);
	ck_assert_int_eq(unlinkat(root.fd, "probe", 0), 0);
	if (!possible)
		printf("skipped: files in %s cannot be read without waiting\n", directory);
	return possible;
}

static inline void open_with(size_t size, struct file_cache_options file_cache_options,
			     unsigned threads)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.memory = size);

	make_directory(directory);
	root.fd = docroot_open(directory);
	ck_assert_int_ge(root.fd, 0);
	cache = NC_cache_open(&options);
	ck_assert_ptr_nonnull(cache);
	for (unsigned i = 0; i < LOOPS; i++)
		runner_start(&runners[i], any_kind());
	thread_pool = thread_pool_open(threads, threads);
	ck_assert_ptr_nonnull(thread_pool);
	mime = mime_open(&(struct mime_options){.charset = "utf-8"});
	file_cache_options.root = root;
	file_cache_options.mime = mime;
	file_cache_options.thread_pool = thread_pool;
	content = file_cache_open(&file_cache_options);
	ck_assert_ptr_nonnull(content);
}

static inline void open_all(size_t size, size_t max_unit, unsigned threads, uint64_t revalidate_ns)
{
	open_with(size,
		  (struct file_cache_options){.max_unit = max_unit, .revalidate_ns = revalidate_ns},
		  threads);
}

/* Removes the folder, in which these files are left. */
static inline void close_all(void)
{
	DIR *folder = opendir(directory);
	struct dirent *entry;

	thread_pool_close(thread_pool);
	for (unsigned i = 0; i < LOOPS; i++)
		runner_stop(&runners[i]);
	file_cache_close(content);
	mime_close(mime);
	ck_assert_int_eq(NC_cache_close(cache), 0);
	ck_assert_ptr_nonnull(folder);
	while ((entry = readdir(folder)))
		(void)unlinkat(dirfd(folder), entry->d_name,
			       entry->d_type == DT_DIR ? AT_REMOVEDIR : 0);
	closedir(folder);
	ck_assert_int_eq(rmdir(directory), 0);
}

/* --- requests ----------------------------------------------------------------------- */

struct asker {
	struct file_cache_waiter waiter; /* must be first */
	const char *path;
	bool at_once, done;
	bool elsewhere; /* called on another thread than its loop's */
};

static inline void arrived(struct file_cache_waiter *waiter)
{
	struct asker *asker = (struct asker *)waiter;
	struct runner *runner = &runners[waiter->loop != runners[0].loop];

	asker->elsewhere = !pthread_equal(pthread_self(), runner->thread);
	EVENT(asker->done = true);
}

static inline void ask(void *argument)
{
	struct asker *asker = argument;

	if (file_cache_get(content, asker->path, &asker->waiter))
		EVENT(asker->at_once = asker->done = true);
}

static inline void begin_asking(struct asker *asker, unsigned loop, const char *path)
{
	*asker = (struct asker){.waiter = {.arrived = arrived, .loop = runners[loop].loop},
				.path = path};
	call(&runners[loop], ask, asker);
}

static inline struct asker get(unsigned loop, const char *path)
{
	struct asker asker;

	begin_asking(&asker, loop, path);
	AWAIT(asker.done);
	ck_assert(!asker.elsewhere);
	return asker;
}

static inline void put_back(void *argument)
{
	file_cache_put(content, ((struct asker *)argument)->waiter.result.entry);
}

static inline void give_back(unsigned loop, struct asker *asker)
{
	call(&runners[loop], put_back, asker);
}

/* Returns true if a unit consists of the letter (0: of any one letter). */
static inline bool uniform(const struct file_cache_view *view, char letter)
{
	size_t size = (size_t)view->version.size, have = 0;
	struct NC_range range = {.id = view->id, .length = size};
	struct NC_send message = NC_SEND_INIT(.ranges = &range, .holds = &view->hold,
					      .range_count = 1, .hold_count = 1);
	char *got = must_alloc(size);
	bool same;
	int pair[2];

	tcp_pair_between(pair, "127.0.0.1", "127.0.0.1", 4 << 20, 4 << 20);
	set_nonblocking(pair[0]);
	while (have < size) {
		ssize_t sent = NC_send(NULL, pair[0], &message);

		if (sent > 0)
			message.skip += (size_t)sent;
		else
			expect(errno == EAGAIN);
		await(pair[1], POLLIN);
		sent = recv(pair[1], got + have, size - have, MSG_DONTWAIT);
		expect(sent > 0);
		have += (size_t)sent;
	}
	close_pair(pair);
	same = consists_of(got, size, letter ? letter : got[0]);
	free(got);
	return same;
}

/* Gets a file that must consist of the letter; returns true if it was there at once. */
static inline bool check_file(unsigned loop, const char *path, char letter, size_t size)
{
	struct asker asker = get(loop, path);
	const struct file_cache_view *view;

	ck_assert_msg(asker.waiter.result.error == 0, "%s: %d", path, asker.waiter.result.error);
	view = file_cache_view(asker.waiter.result.entry);
	ck_assert_int_eq(view->version.size, (off_t)size);
	ck_assert_uint_ne(view->id, 0);
	ck_assert_str_eq(view->path, path);
	ck_assert_msg(uniform(view, letter), "%s is not all %c", path, letter);
	give_back(loop, &asker);
	return asker.at_once;
}

static inline int error_of(unsigned loop, const char *path)
{
	return get(loop, path).waiter.result.error;
}

static inline uint64_t inserts(void)
{
	struct NC_cache_stat stat;

	ck_assert_int_eq(NC_cache_stat(cache, &stat, sizeof(stat)), 0);
	return stat.inserts;
}

#endif
