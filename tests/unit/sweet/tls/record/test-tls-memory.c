/* SPDX-License-Identifier: MIT */
/*
 * Buffers of records are used again by the thread that gave them back, and are freed with it; all
 * else comes from malloc().
 */
#include <pthread.h>
#include <string.h>

#include <openssl/crypto.h>

#include "tls/record/tls-memory.h"

#include "suite.h"

#define RECORD (16384u + 400u) /* a record, and what OpenSSL adds */
#define BURST 65792u	       /* records that are sent together */
#define KEPT 4u

static void *buffers[2 * KEPT];

static void *give_back_all(void *unused)
{
	for (unsigned i = 0; i < 2 * KEPT; i++) {
		buffers[i] = OPENSSL_malloc(RECORD);
		ck_assert_ptr_nonnull(buffers[i]);
		memset(buffers[i], 'a' + (int)i, RECORD);
	}
	for (unsigned i = 0; i < 2 * KEPT; i++)
		OPENSSL_free(buffers[i]);
	return unused;
}

static void in_a_thread(void *(*work)(void *))
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, work, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

static void *use_again(void *unused)
{
	void *again[KEPT];

	(void)give_back_all(NULL);
	/* The last one that was kept comes first, however long it was. */
	for (unsigned i = 0; i < KEPT; i++) {
		again[i] = i % 2 ? OPENSSL_realloc(NULL, RECORD + 100 * i)
				 : OPENSSL_malloc(RECORD + 100 * i);
		ck_assert_ptr_eq(again[i], buffers[KEPT - 1 - i]);
		memset(again[i], 'z', RECORD + 100 * i);
	}
	for (unsigned i = 0; i < KEPT; i++)
		OPENSSL_free(again[i]);
	return unused;
}

START_TEST(used_again)
{
	in_a_thread(use_again);
}
END_TEST

/* A buffer of records that are sent together takes the place of one of a record, and has its bytes. */
static void *grow(void *unused)
{
	char *record = OPENSSL_malloc(RECORD), *burst, *again;

	memset(record, 'r', RECORD);
	burst = OPENSSL_realloc(record, BURST);
	ck_assert_ptr_nonnull(burst);
	for (unsigned i = 0; i < RECORD; i++)
		ck_assert_int_eq(burst[i], 'r');
	memset(burst, 'b', BURST);
	again = OPENSSL_malloc(RECORD);
	ck_assert_ptr_eq(again, record);
	OPENSSL_free(burst);
	again = OPENSSL_realloc(again, BURST + 100);
	ck_assert_ptr_eq(again, burst);
	memset(again, 'c', BURST + 100);
	OPENSSL_free(again);
	/* And back. */
	record = OPENSSL_realloc(OPENSSL_malloc(BURST), RECORD);
	ck_assert_ptr_nonnull(record);
	OPENSSL_free(record);
	return unused;
}

START_TEST(grown)
{
	in_a_thread(grow);
}
END_TEST

/* Under Valgrind and ASan, nothing is lost. */
START_TEST(freed_with_the_thread)
{
	for (unsigned i = 0; i < 10; i++)
		in_a_thread(give_back_all);
}
END_TEST

static void *use_others(void *unused)
{
	static const size_t lengths[] = {1, 100, 16384, 18433, 65536, 67585};
	char *grown = NULL;

	(void)give_back_all(NULL);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		char *other = OPENSSL_malloc(lengths[i]);

		ck_assert_ptr_nonnull(other);
		for (unsigned j = 0; j < KEPT; j++)
			ck_assert_ptr_ne(other, buffers[j]);
		memset(other, 1, lengths[i]);
		grown = OPENSSL_realloc(grown, lengths[i]);
		ck_assert_ptr_nonnull(grown);
		grown[lengths[i] - 1] = 'x';
		OPENSSL_free(other);
	}
	ck_assert_ptr_null(OPENSSL_malloc(0));
	ck_assert_ptr_null(OPENSSL_realloc(grown, 0));
	OPENSSL_free(NULL);
	return unused;
}

START_TEST(other_lengths)
{
	in_a_thread(use_others);
}
END_TEST

static void fill(TCase *tcase)
{
	tls_memory_init();
	tcase_add_test(tcase, used_again);
	tcase_add_test(tcase, grown);
	tcase_add_test(tcase, freed_with_the_thread);
	tcase_add_test(tcase, other_lengths);
}

RUN_SUITE("tls-memory", fill)
