/* SPDX-License-Identifier: MIT */
#include "analysis/measure.h"

#include "reader/field.h"

/* --- descriptions --- */

/* order: the earlier of "nest" and "fifo", or NULL. */
static int add_option(struct ky_latency *l, const char *option, const char **order)
{
	if (!strncmp(option, "key=", 4) && !l->key) {
		l->key = strdup(option + 4);
		return l->key ? 0 : -ENOMEM;
	}
	if ((strcmp(option, "fifo") && strcmp(option, "nest")) ||
		(*order && strcmp(*order, option)))
		return -EINVAL;
	*order = option;
	l->is_fifo = !strcmp(option, "fifo");
	return 0;
}

static bool has_thread(const char *key)
{
	for (const char *p = key; p && *p; p = strchr(p, '+') ? strchr(p, '+') + 1 : NULL) {
		if (strcspn(p, "+") == 6 && !strncmp(p, "thread", 6))
			return true;
	}
	return false;
}

static int parse_latency(struct ky_latency *l, char *text, const char **ret_why)
{
	char *rest = text, *events = strsep(&rest, ","), *dots = strstr(events, ".."), *option;
	const char *order = NULL;
	int r = 0;

	*ret_why = "write A..B[,key=FIELD+FIELD][,nest|fifo], with the names of two events";
	if (!dots || dots == events || !dots[2])
		return -EINVAL;
	l->name = strdup(events);
	l->begin = strndup(events, (size_t)(dots - events));
	l->end = strdup(dots + 2);
	while (!r && (option = strsep(&rest, ",")))
		r = add_option(l, option, &order);
	l->is_of_thread = has_thread(l->key);
	return r ? r : l->name && l->begin && l->end ? 0 : -ENOMEM;
}

int ky_measures_add_latency(struct ky_measures *m, const char *text, const char **ret_why)
{
	struct ky_latency *more = reallocarray(
		m->latencies, m->n_latencies + 1, sizeof(*m->latencies));
	char *copy = strdup(text);
	int r = -ENOMEM;

	if (more) {
		m->latencies = more;
		more[m->n_latencies] = (struct ky_latency){0};
		if (copy)
			r = parse_latency(&more[m->n_latencies++], copy, ret_why);
	}
	free(copy);
	return r;
}

int ky_measures_add_field(struct ky_measures *m, const char *field)
{
	struct ky_field_values *more = reallocarray(m->fields, m->n_fields + 1, sizeof(*m->fields));

	if (!more)
		return -ENOMEM;
	m->fields = more;
	more[m->n_fields++] = (struct ky_field_values){.field = field};
	return 0;
}

/* --- what is wanted of the trace --- */

/* The class is wanted for a measurement. False if it is not selected. */
static bool want_class(uint8_t *want, const struct ky_query *q, size_t class_index)
{
	if (!ky_query_has(q, class_index))
		return false;
	want[class_index] = KY_WANT_EVENT | KY_WANT_VALUES;
	return true;
}

static bool want_event(uint8_t *want, const struct ky_query *q, const char *name)
{
	bool any = false;

	for (size_t i = 0; i < q->reader->n_classes; i++) {
		if (!strcmp(q->reader->classes[i]->name, name))
			any |= want_class(want, q, i);
	}
	return any;
}

static int bind_latency(struct ky_latency *l, uint8_t *want, const struct ky_query *q,
	const char **ret_unknown, char *why, size_t why_size)
{
	const char *missing = NULL;
	int r;

	if (!want_event(want, q, l->begin))
		missing = l->begin;
	else if (!want_event(want, q, l->end))
		missing = l->end;
	if (missing) {
		snprintf(why, why_size, "no event '%s' is in the trace or selected", missing);
		*ret_unknown = missing;
		return -ENOENT;
	}
	r = ky_spans_begin(&l->spans, q->reader);
	l->times = r ? NULL : ky_spans_name(&l->spans, l->name);
	if (!l->times)
		return -ENOMEM;
	if (!l->key)
		return 0;
	r = ky_keys_init(&l->keys, q->reader, l->key, '+');
	if (r == -EINVAL)
		snprintf(why, why_size, "bad list of fields '%s'", l->key);
	else if (r == -ENOENT)
		snprintf(why, why_size, "no event of the trace has a field or context '%s'",
			*ret_unknown = l->keys.unknown);
	return r;
}

static bool is_number(const struct ky_node *n)
{
	return n->kind == KY_NODE_INT || n->kind == KY_NODE_FLOAT;
}

/* Notes which numbers the field may be. Returns false if it is none. */
static bool add_types(struct ky_field_values *f, const struct ky_field_ref *ref)
{
	bool any = false;

	for (const struct ky_node *n = ref->node; n; n = n->twin) {
		const struct ky_node *v = ref->has_element && n->is_scalars ? n->children : n;

		if (!is_number(v))
			continue;
		any = true;
		f->is_signed |= v->is_signed;
		f->is_float |= v->kind == KY_NODE_FLOAT;
	}
	return any;
}

static int bind_field(struct ky_field_values *f, uint8_t *want, const struct ky_query *q,
	const char **ret_unknown, char *why, size_t why_size)
{
	const struct ky_trace_reader *reader = q->reader;
	bool any = false;

	f->of_class = calloc(reader->n_classes + 1, sizeof(*f->of_class));
	if (!f->of_class)
		return -ENOMEM;
	for (size_t i = 0; i < reader->n_classes; i++) {
		struct ky_field_ref *ref = &f->of_class[i];

		if (!ky_field_find(ref, reader->classes[i], f->field))
			continue;
		if (!ky_query_has(q, i) || !add_types(f, ref)) {
			ref->node = NULL;
			continue;
		}
		any = want_class(want, q, i);
	}
	if (any)
		return 0;
	snprintf(why, why_size, "no event that is selected has a field '%s' of numbers", f->field);
	*ret_unknown = f->field;
	return -ENOENT;
}

/* --- measuring --- */

static int add_latency_event(struct ky_latency *l, const struct ky_item *item)
{
	const char *name = item->event->name ? item->event->name : "";
	bool ends = !strcmp(name, l->end), begins = !strcmp(name, l->begin);
	struct ky_span_pair p = {.name = l->times,
		.stream = item->stream,
		.trace = l->is_of_thread ? item->trace : NULL,
		.ns = item->ns,
		.is_fifo = l->is_fifo};
	int r = 0;

	if ((!ends && !begins) || !item->has_time)
		return 0;
	if (l->key && !ky_keys_make(&l->keys, item)) {
		l->n_unkeyed++;
		return 0;
	}
	p.key = l->key ? l->keys.key.data : "";
	p.key_len = l->keys.key.len;
	if (l->keys.key.error)
		return -ENOMEM;
	if (ends)
		r = ky_spans_add_pair(&l->spans, &p);
	p.is_begin = true;
	return r || !begins ? r : ky_spans_add_pair(&l->spans, &p);
}

static bool is_greater(const struct ky_field_values *f, uint64_t x, uint64_t y)
{
	return f->is_signed || f->is_float ? (int64_t)x > (int64_t)y : x > y;
}

static void add_to_top(struct ky_field_values *f, struct ky_top_event event)
{
	size_t i = f->n_top;

	if (i == KY_MEASURE_TOP) {
		if (!is_greater(f, event.value, f->top[i - 1].value))
			return;
		i--;
	} else {
		f->n_top++;
	}
	for (; i && is_greater(f, event.value, f->top[i - 1].value); i--)
		f->top[i] = f->top[i - 1];
	f->top[i] = event;
}

/* The bits of negative numbers rise when the numbers fall. */
static uint64_t turn_negative(uint64_t bits)
{
	return (int64_t)bits < 0 ? bits ^ INT64_MAX : bits;
}

static uint64_t order_of_float(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return turn_negative(bits);
}

double ky_float_of_order(uint64_t order)
{
	uint64_t bits = turn_negative(order);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static double float_of(const struct ky_node *n, const struct ky_value *v)
{
	if (n->kind == KY_NODE_FLOAT)
		return v->f;
	return n->is_signed ? (double)(int64_t)v->u : (double)v->u;
}

static int add_float(struct ky_field_values *f, const struct ky_item *item, double v)
{
	if (v == v)
		add_to_top(
			f, (struct ky_top_event){item->event->name, order_of_float(v), item->ns});
	if (!(v >= 0)) {
		f->n_negative++;
		return 0;
	}
	f->min = f->values.n ? KY_MIN(f->min, v) : v;
	f->max = f->values.n ? KY_MAX(f->max, v) : v;
	f->sum += v;
	return ky_histogram_add_float(&f->values, v);
}

static int add_value(struct ky_field_values *f, const struct ky_item *item)
{
	struct ky_field_ref *ref = &f->of_class[item->event->index];
	struct ky_field_value value;

	if (!ky_field_get(ref, item, &value) || !is_number(value.v->node))
		return 0;
	if (f->is_float)
		return add_float(f, item, float_of(value.v->node, value.v));
	add_to_top(f, (struct ky_top_event){item->event->name, value.v->u, item->ns});
	if (value.v->node->is_signed && (int64_t)value.v->u < 0) {
		f->n_negative++;
		return 0;
	}
	return ky_histogram_add(&f->values, value.v->u);
}

int ky_measures_add(struct ky_measures *m, const struct ky_item *item)
{
	bool is_event = item->kind == KY_ITEM_EVENT;
	int r = 0;

	for (size_t i = 0; i < m->n_latencies && !r; i++) {
		struct ky_latency *l = &m->latencies[i];

		r = is_event ? add_latency_event(l, item)
			     : ky_spans_gap(&l->spans, item->stream, item->lost.end_ns);
	}
	for (size_t i = 0; i < m->n_fields && !r && is_event; i++)
		r = add_value(&m->fields[i], item);
	return r;
}

static int measure_events(struct ky_measures *m, struct ky_cursor *cursor)
{
	struct ky_values values = {0};
	struct ky_item item;
	int r;

	while ((r = ky_cursor_next(cursor, &item, &values)) > 0) {
		r = ky_measures_add(m, &item);
		values.n = 0;
		if (r < 0)
			break;
	}
	free(values.v);
	ky_cursor_totals(cursor, &m->totals);
	return r;
}

int ky_measures_bind(
	struct ky_measures *m, uint8_t *want, const struct ky_query *q, char *why, size_t why_size)
{
	int r = 0;

	why[0] = '\0';
	for (size_t i = 0; i < m->n_latencies && !r; i++)
		r = bind_latency(&m->latencies[i], want, q, &m->unknown, why, why_size);
	for (size_t i = 0; i < m->n_fields && !r; i++)
		r = bind_field(&m->fields[i], want, q, &m->unknown, why, why_size);
	return r;
}

int ky_measures_collect(struct ky_measures *m, const struct ky_query *q,
	const struct ky_trace_reader_options *options, char *why, size_t why_size)
{
	struct ky_reading reading = {0};
	uint8_t *want = calloc(q->reader->n_classes + 1, 1);
	int r = want ? ky_measures_bind(m, want, q, why, why_size) : -ENOMEM;

	if (!r)
		r = ky_reading_init(&reading, q, want, NULL, options);
	if (!r)
		r = measure_events(m, reading.cursor);
	ky_reading_deinit(&reading);
	free(want);
	return r;
}

void ky_measures_deinit(struct ky_measures *m)
{
	for (size_t i = 0; i < m->n_latencies; i++) {
		struct ky_latency *l = &m->latencies[i];

		free(l->name);
		free(l->begin);
		free(l->end);
		free(l->key);
		ky_keys_deinit(&l->keys);
		ky_spans_deinit(&l->spans);
	}
	for (size_t i = 0; i < m->n_fields; i++) {
		free(m->fields[i].of_class);
		ky_histogram_deinit(&m->fields[i].values);
	}
	free(m->latencies);
	free(m->fields);
	*m = (struct ky_measures){0};
}
