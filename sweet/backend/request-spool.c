/* SPDX-License-Identifier: MIT */
/*
 * request-spool.c - see request-spool.h.
 *
 * Only a little of a body is in memory at any time: the piece that is being received, the pieces
 * that are being written, and one part while the program reads it.
 */
#include <errno.h>
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "backend/backend-call.h"
#include "backend/pool.h"
#include "backend/protocol.h"
#include "backend/request-spool.h"
#include "base/container.h"
#include "config/pool-config.h"
#include "core/server.h"
#include "core/transaction.h"
#include "event/client-limit.h"
#include "files/spool.h"
#include "log/log.h"

#define PART ((size_t)256 * 1024) /* bytes that are read back at a time */
#define WRITES_MAX 2u		  /* in flight while the client continues to send */

struct request_spool {
	struct backend_call *call;
	struct spool *spool; /* NULL: everything was read back */
	uint64_t length;     /* bytes of the body so far */
	uint64_t next;	     /* offset of the first byte not yet read back */
	unsigned writes;
	bool whole, paused; /* all of it has come; receiving waits for a write */
};

/* A piece that is being written; it may outlive the call. */
struct spooled_piece {
	struct spool_op op;
	struct request_spool *upload;
	struct iovec bytes;
	size_t unit;
	struct NC_hold hold;
};

/* Logs the error. */
static void log_failure(const struct request_spool *upload, int error)
{
	const struct backend_call *call = upload->call;
	const struct transaction *transaction = call->transaction;

	log_warning("%s: pool %s: request body, at byte %llu: disk error: %s",
		    transaction->peer.remote_addr, call->pool->settings->name,
		    (unsigned long long)upload->length,
		    error == -EDQUOT ? "spool-size is reached" : strerror(-error));
}

/* --- in ------------------------------------------------------------------------------------ */

static int start_read(struct request_spool *upload);
static void read_part(struct request_spool *upload);

static void request_dropped_write(struct spool_op *op)
{
	struct spooled_piece *piece = container_of(op, struct spooled_piece, op);

	(void)NC_release(&piece->hold);
	(void)NC_destroy(NULL, piece->unit);
	free(piece);
}

static void request_written(struct spool_op *op, int result)
{
	struct request_spool *upload = container_of(op, struct spooled_piece, op)->upload;

	upload->writes--;
	/* The client gets an error already. */
	if (upload->call->refused)
		return;
	if (result < 0) {
		log_failure(upload, result);
		backend_call_body_lost(upload->call);
	} else if (upload->paused) {
		upload->paused = false;
		backend_call_ask_piece(upload->call);
	} else if (upload->whole && !upload->writes) {
		read_part(upload);
	}
}

/* Writes the piece, which then belongs to the spool.  Returns 0 or -errno. */
static int write_piece(struct request_spool *upload, size_t length)
{
	struct transaction *transaction = upload->call->transaction;
	size_t run;
	const void *bytes = NC_data(&transaction->upload.hold, &run, 0);
	struct spooled_piece *piece;
	int error;

	/* The unit of a body is contiguous. */
	if (!bytes || run < length)
		return -ENOMEM;
	piece = calloc(1, sizeof(*piece));
	if (!piece)
		return -ENOMEM;
	piece->upload = upload;
	piece->bytes = (struct iovec){(void *)(uintptr_t)bytes, length};
	piece->op.iov = &piece->bytes;
	piece->op.count = 1;
	piece->op.done = request_written;
	piece->op.drop = request_dropped_write;
	piece->unit = transaction->upload.unit;
	piece->hold = transaction->upload.hold;
	error = spool_append(upload->spool, &piece->op);
	if (error) {
		free(piece);
		return error;
	}
	transaction->upload.unit = 0;
	upload->writes++;
	upload->length += length;
	return 0;
}

static struct request_spool *begin(struct backend_call *call)
{
	struct thread *thread = call->transaction->thread;
	struct request_spool *upload = calloc(1, sizeof(*upload));

	if (!upload)
		return NULL;
	upload->call = call;
	upload->spool = spool_open(thread->server->spools, thread->loop,
				   client_address(call->transaction->peer.remote));
	if (upload->spool)
		return upload;
	free(upload);
	return NULL;
}

int request_spool_take(struct backend_call *call)
{
	struct transaction *transaction = call->transaction;
	size_t length = (size_t)(transaction->upload.length - call->before);
	int error = 0;

	if (!call->upload)
		call->upload = begin(call);
	if (!call->upload)
		return 503;
	if (length)
		error = write_piece(call->upload, length);
	if (error) {
		log_failure(call->upload, error);
		return 503;
	}
	call->before = transaction->upload.length;
	call->spooling = true;
	call->upload->whole = !transaction->upload.more;
	if (call->upload->whole && !call->upload->writes)
		error = start_read(call->upload);
	else if (!call->upload->whole && call->upload->writes < WRITES_MAX)
		backend_call_ask_piece(call);
	else
		call->upload->paused = !call->upload->whole;
	if (error)
		log_failure(call->upload, error);
	return error ? 503 : 0;
}

/* --- out ------------------------------------------------------------------------------------ */

/* Makes the unit of the part the transaction's upload.  Returns 0 or -errno. */
static int hand_part(struct request_spool *upload, struct spool_unit *part)
{
	struct transaction *transaction = upload->call->transaction;
	struct NC_hold hold;
	struct NC_insert_options options = NC_INSERT_OPTIONS_INIT(.hold = &hold);
	int error = NC_unit_insert_with(&part->handle, NC_WHOLE, &options) < 0 ? -errno : 0;
	size_t unit = error ? 0 : NC_cache_id(&part->handle);

	part->taken = true;
	(void)NC_free(&part->handle);
	if (error)
		return error;
	/* The program's link holds the previous unit as long as it needs it. */
	if (transaction->upload.unit) {
		(void)NC_release(&transaction->upload.hold);
		(void)NC_destroy(NULL, transaction->upload.unit);
	}
	transaction->upload.unit = unit;
	transaction->upload.hold = hold;
	upload->call->before = part->op.offset;
	upload->next = part->op.offset + part->bytes.iov_len;
	transaction->upload.length = upload->next;
	transaction->upload.more = upload->next < upload->length;
	return 0;
}

static void request_was_read(struct spool_op *op, int result)
{
	struct spool_unit *part = container_of(op, struct spool_unit, op);
	struct request_spool *upload = part->user;
	struct backend_call *call = upload->call;

	/* As above; or the program failed after it had asked for more. */
	if (call->refused)
		return;
	if (!result)
		result = hand_part(upload, part);
	if (result < 0) {
		log_failure(upload, result);
		backend_call_body_lost(call);
		return;
	}
	/* Free the disk space as soon as the last byte was read. */
	if (upload->next == upload->length) {
		spool_close(upload->spool);
		upload->spool = NULL;
	}
	backend_call_body_ready(call);
}

static int start_read(struct request_spool *upload)
{
	size_t most = MIN(PART, upload->call->transaction->thread->server->max_unit);

	return spool_unit_read(upload->spool, upload->next,
			       (size_t)MIN(upload->length - upload->next, most), PART,
			       request_was_read, upload);
}

static void read_part(struct request_spool *upload)
{
	struct backend_call *call = upload->call;
	int error = start_read(upload);

	if (!error)
		return;
	log_failure(upload, error);
	backend_call_body_lost(call);
}

void request_spool_next(struct backend_call *call)
{
	read_part(call->upload);
}

uint64_t request_spool_length(const struct backend_call *call)
{
	return call->upload->length;
}

void request_spool_end(struct backend_call *call)
{
	struct request_spool *upload = call->upload;

	call->upload = NULL;
	if (!upload)
		return;
	spool_close(upload->spool);
	free(upload);
}

/* --- whether ---------------------------------------------------------------------------------- */

bool request_spool_is_wanted(const struct gateway_pool *pool)
{
	return pool->protocol->body_lost && pool->settings->request_buffering &&
	       pool->server->spools;
}

uint64_t request_spool_most(const struct gateway_pool *pool)
{
	struct spools_stat stat;

	spools_stat(pool->server->spools, &stat);
	return stat.most;
}
