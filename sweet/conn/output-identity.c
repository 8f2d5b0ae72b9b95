/* SPDX-License-Identifier: MIT */
/*
 * output-identity.c - the id of a request, which the client, programs and logs see.
 */
#include <string.h>

#include "conn/output.h"

/* Whether it can stand anywhere: in a log, a variable, a file name. */
static bool is_sane(struct slice id)
{
	if (id.length == 0 || id.length > TRANSACTION_ID_MAX)
		return false;
	for (size_t i = 0; i < id.length; i++)
		if (!g_ascii_isalnum(id.at[i]) && !strchr("._-", id.at[i]))
			return false;
	return true;
}

void output_identify(struct output *output, const struct request *request, bool trusted)
{
	struct transaction *transaction = &output->transaction;
	struct random_id *source = &transaction->thread->ids;
	unsigned use = transaction->config_ref->config->request_id;
	const struct slice *given = NULL;
	char *to = transaction->request_id;

	if (use == REQUEST_ID_OFF)
		return;
	if (use == REQUEST_ID_TRUST && trusted && request)
		given = request_find(request, "X-Request-Id");
	if (given && is_sane(*given)) {
		memcpy(to, given->at, given->length);
		to += given->length;
	} else {
		to = random_id_write(to, random_id_next(source), 16);
		to = random_id_write(to, random_id_next(source), 16);
	}
	*to = '\0';
}
