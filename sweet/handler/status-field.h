/* SPDX-License-Identifier: MIT */
/*
 * status-field.h - the plain numbers of the status by name: as keys of the JSON text and as
 * metrics, from one table, so that neither lacks one.  No I/O and no state.
 */
#ifndef SWEET_STATUS_FIELD_H
#define SWEET_STATUS_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct status_data;

struct status_field {
	const char *group;  /* object in the JSON text; NULL: not in the JSON text */
	const char *key;    /* key in that object */
	const char *metric; /* without "sweet_"; if it repeats the previous row's: another label */
	const char *label;  /* name="value"; NULL: none */
	const char *help;   /* set in the first row of a metric */
	bool gauge;	    /* a current value, not a counter */
	size_t offset;	    /* of the uint64_t in struct status_data */
};

extern const struct status_field status_fields[];
extern const unsigned status_field_count;

uint64_t status_field_value(const struct status_field *field, const struct status_data *data);

#endif
