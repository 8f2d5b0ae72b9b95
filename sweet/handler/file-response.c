/* SPDX-License-Identifier: MIT */
/*
 * file-response.c - see file-response.h.  Runs on the transaction's thread.
 *
 * The unit of a file, or ranges of it, are sent without a copy; texts are inserted between ranges.
 * filestream.c sends a file without a unit, after the same choice of ranges.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <glib.h>

#include "base/slice.h"
#include "event/piece.h"
#include "core/server.h"
#include "core/transaction-file.h"
#include "files/docroot.h"
#include "files/file-cache-tick.h"
#include "files/file-cache.h"
#include "files/filehead.h"
#include "handler/filestream.h"
#include "handler/file-response.h"
#include "http/conditional.h"
#include "http/fields.h"
#include "http/multipart.h"
#include "http/range.h"

/* The last bytes of head_buffer are reserved for texts between ranges. */
#define HEAD_ROOM (TRANSACTION_HEAD_MAX - MULTIPART_PART_MAX)

bool file_response_begin(struct transaction *transaction)
{
	if (conditions_take(&transaction_file(transaction)->conditions, transaction->request))
		return true;
	transaction_fail(transaction, 431, "The conditions of the request are too long.");
	return false;
}

/* --- the head ------------------------------------------------------------------ */

/* Appends lines to those of the caller; returns false if there is no room. */
static bool add_lines(struct transaction *transaction, const char *at, size_t length)
{
	if (transaction->response.head_length + length > HEAD_ROOM)
		return false;
	memcpy(transaction->head_buffer + transaction->response.head_length, at, length);
	transaction->response.head_length += length;
	transaction->response.head = transaction->head_buffer;
	return true;
}

/* Removes all lines about the file: an error response has its own. */
static enum respond fail(struct transaction *transaction, int status, const char *detail)
{
	transaction->response.head_length = 0;
	transaction->response.length = 0;
	return transaction_fail(transaction, status, detail);
}

/*
 * The same for an error about the variant that was selected, with the Vary of the caller's lines: a
 * cache must know that other requests get another.
 */
static enum respond fail_selected(struct transaction *transaction, int status)
{
	struct slice own = {transaction->head_buffer, transaction_file(transaction)->own_lines};
	size_t length = 0;

	if (own.length)
		length = field_filter(own, FIELD_BIT(FIELD_VARY), true, transaction->head_buffer);
	(void)fail(transaction, status, NULL);
	transaction->response.head = transaction->head_buffer;
	transaction->response.head_length = length;
	return RESPOND_NOW;
}

static enum respond no_room(struct transaction *transaction)
{
	return fail(transaction, 500, "The header lines are too long.");
}

/* --- the choice ------------------------------------------------------------------ */

static void choose_whole(struct file_response *response, uint64_t size)
{
	response->parts = false;
	response->ranges.count = 1;
	response->ranges.ranges[0] = (struct range){.length = size};
}

/* Adds the lines that depend on what is sent. */
static bool add_description(struct transaction *transaction, const char *place)
{
	char lines[FILEHEAD_MAX];

	snprintf(lines, sizeof(lines), "Content-Type: %.128s\r\nContent-Length: %llu\r\n%s%s%s",
		 transaction_file(transaction)->type,
		 (unsigned long long)transaction->response.length, place ? "Content-Range: " : "",
		 place ? place : "", place ? "\r\n" : "");
	return add_lines(transaction, lines, strlen(lines));
}

static bool add_common(struct transaction *transaction, const struct filehead *head)
{
	struct slice common = filehead_common(head);

	return add_lines(transaction, common.at, common.length);
}

static enum respond whole(struct transaction *transaction, const struct filehead *head,
			  uint64_t size)
{
	bool good;

	choose_whole(transaction_file(transaction), size);
	transaction->response.status = 200;
	transaction->response.length = size;
	if (transaction_file(transaction)->type != head->mime) {
		good = add_description(transaction, NULL) && add_common(transaction, head);
	} else if (transaction->response.head_length) {
		good = add_lines(transaction, head->text, head->length);
	} else {
		/* In place: for most responses nothing is copied. */
		transaction->response.head = head->text;
		transaction->response.head_length = head->length;
		good = true;
	}
	return good ? RESPOND_NOW : no_room(transaction);
}

static enum respond not_modified(struct transaction *transaction, const struct filehead *head)
{
	transaction->response.status = 304;
	transaction->response.bodiless = true;
	return add_common(transaction, head) ? RESPOND_NOW : no_room(transaction);
}

static enum respond unsatisfiable(struct transaction *transaction, uint64_t size)
{
	char line[MULTIPART_RANGE_MAX + sizeof("Content-Range: \r\n")];
	int length = snprintf(line, sizeof(line), "Content-Range: bytes */%llu\r\n",
			      (unsigned long long)size);

	(void)fail_selected(transaction, 416);
	return add_lines(transaction, line, (size_t)length) ? RESPOND_NOW : no_room(transaction);
}

/* Describes one range: its position is in the head. */
static bool describe_range(struct transaction *transaction, uint64_t size)
{
	const struct range *range = &transaction_file(transaction)->ranges.ranges[0];
	char place[MULTIPART_RANGE_MAX];

	multipart_content_range(*range, size, place);
	transaction->response.length = range->length;
	return add_description(transaction, place);
}

/* Describes several ranges: their positions are in the texts before them. */
static bool describe_parts(struct transaction *transaction, uint64_t size,
			   const unsigned char *random)
{
	struct file_response *response = transaction_file(transaction);
	char lines[MULTIPART_PART_MAX];

	multipart_init(&response->multipart, (struct slice){response->type, strlen(response->type)},
		       size, random);
	transaction->response.length = multipart_length(&response->multipart, &response->ranges);
	snprintf(lines, sizeof(lines),
		 "Content-Type: multipart/byteranges; boundary=%.*s\r\nContent-Length: %llu\r\n",
		 MULTIPART_BOUNDARY, response->multipart.boundary,
		 (unsigned long long)transaction->response.length);
	return add_lines(transaction, lines, strlen(lines));
}

static enum respond partial(struct transaction *transaction, const struct filehead *head,
			    uint64_t size)
{
	struct file_response *response = transaction_file(transaction);
	unsigned char random[MULTIPART_RANDOM];
	bool good;

	response->parts = response->ranges.count > 1;
	/* Several parts need an unpredictable boundary; without one the whole file is sent. */
	if (response->parts &&
	    getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		return whole(transaction, head, size);
	transaction->response.status = 206;
	good = response->parts ? describe_parts(transaction, size, random)
			       : describe_range(transaction, size);
	return good && add_common(transaction, head) ? RESPOND_NOW : no_room(transaction);
}

/* Sets status, head and length, and the ranges to send. */
static enum respond choose(struct transaction *transaction, const struct filehead *head,
			   uint64_t size)
{
	struct file_response *response = transaction_file(transaction);
	const struct representation file = {
		.etag = filehead_etag(head), .modified = head->modified, .weak_date = head->capped};
	enum condition_verdict verdict;

	response->part = 0;
	transaction->response.length = 0;
	transaction->response.modified = head->modified;
	if (!response->conditions.any)
		return whole(transaction, head, size);
	verdict = conditions_evaluate(&response->conditions, transaction->head_only, &file,
				      time(NULL));
	if (verdict == CONDITION_FAILED)
		return fail_selected(transaction, 412);
	if (verdict == CONDITION_NOT_MODIFIED)
		return not_modified(transaction, head);
	if (verdict == CONDITION_PROCEED)
		switch (range_parse(conditions_value(&response->conditions, CONDITION_RANGE), size,
				    &response->ranges)) {
		case RANGE_UNSATISFIABLE:
			return unsatisfiable(transaction, size);
		case RANGE_GOOD:
			return partial(transaction, head, size);
		case RANGE_IGNORED:
			break;
		}
	return whole(transaction, head, size);
}

/* --- sending ------------------------------------------------------------------------ */

/* Sets the text before the current part. */
static void file_response_set_lead(struct transaction *transaction)
{
	struct file_response *response = transaction_file(transaction);
	char *text = transaction->head_buffer + HEAD_ROOM;

	transaction->piece.lead_length =
		multipart_text(&response->multipart, &response->ranges, response->part, text);
	transaction->piece.lead = text;
}

static void set_piece(struct transaction *transaction)
{
	struct file_response *response = transaction_file(transaction);
	const struct range *range = &response->ranges.ranges[response->part];
	const struct file_cache_view *view = file_cache_view(response->entry);

	if (response->part < response->ranges.count)
		transaction->piece = piece_range((struct NC_range){.id = view->id,
								   .offset = (size_t)range->first,
								   .length = (size_t)range->length},
						 view->hold);
	if (response->parts)
		file_response_set_lead(transaction);
}

static enum respond file_response_next(struct transaction *transaction)
{
	transaction_file(transaction)->part++;
	set_piece(transaction);
	return RESPOND_NOW;
}

static void file_response_finish(struct transaction *transaction)
{
	file_cache_tick_put(transaction->thread->tick, transaction_file(transaction)->cache,
			    transaction_file(transaction)->entry);
}

static const struct transaction_responder whole_file = {.finish = file_response_finish};
static const struct transaction_responder ranges = {.next = file_response_next,
						    .finish = file_response_finish};

static bool is_to_be_sent(const struct transaction *transaction)
{
	return transaction->response.length > 0 && !transaction->head_only;
}

/* Chooses again with a head that is written for this response, as the new version has no entry. */
static void choose_anew(struct transaction *transaction, const struct file_version *version)
{
	struct filehead head;

	filehead_write(&head, version, file_cache_etag(transaction_file(transaction)->cache),
		       transaction_file(transaction)->type, time(NULL));
	(void)choose(transaction, &head, (uint64_t)version->size);
	if (transaction->response.head == head.text) {
		memcpy(transaction->head_buffer, head.text, transaction->response.head_length);
		transaction->response.head = transaction->head_buffer;
	}
}

/*
 * A newer version of the file was opened than the one that was looked up: makes the response again.
 * Returns true if the body is still to be read.
 */
static bool file_response_renew(struct transaction *transaction, const struct file_version *version)
{
	transaction->response.head_length = transaction_file(transaction)->own_lines;
	choose_anew(transaction, version);
	return is_to_be_sent(transaction);
}

static const struct filestream_owner owner = {.renewed = file_response_renew,
					      .lead = file_response_set_lead};

const struct file_cache_view *file_response_unit(const struct transaction *transaction)
{
	const struct transaction_responder *responder = transaction->responder;

	return (responder == &whole_file || responder == &ranges) &&
			       transaction->piece.kind == PIECE_RANGE
		       ? file_cache_view(transaction_file(transaction)->entry)
		       : NULL;
}

void file_response_go_on(struct transaction *transaction, int fd, uint64_t gone)
{
	struct file_response *response = transaction_file(transaction);
	struct file_version version = file_cache_view(response->entry)->version;
	char *path = strdup(file_cache_view(response->entry)->path);

	piece_release(&transaction->piece);
	file_cache_tick_put(transaction->thread->tick, response->cache, response->entry);
	filestream_go_on(transaction, fd, path, &version, gone, &owner);
}

enum respond file_response_respond(struct transaction *transaction, struct file_cache *cache,
				   struct file_cache_entry *entry, const char *type)
{
	struct file_response *response = transaction_file(transaction);
	const struct file_cache_view *view = file_cache_view(entry);

	response->cache = cache;
	response->entry = entry;
	response->type = type ? type : view->type;
	response->own_lines = transaction->response.head_length;
	transaction->responder = &whole_file;
	if (view->head)
		(void)choose(transaction, view->head, (uint64_t)view->version.size);
	else
		choose_anew(transaction, &view->version);
	if (!is_to_be_sent(transaction))
		return RESPOND_NOW;
	if (!view->id)
		return filestream_respond(transaction, cache, entry, &owner);
	set_piece(transaction);
	if (response->parts)
		transaction->responder = &ranges;
	return RESPOND_NOW;
}
