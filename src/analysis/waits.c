/* SPDX-License-Identifier: MIT */
#include "analysis/waits.h"

#define OWNER_DEAD 130 /* EOWNERDEAD: the lock is held all the same */

enum step {
	STEP_NONE,
	STEP_REQUEST, /* before a call that may wait */
	STEP_ACQUIRE, /* after it */
	STEP_TRY,
	STEP_RELEASE,
};

struct ky_wait_class {
	enum step step;
	enum ky_wait_kind kind;
	bool is_shared; /* a reader's */
	struct ky_field_ref object, mutex, status, site, process, thread;
};

struct hold {
	uint64_t thread;
	int64_t from_ns;
	uint32_t site, depth; /* depth: the thread has it so many times more */
	bool is_shared;
};

struct thread;

struct lock {
	struct ky_hnode node;
	uint64_t process, address;
	enum ky_wait_kind kind;
	uint32_t text;
	bool is_signal;	 /* a semaphore that others post than those who wait: nobody holds it */
	uint64_t n_gaps; /* in the trace before it was used last: then all below is not known */
	KY_VEC(struct hold) holds;
	KY_VEC(struct thread *) waiters;
};

struct thread {
	struct ky_hnode node;
	uint64_t process, number;
	uint64_t n_gaps;    /* as that of a lock */
	struct lock *waits; /* NULL: it does not wait */
	int64_t charged_ns; /* the wait is charged to holders up to here */
	uint32_t site;
	bool is_shared;
	struct lock *given; /* the mutex that it gave back while it waits for a condition */
	struct hold given_hold;
};

/* --- rows --- */

static uint32_t hash_row(const struct ky_wait_row *row)
{
	const uint32_t key[] = {
		row->is_hold, (uint32_t)row->kind, row->lock, row->waits_at, row->held_at};

	return ky_hash(key, sizeof(key));
}

static struct ky_wait_row *find_row(struct ky_waits *w, const struct ky_wait_row *like)
{
	uint32_t hash = hash_row(like);
	struct ky_wait_row *row;

	for (struct ky_hnode *n = ky_htab_first(&w->rows, hash); n; n = ky_htab_next(n)) {
		row = ky_container_of(n, struct ky_wait_row, node);
		if (row->is_hold == like->is_hold && row->kind == like->kind &&
			row->lock == like->lock && row->waits_at == like->waits_at &&
			row->held_at == like->held_at)
			return row;
	}
	row = calloc(1, sizeof(*row));
	if (!row || ky_htab_add(&w->rows, &row->node, hash) < 0) {
		free(row);
		return NULL;
	}
	row->is_hold = like->is_hold;
	row->kind = like->kind;
	row->lock = like->lock;
	row->waits_at = like->waits_at;
	row->held_at = like->held_at;
	return row;
}

/* like: the key, and of one wait or hold total_ns, end_ns, thread, holder, n_open. */
static int count_row(struct ky_waits *w, const struct ky_wait_row *like)
{
	struct ky_wait_row *row;

	if (w->rows.n >= KY_WAITS_MAX) {
		w->n_others++;
		return 0;
	}
	row = find_row(w, like);
	if (!row)
		return -ENOMEM;
	row->n++;
	row->n_open += like->n_open;
	row->total_ns += like->total_ns;
	if (like->total_ns >= row->max_ns) {
		row->max_ns = like->total_ns;
		row->end_ns = like->end_ns;
		row->thread = like->thread;
		row->holder = like->holder;
	}
	return 0;
}

/* --- threads and locks --- */

/*
 * Forgets what a thread did before events were missing: who holds what is not known any more. All
 * threads and locks would be too many to do so at each gap.
 */
static struct thread *refresh_thread(const struct ky_waits *w, struct thread *t)
{
	if (t->n_gaps != w->n_gaps)
		t->waits = t->given = NULL;
	t->n_gaps = w->n_gaps;
	return t;
}

static struct lock *refresh_lock(const struct ky_waits *w, struct lock *l)
{
	if (l->n_gaps != w->n_gaps)
		l->holds.n = l->waiters.n = 0;
	l->n_gaps = w->n_gaps;
	return l;
}

static struct thread *find_thread(struct ky_waits *w, uint64_t process, uint64_t number)
{
	const uint64_t key[] = {process, number};
	uint32_t hash = ky_hash(key, sizeof(key));
	struct thread *t;

	for (struct ky_hnode *n = ky_htab_first(&w->threads, hash); n; n = ky_htab_next(n)) {
		t = ky_container_of(n, struct thread, node);
		if (t->process == process && t->number == number)
			return refresh_thread(w, t);
	}
	t = calloc(1, sizeof(*t));
	if (!t || ky_htab_add(&w->threads, &t->node, hash) < 0) {
		free(t);
		return NULL;
	}
	t->process = process;
	t->number = number;
	return refresh_thread(w, t);
}

static struct lock *find_lock(
	struct ky_waits *w, uint64_t process, uint64_t address, enum ky_wait_kind kind)
{
	const uint64_t key[] = {process, address, (uint64_t)kind};
	uint32_t hash = ky_hash(key, sizeof(key));
	struct lock *l;

	for (struct ky_hnode *n = ky_htab_first(&w->locks, hash); n; n = ky_htab_next(n)) {
		l = ky_container_of(n, struct lock, node);
		if (l->process == process && l->address == address && l->kind == kind)
			return refresh_lock(w, l);
	}
	l = calloc(1, sizeof(*l));
	if (!l || ky_htab_add(&w->locks, &l->node, hash) < 0) {
		free(l);
		return NULL;
	}
	l->process = process;
	l->address = address;
	l->kind = kind;
	return refresh_lock(w, l);
}

static struct hold *find_hold(struct lock *l, uint64_t thread)
{
	for (size_t i = 0; i < l->holds.n; i++) {
		if (l->holds.v[i].thread == thread)
			return &l->holds.v[i];
	}
	return NULL;
}

static bool is_held(const struct lock *l)
{
	return l->kind == KY_WAIT_MUTEX || l->kind == KY_WAIT_RWLOCK ||
	       (l->kind == KY_WAIT_SEM && !l->is_signal);
}

/* --- waits --- */

/* Charges the wait of t to a holder, from the last charge on. by: thread 0: nobody is known. */
static int charge_wait(
	struct ky_waits *w, struct thread *t, const struct hold *by, int64_t ns, bool is_open)
{
	const struct ky_wait_row row = {.kind = t->waits->kind,
		.lock = t->waits->text,
		.waits_at = t->site,
		.held_at = by->site,
		.total_ns = (uint64_t)KY_MAX(ns - t->charged_ns, 0),
		.n_open = is_open,
		.end_ns = ns,
		.thread = t->number,
		.holder = by->thread};

	t->charged_ns = ns;
	return count_row(w, &row);
}

/* Readers wait for no readers. */
static bool is_obstacle(const struct hold *hold, const struct thread *t)
{
	return hold->thread != t->number && !(hold->is_shared && t->is_shared);
}

static void count_unknown(struct ky_waits *w, uint64_t ns)
{
	if (ns < KY_WAITS_LONG_NS)
		return;
	w->n_unknown++;
	w->unknown_total_ns += ns;
	w->unknown_max_ns = KY_MAX(w->unknown_max_ns, ns);
}

static void stop_waiting(struct thread *t)
{
	struct lock *l = t->waits;

	for (size_t i = 0; l && i < l->waiters.n; i++) {
		if (l->waiters.v[i] == t) {
			l->waiters.v[i] = l->waiters.v[--l->waiters.n];
			break;
		}
	}
	t->waits = NULL;
}

/* The end of a wait. The owner of the lock has kept it since the last charge. */
static int end_wait(struct ky_waits *w, struct thread *t, int64_t ns, bool is_open)
{
	struct lock *l = t->waits;
	struct hold by = {0};
	int r = 0;

	if (!l)
		return 0;
	for (size_t i = 0; i < l->holds.n && !by.thread; i++) {
		if (is_obstacle(&l->holds.v[i], t))
			by = l->holds.v[i];
	}
	if (by.thread || is_open || !is_held(l))
		r = charge_wait(w, t, &by, ns, is_open);
	else
		count_unknown(w, (uint64_t)KY_MAX(ns - t->charged_ns, 0));
	stop_waiting(t);
	return r;
}

static int begin_wait(
	struct ky_waits *w, struct thread *t, struct lock *l, int64_t ns, uint32_t site)
{
	int r = end_wait(w, t, ns, false); /* its end is not in the trace */

	t->waits = l;
	t->charged_ns = ns;
	t->site = site;
	return r ? r : ky_vec_add(&l->waiters, t);
}

/* --- holds --- */

static int begin_hold(struct lock *l, const struct hold *hold)
{
	struct hold *own = find_hold(l, hold->thread);

	if (own) {
		own->depth++;
		return 0;
	}
	return ky_vec_add(&l->holds, *hold);
}

static int end_hold(struct ky_waits *w, struct lock *l, struct hold *hold, int64_t ns, bool is_open)
{
	const struct ky_wait_row row = {.is_hold = true,
		.kind = l->kind,
		.lock = l->text,
		.held_at = hold->site,
		.total_ns = (uint64_t)KY_MAX(ns - hold->from_ns, 0),
		.n_open = is_open,
		.end_ns = ns,
		.thread = hold->thread,
		.holder = hold->thread};
	struct hold by = *hold;
	int r = count_row(w, &row);

	for (size_t i = 0; i < l->waiters.n && !r && !is_open; i++) {
		if (is_obstacle(&by, l->waiters.v[i]))
			r = charge_wait(w, l->waiters.v[i], &by, ns, false);
	}
	*hold = l->holds.v[--l->holds.n];
	return r;
}

static int release_lock(struct ky_waits *w, struct lock *l, uint64_t thread, int64_t ns)
{
	struct hold *hold = find_hold(l, thread);

	if (!hold) {
		l->is_signal = l->kind == KY_WAIT_SEM;
		if (l->is_signal)
			l->holds.n = 0;
		return 0;
	}
	if (hold->depth) {
		hold->depth--;
		return 0;
	}
	return end_hold(w, l, hold, ns, false);
}

/* --- events --- */

/* The thread, lock and site of an event. */
struct subject {
	const struct ky_item *item;
	struct ky_wait_class *class;
	uint64_t pid, process;
	struct thread *thread;
	struct lock *lock;
	uint32_t site;
};

static int identify_subject(struct ky_waits *w, struct subject *s, const struct ky_sites *sites)
{
	struct ky_wait_class *c = s->class;
	uint64_t address = ky_site_number(&c->object, s->item, 0);
	uint64_t tid = ky_site_number(&c->thread, s->item, (uint64_t)(uintptr_t)s->item->stream);

	s->pid = ky_site_number(&c->process, s->item, 0);
	s->process = ky_site_process(s->item, s->pid);
	s->thread = find_thread(w, s->process, tid);
	s->lock = find_lock(w, s->process, address, c->kind);
	if (!s->thread || !s->lock)
		return -ENOMEM;
	if (!s->lock->text)
		s->lock->text = sites->find(sites->arg, s->item, s->pid, address, false);
	s->site = sites->find(
		sites->arg, s->item, s->pid, ky_site_number(&c->site, s->item, 0), true);
	return 0;
}

/* pthread_cond_wait() gives the mutex back, and has it again at its end. */
static int give_back(struct ky_waits *w, const struct subject *s)
{
	uint64_t address = ky_site_number(&s->class->mutex, s->item, 0);
	struct lock *l = address ? find_lock(w, s->process, address, KY_WAIT_MUTEX) : NULL;
	struct hold *hold = l ? find_hold(l, s->thread->number) : NULL;

	if (!hold)
		return 0;
	s->thread->given = l;
	s->thread->given_hold = *hold;
	hold->depth = 0;
	return end_hold(w, l, hold, s->item->ns, false);
}

static int take_again(const struct subject *s)
{
	struct hold hold = s->thread->given_hold;
	struct lock *l = s->thread->given;

	s->thread->given = NULL;
	hold.from_ns = s->item->ns;
	return l ? begin_hold(l, &hold) : 0;
}

static int begin_lock_request(struct ky_waits *w, const struct subject *s)
{
	int r = s->class->kind == KY_WAIT_COND ? give_back(w, s) : 0;

	if (!r)
		r = begin_wait(w, s->thread, s->lock, s->item->ns, s->site);
	s->thread->is_shared = s->class->is_shared;
	return r;
}

static int acquire(struct ky_waits *w, const struct subject *s, uint64_t status)
{
	const struct hold hold = {.thread = s->thread->number,
		.from_ns = s->item->ns,
		.site = s->site,
		.is_shared = s->class->is_shared};
	int r = s->thread->waits == s->lock ? end_wait(w, s->thread, s->item->ns, false) : 0;

	if (!r && s->class->kind == KY_WAIT_COND)
		r = take_again(s);
	if (r || !is_held(s->lock) || (status && status != OWNER_DEAD))
		return r;
	return begin_hold(s->lock, &hold);
}

static int add_event(struct ky_waits *w, const struct ky_item *item, const struct ky_sites *sites)
{
	struct subject s = {.item = item, .class = &w->classes[item->event->index]};
	uint64_t status = ky_site_number(&s.class->status, item, 0);
	int r = identify_subject(w, &s, sites);

	w->end_ns = item->ns;
	if (r)
		return r;
	if (s.class->step == STEP_REQUEST)
		return begin_lock_request(w, &s);
	if (s.class->step != STEP_RELEASE)
		return acquire(w, &s, status);
	return status ? 0 : release_lock(w, s.lock, s.thread->number, item->ns);
}

/* --- classes --- */

static const struct {
	const char *function;
	enum step step;
	enum ky_wait_kind kind;
	const char *object;
} functions[] = {
	{"mutex_lock_req", STEP_REQUEST, KY_WAIT_MUTEX, "mutex"},
	{"mutex_lock_acq", STEP_ACQUIRE, KY_WAIT_MUTEX, "mutex"},
	{"mutex_trylock", STEP_TRY, KY_WAIT_MUTEX, "mutex"},
	{"mutex_unlock", STEP_RELEASE, KY_WAIT_MUTEX, "mutex"},
	{"rwlock_rdlock_begin", STEP_REQUEST, KY_WAIT_RWLOCK, "rwlock"},
	{"rwlock_rdlock_end", STEP_ACQUIRE, KY_WAIT_RWLOCK, "rwlock"},
	{"rwlock_wrlock_begin", STEP_REQUEST, KY_WAIT_RWLOCK, "rwlock"},
	{"rwlock_wrlock_end", STEP_ACQUIRE, KY_WAIT_RWLOCK, "rwlock"},
	{"rwlock_tryrdlock", STEP_TRY, KY_WAIT_RWLOCK, "rwlock"},
	{"rwlock_trywrlock", STEP_TRY, KY_WAIT_RWLOCK, "rwlock"},
	{"rwlock_unlock", STEP_RELEASE, KY_WAIT_RWLOCK, "rwlock"},
	{"cond_wait_begin", STEP_REQUEST, KY_WAIT_COND, "cond"},
	{"cond_wait_end", STEP_ACQUIRE, KY_WAIT_COND, "cond"},
	{"sem_wait_begin", STEP_REQUEST, KY_WAIT_SEM, "sem"},
	{"sem_wait_end", STEP_ACQUIRE, KY_WAIT_SEM, "sem"},
	{"sem_trywait", STEP_TRY, KY_WAIT_SEM, "sem"},
	{"sem_post", STEP_RELEASE, KY_WAIT_SEM, "sem"},
	{"barrier_wait_begin", STEP_REQUEST, KY_WAIT_BARRIER, "barrier"},
	{"barrier_wait_end", STEP_ACQUIRE, KY_WAIT_BARRIER, "barrier"},
	{"futex_wait_begin", STEP_REQUEST, KY_WAIT_FUTEX, "futex"},
	{"futex_wait_end", STEP_ACQUIRE, KY_WAIT_FUTEX, "futex"},
};

/* False if it is no function of locks. */
static bool bind_class(
	struct ky_wait_class *c, const struct ky_event_class *e, const char *function)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(functions); i++) {
		if (strcmp(functions[i].function, function) != 0)
			continue;
		c->step = functions[i].step;
		c->kind = functions[i].kind;
		c->is_shared = strstr(function, "rdlock") != NULL;
		ky_field_find(&c->object, e, functions[i].object);
	}
	if (c->step == STEP_NONE || !c->object.node)
		return false;
	ky_field_find(&c->mutex, e, "mutex");
	ky_field_find(&c->status, e, "status");
	if (!ky_field_find(&c->site, e, "caller"))
		ky_field_find(&c->site, e, "ip");
	ky_keys_find(&c->process, e, "process");
	ky_keys_find(&c->thread, e, "thread");
	return true;
}

static int bind_wait_classes(struct ky_waits *w, uint8_t *want, const struct ky_query *q)
{
	const struct ky_trace_reader *r = q->reader;

	w->classes = calloc(r->n_classes + 1, sizeof(*w->classes));
	if (!w->classes || !want)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_classes; i++) {
		const char *function = ky_site_function(r->classes[i], "pthread");

		if (!function || !ky_query_has(q, i) ||
			!bind_class(&w->classes[i], r->classes[i], function))
			continue;
		want[i] = KY_WANT_EVENT | KY_WANT_VALUES;
		w->n_classes++;
	}
	return 0;
}

/* --- all of it --- */

static int read_all(struct ky_waits *w, struct ky_cursor *cursor, const struct ky_sites *sites)
{
	struct ky_values values = {0};
	struct ky_item item;
	int r;

	while ((r = ky_cursor_next(cursor, &item, &values)) > 0) {
		if (item.kind == KY_ITEM_EVENT)
			r = add_event(w, &item, sites);
		else
			w->n_gaps++;
		values.n = 0;
		if (r < 0)
			break;
	}
	free(values.v);
	return r;
}

/* Waits and holds that do not end in the trace. */
static int close_all(struct ky_waits *w)
{
	struct ky_hnode *n, *tmp;
	size_t i;
	int r = 0;

	ky_htab_foreach(&w->threads, i, n, tmp)
	{
		struct thread *t = ky_container_of(n, struct thread, node);

		if (!r)
			r = end_wait(w, refresh_thread(w, t), w->end_ns, true);
	}
	ky_htab_foreach(&w->locks, i, n, tmp)
	{
		struct lock *l = refresh_lock(w, ky_container_of(n, struct lock, node));

		while (!r && l->holds.n)
			r = end_hold(w, l, &l->holds.v[l->holds.n - 1], w->end_ns, true);
	}
	return r;
}

static int by_total(const void *a, const void *b)
{
	const struct ky_wait_row *x = *(struct ky_wait_row *const *)a;
	const struct ky_wait_row *y = *(struct ky_wait_row *const *)b;

	if (x->is_hold != y->is_hold)
		return x->is_hold ? -1 : 1;
	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	if (x->lock != y->lock)
		return x->lock < y->lock ? -1 : 1;
	if (x->held_at != y->held_at)
		return x->held_at < y->held_at ? -1 : 1;
	if (x->waits_at != y->waits_at)
		return x->waits_at < y->waits_at ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

static int sort_rows(struct ky_waits *w)
{
	struct ky_hnode *n, *tmp;
	size_t i, k = 0;

	w->by_total = calloc(w->rows.n + 1, sizeof(struct ky_wait_row *));
	if (!w->by_total)
		return -ENOMEM;
	ky_htab_foreach(&w->rows, i, n, tmp)
	{
		w->by_total[k] = ky_container_of(n, struct ky_wait_row, node);
		w->n_holds += w->by_total[k++]->is_hold;
	}
	w->n_waits = k - w->n_holds;
	qsort(w->by_total, k, sizeof(struct ky_wait_row *), by_total);
	return 0;
}

int ky_waits_collect(struct ky_waits *w, const struct ky_query *q, const struct ky_sites *sites,
	const struct ky_trace_reader_options *options)
{
	struct ky_reading reading = {0};
	uint8_t *want = calloc(q->reader->n_classes + 1, 1);
	int r;

	*w = (struct ky_waits){0};
	r = bind_wait_classes(w, want, q);
	if (!r)
		r = ky_reading_init(&reading, q, want, NULL, options);
	if (!r)
		r = read_all(w, reading.cursor, sites);
	if (!r)
		r = close_all(w);
	ky_reading_deinit(&reading);
	free(want);
	return r ? r : sort_rows(w);
}

void ky_waits_deinit(struct ky_waits *w)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_free_all(&w->rows, struct ky_wait_row, node);
	ky_htab_free_all(&w->threads, struct thread, node);
	ky_htab_foreach(&w->locks, i, n, tmp)
	{
		struct lock *l = ky_container_of(n, struct lock, node);

		ky_vec_deinit(&l->holds);
		ky_vec_deinit(&l->waiters);
		free(l);
	}
	ky_htab_deinit(&w->locks);
	free(w->by_total);
	free(w->classes);
	*w = (struct ky_waits){0};
}
