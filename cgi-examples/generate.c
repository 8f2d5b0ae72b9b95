/* SPDX-License-Identifier: MIT */
/*
 * generate.c - the "data from thin air" of paper 002, section 4.4, with three
 * protocols: /generate?size=N responds with N bytes, filled again for each request.
 *
 * 	cc -o generate generate.c $(pkg-config --cflags --libs nabc)
 * 	sweet --worker /generate=./generate
 * 	curl 'http://127.0.0.1:8080/generate?size=100000'
 * 	curl 'http://127.0.0.1:8080/generate?size=100000&kept=1'
 *
 * Its environment shows how it was started: as a worker of a server
 * (NABC_WORKER_FD); as a FastCGI application (descriptor 0 is a listening socket),
 * if it was compiled for that with -DHAVE_LIBFCGI and -lfcgi; or as a CGI program
 * (GATEWAY_INTERFACE).
 *
 * The body is written once, into memory of the server's cache; the server receives
 * only a status and the cache id.  With CGI and FastCGI, the id is a header line if
 * NABC_CACHE names a cache.  Otherwise, and with plain=1 in the query, the bytes
 * are sent through the pipe or the socket, as usual.
 *
 * For a worker with kept=1, the bytes are made only at the first request for their
 * size: the unit is kept, and its id is the response from then on.  With cached=1,
 * the server itself caches the response for a minute, and sends no requests.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <nabc-worker.h>
#include <nabc.h>

#define LINE "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-\n"
#define PLAIN_MAX (1 << 30)    /* limit of bytes sent through a pipe */
#define KEPT_MAX 8	       /* sizes whose units are kept */
#define RECENT_MAX 64	       /* units of a FastCGI application ... */
#define RECENT_BYTES (8 << 20) /* ... and bytes of them */

static const char fields[] = "Content-Type: text/plain\r\nCache-Control: no-store\r\n";
static const char cached_fields[] = "Content-Type: text/plain\r\nX-NABC-Max-Age: 60\r\n";
static char pattern[65536];

struct kept_unit {
	size_t id; /* 0: none */
	size_t size;
};

/* A new unit replaces the oldest one. */
struct kept {
	struct kept_unit units[KEPT_MAX];
	unsigned next;
};

/* Returns the number after NAME= in a query; -1: missing, or not a number. */
static long long wanted(const char *query, const char *name)
{
	size_t length = strlen(name);

	while (query && *query) {
		const char *next = strchr(query, '&');

		if (strncmp(query, name, length) == 0 && query[length] == '=') {
			const char *digits = query + length + 1;
			char *end;
			long long number;

			if (*digits < '0' || *digits > '9')
				return -1;
			errno = 0;
			number = strtoll(digits, &end, 10);
			return errno || (*end && *end != '&') ? -1 : number;
		}
		query = next ? next + 1 : NULL;
	}
	return -1;
}

static const char *fields_for(const char *query)
{
	return wanted(query, "cached") == 1 ? cached_fields : fields;
}

/*
 * Inserts a unit of size bytes, with kind and flags of NC_unit_alloc(); returns its
 * id, or 0 with errno.
 */
static size_t generate(size_t size, enum NC_kind kind, unsigned flags)
{
	NC_handle unit;
	size_t id = 0;
	int error;

	if (NC_unit_alloc(NULL, &unit, size, 0, kind, flags) < 0)
		return 0;
	for (size_t at = 0; at < size; at += sizeof(pattern))
		NC_write(&unit, pattern, size - at < sizeof(pattern) ? size - at : sizeof(pattern),
			 at);
	if (NC_insert(&unit) == 0)
		id = NC_cache_id(&unit);
	error = errno;
	NC_free(&unit);
	errno = error;
	return id;
}

/* Whether the client's request caused the failure. */
static bool asked_too_much(int error)
{
	return error == EFBIG || error == EINVAL;
}

/* --- worker -------------------------------------------------------------- */

/* Returns the id of a kept unit of size bytes, or 0 with errno. */
static size_t keep(struct kept *kept, size_t size)
{
	struct kept_unit *unit;

	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (kept->units[i].id && kept->units[i].size == size)
			return kept->units[i].id;
	unit = &kept->units[kept->next++ % KEPT_MAX];
	/* Responses still being sent hold it: it is freed after the last one. */
	if (unit->id)
		(void)NC_destroy(NULL, unit->id);
	/* SEALED: memory that is never written again, so large units are sent without a copy. */
	*unit = (struct kept_unit){.id = generate(size, NC_KIND_SEALED, 0), .size = size};
	return unit->id;
}

static struct NC_response answer(struct kept *kept, const struct NC_request *request)
{
	const char *query = NC_request_variable(request, "QUERY_STRING");
	long long size = wanted(query, "size");
	const char *headers = fields_for(query);
	struct NC_response response = NC_RESPONSE_INIT(.status = 200, .headers = headers,
						       .headers_length = strlen(headers));

	if (size < 0) {
		response.status = 400;
	} else if (size > 0) {
		bool stays = wanted(query, "kept") == 1;

		response.body.id = stays ? keep(kept, (size_t)size)
					 : generate((size_t)size, NC_KIND_AUTO, NC_UNIT_UNSUMMED);
		response.body.length = (size_t)size;
		response.flags = stays ? NC_RESPONSE_KEEP : 0;
		if (response.body.id == 0)
			response.status = asked_too_much(errno) ? 400 : 503;
	}
	/* On an error, the server creates the page. */
	if (response.status != 200)
		response = (struct NC_response)NC_RESPONSE_INIT(.status = response.status);
	return response;
}

static int serve_as_worker(void)
{
	NC_worker *worker = NC_worker_open(NULL);
	struct kept kept = {.next = 0};
	struct NC_request request;
	int got;

	if (!worker) {
		perror("generate: cannot attach to the server");
		return EXIT_FAILURE;
	}
	while ((got = NC_worker_accept(worker, &request, sizeof(request), 0)) > 0) {
		struct NC_response response = answer(&kept, &request);

		if (NC_worker_respond(worker, &request, &response) < 0) {
			perror("generate: cannot respond");
			break;
		}
	}
	NC_worker_close(worker);
	return got < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --- CGI, and what FastCGI shares with it ---------------------------------------- */

/* Writes head or body; returns length, or less if the client is gone. */
typedef size_t write_call(void *sink, const void *data, size_t length);

static void say(write_call *write, void *sink, const char *text)
{
	(void)write(sink, text, strlen(text));
}

static void write_bytes(write_call *write, void *sink, size_t size)
{
	while (size > 0) {
		size_t piece = size < sizeof(pattern) ? size : sizeof(pattern);

		/* The client is gone. */
		if (write(sink, pattern, piece) != piece)
			return;
		size -= piece;
	}
}

/*
 * Units that responses of this process have named.  The process is not notified
 * when a response has been sent, but once this many responses have followed, the
 * server has received it, and holds the unit as long as necessary.
 */
struct recent {
	struct kept_unit units[RECENT_MAX]; /* a ring */
	unsigned first, count;
	size_t bytes;
};

/*
 * Inserts a unit of size bytes after destroying old ones if necessary; returns its
 * id, or 0 with errno.
 */
static size_t generate_next(struct recent *recent, size_t size)
{
	struct kept_unit *unit;
	size_t id;

	while (recent->count == RECENT_MAX ||
	       (recent->count && recent->bytes + size > RECENT_BYTES)) {
		unit = &recent->units[recent->first++ % RECENT_MAX];
		(void)NC_destroy(NULL, unit->id);
		recent->bytes -= unit->size;
		recent->count--;
	}
	id = generate(size, NC_KIND_AUTO, NC_UNIT_UNSUMMED);
	if (id) {
		unit = &recent->units[(recent->first + recent->count++) % RECENT_MAX];
		*unit = (struct kept_unit){.id = id, .size = size};
		recent->bytes += size;
	}
	return id;
}

/* Answers one request; method and query may be NULL. */
static void answer_cgi(struct recent *recent, const char *method, const char *query,
		       write_call *write, void *sink)
{
	bool head = method && strcmp(method, "HEAD") == 0;
	bool plain = !getenv("NABC_CACHE") || wanted(query, "plain") > 0;
	long long size = wanted(query, "size");
	size_t id = 0;
	char line[64];

	if (size > 0 && !head && !plain) {
		id = generate_next(recent, (size_t)size);
		if (!id && asked_too_much(errno))
			size = -1;
		else if (!id)
			perror("generate: no unit, so the bytes are sent through the pipe");
	}
	if (size < 0 || (size > PLAIN_MAX && !id)) {
		say(write, sink, "Status: 400 Bad Request\r\n\r\n");
		return;
	}
	say(write, sink, fields_for(query));
	if (id)
		snprintf(line, sizeof(line), "X-NABC-Cache-Id: %zu\r\n\r\n", id);
	else
		snprintf(line, sizeof(line), "Content-Length: %lld\r\n\r\n", size);
	say(write, sink, line);
	if (!id && !head)
		write_bytes(write, sink, (size_t)size);
}

static size_t write_stdout(void *sink, const void *data, size_t length)
{
	return fwrite(data, 1, length, sink);
}

static int answer_as_cgi(void)
{
	struct recent recent = {.count = 0};

	answer_cgi(&recent, getenv("REQUEST_METHOD"), getenv("QUERY_STRING"), write_stdout, stdout);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* --- FastCGI --------------------------------------------------------------- */

#ifdef HAVE_LIBFCGI
#include <fcgiapp.h>

static size_t write_fastcgi(void *sink, const void *data, size_t length)
{
	int done = FCGX_PutStr(data, (int)length, sink);

	return done < 0 ? 0 : (size_t)done;
}

static int serve_fastcgi(void)
{
	const char *cache = getenv("NABC_CACHE");
	struct recent recent = {.count = 0};
	FCGX_Request request;
	bool joined = false;

	if (FCGX_Init() != 0 || FCGX_InitRequest(&request, 0, 0) != 0)
		return EXIT_FAILURE;
	while (FCGX_Accept_r(&request) == 0) {
		/* Attach with a segment: inserting into it costs less than sealing each unit. */
		joined = joined || (cache && NC_cache_attach(cache, NULL));
		answer_cgi(&recent, FCGX_GetParam("REQUEST_METHOD", request.envp),
			   FCGX_GetParam("QUERY_STRING", request.envp), write_fastcgi, request.out);
		FCGX_Finish_r(&request);
	}
	return EXIT_SUCCESS;
}
#else
static int serve_fastcgi(void)
{
	fputs("generate: compiled without FastCGI; on Debian: apt-get install libfcgi-dev\n",
	      stderr);
	return EXIT_FAILURE;
}
#endif

static bool listens(int fd)
{
	socklen_t length = sizeof(int);
	int value = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &length) == 0 && value;
}

int main(void)
{
	for (size_t at = 0; at < sizeof(pattern); at += sizeof(LINE) - 1)
		memcpy(pattern + at, LINE, sizeof(LINE) - 1);
	if (getenv("NABC_WORKER_FD"))
		return serve_as_worker();
	if (listens(0))
		return serve_fastcgi();
	if (getenv("GATEWAY_INTERFACE"))
		return answer_as_cgi();
	fputs("generate: run it as a worker of sweet, by CGI or by FastCGI\n", stderr);
	return EXIT_FAILURE;
}
