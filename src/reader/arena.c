/* SPDX-License-Identifier: MIT */
#include "reader/arena.h"

#define CHUNK_SIZE ((size_t)64 << 10)
#define ALIGN	   16

struct ky_arena_chunk {
	struct ky_arena_chunk *next;
	size_t size;
	char data[] __attribute__((aligned(ALIGN)));
};

void ky_arena_deinit(struct ky_arena *a)
{
	struct ky_arena_chunk *c = a->chunks, *next;

	for (; c; c = next) {
		next = c->next;
		free(c);
	}
	a->chunks = NULL;
	a->used = a->avail = 0;
}

static bool add_chunk(struct ky_arena *a, size_t n)
{
	size_t size = KY_MAX(n, CHUNK_SIZE);
	struct ky_arena_chunk *c = calloc(1, sizeof(*c) + size);

	if (!c)
		return false;
	c->size = size;
	c->next = a->chunks;
	a->chunks = c;
	a->avail = size;
	return true;
}

void *ky_arena_alloc(struct ky_arena *a, size_t n)
{
	void *p;

	if (n > SIZE_MAX / 2)
		return NULL;
	n = ky_align_up(KY_MAX(n, (size_t)1), ALIGN);
	if (a->max && (a->used > a->max || n > a->max - a->used))
		return NULL;
	if (n > a->avail && !add_chunk(a, n))
		return NULL;
	p = a->chunks->data + (a->chunks->size - a->avail);
	a->avail -= n;
	a->used += n;
	return p;
}

char *ky_arena_strndup(struct ky_arena *a, const char *s, size_t n)
{
	char *p = n < SIZE_MAX ? ky_arena_alloc(a, n + 1) : NULL;

	if (p)
		memcpy(p, s, n);
	return p;
}

void *ky_arena_grow(struct ky_arena *a, void *array, size_t *n, size_t *cap, size_t size)
{
	void **at = array;

	if (*n == *cap) {
		size_t new_cap = *cap ? 2 * *cap : 8;
		void *bigger = ky_arena_alloc(a, new_cap * size);

		if (!bigger)
			return NULL;
		if (*n)
			memcpy(bigger, *at, *n * size);
		*at = bigger;
		*cap = new_cap;
	}
	memset((char *)*at + *n * size, 0, size);
	return (char *)*at + (*n)++ * size;
}
