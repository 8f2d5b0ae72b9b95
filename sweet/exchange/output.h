/* SPDX-License-Identifier: MIT */
/*
 * output.h - a transaction with what is sent for it: the head, a small body behind it, the line of
 * the access log.  The connection that sends it owns the socket.
 */
#ifndef SWEET_OUTPUT_H
#define SWEET_OUTPUT_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/peer-addresses.h"
#include "base/slice.h"
#include "core/transaction.h"
#include "http/fields.h"
#include "log/access-line.h"
#include "log/log-format.h"

struct request;
struct thread;

#define OUTPUT_ALIGN 64 /* bytes; the maximum of header-align */

/* The last 1024 are for the fields that templates name, with what the others leave. */
#define OUTPUT_LOG_MAX                                                                             \
	(ACCESS_REQUEST_MAX + ACCESS_REFERER_MAX + ACCESS_AGENT_MAX + ACCESS_HOST_MAX + 1024)

struct output {
	struct transaction transaction; /* must be first */
	uint64_t began_ns;
	struct peer_addresses client; /* that a trusted proxy has named */
	uint64_t responded_ns;	      /* when its response began; 0: it has not */
	uint64_t sent;		      /* bytes of body passed to the loop */
	bool head_sent;
	bool chunked;		 /* uses chunks (RFC 9112, section 7.1) */
	unsigned char chunk_end; /* bytes of the last chunk's end that are not sent */
	bool ended;		 /* of a body of unknown length */
	size_t head_length;	 /* bytes of the head that was made */
	size_t date_at;		 /* of it, where the text of its date is */
	size_t lines_at;	 /* and the responder's lines, if they are as they were */
	size_t values_length;	 /* HTTP/2: bytes of values, which precede the body */
	char *long_head;	 /* instead of head, for more lines than fit there; or NULL */
	struct ready *ready;	 /* what is sent, if it was made before; or NULL */
	/* What the client sent, in log_text, as the logs want it. */
	struct slice log_request, log_referer, log_agent, log_host;
	const char *log_tls_version, *log_tls_cipher;
	size_t log_used;
	/* What follows is not zeroed for each request. */
	struct fields fields; /* HTTP/2: of the head, from output_head() until they are submitted */
	struct slice
		log_fields[LOG_FIELDS_MAX]; /* as config->log_fields; unused ones are not set */
	char log_text[OUTPUT_LOG_MAX];
	/* Aligned to a cache line of the CPU (paper 003, section 5.5). */
	alignas(OUTPUT_ALIGN) char head[TRANSACTION_HEAD_MAX + TRANSACTION_AROUND_MAX];
};

/* Call it before the first output of the thread; close it after the last one. */
void exchange_thread_open(struct thread *thread);
void exchange_thread_close(struct thread *thread);

/* Returns an output without request fields and with an empty response; NULL: no memory. */
struct output *output_open(struct thread *thread);

/* Returns where output_head() and output_lead() write. */
static inline char *output_bytes(struct output *output)
{
	return output->long_head ? output->long_head : output->head;
}

/* Releases the unit of the request body, or of its current piece. */
void output_return_upload(struct output *output);

/* Releases what the body holds; keeps the memory for the thread's next output. */
void output_close(struct output *output);

/* Frees the kept memory. */
void output_free_spare(struct thread *thread);

/*
 * Gives the request an id, and a trace, as configured.  request: NULL if it is malformed; trusted:
 * it comes from a client whose ids may be taken.
 */
void output_identify(struct output *output, const struct request *request, bool trusted);

/* Saves the first line of a request's head, even if it is malformed, for the log. */
void output_remember_line(struct output *output, const char *head, size_t length);

/* Saves the line that a head of HTTP/2 would have, which is a list (http/request-list.h). */
void output_remember_list(struct output *output, struct slice list);

/* Saves what else the logs want of the request. */
void output_remember_fields(struct output *output, const struct request *request);

/*
 * Writes status line and fields, then a body in memory or the built-in page of an error (RFC 9110,
 * section 15.5).  For HTTP/2, the fields are listed instead of written; only values that the server
 * has made are, before that body.  Returns false without memory; *length: bytes in output_bytes().
 */
bool output_head(struct output *output, bool keep_alive, bool http10, size_t *length);

/*
 * Writes what precedes the current piece, after the first length bytes of output_bytes(): its text,
 * and the framing of a chunk.  Returns the total bytes.  Detects the end of a body of unknown
 * length.
 */
size_t output_lead(struct output *output, size_t length);

/* Returns the lines that follow a body that has ended; no bytes: none. */
struct slice output_trailers(const struct output *output);

/* Returns the end of the last chunk that is not sent yet; the caller reduces chunk_end. */
const char *output_chunk_end(const struct output *output, size_t *length);

/* Makes the fields that all responses of a second share, with their date. */
void output_refresh_date(struct thread *thread);

/* Call it on the thread when its configuration has changed: they are to be made again. */
void output_forget_date(struct thread *thread);

/* ACCESS_UNKNOWN: the request was not there. */
struct output_times {
	uint64_t queue_us;   /* waiting for a program */
	uint64_t program_us; /* until the head of its response, or until now */
	uint64_t send_us;    /* since the response began */
	uint64_t total_us;
};

struct output_times output_times(const struct output *output);

/* Writes the value of the field Server-Timing, at most 140 bytes; returns the end. */
char *output_write_timing(char *at, const struct output *output);

/* Passes the span of the request to the thread that sends it. */
void output_export(const struct output *output);

/* Counts and logs the response. */
void output_log(struct output *output);

#endif
