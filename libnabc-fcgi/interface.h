/* SPDX-License-Identifier: MIT */
/*
 * interface.h - the calls of libfcgi that this library has: those of fcgiapp.h, of fcgi_stdio.h,
 * and the three of fcgios.h whose results depend on who started the process.
 */
#ifndef NABC_FCGI_INTERFACE_H
#define NABC_FCGI_INTERFACE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "layout.h"

/* --- requests ---------------------------------------------------------------------------- */

int FCGX_IsCGI(void);
int FCGX_Init(void);
int FCGX_InitRequest(struct fcgi_request *request, int socket, int flags);
int FCGX_Accept_r(struct fcgi_request *request);
void FCGX_Finish_r(struct fcgi_request *request);
void FCGX_Free(struct fcgi_request *request, int close);
int FCGX_Accept(struct fcgi_stream **in, struct fcgi_stream **out, struct fcgi_stream **err,
		char ***envp);
void FCGX_Finish(void);
int FCGX_StartFilterData(struct fcgi_stream *stream);
void FCGX_SetExitStatus(int status, struct fcgi_stream *stream);
char *FCGX_GetParam(const char *name, char **envp);
void FCGX_ShutdownPending(void);
int FCGX_Attach(struct fcgi_request *request);
int FCGX_Detach(struct fcgi_request *request);

int OS_LibInit(int stdio[3]);
int OS_IsFcgi(int socket);
void OS_ShutdownPending(void);

/* --- streams ----------------------------------------------------------------------------- */

int FCGX_GetChar(struct fcgi_stream *stream);
int FCGX_UnGetChar(int c, struct fcgi_stream *stream);
int FCGX_GetStr(char *str, int n, struct fcgi_stream *stream);
char *FCGX_GetLine(char *str, int n, struct fcgi_stream *stream);
int FCGX_HasSeenEOF(struct fcgi_stream *stream);
int FCGX_PutChar(int c, struct fcgi_stream *stream);
int FCGX_PutStr(const char *str, int n, struct fcgi_stream *stream);
int FCGX_PutS(const char *str, struct fcgi_stream *stream);
int FCGX_FPrintF(struct fcgi_stream *stream, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int FCGX_VFPrintF(struct fcgi_stream *stream, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));
int FCGX_FFlush(struct fcgi_stream *stream);
int FCGX_FClose(struct fcgi_stream *stream);
int FCGX_GetError(struct fcgi_stream *stream);
void FCGX_ClearError(struct fcgi_stream *stream);
void FCGX_FreeStream(struct fcgi_stream **stream);

#endif
