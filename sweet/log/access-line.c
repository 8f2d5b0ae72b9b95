/* SPDX-License-Identifier: MIT */
/*
 * access-line.c - see access-line.h.  Pure, except for the time zone; any thread.
 *
 * Every request uses this code, so numbers and texts are not written with
 * printf(3), which would take longer than everything else here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/date.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "log/access-line.h"

#define REMOTE_MAX 64 /* bytes */
#define TRACE_MAX 32  /* the same, of a trace id */
#define REST_MAX 1024 /* bytes of a line without the client's texts */

void access_clock_set(struct access_clock *clock, struct timespec real, uint64_t now_ns)
{
	static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
					   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	unsigned minutes;
	struct tm tm;

	clock->began_ns = now_ns - (uint64_t)real.tv_nsec;
	memset(&tm, 0, sizeof(tm));
	(void)localtime_r(&real.tv_sec, &tm);
	minutes = (unsigned)labs(tm.tm_gmtoff) / 60 % 6000;
	/* Month names from a table: strftime(3) depends on the locale. */
	snprintf(clock->local, sizeof(clock->local), "%02d/%s/%d:%02d:%02d:%02d %c%02u%02u",
		 tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec,
		 tm.tm_gmtoff < 0 ? '-' : '+', minutes / 60, minutes % 60);
	memset(&tm, 0, sizeof(tm));
	(void)gmtime_r(&real.tv_sec, &tm);
	snprintf(clock->utc, sizeof(clock->utc), "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900,
		 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* --- pieces ---------------------------------------------------------------------- */

static char *append(char *to, const void *data, size_t length)
{
	memcpy(to, data, length);
	return to + length;
}

#define APPEND(to, literal) append(to, literal, sizeof(literal) - 1)

static char *append_text(char *to, const char *text, size_t most)
{
	return append(to, text, strnlen(text, most));
}

/* Valid responses have three digits; writes any other number too. */
static char *append_status(char *to, int status)
{
	if (status < 0) {
		*to++ = '-';
		return decimal_write(to, -(uint64_t)status);
	}
	return decimal_write(to, (uint64_t)status);
}

static struct slice cut(struct slice text, size_t most)
{
	return (struct slice){.at = text.at, .length = text.length < most ? text.length : most};
}

static size_t escaped(struct slice text, size_t most)
{
	return cut(text, most).length * ESCAPE_MOST;
}

size_t access_line_most(const struct access_line *line)
{
	return REST_MAX + escaped(line->request, ACCESS_REQUEST_MAX) +
	       escaped(line->referer, ACCESS_REFERER_MAX) + escaped(line->agent, ACCESS_AGENT_MAX) +
	       escaped(line->host, ACCESS_HOST_MAX) + escaped(line->user, ACCESS_USER_MAX);
}

/* --- formats for lines of words ---------------------------------------------------- */

static char *write_short(char *to, const struct access_line *line)
{
	to = append_text(to, line->remote, REMOTE_MAX);
	to = APPEND(to, " [");
	to = append_text(to, line->date, DATE_LENGTH);
	to = APPEND(to, "] \"");
	to = escape_quoted(to, cut(line->request, ACCESS_REQUEST_MAX));
	to = APPEND(to, "\" ");
	to = append_status(to, line->status);
	*to++ = ' ';
	to = decimal_write(to, line->bytes);
	*to++ = ' ';
	to = decimal_write(to, line->microseconds);
	return APPEND(to, "us");
}

static char *write_common(char *to, const struct access_line *line,
			  const struct access_clock *clock)
{
	to = append_text(to, line->remote, REMOTE_MAX);
	to = APPEND(to, " - ");
	/* An empty name would omit a field. */
	if (line->user.length)
		to = escape_word(to, cut(line->user, ACCESS_USER_MAX));
	else
		*to++ = '-';
	to = APPEND(to, " [");
	to = append_text(to, clock->local, sizeof(clock->local));
	to = APPEND(to, "] \"");
	to = escape_quoted(to, cut(line->request, ACCESS_REQUEST_MAX));
	to = APPEND(to, "\" ");
	to = append_status(to, line->status);
	*to++ = ' ';
	if (line->bytes)
		return decimal_write(to, line->bytes);
	return APPEND(to, "-");
}

static char *write_quoted(char *to, struct slice text, size_t most)
{
	if (!text.at)
		return APPEND(to, " \"-\"");
	to = APPEND(to, " \"");
	to = escape_quoted(to, cut(text, most));
	return APPEND(to, "\"");
}

/* --- JSON ---------------------------------------------------------------------------- */

/*
 * Not by base/json.h: a line is written for each request, into memory of the log's own, and
 * has neither brackets within brackets nor a layout. What is not UTF-8 is shown byte by byte.
 */
static char *write_member(char *to, struct slice text, size_t most)
{
	if (!text.at)
		return APPEND(to, "null");
	*to++ = '"';
	to = escape_json(to, cut(text, most));
	*to++ = '"';
	return to;
}

void access_request_split(struct access_request *request, struct slice line)
{
	const char *first = line.length ? memchr(line.at, ' ', line.length) : NULL;
	const char *last = line.length ? memrchr(line.at, ' ', line.length) : NULL;

	*request = (struct access_request){.target = line};
	if (first == last)
		return;
	request->method = (struct slice){line.at, (size_t)(first - line.at)};
	request->target = (struct slice){first + 1, (size_t)(last - first - 1)};
	request->protocol = (struct slice){last + 1, (size_t)(line.at + line.length - last - 1)};
}

static char *write_request(char *to, struct slice line)
{
	struct access_request request;

	access_request_split(&request, line);
	to = APPEND(to, ",\"method\":");
	to = write_member(to, request.method, ACCESS_REQUEST_MAX);
	to = APPEND(to, ",\"target\":");
	to = write_member(to, request.target, ACCESS_REQUEST_MAX);
	to = APPEND(to, ",\"protocol\":");
	return write_member(to, request.protocol, ACCESS_REQUEST_MAX);
}

char *access_clock_write(char *to, const struct access_clock *clock, uint64_t now_ns)
{
	uint64_t milliseconds = (now_ns - clock->began_ns) / 1000000u;

	if (milliseconds > 999)
		milliseconds = 999; /* the clock is old: stay within its second */
	to = append_text(to, clock->utc, sizeof(clock->utc));
	*to++ = '.';
	*to++ = (char)('0' + milliseconds / 100);
	*to++ = (char)('0' + milliseconds / 10 % 10);
	*to++ = (char)('0' + milliseconds % 10);
	*to++ = 'Z';
	return to;
}

static char *write_part(char *to, uint64_t us)
{
	return us == ACCESS_UNKNOWN ? APPEND(to, "null") : decimal_write(to, us);
}

static char *write_json(char *to, const struct access_line *line, const struct access_clock *clock,
			uint64_t now_ns)
{
	to = APPEND(to, "{\"time\":\"");
	to = access_clock_write(to, clock, now_ns);
	to = APPEND(to, "\",\"remote\":\"");
	to = append_text(to, line->remote, REMOTE_MAX);
	to = APPEND(to, "\",\"remote_port\":");
	to = decimal_write(to, line->remote_port);
	to = APPEND(to, ",\"user\":");
	to = write_member(to, line->user, ACCESS_USER_MAX);
	to = write_request(to, cut(line->request, ACCESS_REQUEST_MAX));
	to = APPEND(to, ",\"status\":");
	to = append_status(to, line->status);
	to = APPEND(to, ",\"bytes\":");
	to = decimal_write(to, line->bytes);
	to = APPEND(to, ",\"referer\":");
	to = write_member(to, line->referer, ACCESS_REFERER_MAX);
	to = APPEND(to, ",\"user_agent\":");
	to = write_member(to, line->agent, ACCESS_AGENT_MAX);
	to = APPEND(to, ",\"host\":");
	to = write_member(to, line->host, ACCESS_HOST_MAX);
	to = APPEND(to, ",\"duration_us\":");
	to = decimal_write(to, line->microseconds);
	to = APPEND(to, ",\"queue_us\":");
	to = write_part(to, line->queue_us);
	to = APPEND(to, ",\"program_us\":");
	to = write_part(to, line->program_us);
	to = APPEND(to, ",\"send_us\":");
	to = write_part(to, line->send_us);
	if (line->request_id) {
		to = APPEND(to, ",\"request_id\":\"");
		to = append_text(to, line->request_id, ACCESS_NAME_MAX);
		*to++ = '"';
	}
	if (line->trace_id.at) {
		to = APPEND(to, ",\"trace_id\":");
		to = write_member(to, line->trace_id, TRACE_MAX);
	}
	return APPEND(to, "}");
}

char *access_line_write(char *to, enum access_format format, const struct access_line *line,
			const struct access_clock *clock, uint64_t now_ns)
{
	switch (format) {
	case ACCESS_SHORT:
		to = write_short(to, line);
		break;
	case ACCESS_JSON:
		to = write_json(to, line, clock, now_ns);
		break;
	case ACCESS_COMMON:
	case ACCESS_COMBINED:
		to = write_common(to, line, clock);
		if (format == ACCESS_COMBINED) {
			to = write_quoted(to, line->referer, ACCESS_REFERER_MAX);
			to = write_quoted(to, line->agent, ACCESS_AGENT_MAX);
		}
		break;
	case ACCESS_TEMPLATE:
	case ACCESS_JSON_TEMPLATE:
		break;
	}
	*to++ = '\n';
	return to;
}
