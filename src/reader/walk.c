/* SPDX-License-Identifier: MIT */
#include "reader/walk.h"

#include "base/bisect.h"
#include "reader/walk-packets.h"

/* --- events --- */

/* Counts the places where time goes back, each up to the next event that is later than all. */
static __attribute__((noinline)) void note_back(struct ky_walk *w)
{
	w->n_back += !w->is_back;
	w->is_back = true;
	w->is_doubtful = true;
}

static inline void count_event(struct ky_walk *w)
{
	if (w->class->clock) {
		if (ky_unlikely(!w->last_class || w->clock < w->min_clock))
			w->min_clock = w->clock;
		if (ky_likely(w->clock > w->max_clock)) {
			w->max_clock = w->clock;
			w->is_back = false;
		} else if (ky_unlikely(w->clock < w->max_clock)) {
			note_back(w);
		}
		w->last_class = w->class;
	}
	w->n_events++;
	w->counts[w->event->index]++;
}

static inline int decode_scope(struct ky_walk *w, const struct ky_node *node,
	struct ky_values *values, struct ky_scope_values *scope, bool steps)
{
	int r;

	if (!values)
		return !node		      ? 0
		       : steps && node->steps ? ky_decode_steps(&w->d, node)
					      : ky_decode(&w->d, node, NULL);
	scope->first = values->n;
	scope->node = node && node->is_shown ? node : NULL;
	scope->data = w->d.data;
	scope->bytes = NULL;
	scope->n = 0;
	if (!node)
		return 0;
	if (steps && node->steps) {
		scope->bytes = w->d.data + ky_align_up(w->d.pos, node->align) / 8;
		scope->bytes_end = w->d.data + w->d.end / 8;
		return ky_decode_steps(&w->d, node);
	}
	r = ky_decode(&w->d, node, values);
	scope->n = values->n - scope->first;
	return r;
}

/* The packet's are the same for all of its events. */
static int copy_packet_context(
	const struct ky_walk *w, struct ky_values *values, struct ky_scope_values *scope)
{
	const struct ky_node *node = w->class->packet_context;
	const struct ky_packet *head = w->packet->head;

	scope->node = node && node->is_shown ? node : NULL;
	scope->data = head ? head->data + (w->packet_offset - head->at) : w->d.data;
	scope->bytes = NULL;
	scope->first = values->n;
	scope->n = scope->node ? w->packet_context.n : 0;
	return ky_values_add(values, w->packet_context.v, scope->n);
}

static int decode_body(
	struct ky_walk *w, struct ky_values *values, struct ky_scope_values *scopes, bool steps)
{
	struct ky_scope_values unwanted[KY_N_SCOPES];
	size_t n_before = values ? values->n : 0;
	int r = 0;

	if (!scopes)
		scopes = unwanted;
	if (values) {
		values->max = n_before + KY_MAX_VALUES;
		r = copy_packet_context(w, values, &scopes[KY_SCOPE_PACKET_CONTEXT]);
	}
	if (!r)
		r = decode_scope(
			w, w->class->event_context, values, &scopes[KY_SCOPE_EVENT_CONTEXT], steps);
	if (!r)
		r = decode_scope(
			w, w->event->context, values, &scopes[KY_SCOPE_SPECIFIC_CONTEXT], steps);
	if (!r)
		r = decode_scope(w, w->event->fields, values, &scopes[KY_SCOPE_FIELDS], steps);
	if (r && values)
		values->n = n_before;
	return r;
}

static inline bool read_record_head(struct ky_walk *w, uint64_t *ret_id)
{
	const struct ky_stream_class *c = w->class;
	struct ky_decoder *d = &w->d;

	d->have = 0;
	if (c->short_head.bits && ky_decode_short_head(d, &c->short_head, ret_id))
		return true;
	if (c->event_header && ky_decode(d, c->event_header, NULL) < 0)
		return false;
	*ret_id = ky_has_role(d, KY_ROLE_EVENT_ID) ? d->role[KY_ROLE_EVENT_ID] : c->default_id;
	return true;
}

/* Reads the head of the record at w->record; false if it is none. */
static inline bool read_event_here(struct ky_walk *w)
{
	uint64_t before = w->d.clock, id;

	w->d.pos = w->record;
	if (ky_unlikely(!read_record_head(w, &id))) {
		w->d.clock = before;
		return false;
	}
	w->event = ky_stream_class_event(w->class, id);
	w->clock_before = before;
	w->clock = w->d.clock;
	if (ky_unlikely(w->clock < before))
		w->is_doubtful = true;
	w->body = ky_align_up(w->d.pos, 8);
	return w->event;
}

/* The same, from the next piece of the packet if it is not in this one. */
static inline bool read_event(struct ky_walk *w)
{
	while (!read_event_here(w)) {
		if (!ky_walk_fetch_piece(w, w->record))
			return false;
	}
	return true;
}

/* Steps over the body of the current record, if its size is known and it is there. */
static inline bool step_over(struct ky_walk *w)
{
	struct ky_decoder *d = &w->d;

	if (w->event->body_bits > d->end - d->pos || d->pos % 8)
		return false;
	d->pos += w->event->body_bits;
	return true;
}

/*
 * Decodes the body of the current record, in a larger piece of the packet if its end is not there.
 */
static int decode_record(
	struct ky_walk *w, struct ky_values *values, struct ky_scope_values *scopes, bool steps)
{
	struct ky_decoder *d = &w->d;

	if (!values && step_over(w))
		return 0;
	for (;;) {
		int r = decode_body(w, values, scopes, steps);

		if (r != -EBADMSG || !ky_walk_fetch_piece(w, w->record))
			return r;
		d->clock = w->clock_before;
		if (!read_event(w))
			return -EBADMSG;
	}
}

int ky_walk_decode(struct ky_walk *w, struct ky_values *values,
	struct ky_scope_values scopes[KY_N_SCOPES], bool steps)
{
	int r = decode_record(w, values, scopes, steps);

	/* A record of no bits at all would never end. */
	if (!r && w->d.pos == w->record)
		r = -EBADMSG;
	if (r == -EBADMSG) {
		w->d.clock = w->clock;
		ky_walk_leave_damaged(w);
	} else if (!r && w->in_range) {
		count_event(w);
	}
	return r;
}

/*
 * Moves the clock to the end of the packet, where the next one begins if it does not say. An end
 * that lies before the last event, as some tracers write it, does not count; nor does one of few
 * bits, because it is not known how often these began anew.
 */
static void end_clock(struct ky_walk *w)
{
	if (w->class->end_bits == 64 && w->end_clock > w->d.clock)
		w->d.clock = w->end_clock;
}

/* Reads the head of the next record; false when the packet holds no more. */
static inline bool open_record(struct ky_walk *w)
{
	const struct ky_node *header = w->class->event_header;
	struct ky_decoder *d = &w->d;
	uint64_t at = header ? ky_align_up(d->pos, header->align) : d->pos;
	uint64_t before = d->clock;

	if (at >= d->end && !ky_walk_fetch_piece(w, d->pos)) {
		w->in_packet = false;
		end_clock(w);
		if (w->is_cut)
			ky_walk_leave_damaged(w);
		return false;
	}
	w->record = d->pos;
	if (!read_event(w)) {
		d->clock = before;
		ky_walk_leave_damaged(w);
		return false;
	}
	return true;
}

/* True if the slice ends before the record at ns. */
static bool is_behind_slice(const struct ky_walk *w, int64_t ns)
{
	return w->select->has_slice_end && ns >= w->select->slice_end_ns && ky_walk_may_end_here(w);
}

/* True if the record at ns counts: it is in the slice, and in the range of time. */
static inline bool is_in_range(struct ky_walk *w, int64_t ns)
{
	const struct ky_select *select = w->select;

	if (ky_unlikely(w->before_slice)) {
		if (ns < select->slice_begin_ns)
			return false;
		w->before_slice = false;
	}
	return !w->class->clock || (ns >= select->from_ns && ns <= select->to_ns);
}

/* Steps over the current event, which is counted. False if it is damaged. */
static inline bool skip_event(struct ky_walk *w)
{
	if (ky_unlikely(!step_over(w) || w->d.pos == w->record))
		return ky_walk_decode(w, NULL, NULL, true) == 0;
	if (w->in_range)
		count_event(w);
	return true;
}

/* Checks the limits of time. Returns false if the slice ends before the current event. */
static bool check_time(struct ky_walk *w)
{
	int64_t ns = ky_stream_class_ns(w->class, w->clock);

	if (is_behind_slice(w, ns)) {
		ky_walk_end(w);
		return false;
	}
	w->in_range = is_in_range(w, ns);
	w->had_event = true;
	w->at_ns = ns;
	return true;
}

/* Goes to the next event of the packet that is wanted; false when it holds no more. */
static bool next_event(struct ky_walk *w)
{
	const uint8_t *wanted = w->select->wanted;
	bool is_limited = w->is_limited;

	while (open_record(w)) {
		if (is_limited && !check_time(w))
			return false;
		if (w->in_range && (!wanted || wanted[w->event->index])) {
			w->next = KY_ITEM_EVENT;
			w->next_ns = is_limited ? w->at_ns : ky_stream_class_ns(w->class, w->clock);
			return true;
		}
		if (!skip_event(w))
			return false;
	}
	return false;
}

/* Goes to the loss that is to be reported next, if there is one. */
static void next_loss(struct ky_walk *w)
{
	const struct ky_loss *lost;

	w->next = ky_losses_next(&w->losses);
	lost = ky_losses_of(&w->losses, w->next);
	if (lost)
		w->next_ns = lost->begin_ns;
}

/* True if packets before or behind the one of this time may overlap it. */
static bool is_in_disorder(const struct ky_stream *s, int64_t ns)
{
	const struct ky_stream_class *class = s->files[0].class;

	return s->disorder_end && ns >= ky_stream_class_ns(class, s->disorder_begin) &&
	       ns <= ky_stream_class_ns(class, s->disorder_end);
}

/* The last event was recorded after what is wanted. */
static bool is_behind_end(const struct ky_walk *w)
{
	const struct ky_stream *s = w->stream;
	int64_t ns = w->select->to_ns;

	if (is_in_disorder(s, ns))
		ns = ky_stream_class_ns(s->files[0].class, s->disorder_end);
	return w->had_event && w->at_ns > ns;
}

/*
 * Looks at the head of the next packet. Some tracers write packets that begin before the last event
 * of the one before, and a damaged time may be too late. Behind a damaged head, there may be more.
 */
static bool begins_in_range(struct ky_walk *w)
{
	uint64_t clock = w->d.clock, n_empty = w->d.n_empty;
	struct ky_packet_head p = {0};
	int r = ky_walk_peek(w, w->file, w->offset, &p);
	int64_t ns = r ? INT64_MAX : ky_stream_class_ns(p.class, w->d.clock);

	w->d.clock = clock;
	w->d.n_empty = n_empty;
	return r ? p.fault != KY_HEAD_UNREADABLE : ns <= w->select->to_ns;
}

/* Opens the next packet or the next file. Returns false at the end of the last file. */
static bool open_next(struct ky_walk *w)
{
	const struct ky_file *f = ky_walk_file(w);
	bool has_packet = w->offset < f->size, has_file = w->file + 1 < w->stream->n_files;

	if (is_behind_end(w) && (has_packet ? !begins_in_range(w) : !has_file)) {
		ky_walk_end(w);
	} else if (has_packet) {
		ky_walk_open_packet(w);
	} else {
		ky_walk_drop_packet(w);
		if (!has_file) {
			w->is_doubtful |= w->end && !w->met_end;
			return false;
		}
		w->file++;
		w->offset = ky_walk_file(w)->first;
		w->is_wide = false;
		w->file_error = 0;
	}
	return true;
}

void ky_walk_advance(struct ky_walk *w)
{
	struct ky_loss *reported = ky_losses_of(&w->losses, w->next);

	if (reported)
		reported->n = 0;
	w->next = KY_ITEM_NONE;
	while (!w->error && !w->is_ended) {
		if (ky_unlikely(ky_losses_any(&w->losses))) {
			next_loss(w);
			return;
		}
		if (w->in_packet && next_event(w))
			return;
		if (!w->in_packet && !w->is_ended && !open_next(w))
			break;
	}
	ky_losses_end_damage(&w->losses, INT64_MAX);
	next_loss(w);
}

void ky_walk_refresh(struct ky_walk *w)
{
	const struct ky_layout *layout = &ky_walk_file(w)->trace->layout;
	bool has_event = w->next == KY_ITEM_EVENT;
	uint64_t bit = w->window * 8 + (has_event ? w->record : w->d.pos);
	uint64_t clock = has_event ? w->clock_before : w->d.clock;
	int r;

	w->n_budgets = w->file; /* the file may have grown */
	if (!w->in_packet || w->class == ky_layout_stream(layout, w->class->id))
		return;
	r = ky_walk_read_packet_again(w);
	if (r == -ENOMEM)
		w->error = r;
	if (r == -ENOMEM)
		return;
	ky_walk_go_to_bit(w, bit);
	w->d.clock = clock;
	if (!r && (!has_event || read_event(w)))
		return;
	ky_walk_leave_damaged(w);
	if (has_event)
		ky_walk_advance(w);
}

bool ky_walk_times(const struct ky_walk *w, int64_t *ret_begin_ns, int64_t *ret_end_ns)
{
	if (!w->last_class)
		return false;
	*ret_begin_ns = ky_stream_class_ns(w->last_class, w->min_clock);
	*ret_end_ns = ky_stream_class_ns(w->last_class, w->max_clock);
	return true;
}

const struct ky_loss *ky_walk_lost(const struct ky_walk *w)
{
	return ky_losses_of(&((struct ky_walk *)w)->losses, w->next);
}

/* --- begin and end --- */

/* Reads the head of the packet before the first one, as the base of the counts of losses. */
static void recall_packet(struct ky_walk *w, const struct ky_place *place)
{
	struct ky_packet_head p;

	if (place->has_before && !ky_walk_peek(w, place->before_file, place->before, &p)) {
		w->class = p.class;
		ky_losses_add_packet(&w->losses, w->class, &w->d, false);
	}
	ky_walk_drop_packet(w);
	if (w->losses.discarded.is_known)
		w->losses.discarded.last = place->discarded;
	w->file = place->file;
	w->offset = place->offset;
}

/* The last place that begins before ns; the first place if none does. */
static size_t find_place(const struct ky_stream *s, int64_t ns)
{
	size_t first;

	ky_bisect(first, s->n_places, k, ky_place_ns(s, &s->places[k]) < ns);
	return first ? first - 1 : 0;
}

/*
 * Looks the ends of the slice up in the index. A stream whose records have no times is in the first
 * slice.
 */
static void find_ends(struct ky_walk *w)
{
	const struct ky_select *select = w->select;
	const struct ky_stream *s = w->stream;
	int64_t begin_ns = select->from_ns;

	if (!s->n_places) {
		if (select->has_slice_begin)
			ky_walk_end(w);
		return;
	}
	if (is_in_disorder(s, begin_ns))
		begin_ns = ky_stream_class_ns(s->files[0].class, s->disorder_begin);
	w->before_slice = select->has_slice_begin;
	if (select->has_slice_begin)
		begin_ns = KY_MAX(begin_ns, select->slice_begin_ns);
	if (select->has_slice_end)
		w->end = &s->places[find_place(s, select->slice_end_ns)];
	if (begin_ns > INT64_MIN)
		recall_packet(w, &s->places[find_place(s, begin_ns)]);
}

void ky_walk_init(struct ky_walk *w, const struct ky_stream *s, const struct ky_select *select,
	struct ky_packets *packets, uint64_t *counts)
{
	const struct ky_file *f = &s->files[0];

	*w = (struct ky_walk){.stream = s, .select = select, .packets = packets, .counts = counts};
	w->next = KY_ITEM_UNOPENED;
	w->next_ns = INT64_MIN;
	find_ends(w);
	if (f->class && f->class->clock && !w->file && !w->offset)
		w->next_ns = ky_stream_class_ns(f->class, f->begin);
}

void ky_walk_deinit(struct ky_walk *w)
{
	ky_walk_drop_packet(w);
	free(w->d.slots);
	free(w->packet_context.v);
	ky_met_packets_deinit(&w->met);
	*w = (struct ky_walk){0};
}
