/* SPDX-License-Identifier: MIT */
/*
 * The clock is read once, here: contexts want it to know how old what they keep is, and the record gets the same
 * value. (Reading it a second time would cost more than all the common contexts.)
 */
#include "tracer/prepend.h"

#include <alloca.h>

#include "base/clock.h"

/* A record that fits is put together on the stack; a larger one is handed over in pieces. */
#define ROOM 512u

static void record_at(struct ky_hook *hook, const void *record, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t now)
{
#if KY_HAVE_RSEQ
	if (ky_likely(hook->write && len <= ROOM) &&
		ky_likely(ky_rseq_record_ts(hook, record, (uint32_t)len, pieces, n_pieces, now) ==
			  KY_WRITE_DONE))
		return;
#endif
	ky_record_hook(hook, record, len, pieces, n_pieces);
}

/* The contexts, and the program's own list behind them; or its payload, as a piece. */
static __attribute__((noinline)) void record_pieces(struct ky_hook *hook, const uint8_t *contexts,
	size_t size, const void *payload, size_t len, const struct kymo_piece *pieces,
	size_t n_pieces, uint64_t now)
{
	const struct kymo_piece whole = {payload, (uint32_t)len, KYMO_PIECE_SCRATCH};
	struct kymo_piece *list;

	if (len > UINT32_MAX - size) {
		ky_record_hook(hook, payload, len, pieces, n_pieces); /* too large; it counts it */
		return;
	}
	if (!n_pieces) {
		pieces = &whole;
		n_pieces = 1;
	}
	/* As the program has put its own list there. */
	list = alloca((n_pieces + 1) * sizeof(*list));
	list[0] = (struct kymo_piece){contexts, (uint32_t)size, KYMO_PIECE_SCRATCH};
	memcpy(list + 1, pieces, n_pieces * sizeof(*list));
	record_at(hook, NULL, size + len, list, n_pieces + 1, now);
}

static __attribute__((noinline)) void record_large(struct ky_hook *hook,
	const struct tracer_contexts *l, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t now)
{
	uint8_t *room = alloca(tracer_contexts_size(l) + KYMO_SCRATCH_SLACK);
	uint8_t *end = tracer_contexts_put(l, room, now, hook->clock);

	record_pieces(hook, room, (size_t)(end - room), payload, len, pieces, n_pieces, now);
}

void tracer_record_prepended(struct ky_hook *hook, const struct tracer_contexts *l,
	const void *payload, size_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	uint8_t room[ROOM + KYMO_SCRATCH_SLACK] __attribute__((aligned(16)));
	uint64_t now = ky_clock_read(hook->clock);
	uint8_t *end;

	if (ky_unlikely(n_pieces || len > ROOM || tracer_contexts_size(l) > ROOM - len)) {
		record_large(hook, l, payload, len, pieces, n_pieces, now);
		return;
	}
	end = tracer_contexts_put(l, room, now, hook->clock);
	for (size_t i = 0; i < len; i += 16)
		memcpy(end + i, (const uint8_t *)payload + i, 16); /* both sides have slack */
	record_at(hook, room, (size_t)(end - room) + len, NULL, 0, now);
}

__attribute__((noinline)) void tracer_record_from(const struct kymo_event *event,
	const void *payload, size_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	const uintptr_t *frame = __builtin_frame_address(0);
	struct tracer_caller before = tracer_context_caller((struct tracer_caller){
		.ip = (uintptr_t)__builtin_return_address(0),
		.frame = frame[0],
		.stack = (uintptr_t)frame,
	});

	ky_record_event(event, payload, len, pieces, n_pieces);
	tracer_context_caller(before);
}
