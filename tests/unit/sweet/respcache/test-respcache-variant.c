/* SPDX-License-Identifier: MIT */
/*
 * test-respcache-variant.c - unit tests of respcache-variant.c: which responses have
 * variants, their lines and tags, and that they end with their source.
 */
#include <nabc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/slice.h"
#include "coding/encoder.h"
#include "files/compressor.h"
#include "http/accept.h"
#include "respcache/respcache.h"

#include "respcache-fixture.h"
#include "suite.h"
#include "unit-holds.h"

#define SIZE 20000
#define HTML "Content-Type: text/html\r\n"
#define A GET("/a", "")

static struct compressor *compressor;
static enum coding coding;

/* Returns false if no coding is built in. */
static bool open_variants(void)
{
	open_all(100, 1 << 20);
	compressor = compressor_open();
	ck_assert_ptr_nonnull(compressor);
	while (!encoder_of(coding) && coding + 1 < CODINGS)
		coding++;
	return encoder_of(coding);
}

static void close_variants(void)
{
	compressor_close(compressor);
	close_all();
}

static struct compressor_stat stat_of_compressor(void)
{
	struct compressor_stat stat;

	compressor_stat(compressor, &stat);
	return stat;
}

static struct compressor_stat wait_idle(void)
{
	struct compressor_stat stat;

	do
		stat = stat_of_compressor();
	while (stat.waiting);
	return stat;
}

static unsigned holds_of(size_t id)
{
	struct NC_stat stat;

	ck_assert_int_eq(NC_stat(NULL, id, &stat, sizeof(stat)), 0);
	return stat.holds;
}

/* Stores a response of that letter and size, and returns its entry, held. */
static struct respcache_entry *store(struct asker *asker, const char *lines, size_t size)
{
	struct NC_range range = make_unit('a', size);

	ck_assert_int_eq(look(asker, A, BEGIN), RESPCACHE_FETCH);
	ck_assert(answer_with(asker->ask.flight, lines, &range, 1, true, BEGIN));
	ck_assert_int_eq(release_id(NULL, range.id), 0);
	ck_assert_int_eq(look(asker, A, BEGIN), RESPCACHE_HIT);
	return asker->ask.entry;
}

static struct respcache_entry *make(struct respcache_entry *entry)
{
	respcache_compress(responses, entry, coding, compressor);
	(void)wait_idle();
	return respcache_variant(entry, coding);
}

static bool has_line(struct slice lines, const char *line)
{
	return memmem(lines.at, lines.length, line, strlen(line));
}

static unsigned count_lines(struct slice lines, const char *name)
{
	unsigned count = 0;

	for (size_t i = 0; i + strlen(name) <= lines.length; i++)
		count += strncasecmp(lines.at + i, name, strlen(name)) == 0;
	return count;
}

START_TEST(test_lines)
{
	struct respcache_entry *entry, *variant;
	const struct respcache_view *view;
	struct asker asker;
	char coded[64];

	if (open_variants()) {
		entry = store(&asker, KEEP_10 HTML "ETag: \"v\"\r\nX-Own: 1\r\n", SIZE);
		ck_assert(respcache_view(entry)->can_code && !respcache_view(entry)->varies);
		variant = make(entry);
		ck_assert_ptr_nonnull(variant);
		view = respcache_view(variant);
		snprintf(coded, sizeof(coded), "Content-Encoding: %s\r\n", coding_token(coding));
		ck_assert(has_line(view->head, coded) && !has_line(view->lean, coded));
		ck_assert(has_line(view->head, "Vary: Accept-Encoding\r\n"));
		ck_assert(has_line(view->lean, "Vary: Accept-Encoding\r\n"));
		ck_assert(has_line(view->head, HTML) && has_line(view->head, "X-Own: 1\r\n"));
		ck_assert(!has_line(view->head, "ETag: \"v\"\r\n"));
		ck_assert_uint_eq(count_lines(view->head, "ETag:"), 1);
		ck_assert_uint_eq(count_lines(view->lean, "ETag:"), 1);
		snprintf(coded, sizeof(coded), "\"v-%s.", coding_token(coding));
		ck_assert_int_eq(strncmp(view->etag.at, coded, strlen(coded)), 0);
		ck_assert_int_eq(view->etag.at[view->etag.length - 1], '"');
		ck_assert_int_eq(view->status, 200);
		ck_assert_uint_eq(view->range_count, 1);
		ck_assert_uint_lt(view->length, SIZE / 10);
		ck_assert_uint_eq(view->length, view->ranges[0].length);
		ck_assert_uint_eq(respcache_age(variant, BEGIN + 3 * SECOND), 3);
		ck_assert_uint_eq(respcache_codings(variant), 0);
		respcache_put(variant);
		respcache_put(entry);
	}
	close_variants();
}
END_TEST

START_TEST(test_tags)
{
	static const struct {
		const char *line, *begin; /* NULL: none */
	} tags[] = {{"", NULL},
		    {"ETag: W/\"v\"\r\n", "W/\"v-"},
		    {"ETag: \"\"\r\n", "\"-"},
		    {"ETag: \"\r\n", NULL},
		    {"ETag: odd\r\n", NULL}};
	struct respcache_entry *entry, *variant;
	struct asker asker;
	char lines[200];

	for (unsigned i = 0; i < sizeof(tags) / sizeof(tags[0]) && open_variants(); i++) {
		const struct respcache_view *view;

		snprintf(lines, sizeof(lines), KEEP_10 HTML "%s", tags[i].line);
		entry = store(&asker, lines, SIZE);
		variant = make(entry);
		ck_assert_ptr_nonnull(variant);
		view = respcache_view(variant);
		if (tags[i].begin)
			ck_assert_int_eq(
				strncmp(view->etag.at, tags[i].begin, strlen(tags[i].begin)), 0);
		else
			ck_assert_uint_eq(view->etag.length, 0);
		ck_assert_uint_eq(count_lines(view->head, "ETag:"), tags[i].begin != NULL);
		respcache_put(variant);
		respcache_put(entry);
		close_variants();
	}
}
END_TEST

START_TEST(test_which)
{
	static const struct {
		const char *lines;
		bool good;
	} cases[] = {
		{HTML, true},
		{"", false},
		{HTML "Content-Encoding: gzip\r\n", false},
		{HTML "content-encoding: identity\r\n", false},
		{HTML "Content-Range: bytes 0-1/2\r\n", false},
		{HTML "Content-MD5: x\r\n", false},
		{HTML "Content-Digest: x\r\n", false},
		{HTML "Repr-Digest: x\r\n", false},
		{HTML "Digest: x\r\n", false},
		{HTML "Cache-Control: no-transform\r\n", false},
		{HTML "Cache-Control: max-age=9,No-Transform\r\n", false},
		{HTML "Content-Language: de\r\nX-Encoding: x\r\n", true},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct respcache_entry *entry;
		struct asker asker;
		char lines[200];

		(void)open_variants();
		snprintf(lines, sizeof(lines), KEEP_10 "%s", cases[i].lines);
		entry = store(&asker, lines, SIZE);
		ck_assert_msg((respcache_codings(entry) != 0) == cases[i].good, "%s", lines);
		if (!cases[i].good)
			ck_assert_ptr_null(make(entry));
		respcache_put(entry);
		close_variants();
	}
}
END_TEST

/* Once, however often; and its memory counts. */
START_TEST(test_once)
{
	struct respcache_entry *entry, *variant, *again;
	struct asker asker;
	uint64_t bytes;

	if (open_variants()) {
		entry = store(&asker, KEEP_10 HTML, SIZE);
		bytes = stat_now().bytes;
		variant = make(entry);
		again = make(entry);
		ck_assert_ptr_eq(variant, again);
		ck_assert_uint_eq(wait_idle().made, 1);
		ck_assert_uint_gt(stat_now().bytes, bytes);
		ck_assert_uint_eq(stat_now().entries, 1);
		respcache_put(variant);
		respcache_put(again);
		respcache_put(entry);
		ck_assert_int_eq(respcache_purge(responses, SLICE("/a"), false), 1);
		ck_assert_uint_eq(stat_now().bytes, 0);
	}
	close_variants();
}
END_TEST

/* A purge destroys its unit, also while both are being sent. */
START_TEST(test_purged)
{
	struct respcache_entry *entry, *variant;
	struct asker asker;
	size_t id;

	if (open_variants()) {
		entry = store(&asker, KEEP_10 HTML "X-NABC-Tag: t\r\n", SIZE);
		variant = make(entry);
		id = respcache_view(variant)->ranges[0].id;
		ck_assert(is_alive(id));
		ck_assert_int_eq(respcache_purge(responses, SLICE("t"), false), 1);
		ck_assert(!is_alive(id));
		respcache_put(variant);
		respcache_put(entry);
	}
	close_variants();
}
END_TEST

/* One that is ready after its source has left the cache is not stored. */
START_TEST(test_purged_meanwhile)
{
	struct respcache_entry *entry;
	uint64_t compressed = 0;
	struct NC_cache_stat stat;
	struct asker asker;
	size_t id;

	if (open_variants()) {
		/* So large that the purge is faster. */
		entry = store(&asker, KEEP_10 HTML, 200 * SIZE);
		id = respcache_view(entry)->ranges[0].id;
		respcache_compress(responses, entry, coding, compressor);
		/* Round 0: before it begins, most probably; else while it runs. */
		while (_i && compressed == 0 && holds_of(id) < 2)
			compressed = stat_of_compressor().made;
		ck_assert_int_eq(respcache_purge(responses, SLICE("/a"), false), 1);
		(void)wait_idle();
		ck_assert_ptr_null(make(entry));
		respcache_put(entry);
		ck_assert_int_eq(NC_cache_stat(units, &stat, sizeof(stat)), 0);
		ck_assert_uint_eq(stat.units, 0);
	}
	close_variants();
}
END_TEST

/* If its unit was evicted, the source is sent. */
START_TEST(test_evicted)
{
	struct respcache_entry *entry, *variant;
	struct asker asker;

	if (open_variants()) {
		entry = store(&asker, KEEP_10 HTML, SIZE);
		variant = make(entry);
		ck_assert_int_eq(NC_destroy(NULL, respcache_view(variant)->ranges[0].id), 0);
		respcache_put(variant);
		ck_assert_ptr_null(respcache_variant(entry, coding));
		ck_assert_ptr_null(make(entry));
		respcache_put(entry);
		ck_assert(hits(A, 'a', BEGIN));
	}
	close_variants();
}
END_TEST

/* Lines that become too long for a response: none. */
START_TEST(test_long_lines)
{
	static char lines[RESPCACHE_HEAD_MAX + 100];
	struct respcache_entry *entry;
	struct asker asker;
	size_t length;

	if (open_variants()) {
		length = (size_t)sprintf(lines, KEEP_10 HTML "X: ");
		memset(lines + length, 'x', RESPCACHE_HEAD_MAX - length - 2);
		strcpy(lines + RESPCACHE_HEAD_MAX - 2, "\r\n");
		entry = store(&asker, lines, SIZE);
		ck_assert_uint_eq(respcache_view(entry)->head.length, RESPCACHE_HEAD_MAX);
		ck_assert_ptr_null(make(entry));
		ck_assert_uint_eq(respcache_codings(entry) & 1u << coding, 0);
		respcache_put(entry);
	}
	close_variants();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_lines);
	tcase_add_test(tcase, test_tags);
	tcase_add_test(tcase, test_which);
	tcase_add_test(tcase, test_once);
	tcase_add_test(tcase, test_purged);
	tcase_add_loop_test(tcase, test_purged_meanwhile, 0, 2);
	tcase_add_test(tcase, test_evicted);
	tcase_add_test(tcase, test_long_lines);
}

RUN_SUITE("respcache-variant", fill)
