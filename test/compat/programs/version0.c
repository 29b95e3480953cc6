/* SPDX-License-Identifier: MIT */
/* Also C++. Values by which a field that comes out wrong is seen. */
#include "version0-tp.h"

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
	struct version0_opaque *pointers[] = {(struct version0_opaque *)16, NULL};
	const struct version0_pair pair = {-5, "five"};

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7);
	for (int i = -2; i < 3; i++)
		tracepoint(version0, integers, i * 77, 0x123456789abcdef0UL + (unsigned long)i,
			(const void *)(uintptr_t)(0x1000 + i));
	tracepoint(version0, floats, 1.5f, -2.25e100);
	tracepoint(version0, texts, "forty-two characters, of which some are \xc3\xa9", NULL, 9);
	tracepoint(version0, texts, "tiny", NULL, 2);
	tracepoint(version0, texts, "", "not absent", 0);
	tracepoint(version0, arrays, values, bytes, 3, pointers);
	tracepoint(version0, arrays, values, bytes, 0, pointers);
	for (int i = 0; i < 12; i++)
		tracepoint(version0, enumerations, i, i & 1 ? VERSION0_SMALL : VERSION0_LARGE);
	tracepoint(version0, no_fields);
	tracepoint(version0, unused, 1, "unused");
	for (int i = 0; i < 10; i++)
		tracepoint(version0, aside, i, i & 1 ? "odd" : "even", values);
	tracepoint(version0, only_aside, 3);
	tracepoint(version0, ten, 1, 2, 3, 4, 5, 6, 7, 8, 9, &pair);
	if (tracepoint_enabled(version0, pair_made))
		do_tracepoint(version0, pair_made, &pair);
	tracepoint(version0, pair_lost, &pair);
	tracepoint(version0, pair_kept, &pair);
	tracepoint(version0, unused, count(evaluated), "evaluated once");
	tracepoint(version0, unused, evaluated, "1 if recorded");
	return 0;
}
