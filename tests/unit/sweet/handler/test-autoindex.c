/* SPDX-License-Identifier: MIT */
/*
 * test-autoindex.c - unit tests of autoindex.c: requests that wait for one listing are answered in
 * several turns of their loop, also if some leave meanwhile; which requests wait for the same one.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nabc.h>

#include "base/list.h"
#include "config/configuration.h"
#include "core/server.h"
#include "core/site.h"
#include "core/transaction.h"
#include "event/loop.h"
#include "event/thread-pool.h"
#include "files/file-cache.h"
#include "handler/autoindex.h"
#include "handler/handler-thread.h"

#include "file-cache-fixture.h"
#include "loop-fixture.h"
#include "suite.h"
#include "turn-fixture.h"

#define CROWD (5 * LOOP_QUEUED_MAX)

/*
 * How it goes: the list is long; the folder does not exist; clients leave before the list is there, or
 * at an answer.
 */
enum { LISTED, LONG_LIST, MISSING, ALL_LEAVE, SOME_LEAVE, REST_LEAVES, CASES };

#define FILES 1000u /* of the long list */

static struct server server;
static struct thread thread;
static struct site_scope open_scope;
static struct site site = {.scopes = &open_scope};
static struct config_ref ref = {.site = &site, .users = 1};
static struct scope scope;
static struct transaction *crowd[CROWD];
static struct turn turn;
static unsigned next_answer, disorder, answers[600];
static int how;
static unsigned different = 1; /* listings that the requests want, in turn */
static bool left[CROWD];

static unsigned number_of(const struct transaction *transaction)
{
	for (unsigned i = 0; i < CROWD; i++)
		if (crowd[i] == transaction)
			return i;
	ck_abort_msg("another transaction");
}

static void leave(unsigned number)
{
	left[number] = true;
	transaction_gone(crowd[number]);
}

/* Some of those that wait leave when another is answered. */
static void done(struct transaction *transaction)
{
	unsigned number = number_of(transaction);

	EVENT(answers[transaction->response.status]++);
	transaction_dismiss(transaction);
	if (left[number]) {
		EVENT(turn.all++);
		return;
	}
	EVENT(disorder += different == 1 && number < next_answer; next_answer = number + 1);
	if (how == SOME_LEAVE && number % 4 == 0)
		leave(number + 2);
	for (unsigned i = 1; how == REST_LEAVES && i < CROWD; i++)
		leave(i);
	turn_count(&turn);
}

static void ask_all(void *argument)
{
	static const struct transaction_owner owner = {.done = done};
	static const struct sockaddr client = {.sa_family = AF_UNIX};

	(void)argument;
	for (unsigned i = 0; i < CROWD; i++) {
		struct transaction *transaction = must_alloc(sizeof(*transaction));

		transaction_init(transaction, &thread, &ref);
		transaction->scope = &scope;
		transaction->peer.remote = &client;
		transaction->owner = &owner;
		snprintf(transaction->path, sizeof(transaction->path), "/as%u/", i % different);
		crowd[i] = transaction;
		ck_assert_int_eq(autoindex_respond(transaction, "/folder/",
						   (struct autoindex_wish){.json = true}),
				 RESPOND_LATER);
	}
}

static void all_leave(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < CROWD; i++)
		leave(i);
}

/* Keeps the only helper busy. */
static int gate[2];

static void gate_waits(struct job *job)
{
	char byte;

	(void)job;
	(void)!read(gate[0], &byte, 1);
}

static void gate_done(struct job *job)
{
	(void)job;
}

static struct job busy;

static void begin(void)
{
	open_all(8 << 20, 1 << 20, 1, 0);
	ck_assert_int_eq(pipe2(gate, O_CLOEXEC), 0);
	server = (struct server){.slow_pool = thread_pool, .max_unit = 1 << 20};
	thread.server = &server;
	thread.loop = runners[0].loop;
	open_scope.file_cache = content;
	handler_thread_open(&thread);
	turn_watch(&turn, &runners[0]);
	busy = (struct job){
		.work = gate_waits, .done = gate_done, .class = JOB_SLOW, .loop = runners[0].loop};
	thread_pool_submit(thread_pool, &busy);
}

/* Nothing of the requests is left. */
static void end(void)
{
	settle(&runners[0]);
	SEEN(list_is_empty(&thread.handler->listings));
	handler_thread_close(&thread);
	for (unsigned i = 0; i < CROWD; i++) {
		transaction_release(crowd[i]);
		free(crowd[i]);
	}
	close(gate[0]);
	(void)rmdir(at("folder"));
	close_all();
}

START_TEST(test_crowd)
{
	char name[64];
	unsigned refused = (unsigned[CASES]){
		[ALL_LEAVE] = CROWD, [SOME_LEAVE] = CROWD / 4, [REST_LEAVES] = CROWD - 1}[_i];

	how = _i;
	begin();
	if (_i != MISSING)
		ck_assert_int_eq(mkdir(at("folder"), 0755), 0);
	for (unsigned i = 0; _i == LONG_LIST && i < FILES; i++) {
		snprintf(name, sizeof(name), "folder/a-name-that-makes-the-list-longer-%u", i);
		put(name, 'x', 1);
	}
	call(&runners[0], ask_all, NULL);
	SEEN(turn.all == 0);
	if (_i == ALL_LEAVE)
		call(&runners[0], all_leave, NULL);
	close(gate[1]);
	AWAIT(turn.all == CROWD);
	SEEN(turn.most <= (_i == LONG_LIST ? 1 : LOOP_QUEUED_MAX) && disorder == 0);
	SEEN(answers[503] == refused);
	SEEN(answers[_i == MISSING ? 404 : 200] == CROWD - refused);
	for (unsigned i = 0; _i == LONG_LIST && i < FILES; i++) {
		snprintf(name, sizeof(name), "folder/a-name-that-makes-the-list-longer-%u", i);
		ck_assert_int_eq(unlink(at(name)), 0);
	}
	end();
}
END_TEST

/* Equal requests have one listing, unless there are too many others to compare them with. */
START_TEST(test_different)
{
	struct thread_pool_stat stat;

	how = MISSING;
	different = _i ? CROWD / 4 : CROWD / 10;
	begin();
	call(&runners[0], ask_all, NULL);
	thread_pool_stat(thread_pool, &stat);
	ck_assert_uint_eq(stat.waiting[JOB_SLOW] + stat.run[JOB_SLOW],
			  1 + (_i ? CROWD : different));
	close(gate[1]);
	AWAIT(turn.all == CROWD);
	SEEN(turn.most <= LOOP_QUEUED_MAX && answers[404] == CROWD);
	end();
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_crowd, 0, CASES);
	tcase_add_loop_test(tcase, test_different, 0, 2);
}

RUN_SUITE("autoindex", fill)
