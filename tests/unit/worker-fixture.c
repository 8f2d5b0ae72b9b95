/* SPDX-License-Identifier: MIT */
/*
 * worker-fixture.c - the other process of the suites attach and backend.
 *
 * "attach PATH" attaches to a cache, inserts a unit, and executes single letters
 * from standard input, with eight bytes on standard output for each.  Otherwise it
 * is a worker: the variable DO of each request says what to do, which may be to
 * misbehave; for that it uses the library's internals.  worker-fixture-stream.c has what it
 * does with bodies and responses in pieces.  Single-threaded; ends when its input or its
 * server does.
 */
#include <errno.h>
#include <nabc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diagnostics.h"
#include "base/id.h"
#include "cache/index.h"
#include "os/queue.h"
#include "store/pool.h"
#include "store/unit.h"
#include "wire/channel.h"
#include "wire/pending.h"
#include "wire/wire.h"

#include "worker-fixture.h"

NC_worker *worker;
struct NC_request request;
char body[BODY];

void die(const char *what)
{
	fprintf(stderr, "worker-fixture: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- attach ---------------------------------------------------------------- */

static void report(uint64_t value)
{
	if (write(STDOUT_FILENO, &value, sizeof(value)) != sizeof(value))
		_exit(1);
}

static uint64_t result_of(int result)
{
	return result < 0 ? (uint64_t)errno : 0;
}

static int attach(const char *path)
{
	NC_cache *cache = *path ? NC_cache_attach(path, NULL) : NULL;
	NC_handle handle;
	size_t id, other;
	char order;

	if (*path && !cache)
		die("NC_cache_attach");
	/* Without a path, the first call attaches to $NABC_CACHE. */
	if (NC_alloc(&handle, 10000, 1448) < 0 || NC_printf(&handle, 0, "from a member\n") < 0 ||
	    NC_insert(&handle) < 0)
		die("NC_alloc");
	id = NC_cache_id(&handle);
	NC_free(&handle);
	report(id);
	while (read(STDIN_FILENO, &order, 1) == 1) {
		switch (order) {
		case 'd':
			report(result_of(NC_destroy(NULL, id)));
			break;
		case 'h': /* hold the id that follows */
			if (read(STDIN_FILENO, &other, sizeof(other)) != sizeof(other))
				return 1;
			report(result_of(hold_id(NULL, other)));
			break;
		case 'a':
			report(result_of(NC_unit_alloc(NULL, &handle, 10, 0, NC_KIND_APPENDED, 0)));
			break;
		case 'c':
			report(result_of(NC_cache_close(cache)));
			break;
		default:
			_exit(7);
		}
	}
	return 0;
}

/* --- worker ---------------------------------------------------------------- */

const char *variable(const char *name)
{
	const char *value = NC_request_variable(&request, name);

	return value ? value : "";
}

uint64_t number(const char *name)
{
	return strtoull(variable(name), NULL, 0);
}

void respond(int status, unsigned flags, const char *headers, size_t id, size_t length)
{
	struct NC_response response =
		NC_RESPONSE_INIT(.status = status, .flags = flags, .headers = headers,
				 .headers_length = headers ? strlen(headers) : 0,
				 .body = {.id = id, .length = length});

	if (NC_worker_respond(worker, &request, &response) < 0)
		die("NC_worker_respond");
}

/* Where responses are written as bytes. */
static void write_raw(const void *bytes, size_t length)
{
	int fd = worker->responder->channel[request.channel].doorbell;

	if (length && write(fd, bytes, length) != (ssize_t)length)
		die("write");
}

/* Bypasses all checks of NC_worker_respond(). */
void push_raw(int status, unsigned flags, const struct NC_range *ranges, unsigned count)
{
	struct nc_wire_response wire = {
		.tag = request.tag, .status = status, .flags = flags, .ranges = count};
	struct nc_queue *queue = &worker->responder->channel[request.channel].queues.responses;

	if (worker->responder->out) {
		write_raw(&wire, sizeof(wire));
		write_raw(ranges, count * sizeof(*ranges));
		return;
	}
	if (nc_queue_push(queue, &wire, sizeof(wire), ranges, count * sizeof(*ranges)))
		die("nc_queue_push");
	nc_doorbell_ring(worker->responder->channel[request.channel].doorbell);
}

static void respond_raw(int status, uint64_t id, uint64_t offset, uint64_t length)
{
	struct NC_range range = {.id = id, .offset = offset, .length = length};

	push_raw(status, 0, &range, id ? 1 : 0);
	/* It is complete, so its tag may return. */
	nc_pending_remove(
		&worker->responder->pending,
		nc_pending_find(&worker->responder->pending, request.channel, request.tag));
}

size_t insert(const void *data, size_t length, size_t size)
{
	NC_handle handle;
	size_t id;

	if (NC_alloc(&handle, size, 0) < 0)
		return 0;
	if (NC_write(&handle, data, length, 0) < 0 || NC_insert(&handle) < 0)
		die("insert");
	id = NC_cache_id(&handle);
	NC_free(&handle);
	return id;
}

static void echo(void)
{
	const char *value = variable("VALUE");
	size_t length = strlen(value);
	char header[64];

	snprintf(header, sizeof(header), "X-Channel: %u\r\n", request.channel);
	respond(200, 0, header, length ? insert(value, length, length) : 0, length);
}

/* A large body that begins with the tag. */
static void large(void)
{
	size_t id;

	memcpy(body, &request.tag, sizeof(request.tag));
	id = insert(body, sizeof(body), sizeof(body));
	respond(id ? 200 : 503, 0, NULL, id, id ? sizeof(body) : 0);
}

static void keep(void)
{
	static size_t kept;

	if (!kept)
		kept = insert("kept", 4, 4);
	respond(200, NC_RESPONSE_KEEP, NULL, kept, 4);
}

static void raw(void)
{
	uint64_t id = number("ID");
	const char *whose = variable("WHOSE");

	if (*whose)
		id = insert("0123456789", 10, 10);
	if (!strcmp(whose, "stale"))
		NC_destroy(NULL, id);
	if (!strcmp(whose, "lie"))
		atomic_store(&worker->cache->index.own.shared[nc_id_slot(id)].size, SIZE_MAX / 2);
	respond_raw(200, id, number("OFFSET"), number("LENGTH"));
}

/* COUNT units with a digit each; the last range names the first unit again. */
static unsigned make_list(struct NC_range *ranges)
{
	unsigned count = (unsigned)number("COUNT");

	for (unsigned i = 0; i + 1 < count; i++) {
		char digits[3] = {'<', (char)('0' + i % 10), '>'};

		ranges[i] = (struct NC_range){insert(digits, 3, 3), 1, 1};
	}
	ranges[count - 1] = (struct NC_range){ranges[0].id, 0, 3};
	return count;
}

static void list(void)
{
	struct NC_range ranges[NC_RESPONSE_RANGES_MAX];
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200, .flags = (unsigned)number("FLAGS"),
				 .headers = "X-List: yes\r\n", .headers_length = 13,
				 .ranges = ranges, .range_count = make_list(ranges));

	if (NC_worker_respond(worker, &request, &response) < 0)
		die("NC_worker_respond");
}

/* A list whose range AT is corrupt; another response contains the units' ids. */
static void spoilt_list(void)
{
	struct NC_range ranges[NC_RESPONSE_RANGES_MAX];
	unsigned count = make_list(ranges), at = (unsigned)number("AT");
	const char *how = variable("HOW");
	size_t ids[NC_RESPONSE_RANGES_MAX];

	for (unsigned i = 0; i < count; i++)
		ids[i] = ranges[i].id;
	if (!strcmp(how, "foreign"))
		ranges[at].id = 1;
	if (!strcmp(how, "stale"))
		NC_destroy(NULL, ranges[at].id = insert("x", 1, 1));
	if (!strcmp(how, "length"))
		ranges[at].length = 4;
	push_raw(200, (unsigned)number("FLAGS"), ranges, count);
	respond(200, 0, NULL, insert(ids, sizeof(ids), sizeof(ids)), count * sizeof(ids[0]));
}

/* The beginning of a body, then its end. */
static void half(void)
{
	struct NC_range range = {.id = 1, .length = BODY};

	push_raw(200, 0, &range, 1);
	write_raw(body, BODY / 4);
	_exit(3);
}

static void noise(void)
{
	char bytes[4096];

	memset(bytes, (int)number("BYTE"), sizeof(bytes));
	write_raw(bytes, sizeof(bytes));
}

/* Sends a unit of BODY bytes COUNT times; reports the error in a response of its own. */
static void repeat(void)
{
	struct NC_range ranges[NC_RESPONSE_RANGES_MAX];
	struct NC_response response = NC_RESPONSE_INIT(.status = 200, .ranges = ranges,
						       .range_count = (unsigned)number("COUNT"));
	size_t id = insert(body, BODY, BODY);

	for (unsigned i = 0; i < response.range_count; i++)
		ranges[i] = (struct NC_range){id, 0, BODY};
	if (NC_worker_respond(worker, &request, &response) == 0)
		return;
	response = (struct NC_response)NC_RESPONSE_INIT(.status = errno == EMSGSIZE ? 500 : 501);
	NC_destroy(NULL, id);
	if (NC_worker_respond(worker, &request, &response) < 0)
		die("NC_worker_respond");
}

static void garbage(void)
{
	struct nc_channel *channel = &worker->responder->channel[request.channel].queues;
	const char *where = variable("WHERE");

	if (!strcmp(where, "head"))
		atomic_store(&channel->responses.shared->head, UINT64_MAX / 3);
	else if (!strcmp(where, "tail"))
		atomic_store(&channel->requests.shared->tail, UINT64_MAX / 3);
	else if (!strcmp(where, "status"))
		respond_raw(42, 0, 0, 0);
	else if (!strcmp(where, "short"))
		(void)nc_queue_push(&channel->responses, "short", 5, NULL, 0);
	else if (!strcmp(where, "data")) {
		memset(channel->responses.shared->data, 0xff, channel->responses.size);
		atomic_fetch_add(&channel->responses.shared->head, 4096);
	}
	nc_doorbell_ring(worker->responder->channel[request.channel].doorbell);
}

/* More responses than the queue can hold; blocks until they are reaped. */
static void flood(void)
{
	uint64_t count = number("COUNT");
	char headers[1001];

	memset(headers, 'h', sizeof(headers) - 1);
	headers[sizeof(headers) - 1] = '\0';
	for (request.tag = 0; request.tag < count; request.tag++)
		respond(200, 0, headers, 0, 0);
}

static bool list_fails(int error, const struct NC_range *ranges, unsigned count, size_t id)
{
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200, .body = {.id = id, .length = 1}, .ranges = ranges,
				 .range_count = count);

	errno = 0;
	return NC_worker_respond(worker, &request, &response) == -1 && errno == error;
}

/* The same for lists; good is a unit of ten bytes. */
static bool lists_fail(size_t good, size_t gone)
{
	struct NC_range ranges[NC_RESPONSE_RANGES_MAX + 1];

	for (unsigned i = 0; i <= NC_RESPONSE_RANGES_MAX; i++)
		ranges[i] = (struct NC_range){good, 0, 10};
	if (!list_fails(EINVAL, ranges, NC_RESPONSE_RANGES_MAX + 1, 0) ||
	    !list_fails(EINVAL, NULL, 1, 0) || !list_fails(EINVAL, ranges, 1, good))
		return false;
	ranges[15].length = 11;
	if (!list_fails(ERANGE, ranges, 16, 0))
		return false;
	ranges[15].id = gone;
	if (!list_fails(ENOENT, ranges, 16, 0))
		return false;
	ranges[15].id = 1;
	if (!list_fails(EACCES, ranges, 16, 0))
		return false;
	ranges[15].id = 0;
	return list_fails(EINVAL, ranges, 16, 0);
}

static bool fails(int error, int status, unsigned flags, size_t headers, size_t id, size_t offset,
		  size_t length)
{
	struct NC_response response =
		NC_RESPONSE_INIT(.status = status, .flags = flags, .headers = headers ? body : NULL,
				 .headers_length = headers,
				 .body = {.id = id, .offset = offset, .length = length});

	errno = 0;
	return NC_worker_respond(worker, &request, &response) == -1 && errno == error;
}

/*
 * Checks what NC_worker_respond(3) says about its errors; responds with the number
 * of the first wrong statement.
 */
static void errors(void)
{
	size_t id = insert("0123456789", 10, 10), gone = insert("x", 1, 1);
	struct NC_request wrong = request;
	struct NC_response fine = NC_RESPONSE_INIT(.status = 200);
	char line[64];
	int bad = 0;

	NC_destroy(NULL, gone);
	wrong.channel = 64;
	if (!fails(EINVAL, 199, 0, 0, 0, 0, 0) || !fails(EINVAL, 600, 0, 0, 0, 0, 0))
		bad = 1;
	else if (!fails(EINVAL, 200, 0x8, 0, 0, 0, 0))
		bad = 2;
	else if (!fails(EMSGSIZE, 200, 0, NC_BLOCK_MAX + 1, 0, 0, 0))
		bad = 3;
	else if (!fails(EACCES, 200, 0, 0, 1, 0, 0))
		bad = 4;
	else if (!fails(ENOENT, 200, 0, 0, gone, 0, 0) || !fails(ENOENT, 200, 0, 0, id + 1, 0, 0))
		bad = 5;
	else if (!fails(ERANGE, 200, 0, 0, id, 0, 11) || !fails(ERANGE, 200, 0, 0, id, 11, 0) ||
		 !fails(ERANGE, 200, 0, 0, id, SIZE_MAX, 2))
		bad = 6;
	else if (NC_worker_respond(worker, &wrong, &fine) != -1 || errno != EINVAL)
		bad = 7;
	else if (NC_worker_open(NULL) || errno != EBUSY)
		bad = 8;
	else if (NC_backend_start(NULL, NULL) || errno != EPERM)
		bad = 9;
	else if (NC_worker_accept(NULL, &request, sizeof(request), 0) != -1 || errno != EINVAL ||
		 NC_worker_accept(worker, &wrong, sizeof(wrong), 4) != -1 || errno != EINVAL)
		bad = 10;
	else if (!lists_fail(id, gone))
		bad = 11;
	snprintf(line, sizeof(line), "X-Bad: %d\r\n", bad);
	respond(200, 0, line, id, 10);
}

static bool standard_input_is_null(void)
{
	struct stat input, null;

	return fstat(STDIN_FILENO, &input) == 0 && stat("/dev/null", &null) == 0 &&
	       input.st_rdev == null.st_rdev;
}

static void environment(void)
{
	const char *value = getenv(variable("NAME"));
	char line[256];

	snprintf(line, sizeof(line), "%s;%d;%d;%d", value ? value : "(none)", getppid(),
		 getpgid(0) == getpid(), standard_input_is_null());
	respond(200, 0, NULL, insert(line, strlen(line), strlen(line)), strlen(line));
}

static const struct {
	const char *name;
	void (*act)(void);
} acts[] = {
	{"echo", echo},
	{"large", large},
	{"keep", keep},
	{"raw", raw},
	{"garbage", garbage},
	{"flood", flood},
	{"errors", errors},
	{"environment", environment},
	{"list", list},
	{"spoilt", spoilt_list},
	{"stream", stream},
	{"bad-stream", bad_stream},
	{"outcome", report_outcome},
	{"abort", abort_it},
	{"half", half},
	{"noise", noise},
	{"repeat", repeat},
	{"read-body", read_body},
	{"echo-body", echo_body},
	{"gone", await_gone},
	{"raw-records", raw_records},
	{"replace", replace_me},
	{"interim", say_interim},
	{"trailers", end_with_trailers},
	{"stream-errors", stream_errors},
};

static void ignore(void *context, int priority, const char *message)
{
	(void)context;
	(void)priority;
	(void)message;
}

/* As a program that passes its own descriptor: what the environment says does not count. */
static NC_worker *open_by_socket(void)
{
	const char *text = getenv("NABC_WORKER_FD");
	int given = text ? atoi(text) : -1;
	struct NC_worker_options options =
		NC_WORKER_OPTIONS_INIT(.flags = NC_WORKER_SOCKET, .socket = dup(given),
				       .log = ignore, .log_context = &worker);
	NC_worker *opened;

	close(given);
	opened = NC_worker_open(&options);
	if (opened && (opened->cache->socket != options.socket ||
		       opened->cache->index.diagnostics.log != ignore ||
		       opened->cache->index.diagnostics.context != (void *)&worker))
		die("options of NC_worker_open");
	return opened;
}

static int work(bool by_socket)
{
	int got;

	worker = by_socket ? open_by_socket() : NC_worker_open(NULL);
	if (!worker)
		die("NC_worker_open");
	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (char)(i * 31 + (i >> 8));
	while ((got = NC_worker_accept(worker, &request, sizeof(request), 0)) == 1) {
		const char *what = variable("DO");
		size_t i = 0;

		if (!strcmp(what, "die"))
			raise(SIGKILL);
		if (!strcmp(what, "exit"))
			_exit(5);
		if (!strcmp(what, "nothing"))
			continue;
		while (i < sizeof(acts) / sizeof(acts[0]) && strcmp(what, acts[i].name))
			i++;
		if (i < sizeof(acts) / sizeof(acts[0]))
			acts[i].act();
		else
			respond(404, 0, NULL, 0, 0);
	}
	if (got < 0)
		die("NC_worker_accept");
	NC_worker_close(worker);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "attach"))
		return attach(argc > 2 ? argv[2] : "");
	return work(argc > 1 && !strcmp(argv[1], "socket"));
}
