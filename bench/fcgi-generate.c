/* SPDX-License-Identifier: MIT */
/*
 * fcgi-generate.c - the peer's dynamic page: a FastCGI responder on libfcgi.
 *
 * Answers "?size=N" with the N bytes that cgi-examples/generate makes, filled again
 * for each request, so that bench compares two ways of handing a body to a web
 * server and nothing else.  The first process owns the listening socket and only
 * waits; each child has one thread that accepts from that socket.  With a FOLDER the
 * body goes into a file there, and the server gets its path (X-Sendfile).  bench
 * compiles and starts it.  Without arguments the process has no children, and answers those who
 * started it: by the socket that is its standard input, or as a worker with libnabc-fcgi.
 * Usage: fcgi-generate [SOCKET CHILDREN [FOLDER]]
 */
#include <errno.h>
#include <fcgiapp.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE_MAX_BYTES (64ul << 20)
#define CHILDREN_MAX 256
#define BACKLOG 1024
/*
 * Files of one child and size, written in turn.  The server does not report when it
 * has sent one: there are as many files as connections of bench, so that a file is
 * sent before it is written again.
 */
#define FILES 64

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-\n";

struct files {
	const char *folder; /* NULL: bodies are sent through the connection */
	unsigned next;
	char path[PATH_MAX];
};

/* Returns the number after "size=", or -1 if there is none or an invalid one. */
static long parse_size(const char *query)
{
	unsigned long size;
	char *end;

	if (!query || strncmp(query, "size=", 5) || query[5] < '0' || query[5] > '9')
		return -1;
	errno = 0;
	size = strtoul(query + 5, &end, 10);
	if (errno || *end || size > SIZE_MAX_BYTES)
		return -1;
	return (long)size;
}

static void fill(char *body, size_t size)
{
	size_t period = sizeof(alphabet) - 1;
	size_t i;

	for (i = 0; i + period <= size; i += period)
		memcpy(body + i, alphabet, period);
	memcpy(body + i, alphabet, size - i);
}

/*
 * Writes the page to a file; returns its path, or NULL. A file is written again in
 * place and never changes its size, since lighttpd caches the properties of a path,
 * and keeps the file open, for a second.
 */
static const char *write_file(struct files *files, const char *body, size_t size)
{
	char *path = files->path;
	int file;

	snprintf(path, sizeof(files->path), "%s/%d-%zu-%u", files->folder, (int)getpid(), size,
		 files->next++ % FILES);
	file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (file < 0)
		return NULL;
	for (size_t done = 0; done < size;) {
		ssize_t got = write(file, body + done, size - done);

		if (got < 0) {
			close(file);
			return NULL;
		}
		done += (size_t)got;
	}
	close(file);
	return path;
}

static void answer(FCGX_Request *request, struct files *files, char **body, size_t *room)
{
	long size = parse_size(FCGX_GetParam("QUERY_STRING", request->envp));

	if (size < 0) {
		FCGX_FPrintF(request->out, "Status: 400\r\nContent-Length: 0\r\n\r\n");
		return;
	}
	if ((size_t)size > *room) {
		char *larger = realloc(*body, (size_t)size);

		if (!larger) {
			FCGX_FPrintF(request->out, "Status: 503\r\nContent-Length: 0\r\n\r\n");
			return;
		}
		*body = larger;
		*room = (size_t)size;
	}
	if (size > 0)
		fill(*body, (size_t)size);
	if (files->folder) {
		const char *path = write_file(files, *body, (size_t)size);

		if (!path)
			FCGX_FPrintF(request->out, "Status: 503\r\nContent-Length: 0\r\n\r\n");
		else
			FCGX_FPrintF(request->out,
				     "Content-Type: text/plain\r\n"
				     "X-Sendfile: %s\r\n\r\n",
				     path);
		return;
	}
	FCGX_FPrintF(request->out,
		     "Content-Type: text/plain\r\n"
		     "Content-Length: %ld\r\n\r\n",
		     size);
	FCGX_PutStr(*body, (int)size, request->out);
}

static int serve(int listener, const char *folder)
{
	struct files files = {.folder = folder};
	FCGX_Request request;
	char *body = NULL;
	size_t room = 0;

	if (FCGX_InitRequest(&request, listener, 0))
		return 1;
	while (!FCGX_Accept_r(&request)) {
		/* An unread rest of a request would end a kept connection. */
		while (FCGX_GetChar(request.in) >= 0)
			;
		answer(&request, &files, &body, &room);
		FCGX_Finish_r(&request);
	}
	free(body);
	return 1;
}

static int start(int listener, const char *folder, const sigset_t *awaited, pid_t *child)
{
	pid_t parent = getpid();

	*child = fork();
	if (*child)
		return *child < 0 ? -1 : 0;
	sigprocmask(SIG_UNBLOCK, awaited, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	_exit(serve(listener, folder));
}

int main(int argc, char **argv)
{
	pid_t children[CHILDREN_MAX];
	int count = argc == 3 || argc == 4 ? atoi(argv[2]) : 0;
	sigset_t awaited;
	int status = 1;
	int listener;
	int started;
	int i;

	if (argc == 1)
		return FCGX_Init() || serve(0, NULL);
	if (count < 1 || count > CHILDREN_MAX) {
		fprintf(stderr, "usage: fcgi-generate [SOCKET CHILDREN [FOLDER]]\n");
		return 2;
	}
	/* Blocked before the first fork, so that no signal is missed below. */
	sigemptyset(&awaited);
	sigaddset(&awaited, SIGTERM);
	sigaddset(&awaited, SIGINT);
	sigaddset(&awaited, SIGCHLD);
	sigprocmask(SIG_BLOCK, &awaited, NULL);
	if (FCGX_Init())
		return 1;
	listener = FCGX_OpenSocket(argv[1], BACKLOG);
	if (listener < 0 || chmod(argv[1], 0666)) {
		fprintf(stderr, "fcgi-generate: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	for (started = 0; started < count; started++)
		if (start(listener, argc == 4 ? argv[3] : NULL, &awaited, &children[started]))
			break;
	if (started == count) {
		fprintf(stderr, "fcgi-generate: ready\n");
		/* A child never exits by itself: if one does, the server ends. */
		status = sigwaitinfo(&awaited, NULL) == SIGCHLD;
	} else {
		perror("fcgi-generate: fork");
	}
	for (i = 0; i < started; i++)
		kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	unlink(argv[1]);
	return status;
}
