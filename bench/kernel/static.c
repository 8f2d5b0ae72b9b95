// SPDX-License-Identifier: MIT
/*
 * static.c - ways to send an existing document: from memory, a file in memory, a
 * registered buffer, and a unit of nabc.ko.
 */
#include <nabc-uapi.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "device.h"
#include "guest.h"
#include "kernel.h"

static char *body;
static int file;
static struct device device;
static uint64_t unit;

static void write_init(size_t size, int socket)
{
	(void)socket;
	body = document_memory(size);
	document_fill(body, size);
}

static void write_send(size_t size, int socket)
{
	document_write(socket, body, size);
}

static void write_fini(size_t size)
{
	document_forget(body, size);
}

static void sendfile_init(size_t size, int socket)
{
	write_init(size, socket);
	file = memfd_create("document", MFD_CLOEXEC);
	must(file >= 0);
	must(write(file, body, size) == (ssize_t)size);
}

static void sendfile_send(size_t size, int socket)
{
	off_t at = 0;

	while ((size_t)at < size)
		must(sendfile(socket, file, &at, size - (size_t)at) > 0);
}

static void sendfile_fini(size_t size)
{
	close(file);
	write_fini(size);
}

static void zero_copy_init(size_t size, int socket)
{
	write_init(size, socket);
	zc_init(body, 1, size);
}

static void zero_copy_send(size_t size, int socket)
{
	(void)size;
	zc_send(socket, 0);
}

static void zero_copy_fini(size_t size)
{
	zc_fini();
	write_fini(size);
}

static void module_init(size_t size, int socket)
{
	unsigned char *bytes;

	(void)socket;
	device_open(&device);
	unit = device_alloc(&device, size, &bytes);
	document_fill((char *)bytes, size);
	must(nabc_insert(device.fd, unit, 0, 0, 0) == 0);
}

static void module_send(size_t size, int socket)
{
	device_send(&device, socket, unit, 0, size, 0);
}

static void sums_send(size_t size, int socket)
{
	device_send(&device, socket, unit, 0, size, NABC_SEND_SUMS);
}

static void module_fini(size_t size)
{
	(void)size;
	must(nabc_destroy(device.fd, unit) == 0);
	device_close(&device);
}

const struct way static_ways[] = {
	{"write", write_init, write_send, write_fini},
	{"sendfile", sendfile_init, sendfile_send, sendfile_fini},
	{"SEND_ZC", zero_copy_init, zero_copy_send, zero_copy_fini},
	{"module", module_init, module_send, module_fini},
	{"module, kept sums", module_init, sums_send, module_fini},
	{NULL, NULL, NULL, NULL},
};
