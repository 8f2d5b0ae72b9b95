/* SPDX-License-Identifier: MIT */
/*
 * ctl-show.c - the commands list and stat; see ctl.h.
 *
 * The owner's data is not trusted: any process may own the cache, while this one
 * may run as root.
 */
#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <nabc.h>
#include <stdio.h>
#include <string.h>

#include <base/json.h>

#include "ctl-counter.h"
#include "ctl-show.h"
#include "ctl.h"

char *ctl_printable(const char *text)
{
	char *copy = g_utf8_make_valid(text, -1);

	for (char *at = copy; *at; at = g_utf8_next_char(at))
		if (g_unichar_iscntrl(g_utf8_get_char(at)))
			/* Control characters have one byte, or two. */
			memset(at, '?', (size_t)(g_utf8_next_char(at) - at));
	return copy;
}

void ctl_counters_json(struct json *json, const struct NC_cache_stat *stat)
{
	for (size_t i = 0; i < ctl_counter_count; i++) {
		const struct ctl_counter *counter = &ctl_counters[i];

		if (counter->count == 1) {
			json_number(json, counter->name, ctl_counter_value(counter, stat, 0));
			continue;
		}
		json_open(json, counter->name, '{');
		for (unsigned at = 0; at < counter->count; at++)
			json_number(json, ctl_methods[at], ctl_counter_value(counter, stat, at));
		json_close(json, '}');
	}
	json_text(json, "uring", stat->uring);
	json_text(json, "kernel", stat->kernel);
}

static void print_counter(const char *name, const char *method, uint64_t value)
{
	char *whole = g_strdup_printf("%s%s%s", name, method ? "." : "", method ? method : "");

	printf("%-20s %" PRIu64 "\n", whole, value);
	g_free(whole);
}

static void print_text(const char *name, const char *text)
{
	char *printable = ctl_printable(text);

	printf("%-20s %s\n", name, printable);
	g_free(printable);
}

static void print_counters(const struct NC_cache_stat *stat)
{
	for (size_t i = 0; i < ctl_counter_count; i++) {
		const struct ctl_counter *counter = &ctl_counters[i];

		for (unsigned at = 0; at < counter->count; at++)
			print_counter(counter->name, counter->count > 1 ? ctl_methods[at] : NULL,
				      ctl_counter_value(counter, stat, at));
	}
	print_text("uring", stat->uring);
	print_text("kernel", stat->kernel);
}

/* --- units ---------------------------------------------------------------------------- */

static const char *kind_name(enum NC_kind kind)
{
	switch (kind) {
	case NC_KIND_RECYCLED:
		return "recycled";
	case NC_KIND_APPENDED:
		return "appended";
	case NC_KIND_SEALED:
		return "sealed";
	case NC_KIND_KERNEL:
		return "kernel";
	default:
		return "unknown";
	}
}

static void unit_json(struct json *json, const struct NC_stat *unit)
{
	json_open(json, NULL, '{');
	json_id(json, "id", unit->id);
	json_number(json, "size", unit->size);
	json_number(json, "fraglen", unit->fraglen);
	json_number(json, "fragments", unit->fragments);
	json_text(json, "kind", kind_name(unit->kind));
	json_number(json, "member", unit->member);
	json_number(json, "holds", unit->holds);
	json_number(json, "session", (uint64_t)unit->session);
	json_number(json, "since", unit->since);
	json_close(json, '}');
}

static void print_units(const struct ctl *ctl, const GArray *units)
{
	struct json json = {.to = stdout};

	if (ctl->json)
		json_open(&json, NULL, '[');
	else
		printf("%20s %12s %10s %9s %-8s %6s %5s\n", "ID", "SIZE", "FRAGLEN", "FRAGMENTS",
		       "KIND", "MEMBER", "HOLDS");
	for (guint i = 0; i < units->len; i++) {
		const struct NC_stat *unit = &g_array_index(units, struct NC_stat, i);

		if (ctl->json)
			unit_json(&json, unit);
		else
			printf("%20zu %12zu %10zu %9zu %-8s %6u %5u\n", unit->id, unit->size,
			       unit->fraglen, unit->fragments, kind_name(unit->kind), unit->member,
			       unit->holds);
	}
	if (ctl->json)
		json_close(&json, ']');
}

static gint by_id(gconstpointer a, gconstpointer b)
{
	size_t one = ((const struct NC_stat *)a)->id, other = ((const struct NC_stat *)b)->id;

	return one < other ? -1 : one > other;
}

#define PAGE 256

static int gather(const struct ctl *ctl, GArray *units)
{
	size_t cursor = 0, before;
	struct NC_stat page[PAGE];
	int count;

	do {
		before = cursor;
		count = NC_list(ctl->cache, &cursor, page, sizeof(*page), PAGE);
		if (count < 0)
			return ctl_cache_failed(ctl, "listing", errno);
		/* A cursor that does not advance would make the list endless. */
		if (count > PAGE || (cursor && cursor <= before))
			return ctl_cache_failed(ctl, "listing", EPROTO);
		g_array_append_vals(units, page, (guint)count);
	} while (cursor);
	g_array_sort(units, by_id);
	return 0;
}

int ctl_list(struct ctl *ctl, int argc, char **argv)
{
	int status = ctl_options(ctl, NULL, &argc, &argv);
	GArray *units;

	if (!status && argc > 1)
		status = ctl_misused(ctl, "\"%s\": list takes no arguments", argv[1]);
	if (!status)
		status = ctl_attach(ctl, CTL_ANYBODY);
	if (status)
		return status;
	units = g_array_new(FALSE, FALSE, sizeof(struct NC_stat));
	status = gather(ctl, units);
	if (!status)
		print_units(ctl, units);
	g_array_free(units, TRUE);
	return status ? status : ctl_flush();
}

/* --- stat --------------------------------------------------------------------------------- */

static int stat_cache(struct ctl *ctl)
{
	struct json json = {.to = stdout};
	struct NC_cache_stat stat;
	int status = ctl_attach(ctl, CTL_OPERATOR);

	if (status)
		return status;
	if (NC_cache_stat(ctl->cache, &stat, sizeof(stat)) < 0)
		return ctl_cache_failed(ctl, "statistics", errno);
	if (ctl->json) {
		json_open(&json, NULL, '{');
		ctl_counters_json(&json, &stat);
		json_close(&json, '}');
	} else {
		print_counters(&stat);
	}
	return ctl_flush();
}

static int stat_units(struct ctl *ctl, int argc, char **argv)
{
	GArray *units = g_array_new(FALSE, FALSE, sizeof(struct NC_stat));
	int status = ctl_attach(ctl, CTL_ANYBODY), written;
	struct NC_stat stat;
	size_t id;

	if (status) {
		g_array_free(units, TRUE);
		return status;
	}
	for (int i = 1; i < argc; i++) {
		if (ctl_read_id(argv[i], &id) && NC_stat(ctl->cache, id, &stat, sizeof(stat)) == 0)
			g_array_append_val(units, stat);
		else
			status = ctl_unit_failed(ctl, id, errno);
	}
	print_units(ctl, units);
	g_array_free(units, TRUE);
	written = ctl_flush();
	return status ? status : written;
}

int ctl_stat(struct ctl *ctl, int argc, char **argv)
{
	int status = ctl_options(ctl, NULL, &argc, &argv);
	size_t id;

	for (int i = 1; i < argc && !status; i++)
		if (!ctl_read_id(argv[i], &id))
			status = ctl_misused(ctl, "\"%s\": not a cache id", argv[i]);
	if (status)
		return status;
	return argc > 1 ? stat_units(ctl, argc, argv) : stat_cache(ctl);
}
