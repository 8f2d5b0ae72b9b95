/* SPDX-License-Identifier: MIT */
/*
 * test-tls-challenge.c - unit tests of tls-challenge.c: which names become files, which files are
 * opened, and what a client gets that wants an answer.  Owns a folder.  Single-threaded.
 */
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tls/tls-challenge.h"
#include "tls/tls-tickets.h"
#include "tls/tls.h"

#include "suite.h"
#include "tls-fixture.h"

#define ACME "\012acme-tls/1"
#define HTTP "\010http/1.1"

static char directory[64];
static struct tls_file folder;
static struct tls_certificate pair;
static struct tls_identity *usual;
static struct tls_tickets *tickets;

static void set_up(void)
{
	make_directory(directory);
	folder = (struct tls_file){directory, open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	ck_assert_int_ge(folder.fd, 0);
	pair = make_pair(false, "usual");
	tickets = tls_tickets_open(0);
	usual = must_open(&(struct tls_options){.name = "usual",
						.own_records = true,
						.certificates = &pair,
						.certificate_count = 1,
						.tickets = tickets});
}

static void tear_down(void)
{
	static const char *const names[] = {"a.example", "b_2.x-y.example", "other"};
	char path[40];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		for (unsigned key = 0; key < 2; key++) {
			snprintf(path, sizeof(path), "%s.%s.pem", names[i], key ? "key" : "crt");
			(void)unlinkat(folder.fd, path, 0);
		}
	close(folder.fd);
	ck_assert_int_eq(rmdir(directory), 0);
	tls_library->identity_close(usual);
	tls_tickets_close(tickets);
	close_certificate(&pair);
}

static void copy_to(const struct tls_file *from, const char *name, const char *suffix)
{
	char path[64], data[8192];
	ssize_t length = pread(from->fd, data, sizeof(data), 0);
	int fd;

	snprintf(path, sizeof(path), "%s.%s.pem", name, suffix);
	fd = openat(folder.fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(fd, data, (size_t)length), length);
	close(fd);
}

/* Adds an answer, as an ACME client does. */
static void add(const char *name)
{
	struct tls_certificate made = make_pair(false, name);

	copy_to(&made.chain, name, "crt");
	copy_to(&made.key, name, "key");
	close_certificate(&made);
}

static struct tls_identity *answer_to(const char *name, size_t length)
{
	char *why = NULL, *copy = malloc(length + 1);
	struct tls_identity *identity;

	/* No byte behind the name may be read. */
	memcpy(copy, name, length);
	copy[length] = 'x';
	identity = tls_challenge_open(&folder, copy, length, &why);
	free(copy);
	ck_assert_msg(!identity == !!why, "%s", why ? why : "no reason");
	free(why);
	return identity;
}

static void must_answer(const char *name)
{
	struct tls_identity *identity = answer_to(name, strlen(name));

	ck_assert_ptr_nonnull(identity);
	tls_library->identity_close(identity);
}

static void must_complain(const char *name, const char *text)
{
	char *why = NULL;

	ck_assert_ptr_null(tls_challenge_open(&folder, name, strlen(name), &why));
	ck_assert_msg(why && strstr(why, text), "%s", why ? why : "no reason");
	free(why);
}

START_TEST(names)
{
	add("a.example");
	add("b_2.x-y.example");
	must_answer("a.example");
	must_answer("A.eXaMple");
	must_answer("b_2.x-y.example");
	must_complain("c.example", "/c.example.crt.pem\": No such file or directory");
}
END_TEST

START_TEST(names_that_dns_does_not_permit)
{
	static const char *const names[] = {
		"",	      ".",	    "..",	  "a..example",	  ".a.example",
		"a.example.", "/a.example", "../a",	  "a/../example", "a\\example",
		"a example",  "*.example",  "a\nexample", "\xc3\xa4"};
	char name[300];

	add("a.example");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		must_complain(names[i], "a name that DNS does not permit");
	ck_assert_ptr_null(answer_to("a.example\0", 10));
	memset(name, 'a', sizeof(name));
	name[254] = '\0';
	must_complain(name, "a name that DNS does not permit");
	name[253] = '\0';
	must_complain(name, "File name too long");
}
END_TEST

START_TEST(files_that_are_no_good)
{
	add("other");
	add("a.example");
	ck_assert_int_eq(unlinkat(folder.fd, "a.example.key.pem", 0), 0);
	must_complain("a.example", "/a.example.key.pem\": No such file or directory");
	ck_assert_int_eq(symlinkat("other.key.pem", folder.fd, "a.example.key.pem"), 0);
	must_complain("a.example", "Too many levels of symbolic links");
	ck_assert_int_eq(unlinkat(folder.fd, "a.example.key.pem", 0), 0);
	/* To open one must not wait for the other end. */
	ck_assert_int_eq(mkfifoat(folder.fd, "a.example.key.pem", 0600), 0);
	must_complain("a.example", "is no regular file");
	ck_assert_int_eq(unlinkat(folder.fd, "a.example.key.pem", 0), 0);
	ck_assert_int_eq(linkat(folder.fd, "other.key.pem", folder.fd, "a.example.key.pem", 0), 0);
	must_complain("a.example", "does not belong to the certificate");
}
END_TEST

START_TEST(file_that_is_too_long)
{
	int fd;

	add("a.example");
	fd = openat(folder.fd, "a.example.crt.pem", O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(ftruncate(fd, (64 << 10) + 1), 0);
	close(fd);
	must_complain("a.example", "is longer than 64 KB");
}
END_TEST

/* --- what a client gets ---------------------------------------------------------------------- */

static struct tls_identity *answer_end(const struct tls_chooser *chooser, const char *name,
				       size_t length)
{
	(void)chooser;
	return answer_to(name, length);
}

static void open_client(struct ends *ends, const char *name, const char *protocols)
{
	open_ends(ends, usual);
	ends->chooser.answer = answer_end;
	if (name)
		ck_assert_int_eq(SSL_set_tlsext_host_name(ends->client, name), 1);
	ck_assert_int_eq(SSL_set_alpn_protos(ends->client, (const unsigned char *)protocols,
					     (unsigned)strlen(protocols)),
			 0);
}

static bool shows(const struct ends *ends, const char *name)
{
	return X509_check_host(SSL_get0_peer_certificate(ends->client), name, 0, 0, NULL) == 1;
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

START_TEST(client_gets_the_answer)
{
	struct tls_agreed agreed;
	const unsigned char *chosen;
	unsigned length;
	struct ends ends;
	char byte;

	add("a.example");
	open_client(&ends, "A.example", ACME);
	SSL_set_max_proto_version(ends.client, versions[_i]);
	ck_assert_int_eq(shake(&ends, 4096), 0);
	SSL_get0_alpn_selected(ends.client, &chosen, &length);
	ck_assert_int_eq(length, 10);
	ck_assert_mem_eq(chosen, "acme-tls/1", 10);
	ck_assert(shows(&ends, "a.example"));
	tls_library->agreed(ends.channel, &agreed);
	ck_assert(agreed.challenge);
	/* It has no use for a session, whose ticket would need keys that the answer has not. */
	ck_assert_int_eq(SSL_read(ends.client, &byte, 1), -1);
	ck_assert(!SSL_SESSION_is_resumable(SSL_get0_session(ends.client)));
	close_ends(&ends);
}
END_TEST

/* A session with a ticket of the host, offered where an answer is wanted. */
START_TEST(client_with_a_session)
{
	SSL_SESSION *session;
	struct ends ends;
	char byte;

	add("a.example");
	open_client(&ends, "a.example", HTTP);
	SSL_set_max_proto_version(ends.client, versions[_i]);
	ck_assert_int_eq(shake(&ends, 4096), 0);
	ck_assert_int_eq(SSL_read(ends.client, &byte, 1), -1);
	session = SSL_get1_session(ends.client);
	ck_assert(SSL_SESSION_is_resumable(session));
	close_ends(&ends);

	open_client(&ends, "a.example", ACME);
	ck_assert_int_eq(SSL_set_session(ends.client, session), 1);
	ck_assert_int_eq(shake(&ends, 4096), 0);
	ck_assert(!SSL_session_reused(ends.client));
	ck_assert(shows(&ends, "a.example"));
	close_ends(&ends);
	SSL_SESSION_free(session);
}
END_TEST

static void must_be_refused(const char *name, const char *protocols)
{
	struct ends ends;
	char why[TLS_WHY_MAX];

	open_client(&ends, name, protocols);
	ck_assert_int_eq(shake(&ends, 4096), TLS_FAILED);
	tls_library->why(ends.channel, why);
	ck_assert_str_eq(why, "no application protocol");
	ck_assert_int_eq(SSL_do_handshake(ends.client), -1);
	ck_assert_int_eq(ERR_GET_REASON(ERR_peek_last_error()),
			 SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
	ERR_clear_error();
	close_ends(&ends);
}

START_TEST(client_is_refused)
{
	add("a.example");
	must_be_refused("b.example", ACME);
	must_be_refused(NULL, ACME);
	must_be_refused("a.example", "\012acme-tls/2");
	must_be_refused("a.example", ACME ACME);
}
END_TEST

/* The protocol is an answer's alone: who can speak another one gets that. */
START_TEST(client_with_two_protocols)
{
	struct tls_agreed agreed;
	struct ends ends;

	add("a.example");
	open_client(&ends, "a.example", ACME HTTP);
	ck_assert_int_eq(shake(&ends, 4096), 0);
	ck_assert(shows(&ends, "usual"));
	tls_library->agreed(ends.channel, &agreed);
	ck_assert(!agreed.challenge);
	close_ends(&ends);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, names);
	tcase_add_test(tcase, names_that_dns_does_not_permit);
	tcase_add_test(tcase, files_that_are_no_good);
	tcase_add_test(tcase, file_that_is_too_long);
	tcase_add_loop_test(tcase, client_gets_the_answer, 0, 2);
	tcase_add_loop_test(tcase, client_with_a_session, 0, 2);
	tcase_add_test(tcase, client_is_refused);
	tcase_add_test(tcase, client_with_two_protocols);
}

RUN_SUITE("tls-challenge", fill)
