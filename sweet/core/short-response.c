/* SPDX-License-Identifier: MIT */
/*
 * short-response.c - see short-response.h.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/short-response.h"

enum respond short_response_options(struct transaction *transaction, const char *allow)
{
	transaction->response.status = 204;
	transaction->response.bodiless = true;
	transaction->response.head = allow;
	transaction->response.head_length = strlen(allow);
	return RESPOND_NOW;
}

enum respond short_response_method(struct transaction *transaction, const char *allow)
{
	transaction->response.head = allow;
	transaction->response.head_length = strlen(allow);
	return transaction_fail(transaction, 405, NULL);
}

enum respond short_response_head(struct transaction *transaction, int status, size_t length,
				 int too_long)
{
	if (length == 0)
		return transaction_refuse(transaction, too_long,
					  "a target that is too long for the response");
	transaction->response.head = transaction->head_buffer;
	transaction->response.head_length = length;
	return transaction_fail(transaction, status, NULL);
}

enum respond short_response_retry(struct transaction *transaction, int status, uint64_t seconds,
				  const char *reason)
{
	int length = snprintf(transaction->head_buffer, sizeof(transaction->head_buffer),
			      "Retry-After: %llu\r\n", (unsigned long long)seconds);

	(void)short_response_head(transaction, status, (size_t)length, status);
	return transaction_refuse(transaction, status, reason);
}
