/* SPDX-License-Identifier: MIT */
/*
 * log.c - see log.h.  A struct access_log belongs to one thread; several may
 * share the descriptor, which is opened for appending.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <log.h>

#define LINE_REST 256 /* of an access line, besides the request line */

void log_message(const char *format, ...)
{
	char line[1024] = "sweet: ";
	size_t length = strlen(line);
	va_list arguments;
	int more;

	va_start(arguments, format);
	more = vsnprintf(line + length, sizeof(line) - length - 1, format, arguments);
	va_end(arguments);
	if (more > 0)
		length += (size_t)more < sizeof(line) - length - 1 ? (size_t)more
								   : sizeof(line) - length - 2;
	line[length++] = '\n';
	(void)!write(STDERR_FILENO, line, length);
}

int log_open_access(const char *where, int *fd)
{
	*fd = -1;
	if (!where || strcmp(where, "off") == 0)
		return 0;
	*fd = strcmp(where, "-") == 0
		      ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
		      : open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
	return *fd < 0 ? -errno : 0;
}

void log_flush(struct access_log *log)
{
	size_t done = 0;

	while (done < log->used) {
		ssize_t written = write(log->fd, log->buffer + done, log->used - done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			break; /* a full disk must not stop the server */
		done += (size_t)written;
	}
	log->used = 0;
}

void log_access(struct access_log *log, const char *client, const char *date,
		struct slice request_line, int status, uint64_t bytes, uint64_t microseconds)
{
	static const char hex[] = "0123456789abcdef";
	size_t most = request_line.length * 4 + LINE_REST;
	char *at;

	if (log->fd < 0)
		return;
	if (most > sizeof(log->buffer)) {
		request_line.length = (sizeof(log->buffer) - LINE_REST) / 4;
		most = sizeof(log->buffer);
	}
	if (most > sizeof(log->buffer) - log->used)
		log_flush(log);
	at = log->buffer + log->used;
	at += snprintf(at, LINE_REST / 2, "%.64s [%.29s] \"", client, date);
	for (size_t i = 0; i < request_line.length; i++) {
		unsigned char byte = (unsigned char)request_line.at[i];

		if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\') {
			*at++ = (char)byte;
			continue;
		}
		*at++ = '\\';
		*at++ = 'x';
		*at++ = hex[byte >> 4];
		*at++ = hex[byte & 15];
	}
	at += snprintf(at, LINE_REST / 2, "\" %d %llu %lluus\n", status, (unsigned long long)bytes,
		       (unsigned long long)microseconds);
	log->used = (size_t)(at - log->buffer);
}
