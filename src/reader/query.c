/* SPDX-License-Identifier: MIT */
#include "reader/query.h"

#include "base/glob.h"
#include "reader/format.h"
#include "reader/reader.h"

void ky_query_init(struct ky_query *q, struct ky_trace_reader *r)
{
	*q = (struct ky_query){.reader = r, .select = KY_SELECT_ALL};
}

void ky_query_deinit(struct ky_query *q)
{
	free(q->chosen);
	free(q->patterns);
	free(q->streams);
	ky_expr_free(q->expr);
	*q = (struct ky_query){0};
}

/* Copies n bytes, or NULL. */
static int copy_bytes(uint8_t **to, const uint8_t *from, size_t n)
{
	if (!from)
		return 0;
	*to = malloc(n);
	if (!*to)
		return -ENOMEM;
	memcpy(*to, from, n);
	return 0;
}

int ky_query_copy(struct ky_query *to, const struct ky_query *q)
{
	ky_query_init(to, q->reader);
	to->select = q->select;
	to->n_chosen = q->n_chosen;
	if (copy_bytes(&to->chosen, q->chosen, q->n_chosen) < 0 ||
		copy_bytes(&to->streams, q->streams, q->select.n_streams) < 0)
		return -ENOMEM;
	to->select.streams = to->streams;
	if (q->patterns) {
		to->patterns = strdup(q->patterns);
		if (!to->patterns)
			return -ENOMEM;
	}
	to->shown = q->shown;
	if (q->expr)
		to->expr = ky_expr_copy(q->expr);
	return 0;
}

int ky_query_stream(struct ky_query *q, size_t stream)
{
	size_t n = KY_MAX(q->select.n_streams, stream + 1);
	uint8_t *more = realloc(q->streams, n);

	if (!more)
		return -ENOMEM;
	memset(more + q->select.n_streams, 0, n - q->select.n_streams);
	more[stream] = 1;
	q->select.streams = q->streams = more;
	q->select.n_streams = n;
	return 0;
}

/* --- classes --- */

/* Gets the next pattern of a list, in *pattern and *len. Returns false at the end. */
static bool next_pattern(const char **list, const char **pattern, size_t *len)
{
	if (!**list)
		return false;
	*pattern = *list;
	*len = strcspn(*list, ",");
	*list += *len + ((*list)[*len] == ',');
	return true;
}

/* Copies a pattern without its '!'. False if it is too long or invalid. */
static bool copy_pattern(char *to, size_t size, const char *pattern, size_t len)
{
	if (len && *pattern == '!') {
		pattern++;
		len--;
	}
	if (len >= size)
		return false;
	memcpy(to, pattern, len);
	to[len] = '\0';
	return ky_glob_valid(to);
}

/* True if the name matches a pattern and none after `!`, or if all patterns are after `!`. */
static bool matches_patterns(const char *patterns, const char *name)
{
	bool has_positive = false, is_included = false;
	const char *pattern;
	char one[KY_QUERY_PATTERN_MAX];
	size_t len;

	while (next_pattern(&patterns, &pattern, &len)) {
		bool excludes = *pattern == '!';
		bool is_match = copy_pattern(one, sizeof(one), pattern, len) &&
				ky_glob_match(one, name);

		if (excludes && is_match)
			return false;
		has_positive |= !excludes;
		is_included |= is_match;
	}
	return is_included || !has_positive;
}

int ky_query_events(struct ky_query *q, const char *patterns)
{
	const char *rest = patterns, *pattern;
	char one[KY_QUERY_PATTERN_MAX], *copy;
	size_t len;

	if (!*patterns)
		return -EINVAL;
	while (next_pattern(&rest, &pattern, &len)) {
		if (!copy_pattern(one, sizeof(one), pattern, len))
			return -EINVAL;
	}
	copy = strdup(patterns);
	if (!copy)
		return -ENOMEM;
	free(q->patterns);
	free(q->chosen);
	q->patterns = copy;
	q->chosen = NULL;
	q->n_chosen = 0;
	return 0;
}

int ky_query_class(struct ky_query *q, size_t class_index)
{
	if (class_index >= q->n_chosen) {
		size_t n = q->reader->n_classes;
		uint8_t *more = realloc(q->chosen, n);

		if (!more)
			return -ENOMEM;
		memset(more + q->n_chosen, 0, n - q->n_chosen);
		q->chosen = more;
		q->n_chosen = n;
	}
	q->chosen[class_index] = 1;
	return 0;
}

bool ky_query_has(const struct ky_query *q, size_t class_index)
{
	if (class_index < q->n_chosen && q->chosen[class_index])
		return true;
	if (!q->patterns)
		return !q->chosen;
	return matches_patterns(q->patterns, q->reader->classes[class_index]->name);
}

bool ky_query_lacks_event(
	const struct ky_query *q, const char **rest, char ret_pattern[KY_QUERY_PATTERN_MAX])
{
	const char *pattern;
	size_t len;

	while (next_pattern(rest, &pattern, &len)) {
		bool found = !copy_pattern(ret_pattern, KY_QUERY_PATTERN_MAX, pattern, len);

		for (size_t i = 0; i < q->reader->n_classes && !found; i++)
			found = ky_glob_match(ret_pattern, q->reader->classes[i]->name);
		if (!found)
			return true;
	}
	return false;
}

int ky_query_filter(struct ky_query *q, const char *expression, struct ky_filter_error *error)
{
	struct ky_expr *e = NULL;
	int r = ky_expr_new(&e, expression, error);

	if (r < 0)
		return r;
	ky_expr_free(q->expr);
	q->expr = e;
	return 0;
}

bool ky_query_lacks_field(const struct ky_query *q, char path[KY_EXPR_PATH_MAX])
{
	size_t n = q->expr ? ky_expr_n_fields(q->expr) : 0;

	for (size_t i = 0; i < n; i++) {
		bool any = false, found = false;

		if (!ky_expr_field(q->expr, i, path))
			continue;
		for (size_t c = 0; c < q->reader->n_classes && !found; c++) {
			struct ky_field_ref field;

			any |= ky_query_has(q, c);
			found = ky_query_has(q, c) &&
				ky_field_find(&field, q->reader->classes[c], path);
		}
		if (any && !found)
			return true;
	}
	return false;
}

bool ky_query_mistakes_type(
	const struct ky_query *q, char path[KY_EXPR_PATH_MAX], enum ky_expr_mistake *ret_mistake)
{
	size_t n = q->expr ? ky_expr_n_fields(q->expr) : 0;
	struct ky_field_ref *fields = n ? calloc(n, sizeof(*fields)) : NULL;
	bool any = false, is_sound = false;

	for (size_t c = 0; fields && c < q->reader->n_classes && !is_sound; c++) {
		if (!ky_query_has(q, c) || !ky_expr_bind(q->expr, q->reader->classes[c], fields))
			continue;
		any = true;
		is_sound = !ky_expr_mistakes_type(q->expr, fields, path, ret_mistake);
	}
	free(fields);
	return any && !is_sound;
}

/* --- slices --- */

/* Bytes that begin at a time. */
struct piece {
	int64_t ns;
	uint64_t bytes;
};

static int by_time(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

static size_t count_places(const struct ky_trace_reader *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_streams; i++)
		n += r->streams[i]->n_places;
	return n;
}

/* The bytes from a place to the next one. */
static uint64_t bytes_from(const struct ky_stream *s, size_t i)
{
	const struct ky_place *p = &s->places[i];

	if (i + 1 < s->n_places && p[1].file == p->file)
		return p[1].offset - p->offset;
	return s->files[p->file].size - p->offset;
}

/* All that lies within the times; how many, and their bytes. */
static size_t list_pieces(const struct ky_query *q, struct piece *to, uint64_t *ret_bytes)
{
	const struct ky_trace_reader *r = q->reader;
	size_t n = 0;

	*ret_bytes = 0;
	for (size_t i = 0; i < r->n_streams; i++) {
		const struct ky_stream *s = r->streams[i];

		for (size_t k = 0; k < s->n_places; k++) {
			struct piece p = {ky_place_ns(s, &s->places[k]), bytes_from(s, k)};

			if (p.ns > q->select.to_ns ||
				(k + 1 < s->n_places &&
					ky_place_ns(s, &s->places[k + 1]) < q->select.from_ns))
				continue;
			*ret_bytes += p.bytes;
			to[n++] = p;
		}
	}
	qsort(to, n, sizeof(*to), by_time);
	return n;
}

/* The bytes of a slice, if those of the rest are left. */
static uint64_t slice_size(uint64_t bytes, uint64_t rest, size_t n, size_t readers)
{
	return readers ? KY_MAX(rest / (2 * readers), bytes / n) : bytes / n;
}

/*
 * Cuts where so many bytes of each slice were passed: just behind the time at which a packet
 * begins. All records of the packets before it, in its stream, are in slices before: they need not
 * be read again. The slice before reads only the packet's first records.
 */
static size_t cut_slices(const struct ky_query *q, struct ky_select *slices, size_t n,
	size_t readers, const struct piece *pieces, size_t n_pieces, uint64_t bytes)
{
	int64_t last_ns = n_pieces ? pieces[0].ns : 0;
	uint64_t passed = 0, end = 0; /* of the slice, in bytes */
	size_t k = 0;

	slices[0] = q->select;
	end = slice_size(bytes, bytes, n, readers);
	for (size_t i = 0; i < n_pieces && k + 1 < n; i++) {
		if (passed >= end && pieces[i].ns > last_ns && pieces[i].ns < INT64_MAX) {
			last_ns = pieces[i].ns;
			slices[k + 1] = slices[k];
			slices[k].has_slice_end = true;
			slices[k].slice_end_ns = last_ns + 1;
			k++;
			slices[k].has_slice_begin = true;
			slices[k].slice_begin_ns = last_ns + 1;
			end += slice_size(bytes, bytes - KY_MIN(end, bytes), n, readers);
		}
		passed += pieces[i].bytes;
	}
	return k + 1;
}

/* True if packets of a stream overlap or go back in time, as if it had some of them twice. */
static bool has_disorder(const struct ky_trace_reader *r)
{
	for (size_t i = 0; i < r->n_streams; i++) {
		if (r->streams[i]->disorder_end)
			return true;
	}
	return false;
}

int ky_query_slices(const struct ky_query *q, size_t n, uint64_t least, size_t readers,
	struct ky_select **ret_slices, size_t *ret_n)
{
	struct piece *pieces;
	struct ky_select *slices;
	uint64_t bytes;
	size_t n_pieces;

	n = KY_MAX(n, (size_t)1);
	/* A slice of slices has its records from it alone. */
	if (q->select.has_slice_begin || q->select.has_slice_end)
		n = 1;
	if (ky_trace_reader_index(q->reader) < 0)
		return -ENOMEM;
	/* To step over a packet that was met before, a reader has to meet both. */
	if (has_disorder(q->reader))
		n = 1;
	pieces = calloc(count_places(q->reader) + 1, sizeof(*pieces));
	slices = calloc(n, sizeof(*slices));
	if (!pieces || !slices) {
		free(pieces);
		free(slices);
		return -ENOMEM;
	}
	n_pieces = list_pieces(q, pieces, &bytes);
	if (least)
		n = (size_t)KY_MAX(KY_MIN((uint64_t)n, bytes / least), (uint64_t)1);
	*ret_n = cut_slices(q, slices, n, readers, pieces, n_pieces, bytes);
	*ret_slices = slices;
	free(pieces);
	return 0;
}

bool ky_query_is_misplaced(
	const struct ky_select *slice, const struct ky_item *item, int64_t last_ns)
{
	return !item->has_time || item->ns < last_ns ||
	       (slice->has_slice_end && item->ns >= slice->slice_end_ns) ||
	       (slice->has_slice_begin && item->ns < slice->slice_begin_ns);
}

/* --- reading --- */

static bool has_shown(const struct ky_shown_fields *shown, const struct ky_item *item)
{
	const struct ky_field_ref *fields = shown->of_class[item->event->index];
	bool any = false;

	for (size_t i = 0; fields && i < shown->n && !any; i++) {
		struct ky_field_ref field = fields[i]; /* threads share the query */
		struct ky_field_value value;

		any = ky_field_get(&field, item, &value);
	}
	return any;
}

static bool pass(void *arg, const struct ky_item *item)
{
	const struct ky_reading *r = arg;

	return (!r->expr || ky_expr_pass(r->expr, r->fields[item->event->index], item)) &&
	       (!r->query->shown || has_shown(r->query->shown, item));
}

/* The class's fields for the expression. 0, -ENOENT if it lacks one, or -ENOMEM. */
static int bind_class(struct ky_reading *r, const struct ky_event_class *e)
{
	size_t n = ky_expr_n_fields(r->expr);
	struct ky_field_ref *fields = calloc(n, sizeof(*fields));

	if (!fields)
		return -ENOMEM;
	r->fields[e->index] = fields;
	return ky_expr_bind(r->expr, e, fields) ? 0 : -ENOENT;
}

static bool has_limits(const struct ky_select *s)
{
	return s->from_ns > INT64_MIN || s->to_ns < INT64_MAX || s->has_slice_begin ||
	       s->has_slice_end;
}

static int choose_class(struct ky_reading *r, const struct ky_query *q, size_t i, uint8_t want)
{
	int e;

	r->wanted[i] = 0;
	if (!ky_query_has(q, i) || !want)
		return 0;
	r->wanted[i] = want;
	if (r->expr || q->shown)
		r->wanted[i] |= KY_WANT_FILTER | KY_WANT_VALUES;
	if (!r->expr)
		return 0;
	e = bind_class(r, q->reader->classes[i]);
	if (e == -ENOENT)
		r->wanted[i] = 0;
	return e == -ENOMEM ? e : 0;
}

/* Forgets where the fields of the expression are. */
static void unbind_classes(struct ky_reading *r)
{
	for (size_t i = 0; r->fields && i < r->n_classes; i++) {
		free(r->fields[i]);
		r->fields[i] = NULL;
	}
}

/* Chooses among all classes that the reader has now. want: as ky_reading_init. */
static int choose_classes(struct ky_reading *r, const struct ky_query *q, const uint8_t *want)
{
	size_t n = q->reader->n_classes;
	struct ky_field_ref **fields;
	uint8_t *wanted;
	int e = 0;

	unbind_classes(r);
	wanted = realloc(r->wanted, n + 1);
	r->wanted = wanted ? wanted : r->wanted;
	fields = reallocarray(r->fields, n + 1, sizeof(*fields));
	r->fields = fields ? fields : r->fields;
	if (!wanted || !fields)
		return -ENOMEM;
	memset(fields, 0, (n + 1) * sizeof(*fields));
	r->n_classes = n;
	for (size_t i = 0; i < n && !e; i++)
		e = choose_class(r, q, i, want ? want[i] : KY_WANT_EVENT | KY_WANT_VALUES);
	return e;
}

int ky_reading_init(struct ky_reading *r, const struct ky_query *q, const uint8_t *want,
	const struct ky_select *select, const struct ky_trace_reader_options *options)
{
	struct ky_select s = select ? *select : q->select;
	int e;

	*r = (struct ky_reading){.query = q, .expr = q->expr};
	e = choose_classes(r, q, want);
	if (!e && has_limits(&s))
		e = ky_trace_reader_index(q->reader);
	s.wanted = r->wanted;
	r->generation = q->reader->generation;
	if (!e)
		e = ky_cursor_open(&r->cursor, q->reader, &s, options);
	if (!e)
		ky_cursor_set_filter(r->cursor, pass, r);
	return e;
}

int ky_reading_refresh(struct ky_reading *r, const uint8_t *want)
{
	int e = choose_classes(r, r->query, want);

	r->generation = r->query->reader->generation;
	return e ? e : ky_cursor_refresh(r->cursor, r->wanted);
}

void ky_reading_deinit(struct ky_reading *r)
{
	ky_cursor_close(r->cursor);
	unbind_classes(r);
	free(r->fields);
	free(r->wanted);
	*r = (struct ky_reading){0};
}
