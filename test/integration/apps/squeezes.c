/* SPDX-License-Identifier: MIT */
/* squeezes: 80 spans zip:file of 1 ms of CPU time in copy(); each tenth of 20 ms in squeeze(). */
#include <time.h>

#include <kymo/span.h>

#define NOINLINE __attribute__((noinline))

static volatile unsigned long sink;

static long cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

NOINLINE void copy(long us);
NOINLINE void copy(long us)
{
	for (long end = cpu_us() + us; cpu_us() < end;)
		for (int i = 0; i < 20000; i++)
			sink++;
}

NOINLINE void squeeze(long us);
NOINLINE void squeeze(long us)
{
	for (long end = cpu_us() + us; cpu_us() < end;)
		for (int i = 0; i < 20000; i++)
			sink ^= 1;
}

int main(void)
{
	for (int i = 0; i < 80; i++) {
		kymo_span_begin(zip, file);
		if (i % 10 == 7)
			squeeze(20000);
		else
			copy(1000);
		kymo_span_end(zip, file);
	}
	return 0;
}
