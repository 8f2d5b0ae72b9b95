/* SPDX-License-Identifier: MIT */
/*
 * log-format.h - the format of an access log: one of the fixed ones, or a template of the operator,
 * which is compiled to an array of parts when the configuration is read.
 */
#ifndef SWEET_LOG_FORMAT_H
#define SWEET_LOG_FORMAT_H

#include <stdbool.h>

#include "base/slice.h"

enum access_format {
	ACCESS_SHORT,
	ACCESS_COMMON,
	ACCESS_COMBINED,
	ACCESS_JSON,
	ACCESS_TEMPLATE,      /* lines of words */
	ACCESS_JSON_TEMPLATE, /* values are written as those of JSON */
};

#define LOG_TEMPLATE_MAX 4096 /* bytes */
#define LOG_PARTS_MAX 128u
#define LOG_FIELDS_MAX 16u /* different fields of requests in all templates of a configuration */

enum log_variable {
	LOG_LITERAL,
	LOG_CLIENT,
	LOG_CLIENT_PORT,
	LOG_USER,
	LOG_TIME,
	LOG_TIME_LOCAL,
	LOG_REQUEST,
	LOG_METHOD,
	LOG_TARGET,
	LOG_PATH,
	LOG_QUERY,
	LOG_PROTOCOL,
	LOG_HOST,
	LOG_STATUS,
	LOG_BYTES,
	LOG_HEAD_BYTES,
	LOG_TIME_TOTAL,
	LOG_TIME_QUEUE,
	LOG_TIME_PROGRAM,
	LOG_TIME_SEND,
	LOG_TLS_VERSION,
	LOG_TLS_CIPHER,
	LOG_POOL,
	LOG_CACHE,
	LOG_REQUEST_ID,
	LOG_TRACE_ID,
	LOG_REQUEST_FIELD,
	LOG_RESPONSE_FIELD,
};

/* What of a request the server has to save for a line, beside its first line. */
enum log_want {
	LOG_WANTS_LINE = 1,   /* the log is on */
	LOG_WANTS_USUAL = 2,  /* Referer, User-Agent, Host */
	LOG_WANTS_FIELDS = 4, /* request.NAME */
	LOG_WANTS_TLS = 8,
};

struct log_part {
	enum log_variable variable;
	bool quoted;	   /* between quotes of the template */
	struct slice text; /* the literal, or the name of a field */
	unsigned field;	   /* LOG_REQUEST_FIELD: its index in struct access_line */
};

/* Constant after the configuration was read. */
struct log_format {
	enum access_format kind;
	char *text; /* as configured */
	unsigned wants;
	unsigned part_count;
	struct log_part parts[];
};

/* The names of all variables, for messages; ends with NULL. */
extern const char *const log_variables[];

/*
 * Reads "short", "common", "combined", "json", "template:TEXT" or "json-template:TEXT".  Returns
 * NULL and sets *format, or returns what the text must be, and sets *wrong to the place in it; the
 * names of the variables complete the message.
 */
const char *log_format_read(const char *text, struct log_format **format, const char **wrong);

/* One of the fixed formats. */
struct log_format *log_format_fixed(enum access_format kind);

void log_format_free(struct log_format *format);

#endif
