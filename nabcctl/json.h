/* SPDX-License-Identifier: MIT */
/*
 * json.h - writes JSON text to a stream, indented by its depth or on one line.
 *
 * Names are written unchanged: the program chooses them.  Texts may come from other
 * processes, and become valid JSON whatever bytes they contain.  The owner of the
 * stream must check it for errors.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *to;
	bool one_line;
	unsigned depth;
	bool follows; /* a value precedes at this depth */
};

/* name: NULL in an array and at the top level.  start: '{' or '['. */
void json_open(struct json *json, const char *name, char start);

/* end: '}' or ']', matching the start; ends the line at the top level. */
void json_close(struct json *json, char end);

void json_text(struct json *json, const char *name, const char *text);
void json_number(struct json *json, const char *name, uint64_t number);
void json_integer(struct json *json, const char *name, int64_t number);
/* one decimal place; not finite: 0 */
void json_real(struct json *json, const char *name, double number);

/*
 * Writes an id as a string of digits, because many parsers convert numbers to
 * doubles, which cannot represent 64 bits.
 */
void json_id(struct json *json, const char *name, size_t id);

#endif
