/* SPDX-License-Identifier: MIT */
/*
 * site-tls.c - see site-tls.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <nabc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/configuration.h"
#include "core/site-tls.h"
#include "core/site.h"
#include "spawn/key-opener.h"
#include "tls/tls.h"

#define OPENER_ENDED "the process that opens keys has ended: restart the server"

static void add_error(GPtrArray *errors, const struct host *host, const char *text)
{
	char *line =
		host->tls_place ? g_strdup_printf("%s: %s", host->tls_place, text) : g_strdup(text);

	/* Hosts may inherit their certificate: once. */
	if (g_ptr_array_find_with_equal_func(errors, line, g_str_equal, NULL))
		g_free(line);
	else
		g_ptr_array_add(errors, line);
}

/* Returns a descriptor or -errno. */
static int open_by(struct key_opener *opener, const char *name)
{
	int fd;

	if (opener)
		return key_opener_file(opener, name);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Opens a file of that host; returns false with an error. */
static bool open_file(const struct host *host, struct key_opener *opener, const char *what,
		      const char *name, struct tls_file *file, GPtrArray *errors)
{
	int fd = open_by(opener, name);
	char *text;

	*file = (struct tls_file){.name = name, .fd = MAX(fd, -1)};
	if (fd >= 0)
		return true;
	text = g_strdup_printf("%s \"%s\": %s", what, name,
			       fd == -EPIPE ? OPENER_ENDED : strerror(-fd));
	add_error(errors, host, text);
	g_free(text);
	return false;
}

static bool open_files(const struct host *host, struct key_opener *opener,
		       struct tls_certificate *certificates, struct tls_options *options,
		       GPtrArray *errors)
{
	bool good = true;

	for (unsigned i = 0; host->certificates[i]; i++) {
		bool own = host->keys && host->keys[0];

		bool chain = open_file(host, opener, "certificate", host->certificates[i],
				       &certificates[i].chain, errors);

		good &= chain;
		/* A file with both is missing once. */
		if (own || chain)
			good &= open_file(host, opener, "key",
					  own ? host->keys[i] : host->certificates[i],
					  &certificates[i].key, errors);
		if (host->staples && host->staples[0])
			good &= open_file(host, opener, "ocsp-staple", host->staples[i],
					  &certificates[i].staple, errors);
	}
	if (options->client != TLS_CLIENT_NONE)
		good &= open_file(host, opener, "client-ca", host->client_ca, &options->client_ca,
				  errors);
	return good;
}

static void close_file(const struct tls_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
}

static void open_identity(struct site *site, const struct host *host,
			  const struct site_options *options, GPtrArray *errors)
{
	const struct config *config = site->config;
	struct site_host *open = &site->hosts[host->number];
	unsigned count = g_strv_length(host->certificates);
	struct tls_certificate *certificates = g_new0(struct tls_certificate, count);
	char *groups =
		host->tls_groups && host->tls_groups[0] ? g_strjoinv(":", host->tls_groups) : NULL;
	struct tls_options of = {.name = host->name,
				 .certificates = certificates,
				 .certificate_count = count,
				 .profile = (enum tls_profile)host->tls_profile,
				 .groups = groups,
				 .client = (enum tls_client)host->client_certificate,
				 .client_ca = {.fd = -1},
				 .tickets = options->tickets,
				 .http2 = config->http2 != HTTP2_OFF,
				 .own_records = config->tls_records == TLS_RECORDS_OWN};
	char *why = NULL;

	for (unsigned i = 0; i < count; i++)
		certificates[i].chain.fd = certificates[i].key.fd = certificates[i].staple.fd = -1;
	if (open_files(host, options->opener, certificates, &of, errors)) {
		open->tls = tls_library->identity_open(&of, &why);
		if (!open->tls)
			add_error(errors, host, why ? why : "no memory");
		free(why);
	}
	for (unsigned i = 0; i < count; i++) {
		close_file(&certificates[i].chain);
		close_file(&certificates[i].key);
		close_file(&certificates[i].staple);
	}
	close_file(&of.client_ca);
	g_free(certificates);
	g_free(groups);
}

/* The files in it are opened by the user of the server, when clients want them. */
static void open_answers(struct site *site, const struct host *host,
			 const struct site_options *options, GPtrArray *errors)
{
	struct tls_file folder;
	struct stat stat;
	char *text;

	if (!open_file(host, options->opener, "tls-alpn-01", host->answer_folder, &folder, errors))
		return;
	if (fstat(folder.fd, &stat) == 0 && S_ISDIR(stat.st_mode)) {
		site->hosts[host->number].answers = g_memdup2(&folder, sizeof(folder));
		return;
	}
	text = g_strdup_printf("tls-alpn-01 \"%s\": is no folder", folder.name);
	add_error(errors, host, text);
	g_free(text);
	close_file(&folder);
}

/* Whether the lists belong together: a check has reported those that do not. */
static bool is_whole(const struct host *host)
{
	unsigned count = g_strv_length(host->certificates);

	return (!host->keys || !host->keys[0] || g_strv_length(host->keys) == count) &&
	       (!host->staples || !host->staples[0] || g_strv_length(host->staples) == count) &&
	       (host->client_certificate == TLS_CLIENT_NONE || host->client_ca);
}

void site_tls_open(struct site *site, const struct site_options *options, GPtrArray *errors)
{
	const struct config *config = site->config;
	int error = config->tls && options->opener ? key_opener_begin(options->opener) : 0;

	if (error)
		g_ptr_array_add(errors, g_strdup(error == -EPIPE ? "certificates: " OPENER_ENDED
								 : "certificates: the file has "
								   "changed meanwhile"));
	for (unsigned i = 0; config->tls && !error && i < config->host_count; i++) {
		const struct host *host = &config->hosts[i];

		if (host->certificates && host->certificates[0] && !site->hosts[i].tls &&
		    is_whole(host))
			open_identity(site, host, options, errors);
		if (host->answer_folder && !site->hosts[i].answers)
			open_answers(site, host, options, errors);
	}
}

void site_tls_close(struct site *site)
{
	for (unsigned i = 0; i < site->config->host_count; i++) {
		tls_library->identity_close(site->hosts[i].tls);
		if (site->hosts[i].answers)
			close_file(site->hosts[i].answers);
		g_free(site->hosts[i].answers);
	}
}
