/* SPDX-License-Identifier: MIT */
#include "consumerd/source/ftrace-snapshot.h"

#include <sys/mman.h>

#include "kernel/page.h"

#define META_SIZE 4096u

/* The begin of the page before the sub-buffers: the kernel's include/uapi/linux/trace_mmap.h. */
struct meta {
	uint32_t meta_page_size, meta_struct_len, subbuf_size, nr_subbufs;
};

/* The mapped ring, and the clocks of its sub-buffers. */
struct ring {
	const uint8_t *data; /* mapping; the kernel writes it */
	uint32_t n, size;
	uint64_t *clocks; /* at the begin; 0: the sub-buffer is empty */
};

static const uint8_t *page_of(const struct ring *r, uint32_t i)
{
	return r->data + (size_t)i * r->size;
}

static uint64_t read_word(const uint8_t *p)
{
	return __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_ACQUIRE);
}

static uint32_t read_len(const uint8_t *page)
{
	return (uint32_t)read_word(page + 8) & KY_KPAGE_COMMIT;
}

static void note_clocks(struct ring *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		r->clocks[i] = read_len(page_of(r, i)) ? read_word(page_of(r, i)) : 0;
}

/* Copies a sub-buffer. Returns false if the kernel has begun to overwrite it. */
static bool copy_page(const struct ring *r, uint32_t i, uint8_t *to)
{
	const uint8_t *page = page_of(r, i);
	uint64_t clock = read_word(page);
	uint32_t len = read_len(page);

	if (!r->clocks[i] || clock != r->clocks[i] || len > r->size - KY_KPAGE_HEADER)
		return false;
	memcpy(to + KY_KPAGE_HEADER, page + KY_KPAGE_HEADER, len);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (read_len(page) < len || read_word(page) != clock)
		return false;
	memcpy(to, &clock, sizeof(clock));
	memcpy(to + 8, &(uint64_t){len}, sizeof(uint64_t));
	return true;
}

/*
 * Compares the clocks with the noted ones. *ret_lost: of the newest sub-buffer that was overwritten
 * meanwhile. *ret_first_new: of the first one that was written meanwhile. Before a later one was
 * noted, the kernel may have begun it: its copy follows a hole.
 */
static void find_lost(const struct ring *r, uint64_t *ret_lost, uint64_t *ret_first_new)
{
	*ret_lost = 0;
	*ret_first_new = UINT64_MAX;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < r->n; i++) {
		uint64_t now = read_word(page_of(r, i));

		if (now == r->clocks[i])
			continue;
		*ret_lost = KY_MAX(*ret_lost, r->clocks[i]);
		if (r->clocks[i] || read_len(page_of(r, i)))
			*ret_first_new = KY_MIN(*ret_first_new, now);
	}
}

static int by_clock(const void *a, const void *b, void *pages_and_size)
{
	const struct ftrace_copy *c = pages_and_size;
	uint64_t x = ky_load64(c->pages + (size_t) * (const uint32_t *)a * c->size);
	uint64_t y = ky_load64(c->pages + (size_t) * (const uint32_t *)b * c->size);

	return x < y ? -1 : x > y;
}

static void copy_all(struct ftrace_copy *c, struct ring *r)
{
	uint64_t lost, first_new, clock;
	uint32_t n = 0;

	note_clocks(r);
	for (uint32_t i = 0; i < r->n; i++)
		n += copy_page(r, i, c->pages + (size_t)n * r->size);
	find_lost(r, &lost, &first_new);
	for (uint32_t i = 0; i < n; i++) {
		clock = ky_load64(c->pages + (size_t)i * r->size);
		if (clock > lost && clock < first_new)
			c->order[c->n++] = i;
	}
	qsort_r(c->order, c->n, sizeof(*c->order), by_clock, c);
}

static int allocate_copy(struct ftrace_copy *c, struct ring *r)
{
	/* Most of a large ring may be empty: only pages that are written take memory. */
	void *p = mmap(NULL, (size_t)r->n * r->size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	c->size = r->size;
	c->mapped = (size_t)r->n * r->size;
	c->pages = p == MAP_FAILED ? NULL : p;
	c->order = calloc(r->n, sizeof(*c->order));
	r->clocks = calloc(r->n, sizeof(*r->clocks));
	return c->pages && c->order && r->clocks ? 0 : -ENOMEM;
}

int ftrace_copy_ring(struct ftrace_copy *c, const uint8_t *data, uint32_t n, uint32_t size)
{
	struct ring r = {.data = data, .n = n, .size = size};
	int ret = allocate_copy(c, &r);

	if (!ret)
		copy_all(c, &r);
	free(r.clocks);
	return ret;
}

static int copy_mapped(struct ftrace_copy *c, int fd, const struct meta *meta)
{
	size_t size = (size_t)meta->nr_subbufs * meta->subbuf_size;
	void *data = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, meta->meta_page_size);
	int ret;

	if (data == MAP_FAILED)
		return -errno;
	ret = ftrace_copy_ring(c, data, meta->nr_subbufs, meta->subbuf_size);
	munmap(data, size);
	return ret;
}

int ftrace_copy_open(struct ftrace_copy *c, int fd, uint32_t subbuf_size)
{
	const struct meta *meta = mmap(NULL, META_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	int ret = -EBADMSG;

	*c = (struct ftrace_copy){.n = 0};
	if (meta == MAP_FAILED)
		return -errno;
	if (meta->subbuf_size == subbuf_size && meta->nr_subbufs)
		ret = copy_mapped(c, fd, meta);
	munmap((void *)meta, META_SIZE);
	return ret;
}

void ftrace_copy_close(struct ftrace_copy *c)
{
	if (c->pages)
		munmap(c->pages, c->mapped);
	free(c->order);
	free(c->parts);
	*c = (struct ftrace_copy){.n = 0};
}

void ftrace_copy_read(const struct ftrace_copy *c, uint32_t i, uint8_t *page)
{
	const uint8_t *from = c->pages + (size_t)c->order[i] * c->size;

	memcpy(page, from, KY_KPAGE_HEADER + ky_kpage_len(from));
}

bool ftrace_copy_next(struct ftrace_copy *c, uint8_t *page)
{
	if (c->next == c->n)
		return false;
	ftrace_copy_read(c, c->next++, page);
	return true;
}
