/* SPDX-License-Identifier: MIT */
/*
 * key-opener.c - see key-opener.h.
 *
 * A request is one message: nothing, to read the configuration, or a path.  The answer is an errno,
 * and with 0 for a path the descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nabc.h>
#include <signal.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#include "base/user-open.h"
#include "config/config-read.h"
#include "config/configuration.h"
#include "spawn/helper-process.h"
#include "spawn/key-opener.h"
#include "spawn/reader-filter.h"

struct key_opener {
	int socket;
	pid_t pid;
};

/* --- the process --------------------------------------------------------------------- */

/* Sends the answer, and the descriptor if it is not -1. */
static void answer(int socket, int error, int fd)
{
	alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {&error, sizeof(error)};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *header;

		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	(void)sendmsg(socket, &message, MSG_NOSIGNAL);
}

static const struct config *read_config(int argc, char **argv)
{
	GPtrArray *errors = g_ptr_array_new_with_free_func(g_free);
	struct config_request request = {0};
	/* The server reports the errors, which it finds as well. */
	const struct config *config = config_read(argc, argv, &request, errors);

	g_ptr_array_free(errors, TRUE);
	return config;
}

static bool lists(char *const *files, const char *path)
{
	return files && g_strv_contains((const char *const *)files, path);
}

static bool is_named(const struct config *config, const char *path)
{
	for (unsigned i = 0; config && i < config->host_count; i++) {
		const struct host *host = &config->hosts[i];

		if (lists(host->certificates, path) || lists(host->keys, path) ||
		    g_strcmp0(host->client_ca, path) == 0 || lists(host->staples, path) ||
		    g_strcmp0(host->answer_folder, path) == 0)
			return true;
	}
	return false;
}

static void answer_file(int socket, const struct config *config, const char *path)
{
	int fd = -1, error = is_named(config, path) ? 0 : EPERM;

	if (!error) {
		/* The server may be in the hands of others, and so what its user can write. */
		fd = user_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
		error = fd == USER_OPEN_UNSAFE ? EPERM : fd < 0 ? -fd : 0;
	}
	answer(socket, error, fd);
	if (fd >= 0)
		close(fd);
}

static _Noreturn void serve(int socket, int argc, char **argv)
{
	const struct config *config = NULL;
	char path[PATH_MAX];
	ssize_t length;

	for (;;) {
		length = recv(socket, path, sizeof(path), MSG_TRUNC);
		if (length < 0 && errno == EINTR)
			continue;
		/* A message of no bytes looks like the end: requests have one at least. */
		if (length <= 0)
			break;
		if (length == 1) {
			config_release(config);
			config = read_config(argc, argv);
			answer(socket, config ? 0 : EINVAL, -1);
		} else if ((size_t)length > sizeof(path) || path[length - 1] != '\0') {
			answer(socket, ENAMETOOLONG, -1);
		} else {
			answer_file(socket, config, path);
		}
	}
	config_release(config);
	_exit(EXIT_SUCCESS);
}

/* --- the server's side ----------------------------------------------------------------- */

struct key_opener *key_opener_open(int argc, char **argv)
{
	struct key_opener *opener;
	int pair[2], own;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return NULL;
	pid = fork();
	if (pid == 0) {
		if (helper_process_enter("sweet: keys", &pair[1], 1, &own) < 0 ||
		    reader_filter_enter() < 0)
			_exit(EXIT_FAILURE);
		serve(own, argc, argv);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return NULL;
	}
	opener = g_new(struct key_opener, 1);
	*opener = (struct key_opener){.socket = pair[0], .pid = pid};
	return opener;
}

void key_opener_close(struct key_opener *opener)
{
	if (!opener)
		return;
	close(opener->socket);
	while (waitpid(opener->pid, NULL, 0) < 0 && errno == EINTR)
		;
	g_free(opener);
}

/* Sends a request and waits for its answer; returns 0 or -errno. */
static int ask(const struct key_opener *opener, const char *text, size_t length, int *fd)
{
	alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	int error = 0;
	struct iovec iov = {&error, sizeof(error)};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	const struct cmsghdr *header;
	ssize_t got;

	if (send(opener->socket, text, length, MSG_NOSIGNAL) < 0)
		return -errno;
	do
		got = recvmsg(opener->socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got != sizeof(error))
		return -EPIPE;
	header = CMSG_FIRSTHDR(&message);
	if (fd && header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return -error;
}

int key_opener_begin(struct key_opener *opener)
{
	return ask(opener, "", 1, NULL);
}

int key_opener_file(struct key_opener *opener, const char *path)
{
	int fd = -1, error = ask(opener, path, strlen(path) + 1, &fd);

	if (error)
		return error;
	return fd >= 0 ? fd : -EPROTO;
}
