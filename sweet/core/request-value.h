/* SPDX-License-Identifier: MIT */
/*
 * request-value.h - what stands for the variables of templates, of a request.
 */
#ifndef SWEET_REQUEST_VALUE_H
#define SWEET_REQUEST_VALUE_H

#include <stdbool.h>

#include "base/slice.h"
#include "rules/template.h"

struct transaction;

/* A template_value(); transaction: whose request is set. */
struct slice request_value(const void *transaction, enum template_variable variable,
			   unsigned number, const char *name);

/* Whether the client has shown a certificate that programs and templates can see. */
bool request_has_certificate(const struct transaction *transaction);

#endif
