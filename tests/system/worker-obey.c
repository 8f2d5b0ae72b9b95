/* SPDX-License-Identifier: MIT */
/*
 * worker-obey.c - a worker that does what the end of the path says, good or
 * bad:
 *
 *	/pid       its process id            /kept      the same unit each time
 *	/hang      never answers             /exit      ends without an answer
 *	/garbage   header lines that are none           /header    a good one
 *	/stray     names a unit that is none            /variable  PATH_INFO etc.
 *	/upload    method, length, MD5, id of the body  /echo      the body
 *	/read      tries to read the unit whose id the query is
 *
 * Single-threaded; ends when its server does.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include <nabc-worker.h>

static const char garbage[] = "This is no header line\r\n\r\n<p>smuggled</p>";
static const char header[] =
	"X-Obeyed: yes\r\nContent-Type: text/x-obeyed\r\nContent-Length: 7\r\n";

static struct NC_range unit_of_bytes(const char *bytes, size_t length)
{
	struct NC_range body = {.length = length};
	NC_handle unit;

	if (NC_alloc(&unit, body.length, 0) < 0 || NC_write(&unit, 0, bytes, body.length) < 0 ||
	    NC_insert(&unit) < 0) {
		perror("worker-obey: cannot make a unit");
		exit(EXIT_FAILURE);
	}
	body.id = NC_cache_id(&unit);
	NC_free(&unit);
	return body;
}

/* A unit that holds text. */
static struct NC_range unit_of(const char *text)
{
	return unit_of_bytes(text, strlen(text));
}

static struct NC_range variables(const struct NC_request *request)
{
	static const char *const names[] = {"REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO",
					    "QUERY_STRING",   "HTTP_X_TEST", "REMOTE_ADDR",
					    "AUTH_TYPE",      "REMOTE_USER", "HTTP_AUTHORIZATION"};
	char text[4096] = "";
	size_t length = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = NC_request_variable(request, names[i]);

		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s=%.500s\n",
					   names[i], value ? value : "(none)");
	}
	return unit_of(text);
}

/* The request's body, or the reason why it cannot be read. */
static struct NC_response upload(const struct NC_request *request, bool echo)
{
	const char *length_text = NC_request_variable(request, "CONTENT_LENGTH");
	const char *id_text = NC_request_variable(request, "NABC_BODY_ID");
	size_t length = length_text ? strtoull(length_text, NULL, 10) : 0;
	size_t id = id_text ? strtoull(id_text, NULL, 10) : 0;
	char *body = g_malloc(length + 1), *sum, text[256];
	ssize_t got = id ? NC_pread(NULL, id, body, length + 1, 0) : 0;
	struct NC_response response = {.status = 200};

	if (got != (ssize_t)length) {
		snprintf(text, sizeof(text), "%zd of %zu bytes: %s\n", got, length,
			 strerror(errno));
		response.status = 500;
		response.body = unit_of(text);
	} else if (!echo) {
		sum = g_compute_checksum_for_data(G_CHECKSUM_MD5, (guchar *)body, length);
		snprintf(text, sizeof(text), "%s %s %s %zu\n",
			 NC_request_variable(request, "REQUEST_METHOD"),
			 length_text ? length_text : "-", sum, id);
		response.body = unit_of(text);
		g_free(sum);
	} else if (length) {
		response.body = unit_of_bytes(body, length);
	}
	g_free(body);
	return response;
}

/* What is not granted, or not any more, is none of this process's business. */
static struct NC_response read_other(const struct NC_request *request)
{
	const char *id = NC_request_variable(request, "QUERY_STRING");
	ssize_t got;
	char byte;

	errno = 0;
	got = NC_pread(NULL, id ? strtoull(id, NULL, 10) : 0, &byte, 1, 0);
	return (struct NC_response){.status = 200,
				    .body = unit_of(got == 1 ? "read" : strerror(errno))};
}

static struct NC_response obey(const struct NC_request *request)
{
	static struct NC_range kept;
	struct NC_response response = {.status = 200};
	const char *order = NC_request_variable(request, "PATH_INFO");
	char pid[32];

	order = order && *order ? strrchr(order, '/') : "";
	if (strcmp(order, "/pid") == 0) {
		snprintf(pid, sizeof(pid), "%d", (int)getpid());
		response.body = unit_of(pid);
	} else if (strcmp(order, "/hang") == 0) {
		for (;;)
			pause();
	} else if (strcmp(order, "/exit") == 0) {
		_exit(3);
	} else if (strcmp(order, "/garbage") == 0) {
		response.headers = garbage;
		response.headers_length = sizeof(garbage) - 1;
	} else if (strcmp(order, "/header") == 0) {
		response.headers = header;
		response.headers_length = sizeof(header) - 1;
		response.body = unit_of("obeyed\n");
	} else if (strcmp(order, "/kept") == 0) {
		if (!kept.id)
			kept = unit_of("the same each time\n");
		response.body = kept;
		response.flags = NC_RESPONSE_KEEP;
	} else if (strcmp(order, "/stray") == 0) {
		response.body = (struct NC_range){.id = unit_of("x").id ^ 1, .length = 1};
	} else if (strcmp(order, "/variable") == 0) {
		response.body = variables(request);
	} else if (strcmp(order, "/upload") == 0 || strcmp(order, "/echo") == 0) {
		response = upload(request, order[1] == 'e');
	} else if (strcmp(order, "/read") == 0) {
		response = read_other(request);
	} else {
		response.status = 404;
	}
	return response;
}

int main(void)
{
	NC_worker *worker = NC_worker_open();
	struct NC_request request;

	if (!worker) {
		perror("worker-obey: cannot join the server");
		return EXIT_FAILURE;
	}
	while (NC_worker_accept(worker, &request) > 0) {
		struct NC_response response = obey(&request);

		if (NC_worker_respond(worker, &request, &response) < 0) {
			perror("worker-obey: cannot respond");
			break;
		}
	}
	NC_worker_close(worker);
	return EXIT_SUCCESS;
}
