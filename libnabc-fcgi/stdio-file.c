/* SPDX-License-Identifier: MIT */
/*
 * stdio-file.c - the calls of fcgi_stdio.h that open, close and position files, and those that
 * accept requests.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interface.h"
#include "layout.h"
#include "mode.h"
#include "real.h"
#include "stdio-interface.h"

/* libfcgi uses this array, too: the program's loader lets all use one. */
struct fcgi_file _fcgi_sF[3];

/* --- requests ---------------------------------------------------------------------------- */

int FCGI_Accept(void)
{
	struct fcgi_stream *streams[3];
	char **envp;
	int result;

	if (!fcgi_is_worker)
		return REAL(FCGI_Accept)();
	FCGI_Finish();
	result = FCGX_Accept(&streams[0], &streams[1], &streams[2], &envp);
	if (result < 0)
		return result;
	for (unsigned i = 0; i < 3; i++)
		_fcgi_sF[i] = (struct fcgi_file){.stream = streams[i]};
	/* Programs read the request's variables with getenv(). */
	environ = envp;
	return 0;
}

void FCGI_Finish(void)
{
	static char *none[] = {NULL};

	if (!fcgi_is_worker) {
		REAL(FCGI_Finish)();
		return;
	}
	if (!_fcgi_sF[1].stream)
		return;
	FCGX_Finish();
	memset(_fcgi_sF, 0, sizeof(_fcgi_sF));
	environ = none;
}

int FCGI_StartFilterData(void)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_StartFilterData)();
	return _fcgi_sF[0].stream ? FCGX_StartFilterData(_fcgi_sF[0].stream) : -1;
}

void FCGI_SetExitStatus(int status)
{
	if (!fcgi_is_worker)
		REAL(FCGI_SetExitStatus)(status);
	else if (_fcgi_sF[0].stream)
		FCGX_SetExitStatus(status, _fcgi_sF[0].stream);
}

/* --- files ------------------------------------------------------------------------------- */

/* Returns the file, or NULL if it was not opened. */
static struct fcgi_file *check(struct fcgi_file *file)
{
	if (file->file)
		return file;
	free(file);
	return NULL;
}

static bool is_standard(const struct fcgi_file *file)
{
	return file == &_fcgi_sF[0] || file == &_fcgi_sF[1] || file == &_fcgi_sF[2];
}

static void unwrap(struct fcgi_file *file)
{
	if (is_standard(file))
		*file = (struct fcgi_file){0};
	else
		free(file);
}

struct fcgi_file *FCGI_fopen(const char *path, const char *mode)
{
	struct fcgi_file *file;

	if (!fcgi_is_worker)
		return REAL(FCGI_fopen)(path, mode);
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->file = fopen(path, mode);
	return check(file);
}

struct fcgi_file *FCGI_fdopen(int fd, const char *mode)
{
	struct fcgi_file *file;

	if (!fcgi_is_worker)
		return REAL(FCGI_fdopen)(fd, mode);
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->file = fdopen(fd, mode);
	return check(file);
}

struct fcgi_file *FCGI_tmpfile(void)
{
	struct fcgi_file *file;

	if (!fcgi_is_worker)
		return REAL(FCGI_tmpfile)();
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->file = tmpfile();
	return check(file);
}

struct fcgi_file *FCGI_popen(const char *command, const char *type)
{
	struct fcgi_file *file;

	if (!fcgi_is_worker)
		return REAL(FCGI_popen)(command, type);
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->file = popen(command, type);
	return check(file);
}

struct fcgi_file *FCGI_freopen(const char *path, const char *mode, struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_freopen)(path, mode, file);
	if (file->file)
		return freopen(path, mode, file->file) ? file : NULL;
	if (!file->stream)
		return NULL;
	(void)FCGX_FClose(file->stream);
	file->stream = NULL;
	file->file = fopen(path, mode);
	return file->file ? file : NULL;
}

int FCGI_fclose(struct fcgi_file *file)
{
	int result = EOF;

	if (!fcgi_is_worker)
		return REAL(FCGI_fclose)(file);
	if (file->file)
		result = fclose(file->file);
	else if (file->stream)
		result = FCGX_FClose(file->stream);
	unwrap(file);
	return result;
}

int FCGI_pclose(struct fcgi_file *file)
{
	int result = -1;

	if (!fcgi_is_worker)
		return REAL(FCGI_pclose)(file);
	if (file->file) {
		result = pclose(file->file);
		unwrap(file);
	}
	return result;
}

int FCGI_fflush(struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_fflush)(file);
	if (!file)
		return fflush(NULL);
	if (file->file)
		return fflush(file->file);
	return file->stream ? FCGX_FFlush(file->stream) : EOF;
}

int FCGI_setvbuf(struct fcgi_file *file, char *buffer, int mode, size_t size)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_setvbuf)(file, buffer, mode, size);
	return file->file ? setvbuf(file->file, buffer, mode, size) : -1;
}

void FCGI_setbuf(struct fcgi_file *file, char *buffer)
{
	if (!fcgi_is_worker)
		REAL(FCGI_setbuf)(file, buffer);
	else if (file->file)
		setbuf(file->file, buffer);
}

int FCGI_fseek(struct fcgi_file *file, long offset, int whence)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_fseek)(file, offset, whence);
	return file->file ? fseek(file->file, offset, whence) : -1;
}

int FCGI_ftell(struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_ftell)(file);
	return file->file ? (int)ftell(file->file) : -1;
}

void FCGI_rewind(struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		REAL(FCGI_rewind)(file);
	else if (file->file)
		rewind(file->file);
}

int FCGI_fgetpos(struct fcgi_file *file, fpos_t *position)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_fgetpos)(file, position);
	return file->file ? fgetpos(file->file, position) : -1;
}

int FCGI_fsetpos(struct fcgi_file *file, const fpos_t *position)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_fsetpos)(file, position);
	return file->file ? fsetpos(file->file, position) : -1;
}

int FCGI_feof(struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_feof)(file);
	if (file->file)
		return feof(file->file);
	return file->stream ? FCGX_HasSeenEOF(file->stream) : -1;
}

int FCGI_ferror(struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_ferror)(file);
	if (file->file)
		return ferror(file->file);
	return file->stream ? FCGX_GetError(file->stream) : -1;
}

void FCGI_clearerr(struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		REAL(FCGI_clearerr)(file);
	else if (file->file)
		clearerr(file->file);
	else if (file->stream)
		FCGX_ClearError(file->stream);
}

int FCGI_fileno(struct fcgi_file *file)
{
	if (!fcgi_is_worker)
		return REAL(FCGI_fileno)(file);
	return file->file ? fileno(file->file) : -1;
}
