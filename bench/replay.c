/* SPDX-License-Identifier: MIT */
/*
 * replay.c - replays requests through the library's replacement policies at several
 * cache sizes, with and without segments, and through bounds that know the future.
 * Prints CSV; bench/bench replacement makes tables of it.  One thread.
 */
#include <errno.h>
#include <getopt.h>
#include <nabc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/replacement.h"

#include "requests.h"
#include "simulate.h"

#define LIST_MAX 32

struct list {
	double values[LIST_MAX];
	unsigned count;
};

static const char usage[] =
	"usage: replay [OPTION]... <TRACE\n"
	"       replay --zipf OBJECTS,REQUESTS,ALPHA,SEED [OPTION]...\n"
	"  --percents LIST   sizes of the cache in percent of the distinct bytes\n"
	"  --limits LIST     percent of a segment that cleaning may copy on\n"
	"  --water HIGH,LOW  percent of the cache between which cleaning keeps it\n"
	"  --segments N      segments in the cache, within the library's limits of their size\n"
	"A trace has lines of seconds, client, method, path, status, bytes, parted by tabs.\n";

/* Parses numbers from least to most, separated by commas. */
static int parse(struct list *list, const char *text, double least, double most)
{
	char *end;

	for (list->count = 0; list->count < LIST_MAX; text = end + 1) {
		double value = strtod(text, &end);

		if (end == text || !(value >= least && value <= most))
			return -EINVAL;
		list->values[list->count++] = value;
		if (!*end)
			return 0;
		if (*end != ',')
			return -EINVAL;
	}
	return -EINVAL;
}

static void print(const struct requests *requests, double percent, uint64_t size,
		  const char *policy, const char *variant, const struct result *result)
{
	printf("%g,%llu,%s,%s,%.6f,%.6f,%llu,%llu,%llu,%llu\n", percent, (unsigned long long)size,
	       policy, variant, (double)result->hits / requests->count,
	       (double)result->hit_bytes / (double)requests->asked,
	       (unsigned long long)result->evictions, (unsigned long long)result->segments,
	       (unsigned long long)result->cleaned, (unsigned long long)result->copied);
}

static int future(const struct requests *requests, double percent, uint64_t size)
{
	struct result result;
	int error = simulate_bound(requests, size, &result);

	if (error)
		return error;
	print(requests, percent, size, "bound", "pfoo-l", &result);
	error = simulate_belady(requests, size, &result);
	if (!error)
		print(requests, percent, size, "belady", "single", &result);
	return error;
}

/* Settings of all simulations with segments. */
struct settings {
	struct list percents, limits, water, segments;
};

static int policies(const struct requests *requests, double percent, uint64_t size,
		    const struct settings *settings)
{
	for (enum NC_policy policy = NC_POLICY_SIEVE; nc_replacement_name(policy); policy++) {
		const char *name = nc_replacement_name(policy);
		struct simulation how = {.size = size, .policy = policy, .grain = 1};
		struct result result;
		int error = simulate_single(requests, &how, &result);

		if (error)
			return error;
		print(requests, percent, size, name, "single", &result);
		how.grain = 4096;
		error = simulate_single(requests, &how, &result);
		if (error)
			return error;
		print(requests, percent, size, name, "pages", &result);
		how.segments = (unsigned)settings->segments.values[0];
		how.high = (unsigned)settings->water.values[0];
		how.low = (unsigned)settings->water.values[1];
		for (unsigned i = 0; i < settings->limits.count; i++) {
			char variant[32];

			how.limit = (unsigned)settings->limits.values[i];
			error = simulate_segments(requests, &how, &result);
			if (error)
				return error;
			snprintf(variant, sizeof(variant), "segments %u", how.limit);
			print(requests, percent, size, name, variant, &result);
		}
	}
	return 0;
}

static int run(const struct requests *requests, const struct settings *settings)
{
	printf("# requests %u, objects %u, bytes asked %llu, distinct bytes %llu\n",
	       requests->count, requests->objects, (unsigned long long)requests->asked,
	       (unsigned long long)requests->distinct);
	printf("percent,bytes,policy,variant,hit_ratio,byte_hit_ratio,evictions,segments,cleaned,"
	       "copied_bytes\n");
	for (unsigned i = 0; i < settings->percents.count; i++) {
		double percent = settings->percents.values[i];
		uint64_t size = (uint64_t)((double)requests->distinct * percent / 100);
		int error = future(requests, percent, size);

		if (!error)
			error = policies(requests, percent, size, settings);
		if (error)
			return error;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"zipf", required_argument, NULL, 'z'},
		{"percents", required_argument, NULL, 'p'},
		{"limits", required_argument, NULL, 'l'},
		{"water", required_argument, NULL, 'w'},
		{"segments", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct settings settings;
	struct list zipf = {.count = 0};
	struct requests requests;
	int option, error = 0;

	(void)parse(&settings.percents, "1,2,5,10,20,50", 0, 0x1p52);
	(void)parse(&settings.limits, "50,25,75", 0, 0x1p52);
	(void)parse(&settings.water, "95,90", 0, 0x1p52);
	(void)parse(&settings.segments, "16", 0, 0x1p52);
	while (!error && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'z')
			error = parse(&zipf, optarg, 0, 1e9) || zipf.count != 4;
		else if (option == 'p')
			error = parse(&settings.percents, optarg, 0.001, 100);
		else if (option == 'l')
			error = parse(&settings.limits, optarg, 0, 99);
		else if (option == 'w')
			error = parse(&settings.water, optarg, 1, 100) || settings.water.count != 2;
		else if (option == 's')
			error = parse(&settings.segments, optarg, 4, 4096);
		else
			error = option == 'h' ? -ECANCELED : -EINVAL;
	}
	if (error || optind != argc) {
		fputs(usage, error == -ECANCELED ? stdout : stderr);
		return error == -ECANCELED ? 0 : 2;
	}
	if (zipf.count)
		error = requests_make(&requests, (uint32_t)zipf.values[0], (uint32_t)zipf.values[1],
				      zipf.values[2], (uint64_t)zipf.values[3]);
	else
		error = requests_read(&requests, stdin);
	if (!error) {
		error = run(&requests, &settings);
		requests_free(&requests);
	}
	if (!error && fflush(stdout))
		error = -errno;
	if (error)
		fprintf(stderr, "replay: %s\n", strerror(-error));
	return error ? 1 : 0;
}
