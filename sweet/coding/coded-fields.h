/* SPDX-License-Identifier: MIT */
/*
 * coded-fields.h - the fields of a response whose body is compressed, for a cache or while it is
 * sent.  Pure.
 */
#ifndef SWEET_CODED_FIELDS_H
#define SWEET_CODED_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct fields;

/* Bytes that all that is below adds to the lines of a head, without those of the tag's value. */
#define CODED_FIELDS_MORE 80
#define CODED_FIELDS 2 /* that are added, without the tag */

/* Whether the bytes of the body must stay as they are. */
bool coded_fields_are_fixed(const struct fields *fields);

/*
 * Returns the entity tag of other bytes that decode to the same, written to out: it is weak, as
 * equal bytes come from equal input, but not from another version of the encoder.  out: room for
 * the tag and 2 bytes.
 */
struct slice coded_fields_weaken(struct slice tag, char *out);

/* Replaces the entity tags by this one; no bytes: by none. */
void coded_fields_set_tag(struct fields *fields, struct slice tag);

/* Says that other clients get other bytes; token: of the body's coding, or NULL: it has none. */
void coded_fields_set_coding(struct fields *fields, const char *token);

#endif
