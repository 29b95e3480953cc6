/* SPDX-License-Identifier: MIT */
#include "analysis/functions.h"

#include <inttypes.h>

#include "base/hash.h"

#define MAX_FUNCTIONS ((size_t)1 << 16) /* and their ends */

struct ky_function {
	struct ky_hnode node;
	uint64_t key[4]; /* class, host, process, address */
	struct ky_source_class class;
};

bool ky_functions_is_call(const struct ky_source_class *c)
{
	return (c->kind == KY_EVENT_PAIR_ENTRY || c->kind == KY_EVENT_PAIR_EXIT) && !c->is_kernel &&
	       c->known[KY_FIELD_ADDRESS];
}

static uint32_t name_of(struct ky_functions *f, struct ky_texts *names, const uint64_t key[4])
{
	const char *host = ky_texts_get(names, (uint32_t)key[1]);
	char text[KY_TEXTS_LENGTH];

	if (!f->finder->find(f->finder->arg, host, (int64_t)key[2], key[3], text, sizeof(text)))
		snprintf(text, sizeof(text), "0x%" PRIx64, key[3]);
	return ky_texts_add(names, text, strlen(text));
}

/* Its addresses say no more than its name: it has no fields but the contexts. */
static void set_class(struct ky_source_class *c, struct ky_texts *names, uint32_t name)
{
	bool is_entry = c->kind == KY_EVENT_PAIR_ENTRY;
	char text[KY_TEXTS_LENGTH];

	snprintf(text, sizeof(text), "%.*s%s", KY_TEXTS_LENGTH - 8, ky_texts_get(names, name),
		is_entry ? "_begin" : "_end");
	c->kind = is_entry ? KY_EVENT_SPAN_BEGIN : KY_EVENT_SPAN_END;
	c->is_function = true;
	c->base = name;
	c->name = ky_texts_add(names, text, strlen(text));
	while (c->fields.n && c->fields.v[c->fields.n - 1].scope == KY_SCOPE_FIELDS)
		c->fields.n--;
}

static struct ky_function *insert_function(struct ky_functions *f, struct ky_texts *names,
	const struct ky_source_class *c, const uint64_t key[4], uint32_t hash)
{
	struct ky_function *n = f->table.n < MAX_FUNCTIONS ? calloc(1, sizeof(*n)) : NULL;

	if (!n)
		return NULL;
	memcpy(n->key, key, sizeof(n->key));
	n->class = *c;
	set_class(&n->class, names, name_of(f, names, key));
	if (ky_htab_add(&f->table, &n->node, hash) < 0) {
		free(n);
		return NULL;
	}
	return n;
}

const struct ky_source_class *ky_functions_class(
	struct ky_functions *f, struct ky_texts *names, const struct ky_source_event *e)
{
	const uint64_t key[4] = {(uintptr_t)e->class, e->host,
		(uint64_t)ky_source_number(e, KY_FIELD_PID, -1),
		(uint64_t)ky_source_number(e, KY_FIELD_ADDRESS, 0)};
	struct ky_function *found = NULL;
	uint32_t hash;

	if (!f->finder || !ky_functions_is_call(e->class))
		return e->class;
	if (f->last && !memcmp(f->last->key, key, sizeof(key)))
		return &f->last->class;
	hash = ky_hash(key, sizeof(key));
	for (struct ky_hnode *n = ky_htab_first(&f->table, hash); n && !found;
		n = ky_htab_next(n)) {
		struct ky_function *o = ky_container_of(n, struct ky_function, node);

		found = memcmp(o->key, key, sizeof(key)) ? NULL : o;
	}
	if (!found)
		found = insert_function(f, names, e->class, key, hash);
	f->last = found;
	return found ? &found->class : e->class;
}

size_t ky_functions_list(
	const struct ky_functions *f, const struct ky_texts *names, const char **list, size_t n)
{
	struct ky_hnode *node, *tmp;
	size_t i;

	ky_htab_foreach((struct ky_htab *)&f->table, i, node, tmp)
	{
		const struct ky_source_class *c =
			&ky_container_of(node, struct ky_function, node)->class;

		if (c->kind == KY_EVENT_SPAN_BEGIN)
			list[n++] = ky_texts_get(names, c->base);
	}
	return n;
}

void ky_functions_deinit(struct ky_functions *f)
{
	ky_htab_free_all(&f->table, struct ky_function, node);
}
