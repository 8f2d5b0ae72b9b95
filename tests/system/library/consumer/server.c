/* SPDX-License-Identifier: MIT */
/*
 * server.c - a small HTTP/1.1 server as a third party would write it, from the
 * manual pages of libnabc alone.
 *
 *	server PORT DIRECTORY SOCKET WORKER
 *
 *	/NAME		a file of DIRECTORY, which is in the cache since the start
 *	/lines/N	a page that is generated for this request
 *	/squares/N	a page that the program WORKER makes
 *	/grant/PID/NAME	grants a process the unit of a file, and responds with its id
 *
 * SIGUSR1 prints statistics, SIGTERM ends.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <nabc.h>
#include <nabc-worker.h>

enum { CONNECTIONS = 256, FILES = 64, LINES_MAX = 50000, LINE = 24 };

static struct file {
	char name[64];
	size_t id, size; /* no id: an empty file, since no unit is empty */
	struct NC_hold hold;
} files[FILES];
static int file_count;

static struct connection {
	int fd; /* -1: free */
	enum { READING, WAITING, SENDING } state;
	bool last, head_only;
	size_t have;  /* bytes of in */
	bool release; /* hold is of a unit for this response alone */
	size_t total; /* bytes of message */
	struct NC_hold hold;
	struct NC_range range;
	struct NC_send message;
	char in[4096], out[1024];
} connections[CONNECTIONS];

static NC_cache *cache;
static NC_backend *backend;
static char *worker_argv[2];
static int loop, listener, signals;

/* The source of an event, if it is not a connection. */
static char on_listener, on_cache, on_signal, on_worker, on_worker_end;

static void watch(int fd, uint32_t events, void *what)
{
	struct epoll_event event = {.events = events, .data.ptr = what};

	if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) < 0)
		err(1, "epoll_ctl");
}

/* Prepares a response; a body that is not a unit is not sent here. */
static void respond(struct connection *c, int status, const char *headers, int length,
		    struct NC_range body, const struct NC_hold *hold)
{
	int n = snprintf(c->out, sizeof(c->out),
			 "HTTP/1.1 %d Status\r\nContent-Length: %zu\r\n%s%.*s\r\n", status,
			 body.length, c->last ? "Connection: close\r\n" : "", length, headers);

	c->range = body;
	c->message =
		(struct NC_send)NC_SEND_INIT(.header = c->out, .header_length = (size_t)n,
					     .ranges = &c->range,
					     .range_count = body.id && body.length && !c->head_only,
					     .flags = c->last ? NC_SEND_CLOSE : 0);
	/* The table of files holds the units of files; the connection holds others. */
	c->message.holds = hold;
	c->message.hold_count = c->message.range_count;
	c->total = (size_t)n + (c->message.range_count ? body.length : 0);
	c->state = SENDING;
}

/* The body is text, and so short that it is sent as a part of the header. */
static void respond_text(struct connection *c, int status, const char *text)
{
	respond(c, status, "", 0, (struct NC_range){.length = strlen(text)}, NULL);
	if (c->head_only)
		return;
	strcpy(c->out + c->total, text);
	c->total = c->message.header_length += strlen(text);
}

static void respond_error(struct connection *c, int status)
{
	respond_text(c, status, "Sorry.\n");
}

/* The unit is for this response only: destroyed here, freed when released. */
static void respond_lines(struct connection *c, int lines)
{
	struct NC_range body = {0};
	NC_handle unit;
	FILE *to;
	bool good;

	if (lines < 1 || lines > LINES_MAX)
		return respond_error(c, 404);
	if (NC_unit_alloc(NULL, &unit, (size_t)lines * LINE, 0, NC_KIND_RECYCLED, 0) < 0)
		return respond_error(c, 503);
	to = NC_stream(&unit, "w");
	for (int i = 1; to && i <= lines; i++)
		fprintf(to, "line %d of %d\n", i, lines);
	body.length = to ? (size_t)ftell(to) : 0;
	good = to && fclose(to) == 0 && NC_insert(&unit) == 0;
	body.id = NC_cache_id(&unit);
	NC_free(&unit);
	if (!good || NC_hold(NULL, body.id, &c->hold) < 0)
		return respond_error(c, 503);
	NC_destroy(NULL, body.id);
	c->release = true;
	respond(c, 200, "", 0, body, &c->hold);
}

/* The connection waits for the worker, which identifies it by the tag. */
static void ask_worker(struct connection *c, int lines)
{
	char variable[32];
	size_t length = (size_t)snprintf(variable, sizeof(variable), "LINES=%d", lines) + 1;

	if (!backend ||
	    NC_backend_submit(backend, 0, (uint64_t)(c - connections), variable, length, 0) < 0 ||
	    NC_backend_kick(backend, 0) < 0)
		return respond_error(c, 503);
	c->state = WAITING;
}

static struct file *find(const char *name)
{
	for (int i = 0; i < file_count; i++)
		if (!strcmp(files[i].name, name))
			return &files[i];
	return NULL;
}

static void respond_file(struct connection *c, const char *name, const char *fields)
{
	struct file *file = find(name);
	const char *wanted = strcasestr(fields, "\r\nRange: bytes=");
	char headers[96];
	size_t first, last;

	if (!file)
		return respond_error(c, 404);
	if (!wanted || sscanf(wanted + 15, "%zu-%zu", &first, &last) != 2 || first > last)
		return respond(c, 200, "", 0, (struct NC_range){file->id, 0, file->size},
			       &file->hold);
	if (last >= file->size)
		return respond_error(c, 416);
	respond(c, 206, headers,
		snprintf(headers, sizeof(headers), "Content-Range: bytes %zu-%zu/%zu\r\n", first,
			 last, file->size),
		(struct NC_range){file->id, first, last - first + 1}, &file->hold);
}

static void respond_grant(struct connection *c, int pid, const char *name)
{
	struct file *file = find(name);
	char text[32];

	if (!file || NC_grant(cache, file->id, NC_PROCESS, (id_t)pid) < 0)
		return respond_error(c, 404);
	snprintf(text, sizeof(text), "%zu\n", file->id);
	respond_text(c, 200, text);
}

/* Starts the response to the first request in c->in; returns false if that is incomplete. */
static bool take_request(struct connection *c)
{
	char *end = memmem(c->in, c->have, "\r\n\r\n", 4);
	char method[8], path[128], name[64];
	int number, done = 0;

	if (!end && c->have < sizeof(c->in))
		return false;
	c->last = true;
	c->head_only = false;
	if (!end) {
		c->have = 0;
		respond_error(c, 431);
		return true;
	}
	end[2] = '\0';
	if (sscanf(c->in, "%7s %127s HTTP/1.1\r%n", method, path, &done) != 2 || !done) {
		respond_error(c, 400);
	} else {
		c->last = strcasestr(c->in, "\r\nConnection: close\r\n");
		c->head_only = !strcmp(method, "HEAD");
		if (!c->head_only && strcmp(method, "GET"))
			respond_error(c, 501);
		else if (sscanf(path, "/lines/%d", &number) == 1)
			respond_lines(c, number);
		else if (sscanf(path, "/squares/%d", &number) == 1)
			ask_worker(c, number);
		else if (sscanf(path, "/grant/%d/%63s", &number, name) == 2)
			respond_grant(c, number, name);
		else
			respond_file(c, path + 1, c->in);
	}
	c->have -= (size_t)(end + 4 - c->in);
	memmove(c->in, end + 4, c->have);
	return true;
}

static void finish_response(struct connection *c)
{
	if (c->release)
		NC_release(&c->hold);
	c->release = false;
	c->state = READING;
}

/* Continues with a connection until it has to wait for its socket or the worker. */
static void serve(struct connection *c)
{
	ssize_t n;

	while (c->fd >= 0 && c->state != WAITING) {
		if (c->state == READING && take_request(c))
			continue;
		if (c->state == READING) {
			n = recv(c->fd, c->in + c->have, sizeof(c->in) - c->have, 0);
			c->have += n > 0 ? (size_t)n : 0;
		} else {
			n = NC_send(NULL, c->fd, &c->message);
			c->message.skip += n > 0 ? (size_t)n : 0;
			if (n > 0 && c->message.skip == c->total) {
				finish_response(c);
				n = c->last ? 0 : 1;
			}
		}
		if (n > 0 || (n < 0 && errno == EINTR))
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		finish_response(c);
		close(c->fd);
		c->fd = -1;
	}
}

static void accept_all(void)
{
	int fd, one = 1;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct connection *c = connections;

		while (c < connections + CONNECTIONS && c->fd >= 0)
			c++;
		if (c == connections + CONNECTIONS) {
			close(fd);
			continue;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		c->fd = fd;
		c->have = 0;
		watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, c);
	}
}

static void start_worker(void)
{
	struct NC_backend_options options =
		NC_BACKEND_OPTIONS_INIT(.argv = worker_argv, .channels = 1, .memory = 64 << 20);

	backend = NC_backend_start(cache, &options);
	if (!backend)
		err(1, "%s", worker_argv[0]);
	watch(NC_backend_fd(backend, 0), EPOLLIN | EPOLLET, &on_worker);
	watch(NC_backend_pidfd(backend), EPOLLIN, &on_worker_end);
}

/* The worker may send anything: the tag and the length are checked. */
static void respond_of_worker(uint64_t tag, const struct NC_response *given)
{
	struct connection *c = &connections[tag < CONNECTIONS ? tag : 0];

	if (tag >= CONNECTIONS || c->fd < 0 || c->state != WAITING) {
		struct NC_hold hold;

		for (unsigned i = 0; i < given->range_count; i++) {
			hold = given->holds[i];
			NC_release(&hold);
		}
		return;
	}
	c->release = given->body.id;
	if (c->release)
		c->hold = given->holds[0];
	if (given->headers_length > 512)
		respond_error(c, 502);
	else
		respond(c, given->status, given->headers_length ? given->headers : "",
			(int)given->headers_length, given->body, &c->hold);
	serve(c);
}

/*
 * Connections that wait for a worker that has exited get an error; the next ones get a
 * new worker.
 */
static void replace_worker(void)
{
	NC_backend_close(backend);
	start_worker();
	for (struct connection *c = connections; c < connections + CONNECTIONS; c++) {
		if (c->fd < 0 || c->state != WAITING)
			continue;
		respond_error(c, 502);
		serve(c);
	}
}

/* Leaves the worker armed: called before each sleep. */
static void reap_worker(void)
{
	struct NC_response given;
	uint64_t tag;
	int got;

	while ((got = NC_backend_reap(backend, 0, &tag, &given, sizeof(given))) == 1 ||
	       (got == 0 && NC_backend_arm(backend, 0, 1) == 1))
		if (got == 1)
			respond_of_worker(tag, &given);
	if (got < 0)
		replace_worker();
}

static void print_statistics(void)
{
	struct NC_cache_stat stat;

	if (NC_cache_stat(cache, &stat, sizeof(stat)) < 0)
		return warn("NC_cache_stat");
	printf("units %" PRIu64 " members %" PRIu64 " inserts %" PRIu64 " destroys %" PRIu64
	       " failures %" PRIu64 " copy %" PRIu64 " splice %" PRIu64 " zerocopy %" PRIu64
	       " uring %s\n",
	       stat.units, stat.members, stat.inserts, stat.destroys, stat.failures,
	       stat.by_copy.sends, stat.by_splice.sends, stat.by_zerocopy.sends, stat.uring);
	fflush(stdout);
}

/* Puts the files of a directory into the cache and holds them forever. */
static void load(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;

	if (!directory)
		err(1, "%s", path);
	while ((entry = readdir(directory)) && file_count < FILES) {
		struct file *file = &files[file_count];
		int fd = openat(dirfd(directory), entry->d_name, O_RDONLY | O_CLOEXEC);
		NC_handle unit;
		struct stat stat;

		if (fd < 0 || fstat(fd, &stat) < 0)
			err(1, "%s", entry->d_name);
		if (S_ISREG(stat.st_mode) && strlen(entry->d_name) < sizeof(file->name)) {
			strcpy(file->name, entry->d_name);
			file->size = (size_t)stat.st_size;
			if (file->size) {
				if (NC_alloc(&unit, file->size, 0) < 0 ||
				    NC_read(fd, &unit, 0, file->size) != stat.st_size ||
				    NC_insert(&unit) < 0 ||
				    NC_hold(NULL, NC_cache_id(&unit), &file->hold) < 0)
					err(1, "%s", entry->d_name);
				file->id = NC_cache_id(&unit);
				NC_free(&unit);
			}
			file_count++;
		}
		close(fd);
	}
	closedir(directory);
}

static void say(void *context, int priority, const char *message)
{
	(void)context;
	fprintf(stderr, "nabc <%d> %s\n", priority, message);
}

static void listen_at(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int one = 1;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 512) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) < 0)
		err(1, "port %d", port);
	printf("port %d\n", ntohs(address.sin_port));
	fflush(stdout);
}

static void handle(void *what)
{
	if (what == &on_listener)
		accept_all();
	else if (what == &on_cache)
		NC_cache_dispatch(cache);
	else if (what == &on_worker_end)
		reap_worker(), replace_worker();
	else if (what != &on_worker) /* which is handled before each sleep */
		serve(what);
}

int main(int argc, char **argv)
{
	struct NC_cache_options options =
		NC_CACHE_OPTIONS_INIT(.memory = 128 << 20, .flags = NC_CACHE_NO_THREAD, .log = say);
	struct signalfd_siginfo signal_info = {0};
	sigset_t set;

	if (argc != 5)
		errx(1, "usage: server PORT DIRECTORY SOCKET WORKER");
	signal(SIGPIPE, SIG_IGN); /* so that large units may be spliced */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	cache = NC_cache_open(&options);
	if (!cache || NC_cache_serve(cache, argv[3], NULL) < 0)
		err(1, "%s", argv[3]);
	load(argv[2]);
	for (int i = 0; i < CONNECTIONS; i++)
		connections[i].fd = -1;
	loop = epoll_create1(EPOLL_CLOEXEC);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	worker_argv[0] = argv[4];
	start_worker();
	listen_at(atoi(argv[1]));
	watch(listener, EPOLLIN, &on_listener);
	watch(signals, EPOLLIN, &on_signal);
	watch(NC_cache_fd(cache), EPOLLIN, &on_cache);
	while (signal_info.ssi_signo != SIGTERM) {
		struct epoll_event events[64];
		int n;

		reap_worker();
		n = epoll_wait(loop, events, 64, -1);
		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr != &on_signal)
				handle(events[i].data.ptr);
			else if (read(signals, &signal_info, sizeof(signal_info)) > 0)
				print_statistics();
		}
	}
	NC_backend_close(backend);
	if (NC_cache_close(cache) < 0)
		err(1, "NC_cache_close");
	return 0;
}
