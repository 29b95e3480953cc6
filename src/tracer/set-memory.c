/* SPDX-License-Identifier: MIT */
/* The memory of ring sets: mapped, populated before writers need it, and unmapped. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "ring/slots.h"
#include "tracer/sets.h"

/*
 * How far ahead of a ring's head its pages are populated: this many times what was written since
 * the last check, because the next check may come after twice the time. A ring with few events
 * keeps the memory that they need, and no more.
 */
#define POPULATE_TIMES 8
#define POPULATE_MAX   ((uint64_t)4 << 20)
/* Bytes of data that are populated in a slot that no thread owns yet. */
#define PREPARE_BYTES ((uint64_t)64 << 10)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* If the application's address space is limited, rings take at most this part of it. */
#define SPACE_PART 8
/* An address space below this is for the application alone. */
#define SPACE_MIN ((rlim_t)32 << 20)

static bool is_too_much(uint64_t size)
{
	struct rlimit space;

	return ky_sys_getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
	       (size > space.rlim_cur / SPACE_PART || space.rlim_cur < SPACE_MIN);
}

/* Returns 0, or -errno if a set of this size cannot be mapped from fd. */
static int check_size(int fd, uint64_t size)
{
	struct stat st;

	if (is_too_much(size))
		return -ENOMEM;
	if (ky_sys_fstat(fd, &st) < 0)
		return -errno;
	return size > SIZE_MAX || st.st_size < 0 || (uint64_t)st.st_size < size ? -EINVAL : 0;
}

/*
 * Maps the first `size` bytes of fd, so that children do not inherit them. Returns NULL and sets
 * errno on failure.
 */
static void *map_shared(int fd, uint64_t size, int prot)
{
	void *p = mmap(NULL, (size_t)size, prot, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, (size_t)size, MADV_DONTDUMP);
	if (tracer.has_rseq)
		madvise(p, (size_t)size, MADV_DONTFORK); /* else see tracer_sets_reset */
	return p;
}

/* Maps threads' rings, up to this slot. Returns 0 or -errno. */
static int map_slot(struct tracer_set *s, uint32_t slot)
{
	struct ky_ring_parts *parts = &s->set.parts;
	int fd = tracer_fd_is_ours(&s->rings) ? s->rings.fd : -1;

	if (ky_parts_find(parts, slot))
		return 0;
	if (!ky_parts_extend(parts, &s->set.geo, slot, fd))
		return errno ? -errno : -EINVAL;
	ky_parts_advise(parts, &s->set.geo, MADV_DONTDUMP);
	if (tracer.has_rseq)
		ky_parts_advise(parts, &s->set.geo, MADV_DONTFORK);
	return 0;
}

static size_t size_of_base(const struct tracer_set *s)
{
	return (size_t)(s->in_parts ? s->set.geo.ctl_offset : s->set.geo.total_size);
}

void tracer_set_munmap(struct tracer_set *s)
{
	struct ky_set *set = &s->set;

	if (s->in_parts)
		ky_parts_unmap(&set->parts, &set->geo);
	memset(&set->parts, 0, sizeof(set->parts));
	if (set->base)
		munmap(set->base, size_of_base(s));
	if (set->consumed)
		munmap((void *)set->consumed, set->consumed_size);
	set->base = NULL;
	set->consumed = NULL;
	tracer_fd_drop(&s->rings);
}

/* A 32-bit process has few addresses, too. */
static bool needs_parts(const struct ky_geometry *g)
{
	return g->mode == KY_SET_PER_THREAD && (tracer.spare_mappings || sizeof(void *) == 4);
}

int tracer_set_mmap(struct tracer_set *s, int rings_fd, int consumed_fd)
{
	struct ky_set *set = &s->set;
	int ret = check_size(rings_fd, set->geo.total_size);

	s->rings = (struct tracer_fd){.fd = -1};
	s->in_parts = needs_parts(&set->geo);
	if (!ret)
		ret = check_size(consumed_fd, set->consumed_size);
	if (ret < 0)
		return ret;
	set->base = map_shared(rings_fd, size_of_base(s), PROT_READ | PROT_WRITE);
	set->consumed = map_shared(consumed_fd, set->consumed_size, PROT_READ);
	if (!set->base || !set->consumed) {
		ret = -errno;
	} else if (!s->in_parts) {
		ky_parts_set_whole(&set->parts, set->base);
	} else {
		s->rings = tracer_fd_adopt(ky_sys_fcntl(rings_fd, F_DUPFD_CLOEXEC, 0), S_IFREG);
		ret = map_slot(s, 0);
	}
	if (ret < 0)
		tracer_set_munmap(s);
	return ret;
}

bool tracer_set_prepare_tables(struct tracer_set *s, uint32_t n_rings)
{
	if (s->rings_cap >= n_rings)
		return true; /* drop() has cleared them */
	s->set.used = tracer_alloc(n_rings, false);
	s->populated = tracer_alloc(n_rings * sizeof(*s->populated), false);
	s->rings_cap = s->set.used && s->populated ? n_rings : 0;
	return s->rings_cap;
}

/* Returns the number of rings that any process has written. */
static uint32_t n_rings_used(const struct ky_set *set)
{
	return set->geo.mode == KY_SET_PER_THREAD ? ky_slots_claimed(&set->geo, set->base)
						  : set->geo.n_rings;
}

void tracer_set_clear_tables(struct tracer_set *s)
{
	uint32_t n = n_rings_used(&s->set);

	memset(s->set.used, 0, n);
	memset(s->populated, 0, n * sizeof(*s->populated));
}

/*
 * Populates memory of a set at `base`. A failure (old kernel, memory limit) only means that the
 * writers access the pages first.
 */
static void make_present(void *base, uint64_t from, uint64_t to)
{
	from &= ~(uint64_t)4095;
	madvise((char *)base + from, (size_t)(ky_align_up(to, 4096) - from), MADV_POPULATE_WRITE);
}

/*
 * Populates what a thread writes first when it claims slot i: its word, control block, table, and
 * the begin of its data.
 */
static void prepare_slot(const struct ky_set *set, const struct ky_ring_part *part, uint32_t i)
{
	const struct ky_geometry *g = &set->geo;
	uint64_t data = g->data_offset + i * g->data_stride;

	make_present(set->base, g->slot_offset + 8ull * i, g->slot_offset + 8ull * (i + 1));
	make_present(part->ctl, g->ctl_offset + (uint64_t)KY_CTL_SIZE * i,
		g->ctl_offset + (uint64_t)KY_CTL_SIZE * (i + 1));
	make_present(part->table, g->table_offset + g->table_stride * i,
		g->table_offset + g->table_stride * (i + 1));
	make_present(part->data, data, data + KY_MIN(g->data_stride, PREPARE_BYTES));
}

/* Returns the number of slots that are prepared now: up to `to`, or as many as can be mapped. */
static uint32_t prepare_slots(struct tracer_set *s, uint32_t from, uint32_t to)
{
	for (; from < to && !map_slot(s, from); from++)
		prepare_slot(&s->set, ky_parts_find(&s->set.parts, from), from);
	return from;
}

static uint32_t n_released(const struct ky_set *set, uint32_t n_claimed)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_claimed; i++)
		n += !(ky_slot_word(&set->geo, set->base, i) & KY_SLOT_OWNED);
	return n;
}

bool tracer_set_grow_pool(struct tracer_set *s)
{
	struct ky_set *set = &s->set;
	uint32_t claimed = ky_slots_claimed(&set->geo, set->base), n = set->geo.n_rings;
	uint32_t have = KY_MAX(set->n_prepared, claimed), unused = have - claimed, free, all, to;
	uint32_t own = KY_MIN(__atomic_load_n(&set->n_owned, __ATOMIC_RELAXED), n);
	bool first = !set->n_prepared;

	if (claimed)
		map_slot(s, KY_MIN(claimed, n) - 1);
	if (have == n || unused >= KY_MAX((own + unused) / 4, first ? set->pool : 2u))
		return false;
	free = unused + n_released(set, claimed);
	all = own + free;
	if (free >= KY_MAX(all / 4, first ? set->pool : 2u))
		return false;
	to = (uint32_t)KY_MIN(have + (uint64_t)KY_MAX(all, set->pool), n);
	to = prepare_slots(s, have, to);
	__atomic_store_n(&set->n_prepared, to, __ATOMIC_RELAXED);
	return to > have;
}

/* Populates a ring that this application writes. Returns true if there was something to do. */
static bool populate_ring(struct tracer_set *s, uint32_t i)
{
	struct ky_set *set = &s->set;
	struct ky_geometry *g = &set->geo;
	struct tracer_ring *ring = &s->populated[i];
	const struct ky_ring_part *part = NULL;
	struct ky_ring_ctl *ctl;
	uint64_t pos, ahead, want, have;

	if (!__atomic_load_n(&set->used[i], __ATOMIC_RELAXED))
		return false;
	if (g->mode == KY_SET_PER_THREAD) {
		part = ky_parts_find(&set->parts, i);
		if (!part || ky_slot_word(g, set->base, i) >> 32 != ky_thread_process())
			return false;
	}
	have = KY_MAX(ring->present, part ? PREPARE_BYTES : 0);
	if (have >= ky_geometry_home_size(g))
		return false;
	ctl = ky_geometry_ctl(g, part ? part->ctl : set->base, i);
	pos = ky_head_pos(__atomic_load_n(&ctl->head, __ATOMIC_RELAXED), ring->seen);
	ahead = KY_MIN((pos - ring->seen) * POPULATE_TIMES, POPULATE_MAX);
	want = KY_MIN((pos + ahead) & ~(uint64_t)4095, ky_geometry_home_size(g));
	ring->seen = pos;
	if (want <= have)
		return false;
	ring->present = want;
	make_present(part ? part->data : set->base, g->data_offset + i * g->data_stride + have,
		g->data_offset + i * g->data_stride + want);
	return true;
}

bool tracer_sets_populate(void)
{
	bool busy = false;

	for (uint32_t i = 0; i < tracer.n_sets; i++) {
		struct tracer_set *s = &tracer_sets[i];

		if (!s->conn || !s->set.started)
			continue;
		if (s->set.geo.mode == KY_SET_PER_THREAD)
			busy |= tracer_set_grow_pool(s);
		for (uint32_t k = 0; k < n_rings_used(&s->set); k++)
			busy |= populate_ring(s, k);
	}
	return busy;
}
