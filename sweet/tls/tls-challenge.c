/* SPDX-License-Identifier: MIT */
/*
 * tls-challenge.c - see tls-challenge.h.
 *
 * The name comes from anybody: only what a name in DNS can be becomes a part of a file's name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tls/tls-challenge.h"
#include "tls/tls.h"

#define NAME_BYTES 253u	      /* of a name in DNS */
#define FILE_BYTES (64 << 10) /* such files have some 2 KB */

/* Copies the name in lower case; returns false if it is none.  No label of it is empty. */
static bool read_name(char lower[NAME_BYTES + 1], const char *name, size_t length)
{
	char before = '.';

	if (length == 0 || length > NAME_BYTES)
		return false;
	for (size_t i = 0; i < length; i++) {
		char c = name[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (c == '.' ? before == '.'
			     : !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
				 c == '_'))
			return false;
		lower[i] = before = c;
	}
	lower[length] = '\0';
	return before != '.';
}

static char *complaint(const struct tls_file *folder, const char *file, const char *text)
{
	char *line = NULL;

	if (asprintf(&line, "\"%s/%s\": %s", folder->name, file, text) < 0)
		return NULL;
	return line;
}

/* Opens a file of the folder; returns false with *why. */
static bool open_file(const struct tls_file *folder, struct tls_file *file, char **why)
{
	const char *wrong = NULL;
	struct stat stat;

	file->fd = openat(folder->fd, file->name,
			  O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	if (file->fd < 0 || fstat(file->fd, &stat) < 0)
		wrong = strerror(errno);
	else if (!S_ISREG(stat.st_mode))
		wrong = "is no regular file";
	else if (stat.st_size > FILE_BYTES)
		wrong = "is longer than 64 KB";
	if (wrong)
		*why = complaint(folder, file->name, wrong);
	return !wrong;
}

static void close_file(const struct tls_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
}

struct tls_identity *tls_challenge_open(const struct tls_file *folder, const char *name,
					size_t length, char **why)
{
	char lower[NAME_BYTES + 1], chain[sizeof(lower) + 8], key[sizeof(lower) + 8];
	struct tls_certificate certificate = {.chain = {chain, -1}, .key = {key, -1}};
	const struct tls_options options = {.name = "",
					    .certificates = &certificate,
					    .certificate_count = 1,
					    .challenge = true};
	struct tls_identity *identity = NULL;

	*why = NULL;
	if (!read_name(lower, name, length)) {
		*why = strdup("the client wants a name that DNS does not permit");
		return NULL;
	}
	(void)snprintf(chain, sizeof(chain), "%s.crt.pem", lower);
	(void)snprintf(key, sizeof(key), "%s.key.pem", lower);
	if (open_file(folder, &certificate.chain, why) && open_file(folder, &certificate.key, why))
		identity = tls_library->identity_open(&options, why);
	close_file(&certificate.chain);
	close_file(&certificate.key);
	return identity;
}
