/* SPDX-License-Identifier: MIT */
#include "analysis/open-async.h"

static uint32_t hash_async(uint32_t name, uint64_t id)
{
	const uint64_t key[] = {name, id};

	return ky_hash(key, sizeof(key));
}

/* Returns the newest one. */
static struct ky_open_async *find_async(const struct ky_htab *open, uint32_t name, uint64_t id)
{
	for (struct ky_hnode *n = ky_htab_first(open, hash_async(name, id)); n;
		n = ky_htab_next(n)) {
		struct ky_open_async *a = ky_container_of(n, struct ky_open_async, node);

		if (a->name == name && a->id == id)
			return a;
	}
	return NULL;
}

void *ky_open_async_begin(struct ky_htab *open, size_t size, uint32_t name, uint64_t id)
{
	struct ky_open_async *below = find_async(open, name, id), *a = calloc(1, size);

	if (!a || ky_htab_add(open, &a->node, hash_async(name, id)) < 0) {
		free(a);
		return NULL;
	}
	if (below)
		ky_htab_remove(open, &below->node);
	a->below = below;
	a->name = name;
	a->id = id;
	return a;
}

void *ky_open_async_end(struct ky_htab *open, uint32_t name, uint64_t id)
{
	struct ky_open_async *a = find_async(open, name, id);

	if (!a)
		return NULL;
	ky_htab_remove(open, &a->node);
	if (a->below) /* in the room that it leaves */
		ky_htab_add(open, &a->below->node, hash_async(name, id));
	return a;
}

void ky_open_async_free_all(struct ky_htab *open)
{
	struct ky_open_async *a, *below;
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(open, i, n, tmp)
	{
		for (a = ky_container_of(n, struct ky_open_async, node); a; a = below) {
			below = a->below;
			free(a);
		}
	}
	ky_htab_deinit(open);
}
