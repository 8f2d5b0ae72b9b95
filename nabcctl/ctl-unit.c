/* SPDX-License-Identifier: MIT */
/* ctl-unit.c - the commands for single units: put, get, grant, revoke, keep, destroy; see ctl.h. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/json.h>

#include "ctl.h"

/* --- put ----------------------------------------------------------------------- */

#define STREAM_FIRST ((size_t)64 << 10)

/* The input of put: an open file, its name for messages, and the length of fragments. */
struct input {
	const struct ctl *ctl;
	int fd;
	const char *name;
	size_t fraglen;
};

static int alloc_failed(const struct input *input, size_t size, int error)
{
	switch (error) {
	case EFBIG:
		return ctl_complain("%s: %zu bytes or more: over the cache's limit for one unit: "
				    "put it in parts",
				    input->name, size);
	case EINVAL:
		return size ? ctl_complain("--fraglen %zu: fragments have at most 4096 bytes, or "
					   "whole pages",
					   input->fraglen)
			    : ctl_complain("%s: it is empty: a unit has at least one byte",
					   input->name);
	case EDQUOT:
		return ctl_complain("%s: %zu bytes: over the cache's quota for one member",
				    input->name, size);
	case ENOMEM:
		return ctl_complain("%s: %zu bytes: the cache has no memory left", input->name,
				    size);
	}
	return ctl_cache_failed(input->ctl, input->name, error);
}

static int insert(const struct input *input, NC_handle *handle, size_t size)
{
	if (NC_insert(handle) == 0)
		return 0;
	return alloc_failed(input, size, errno);
}

static int alloc(const struct input *input, NC_handle *handle, size_t size)
{
	if (NC_unit_alloc(input->ctl->cache, handle, size, input->fraglen, NC_KIND_SEALED, 0) == 0)
		return 0;
	return alloc_failed(input, size, errno);
}

/* Reads a file of known length directly into its unit. */
static int put_file(const struct input *input, size_t size, NC_handle *handle)
{
	ssize_t got;
	int status = alloc(input, handle, size);

	if (status)
		return status;
	got = NC_unit_read(handle, input->fd, size, 0);
	if (got < 0)
		status = ctl_complain("%s: %s", input->name, strerror(errno));
	else if ((size_t)got != size)
		status = ctl_complain("%s: it became shorter while it was read: try again",
				      input->name);
	else
		status = insert(input, handle, size);
	if (status)
		NC_free(handle);
	return status;
}

/* Checks whether the cache accepts a unit of this size, to stop reading an endless stream early. */
static int probe(const struct input *input, size_t size)
{
	NC_handle handle;
	int status = alloc(input, &handle, size);

	if (!status)
		NC_free(&handle);
	return status;
}

/* Reads into *data, which grows.  Returns 0 at the end, or an exit status. */
static int gather(const struct input *input, char **data, size_t *length)
{
	size_t room = 0;
	ssize_t got;
	char *more;
	int status;

	for (;;) {
		if (*length == room) {
			status = room ? probe(input, room) : 0;
			if (status)
				return status;
			room = room ? 2 * room : STREAM_FIRST;
			more = realloc(*data, room);
			if (!more)
				return ctl_complain("%s: %s", input->name, strerror(ENOMEM));
			*data = more;
		}
		got = read(input->fd, *data + *length, room - *length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return ctl_complain("%s: %s", input->name, strerror(errno));
		if (got == 0)
			return 0;
		*length += (size_t)got;
	}
}

/* The length of a pipe is known only at its end. */
static int put_stream(const struct input *input, NC_handle *handle)
{
	char *data = NULL;
	size_t length = 0;
	int status = gather(input, &data, &length);

	if (!status)
		status = alloc(input, handle, length);
	if (!status) {
		(void)NC_write(handle, data, length, 0);
		status = insert(input, handle, length);
		if (status)
			NC_free(handle);
	}
	free(data);
	return status;
}

static int put_input(const struct input *input, NC_handle *handle)
{
	struct stat found;
	off_t at;

	if (fstat(input->fd, &found) < 0)
		return ctl_complain("%s: %s", input->name, strerror(errno));
	if (S_ISDIR(found.st_mode))
		return ctl_complain("%s: %s", input->name, strerror(EISDIR));
	/* Files of the kernel have size 0, but contents. */
	at = S_ISREG(found.st_mode) && found.st_size ? lseek(input->fd, 0, SEEK_CUR) : -1;
	if (at >= 0 && at < found.st_size)
		return put_file(input, (size_t)(found.st_size - at), handle);
	return put_stream(input, handle);
}

static int print_id(const struct ctl *ctl, size_t id)
{
	struct json json = {.to = stdout};

	if (ctl->json) {
		json_open(&json, NULL, '{');
		json_id(&json, "id", id);
		json_close(&json, '}');
	} else {
		printf("%zu\n", id);
	}
	return ctl_flush();
}

static int put(struct ctl *ctl, const struct input *input, const struct ctl_stay *stay,
	       const struct ctl_principals *principals)
{
	NC_handle handle;
	int status = put_input(input, &handle);
	size_t id;

	if (status)
		return status;
	id = NC_cache_id(&handle);
	NC_free(&handle);
	/* The id is printed only after all settings succeeded. */
	status = ctl_stay_set(ctl, stay, id);
	if (!status)
		status = ctl_principals_each(ctl, principals, id, NC_grant);
	if (!status)
		status = print_id(ctl, id);
	if (status)
		(void)NC_destroy(ctl->cache, id);
	return status;
}

int ctl_put(struct ctl *ctl, int argc, char **argv)
{
	struct input input = {.ctl = ctl};
	struct ctl_stay stay = {0};
	struct ctl_principals principals = {0};
	char *fraglen = NULL;
	GOptionEntry entries[2 + CTL_STAY + CTL_PRINCIPALS] = {
		{"fraglen", 0, 0, G_OPTION_ARG_STRING, &fraglen, "Bytes of a fragment (4096)", "N"},
	};
	int status;

	ctl_stay_entries(&stay, entries + 1);
	ctl_principals_entries(&principals, entries + 1 + CTL_STAY);
	status = ctl_options(ctl, entries, &argc, &argv);
	if (!status && argc != 2)
		status = ctl_misused(ctl, "put needs one file, or - for standard input");
	if (!status && fraglen && (!ctl_read_size(fraglen, &input.fraglen) || !input.fraglen))
		status = ctl_misused(ctl, "--fraglen \"%s\": must be a number of bytes", fraglen);
	if (!status)
		status = ctl_stay_check(ctl, &stay);
	if (!status)
		status = ctl_principals_check(ctl, &principals);
	if (!status) {
		bool standard = strcmp(argv[1], "-") == 0;

		input.name = standard ? "standard input" : argv[1];
		input.fd = standard ? STDIN_FILENO : open(argv[1], O_RDONLY | O_CLOEXEC);
		if (input.fd < 0)
			status = ctl_complain("%s: %s", argv[1], strerror(errno));
		if (!status)
			status = ctl_attach(ctl, CTL_ANYBODY);
		if (!status)
			status = put(ctl, &input, &stay, &principals);
		if (input.fd > STDIN_FILENO)
			close(input.fd);
	}
	ctl_principals_free(&principals);
	ctl_stay_free(&stay);
	g_free(fraglen);
	return status;
}

/* --- get ---------------------------------------------------------------------------- */

static int write_all(const char *data, size_t length)
{
	while (length) {
		ssize_t written = write(STDOUT_FILENO, data, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			/* The reader of standard output has exited. */
			return errno == EPIPE
				       ? CTL_FAILURE
				       : ctl_complain("standard output: %s", strerror(errno));
		data += written;
		length -= (size_t)written;
	}
	return 0;
}

/* Writes a held unit from its place in memory, without a copy. */
static int copy_out(const struct ctl *ctl, size_t id, const struct NC_hold *hold, uint64_t offset,
		    uint64_t length)
{
	struct NC_stat stat;
	int status = 0;

	if (NC_stat(ctl->cache, id, &stat, sizeof(stat)) < 0)
		return ctl_unit_failed(ctl, id, errno);
	if (offset > stat.size)
		return ctl_complain("unit %zu: it has %zu bytes, but --offset is %" PRIu64, id,
				    stat.size, offset);
	if (length > stat.size - offset)
		length = stat.size - offset;
	while (length && !status) {
		size_t run;
		const char *data = NC_data(hold, &run, offset);

		if (!data)
			return ctl_unit_failed(ctl, id, errno);
		if (run > length)
			run = length;
		status = write_all(data, run);
		offset += run;
		length -= run;
	}
	return status;
}

int ctl_get(struct ctl *ctl, int argc, char **argv)
{
	uint64_t offset = 0, length = UINT64_MAX;
	char *offset_word = NULL, *length_word = NULL;
	const GOptionEntry entries[] = {
		{"offset", 0, 0, G_OPTION_ARG_STRING, &offset_word, "Start at byte N (0)", "N"},
		{"length", 0, 0, G_OPTION_ARG_STRING, &length_word, "Write at most N bytes (all)",
		 "N"},
		{0},
	};
	int status = ctl_options(ctl, entries, &argc, &argv);
	struct NC_hold hold;
	size_t id = 0;

	if (!status && argc != 2)
		status = ctl_misused(ctl, "get needs one id");
	if (!status && !ctl_read_id(argv[1], &id))
		status = ctl_misused(ctl, "\"%s\": not a cache id", argv[1]);
	if (!status && offset_word && !ctl_read_size(offset_word, &offset))
		status = ctl_misused(ctl, "--offset \"%s\": must be a number", offset_word);
	if (!status && length_word && !ctl_read_size(length_word, &length))
		status = ctl_misused(ctl, "--length \"%s\": must be a number", length_word);
	if (!status)
		status = ctl_attach(ctl, CTL_ANYBODY);
	if (!status && NC_hold(ctl->cache, id, &hold) < 0)
		status = ctl_unit_failed(ctl, id, errno);
	else if (!status) {
		status = copy_out(ctl, id, &hold, offset, length);
		(void)NC_release(&hold);
	}
	g_free(offset_word);
	g_free(length_word);
	return status;
}

/* --- grant and revoke ------------------------------------------------------------------ */

static int for_whom(struct ctl *ctl, int argc, char **argv, ctl_principal_call *call)
{
	struct ctl_principals principals = {0};
	GOptionEntry entries[CTL_PRINCIPALS + 1] = {{0}};
	size_t id = 0;
	int status;

	ctl_principals_entries(&principals, entries);
	status = ctl_options(ctl, entries, &argc, &argv);
	if (!status && argc != 2)
		status = ctl_misused(ctl, "%s needs one id", ctl->command->name);
	if (!status && !ctl_read_id(argv[1], &id))
		status = ctl_misused(ctl, "\"%s\": not a cache id", argv[1]);
	if (!status && ctl_principals_count(&principals) == 0)
		status = ctl_misused(ctl, "no grantee given: use --pid, --user or --group");
	if (!status)
		status = ctl_principals_check(ctl, &principals);
	if (!status)
		status = ctl_attach(ctl, CTL_ANYBODY);
	if (!status)
		status = ctl_principals_each(ctl, &principals, id, call);
	ctl_principals_free(&principals);
	return status;
}

int ctl_grant(struct ctl *ctl, int argc, char **argv)
{
	return for_whom(ctl, argc, argv, NC_grant);
}

int ctl_revoke(struct ctl *ctl, int argc, char **argv)
{
	return for_whom(ctl, argc, argv, NC_revoke);
}

/* --- keep ------------------------------------------------------------------------------ */

int ctl_keep(struct ctl *ctl, int argc, char **argv)
{
	struct ctl_stay stay = {0};
	GOptionEntry entries[CTL_STAY + 1] = {{0}};
	size_t id = 0;
	int status;

	ctl_stay_entries(&stay, entries);
	status = ctl_options(ctl, entries, &argc, &argv);
	if (!status && argc != 2)
		status = ctl_misused(ctl, "keep needs one id");
	if (!status && !ctl_read_id(argv[1], &id))
		status = ctl_misused(ctl, "\"%s\": not a cache id", argv[1]);
	if (!status && !stay.seconds && !stay.priority)
		status = ctl_misused(ctl, "nothing to set: use --ttl or --priority");
	if (!status)
		status = ctl_stay_check(ctl, &stay);
	if (!status)
		status = ctl_attach(ctl, CTL_ANYBODY);
	if (!status)
		status = ctl_stay_set(ctl, &stay, id);
	ctl_stay_free(&stay);
	return status;
}

/* --- destroy ------------------------------------------------------------------------------ */

int ctl_destroy(struct ctl *ctl, int argc, char **argv)
{
	int status = ctl_options(ctl, NULL, &argc, &argv);
	size_t id;

	if (!status && argc < 2)
		status = ctl_misused(ctl, "destroy needs at least one id");
	for (int i = 1; i < argc && !status; i++)
		if (!ctl_read_id(argv[i], &id))
			status = ctl_misused(ctl, "\"%s\": not a cache id", argv[i]);
	if (!status)
		status = ctl_attach(ctl, CTL_ANYBODY);
	if (status)
		return status;
	/* If one fails, the others are still destroyed. */
	for (int i = 1; i < argc; i++)
		if (ctl_read_id(argv[i], &id) && NC_destroy(ctl->cache, id) < 0)
			status = ctl_unit_failed(ctl, id, errno);
	return status;
}
