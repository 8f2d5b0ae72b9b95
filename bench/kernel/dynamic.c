// SPDX-License-Identifier: MIT
/*
 * dynamic.c - ways to pass and send a document that another process generates again
 * each time: through a pipe, in a file in memory, in shared memory, and in a unit of
 * nabc.ko.  The generator is a child.  It receives 8 bytes through a pipe for each
 * requested document, and writes 8 bytes to another pipe for each one that is
 * complete, or the document itself.
 */
#include <nabc-uapi.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"
#include "kernel.h"

/* The size of a server's read from a pipe. */
#define PIPE_MOST 65536

/* Memory shared by documents in flight. */
#define SHARED_MOST ((size_t)16 << 20)
#define SLOTS_MAX 64

struct maker {
	pid_t pid;
	int asks[2], answers[2];
	size_t size;
	void (*make)(struct maker *maker, uint64_t asked);
};

static struct maker maker;
static struct device device;
static char *body; /* of the maker, or shared */
static unsigned int slots;

static int make_all(void *context)
{
	uint64_t asked;

	(void)context;
	close(maker.asks[1]);
	close(maker.answers[0]);
	/* Each process opens the device itself. */
	if (device.fd > 0)
		device_open(&device);
	while (read(maker.asks[0], &asked, sizeof(asked)) == sizeof(asked))
		maker.make(&maker, asked);
	return 0;
}

static void maker_begin(size_t size, void (*make)(struct maker *maker, uint64_t asked))
{
	maker.size = size;
	maker.make = make;
	must(pipe(maker.asks) == 0);
	maker.pid = guest_fork(make_all, NULL);
	close(maker.asks[0]);
	close(maker.answers[1]);
}

static void maker_end(void)
{
	close(maker.asks[1]);
	close(maker.answers[0]);
	guest_join(maker.pid);
}

static void ask(uint64_t what)
{
	must(write(maker.asks[1], &what, sizeof(what)) == sizeof(what));
}

static uint64_t answer(void)
{
	uint64_t answer;

	must(read(maker.answers[0], &answer, sizeof(answer)) == sizeof(answer));
	return answer;
}

static void tell(uint64_t answer)
{
	must(write(maker.answers[1], &answer, sizeof(answer)) == sizeof(answer));
}

/* --- through a pipe ------------------------------------------------------------ */

static void pipe_make(struct maker *of, uint64_t asked)
{
	(void)asked;
	document_fill(body, of->size);
	document_write(of->answers[1], body, of->size);
}

static void pipe_init(size_t size, int socket)
{
	(void)socket;
	body = document_memory(size > PIPE_MOST ? size : PIPE_MOST);
	must(pipe(maker.answers) == 0);
	maker_begin(size, pipe_make);
}

static void pipe_send(size_t size, int socket)
{
	ask(0);
	while (size) {
		ssize_t got = read(maker.answers[0], body, size < PIPE_MOST ? size : PIPE_MOST);

		must(got > 0);
		document_write(socket, body, (size_t)got);
		size -= (size_t)got;
	}
}

static void pipe_fini(size_t size)
{
	maker_end();
	document_forget(body, size > PIPE_MOST ? size : PIPE_MOST);
}

/* --- in a file in memory, whose descriptor is passed ---------------------------- */

union descriptor {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

static void file_make(struct maker *of, uint64_t asked)
{
	union descriptor descriptor = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
						.cmsg_level = SOL_SOCKET,
						.cmsg_type = SCM_RIGHTS}};
	struct iovec data = {&asked, sizeof(asked)};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = &descriptor,
				 .msg_controllen = sizeof(descriptor)};
	int file = memfd_create("document", MFD_CLOEXEC);

	must(file >= 0);
	document_fill(body, of->size);
	document_write(file, body, of->size);
	memcpy(CMSG_DATA(&descriptor.head), &file, sizeof(file));
	must(sendmsg(of->answers[1], &message, 0) == sizeof(asked));
	close(file);
}

static void file_init(size_t size, int socket)
{
	(void)socket;
	body = document_memory(size);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, maker.answers) == 0);
	maker_begin(size, file_make);
}

static void file_send(size_t size, int socket)
{
	union descriptor descriptor;
	uint64_t got;
	struct iovec data = {&got, sizeof(got)};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = &descriptor,
				 .msg_controllen = sizeof(descriptor)};
	off_t at = 0;
	int file;

	ask(0);
	must(recvmsg(maker.answers[0], &message, MSG_CMSG_CLOEXEC) == sizeof(got));
	must(message.msg_controllen >= CMSG_LEN(sizeof(int)));
	memcpy(&file, CMSG_DATA(&descriptor.head), sizeof(file));
	while ((size_t)at < size)
		must(sendfile(socket, file, &at, size - (size_t)at) > 0);
	close(file);
}

static void file_fini(size_t size)
{
	maker_end();
	document_forget(body, size);
}

/* --- in shared memory ----------------------------------------------------------- */

static void shared_make(struct maker *of, uint64_t slot)
{
	document_fill(body + slot * of->size, of->size);
	tell(slot);
}

static void shared_init(size_t size, int socket)
{
	(void)socket;
	slots = 1;
	body = document_memory(size);
	must(pipe(maker.answers) == 0);
	maker_begin(size, shared_make);
}

static void shared_send(size_t size, int socket)
{
	ask(0);
	document_write(socket, body + answer() * size, size);
}

static void shared_fini(size_t size)
{
	maker_end();
	document_forget(body, slots * size);
}

static void zero_copy_init(size_t size, int socket)
{
	(void)socket;
	slots = size > SHARED_MOST / SLOTS_MAX ? (unsigned int)(SHARED_MOST / size) : SLOTS_MAX;
	body = document_memory(slots * size);
	must(pipe(maker.answers) == 0);
	maker_begin(size, shared_make);
	zc_init(body, slots, size);
}

static void zero_copy_send(size_t size, int socket)
{
	(void)size;
	ask(zc_free());
	zc_send(socket, (unsigned int)answer());
}

static void zero_copy_fini(size_t size)
{
	zc_fini();
	shared_fini(size);
}

/* --- in a unit ------------------------------------------------------------------ */

static void module_make(struct maker *of, uint64_t server)
{
	unsigned char *bytes;
	uint64_t unit = device_alloc(&device, of->size, &bytes);

	document_fill((char *)bytes, of->size);
	must(nabc_insert(device.fd, unit, 0, 0, 0) == 0);
	must(nabc_grant(device.fd, unit, NABC_PRINCIPAL_PROCESS, (uint32_t)server,
			NABC_RIGHT_SEND | NABC_RIGHT_DESTROY) == 0);
	tell(unit);
}

static void module_init(size_t size, int socket)
{
	(void)socket;
	device_open(&device);
	must(pipe(maker.answers) == 0);
	maker_begin(size, module_make);
}

static void module_send(size_t size, int socket)
{
	ask((uint64_t)getpid());
	device_send(&device, socket, answer(), 0, size, NABC_SEND_DESTROY);
}

static void module_fini(size_t size)
{
	(void)size;
	maker_end();
	device_close(&device);
}

/* --- in a unit, copied into it ---------------------------------------------------- */

static void put_make(struct maker *of, uint64_t server)
{
	struct nabc_put put = {.size = of->size,
			       .data = (uintptr_t)body,
			       .principal = NABC_PRINCIPAL_PROCESS,
			       .who = (uint32_t)server,
			       .rights = NABC_RIGHT_SEND | NABC_RIGHT_DESTROY};

	document_fill(body, of->size);
	must(ioctl(device.fd, NABC_IOC_PUT, &put) == 0);
	tell(put.id);
}

static void put_init(size_t size, int socket)
{
	(void)socket;
	body = document_memory(size);
	device_open(&device);
	must(pipe(maker.answers) == 0);
	maker_begin(size, put_make);
}

static void put_fini(size_t size)
{
	module_fini(size);
	document_forget(body, size);
}

const struct way dynamic_ways[] = {
	{"pipe, write", pipe_init, pipe_send, pipe_fini},
	{"memfd, sendfile", file_init, file_send, file_fini},
	{"shared memory, write", shared_init, shared_send, shared_fini},
	{"shared memory, SEND_ZC", zero_copy_init, zero_copy_send, zero_copy_fini},
	{"module", module_init, module_send, module_fini},
	{"module, put", put_init, module_send, put_fini},
	{NULL, NULL, NULL, NULL},
};
