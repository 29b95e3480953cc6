/* SPDX-License-Identifier: MIT */
#include "ring/parts.h"

#include <sys/mman.h>
#include <unistd.h>

/* An array of the set: n elements of `size` bytes, at `offset`. */
struct array {
	uint64_t offset, size;
};

/* A part's window on an array: whole pages of the file, from `start` to `end`. */
struct window {
	uint64_t start, end;
};

enum { ARRAYS = 4 };

KY_WRITTEN_EARLY bool ky_parts_closed;

static struct array array_of(const struct ky_geometry *g, int i)
{
	const struct array arrays[ARRAYS] = {
		{g->ctl_offset, KY_CTL_SIZE},
		{g->table_offset, g->table_stride},
		{g->oldest_offset, sizeof(uint64_t)},
		{g->data_offset, g->data_stride},
	};

	return arrays[i];
}

static void **address_of(struct ky_ring_part *part, int array)
{
	void **const addresses[ARRAYS] = {&part->ctl, &part->table, &part->oldest, &part->data};

	return addresses[array];
}

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A window that is not the first begins with the last page of the one before. */
static struct window window_of(const struct ky_geometry *g, unsigned int part, int array)
{
	struct array a = array_of(g, array);
	uint64_t first = part ? (uint64_t)KY_PART_FIRST << (part - 1) : 0;
	uint64_t last = KY_MIN((uint64_t)KY_PART_FIRST << part, (uint64_t)g->n_rings);
	uint64_t start = a.offset + first * a.size - !!part, page = page_size();

	return (struct window){start & ~(page - 1), ky_align_up(a.offset + last * a.size, page)};
}

/* Maps the window: from the file, or as the continuation of the window before. */
static void *map_window(struct window w, void *before, int fd)
{
	size_t size = (size_t)(w.end - w.start);
	uintptr_t from = (uintptr_t)before + (uintptr_t)w.start;
	void *p = fd < 0 ? mremap((void *)from, 0, size, MREMAP_MAYMOVE)
			 : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)w.start);

	return p == MAP_FAILED ? NULL : (void *)((uintptr_t)p - (uintptr_t)w.start);
}

static void unmap_window(struct window w, void *address)
{
	munmap((char *)address + w.start, (size_t)(w.end - w.start));
}

static bool extend_array(
	struct ky_ring_parts *p, const struct ky_geometry *g, unsigned int part, int array, int fd)
{
	void **address = address_of(&p->part[part], array), *none = NULL, *mapped;
	struct window w = window_of(g, part, array);

	if (__atomic_load_n(address, __ATOMIC_ACQUIRE))
		return true;
	if (fd < 0 && (!part || ky_parts_closed))
		return false;
	mapped = map_window(w, part ? *address_of(&p->part[part - 1], array) : NULL, fd);
	if (!mapped)
		return false;
	/* Release: pairs with ky_parts_find. Another thread, or a handler, may have been first. */
	if (!__atomic_compare_exchange_n(
		    address, &none, mapped, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		unmap_window(w, mapped);
	return true;
}

static bool extend_arrays(
	struct ky_ring_parts *p, const struct ky_geometry *g, unsigned int part, int fd)
{
	for (int array = 0; array < ARRAYS; array++)
		if (!extend_array(p, g, part, array, fd))
			return false;
	return true;
}

const struct ky_ring_part *ky_parts_extend(
	struct ky_ring_parts *p, const struct ky_geometry *g, uint32_t slot, int fd)
{
	const struct ky_ring_part *found = ky_parts_find(p, slot);

	for (unsigned int i = 0; !found && i <= ky_part_of(slot); i++)
		if (!extend_arrays(p, g, i, fd))
			return NULL;
	return &p->part[ky_part_of(slot)];
}

/* Calls `visit` for each window that is mapped, with its address. */
static void for_each_window(const struct ky_ring_parts *p, const struct ky_geometry *g,
	int argument, void (*visit)(void *address, size_t size, int argument))
{
	for (unsigned int i = 0; i < KY_PARTS_MAX; i++) {
		struct ky_ring_part part = p->part[i];

		for (int array = 0; array < ARRAYS; array++) {
			struct window w = window_of(g, i, array);
			char *address = *address_of(&part, array);

			if (address)
				visit(address + w.start, (size_t)(w.end - w.start), argument);
		}
	}
}

static void advise(void *address, size_t size, int advice)
{
	madvise(address, size, advice);
}

void ky_parts_advise(const struct ky_ring_parts *p, const struct ky_geometry *g, int advice)
{
	for_each_window(p, g, advice, advise);
}

static void unmap_memory(void *address, size_t size, int unused)
{
	(void)unused;
	munmap(address, size);
}

void ky_parts_unmap(struct ky_ring_parts *p, const struct ky_geometry *g)
{
	for_each_window(p, g, 0, unmap_memory);
	memset(p, 0, sizeof(*p));
}
