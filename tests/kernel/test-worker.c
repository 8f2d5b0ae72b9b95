/* SPDX-License-Identifier: MIT */
/*
 * test-worker.c - workers of libnabc with the module: processes of their own, also of
 * another user, whose responses a server sends from there; one that is killed
 * meanwhile, sockets that the module refuses, and users and servers without a device.
 * With an argument this program is the worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nabc-uapi.h>
#include <nabc-worker.h>
#include <nabc.h>

#include "guest.h"
#include "library.h"

#define SELF "/proc/self/exe"
#define SIZE ((size_t)200 << 10)

/* --- the worker ---------------------------------------------------------------- */

static uint64_t number(const struct NC_request *request, const char *name)
{
	const char *text = NC_request_variable(request, name);

	return text ? strtoull(text, NULL, 10) : 0;
}

static int serve(void)
{
	NC_worker *worker = NC_worker_open(NULL);
	struct NC_request request;

	must(worker);
	while (NC_worker_accept(worker, &request, sizeof(request), 0) == 1) {
		size_t size = number(&request, "SIZE");
		size_t id = library_unit(number(&request, "SEED"), size, NC_KIND_AUTO);
		struct NC_response response =
			NC_RESPONSE_INIT(.status = 200, .body = {.id = id, .length = size},
					 .headers = library_kind(id) == NC_KIND_KERNEL
							    ? "Kind: kernel\r\n"
							    : "Kind: other\r\n");

		response.headers_length = strlen(response.headers);
		must(NC_worker_respond(worker, &request, &response) == 0);
	}
	NC_worker_close(worker);
	return 0;
}

/* --- the server ------------------------------------------------------------------ */

static NC_backend *backend;
static uid_t worker_user;

/* Like a spawner: for another user, reported once it runs as that user. */
static int start_as(void *context, int socket, char *const *environment, pid_t *pid, int *pidfd)
{
	char *argv[] = {"test-worker", "worker", NULL};
	int running[2];
	char byte;

	(void)context;
	must(pipe2(running, O_CLOEXEC) == 0);
	*pid = fork();
	must(*pid >= 0);
	if (*pid == 0) {
		if (setgroups(0, NULL) || setgid(worker_user) || setuid(worker_user) ||
		    dup2(socket, 3) < 0 || fcntl(3, F_SETFD, 0) < 0)
			_exit(1);
		/* The socket may have been descriptor 3, or the pipe. */
		execve(SELF, argv, environment);
		_exit(127);
	}
	close(running[1]);
	must(read(running[0], &byte, 1) == 0);
	close(running[0]);
	*pidfd = (int)syscall(SYS_pidfd_open, *pid, 0);
	return *pidfd < 0 ? -1 : 0;
}

static void start(uid_t user)
{
	char *argv[] = {SELF, "worker", NULL};
	struct NC_backend_options options = NC_BACKEND_OPTIONS_INIT(.argv = argv, .channels = 1);

	worker_user = user;
	if (user)
		options.start = start_as;
	backend = NC_backend_start(NULL, &options);
	must(backend);
}

static void ask(uint64_t tag, uint64_t seed, size_t size)
{
	char variables[100];
	int length = sprintf(variables, "SEED=%llu", (unsigned long long)seed) + 1;

	length += sprintf(variables + length, "SIZE=%zu", size) + 1;
	must(NC_backend_submit(backend, 0, tag, variables, (size_t)length, 0) == 0);
	must(NC_backend_kick(backend, 0) == 0);
}

struct taking {
	struct NC_response response;
	uint64_t tag;
	int got;
};

static bool is_taken(void *context)
{
	struct taking *taking = context;

	taking->got = NC_backend_reap(backend, 0, &taking->tag, &taking->response,
				      sizeof(taking->response));
	return taking->got != 0;
}

static struct NC_response take(uint64_t wanted, bool kernel)
{
	const char *kind = kernel ? "Kind: kernel\r\n" : "Kind: other\r\n";
	struct taking taking;

	must(guest_wait(is_taken, &taking));
	must(taking.got == 1 && taking.tag == wanted && taking.response.status == 200);
	must(taking.response.headers_length == strlen(kind));
	must(memcmp(taking.response.headers, kind, strlen(kind)) == 0);
	return taking.response;
}

static void send_body(const struct guest_pair *pair, const struct NC_response *response,
		      uint64_t seed)
{
	struct NC_hold hold = response->holds[0];

	library_send(pair->near, pair->far, response->body.id, seed, 0, response->body.length, 0,
		     &hold);
	must(NC_release(&hold) == 0);
	must_fail(NC_hold(NULL, response->body.id, &hold), ENOENT);
}

static NC_cache *open_cache(unsigned flags)
{
	struct NC_cache_options options = NC_CACHE_OPTIONS_INIT(.flags = flags);
	NC_cache *cache = NC_cache_open(&options);

	must(cache);
	return cache;
}

static void end(NC_cache *cache)
{
	must(NC_backend_close(backend) == 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
	must(NC_cache_close(cache) == 0);
	must(library_module().units == 0);
}

/* Responses of all sizes, one after the other: the module keeps none of them. */
static void test_answers(uid_t user, int family)
{
	static const size_t sizes[] = {100, 10000, 49152, 100000, 1000000};
	NC_cache *cache = open_cache(0);
	struct guest_pair pair = guest_connect(family);
	uint64_t bytes = 0;

	start(user);
	for (unsigned i = 0; i < 30; i++) {
		size_t size = sizes[i % 5];
		struct NC_response response;

		ask(i, i, size);
		response = take(i, size >= 49152);
		send_body(&pair, &response, i);
		bytes += size >= 49152 ? size : 0;
		must(library_module().units <= 2);
	}
	must(library_stat().by_kernel.bytes == bytes);
	must(library_stat().kernel_copies == 0);
	guest_disconnect(&pair);
	end(cache);
	guest_tested("a worker's answers, user %d, IPv%d", (int)user, family == AF_INET ? 4 : 6);
}

static bool are_units(void *context)
{
	return library_module().units == *(uint64_t *)context;
}

/* Accepted responses are sent completely; the others are gone within a second. */
static void test_killed(uid_t user)
{
	NC_cache *cache = open_cache(0);
	struct guest_pair pair = guest_connect(AF_INET);
	struct NC_response response;

	start(user);
	ask(1, 1, SIZE);
	response = take(1, true);
	ask(2, 2, SIZE);
	must(guest_wait(are_units, &(uint64_t){2}));
	must(kill(NC_backend_pid(backend), SIGKILL) == 0);
	must(guest_wait(are_units, &(uint64_t){1}));
	send_body(&pair, &response, 1);
	must(library_module().units == 0);
	guest_disconnect(&pair);
	end(cache);
	guest_tested("kill -9 of a worker, user %d", (int)user);
}

static void test_refused(void)
{
	NC_cache *cache = open_cache(0);
	struct guest_pair pair;
	struct NC_response response;
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	pair = (struct guest_pair){ends[0], ends[1]};
	start(0);
	for (unsigned i = 0; i < 3; i++) {
		ask(i, i, SIZE);
		response = take(i, true);
		send_body(&pair, &response, i);
	}
	must(library_stat().kernel_copies == 3);
	must(library_stat().by_kernel.bytes == 0);
	guest_disconnect(&pair);
	end(cache);
	guest_tested("a worker's answers to a Unix socket");
}

/* The worker may not use it, or the server does not: its segment, as without the module. */
static void test_without(uid_t user, unsigned flags)
{
	NC_cache *cache = open_cache(flags);
	struct guest_pair pair = guest_connect(AF_INET);
	struct NC_response response;

	start(user);
	ask(1, 1, SIZE);
	response = take(1, false);
	send_body(&pair, &response, 1);
	must(library_stat().by_kernel.bytes == 0);
	guest_disconnect(&pair);
	end(cache);
	guest_tested("a worker's segment, user %d, %s", (int)user,
		     flags ? "a server that does not use the module" : "who may not");
}

struct attached {
	int ready, over;
};

/* It attaches by itself; the server has not started it. */
static int attach(void *context)
{
	const struct attached *ends = context;
	size_t id;
	char byte;

	must(NC_cache_attach("/tmp/cache", NULL));
	must(strcmp(library_stat().kernel, "used") == 0);
	id = library_unit(9, SIZE, NC_KIND_AUTO);
	must(library_kind(id) == NC_KIND_KERNEL);
	must(write(ends->ready, &id, sizeof(id)) == sizeof(id));
	must(read(ends->over, &byte, 1) == 0);
	return 0;
}

static void test_attached(void)
{
	struct guest_pair pair = guest_connect(AF_INET);
	int ready[2], over[2];
	struct attached ends;
	NC_cache *cache;
	pid_t child;
	size_t id;

	must(pipe2(ready, O_CLOEXEC) == 0 && pipe2(over, O_CLOEXEC) == 0);
	cache = open_cache(0);
	must(NC_cache_serve(cache, "/tmp/cache", NULL) == 0);
	ends = (struct attached){ready[1], over[0]};
	child = fork();
	must(child >= 0);
	if (child == 0) {
		close(over[1]);
		_exit(attach(&ends));
	}
	must(read(ready[0], &id, sizeof(id)) == sizeof(id));
	library_send(pair.near, pair.far, id, 9, 0, SIZE, 0, NULL);
	must(library_stat().by_kernel.bytes == SIZE);
	close(over[1]);
	guest_join(child);
	must(guest_wait(are_units, &(uint64_t){0}));
	close(ready[0]);
	close(ready[1]);
	close(over[0]);
	guest_disconnect(&pair);
	must(NC_cache_close(cache) == 0);
	guest_tested("a process that attached by itself");
}

int main(int argc, char **argv)
{
	(void)argv;
	signal(SIGPIPE, SIG_IGN);
	if (argc > 1)
		return serve();
	must(chown(NABC_DEVICE, 0, LIBRARY_USER) == 0);
	/* So that other users can run this program. */
	must(chmod("/tests", 0755) == 0);
	test_answers(0, AF_INET);
	test_answers(LIBRARY_USER, AF_INET6);
	test_killed(0);
	test_killed(LIBRARY_USER);
	test_refused();
	test_attached();
	test_without(LIBRARY_STRANGER, 0);
	test_without(LIBRARY_USER, NC_CACHE_NO_KERNEL);
	must(chown(NABC_DEVICE, 0, 0) == 0);
	return 0;
}
