/* SPDX-License-Identifier: MIT */
/*
 * rules [-w] N...: for each N, emits each event N times. The events have several providers and
 * levels. With -w it prints "ready" and waits for a line on stdin, before each round and at its
 * end. Compiled with OTHER, alpha:two has another field and alpha:three has another level.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/tracepoint.h>

#ifdef OTHER
#define TWO   kymo_string(n, "two")
#define THREE KYMO_DEBUG
#else
#define TWO   kymo_i32(n, i)
#define THREE KYMO_DEBUG_LINE
#endif

static void emit(int n)
{
	for (int i = 0; i < n; i++) {
		kymo_event_level(alpha, one, KYMO_ERR, kymo_i32(n, i));
		kymo_event_level(alpha, two, KYMO_WARNING, TWO);
		kymo_event_level(alpha, three, THREE, kymo_i32(n, i));
		kymo_event_level(beta, one, KYMO_INFO, kymo_i32(n, i));
		kymo_event_level(beta, one_more, KYMO_EMERG, kymo_i32(n, i));
	}
}

static void wait_line(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

int main(int argc, char **argv)
{
	int waits = argc > 1 && !strcmp(argv[1], "-w");

	for (int i = 1 + waits; i < argc; i++) {
		if (waits)
			wait_line();
		emit(atoi(argv[i]));
	}
	if (waits)
		wait_line();
	return 0;
}
