/* SPDX-License-Identifier: MIT */
/*
 * stdio-bytes.c - the calls of fcgi_stdio.h that read and write.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "interface.h"
#include "layout.h"
#include "mode.h"
#include "real.h"
#include "stdio-interface.h"

#define INPUT (&_fcgi_sF[0])
#define OUTPUT (&_fcgi_sF[1])
#define ERRORS (&_fcgi_sF[2])

/* --- reading ----------------------------------------------------------------------------- */

int FCGI_fgetc(struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_fgetc)(file);
	if (file->file)
		return getc(file->file);
	return file->stream ? FCGX_GetChar(file->stream) : EOF;
}

int FCGI_getchar(void)
{
	return FCGI_fgetc(INPUT);
}

int FCGI_ungetc(int c, struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_ungetc)(c, file);
	if (file->file)
		return ungetc(c, file->file);
	return file->stream ? FCGX_UnGetChar(c, file->stream) : EOF;
}

char *FCGI_fgets(char *str, int size, struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_fgets)(str, size, file);
	if (file->file)
		return fgets(str, size, file->file);
	return file->stream ? FCGX_GetLine(str, size, file->stream) : NULL;
}

/* The program knows what comes: there is no bound. */
char *FCGI_gets(char *str)
{
	char *to = str;
	int byte;

	if (!fcgi_is_worker)
		return REAL(FCGI_gets)(str);
	while ((byte = FCGI_getchar()) != EOF && byte != '\n')
		*to++ = (char)byte;
	*to = '\0';
	return byte == EOF && to == str ? NULL : str;
}

/* The calls of streams have lengths of type int. */
static int at_once(size_t length)
{
	return length < INT_MAX ? (int)length : INT_MAX;
}

size_t FCGI_fread(void *to, size_t size, size_t count, struct fcgi_file *file)
{
	size_t length = size * count, done = 0;

	if (!fcgi_is_worker)
		return REAL(FCGI_fread)(to, size, count, file);
	if (file->file)
		return fread(to, size, count, file->file);
	if (!file->stream || !size || count > SIZE_MAX / size)
		return 0;
	while (done < length) {
		int got = FCGX_GetStr((char *)to + done, at_once(length - done), file->stream);

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done / size;
}

/* --- writing ----------------------------------------------------------------------------- */

int FCGI_fputc(int c, struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_fputc)(c, file);
	if (file->file)
		return putc(c, file->file);
	return file->stream ? FCGX_PutChar(c, file->stream) : EOF;
}

int FCGI_putchar(int c)
{
	return FCGI_fputc(c, OUTPUT);
}

int FCGI_fputs(const char *str, struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_fputs)(str, file);
	if (file->file)
		return fputs(str, file->file);
	return file->stream ? FCGX_PutS(str, file->stream) : EOF;
}

int FCGI_puts(const char *str)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_puts)(str);
	return FCGI_fputs(str, OUTPUT) < 0 || FCGI_putchar('\n') < 0 ? EOF : 0;
}

size_t FCGI_fwrite(void *from, size_t size, size_t count, struct fcgi_file *file)
{
	size_t length = size * count, done = 0;

	if (!fcgi_is_worker)
		return REAL(FCGI_fwrite)(from, size, count, file);
	if (file->file)
		return fwrite(from, size, count, file->file);
	if (!file->stream || !size || count > SIZE_MAX / size)
		return 0;
	while (done < length) {
		int put = FCGX_PutStr((char *)from + done, at_once(length - done), file->stream);

		if (put <= 0)
			break;
		done += (size_t)put;
	}
	return done / size;
}

void FCGI_perror(const char *str)
{
	const char *what = strerror(errno);

	if (!fcgi_is_worker)
		REAL(FCGI_perror)(str);
	else if (str && *str)
		(void)FCGI_fprintf(ERRORS, "%s: %s\n", str, what);
	else
		(void)FCGI_fprintf(ERRORS, "%s\n", what);
}

int FCGI_vfprintf(struct fcgi_file *file, const char *format, va_list arguments)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_vfprintf)(file, format, arguments);
	if (file->file)
		return vfprintf(file->file, format, arguments);
	return file->stream ? FCGX_VFPrintF(file->stream, format, arguments) : EOF;
}

int FCGI_vprintf(const char *format, va_list arguments)
{
	return FCGI_vfprintf(OUTPUT, format, arguments);
}

int FCGI_fprintf(struct fcgi_file *file, const char *format, ...)
{
	va_list arguments;
	int result;

	va_start(arguments, format);
	result = FCGI_vfprintf(file, format, arguments);
	va_end(arguments);
	return result;
}

int FCGI_printf(const char *format, ...)
{
	va_list arguments;
	int result;

	va_start(arguments, format);
	result = FCGI_vfprintf(OUTPUT, format, arguments);
	va_end(arguments);
	return result;
}
