/* SPDX-License-Identifier: MIT */
/*
 * Intrusive chained hash table that grows. The caller compares keys; the table never owns its
 * nodes. Hashes of keys are ky_hash(): nobody who chooses keys can then choose long chains.
 */
#ifndef BASE_HTAB_H
#define BASE_HTAB_H

#include "base/keyed-hash.h"
#include "base/util.h"

struct ky_hnode {
	struct ky_hnode *next;
	uint32_t hash;
};

struct ky_htab {
	struct ky_hnode **buckets; /* owned; a power of two of them, or NULL while empty */
	size_t n_buckets, n;
};

/* 0 or -ENOMEM. */
int ky_htab_add(struct ky_htab *t, struct ky_hnode *n, uint32_t hash);
void ky_htab_remove(struct ky_htab *t, struct ky_hnode *n);
/*
 * First node with this hash, and the next one: for (n = ky_htab_first(); n; n = ky_htab_next(n)).
 */
struct ky_hnode *ky_htab_first(const struct ky_htab *t, uint32_t hash);
struct ky_hnode *ky_htab_next(const struct ky_hnode *n);
/* Frees the buckets, not the nodes. */
void ky_htab_deinit(struct ky_htab *t);
/* Frees the nodes, too: each is the member of a structure of this type, on the heap. */
#define ky_htab_free_all(t, type, member) ky_htab_free_from(t, offsetof(type, member))
void ky_htab_free_from(struct ky_htab *t, size_t offset);

/* Visits all nodes, in no order. The current one may be freed; none may be added. */
#define ky_htab_foreach(t, i, n, tmp)                                                              \
	for (i = 0; i < (t)->n_buckets; i++)                                                       \
		for (n = (t)->buckets[i]; n && (tmp = n->next, 1); n = tmp)

#endif
