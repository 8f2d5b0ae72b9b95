/* SPDX-License-Identifier: MIT */
/*
 * worker-many.c - a worker that has many requests at the same time: with 8 threads, or, as
 * "worker-many loop", with an event loop and calls that do not wait.
 *
 * Its responses repeat the request's body.  What precedes is, by the query:
 *
 *	together   the threads respond when all of them have such a request
 *	wait=FIFO  a thread responds when it has read a byte from there
 *	hold       the loop begins a response, and aborts it when the client is gone
 *	count      the number of those that it aborted
 *	pieces=N   the loop sends N pieces of 4,096 bytes
 *	switch     101: all that follows is in another protocol, which repeats what comes
 *	switch-pieces=N, switch-hold, switch-wait=FIFO  the same, and as above
 *	switch-end the worker ends it after the first piece
 *	switch-die it ends itself then
 *
 * When the server asks it to end, it says so on its standard error when each thread, or the
 * loop, has returned.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nabc-worker.h>
#include <nabc.h>

#define THREADS 8u
#define PIECE 4096u

static NC_worker *worker;
static pthread_barrier_t all_have_one;

static void die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

/* Returns what follows the name in the query, or NULL. */
static const char *asked(const struct NC_request *request, const char *name)
{
	const char *query = NC_request_variable(request, "QUERY_STRING");
	size_t length = strlen(name);

	return query && strncmp(query, name, length) == 0 ? query + length : NULL;
}

/* Begins a response in pieces. */
static int respond(const struct NC_request *request, unsigned flags)
{
	static const char lines[] = "Sec-WebSocket-Accept: any\r\nUpgrade: other\r\n";
	struct NC_response response =
		NC_RESPONSE_INIT(.status = 200, .flags = NC_RESPONSE_MORE | flags);

	if (asked(request, "switch")) {
		response.status = 101;
		response.headers = lines;
		response.headers_length = sizeof(lines) - 1;
	}
	return NC_worker_respond(worker, request, &response);
}

/* A piece was repeated.  Returns true if the worker ends the response now. */
static bool is_last(const struct NC_request *request)
{
	if (asked(request, "switch-die"))
		_exit(EXIT_FAILURE);
	return asked(request, "switch-end");
}

/* Returns a unit with these bytes. */
static struct NC_range make_unit(const void *bytes, size_t length)
{
	struct NC_range range = {.length = length};
	NC_handle unit;

	if (NC_alloc(&unit, length, 0) || NC_write(&unit, bytes, length, 0) < 0 || NC_insert(&unit))
		die("a unit");
	range.id = NC_cache_id(&unit);
	NC_free(&unit);
	return range;
}

/* Returns false if the piece has been destroyed with its request; the next call reports that. */
static bool copy_piece(const struct NC_range *piece, struct NC_range *copy)
{
	char *bytes = malloc(piece->length);
	ssize_t got;

	if (!bytes)
		die("malloc");
	got = NC_pread(NULL, piece->id, bytes, piece->length, piece->offset);
	if (got == (ssize_t)piece->length)
		*copy = make_unit(bytes, piece->length);
	else if (got >= 0 || (errno != EACCES && errno != ENOENT))
		die("NC_pread");
	free(bytes);
	return got >= 0;
}

/* --- threads ---------------------------------------------------------------------- */

static void read_byte(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd < 0 || read(fd, &byte, 1) < 0)
		die(path);
	close(fd);
}

static void answer(struct NC_request *request)
{
	const char *fifo = asked(request, asked(request, "switch") ? "switch-wait=" : "wait=");
	struct NC_range piece;
	int got;

	if (asked(request, "together"))
		pthread_barrier_wait(&all_have_one);
	if (fifo)
		read_byte(fifo);
	if (respond(request, 0))
		die("NC_worker_respond");
	while ((got = NC_worker_body(worker, request, &piece, 0)) == 1) {
		struct NC_range copy;

		if (!copy_piece(&piece, &copy))
			continue;
		if (NC_worker_send(worker, request, &copy, 1, NC_RESPONSE_MORE)) {
			if (errno != ECANCELED)
				die("NC_worker_send");
			(void)NC_destroy(NULL, copy.id);
			return;
		}
		got = 0;
		if (is_last(request))
			break;
	}
	if (got && errno == ECANCELED)
		got = NC_worker_abort(worker, request);
	else if (!got)
		got = NC_worker_send(worker, request, NULL, 0, 0);
	if (got && errno != ECANCELED)
		die("the end of a request");
}

static void *run_thread(void *context)
{
	struct NC_request request;
	int got;

	(void)context;
	while ((got = NC_worker_accept(worker, &request, sizeof(request), 0)) == 1)
		answer(&request);
	if (got)
		die("NC_worker_accept");
	fprintf(stderr, "worker-many: a thread has ended\n");
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&all_have_one, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run_thread, NULL))
			die("pthread_create");
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* --- an event loop ------------------------------------------------------------------ */

enum stage { BEGIN, GENERATE, REPEAT, SEND, HELD, END };

/* A request that the loop has, with the unit to send next. */
struct job {
	struct job *next;
	struct NC_request request;
	enum stage stage;
	unsigned left; /* pieces to generate */
	struct NC_range unit;
	bool keep; /* the unit is for other requests, too */
	bool over;
};

static struct job *jobs;
static unsigned aborted;

/* Returns true if the call must be repeated later. */
static bool later(int result)
{
	if (result == 0)
		return false;
	/* After EPIPE, NC_worker_accept() returns 0. */
	if (errno != EAGAIN && errno != ECANCELED && errno != EPIPE)
		die("a call that does not wait");
	return errno != ECANCELED;
}

static bool begin(struct job *job)
{
	if (later(respond(&job->request, NC_RESPONSE_NOWAIT)))
		return false;
	job->stage = asked(&job->request, "hold") || asked(&job->request, "switch-hold") ? HELD
											 : GENERATE;
	return true;
}

static bool generate(struct job *job)
{
	static const char bytes[PIECE] = "piece";
	static struct NC_range shared;
	char text[32];

	if (!shared.id)
		shared = make_unit(bytes, PIECE);
	job->keep = false;
	if (asked(&job->request, "count") && job->left == 0) {
		job->unit = make_unit(text, (size_t)snprintf(text, sizeof(text), "%u\n", aborted));
		job->left = 1;
		job->stage = SEND;
	} else if (job->left > 0 && !asked(&job->request, "count")) {
		job->unit = shared;
		job->keep = true;
		job->left--;
		job->stage = SEND;
	} else {
		job->stage = REPEAT;
	}
	return true;
}

/* Copies the next piece of the body, or ends. */
static bool repeat(struct job *job)
{
	struct NC_range piece;
	int got = NC_worker_body(worker, &job->request, &piece, NC_BODY_NOWAIT);

	if (got == 1) {
		if (copy_piece(&piece, &job->unit))
			job->stage = SEND;
		return true;
	}
	if (got == 0)
		got = NC_worker_send(worker, &job->request, NULL, 0, NC_RESPONSE_NOWAIT);
	job->over = !later(got);
	/* The client has left in the middle of the body. */
	if (job->over && got)
		NC_worker_abort(worker, &job->request);
	return false;
}

static bool send_unit(struct job *job)
{
	int result = NC_worker_send(worker, &job->request, &job->unit, 1,
				    NC_RESPONSE_MORE | NC_RESPONSE_NOWAIT |
					    (job->keep ? NC_RESPONSE_KEEP : 0));

	if (later(result))
		return false;
	if (result && !job->keep)
		NC_destroy(NULL, job->unit.id);
	job->over = result;
	job->stage = GENERATE;
	if (!result && !job->keep && is_last(&job->request))
		job->stage = END;
	return !job->over;
}

static bool end(struct job *job)
{
	job->over = !later(NC_worker_send(worker, &job->request, NULL, 0, NC_RESPONSE_NOWAIT));
	return false;
}

static bool is_held(struct job *job)
{
	(void)job;
	return false;
}

static void advance(struct job *job)
{
	static bool (*const stages[])(struct job *) = {
		[BEGIN] = begin,    [GENERATE] = generate, [REPEAT] = repeat,
		[SEND] = send_unit, [HELD] = is_held,	   [END] = end,
	};

	while (stages[job->stage](job))
		;
}

static void start(const struct NC_request *request)
{
	struct job *job = calloc(1, sizeof(*job));
	const char *pieces =
		asked(request, asked(request, "switch") ? "switch-pieces=" : "pieces=");

	if (!job)
		die("calloc");
	*job = (struct job){.next = jobs,
			    .request = *request,
			    .stage = BEGIN,
			    .left = pieces ? (unsigned)atoi(pieces) : 0};
	jobs = job;
}

static void end_gone(const struct NC_request *event)
{
	for (struct job *job = jobs; job; job = job->next) {
		if (job->over || job->request.tag != event->tag ||
		    job->request.channel != event->channel)
			continue;
		aborted += job->stage == HELD;
		job->over = true;
		if (job->stage == SEND && !job->keep)
			NC_destroy(NULL, job->unit.id);
		if (NC_worker_abort(worker, &job->request))
			die("NC_worker_abort");
	}
}

/* Accepts all that there is.  Returns false if the server has ended. */
static bool accept_all(void)
{
	struct NC_request request;
	int got;

	while ((got = NC_worker_accept(worker, &request, sizeof(request),
				       NC_ACCEPT_NOWAIT | NC_ACCEPT_EVENTS)) == 1) {
		if (request.flags & NC_REQUEST_GONE)
			end_gone(&request);
		else
			start(&request);
	}
	if (got < 0 && errno != EAGAIN)
		die("NC_worker_accept");
	return got < 0;
}

static void advance_all(void)
{
	struct job **link = &jobs;

	while (*link) {
		struct job *job = *link;

		if (!job->over)
			advance(job);
		if (!job->over) {
			link = &job->next;
			continue;
		}
		*link = job->next;
		free(job);
	}
}

static void run_loop(void)
{
	struct pollfd wait = {.fd = NC_worker_fd(worker), .events = POLLIN};

	if (wait.fd < 0)
		die("NC_worker_fd");
	do {
		if (poll(&wait, 1, -1) < 0 && errno != EINTR)
			die("poll");
		if (!accept_all())
			break;
		advance_all();
	} while (true);
	fprintf(stderr, "worker-many: the loop has ended\n");
}

int main(int argc, char **argv)
{
	worker = NC_worker_open(NULL);
	if (!worker)
		die("worker-many: cannot join the server");
	if (argc > 1 && strcmp(argv[1], "loop") == 0)
		run_loop();
	else
		run_threads();
	NC_worker_close(worker);
	return EXIT_SUCCESS;
}
