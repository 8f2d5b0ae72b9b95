/* SPDX-License-Identifier: MIT */
/*
 * test-status-field.c - unit tests of status-field.c: the table contains all counters
 * of the cache, each once, and in the form that Prometheus requires.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <nabc.h>

#include "handler/status-data.h"
#include "handler/status-field.h"

#include "suite.h"

static const struct status_field *field_at(size_t offset)
{
	for (unsigned i = 0; i < status_field_count; i++)
		if (status_fields[i].offset == offset)
			return &status_fields[i];
	return NULL;
}

/* Texts are distinguished from numbers. */
static bool is_text(size_t at)
{
	static const struct NC_cache_stat *const stat;
	size_t uring = offsetof(struct NC_cache_stat, uring);
	size_t kernel = offsetof(struct NC_cache_stat, kernel);

	return (at >= uring && at < uring + sizeof(stat->uring)) ||
	       (at >= kernel && at < kernel + sizeof(stat->kernel));
}

/* A field that the library adds must be reported as well. */
START_TEST(test_all_of_the_cache)
{
	size_t start = offsetof(struct status_data, cache);

	for (size_t at = 0; at < sizeof(struct NC_cache_stat); at += sizeof(uint64_t)) {
		if (is_text(at))
			continue;
		ck_assert_msg(field_at(start + at), "nothing tells the cache's number at %zu", at);
	}
}
END_TEST

static bool same(const char *one, const char *other)
{
	return g_strcmp0(one, other) == 0;
}

START_TEST(test_each_once)
{
	for (unsigned i = 0; i < status_field_count; i++) {
		const struct status_field *field = &status_fields[i];

		ck_assert(!field->group == !field->key);
		for (unsigned k = 0; k < i; k++) {
			const struct status_field *other = &status_fields[k];

			ck_assert_msg(other->offset != field->offset, "%s", field->metric);
			ck_assert(!field->group || !same(field->group, other->group) ||
				  !same(field->key, other->key));
			ck_assert_msg(!same(field->metric, other->metric) ||
					      !same(field->label, other->label),
				      "%s", field->metric);
		}
	}
}
END_TEST

START_TEST(test_metrics)
{
	const struct status_field *before = NULL;
	GHashTable *done = g_hash_table_new(g_str_hash, g_str_equal);

	for (unsigned i = 0; i < status_field_count; i++) {
		const struct status_field *field = &status_fields[i];

		ck_assert_msg(g_str_has_suffix(field->metric, "_total") == !field->gauge, "%s",
			      field->metric);
		if (before && same(before->metric, field->metric)) {
			/* One family: one type, a label each, the help text of the first. */
			ck_assert(before->gauge == field->gauge);
			ck_assert_ptr_nonnull(field->label);
			ck_assert_ptr_nonnull(before->label);
			ck_assert_ptr_null(field->help);
		} else {
			ck_assert_msg(field->help, "%s has no help", field->metric);
			ck_assert_msg(g_hash_table_add(done, (gpointer)field->metric),
				      "%s comes again", field->metric);
		}
		before = field;
	}
	g_hash_table_destroy(done);
}
END_TEST

START_TEST(test_value)
{
	struct status_data *data = g_new0(struct status_data, 1);

	data->cache.evictions = 7;
	ck_assert_uint_eq(
		status_field_value(field_at(offsetof(struct status_data, cache.evictions)), data),
		7);
	g_free(data);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_all_of_the_cache);
	tcase_add_test(tcase, test_each_once);
	tcase_add_test(tcase, test_metrics);
	tcase_add_test(tcase, test_value);
}

RUN_SUITE("status-field", fill)
