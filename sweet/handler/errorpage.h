/* SPDX-License-Identifier: MIT */
/*
 * errorpage.h - a file of the site in the place of the small page of an error.
 */
#ifndef SWEET_ERRORPAGE_H
#define SWEET_ERRORPAGE_H

#include "config/configuration.h"
#include "core/transaction.h"

/* Use errorpage_respond(). */
enum respond errorpage_find(struct transaction *transaction);

/*
 * To be called with each answer before anything of it is sent.  An error
 * without a body gets the file that its scope's error_pages name for it, now
 * or, by done(), later; whatever is wrong with the file leaves the answer as
 * it is.  Each answer is looked at once, so that there is no loop.
 */
static inline enum respond errorpage_respond(struct transaction *transaction)
{
	if (transaction->status < 400 || !transaction->scope ||
	    !transaction->scope->error_page_count || transaction->error_page)
		return RESPOND_NOW;
	return errorpage_find(transaction);
}

#endif
