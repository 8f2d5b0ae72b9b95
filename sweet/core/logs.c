/* SPDX-License-Identifier: MIT */
/*
 * logs.c - see logs.h.  The server keeps a descriptor of the access log, and each thread has a copy
 * of it.  Only the main thread changes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "core/logs.h"

static int copy(int fd)
{
	int copied = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return fd >= 0 && copied < 0 ? -errno : copied;
}

static void close_all(int *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Makes a copy for each thread; all of them or none. */
static int copy_all(int fd, int *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		fds[i] = copy(fd);
		if (fd < 0 || fds[i] >= 0)
			continue;
		close_all(fds, i);
		return fds[i];
	}
	return 0;
}

bool logs_apply(struct server *server, const struct config *config, char **why)
{
	int fd, fds[SERVER_THREADS_MAX], error;
	unsigned threads = 0;

	while (threads < server->threads && server->per_thread[threads])
		threads++;
	error = access_log_open(config->access_log, &fd);
	if (error) {
		*why = g_strdup_printf("cannot write the access log \"%s\": %s", config->access_log,
				       strerror(-error));
		return false;
	}
	error = copy_all(fd, fds, threads);
	if (error) {
		*why = g_strdup_printf("cannot give the access log to %u threads: %s", threads,
				       strerror(-error));
	} else {
		error = log_open(config->error_log);
		if (error) {
			*why = g_strdup_printf("cannot write the error log \"%s\": %s",
					       config->error_log, strerror(-error));
			close_all(fds, threads);
		}
	}
	if (error) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	log_set_level((enum log_level)config->log_level);
	for (unsigned i = 0; i < threads; i++)
		access_log_change(&server->per_thread[i]->log, fds[i],
				  (enum access_format)config->log_format);
	logs_close(server);
	server->log_fd = fd;
	server->log_format = (enum access_format)config->log_format;
	return true;
}

bool logs_join(struct server *server, struct thread *thread, char **why)
{
	int fd = copy(server->log_fd);

	if (server->log_fd >= 0 && fd < 0) {
		*why = g_strdup_printf("cannot give the access log to a thread: %s", strerror(-fd));
		return false;
	}
	access_log_start(&thread->log, thread->loop, fd, server->log_format);
	return true;
}

void logs_close(struct server *server)
{
	if (server->log_fd >= 0)
		close(server->log_fd);
	server->log_fd = -1;
}
