/* SPDX-License-Identifier: MIT */
/*
 * compress-rule.h - which responses of a path are compressed, and how: the keys
 * compress, compress-types, compress-min and compress-max.
 */
#ifndef SWEET_COMPRESS_RULE_H
#define SWEET_COMPRESS_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "http/accept.h"

struct field;

struct compress_rule {
	enum coding order[CODINGS]; /* preferred ones first; then the others */
	unsigned codings;	    /* one bit for each that is made; 0: none */
	char **types;		    /* "text/html"; "text/" + "*" for all subtypes */
	size_t min, max;	    /* bytes of a body */
	bool uncached;		    /* also what is not kept, while it is sent */
};

/*
 * Reads the names of codings; "off" alone, or none, is no coding.  Returns NULL, or what the name
 * in *wrong must be.
 */
const char *compress_rule_codings(struct compress_rule *rule, char **names, const char **wrong);

/* Returns NULL, or what the type in *wrong must be. */
const char *compress_rule_types(char **types, const char **wrong);

/* Whether a body of that media type (parameters are ignored) and length is to be compressed. */
bool compress_rule_takes(const struct compress_rule *rule, struct slice type, uint64_t length);

/* Whether a field describes the bytes of a body, or says that they are coded. */
bool compress_rule_excludes(const struct field *field);

#endif
