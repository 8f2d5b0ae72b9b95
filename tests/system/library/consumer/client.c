/* SPDX-License-Identifier: MIT */
/*
 * client.c - requests everything that server.c serves and checks every byte.
 *
 *	client PORT DIRECTORY REQUESTS
 *
 * Some connections keep a few requests in flight each, of all sorts, chosen by a
 * sequence that is the same in every run.  The first wrong response ends the program
 * with status 1.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONNECTIONS = 16, DEPTH = 4, FILES = 64, HEAD = 1024, PAGE = 1 << 20 };

static struct file {
	char name[256];
	const char *bytes;
	size_t size;
} files[FILES];
static unsigned file_count;

/* A request in flight, and the expected response. */
struct request {
	enum { FILE_WHOLE, FILE_RANGE, LINES, SQUARES, ABSENT } sort;
	bool head_only, last;
	const struct file *file;
	size_t first, length; /* of the body */
	int lines;
};

static struct connection {
	int fd;		       /* -1: to be opened */
	bool ending;	       /* a request said Connection: close */
	unsigned begun, count; /* of requests: a ring */
	struct request requests[DEPTH];
	char out[DEPTH * 128];
	size_t out_have;
	bool in_body;
	size_t head_have, body_have;
	char head[HEAD + 1];
	char *page; /* the expected body, if it is generated here */
	const char *expected;
} connections[CONNECTIONS];

static struct sockaddr_in server = {.sin_family = AF_INET};
static unsigned long asked, answered, wanted;

static unsigned chance(unsigned below)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state >> 32) % below);
}

static void load(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;

	if (!directory)
		err(1, "%s", path);
	while ((entry = readdir(directory)) && file_count < FILES) {
		struct file *file = &files[file_count];
		int fd = openat(dirfd(directory), entry->d_name, O_RDONLY | O_CLOEXEC);
		struct stat stat;

		if (fd < 0 || fstat(fd, &stat) < 0)
			err(1, "%s", entry->d_name);
		if (S_ISREG(stat.st_mode)) {
			strcpy(file->name, entry->d_name);
			file->size = (size_t)stat.st_size;
			file->bytes = "";
			if (file->size)
				file->bytes = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
			if (file->bytes == MAP_FAILED)
				err(1, "%s", entry->d_name);
			file_count++;
		}
		close(fd);
	}
	closedir(directory);
	if (!file_count)
		errx(1, "%s: no files", path);
}

/* Most are small, as on the web; one in about fifty is the largest. */
static const struct file *any_file(void)
{
	const struct file *a = &files[chance(file_count)], *b = &files[chance(file_count)];

	return a->size < b->size || chance(8) == 0 ? a : b;
}

static void ask(struct connection *c)
{
	struct request *request = &c->requests[(c->begun + c->count++) % DEPTH];
	char path[300], range[64] = "";
	unsigned what = chance(100);

	memset(request, 0, sizeof(*request));
	request->head_only = chance(10) == 0;
	request->last = c->ending = chance(200) == 0;
	request->lines = 1 + (int)chance(what % 20 ? 60 : 6000);
	if (what < 60) {
		request->file = any_file();
		request->length = request->file->size;
		if (what < 10 && request->length) {
			request->sort = FILE_RANGE;
			request->first = chance((unsigned)request->length);
			request->length =
				1 + chance((unsigned)(request->file->size - request->first));
			snprintf(range, sizeof(range), "Range: bytes=%zu-%zu\r\n", request->first,
				 request->first + request->length - 1);
		}
		snprintf(path, sizeof(path), "/%s", request->file->name);
	} else if (what < 75) {
		request->sort = LINES;
		snprintf(path, sizeof(path), "/lines/%d", request->lines);
	} else if (what < 95) {
		request->sort = SQUARES;
		snprintf(path, sizeof(path), "/squares/%d", request->lines);
	} else {
		request->sort = ABSENT;
		snprintf(path, sizeof(path), "/absent");
	}
	c->out_have += (size_t)snprintf(c->out + c->out_have, sizeof(c->out) - c->out_have,
					"%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n",
					request->head_only ? "HEAD" : "GET", path, range,
					request->last ? "Connection: close\r\n" : "");
	if (c->out_have >= sizeof(c->out))
		errx(1, "a request too long: %s", path);
	asked++;
}

/* Sets the expected body of the first request. */
static void expect(struct connection *c)
{
	struct request *request = &c->requests[c->begun];
	size_t length = 0;

	if (request->file) {
		c->expected = request->file->bytes + request->first;
		return;
	}
	c->expected = c->page;
	if (request->sort == ABSENT)
		length = (size_t)sprintf(c->page, "Sorry.\n");
	for (int i = 1; request->sort == LINES && i <= request->lines; i++)
		length += (size_t)sprintf(c->page + length, "line %d of %d\n", i, request->lines);
	for (int i = 1; request->sort == SQUARES && i <= request->lines; i++)
		length += (size_t)sprintf(c->page + length, "%d of %d: %d\n", i, request->lines,
					  i * i);
	request->length = length;
}

static void check_head(struct connection *c)
{
	const struct request *request = &c->requests[c->begun];
	int status = request->sort == ABSENT ? 404 : request->sort == FILE_RANGE ? 206 : 200;
	char line[96];

	snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
	if (strncmp(c->head, line, strlen(line)))
		errx(1, "not status %d but %s", status, c->head);
	snprintf(line, sizeof(line), "\r\nContent-Length: %zu\r\n", request->length);
	if (!strstr(c->head, line))
		errx(1, "not length %zu but %s", request->length, c->head);
	if (!request->last != !strstr(c->head, "\r\nConnection: close\r\n"))
		errx(1, "the end is not told: %s", c->head);
	if (request->sort != FILE_RANGE)
		return;
	snprintf(line, sizeof(line), "\r\nContent-Range: bytes %zu-%zu/%zu\r\n", request->first,
		 request->first + request->length - 1, request->file->size);
	if (!strstr(c->head, line))
		errx(1, "not %s but %s", line, c->head);
}

/* Continues with the first response; returns false if more bytes are needed. */
static bool answer(struct connection *c, const char **data, size_t *length)
{
	const struct request *request = &c->requests[c->begun];
	size_t n;

	if (!c->in_body) {
		while (*length && !c->in_body) {
			if (c->head_have == HEAD)
				errx(1, "a head without an end: %s", c->head);
			c->head[c->head_have++] = *(*data)++;
			--*length;
			c->in_body = c->head_have >= 4 &&
				     !memcmp(c->head + c->head_have - 4, "\r\n\r\n", 4);
		}
		if (!c->in_body)
			return false;
		if (!c->count)
			errx(1, "an answer that nobody asked for");
		c->head[c->head_have] = '\0';
		c->body_have = 0;
		expect(c);
		check_head(c);
	}
	n = request->head_only ? 0 : request->length - c->body_have;
	if (n > *length)
		n = *length;
	if (memcmp(*data, c->expected + c->body_have, n))
		errx(1, "wrong bytes from %zu of %zu on: %.100s", request->first + c->body_have,
		     request->first + request->length, c->head);
	*data += n;
	*length -= n;
	c->body_have += n;
	if (!request->head_only && c->body_have < request->length)
		return false;
	c->in_body = false;
	c->head_have = 0;
	c->begun = (c->begun + 1) % DEPTH;
	c->count--;
	answered++;
	return true;
}

static void receive(struct connection *c)
{
	static char buffer[256 << 10];
	const char *data = buffer;
	ssize_t n = recv(c->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	size_t length = (size_t)n;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		err(1, "recv");
	if (n == 0 && (!c->ending || c->count))
		errx(1, "the server hung up with %u answers to come", c->count);
	if (n == 0) {
		close(c->fd);
		c->fd = -1;
		return;
	}
	while (length && answer(c, &data, &length))
		;
	if (length)
		errx(1, "%zu bytes too many", length);
}

static void transmit(struct connection *c)
{
	ssize_t n = send(c->fd, c->out, c->out_have, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		err(1, "send");
	if (n > 0) {
		c->out_have -= (size_t)n;
		memmove(c->out, c->out + n, c->out_have);
	}
}

int main(int argc, char **argv)
{
	struct pollfd polled[CONNECTIONS];

	if (argc != 4)
		errx(1, "usage: client PORT DIRECTORY REQUESTS");
	server.sin_port = htons((uint16_t)atoi(argv[1]));
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	load(argv[2]);
	wanted = strtoul(argv[3], NULL, 10);
	for (int i = 0; i < CONNECTIONS; i++) {
		connections[i].fd = -1;
		connections[i].page = malloc(PAGE);
		if (!connections[i].page)
			err(1, "malloc");
	}
	while (answered < wanted) {
		for (int i = 0; i < CONNECTIONS; i++) {
			struct connection *c = &connections[i];

			if (c->fd < 0 && asked < wanted) {
				c->ending = false;
				c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
				if (c->fd < 0 ||
				    connect(c->fd, (struct sockaddr *)&server, sizeof(server)) < 0)
					err(1, "connect");
			}
			while (c->fd >= 0 && asked < wanted && !c->ending && c->count < DEPTH &&
			       c->out_have < sizeof(c->out) / 2)
				ask(c);
			polled[i].fd = c->fd;
			polled[i].events = POLLIN | (c->out_have ? POLLOUT : 0);
		}
		if (poll(polled, CONNECTIONS, 60000) == 0)
			errx(1, "no answer for a minute");
		for (int i = 0; i < CONNECTIONS; i++) {
			if (polled[i].fd >= 0 && polled[i].revents & POLLOUT)
				transmit(&connections[i]);
			if (polled[i].fd >= 0 && polled[i].revents & (POLLIN | POLLERR | POLLHUP))
				receive(&connections[i]);
		}
	}
	printf("%lu answers, all as they must be\n", answered);
	return 0;
}
