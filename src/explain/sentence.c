/* SPDX-License-Identifier: MIT */
#include "explain/sentence.h"

#include <inttypes.h>
#include <math.h>

#include "explain/culprits.h"
#include "explain/words.h"

#define LONG_HOLD_NS  50000   /* longer than calls for mutexes take */
#define LONG_PAUSE_NS 1000000 /* longer than allocations take that copy */

static const char *name_of(const struct ky_explain *x, uint32_t name)
{
	return ky_texts_get(&x->names, name);
}

/* --- pieces of sentences --- */

static void put_number(struct ky_buf *b, double n)
{
	if (n < 9.5)
		ky_buf_printf(b, "%.2g", n);
	else
		ky_words_put_number(b, (uint64_t)llround(n));
}

static void put_times(struct ky_buf *b, double n)
{
	if (fabs(n - 1) < .05) {
		ky_buf_puts(b, "once");
		return;
	}
	put_number(b, n);
	ky_buf_puts(b, " times");
}

static void put_times_or_never(struct ky_buf *b, double n)
{
	if (n >= .05)
		put_times(b, n);
	else
		ky_buf_puts(b, n > 0 ? "almost never" : "never");
}

static bool is_text(const struct ky_explain *x, uint32_t name, const char *text)
{
	return !strcmp(name_of(x, name), text);
}

/* The name of a call of the kernel, of an event at its begin or its end; NULL: it is none. */
static const char *call_of(const struct ky_explain *x, uint32_t name, bool is_end)
{
	const char *text = name_of(x, name), *edge = is_end ? "syscall_exit_" : "syscall_entry_";
	size_t n = strlen(edge);

	return strncmp(text, edge, n) ? NULL : text + n;
}

/* Ways go from the end of a call to the begin of another. */
static void put_event(struct ky_buf *b, const struct ky_explain *x, uint32_t name, bool is_first)
{
	const char *call = call_of(x, name, is_first);

	if (call)
		ky_buf_printf(b, "%s()", call);
	else
		ky_buf_puts(b, is_text(x, name, "libc:alloc") ? "allocations" : name_of(x, name));
}

/* From the end of a call of the kernel to the begin of the next one of that name. */
static bool is_between_calls(const struct ky_explain *x, const struct ky_component *way)
{
	const char *a = call_of(x, way->a, true), *b = call_of(x, way->b, false);

	return a && b && !strcmp(a, b);
}

/* "between a:b_end and c:d_begin", "between two allocations". */
static void put_ends(struct ky_buf *b, const struct ky_explain *x, const struct ky_component *way)
{
	if (is_between_calls(x, way)) {
		ky_buf_puts(b, "between two calls of ");
		put_event(b, x, way->a, true);
		return;
	}
	ky_buf_puts(b, way->a == way->b ? "between two " : "between ");
	put_event(b, x, way->a, true);
	if (way->a == way->b) {
		if (!is_text(x, way->a, "libc:alloc"))
			ky_buf_puts(b, " events");
		return;
	}
	ky_buf_puts(b, " and ");
	put_event(b, x, way->b, false);
}

static bool is_in_same(const struct ky_explain *x, const struct ky_component *o)
{
	const struct ky_component *parent = o->parent ? ky_component_of(x, o->parent) : NULL;

	return parent && o->kind == KY_PART_SPAN && parent->kind == KY_PART_SPAN &&
	       o->a == parent->a;
}

void ky_sentence_path(struct ky_buf *b, const struct ky_explain *x, uint32_t c, unsigned skip)
{
	const struct ky_component *o = ky_component_of(x, c);
	unsigned n = 1; /* of that name, each in the one before */
	size_t before;

	while (o->depth > skip && is_in_same(x, o)) {
		o = ky_component_of(x, o->parent);
		n++;
	}
	if (o->parent)
		ky_sentence_path(b, x, o->parent, skip);
	if (o->kind != KY_PART_SPAN || o->depth < skip)
		return;
	before = b->len;
	ky_buf_printf(b, "%s%s", before && b->data[before - 1] != ' ' ? ";" : "", name_of(x, o->a));
	if (n > 2)
		ky_buf_printf(b, " (%u nested)", n);
	else if (n > 1)
		ky_buf_printf(b, ";%s", name_of(x, o->a));
}

/* The path of a component, as a text of its own. Long recursions are cut. */
static void put_path(struct ky_buf *b, const struct ky_explain *x, uint32_t c, unsigned skip)
{
	struct ky_buf path = {0};

	ky_sentence_path(&path, x, c, skip);
	/* The instance itself is always there. */
	if (!path.len)
		ky_sentence_path(&path, x, c, 0);
	if (path.len > 200) {
		ky_buf_append(b, path.data, 120);
		ky_buf_puts(b, "...");
		ky_buf_puts(b, path.data + path.len - 60);
	} else if (path.data) {
		ky_buf_puts(b, path.data);
	}
	ky_buf_deinit(&path);
}

/* Findings at several places have only the innermost span in common. */
static void put_place(struct ky_buf *b, const struct ky_explain *x, const struct ky_finding *f,
	uint32_t c, unsigned skip)
{
	const struct ky_component *o = ky_component_of(x, c);

	for (size_t i = 1; i < f->components.n; i++) {
		uint32_t parent = ky_component_of(x, f->components.v[i])->parent;

		if (parent == ky_component_of(x, f->components.v[0])->parent)
			continue;
		while (o->kind != KY_PART_SPAN)
			o = ky_component_of(x, o->parent);
		ky_buf_printf(b, "%s (at several places)", name_of(x, o->a));
		return;
	}
	put_path(b, x, c, skip);
}

static char *take_text(struct ky_buf *b)
{
	char *text = b->error || !b->data ? NULL : strdup(b->data);

	ky_buf_deinit(b);
	return text;
}

static int add_evidence(struct ky_finding *f, struct ky_buf *b)
{
	char *text = take_text(b);

	if (!text || ky_vec_add(&f->evidence, text) < 0) {
		free(text);
		return -ENOMEM;
	}
	return 0;
}

/* Means over the affected instances. */
static double affected_ns(const struct ky_finding *f)
{
	double sum = 0;

	for (size_t i = 0; i < f->affected.n; i++)
		sum += ky_finding_ns(f, f->affected.v[i]);
	return f->affected.n ? sum / (double)f->affected.n : 0;
}

/* The mean time of a call of the finding's spans, without the pauses between them. */
static double affected_each(const struct ky_explain *x, const struct ky_finding *f)
{
	double ns = 0, count = 0;

	for (size_t i = 0; i < f->affected.n; i++) {
		for (size_t k = 0; k < f->components.n; k++) {
			uint32_t c = f->components.v[k];
			const struct ky_part *p = ky_instance_part(f->affected.v[i], c);

			if (!p || ky_component_of(x, c)->kind != KY_PART_SPAN)
				continue;
			ns += (double)p->ns;
			count += p->count;
		}
	}
	return count > 0 ? ns / count : f->mean_ns[0];
}

static double affected_count(const struct ky_explain *x, const struct ky_finding *f)
{
	double sum = 0;

	for (size_t i = 0; i < f->affected.n; i++)
		sum += ky_finding_count(x, f, f->affected.v[i]);
	return f->affected.n ? sum / (double)f->affected.n : 0;
}

static int add_times_evidence(struct ky_finding *f)
{
	struct ky_buf b = {0};

	ky_words_put_duration(&b, affected_ns(f));
	ky_buf_puts(&b, " instead of ");
	ky_words_put_duration(&b, f->typical_ns);
	ky_buf_puts(&b, " for each");
	return add_evidence(f, &b);
}

/* --- who --- */

#define MAX_NAMES 3

struct who {
	bool is_several;
	const struct ky_culprit *two; /* two in different spans have most of the time; or NULL */
	uint32_t thread, span;
	size_t n;		   /* threads */
	uint32_t names[MAX_NAMES]; /* of most of them; then 0 */
	uint64_t caller;
};

static int64_t sum_of(const struct ky_culprits *c, size_t i, bool by_span)
{
	int64_t ns = 0;

	for (size_t k = 0; k < c->v.n; k++) {
		if (by_span ? c->v.v[k].span == c->v.v[i].span
			    : c->v.v[k].thread == c->v.v[i].thread)
			ns += c->v.v[k].ns;
	}
	return ns;
}

static int64_t sum_of_name(const struct ky_explain *x, const struct ky_culprits *c, uint32_t name)
{
	int64_t ns = 0;

	for (size_t k = 0; k < c->v.n; k++) {
		if (x->threads.v[c->v.v[k].thread]->name == name)
			ns += c->v.v[k].ns;
	}
	return ns;
}

static size_t count_threads(const struct ky_explain *x, const struct ky_culprits *c, uint32_t name)
{
	size_t n = 0;

	for (size_t i = 0; i < c->v.n; i++) {
		bool is_first = !name || x->threads.v[c->v.v[i].thread]->name == name;

		for (size_t k = 0; k < i && is_first; k++)
			is_first = c->v.v[k].thread != c->v.v[i].thread;
		n += is_first;
	}
	return n;
}

/* The names with the most time, until they have most of it together. Returns how many threads. */
static size_t find_names(
	const struct ky_explain *x, const struct ky_culprits *c, uint32_t names[MAX_NAMES])
{
	int64_t sum = 0;
	size_t n = 0;

	memset(names, 0, MAX_NAMES * sizeof(*names));
	for (size_t k = 0; k < MAX_NAMES && (double)sum < KY_CULPRIT_MOST * (double)c->ns; k++) {
		int64_t most = 0;

		for (size_t i = 0; i < c->v.n; i++) {
			uint32_t name = x->threads.v[c->v.v[i].thread]->name;
			int64_t ns = sum_of_name(x, c, name);
			bool is_new = name && name != names[0] && name != names[1];

			if (!is_new || ns <= most)
				continue;
			most = ns;
			names[k] = name;
		}
		sum += most;
		n += names[k] ? count_threads(x, c, names[k]) : 0;
	}
	/* Only a few of them have names: those of all count. */
	return (double)sum < KY_CULPRIT_MOST * (double)c->ns ? count_threads(x, c, 0) : n;
}

static bool has_two(const struct ky_culprits *c)
{
	const struct ky_culprit *v = c->v.v;

	return c->v.n > 1 && v[0].span && v[1].span && v[0].span != v[1].span &&
	       (double)(v[0].ns + v[1].ns) >= KY_CULPRIT_MOST * (double)c->ns &&
	       (double)v[1].ns >= KY_CULPRIT_SECOND * (double)c->ns;
}

static struct who find_who(const struct ky_explain *x, const struct ky_culprits *c)
{
	struct who w = {0};
	int64_t thread_ns = -1, span_ns = -1;

	for (size_t i = 0; i < c->v.n; i++) {
		if (sum_of(c, i, false) > thread_ns) {
			thread_ns = sum_of(c, i, false);
			w.thread = c->v.v[i].thread;
		}
		if (sum_of(c, i, true) > span_ns) {
			span_ns = sum_of(c, i, true);
			w.span = c->v.v[i].span;
			w.caller = c->v.v[i].caller;
		}
	}
	w.is_several = (double)thread_ns < KY_CULPRIT_MOST * (double)c->ns;
	if (w.is_several && has_two(c))
		w.two = c->v.v;
	/* The span of the thread that is named. Culprits come in order of their times. */
	for (size_t i = c->v.n; i-- > 0 && !w.is_several;) {
		if (c->v.v[i].thread == w.thread) {
			w.span = c->v.v[i].span;
			w.caller = c->v.v[i].caller;
		}
	}
	w.n = find_names(x, c, w.names);
	return w;
}

static void put_who(struct ky_buf *b, const struct ky_explain *x, const struct who *w)
{
	if (!w->is_several) {
		ky_buf_puts(b, ky_explain_is_tracer(x, w->thread) ? "the tracer's " : "");
		ky_words_put_thread(b, x, w->thread);
		return;
	}
	ky_buf_printf(b, "%zu other threads in turn", w->n);
	for (size_t i = 0; i < MAX_NAMES && w->names[i]; i++)
		ky_buf_printf(b, "%s%s", i ? ", " : " (", name_of(x, w->names[i]));
	ky_buf_puts(b, w->names[0] ? ")" : "");
}

/* "0x55c47d1712e0 (conf)", as a thread of that process knows it. */
static void put_address(struct ky_buf *b, const struct ky_explain *x, uint32_t thread,
	uint64_t address, bool is_return)
{
	const struct ky_explain_thread *t = x->threads.v[thread];
	char name[KY_TEXTS_LENGTH];

	ky_buf_printf(b, "0x%" PRIx64, address);
	if (x->symbols && x->symbols->find(x->symbols->arg, name_of(x, t->host), t->pid, address,
				  is_return, name, sizeof(name)))
		ky_buf_printf(b, " (%s)", name);
}

static void put_doing(struct ky_buf *b, const struct ky_explain *x, const struct who *w)
{
	if (w->span)
		ky_buf_printf(b, "in %s", name_of(x, w->span));
	else
		ky_buf_puts(b, "outside any span");
	if (w->span || !w->caller)
		return;
	ky_buf_puts(b, ", from address ");
	put_address(b, x, w->thread, w->caller, true);
}

/* The chain that most of the time went through, if a third of it did. */
static int add_chain(struct ky_explain *x, struct ky_finding *f, const struct ky_culprits *c,
	const struct who *w)
{
	struct ky_chain most = {0};
	struct ky_buf b = {0};
	int64_t all = 0;

	for (size_t i = 0; i < c->chains.n; i++) {
		all += c->chains.v[i].ns;
		if (c->chains.v[i].ns > most.ns)
			most = c->chains.v[i];
	}
	if (!most.via || (double)all <= .3 * (double)c->ns)
		return 0;
	ky_buf_printf(&b, "chain: waits for %s, which waits for ", name_of(x, most.via));
	put_who(&b, x, w);
	return add_evidence(f, &b);
}

/* --- sentences --- */

static void put_holder(
	struct ky_buf *b, const struct ky_explain *x, const struct ky_culprit *c, const char *held)
{
	ky_words_put_thread(b, x, c->thread);
	ky_buf_printf(b, "%s in %s", held, name_of(x, c->span));
}

static void say_lock(struct ky_buf *b, struct ky_explain *x, const struct ky_finding *f,
	const struct ky_culprits *c, const struct who *w)
{
	uint32_t thread = f->affected.v[0]->thread;

	if (c->mutex) {
		ky_buf_puts(b, c->second ? "it waits for mutexes " : "it waits for mutex ");
		put_address(b, x, thread, c->mutex, false);
	} else {
		ky_buf_puts(b, "it waits for a mutex");
	}
	if (c->second) {
		ky_buf_puts(b, " and ");
		put_address(b, x, thread, c->second, false);
	}
	if (ky_component_of(x, f->component)->depth > 1) {
		ky_buf_puts(b, " in ");
		put_place(b, x, f, f->component, 0);
	}
	if (!c->ns) {
		ky_buf_puts(b, "; who held it is not recorded");
		return;
	}
	ky_buf_puts(b, ", which ");
	if (w->two) {
		put_holder(b, x, &w->two[0], " held");
		ky_buf_puts(b, ", and ");
		put_holder(b, x, &w->two[1], "");
		return;
	}
	put_who(b, x, w);
	ky_buf_puts(b, " held ");
	put_doing(b, x, w);
}

static void say_condition(
	struct ky_buf *b, struct ky_explain *x, const struct ky_culprits *c, const struct who *w)
{
	ky_buf_puts(b, "it waits for a condition");
	if (!c->ns)
		return;
	ky_buf_puts(b, " until ");
	put_who(b, x, w);
	ky_buf_printf(
		b, " signal%s, which %s ", w->is_several ? "" : "s", w->is_several ? "are" : "is");
	put_doing(b, x, w);
	ky_buf_puts(b, " meanwhile");
}

static void put_runs(struct ky_buf *b, const struct ky_explain *x, const struct who *w)
{
	put_who(b, x, w);
	ky_buf_printf(b, " run%s on its processor instead", w->is_several ? "" : "s");
	if (w->span)
		ky_buf_printf(b, ", in %s", name_of(x, w->span));
}

static void say_ready(struct ky_buf *b, struct ky_explain *x, const struct ky_finding *f,
	const struct ky_culprits *c, const struct who *w)
{
	/* Without the machine's load, it is not others. */
	bool may_be_others = x->has_others && !(f->affected.n && f->affected.v[0]->is_net);

	ky_buf_puts(b, "it is ready to run, and ");
	if (c->ns ? ky_culprit_is_others(x, c->v.v[0].thread) : may_be_others) {
		ky_buf_printf(b, "%s its processor instead%s",
			c->ns ? "other programs run on" : "what runs on",
			c->ns ? "; which ones is not recorded" : " is not recorded");
		return;
	}
	if (!c->ns) {
		ky_buf_puts(b, "no other thread is known to run on its processor, as when its "
			       "group's processor time is limited, or a virtual machine stands");
		return;
	}
	put_runs(b, x, w);
}

/* Some calls of the kernel wait for one kind of thing, whoever wakes the thread. */
enum wait_call { WAIT_OTHER, WAIT_SLEEP, WAIT_CHILD, WAIT_DISK };

static enum wait_call find_call(const struct ky_explain *x, const struct ky_finding *f)
{
	static const struct {
		const char *name;
		enum wait_call call;
	} calls[] = {{"nanosleep()", WAIT_SLEEP}, {"clock_nanosleep()", WAIT_SLEEP},
		{"wait4()", WAIT_CHILD}, {"waitid()", WAIT_CHILD}, {"fsync()", WAIT_DISK},
		{"fdatasync()", WAIT_DISK}, {"msync()", WAIT_DISK},
		{"sync_file_range()", WAIT_DISK}, {"syncfs()", WAIT_DISK}, {"sync()", WAIT_DISK}};
	const struct ky_component *o = ky_component_of(x, f->component);

	while (o->kind != KY_PART_SPAN)
		o = ky_component_of(x, o->parent);
	for (size_t i = 0; i < KY_ARRAY_SIZE(calls); i++) {
		if (is_text(x, o->a, calls[i].name))
			return calls[i].call;
	}
	return WAIT_OTHER;
}

/* A child is known by its program; its last thread to end may be the tracer's. */
static void say_child(struct ky_buf *b, const struct ky_explain *x, const struct who *w)
{
	bool is_tracer = w->names[0] && is_text(x, w->names[0], "kymo-listener");

	ky_buf_puts(b, " for a child process to end");
	if (w->names[0] && !is_tracer)
		ky_buf_printf(b, " (%s)", name_of(x, w->names[0]));
	if (w->span && !is_tracer) {
		ky_buf_puts(b, ", which is ");
		put_doing(b, x, w);
		ky_buf_puts(b, " meanwhile");
	}
}

static void say_wait(struct ky_buf *b, struct ky_explain *x, const struct ky_finding *f,
	const struct ky_culprits *c, const struct who *w)
{
	bool is_stopped = ky_component_of(x, f->component)->a;
	enum wait_call call = is_stopped ? WAIT_OTHER : find_call(x, f);

	ky_buf_puts(b, is_stopped		      ? "it is stopped in "
		       : call == WAIT_SLEEP && !c->ns ? "it sleeps in "
						      : "it waits in ");
	put_place(b, x, f, f->component, 0);
	if (call == WAIT_CHILD) {
		say_child(b, x, w);
		return;
	}
	if (is_stopped)
		ky_buf_puts(b, " by a signal (SIGSTOP) or a debugger");
	else if (!c->ns)
		ky_buf_puts(b, call == WAIT_SLEEP  ? ""
			       : call == WAIT_DISK ? " for the disk"
						   : " for a timer, the network or another device");
	else if (call == WAIT_DISK && !w->span)
		ky_buf_puts(b, " for the disk");
	if (!c->ns)
		return;
	ky_buf_puts(b, " until ");
	put_who(b, x, w);
	ky_buf_printf(b, " %s%s it", is_stopped ? "continue" : "wake", w->is_several ? "" : "s");
	if (w->span) {
		ky_buf_printf(b, ", which %s ", w->is_several ? "are" : "is");
		put_doing(b, x, w);
		ky_buf_puts(b, " meanwhile");
	}
}

/* Most of the time lies in one critical section, not in the number of calls. */
static bool is_long_hold(const struct ky_explain *x, const struct ky_finding *f)
{
	const struct ky_component *c = ky_component_of(x, f->component);
	const char *a = strchr(name_of(x, c->a), ':'), *b = strchr(name_of(x, c->b), ':');

	return f->top >= KY_CULPRIT_MOST * f->amount && f->mean_ns[0] > LONG_HOLD_NS && a && b &&
	       strstr(a, "mutex_lock_acq") && strstr(b, "mutex_unlock");
}

static void say_locks(struct ky_buf *b, struct ky_explain *x, const struct ky_finding *f,
	const struct ky_culprits *c, const struct who *w)
{
	if (!c->ns && is_long_hold(x, f)) {
		ky_buf_puts(b, "it holds a mutex for ");
		ky_words_put_duration(b, f->mean_ns[0]);
		ky_buf_puts(b, ", or waits for a condition with it, in ");
		put_place(b, x, f, ky_component_of(x, f->component)->parent, 0);
		return;
	}
	ky_buf_printf(
		b, "it %s ", c->ns ? "tries mutexes (pthread_mutex_trylock)" : "locks mutexes");
	put_times(b, affected_count(x, f));
	ky_buf_puts(b, " instead of ");
	put_times_or_never(b, f->typical_count);
	ky_buf_puts(b, " in ");
	put_place(b, x, f, ky_component_of(x, f->component)->parent, 0);
	if (!c->ns)
		return;
	ky_buf_puts(b, ", while ");
	put_who(b, x, w);
	ky_buf_puts(b, " held one ");
	put_doing(b, x, w);
}

/* Those that run while the thread that is waited for could, if that is much of the time. */
static void put_instead(struct ky_buf *b, const struct ky_explain *x, const struct ky_culprits *c)
{
	struct ky_culprits instead = {.ns = c->instead_ns};
	struct who w;

	if (!c->ns || (double)c->instead_ns < KY_CULPRIT_SECOND * (double)c->ns)
		return;
	instead.v.v = c->instead.v;
	instead.v.n = c->instead.n;
	w = find_who(x, &instead);
	w.two = NULL;
	ky_buf_puts(b, ", while ");
	put_runs(b, x, &w);
}

static int say_wait_finding(struct ky_buf *b, struct ky_explain *x, struct ky_finding *f)
{
	enum ky_component_kind kind = ky_finding_part(x, f);
	struct ky_culprits c = {0};
	int r = ky_culprits_find(&c, x, f);
	struct who w = find_who(x, &c);

	if (f->kind == KY_FINDING_LOCKS)
		say_locks(b, x, f, &c, &w);
	else if (kind == KY_PART_LOCK)
		say_lock(b, x, f, &c, &w);
	else if (kind == KY_PART_CONDITION)
		say_condition(b, x, &c, &w);
	else if (kind == KY_PART_READY)
		say_ready(b, x, f, &c, &w);
	else
		say_wait(b, x, f, &c, &w);
	put_instead(b, x, &c);
	if (!r)
		r = add_times_evidence(f);
	if (!r && kind == KY_PART_LOCK && c.n_holders >= 1.5) {
		struct ky_buf holders = {0};

		ky_buf_printf(&holders, "%.2g holders for each wait", c.n_holders);
		r = add_evidence(f, &holders);
	}
	if (!r)
		r = add_chain(x, f, &c, &w);
	ky_culprits_deinit(&c);
	return r;
}

static void say_span(struct ky_buf *b, struct ky_explain *x, const struct ky_finding *f)
{
	bool is_new = f->kind == KY_FINDING_NEW ||
		      (f->kind == KY_FINDING_COUNT && f->count[1] < .05);

	if (f->kind == KY_FINDING_LONGER) {
		put_place(b, x, f, f->component, 1);
		ky_buf_puts(b, " takes longer, ");
		ky_words_put_duration(b, affected_ns(f));
		ky_buf_puts(b, " instead of ");
		ky_words_put_duration(b, f->typical_ns);
		return;
	}
	ky_buf_puts(b, is_new ? "it runs " : "");
	put_place(b, x, f, f->component, 1);
	ky_buf_puts(b, f->kind == KY_FINDING_NEW ? ", which typical ones do not ("
		       : is_new			 ? ", which hardly any typical one does ("
						 : " comes ");
	put_times(b, affected_count(x, f));
	if (!is_new) {
		ky_buf_puts(b, " instead of ");
		put_times(b, f->typical_count);
		ky_buf_puts(b, " (");
	} else {
		ky_buf_puts(b, ", ");
	}
	ky_words_put_duration(b, affected_each(x, f));
	ky_buf_puts(b, " each)");
}

static bool is_end_of(const struct ky_explain *x, uint32_t event, uint32_t span)
{
	const char *name = name_of(x, span), *text = name_of(x, event);
	size_t n = strlen(name);

	return !strncmp(text, name, n) && !strcmp(text + n, "_end");
}

static bool is_ends_of(const struct ky_explain *x, const struct ky_component *way, uint32_t span)
{
	const char *name = name_of(x, span), *a = name_of(x, way->a);
	size_t n = strlen(name);

	return !strncmp(a, name, n) && !strcmp(a + n, "_begin") && is_end_of(x, way->b, span);
}

/* Time passes between the two events. */
static void say_gap(struct ky_buf *b, const struct ky_explain *x, const struct ky_finding *f)
{
	const struct ky_component *c = ky_component_of(x, f->component);

	ky_buf_puts(b, "in ");
	put_place(b, x, f, c->parent, 0);
	ky_buf_puts(b, " no event comes ");
	put_ends(b, x, c);
	ky_buf_puts(b, " for ");
	ky_words_put_duration(b, affected_ns(f));
	ky_buf_puts(b, " instead of ");
	ky_words_put_duration(b, f->typical_ns);
}

/* "page faults come", "event net:reset comes". */
static void put_comes(struct ky_buf *b, const struct ky_explain *x, uint32_t event)
{
	const char *name = name_of(x, event);

	if (strstr(name, "page_fault"))
		ky_buf_puts(b, "page faults come");
	else if (strstr(name, "_rt_sigreturn"))
		ky_buf_puts(b, "a signal handler runs");
	else
		ky_buf_printf(b, "event %s comes", name);
}

static void say_way(struct ky_buf *b, struct ky_explain *x, const struct ky_finding *f)
{
	const struct ky_component *c = ky_component_of(x, f->component);
	const struct ky_component *inner = ky_component_of(x, c->parent);

	if (f->kind != KY_FINDING_LONGER && x->is_async && is_end_of(x, c->b, x->span)) {
		ky_buf_puts(b, "its thread ends ");
		put_number(b, affected_count(x, f));
		ky_buf_puts(b, " others before it instead of ");
		put_number(b, f->typical_count < .05 ? 0 : f->typical_count);
		return;
	}
	if (f->kind != KY_FINDING_LONGER) {
		ky_buf_puts(b, "in ");
		put_place(b, x, f, c->parent, 0);
		if (is_between_calls(x, c)) {
			ky_buf_puts(b, " it runs ");
			put_ends(b, x, c);
		} else if (c->a == c->b) {
			ky_buf_puts(b, " ");
			put_comes(b, x, c->b);
		} else {
			ky_buf_puts(b, " ");
			put_event(b, x, c->b, false);
			ky_buf_puts(b, " comes after ");
			put_event(b, x, c->a, true);
		}
		ky_buf_puts(b, " ");
		put_times(b, affected_count(x, f));
		ky_buf_puts(b, " instead of ");
		put_times_or_never(b, f->typical_count);
		return;
	}
	if (f->key.group == KY_KEY_SELF || is_ends_of(x, c, inner->a) || !c->a) {
		put_place(b, x, f, c->parent, 1);
		ky_buf_puts(b, " itself takes ");
		ky_words_put_duration(b, affected_ns(f));
		ky_buf_puts(b, " instead of ");
		ky_words_put_duration(b, f->typical_ns);
		if (f->key.group != KY_KEY_SELF && c->a)
			ky_buf_puts(b, ", with no event in it");
		return;
	}
	say_gap(b, x, f);
}

/* Most of the time lies between two allocations: something else is done there. */
static bool is_long_pause(const struct ky_explain *x, const struct ky_finding *f)
{
	const struct ky_component *c = ky_component_of(x, f->component);

	return f->top >= KY_CULPRIT_MOST * f->amount && f->mean_ns[0] > LONG_PAUSE_NS &&
	       c->a == c->b;
}

static void say_alloc(struct ky_buf *b, struct ky_explain *x, const struct ky_finding *f)
{
	if (is_long_pause(x, f)) {
		say_gap(b, x, f);
		return;
	}
	ky_buf_puts(b, "it allocates: malloc, free and the like are called ");
	put_times(b, affected_count(x, f));
	ky_buf_puts(b, " instead of ");
	put_times_or_never(b, f->typical_count);
	ky_buf_puts(b, " in ");
	put_place(b, x, f, ky_component_of(x, f->component)->parent, 0);
}

static void say_event(struct ky_buf *b, struct ky_explain *x, const struct ky_finding *f)
{
	put_comes(b, x, (uint32_t)f->key.what);
	ky_buf_puts(b, " ");
	put_times(b, affected_count(x, f));
	ky_buf_puts(b, " instead of ");
	put_times_or_never(b, f->typical_count);
	ky_buf_puts(b, " in ");
	put_place(b, x, f, ky_component_of(x, f->component)->parent, 0);
}

int ky_sentence_make(struct ky_explain *x, struct ky_finding *f)
{
	struct ky_buf b = {0};
	int r = 0;

	if (f->kind == KY_FINDING_LOCKS || ky_finding_is_wait(x, f))
		r = say_wait_finding(&b, x, f);
	else if (f->kind == KY_FINDING_ALLOC)
		say_alloc(&b, x, f);
	else if (f->kind == KY_FINDING_EVENT)
		say_event(&b, x, f);
	else if (ky_finding_part(x, f) == KY_PART_SPAN)
		say_span(&b, x, f);
	else
		say_way(&b, x, f);
	if (f->executed)
		ky_buf_puts(&b, f->executed);
	if (!r && (f->kind == KY_FINDING_ALLOC || f->kind == KY_FINDING_EVENT))
		r = add_times_evidence(f);
	f->clause = take_text(&b);
	return r ? r : f->clause ? 0 : -ENOMEM;
}

void ky_sentence_place(struct ky_buf *b, const struct ky_explain *x, const struct ky_finding *f)
{
	const struct ky_component *c = ky_component_of(x, f->component);

	if (c->kind != KY_PART_WAY) {
		put_place(b, x, f, f->component, 0);
		return;
	}
	put_place(b, x, f, c->parent, 0);
	if (f->key.group == KY_KEY_SELF || !c->a)
		return;
	ky_buf_puts(b, ", ");
	if (ky_finding_is_unseen(x, f))
		ky_buf_puts(b, "before any event of its threads");
	else
		put_ends(b, x, c);
}
