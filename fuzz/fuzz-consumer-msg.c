/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the orders of the session daemon to a consumer, and the consumer's replies: every decoder,
 * with any bytes. A message that decodes must encode again, and the result must decode to the same
 * message.
 */
#include <assert.h>

#include "proto/consumer.h"
#include "ring/geometry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t buf[4 * KY_MSG_MAX];

/*
 * Strings point into the message and end with a NUL in it: reading them to their ends must be safe.
 */
#define ROUND_TRIP(msg)                                                                            \
	static void fuzz_##msg(struct ky_reader *r)                                                \
	{                                                                                          \
		struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};                             \
		struct msg m;                                                                      \
		int len;                                                                           \
                                                                                                   \
		if (msg##_decode(r, &m) < 0)                                                       \
			return;                                                                    \
		len = msg##_encode(&w, &m);                                                        \
		assert(len > 0);                                                                   \
		assert(ky_msg_open(r, buf, (size_t)len) > 0);                                      \
		assert(msg##_decode(r, &m) == 0);                                                  \
	}

ROUND_TRIP(ky_cons_init)
ROUND_TRIP(ky_cons_flush)
ROUND_TRIP(ky_cons_ask)
ROUND_TRIP(ky_cons_snapshot)
ROUND_TRIP(ky_cons_timers)
ROUND_TRIP(ky_cons_bounds)
ROUND_TRIP(ky_cons_quit)
ROUND_TRIP(ky_cons_stats)
ROUND_TRIP(ky_cons_error)
ROUND_TRIP(ky_cons_adopt)
ROUND_TRIP(ky_cons_adopted)
ROUND_TRIP(ky_cons_adopt_log)
ROUND_TRIP(ky_cons_ring_set)
ROUND_TRIP(ky_cons_rotate)
ROUND_TRIP(ky_cons_rotated)
ROUND_TRIP(ky_cons_retire)
ROUND_TRIP(ky_cons_forget)
ROUND_TRIP(ky_cons_retired)

static void fuzz_geometry(struct ky_reader r)
{
	struct ky_cons_ring_set m;
	struct ky_geometry g;
	uint32_t last;

	if (ky_cons_ring_set_decode(&r, &m) < 0)
		return;
	KY_GEOMETRY_COPY(&g, &m);
	if (ky_geometry_take(&g) < 0)
		return;
	last = g.n_rings - 1;
	assert(g.ctl_offset + (uint64_t)g.n_rings * KY_CTL_SIZE <= g.table_offset);
	assert(g.table_offset + last * g.table_stride +
			g.n_blocks * sizeof(struct ky_block_entry) <=
		g.data_offset);
	assert(g.data_offset + last * g.data_stride + g.data_stride <= g.total_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t in[KY_MSG_MAX];
	struct ky_writer w = {.buf = in, .cap = sizeof(in)};
	struct ky_reader r;

	ky_msg_open(&r, data, size);
	/*
	 * The fuzzer does not have to find the length: the first byte is the type, the rest are the
	 * fields.
	 */
	if (!size)
		return 0;
	ky_msg_begin(&w, data[0]);
	ky_write_raw(&w, data + 1, size - 1);
	if (ky_msg_end(&w) < 0)
		return 0;
	switch (ky_msg_open(&r, in, w.len)) {
	case KY_CONS_INIT:
		fuzz_ky_cons_init(&r);
		break;
	case KY_CONS_RING_SET:
		fuzz_geometry(r);
		fuzz_ky_cons_ring_set(&r);
		break;
	case KY_CONS_FLUSH:
		fuzz_ky_cons_flush(&r);
		break;
	case KY_CONS_ASK:
		fuzz_ky_cons_ask(&r);
		break;
	case KY_CONS_SNAPSHOT:
		fuzz_ky_cons_snapshot(&r);
		break;
	case KY_CONS_BOUNDS:
		fuzz_ky_cons_bounds(&r);
		break;
	case KY_CONS_TIMERS:
		fuzz_ky_cons_timers(&r);
		break;
	case KY_CONS_QUIT:
		fuzz_ky_cons_quit(&r);
		break;
	case KY_CONS_ROTATE:
		fuzz_ky_cons_rotate(&r);
		break;
	case KY_CONS_ROTATED:
		fuzz_ky_cons_rotated(&r);
		break;
	case KY_CONS_RETIRE:
		fuzz_ky_cons_retire(&r);
		break;
	case KY_CONS_FORGET:
		fuzz_ky_cons_forget(&r);
		break;
	case KY_CONS_RETIRED:
		fuzz_ky_cons_retired(&r);
		break;
	case KY_CONS_STATS:
		fuzz_ky_cons_stats(&r);
		break;
	case KY_CONS_ERROR:
		fuzz_ky_cons_error(&r);
		break;
	case KY_CONS_ADOPT_LOG:
		fuzz_ky_cons_adopt_log(&r);
		break;
	case KY_CONS_ADOPT:
		fuzz_ky_cons_adopt(&r);
		break;
	case KY_CONS_ADOPTED:
		fuzz_ky_cons_adopted(&r);
		break;
	default:
		break;
	}
	return 0;
}
