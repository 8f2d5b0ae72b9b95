/* SPDX-License-Identifier: MIT */
/*
 * test-status.c - unit tests of status.c: which clients may see it, in which form, and
 * its response while the server shuts down.  System tests check the sums.
 */
#include <arpa/inet.h>
#include <glib.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <nabc.h>

#include "auth/ip-acl.h"
#include "base/slice.h"
#include "config/arch.h"
#include "config/configuration.h"
#include "event/piece.h"
#include "core/server.h"
#include "core/site.h"
#include "core/thread-counters.h"
#include "core/transaction.h"
#include "event/data-path.h"
#include "event/loop.h"
#include "event/thread-pool.h"
#include "handler/status.h"
#include "http/request.h"

#include "status-fixture.h"
#include "suite.h"

static struct config config = {.status = true};
static struct site site = {.config = &config, .number = 3};
static struct config_ref generation = {.site = &site, .config = &config, .users = 1};
static struct server server = {.threads = 1,
			       .max_unit = (size_t)256 << 10,
			       .path = &data_path_nabc,
			       .arch = &archs[ARCH_AMPED]};
static struct thread_counters counters;
static struct thread thread = {.server = &server, .config_ref = &generation, .counters = &counters};
static struct transaction transaction;
static struct request request;

/* As a socket returns it; a text that is no network address makes that of a Unix socket. */
static const struct sockaddr *socket_address(const char *text)
{
	static struct sockaddr_in6 in6;
	static struct sockaddr_in in;
	static const struct sockaddr unix_address = {.sa_family = AF_UNIX};

	in6.sin6_family = AF_INET6;
	in.sin_family = AF_INET;
	if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
		return (const struct sockaddr *)(const void *)&in6;
	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		return (const struct sockaddr *)(const void *)&in;
	return &unix_address;
}

static void begin(const char *path, const char *address)
{
	memset(&transaction, 0, sizeof(transaction));
	memset(&request, 0, sizeof(request));
	transaction.thread = &thread;
	transaction.config_ref = &generation;
	transaction.request = &request;
	transaction.peer.remote = socket_address(address);
	strcpy(transaction.path, path);
}

static bool answers(const char *path, const char *address)
{
	begin(path, address);
	return status_answers(&transaction);
}

static void allow(char **addresses, char **denied)
{
	char *why;

	ip_acl_free(config.status_access);
	config.status_access = ip_acl_new(addresses, denied, &why);
	ck_assert_ptr_nonnull(config.status_access);
}

#define TEXT(text) ((char *)(intptr_t)(text))

static char *loopback[] = {TEXT("127.0.0.0/8"), TEXT("::1"), NULL};
static char *all[] = {TEXT("all"), NULL};
static char *local[] = {TEXT("unix"), NULL};

START_TEST(test_who)
{
	allow(loopback, NULL);
	ck_assert(answers("/.sweet/status", "127.0.0.1"));
	ck_assert(answers("/.sweet/status", "::1"));
	ck_assert(!answers("/.sweet/status", "192.0.2.1"));
	ck_assert(!answers("/.sweet/status", "2001:db8::1"));
	ck_assert(!answers("/.sweet/status", "unix"));
	ck_assert(answers("/.sweet/ready", "192.0.2.1"));
	allow(local, NULL);
	ck_assert(answers("/.sweet/status", "unix"));
	ck_assert(!answers("/.sweet/status", "127.0.0.1"));
	allow(NULL, all);
	ck_assert(!answers("/.sweet/metrics", "127.0.0.1"));
	ck_assert(answers("/.sweet/ready", "127.0.0.1"));
	config.status = false;
	ck_assert(!answers("/.sweet/ready", "127.0.0.1"));
	config.status = true;
	/* With addresses of its own, only there. */
	allow(all, NULL);
	config.status_listen = all;
	ck_assert(!answers("/.sweet/ready", "127.0.0.1"));
	ck_assert(!answers("/.sweet/status", "127.0.0.1"));
	transaction.peer.status_only = true;
	ck_assert(status_answers(&transaction));
	transaction.peer.status_only = false;
	config.status_listen = NULL;
}
END_TEST

START_TEST(test_paths)
{
	static const char *const good[] = {"/.sweet/status", "/.sweet/status.json",
					   "/.sweet/status.html", "/.sweet/metrics",
					   "/.sweet/ready"};
	static const char *const others[] = {"/",
					     "/.sweet",
					     "/.sweet/",
					     "/.sweet/statu",
					     "/.sweet/status/",
					     "/.sweet/status.",
					     "/sweet/status",
					     "/x/.sweet/status",
					     "/.SWEET/status",
					     "/.sweet//status"};

	allow(loopback, NULL);
	for (unsigned i = 0; i < G_N_ELEMENTS(good); i++)
		ck_assert(answers(good[i], "127.0.0.1"));
	for (unsigned i = 0; i < G_N_ELEMENTS(others); i++)
		ck_assert_msg(!answers(others[i], "127.0.0.1"), "%s", others[i]);
}
END_TEST

START_TEST(test_ready)
{
	for (unsigned draining = 0; draining < 2; draining++) {
		atomic_store(&server.leaving, draining);
		begin("/.sweet/ready", "192.0.2.1");
		ck_assert_int_eq(status_respond(&transaction), RESPOND_NOW);
		ck_assert_int_eq(transaction.response.status, draining ? 503 : 200);
		ck_assert_uint_eq(transaction.response.length,
				  strlen(draining ? "draining\n" : "ready\n"));
		ck_assert_mem_eq(transaction.piece.data, draining ? "draining\n" : "ready\n",
				 transaction.response.length);
		transaction_finish(&transaction);
	}
	atomic_store(&server.leaving, false);
}
END_TEST

static const struct {
	const char *accept; /* NULL: no such field */
	bool html;
} accepts[] = {
	{NULL, false},
	{"", false},
	{"*/*", false},
	{"application/json", false},
	{"text/htm", false},
	{"text/html", true},
	{"application/xhtml+xml, TEXT/HTML;q=0.9", true},
};

/* As a HEAD request, so that no cache is needed for the page. */
START_TEST(test_accept)
{
	NC_cache *cache =
		NC_cache_open(&(struct NC_cache_options)NC_CACHE_OPTIONS_INIT(.memory = 1 << 20));
	GString *head;

	begin("/.sweet/status", "127.0.0.1");
	server.cache = cache;
	server.per_thread[0] = &thread;
	server.thread_pool = thread_pool_open(1, 1);
	server.slow_pool = thread_pool_open(1, 1);
	ck_assert(server.thread_pool && server.slow_pool);
	transaction.head_only = true;
	thread.loop = loop_open(LOOP_EPOLL, LOOP_MANY, (char[160]){0}, 160);
	if (accepts[_i].accept) {
		request.header_count = 1;
		request.headers[0].name = (struct slice){"Accept", 6};
		request.headers[0].value =
			(struct slice){accepts[_i].accept, strlen(accepts[_i].accept)};
	}
	ck_assert_int_eq(status_respond(&transaction), RESPOND_NOW);
	ck_assert_int_eq(transaction.response.status, 200);
	head = g_string_new_len(transaction.response.head,
				(gssize)transaction.response.head_length);
	has(head, accepts[_i].html ? "\r\nContent-Type: text/html"
				   : "\r\nContent-Type: application/json\r\n");
	has(head, "\r\nVary: Accept\r\n");
	has(head, "Cache-Control: no-store\r\n");
	ck_assert(!strstr(head->str, "Content-Security-Policy") == !accepts[_i].html);
	g_string_free(head, TRUE);
	transaction_finish(&transaction);
	thread_pool_close(server.thread_pool);
	thread_pool_close(server.slow_pool);
	server.thread_pool = server.slow_pool = NULL;
	loop_close(thread.loop);
	ck_assert_int_eq(NC_cache_close(cache), 0);
}
END_TEST

/* An unusable cache is reported, in a response from memory. */
START_TEST(test_no_room)
{
	setenv("NABC_CACHE", "/nonexistent/socket", 1);
	begin("/.sweet/status.html", "127.0.0.1");
	ck_assert_int_eq(status_respond(&transaction), RESPOND_NOW);
	ck_assert_int_eq(transaction.response.status, 503);
	ck_assert_uint_eq(transaction.response.head_length, 0);
	ck_assert_ptr_nonnull(transaction.response.detail);
	ck_assert_ptr_null(transaction.responder);
}
END_TEST

static void end(void)
{
	ip_acl_free(config.status_access);
	config.status_access = NULL;
}

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, NULL, end);
	tcase_add_test(tcase, test_who);
	tcase_add_test(tcase, test_paths);
	tcase_add_test(tcase, test_ready);
	tcase_add_loop_test(tcase, test_accept, 0, G_N_ELEMENTS(accepts));
	tcase_add_test(tcase, test_no_room);
}

RUN_SUITE("status", fill)
