/* SPDX-License-Identifier: MIT */
/*
 * route.c - from a request to its response: the table of phases, in their order.  A new rule for
 * requests is a function in its own file (phase.h) and a row here.
 *
 * Everything runs on the transaction's thread.  A phase that has to wait for another thread returns
 * PHASE_LATER and calls proceed() when it knows that the request passes.
 */
#include "core/server.h"
#include "handler/local-redirect.h"
#include "handler/phase.h"
#include "handler/route.h"
#include "handler/static.h"

static const struct {
	enum phase (*run)(struct transaction *transaction);
	bool again; /* runs again after a rewrite */
} phases[] = {
	{phase_method, false},	 /* refuses methods that no resource supports */
	{phase_target, false},	 /* path and host */
	{phase_status, false},	 /* the status page, which no rule can hide */
	{phase_scope, true},	 /* sets the scope, whose rules follow */
	{phase_header, true},	 /* header */
	{phase_internal, true},	 /* internal */
	{phase_rate, true},	 /* request-rate */
	{phase_address, true},	 /* allow, deny */
	{phase_password, true},	 /* auth */
	{phase_redirect, false}, /* redirect */
	{phase_rewrite, false},	 /* rewrite */
	{phase_script, true},	 /* suffix */
	{phase_try, true},	 /* try-files */
	{phase_handler, true},	 /* a pool or a file; ends every request */
};

/* Runs the phases from transaction->phase on; the last one always ends the request. */
static enum respond proceed(struct transaction *transaction)
{
	for (;;) {
		unsigned row = transaction->phase++;
		enum phase phase;

		if (transaction->rewritten_by && !phases[row].again)
			continue;
		phase = phases[row].run(transaction);
		if (phase == PHASE_NOW || phase == PHASE_LATER)
			return (enum respond)phase;
		if (phase == PHASE_REWRITTEN)
			transaction->phase = 0;
	}
}

/* Responds for a request that a program has made of the client's, by that function. */
static void respond_again(struct transaction *transaction, struct slice head, struct slice target,
			  enum respond (*by)(struct transaction *transaction))
{
	enum respond respond = RESPOND_NOW;
	struct request request;
	GString *text;
	bool good;

	/* The client has disconnected: its address and other data are no longer valid. */
	if (!transaction->connection) {
		transaction->done(transaction);
		return;
	}
	text = local_redirect_request(transaction, head, target, &request, &good);
	transaction->has_upload = false;
	if (good) {
		transaction->request = &request;
		respond = by(transaction);
		transaction->request = NULL;
	} else {
		transaction_refuse(transaction, 502, "an invalid redirect of a program");
	}
	g_string_free(text, TRUE);
	if (respond == RESPOND_NOW)
		transaction->done(transaction);
}

static void again(struct transaction *transaction, struct slice head, struct slice target)
{
	respond_again(transaction, head, target, route);
}

static void send_file(struct transaction *transaction, struct slice head, const struct scope *files,
		      const char *path)
{
	transaction->files = files;
	g_strlcpy(transaction->path, path, sizeof(transaction->path));
	/* Only its fields count. */
	respond_again(transaction, head, SLICE("/"), static_respond);
}

enum respond route(struct transaction *transaction)
{
	transaction->again = again;
	transaction->send_file = send_file;
	transaction->proceed = proceed;
	transaction->phase = 0;
	transaction->rewritten_by = NULL;
	transaction->tried = transaction->found = false;
	transaction->internal = transaction->accel;
	transaction->accel = false;
	transaction->files = NULL;
	return proceed(transaction);
}
