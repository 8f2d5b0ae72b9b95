/* SPDX-License-Identifier: MIT */
/*
 * autoindex-render.c - see autoindex-render.h.  No state; any thread.
 *
 * File names are untrusted: anybody who can create a file there chooses its name.
 * In a link, all characters but the unreserved ones are percent-encoded, so that a
 * name can be neither mark-up nor a scheme.  As text, names are escaped, and
 * invalid UTF-8 becomes U+FFFD.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <glib.h>

#include "base/json.h"
#include "http/autoindex-render.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define CRUMBS_MAX 32 /* names of a path that become links, counted from its end */

/* --- the order ---------------------------------------------------------------- */

struct slice autoindex_query(struct slice query, const char *name)
{
	size_t length = strlen(name);

	while (query.length) {
		const char *end = memchr(query.at, '&', query.length);
		size_t field = end ? (size_t)(end - query.at) : query.length;

		if (field > length && query.at[length] == '=' &&
		    memcmp(query.at, name, length) == 0)
			return (struct slice){query.at + length + 1, field - length - 1};
		query.at += end ? field + 1 : field;
		query.length -= end ? field + 1 : field;
	}
	return (struct slice){NULL, 0};
}

static const char *const columns[] = {
	[AUTOINDEX_NAME] = "name", [AUTOINDEX_SIZE] = "size", [AUTOINDEX_TIME] = "mtime"};

struct autoindex_order autoindex_order(struct slice query)
{
	struct slice sort = autoindex_query(query, "sort"), order = autoindex_query(query, "order");
	struct autoindex_order result = {.column = AUTOINDEX_NAME};

	for (unsigned i = 0; sort.at && i < G_N_ELEMENTS(columns); i++)
		if (slice_is(sort, columns[i]))
			result.column = (enum autoindex_column)i;
	result.descending = order.at && slice_is(order, "desc");
	return result;
}

/* Ignores case; names that differ only in case are not equal. */
static int compare_names(const char *a, const char *b)
{
	int order = g_ascii_strcasecmp(a, b);

	return order ? order : strcmp(a, b);
}

static int render_compare(const void *first, const void *second, void *context)
{
	const struct autoindex_entry *a = first, *b = second;
	const struct autoindex_order *order = context;
	int result = 0;

	if (a->folder != b->folder)
		return a->folder ? -1 : 1;
	if (order->column == AUTOINDEX_SIZE && !a->folder)
		result = (a->size > b->size) - (a->size < b->size);
	else if (order->column == AUTOINDEX_TIME)
		result = (a->modified > b->modified) - (a->modified < b->modified);
	else if (order->column == AUTOINDEX_NAME)
		result = compare_names(a->name, b->name);
	if (result == 0)
		return compare_names(a->name, b->name);
	return order->descending ? -result : result;
}

void autoindex_sort(struct autoindex_entry *entries, unsigned count, struct autoindex_order order)
{
	if (count)
		qsort_r(entries, count, sizeof(*entries), render_compare, &order);
}

/* --- names and figures ---------------------------------------------------------- */

static void put_link(GString *out, const char *name)
{
	static const char digits[] = "0123456789ABCDEF";

	for (; *name; name++) {
		unsigned char byte = (unsigned char)*name;

		if (g_ascii_isalnum(byte) || strchr("-._~", byte)) {
			g_string_append_c(out, (char)byte);
		} else {
			g_string_append_c(out, '%');
			g_string_append_c(out, digits[byte >> 4]);
			g_string_append_c(out, digits[byte & 15]);
		}
	}
}

static void put_html(GString *out, const char *text)
{
	while (*text) {
		gunichar letter = g_utf8_get_char_validated(text, -1);

		if (letter == (gunichar)-1 || letter == (gunichar)-2) {
			g_string_append(out, REPLACEMENT);
			text++;
			continue;
		}
		switch (letter) {
		case '<':
			g_string_append(out, "&lt;");
			break;
		case '>':
			g_string_append(out, "&gt;");
			break;
		case '&':
			g_string_append(out, "&amp;");
			break;
		case '"':
			g_string_append(out, "&quot;");
			break;
		case '\'':
			g_string_append(out, "&#39;");
			break;
		default:
			g_string_append_unichar(out, g_unichar_iscntrl(letter) ? 0xfffd : letter);
		}
		text = g_utf8_next_char(text);
	}
}

/* Writes three digits: 999 B, 1.46 KiB, 97.7 KiB, 312 MiB. */
static void put_size(GString *out, uint64_t size)
{
	static const char units[] = "KMGTPE";
	double value = (double)size;
	unsigned unit = 0;

	if (size < 1024) {
		g_string_append_printf(out, "%u B", (unsigned)size);
		return;
	}
	for (value /= 1024; value >= 999.5 && unit + 1 < sizeof(units) - 1; unit++)
		value /= 1024;
	g_string_append_printf(out, "%.*f %ciB",
			       value < 9.995   ? 2
			       : value < 99.95 ? 1
					       : 0,
			       value, units[unit]);
}

static void put_time(GString *out, int64_t seconds, const char *format)
{
	time_t time = (time_t)seconds;
	char text[64];
	struct tm tm;

	if (gmtime_r(&time, &tm) && strftime(text, sizeof(text), format, &tm))
		g_string_append(out, text);
}

/* --- HTML ------------------------------------------------------------------------ */

static const char style[] =
	":root{color-scheme:light dark;--text:#1c2024;--soft:#5f6b76;--line:#e3e7eb;"
	"--link:#0b57b4;--back:#fff;--over:#f3f6f9}\n"
	"@media(prefers-color-scheme:dark){:root{--text:#e4e7ea;--soft:#98a3ae;--line:#2d343b;"
	"--link:#7db4ff;--back:#14181c;--over:#1d2329}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0 auto;max-width:60rem;padding:1.5rem 1rem 3rem;background:var(--back);"
	"color:var(--text);font:1rem/1.5 system-ui,sans-serif}\n"
	"h1{font-size:1.35rem;font-weight:600;margin:0 0 1rem;overflow-wrap:anywhere}\n"
	"a{color:var(--link);text-decoration:none}a:hover,a:focus{text-decoration:underline}\n"
	"table{width:100%;border-collapse:collapse}\n"
	"th,td{padding:.45rem .5rem;text-align:left;border-bottom:1px solid var(--line);"
	"vertical-align:baseline}\n"
	"th{font-size:.875rem;font-weight:600;white-space:nowrap}th a{color:var(--soft)}\n"
	"tbody tr:hover{background:var(--over)}\n"
	".n{overflow-wrap:anywhere}\n"
	".s,.t{white-space:nowrap;color:var(--soft);font-variant-numeric:tabular-nums;width:1%}\n"
	".s{text-align:right}\n"
	".t{padding-left:2rem}\n"
	"p{color:var(--soft);font-size:.875rem}\n"
	"@media(max-width:34rem){body{padding:1rem .5rem 2rem}td{font-size:.9375rem}"
	".t{padding-left:.75rem}td.t span{display:none}}\n";

static void put_column(GString *out, const struct autoindex_page *page,
		       enum autoindex_column column, const char *class, const char *title)
{
	bool present = page->order.column == column;
	bool down = page->order.descending;

	g_string_append_printf(
		out,
		"<th class=\"%s\" scope=\"col\"%s><a href=\"?sort=%s&amp;order=%s\">%s%s</a></th>",
		class,
		!present ? ""
		: down	 ? " aria-sort=\"descending\""
			 : " aria-sort=\"ascending\"",
		columns[column], present && !down ? "desc" : "asc", title,
		!present ? ""
		: down	 ? " \xe2\x96\xbe"
			 : " \xe2\x96\xb4");
}

/* Writes the path as links; its last part is this page. */
static void put_crumbs(GString *out, const char *path)
{
	char **names = g_strsplit(path, "/", -1);
	unsigned count = g_strv_length(names); /* the first and the last are empty */

	g_string_append(out, "<h1>Index of ");
	for (unsigned i = 0; i + 1 < count; i++) {
		bool last = i + 2 == count, link = !last && count - i <= CRUMBS_MAX;

		if (link) {
			g_string_append(out, "<a href=\"");
			for (unsigned up = i + 2; up < count; up++)
				g_string_append(out, "../");
			g_string_append(out, "\">");
		}
		if (i)
			put_html(out, names[i]);
		g_string_append(out, link ? "/</a>" : "/");
	}
	g_string_append(out, "</h1>\n");
	g_strfreev(names);
}

static void put_row(GString *out, const struct autoindex_entry *entry)
{
	const char *slash = entry->folder ? "/" : "";

	g_string_append(out, "<tr><td class=\"n\"><a href=\"");
	put_link(out, entry->name);
	g_string_append_printf(out, "%s\"><bdi>", slash);
	put_html(out, entry->name);
	g_string_append_printf(out, "</bdi>%s</a></td><td class=\"s\">", slash);
	if (entry->folder)
		g_string_append(out, "\xe2\x80\x93");
	else
		put_size(out, entry->size);
	g_string_append(out, "</td><td class=\"t\">");
	put_time(out, entry->modified, "%Y-%m-%d<span> %H:%M</span>");
	g_string_append(out, "</td></tr>\n");
}

static void put_sum(GString *out, unsigned number, const char *one, const char *many)
{
	g_string_append_printf(out, "%u %s", number, number == 1 ? one : many);
}

static void put_end(GString *out, unsigned folders, unsigned files, bool more)
{
	g_string_append(out, "</tbody></table>\n<p>");
	put_sum(out, folders, "folder", "folders");
	g_string_append(out, ", ");
	put_sum(out, files, "file", "files");
	if (more)
		g_string_append(out, "; there are more in this folder that are not shown");
	g_string_append(out, ". Times are UTC.</p>\n</body></html>\n");
}

GString *autoindex_html(const struct autoindex_page *page, size_t max)
{
	GString *out = g_string_new("<!DOCTYPE html>\n<html lang=\"en\"><head>"
				    "<meta charset=\"utf-8\">\n<title>Index of ");
	unsigned folders = 0, files = 0;
	bool more = page->more;

	put_html(out, page->path);
	g_string_append(out, "</title>\n<meta name=\"viewport\" "
			     "content=\"width=device-width,initial-scale=1\">\n"
			     "<meta name=\"robots\" content=\"noindex\">\n<style>\n");
	g_string_append(out, style);
	g_string_append(out, "</style></head>\n<body>\n");
	put_crumbs(out, page->path);
	g_string_append(out, "<table>\n<thead><tr>");
	put_column(out, page, AUTOINDEX_NAME, "n", "Name");
	put_column(out, page, AUTOINDEX_SIZE, "s", "Size");
	put_column(out, page, AUTOINDEX_TIME, "t", "Modified");
	g_string_append(out, "</tr></thead>\n<tbody>\n");
	if (strcmp(page->path, "/") != 0)
		g_string_append(out, "<tr><td class=\"n\"><a href=\"../\">..</a></td>"
				     "<td class=\"s\"></td><td class=\"t\"></td></tr>\n");
	for (unsigned i = 0; i < page->count; i++) {
		size_t before = out->len;

		put_row(out, &page->entries[i]);
		if (out->len + 256 > max) {
			g_string_truncate(out, before);
			more = true;
			break;
		}
		*(page->entries[i].folder ? &folders : &files) += 1;
	}
	put_end(out, folders, files, more);
	return out;
}

/* --- JSON ------------------------------------------------------------------------ */

static void put_object(struct json *json, const struct autoindex_entry *entry)
{
	GString *text = g_string_new(NULL);

	json_open_as(json, NULL, '{', JSON_DENSE);
	json_text(json, "name", entry->name);
	/* The name may contain replacements; the link has its exact bytes. */
	put_link(text, entry->name);
	if (entry->folder)
		g_string_append_c(text, '/');
	json_text(json, "href", text->str);
	json_text(json, "type", entry->folder ? "directory" : "file");
	if (entry->folder)
		json_null(json, "size");
	else
		json_number(json, "size", entry->size);
	g_string_truncate(text, 0);
	put_time(text, entry->modified, "%Y-%m-%dT%H:%M:%SZ");
	json_text(json, "mtime", text->str);
	json_close(json, '}');
	g_string_free(text, TRUE);
}

GString *autoindex_json(const struct autoindex_page *page, size_t max, bool *cut)
{
	struct json json = {.text = g_string_new(NULL), .step = 1};

	json_open(&json, NULL, '[');
	*cut = page->more;
	for (unsigned i = 0; i < page->count; i++) {
		const struct json before = json;
		size_t length = json.text->len;

		put_object(&json, &page->entries[i]);
		if (json.text->len + strlen("\n]\n") > max) {
			g_string_truncate(json.text, length);
			json = before;
			*cut = true;
			break;
		}
	}
	json_close(&json, ']');
	return json.text;
}
