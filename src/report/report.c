/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <inttypes.h>

#include "base/bisect.h"
#include "reader/format.h"
#include "report/column.h"
#include "report/page.h"
#include "report/parts.h"
#include "report/tracks.h"

#define BLOCK	   65536      /* events of a part */
#define BLOCK_TEXT (16 << 20) /* bytes of text after which a part ends, too */
/*
 * Names are repeated with each element of an array, so a small hostile trace may have any amount of
 * text. An event may have LINE_MAX bytes of it; all of them TEXT_MIN, and TEXT_PER_BYTE for each
 * byte of their records.
 */
#define LINE_MAX      ((uint64_t)1 << 20)
#define TEXT_MIN      ((uint64_t)64 << 20)
#define TEXT_PER_BYTE 1024
#define MAX_SLICES    25000000 /* more are drawn coarsely: a browser could not hold them */
#define COARSE	      65536    /* then, slices shorter than this part of the whole join others */
#define N_BINS	      1024
#define MAX_LOSSES    10000
#define MAX_CPUS      4096

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

/* A flow: its number in the page. */
struct flow {
	struct ky_hnode node;
	uint32_t stem, number;
	uint64_t id;
};

struct async_slice {
	struct ky_hnode node;
	struct async_slice *below; /* owned: the same name and id, begun before; not in the table */
	uint32_t name;
	uint64_t id;
	struct ky_track *track;
	size_t lane;
};

struct loss {
	int64_t from_ns, to_ns;
	uint64_t n;
	int64_t track; /* -1: of all */
};

/* The losses of a group, or of a stream that is a thread's own. */
struct gap {
	int64_t until_ns;      /* events were missing last */
	KY_VEC(size_t) losses; /* numbers: report.cuts */
	uint32_t track;	       /* 1 + number of that with the last event of the stream; 0: none */
};

/* By number of a group or a stream. */
struct gaps {
	struct gap *v; /* owned */
	size_t n, cap;
};

/* The thread that a processor runs; known until events of a group are lost. */
struct current {
	struct ky_track *track; /* NULL: not known */
	uint64_t n_group_losses;
};

/* Columns of the events of one part. */
struct block {
	struct ky_buf gaps, classes, tracks, lines;
	uint64_t first, n;
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
	struct ky_htab async;
	struct ky_format format;
	struct block block;
	KY_VEC(struct loss) losses;
	struct gaps group_gaps, stream_gaps;
	KY_VEC(int64_t) cuts; /* by number of a loss: its begin */
	uint64_t n_group_losses;
	int64_t gap_ns; /* the latest of all: asynchronous spans may pass through any stream */
	KY_VEC(uint64_t) blocks; /* of each part: number of its first event, and their number */
	struct ky_htab flows, threads;
	struct ky_buf flow_gaps, flow_names, flow_numbers, flow_tracks;
	int64_t begin_ns, end_ns; /* of the events, since 1970 */
	int64_t origin_ns;	  /* times are relative to it */
	int64_t block_ns, flow_ns, last_ns;
	uint64_t n, n_listed, n_total, n_steps;
	uint32_t n_flows;
	uint64_t text_left; /* bytes that events may still have */
	uint64_t n_long;    /* events whose text was left out */
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

/* Finds or makes the losses of a group or a stream. NULL: no memory. */
static struct gap *get_gap(struct report *r, struct gaps *g, size_t number)
{
	while (g->n <= number) {
		if (ky_vec_add(g, (struct gap){0}) < 0) {
			r->error = -ENOMEM;
			return NULL;
		}
	}
	return &g->v[number];
}

static void deinit_gaps(struct gaps *g)
{
	for (size_t i = 0; i < g->n; i++)
		ky_vec_deinit(&g->v[i].losses);
	ky_vec_deinit(g);
}

/* Returns the number of the first loss of a group or a stream from a number on; or SIZE_MAX. */
static size_t first_loss(const struct gaps *g, size_t number, size_t from)
{
	const struct gap *gap = number < g->n ? &g->v[number] : NULL;
	size_t i;

	ky_bisect(i, gap ? gap->losses.n : 0, k, gap->losses.v[k] < from);
	return gap && i < gap->losses.n ? gap->losses.v[i] : SIZE_MAX;
}

/*
 * Cuts what was open in the track when records were lost since it was used last: an end behind them
 * may not belong to a begin before them. All tracks would be too many to do so at each loss.
 */
static struct ky_track *apply_losses(struct report *r, struct ky_track *k)
{
	size_t from = k ? k->n_losses : r->cuts.n, first = SIZE_MAX, of_state = SIZE_MAX;

	if (from == r->cuts.n)
		return k;
	if (k->kind == KY_TRACK_ASYNC)
		first = from;
	else if (k->kind == KY_TRACK_THREAD || k->kind == KY_TRACK_CPU)
		first = KY_MIN(first_loss(&r->group_gaps, k->group, from),
			first_loss(&r->stream_gaps, k->stream, from));
	if (k->state)
		of_state = first_loss(&r->group_gaps, k->state_group, from);
	if (first != SIZE_MAX)
		ky_track_cut(&r->tracks, k, r->cuts.v[first]);
	if (of_state != SIZE_MAX)
		ky_track_set_state(&r->tracks, k, 0, KY_MAX(r->cuts.v[of_state], k->state_ns));
	k->n_losses = r->cuts.n;
	return k;
}

static struct ky_track *get_track(
	struct report *r, enum ky_track_kind kind, uint32_t host, int64_t pid, int64_t id)
{
	return apply_losses(r, ky_tracks_get(&r->tracks, kind, host, pid, id));
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
	       r->current[cpu].n_group_losses == r->n_group_losses;
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
	if (tid < 0 && is_current_known(r, cpu))
		return apply_losses(r, r->current[cpu].track);
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
	const struct gap *of_group = get_gap(r, &r->group_gaps, e->group);
	struct gap *of_stream = get_gap(r, &r->stream_gaps, e->stream);

	if (!of_group || !of_stream)
		return;
	of_stream->track = k->number + 1;
	k->n_events++;
	k->last_ns = ns;
	k->stream = e->stream;
	k->group = e->group;
	k->gap_ns = KY_MAX(k->gap_ns, KY_MAX(of_group->until_ns, of_stream->until_ns));
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

static uint32_t hash_async(uint32_t name, uint64_t id)
{
	const uint64_t key[] = {name, id};

	return ky_hash(key, sizeof(key));
}

/* The newest one. */
static struct async_slice *find_async(struct report *r, uint32_t name, uint64_t id)
{
	for (struct ky_hnode *n = ky_htab_first(&r->async, hash_async(name, id)); n;
		n = ky_htab_next(n)) {
		struct async_slice *a = ky_container_of(n, struct async_slice, node);

		if (a->name == name && a->id == id)
			return a;
	}
	return NULL;
}

static void begin_async(struct report *r, const struct ky_source_event *e, int64_t pid, int64_t ns)
{
	struct async_slice *a = calloc(1, sizeof(*a));
	uint64_t id = ky_source_id(e);
	struct async_slice *below = find_async(r, e->class->base, id);
	struct ky_track *k = get_track(r, KY_TRACK_ASYNC, e->host, pid, 0);

	if (!a || !k || ky_htab_add(&r->async, &a->node, hash_async(e->class->base, id)) < 0) {
		free(a);
		r->error = -ENOMEM;
		return;
	}
	if (below)
		ky_htab_remove(&r->async, &below->node);
	a->below = below;
	a->name = e->class->base;
	a->id = id;
	a->track = k;
	k->last_ns = ns;
	k->group = e->group;
	k->gap_ns = r->gap_ns;
	a->lane = ky_track_open_lane(&r->tracks, k, a->name, ns);
}

static void end_async(struct report *r, const struct ky_source_event *e, int64_t ns)
{
	uint64_t id = ky_source_id(e);
	struct async_slice *a = find_async(r, e->class->base, id);

	if (!a)
		return;
	ky_track_end_at(&r->tracks, a->track, a->lane, ns, 0);
	a->track->last_ns = ns;
	ky_htab_remove(&r->async, &a->node);
	if (a->below) /* in the room that it leaves */
		ky_htab_add(&r->async, &a->below->node, hash_async(a->name, id));
	free(a);
}

static void drop_async(struct report *r)
{
	struct async_slice *a, *below;
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&r->async, i, n, tmp)
	{
		for (a = ky_container_of(n, struct async_slice, node); a; a = below) {
			below = a->below;
			free(a);
		}
	}
	ky_htab_deinit(&r->async);
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
		r->current[cpu] = (struct current){k, r->n_group_losses};
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

static void add_loss(struct report *r, const struct ky_source_event *e, int64_t track)
{
	int64_t from = clamp_time(r, e->begin_ns), to = clamp_time(r, e->ns);
	struct loss l = {from, to, e->item ? e->item->lost.n : 0, track};

	if (to < from || e->begin_ns > r->end_ns || e->ns < r->begin_ns)
		return;
	if (r->losses.n == MAX_LOSSES) {
		struct loss *last = &r->losses.v[r->losses.n - 1];

		last->from_ns = KY_MIN(last->from_ns, from);
		last->to_ns = KY_MAX(last->to_ns, to);
		last->n += l.n;
		last->track = -1;
	} else if (ky_vec_add(&r->losses, l) < 0) {
		r->error = -ENOMEM;
	}
}

/* Records of a stream are missing. A thread's own stream concerns its thread only. */
static void note_loss(struct report *r, const struct ky_source_event *e)
{
	int64_t until_ns = clamp_time(r, e->ns);
	struct gap *gap = e->is_of_thread ? get_gap(r, &r->stream_gaps, e->stream)
					  : get_gap(r, &r->group_gaps, e->group);

	if (!gap || ky_vec_add(&gap->losses, r->cuts.n) < 0 ||
		ky_vec_add(&r->cuts, clamp_time(r, e->begin_ns)) < 0) {
		r->error = -ENOMEM;
		return;
	}
	gap->until_ns = KY_MAX(gap->until_ns, until_ns);
	r->n_group_losses += !e->is_of_thread;
	r->gap_ns = KY_MAX(r->gap_ns, until_ns);
	drop_async(r);
	add_loss(r, e, (int64_t)gap->track - 1);
}

static void add_counter(
	struct report *r, const struct ky_source_event *e, const struct ky_field *field, int64_t ns)
{
	struct ky_fact fact = ky_source_fact(r->source, e, field);
	double value = fact.type == KY_FACT_INT ? (double)fact.number : fact.real;
	struct ky_track *k = ky_tracks_get(&r->tracks, KY_TRACK_COUNTER, e->host,
		ky_source_number(e, KY_FIELD_PID, -1), e->class->name);

	if (!k || (fact.type != KY_FACT_INT && fact.type != KY_FACT_REAL))
		return;
	ky_column_put(&k->times, (uint64_t)(ns - k->last_ns));
	ky_buf_append(&k->values, &value, sizeof(value));
	k->last_ns = ns;
	k->n_events++;
}

/* Returns the number of a flow, which is new or known. */
static uint32_t number_of_flow(struct report *r, uint32_t stem, uint64_t id)
{
	const uint64_t key[] = {stem, id};
	uint32_t hash = ky_hash(key, sizeof(key));
	struct flow *f;

	for (struct ky_hnode *n = ky_htab_first(&r->flows, hash); n; n = ky_htab_next(n)) {
		f = ky_container_of(n, struct flow, node);
		if (f->stem == stem && f->id == id)
			return f->number;
	}
	f = malloc(sizeof(*f));
	if (!f || ky_htab_add(&r->flows, &f->node, hash) < 0) {
		free(f);
		r->error = -ENOMEM;
		return 0;
	}
	f->stem = stem;
	f->id = id;
	return f->number = r->n_flows++;
}

static void drop_known(struct report *r)
{
	ky_htab_free_all(&r->threads, struct known_thread, node);
	ky_htab_free_all(&r->flows, struct flow, node);
}

static void add_flow(struct report *r, const struct ky_source_event *e, const struct meaning *m,
	const struct ky_track *k, int64_t ns)
{
	uint64_t id = ky_source_bits(e, m->flow);

	ky_column_put(&r->flow_gaps, (uint64_t)(ns - r->flow_ns));
	ky_column_put(&r->flow_names, m->name);
	ky_column_put(&r->flow_numbers, number_of_flow(r, m->stem, id));
	ky_column_put(&r->flow_tracks, k->number);
	r->flow_ns = ns;
	r->n_steps++;
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

static void flush_block(struct report *r)
{
	struct block *b = &r->block;
	struct ky_buf *const columns[] = {&b->gaps, &b->classes, &b->tracks};
	size_t number = r->blocks.n / 2;
	struct ky_buf part = {0};

	if (!b->n)
		return;
	for (size_t i = 0; i < KY_ARRAY_SIZE(columns); i++)
		ky_column_put(&part, columns[i]->len);
	for (size_t i = 0; i < KY_ARRAY_SIZE(columns); i++) {
		ky_buf_append(&part, columns[i]->data, columns[i]->len);
		if (columns[i]->error)
			part.error = columns[i]->error;
		columns[i]->len = 0;
	}
	ky_parts_add(r->parts, "e", number, &part);
	ky_parts_add(r->parts, "p", number, &b->lines);
	if (ky_vec_add(&r->blocks, b->first) < 0 || ky_vec_add(&r->blocks, b->n) < 0)
		r->error = -ENOMEM;
	b->n = 0;
}

/* Returns true for the events that are listed: all, or the first half and the last. */
static bool is_listed(const struct report *r, uint64_t i)
{
	uint64_t half = r->o->max_events / 2;

	return r->n_total <= r->o->max_events || i < half || i >= r->n_total - half;
}

/* Adds the fields of an event, unless they have too much text. */
static void put_line(struct report *r, const struct ky_item *item)
{
	struct ky_buf *b = &r->block.lines;
	size_t begin = b->len;

	r->text_left += item->bits / 8 * TEXT_PER_BYTE;
	b->max = begin + KY_MIN(r->text_left, LINE_MAX);
	ky_format_fields(&r->format, b, item);
	b->max = 0;
	if (b->error == -EMSGSIZE) {
		b->error = 0;
		b->len = begin;
		ky_buf_puts(b, "(too much text: left out)");
		r->n_long++;
	}
	r->text_left -= KY_MIN(r->text_left, (uint64_t)(b->len - begin));
	ky_buf_append(b, "\n", 1);
}

static void list_event(
	struct report *r, const struct ky_source_event *e, const struct ky_track *k, int64_t ns)
{
	struct block *b = &r->block;

	if (b->n == BLOCK || b->lines.len >= BLOCK_TEXT || (b->n && b->first + b->n != r->n))
		flush_block(r);
	if (!b->n) {
		b->first = r->n;
		r->block_ns = 0;
	}
	ky_column_put(&b->gaps, (uint64_t)KY_MAX(ns - r->block_ns, 0));
	ky_column_put(&b->classes, meaning_of(r, e->class)->name);
	ky_column_put(&b->tracks, k->number);
	put_line(r, e->item);
	r->block_ns = ns;
	b->n++;
	r->n_listed++;
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
		list_event(r, e, k, ns);
	r->n++;
}

/* A thread keeps its state until the last event of the trace. */
static void end_states(struct report *r)
{
	for (size_t i = 0; i < r->tracks.all.n; i++) {
		struct ky_track *k = apply_losses(r, r->tracks.all.v[i]);

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
	flush_block(r);
	end_states(r);
	ky_tracks_finish(&r->tracks);
	return n ? n : r->error ? r->error : r->tracks.error;
}

/* --- writing --- */

static void put_tracks(struct report *r)
{
	for (size_t i = 0; i < r->tracks.all.n; i++) {
		struct ky_track *k = r->tracks.all.v[i];
		struct ky_buf part = {0};

		if (k->kind == KY_TRACK_COUNTER) {
			ky_column_put(&part, k->times.len);
			ky_buf_append(&part, k->times.data, k->times.len);
			ky_buf_append(&part, k->values.data, k->values.len);
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
	struct ky_buf *const columns[] = {
		&r->flow_gaps, &r->flow_names, &r->flow_numbers, &r->flow_tracks};
	struct ky_buf part = {0};

	if (!r->n_steps)
		return;
	for (size_t i = 0; i < KY_ARRAY_SIZE(columns); i++)
		ky_column_put(&part, columns[i]->len);
	for (size_t i = 0; i < KY_ARRAY_SIZE(columns); i++)
		ky_buf_append(&part, columns[i]->data, columns[i]->len);
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
	for (size_t i = 0; i < r->losses.n; i++) {
		const struct loss *l = &r->losses.v[i];

		ky_buf_printf(b, "%s[%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRId64 "]",
			i ? "," : "", l->from_ns, l->to_ns, l->n, l->track);
	}
	ky_buf_puts(b, "],\"blocks\":[");
	for (size_t i = 0; i < r->blocks.n; i++)
		ky_buf_printf(b, "%s%" PRIu64, i ? "," : "", r->blocks.v[i]);
	ky_buf_puts(b, "]");
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
		",\"flows\":%" PRIu64,
		r->origin_ns, r->begin_ns - r->origin_ns, r->end_ns - r->origin_ns,
		r->is_truncated ? "true" : "false", r->n, r->n_listed, r->tracks.n_slices,
		r->tracks.coarse_ns, r->tracks.n_too_deep, t->n_discarded, t->n_packets_lost,
		t->n_corrupt, r->n_steps);
	if (r->o->findings) {
		ky_buf_puts(&b, ",\"findings\":");
		put_text(&b, r->o->findings);
	}
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
	int e, finished;

	r->parts = ky_parts_new(r->to);
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
	ret->n_listed = r->n_listed;
	ret->n_long = r->n_long;
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
	struct ky_buf *const bufs[] = {&r->block.gaps, &r->block.classes, &r->block.tracks,
		&r->block.lines, &r->flow_gaps, &r->flow_names, &r->flow_numbers, &r->flow_tracks};

	for (size_t i = 0; i < KY_ARRAY_SIZE(bufs); i++)
		ky_buf_deinit(bufs[i]);
	drop_async(r);
	drop_known(r);
	ky_vec_deinit(&r->losses);
	deinit_gaps(&r->group_gaps);
	deinit_gaps(&r->stream_gaps);
	ky_vec_deinit(&r->cuts);
	ky_vec_deinit(&r->blocks);
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
	r->format.safe = true;
	r->format.symbols = o->symbols;
	r->text_left = TEXT_MIN;
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
