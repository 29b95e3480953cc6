/* SPDX-License-Identifier: MIT */
#include "reader/describe.h"

#include "base/buf.h"

enum kymo_column_type ky_node_type(const struct ky_node *n)
{
	if (n->kind == KY_NODE_INT && !n->is_enum)
		return n->is_signed ? KYMO_INT64 : KYMO_UINT64;
	return n->kind == KY_NODE_FLOAT ? KYMO_DOUBLE : KYMO_TEXT;
}

/* --- fields --- */

struct lister {
	struct ky_arena *arena;
	const struct ky_event_class *event;
	struct kymo_event_field *fields; /* NULL: they are only counted */
	size_t n;
	enum kymo_scope scope;
	bool failed;
};

/* The path of a field, also with `\` before special characters of names: the same if none is. */
struct path {
	const char *plain, *escaped;
};

static const char *join(
	struct lister *l, const char *outer, const char *separator, const char *inner)
{
	size_t len = strlen(outer) + strlen(separator) + strlen(inner) + 1;
	char *name = ky_arena_alloc(l->arena, len);

	if (!name) {
		l->failed = true;
		return "";
	}
	snprintf(name, len, "%s%s%s", outer, separator, inner);
	return name;
}

static const char *escape(struct lister *l, const char *name)
{
	char *escaped = ky_arena_alloc(l->arena, 2 * strlen(name) + 1), *to = escaped;

	if (!escaped) {
		l->failed = true;
		return "";
	}
	for (; *name; name++) {
		if (strchr(".[\\", *name))
			*to++ = '\\';
		*to++ = *name;
	}
	*to = '\0';
	return escaped;
}

static struct path add_name(struct lister *l, struct path outer, const struct ky_node *n)
{
	const char *name = ky_node_path_name(n);
	const char *separator = *outer.plain && *name ? "." : "";
	struct path p = {.plain = join(l, outer.plain, separator, name)};

	p.escaped = p.plain;
	if (ky_field_is_special(n))
		p.escaped = join(l, outer.escaped, separator, escape(l, name));
	else if (outer.escaped != outer.plain)
		p.escaped = join(l, outer.escaped, separator, name);
	return p;
}

/* Returns the plain path unless it is that of another field. */
static const char *choose_name(struct lister *l, const struct ky_node *n, struct path p)
{
	struct ky_field_ref f;

	if (p.plain == p.escaped)
		return p.plain;
	ky_field_find(&f, l->event,
		l->scope == KYMO_SCOPE_FIELDS ? p.plain : join(l, "$ctx.", "", p.plain));
	return f.node == (n->first ? n->first : n) ? p.plain : p.escaped;
}

static void add_labels(struct lister *l, struct kymo_event_field *f, const struct ky_type *t)
{
	struct kymo_label *labels = ky_arena_alloc(l->arena, t->n * sizeof(*labels));

	if (!labels) {
		l->failed = true;
		return;
	}
	for (uint32_t i = 0; i < t->n; i++)
		labels[i] = (struct kymo_label){.text = t->labels[i],
			.first = (int64_t)t->ranges[i].lo,
			.last = (int64_t)t->ranges[i].hi};
	f->labels = labels;
	f->n_labels = t->n;
}

static void add_field(struct lister *l, const struct ky_node *n, const char *name)
{
	struct kymo_event_field *f = l->fields ? &l->fields[l->n] : NULL;

	l->n++;
	if (!f)
		return;
	*f = (struct kymo_event_field){.name = name,
		.scope = l->scope,
		.type = ky_node_type(n),
		.bits = n->size,
		.base = n->kind == KY_NODE_INT ? n->base : 0};
	f->is_array = (n->kind == KY_NODE_ARRAY || n->kind == KY_NODE_SEQUENCE) && !n->is_text;
	if (n->kind == KY_NODE_INT && n->is_enum)
		add_labels(l, f, n->type);
}

/* Structures and variants stand for what is in them. */
static void list_fields(struct lister *l, const struct ky_node *n, struct path outer)
{
	for (uint32_t i = 0; n && i < n->n && !l->failed; i++) {
		const struct ky_node *c = &n->children[i];
		struct path p = outer;

		if (!c->is_shown)
			continue;
		if (l->fields)
			p = add_name(l, outer, c);
		if (c->kind == KY_NODE_STRUCT || c->kind == KY_NODE_VARIANT)
			list_fields(l, c, p);
		else
			add_field(l, c, l->fields ? choose_name(l, c, p) : "");
	}
}

static void list_scopes(struct lister *l, const struct ky_event_class *e)
{
	const struct path root = {"", ""};
	const struct ky_node *scopes[] = {
		e->stream->packet_context, e->stream->event_context, e->context, e->fields};

	l->n = 0;
	for (size_t i = 0; i < KY_ARRAY_SIZE(scopes); i++) {
		l->scope = (enum kymo_scope)i;
		if (scopes[i] && scopes[i]->is_shown)
			list_fields(l, scopes[i], root);
	}
}

/* --- classes, streams, traces --- */

static size_t number_of(const struct ky_trace_reader *r, const struct ky_trace *t)
{
	size_t i = 0;

	while (i < r->n_traces && r->traces[i] != t)
		i++;
	return i;
}

static bool add_class(struct ky_description *d, const struct ky_event_class *e, size_t trace)
{
	struct lister l = {.arena = &d->arena, .event = e};
	struct kymo_event_class *c = &d->classes[e->index];

	*c = (struct kymo_event_class){.name = e->name,
		.id = e->id,
		.stream_class = e->stream->id,
		.trace = trace,
		.log_level = e->loglevel};
	list_scopes(&l, e);
	l.fields = ky_arena_alloc(&d->arena, l.n * sizeof(*l.fields));
	if (!l.fields)
		return false;
	list_scopes(&l, e);
	c->fields = l.fields;
	c->n_fields = l.n;
	return !l.failed;
}

static bool add_classes(struct ky_description *d, const struct ky_trace_reader *r)
{
	bool ok = true;

	for (size_t i = 0; i < r->n_traces; i++) {
		const struct ky_layout *l = &r->traces[i]->layout;

		for (size_t j = 0; j < l->n_streams; j++)
			for (size_t k = 0; k < l->streams[j].n_events && ok; k++)
				ok = add_class(d, &l->streams[j].events[k], i);
	}
	return ok;
}

static void add_stream(struct ky_description *d, size_t i, const struct ky_stream *s)
{
	const struct ky_file *f = &s->files[0];

	d->streams[i] = (struct kymo_stream_info){
		.trace = number_of(d->reader, f->trace),
		.stream_class = f->class ? f->class->id : 0,
		.instance = f->instance,
		.n_files = s->n_files,
		.path = f->path,
		.n_bytes = s->n_bytes,
		.has_times = f->class && f->class->clock,
		.is_of_threads = ky_stream_is_of_thread(s),
	};
	d->streams[i].is_cut = ky_stream_is_cut(s, &d->streams[i].complete_from_ns);
}

static const char *text_of(const struct ky_tsdl *t, const char *name)
{
	const struct ky_env *e = ky_tsdl_env(t, name);

	return e && e->text ? e->text : "";
}

static void add_trace(struct ky_description *d, size_t i, const struct ky_trace *t)
{
	const struct ky_trace_clock *c = t->tsdl.n_clocks ? &t->tsdl.clocks[0] : NULL;
	struct kymo_trace_info *info = &d->traces[i];

	*info = (struct kymo_trace_info){.path = t->dir,
		.name = t->name,
		.host = text_of(&t->tsdl, "hostname"),
		.clock_name = c && c->name ? c->name : "",
		.clock_description = c && c->description ? c->description : "",
		.clock_frequency = c ? c->freq : 0,
		.has_uuid = t->tsdl.has_uuid};
	memcpy(info->uuid, t->tsdl.uuid, sizeof(info->uuid));
}

int ky_description_new(struct ky_description **ret, const struct ky_trace_reader *r)
{
	struct ky_description *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->reader = r;
	d->n_traces = r->n_traces;
	d->n_streams = r->n_streams;
	d->n_classes = r->n_classes;
	d->traces = ky_arena_alloc(&d->arena, r->n_traces * sizeof(*d->traces));
	d->streams = ky_arena_alloc(&d->arena, r->n_streams * sizeof(*d->streams));
	d->classes = ky_arena_alloc(&d->arena, r->n_classes * sizeof(*d->classes));
	if (!d->traces || !d->streams || !d->classes || !add_classes(d, r)) {
		ky_description_free(d);
		return -ENOMEM;
	}
	for (size_t i = 0; i < r->n_traces; i++)
		add_trace(d, i, r->traces[i]);
	for (size_t i = 0; i < r->n_streams; i++)
		add_stream(d, i, r->streams[i]);
	*ret = d;
	return 0;
}

struct ky_description *ky_description_free(struct ky_description *d)
{
	if (d)
		ky_arena_deinit(&d->arena);
	free(d);
	return NULL;
}

const char *ky_description_env(const struct ky_description *d, size_t trace, const char *name)
{
	const struct ky_env *e = trace < d->n_traces
					 ? ky_tsdl_env(&d->reader->traces[trace]->tsdl, name)
					 : NULL;

	return !e ? NULL : e->text ? e->text : e->digits;
}
