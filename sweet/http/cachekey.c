/* SPDX-License-Identifier: MIT */
/*
 * cachekey.c - see cachekey.h.  No state, no allocation: any thread may call it.
 *
 * Several lines of one name count as one value with commas between (RFC 9110,
 * section 5.3).  A field that is present begins with ':' here, to distinguish an
 * empty value from an absent field.
 */

#include <string.h>
#include <strings.h>

#include "http/cachekey.h"

#define SCHEME "http://"
#define SECURE "https://"

static char lower(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

static size_t write_host(struct slice host, char *out)
{
	for (size_t i = 0; i < host.length; i++)
		out[i] = lower(host.at[i]);
	out[host.length] = ' ';
	return host.length + 1;
}

size_t cachekey_write_url(const struct request *request, struct slice host, char *out)
{
	size_t length;

	if (request->host.length)
		host = request->host;
	if (host.length > CACHEKEY_HOST_MAX || request->path.length == 0 ||
	    request->path.at[0] != '/' ||
	    request->path.length + request->query.length >= REQUEST_TARGET_MAX)
		return 0;
	length = write_host(host, out);
	memcpy(out + length, request->path.at, request->path.length);
	length += request->path.length;
	if (request->query.length) {
		out[length++] = '?';
		memcpy(out + length, request->query.at, request->query.length);
		length += request->query.length;
	}
	return length;
}

size_t cachekey_write(const struct request *request, const struct cachekey_place *place, char *out,
		      size_t *url_length)
{
	size_t length = cachekey_write_url(request, place->host, out);

	*url_length = length;
	if (length == 0 || place->text.length > CACHEKEY_PLACE_MAX - 2)
		return 0;
	out[length++] = '\0';
	out[length++] = request->host.length ? '+' : '-';
	if (place->text.length)
		memcpy(out + length, place->text.at, place->text.length);
	return length + place->text.length;
}

static bool skip(struct slice *slice, const char *text)
{
	size_t length = strlen(text);

	if (slice->length < length || strncasecmp(slice->at, text, length) != 0)
		return false;
	slice->at += length;
	slice->length -= length;
	return true;
}

size_t cachekey_of_url(struct slice url, char *out, bool *prefix)
{
	struct slice host = {url.at, 0};
	const char *fragment;
	size_t length;

	if (skip(&url, SCHEME) || skip(&url, SECURE)) {
		host.at = url.at;
		while (host.length < url.length && host.at[host.length] != '/' &&
		       host.at[host.length] != '?' && host.at[host.length] != '#')
			host.length++;
		if (host.length == 0 || host.length > CACHEKEY_HOST_MAX)
			return 0;
		url.at += host.length;
		url.length -= host.length;
		/* "http://host" is "http://host/". */
		if (url.length == 0)
			url = (struct slice){"/", 1};
	}
	fragment = memchr(url.at, '#', url.length);
	if (fragment)
		url.length = (size_t)(fragment - url.at);
	*prefix = url.length && url.at[url.length - 1] == '*';
	url.length -= *prefix;
	/* "/path?" is the same as "/path"; "/path??" has the query "?". */
	if (!*prefix && url.length && memchr(url.at, '?', url.length) == url.at + url.length - 1)
		url.length--;
	if (url.length == 0 || url.at[0] != '/' || url.length > REQUEST_TARGET_MAX)
		return 0;
	length = write_host(host, out);
	memcpy(out + length, url.at, url.length);
	return length + url.length;
}

/* --- fields that vary ------------------------------------------------------------- */

long cachekey_values(const struct request *request, struct slice names, char *out)
{
	size_t length = 0;

	for (const char *name = names.at; name < names.at + names.length;
	     name += strlen(name) + 1) {
		char before = ':';

		for (unsigned i = 0; i < request->header_count; i++) {
			const struct slice value = request->headers[i].value;

			if (!slice_is(request->headers[i].name, name))
				continue;
			if (length + value.length + 3 > CACHEKEY_VALUES_MAX)
				return -1;
			out[length++] = before;
			memcpy(out + length, value.at, value.length);
			length += value.length;
			before = ',';
		}
		if (length == CACHEKEY_VALUES_MAX)
			return -1;
		out[length++] = '\0';
	}
	return (long)length;
}

/* Compares the request's value with the text at *at; moves *at after that text. */
static bool value_matches(const struct request *request, const char *name, const char **at)
{
	const char *text = *at;
	char before = ':';

	for (unsigned i = 0; i < request->header_count; i++) {
		const struct slice value = request->headers[i].value;

		if (!slice_is(request->headers[i].name, name))
			continue;
		if (*text++ != before || strncmp(text, value.at, value.length) != 0)
			return false;
		text += value.length;
		before = ',';
	}
	*at = text + 1;
	return *text == '\0';
}

bool cachekey_matches(const struct request *request, struct slice names, const char *values)
{
	for (const char *name = names.at; name < names.at + names.length; name += strlen(name) + 1)
		if (!value_matches(request, name, &values))
			return false;
	return true;
}
