/* SPDX-License-Identifier: MIT */
/*
 * A heap of the streams' next items merges the streams. A stream whose first packet was not read
 * yet is in the heap with the begin of that packet. So only packets that overlap in time need
 * buffers.
 */
#include "reader/cursor.h"

#include "reader/walk.h"

#include <stdarg.h>

#define MAX_REPORTS 10 /* of streams with one kind of fault */

enum fault {
	FAULT_DAMAGED,
	FAULT_TRUNCATED,
	FAULT_UNREADABLE,
	FAULT_MENDED,
	FAULT_REPEATED,
	FAULT_BACK,
	N_FAULTS,
};

struct ky_cursor {
	const struct ky_trace_reader *reader; /* borrowed */
	struct ky_trace_reader_options options;
	struct ky_select select;
	int64_t last_ns;	/* later items are left for later calls */
	struct ky_walk **walks; /* owned, by rank */
	struct ky_walk **heap;	/* owned; the first is the next one */
	size_t n_walks, n_heap;
	bool is_handed_out;	   /* the first one's item */
	size_t n_faults[N_FAULTS]; /* streams that have one */
	uint64_t *counts;	   /* owned: of events, by the index of their class */
	size_t n_counts;
	bool (*pass)(void *arg, const struct ky_item *item);
	void *pass_arg;
	/* owned: of the event that is passed to the filter, if the caller wants none */
	struct ky_values filtered;
	struct ky_packets own_packets;
	struct ky_packets *packets; /* borrowed, or its own */
};

static bool is_before(const struct ky_walk *x, const struct ky_walk *y)
{
	return x->next_ns != y->next_ns ? x->next_ns < y->next_ns
					: x->stream->rank < y->stream->rank;
}

static void sift_down(struct ky_cursor *c, size_t i)
{
	struct ky_walk *w = c->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < c->n_heap && is_before(c->heap[child + 1], c->heap[child]))
			child++;
		if (child >= c->n_heap || is_before(w, c->heap[child]))
			break;
		c->heap[i] = c->heap[child];
		i = child;
	}
	c->heap[i] = w;
}

static void KY_PRINTF(2, 3) send_warning(const struct ky_cursor *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	ky_warn_to(&c->options, fmt, ap);
	va_end(ap);
}

/* Returns true for the first MAX_REPORTS faults of a kind, which are reported one by one. */
static bool is_among_first(struct ky_cursor *c, enum fault fault)
{
	return c->n_faults[fault]++ < MAX_REPORTS;
}

/* Reports a file that has no packet at all. */
static void report_foreign(const struct ky_cursor *c, const struct ky_file *f)
{
	static const char *const texts[] = {
		[KY_HEAD_UNREADABLE] = "its first packet's head contradicts itself",
		[KY_HEAD_MAGIC] = "it does not begin with the magic number of CTF",
		[KY_HEAD_UUID] = "its first packet has another UUID than the metadata",
		[KY_HEAD_CLASS] =
			"its first packet is of a stream class that the metadata does not have"};

	send_warning(c, "%s is no stream of this trace: %s", f->path, texts[f->fault]);
}

static void report_damage(struct ky_cursor *c, const struct ky_walk *w)
{
	const char *path = w->stream->files[0].path;

	if (w->n_corrupt && !w->class && is_among_first(c, FAULT_DAMAGED))
		report_foreign(c, &w->stream->files[0]);
	else if (w->n_corrupt && w->class && is_among_first(c, FAULT_DAMAGED))
		send_warning(c, "%s is damaged in %llu place%s: events are missing", path,
			(unsigned long long)w->n_corrupt, w->n_corrupt == 1 ? "" : "s");
	if (w->is_truncated && is_among_first(c, FAULT_TRUNCATED))
		send_warning(
			c, "%s ends within a packet: the events before that place were read", path);
	if (w->n_mended && is_among_first(c, FAULT_MENDED))
		send_warning(c,
			"%s has a damaged begin of %llu packet%s: the end before it is used", path,
			(unsigned long long)w->n_mended, w->n_mended == 1 ? "" : "s");
	if (w->n_repeated && is_among_first(c, FAULT_REPEATED))
		send_warning(c, "%s has %llu packet%s twice: each is read once", path,
			(unsigned long long)w->n_repeated, w->n_repeated == 1 ? "" : "s");
	if (w->n_back && is_among_first(c, FAULT_BACK))
		send_warning(c,
			"the times of %s go back in %llu place%s: its events are not in order",
			path, (unsigned long long)w->n_back, w->n_back == 1 ? "" : "s");
	if (!w->read_error || !is_among_first(c, FAULT_UNREADABLE))
		return;
	if (w->read_error == -ENODATA)
		send_warning(c, "%s was shortened while it was read: events are missing", path);
	else
		send_warning(c, "cannot read %s: %s: events are missing", path,
			strerror(-w->read_error));
}

/* Reports the number of the other faults. */
static void report_others(const struct ky_cursor *c)
{
	static const char *const texts[N_FAULTS] = {[FAULT_DAMAGED] = "damaged",
		[FAULT_TRUNCATED] = "cut off within a packet",
		[FAULT_UNREADABLE] = "shortened or cannot be read",
		[FAULT_MENDED] = "damaged at the begin of packets",
		[FAULT_REPEATED] = "partly twice there",
		[FAULT_BACK] = "not in the order of time"};

	for (size_t i = 0; i < N_FAULTS; i++) {
		if (c->n_faults[i] > MAX_REPORTS)
			send_warning(c, "%zu more stream%s %s %s", c->n_faults[i] - MAX_REPORTS,
				c->n_faults[i] == MAX_REPORTS + 1 ? "" : "s",
				c->n_faults[i] == MAX_REPORTS + 1 ? "is" : "are", texts[i]);
	}
}

/* Advances the heap's first stream. Removes it at its end. Returns 0 or -ENOMEM. */
static int advance_first(struct ky_cursor *c)
{
	struct ky_walk *w = c->heap[0];

	ky_walk_advance(w);
	if (!w->next) {
		report_damage(c, w);
		c->heap[0] = c->heap[--c->n_heap];
		if (!c->n_heap)
			report_others(c);
	}
	if (c->n_heap > 1)
		sift_down(c, 0);
	return w->error;
}

static void fill_item(struct ky_item *item, const struct ky_walk *w)
{
	const struct ky_stream *s = w->stream;

	item->kind = w->next;
	item->has_time = w->class->clock;
	item->ns = w->next_ns;
	item->stream = s;
	item->file = &s->files[KY_MIN(w->file, s->n_files - 1)];
	item->class = w->class;
	item->trace = item->file->trace;
	item->packet = w->packet;
	if (w->next != KY_ITEM_EVENT) {
		item->has_time = item->has_time && w->class->begin_bits && w->class->end_bits;
		item->file = &s->files[0]; /* it names the stream */
		item->lost = *ky_walk_lost(w);
		return;
	}
	item->event = w->event;
	item->bits = w->d.pos - w->record;
	item->body = w->body;
	item->d = &w->d;
}

/*
 * Decodes the next event, as its class is selected. Returns -EAGAIN if the filter rejects it, else
 * as ky_walk_decode.
 */
static int decode_event(
	struct ky_cursor *c, struct ky_walk *w, struct ky_item *item, struct ky_values *values)
{
	uint8_t want = c->select.wanted ? c->select.wanted[w->event->index]
					: KY_WANT_EVENT | KY_WANT_VALUES;
	size_t n_before;
	int e;

	if (!(want & KY_WANT_VALUES)) {
		values = NULL;
	} else if (!values && want & KY_WANT_FILTER) {
		values = &c->filtered;
		values->n = 0;
	}
	n_before = values ? values->n : 0;
	e = ky_walk_decode(
		w, values, item->scopes, (want & (KY_WANT_LINE | KY_WANT_FILTER)) == KY_WANT_LINE);
	item->values = values;
	if (e || !(want & KY_WANT_FILTER))
		return e;
	fill_item(item, w);
	if (c->pass(c->pass_arg, item))
		return 0;
	if (values)
		values->n = n_before;
	w->n_events--;
	c->counts[w->event->index]--;
	return -EAGAIN;
}

int ky_cursor_next(struct ky_cursor *c, struct ky_item *ret_item, struct ky_values *values)
{
	int e = c->is_handed_out ? advance_first(c) : 0;

	c->is_handed_out = false;
	while (!e && c->n_heap && c->heap[0]->next_ns <= c->last_ns) {
		struct ky_walk *w = c->heap[0];

		if (ky_unlikely(w->next == KY_ITEM_UNOPENED)) {
			e = advance_first(c);
			continue;
		}
		if (w->next == KY_ITEM_EVENT)
			e = decode_event(c, w, ret_item, values);
		if (!e) {
			fill_item(ret_item, w);
			c->is_handed_out = true;
			return 1;
		}
		if (e == -EBADMSG || e == -EAGAIN)
			e = advance_first(c);
	}
	return e;
}

/* Makes room for the counts of all classes. */
static int grow_counts(struct ky_cursor *c)
{
	size_t n = c->reader->n_classes + 1;
	uint64_t *counts = reallocarray(c->counts, n, sizeof(*counts));

	if (!counts)
		return -ENOMEM;
	memset(counts + c->n_counts, 0, (n - c->n_counts) * sizeof(*counts));
	c->counts = counts;
	c->n_counts = n;
	for (size_t i = 0; i < c->n_walks; i++)
		c->walks[i]->counts = counts;
	return 0;
}

static void sift_all(struct ky_cursor *c)
{
	for (size_t i = c->n_heap / 2; i-- > 0;)
		sift_down(c, i);
}

static bool is_selected(const struct ky_cursor *c, size_t stream)
{
	const struct ky_select *s = &c->select;

	return !s->streams || (stream < s->n_streams && s->streams[stream]);
}

/* Adds walks of streams that have none. */
static int add_walks(struct ky_cursor *c)
{
	size_t n = KY_MAX(c->reader->n_streams, (size_t)1);
	struct ky_walk **walks = reallocarray(c->walks, n, sizeof(struct ky_walk *));
	struct ky_walk **heap = reallocarray(c->heap, n, sizeof(struct ky_walk *));

	c->walks = walks ? walks : c->walks;
	c->heap = heap ? heap : c->heap;
	if (!walks || !heap)
		return -ENOMEM;
	for (; c->n_walks < c->reader->n_streams; c->n_walks++) {
		struct ky_walk *w = malloc(sizeof(*w));

		if (!w)
			return -ENOMEM;
		ky_walk_init(w, c->reader->streams[c->n_walks], &c->select, c->packets, c->counts);
		c->walks[c->n_walks] = w;
		if (is_selected(c, c->n_walks))
			c->heap[c->n_heap++] = w;
	}
	return 0;
}

int ky_cursor_open(struct ky_cursor **ret_cursor, const struct ky_trace_reader *r,
	const struct ky_select *select, const struct ky_trace_reader_options *options)
{
	struct ky_cursor *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->reader = r;
	c->select = *select;
	c->last_ns = INT64_MAX;
	c->packets = &c->own_packets;
	if (options)
		c->options = *options;
	if (grow_counts(c) || add_walks(c)) {
		ky_cursor_close(c);
		return -ENOMEM;
	}
	sift_all(c);
	*ret_cursor = c;
	return 0;
}

int ky_cursor_refresh(struct ky_cursor *c, const uint8_t *wanted)
{
	int e = grow_counts(c);

	c->select.wanted = wanted;
	if (!e && c->is_handed_out)
		e = advance_first(c);
	c->is_handed_out = false;
	if (!e)
		e = add_walks(c);
	c->n_heap = 0;
	for (size_t i = 0; i < c->n_walks && !e; i++) {
		struct ky_walk *w = c->walks[i];

		if (!is_selected(c, i))
			continue;
		ky_walk_refresh(w);
		if (!w->next)
			ky_walk_advance(w);
		if (w->next)
			c->heap[c->n_heap++] = w;
		e = w->error;
	}
	sift_all(c);
	return e;
}

/* Bytes of the stream before the walk's place. */
static uint64_t bytes_before(const struct ky_walk *w)
{
	uint64_t n = w->offset;

	for (size_t i = 0; i < w->file; i++)
		n += w->stream->files[i].size;
	return w->next ? n : w->stream->n_bytes;
}

uint64_t ky_cursor_progress(const struct ky_cursor *c, uint64_t *ret_total)
{
	uint64_t done = 0;

	*ret_total = 0;
	for (size_t i = 0; i < c->n_walks; i++) {
		if (!is_selected(c, i))
			continue;
		done += bytes_before(c->walks[i]);
		*ret_total += c->walks[i]->stream->n_bytes;
	}
	return done;
}

void ky_cursor_until(struct ky_cursor *c, int64_t ns)
{
	/* Times that are too large for a clock are INT64_MAX. */
	c->last_ns = ns == INT64_MAX ? ns : KY_MAX(ns, INT64_MIN + 1) - 1;
}

struct ky_cursor *ky_cursor_close(struct ky_cursor *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < c->n_walks; i++) {
		ky_walk_deinit(c->walks[i]);
		free(c->walks[i]);
	}
	ky_packets_deinit(&c->own_packets);
	free(c->walks);
	free(c->heap);
	free(c->counts);
	free(c->filtered.v);
	free(c);
	return NULL;
}

void ky_cursor_set_filter(
	struct ky_cursor *c, bool (*pass)(void *arg, const struct ky_item *item), void *arg)
{
	c->pass = pass;
	c->pass_arg = arg;
}

void ky_cursor_set_buffers(struct ky_cursor *c, struct ky_packets *packets)
{
	c->packets = packets;
	for (size_t i = 0; i < c->n_walks; i++)
		c->walks[i]->packets = packets;
}

void ky_cursor_unref(struct ky_cursor *c, struct ky_packet *p)
{
	ky_packet_unref(p, c->packets);
}

void ky_cursor_totals(const struct ky_cursor *c, struct ky_totals *ret_totals)
{
	struct ky_totals t = {0};

	for (size_t i = 0; i < c->n_walks; i++) {
		const struct ky_walk *w = c->walks[i];
		int64_t begin_ns, end_ns;

		if (ky_walk_times(w, &begin_ns, &end_ns)) {
			t.begin_ns = t.has_time ? KY_MIN(t.begin_ns, begin_ns) : begin_ns;
			t.end_ns = t.has_time ? KY_MAX(t.end_ns, end_ns) : end_ns;
			t.has_time = true;
		}
		t.n_events += w->n_events;
		t.n_discarded += w->losses.n_discarded;
		t.n_packets += w->n_packets;
		t.n_packets_lost += w->losses.n_packets_lost;
		t.n_corrupt += w->n_corrupt + (w->read_error != 0);
		t.n_truncated += w->is_truncated;
		t.is_doubtful |= w->is_doubtful || w->read_error;
	}
	*ret_totals = t;
}

const uint64_t *ky_cursor_counts(const struct ky_cursor *c)
{
	return c->counts;
}
