/* SPDX-License-Identifier: MIT */
/*
 * fuzz-cachekey.c - the keys of cached responses (sweet/http/cachekey.c,
 * cachecontrol.c): a request's key is that of its URL, and its values of the fields
 * that Vary names match itself.  The input is Vary's value, a zero byte, and a request
 * without its method.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"
#include "http/cachecontrol.h"
#include "http/cachekey.h"
#include "http/request.h"

#include "fuzz.h"
#include "head.h"

static void check_key(const struct request *request)
{
	static char key[CACHEKEY_URL_MAX], again[CACHEKEY_URL_MAX];
	static char url[8 + CACHEKEY_HOST_MAX + REQUEST_TARGET_MAX + 2];
	size_t length = cachekey_write_url(request, (struct slice){NULL, 0}, key), at = 0, second;
	bool prefix;

	MUST(length <= CACHEKEY_URL_MAX);
	if (length == 0 || request->host.length == 0)
		return;
	memcpy(url, "http://", 7);
	at = 7;
	memcpy(url + at, request->host.at, request->host.length);
	at += request->host.length;
	memcpy(url + at, request->path.at, request->path.length);
	at += request->path.length;
	if (request->query.length) {
		url[at++] = '?';
		memcpy(url + at, request->query.at, request->query.length);
		at += request->query.length;
	}
	second = cachekey_of_url((struct slice){url, at}, again, &prefix);
	/* A star at its end would match many. */
	MUST(prefix == (url[at - 1] == '*'));
	MUST(second == length - prefix && memcmp(key, again, second) == 0);
}

static void check_vary(const struct request *request, struct slice value)
{
	struct cachecontrol_vary vary = {.anything = false};
	char values[CACHEKEY_VALUES_MAX];
	struct slice names;
	long length;

	cachecontrol_vary_add(&vary, value);
	MUST(vary.length <= CACHECONTROL_VARY_MAX);
	if (vary.anything)
		return;
	names = (struct slice){vary.names, vary.length};
	length = cachekey_values(request, names, values);
	MUST(length >= -1 && length <= CACHEKEY_VALUES_MAX);
	if (length >= 0)
		MUST(cachekey_matches(request, names, values));
}

static void check_control(struct slice value)
{
	struct cachecontrol control;
	uint32_t lifetime;

	cachecontrol_init(&control);
	cachecontrol_add(&control, value);
	lifetime = cachecontrol_lifetime(&control);
	MUST(lifetime <= CACHECONTROL_SECONDS_MAX || lifetime == CACHECONTROL_UNSAID);
	/* Adding the same value again changes nothing. */
	cachecontrol_add(&control, value);
	MUST(cachecontrol_lifetime(&control) == lifetime);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *zero = size ? memchr(data, '\0', size) : NULL;
	struct slice value = {(const char *)data, zero ? (size_t)(zero - data) : 0};
	struct head head;

	if (!zero || !head_open(&head, "GET ", zero + 1, size - value.length - 1, "\r\n\r\n"))
		return -1;
	check_key(&head.request);
	check_vary(&head.request, value);
	check_control(value);
	head_close(&head);
	return 0;
}
