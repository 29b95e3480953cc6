/* SPDX-License-Identifier: MIT */
#include "explain/difference.h"

#include <math.h>

#define WHOLE_PART   0.6   /* a span is named whole unless parts hold so much of its excess */
#define SHORT_WAY_NS 50000 /* an allocation, or a page fault without a wait, takes less */

/* Means for each instance of one group. */
struct mean_part {
	double count, ns;
};

struct work {
	struct ky_difference *d;
	struct ky_explain *x;
	struct mean_part *means[2];	   /* owned; slow, typical; by component */
	uint32_t *first, *next;		   /* owned; children of a component */
	KY_VEC(struct ky_finding *) found; /* owned until merged */
	int error;
};

enum ky_component_kind ky_finding_part(const struct ky_explain *x, const struct ky_finding *f)
{
	return (enum ky_component_kind)ky_component_of(x, f->component)->kind;
}

static bool is_wait(const struct ky_explain *x, uint32_t c)
{
	enum ky_component_kind kind = (enum ky_component_kind)ky_component_of(x, c)->kind;

	return kind != KY_PART_SPAN && kind != KY_PART_WAY;
}

bool ky_finding_is_wait(const struct ky_explain *x, const struct ky_finding *f)
{
	return is_wait(x, f->component);
}

bool ky_finding_is_place(const struct ky_explain *x, const struct ky_finding *f)
{
	return f->kind == KY_FINDING_LONGER && (!is_wait(x, f->component) || f->is_unended);
}

bool ky_finding_is_unseen(const struct ky_explain *x, const struct ky_finding *f)
{
	return x->unseen && ky_component_of(x, f->component)->a == x->unseen;
}

double ky_finding_ns(const struct ky_finding *f, const struct ky_instance *i)
{
	double ns = 0;

	for (size_t k = 0; k < f->components.n; k++) {
		const struct ky_part *p = ky_instance_part(i, f->components.v[k]);

		ns += p ? (double)p->ns : 0;
	}
	return ns;
}

double ky_finding_late(const struct ky_finding *f, const struct ky_instance *i)
{
	double late = 0;

	for (size_t k = 0; k < f->components.n; k++) {
		const struct ky_part *p = ky_instance_part(i, f->components.v[k]);

		late += p ? p->late : 0;
	}
	return late;
}

static bool has_name_prefix(const struct ky_explain *x, uint32_t name, const char *text)
{
	return !strncmp(ky_texts_get(&x->names, name), text, strlen(text));
}

static bool is_alloc_event(const struct ky_explain *x, uint32_t name)
{
	return has_name_prefix(x, name, "libc:alloc");
}

/* The event by which a call asks for a mutex; others follow it. */
static bool is_lock_call(const struct ky_explain *x, uint32_t name)
{
	const char *text = ky_texts_get(&x->names, name);

	return strstr(text, "mutex_lock_req") || strstr(text, "mutex_trylock");
}

typedef bool is_event(const struct ky_explain *x, uint32_t name);

/* The events that the finding's number counts. */
static is_event *counted_by(enum ky_finding_kind kind)
{
	return kind == KY_FINDING_ALLOC ? is_alloc_event : is_lock_call;
}

/* The name of the innermost span of a place. */
static uint32_t span_of(const struct ky_explain *x, uint32_t c)
{
	const struct ky_component *o = ky_component_of(x, c);

	while (o->kind != KY_PART_SPAN && o->parent)
		o = ky_component_of(x, o->parent);
	return o->a;
}

/* Calls that allocate, or ask for a mutex, in spans of the finding's name. */
static double count_calls(
	const struct ky_explain *x, const struct ky_finding *f, const struct ky_instance *i)
{
	is_event *is_counted = counted_by(f->kind);
	double n = 0;

	for (size_t k = 0; k < i->parts.n; k++) {
		uint32_t c = i->parts.v[k].component;

		if (ky_component_of(x, c)->kind == KY_PART_WAY &&
			is_counted(x, ky_component_of(x, c)->b) && span_of(x, c) == f->key.place)
			n += i->parts.v[k].count;
	}
	return n;
}

double ky_finding_count(
	const struct ky_explain *x, const struct ky_finding *f, const struct ky_instance *i)
{
	bool is_span = ky_component_of(x, f->component)->kind == KY_PART_SPAN;
	double n = 0;

	if (f->kind == KY_FINDING_ALLOC || f->kind == KY_FINDING_LOCKS)
		return count_calls(x, f, i);
	for (size_t k = 0; k < f->components.n; k++) {
		uint32_t c = f->components.v[k];
		const struct ky_part *p = ky_instance_part(i, c);

		/* Of an event's ways, only those that end with it; of a span, not the pauses. */
		if (p && (f->kind != KY_FINDING_EVENT || ky_component_of(x, c)->b == f->key.what) &&
			(!is_span || ky_component_of(x, c)->kind == KY_PART_SPAN))
			n += p->count;
	}
	return n;
}

/* --- parts of the difference --- */

static void add_means(struct mean_part *means, struct ky_instance *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < v[i]->parts.n; k++) {
			const struct ky_part *p = &v[i]->parts.v[k];

			means[p->component].count += (double)p->count / (double)n;
			means[p->component].ns += (double)p->ns / (double)n;
		}
	}
}

static int add_children(struct work *w)
{
	size_t n = w->x->components.all.n;

	w->first = calloc(n + 1, sizeof(*w->first));
	w->next = calloc(n + 1, sizeof(*w->next));
	if (!w->first || !w->next)
		return -ENOMEM;
	for (uint32_t c = (uint32_t)n; c > KY_ROOT; c--) {
		uint32_t parent = ky_component_of(w->x, c)->parent;

		if (w->means[0][c].ns <= 0 && w->means[1][c].ns <= 0 && w->means[0][c].count <= 0 &&
			w->means[1][c].count <= 0)
			continue;
		w->next[c] = w->first[parent];
		w->first[parent] = c;
	}
	return 0;
}

void ky_condition_deinit(struct ky_condition *c)
{
	free(c->text);
	free(c->has);
	*c = (struct ky_condition){0};
}

bool ky_condition_is_limit(const struct ky_condition *c)
{
	bool is_known_before = (c->about == KY_ABOUT_FIELD && !c->rank) ||
			       c->about == KY_ABOUT_HOST || c->about == KY_ABOUT_THREAD ||
			       c->is_call;

	return is_known_before && !c->is_order && c->part >= KY_LIMIT_PART &&
	       c->contrast >= KY_LIMIT_CONTRAST;
}

static struct ky_finding *free_finding(struct ky_finding *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < f->conditions.n; i++)
		ky_condition_deinit(&f->conditions.v[i]);
	ky_condition_deinit(&f->other);
	for (size_t i = 0; i < f->evidence.n; i++)
		free(f->evidence.v[i]);
	ky_vec_deinit(&f->conditions);
	ky_vec_deinit(&f->evidence);
	ky_vec_deinit(&f->components);
	ky_vec_deinit(&f->affected);
	free(f->clause);
	free(f->executed);
	free(f);
	return NULL;
}

static void add_finding(struct work *w, enum ky_finding_kind kind, uint32_t c, double amount)
{
	struct ky_finding *f = calloc(1, sizeof(*f));

	if (!f || ky_vec_add(&f->components, c) < 0 || ky_vec_add(&w->found, f) < 0) {
		w->error = -ENOMEM;
		free_finding(f);
		return;
	}
	f->kind = kind;
	f->component = c;
	f->amount = f->top = amount;
	f->p = 1;
	for (size_t i = 0; i < 2; i++) {
		const struct mean_part *m = &w->means[i][c];

		f->count[i] = m->count;
		f->mean_ns[i] = m->count > 0 ? m->ns / m->count : 0;
	}
}

static double each(const struct mean_part *m)
{
	return m->count > 0 ? m->ns / m->count : 0;
}

static void divide_children(struct work *w, uint32_t parent, double calls);

/* Of the kernel, or of the C library. */
static bool is_call(const struct ky_explain *x, uint32_t c)
{
	const struct ky_component *o = ky_component_of(x, c);
	const char *name = ky_texts_get(&x->names, o->a);

	return o->kind == KY_PART_SPAN &&
	       (ky_texts_end_in(name, "()", NULL) || !strncmp(name, "pthread:", 8));
}

static bool is_page_fault(const struct ky_explain *x, uint32_t name)
{
	return strstr(ky_texts_get(&x->names, name), "page_fault");
}

static bool is_handler_end(const struct ky_explain *x, uint32_t name)
{
	return strstr(ky_texts_get(&x->names, name), "_rt_sigreturn");
}

/* It says what happened: a wait, more calls, allocations, page faults, a signal. */
static bool is_cause(const struct ky_explain *x, const struct ky_finding *f)
{
	const struct ky_component *c = ky_component_of(x, f->component);

	if (c->kind != KY_PART_WAY)
		return is_wait(x, f->component) ||
		       (f->kind != KY_FINDING_LONGER &&
			       (is_call(x, f->component) ||
				       has_name_prefix(x, c->a, "page fault")));
	if (f->kind == KY_FINDING_LONGER)
		return false;
	if (is_handler_end(x, c->a) || is_handler_end(x, c->b))
		return true;
	return f->mean_ns[0] < SHORT_WAY_NS &&
	       (is_alloc_event(x, c->a) || is_alloc_event(x, c->b) || is_page_fault(x, c->a) ||
		       is_page_fault(x, c->b));
}

/*
 * The longer time of each call: of its parts, if those that say why have most of it, or one has; or
 * of the whole. After a wait, a thread may have to wait for a processor.
 */
static void divide_longer(struct work *w, uint32_t c, double longer, double each_longer)
{
	size_t n = w->found.n, top = n;
	double causes = 0, ready = 0;

	if (ky_component_of(w->x, c)->kind != KY_PART_SPAN || !w->first[c]) {
		add_finding(w, KY_FINDING_LONGER, c, longer);
		return;
	}
	divide_children(w, c, longer / each_longer);
	for (size_t i = n; i < w->found.n; i++) {
		const struct ky_finding *f = w->found.v[i];

		if (f->amount > w->found.v[top]->amount)
			top = i;
		if (ky_component_of(w->x, f->component)->kind == KY_PART_READY)
			ready += f->amount;
		else if (is_cause(w->x, f))
			causes += f->amount;
	}
	if (w->found.n > n &&
		(w->found.v[top]->amount >= WHOLE_PART * longer ||
			(causes > ready && causes >= WHOLE_PART * (longer - KY_MAX(ready, 0)))))
		return;
	while (w->found.n > n)
		free_finding(w->found.v[--w->found.n]);
	add_finding(w, KY_FINDING_LONGER, c, longer);
}

/* The time of waits in slow instances, below the component. */
static double sum_waits(const struct work *w, uint32_t c)
{
	double ns = 0;

	for (uint32_t k = w->first[c]; k; k = w->next[k]) {
		if (ky_component_of(w->x, k)->kind == KY_PART_SPAN)
			ns += sum_waits(w, k);
		else if (is_wait(w->x, k) && ky_component_of(w->x, k)->kind != KY_PART_READY)
			ns += w->means[0][k].ns;
	}
	return ns;
}

/* Adds waits and ways below the component, also those in calls inside. */
static void add_parts(struct work *w, enum ky_finding_kind kind, uint32_t c, double scale)
{
	for (uint32_t k = w->first[c]; k && !w->error; k = w->next[k]) {
		if (ky_component_of(w->x, k)->kind == KY_PART_SPAN && w->first[k])
			add_parts(w, kind, k, scale);
		else
			add_finding(w, kind, k, scale * w->means[0][k].ns);
	}
}

/*
 * Adds a component that came more often. The thread that makes a call wait says more than it. The
 * load of the machine, for which a call that waits is ready afterwards, does not.
 */
static void add_more(struct work *w, enum ky_finding_kind kind, uint32_t c, double amount)
{
	double all = w->means[0][c].ns, waits = is_call(w->x, c) ? sum_waits(w, c) : 0;

	if (amount <= 0 || waits <= 0 || waits < WHOLE_PART * all)
		add_finding(w, kind, c, amount);
	else
		add_parts(w, kind, c, amount / all);
}

/*
 * Divides the time that `calls` calls of parent take longer among its children: a child came more
 * often, or took longer, or both; that part goes to the greater change in proportion.
 */
static void divide_child(struct work *w, uint32_t parent, uint32_t c, double calls)
{
	const struct mean_part *s = &w->means[0][c], *t = &w->means[1][c];
	double parent_s = w->means[0][parent].count, parent_t = w->means[1][parent].count;
	double rate_s = parent_s > 0 ? s->count / parent_s : 0;
	double rate_t = parent_t > 0 ? t->count / parent_t : 0;
	double more = each(s) - each(t), count, longer, both;

	if (rate_t <= 0) {
		add_more(w, KY_FINDING_NEW, c, calls * rate_s * each(s));
		return;
	}
	count = calls * (rate_s - rate_t) * each(t);
	longer = s->count > 0 ? calls * rate_t * more : 0;
	both = s->count > 0 ? calls * (rate_s - rate_t) * more : 0;
	if (is_wait(w->x, c) && fabs(count + both) < fabs(longer) * 3) {
		longer += both + count;
		count = 0;
	} else if (fabs(rate_s / rate_t - 1) * each(t) > fabs(more)) {
		count += both;
	} else {
		longer += both;
	}
	if (fabs(count) > 1e-9)
		add_more(w, KY_FINDING_COUNT, c, count);
	if (longer != 0 && more != 0)
		divide_longer(w, c, longer, more);
}

static void divide_children(struct work *w, uint32_t parent, double calls)
{
	for (uint32_t c = w->first[parent]; c && !w->error; c = w->next[c])
		divide_child(w, parent, c, calls);
}

/* --- findings that belong together --- */

static bool is_lock_event(const struct ky_explain *x, uint32_t name)
{
	return has_name_prefix(x, name, "pthread:mutex") ||
	       has_name_prefix(x, name, "lttng_ust_pthread:");
}

/* An event that is neither the end of something nor one of the libraries'. */
static bool is_plain_event(const struct ky_explain *x, uint32_t name)
{
	const char *text = ky_texts_get(&x->names, name);

	return name && (strchr(text, ':') || is_page_fault(x, name) || is_handler_end(x, name)) &&
	       !ky_texts_end_in(text, "_begin", NULL) && !ky_texts_end_in(text, "_end", NULL) &&
	       !is_lock_event(x, name) && !is_alloc_event(x, name) &&
	       !has_name_prefix(x, name, "libc:") && !has_name_prefix(x, name, "cyg_profile:");
}

/* A way that is no loop: an optional call in it makes two other ways of it. */
static bool is_simple_way(const struct ky_explain *x, const struct ky_finding *f)
{
	const struct ky_component *c = ky_component_of(x, f->component);

	return c->kind == KY_PART_WAY && f->count[0] < 3 && f->count[1] < 3 && c->a != c->b &&
	       !is_lock_event(x, c->a) && !is_lock_event(x, c->b) && !is_alloc_event(x, c->a) &&
	       !is_alloc_event(x, c->b);
}

static bool is_changed_path(const struct work *w, uint32_t parent)
{
	for (size_t i = 0; i < w->found.n; i++) {
		const struct ky_finding *f = w->found.v[i];

		if (f->kind != KY_FINDING_LONGER && is_simple_way(w->x, f) &&
			ky_component_of(w->x, f->component)->parent == parent)
			return true;
	}
	return false;
}

/* Whether slow instances have more of these calls, in spans of this name. */
static bool has_more_calls(const struct work *w, uint32_t place, enum ky_finding_kind kind)
{
	is_event *is_counted = counted_by(kind);
	double n[2] = {0};

	for (uint32_t c = KY_ROOT + 1; c <= w->x->components.all.n; c++) {
		const struct ky_component *o = ky_component_of(w->x, c);

		if (o->kind != KY_PART_WAY || !is_counted(w->x, o->b) || span_of(w->x, c) != place)
			continue;
		n[0] += w->means[0][c].count;
		n[1] += w->means[1][c].count;
	}
	return n[0] > 1.05 * n[1];
}

/* How often the event comes in the path: slow, typical. */
static void count_event(const struct work *w, uint32_t parent, uint32_t event, double n[2])
{
	n[0] = n[1] = 0;
	for (uint32_t c = w->first[parent]; c; c = w->next[c]) {
		if (ky_component_of(w->x, c)->kind != KY_PART_WAY ||
			ky_component_of(w->x, c)->b != event)
			continue;
		n[0] += w->means[0][c].count;
		n[1] += w->means[1][c].count;
	}
}

/* The one of the way's two events that comes far more often than in typical instances; 0: none. */
static uint32_t find_frequent(const struct work *w, const struct ky_component *c)
{
	const uint32_t events[] = {c->b, c->a};
	double most = 0, more, n[2];
	uint32_t found = 0;

	for (size_t i = 0; i < 2 && c->kind == KY_PART_WAY; i++) {
		if (!is_plain_event(w->x, events[i]))
			continue;
		count_event(w, c->parent, events[i], n);
		/* A handler runs in whatever place it interrupts. */
		more = is_handler_end(w->x, events[i]) ? .1 : .5;
		if (n[0] > KY_MAX(3 * n[1], n[1] + more) && n[0] > most) {
			most = n[0];
			found = events[i];
		}
	}
	return found;
}

/* The mutex that slow instances wait for most at a place. */
static uint64_t find_mutex(const struct work *w, uint32_t c)
{
	KY_VEC(struct ky_wait) sums = {0};
	uint64_t mutex = 0;
	int64_t most = 0;

	for (size_t i = 0; i < w->d->n_slow; i++) {
		const struct ky_instance *s = w->d->slow[i];

		for (size_t k = 0; k < s->waits.n; k++) {
			const struct ky_wait *wait = &s->waits.v[k];
			size_t j = 0;

			while (j < sums.n && sums.v[j].mutex != wait->mutex)
				j++;
			if (wait->component != c || (j == sums.n && ky_vec_add(&sums, *wait) < 0))
				continue;
			sums.v[j].ns += wait->ns;
		}
	}
	for (size_t j = 0; j < sums.n; j++) {
		if (sums.v[j].ns > most) {
			most = sums.v[j].ns;
			mutex = sums.v[j].mutex;
		}
	}
	ky_vec_deinit(&sums);
	return mutex;
}

/*
 * The span whose next call ends this way, if the way begins at its end and comes more often because
 * the span does: pauses between calls belong to their number. Returns its component, or 0.
 */
static uint32_t find_repeated(const struct work *w, const struct ky_finding *f)
{
	const struct ky_component *way = ky_component_of(w->x, f->component);
	const char *a, *b;
	size_t n, m;

	if (way->kind != KY_PART_WAY || f->kind == KY_FINDING_LONGER)
		return 0;
	a = ky_texts_get(&w->x->names, way->a);
	b = ky_texts_get(&w->x->names, way->b);
	if (!ky_texts_end_in(a, "_end", &n) || !ky_texts_end_in(b, "_begin", &m) || n != m ||
		strncmp(a, b, n) != 0)
		return 0;
	for (size_t i = 0; i < w->found.n; i++) {
		const struct ky_finding *o = w->found.v[i];
		const struct ky_component *c = ky_component_of(w->x, o->component);
		const char *name = ky_texts_get(&w->x->names, c->a);

		if (o->kind == KY_FINDING_COUNT && c->kind == KY_PART_SPAN &&
			c->parent == way->parent && strlen(name) == n && !strncmp(name, a, n))
			return o->component;
	}
	return 0;
}

/* A way from or to such an event, which typical instances have less often. */
static bool is_other_way(const struct work *w, const struct ky_finding *f, is_event *is_of)
{
	const struct ky_component *c = ky_component_of(w->x, f->component);

	return c->kind == KY_PART_WAY && f->kind != KY_FINDING_LONGER &&
	       (is_of(w->x, c->a) || is_of(w->x, c->b));
}

/*
 * Of a way between calls that allocate or lock: more calls, or, if there are not more of them, the
 * same work, in which a call of the kernel makes other ways.
 */
static struct ky_finding_key key_of_calls(
	const struct work *w, struct ky_finding *f, enum ky_finding_kind kind, int group)
{
	uint32_t place = span_of(w->x, f->component);
	bool is_more = has_more_calls(w, place, kind);

	f->kind = is_more ? kind : KY_FINDING_LONGER;
	return (struct ky_finding_key){.group = is_more ? group : KY_KEY_SELF,
		.place = is_more ? place : ky_component_of(w->x, f->component)->parent};
}

static struct ky_finding_key key_of(const struct work *w, struct ky_finding *f)
{
	const struct ky_component *c = ky_component_of(w->x, f->component);
	uint32_t frequent = find_frequent(w, c), repeated;
	struct ky_finding_key key = {.kind = f->kind, .place = c->parent};

	if (frequent) {
		f->kind = KY_FINDING_EVENT;
		key = (struct ky_finding_key){KY_KEY_EVENT, 0, c->parent, frequent};
	} else if ((repeated = find_repeated(w, f))) {
		key = (struct ky_finding_key){.kind = KY_FINDING_COUNT,
			.place = ky_component_of(w->x, repeated)->a,
			.what = KY_PART_SPAN};
		f->kind = KY_FINDING_COUNT;
	} else if (is_simple_way(w->x, f) && is_changed_path(w, c->parent)) {
		f->kind = KY_FINDING_LONGER;
		key = (struct ky_finding_key){KY_KEY_SELF, 0, c->parent, 0};
	} else if (c->kind == KY_PART_READY) {
		key = (struct ky_finding_key){.group = KY_KEY_READY};
	} else if (c->kind == KY_PART_LOCK) {
		key = (struct ky_finding_key){
			.group = KY_KEY_LOCK, .what = find_mutex(w, f->component)};
		key.place = key.what ? 0 : f->component;
	} else if (is_other_way(w, f, is_alloc_event)) {
		key = key_of_calls(w, f, KY_FINDING_ALLOC, KY_KEY_ALLOC);
	} else if (is_other_way(w, f, is_lock_event)) {
		key = key_of_calls(w, f, KY_FINDING_LOCKS, KY_KEY_LOCKS);
	} else if (c->kind == KY_PART_WAY) {
		/* The same way in the same span, wherever that was called from. */
		key.place = span_of(w->x, f->component);
		key.what = (uint64_t)c->a << 32 | c->b;
	} else {
		key.place = c->kind == KY_PART_SPAN ? c->a : f->component;
		key.what = c->kind;
	}
	return key;
}

bool ky_finding_has_key(const struct ky_finding *f, const struct ky_finding_key *key)
{
	return f->key.group == key->group && f->key.kind == key->kind &&
	       f->key.place == key->place && f->key.what == key->what;
}

static void merge_into(struct work *w, struct ky_finding *to, struct ky_finding *f)
{
	bool is_span = ky_component_of(w->x, f->component)->kind == KY_PART_SPAN;
	bool was_span = ky_component_of(w->x, to->component)->kind == KY_PART_SPAN;
	size_t i = 0;

	/* Of a span and the pauses between its calls, the span is named. */
	if (is_span == was_span ? f->amount > to->top : is_span) {
		to->component = f->component;
		to->top = f->amount;
		memcpy(to->count, f->count, sizeof(to->count));
		memcpy(to->mean_ns, f->mean_ns, sizeof(to->mean_ns));
	}
	to->amount += f->amount;
	while (i < to->components.n && to->components.v[i] != f->components.v[0])
		i++;
	if (i == to->components.n && ky_vec_add(&to->components, f->components.v[0]) < 0)
		w->error = -ENOMEM;
}

static int compare_findings(const void *a, const void *b)
{
	const struct ky_finding *x = *(struct ky_finding *const *)a;
	const struct ky_finding *y = *(struct ky_finding *const *)b;

	if (x->amount != y->amount)
		return x->amount > y->amount ? -1 : 1;
	return (x->component > y->component) - (x->component < y->component);
}

/* Keys depend on all findings, so they are made before any is merged. */
static void merge_all(struct work *w)
{
	struct ky_difference *d = w->d;
	struct ky_finding_key *keys = calloc(w->found.n + 1, sizeof(*keys));
	enum ky_finding_kind *kinds = calloc(w->found.n + 1, sizeof(*kinds));

	if (!keys || !kinds)
		w->error = -ENOMEM;
	for (size_t i = 0; i < w->found.n && !w->error; i++) {
		struct ky_finding copy = *w->found.v[i];

		keys[i] = key_of(w, &copy);
		kinds[i] = copy.kind;
	}
	for (size_t i = 0; i < w->found.n && !w->error; i++) {
		struct ky_finding *f = w->found.v[i];
		size_t k = 0;

		while (k < d->findings.n && !ky_finding_has_key(d->findings.v[k], &keys[i]))
			k++;
		if (k < d->findings.n) {
			merge_into(w, d->findings.v[k], f);
			continue;
		}
		f->key = keys[i];
		f->kind = kinds[i];
		if (ky_vec_add(&d->findings, f) < 0)
			w->error = -ENOMEM;
		else
			w->found.v[i] = NULL;
	}
	free(keys);
	free(kinds);
	if (d->findings.n)
		qsort(d->findings.v, d->findings.n, sizeof(struct ky_finding *), compare_findings);
}

/* --- both --- */

static double mean_ns(struct ky_instance *const *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i]->ns;
	return n ? sum / (double)n : 0;
}

static int set_groups(struct ky_difference *d, const struct ky_group *group)
{
	d->slow = calloc(group->n_slow + 1, sizeof(*d->slow));
	if (!d->slow)
		return -ENOMEM;
	memcpy(d->slow, group->slow, group->n_slow * sizeof(*d->slow));
	d->n_slow = group->n_slow;
	qsort(d->slow, d->n_slow, sizeof(*d->slow), ky_instance_by_length);
	if (d->n_slow >= 20)
		d->n_slow -= d->n_slow / 20;
	d->slow_ns = mean_ns(d->slow, d->n_slow);
	d->typical_ns = mean_ns(group->typical, group->n_typical);
	d->extra_ns = d->slow_ns - d->typical_ns;
	return 0;
}

static int find_parts(struct work *w)
{
	struct ky_difference *d = w->d;
	size_t n = w->x->components.all.n + 1;

	for (size_t i = 0; i < 2; i++) {
		w->means[i] = calloc(n, sizeof(*w->means[i]));
		if (!w->means[i])
			return -ENOMEM;
	}
	add_means(w->means[0], d->slow, d->n_slow);
	add_means(w->means[1], d->group->typical, d->group->n_typical);
	if (add_children(w) < 0)
		return -ENOMEM;
	divide_children(w, KY_ROOT, 1);
	if (!w->error)
		merge_all(w);
	return w->error;
}

int ky_difference_find(struct ky_difference *d, struct ky_explain *x, const struct ky_group *group,
	struct ky_instance *const *all, size_t n_all)
{
	struct work w = {.d = d, .x = x};
	int r;

	*d = (struct ky_difference){.x = x, .group = group, .all = all, .n_all = n_all};
	r = set_groups(d, group);
	if (!r)
		r = find_parts(&w);
	for (size_t i = 0; i < w.found.n; i++)
		free_finding(w.found.v[i]);
	ky_vec_deinit(&w.found);
	free(w.means[0]);
	free(w.means[1]);
	free(w.first);
	free(w.next);
	return r;
}

void ky_difference_deinit(struct ky_difference *d)
{
	for (size_t i = 0; i < d->findings.n; i++)
		free_finding(d->findings.v[i]);
	ky_vec_deinit(&d->findings);
	free(d->slow);
	d->slow = NULL;
}
