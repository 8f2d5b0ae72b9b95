/* SPDX-License-Identifier: MIT */
/*
 * fcgx-stream.c - the calls of fcgiapp.h that read and write streams.
 *
 * They use a stream's own functions, so that a stream which libfcgi has made (FCGX_CreateWriter())
 * works in a worker, too.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "input.h"
#include "interface.h"
#include "layout.h"
#include "mode.h"
#include "output.h"
#include "real.h"

/* --- readers ----------------------------------------------------------------------------- */

/* Returns the bytes that can be read at once; 0: the stream is at its end. */
static size_t readable(struct fcgi_stream *stream)
{
	if (!stream->is_reader)
		return 0;
	if (stream->read_next == stream->stop && !stream->is_closed)
		stream->fill(stream);
	return (size_t)(stream->stop - stream->read_next);
}

int FCGX_GetChar(struct fcgi_stream *stream)
{
	if (!fcgi_is_worker)
		return REAL(FCGX_GetChar)(stream);
	return readable(stream) ? *stream->read_next++ : EOF;
}

int FCGX_UnGetChar(int c, struct fcgi_stream *stream)
{
	if (!fcgi_is_worker)
		return REAL(FCGX_UnGetChar)(c, stream);
	if (c == EOF || !stream->is_reader || stream->read_next == stream->stop_unget)
		return EOF;
	if (stream->read_next[-1] == (unsigned char)c) {
		stream->read_next--;
		return c;
	}
	return fcgi_input_replace(stream, (unsigned char)c) ? EOF : c;
}

int FCGX_GetStr(char *str, int n, struct fcgi_stream *stream)
{
	int done = 0;

	if (!fcgi_is_worker)
		return REAL(FCGX_GetStr)(str, n, stream);
	while (done < n) {
		size_t run = readable(stream), wanted = (size_t)(n - done);

		if (run == 0)
			break;
		run = run < wanted ? run : wanted;
		memcpy(str + done, stream->read_next, run);
		stream->read_next += run;
		done += (int)run;
	}
	return done;
}

char *FCGX_GetLine(char *str, int n, struct fcgi_stream *stream)
{
	int done = 0, byte = 0;

	if (!fcgi_is_worker)
		return REAL(FCGX_GetLine)(str, n, stream);
	while (done < n - 1 && byte != '\n') {
		byte = FCGX_GetChar(stream);
		if (byte == EOF)
			break;
		str[done++] = (char)byte;
	}
	if (n > 0)
		str[done] = '\0';
	return done ? str : NULL;
}

int FCGX_HasSeenEOF(struct fcgi_stream *stream)
{
	if (!fcgi_is_worker)
		return REAL(FCGX_HasSeenEOF)(stream);
	return stream->is_closed ? EOF : 0;
}

/* --- writers ----------------------------------------------------------------------------- */

/* Returns the bytes that can be written at once; 0: the stream is closed. */
static size_t writable(struct fcgi_stream *stream)
{
	if (stream->is_reader || stream->is_closed)
		return 0;
	if (stream->write_next == stream->stop)
		stream->empty(stream, 0);
	return stream->is_closed ? 0 : (size_t)(stream->stop - stream->write_next);
}

/* Returns 0 or EOF. */
static int put(struct fcgi_stream *stream, const char *data, size_t length)
{
	if (fcgi_output_is(stream))
		return fcgi_output_write(stream, data, length) ? EOF : 0;
	while (length) {
		size_t run = writable(stream);

		if (run == 0)
			return EOF;
		run = run < length ? run : length;
		memcpy(stream->write_next, data, run);
		stream->write_next += run;
		data += run;
		length -= run;
	}
	return 0;
}

int FCGX_PutChar(int c, struct fcgi_stream *stream)
{
	if (!fcgi_is_worker)
		return REAL(FCGX_PutChar)(c, stream);
	if (writable(stream) == 0)
		return EOF;
	*stream->write_next++ = (unsigned char)c;
	return (unsigned char)c;
}

int FCGX_PutStr(const char *str, int n, struct fcgi_stream *stream)
{
	if (!fcgi_is_worker)
		return REAL(FCGX_PutStr)(str, n, stream);
	return n < 0 || put(stream, str, (size_t)n) ? EOF : n;
}

int FCGX_PutS(const char *str, struct fcgi_stream *stream)
{
	size_t length;

	if (!fcgi_is_worker)
		return REAL(FCGX_PutS)(str, stream);
	length = strlen(str);
	return length > INT_MAX || put(stream, str, length) ? EOF : (int)length;
}

/* Prints what does not fit the stream's window. */
static int print_apart(struct fcgi_stream *stream, int length, const char *format,
		       va_list arguments)
{
	char *text = malloc((size_t)length + 1);
	int result = EOF;

	if (!text) {
		stream->error = ENOMEM;
		return EOF;
	}
	if (vsnprintf(text, (size_t)length + 1, format, arguments) == length)
		result = put(stream, text, (size_t)length) ? EOF : length;
	free(text);
	return result;
}

int FCGX_VFPrintF(struct fcgi_stream *stream, const char *format, va_list arguments)
{
	va_list again;
	size_t room;
	int length;

	if (!fcgi_is_worker)
		return REAL(FCGX_VFPrintF)(stream, format, arguments);
	room = writable(stream);
	if (room == 0)
		return EOF;
	va_copy(again, arguments);
	length = vsnprintf((char *)stream->write_next, room, format, arguments);
	if (length >= 0 && (size_t)length < room)
		stream->write_next += length;
	else if (length >= 0)
		length = print_apart(stream, length, format, again);
	va_end(again);
	return length < 0 ? EOF : length;
}

int FCGX_FPrintF(struct fcgi_stream *stream, const char *format, ...)
{
	va_list arguments;
	int result;

	va_start(arguments, format);
	result = FCGX_VFPrintF(stream, format, arguments);
	va_end(arguments);
	return result;
}

int FCGX_FFlush(struct fcgi_stream *stream)
{
	if (!fcgi_is_worker)
		return REAL(FCGX_FFlush)(stream);
	if (stream->is_reader)
		return 0;
	if (stream->is_closed)
		return EOF;
	if (fcgi_output_is(stream))
		return fcgi_output_flush(stream) ? EOF : 0;
	stream->empty(stream, 0);
	return stream->is_closed ? EOF : 0;
}

/* --- both -------------------------------------------------------------------------------- */

int FCGX_FClose(struct fcgi_stream *stream)
{
	if (!fcgi_is_worker)
		return REAL(FCGX_FClose)(stream);
	if (stream->was_closed)
		return 0;
	stream->was_closed = 1;
	if (stream->is_reader) {
		stream->is_closed = 1;
		stream->read_next = stream->stop_unget = stream->write_next = stream->stop;
	} else {
		stream->empty(stream, 1);
	}
	return stream->error ? EOF : 0;
}

int FCGX_GetError(struct fcgi_stream *stream)
{
	return fcgi_is_worker ? stream->error : REAL(FCGX_GetError)(stream);
}

void FCGX_ClearError(struct fcgi_stream *stream)
{
	if (fcgi_is_worker)
		stream->error = 0;
	else
		REAL(FCGX_ClearError)(stream);
}

/* Streams of requests end with these; all others are libfcgi's. */
void FCGX_FreeStream(struct fcgi_stream **stream)
{
	if (fcgi_is_worker && stream && *stream && fcgi_exchange_of(*stream))
		*stream = NULL;
	else
		REAL(FCGX_FreeStream)(stream);
}
