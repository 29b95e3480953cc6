/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/small-file.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define NS_PER_S   1000000000u
#define N_READINGS 64
#define MEASURE_NS 30000000u

/* Returns true if the word is in the `flags` line. */
static bool cpu_has(const char *flag)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/cpuinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0) {
		if (strncmp(line, "flags", 5))
			continue;
		for (char *save, *word = strtok_r(line, " \t\n:", &save); word;
			word = strtok_r(NULL, " \t\n:", &save))
			if (!strcmp(word, flag))
				return true;
		return false;
	}
	return false;
}

enum ky_clock ky_clock_choose(void)
{
	const char *wish = secure_getenv("KYMO_CLOCK");
	enum ky_clock counter = ky_clock_of_machine();
	char source[32];

	if (wish && !strcmp(wish, "monotonic"))
		return KY_CLOCK_MONOTONIC;
	if ((wish && !strcmp(wish, "tsc")) || counter != KY_CLOCK_TSC)
		return counter;
	ky_read_text(AT_FDCWD, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		source, sizeof(source));
	if (strcmp(source, "tsc\n") || !cpu_has("constant_tsc") || !cpu_has("nonstop_tsc"))
		return KY_CLOCK_MONOTONIC;
	return KY_CLOCK_TSC;
}

#if defined(__aarch64__)
static uint64_t kernel_freq(void)
{
	uint64_t freq;

	__asm__("mrs %0, cntfrq_el0" : "=r"(freq));
	return freq;
}
#else
/*
 * Reads perf's user page, which has the kernel's factors from counter cycles to nanoseconds: ns =
 * cycles * time_mult >> time_shift (linux/perf_event.h). Returns 0 if perf is not available.
 */
static uint64_t kernel_freq(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};
	long page = sysconf(_SC_PAGESIZE);
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	struct perf_event_mmap_page *p;
	uint64_t freq = 0;

	if (fd < 0)
		return 0;
	p = mmap(NULL, (size_t)page, PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED) {
		if (p->cap_user_time && p->time_mult && p->time_shift <= 33)
			freq = (((uint64_t)NS_PER_S << p->time_shift) + p->time_mult / 2) /
			       p->time_mult;
		munmap(p, (size_t)page);
	}
	close(fd);
	return freq;
}
#endif

/* Reads two clocks at one moment: the closest of several attempts. */
static void read_pair(enum ky_clock clock, clockid_t id, uint64_t *ret_cycles, uint64_t *ret_ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < N_READINGS; i++) {
		uint64_t before = ky_clock_read(clock);
		uint64_t ns = ky_clock_ns(id);
		uint64_t after = ky_clock_read(clock);

		if (after - before >= best)
			continue;
		best = after - before;
		*ret_cycles = before + best / 2;
		*ret_ns = ns;
	}
}

/*
 * Measures the frequency. CLOCK_MONOTONIC_RAW is the counter times a constant that the kernel
 * derives from a whole number of kHz (tsc_khz). So the nearest whole number is exact, while the
 * measurement has an error of some 10^-7.
 */
static uint64_t measured_freq(enum ky_clock clock)
{
	struct timespec wait = {.tv_nsec = MEASURE_NS};
	uint64_t c0, c1, ns0, ns1, hz;

	read_pair(clock, CLOCK_MONOTONIC_RAW, &c0, &ns0);
	nanosleep(&wait, NULL);
	read_pair(clock, CLOCK_MONOTONIC_RAW, &c1, &ns1);
	hz = (c1 - c0) * NS_PER_S / (ns1 - ns0); /* no overflow: hundredths of a second of cycles */
	return (hz + 500) / 1000 * 1000;
}

static uint64_t counter_freq(enum ky_clock clock)
{
	static uint64_t freq;

	if (!freq)
		freq = kernel_freq();
	if (!freq)
		freq = measured_freq(clock);
	return freq;
}

void ky_clock_measure(enum ky_clock clock, struct ky_clock_info *ret_info)
{
	static const char *const descriptions[] = {
		[KY_CLOCK_MONOTONIC] = "CLOCK_MONOTONIC",
		[KY_CLOCK_TSC] = "x86 time stamp counter",
		[KY_CLOCK_CNTVCT] = "ARM virtual count",
	};
	uint64_t freq = clock == KY_CLOCK_MONOTONIC ? NS_PER_S : counter_freq(clock);
	uint64_t cycles = 0, ns = 0;
	int64_t zero, borrow;

	read_pair(clock, CLOCK_REALTIME, &cycles, &ns);
	/*
	 * Cycles from the begin of this second to clock value 0, which lies in an earlier second.
	 */
	zero = (int64_t)(ns % NS_PER_S * freq / NS_PER_S - cycles);
	borrow = zero < 0 ? (int64_t)(((uint64_t)-zero + freq - 1) / freq) : 0;
	*ret_info = (struct ky_clock_info){
		.clock = clock,
		.freq = freq,
		.offset_s = (int64_t)(ns / NS_PER_S) - borrow,
		.offset = (uint64_t)(zero + borrow * (int64_t)freq),
		.description = descriptions[clock],
	};
}
