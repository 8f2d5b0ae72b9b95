/* SPDX-License-Identifier: MIT */
/*
 * library-handover.c - passes a body of 100 KB from a worker to the owner: by cache
 * id, through a pipe, and over a Unix stream socket.  All use the same two processes,
 * with a request of the same size for each body.  The worker fills a new unit each
 * time; it measures the time of filling, which is subtracted.  The bytes for pipe and
 * socket are ready in the worker; the owner reads them into one buffer.
 */
#include <errno.h>
#include <fcntl.h>
#include <nabc-worker.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

#define REQUEST 64u
#define FILLS 65536u
#define PIPE_LARGE (1 << 20)
#define FD_MIN 16 /* above the descriptors of a worker */

enum way { BY_ID, BY_PIPE, BY_LARGE_PIPE, BY_SOCKET, WAYS };

static const char *const way_names[WAYS] = {"cache id", "pipe", "pipe of 1 MB", "Unix socket"};

/* --- the worker ---------------------------------------------------------- */

/* Times to fill a unit, for each hand-over of the round. */
static uint32_t fills[FILLS];
static unsigned filled;

static int compare(const void *one, const void *other)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

	return (a > b) - (a < b);
}

static void transfer(int fd, char *data, size_t length, bool out)
{
	while (length) {
		ssize_t done = out ? write(fd, data, length) : read(fd, data, length);

		if (done < 0 && errno == EINTR)
			continue;
		must(done > 0, "the other process");
		data += done;
		length -= (size_t)done;
	}
}

static struct NC_response make_unit(const char *body)
{
	static const char headers[] = "Content-Type: text/plain\r\nCache-Control: no-store\r\n";
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200, .headers = headers,
				 .headers_length = sizeof(headers) - 1, .body = {.length = BODY});
	NC_handle handle;
	uint64_t start;

	must(NC_alloc(&handle, BODY, 0) == 0, "NC_alloc");
	start = now_ns();
	must(NC_write(&handle, body, BODY, 0) == (ssize_t)BODY, "NC_write");
	fills[filled++ % FILLS] = (uint32_t)(now_ns() - start);
	must(NC_insert(&handle) == 0, "NC_insert");
	response.body.id = NC_cache_id(&handle);
	must(NC_free(&handle) == 0, "NC_free");
	return response;
}

/* Returns the mean of the times without those in which another program ran. */
static double mean_of(uint32_t *times, unsigned count)
{
	unsigned whole = 0;
	double sum = 0;

	qsort(times, count, sizeof(times[0]), compare);
	while (whole < count && times[whole] <= 10 * (uint64_t)times[count / 2])
		sum += times[whole++];
	return whole ? sum / whole : 0;
}

/* Returns the time to copy a body, to as many places in turn as units are in flight. */
static double mean_copy(const char *body, unsigned places)
{
	static uint32_t times[1000];
	unsigned count = sizeof(times) / sizeof(times[0]);
	char *to = malloc(places * BODY);

	must(to, "memory");
	for (unsigned i = 0; i < places; i++)
		memcpy(to + i * BODY, body, BODY);
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = now_ns();

		memcpy(to + i % places * BODY, body, BODY);
		times[i] = (uint32_t)(now_ns() - start);
	}
	free(to);
	return mean_of(times, count);
}

/* Responds with the time of filling in this round, and of a copy. */
static struct NC_response tell_fill(const struct NC_request *request, const char *body)
{
	static char text[64];
	unsigned count = filled < FILLS ? filled : FILLS;

	filled = 0;
	snprintf(text, sizeof(text), "%.0f %.0f", mean_of(fills, count),
		 mean_copy(body, (unsigned)atoi(NC_request_variable(request, "PLACES"))));
	return (struct NC_response)NC_RESPONSE_INIT(.status = 200, .headers = text,
						    .headers_length = strlen(text) + 1);
}

/* A body for each request, of one byte if it begins with 'e', until one with 'q'. */
static struct NC_response stream(const int fds[2], char *body)
{
	char request[REQUEST];

	for (;;) {
		transfer(fds[0], request, sizeof(request), false);
		if (request[0] == 'q')
			return (struct NC_response)NC_RESPONSE_INIT(.status = 200);
		transfer(fds[1], body, request[0] == 'e' ? 1 : BODY, true);
	}
}

static struct NC_response measure_here(const struct NC_request *request)
{
	struct plan plan = {.rounds = (unsigned)atoi(NC_request_variable(request, "ROUNDS")),
			    .span = (uint64_t)atoll(NC_request_variable(request, "SPAN"))};

	measure_unit(&plan, "worker");
	must(fflush(stdout) == 0, "standard output");
	return (struct NC_response)NC_RESPONSE_INIT(.status = 200);
}

int serve(void)
{
	NC_worker *worker = NC_worker_open(NULL);
	const char *text = getenv("BENCH_FDS"), *cpu = getenv("BENCH_CPU");
	struct NC_request request;
	char *body = malloc(BODY);
	int fds[WAYS][2] = {{0}}, got, out;

	must(worker && body, "NC_worker_open");
	memset(body, 'x', BODY);
	if (cpu)
		run_on(atoi(cpu));
	if (text && sscanf(text, "%d,%d,%d,%d,%d,%d,%d", &out, &fds[1][0], &fds[1][1], &fds[2][0],
			   &fds[2][1], &fds[3][0], &fds[3][1]) != 7)
		die("BENCH_FDS");
	if (text)
		must(dup2(out, STDOUT_FILENO) >= 0, "standard output");
	while ((got = NC_worker_accept(worker, &request, sizeof(request), 0)) > 0) {
		const char *what = NC_request_variable(&request, "DO");
		struct NC_response response;

		if (strcmp(what, "fill") == 0)
			response = tell_fill(&request, body);
		else if (strcmp(what, "measure") == 0)
			response = measure_here(&request);
		else if (strcmp(what, "unit") == 0)
			response = make_unit(body);
		else if (strcmp(what, "none") == 0)
			response = (struct NC_response)NC_RESPONSE_INIT(.status = 204);
		else
			response = stream(fds[*what - '0'], body);
		must(NC_worker_respond(worker, &request, &response) == 0, "NC_worker_respond");
	}
	NC_worker_close(worker);
	free(body);
	return got < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --- the owner ----------------------------------------------------------- */

struct pair {
	NC_cache *cache;
	NC_backend *backend;
	int epoll;
	clockid_t worker_clock;
	int fds[WAYS][2]; /* to write requests to, to read bodies from */
	char *body;
};

/* Continues when most of many pending responses have arrived; a bound prevents a hang. */
static void sleep_for_responses(struct pair *pair, unsigned under_way)
{
	unsigned enough = under_way > 4 ? under_way * 3 / 4 : 1;
	struct epoll_event event;

	if (NC_backend_arm(pair->backend, 0, enough) == 0)
		must(epoll_wait(pair->epoll, &event, 1, enough > 1 ? 1 : -1) >= 0 || errno == EINTR,
		     "epoll_wait");
}

static struct NC_response ask(struct pair *pair, const char *variables, size_t length)
{
	struct NC_response response;
	uint64_t tag;
	int got;

	must(NC_backend_submit(pair->backend, 0, 0, variables, length, 0) == 0, "submit");
	NC_backend_kick(pair->backend, 0);
	while ((got = NC_backend_reap(pair->backend, 0, &tag, &response, sizeof(response))) == 0)
		sleep_for_responses(pair, 1);
	must(got == 1 && response.status == 200, "the worker");
	return response;
}

/*
 * Starts the worker with the descriptors of all ways: the library would close those that it
 * does not know.
 */
static int start_worker(void *context, int socket, char *const *environment, pid_t *pid, int *pidfd)
{
	(void)context;
	*pid = fork();
	if (*pid == 0) {
		int fd;

		while (*environment)
			(void)putenv(*environment++);
		fd = atoi(getenv("NABC_WORKER_FD"));
		if (socket == fd ? fcntl(fd, F_SETFD, 0) == 0 : dup2(socket, fd) == fd)
			execl("/proc/self/exe", "library", "--worker", NULL);
		_exit(127);
	}
	*pidfd = *pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, *pid, 0);
	return *pidfd < 0 ? -1 : 0;
}

/* The worker's end of a descriptor: inherited, so not close-on-exec. */
static int pass_on(int fd)
{
	int copy = fcntl(fd, F_DUPFD, FD_MIN);

	must(copy >= 0, "F_DUPFD");
	close(fd);
	return copy;
}

/* The worker sums bodies while it fills them, as in the paper: one column counts that. */
static void open_pair(struct pair *pair, const struct plan *plan, int worker_cpu)
{
	struct NC_cache_options summing = NC_CACHE_OPTIONS_INIT(.flags = NC_CACHE_EAGER_SUMS);
	char fds[128], cpu[32], *environment[] = {fds, cpu, NULL};
	struct NC_backend_options options =
		NC_BACKEND_OPTIONS_INIT(.start = start_worker, .environment = environment,
					.channels = 1);
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int request[2], back[2], there[WAYS][2], out = pass_on(dup(STDOUT_FILENO));

	for (enum way way = BY_PIPE; way <= BY_LARGE_PIPE; way++) {
		must(pipe2(request, O_CLOEXEC) == 0 && pipe2(back, O_CLOEXEC) == 0, "pipe");
		must(way == BY_PIPE || fcntl(back[0], F_SETPIPE_SZ, PIPE_LARGE) > 0,
		     "F_SETPIPE_SZ");
		pair->fds[way][0] = request[1];
		pair->fds[way][1] = back[0];
		there[way][0] = pass_on(request[0]);
		there[way][1] = pass_on(back[1]);
	}
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, back) == 0, "socketpair");
	pair->fds[BY_SOCKET][0] = pair->fds[BY_SOCKET][1] = back[0];
	there[BY_SOCKET][0] = there[BY_SOCKET][1] = pass_on(back[1]);
	snprintf(fds, sizeof(fds), "BENCH_FDS=%d,%d,%d,%d,%d,%d,%d", out, there[1][0], there[1][1],
		 there[2][0], there[2][1], there[3][0], there[3][1]);
	snprintf(cpu, sizeof(cpu), "BENCH_CPU=%d", worker_cpu);
	run_on(plan->cpus[0]);
	pair->body = malloc(BODY);
	pair->cache = NC_cache_open(&summing);
	must(pair->body && pair->cache, "NC_cache_open");
	pair->backend = NC_backend_start(pair->cache, &options);
	must(pair->backend, "NC_backend_start");
	must(clock_getcpuclockid(NC_backend_pid(pair->backend), &pair->worker_clock) == 0,
	     "clock_getcpuclockid");
	pair->epoll = epoll_create1(EPOLL_CLOEXEC);
	must(epoll_ctl(pair->epoll, EPOLL_CTL_ADD, NC_backend_fd(pair->backend, 0), &event) == 0,
	     "epoll_ctl");
	close(out);
	for (enum way way = BY_PIPE; way < WAYS; way++) {
		close(there[way][0]);
		if (way != BY_SOCKET)
			close(there[way][1]);
	}
}

static void close_pair(struct pair *pair)
{
	pid_t worker = NC_backend_pid(pair->backend);

	must(NC_backend_close(pair->backend) == 0, "NC_backend_close");
	must(waitpid(worker, NULL, 0) == worker, "waitpid");
	must(NC_cache_close(pair->cache) == 0, "NC_cache_close");
	close(pair->epoll);
	for (enum way way = BY_PIPE; way < WAYS; way++) {
		close(pair->fds[way][0]);
		if (way != BY_SOCKET)
			close(pair->fds[way][1]);
	}
	free(pair->body);
}

/* Hand-overs by cache id, `depth` of them concurrently; returns their number. */
static uint64_t by_id(struct pair *pair, bool empty, unsigned depth, uint64_t span)
{
	const char variables[REQUEST] = {'D',
					 'O',
					 '=',
					 empty ? 'n' : 'u',
					 empty ? 'o' : 'n',
					 empty ? 'n' : 'i',
					 empty ? 'e' : 't'};
	uint64_t start = now_ns(), done = 0, asked = 0, tag;
	bool on = true;

	while (on || done < asked) {
		struct NC_response response;
		int got;

		while (on && asked - done < depth) {
			must(NC_backend_submit(pair->backend, 0, asked, variables, REQUEST, 0) == 0,
			     "NC_backend_submit");
			asked++;
		}
		NC_backend_kick(pair->backend, 0);
		while ((got = NC_backend_reap(pair->backend, 0, &tag, &response,
					      sizeof(response))) > 0) {
			must(response.status == (empty ? 204 : 200), "the worker");
			if (!empty) {
				struct NC_hold hold = response.holds[0];

				must(response.body.length == BODY && NC_release(&hold) == 0,
				     "NC_release");
			}
			done++;
		}
		must(got == 0, "NC_backend_reap");
		if (asked - done == depth || (!on && done < asked))
			sleep_for_responses(pair, (unsigned)(asked - done));
		on = now_ns() - start < span;
	}
	return done;
}

/* The same through a pipe or socket: the owner reads every byte. */
static uint64_t by_bytes(struct pair *pair, enum way way, bool empty, unsigned depth, uint64_t span)
{
	char request[REQUEST] = {empty ? 'e' : 'b'}, order[REQUEST] = "DO=0";
	uint64_t start = now_ns(), done = 0, asked = 0, tag;
	struct NC_response response;
	int got;

	order[3] = (char)('0' + way);
	must(NC_backend_submit(pair->backend, 0, 0, order, REQUEST, 0) == 0, "submit");
	NC_backend_kick(pair->backend, 0);
	while (done < asked || now_ns() - start < span) {
		while (asked - done < depth) {
			transfer(pair->fds[way][0], request, REQUEST, true);
			asked++;
		}
		transfer(pair->fds[way][1], pair->body, empty ? 1 : BODY, false);
		done++;
		if (now_ns() - start >= span)
			depth = 1;
	}
	request[0] = 'q';
	transfer(pair->fds[way][0], request, REQUEST, true);
	while ((got = NC_backend_reap(pair->backend, 0, &tag, &response, sizeof(response))) == 0)
		sleep_for_responses(pair, 1);
	must(got == 1, "the worker");
	return done;
}

struct cost {
	double cpu, wall, fill, copy; /* us */
};

static void ask_fill(struct pair *pair, unsigned depth, struct cost *cost)
{
	char variables[REQUEST];
	int length = snprintf(variables, sizeof(variables), "DO=fill%cPLACES=%u", 0, depth);

	must(sscanf(ask(pair, variables, (size_t)length + 1).headers, "%lf %lf", &cost->fill,
		    &cost->copy) == 2,
	     "the worker");
	cost->fill /= 1e3;
	cost->copy /= 1e3;
	cost->cpu -= cost->fill;
	cost->wall -= cost->fill;
}

/* CPU time of both processes for one hand-over, and wall-clock time. */
static struct cost one_way(struct pair *pair, int way, bool empty, unsigned depth, uint64_t span)
{
	uint64_t mine = clock_ns(CLOCK_PROCESS_CPUTIME_ID), its = clock_ns(pair->worker_clock);
	uint64_t start = now_ns(), count;
	struct cost cost = {0};

	count = way == BY_ID ? by_id(pair, empty, depth, span)
			     : by_bytes(pair, (enum way)way, empty, depth, span);
	cost.wall = (double)(now_ns() - start) / (double)count / 1e3;
	cost.cpu = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - mine +
			    clock_ns(pair->worker_clock) - its) /
		   (double)count / 1e3;
	if (way == BY_ID && !empty)
		ask_fill(pair, depth, &cost);
	return cost;
}

static void handover(const struct plan *plan, const char *test, int worker_cpu, unsigned depth)
{
	struct pair pair;

	open_pair(&pair, plan, worker_cpu);
	(void)one_way(&pair, BY_ID, false, depth, plan->span);
	for (unsigned round = 0; round < plan->rounds; round++) {
		for (int way = BY_ID; way < WAYS; way++) {
			struct cost body = one_way(&pair, way, false, depth, plan->span);
			struct cost none = one_way(&pair, way, true, depth, plan->span);

			figure(test, way_names[way], "cpu_us", body.cpu);
			figure(test, way_names[way], "summed_us", body.cpu + body.fill - body.copy);
			figure(test, way_names[way], "wall_us", body.wall);
			figure(test, way_names[way], "empty_us", none.cpu);
			if (way == BY_ID) {
				figure(test, way_names[way], "fill_us", body.fill);
				figure(test, way_names[way], "copy_us", body.copy);
			}
		}
	}
	close_pair(&pair);
}

void measure_handover(const struct plan *plan)
{
	handover(plan, "2 CPUs, depth 1", plan->cpus[1], 1);
	handover(plan, "2 CPUs, depth 16", plan->cpus[1], 16);
	handover(plan, "1 CPU, depth 1", plan->cpus[0], 1);
	handover(plan, "1 CPU, depth 16", plan->cpus[0], 16);
}

/* The cost of a unit inside a worker; the worker prints its figures itself. */
void measure_worker(const struct plan *plan)
{
	char variables[REQUEST];
	struct pair pair;
	int length = snprintf(variables, sizeof(variables), "DO=measure%cROUNDS=%u%cSPAN=%llu", 0,
			      plan->rounds, 0, (unsigned long long)plan->span);

	must(length > 0 && length < (int)REQUEST, "variables");
	open_pair(&pair, plan, plan->cpus[0]);
	(void)ask(&pair, variables, (size_t)length + 1);
	close_pair(&pair);
}
