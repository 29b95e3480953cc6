/* SPDX-License-Identifier: MIT */
/*
 * Whether the values of the fields of a begin came before: what is made for each value when it is
 * first used, or each time that the value changes. And the values of the instance before, which may
 * have left work. Begins of all instances count, not only those of the chosen ones.
 */
#include "explain/accounting.h"

#define MAX_VALUES ((size_t)4096) /* of a field in a process, or in a thread; then it is given up */
#define MAX_ALL	   ((size_t)1 << 14) /* in all */
#define MAX_SUMMED 64 /* of a field in a process: numbers are added up by it, and texts kept */

struct ky_seen_value {
	struct ky_hnode node;
	uint64_t bits;
	int64_t newest_ns;   /* begin or end of an instance with it */
	struct ky_fact fact; /* NONE: it was not asked for */
	struct ky_value_sums
		*sums; /* owned; NULL: there are too many values, or it is a thread's */
};

struct key {
	uint32_t field, number; /* of the process, or of the thread; UINT32_MAX: of the trace */
	uint32_t is_thread;
};

/* The values of a field in a process, or in a thread. */
struct ky_values_seen {
	struct ky_hnode node;
	struct key key;
	struct ky_htab values;
	const struct ky_seen_value *newest;
	struct ky_fact newest_fact; /* NONE: there is none, or a text of many */
	bool is_full;
};

static struct ky_values_seen *find_seen(const struct ky_account *a, const struct key *key)
{
	for (struct ky_hnode *n = ky_htab_first(&a->values_seen, ky_hash(key, sizeof(*key))); n;
		n = ky_htab_next(n)) {
		struct ky_values_seen *s = ky_container_of(n, struct ky_values_seen, node);

		if (!memcmp(&s->key, key, sizeof(*key)))
			return s;
	}
	return NULL;
}

/* NULL without memory. cached: the newest one that was asked for, or NULL. */
static struct ky_values_seen *get_seen(
	struct ky_account *a, struct key key, struct ky_values_seen **cached)
{
	struct ky_values_seen *s = *cached;

	if (s && !memcmp(&s->key, &key, sizeof(key)))
		return s;
	s = find_seen(a, &key);
	if (!s && (s = calloc(1, sizeof(*s)))) {
		s->key = key;
		if (ky_htab_add(&a->values_seen, &s->node, ky_hash(&key, sizeof(key))) < 0) {
			free(s);
			s = NULL;
		}
	}
	if (!s)
		ky_account_check(a, -ENOMEM);
	return *cached = s;
}

static struct ky_seen_value *find_value(const struct ky_values_seen *s, uint64_t bits)
{
	for (struct ky_hnode *n = ky_htab_first(&s->values, ky_hash(&bits, sizeof(bits))); n;
		n = ky_htab_next(n)) {
		struct ky_seen_value *v = ky_container_of(n, struct ky_seen_value, node);

		if (v->bits == bits)
			return v;
	}
	return NULL;
}

static void free_value(struct ky_seen_value *v)
{
	if (v)
		free(v->sums);
	free(v);
}

/* NULL: there are too many, or without memory. */
static struct ky_seen_value *add_value(
	struct ky_account *a, struct ky_values_seen *s, uint64_t bits)
{
	bool has_sums = !s->key.is_thread && s->values.n < MAX_SUMMED;
	struct ky_seen_value *v;

	s->is_full = s->values.n == MAX_VALUES || a->n_values_seen == MAX_ALL;
	v = s->is_full ? NULL : calloc(1, sizeof(*v));
	if (v && has_sums)
		v->sums = calloc(1, sizeof(*v->sums));
	if (!s->is_full &&
		(!v || (has_sums && !v->sums) ||
			ky_htab_add(&s->values, &v->node, ky_hash(&bits, sizeof(bits))) < 0)) {
		ky_account_check(a, -ENOMEM);
		free_value(v);
		return NULL;
	}
	if (v) {
		v->bits = bits;
		a->n_values_seen++;
	}
	return v;
}

/* Whether the value came before; from now on, it did. ret_value: NULL if that is not known. */
static enum ky_repeat find_repeat(struct ky_account *a, struct ky_values_seen *s, uint64_t bits,
	struct ky_seen_value **ret_value)
{
	const struct ky_seen_value *newest = s ? s->newest : NULL;
	struct ky_seen_value *v;

	*ret_value = NULL;
	if (!s || s->is_full)
		return KY_REPEAT_UNKNOWN;
	v = find_value(s, bits);
	*ret_value = v ? v : add_value(a, s, bits);
	s->newest = *ret_value;
	if (!*ret_value)
		return KY_REPEAT_UNKNOWN;
	return !v ? KY_REPEAT_FIRST : v == newest ? KY_REPEAT_SAME : KY_REPEAT_OTHER;
}

static struct ky_field_repeat *get_field(struct ky_account *a, uint32_t field)
{
	struct ky_field_repeat new = {.field = field};

	for (size_t k = 0; k < a->n_repeats; k++) {
		if (a->repeats[k].field == field)
			return &a->repeats[k];
	}
	if (a->n_repeats == KY_MAX_REPEATS)
		return NULL;
	new.key = ky_explain_key(a->x, (struct ky_trait_key){KY_TRAIT_BEGIN, 0, field});
	if (new.key == UINT32_MAX)
		return NULL;
	a->repeats[a->n_repeats] = new;
	return &a->repeats[a->n_repeats++];
}

/* Whether its process has no instances in other threads: it says more than its only thread. */
static bool is_alone(const struct ky_explain *x, const struct ky_explain_thread *t)
{
	return t->pid >= 0 && t->n_instances == x->threads.v[t->process]->n_process_instances;
}

/* Texts are kept of fields with few values alone: memory is not to grow with the trace. */
static struct ky_fact find_fact(struct ky_account *a, const struct ky_source_event *e,
	const struct ky_field *f, const struct ky_values_seen *s, struct ky_seen_value *v)
{
	if (ky_source_has_number(e, f))
		return ky_source_fact(a->source, e, f);
	if (!v || s->values.n > MAX_SUMMED)
		return (struct ky_fact){.type = KY_FACT_NONE};
	if (v->fact.type == KY_FACT_NONE)
		v->fact = ky_source_fact(a->source, e, f);
	return v->fact;
}

/* Returns the fact of the instance before. */
static struct ky_fact exchange_fact(struct ky_values_seen *s, struct ky_fact fact)
{
	struct ky_fact before = {.type = KY_FACT_NONE};

	if (s) {
		before = s->newest_fact;
		s->newest_fact = fact;
	}
	return before;
}

static void set_repeat(struct ky_account *a, struct ky_field_repeat *r, uint32_t thread,
	const struct ky_source_event *e, const struct ky_field *f)
{
	uint64_t bits = ky_source_bits(e, f);
	int64_t ns = e->ns;
	const struct ky_explain_thread *t = thread == UINT32_MAX ? NULL : a->x->threads.v[thread];
	struct key key = {r->field, t && t->pid >= 0 ? t->process : UINT32_MAX, false};
	struct ky_values_seen *s = get_seen(a, key, &r->of_process);
	struct ky_seen_value *v, *of_thread;
	struct ky_fact fact;

	r->in_process = find_repeat(a, s, bits, &v);
	/* One that never came before is older than any. The only one is as old as the instance. */
	r->has_age = v && s->values.n > 1;
	r->age_ns = r->in_process == KY_REPEAT_FIRST || !v ? INT64_MAX : ns - v->newest_ns;
	if (v)
		v->newest_ns = ns;
	r->value = v;
	r->sums = v && s->values.n <= MAX_SUMMED ? v->sums : NULL;
	if (r->sums)
		r->sums->n++;
	fact = find_fact(a, e, f, s, v);
	r->before = exchange_fact(s, fact);
	if (!t || is_alone(a->x, t))
		return;
	key.number = thread;
	key.is_thread = true;
	s = get_seen(a, key, &r->of_thread);
	r->in_thread = find_repeat(a, s, bits, &of_thread);
	r->before_in_thread = exchange_fact(s, fact);
}

void ky_repeats_add(struct ky_account *a, const struct ky_source_event *e, uint32_t thread,
	struct ky_begun_values *ret)
{
	for (size_t k = 0; k < a->n_repeats; k++) {
		a->repeats[k].in_process = a->repeats[k].in_thread = KY_REPEAT_UNKNOWN;
		a->repeats[k].sums = NULL;
		a->repeats[k].value = NULL;
		a->repeats[k].has_age = false;
		a->repeats[k].before.type = a->repeats[k].before_in_thread.type = KY_FACT_NONE;
	}
	for (size_t k = 0; k < e->class->fields.n; k++) {
		const struct ky_field *f = &e->class->fields.v[k];
		struct ky_field_repeat *r;

		if (f->scope != KY_SCOPE_FIELDS || ky_traits_is_no_fact(a, e, f))
			continue;
		r = get_field(a, f->name);
		if (r)
			set_repeat(a, r, thread, e, f);
	}
	for (size_t k = 0; k < a->n_repeats; k++)
		ret->v[k] = a->repeats[k].value;
}

void ky_repeats_end(struct ky_begun_values *values, int64_t ns)
{
	for (size_t k = 0; k < KY_MAX_REPEATS; k++) {
		if (values->v[k])
			values->v[k]->newest_ns = ns;
	}
	*values = (struct ky_begun_values){0};
}

static void add_repeat(struct ky_account *a, struct ky_instance *i, enum ky_repeat repeat,
	uint32_t field, enum ky_trait_kind is_new, enum ky_trait_kind is_changed)
{
	if (repeat == KY_REPEAT_UNKNOWN)
		return;
	ky_traits_add_fact(a, i, (struct ky_trait_key){is_new, 0, field},
		(struct ky_fact){KY_FACT_INT, .number = repeat == KY_REPEAT_FIRST});
	ky_traits_add_fact(a, i, (struct ky_trait_key){is_changed, 0, field},
		(struct ky_fact){KY_FACT_INT, .number = repeat != KY_REPEAT_SAME});
}

void ky_repeats_keep(struct ky_account *a, struct ky_instance *i)
{
	for (size_t k = 0; k < a->n_repeats; k++) {
		const struct ky_field_repeat *r = &a->repeats[k];

		if (r->sums)
			ky_account_check(a, ky_vec_add(&i->sums, (struct ky_sum){KY_NO_KEY, r->key,
									 r->sums->n, 0}));
		ky_traits_add_fact(
			a, i, (struct ky_trait_key){KY_TRAIT_BEFORE, 0, r->field}, r->before);
		ky_traits_add_fact(a, i,
			(struct ky_trait_key){KY_TRAIT_BEFORE_OF_THREAD, 0, r->field},
			r->before_in_thread);
		add_repeat(a, i, r->in_process, r->field, KY_TRAIT_NEW, KY_TRAIT_CHANGED);
		add_repeat(a, i, r->in_thread, r->field, KY_TRAIT_NEW_OF_THREAD,
			KY_TRAIT_CHANGED_OF_THREAD);
		if (r->has_age)
			ky_traits_add_fact(a, i, (struct ky_trait_key){KY_TRAIT_AGE, 0, r->field},
				(struct ky_fact){KY_FACT_INT, .number = r->age_ns});
	}
}

static void free_seen(struct ky_values_seen *s)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&s->values, i, n, tmp)
	{
		free_value(ky_container_of(n, struct ky_seen_value, node));
	}
	ky_htab_deinit(&s->values);
	free(s);
}

void ky_repeats_deinit(struct ky_account *a)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&a->values_seen, i, n, tmp)
	{
		free_seen(ky_container_of(n, struct ky_values_seen, node));
	}
	ky_htab_deinit(&a->values_seen);
}
