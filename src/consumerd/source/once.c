/* SPDX-License-Identifier: MIT */
#include "consumerd/source/once.h"

#include <sys/mman.h>
#include <sys/stat.h>

/* --- the memory of a CPU --- */

void once_publish(struct once_cpu *c, const struct ky_kernel_slot *slot)
{
	uint64_t word = (c->mem->word ^ KY_KERNEL_SLOT) & ~(uint64_t)KY_KERNEL_READING;

	c->mem->slots[!!(word & KY_KERNEL_SLOT)] = *slot;
	__atomic_store_n(&c->mem->word, word, __ATOMIC_RELEASE);
}

void once_set_reading(struct once_cpu *c, bool reading)
{
	uint64_t word = c->mem->word & ~(uint64_t)KY_KERNEL_READING;

	__atomic_store_n(&c->mem->word, word | (reading ? KY_KERNEL_READING : 0), __ATOMIC_RELEASE);
}

static struct ky_kernel_block *block_entry(const struct once_cpu *c, uint64_t pos)
{
	return &c->mem->blocks[pos / KY_KERNEL_BLOCK % KY_KERNEL_BLOCKS];
}

uint8_t *once_block_data(const struct once_cpu *c, uint64_t pos)
{
	return c->blocks + pos / KY_KERNEL_BLOCK % KY_KERNEL_BLOCKS * KY_KERNEL_BLOCK +
	       KY_BLOCK_ROOM;
}

static uint64_t offset_in_block(uint64_t pos)
{
	return pos % KY_KERNEL_BLOCK;
}

static uint64_t next_block(uint64_t pos)
{
	return (pos / KY_KERNEL_BLOCK + 1) * KY_KERNEL_BLOCK;
}

bool once_is_full(const struct once_cpu *c, uint64_t pos)
{
	return pos / KY_KERNEL_BLOCK - c->source.taken.pos / KY_KERNEL_BLOCK >= KY_KERNEL_BLOCKS;
}

void once_end_block(const struct once_cpu *c, struct ky_kernel_slot *slot)
{
	*block_entry(c, slot->pos) = (struct ky_kernel_block){
		offset_in_block(slot->pos), slot->count, slot->ts};
	slot->pos = next_block(slot->pos);
}

/* --- transcoding --- */

void once_load_place(struct ky_kplace *place, const struct ky_kernel_slot *slot)
{
	*place = (struct ky_kplace){(uint32_t)slot->page_at, (uint32_t)(slot->page_at >> 32),
		slot->page_ts, slot->ts, slot->count, slot->first_ts, slot->n_refused};
}

void once_store_place(struct ky_kernel_slot *slot, const struct ky_kplace *place)
{
	slot->page_at = (uint64_t)place->waiting << 32 | place->at;
	slot->page_ts = place->clock;
	slot->ts = place->ts;
	slot->count = place->count;
	slot->first_ts = place->first_ts;
	slot->n_refused = place->n_refused;
}

bool once_transcode_page(struct once_cpu *c)
{
	struct ky_kernel_slot slot = *once_slot(c);
	struct ky_kplace place;

	once_load_place(&place, &slot);
	while (place.at) {
		uint64_t offset = offset_in_block(slot.pos);
		uint8_t *data = once_block_data(c, slot.pos), *end;

		if (once_is_full(c, slot.pos))
			return false;
		end = c->set->ops->transcode(
			c, &place, data + offset, data + KY_BLOCK_LIMIT(KY_KERNEL_BLOCK), !offset);
		slot.pos += (uint64_t)(end - (data + offset));
		once_store_place(&slot, &place);
		if (place.at)
			once_end_block(c, &slot);
		once_publish(c, &slot);
	}
	return true;
}

void once_enter_page(struct once_cpu *c, uint32_t at, uint64_t clock, uint64_t n_lost)
{
	struct ky_kernel_slot slot = *once_slot(c);

	slot.page_at = (slot.page_at & ~(uint64_t)UINT32_MAX) | at;
	if (!once_has_waiting(c))
		slot.page_ts = clock;
	slot.n_lost += n_lost;
	once_publish(c, &slot);
}

/* --- a source --- */

/* Nothing is lost from a copy, for a snapshot. */
static void read_losses(struct once_cpu *c)
{
	struct source *s = &c->source;
	uint64_t lost = c->set->set.copied ? 0 : c->set->ops->count_lost(c);

	s->lost[KY_LOST_FULL] = KY_MAX(s->lost[KY_LOST_FULL], lost);
	s->n_lost = s->lost[KY_LOST_FULL] + once_slot(c)->n_refused;
}

static int once_look(struct source *s, bool flush, bool written)
{
	struct once_cpu *c = once_cpu_of(s);
	uint64_t count = s->head_count;
	bool all = flush || c->set->set.ended;

	if (s->abandoned)
		return SOURCE_IDLE;
	s->more = c->set->set.held || c->set->ops->drain(c, all);
	s->head = once_slot(c)->pos;
	s->head_count = once_slot(c)->count;
	source_measure(s);
	s->settled = true;
	s->released = c->set->set.ended && !s->more;
	s->since = c->set->since;
	s->until = c->set->set.until;
	if (s->head_count == count && written && !all)
		return SOURCE_IDLE;
	read_losses(c);
	return 0;
}

/* Describes what lies behind *at in its block. Returns false if that is nothing. */
static bool describe_block_rest(
	struct once_cpu *c, const struct source_mark *at, bool partial, struct ky_drain_piece *ret)
{
	const struct ky_kernel_slot *slot = once_slot(c);
	bool last = at->pos / KY_KERNEL_BLOCK == slot->pos / KY_KERNEL_BLOCK;
	uint64_t offset = offset_in_block(at->pos), end, count, ts;

	if (last && !partial)
		return false;
	end = last ? offset_in_block(slot->pos) : block_entry(c, at->pos)->len;
	count = last ? slot->count : block_entry(c, at->pos)->count;
	ts = last ? slot->ts : block_entry(c, at->pos)->ts;
	if (offset >= end)
		return false;
	*ret = (struct ky_drain_piece){
		.data = once_block_data(c, at->pos) + offset,
		.len = (uint32_t)(end - offset),
		.pos = at->pos,
		.next = last ? slot->pos : next_block(at->pos),
		.begin_ts = at->count ? at->ts : slot->first_ts,
		.end_ts = ts,
		.n_events = count - at->count,
	};
	return true;
}

static bool once_next(
	struct source *s, struct source_mark *at, bool partial, struct ky_drain_piece *ret_piece)
{
	struct once_cpu *c = once_cpu_of(s);

	while (at->pos < s->head) {
		if (describe_block_rest(c, at, partial, ret_piece)) {
			*at = source_behind(at, ret_piece);
			return true;
		}
		if (next_block(at->pos) > s->head)
			return false;
		at->pos = next_block(at->pos);
	}
	return false;
}

static void once_take(struct source *s, const struct source_mark *to)
{
	s->taken = *to;
}

/*
 * A mark behind a packet lies in the records that the memory holds. Without one (no files are
 * written), all records of the dead consumer count as taken.
 */
static int once_resume(struct source *s, const struct source_mark *stored)
{
	struct once_cpu *c = once_cpu_of(s);
	const struct ky_kernel_slot *slot = once_slot(c);

	s->head = slot->pos;
	s->head_count = slot->count;
	s->taken = stored ? *stored : (struct source_mark){slot->pos, slot->count, slot->ts};
	if (s->taken.pos > s->head || s->taken.count > slot->count ||
		(s->taken.pos < s->head && once_is_full(c, s->head - 1)))
		return -EBADMSG;
	return 0;
}

static void once_abandon(struct source *s, bool again)
{
	if (!again)
		s->lost[KY_LOST_FULL] += source_n_left(s);
	s->n_lost = s->lost[KY_LOST_FULL];
	s->abandoned = true;
	s->taken.pos = s->head;
	s->settled = false;
	s->more = false;
}

static uint64_t once_size_after(struct source *s, uint64_t ts)
{
	struct once_cpu *c = once_cpu_of(s);

	return c->set->set.held ? c->set->ops->size_after(c, ts) : 0;
}

static uint64_t once_leave_out(struct source *s, uint64_t ts)
{
	struct once_cpu *c = once_cpu_of(s);

	return c->set->set.held ? c->set->ops->leave_out(c, ts) : 0;
}

static const struct source_ops once_ops = {
	.look = once_look,
	.next = once_next,
	.take = once_take,
	.resume = once_resume,
	.abandon = once_abandon,
	.size_after = once_size_after,
	.leave_out = once_leave_out,
};

/* --- the set --- */

void once_free(struct source_set *set)
{
	struct once_set *s = once_set_of(set);

	if (s->memory)
		munmap(s->memory, s->memory_size);
	s->ops->free(s);
}

static uint32_t once_n_used(const struct source_set *set)
{
	return once_set_of(set)->n_cpus;
}

static struct source *once_open(struct source_set *set, uint32_t i)
{
	struct once_set *once = once_set_of(set);
	struct once_cpu *c = once->ops->cpu(once, i);

	c->source = (struct source){
		.ops = &once_ops,
		.block_size = KY_KERNEL_BLOCK,
		.n_blocks = KY_KERNEL_BLOCKS,
		.hurries = !set->copied,
		.cpu = i,
		.resume = &c->mem->resume,
	};
	return &c->source;
}

static const struct source_set_ops once_set_ops = {
	.n_used = once_n_used,
	.open = once_open,
	.free = once_free,
};

static int map_memory(struct once_set *s, int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
	struct stat st;
	void *p;

	s->memory_size = ky_kernel_memory_size(s->n_cpus, s->page_size);
	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_size < (off_t)s->memory_size))
		return -EBADMSG;
	p = mmap(NULL, s->memory_size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	s->memory = p;
	return 0;
}

static void init_cpu(struct once_set *s, uint32_t i)
{
	uint8_t *part = (uint8_t *)s->memory + i * ky_kernel_cpu_size(s->page_size);
	struct once_cpu *c = s->ops->cpu(s, i);

	c->set = s;
	c->number = i;
	c->mem = (void *)part;
	c->blocks = part + ky_kernel_blocks_offset();
	c->page = part + ky_kernel_page_offset();
}

int once_init(struct once_set *s, const struct once_ops *ops, uint32_t n_cpus, uint32_t page_size,
	int memory_fd)
{
	int ret;

	s->ops = ops;
	s->n_cpus = n_cpus;
	s->page_size = page_size;
	s->set.ops = &once_set_ops;
	s->set.n_max = n_cpus;
	s->set.block_size = KY_KERNEL_BLOCK;
	s->set.wakes = true;
	s->set.copied = memory_fd < 0;
	s->set.held = s->set.copied && ops->size_after;
	ret = map_memory(s, memory_fd);
	for (uint32_t i = 0; i < n_cpus && !ret; i++)
		init_cpu(s, i);
	return ret;
}
