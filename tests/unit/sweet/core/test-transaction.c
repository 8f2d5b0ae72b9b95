/* SPDX-License-Identifier: MIT */
/*
 * test-transaction.c - unit tests of transaction.c: nothing of an earlier request is left in
 * recycled memory; room for long heads; heads that are made of fields.
 */
#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"
#include "config/configuration.h"
#include "core/site.h"
#include "core/transaction.h"
#include "http/fields.h"

#include "suite.h"

#define AS_BEFORE 0xa5 /* each byte of what an earlier request left */

static struct transaction transaction, expected;

START_TEST(test_init)
{
	struct config *config = g_new0(struct config, 1);
	struct config_ref *ref;
	struct thread *thread = (void *)&expected; /* only its address counts */

	config->references = 1;
	ref = config_ref_open(site_new(config));
	memset(&transaction, AS_BEFORE, sizeof(transaction));
	transaction_init(&transaction, thread, ref);
	ck_assert_ptr_eq(transaction.thread, thread);
	ck_assert_ptr_eq(transaction.config_ref, ref);
	ck_assert_int_eq(transaction.response.coding, TRANSACTION_AS_IT_IS);
	ck_assert_str_eq(transaction.path, "");
	transaction.thread = NULL;
	transaction.config_ref = NULL;
	transaction.response.coding = 0;
	ck_assert_mem_eq(&transaction, &expected, offsetof(struct transaction, scratch));
	/* So that a request uses few pages of memory. */
	ck_assert_uint_eq((unsigned char)transaction.path[1], AS_BEFORE);
	ck_assert_uint_eq((unsigned char)transaction.head_buffer[0], AS_BEFORE);
	transaction.config_ref = ref;
	transaction_release(&transaction);
	config_ref_release(ref);
}
END_TEST

START_TEST(test_room)
{
	memset(&transaction, 0, sizeof(transaction));
	ck_assert_ptr_eq(transaction_lines(&transaction), transaction.head_buffer);
	for (size_t bytes = 1; bytes < 100000; bytes = bytes * 7 + 1) {
		ck_assert(transaction_make_room(&transaction, bytes));
		ck_assert_uint_eq(transaction.response.long_room, bytes);
		memset(transaction_lines(&transaction), 'x', bytes);
		ck_assert_int_eq(transaction_lines(&transaction)[bytes - 1], 'x');
	}
	transaction_drop_room(&transaction);
	ck_assert_ptr_eq(transaction_lines(&transaction), transaction.head_buffer);
	ck_assert_uint_eq(transaction.response.long_room, 0);
}
END_TEST

/* The fields may refer to the memory that the new head replaces. */
START_TEST(test_set_head)
{
	static const char lines[] = "A: 1\r\nB: 2\r\n";
	struct fields fields;

	memset(&transaction, 0, sizeof(transaction));
	ck_assert(transaction_make_room(&transaction, strlen(lines)));
	memcpy(transaction_lines(&transaction), lines, strlen(lines));
	fields_init(&fields);
	fields_read(&fields, (struct slice){transaction_lines(&transaction), strlen(lines)});
	fields_add(&fields, field_of(FIELD_AGE, SLICE("3")));
	ck_assert(transaction_set_head(&transaction, &fields));
	fields_free(&fields);
	ck_assert_ptr_eq(transaction.response.head, transaction.response.long_head);
	ck_assert(slice_is(
		(struct slice){transaction.response.head, transaction.response.head_length},
		"A: 1\r\nB: 2\r\nAge: 3\r\n"));
	transaction_drop_room(&transaction);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_init);
	tcase_add_test(tcase, test_room);
	tcase_add_test(tcase, test_set_head);
}

RUN_SUITE("transaction", fill)
