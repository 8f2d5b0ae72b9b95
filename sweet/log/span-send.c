/* SPDX-License-Identifier: MIT */
/*
 * span-send.c - see span-send.h: by libcurl, whose multi interface can be woken while it waits.
 */
#include <curl/curl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "base/clock.h"
#include "log/curl-library.h"
#include "log/span-send.h"

#define CONNECT_MS 5000L
#define POST_MS 10000L
#define STEP_MS 1000
#define NS_OF_MS 1000000u
#define ANSWER_MAX 1024	    /* bytes of an answer that are looked at */
#define RESPONSE_MAX 65536u /* bytes with all heads; a longer one is not read to its end */
#define SERVER_NAME "SWEET/" PACKAGE_VERSION

struct span_sender {
	const struct curl_library *curl;
	CURLM *multi;
	CURL *easy;
	_Atomic uint64_t until_ns;
	/* Of the request. */
	char error[CURL_ERROR_SIZE], answer[ANSWER_MAX + 1];
	size_t answer_length;
	size_t received; /* bytes of heads and body */
};

const char *span_send_missing(void)
{
	return curl_library_load() ? NULL
				   : "must be off: " CURL_LIBRARY_FILE
				     " cannot be loaded (on Debian: apt-get install libcurl4)";
}

struct span_sender *span_sender_open(void)
{
	const struct curl_library *curl = curl_library_load();
	struct span_sender *sender;

	if (!curl || curl->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return NULL;
	sender = calloc(1, sizeof(*sender));
	if (sender) {
		sender->curl = curl;
		sender->multi = curl->multi_init();
		sender->easy = curl->easy_init();
	}
	if (sender && sender->multi && sender->easy)
		return sender;
	span_sender_close(sender);
	if (!sender)
		curl->global_cleanup();
	return NULL;
}

void span_sender_close(struct span_sender *sender)
{
	if (!sender)
		return;
	sender->curl->easy_cleanup(sender->easy);
	(void)sender->curl->multi_cleanup(sender->multi);
	sender->curl->global_cleanup();
	free(sender);
}

/* --- one request --------------------------------------------------------------------- */

/* Returns false if the response is too long: then libcurl closes the connection. */
static bool count(struct span_sender *sender, size_t length)
{
	sender->received += length;
	return sender->received <= RESPONSE_MAX;
}

static size_t span_take_head(char *bytes, size_t size, size_t number, void *context)
{
	(void)bytes;
	return count(context, size * number) ? size * number : 0;
}

static size_t span_take_answer(char *bytes, size_t size, size_t number, void *context)
{
	struct span_sender *sender = context;
	size_t length = size * number, room = ANSWER_MAX - sender->answer_length;

	memcpy(sender->answer + sender->answer_length, bytes, length < room ? length : room);
	sender->answer_length += length < room ? length : room;
	return count(sender, length) ? length : 0;
}

static struct curl_slist *fields_of(const struct curl_library *curl,
				    const struct span_target *target)
{
	struct curl_slist *fields = NULL;

	fields = curl->slist_append(fields, "Content-Type: application/json");
	/* Else a large request waits for an interim response. */
	fields = curl->slist_append(fields, "Expect:");
	for (unsigned i = 0; target->headers && target->headers[i]; i++)
		fields = curl->slist_append(fields, target->headers[i]);
	return fields;
}

/* An option that fails is one of memory, and the request then fails as well. */
static void set_up(struct span_sender *sender, const struct span_target *target, const char *text,
		   size_t length, struct curl_slist *fields)
{
	const struct curl_library *curl = sender->curl;
	CURL *easy = sender->easy;

	curl->easy_reset(easy);
	curl->easy_setopt(easy, CURLOPT_URL, target->url);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl->easy_setopt(easy, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Does not wait for a name server at the end. */
	curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	/* The configuration says where spans go, not the environment. */
	curl->easy_setopt(easy, CURLOPT_PROXY, "");
	curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, POST_MS);
	curl->easy_setopt(easy, CURLOPT_USERAGENT, SERVER_NAME);
	curl->easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
	curl->easy_setopt(easy, CURLOPT_POSTFIELDS, text);
	curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
	curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, span_take_answer);
	curl->easy_setopt(easy, CURLOPT_WRITEDATA, sender);
	curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, span_take_head);
	curl->easy_setopt(easy, CURLOPT_HEADERDATA, sender);
	curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, sender->error);
	if (target->ca)
		curl->easy_setopt(easy, CURLOPT_CAINFO, target->ca);
	sender->error[0] = '\0';
	sender->answer_length = sender->received = 0;
}

/* Returns the milliseconds before the limit, at most STEP_MS. */
static int step_ms(struct span_sender *sender)
{
	uint64_t until = atomic_load(&sender->until_ns), now = clock_monotonic_ns();

	if (!until || until >= now + (uint64_t)STEP_MS * NS_OF_MS)
		return STEP_MS;
	return until > now ? (int)((until - now) / NS_OF_MS) + 1 : 0;
}

/* Returns false if the time limit stopped it. */
static bool transfer(struct span_sender *sender, CURLcode *result)
{
	const struct curl_library *curl = sender->curl;
	int running = 0, left, step = STEP_MS;
	CURLMsg *message;

	*result = CURLE_OUT_OF_MEMORY;
	if (curl->multi_add_handle(sender->multi, sender->easy) != CURLM_OK)
		return true;
	while (curl->multi_perform(sender->multi, &running) == CURLM_OK && running) {
		step = step_ms(sender);
		if (!step)
			break;
		(void)curl->multi_poll(sender->multi, NULL, 0, step, NULL);
	}
	while ((message = curl->multi_info_read(sender->multi, &left)))
		if (message->msg == CURLMSG_DONE)
			*result = message->data.result;
	(void)curl->multi_remove_handle(sender->multi, sender->easy);
	return step > 0;
}

/* A part of the spans was rejected: how many, as a number or, as OTLP writes it, a text. */
static uint64_t rejected(struct span_sender *sender)
{
	static const char name[] = "\"rejectedSpans\"";
	const char *at;

	sender->answer[sender->answer_length] = '\0';
	at = strstr(sender->answer, name);
	return at ? g_ascii_strtoull(at + strlen(name) + strspn(at + strlen(name), " \t\r\n:\""),
				     NULL, 10)
		  : 0;
}

static void judge(struct span_sender *sender, CURLcode result, struct span_answer *answer)
{
	const struct curl_library *curl = sender->curl;
	curl_off_t after = 0;
	long status = 0;

	(void)curl->easy_getinfo(sender->easy, CURLINFO_RESPONSE_CODE, &status);
	/* The status of a response that is too long counts, unless it is an interim one. */
	if (result != CURLE_OK && (sender->received <= RESPONSE_MAX || status < 200)) {
		answer->outcome = SPAN_RETRY;
		answer->code = (unsigned)result;
		snprintf(answer->why, sizeof(answer->why), "%s",
			 sender->received > RESPONSE_MAX ? "a response of more than 64 KB"
			 : *sender->error		 ? sender->error
							 : curl->easy_strerror(result));
		return;
	}
	answer->code = 1000 + (unsigned)status;
	if (status >= 200 && status < 300) {
		answer->outcome = SPAN_ACCEPTED;
		answer->rejected = rejected(sender);
		return;
	}
	snprintf(answer->why, sizeof(answer->why), "status %ld: %.*s", status,
		 (int)MIN(sender->answer_length, 200), sender->answer);
	answer->outcome = SPAN_REFUSED;
	if (status != 429 && status != 502 && status != 503 && status != 504)
		return;
	answer->outcome = SPAN_RETRY;
	(void)curl->easy_getinfo(sender->easy, CURLINFO_RETRY_AFTER, &after);
	answer->retry_after_s = after > UINT16_MAX ? UINT16_MAX : (unsigned)after;
}

void span_sender_post(struct span_sender *sender, const struct span_target *target,
		      const char *text, size_t length, struct span_answer *answer)
{
	struct curl_slist *fields = fields_of(sender->curl, target);
	CURLcode result;

	*answer = (struct span_answer){.outcome = SPAN_STOPPED};
	set_up(sender, target, text, length, fields);
	if (step_ms(sender) && transfer(sender, &result))
		judge(sender, result, answer);
	else
		snprintf(answer->why, sizeof(answer->why), "it did not answer in time");
	sender->curl->slist_free_all(fields);
}

/* --- waiting --------------------------------------------------------------------------- */

void span_sender_wait(struct span_sender *sender, unsigned ms)
{
	(void)sender->curl->multi_poll(sender->multi, NULL, 0, (int)ms, NULL);
}

void span_sender_wake(struct span_sender *sender)
{
	(void)sender->curl->multi_wakeup(sender->multi);
}

void span_sender_limit(struct span_sender *sender, uint64_t until_ns)
{
	atomic_store(&sender->until_ns, until_ns);
	span_sender_wake(sender);
}
