/* SPDX-License-Identifier: MIT */
/*
 * test-config-scopes.c - unit tests of config-read.c and its helpers: hosts and paths,
 * their rules, and what they inherit.
 */
#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/slice.h"
#include "config/configuration.h"
#include "program/cacheable.h"

#include "config-fixture.h"
#include "suite.h"

static const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};

static const struct scope *scope_of(const struct config *config, const char *host, const char *at)
{
	return host_scope(config_host(config, (struct slice){host, strlen(host)}, &nowhere), at);
}

/* Returns the name of the host for a Host field at an address of this machine. */
static const char *host_at(const struct config *config, const char *field, const char *local)
{
	struct listen_address address;

	ck_assert(address_parse(local, &address));
	return config_host(config, (struct slice){field, strlen(field)},
			   (const struct sockaddr *)&address.address)
		->name;
}

START_TEST(test_names)
{
	static const struct {
		const char *field, *name;
	} cases[] = {
		{"example.org", "example.org"},
		{"EXAMPLE.org", "example.org"},
		{"example.org.", "example.org"},
		{"example.org:8080", "example.org"},
		{"example.org.:8080", "example.org"},
		{"example.org:", "example.org"},
		{"www.example.org", "example.org"},
		{"a.www.example.org", "example.org"},
		{"static.example.org", "static"},
		{"b.static.example.org", "below"},
		{"c.b.static.example.org", "below"},
		{"[2001:DB8::1]", "six"},
		{"[2001:db8::1]:80", "six"},
		{"192.0.2.1", "four"},
		{"192.0.2.1:80", "four"},
		{"", ""},
		{":80", ""},
		{".", ""},
		{"..", ""},
		{".example.org", ""},
		{"example.org..", ""},
		{"xexample.org", ""},
		{"example.com", ""},
		{"org", ""},
		{"*.example.org", "example.org"},
		{"[2001:db8::2]", ""},
		{"[2001:db8::1", ""},
	};
	struct config *config = must_read_file("[sweet]\n[host example.org]\n"
					       "names=example.org;*.Example.org\n"
					       "[host static]\nnames=static.example.org\n"
					       "[host below]\nnames=*.static.example.org\n"
					       "[host six]\nnames=[2001:db8::1]\n"
					       "[host four]\nnames=192.0.2.1\n");
	char longest[CONFIG_NAME_MAX + 100];

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++)
		ck_assert_msg(strcmp(host_at(config, cases[i].field, "80"), cases[i].name) == 0,
			      "%s: %s", cases[i].field, host_at(config, cases[i].field, "80"));
	/* Up to the maximum length, and beyond. */
	for (size_t length = CONFIG_NAME_MAX - 20; length < sizeof(longest); length++) {
		memset(longest, 'x', length);
		strcpy(longest + length - strlen(".example.org"), ".example.org");
		ck_assert_str_eq(host_at(config, longest, "80"),
				 length <= CONFIG_NAME_MAX ? "example.org" : "");
	}
	config_release(config);
}
END_TEST

START_TEST(test_addresses)
{
	static const struct {
		const char *field, *local, *name;
	} cases[] = {
		/* The same name is another host at another address. */
		{"a.example", "127.0.0.1:80", "plain"},
		{"a.example", "127.0.0.1:8443", "secure"},
		{"a.example", "127.0.0.1:81", ""},
		/* A host for all addresses. */
		{"b.example", "127.0.0.1:80", "everywhere"},
		{"b.example", "[::1]:80", "everywhere"},
		{"b.example", "192.0.2.1:90", "everywhere"},
		/* An unknown name: the first host of the address, else the default. */
		{"x.example", "127.0.0.1:80", "plain"},
		{"", "127.0.0.1:8443", "secure"},
		{"x.example", "127.0.0.1:81", ""},
		{"x.example", "192.0.2.1:90", "any"},
		{"x.example", "[::1]:80", ""},
		{"x.example", "unix:/whatever", "local"},
		{"c.example", "127.0.0.1:80", "plain"},
		{"c.example", "127.0.0.1:90", "any"},
	};
	struct config *config =
		must_read_file("[sweet]\n"
			       "listen=127.0.0.1:80;127.0.0.1:81;127.0.0.1:8443;:90;unix:/a\n"
			       "[host plain]\nnames=a.example\nlisten=127.0.0.1:80\n"
			       "[host secure]\nnames=a.example\nlisten=127.0.0.1:8443\n"
			       "[host second]\nnames=d.example\nlisten=127.0.0.1:8443\n"
			       "[host everywhere]\nnames=b.example\n"
			       "[host any]\nnames=c.example\nlisten=:90\n"
			       "[host local]\nnames=e.example\nlisten=unix:/a\n");

	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++)
		ck_assert_msg(
			strcmp(host_at(config, cases[i].field, cases[i].local), cases[i].name) == 0,
			"%s at %s: %s", cases[i].field, cases[i].local,
			host_at(config, cases[i].field, cases[i].local));
	config_release(config);
}
END_TEST

static const char *rate_of(const struct config *config, const char *host, const char *at)
{
	return scope_of(config, host, at)->rate_name;
}

START_TEST(test_rules)
{
	struct config *config = must_read_file("[sweet]\nrequest-rate=10\nrequest-burst=4\n"
					       "[path /a]\nroot=/x\n"
					       "[path /b]\nrequest-rate=20\n"
					       "[path /c]\nrequest-rate=0\n"
					       "[host h]\nredirect=/moved/\nallow=192.0.2.1\n"
					       "[path h/d]\nroot=/x\n"
					       "[path h/e]\nredirect=/other/\ndeny=all\nallow=\n"
					       "[path h/f]\nredirect=off\nrequest-rate=10\n");
	const struct scope *top = scope_of(config, "", "/");

	/* Inherited rules share a counter, redefined ones have their own. */
	ck_assert_uint_eq(top->request_rate, 10);
	ck_assert_uint_eq(top->request_burst, 4);
	ck_assert_str_eq(rate_of(config, "", "/a"), top->rate_name);
	ck_assert_str_eq(rate_of(config, "h", "/d"), top->rate_name);
	ck_assert_uint_eq(scope_of(config, "", "/b")->request_rate, 20);
	ck_assert_str_ne(rate_of(config, "", "/b"), top->rate_name);
	ck_assert_str_ne(rate_of(config, "h", "/f"), top->rate_name);
	ck_assert_ptr_null(rate_of(config, "", "/c"));
	ck_assert_ptr_null(scope_of(config, "", "/")->access);
	ck_assert_ptr_nonnull(scope_of(config, "h", "/")->access);
	ck_assert_ptr_nonnull(scope_of(config, "h", "/d")->access);
	ck_assert_ptr_nonnull(scope_of(config, "h", "/e")->access);
	/* The part of the path that replaces the rest depends on the place of the redirect. */
	ck_assert_ptr_null(scope_of(config, "", "/")->redirect_to);
	ck_assert_uint_eq(scope_of(config, "h", "/")->redirect_skip, 0);
	ck_assert_uint_eq(scope_of(config, "h", "/d/x")->redirect_skip, 0);
	ck_assert_str_eq(scope_of(config, "h", "/d/x")->redirect_to, "/moved/");
	ck_assert_uint_eq(scope_of(config, "h", "/e/x")->redirect_skip, 2);
	ck_assert_ptr_null(scope_of(config, "h", "/f")->redirect_to);
	config_release(config);
}
END_TEST

/* A path inherits missing keys from the paths around it, the nearest first. */
START_TEST(test_nesting)
{
	struct config *config = must_read_file(
		"[sweet]\nroot=/top\n"
		"[path /a/b/c]\nlisting=on\n"
		"[path /a]\ndeny=all\nauth-realm=A\nauth-file=/f\nroot=/a\nrequest-rate=5\n"
		"redirect=/moved/\n"
		"[path /a/b]\nauth-realm=B\nredirect=/away/\n"
		"[path /ab]\nlisting=on\n"
		"[path /a/free]\nredirect=off\ndeny=\n"
		"[path /p]\nalias=/pictures\n"
		"[path /p/in]\nlisting=on\n"
		"[path /p/own]\nroot=/own\n"
		"[path /p/to]\nrewrite=/a\n"
		"[path /p/to/x]\nlisting=on\n"
		"[path /p/to/y]\nalias=/y\n"
		"[path /p/to/z]\nroot=/z\n"
		"[host h]\nredirect=/h/\n"
		"[path h/a/b]\nlisting=on\n");
	const struct scope *scope = scope_of(config, "", "/a/b/c/d");

	ck_assert_ptr_nonnull(scope->access);
	ck_assert_str_eq(scope->auth_realm, "B");
	ck_assert_str_eq(scope->auth_file, "/f");
	ck_assert_str_eq(scope->root, "/a");
	ck_assert_str_eq(scope->redirect_to, "/away/");
	ck_assert_uint_eq(scope->redirect_skip, 4);
	ck_assert(scope->listing && !scope_of(config, "", "/a/b")->listing);
	ck_assert_str_eq(scope->rate_name, rate_of(config, "", "/a"));
	scope = scope_of(config, "", "/ab");
	ck_assert(!scope->access && !scope->auth_realm && !scope->redirect_to);
	scope = scope_of(config, "", "/a/free");
	ck_assert(!scope->access && !scope->redirect_to && scope->auth_realm);
	/* Paths of another host are independent. */
	scope = scope_of(config, "h", "/a/b");
	ck_assert(!scope->access && scope->listing);
	ck_assert_str_eq(scope->redirect_to, "/h/");
	/* The nearest path provides the files. */
	scope = scope_of(config, "", "/p/in");
	ck_assert_str_eq(scope->alias, "/pictures");
	ck_assert_uint_eq(scope->alias_skip, 2);
	ck_assert_ptr_null(scope_of(config, "", "/p/own")->alias);
	ck_assert_str_eq(scope_of(config, "", "/p/own")->root, "/own");
	ck_assert_ptr_null(scope_of(config, "", "/p/to")->alias);
	scope = scope_of(config, "", "/p/to/x");
	ck_assert_ptr_null(scope->alias);
	ck_assert_str_eq(scope->rewrite, "/a");
	ck_assert_uint_eq(scope->rewrite_skip, 5);
	scope = scope_of(config, "", "/p/to/y");
	ck_assert_ptr_null(scope->rewrite);
	ck_assert_str_eq(scope->alias, "/y");
	ck_assert_uint_eq(scope->alias_skip, 7);
	scope = scope_of(config, "", "/p/to/z");
	ck_assert(!scope->rewrite && !scope->alias);
	config_release(config);
}
END_TEST

START_TEST(test_bad_rules)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"[sweet]\nallow=10.0.0.1/8\n", "sweet.conf:2: allow \"10.0.0.1/8\": must be an"},
		{"[sweet]\ndeny=127.0.0.1;nobody\n", "sweet.conf:2: deny \"nobody\": must be an"},
		{"[path /a]\nallow=::1/129\n", "sweet.conf:2: allow \"::1/129\": must be an"},
		{"[sweet]\nstatus-allow=all;x\n", "sweet.conf:2: status-allow \"x\": must be an"},
		{"[path /a]\nalias=/x\nrewrite=/y\n", "sweet.conf:1: alias and rewrite exclude"},
		{"[host a]\n[host b]\nnames=a\n", "sweet.conf:2: host \"a\" is named twice"},
		{"[sweet]\nlisten=1;2\n[host a]\nlisten=1;2\n[host b]\nnames=a\nlisten=2\n",
		 "sweet.conf:5: host \"a\" is named twice"},
		{"[sweet]\nlisten=1;2\n[host a]\nlisten=1\n[host b]\nnames=a\n",
		 "sweet.conf:5: host \"a\" is named twice"},
		{"[sweet]\nlisten=unix:/a;unix:/b\n[host a]\nlisten=unix:/b\n",
		 "sweet.conf:3: listen \"unix:/b\": hosts are distinguished"},
	};
	char words[256];

	snprintf(words, sizeof(words), "sweet --config=%s", path);
	for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
		write_config(cases[i].text);
		check_refused(words, cases[i].says);
	}
}
END_TEST

START_TEST(test_inheritance)
{
	struct config *config = must_read_file("[sweet]\n"
					       "root=/all\n"
					       "index=a.html;b.html\n"
					       "listing=on\n"
					       "redirect=/top/\n"
					       "[host example.org]\n"
					       "names=Example.org;*.example.org\n"
					       "root=/example\n"
					       "redirect=301 https://other/\n"
					       "[path /images]\n"
					       "listing=off\n"
					       "[path example.org/a]\n"
					       "index=c.html\n"
					       "redirect=off\n"
					       "[path example.org/a/b]\n"
					       "alias=/elsewhere\n");
	const struct scope *scope = scope_of(config, "unknown", "/");

	ck_assert_uint_eq(config->host_count, 2);
	ck_assert_str_eq(scope->root, "/all");
	ck_assert_str_eq(scope->index[1], "b.html");
	ck_assert(scope->listing);
	ck_assert_int_eq(scope->redirect_status, 302);
	ck_assert_ptr_eq(scope_of(config, "unknown", "/imagesx"), scope);
	scope = scope_of(config, "unknown", "/images");
	ck_assert_ptr_eq(scope_of(config, "", "/images/x"), scope);
	ck_assert(!scope->listing);
	ck_assert_str_eq(scope->root, "/all");
	ck_assert_str_eq(scope->redirect_to, "/top/");
	scope = scope_of(config, "EXAMPLE.org:80", "/images");
	ck_assert_str_eq(scope->root, "/example");
	ck_assert_int_eq(scope->redirect_status, 301);
	ck_assert(scope->listing);
	ck_assert_ptr_eq(scope_of(config, "x.y.example.org.", "/"), scope);
	ck_assert_ptr_ne(scope_of(config, "xexample.org", "/"), scope);
	scope = scope_of(config, "example.org", "/a/x");
	ck_assert_str_eq(scope->index[0], "c.html");
	ck_assert_int_eq(scope->redirect_status, 0);
	scope = scope_of(config, "example.org", "/a/b/c");
	ck_assert_str_eq(scope->alias, "/elsewhere");
	ck_assert_str_eq(scope->index[0], "c.html");
	config_release(config);
}
END_TEST

/* [path /] is of all paths of its host, wherever it stands, and of no other host. */
START_TEST(test_whole)
{
	struct config *config = must_read_file("[path /a]\n"
					       "listing=on\n"
					       "[pattern p]\n"
					       "match=^/p\n"
					       "listing=on\n"
					       "[path /]\n"
					       "index=whole.html\n"
					       "header=A: 1\n"
					       "alias=/whole\n"
					       "[path example.org/]\n"
					       "root=/own\n"
					       "request-rate=7\n"
					       "[sweet]\n"
					       "root=/all\n"
					       "index=all.html\n"
					       "redirect=/top\n"
					       "request-rate=9\n"
					       "[host example.org]\n"
					       "[host other]\n");
	const struct scope *scope = scope_of(config, "", "/"), *inner = scope_of(config, "", "/a");

	ck_assert_uint_eq(config->hosts[0].scope_count, 4);
	ck_assert_uint_eq(scope->pattern_count, 1);
	for (unsigned i = 0; i < config->hosts[0].scope_count; i++) {
		const struct scope *one = &config->hosts[0].scopes[i];

		ck_assert_str_eq(one->alias, "/whole");
		ck_assert_uint_eq(one->alias_skip, 0);
		ck_assert_str_eq(one->index[0], "whole.html");
		ck_assert_str_eq(one->redirect_to, "/top");
		ck_assert_uint_eq(one->header_rule_count, 1);
		ck_assert_uint_eq(one->request_rate, 9);
		ck_assert(one->listing == (one != scope));
	}
	ck_assert_str_eq(inner->prefix, "/a");
	ck_assert_str_eq(scope->prefix, "");
	scope = scope_of(config, "example.org", "/a");
	ck_assert_uint_eq(config->hosts[1].scope_count, 1);
	ck_assert_str_eq(scope->root, "/own");
	ck_assert_str_eq(scope->index[0], "all.html");
	ck_assert_uint_eq(scope->request_rate, 7);
	ck_assert_ptr_null(scope->redirect_to);
	scope = scope_of(config, "other", "/a");
	ck_assert_str_eq(scope->root, "/all");
	ck_assert_ptr_null(scope->alias);
	config_release(config);
}
END_TEST

START_TEST(test_places)
{
	static const struct {
		const char *text, *says;
		unsigned count;
	} bad[] = {
		{"[sweet]\nroot=a\n\nthreads=x\n", ":4: threads \"x\": must be a number", 1},
		{"[sweet]\nroot=a\nroot=b\n", ":3: root is given twice, first at ", 1},
		{"[sweet]\n[sweet]\n", ":2: [sweet] is given twice", 1},
		{"[sweet]\n# x\nnonsense\n", ":3: \"nonsense\": must be KEY=VALUE", 1},
		{"threads=1\n[sweet]\n", ":1: \"threads=1\" comes before", 1},
		{"[sweet\n", ":1: a group is written", 1},
		{"[host]\n", ":1: unknown group [host]", 1},
		{"[host a]\nthreads=1\n",
		 ":2: key \"threads\" does not belong into [host a], but into [sweet]", 1},
		{"[sweet]\nalias=/x\n",
		 ":2: key \"alias\" does not belong into [sweet], but into [path PREFIX]", 1},
		{"[path /a]\nnames=x\n",
		 ":2: key \"names\" does not belong into [path /a], but into [host NAME]", 1},
		{"[sweet]\nacces_log=x\n",
		 ":2: unknown key \"acces_log\": is \"access-log\" meant?", 1},
		{"[sweet]\nThreads=1\n", ":2: unknown key \"Threads\": is \"threads\" meant?", 1},
		{"[sweet]\nxyz=1\n", ":2: unknown key \"xyz\" (sweet.conf(5) lists the keys)", 1},
		{"[sweet]\nroot=\\q\n", ":2: root: has an unknown escape", 1},
		{"[sweet]\nserver-header=a\\tb\n",
		 ":2: server-header \"a\tb\": must be printable ASCII", 1},
		{"[host a b]\n", ":1: host \"a b\": must be a name", 1},
		{"[host a]\n[host b]\nnames=A\n", ":2: host \"a\" is named twice", 1},
		{"[host a]\nlisten=:1\n", ":1: listen \":1\": must be one of", 1},
		{"[path a/b]\n", ":1: there is no [host a]", 1},
		{"[path b]\n", ":1: path \"b\": must begin", 1},
		{"[path /]\n[path /]\n", ":2: [path /] is given twice", 1},
		{"[path b/]\n", ":1: there is no [host b]", 1},
		{"[path /]\nthreads=1\n", ":2: key \"threads\" does not belong into [path /]", 1},
		{"[path /a/../b]\n", ":1: path \"/a/../b\": must be", 1},
		{"[path /a]\nalias=/x\nrewrite=/y\n", ":1: alias and rewrite", 1},
		{"[path /a]\nauth-realm=x\n", ":2: auth-realm needs", 1},
		{"[sweet]\nauth-realm=x\n[path /a]\n[path /b]\n", ":2: auth-realm needs", 1},
		{"[sweet]\nio=x\nthreads=y\n[path /a]\nlisting=2\n", ":5: listing \"2\"", 3},
		{"[sweet]\nlisten=\n", ":2: listen \"\": must have a value", 1},
		{"[host a]\nlisten=x\n", ":2: listen \"x\": must be ADDRESS:PORT", 1},
		{"[sweet]\nlisten=x\n[host a]\nlisten=unix:/a\n", ":2: listen \"x\": must be", 1},
		{"[sweet]\nindex=a/b\n", ":2: index \"a/b\": must be a file's name", 1},
	};
	char words[256], says[256];

	snprintf(words, sizeof(words), "sweet --config %s", path);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_config(bad[i].text);
		snprintf(says, sizeof(says), "%s%s", path, bad[i].says);
		check_errors(words, says, bad[i].count);
	}
}
END_TEST

/* For nested paths the nearest counts; otherwise the default applies. */
START_TEST(test_cache)
{
	static const struct {
		const char *path;
		enum cacheable_mode mode;
		uint32_t seconds;
	} want[] = {{"/x", CACHEABLE_MARKED, 0},
		    {"/a", CACHEABLE_TIME, 10},
		    {"/a/b", CACHEABLE_OFF, 0},
		    {"/a/b/c", CACHEABLE_RESPONSE, 0},
		    {"/a/c", CACHEABLE_TIME, 10}};
	struct config *config =
		must_read_file("[sweet]\n[path /a]\ncache=10s\n[path /a/b]\ncache=off\n"
			       "[path /a/b/c]\ncache=response\n[path /a/c]\n");

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const struct scope *scope = host_scope(&config->hosts[0], want[i].path);

		ck_assert_uint_eq(scope->cache_mode, want[i].mode);
		ck_assert_uint_eq(scope->cache_seconds, want[i].seconds);
	}
	config_release(config);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, test_names);
	tcase_add_test(tcase, test_addresses);
	tcase_add_test(tcase, test_rules);
	tcase_add_test(tcase, test_nesting);
	tcase_add_test(tcase, test_bad_rules);
	tcase_add_test(tcase, test_inheritance);
	tcase_add_test(tcase, test_whole);
	tcase_add_test(tcase, test_places);
	tcase_add_test(tcase, test_cache);
}

RUN_SUITE("config-scopes", fill)
