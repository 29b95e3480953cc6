/* SPDX-License-Identifier: MIT */
#include <sys/mman.h>

#include "tracer/tracer.h"

#define CHUNK ((size_t)256 << 10)

/* A chain of mappings. The newest one is being filled. */
struct chunk {
	struct chunk *next; /* older, or (in a child) to be filled again */
	size_t size, used;
	char *base;
};

static struct {
	struct {
		char *base;
		size_t size, used;
	} plain;
	/* headers of wiped chunks live in plain memory: a child must still find the mappings */
	struct chunk *wiped_full, *wiped_free;
} mem KY_WRITTEN_EARLY;

static void *map_private(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void *alloc_plain(size_t size)
{
	void *p;

	if (size > mem.plain.size - mem.plain.used) {
		size_t want = KY_MAX(CHUNK, ky_align_up(size, 4096));
		char *base = map_private(want);

		if (!base)
			return NULL;
		mem.plain.base = base;
		mem.plain.size = want;
		mem.plain.used = 0;
	}
	p = mem.plain.base + mem.plain.used;
	mem.plain.used += size;
	return p;
}

static void *alloc_wiped(size_t size)
{
	struct chunk *c = mem.wiped_free;

	if (!c || size > c->size - c->used) {
		c = alloc_plain(ky_align_up(sizeof(*c), 64));
		if (!c)
			return NULL;
		c->used = 0;
		c->size = KY_MAX(CHUNK, ky_align_up(size, 4096));
		c->base = map_private(c->size);
		if (!c->base)
			return NULL;
		/*
		 * Before Linux 4.14, children start with copies: then they are not wiped until they
		 * register.
		 */
		madvise(c->base, c->size, MADV_WIPEONFORK);
		if (mem.wiped_free) {
			struct chunk *full = mem.wiped_free;

			mem.wiped_free = full->next;
			full->next = mem.wiped_full;
			mem.wiped_full = full;
		}
		c->next = mem.wiped_free;
		mem.wiped_free = c;
	}
	c->used += size;
	return c->base + c->used - size;
}

void *tracer_alloc(size_t size, bool wiped)
{
	size = ky_align_up(size, 64);
	return wiped ? alloc_wiped(size) : alloc_plain(size);
}

void tracer_mem_reset(void)
{
	while (mem.wiped_full) {
		struct chunk *c = mem.wiped_full;

		mem.wiped_full = c->next;
		c->next = mem.wiped_free;
		mem.wiped_free = c;
	}
	for (struct chunk *c = mem.wiped_free; c; c = c->next) {
		memset(c->base, 0, c->used);
		c->used = 0;
	}
}
