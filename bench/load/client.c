/* SPDX-License-Identifier: MIT */
/*
 * client.c - an event-driven HTTP client that simulates many, for experiments of the
 * papers for which wrk is unsuitable: lists in their order, connections for each
 * request, options of the client's TCP, every response checked against the list.  One
 * thread.  This file is its command line; it prints one line.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "client-connection.h"
#include "client-histogram.h"
#include "client-load.h"
#include "client-requests.h"
#include "client-workload.h"
#include "surge.h"

#define SECOND 1000000u
#define CLIENTS_MAX 100000u
#define SOURCES_MAX 4096u
#define FIELDS_MAX 4096u
#define DOCUMENTS_MAX 100000u

static const char usage[] =
	"usage: client [OPTION]... ADDRESS:PORT\n"
	"       client --documents N --surge SEED\n"
	"  --clients N          simulated clients (1)\n"
	"  --seconds S          how long at most (10)\n"
	"  --requests N         end after so many, though the time is not over\n"
	"  --timeout S          what takes longer is an error (10)\n"
	"  --list FILE          what to ask for, \"-\" is the standard input: lines of\n"
	"                       PATH [BYTES|- [STATUS]]; without it / is asked for\n"
	"  --shuffle SEED       each client draws from the list; without it they all\n"
	"                       go round it together, in its order\n"
	"  --surge SEED         the clients are users as SURGE has them, the list is of\n"
	"                       documents, the most popular first\n"
	"  --time-scale F       of the users' times between requests (1)\n"
	"  --pages              a connection for each page of a user, not kept longer\n"
	"  --rate N             requests a second, at random instants, whether they are\n"
	"                       answered or not: one that is due waits for a client to be\n"
	"                       free, and its time counts from when it was due\n"
	"  --close              HTTP/1.0, a connection for each request\n"
	"  --field LINE         a header field to send; may come again\n"
	"  --source LIST        IPv4 addresses to connect from in turn, parted by commas\n"
	"  --delay-ack-syn      the request acknowledges the server's SYN\n"
	"  --delay-ack-fin      the client's FIN acknowledges the server's, where the list\n"
	"                       tells of no more than 16 KB\n"
	"  --fastopen           TCP Fast Open\n"
	"  --documents N        print a list of documents with SURGE's sizes, and end\n"
	"Times are decimal numbers of seconds.  Prints one line of NAME=NUMBER; times in\n"
	"microseconds.  Exit status 0: it ran, whatever the errors that the line counts.\n";

struct options {
	struct settings settings;
	const char *list, *target;
	char fields[FIELDS_MAX];
	bool shuffle, surge, pages;
	uint64_t seed, documents;
	double time_scale;
};

/* A decimal number from least to most. */
static bool read_double(const char *text, double least, double most, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && !*end && *value >= least && *value <= most;
}

static bool read_integer(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end && *value >= least && *value <= most;
}

static bool read_seconds(const char *text, uint64_t *microseconds)
{
	double seconds;

	if (!read_double(text, 0.001, 1e6, &seconds))
		return false;
	*microseconds = (uint64_t)(seconds * SECOND);
	return true;
}

static bool read_target(const char *text, struct sockaddr_in *target)
{
	char address[INET_ADDRSTRLEN] = "";
	const char *colon = strchr(text, ':');
	uint64_t port;

	if (!colon || (size_t)(colon - text) >= sizeof(address) ||
	    !read_integer(colon + 1, 1, 65535, &port))
		return false;
	memcpy(address, text, (size_t)(colon - text));
	target->sin_family = AF_INET;
	target->sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, address, &target->sin_addr) == 1;
}

static bool read_sources(char *text, struct settings *settings)
{
	char *rest, *word;

	free(settings->sources);
	settings->source_count = 0;
	settings->sources = calloc(SOURCES_MAX, sizeof(settings->sources[0]));
	if (!settings->sources)
		return false;
	for (word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		struct sockaddr_in *source = &settings->sources[settings->source_count];

		if (settings->source_count++ == SOURCES_MAX ||
		    inet_pton(AF_INET, word, &source->sin_addr) != 1)
			return false;
		source->sin_family = AF_INET;
	}
	return settings->source_count;
}

/* Adds "Name: value" as a line of its own. */
static bool add_field(const char *text, char fields[FIELDS_MAX])
{
	size_t length = strlen(fields), more = strlen(text);

	if (!strchr(text, ':') || strpbrk(text, "\r\n") || length + more + 3 > FIELDS_MAX)
		return false;
	memcpy(fields + length, text, more);
	memcpy(fields + length + more, "\r\n", 3);
	return true;
}

enum option_name {
	CLIENTS = 1,
	SECONDS,
	REQUESTS,
	TIMEOUT,
	LIST,
	SHUFFLE,
	SURGE,
	TIME_SCALE,
	PAGES,
	DOCUMENTS,
	RATE,
	CLOSE,
	FIELD,
	SOURCE,
	DELAY_ACK_SYN,
	DELAY_ACK_FIN,
	FASTOPEN,
	HELP,
};

static bool read_option(struct options *options, int name, char *text)
{
	struct settings *settings = &options->settings;
	uint64_t number;

	switch (name) {
	case CLIENTS:
		if (!read_integer(text, 1, CLIENTS_MAX, &number))
			return false;
		settings->clients = (uint32_t)number;
		return true;
	case SECONDS:
		return read_seconds(text, &settings->duration);
	case REQUESTS:
		return read_integer(text, 1, UINT64_MAX, &settings->requests);
	case TIMEOUT:
		return read_seconds(text, &settings->timeout);
	case LIST:
		options->list = text;
		return true;
	case SHUFFLE:
		options->shuffle = true;
		return read_integer(text, 0, UINT64_MAX, &options->seed);
	case SURGE:
		options->surge = true;
		return read_integer(text, 0, UINT64_MAX, &options->seed);
	case TIME_SCALE:
		return read_double(text, 0, 1e6, &options->time_scale);
	case PAGES:
		return options->pages = true;
	case DOCUMENTS:
		return read_integer(text, 1, DOCUMENTS_MAX, &options->documents);
	case RATE:
		return read_double(text, 0.001, 1e7, &settings->rate);
	case CLOSE:
		return settings->close = true;
	case FIELD:
		return add_field(text, options->fields);
	case SOURCE:
		return read_sources(text, settings);
	case DELAY_ACK_SYN:
		return settings->delay_ack_syn = true;
	case DELAY_ACK_FIN:
		return settings->delay_ack_fin = true;
	case FASTOPEN:
		return settings->fastopen = true;
	default:
		return false;
	}
}

/* The format of --list; the first document is the most popular one. */
static int print_documents(const struct options *options)
{
	struct surge surge = {options->seed};

	for (uint64_t i = 0; i < options->documents; i++)
		printf("/%05llu %llu\n", (unsigned long long)i,
		       (unsigned long long)surge_size(&surge));
	return 0;
}

/* Returns the exit status if the program ends with it, else -1. */
static int read_command(struct options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{"clients", required_argument, NULL, CLIENTS},
		{"seconds", required_argument, NULL, SECONDS},
		{"requests", required_argument, NULL, REQUESTS},
		{"timeout", required_argument, NULL, TIMEOUT},
		{"list", required_argument, NULL, LIST},
		{"shuffle", required_argument, NULL, SHUFFLE},
		{"surge", required_argument, NULL, SURGE},
		{"time-scale", required_argument, NULL, TIME_SCALE},
		{"pages", no_argument, NULL, PAGES},
		{"documents", required_argument, NULL, DOCUMENTS},
		{"rate", required_argument, NULL, RATE},
		{"close", no_argument, NULL, CLOSE},
		{"field", required_argument, NULL, FIELD},
		{"source", required_argument, NULL, SOURCE},
		{"delay-ack-syn", no_argument, NULL, DELAY_ACK_SYN},
		{"delay-ack-fin", no_argument, NULL, DELAY_ACK_FIN},
		{"fastopen", no_argument, NULL, FASTOPEN},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	int name, at;

	while ((name = getopt_long(argc, argv, "", names, &at)) != -1) {
		if (name == HELP) {
			fputs(usage, stdout);
			return 0;
		}
		if (name == '?') {
			fputs(usage, stderr);
			return 2;
		}
		if (!read_option(options, name, optarg)) {
			fprintf(stderr, "client: --%s %s: bad value\n", names[at].name,
				optarg ? optarg : "");
			return 2;
		}
	}
	if (options->shuffle && options->surge) {
		fputs("client: --shuffle and --surge exclude each other\n", stderr);
		return 2;
	}
	if (options->settings.rate > 0 && options->surge) {
		fputs("client: --rate and --surge exclude each other\n", stderr);
		return 2;
	}
	if (options->documents && options->surge && optind == argc)
		return print_documents(options);
	if (options->documents || optind + 1 != argc ||
	    !read_target(argv[optind], &options->settings.target)) {
		fputs(usage, stderr);
		return 2;
	}
	options->target = argv[optind];
	return -1;
}

static int read_requests(struct requests *requests, const struct options *options)
{
	struct request_form form = {.host = options->target,
				    .fields = options->fields,
				    .close = options->settings.close};
	const char *name = options->list;
	uint32_t line = 0;
	FILE *file;
	int error;

	if (!name)
		return requests_add(requests, &form, "/", REQUEST_SIZE_ANY, 200);
	file = strcmp(name, "-") ? fopen(name, "re") : stdin;
	error = file ? requests_read(requests, &form, file, &line) : -errno;
	if (file && file != stdin)
		fclose(file);
	if (!error && (!requests->count || (options->surge && requests->count > DOCUMENTS_MAX)))
		error = requests->count ? -E2BIG : -ENODATA;
	if (error == -EBADMSG)
		fprintf(stderr, "client: %s: line %u is not PATH [BYTES [STATUS]]\n", name, line);
	else if (error)
		fprintf(stderr, "client: %s: %s\n", name, strerror(-error));
	return error;
}

/* Raises the limit of descriptors; too few of them cause connection errors. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void print(const struct results *results)
{
	static const char *const names[ERROR_KINDS] = {
		[ERROR_CONNECT] = "connect", [ERROR_READ] = "read",	  [ERROR_WRITE] = "write",
		[ERROR_STATUS] = "status",   [ERROR_TIMEOUT] = "timeout", [ERROR_ANSWER] = "answer",
		[ERROR_SIZE] = "size",
	};
	const struct latency *latency = &results->latency;

	printf("bench requests=%llu bytes=%llu duration=%llu p50=%llu p99=%llu max=%llu",
	       (unsigned long long)results->requests, (unsigned long long)results->body_bytes,
	       (unsigned long long)results->duration,
	       (unsigned long long)latency_quantile(latency, 0.5),
	       (unsigned long long)latency_quantile(latency, 0.99),
	       (unsigned long long)latency->most);
	for (unsigned i = 0; i < ERROR_KINDS; i++)
		printf(" %s=%llu", names[i], (unsigned long long)results->errors[i]);
	printf(" connections=%llu again=%llu early=%llu late=%llu\n",
	       (unsigned long long)results->connections, (unsigned long long)results->again,
	       (unsigned long long)results->early, (unsigned long long)results->late);
}

static struct workload *open_workload(const struct options *options,
				      const struct requests *requests)
{
	uint32_t clients = options->settings.clients;

	if (options->surge)
		return workload_surge(requests, clients, options->seed, options->time_scale,
				      options->pages);
	if (options->shuffle)
		return workload_shuffled(requests, clients, options->seed);
	return workload_in_order(requests);
}

static int load(const struct options *options, const struct requests *requests)
{
	struct results *results = calloc(1, sizeof(*results));
	struct workload *workload = open_workload(options, requests);
	int error = -ENOMEM;

	if (results && workload)
		error = load_run(&options->settings, workload, results);
	if (!error)
		print(results);
	else
		fprintf(stderr, "client: %s\n", strerror(-error));
	if (workload)
		workload->kind->close(workload);
	free(results);
	return error;
}

int main(int argc, char **argv)
{
	struct options options = {
		.settings = {.clients = 1, .duration = 10 * SECOND, .timeout = 10 * SECOND}};
	struct requests requests = {0};
	int status = read_command(&options, argc, argv);

	if (status < 0) {
		raise_limit();
		status = read_requests(&requests, &options) || load(&options, &requests) ? 1 : 0;
	}
	requests_free(&requests);
	free(options.settings.sources);
	if (fflush(stdout))
		status = 1;
	return status;
}
