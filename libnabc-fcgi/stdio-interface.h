/* SPDX-License-Identifier: MIT */
/*
 * stdio-interface.h - the calls of fcgi_stdio.h: those of stdio, on files and on streams of
 * requests.
 */
#ifndef NABC_FCGI_STDIO_INTERFACE_H
#define NABC_FCGI_STDIO_INTERFACE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "layout.h"

/* Standard input, output and error. */
extern struct fcgi_file _fcgi_sF[3];

int FCGI_Accept(void);
void FCGI_Finish(void);
int FCGI_StartFilterData(void);
void FCGI_SetExitStatus(int status);

struct fcgi_file *FCGI_fopen(const char *path, const char *mode);
struct fcgi_file *FCGI_freopen(const char *path, const char *mode, struct fcgi_file *file);
struct fcgi_file *FCGI_fdopen(int fd, const char *mode);
struct fcgi_file *FCGI_tmpfile(void);
struct fcgi_file *FCGI_popen(const char *command, const char *type);
int FCGI_fclose(struct fcgi_file *file);
int FCGI_pclose(struct fcgi_file *file);

int FCGI_fflush(struct fcgi_file *file);
int FCGI_setvbuf(struct fcgi_file *file, char *buffer, int mode, size_t size);
void FCGI_setbuf(struct fcgi_file *file, char *buffer);
int FCGI_fseek(struct fcgi_file *file, long offset, int whence);
int FCGI_ftell(struct fcgi_file *file);
void FCGI_rewind(struct fcgi_file *file);
int FCGI_fgetpos(struct fcgi_file *file, fpos_t *position);
int FCGI_fsetpos(struct fcgi_file *file, const fpos_t *position);
int FCGI_feof(struct fcgi_file *file);
int FCGI_ferror(struct fcgi_file *file);
void FCGI_clearerr(struct fcgi_file *file);
int FCGI_fileno(struct fcgi_file *file);

int FCGI_fgetc(struct fcgi_file *file);
int FCGI_getchar(void);
int FCGI_ungetc(int c, struct fcgi_file *file);
char *FCGI_fgets(char *str, int size, struct fcgi_file *file);
char *FCGI_gets(char *str);
size_t FCGI_fread(void *to, size_t size, size_t count, struct fcgi_file *file);

int FCGI_fputc(int c, struct fcgi_file *file);
int FCGI_putchar(int c);
int FCGI_fputs(const char *str, struct fcgi_file *file);
int FCGI_puts(const char *str);
size_t FCGI_fwrite(void *from, size_t size, size_t count, struct fcgi_file *file);
void FCGI_perror(const char *str);
int FCGI_fprintf(struct fcgi_file *file, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int FCGI_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int FCGI_vfprintf(struct fcgi_file *file, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));
int FCGI_vprintf(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

#endif
