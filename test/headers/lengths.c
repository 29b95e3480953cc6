/* SPDX-License-Identifier: MIT */
/*
 * Sequences in pieces, with lengths that a program may also pass by mistake. The sum of the lengths
 * must not wrap: otherwise the record would be too small for what is copied into it. And texts that
 * have become shorter since they were measured. The program is its own tracer and takes its own
 * events. Exit status: the number of events and texts with a wrong length.
 */
#include <kymo/tracepoint.h>

static size_t handed_over;
static int wrong;

static void take(const struct kymo_event *event, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	(void)event, (void)payload, (void)pieces, (void)n_pieces;
	handed_over = len;
}

static void take_flat(const struct kymo_event *event, const void *payload, void *hook, size_t len)
{
	(void)event, (void)payload, (void)hook;
	handed_over = len;
}

void kymo_object_register(struct kymo_object *object)
{
	for (const struct kymo_event *const *e = object->begin; e < object->end; e++) {
		(*e)->state->record = take;
		(*e)->state->record_flat = take_flat;
		(*e)->state->enabled = 1;
	}
}

void kymo_object_unregister(struct kymo_object *object)
{
	(void)object;
}

static void expect(const char *what, int right)
{
	if (!right)
		printf("%s: %zu bytes handed over\n", what, handed_over);
	wrong += !right;
	handed_over = 0;
}

/* Copies texts of n bytes of which a NUL now ends `left`. */
static void copy_shortened(void)
{
	char text[48];
	unsigned char copy[sizeof(text)];
	size_t n, left;

	for (n = 0; n < sizeof(text); n++) {
		for (left = 0; left <= n; left++) {
			memset(text, 'x', sizeof(text));
			text[left] = 0;
			if (kymo__copy_text(copy, text, n) != left || memcmp(copy, text, left)) {
				printf("%zu bytes of %zu: copied wrongly\n", left, n);
				wrong++;
			}
		}
	}
}

int main(void)
{
	static const uint64_t numbers[32];
	const size_t too_large = SIZE_MAX / 3;
	size_t few = 3, many = 32, wraps = (size_t)UINT32_MAX / 8 + 2, all = SIZE_MAX;
	size_t half = UINT32_MAX / 2 + 1;

	kymo_event(lengths, few, kymo_seq_u64(a, numbers, few));
	expect("few", handed_over == 4 + 3 * 8);
	kymo_event(lengths, many, kymo_seq_u64(a, numbers, many), kymo_u8(b, 1));
	expect("many", handed_over == 4 + 32 * 8 + 1);
	kymo_event(lengths, wraps, kymo_seq_u64(a, numbers, wraps), kymo_seq_u64(b, numbers, many));
	expect("elements that wrap", handed_over >= too_large);
	kymo_event(
		lengths, all, kymo_string(a, "text"), kymo_blob(b, numbers, all), kymo_u64(c, 1));
	expect("all", handed_over >= too_large);
	kymo_event(lengths, halves, kymo_blob(a, numbers, half), kymo_blob(b, numbers, half));
	expect("two halves", handed_over >= (sizeof(size_t) == 8 ? UINT32_MAX : too_large));
	copy_shortened();
	return wrong;
}
