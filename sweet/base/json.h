/* SPDX-License-Identifier: MIT */
/*
 * json.h - writes JSON: brackets, commas and layout, and texts of any bytes.
 *
 * Names are the program's own and are written as they are. Texts may come from anybody:
 * control characters are escaped, and each byte that is not UTF-8 becomes U+FFFD.
 *
 * nabcctl compiles this file as well: it includes GLib and decimal.h only.
 */
#ifndef SWEET_JSON_H
#define SWEET_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <glib.h>

#define JSON_DEPTH 16u /* of brackets within brackets, at most */

/* How the members of an object or array are arranged. */
enum json_layout {
	JSON_LINES,  /* each on a line of its own, indented by its depth */
	JSON_FLAT,   /* {"a": 1, "b": [2, 3]} */
	JSON_SPACED, /* { "a": 1, "b": [2, 3] } */
	JSON_DENSE,  /* {"a":1,"b":[2,3]} */
};

struct json {
	FILE *to;      /* where each whole text is written; NULL: it stays in `text` */
	GString *text; /* made by the first json_open(); the caller's if `to` is NULL */
	enum json_layout layout;
	unsigned step; /* spaces for each depth; 0: two */
	/* json.c's */
	unsigned depth;
	bool follows; /* something stands before, at this depth */
	enum json_layout outer[JSON_DEPTH];
};

/* name: NULL within an array and at the top. start: '{' or '['. The layout of what is around. */
void json_open(struct json *json, const char *name, char start);
void json_open_as(struct json *json, const char *name, char start, enum json_layout layout);

/* end: '}' or ']', as it was begun; at the top it ends the line. */
void json_close(struct json *json, char end);

void json_text(struct json *json, const char *name, const char *text);
void json_bool(struct json *json, const char *name, bool value);
void json_number(struct json *json, const char *name, uint64_t number);
void json_null(struct json *json, const char *name);

/* Writes that many decimal places, at most 9; a number that is not finite is written as 0. */
void json_real(struct json *json, const char *name, double number, unsigned places);

/*
 * An id: as a text of digits, because many readers take numbers for doubles,
 * which cannot hold 64 bits.
 */
void json_id(struct json *json, const char *name, size_t id);

#endif
