/* SPDX-License-Identifier: MIT */
/*
 * A short form of common filters: one comparison of an integer at a known place with a constant, or
 * two of them and `&&` or `||`. link-quick.c makes it beside the code, and the thread that records
 * uses it where the payload is in one place. Then no function is called to reject an event.
 *
 * A test loads the 8 bytes that end with the field, or the first 8 bytes if the field ends earlier,
 * and shifts them so that the field is at the top. Below are bytes of other fields, which cannot
 * change the result: `least` has zeros there, and `width` ones. The difference of two integers
 * wraps, so signed and unsigned fields have the same test.
 */
#ifndef FILTER_QUICK_H
#define FILTER_QUICK_H

#include "base/util.h"

enum ky_filter_verdict {
	KY_QUICK_REJECT,
	KY_QUICK_PASS,
	KY_QUICK_NEXT, /* the other test decides */
};

struct ky_filter_test {
	uint64_t least, width;
	uint32_t at; /* of the 8 bytes */
	uint8_t shift;
	uint8_t verdict[2]; /* enum ky_filter_verdict, by the test's result */
	uint8_t unused;
};

struct ky_filter_quick {
	uint32_t end;	   /* bytes that are loaded: payloads have that many; UINT32_MAX: never */
	uint32_t word_end; /* the same for an event of one word, of which all 8 bytes exist */
	uint32_t field_end;
	uint32_t unused;
	struct ky_filter_test test[2];
};

/* It branches: a load whose address depends on the result would take longer. */
static inline __attribute__((always_inline)) unsigned ky_filter_test(
	const struct ky_filter_test *t, uint64_t bytes)
{
	return (bytes << t->shift) - t->least <= t->width ? t->verdict[1] : t->verdict[0];
}

/* Returns true if the payload passes. Only for payloads of at least q->end bytes in one place. */
static inline __attribute__((always_inline)) bool ky_filter_quick_pass(
	const struct ky_filter_quick *q, const void *payload)
{
	unsigned verdict;
	uint64_t bytes;

	memcpy(&bytes, (const char *)payload + q->test[0].at, sizeof(bytes));
	verdict = ky_filter_test(&q->test[0], bytes);
	if (verdict == KY_QUICK_NEXT) {
		memcpy(&bytes, (const char *)payload + q->test[1].at, sizeof(bytes));
		verdict = ky_filter_test(&q->test[1], bytes);
	}
	return verdict == KY_QUICK_PASS;
}

/* The same for an event of one word that has at least q->word_end bytes. */
static inline __attribute__((always_inline)) bool ky_filter_quick_pass_word(
	const struct ky_filter_quick *q, uint64_t word)
{
	unsigned verdict = ky_filter_test(&q->test[0], word);

	if (verdict == KY_QUICK_NEXT)
		verdict = ky_filter_test(&q->test[1], word);
	return verdict == KY_QUICK_PASS;
}

#endif
