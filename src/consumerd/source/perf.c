/* SPDX-License-Identifier: MIT */
#include "consumerd/source/perf.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "consumerd/source/once.h"
#include "kernel/page.h"
#include "kernel/perf-record.h"

struct cpu {
	struct once_cpu once;
	int fd; /* borrowed; -1: none yet */
	struct perf_event_mmap_page
		*head; /* mapping; the kernel's page, and the records behind it */
};

struct perf {
	struct once_set once;
	bool counts_lost;
	size_t page;	       /* of memory, bytes */
	struct ky_kseen *seen; /* borrowed, or NULL */
	struct ky_perf_times times;
	struct cpu *cpus;
};

static struct cpu *cpu_of(struct once_cpu *c)
{
	return ky_container_of(c, struct cpu, once);
}

static struct perf *perf_of(struct once_set *s)
{
	return ky_container_of(s, struct perf, once);
}

static size_t map_size(const struct perf *p)
{
	return p->page + KY_PERF_RING;
}

static struct once_cpu *perf_cpu(struct once_set *s, uint32_t i)
{
	return &perf_of(s)->cpus[i].once;
}

/* --- reading --- */

/* Copies from the ring, whose end continues at its begin. */
static void copy_out(const struct perf *p, const struct cpu *c, uint64_t at, void *to, size_t len)
{
	const uint8_t *data = (const uint8_t *)c->head + p->page;
	uint64_t offset = at % KY_PERF_RING;
	size_t n = KY_MIN(len, (size_t)(KY_PERF_RING - offset));

	memcpy(to, data + offset, n);
	memcpy((uint8_t *)to + n, data, len - n);
}

/*
 * Copies whole records to the page. Returns their number of bytes; *at: the place behind them.
 * *n_lost: rises by the losses that they report.
 */
static uint64_t fill_page(
	const struct perf *p, struct cpu *c, uint64_t *at, uint64_t end, uint64_t *n_lost)
{
	uint8_t *to = c->once.page + sizeof(struct ky_perf_page);
	uint64_t room = p->once.page_size - sizeof(struct ky_perf_page), len = 0;
	struct perf_event_header h;

	while (end - *at >= sizeof(h)) {
		copy_out(p, c, *at, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > end - *at) {
			*at = end; /* the program cannot write the ring: this does not happen */
			break;
		}
		if (h.size > room - len)
			break;
		copy_out(p, c, *at, to + len, h.size);
		if (h.type == PERF_RECORD_LOST && h.size >= sizeof(h) + 16)
			*n_lost += ky_load64(to + len + sizeof(h) + 8); /* behind an identifier */
		len += h.size;
		*at += h.size;
	}
	return len;
}

/*
 * Reads a part of the ring. The page is published with the place behind it: a successor continues
 * there, even if the kernel has not heard of it. Returns false if there is nothing.
 */
static bool read_page(const struct perf *p, struct cpu *c, uint64_t end)
{
	uint64_t at = c->head->data_tail, n_lost = 0;
	struct ky_perf_page page = {.times = p->times};

	page.len = fill_page(p, c, &at, end, &n_lost);
	memcpy(c->once.page, &page, sizeof(page));
	if (page.len)
		once_enter_page(&c->once, sizeof(page), at, n_lost);
	__atomic_store_n(&c->head->data_tail, at, __ATOMIC_RELEASE);
	return page.len > 0;
}

/* Reads both clocks: perf's between two readings of the session's, as close as can be. */
static void read_clocks(struct perf *p)
{
	enum ky_clock clock = p->once.set.clock;
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 5 && clock != KY_CLOCK_MONOTONIC; i++) {
		uint64_t before = ky_clock_read(clock), ns = ky_clock_ns(CLOCK_MONOTONIC_RAW);
		uint64_t after = ky_clock_read(clock);

		if (after - before >= best)
			continue;
		best = after - before;
		p->times.ns[1] = ns;
		p->times.clock[1] = before + best / 2;
	}
}

static bool perf_drain(struct once_cpu *once, bool flush)
{
	struct perf *p = perf_of(once->set);
	struct cpu *c = cpu_of(once);
	uint64_t end;

	if (!once_transcode_page(once))
		return true;
	if (!c->head)
		return false;
	end = __atomic_load_n(&c->head->data_head, __ATOMIC_ACQUIRE);
	read_clocks(p);
	while (read_page(p, c, end))
		if (!once_transcode_page(once))
			return true;
	return false;
}

static uint8_t *perf_transcode(
	struct once_cpu *c, struct ky_kplace *place, uint8_t *out, const uint8_t *end, bool first)
{
	return ky_perf_transcode(place, c->page, out, end, perf_of(c->set)->seen);
}

/* The kernel's own count, since Linux 6.0, is complete; records come when there is room again. */
static uint64_t perf_count_lost(struct once_cpu *once)
{
	struct cpu *c = cpu_of(once);
	uint64_t values[2] = {0}; /* count, lost */

	if (!perf_of(once->set)->counts_lost)
		return once_slot(once)->n_lost;
	return c->fd >= 0 && read(c->fd, values, sizeof(values)) == sizeof(values) ? values[1] : 0;
}

/* --- the set --- */

static void perf_free(struct once_set *s)
{
	struct perf *p = perf_of(s);

	for (uint32_t i = 0; p->cpus && i < s->n_cpus; i++)
		if (p->cpus[i].head)
			munmap(p->cpus[i].head, map_size(p));
	free(p->cpus);
	free(p);
}

static const struct once_ops perf_ops = {
	.cpu = perf_cpu,
	.drain = perf_drain,
	.transcode = perf_transcode,
	.count_lost = perf_count_lost,
	.free = perf_free,
};

int perf_new(const struct ky_cons_samples_set *m, int memory_fd, struct source_set **ret_set)
{
	struct perf *p;
	int ret;

	if (!m->n_cpus || m->n_cpus > KY_KERNEL_CPUS_MAX)
		return -EBADMSG;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->page = (size_t)sysconf(_SC_PAGESIZE);
	p->counts_lost = m->counts_lost;
	p->times = (struct ky_perf_times){{m->ns, m->ns}, {m->clock_at, m->clock_at}};
	p->once.ops = &perf_ops;
	p->once.n_cpus = m->n_cpus;
	p->once.set.clock = m->clock;
	p->cpus = calloc(m->n_cpus, sizeof(*p->cpus));
	for (uint32_t i = 0; p->cpus && i < m->n_cpus; i++)
		p->cpus[i].fd = -1;
	ret = p->cpus ? once_init(&p->once, &perf_ops, m->n_cpus, KY_PERF_PAGE_SIZE, memory_fd)
		      : -ENOMEM;
	if (ret < 0)
		once_free(&p->once.set);
	else
		*ret_set = &p->once.set;
	return ret;
}

void perf_note_stacks(struct source_set *set, struct ky_kseen *seen)
{
	perf_of(once_set_of(set))->seen = seen;
}

int perf_add_cpu(struct source_set *set, uint32_t cpu, int fd)
{
	struct perf *p = perf_of(once_set_of(set));
	struct cpu *c;
	void *map;

	if (cpu >= p->once.n_cpus || p->cpus[cpu].fd >= 0)
		return -EBADMSG;
	c = &p->cpus[cpu];
	map = mmap(NULL, map_size(p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	c->fd = fd;
	c->head = map;
	/* An earlier consumer may have published more than it reported to the kernel. */
	if (once_slot(&c->once)->page_ts > c->head->data_tail)
		__atomic_store_n(
			&c->head->data_tail, once_slot(&c->once)->page_ts, __ATOMIC_RELEASE);
	return 0;
}
