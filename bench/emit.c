/* SPDX-License-Identifier: MIT */
/*
 * Records events as fast as possible, or at a given rate, and prints what each took. Compiled once
 * for each measured system (system-*.h). bench.py controls it: a line on stdin is a pass, and a
 * line of JSON on stdout is its result.
 *
 *   kind=int|string|unknown|eight|printf|contexts|passed|rejected|disabled|empty
 *   n=EVENTS-OF-EACH-THREAD
 *   threads=N
 *   pin=FIRST-CPU                          -1: not pinned
 *   work=MULTIPLICATIONS                   before each event
 *   rate=EVENTS/S                          of each thread; 0: as fast as possible
 *   memory=BYTES                           of each thread (for the limit)
 *   fresh=1                                memory that was not accessed before (for the limit)
 *
 * ns is the CPU time of the recording threads for each event: it does not include other users of
 * the CPU. wall_ns is the time from the first thread's start to the last one's end, for each event
 * of one thread.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(BENCH_KYMO)
#include "system-kymo.h"
#elif defined(BENCH_LTTNG)
#include "system-lttng.h"
#else
#include "system-limit.h"
#endif

#define MAX_THREADS	64
#define BURST_PERIOD_NS 1000000u
#define MULTIPLIER	0x9e3779b97f4a7c15u

struct pass {
	char kind[16];
	uint64_t n, work, rate, memory;
	int threads, pin, fresh;
	void (*burst)(uint64_t from, uint64_t to, uint64_t work);
	pthread_barrier_t start;
};

struct worker {
	pthread_t thread;
	struct pass *pass;
	int number;
	uint64_t cpu_ns, begin_ns, end_ns;
};

static uint64_t now_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "emit: %s: %s\n", what, strerror(errno));
	exit(1);
}

/*
 * Multiplications, each of which needs the result of the previous one: time that nothing can
 * shorten.
 */
static inline uint64_t work_on(uint64_t x, uint64_t n)
{
	for (; n; n--) {
		x *= MULTIPLIER;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

#define DEFINE_BURST(name, statement)                                                              \
	static void name(uint64_t from, uint64_t to, uint64_t work)                                \
	{                                                                                          \
		uint64_t x = from;                                                                 \
                                                                                                   \
		for (uint64_t n = from; n < to; n++) {                                             \
			int32_t i = (int32_t)n;                                                    \
                                                                                                   \
			x = work_on(x, work);                                                      \
			statement;                                                                 \
			__asm__ volatile("" : : "r"(i) : "memory");                                \
		}                                                                                  \
	}

static const char text[] = "sixteen letters.";
/* The same, but the compiler does not know its length. */
static const char *volatile unknown = text;

DEFINE_BURST(burst_empty, (void)0)
DEFINE_BURST(burst_disabled, record_disabled(i))
DEFINE_BURST(burst_int, record_int(i))
DEFINE_BURST(burst_string, record_string(i, text))
DEFINE_BURST(burst_unknown, record_string(i, unknown))
DEFINE_BURST(burst_eight, record_eight(i))
DEFINE_BURST(burst_printf, record_printf(i))
DEFINE_BURST(burst_contexts, record_contexts(i))
DEFINE_BURST(burst_passed, record_passed(i))
DEFINE_BURST(burst_rejected, record_rejected(i))

static const struct {
	const char *name;
	void (*burst)(uint64_t from, uint64_t to, uint64_t work);
} kinds[] = {
	{"empty", burst_empty},
	{"disabled", burst_disabled},
	{"int", burst_int},
	{"string", burst_string},
	{"unknown", burst_unknown},
	{"eight", burst_eight},
	{"printf", burst_printf},
	{"contexts", burst_contexts},
	{"passed", burst_passed},
	{"rejected", burst_rejected},
};

/* Pins the calling thread to the n-th of the CPUs that the process may use. */
static void pin_to(int n)
{
	cpu_set_t allowed, one;
	int cpu = -1;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	n %= CPU_COUNT(&allowed);
	do {
		cpu++;
		n -= CPU_ISSET(cpu, &allowed) != 0;
	} while (n >= 0);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

#if !defined(BENCH_KYMO) && !defined(BENCH_LTTNG)
/* Keeps memory from pass to pass, unless it must be fresh. The memory is shared, as rings are. */
static void prepare_memory(const struct pass *p, int number)
{
	static struct {
		uint8_t *base;
		uint64_t size;
	} kept[MAX_THREADS];

	if (kept[number].base && (p->fresh || kept[number].size != p->memory)) {
		munmap(kept[number].base, kept[number].size + 4096);
		kept[number].base = NULL;
	}
	if (!kept[number].base) {
		kept[number].size = p->memory;
		kept[number].base = mmap(NULL, p->memory + 4096, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | (p->fresh ? 0 : MAP_POPULATE), -1, 0);
		if (kept[number].base == MAP_FAILED)
			die("memory for a thread");
	}
	memory.base = kept[number].base;
	memory.mask = p->memory - 1;
	memory.pos = 0;
}
#else
static void prepare_memory(const struct pass *p, int number)
{
	(void)p, (void)number;
}
#endif

/*
 * Emits events in bursts of a millisecond each, and sleeps between them. Does not wait before a
 * burst that is late.
 */
static void emit_at_rate(const struct pass *p)
{
	uint64_t each = p->rate * BURST_PERIOD_NS / 1000000000u, next = now_ns(CLOCK_MONOTONIC);

	if (!each)
		each = 1;
	for (uint64_t done = 0; done < p->n; done += each) {
		struct timespec ts;

		p->burst(done, done + each < p->n ? done + each : p->n, p->work);
		next += BURST_PERIOD_NS;
		ts.tv_sec = (time_t)(next / 1000000000u);
		ts.tv_nsec = (long)(next % 1000000000u);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct pass *p = w->pass;
	uint64_t cpu;

	if (p->pin >= 0)
		pin_to(p->pin + w->number);
	prepare_memory(p, w->number);
	pthread_barrier_wait(&p->start);
	w->begin_ns = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	if (p->rate)
		emit_at_rate(p);
	else
		p->burst(0, p->n, p->work);
	w->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	w->end_ns = now_ns(CLOCK_MONOTONIC);
	return NULL;
}

static void run(struct pass *p)
{
	struct worker workers[MAX_THREADS] = {0};
	uint64_t cpu = 0, begin = UINT64_MAX, end = 0;

	pthread_barrier_init(&p->start, NULL, (unsigned)p->threads);
	for (int t = 0; t < p->threads; t++) {
		workers[t].pass = p;
		workers[t].number = t;
		errno = pthread_create(&workers[t].thread, NULL, work, &workers[t]);
		if (errno)
			die("pthread_create");
	}
	for (int t = 0; t < p->threads; t++) {
		const struct worker *w = &workers[t];

		pthread_join(w->thread, NULL);
		cpu += w->cpu_ns;
		begin = w->begin_ns < begin ? w->begin_ns : begin;
		end = w->end_ns > end ? w->end_ns : end;
	}
	pthread_barrier_destroy(&p->start);
	printf("{\"ns\": %.4f, \"wall_ns\": %.4f, \"events\": %llu}\n",
		(double)cpu / (double)p->n / p->threads, (double)(end - begin) / (double)p->n,
		(unsigned long long)p->n * (unsigned)p->threads);
}

static bool set(struct pass *p, const char *key, const char *value)
{
	uint64_t n = strtoull(value, NULL, 10);

	if (!strcmp(key, "kind"))
		snprintf(p->kind, sizeof(p->kind), "%s", value);
	else if (!strcmp(key, "n"))
		p->n = n;
	else if (!strcmp(key, "work"))
		p->work = n;
	else if (!strcmp(key, "rate"))
		p->rate = n;
	else if (!strcmp(key, "memory"))
		p->memory = n;
	else if (!strcmp(key, "fresh"))
		p->fresh = (int)n;
	else if (!strcmp(key, "threads"))
		p->threads = (int)n;
	else if (!strcmp(key, "pin"))
		p->pin = atoi(value);
	else
		return false;
	return true;
}

static bool parse(struct pass *p, char *line)
{
	char *save = NULL;

	*p = (struct pass){.n = 1, .threads = 1, .pin = -1, .memory = 1u << 21};
	for (char *word = strtok_r(line, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		char *value = strchr(word, '=');

		if (!value)
			return false;
		*value++ = '\0';
		if (!set(p, word, value))
			return false;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, p->kind))
			p->burst = kinds[i].burst;
	return p->burst && p->n && p->threads > 0 && p->threads <= MAX_THREADS &&
	       p->memory >= 4096 && !(p->memory & (p->memory - 1));
}

int main(void)
{
	char line[256];
	struct pass pass;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (!parse(&pass, line)) {
			fprintf(stderr, "emit: not a pass: see the head of bench/emit.c\n");
			return 2;
		}
		run(&pass);
	}
	return 0;
}
