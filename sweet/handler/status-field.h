/* SPDX-License-Identifier: MIT */
/*
 * status-field.h - the plain numbers of the status by name: as keys of the
 * JSON text and as metrics, from one table, so that neither lacks one.  Pure.
 */
#ifndef SWEET_STATUS_FIELD_H
#define SWEET_STATUS_FIELD_H

#include "handler/status-data.h"

struct status_field {
	const char *group;  /* object in the JSON text; NULL: none has it there */
	const char *key;    /* in that */
	const char *metric; /* without "sweet_"; the same as the one before: another label */
	const char *label;  /* name="value"; NULL: none */
	const char *help;   /* of the first of a metric */
	bool gauge;	    /* what is now, not what has been so far */
	size_t offset;	    /* of the uint64_t in struct status_data */
};

extern const struct status_field status_fields[];
extern const unsigned status_field_count;

uint64_t status_field_value(const struct status_field *field, const struct status_data *data);

#endif
