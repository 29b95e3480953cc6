/* SPDX-License-Identifier: MIT */
/* Also C++. Values by which a field that comes out wrong is seen. */
#include "version1-tp.h"

static int evaluated;

static int count(int n)
{
	evaluated++;
	return n;
}

int main(void)
{
	static const long values[] = {-1, 1L << 30, 3};
	static unsigned char bytes[400];
	struct version1_opaque *pointers[] = {(struct version1_opaque *)16, NULL};
	const struct version1_pair pair = {-5, "five"};

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7);
	for (int i = -2; i < 3; i++)
		lttng_ust_tracepoint(version1, integers, i * 77,
			0x123456789abcdef0UL + (unsigned long)i,
			(const void *)(uintptr_t)(0x1000 + i));
	lttng_ust_tracepoint(version1, floats, 1.5f, -2.25e100);
	lttng_ust_tracepoint(
		version1, texts, "forty-two characters, of which some are \xc3\xa9", NULL, 9);
	lttng_ust_tracepoint(version1, texts, "tiny", NULL, 2);
	lttng_ust_tracepoint(version1, texts, "", "not absent", 0);
	lttng_ust_tracepoint(version1, arrays, values, bytes, 3, pointers);
	lttng_ust_tracepoint(version1, arrays, values, bytes, 0, pointers);
	for (int i = 0; i < 12; i++)
		lttng_ust_tracepoint(
			version1, enumerations, i, i & 1 ? VERSION1_SMALL : VERSION1_LARGE);
	lttng_ust_tracepoint(version1, no_fields);
	lttng_ust_tracepoint(version1, unused, 1, "unused");
	for (int i = 0; i < 10; i++)
		lttng_ust_tracepoint(version1, aside, i, i & 1 ? "odd" : "even", values);
	lttng_ust_tracepoint(version1, only_aside, 3);
	lttng_ust_tracepoint(version1, ten, 1, 2, 3, 4, 5, 6, 7, 8, 9, &pair);
	if (lttng_ust_tracepoint_enabled(version1, pair_made))
		lttng_ust_do_tracepoint(version1, pair_made, &pair);
	lttng_ust_tracepoint(version1, pair_lost, &pair);
	lttng_ust_tracepoint(version1, pair_kept, &pair);
	lttng_ust_tracepoint(version1, unused, count(evaluated), "evaluated once");
	lttng_ust_tracepoint(version1, unused, evaluated, "1 if recorded");
	return 0;
}
