/* SPDX-License-Identifier: MIT */
/*
 * test-surge.c - unit tests of bench/load/surge.c and of the workload on it: compares
 * samples of fixed seeds with the distribution functions, by the test of Kolmogorov
 * and Smirnov; the bounds detect a parameter that is 2 % off.
 */
#include <math.h>

#include <client-workload.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <surge.h>

#include "client-requests.h"
#include "suite.h"

#define SAMPLES 1000000u
#define BOUND (1.95 / sqrt(SAMPLES)) /* one in 1,000 good samples would exceed it */

static double samples[SAMPLES];

static int compare(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

/* Fills samples, sorted. */
static void draw(double (*sample)(struct surge *surge))
{
	struct surge surge = {42};

	for (unsigned i = 0; i < SAMPLES; i++)
		samples[i] = sample(&surge);
	qsort(samples, SAMPLES, sizeof(samples[0]), compare);
}

/* The largest distance between the samples' distribution and the given one. */
static double distance(double (*below)(double value, const double *parameters),
		       const double *parameters)
{
	double most = 0;

	for (unsigned i = 0; i < SAMPLES; i++) {
		double wanted = below(samples[i], parameters);

		most = fmax(most,
			    fmax(wanted - (double)i / SAMPLES, (double)(i + 1) / SAMPLES - wanted));
	}
	return most;
}

/* The right parameters pass; each of them, 2 % larger, does not. */
static void ck_distribution(double (*below)(double value, const double *parameters),
			    const double *parameters, unsigned count)
{
	double found = distance(below, parameters);

	ck_assert_msg(found < BOUND, "%g, bound %g", found, BOUND);
	for (unsigned i = 0; i < count; i++) {
		double wrong[8];

		memcpy(wrong, parameters, count * sizeof(wrong[0]));
		wrong[i] *= 1.02;
		found = distance(below, wrong);
		ck_assert_msg(found > BOUND, "parameter %u: %g, bound %g", i, found, BOUND);
	}
}

static double normal_below(double value)
{
	return erfc(-value / sqrt(2)) / 2;
}

static double lognormal_below(double value, const double *mu_sigma)
{
	return normal_below((log(value) - mu_sigma[0]) / mu_sigma[1]);
}

static double pareto_below(double value, const double *k_alpha)
{
	return value < k_alpha[0] ? 0 : 1 - pow(k_alpha[0] / value, k_alpha[1]);
}

static double weibull_below(double value, const double *a_b)
{
	return 1 - exp(-pow(value / a_b[0], a_b[1]));
}

START_TEST(test_parts)
{
	draw(surge_part);
	ck_assert(samples[0] > 0 && samples[SAMPLES - 1] < 1);
	ck_assert(distance(pareto_below, (const double[]){1, 1}) > BOUND);
	for (unsigned i = 0; i < SAMPLES; i++)
		samples[i] = -log(1 - samples[i]);
	ck_distribution(weibull_below, (const double[]){1, 1}, 2);
}
END_TEST

START_TEST(test_active_off)
{
	draw(surge_active_off);
	ck_distribution(weibull_below, (const double[]){1.46, 0.382}, 2);
}
END_TEST

START_TEST(test_inactive_off)
{
	draw(surge_inactive_off);
	ck_distribution(pareto_below, (const double[]){1, 1.5}, 2);
}
END_TEST

START_TEST(test_distances)
{
	draw(surge_distance);
	ck_distribution(lognormal_below, (const double[]){1.5, 0.80}, 2);
}
END_TEST

static double size(struct surge *surge)
{
	return (double)surge_size(surge);
}

/* Shares of both parts; then each part by itself. */
START_TEST(test_sizes)
{
	unsigned bodies = 0, most = 0;
	double share, spread = sqrt(0.07 * 0.93 / SAMPLES), found;
	double all[] = {9.357, 1.318};

	draw(size);
	while (bodies < SAMPLES && samples[bodies] < 133000)
		bodies++;
	share = 1 - (double)bodies / SAMPLES;
	ck_assert_msg(fabs(share - 0.07) < 3.3 * spread, "%g of all in the tail", share);
	for (unsigned which = 0; which < 3; which++) {
		double mu = all[0] * (which == 1 ? 1.01 : 1),
		       sigma = all[1] * (which == 2 ? 1.02 : 1);
		double top = normal_below((log(133000) - mu) / sigma);

		found = 0;
		for (unsigned i = 0; i < bodies; i++)
			found = fmax(found,
				     fabs(normal_below((log(samples[i] + 0.5) - mu) / sigma) / top -
					  (i + 0.5) / bodies));
		ck_assert_msg((found < BOUND) == !which, "body %u: %g, bound %g", which, found,
			      BOUND);
	}
	for (unsigned which = 0; which < 2; which++) {
		double alpha = which ? 1.1 * 1.05 : 1.1, bound = 1.95 / sqrt(SAMPLES - bodies);

		found = 0;
		for (unsigned i = bodies; i < SAMPLES; i++)
			if (samples[i] < (double)SURGE_SIZE_MOST)
				found = fmax(found,
					     fabs(1 - pow(133e3 / (samples[i] + 0.5), alpha) -
						  (i - bodies + 0.5) / (SAMPLES - bodies)));
		ck_assert_msg((found < bound) == !which, "tail %u: %g, bound %g", which, found,
			      bound);
	}
	while (samples[SAMPLES - 1 - most] >= (double)SURGE_SIZE_MOST)
		most++;
	ck_assert_uint_lt(most, SAMPLES / 5000);
	ck_assert(samples[0] >= 1);
}
END_TEST

/* Whole numbers: by the chi-square test. */
START_TEST(test_embedded)
{
	enum { CLASSES = 8 };
	unsigned counts[CLASSES + 1] = {0};
	struct surge surge = {42};
	double chi[2] = {0};

	for (unsigned i = 0; i < SAMPLES; i++) {
		uint32_t embedded = surge_embedded(&surge);

		expect(embedded >= 1);
		counts[embedded < CLASSES ? embedded : CLASSES]++;
	}
	for (unsigned wrong = 0; wrong < 2; wrong++)
		for (unsigned i = 1; i <= CLASSES; i++) {
			double alpha = wrong ? 2.43 * 1.02 : 2.43;
			double part = pow(i, -alpha) - (i < CLASSES ? pow(i + 1, -alpha) : 0);
			double wanted = part * SAMPLES;

			chi[wrong] += (counts[i] - wanted) * (counts[i] - wanted) / wanted;
		}
	ck_assert_msg(chi[0] < 24.3, "%g of 7 degrees", chi[0]); /* one in 1,000 */
	ck_assert_msg(chi[1] > 24.3, "%g of 7 degrees", chi[1]);
}
END_TEST

#define DOCUMENTS 2000u
#define LENGTH (DOCUMENTS * SURGE_REPEAT)

static uint32_t sequence[LENGTH];

START_TEST(test_popularity)
{
	static uint32_t counts[DOCUMENTS], found[DOCUMENTS];
	double sum = 0;
	uint64_t all = 0;

	surge_counts(counts, DOCUMENTS, LENGTH);
	ck_assert_int_eq(surge_sequence(sequence, LENGTH, DOCUMENTS, 1), 0);
	for (unsigned i = 0; i < LENGTH; i++) {
		expect(sequence[i] < DOCUMENTS);
		found[sequence[i]]++;
	}
	for (unsigned i = 0; i < DOCUMENTS; i++)
		sum += 1.0 / (i + 1);
	for (unsigned i = 0; i < DOCUMENTS; i++) {
		expect(found[i] == counts[i]);
		expect(fabs(counts[i] - LENGTH / sum / (i + 1)) <= 1);
		all += counts[i];
	}
	ck_assert_uint_eq(all, LENGTH);
	ck_assert_uint_gt(counts[DOCUMENTS - 1], 0);
}
END_TEST

/* Stack distances are close to the model, as far as Zipf's counts permit. */
START_TEST(test_locality)
{
	static uint32_t stack[DOCUMENTS];
	double far = 0;
	unsigned below[64] = {0}, count = 0, again = 0;

	ck_assert_int_eq(surge_sequence(sequence, LENGTH, DOCUMENTS, 1), 0);
	for (unsigned i = 0; i < LENGTH; i++) {
		unsigned at = 0;

		while (at < count && stack[at] != sequence[i])
			at++;
		if (at < count) {
			again++;
			for (unsigned j = at; j < 64; j++)
				below[j]++;
		} else {
			count++;
		}
		memmove(stack + 1, stack, at * sizeof(stack[0]));
		stack[0] = sequence[i];
	}
	for (unsigned j = 0; j < 64; j++)
		far = fmax(far, fabs((double)below[j] / again -
				     lognormal_below(j + 1.5, (const double[]){1.5, 0.80})));
	ck_assert_msg(far < 0.1, "%g", far);
	/* Without locality, by Zipf's law alone, half of them are above 90. */
	ck_assert_msg(below[49] > 0.99 * again, "%u of %u", below[49], again);
}
END_TEST

START_TEST(test_few_documents)
{
	for (uint32_t documents = 1; documents < 20; documents++)
		for (uint32_t length = 1; length < 100; length++) {
			ck_assert_int_eq(surge_sequence(sequence, length, documents, length), 0);
			for (uint32_t i = 0; i < length; i++)
				expect(sequence[i] < documents);
		}
}
END_TEST

/* Users: pauses of both kinds, pages, popularity over all of them. */
START_TEST(test_users)
{
	enum { USERS = 200, STEPS = 500 };
	const struct request_form form = {.host = "h", .fields = ""};
	struct requests requests = {0};
	struct workload *workload, *same;
	unsigned pages = 0, first = 0;
	double popular;
	struct step step, twin;

	for (unsigned i = 0; i < 100; i++) {
		char path[16];

		snprintf(path, sizeof(path), "/%u", i);
		ck_assert_int_eq(requests_add(&requests, &form, path, i, 200), 0);
	}
	workload = workload_surge(&requests, USERS, 3, 0.5, true);
	same = workload_surge(&requests, USERS, 3, 0.5, true);
	ck_assert_ptr_nonnull(workload);
	ck_assert_ptr_nonnull(same);
	for (unsigned i = 0; i < STEPS; i++)
		for (uint32_t user = 0; user < USERS; user++) {
			workload->kind->next(workload, user, &step);
			same->kind->next(same, user, &twin);
			expect(step.request == twin.request && step.pause == twin.pause);
			/* Inactive OFF times are at least a second, except the first. */
			expect(!step.leave || !i || step.pause >= 500000);
			pages += step.leave;
			first += step.request->size == 0;
		}
	/* A page is one document and zeta(2.43) = 1.37 embedded ones. */
	ck_assert_msg(fabs((double)USERS * STEPS / pages - 2.37) < 0.1, "%u pages", pages);
	popular = (double)first / (USERS * STEPS);
	ck_assert_msg(fabs(popular - 1 / 5.187) < 0.05, "%g", popular);
	workload->kind->close(workload);
	same->kind->close(same);
	requests_free(&requests);
}
END_TEST

static void fill(TCase *tcase)
{
	tcase_add_test(tcase, test_parts);
	tcase_add_test(tcase, test_active_off);
	tcase_add_test(tcase, test_inactive_off);
	tcase_add_test(tcase, test_distances);
	tcase_add_test(tcase, test_sizes);
	tcase_add_test(tcase, test_embedded);
	tcase_add_test(tcase, test_popularity);
	tcase_add_test(tcase, test_locality);
	tcase_add_test(tcase, test_few_documents);
	tcase_add_test(tcase, test_users);
}

RUN_SUITE("surge", fill)
