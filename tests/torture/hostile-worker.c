/* SPDX-License-Identifier: MIT */
/*
 * hostile-worker.c - a compromised worker.  Some of its responses are valid; in
 * others it names units that are not its own or invalid, overwrites all memory that
 * it shares while the server reads it, abuses every descriptor that it has, makes all
 * the sealed units that it may, sends nothing, or exits.
 *
 *	hostile-worker SEED [PORT]
 *
 * PORT: of a peer that accepts connections and reads nothing.  Then it passes connections to it,
 * whose last close takes LINGER_S seconds, to all that it can send descriptors to.
 * Two threads at times: one of them scribbles.  Ends with its server.
 */
#include <err.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "content.h"
#include "hostile.h"

#define FDS 128
#define SCRIBBLE_NS 20000000u
#define LINGER_S 30
#define SEALED 256 /* units in one answer */

static uint64_t seed;
static uint16_t peer_port;

/* Values for random or targeted writes. */
static uint64_t some_value(uint64_t *state)
{
	uint64_t value = content_next(state);

	switch (content_next(state) % 6) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return value % 256;
	case 3:
		return UINT64_C(1) << value % 64;
	case 4:
		return value % (1 << 20);
	default:
		return value;
	}
}

/* Writes to every shared writable mapping, for a moment. */
static void *scribble(void *unused)
{
	uint64_t until = now_ns() + SCRIBBLE_NS, state = now_ns();
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end_at;
	struct {
		char *at;
		size_t size;
	} shared[32];
	unsigned count = 0;
	char line[512], rights[8];

	(void)unused;
	while (maps && count < 32 && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &start, &end_at, rights) != 3)
			continue;
		if (strncmp(rights, "rw-s", 4) != 0)
			continue;
		/* The text in the file is an address. */
		memcpy(&shared[count].at, &start, sizeof(start));
		shared[count++].size = end_at - start;
	}
	if (maps)
		fclose(maps);
	while (count && now_ns() < until) {
		for (unsigned i = 0; i < 100; i++) {
			unsigned which = (unsigned)(content_next(&state) % count);
			/* The heads of queues and tables are at the start of pages. */
			size_t at = content_next(&state) % shared[which].size & ~(size_t)7;
			uint64_t value = some_value(&state);

			if (i % 2)
				at = (at & ~(size_t)4095) + content_next(&state) % 512 / 8 * 8;
			if (i % 4 == 3)
				at %= 4096;
			memcpy(shared[which].at + at, &value, sizeof(value));
		}
	}
	return NULL;
}

/* A connection with bytes in flight that nobody reads: the last close waits.  Returns -1 for none. */
static int lingering_connection(void)
{
	struct sockaddr_in peer = {.sin_family = AF_INET,
				   .sin_port = htons(peer_port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
	static char bytes[1 << 16];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&peer, sizeof(peer)) < 0) {
		close(fd);
		return -1;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	return fd;
}

/* For a message with one descriptor. */
union one_descriptor {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

static union one_descriptor one_descriptor(int fd)
{
	union one_descriptor control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
						   .cmsg_level = SOL_SOCKET,
						   .cmsg_type = SCM_RIGHTS}};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return control;
}

/* Leaves the last close of such a connection to the process that receives it. */
static void pass_lingering(int over)
{
	int fd = lingering_connection();
	union one_descriptor control = one_descriptor(fd);
	struct iovec iov = {.iov_base = &seed, .iov_len = sizeof(seed)};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control.space,
				 .msg_controllen = sizeof(control.space)};
	struct linger none = {.l_onoff = 1};

	if (fd < 0)
		return;
	/* Else the last descriptor is this one. */
	if (sendmsg(over, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}

static void pass_to_all(void)
{
	for (int fd = 3; fd < FDS; fd++) {
		struct sockaddr address;
		socklen_t length = sizeof(address);

		if (getsockname(fd, &address, &length) == 0 && address.sa_family == AF_UNIX)
			pass_lingering(fd);
	}
}

/* Small ones, each of which needs a descriptor of the server's; they stay. */
static void seal_units(void)
{
	NC_handle unit;

	for (unsigned i = 0; i < SEALED; i++)
		if (NC_unit_alloc(NULL, &unit, 1 + content_next(&seed) % 100, 0, NC_KIND_SEALED,
				  0) < 0 ||
		    NC_unit_insert(&unit, 1) < 0)
			break;
}

/* Does everything possible to the object of a descriptor. */
static void abuse(int fd)
{
	union one_descriptor control = one_descriptor(fd);
	uint64_t words[64];
	struct iovec iov = {.iov_base = words, .iov_len = 1 + content_next(&seed) % sizeof(words)};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = content_next(&seed) % 2 ? control.space : NULL,
				 .msg_controllen = sizeof(control.space)};
	struct stat stat;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fstat(fd, &stat) < 0)
		return;
	for (unsigned i = 0; i < 64; i++)
		words[i] = some_value(&seed);
	if (!message.msg_control)
		message.msg_controllen = 0;
	if (S_ISSOCK(stat.st_mode)) {
		(void)sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	} else if (S_ISREG(stat.st_mode)) {
		(void)!ftruncate(fd, (off_t)(content_next(&seed) % 3 * 4096));
		(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
	} else {
		/* The flag is shared by all holders of the descriptor. */
		(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
		(void)!write(fd, words, 8);
		if (content_next(&seed) % 2)
			(void)!read(fd, words, 8);
		(void)fcntl(fd, F_SETFL, content_next(&seed) % 2 ? flags : flags & ~O_NONBLOCK);
	}
}

static size_t page(void)
{
	static const char text[] = "an honest page\n";
	NC_handle unit;

	if (NC_alloc(&unit, sizeof(text) - 1, 0) < 0 ||
	    NC_write(&unit, text, sizeof(text) - 1, 0) < 0 || NC_insert(&unit) < 0)
		_exit(1);
	return NC_cache_id(&unit);
}

static void answer(NC_worker *worker, struct NC_request *request)
{
	static size_t last;
	struct NC_response response = NC_RESPONSE_INIT(.status = 200);
	unsigned what = (unsigned)(content_next(&seed) % 32);
	pthread_t thread;

	response.body = (struct NC_range){.id = last = page(), .length = 15};
	switch (what) {
	case 0: /* possibly of another */
		response.body.id = last ^ (size_t)1 << content_next(&seed) % 64;
		break;
	case 1:
		response.body.id = (size_t)content_next(&seed);
		break;
	case 2: /* more than exists */
		response.body.length = (size_t)some_value(&seed);
		response.body.offset = (size_t)some_value(&seed);
		break;
	case 3:
		response.headers = "Content-Length: 99999999\r\nTransfer-Encoding: chunked\r\n";
		response.headers_length = strlen(response.headers);
		break;
	case 4:
		response.headers = "X: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
		response.headers_length = strlen(response.headers);
		break;
	case 5:
		(void)NC_destroy(NULL, last);
		break;
	case 6:
	case 7:
	case 8:
		if (pthread_create(&thread, NULL, scribble, NULL) == 0)
			pthread_detach(thread);
		break;
	case 9:
		for (int fd = 3; fd < FDS; fd++)
			abuse(fd);
		break;
	case 10:
		_exit(3);
	case 11:
		return; /* never */
	case 12:
		if (peer_port)
			pass_to_all();
		break;
	case 13:
		seal_units();
		break;
	default:
		break;
	}
	if (NC_worker_respond(worker, request, &response) < 0) {
		response = (struct NC_response)NC_RESPONSE_INIT(.status = 503);
		(void)NC_worker_respond(worker, request, &response);
	}
}

int main(int argc, char **argv)
{
	NC_worker *worker = NC_worker_open(NULL);
	struct NC_request request;

	if (!worker)
		err(1, "no server started me");
	/* Errors of its own are expected, and so are reports of a sanitizer. */
	if (dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO) < 0)
		err(1, "/dev/null");
	/* A different one at each start. */
	seed = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) + (uint64_t)getpid();
	peer_port = argc > 2 ? (uint16_t)atoi(argv[2]) : 0;
	while (NC_worker_accept(worker, &request, sizeof(request), 0) == 1)
		answer(worker, &request);
	NC_worker_close(worker);
	return 0;
}
