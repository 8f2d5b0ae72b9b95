/* SPDX-License-Identifier: MIT */
/*
 * library.c - makes each call of the library to the system fail, one after the
 * other, while a scenario uses its interface.
 *
 *	FAULT_PLAN=file LD_PRELOAD=fault.so library [OPTION...] SCENARIO...
 *
 * A clean round counts the calls of each kind.  Then for each of them and each
 * possible error there is a round in which it fails, and a clean one.  A call of the
 * library that fails must have met the fault; after each round nothing may be left:
 * descriptors, mappings, blocks of the heap.  Lines "failed CALL ERRNO" on standard
 * output tell the driver (fault_library.py) what failed how, for it to be looked up
 * in the manual.
 *
 * With -i there are no faults: signals interrupt the calls all the time, and
 * each must go well.
 *
 * One thread, but for the library's own.
 */
#include "scenario.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"

#define TRIPLES_MAX 65536u
#define FAILURES_MAX 1024u
#define WRONG_MAX 20u
#define ROUND_SECONDS 30u

struct triple {
	unsigned kind;
	unsigned ahead; /* calls of a round before it */
	int error;
};

struct failure {
	char call[40];
	int error;
};

struct traces {
	unsigned descriptors;
	size_t mapped; /* bytes, without the heap, which grows by itself */
	int64_t blocks;
};

static struct fault_plan *plan, **active; /* what fault.c uses: NULL outside of calls */
static const char *folder = "/tmp";

static struct triple triples[TRIPLES_MAX];
static size_t triple_count;
static struct failure failures[FAILURES_MAX];
static unsigned failure_count, wrong_count;
static unsigned in_a_row; /* calls that fail in a round; 0: one or three */
static bool interrupting;
static uint64_t interrupts;

/* Of the round. */
static char what[128];
static uint64_t fired_at_begin, fired_in_call;
static bool failed;

static const struct scenario *const scenarios[] = {
	&scenario_units, &scenario_sends,  &scenario_rings,  &scenario_registered,
	&scenario_owner, &scenario_member, &scenario_server, &scenario_worker,
};

/* --- for scenarios ---------------------------------------------------------------------- */

void wrong(const char *format, ...)
{
	va_list arguments;

	printf("wrong: %s: ", what);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	/* The call stack of the fault, for addr2line. */
	for (uint64_t i = 0; plan && i < plan->frame_count; i++)
		if (plan->frames[i] - plan->base < 1u << 24)
			printf(" %#llx", (unsigned long long)(plan->frames[i] - plan->base - 1));
	putchar('\n');
	if (++wrong_count >= WRONG_MAX)
		exit(1);
}

/* Signals arrive only within calls of the library, as faults do. */
static void let_interrupt(int how)
{
	sigset_t signals;

	if (!interrupting)
		return;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(how, &signals, NULL);
}

void call_begin(void)
{
	let_interrupt(SIG_UNBLOCK);
	if (plan)
		fired_in_call = atomic_load(&plan->fired);
	if (active)
		*active = plan;
	errno = 0;
}

static void note_failure(const char *call, int error)
{
	struct failure *at = failures;
	size_t length = strcspn(call, "(");

	for (; at < failures + failure_count; at++)
		if (at->error == error && strncmp(at->call, call, length) == 0 &&
		    at->call[length] == '\0')
			return;
	if (failure_count == FAILURES_MAX || length >= sizeof(at->call))
		return;
	memcpy(at->call, call, length);
	at->error = error;
	failure_count++;
}

bool call_end(const char *call, bool good)
{
	int error = errno;

	let_interrupt(SIG_BLOCK);
	if (active)
		*active = NULL;
	if (good)
		return true;
	if (!plan || atomic_load(&plan->fired) == fired_at_begin)
		wrong("%s: %s, and nothing had failed", call, strerror(error));
	else if (!failed && atomic_load(&plan->fired) == fired_in_call)
		wrong("%s: %s, and the earlier failure was not reported", call, strerror(error));
	failed = true;
	note_failure(call, error);
	errno = error;
	return false;
}

bool call_end_refused(const char *call, bool is_refused, int error)
{
	int met = errno;

	if (is_refused && met == error)
		return call_end(call, true);
	if (is_refused)
		return call_end(call, false);
	(void)call_end(call, true);
	if (is_clean())
		wrong("%s was not refused", call);
	return false;
}

void callback_begin(void)
{
	let_interrupt(SIG_BLOCK);
	if (active)
		*active = NULL;
}

void callback_end(void)
{
	let_interrupt(SIG_UNBLOCK);
	if (active)
		*active = plan;
}

bool is_clean(void)
{
	return !plan || atomic_load(&plan->fired) == fired_at_begin;
}

bool is_fault_of(const char *kind)
{
	uint64_t armed = plan ? atomic_load(&plan->kind) : FAULT_NONE;

	return armed < FAULT_KIND_COUNT && strcmp(plan->kinds[armed].name, kind) == 0;
}

const char *scratch(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* --- leaks of a round ----------------------------------------------------------------------- */

static size_t read_all(const char *path, char *into, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got;

	while ((got = read(fd, into + length, size - 1 - length)) > 0)
		length += (size_t)got;
	close(fd);
	into[length] = '\0';
	return length;
}

static struct traces look(void)
{
	static char text[1 << 20];
	struct traces traces = {.blocks = atomic_load(&plan->live)};
	char *line, *rest = text;

	for (int fd = 0; fd < 1024; fd++)
		traces.descriptors += fcntl(fd, F_GETFD) >= 0;
	read_all("/proc/self/maps", text, sizeof(text));
	while ((line = strsep(&rest, "\n"))) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && !strstr(line, "[heap]") &&
		    !strstr(line, "[stack]"))
			traces.mapped += end - start;
	}
	return traces;
}

static void compare(const struct traces *before)
{
	struct traces now = look();

	if (now.descriptors != before->descriptors)
		wrong("%u descriptors, there were %u", now.descriptors, before->descriptors);
	if (now.mapped != before->mapped)
		wrong("%zu bytes mapped, there were %zu", now.mapped, before->mapped);
	if (now.blocks != before->blocks)
		wrong("%lld blocks of the heap, there were %lld", (long long)now.blocks,
		      (long long)before->blocks);
}

/* --- the walk ------------------------------------------------------------------------------ */

static void disarm(void)
{
	atomic_store(&plan->kind, FAULT_NONE);
	atomic_store(&plan->times, 0);
}

static void arm(const struct triple *triple, unsigned times)
{
	atomic_store(&plan->kind, FAULT_NONE);
	atomic_store(&plan->error, triple->error);
	atomic_store(&plan->times, times);
	atomic_store(&plan->at, atomic_load(&plan->kinds[triple->kind].calls) + triple->ahead);
	atomic_store(&plan->kind, triple->kind);
}

static void run(const struct scenario *scenario)
{
	fired_at_begin = atomic_load(&plan->fired);
	failed = false;
	alarm(ROUND_SECONDS);
	scenario->round();
	alarm(0);
}

/* kind_wanted: only that kind, if not NULL. */
static void list_triples(const uint64_t *before, const char *kind_wanted)
{
	triple_count = 0;
	for (unsigned kind = 0; kind < FAULT_KIND_COUNT; kind++) {
		const struct fault_counter *counter = &plan->kinds[kind];
		unsigned calls = (unsigned)(atomic_load(&counter->calls) - before[kind]);

		if (kind_wanted && strcmp(counter->name, kind_wanted) != 0)
			continue;
		for (unsigned i = 0; i < calls; i++)
			for (unsigned k = 0; k < FAULT_ERRORS_MAX && counter->errors[k]; k++)
				if (triple_count < TRIPLES_MAX)
					triples[triple_count++] =
						(struct triple){kind, i, counter->errors[k]};
	}
}

static const char *name_of(int error)
{
	switch (error) {
	case FAULT_SHORT:
		return "short";
	case FAULT_CUT:
		return "cut";
	case FAULT_LOST:
		return "lost";
	default:
		return strerrorname_np(error);
	}
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Objects that a process creates once are created in the first two rounds. */
static void begin(const struct scenario *scenario)
{
	disarm();
	if (scenario->open)
		scenario->open();
	run(scenario);
	run(scenario);
}

static void walk(const struct scenario *scenario, const char *kind_wanted, size_t stride,
		 size_t first, double seconds)
{
	uint64_t before[FAULT_KIND_COUNT], fired = atomic_load(&plan->fired);
	double end = now() + seconds;
	struct traces traces;
	size_t rounds = 0;

	snprintf(what, sizeof(what), "%s", scenario->name);
	begin(scenario);
	for (unsigned kind = 0; kind < FAULT_KIND_COUNT; kind++)
		before[kind] = atomic_load(&plan->kinds[kind].calls);
	traces = look();
	run(scenario);
	compare(&traces);
	list_triples(before, kind_wanted);
	for (size_t i = first % stride; i < triple_count && now() < end; i += stride, rounds++) {
		const struct triple *triple = &triples[i];

		snprintf(what, sizeof(what), "%s: %s +%u %s", scenario->name,
			 plan->kinds[triple->kind].name, triple->ahead, name_of(triple->error));
		/* Sometimes a call that failed continues to fail for a while. */
		arm(triple, in_a_row ? in_a_row : rounds % 4 == 3 ? 3 : 1);
		run(scenario);
		disarm();
		compare(&traces);
		strcat(what, ", afterwards");
		run(scenario);
		compare(&traces);
	}
	if (scenario->close)
		scenario->close();
	printf("walked %s %zu %zu %llu\n", scenario->name, rounds, triple_count,
	       (unsigned long long)(atomic_load(&plan->fired) - fired));
	fflush(stdout);
}

static void count_interrupt(int signal_number)
{
	(void)signal_number;
	interrupts++;
}

static void interrupt(const struct scenario *scenario, unsigned rounds)
{
	const struct itimerspec often = {.it_interval.tv_nsec = 50000, .it_value.tv_nsec = 50000};
	/* No SA_RESTART. */
	const struct sigaction handler = {.sa_handler = count_interrupt};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct traces traces;
	timer_t timer;

	snprintf(what, sizeof(what), "%s, interrupted", scenario->name);
	begin(scenario);
	traces = look();
	interrupting = true;
	let_interrupt(SIG_BLOCK);
	sigaction(SIGUSR1, &handler, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 ||
	    timer_settime(timer, 0, &often, NULL) < 0)
		abort();
	for (unsigned i = 0; i < rounds; i++) {
		run(scenario);
		compare(&traces);
	}
	timer_delete(timer);
	let_interrupt(SIG_UNBLOCK);
	interrupting = false;
	if (scenario->close)
		scenario->close();
	printf("walked %s %u %u %llu\n", scenario->name, rounds, rounds,
	       (unsigned long long)interrupts);
	interrupts = 0;
}

/* In a handler: exits, and reports the current call. */
static void die(int signal_number)
{
	const char *text = signal_number == SIGALRM ? "wrong: hangs: " : "wrong: crashes: ";

	(void)!write(STDOUT_FILENO, text, strlen(text));
	(void)!write(STDOUT_FILENO, what, strlen(what));
	(void)!write(STDOUT_FILENO, "\n", 1);
	signal(SIGABRT, SIG_DFL);
	abort();
}

int main(int count, char **arguments)
{
	size_t stride = 1, first = 0;
	const char *kind = NULL;
	unsigned rounds = 0;
	double seconds = 1e9;
	int option;

	if (count == 2 && strcmp(arguments[1], AS_WORKER) == 0)
		return worker_main();
	while ((option = getopt(count, arguments, "d:f:i:k:n:s:t:")) != -1) {
		if (option == 'd')
			folder = optarg;
		else if (option == 'f')
			first = strtoul(optarg, NULL, 10);
		else if (option == 'i')
			rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (option == 'k')
			kind = optarg;
		else if (option == 'n')
			in_a_row = (unsigned)strtoul(optarg, NULL, 10);
		else if (option == 's')
			stride = strtoul(optarg, NULL, 10);
		else if (option == 't')
			seconds = strtod(optarg, NULL);
		else
			return 2;
	}
	active = (struct fault_plan **)dlsym(RTLD_DEFAULT, "fault_plan");
	if (!active || !*active || stride == 0) {
		fputs("library: runs with fault.so and a plan "
		      "(tests/system/support/fault_library.py)\n",
		      stderr);
		return 2;
	}
	plan = *active;
	*active = NULL;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, die);
	signal(SIGSEGV, die);
	signal(SIGBUS, die);
	signal(SIGABRT, die);
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Large blocks are mapped and unmapped each time, so that their number can be compared. */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	mallopt(M_ARENA_MAX, 1);
	for (; optind < count; optind++)
		for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
			if (strcmp(arguments[optind], scenarios[i]->name) != 0)
				continue;
			else if (rounds)
				interrupt(scenarios[i], rounds);
			else
				walk(scenarios[i], kind, stride, first, seconds);
	for (unsigned i = 0; i < failure_count; i++)
		printf("failed %s %s\n", failures[i].call, name_of(failures[i].error));
	return wrong_count ? 1 : 0;
}
