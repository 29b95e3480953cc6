/* SPDX-License-Identifier: MIT */
/*
 * One table with linear probing for both kinds of entries: texts, whose owner is NULL, and numbers.
 * The hash has a seed that a trace cannot know, so that nobody can choose names that collide.
 */
#include "reader/names.h"

#include <sys/auxv.h>

#define FEWEST_SLOTS 256

struct ky_names_slot {
	const void *owner; /* NULL: a text */
	const char *name;  /* NULL: the slot is free */
	uint32_t hash;
	uint32_t number;
};

void ky_names_init(struct ky_names *n, struct ky_arena *arena)
{
	const void *random = (const void *)getauxval(AT_RANDOM);

	*n = (struct ky_names){.arena = arena, .seed = 0x9e3779b97f4a7c15u};
	if (random)
		memcpy(&n->seed, random, sizeof(n->seed));
}

void ky_names_deinit(struct ky_names *n)
{
	free(n->slots);
	n->slots = NULL;
	n->n_slots = n->n = 0;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0xff51afd7ed558ccdu;
	return h ^ h >> 32;
}

static uint32_t hash_text(const struct ky_names *n, const char *text, size_t len)
{
	uint64_t h = n->seed;

	for (size_t i = 0; i < len; i++)
		h = mix(h, (unsigned char)text[i]);
	return (uint32_t)mix(h, len);
}

static uint32_t hash_pair(const struct ky_names *n, const void *owner, const char *name)
{
	return (uint32_t)mix(mix(n->seed, (uintptr_t)owner), (uintptr_t)name);
}

static struct ky_names_slot *slot_of(
	const struct ky_names *n, const void *owner, uint32_t hash, const char *name, size_t len)
{
	for (size_t i = hash;; i++) {
		struct ky_names_slot *s = &n->slots[i & (n->n_slots - 1)];

		if (!s->name)
			return s;
		if (s->hash != hash || s->owner != owner)
			continue;
		if (owner ? s->name == name : !strncmp(s->name, name, len) && !s->name[len])
			return s;
	}
}

/* At most half of the slots are in use. */
static bool make_room(struct ky_names *n)
{
	struct ky_names old = *n;

	if (2 * n->n < n->n_slots)
		return true;
	n->n_slots = KY_MAX(2 * n->n_slots, (size_t)FEWEST_SLOTS);
	n->slots = calloc(n->n_slots, sizeof(*n->slots));
	if (!n->slots) {
		*n = old;
		return false;
	}
	for (size_t i = 0; i < old.n_slots; i++) {
		size_t at = old.slots[i].hash;

		if (!old.slots[i].name)
			continue;
		while (n->slots[at & (n->n_slots - 1)].name)
			at++;
		n->slots[at & (n->n_slots - 1)] = old.slots[i];
	}
	free(old.slots);
	return true;
}

const char *ky_names_intern(struct ky_names *n, const char *text, size_t len)
{
	struct ky_names_slot *s;
	const char *copy;
	uint32_t hash;

	len = strnlen(text, len);
	hash = hash_text(n, text, len);
	if (!make_room(n))
		return NULL;
	s = slot_of(n, NULL, hash, text, len);
	if (s->name)
		return s->name;
	copy = ky_arena_strndup(n->arena, text, len);
	if (!copy)
		return NULL;
	*s = (struct ky_names_slot){.name = copy, .hash = hash};
	n->n++;
	return copy;
}

uint32_t *ky_names_at(struct ky_names *n, const void *owner, const char *name)
{
	uint32_t hash = hash_pair(n, owner, name);
	struct ky_names_slot *s;

	if (!make_room(n))
		return NULL;
	s = slot_of(n, owner, hash, name, 0);
	if (!s->name) {
		*s = (struct ky_names_slot){
			.owner = owner, .name = name, .hash = hash, .number = UINT32_MAX};
		n->n++;
	}
	return &s->number;
}

uint32_t ky_names_find(const struct ky_names *n, const void *owner, const char *name)
{
	struct ky_names_slot *s;

	if (!n->n_slots)
		return UINT32_MAX;
	s = slot_of(n, owner, hash_pair(n, owner, name), name, 0);
	return s->name ? s->number : UINT32_MAX;
}
