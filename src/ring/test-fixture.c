/* SPDX-License-Identifier: MIT */
#include <sys/mman.h>

#include "ring/test-fixture.h"

#define N_KEPT 4

bool memory_is_kept;
static struct {
	void *p;
	size_t size;
} kept[N_KEPT];

void *map(size_t size)
{
	void *p;

	for (size_t i = 0; i < N_KEPT; i++) {
		if (!kept[i].p || kept[i].size != size)
			continue;
		p = kept[i].p;
		kept[i].p = NULL;
		return memset(p, 0, size);
	}
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	return p;
}

void unmap(void *p, size_t size)
{
	static size_t next;
	size_t i = next++ % N_KEPT;

	if (!memory_is_kept) {
		munmap(p, size);
		return;
	}
	if (kept[i].p)
		munmap(kept[i].p, kept[i].size);
	kept[i].p = p;
	kept[i].size = size;
}

void start(struct fixture *f, uint32_t id)
{
	ky_hook_switch(&f->hook, false);
	ky_hook_init(&f->hook, &f->set, id);
	ky_hook_switch(&f->hook, true);
	ky_record_choose(&f->state, &f->hook);
}

void setup(struct fixture *f, uint32_t mode, uint32_t clock, uint32_t n_rings, uint32_t n_blocks,
	uint32_t block_size)
{
	memset(f, 0, sizeof(*f));
	f->set.geo = (struct ky_geometry){
		.mode = mode,
		.clock = clock,
		.n_rings = n_rings,
		.n_blocks = n_blocks,
		.block_size = block_size,
	};
	assert_int_equal(ky_geometry_init(&f->set.geo), 0);
	f->set.id = 1;
	f->set.base = map(f->set.geo.total_size);
	ky_parts_set_whole(&f->set.parts, f->set.base);
	f->consumed = map(n_rings * sizeof(uint64_t));
	f->set.consumed = f->consumed;
	f->set.used = calloc(n_rings, 1);
	ky_thread_set_process();
	f->event.state = &f->state;
	start(f, EVENT);
}

void teardown(struct fixture *f)
{
	assert_int_equal(f->set.users, 0);
	unmap(f->set.base, f->set.geo.total_size);
	unmap(f->consumed, f->set.geo.n_rings * sizeof(uint64_t));
	free(f->set.used);
}

void record(struct fixture *f, const void *payload, size_t len)
{
	uint64_t word = 0;

	if (f->general) {
		f->state.record(&f->event, payload, len, NULL, 0);
	} else if (len <= sizeof(word)) {
		memcpy(&word, payload, len);
		f->state.record_word(&f->event, word, f->state.hook, len);
	} else {
		f->state.record_flat(&f->event, payload, f->state.hook, len);
	}
}

void emit(struct fixture *f, uint32_t writer)
{
	struct payload p = {.writer = writer, .seq = f->emitted[writer]++};

	record(f, &p, PAYLOAD);
}

uint64_t lost(struct fixture *f)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < f->set.geo.n_rings; i++)
		for (int k = 0; k < KY_LOST_REASONS; k++)
			n += ky_geometry_ctl(&f->set.geo, f->set.base, i)->lost[k];
	return n;
}

uint64_t gone(struct fixture *f, uint32_t ring)
{
	uint64_t oldest = ky_geometry_ctl(&f->set.geo, f->set.base, ring)->oldest;

	return oldest ? ky_geometry_entry(&f->set.geo, f->set.base, ring, oldest)->begin_count : 0;
}

uint64_t walk(struct fixture *f, uint32_t ring, uint32_t len, visit_fn visit, void *arg)
{
	struct ky_geometry *g = &f->set.geo;
	struct ky_ring_ctl *ctl = ky_geometry_ctl(g, f->set.base, ring);
	const uint8_t *data = ky_geometry_data(g, f->set.base, ring);
	uint64_t pos = ctl->oldest, end = ky_head_pos(ctl->head, pos);
	uint64_t first = gone(f, ring), n = first;
	uint64_t last = pos ? ky_geometry_entry(g, f->set.base, ring, pos)->begin_ts : 0;

	assert_int_equal(pos % g->block_size, 0);
	assert_true(end - pos < ky_geometry_reach(g));
	while (pos < end) {
		uint64_t block = pos / g->block_size, offset = pos % g->block_size;
		const uint8_t *at = data + (pos & ky_geometry_ring_mask(g)), *p = at;
		uint32_t word, id;
		uint64_t ts;

		const struct ky_block_entry *here = ky_geometry_entry(g, f->set.base, ring, pos);
		uint64_t next = ky_geometry_spreads(g) ? here->next : (block + 1) * g->block_size;
		const struct ky_block_entry *after = ky_geometry_entry(g, f->set.base, ring, next);

		if (end / g->block_size > block && offset == here->used) {
			assert_true(next > pos && next <= end);
			pos = next;
			assert_true(after->begin_ts >= last);
			assert_int_equal(after->begin_count, n);
			last = after->begin_ts;
			continue;
		}
		assert_true(offset <= KY_BLOCK_LIMIT(g->block_size));
		if ((p[0] & 31) == KY_ID_EXTENDED) {
			memcpy(&id, p + 1, 4);
			memcpy(&ts, p + 5, 8);
			p += KY_HEADER_EXTENDED;
		} else {
			memcpy(&word, p, 4);
			id = word & 31;
			ts = (last & ~(uint64_t)0x7ffffff) | word >> KY_ID_BITS;
			if (ts < last)
				ts += 1u << KY_TS_BITS;
			p += KY_HEADER_COMPACT;
		}
		assert_true(ts >= last);
		if (f->taken && !ring)
			assert_true(pos < f->taken->pos ? ts <= f->taken->ts : ts >= f->taken->ts);
		last = ts;
		visit(arg, id, p);
		n++;
		pos += (uint64_t)(p - at) + len;
	}
	assert_int_equal(ctl->head >> 32, (uint32_t)n);
	assert_true(ctl->last_ts >= last);
	assert_true(n == first || last >= ctl->window);
	return n - first;
}

void count_payload(void *arg, uint32_t id, const uint8_t *payload)
{
	struct tally *t = arg;
	struct payload p;

	memcpy(&p, payload, PAYLOAD);
	assert_int_equal(id, EVENT);
	assert_true(p.writer < N_WRITERS);
	assert_true(p.seq >= t->next[p.writer]);
	t->next[p.writer] = p.seq + 1;
	t->seen[p.writer]++;
}
