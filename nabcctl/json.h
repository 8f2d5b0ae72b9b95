/* SPDX-License-Identifier: MIT */
/*
 * json.h - writes JSON text to a stream, indented by its depth or on one line.
 *
 * Names are the program's own and go out as they are; texts may come from
 * anybody and become valid JSON whatever their bytes.  What the stream says
 * of errors is for its owner to ask.
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
	bool follows; /* something stands before, at this depth */
};

/* name: NULL within an array and at the top.  start: '{' or '['. */
void json_open(struct json *json, const char *name, char start);

/* end: '}' or ']', as it was begun; at the top it ends the line. */
void json_close(struct json *json, char end);

void json_text(struct json *json, const char *name, const char *text);
void json_number(struct json *json, const char *name, uint64_t number);
void json_integer(struct json *json, const char *name, int64_t number);
void json_real(struct json *json, const char *name, double number); /* one place; not finite: 0 */

/*
 * An id: as a text of digits, because many readers take numbers for doubles,
 * which cannot hold 64 bits.
 */
void json_id(struct json *json, const char *name, size_t id);

#endif
