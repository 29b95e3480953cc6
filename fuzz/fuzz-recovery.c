/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the files that a recovery reads after a session was killed: the orders in DIR/session, the
 * header of a set's buffers, and the text of a metadata log. The parsers must return only ranges
 * that lie within their input.
 */
#include <assert.h>

#include "abi/ring.h"
#include "consumerd/recovery.h"
#include "consumerd/stream/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_text(const uint8_t *data, size_t size, const struct ky_cons_ring_set *m)
{
	char uuid[TRACE_UUID_TEXT];
	size_t whole;

	trace_format_uuid(uuid, m->uuid_hi, m->uuid_lo);
	whole = recovery_whole_text((const char *)data, size, uuid, m->stream_id);
	assert(whole <= size && (!whole || !memcmp(data + whole - 2, "\n\n", 2)));
}

/* Checks the header that the set would have, with some of its bytes replaced by the input's. */
static void look_at_header(const uint8_t *data, size_t size, const struct ky_cons_ring_set *m)
{
	struct ky_set_header h = {.magic = KY_RING_MAGIC,
		.version = KY_RING_VERSION,
		.number = m->set,
		.uuid_hi = m->uuid_hi,
		.uuid_lo = m->uuid_lo};
	struct ky_geometry g;

	KY_GEOMETRY_COPY(&h, m);
	if (recovery_header_matches(&h, m, &g))
		assert(g.oldest_offset + g.n_rings * sizeof(uint64_t) <= g.total_size);
	if (size && data[0] < sizeof(h)) {
		((uint8_t *)&h)[data[0]] ^= 1;
		if (recovery_header_matches(&h, m, &g))
			assert(g.total_size == m->total_size);
	}
}

/* Makes a set that can exist: the fuzzer does not have to find powers of two. */
static void look_at_set(const uint8_t *data, size_t size)
{
	struct ky_cons_ring_set m = {.dir = "ust/uid/0/64-bit", .name = "channel0"};
	struct ky_geometry g;

	if (size < 8)
		return;
	m.stream_id = data[0];
	m.mode = data[1] & 1;
	m.overwrite = data[1] >> 1 & 1;
	m.n_rings = data[2];
	m.n_blocks = 1u << (data[3] & 15);
	m.block_size = 1u << (data[4] & 31);
	KY_GEOMETRY_COPY(&g, &m);
	if (ky_geometry_init(&g) < 0)
		return;
	m.total_size = g.total_size;
	look_at_header(data + 5, size - 5, &m);
	look_at_text(data + 5, size - 5, &m);
}

static void look_at_orders(const uint8_t *data, size_t size)
{
	size_t pos = 0, begin = 0, len;
	struct ky_cons_ring_set m;
	struct ky_cons_init init;
	struct ky_reader r;

	while ((len = recovery_next_message(data, size, &pos))) {
		assert(pos <= size && pos - begin == len);
		if (ky_msg_open(&r, data + begin, len) == KY_CONS_INIT)
			ky_cons_init_decode(&r, &init);
		else if (ky_msg_open(&r, data + begin, len) == KY_CONS_RING_SET)
			ky_cons_ring_set_decode(&r, &m);
		begin = pos;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	look_at_orders(data, size);
	look_at_set(data, size);
	return 0;
}
