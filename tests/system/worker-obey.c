/* SPDX-License-Identifier: MIT */
/*
 * worker-obey.c - a worker that does what the rest of the path says, good or
 * bad:
 *
 *	/pid       its process id            /kept      the same unit each time
 *	/hang      never answers             /exit      ends without an answer
 *	/garbage   header lines that are none           /header    a good one
 *	/stray     names a unit that is none            /variable  PATH_INFO etc.
 *
 * Single-threaded; ends when its server does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nabc-worker.h>

static const char garbage[] = "This is no header line\r\n\r\n<p>smuggled</p>";
static const char header[] =
	"X-Obeyed: yes\r\nContent-Type: text/x-obeyed\r\nContent-Length: 7\r\n";

/* A unit that holds text. */
static struct NC_range unit_of(const char *text)
{
	struct NC_range body = {.length = strlen(text)};
	NC_handle unit;

	if (NC_alloc(&unit, body.length, 0) < 0 || NC_write(&unit, 0, text, body.length) < 0 ||
	    NC_insert(&unit) < 0) {
		perror("worker-obey: cannot make a unit");
		exit(EXIT_FAILURE);
	}
	body.id = NC_cache_id(&unit);
	NC_free(&unit);
	return body;
}

static struct NC_range variables(const struct NC_request *request)
{
	static const char *const names[] = {"REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO",
					    "QUERY_STRING",   "HTTP_X_TEST", "REMOTE_ADDR"};
	char text[4096] = "";
	size_t length = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = NC_request_variable(request, names[i]);

		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s=%.500s\n",
					   names[i], value ? value : "(none)");
	}
	return unit_of(text);
}

static struct NC_response obey(const struct NC_request *request)
{
	static struct NC_range kept;
	struct NC_response response = {.status = 200};
	const char *order = NC_request_variable(request, "PATH_INFO");
	char pid[32];

	order = order ? order : "";
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
