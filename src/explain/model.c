/* SPDX-License-Identifier: MIT */
#include "explain/model.h"

#include <math.h>

#include "base/bisect.h"

/* --- components --- */

static uint32_t hash_component(const struct ky_component *c)
{
	const uint32_t key[] = {c->parent, c->kind, c->a, c->b};

	return ky_hash(key, sizeof(key));
}

/* Its number, or 0. */
static uint32_t find_component(const struct ky_components *all, const struct ky_component *like)
{
	for (struct ky_hnode *n = ky_htab_first(&all->table, hash_component(like)); n;
		n = ky_htab_next(n)) {
		const struct ky_component *c = ky_container_of(n, struct ky_component, node);

		if (c->parent == like->parent && c->kind == like->kind && c->a == like->a &&
			c->b == like->b)
			return c->number;
	}
	return 0;
}

static uint32_t add_component(struct ky_components *all, const struct ky_component *like)
{
	struct ky_component *c = malloc(sizeof(*c));

	if (!c || ky_vec_add(&all->all, c) < 0) {
		free(c);
		all->error = -ENOMEM;
		return 0;
	}
	*c = *like;
	c->number = (uint32_t)all->all.n;
	if (ky_htab_add(&all->table, &c->node, hash_component(c)) < 0)
		all->error = -ENOMEM;
	return c->number;
}

uint32_t ky_component_child(struct ky_components *c, uint32_t parent, enum ky_component_kind kind,
	uint32_t a, uint32_t b)
{
	struct ky_component like = {.parent = parent, .kind = (uint8_t)kind, .a = a, .b = b};
	uint32_t found;

	if (c->error)
		return 0;
	/* Below "all others" there is nothing more. */
	if (parent && ky_component_get(c, parent)->kind == KY_PART_WAY)
		return parent;
	found = find_component(c, &like);
	if (found)
		return found;
	like.depth = parent ? ky_component_get(c, parent)->depth + 1 : 0;
	/* A last way of each path takes all that has no room. */
	if (parent && (a || b) && (c->all.n >= KY_MAX_COMPONENTS || like.depth > KY_MAX_DEPTH))
		return ky_component_child(c, parent, KY_PART_WAY, 0, 0);
	return add_component(c, &like);
}

void ky_component_count_stage(struct ky_components *c, uint32_t number, bool is_given)
{
	struct ky_component *o = c->all.v[number - 1];

	o->n_stages++;
	o->n_given += is_given;
}

static void deinit_components(struct ky_components *c)
{
	for (size_t i = 0; i < c->all.n; i++)
		free(c->all.v[i]);
	ky_vec_deinit(&c->all);
	ky_htab_deinit(&c->table);
}

/* --- threads --- */

static struct ky_explain_thread *find_thread(
	const struct ky_explain *x, const struct ky_explain_thread *like, uint32_t hash)
{
	for (struct ky_hnode *n = ky_htab_first(&x->by_tid, hash); n; n = ky_htab_next(n)) {
		struct ky_explain_thread *t = ky_container_of(n, struct ky_explain_thread, node);

		if (t->is_second == like->is_second && t->host == like->host && t->tid == like->tid)
			return t;
	}
	return NULL;
}

/* Threads of one process share the counters of the first of them. 0 or -ENOMEM. */
static int set_process(struct ky_explain *x, struct ky_explain_thread *t, int64_t pid)
{
	const uint64_t key[] = {t->is_second, t->host, (uint64_t)pid};
	uint32_t hash = ky_hash(key, sizeof(key));
	bool is_first = t->process == t->number && t->pid >= 0;

	t->pid = pid;
	for (struct ky_hnode *n = ky_htab_first(&x->by_pid, hash); n; n = ky_htab_next(n)) {
		const struct ky_explain_thread *o = ky_container_of(
			n, struct ky_explain_thread, process_node);

		if (o->pid == pid && o->is_second == t->is_second && o->host == t->host) {
			t->process = o->number;
			return 0;
		}
	}
	/* A thread number may be used again by another process: it is listed once. */
	t->process = t->number;
	return is_first ? 0 : ky_htab_add(&x->by_pid, &t->process_node, hash);
}

uint32_t ky_explain_thread(
	struct ky_explain *x, bool is_second, uint32_t host, int64_t tid, int64_t pid)
{
	const uint64_t key[] = {is_second, host, (uint64_t)tid};
	struct ky_explain_thread like = {.is_second = is_second, .host = host, .tid = tid};
	struct ky_explain_thread *t = x->last_thread;
	uint32_t hash;

	/* Events of one thread come in a row. */
	if (t && t->tid == tid && t->host == host && t->is_second == is_second &&
		(pid < 0 || t->pid == pid))
		return t->number;
	hash = ky_hash(key, sizeof(key));
	t = find_thread(x, &like, hash);
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t || ky_vec_add(&x->threads, t) < 0) {
			free(t);
			return UINT32_MAX;
		}
		*t = like;
		t->number = t->process = (uint32_t)x->threads.n - 1;
		t->pid = -1;
		if (ky_htab_add(&x->by_tid, &t->node, hash) < 0)
			return UINT32_MAX;
	}
	if (pid >= 0 && t->pid != pid && set_process(x, t, pid) < 0)
		return UINT32_MAX;
	x->last_thread = t;
	return t->number;
}

/* --- traits --- */

struct key_node {
	struct ky_hnode node;
	uint32_t number;
};

uint32_t ky_explain_key(struct ky_explain *x, struct ky_trait_key key)
{
	const uint32_t words[] = {key.kind, key.name, key.field};
	uint32_t hash = ky_hash(words, sizeof(words));
	struct key_node *k;

	for (struct ky_hnode *n = ky_htab_first(&x->by_key, hash); n; n = ky_htab_next(n)) {
		const struct ky_trait_key *o;

		k = ky_container_of(n, struct key_node, node);
		o = &x->keys.v[k->number];
		if (o->kind == key.kind && o->name == key.name && o->field == key.field)
			return k->number;
	}
	k = malloc(sizeof(*k));
	if (!k || ky_vec_add(&x->keys, key) < 0 || ky_htab_add(&x->by_key, &k->node, hash) < 0) {
		free(k);
		return UINT32_MAX;
	}
	k->number = (uint32_t)x->keys.n - 1;
	return k->number;
}

bool ky_explain_has_hosts(const struct ky_explain *x)
{
	for (size_t i = 1; i < x->threads.n; i++) {
		if (x->threads.v[i]->host != x->threads.v[0]->host)
			return true;
	}
	return false;
}

bool ky_explain_has_single_threads(const struct ky_explain *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->threads.n; i++) {
		const struct ky_explain_thread *t = x->threads.v[i];
		const struct ky_explain_thread *first = x->threads.v[t->process];

		if (t->n_instances && (t->pid < 0 || first->n_process_instances != t->n_instances))
			return false;
		n += t->n_instances > 0;
	}
	return n > 1;
}

void ky_explain_deinit(struct ky_explain *x)
{
	ky_htab_free_all(&x->by_key, struct key_node, node);
	for (size_t i = 0; i < x->threads.n; i++)
		free(x->threads.v[i]);
	ky_vec_deinit(&x->threads);
	ky_htab_deinit(&x->by_tid);
	ky_htab_deinit(&x->by_pid);
	ky_vec_deinit(&x->keys);
	ky_vec_deinit(&x->company);
	ky_vec_deinit(&x->rare);
	deinit_components(&x->components);
	ky_texts_deinit(&x->names);
}

/* --- instances --- */

void ky_instance_deinit(struct ky_instance *i)
{
	ky_vec_deinit(&i->parts);
	ky_vec_deinit(&i->traits);
	ky_vec_deinit(&i->blames);
	ky_vec_deinit(&i->waits);
	ky_vec_deinit(&i->loads);
	ky_vec_deinit(&i->company);
	ky_vec_deinit(&i->sums);
	ky_vec_deinit(&i->samples);
	ky_vec_deinit(&i->longest);
	free(i->slots);
	free(i->company_before);
	i->slots = NULL;
	i->company_before = NULL;
}

int ky_instance_by_begin(const void *a, const void *b)
{
	const struct ky_instance *x = *(struct ky_instance *const *)a;
	const struct ky_instance *y = *(struct ky_instance *const *)b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

int ky_instance_by_length(const void *a, const void *b)
{
	const struct ky_instance *x = *(struct ky_instance *const *)a;
	const struct ky_instance *y = *(struct ky_instance *const *)b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return ky_instance_by_begin(a, b);
}

const struct ky_part *ky_instance_part(const struct ky_instance *i, uint32_t component)
{
	size_t first;

	ky_bisect(first, i->parts.n, k, i->parts.v[k].component < component);
	return first < i->parts.n && i->parts.v[first].component == component ? &i->parts.v[first]
									      : NULL;
}

const struct ky_fact *ky_instance_fact(const struct ky_instance *i, uint32_t key)
{
	size_t first;

	ky_bisect(first, i->traits.n, k, i->traits.v[k].key < key);
	return first < i->traits.n && i->traits.v[first].key == key ? &i->traits.v[first].fact
								    : NULL;
}

int ky_fact_compare(const struct ky_fact *a, const struct ky_fact *b)
{
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	/* NaN comes after all numbers, and is equal to none of them. */
	if (a->type == KY_FACT_REAL && (isnan(a->real) || isnan(b->real)))
		return !!isnan(a->real) - !!isnan(b->real);
	if (a->type == KY_FACT_REAL)
		return (a->real > b->real) - (a->real < b->real);
	if (a->type == KY_FACT_TEXT)
		return (a->text > b->text) - (a->text < b->text);
	return (a->number > b->number) - (a->number < b->number);
}

const struct ky_sum *ky_instance_sum(const struct ky_instance *i, uint32_t key, uint32_t by)
{
	for (size_t k = 0; k < i->sums.n; k++) {
		if (i->sums.v[k].key == key && i->sums.v[k].by == by)
			return &i->sums.v[k];
	}
	return NULL;
}

const struct ky_company *ky_instance_find_company(const struct ky_instance *i, uint32_t name)
{
	for (size_t k = 0; k < i->company.n; k++) {
		const struct ky_company *c = &i->company.v[k];

		if (c->name == name)
			return 2 * c->waiting_ns <= c->each_ns ? c : NULL;
	}
	return NULL;
}

double ky_instance_company(const struct ky_instance *i, uint32_t name)
{
	const struct ky_company *c = ky_instance_find_company(i, name);

	return c ? (double)c->ns / (double)(i->end_ns - i->begin_ns) : 0;
}

/* The last way of a path is beyond KY_MAX_COMPONENTS; so many paths there can be. */
#define N_SLOTS (2 * KY_MAX_COMPONENTS + 1)

static int add_part(struct ky_instance *i, const struct ky_part *part)
{
	uint32_t component = part->component;
	struct ky_part *p;

	if (!i->slots)
		i->slots = calloc(N_SLOTS, sizeof(*i->slots));
	if (!i->slots || !component || component >= N_SLOTS)
		return -ENOMEM;
	if (!i->slots[component]) {
		if (ky_vec_add(&i->parts, (struct ky_part){.component = component}) < 0)
			return -ENOMEM;
		i->slots[component] = (uint16_t)i->parts.n;
	}
	p = &i->parts.v[i->slots[component] - 1];
	p->count += part->count;
	p->ns += part->ns;
	p->late += part->late;
	return 0;
}

int ky_instance_add(struct ky_instance *i, uint32_t component, uint32_t count, int64_t ns)
{
	return add_part(i, &(struct ky_part){component, count, ns, 0});
}

int ky_instance_add_time(
	struct ky_instance *i, uint32_t component, int64_t from, int64_t to, int64_t off_ns)
{
	double since = ((double)(from - i->begin_ns) + (double)(to - i->begin_ns)) / 2;
	int64_t ns = to - from - off_ns;

	return add_part(i, &(struct ky_part){component, 1, ns,
				   2 * since * (double)ns / KY_MAX(1, i->ns * i->ns)});
}

static int compare_parts(const void *a, const void *b)
{
	const struct ky_part *x = a, *y = b;

	return (x->component > y->component) - (x->component < y->component);
}

static int compare_traits(const void *a, const void *b)
{
	const struct ky_trait *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

int ky_instance_close(struct ky_explain *x, struct ky_instance *i)
{
	size_t n = i->parts.n;
	int r = 0;

	/* A parent may have no part yet: it is added behind, and its own parents have theirs. */
	for (size_t k = 0; k < n && !r; k++) {
		struct ky_part p = i->parts.v[k];
		const struct ky_component *c = ky_component_of(x, p.component);

		for (uint32_t up = c->parent; c->kind == KY_PART_WAY && up && !r;
			up = ky_component_of(x, up)->parent)
			r = add_part(i, &(struct ky_part){up, 0, p.ns, p.late});
	}
	qsort(i->parts.v, i->parts.n, sizeof(*i->parts.v), compare_parts);
	if (i->traits.n)
		qsort(i->traits.v, i->traits.n, sizeof(*i->traits.v), compare_traits);
	ky_vec_deinit(&i->longest);
	free(i->slots);
	free(i->company_before);
	i->slots = NULL;
	i->company_before = NULL;
	i->is_closed = true;
	return r;
}

int64_t ky_instance_load(const struct ky_instance *i)
{
	int64_t ns = 0;

	for (size_t k = 0; k < i->loads.n; k++)
		ns += i->loads.v[k].ns;
	return ns;
}

int64_t ky_instance_peers(const struct ky_instance *i)
{
	int64_t ns = 0;

	for (size_t k = 0; k < i->loads.n; k++)
		ns += i->loads.v[k].peers_ns;
	return ns;
}

bool ky_explain_is_tracer(const struct ky_explain *x, uint32_t thread)
{
	const char *name = ky_texts_get(&x->names, x->threads.v[thread]->name);

	return !strcmp(name, "kymo") || !strncmp(name, "kymo-", 5);
}

void ky_instance_set_net(const struct ky_explain *x, struct ky_instance *i, bool is_net)
{
	if (i->is_net == is_net)
		return;
	i->is_net = is_net;
	for (size_t k = 0; k < i->loads.n; k++) {
		int64_t ns = is_net ? -i->loads.v[k].ns : i->loads.v[k].ns;

		i->ns += (double)ns;
		/* The ways below a wait stay as they are: a wait is a finding as a whole. */
		for (uint32_t c = i->loads.v[k].component; c; c = ky_component_of(x, c)->parent) {
			struct ky_part *p = (struct ky_part *)ky_instance_part(i, c);

			if (p)
				p->ns += ns;
		}
	}
}
