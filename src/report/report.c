/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <inttypes.h>
#include <math.h>

#include "analysis/open-async.h"
#include "reader/format.h"
#include "reader/reader.h"
#include "reader/trace.h"
#include "report/column.h"
#include "report/flows.h"
#include "report/list.h"
#include "report/losses.h"
#include "report/page.h"
#include "report/parts.h"
#include "report/tracks.h"

#define MAX_SLICES 25000000 /* more are drawn coarsely: a browser could not hold them */
#define COARSE	   65536    /* then, slices shorter than this part of the whole join others */
#define N_BINS	   1024
#define MAX_CPUS   4096

enum state { RUNNING, READY, WAITING, BLOCKED, N_STATES };

static const char *const state_names[N_STATES] = {
	[RUNNING] = "running",
	[READY] = "ready",
	[WAITING] = "waiting",
	[BLOCKED] = "waiting for a device",
};

/* The meaning of a class of events, beyond its kind. */
struct meaning {
	bool is_known, is_selected;
	const struct ky_field *counter, *flow, *prev_comm;
	const struct ky_field *state[3]; /* lttng_statedump_process_state: tid, pid, name */
	uint32_t name;			 /* of the event */
	uint32_t stem;			 /* steps of one flow have one name but for the ending */
	bool is_of_cpu;			 /* interrupts interrupt any thread */
};

/* A thread that ran before the recording, as the kernel's state dump names it. */
struct known_thread {
	struct ky_hnode node;
	uint32_t host, name;
	int64_t tid, pid;
};

/* The thread that a processor runs; known until events of a group are lost. */
struct current {
	struct ky_track *track; /* NULL: not known */
	uint64_t n_group_losses;
};

struct report {
	const struct ky_report_options *o;
	FILE *to;
	struct ky_parts *parts; /* owned */
	struct ky_texts names;
	struct ky_source *source; /* owned */
	struct meaning *meanings; /* owned; by class */
	struct ky_tracks tracks;
	uint32_t states[N_STATES], mutex;
	struct current current[MAX_CPUS];
	struct ky_htab async; /* struct async_slice */
	struct ky_event_list list;
	struct ky_track_losses losses;
	struct ky_htab threads;
	struct ky_flows flows;
	int64_t begin_ns, end_ns; /* of the events, since 1970 */
	int64_t origin_ns;	  /* times are relative to it */
	int64_t last_ns;
	uint64_t n, n_total;
	bool is_truncated;
	int error;
};

/* --- what there is to read --- */

static bool is_stopped(const struct report *r)
{
	return r->o->stop && __atomic_load_n(r->o->stop, __ATOMIC_RELAXED);
}

/* Counts the selected events, and finds their first and last time. */
static int count_events(struct report *r)
{
	_cleanup_free_ uint8_t *want = malloc(r->o->query->reader->n_classes + 1);
	struct ky_reading reading = {0};
	struct ky_item item;
	int e;

	if (!want)
		return -ENOMEM;
	memset(want, KY_WANT_EVENT, r->o->query->reader->n_classes);
	e = ky_reading_init(&reading, r->o->query, want, NULL, r->o->reader);
	while (!e && !r->is_truncated && (e = ky_cursor_next(reading.cursor, &item, NULL)) > 0) {
		e = is_stopped(r) ? -ECANCELED : 0;
		if (item.kind != KY_ITEM_EVENT || !item.has_time)
			continue;
		if (r->o->max_read && r->n_total == r->o->max_read) {
			r->is_truncated = true;
			break;
		}
		if (!r->n_total++)
			r->begin_ns = r->end_ns = item.ns;
		r->begin_ns = KY_MIN(r->begin_ns, item.ns);
		r->end_ns = KY_MAX(r->end_ns, item.ns);
	}
	ky_reading_deinit(&reading);
	return e ? e : r->n_total ? 0 : -ENODATA;
}

/* Sets the origin. The events must be less than 2^63 ns from it, and from each other. */
static int set_origin(struct report *r)
{
	int64_t ns;

	r->origin_ns = r->o->has_origin ? r->o->origin_ns : r->begin_ns;
	return __builtin_sub_overflow(r->end_ns, r->begin_ns, &ns) ||
			       __builtin_sub_overflow(r->end_ns, r->origin_ns, &ns) ||
			       __builtin_sub_overflow(r->begin_ns, r->origin_ns, &ns)
		       ? -EOVERFLOW
		       : 0;
}

/* Returns a time among those of the events, from the origin on. */
static int64_t clamp_time(const struct report *r, int64_t ns)
{
	return KY_MIN(KY_MAX(ns, r->begin_ns), r->end_ns) - r->origin_ns;
}

static const struct ky_field *find_field(
	const struct report *r, const struct ky_source_class *c, const char *name)
{
	for (size_t i = 0; i < c->fields.n; i++) {
		const struct ky_field *f = &c->fields.v[i];

		if (f->scope == KY_SCOPE_FIELDS && !strcmp(ky_texts_get(&r->names, f->name), name))
			return f;
	}
	return NULL;
}

static uint32_t add_name(struct report *r, const char *name)
{
	return ky_texts_add(&r->names, name, strlen(name));
}

static uint32_t stem_of(struct report *r, const char *name)
{
	static const char *const endings[] = {"_begin", "_step", "_end"};
	size_t len;

	for (size_t i = 0; i < KY_ARRAY_SIZE(endings); i++)
		if (ky_texts_end_in(name, endings[i], &len))
			return ky_texts_add(&r->names, name, len);
	return add_name(r, name);
}

static const char *const state_fields[] = {"tid", "pid", "name"};

static const struct meaning *meaning_of(struct report *r, const struct ky_source_class *c)
{
	struct meaning *m = &r->meanings[c->event->index];
	const char *base;

	if (m->is_known)
		return m;
	base = ky_texts_get(&r->names, c->base);
	m->is_known = true;
	m->name = c->event->name ? add_name(r, c->event->name) : c->name;
	m->stem = stem_of(r, ky_texts_get(&r->names, m->name));
	m->is_selected = ky_query_has(r->o->query, c->event->index);
	m->counter = find_field(r, c, "counter");
	m->flow = find_field(r, c, "flow_id");
	m->prev_comm = c->kind == KY_EVENT_SWITCH ? find_field(r, c, "prev_comm") : NULL;
	if (!strcmp(ky_texts_get(&r->names, m->name), "lttng_statedump_process_state"))
		for (size_t i = 0; i < KY_ARRAY_SIZE(m->state); i++)
			m->state[i] = find_field(r, c, state_fields[i]);
	m->is_of_cpu = c->is_kernel && (!strcmp(base, "interrupt") || !strcmp(base, "softirq"));
	return m;
}

/* --- tracks of events --- */

static struct ky_track *get_track(
	struct report *r, enum ky_track_kind kind, uint32_t host, int64_t pid, int64_t id)
{
	struct ky_track *k = ky_tracks_get(&r->tracks, kind, host, pid, id);

	ky_track_losses_apply(&r->losses, &r->tracks, k);
	return k;
}

static uint32_t text_of(struct report *r, const struct ky_source_event *e, const struct ky_field *f)
{
	struct ky_fact fact = ky_source_fact(r->source, e, f);

	return fact.type == KY_FACT_TEXT ? fact.text : 0;
}

static struct ky_track *cpu_track(struct report *r, const struct ky_source_event *e, int64_t cpu)
{
	return get_track(r, KY_TRACK_CPU, e->host, -1, cpu);
}

static uint32_t hash_thread(uint32_t host, int64_t tid)
{
	const int64_t key[] = {host, tid};

	return ky_hash(key, sizeof(key));
}

static struct known_thread *find_thread(struct report *r, uint32_t host, int64_t tid)
{
	for (struct ky_hnode *n = ky_htab_first(&r->threads, hash_thread(host, tid)); n;
		n = ky_htab_next(n)) {
		struct known_thread *t = ky_container_of(n, struct known_thread, node);

		if (t->host == host && t->tid == tid)
			return t;
	}
	return NULL;
}

/* Notes the process and the name of a thread, which the kernel's state dump has. */
static void note_thread(struct report *r, const struct ky_source_event *e, const struct meaning *m)
{
	int64_t tid = (int64_t)ky_source_bits(e, m->state[0]);
	struct known_thread *t = find_thread(r, e->host, tid);
	bool is_new = !t;

	if (is_new)
		t = calloc(1, sizeof(*t));
	if (!t || (is_new && ky_htab_add(&r->threads, &t->node, hash_thread(e->host, tid)) < 0)) {
		free(t);
		r->error = -ENOMEM;
		return;
	}
	t->host = e->host;
	t->tid = tid;
	t->pid = (int64_t)ky_source_bits(e, m->state[1]);
	t->name = text_of(r, e, m->state[2]);
}

static struct ky_track *thread_track(
	struct report *r, const struct ky_source_event *e, int64_t pid, int64_t tid)
{
	struct ky_track *k = get_track(r, KY_TRACK_THREAD, e->host, pid, tid);
	const struct known_thread *t = k && k->pid < 0 ? find_thread(r, e->host, tid) : NULL;

	if (t) {
		k->pid = t->pid;
		k->comm = k->comm ? k->comm : t->name;
	}
	return k;
}

static bool is_current_known(const struct report *r, int64_t cpu)
{
	return cpu >= 0 && cpu < MAX_CPUS && r->current[cpu].track &&
	       r->current[cpu].n_group_losses == r->losses.n_of_groups;
}

/* Finds the track of an event: its thread's, else its processor's, else its stream's. */
static struct ky_track *track_of(struct report *r, const struct ky_source_event *e)
{
	int64_t cpu = ky_source_number(e, KY_FIELD_CPU, -1);
	int64_t tid = ky_source_number(e, KY_FIELD_TID, -1);
	int64_t pid = ky_source_number(e, KY_FIELD_PID, -1);

	if (tid < 0 && (e->kind == KY_EVENT_SPAN_BEGIN || e->kind == KY_EVENT_SPAN_END))
		tid = ky_source_number(e, KY_FIELD_SPAN, -1);
	if (e->class->is_kernel && cpu >= 0 && (tid == 0 || e->kind == KY_EVENT_SWITCH))
		return cpu_track(r, e, cpu);
	if (tid < 0 && is_current_known(r, cpu)) {
		ky_track_losses_apply(&r->losses, &r->tracks, r->current[cpu].track);
		return r->current[cpu].track;
	}
	if (tid >= 0)
		return thread_track(r, e, pid, tid);
	if (cpu >= 0)
		return cpu_track(r, e, cpu);
	return get_track(r, KY_TRACK_STREAM, e->host, pid, e->stream);
}

/* Returns the bin of a time, which rounding may bring to the end of the last one. */
static size_t bin_of(const struct report *r, int64_t ns)
{
	double at = (double)(ns - (r->begin_ns - r->origin_ns));
	size_t bin = (size_t)(at / ((double)(r->end_ns - r->begin_ns) + 1) * N_BINS);

	return KY_MIN(bin, (size_t)N_BINS - 1);
}

static void count_on_track(
	struct report *r, struct ky_track *k, const struct ky_source_event *e, int64_t ns)
{
	if (ky_track_losses_use(&r->losses, k, e) < 0) {
		r->error = -ENOMEM;
		return;
	}
	k->n_events++;
	k->last_ns = ns;
	if (!k->comm && k->kind != KY_TRACK_CPU)
		k->comm = ky_source_text(r->source, e, KY_FIELD_PROCNAME);
	if (r->n_total <= r->o->max_events)
		return;
	if (!k->bins)
		k->bins = calloc(N_BINS, sizeof(*k->bins));
	if (k->bins)
		k->bins[bin_of(r, ns)]++;
	else
		r->error = -ENOMEM;
}

/* --- slices of events --- */

/* Cuts "inlined (a.h:3) in work+0x1c (demo.c:12)" to "work". */
static size_t cut_to_function(char text[KY_SYMBOL_TEXT])
{
	char *offset = strstr(text, "+0x"), *next, *file = strrchr(text, '('), *in = text;

	while (offset && (next = strstr(offset + 1, "+0x")))
		offset = next;
	if (offset)
		*offset = '\0';
	else if (file && file > text && file[-1] == ' ')
		file[-1] = '\0';
	while ((next = strstr(in, ") in ")))
		in = next + 5;
	memmove(text, in, strlen(in) + 1);
	return strlen(text);
}

/* Returns the name of a function's slice: its address if nothing else is known. */
static uint32_t name_of_pair(struct report *r, const struct ky_source_event *e)
{
	const struct ky_symbolizer *s = r->o->symbols;
	uint64_t address = (uint64_t)ky_source_number(e, KY_FIELD_ADDRESS, 0);
	char text[KY_SYMBOL_TEXT];
	size_t n;

	if (e->class->base)
		return e->class->base;
	n = s ? s->find(s->arg, e->item, address, false, text) : 0;
	if (n)
		return ky_texts_add(&r->names, text, cut_to_function(text));
	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	return add_name(r, text);
}

/* An asynchronous span that is open, and the place where it is drawn. */
struct async_slice {
	struct ky_open_async open;
	struct ky_track *track;
	size_t lane;
};

static void begin_async(struct report *r, const struct ky_source_event *e, int64_t pid, int64_t ns)
{
	struct ky_track *k = get_track(r, KY_TRACK_ASYNC, e->host, pid, 0);
	struct async_slice *a = k ? ky_open_async_begin(
					    &r->async, sizeof(*a), e->class->base, ky_source_id(e))
				  : NULL;

	if (!a) {
		r->error = -ENOMEM;
		return;
	}
	k->last_ns = ns;
	k->group = e->group;
	k->gap_ns = r->losses.until_ns;
	a->track = k;
	a->lane = ky_track_open_lane(&r->tracks, k, a->open.name, ns);
}

static void end_async(struct report *r, const struct ky_source_event *e, int64_t ns)
{
	_cleanup_free_ struct async_slice *a = ky_open_async_end(
		&r->async, e->class->base, ky_source_id(e));

	if (!a)
		return;
	ky_track_end_at(&r->tracks, a->track, a->lane, ns, 0);
	a->track->last_ns = ns;
}

static enum state state_behind(int64_t prev_state)
{
	if (!prev_state)
		return READY;
	return prev_state & 2 ? BLOCKED : WAITING;
}

static void set_state(struct report *r, const struct ky_source_event *e, struct ky_track *k,
	uint32_t state, int64_t ns)
{
	ky_track_set_state(&r->tracks, k, state, ns);
	k->state_group = e->group;
}

/* A processor changes from one thread to another. */
static void switch_threads(struct report *r, const struct ky_source_event *e, int64_t ns)
{
	int64_t cpu = ky_source_number(e, KY_FIELD_CPU, -1);
	int64_t prev = ky_source_number(e, KY_FIELD_PREV_TID, 0);
	int64_t next = ky_source_number(e, KY_FIELD_NEXT_TID, 0);
	int64_t prev_state = ky_source_number(e, KY_FIELD_PREV_STATE, 0);
	struct ky_track *on = cpu_track(r, e, cpu), *k;
	uint32_t name;

	if (prev && (k = thread_track(r, e, -1, prev))) {
		set_state(r, e, k, prev_state >= 16 ? 0 : r->states[state_behind(prev_state)], ns);
		k->last_ns = ns;
		k->comm = k->comm ? k->comm : text_of(r, e, meaning_of(r, e->class)->prev_comm);
	}
	k = next ? thread_track(r, e, -1, next) : NULL;
	if (cpu >= 0 && cpu < MAX_CPUS)
		r->current[cpu] = (struct current){k, r->losses.n_of_groups};
	if (on)
		ky_track_end(&r->tracks, on, 0, ns);
	if (!k)
		return;
	name = ky_source_text(r->source, e, KY_FIELD_NEXT_COMM);
	k->comm = name ? name : k->comm;
	k->last_ns = ns;
	set_state(r, e, k, r->states[RUNNING], ns);
	if (on)
		ky_track_open(&r->tracks, on, name ? name : r->states[RUNNING], ns);
}

static void wake_thread(struct report *r, const struct ky_source_event *e, int64_t ns)
{
	int64_t tid = ky_source_number(e, KY_FIELD_WOKEN_TID, 0);
	struct ky_track *k = tid ? thread_track(r, e, -1, tid) : NULL;

	if (k && k->state != r->states[RUNNING])
		set_state(r, e, k, r->states[READY], ns);
}

/* Records of a stream are missing. */
static void note_loss(struct report *r, const struct ky_source_event *e)
{
	int64_t from_ns = clamp_time(r, e->begin_ns), to_ns = clamp_time(r, e->ns);
	bool is_shown = to_ns >= from_ns && e->begin_ns <= r->end_ns && e->ns >= r->begin_ns;

	if (ky_track_losses_add(&r->losses, e, from_ns, to_ns, is_shown) < 0)
		r->error = -ENOMEM;
	ky_open_async_free_all(&r->async);
}

static void add_counter(
	struct report *r, const struct ky_source_event *e, const struct ky_field *field, int64_t ns)
{
	struct ky_fact fact = ky_source_fact(r->source, e, field);
	double value = fact.type == KY_FACT_INT	   ? (double)fact.number
		       : fact.type == KY_FACT_REAL ? fact.real
						   : NAN;
	struct ky_track *k;

	/* A curve has neither texts nor infinity. */
	if (!isfinite(value))
		return;
	k = ky_tracks_get(&r->tracks, KY_TRACK_COUNTER, e->host,
		ky_source_number(e, KY_FIELD_PID, -1), e->class->name);
	if (!k)
		return;
	ky_column_put(&k->times, (uint64_t)(ns - k->last_ns));
	ky_buf_append(&k->values, &value, sizeof(value));
	k->last_ns = ns;
	k->n_events++;
}

static void add_flow(struct report *r, const struct ky_source_event *e, const struct meaning *m,
	const struct ky_track *k, int64_t ns)
{
	const struct ky_flow_step step = {
		m->name, m->stem, ky_source_bits(e, m->flow), k->number, ns};

	if (ky_flows_add(&r->flows, &step) < 0)
		r->error = -ENOMEM;
}

static void add_slices(
	struct report *r, const struct ky_source_event *e, struct ky_track *k, int64_t ns)
{
	const struct meaning *m = meaning_of(r, e->class);
	int64_t cpu = m->is_of_cpu ? ky_source_number(e, KY_FIELD_CPU, -1) : -1;
	struct ky_track *on = cpu >= 0 ? cpu_track(r, e, cpu) : k;

	if (m->counter)
		add_counter(r, e, m->counter, ns);
	if (m->flow)
		add_flow(r, e, m, k, ns);
	switch (e->kind) {
	case KY_EVENT_SPAN_BEGIN:
		ky_track_open(&r->tracks, k, e->class->base, ns);
		break;
	case KY_EVENT_SPAN_END:
		ky_track_end(&r->tracks, k, e->class->base, ns);
		break;
	case KY_EVENT_PAIR_ENTRY:
		if (on)
			ky_track_open(&r->tracks, on, name_of_pair(r, e), ns);
		break;
	case KY_EVENT_PAIR_EXIT:
		if (on)
			ky_track_end(&r->tracks, on, name_of_pair(r, e), ns);
		break;
	case KY_EVENT_LOCK_REQ:
		ky_track_open(&r->tracks, k, r->mutex, ns);
		break;
	case KY_EVENT_LOCK_ACQ:
		ky_track_end(&r->tracks, k, r->mutex, ns);
		break;
	case KY_EVENT_ASYNC_BEGIN:
		begin_async(r, e, k->pid, ns);
		break;
	case KY_EVENT_ASYNC_END:
		end_async(r, e, ns);
		break;
	case KY_EVENT_SWITCH:
		switch_threads(r, e, ns);
		break;
	case KY_EVENT_WAKING:
		wake_thread(r, e, ns);
		break;
	default:
		break;
	}
}

/* --- lists of events --- */

/* Returns true for the events that are listed: all, or the first half and the last. */
static bool is_listed(const struct report *r, uint64_t i)
{
	uint64_t half = r->o->max_events / 2;

	return r->n_total <= r->o->max_events || i < half || i >= r->n_total - half;
}

static void add_event(struct report *r, const struct ky_source_event *e)
{
	struct ky_track *k;
	int64_t ns;

	if (!meaning_of(r, e->class)->is_selected || e->ns < r->begin_ns || e->ns > r->end_ns ||
		!ky_source_passes(r->source, e))
		return;
	ns = KY_MAX(e->ns - r->origin_ns, r->last_ns);
	r->last_ns = ns;
	k = track_of(r, e);
	if (!k)
		return;
	if (meaning_of(r, e->class)->state[0])
		note_thread(r, e, meaning_of(r, e->class));
	count_on_track(r, k, e, ns);
	add_slices(r, e, k, ns);
	if (is_listed(r, r->n))
		ky_event_list_add(&r->list, &(struct ky_listed_event){.item = e->item,
						    .number = r->n,
						    .name = meaning_of(r, e->class)->name,
						    .track = k->number,
						    .ns = ns});
	r->n++;
}

/* A thread keeps its state until the last event of the trace. */
static void end_states(struct report *r)
{
	for (size_t i = 0; i < r->tracks.all.n; i++) {
		struct ky_track *k = r->tracks.all.v[i];

		ky_track_losses_apply(&r->losses, &r->tracks, k);
		if (k->state)
			ky_track_set_state(&r->tracks, k, 0, r->end_ns - r->origin_ns);
	}
}

static int read_events(struct report *r)
{
	struct ky_source_event e;
	int n = ky_source_start(r->source, KY_SOURCE_ALL, 0);

	while (!n && !r->error && !r->tracks.error && (n = ky_source_next(r->source, &e)) > 0) {
		n = is_stopped(r) ? -ECANCELED : 0;
		if (e.kind == KY_EVENT_LOST)
			note_loss(r, &e);
		else if (r->is_truncated && (e.ns > r->end_ns || r->n == r->n_total))
			break;
		else
			add_event(r, &e);
	}
	ky_event_list_flush(&r->list);
	end_states(r);
	ky_tracks_finish(&r->tracks);
	return n ? n : r->error || r->list.error ? -ENOMEM : r->tracks.error;
}

/* --- writing --- */

static void put_tracks(struct report *r)
{
	for (size_t i = 0; i < r->tracks.all.n; i++) {
		struct ky_track *k = r->tracks.all.v[i];
		const struct ky_buf *times = &k->times;
		struct ky_buf part = {0};

		if (k->kind == KY_TRACK_COUNTER) {
			ky_columns_join(&part, &times, 1);
			ky_buf_append(&part, k->values.data, k->values.len);
			part.error = k->values.error ? k->values.error : part.error;
			ky_parts_add(r->parts, "c", i, &part);
		} else if (k->rows.n || k->states.n) {
			ky_track_put(k, &part);
			ky_parts_add(r->parts, "s", i, &part);
		}
		part = (struct ky_buf){0};
		if (k->bins) {
			for (size_t b = 0; b < N_BINS; b++)
				ky_column_put(&part, k->bins[b]);
			ky_parts_add(r->parts, "d", i, &part);
		}
	}
}

static void put_flows(struct report *r)
{
	struct ky_buf part = {0};

	if (!r->flows.n_steps)
		return;
	ky_flows_put(&r->flows, &part);
	ky_parts_add(r->parts, "f", 0, &part);
}

/* Puts text as a JSON string in which no element of HTML can begin or end. */
static void put_text(struct ky_buf *b, const char *text)
{
	struct ky_buf s = {0};

	ky_format_json_string(&s, text, strlen(text));
	for (size_t i = 0; i < s.len; i++) {
		if (s.data[i] == '<')
			ky_buf_puts(b, "\\u003c");
		else
			ky_buf_append(b, s.data + i, 1);
	}
	if (s.error)
		b->error = s.error;
	ky_buf_deinit(&s);
}

static void put_track(struct ky_buf *b, const struct report *r, const struct ky_track *k)
{
	static const char *const kinds[] = {[KY_TRACK_THREAD] = "thread",
		[KY_TRACK_CPU] = "cpu",
		[KY_TRACK_STREAM] = "stream",
		[KY_TRACK_ASYNC] = "async",
		[KY_TRACK_COUNTER] = "counter"};

	ky_buf_printf(b,
		"{\"kind\":\"%s\",\"pid\":%" PRId64 ",\"id\":%" PRId64 ",\"n\":%" PRIu64
		",\"rows\":%zu,\"states\":%s,\"bins\":%s,\"name\":",
		kinds[k->kind], k->pid, k->id, k->n_events, k->rows.n,
		k->states.n ? "true" : "false", k->bins ? "true" : "false");
	put_text(b,
		ky_texts_get(&r->names, k->kind == KY_TRACK_COUNTER ? (uint32_t)k->id : k->comm));
	ky_buf_puts(b, ",\"host\":");
	put_text(b, ky_texts_get(&r->names, k->host));
	ky_buf_puts(b, "}");
}

static void put_lists(struct ky_buf *b, const struct report *r)
{
	ky_buf_puts(b, ",\"names\":[\"\"");
	for (uint32_t i = 1; i <= r->names.all.n; i++) {
		ky_buf_puts(b, ",");
		put_text(b, ky_texts_get(&r->names, i));
	}
	ky_buf_puts(b, "],\"tracks\":[");
	for (size_t i = 0; i < r->tracks.all.n; i++) {
		ky_buf_puts(b, i ? ",\n" : "");
		put_track(b, r, r->tracks.all.v[i]);
	}
	ky_buf_puts(b, "],\"losses\":[");
	for (size_t i = 0; i < r->losses.shown.n; i++) {
		const struct ky_shown_loss *l = &r->losses.shown.v[i];

		ky_buf_printf(b, "%s[%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRId64 "]",
			i ? "," : "", l->from_ns, l->to_ns, l->n, l->track);
	}
	ky_buf_puts(b, "],\"blocks\":[");
	for (size_t i = 0; i < r->list.blocks.n; i++)
		ky_buf_printf(b, "%s%" PRIu64, i ? "," : "", r->list.blocks.v[i]);
	ky_buf_puts(b, "]");
}

/* The first comments of the metadata about missing events and about triggers. */
static void put_gaps(struct ky_buf *b, const struct ky_trace_reader *reader)
{
	ky_buf_puts(b, ",\"gaps\":[");
	for (size_t i = 0; i < KY_MIN(reader->n_gaps, (size_t)KY_GAPS_REPORTED); i++) {
		ky_buf_puts(b, i ? "," : "");
		put_text(b, reader->gaps[i]);
	}
	ky_buf_printf(b, "],\"n_gaps\":%zu", reader->n_gaps);
}

/* Writes the part from which the page begins to read. */
static int write_head(struct report *r, const struct ky_totals *t)
{
	struct ky_buf b = {0};
	int64_t complete_ns = 0;
	bool is_cut = ky_trace_reader_complete_from(r->o->query->reader, &complete_ns) &&
		      !__builtin_sub_overflow(complete_ns, r->origin_ns, &complete_ns);
	int e;

	ky_buf_puts(&b, "<script type=\"kymo\" id=\"head\">{\"version\":1,\"title\":");
	put_text(&b, r->o->title);
	ky_buf_puts(&b, ",\"command\":");
	put_text(&b, r->o->command);
	ky_buf_printf(&b,
		",\"begin\":\"%" PRId64 "\",\"from\":%" PRId64 ",\"end\":%" PRId64
		",\"truncated\":%s,\"events\":%" PRIu64 ",\"listed\":%" PRIu64
		",\"slices\":%" PRIu64 ",\"coarse\":%" PRId64 ",\"too_deep\":%" PRIu64
		",\"discarded\":%" PRIu64 ",\"packets_lost\":%" PRIu64 ",\"damaged\":%" PRIu64
		",\"unreadable\":%zu,\"flows\":%" PRIu64,
		r->origin_ns, r->begin_ns - r->origin_ns, r->end_ns - r->origin_ns,
		r->is_truncated ? "true" : "false", r->n, r->list.n_listed, r->tracks.n_slices,
		r->tracks.coarse_ns, r->tracks.n_too_deep, t->n_discarded, t->n_packets_lost,
		t->n_corrupt, r->o->query->reader->n_unreadable, r->flows.n_steps);
	if (r->o->findings) {
		ky_buf_puts(&b, ",\"findings\":");
		put_text(&b, r->o->findings);
	}
	put_gaps(&b, r->o->query->reader);
	if (is_cut)
		ky_buf_printf(&b, ",\"complete\":%" PRId64, complete_ns);
	put_lists(&b, r);
	ky_buf_puts(&b, "}</script>\n");
	e = b.error;
	if (!e && fwrite(b.data, 1, b.len, r->to) != b.len)
		e = -errno;
	ky_buf_deinit(&b);
	return e;
}

static int write_data(struct report *r, struct ky_report_summary *ret)
{
	const struct ky_format format = {.safe = true, .symbols = r->o->symbols};
	int e, finished;

	r->parts = ky_parts_new(r->to);
	ky_event_list_init(&r->list, r->parts, &format);
	e = r->parts ? read_events(r) : -ENOMEM;
	if (!e) {
		put_tracks(r);
		put_flows(r);
	}
	finished = ky_parts_finish(r->parts);
	if (e || finished)
		return e ? e : finished;
	ky_source_totals(r->source, &ret->totals);
	ret->n_events = r->n;
	ret->n_listed = r->list.n_listed;
	ret->n_long = r->list.n_long;
	ret->n_slices = r->tracks.n_slices;
	ret->is_truncated = r->is_truncated;
	return write_head(r, &ret->totals);
}

static int prepare_report(struct report *r)
{
	size_t n_classes = r->o->query->reader->n_classes;
	int e;

	r->meanings = calloc(n_classes + 1, sizeof(*r->meanings));
	if (!r->meanings)
		return -ENOMEM;
	e = count_events(r);
	if (!e)
		e = set_origin(r);
	if (!e)
		e = ky_source_new(&r->source, r->o->query, &r->names);
	if (e)
		return e;
	for (size_t i = 0; i < N_STATES; i++)
		r->states[i] = add_name(r, state_names[i]);
	r->mutex = add_name(r, "wait for a mutex");
	/* Two events make a slice at most. */
	if (r->n_total / 2 > MAX_SLICES)
		r->tracks.coarse_ns = KY_MAX((r->end_ns - r->begin_ns) / COARSE, 1);
	return 0;
}

static void free_report(struct report *r)
{
	ky_event_list_deinit(&r->list);
	ky_open_async_free_all(&r->async);
	ky_flows_deinit(&r->flows);
	ky_htab_free_all(&r->threads, struct known_thread, node);
	ky_track_losses_deinit(&r->losses);
	ky_tracks_deinit(&r->tracks);
	ky_source_free(r->source);
	ky_texts_deinit(&r->names);
	free(r->meanings);
	free(r);
}

int ky_report_write_data(
	FILE *to, const struct ky_report_options *o, struct ky_report_summary *ret_summary)
{
	struct report *r = calloc(1, sizeof(*r));
	int e;

	*ret_summary = (struct ky_report_summary){0};
	if (!r)
		return -ENOMEM;
	r->o = o;
	r->to = to;
	e = prepare_report(r);
	if (!e)
		e = write_data(r, ret_summary);
	free_report(r);
	return e;
}

int ky_report_write(
	FILE *to, const struct ky_report_options *o, struct ky_report_summary *ret_summary)
{
	int e;

	fputs(ky_report_page_begin, to);
	e = ky_report_write_data(to, o, ret_summary);
	fputs(ky_report_page_end, to);
	if (!e && (fflush(to) || ferror(to)))
		e = errno ? -errno : -EIO;
	return e;
}
