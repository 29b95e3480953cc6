/* SPDX-License-Identifier: MIT */
#include "export/ctf.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "export/out.h"
#include "reader/api.h"

#define MAGIC	    0xc1fc1fc1u
#define PACKET_SIZE (256u << 10) /* bytes of records, after which a packet ends */

/* A trace of the output. */
struct out_trace {
	const struct ky_trace *of; /* borrowed */
	char *dir;		   /* owned */
	struct ky_ctf_metadata metadata;
};

/* A stream file of the output, with its current packet. */
struct out_stream {
	struct out_trace *trace;
	const struct ky_stream_class *class;
	uint64_t instance;
	char *path;	       /* owned */
	struct ky_buf context; /* shown part of the packet's context, and the header's slots */
	struct ky_buf records;
	bool is_open; /* there is a packet; it may be empty */
	bool has_end; /* the packet lasts until end_ns at least: its end is that of a loss */
	enum ky_item_kind lost_kind; /* the loss that the packet was begun for */
	int64_t begin_ns, end_ns;
	int64_t last_ns;  /* the end of the packet before */
	bool had_packet;  /* last_ns holds */
	int64_t event_ns; /* of the last event */
	bool had_event;	  /* event_ns holds */
	bool is_cut;	  /* earlier packets are missing in the source, which begins at cut_ns */
	int64_t cut_ns;
	uint64_t n_discarded, seq;
	unsigned context_unused, unused; /* bits at the end of the context, of the last record */
};

struct writing {
	const struct ky_query *q;
	const char *dir;
	struct out_trace *traces; /* owned */
	size_t n_traces;
	struct out_stream **streams; /* owned; by the stream's rank, of its last trace */
	struct out_stream **all;     /* owned */
	size_t n_all;
	struct ky_buf context, scratch;
	unsigned unused; /* bits at the end of the context */
	uint32_t slots[KY_CTF_SLOTS_MAX];
	char *why;
	bool is_approximate, is_renamed;
	bool goes_back; /* an event is earlier than the one before in its stream */
};

/* --- files --- */

static int append_file(const char *path, const struct ky_buf *parts, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640), r = 0;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		for (size_t done = 0; done < parts[i].len && !r;) {
			ssize_t k = write(fd, parts[i].data + done, parts[i].len - done);

			if (k < 0 && errno != EINTR)
				r = -errno;
			done += k > 0 ? (size_t)k : 0;
		}
	}
	if (close(fd) < 0 && !r)
		r = -errno;
	return r;
}

/* --- packets --- */

static void put_u64(struct ky_buf *b, uint64_t v)
{
	uint64_t le = htole64(v);

	ky_buf_append(b, &le, sizeof(le));
}

static void put_time(struct ky_buf *b, const struct out_stream *s, int64_t ns)
{
	put_u64(b, (uint64_t)ns - (uint64_t)s->trace->metadata.origin_ns);
}

static void put_u32(struct ky_buf *b, uint32_t v)
{
	uint32_t le = htole32(v);

	ky_buf_append(b, &le, sizeof(le));
}

static void put_slots(struct ky_buf *b, uint32_t n, const uint32_t *values)
{
	for (uint32_t i = 0; i < n; i++)
		put_u32(b, values[i]);
}

/* The head of a packet. Its context begins with the values of the header's slots. */
static void put_head(struct ky_buf *b, const struct out_stream *s)
{
	const struct ky_tsdl *t = &s->trace->of->tsdl;
	size_t sizes_at, n_slots = 4 * s->trace->metadata.n_header_slots;
	uint64_t bits, content;

	put_u32(b, MAGIC);
	if (t->has_uuid)
		ky_buf_append(b, t->uuid, sizeof(t->uuid));
	put_u64(b, s->class->id);
	if (s->trace->metadata.has_instance)
		put_u64(b, s->instance);
	ky_buf_append(b, s->context.data, n_slots);
	if (ky_ctf_has_packet_times(s->class)) {
		put_time(b, s, s->begin_ns);
		put_time(b, s, s->end_ns);
	}
	sizes_at = b->len;
	put_u64(b, 0);
	put_u64(b, 0);
	if (s->class->discarded_bits)
		put_u64(b, s->n_discarded);
	if (s->class->seq_bits)
		put_u64(b, s->seq);
	if (s->context.len > n_slots)
		ky_buf_append(b, s->context.data + n_slots, s->context.len - n_slots);
	if (b->error)
		return;
	bits = (b->len + s->records.len) * 8;
	content = htole64(bits - (s->records.len ? s->unused : s->context_unused));
	bits = htole64(bits);
	memcpy(b->data + sizes_at, &content, sizeof(content));
	memcpy(b->data + sizes_at + sizeof(content), &bits, sizeof(bits));
}

static int end_packet(struct out_stream *s)
{
	struct ky_buf parts[2] = {{0}, s->records};
	int r;

	if (!s->is_open)
		return 0;
	put_head(&parts[0], s);
	r = parts[0].error || s->records.error ? -ENOMEM : append_file(s->path, parts, 2);
	ky_buf_deinit(&parts[0]);
	s->records.len = 0;
	s->is_open = s->has_end = false;
	s->lost_kind = KY_ITEM_NONE;
	s->had_packet = true;
	s->last_ns = s->end_ns;
	s->seq++;
	return r;
}

/*
 * No packet begins before the end of the one before: readers give up there. The first one begins
 * with the source if that is cut, so that readers report the same.
 */
static void begin_packet(struct out_stream *s, int64_t ns)
{
	if (s->had_packet)
		ns = KY_MAX(ns, s->last_ns);
	else if (s->is_cut)
		ns = KY_MIN(ns, s->cut_ns);
	s->is_open = true;
	s->begin_ns = s->end_ns = ns;
}

static int set_context(struct out_stream *s, const struct ky_buf *context)
{
	s->context.len = 0;
	ky_buf_append(&s->context, context->data, context->len);
	return s->context.error;
}

/* Until an event comes: a loss says nothing of its packet's context. */
static void set_zero_context(struct out_stream *s)
{
	const struct ky_node *n = s->class->packet_context;

	for (uint32_t i = 0; i < s->trace->metadata.n_header_slots; i++)
		put_u32(&s->context, 0);
	if (n && n->is_shown)
		ky_ctf_encode_zero(&s->trace->metadata, &s->context, &s->context_unused, n);
}

/* --- traces and streams --- */

static struct out_trace *find_trace(struct writing *w, const struct ky_trace *of)
{
	for (size_t i = 0; i < w->n_traces; i++)
		if (w->traces[i].of == of)
			return &w->traces[i];
	return NULL;
}

/*
 * Notes what the reader has reported of missing events and of triggers, as comments in the form in
 * which it reads them (docs/trace-format.md). No text that it has read can end a comment.
 */
static void put_gaps(struct ky_buf *b, const struct ky_trace_reader *reader)
{
	static const char trigger[] = "trigger: ";

	for (size_t i = 0; i < reader->n_gaps; i++) {
		const bool is_trigger = !strncmp(reader->gaps[i], trigger, strlen(trigger));

		ky_buf_printf(b, "\n/* %s%s */\n", is_trigger ? "" : "gap: ", reader->gaps[i]);
	}
}

/* Describes a trace: in the directory itself, or, if there are several, in one below. */
static int add_trace(struct writing *w, const struct ky_trace *of)
{
	struct out_trace *t = &w->traces[w->n_traces++];
	struct ky_buf text = {0}, path = {0};
	int r;

	t->of = of;
	if (asprintf(&t->dir, w->q->reader->n_traces > 1 ? "%s/%03zu" : "%s", w->dir, w->n_traces) <
		0)
		t->dir = NULL;
	if (!t->dir)
		return -ENOMEM;
	if (mkdir(t->dir, 0750) < 0 && errno != EEXIST)
		return -errno;
	r = ky_ctf_metadata_put(&t->metadata, &text, of);
	w->is_approximate |= t->metadata.is_approximate;
	w->is_renamed |= t->metadata.is_renamed;
	if (r == -EOPNOTSUPP)
		snprintf(w->why, KY_EXPORT_WHY, "field '%s' cannot be written as CTF 1.8: %s",
			t->metadata.why_field, t->metadata.why);
	ky_buf_printf(&path, "%s/metadata", t->dir);
	if (w->n_traces == 1)
		put_gaps(&text, w->q->reader);
	if (!r && text.error)
		r = text.error;
	if (!r)
		r = path.error ? path.error : append_file(path.data, &text, 1);
	ky_buf_deinit(&text);
	ky_buf_deinit(&path);
	return r;
}

/* Names the file as it was; files of several directories get numbers. */
static char *make_path(struct writing *w, const struct out_trace *t, const char *file)
{
	const char *name = strrchr(file, '/');
	char *path;

	name = name ? name + 1 : file;
	for (unsigned i = 0; i < 2; i++) {
		if (asprintf(&path, i ? "%s/%s-%zu" : "%s/%s", t->dir, name, w->n_all) < 0)
			return NULL;
		if (access(path, F_OK) < 0)
			return path;
		free(path);
	}
	return NULL;
}

/* Adds a stream, whose path is NULL without memory. NULL: the same. */
static struct out_stream *add_stream(struct writing *w, const struct ky_item *item)
{
	struct out_stream *s = calloc(1, sizeof(*s)), **more;

	more = s ? reallocarray(w->all, w->n_all + 1, sizeof(struct out_stream *)) : NULL;
	if (!more) {
		free(s);
		return NULL;
	}
	w->all = more;
	w->all[w->n_all++] = s;
	s->trace = find_trace(w, item->trace);
	s->class = item->class;
	s->instance = item->file->instance;
	s->path = s->trace ? make_path(w, s->trace, item->file->path) : NULL;
	s->is_cut = s->class->seq_bits && ky_stream_is_cut(item->stream, &s->cut_ns);
	s->seq = s->is_cut;
	if (s->trace)
		set_zero_context(s);
	return s;
}

/* Ends the part of a stream in one trace. Readers compare its part in the next trace with it. */
static int continue_stream(struct out_stream *s, struct out_stream *before)
{
	int r = end_packet(before);

	s->n_discarded = before->n_discarded;
	s->seq = before->seq;
	s->had_packet = before->had_packet;
	s->last_ns = before->last_ns;
	s->had_event = before->had_event;
	s->event_ns = before->event_ns;
	return r;
}

/* Gets the stream of an item; a new one when the item's trace is another than before. */
static int get_stream(struct writing *w, const struct ky_item *item, struct out_stream **ret)
{
	struct out_stream **at = &w->streams[item->stream->rank - 1], *before = *at;
	int r = 0;

	if (!before || before->trace->of != item->trace || before->class->id != item->class->id) {
		*at = add_stream(w, item);
		if (!*at || !(*at)->path)
			return -ENOMEM;
		r = before ? continue_stream(*at, before) : 0;
	}
	*ret = *at;
	return r;
}

/* --- items --- */

/* The packet's context of an event, behind the values of the header's slots. */
static void encode_context(struct writing *w, const struct out_stream *s, const struct ky_item *e)
{
	const struct ky_scope_values *scope = &e->scopes[KY_SCOPE_PACKET_CONTEXT];
	const struct ky_ctf_metadata *m = &s->trace->metadata;

	w->context.len = w->scratch.len = 0;
	w->unused = 0;
	memset(w->slots, 0, sizeof(w->slots));
	if (scope->node)
		ky_ctf_encode(m, &w->scratch, w->slots, &w->unused, scope->node,
			ky_item_values(e, KY_SCOPE_PACKET_CONTEXT), scope->data);
	put_slots(&w->context, m->n_header_slots, w->slots);
	if (w->scratch.len)
		ky_buf_append(&w->context, w->scratch.data, w->scratch.len);
}

static void put_record(struct writing *w, struct out_stream *s, const struct ky_item *e)
{
	const struct ky_ctf_metadata *m = &s->trace->metadata;

	w->scratch.len = 0;
	s->unused = 0;
	memset(w->slots, 0, sizeof(w->slots));
	for (int i = KY_SCOPE_EVENT_CONTEXT; i < KY_N_SCOPES; i++)
		if (e->scopes[i].node)
			ky_ctf_encode(m, &w->scratch, w->slots, &s->unused, e->scopes[i].node,
				ky_item_values(e, (enum ky_scope)i), e->scopes[i].data);
	put_u64(&s->records, e->event->id);
	if (s->class->clock)
		put_time(&s->records, s, e->ns);
	put_slots(&s->records, m->n_event_slots[s->class - s->trace->of->layout.streams], w->slots);
	if (w->scratch.len)
		ky_buf_append(&s->records, w->scratch.data, w->scratch.len);
}

static bool is_same_context(const struct out_stream *s, const struct ky_buf *context)
{
	return s->context.len == context->len &&
	       (!context->len || !memcmp(s->context.data, context->data, context->len));
}

/* A packet ends when its context changes, at the end of its loss, or when it is large. */
static int add_event(struct writing *w, struct out_stream *s, const struct ky_item *e)
{
	int r = 0;

	encode_context(w, s, e);
	if (s->is_open && s->records.len && !is_same_context(s, &w->context))
		r = end_packet(s);
	else if (s->is_open && (s->has_end ? e->ns > s->end_ns : s->records.len > PACKET_SIZE))
		r = end_packet(s);
	if (!r && !s->is_open)
		begin_packet(s, e->ns);
	s->context_unused = w->unused;
	if (!r)
		r = set_context(s, &w->context);
	if (!r)
		put_record(w, s, e);
	s->begin_ns = KY_MIN(s->begin_ns, e->ns);
	s->end_ns = KY_MAX(s->end_ns, e->ns);
	w->goes_back |= s->had_event && e->ns < s->event_ns;
	s->had_event = true;
	s->event_ns = e->ns;
	return r ? r : s->records.error ? s->records.error : w->scratch.error;
}

/* True if the loss belongs to a packet that was begun for a loss of the other kind. */
static bool is_second_loss(const struct out_stream *s, enum ky_item_kind kind)
{
	return s->is_open && !s->records.len && s->lost_kind != KY_ITEM_NONE &&
	       s->lost_kind != kind;
}

/*
 * Readers compute a loss from two packets: events from the end of the first to the end of the
 * second, packets up to the begin of the second.
 */
static int add_loss(struct out_stream *s, const struct ky_item *item)
{
	const struct ky_loss *lost = &item->lost;
	bool events = item->kind == KY_ITEM_LOST_EVENTS;
	int r = 0;

	if (is_second_loss(s, item->kind)) {
		s->lost_kind = KY_ITEM_NONE;
		s->begin_ns = KY_MAX(s->begin_ns, events ? lost->begin_ns : lost->end_ns);
	} else {
		if (s->is_open)
			s->end_ns = KY_MAX(s->end_ns, lost->begin_ns);
		r = end_packet(s);
		begin_packet(s, events ? lost->begin_ns : lost->end_ns);
		s->lost_kind = item->kind;
	}
	s->end_ns = KY_MAX(s->end_ns, lost->end_ns);
	s->has_end = true;
	if (events)
		s->n_discarded += lost->n;
	else
		s->seq += lost->n;
	return r;
}

static int add_item(struct writing *w, const struct ky_item *item)
{
	struct out_stream *s;
	int r;

	if (item->kind == KY_ITEM_DAMAGED)
		return 0;
	r = get_stream(w, item, &s);
	if (r < 0)
		return r;
	return item->kind == KY_ITEM_EVENT ? add_event(w, s, item) : add_loss(s, item);
}

static bool is_selected(const struct ky_query *q, const struct ky_item *item)
{
	return !item->has_time || (item->ns >= q->select.from_ns && item->ns <= q->select.to_ns);
}

static int read_items(struct writing *w)
{
	struct ky_reading reading = {0};
	struct ky_values values = {0};
	struct ky_item item;
	int r = ky_reading_init(&reading, w->q, NULL, NULL, &w->q->reader->options);

	while (!r && (r = ky_cursor_next(reading.cursor, &item, &values)) > 0) {
		r = is_selected(w->q, &item) ? add_item(w, &item) : 0;
		values.n = 0;
	}
	for (size_t i = 0; i < w->n_all && !r; i++)
		r = end_packet(w->all[i]);
	ky_reading_deinit(&reading);
	free(values.v);
	return r;
}

/* By the paths of files in them, as readers order records of equal times. */
static int compare_dirs(const void *a, const void *b)
{
	const char *x = (*(struct ky_trace *const *)a)->dir;
	const char *y = (*(struct ky_trace *const *)b)->dir;

	for (; *x && *x == *y; x++, y++)
		;
	if (!*x == !*y || (*x | *y) != '/')
		return (*x ? (unsigned char)*x : '/') - (*y ? (unsigned char)*y : '/');
	return *x ? 1 : -1; /* one is in the other */
}

static int add_traces(struct writing *w, const struct ky_trace_reader *reader)
{
	size_t n = reader->n_traces;
	struct ky_trace **sorted = calloc(n + 1, sizeof(struct ky_trace *));
	int r = sorted ? 0 : -ENOMEM;

	if (sorted && n) {
		memcpy(sorted, reader->traces, n * sizeof(struct ky_trace *));
		qsort(sorted, n, sizeof(struct ky_trace *), compare_dirs);
	}
	for (size_t i = 0; i < n && !r; i++)
		r = add_trace(w, sorted[i]);
	free(sorted);
	return r;
}

static int write_traces(struct writing *w)
{
	const struct ky_trace_reader *reader = w->q->reader;
	int r;

	w->traces = calloc(reader->n_traces + 1, sizeof(*w->traces));
	w->streams = calloc(reader->n_streams + 1, sizeof(struct out_stream *));
	if (!w->traces || !w->streams)
		return -ENOMEM;
	r = add_traces(w, reader);
	return r ? r : read_items(w);
}

static void free_all(struct writing *w)
{
	for (size_t i = 0; i < w->n_all; i++) {
		ky_buf_deinit(&w->all[i]->context);
		ky_buf_deinit(&w->all[i]->records);
		free(w->all[i]->path);
		free(w->all[i]);
	}
	for (size_t i = 0; i < w->n_traces; i++) {
		ky_ctf_metadata_deinit(&w->traces[i].metadata);
		free(w->traces[i].dir);
	}
	free(w->all);
	free(w->traces);
	free(w->streams);
	ky_buf_deinit(&w->context);
	ky_buf_deinit(&w->scratch);
}

static void explain_changes(const struct writing *w)
{
	const char *types =
		"CTF 1.8 has not all types of these fields: booleans are numbers, blocks arrays of bytes, optional fields and some variants sequences";
	const char *names =
		"CTF 1.8 does not allow some names: '_' replaces other characters, and a number follows a name that is taken";
	const char *times =
		"events of a stream go back in time, as in the source: babeltrace2 stops at the first of them";
	const char *texts[] = {w->is_approximate ? types : NULL, w->is_renamed ? names : NULL,
		w->goes_back ? times : NULL};
	size_t len = 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i] && len < KY_EXPORT_WHY)
			len += (size_t)snprintf(w->why + len, KY_EXPORT_WHY - len, "%s%s",
				len ? "; " : "", texts[i]);
	}
}

int ky_export_ctf(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY])
{
	struct writing w = {.why = why};
	struct kymo_query *q = NULL;
	char *part = NULL;
	int r = ky_tables_query(t, &q);

	why[0] = '\0';
	if (!r)
		r = ky_out_dir_open(&part, path, why);
	if (!r) {
		w.q = ky_query_inside(q);
		w.dir = part;
		r = ky_out_dir_close(part, path, write_traces(&w));
		if (r >= 0)
			explain_changes(&w);
	}
	free_all(&w);
	kymo_query_free(q);
	return r;
}
