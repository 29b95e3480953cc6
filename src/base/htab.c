/* SPDX-License-Identifier: MIT */
#include "base/htab.h"

#define FIRST_BUCKETS 16

static int grow_buckets(struct ky_htab *t)
{
	size_t n_buckets = t->n_buckets ? t->n_buckets * 2 : FIRST_BUCKETS;
	struct ky_hnode **buckets = calloc(n_buckets, sizeof(*buckets)), *n, *tmp;
	size_t i;

	if (!buckets)
		return -ENOMEM;
	ky_htab_foreach(t, i, n, tmp)
	{
		n->next = buckets[n->hash & (n_buckets - 1)];
		buckets[n->hash & (n_buckets - 1)] = n;
	}
	free(t->buckets);
	t->buckets = buckets;
	t->n_buckets = n_buckets;
	return 0;
}

int ky_htab_add(struct ky_htab *t, struct ky_hnode *n, uint32_t hash)
{
	struct ky_hnode **at;

	if (t->n >= t->n_buckets && grow_buckets(t) < 0)
		return -ENOMEM;
	at = &t->buckets[hash & (t->n_buckets - 1)];
	n->hash = hash;
	n->next = *at;
	*at = n;
	t->n++;
	return 0;
}

void ky_htab_remove(struct ky_htab *t, struct ky_hnode *n)
{
	struct ky_hnode **at;

	if (!t->n_buckets)
		return;
	for (at = &t->buckets[n->hash & (t->n_buckets - 1)]; *at; at = &(*at)->next) {
		if (*at == n) {
			*at = n->next;
			t->n--;
			return;
		}
	}
}

static struct ky_hnode *with_hash(struct ky_hnode *n, uint32_t hash)
{
	while (n && n->hash != hash)
		n = n->next;
	return n;
}

struct ky_hnode *ky_htab_first(const struct ky_htab *t, uint32_t hash)
{
	return t->n_buckets ? with_hash(t->buckets[hash & (t->n_buckets - 1)], hash) : NULL;
}

struct ky_hnode *ky_htab_next(const struct ky_hnode *n)
{
	return with_hash(n->next, n->hash);
}

void ky_htab_deinit(struct ky_htab *t)
{
	free(t->buckets);
	memset(t, 0, sizeof(*t));
}

void ky_htab_free_from(struct ky_htab *t, size_t offset)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(t, i, n, tmp)
	{
		free((char *)n - offset);
	}
	ky_htab_deinit(t);
}
