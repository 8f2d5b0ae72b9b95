/* SPDX-License-Identifier: MIT */
/*
 * device-model.h - a model of the kernel module, as a table of functions in this
 * process, for tests of its callers: units in memory, access rights by file, and
 * the same errors.  It sends by copy.
 *
 * An open file is a memory file, so that its arena can be mapped.  The memory of
 * inserted units is removed from it, so that accesses still raise a signal.  A file
 * belongs to the process that pid named when it was opened.
 */
#ifndef DEVICE_MODEL_H
#define DEVICE_MODEL_H

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <nabc-uapi.h>
#include "base/checksum.h"
#include "os/device.h"
#include "os/identity.h"

#define MODEL_ARENA ((size_t)64 << 20)
#define MODEL_CHUNK ((size_t)32 << 10)
#define MODEL_CHUNKS (MODEL_ARENA / MODEL_CHUNK)
#define MODEL_UNITS 4096u
#define MODEL_FILES 16u
#define MODEL_GRANTS 4u

struct model_file {
	int fd; /* 0: none */
	pid_t pid;
	char *arena;
	bool taken[MODEL_CHUNKS];
};

struct model_unit {
	struct model_file *maker; /* NULL: closed */
	pid_t pid;
	int state; /* NABC_STATE_*; 0: no unit */
	size_t size, place;
	char *bytes; /* of an inserted unit */
	pid_t grants[MODEL_GRANTS];
	unsigned grant_count;
	unsigned holds[MODEL_FILES];
};

/* Ids count up and are indices into this, from 1 on. */
static struct {
	pthread_mutex_t lock;
	struct model_file files[MODEL_FILES];
	struct model_unit units[MODEL_UNITS];
	uint64_t last;
	size_t used;		     /* bytes of all units */
	unsigned closes;	     /* streams that were ended together with their last bytes */
	unsigned calls[_IOC_NRMASK]; /* by number */
	/* Tests may set: */
	uint32_t version;
	size_t memory;	 /* maximum bytes of all units */
	int full;	 /* errno beyond that */
	int open_error;	 /* errno of opening */
	pid_t pid;	 /* of files opened from now on; 0: this process */
	bool no_put;	 /* all units are filled in the arena */
	bool no_sockets; /* no socket is plain TCP */
	bool sums;	 /* it can send with kept checksums; asked: how often it was to do so */
	unsigned asked;
	bool no_reading; /* descriptors only support read(2) */
	bool no_holding; /* holding fails, as over RLIMIT_MEMLOCK */
} model = {.lock = PTHREAD_MUTEX_INITIALIZER,
	   .version = NABC_ABI_VERSION,
	   .memory = SIZE_MAX,
	   .full = ENOSPC};

static inline size_t model_chunks(size_t size)
{
	return (size + MODEL_CHUNK - 1) / MODEL_CHUNK;
}

static inline struct model_file *model_file_of(int fd)
{
	for (unsigned i = 0; i < MODEL_FILES; i++)
		if (model.files[i].fd == fd)
			return &model.files[i];
	return NULL;
}

static inline unsigned model_held(const struct model_unit *unit)
{
	unsigned holds = 0;

	for (unsigned i = 0; i < MODEL_FILES; i++)
		holds += unit->holds[i];
	return holds;
}

static inline void model_leave_arena(struct model_unit *unit, int protection)
{
	size_t first = unit->place / MODEL_CHUNK, count = model_chunks(unit->size);

	mprotect(unit->maker->arena + unit->place, count * MODEL_CHUNK, protection);
	memset(unit->maker->taken + first, 0, count * sizeof(bool));
}

/* Frees the unit, unless something holds it. */
static inline void model_end(struct model_unit *unit)
{
	if (unit->state == NABC_STATE_FILLING && unit->maker)
		model_leave_arena(unit, PROT_NONE);
	unit->state = NABC_STATE_DESTROYED;
	if (model_held(unit))
		return;
	free(unit->bytes);
	unit->bytes = NULL;
	model.used -= unit->size;
	unit->state = 0;
}

static inline bool model_granted(const struct model_unit *unit, pid_t pid)
{
	for (unsigned i = 0; i < unit->grant_count; i++)
		if (unit->grants[i] == pid)
			return true;
	return false;
}

/* Returns 0 if the file may send the unit, or an errno. */
static inline int model_access(const struct model_file *file, const struct model_unit *unit)
{
	if (!unit->state)
		return -ENOENT;
	if (unit->state == NABC_STATE_FILLING)
		return unit->maker == file ? -EBUSY : -ENOENT;
	if (unit->holds[file - model.files])
		return 0;
	if (unit->state == NABC_STATE_DESTROYED)
		return -ENOENT;
	return unit->pid == file->pid || model_granted(unit, file->pid) ? 0 : -EACCES;
}

static inline int model_alloc(struct model_file *file, struct nabc_alloc *alloc)
{
	size_t count = model_chunks(alloc->size), run = 0, at = 0;
	struct model_unit *unit = &model.units[model.last + 1];

	if (alloc->size == 0)
		return -EINVAL;
	if (alloc->size > MODEL_ARENA)
		return -EFBIG;
	if (model.used + alloc->size > model.memory || model.last + 2 == MODEL_UNITS)
		return -model.full;
	for (; at < MODEL_CHUNKS && run < count; at++)
		run = file->taken[at] ? 0 : run + 1;
	if (run < count)
		return -ENOSPC;
	at -= count;
	memset(file->taken + at, 1, count * sizeof(bool));
	mprotect(file->arena + at * MODEL_CHUNK, count * MODEL_CHUNK, PROT_READ | PROT_WRITE);
	*unit = (struct model_unit){.maker = file,
				    .pid = file->pid,
				    .state = NABC_STATE_FILLING,
				    .size = alloc->size,
				    .place = at * MODEL_CHUNK};
	model.used += alloc->size;
	alloc->id = ++model.last;
	alloc->arena_offset = unit->place;
	return 0;
}

static inline int model_read(struct model_file *file, struct model_unit *unit,
			     struct nabc_read *call)
{
	ssize_t got;

	if (unit->state != NABC_STATE_FILLING || unit->maker != file)
		return -ENOENT;
	if (call->offset > unit->size || call->length > unit->size - call->offset)
		return -ERANGE;
	if (model.no_reading)
		return -EINVAL;
	got = read(call->fd, file->arena + unit->place + call->offset, call->length);
	if (got < 0)
		return -errno;
	call->done = (uint64_t)got;
	return 0;
}

static inline int model_insert(struct model_file *file, struct model_unit *unit,
			       const struct nabc_insert *call)
{
	if (unit->state != NABC_STATE_FILLING || unit->maker != file)
		return unit->state ? -EROFS : -ENOENT;
	if (call->length > unit->size)
		return -ERANGE;
	unit->bytes = malloc(unit->size);
	if (!unit->bytes)
		return -ENOMEM;
	memcpy(unit->bytes, file->arena + unit->place, unit->size);
	unit->state = NABC_STATE_CACHED;
	model_leave_arena(unit, PROT_NONE);
	if (call->length) {
		model.used -= unit->size - call->length;
		unit->size = call->length;
	}
	return 0;
}

static inline int model_put(struct model_file *file, struct nabc_put *put)
{
	struct model_unit *unit = &model.units[model.last + 1];

	if (!put->size || put->flags || put->principal)
		return -EINVAL;
	if (model.used + put->size > model.memory || model.last + 2 == MODEL_UNITS)
		return -model.full;
	*unit = (struct model_unit){.maker = file,
				    .pid = file->pid,
				    .state = NABC_STATE_CACHED,
				    .size = put->size,
				    .bytes = malloc(put->size)};
	if (!unit->bytes)
		abort();
	memcpy(unit->bytes, (const void *)(uintptr_t)put->data, put->size);
	model.used += put->size;
	put->id = ++model.last;
	return 0;
}

static inline bool model_plain(int socket)
{
	int protocol = 0;
	socklen_t length = sizeof(protocol);

	return !model.no_sockets &&
	       getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 &&
	       protocol == IPPROTO_TCP;
}

/* Sends in order; stops when the socket accepts less than offered. */
static inline int model_send(struct model_file *file, struct nabc_socksendv *call)
{
	const struct nabc_range *ranges = (const void *)(uintptr_t)call->ranges;
	struct iovec pieces[NABC_RANGES_MAX + 1];
	struct msghdr message = {.msg_iov = pieces};
	int flags = MSG_NOSIGNAL | (call->flags & NABC_SEND_DONTWAIT ? MSG_DONTWAIT : 0) |
		    (call->flags & (NABC_SEND_MORE | NABC_SEND_CLOSE) ? MSG_MORE : 0);
	size_t total = call->header_length;
	ssize_t sent;

	if (call->range_count > NABC_RANGES_MAX || call->header_length > NABC_HEADER_MAX ||
	    (call->flags & NABC_SEND_MORE && call->flags & NABC_SEND_CLOSE))
		return -EINVAL;
	if (!model_plain(call->socket))
		return -EOPNOTSUPP;
	model.asked += (call->flags & NABC_SEND_SUMS) != 0;
	if (call->header_length)
		pieces[message.msg_iovlen++] =
			(struct iovec){(void *)(uintptr_t)call->header, call->header_length};
	for (unsigned i = 0; i < call->range_count; i++) {
		const struct nabc_range *range = &ranges[i];
		struct model_unit *unit =
			range->id <= model.last ? &model.units[range->id] : &model.units[0];
		int error = model_access(file, unit);

		if (error)
			return error;
		if (!range->length)
			return -EINVAL;
		if (range->offset > unit->size || range->length > unit->size - range->offset)
			return -ERANGE;
		pieces[message.msg_iovlen++] =
			(struct iovec){unit->bytes + range->offset, range->length};
		total += range->length;
	}
	if (call->skip >= total)
		return -EINVAL;
	sent = sendmsg(call->socket, &message, flags);
	if (sent < 0)
		return -errno;
	call->sent = (uint64_t)sent;
	if (call->sent == total && call->flags & NABC_SEND_CLOSE) {
		shutdown(call->socket, SHUT_WR);
		model.closes++;
	}
	return 0;
}

static inline int model_copy(struct model_file *file, struct model_unit *unit,
			     const struct nabc_copy *call)
{
	int error = model_access(file, unit);

	if (error)
		return error;
	if (call->offset > unit->size || call->length > unit->size - call->offset)
		return -ERANGE;
	memcpy((void *)(uintptr_t)call->data, unit->bytes + call->offset, call->length);
	return 0;
}

/* Zero is 0xffff here, as the difference of two equal sums is in the module. */
static inline int model_sum(struct model_file *file, struct model_unit *unit, struct nabc_sum *call)
{
	int error = model_access(file, unit);

	if (error)
		return error;
	if (call->offset > unit->size || call->length > unit->size - call->offset)
		return -ERANGE;
	call->sum = ntohs(nc_checksum(unit->bytes + call->offset, call->length));
	if (call->length && !call->sum)
		call->sum = 0xffff;
	return 0;
}

static inline int model_grant(struct model_file *file, struct model_unit *unit,
			      const struct nabc_grant *call)
{
	pid_t pid = nc_identity_pid((int)call->who);

	if (call->principal != NABC_PRINCIPAL_PIDFD || call->rights != NABC_RIGHT_SEND)
		return -EINVAL;
	if (!unit->state)
		return -ENOENT;
	if (unit->pid != file->pid)
		return -EACCES;
	if (pid < 0)
		return pid;
	if (unit->grant_count == MODEL_GRANTS)
		return -ENOSPC;
	unit->grants[unit->grant_count++] = pid;
	return 0;
}

static inline int model_hold(struct model_file *file, struct model_unit *unit)
{
	int error = model_access(file, unit);

	if (!error && model.no_holding)
		error = -ENOMEM;
	if (!error)
		unit->holds[file - model.files]++;
	return error;
}

static inline int model_release(struct model_file *file, struct model_unit *unit)
{
	unsigned *holds = &unit->holds[file - model.files];

	if (!*holds)
		return -EINVAL;
	--*holds;
	if (unit->state == NABC_STATE_DESTROYED)
		model_end(unit);
	return 0;
}

static inline int model_stat(struct model_file *file, struct model_unit *unit,
			     struct nabc_stat *stat)
{
	int error = model_access(file, unit);

	if (error)
		return error;
	stat->size = unit->size;
	stat->state = (uint32_t)unit->state;
	stat->rights = NABC_RIGHT_SEND;
	stat->maker_pid = unit->maker ? (uint32_t)unit->pid : 0;
	return 0;
}

static inline int model_do(struct model_file *file, unsigned long request, void *argument)
{
	/* All operations on one unit begin with its id. */
	uint64_t id = *(uint64_t *)argument;
	struct model_unit *unit = &model.units[id <= model.last ? id : 0];

	model.calls[_IOC_NR(request)]++;
	switch (request) {
	case NABC_IOC_INFO:
		*(struct nabc_info *)argument = (struct nabc_info){
			.version = model.version,
			.arena_size = MODEL_ARENA,
			.unit_max = MODEL_ARENA,
			.page_size = 4096,
			.chunk_size = MODEL_CHUNK,
			.ranges_max = NABC_RANGES_MAX,
			.header_max = NABC_HEADER_MAX,
			.features = (model.sums ? NABC_FEATURE_SUMS : 0) |
				    (model.no_put ? 0 : NABC_FEATURE_PUT),
		};
		return 0;
	case NABC_IOC_ALLOC:
		return model_alloc(file, argument);
	case NABC_IOC_PUT:
		return model_put(file, argument);
	case NABC_IOC_READ:
		return model_read(file, unit, argument);
	case NABC_IOC_INSERT:
		return model_insert(file, unit, argument);
	case NABC_IOC_SOCKSENDV:
		return model_send(file, argument);
	case NABC_IOC_COPY:
		return model_copy(file, unit, argument);
	case NABC_IOC_SUM:
		return model_sum(file, unit, argument);
	case NABC_IOC_DESTROY:
		if (!unit->state || unit->state == NABC_STATE_DESTROYED)
			return -ENOENT;
		if (unit->pid != file->pid)
			return -EACCES;
		model_end(unit);
		return 0;
	case NABC_IOC_HOLD:
		return model_hold(file, unit);
	case NABC_IOC_RELEASE:
		return model_release(file, unit);
	case NABC_IOC_GRANT:
		return model_grant(file, unit, argument);
	case NABC_IOC_STAT:
		return model_stat(file, unit, argument);
	}
	return -ENOTTY;
}

static inline int model_call(int fd, unsigned long request, void *argument)
{
	struct model_file *file;
	int error;

	pthread_mutex_lock(&model.lock);
	file = model_file_of(fd);
	error = file ? model_do(file, request, argument) : -EBADF;
	pthread_mutex_unlock(&model.lock);
	return error;
}

static inline int model_open(void)
{
	struct model_file *file = model_file_of(0);
	int fd;

	if (model.open_error)
		return -model.open_error;
	fd = memfd_create("model", MFD_CLOEXEC);
	if (fd < 0 || !file || ftruncate(fd, MODEL_ARENA) < 0)
		abort();
	*file = (struct model_file){.fd = fd, .pid = model.pid ? model.pid : getpid()};
	return fd;
}

static inline void model_close(int fd)
{
	struct model_file *file = model_file_of(fd);

	for (uint64_t id = 1; id <= model.last; id++) {
		struct model_unit *unit = &model.units[id];

		while (unit->state && unit->holds[file - model.files])
			(void)model_release(file, unit);
		if (!unit->state || unit->maker != file)
			continue;
		/* Its arena is not mapped any more. */
		unit->maker = NULL;
		model_end(unit);
	}
	close(fd);
	file->fd = 0;
}

static inline int model_map(int fd, size_t size, void **arena)
{
	struct model_file *file = model_file_of(fd);

	*arena = mmap(NULL, size, PROT_NONE, MAP_SHARED, fd, 0);
	if (*arena == MAP_FAILED)
		return -errno;
	file->arena = *arena;
	return 0;
}

static inline void model_unmap(void *arena, size_t size)
{
	munmap(arena, size);
}

static const struct nc_device_system model_system = {
	model_open, model_close, model_call, model_map, model_unmap,
};

/* Returns the number of units. */
static inline unsigned model_units(void)
{
	unsigned count = 0;

	for (uint64_t id = 1; id <= model.last; id++)
		count += model.units[id].state != 0;
	return count;
}

static inline unsigned model_calls(unsigned long request)
{
	return model.calls[_IOC_NR(request)];
}

#endif
