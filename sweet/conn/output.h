/* SPDX-License-Identifier: MIT */
/*
 * output.h - a transaction and what goes out for it: the head, a small body
 * behind it, the line in the access log.  The socket is connection.c's.
 */
#ifndef SWEET_OUTPUT_H
#define SWEET_OUTPUT_H

#include <stdalign.h>

#include "core/server.h"
#include "core/transaction.h"

#define OUTPUT_ALIGN 64 /* bytes; header-align is this at most */

struct output {
	struct transaction transaction; /* must be first */
	uint64_t began_ns;
	uint64_t sent; /* bytes of body handed to the loop */
	bool head_sent;
	bool chunked;		 /* by RFC 9112, section 7.1 */
	unsigned char chunk_end; /* bytes of the last chunk's end that are not written */
	bool ended;		 /* of a body of unknown length */
	/* For the log, when there is one: what the client sent, in log_text. */
	struct slice log_request, log_referer, log_agent, log_host;
	size_t log_used;
	char log_text[ACCESS_REQUEST_MAX + ACCESS_REFERER_MAX + ACCESS_AGENT_MAX + ACCESS_HOST_MAX];
	/* On a line of the CPU's cache (paper 003, section 5.5). */
	alignas(OUTPUT_ALIGN) char head[TRANSACTION_HEAD_MAX + TRANSACTION_AROUND_MAX];
};

/* With an empty response; the request's fields are the caller's.  NULL: no memory. */
struct output *output_open(struct thread *thread);

/* Where output_head() and output_lead() write: output->head, if the lines fit there. */
static inline char *output_bytes(struct output *output)
{
	return output->transaction.head_length > TRANSACTION_HEAD_MAX ? output->transaction.long_out
								      : output->head;
}

/* Gives back the unit of the request's body, or of the present piece of it. */
void output_return_upload(struct output *output);

/* Gives back what the body holds; the memory is kept for the thread's next. */
void output_close(struct output *output);

/* Frees what is kept. */
void output_free_spare(struct thread *thread);

/* For the log: the first line of a request's head, or of what was meant as one. */
void output_remember_line(struct output *output, const char *head, size_t length);

/* For the log as well, if access_log_wants_fields(). */
void output_remember_fields(struct output *output, const struct request *request);

/*
 * Writes status line and fields, and behind them a body in memory or the
 * small page of a mere status (RFC 9110, section 15.5).  Bytes in output_bytes().
 */
size_t output_head(struct output *output, bool keep_alive, bool http10);

/*
 * Writes what comes in front of the present piece behind the first length
 * bytes of output_bytes(): its text, and what frames it as a chunk.  Returns
 * the bytes in all.  Sees the end of a body of unknown length.
 */
size_t output_lead(struct output *output, size_t length);

/*
 * Ends the chunk that was sent, since none follows at once: clients hand it on
 * only then.  What the socket does not take goes with the next one.  0; -errno:
 * the connection is broken.
 */
int output_end_chunk(struct output *output, int socket);

/* Counts the answer and logs it. */
void output_log(struct output *output);

#endif
