/* SPDX-License-Identifier: MIT */
/*
 * A program that is its own tracer: EXPECT compares the values of the next event with the expected
 * ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/nested.h>
#include <kymo/span.h>
#include <kymo/state.h>

static unsigned char taken[1 << 20];
static size_t n_taken;
static int n_events, wrong;

static void take(const struct kymo_event *event, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	size_t i;

	(void)event, (void)payload;
	n_taken = 0;
	for (i = 0; i < n_pieces; i++) {
		memcpy(taken + n_taken, pieces[i].ptr, pieces[i].len);
		n_taken += pieces[i].len;
	}
	wrong += n_taken != len;
	n_events++;
}

static void take_flat(const struct kymo_event *event, const void *payload, void *hook, size_t len)
{
	(void)event, (void)hook;
	memcpy(taken, payload, len);
	n_taken = len;
	n_events++;
}

static void take_word(const struct kymo_event *event, uint64_t value, void *hook, size_t len)
{
	take_flat(event, &value, hook, len);
}

#ifdef __cplusplus
extern "C"
#endif
	void
	kymo_object_register(struct kymo_object *object)
{
	const struct kymo_event *const *e;

	for (e = object->begin; e < object->end; e++) {
		(*e)->state->record = take;
		(*e)->state->record_flat = take_flat;
		(*e)->state->record_word = take_word;
		(*e)->state->enabled = 3;
	}
}

#ifdef __cplusplus
extern "C"
#endif
	void
	kymo_object_unregister(struct kymo_object *object)
{
	(void)object;
}

/* The expected record: numbers and letters, one after another. */
static unsigned char want[1 << 20];
static size_t n_want;

static void want_bytes(const void *p, size_t n)
{
	memcpy(want + n_want, p, n);
	n_want += n;
}

static void want_u32(uint32_t n)
{
	want_bytes(&n, sizeof(n));
}

static void want_letters(int letter, size_t n)
{
	memset(want + n_want, letter, n);
	n_want += n;
}

static void want_text(int letter, size_t n)
{
	want_letters(letter, n);
	want[n_want++] = 0;
}

static void expect(int line, int events)
{
	if (n_events != events || n_taken != n_want || memcmp(taken, want, n_want)) {
		printf("line %d: %zu bytes, not %zu\n", line, n_taken, n_want);
		wrong++;
	}
	n_want = 0;
	n_events = 0;
}
#define EXPECT expect(__LINE__, 1)
