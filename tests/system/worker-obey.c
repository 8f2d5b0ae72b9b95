/* SPDX-License-Identifier: MIT */
/*
 * worker-obey.c - a worker that does what the end of the path says, right or wrong:
 *
 *	/pid       its process id            /kept      the same unit each time
 *	/hang      says so, never answers    /exit      ends without an answer
 *	/garbage   invalid header lines                /header    a good one
 *	/list      three units, the first and the last one the same
 *	/stray     names an invalid unit               /variable  PATH_INFO etc.
 *	/upload    method, length, MD5, id of the body  /echo      the body
 *	/read      tries to read the unit whose id the query is
 *	/who       user, groups, limit, folder, and the variable that the query names
 *	/forbidden tries system calls that no worker needs, and reports each result
 *	/long      as many bytes of header lines as the query says, and perhaps a body:
 *	           "20000+body"
 *	/eat       allocates memory until that fails
 *	/page      as many bytes as the query says, all of them 'p'
 *	/punch     removes the pages of all memory that it shares
 *	/overwrite writes to all of it that it can make writable
 *	/unmap     unmaps all of it
 *	/again     tells the server that it never had this request, and ends
 *	/forget    the same of all requests that it ever had
 *	/deny      the same of one whose response it has begun
 *	/back      begins a response, tells the server that it never had this request, and
 *	           continues as /wait
 *	/child     starts a process, whose id is the body
 *	/wait      says so, reads a byte from the FIFO that the query names; then as /pid
 *
 * Single-threaded; ends when its server does, or asks for it.  Then, if OBEY_END is set, it says so,
 * and if that is a FIFO, opens it, before it ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <glib.h>

#include <nabc-worker.h>
#include <nabc.h>

#include "wire/channel.h"

static const char garbage[] = "This is no header line\r\n\r\n<p>smuggled</p>";
static const char header[] = "X-Obeyed: yes\r\nX-Sendfile: /\r\nX-Accel-Redirect: /\r\n"
			     "Content-Type: text/x-obeyed\r\nContent-Length: 7\r\n";

static struct NC_range unit_of_bytes(const char *bytes, size_t length)
{
	struct NC_range body = {.length = length};
	NC_handle unit;

	if (NC_alloc(&unit, body.length, 0) < 0 || NC_write(&unit, bytes, body.length, 0) < 0 ||
	    NC_insert(&unit) < 0) {
		perror("worker-obey: cannot make a unit");
		exit(EXIT_FAILURE);
	}
	body.id = NC_cache_id(&unit);
	NC_free(&unit);
	return body;
}

/* A unit that contains text. */
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

/* Returns the whole body of the request, received in any form; NULL with errno. */
static GByteArray *gather(NC_worker *worker, struct NC_request *request)
{
	GByteArray *body = g_byte_array_new();
	struct NC_range piece;
	int more;

	while ((more = NC_worker_body(worker, request, &piece, 0)) > 0) {
		guint at = body->len;

		g_byte_array_set_size(body, (guint)(at + piece.length));
		if (NC_pread(NULL, piece.id, body->data + at, piece.length, piece.offset) !=
		    (ssize_t)piece.length)
			break;
	}
	if (more == 0)
		return body;
	g_byte_array_unref(body);
	return NULL;
}

/* Returns the request's body, or the reason why it cannot be read. */
static struct NC_response upload(NC_worker *worker, struct NC_request *request, bool echo)
{
	const char *method = NC_request_variable(request, "REQUEST_METHOD");
	const char *length = NC_request_variable(request, "CONTENT_LENGTH");
	const char *id = NC_request_variable(request, "NABC_BODY_ID");
	char *start = g_strdup_printf("%s %s", method, length ? length : "-");
	char *end = g_strdup(id ? id : "0");
	GByteArray *body = gather(worker, request);
	struct NC_response response = NC_RESPONSE_INIT(.status = 200);

	if (!body) {
		response.status = 500;
		response.body = unit_of(strerror(errno));
	} else if (!echo) {
		char *sum = g_compute_checksum_for_data(G_CHECKSUM_MD5, body->data, body->len);
		char *text = g_strdup_printf("%s %s %s\n", start, sum, end);

		response.body = unit_of(text);
		g_free(text);
		g_free(sum);
	} else if (body->len) {
		response.body = unit_of_bytes((const char *)body->data, body->len);
	}
	if (body)
		g_byte_array_unref(body);
	g_free(start);
	g_free(end);
	return response;
}

/* This process cannot read a unit without a grant, or after its grant was revoked. */
static struct NC_response read_other(const struct NC_request *request)
{
	const char *id = NC_request_variable(request, "QUERY_STRING");
	ssize_t got;
	char byte;

	errno = 0;
	got = NC_pread(NULL, id ? strtoull(id, NULL, 10) : 0, &byte, 1, 0);
	return (struct NC_response)NC_RESPONSE_INIT(.status = 200,
						    .body = unit_of(got == 1 ? "read"
									     : strerror(errno)));
}

static struct NC_response who(const struct NC_request *request)
{
	const char *name = NC_request_variable(request, "QUERY_STRING");
	GString *text = g_string_new(NULL);
	struct NC_response response = NC_RESPONSE_INIT(.status = 200);
	char *folder = g_get_current_dir();
	const char *value = name ? getenv(name) : NULL;
	struct rlimit memory;
	gid_t groups[64];
	int count = getgroups(G_N_ELEMENTS(groups), groups);

	g_string_append_printf(text, "%d %d\n", (int)getuid(), (int)getgid());
	for (int i = 0; i < count; i++)
		g_string_append_printf(text, "%s%d", i ? " " : "", (int)groups[i]);
	if (getrlimit(RLIMIT_AS, &memory) < 0 || memory.rlim_cur == RLIM_INFINITY)
		memory.rlim_cur = 0;
	g_string_append_printf(text, "\n%llu\n%s\n%s\n", (unsigned long long)memory.rlim_cur,
			       folder, value ? value : "(none)");
	response.body = unit_of(text->str);
	g_string_free(text, TRUE);
	g_free(folder);
	return response;
}

/* With arguments that would be harmless. */
static struct NC_response forbidden(void)
{
	static const struct {
		const char *name;
		long number, argument;
	} calls[] = {{"ptrace", SYS_ptrace, -1},
		     {"process_vm_readv", SYS_process_vm_readv, 0},
		     {"unshare", SYS_unshare, CLONE_NEWUSER},
		     {"mount", SYS_mount, 0},
		     {"bpf", SYS_bpf, -1},
		     {"kexec_load", SYS_kexec_load, -1},
		     {"init_module", SYS_init_module, 0},
		     {"io_uring_setup", SYS_io_uring_setup, 0},
		     {"socket", SYS_socket, AF_PACKET}};
	struct NC_response response = NC_RESPONSE_INIT(.status = 200);
	GString *text = g_string_new(NULL);

	for (unsigned i = 0; i < G_N_ELEMENTS(calls); i++) {
		errno = 0;
		(void)syscall(calls[i].number, calls[i].argument, 0L, 0L, 0L, 0L, 0L);
		g_string_append_printf(text, "%s %d\n", calls[i].name, errno);
	}
	response.body = unit_of(text->str);
	g_string_free(text, TRUE);
	return response;
}

/* Ends the process. */
static void eat(void)
{
	for (;;)
		memset(g_malloc(1 << 20), 1, 1 << 20);
}

/*
 * Corrupts the count of requests in memory that it shares with the server: one less,
 * or none.  For a single channel only.
 */
static void lie(bool all)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], mode[5];
	uintptr_t start, end;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &start, &end, mode) != 3 ||
		    strcmp(mode, "rw-s") || !strstr(line, "memfd:nabc"))
			continue;
		for (uint64_t *at = (void *)start; at < (uint64_t *)end; at++)
			if (*at > NC_CHANNEL_CLAIMS && *at - NC_CHANNEL_CLAIMS < 1u << 20)
				*at = all ? NC_CHANNEL_CLAIMS : *at - 1;
	}
	if (maps)
		fclose(maps);
}

static void await(const struct NC_request *request)
{
	const char *path = NC_request_variable(request, "QUERY_STRING");
	char byte;
	int fd;

	fputs("worker-obey: waits\n", stderr);
	fd = open(path ? path : "", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &byte, 1) < 0)
		perror("worker-obey: cannot wait");
	if (fd >= 0)
		close(fd);
}

/* Lines of 1000 bytes, and a last one of up to 1999; at least 10 bytes in total. */
static struct NC_response with_long_head(const struct NC_request *request)
{
	static char lines[NC_BLOCK_MAX];
	struct NC_response response = NC_RESPONSE_INIT(.status = 200, .headers = lines);
	const char *query = NC_request_variable(request, "QUERY_STRING");
	size_t length = strtoul(query ? query : "", NULL, 10), at = 0, number = 0;
	char *at_line;

	if (length < 10 || length > sizeof(lines))
		return (struct NC_response)NC_RESPONSE_INIT(.status = 404);
	while (at < length) {
		size_t line = length - at < 2000 ? length - at : 1000;

		memset(lines + at, 'x', line);
		at_line = lines + at;
		at_line[sprintf(at_line, "x%04zu: ", number++)] = 'x';
		memcpy(lines + at + line - 2, "\r\n", 2);
		at += line;
	}
	response.headers_length = length;
	if (strchr(query, '+'))
		response.body = unit_of("the body\n");
	return response;
}

/* The memory of units, their table, and the requests. */
static void abuse(const char *how)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], rights[8];
	unsigned long start, end;
	struct {
		char *at;
		size_t size;
	} shared[64];
	unsigned count = 0;

	while (maps && count < 64 && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 && rights[3] == 's') {
			/* The text in the file is an address. */
			memcpy(&shared[count].at, &start, sizeof(start));
			shared[count++].size = end - start;
		}
	if (maps)
		fclose(maps);
	for (unsigned i = 0; i < count; i++) {
		char *at = shared[i].at;
		size_t size = shared[i].size;

		if (*how == 'u')
			munmap(at, size);
		else if (mprotect(at, size, PROT_READ | PROT_WRITE) == 0 && *how == 'o')
			memset(at, 0xee, size);
		else
			(void)madvise(at, size, MADV_REMOVE);
	}
}

static struct NC_range page(const struct NC_request *request)
{
	const char *query = NC_request_variable(request, "QUERY_STRING");
	size_t length = query ? strtoul(query, NULL, 10) : 0;
	char *bytes = g_malloc(length);
	struct NC_range body;

	memset(bytes, 'p', length);
	body = unit_of_bytes(bytes, length);
	g_free(bytes);
	return body;
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void say_end(int accepted)
{
	const char *how = getenv("OBEY_END");
	int fd;

	if (!how || accepted < 0)
		return;
	fprintf(stderr, "worker-obey: %d ends\n", (int)getpid());
	fd = open(how, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
}

static struct NC_response obey(NC_worker *worker, struct NC_request *request)
{
	static struct NC_range kept, list[3];
	struct NC_response response = NC_RESPONSE_INIT(.status = 200);
	const char *order = NC_request_variable(request, "PATH_INFO");
	char pid[32];

	order = order && *order ? strrchr(order, '/') : "";
	if (strcmp(order, "/back") == 0) {
		response.flags = NC_RESPONSE_MORE;
		(void)NC_worker_respond(worker, request, &response);
		lie(false);
	}
	if (strcmp(order, "/wait") == 0 || strcmp(order, "/back") == 0)
		await(request);
	if (strcmp(order, "/pid") == 0 || strcmp(order, "/wait") == 0) {
		snprintf(pid, sizeof(pid), "%d", (int)getpid());
		response.body = unit_of(pid);
	} else if (strcmp(order, "/child") == 0) {
		snprintf(pid, sizeof(pid), "%d", (int)start_child());
		response.body = unit_of(pid);
	} else if (strcmp(order, "/hang") == 0) {
		fputs("worker-obey: hangs\n", stderr);
		for (;;)
			pause();
	} else if (strcmp(order, "/forbidden") == 0) {
		response = forbidden();
	} else if (strcmp(order, "/exit") == 0) {
		_exit(3);
	} else if (strcmp(order, "/again") == 0 || strcmp(order, "/forget") == 0) {
		lie(order[1] == 'f');
		_exit(4);
	} else if (strcmp(order, "/deny") == 0) {
		response.flags = NC_RESPONSE_MORE;
		(void)NC_worker_respond(worker, request, &response);
		lie(false);
		_exit(4);
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
	} else if (strcmp(order, "/list") == 0) {
		list[0] = list[2] = unit_of("a line of three\n");
		list[1] = unit_of("the middle one\n");
		response.ranges = list;
		response.range_count = 3;
	} else if (strcmp(order, "/stray") == 0) {
		response.body = (struct NC_range){.id = unit_of("x").id ^ 1, .length = 1};
	} else if (strcmp(order, "/variable") == 0) {
		response.body = variables(request);
	} else if (strcmp(order, "/upload") == 0 || strcmp(order, "/echo") == 0) {
		response = upload(worker, request, order[1] == 'e');
	} else if (strcmp(order, "/read") == 0) {
		response = read_other(request);
	} else if (strcmp(order, "/who") == 0) {
		response = who(request);
	} else if (strcmp(order, "/long") == 0) {
		response = with_long_head(request);
	} else if (strcmp(order, "/eat") == 0) {
		eat();
	} else if (strcmp(order, "/page") == 0) {
		response.body = page(request);
	} else if (strcmp(order, "/punch") == 0 || strcmp(order, "/overwrite") == 0 ||
		   strcmp(order, "/unmap") == 0) {
		abuse(order + 1);
		response.body = unit_of("abused\n");
	} else {
		response.status = 404;
	}
	return response;
}

int main(void)
{
	NC_worker *worker = NC_worker_open(NULL);
	struct NC_request request;
	int accepted;

	if (!worker) {
		perror("worker-obey: cannot join the server");
		return EXIT_FAILURE;
	}
	while ((accepted = NC_worker_accept(worker, &request, sizeof(request), 0)) > 0) {
		struct NC_response response = obey(worker, &request);

		if (NC_worker_respond(worker, &request, &response) < 0) {
			perror("worker-obey: cannot respond");
			break;
		}
	}
	say_end(accepted);
	NC_worker_close(worker);
	return EXIT_SUCCESS;
}
