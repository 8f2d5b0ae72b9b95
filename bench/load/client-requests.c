/* SPDX-License-Identifier: MIT */
/*
 * client-requests.c - the list of requests; see client-requests.h.  A path that is
 * repeated with the same size and status is the same request.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client-requests.h"

#define COUNT_MAX (1u << 26)
#define SLOTS_LEAST 1024u

static uint64_t hash_of(const char *text, size_t length, uint64_t size, unsigned status)
{
	uint64_t hash = 0xcbf29ce484222325ull ^ size ^ ((uint64_t)status << 48);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ull;
	return hash ^ hash >> 32;
}

static uint64_t hash_made(const struct request *request)
{
	return hash_of(request->text, request->length, request->size, request->status);
}

static int grow_slots(struct requests *requests)
{
	uint32_t count = requests->slot_count ? requests->slot_count * 2 : SLOTS_LEAST;
	uint32_t *slots = calloc(count, sizeof(slots[0]));

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < requests->made_count; i++) {
		uint64_t at = hash_made(&requests->made[i]);

		while (slots[at & (count - 1)])
			at++;
		slots[at & (count - 1)] = i + 1;
	}
	free(requests->slots);
	requests->slots = slots;
	requests->slot_count = count;
	return 0;
}

/* Extends an array, whose sizes are powers of two, by one. */
static void *room(void *array, uint32_t count, size_t size)
{
	if (count >= COUNT_MAX)
		return NULL;
	if (count && (count < 16 || (count & (count - 1))))
		return array;
	return reallocarray(array, count ? (size_t)count * 2 : 16, size);
}

/* Returns the number of a request, new or found; takes its text. -errno on failure. */
static int64_t intern(struct requests *requests, struct request *request)
{
	struct request *made;
	uint64_t at;
	int error = 0;

	if ((uint64_t)requests->made_count * 2 >= requests->slot_count)
		error = grow_slots(requests);
	for (at = error ? 0 : hash_made(request); !error; at++) {
		uint32_t slot = requests->slots[at & (requests->slot_count - 1)];
		const struct request *other = &requests->made[slot - (slot != 0)];

		if (!slot)
			break;
		if (other->length == request->length && other->size == request->size &&
		    other->status == request->status &&
		    !memcmp(other->text, request->text, request->length)) {
			free(request->text);
			return slot - 1;
		}
	}
	made = error ? NULL : room(requests->made, requests->made_count, sizeof(made[0]));
	if (!made) {
		free(request->text);
		return -ENOMEM;
	}
	requests->made = made;
	made[requests->made_count++] = *request;
	requests->slots[at & (requests->slot_count - 1)] = requests->made_count;
	return requests->made_count - 1;
}

/* Visible ASCII from a slash on, as in a request line. */
static bool sendable(const char *path)
{
	if (*path != '/')
		return false;
	for (; *path; path++)
		if (*path <= ' ' || *path > '~')
			return false;
	return true;
}

int requests_add(struct requests *requests, const struct request_form *form, const char *path,
		 uint64_t size, unsigned status)
{
	struct request request = {.size = size, .status = status};
	uint32_t *order;
	int64_t number;
	int length;

	if (!sendable(path))
		return -EBADMSG;
	length = asprintf(&request.text, "GET %s HTTP/1.%c\r\nHost: %s\r\n%s\r\n", path,
			  form->close ? '0' : '1', form->host, form->fields);
	if (length < 0)
		return -ENOMEM;
	request.length = (uint32_t)length;
	number = intern(requests, &request);
	if (number < 0)
		return (int)number;
	order = room(requests->order, requests->count, sizeof(order[0]));
	if (!order)
		return -ENOMEM;
	requests->order = order;
	order[requests->count++] = (uint32_t)number;
	return 0;
}

/* Only digits, below limit. */
static bool read_number(const char *text, uint64_t limit, uint64_t *number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return !errno && !*end && *number < limit;
}

static int add_line(struct requests *requests, const struct request_form *form, char *line)
{
	static const char blanks[] = " \t\r\n";
	uint64_t size = REQUEST_SIZE_ANY, status = 200;
	char *rest, *path = strtok_r(line, blanks, &rest);
	const char *text;

	if (!path || *path == '#')
		return 0;
	text = strtok_r(NULL, blanks, &rest);
	if (text && strcmp(text, "-") && !read_number(text, REQUEST_SIZE_ANY, &size))
		return -EBADMSG;
	text = text ? strtok_r(NULL, blanks, &rest) : NULL;
	if (text && (!read_number(text, 600, &status) || status < 200))
		return -EBADMSG;
	if (text && strtok_r(NULL, blanks, &rest))
		return -EBADMSG;
	return requests_add(requests, form, path, size, (unsigned)status);
}

int requests_read(struct requests *requests, const struct request_form *form, FILE *file,
		  uint32_t *line)
{
	char *text = NULL;
	size_t size = 0;
	ssize_t length;
	int error = 0;

	*line = 0;
	while (!error && (length = getline(&text, &size, file)) >= 0) {
		++*line;
		error = strlen(text) == (size_t)length ? add_line(requests, form, text) : -EBADMSG;
	}
	if (!error && ferror(file))
		error = -EIO;
	free(text);
	return error;
}

void requests_free(struct requests *requests)
{
	for (uint32_t i = 0; i < requests->made_count; i++)
		free(requests->made[i].text);
	free(requests->made);
	free(requests->order);
	free(requests->slots);
	*requests = (struct requests){0};
}
