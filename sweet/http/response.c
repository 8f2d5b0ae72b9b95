/* SPDX-License-Identifier: MIT */
/*
 * response.c - status lines, error pages, and the filter for a gateway's fields.
 *
 * All functions write into the caller's buffers.  No state, no allocation: any
 * thread may call them.  A gateway's fields are as untrusted as a client's: the
 * filter drops or refuses fields that could end the head early or contradict the
 * body.
 */
#include <stdbool.h>
#include <string.h>

#include "http/field.h"
#include "http/fields.h"
#include "http/response.h"

struct out {
	char *at;
	char *end;
	bool full; /* something did not fit; all further output is dropped */
};

const char *response_reason(int status)
{
	switch (status) {
	case 100:
		return "Continue";
	case 101:
		return "Switching Protocols";
	case 102:
		return "Processing";
	case 103:
		return "Early Hints";
	case 200:
		return "OK";
	case 201:
		return "Created";
	case 202:
		return "Accepted";
	case 203:
		return "Non-Authoritative Information";
	case 204:
		return "No Content";
	case 205:
		return "Reset Content";
	case 206:
		return "Partial Content";
	case 207:
		return "Multi-Status";
	case 300:
		return "Multiple Choices";
	case 301:
		return "Moved Permanently";
	case 302:
		return "Found";
	case 303:
		return "See Other";
	case 304:
		return "Not Modified";
	case 305:
		return "Use Proxy";
	case 307:
		return "Temporary Redirect";
	case 308:
		return "Permanent Redirect";
	case 400:
		return "Bad Request";
	case 401:
		return "Unauthorized";
	case 402:
		return "Payment Required";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 406:
		return "Not Acceptable";
	case 407:
		return "Proxy Authentication Required";
	case 408:
		return "Request Timeout";
	case 409:
		return "Conflict";
	case 410:
		return "Gone";
	case 411:
		return "Length Required";
	case 412:
		return "Precondition Failed";
	case 413:
		return "Content Too Large";
	case 414:
		return "URI Too Long";
	case 415:
		return "Unsupported Media Type";
	case 416:
		return "Range Not Satisfiable";
	case 417:
		return "Expectation Failed";
	case 421:
		return "Misdirected Request";
	case 422:
		return "Unprocessable Content";
	case 423:
		return "Locked";
	case 424:
		return "Failed Dependency";
	case 426:
		return "Upgrade Required";
	case 428:
		return "Precondition Required";
	case 429:
		return "Too Many Requests";
	case 431:
		return "Request Header Fields Too Large";
	case 500:
		return "Internal Server Error";
	case 501:
		return "Not Implemented";
	case 502:
		return "Bad Gateway";
	case 503:
		return "Service Unavailable";
	case 504:
		return "Gateway Timeout";
	case 505:
		return "HTTP Version Not Supported";
	case 507:
		return "Insufficient Storage";
	case 511:
		return "Network Authentication Required";
	default:
		return "Unknown";
	}
}

static void put(struct out *out, const char *text, size_t length)
{
	if (out->full || length > (size_t)(out->end - out->at)) {
		out->full = true;
		return;
	}
	memcpy(out->at, text, length);
	out->at += length;
}

static void put_string(struct out *out, const char *text)
{
	put(out, text, strlen(text));
}

/* Other numbers are invalid: a client could not even parse the line. */
static int valid(int status)
{
	return status < 100 || status > 999 ? 500 : status;
}

void response_status_digits(int status, char digits[RESPONSE_STATUS_DIGITS])
{
	status = valid(status);
	digits[0] = (char)('0' + status / 100);
	digits[1] = (char)('0' + status / 10 % 10);
	digits[2] = (char)('0' + status % 10);
}

static void put_status(struct out *out, int status, const char *phrase)
{
	char digits[RESPONSE_STATUS_DIGITS];

	response_status_digits(status, digits);
	put(out, digits, sizeof(digits));
	put(out, " ", 1);
	put_string(out, phrase ? phrase : response_reason(valid(status)));
}

size_t response_status_line(int status, const char *phrase, char *out)
{
	struct out line = {out, out + RESPONSE_STATUS_MAX, false};

	put_string(&line, "HTTP/1.1 ");
	put_status(&line, status, phrase);
	put_string(&line, "\r\n");
	return (size_t)(line.at - out);
}

/* Writes complete escapes or nothing, so that the limit never splits one. */
static void put_escaped(struct out *out, const char *text)
{
	for (; *text && !out->full; text++) {
		switch (*text) {
		case '<':
			put_string(out, "&lt;");
			break;
		case '>':
			put_string(out, "&gt;");
			break;
		case '&':
			put_string(out, "&amp;");
			break;
		case '"':
			put_string(out, "&quot;");
			break;
		case '\'':
			put_string(out, "&#39;");
			break;
		default:
			/* One line of text: it may contain no control characters. */
			if ((unsigned char)*text < 0x20 || *text == 0x7f)
				put(out, "?", 1);
			else
				put(out, text, 1);
		}
	}
}

size_t response_error_page(int status, const char *detail, char *out, size_t out_size)
{
	static const char detail_start[] = "<p>";
	static const char detail_end[] = "</p>\n";
	static const char end[] = "</body></html>\n";
	const size_t reserve = sizeof(detail_end) - 1 + sizeof(end) - 1;
	struct out page = {out, out, false};
	struct out inner;

	if (out_size == 0)
		return 0;
	page.end += out_size - 1;
	put_string(&page, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
			  "<meta name=\"viewport\" content=\"width=device-width\">"
			  "<meta name=\"color-scheme\" content=\"light dark\"><title>");
	put_status(&page, status, NULL);
	put_string(&page, "</title></head>\n<body><h1>");
	put_status(&page, status, NULL);
	put_string(&page, "</h1>\n");
	/* The detail is cut so that the end of the page fits. */
	if (detail && !page.full &&
	    (size_t)(page.end - page.at) > sizeof(detail_start) - 1 + reserve) {
		put_string(&page, detail_start);
		inner = (struct out){page.at, page.end - reserve, false};
		put_escaped(&inner, detail);
		page.at = inner.at;
		put_string(&page, detail_end);
	}
	put_string(&page, end);
	*page.at = '\0';
	return (size_t)(page.at - out);
}

/* What two readers could read in two ways is refused, although the server writes its own. */
static bool take_length(struct response_facts *facts, struct slice value)
{
	if (facts->has_length)
		return false;
	facts->has_length = true;
	return field_number(value, &facts->length) && facts->length <= INT64_MAX;
}

/* Copies the lines except those that options names; adds the names in Connection to *found. */
static long filter(struct slice headers, char *out, size_t out_size, struct response_facts *facts,
		   const struct field_options *options, struct field_options *found)
{
	struct out result = {out, out + out_size, false};
	struct field field;

	*facts = (struct response_facts){0};
	while (headers.length > 0) {
		if (!field_next(&headers, &field))
			return -1;
		if (field.id == FIELD_CONNECTION && !field_options_add(found, field.value))
			return -1;
		if (field.id == FIELD_CONTENT_LENGTH && !take_length(facts, field.value))
			return -1;
		if (field.id == FIELD_DATE) {
			facts->dates++;
			facts->date = field.value;
		}
		if (field_is_withheld(&field) || field_options_have(options, field.name))
			continue;
		if (field.id == FIELD_CONTENT_TYPE)
			facts->has_type = true;
		put(&result, field.line.at, field.line.length);
		put(&result, "\r\n", 2);
	}
	return result.full ? -1 : (long)(result.at - out);
}

long response_filter_headers(struct slice headers, char *out, size_t out_size,
			     struct response_facts *facts)
{
	struct field_options none = {0}, options = {0}, same = {0};
	long length = filter(headers, out, out_size, facts, &none, &options);

	/* Few programs send Connection.  Without the fields that it names, the rest may fit. */
	return options.count ? filter(headers, out, out_size, facts, &options, &same) : length;
}
