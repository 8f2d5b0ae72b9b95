/* SPDX-License-Identifier: MIT */
/*
 * errorpage.h - sends a file of the site instead of the short built-in page of an error.
 */
#ifndef SWEET_ERRORPAGE_H
#define SWEET_ERRORPAGE_H

#include "config/configuration.h"
#include "core/transaction.h"

/* Use errorpage_respond(). */
enum respond errorpage_find(struct transaction *transaction);

/*
 * Call it for each response before anything is sent.  An error without a body gets the file that
 * error_pages of its scope names for the status, now or later by done().  If the file cannot be
 * used the response stays as it is.  Each response is checked once, so there is no loop.
 */
static inline enum respond errorpage_respond(struct transaction *transaction)
{
	if (transaction->response.status < 400 || !transaction->scope ||
	    !transaction->scope->error_page_count || transaction->response.error_page)
		return RESPOND_NOW;
	return errorpage_find(transaction);
}

#endif
