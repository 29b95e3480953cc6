/* SPDX-License-Identifier: MIT */
/*
 * Spans that carry identifiers of W3C Trace Context, as OpenTelemetry's spans (OTLP): protobuf, as
 * a collector accepts it over HTTP. Spans of the same thread inside of such a span become its
 * children, with identifiers that are computed, the same ones each time.
 */
#include <endian.h>

#include "base/hash.h"
#include "base/htab.h"
#include "base/list.h"
#include "base/vec.h"
#include "export/export.h"
#include "export/members.h"
#include "export/out.h"
#include "export/protobuf.h"
#include "export/timeline.h"

#define ID_SIZE	      8u
#define KIND_INTERNAL 1

#define MAX_ATTRIBUTES 1024 /* of a span; others are counted */

/* A span that has not ended. */
struct open_span {
	struct ky_hnode node;
	struct open_span *below; /* owned: with the same key, begun before; not in the table */
	struct ky_list exported; /* in thread->exported, if it is exported and of a thread */
	bool on_lane, is_exported;
	int64_t pid, tid, ns;
	struct ky_buf name, lane;      /* owned */
	KY_VEC(uint64_t) keys;	       /* hashes of the attributes' names */
	struct ky_buf attributes;      /* owned: fields of the message */
	uint64_t n_dropped;	       /* attributes */
	uint64_t trace[2], id, parent; /* as numbers */
};

struct thread {
	struct ky_hnode node;
	int64_t pid, tid;
	struct ky_list exported; /* open spans, the innermost last */
};

struct otlp {
	struct ky_out out;
	struct ky_htab open;	/* struct open_span: the newest of each key */
	struct ky_htab threads; /* struct thread: those that had an exported span */
	uint64_t n_left_out;
};

static void free_span(struct open_span *s)
{
	ky_list_remove(&s->exported);
	ky_buf_deinit(&s->name);
	ky_buf_deinit(&s->lane);
	ky_vec_deinit(&s->keys);
	ky_buf_deinit(&s->attributes);
	free(s);
}

/* --- identifiers --- */

/* The number at the beginning of a JSON value; large ones are strings. Returns its end. */
static const char *read_number(const char *p, uint64_t *ret)
{
	char *end;

	while (*p == '"' || *p == '[' || *p == ',' || *p == ' ')
		p++;
	*ret = strtoull(p, &end, 10);
	return end + (*end == '"');
}

static bool is_named(const struct ky_members *m, const char *name)
{
	return m->name.len == strlen(name) && !memcmp(m->name.data, name, m->name.len);
}

static void put_id(struct ky_buf *to, unsigned field, const uint64_t *numbers, size_t n)
{
	uint64_t bytes[2];

	for (size_t i = 0; i < n; i++)
		bytes[i] = htobe64(numbers[i]);
	ky_pb_bytes(to, field, (const char *)bytes, n * ID_SIZE);
}

/* A child without an identifier gets one that is the same each time. */
static uint64_t compute_id(const struct open_span *parent, const struct open_span *s)
{
	uint64_t id = parent->id ^ (uint64_t)s->ns * UINT64_C(0x9e3779b97f4a7c15);

	for (size_t i = 0; i < s->name.len; i++)
		id = (id ^ (uint8_t)s->name.data[i]) * UINT64_C(0x100000001b3);
	id ^= id >> 29;
	return id ? id : 1;
}

/* --- attributes --- */

static void put_attribute(
	struct ky_buf *to, unsigned field, const char *key, size_t len, const struct ky_buf *value)
{
	struct ky_buf pair = {0};

	ky_pb_string(&pair, 1, key, len);
	ky_pb_message(&pair, 2, value);
	ky_pb_message(to, field, &pair);
	ky_buf_deinit(&pair);
}

/* A JSON value as a value of OpenTelemetry; what is no number, string or truth stays JSON. */
static void put_value(struct ky_buf *to, const char *text, size_t len)
{
	struct ky_buf plain = {0};
	char number[40];

	snprintf(number, sizeof(number), "%.*s", (int)KY_MIN(len, sizeof(number) - 1), text);
	if (*text == '"') {
		ky_members_unescape(&plain, text + 1, text + len - 1);
		ky_pb_string(to, 1, plain.data ? plain.data : "", plain.len);
	} else if (*text == 't' || *text == 'f') {
		ky_pb_number(to, 2, *text == 't');
	} else if (*text != '-' && (*text < '0' || *text > '9')) {
		ky_pb_string(to, 1, text, len);
	} else if (strpbrk(number, ".eE")) {
		ky_pb_double(to, 4, strtod(number, NULL));
	} else {
		ky_pb_number(to, 3, (uint64_t)strtoll(number, NULL, 10));
	}
	ky_buf_deinit(&plain);
}

static bool has_key(const struct open_span *s, uint64_t hash)
{
	for (size_t i = 0; i < s->keys.n; i++)
		if (s->keys.v[i] == hash)
			return true;
	return false;
}

/* Adds an attribute. Keys are unique: a field of the end that the begin has, too, gets another. */
static void add_attribute(struct open_span *s, const struct ky_members *f)
{
	uint64_t hash = ky_hash64_add(KY_HASH64_BASIS, f->name.data, f->name.len);
	bool is_second = has_key(s, hash);
	struct ky_buf value = {0}, key = {0};

	if (s->keys.n == MAX_ATTRIBUTES || ky_vec_add(&s->keys, hash) < 0) {
		s->n_dropped++;
		return;
	}
	if (is_second)
		ky_buf_puts(&key, "end.");
	ky_buf_append(&key, f->name.data, f->name.len);
	put_value(&value, f->value, f->value_len);
	put_attribute(&s->attributes, 9, key.data, key.len, &value);
	ky_buf_deinit(&key);
	ky_buf_deinit(&value);
}

/* Takes the identifiers from the fields of an event, and all others as attributes. */
static void take_fields(struct open_span *s, const struct ky_mark *m, bool is_end)
{
	struct ky_members f;

	ky_members_begin(&f, m->fields, m->fields_len);
	while (ky_members_next(&f)) {
		if (is_named(&f, "trace_id") && *f.value == '[')
			read_number(read_number(f.value, &s->trace[0]), &s->trace[1]);
		else if (is_named(&f, "span_id"))
			read_number(f.value, &s->id);
		else if (is_named(&f, "parent_span_id"))
			read_number(f.value, &s->parent);
		else if (!is_end || !(is_named(&f, "async_id") || is_named(&f, "span_tid")))
			add_attribute(s, &f);
	}
	ky_members_end(&f);
}

/* --- spans --- */

static bool is_same(const struct ky_buf *a, const struct ky_buf *b)
{
	return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

/* The begin and the end of a span have its name and its lane or thread in common. */
static uint32_t hash_key(const struct open_span *s)
{
	uint64_t key[] = {ky_hash(s->name.data, s->name.len), 0, 0};

	if (s->on_lane) {
		key[1] = ky_hash(s->lane.data, s->lane.len);
	} else {
		key[1] = (uint64_t)s->pid;
		key[2] = (uint64_t)s->tid;
	}
	return ky_hash(key, sizeof(key));
}

static bool has_same_key(const struct open_span *a, const struct open_span *b)
{
	return a->on_lane == b->on_lane && is_same(&a->name, &b->name) &&
	       (a->on_lane ? is_same(&a->lane, &b->lane) : a->pid == b->pid && a->tid == b->tid);
}

/* The newest one. */
static struct open_span *find_open(struct otlp *o, const struct open_span *like)
{
	for (struct ky_hnode *n = ky_htab_first(&o->open, hash_key(like)); n; n = ky_htab_next(n)) {
		struct open_span *s = ky_container_of(n, struct open_span, node);

		if (has_same_key(s, like))
			return s;
	}
	return NULL;
}

/* make: makes the thread if there is none. Returns NULL if there is none, or no memory. */
static struct thread *find_thread(struct otlp *o, const struct open_span *s, bool make)
{
	const uint64_t key[] = {(uint64_t)s->pid, (uint64_t)s->tid};
	uint32_t hash = ky_hash(key, sizeof(key));
	struct thread *t;

	for (struct ky_hnode *n = ky_htab_first(&o->threads, hash); n; n = ky_htab_next(n)) {
		t = ky_container_of(n, struct thread, node);
		if (t->pid == s->pid && t->tid == s->tid)
			return t;
	}
	t = make ? calloc(1, sizeof(*t)) : NULL;
	if (!t)
		return NULL;
	t->pid = s->pid;
	t->tid = s->tid;
	ky_list_init(&t->exported);
	if (ky_htab_add(&o->threads, &t->node, hash) < 0) {
		free(t);
		return NULL;
	}
	return t;
}

/* The innermost span that is exported, of the same thread. */
static const struct open_span *find_parent(struct otlp *o, const struct open_span *s)
{
	const struct thread *t = find_thread(o, s, false);

	return t && !ky_list_empty(&t->exported)
		       ? ky_list_entry(t->exported.prev, struct open_span, exported)
		       : NULL;
}

static int add_open(struct otlp *o, struct open_span *s)
{
	struct thread *t = s->is_exported && !s->on_lane ? find_thread(o, s, true) : NULL;

	if (s->is_exported && !s->on_lane && !t)
		return -ENOMEM;
	s->below = find_open(o, s);
	if (s->below)
		ky_htab_remove(&o->open, &s->below->node);
	if (t)
		ky_list_append(&t->exported, &s->exported);
	return ky_htab_add(&o->open, &s->node, hash_key(s));
}

static void set_key(struct open_span *s, const struct ky_mark *m)
{
	s->on_lane = m->kind == KY_MARK_LANE_BEGIN || m->kind == KY_MARK_LANE_END;
	s->pid = m->pid;
	s->tid = m->tid;
	ky_buf_append(&s->name, m->name, m->name_len);
	if (m->lane)
		ky_buf_append(&s->lane, m->lane, m->lane_len);
}

static int begin_span(struct otlp *o, const struct ky_mark *m)
{
	struct open_span *s = calloc(1, sizeof(*s));
	const struct open_span *parent;

	if (!s)
		return -ENOMEM;
	ky_list_init(&s->exported);
	set_key(s, m);
	s->ns = m->ns;
	take_fields(s, m, false);
	s->is_exported = (s->trace[0] || s->trace[1]) && s->id;
	parent = s->is_exported || s->on_lane ? NULL : find_parent(o, s);
	if (parent) {
		s->is_exported = true;
		memcpy(s->trace, parent->trace, sizeof(s->trace));
		s->parent = parent->id;
		s->id = compute_id(parent, s);
	}
	if (add_open(o, s) < 0) {
		free_span(s);
		return -ENOMEM;
	}
	return 0;
}

static void put_text_attribute(
	struct ky_buf *to, unsigned field, const char *key, const char *text, size_t len)
{
	struct ky_buf value = {0};

	ky_pb_string(&value, 1, text, len);
	put_attribute(to, field, key, strlen(key), &value);
	ky_buf_deinit(&value);
}

static void put_number_attribute(struct ky_buf *to, unsigned field, const char *key, int64_t v)
{
	struct ky_buf value = {0};

	ky_pb_number(&value, 3, (uint64_t)v);
	put_attribute(to, field, key, strlen(key), &value);
	ky_buf_deinit(&value);
}

/* The process. */
static void put_resource(struct ky_buf *to, const struct ky_mark *m)
{
	struct ky_buf resource = {0};

	/* Without the context procname, as OpenTelemetry says. */
	put_text_attribute(&resource, 1, "service.name",
		m->procname ? m->procname : "unknown_service",
		m->procname ? m->procname_len : strlen("unknown_service"));
	if (m->pid >= 0)
		put_number_attribute(&resource, 1, "process.pid", m->pid);
	ky_pb_message(to, 1, &resource);
	ky_buf_deinit(&resource);
}

static void put_span(struct ky_buf *to, const struct open_span *s, const struct ky_mark *end)
{
	struct ky_buf span = {0};

	put_id(&span, 1, s->trace, 2);
	put_id(&span, 2, &s->id, 1);
	if (s->parent)
		put_id(&span, 4, &s->parent, 1);
	ky_pb_string(&span, 5, s->name.data ? s->name.data : "", s->name.len);
	ky_pb_number(&span, 6, KIND_INTERNAL);
	ky_pb_fixed(&span, 7, (uint64_t)s->ns);
	ky_pb_fixed(&span, 8, (uint64_t)end->ns);
	ky_buf_append(&span, s->attributes.data, s->attributes.len);
	if (s->tid >= 0)
		put_number_attribute(&span, 9, "thread.id", s->tid);
	if (s->n_dropped)
		ky_pb_number(&span, 10, s->n_dropped);
	ky_pb_message(to, 2, &span);
	ky_buf_deinit(&span);
}

static int end_span(struct otlp *o, const struct ky_mark *m)
{
	struct open_span like = {0}, *s;
	struct ky_buf resource_spans = {0}, scope_spans = {0}, scope = {0};

	set_key(&like, m);
	s = find_open(o, &like);
	ky_buf_deinit(&like.name);
	ky_buf_deinit(&like.lane);
	if (!s)
		return 0;
	if (s->is_exported && KY_MIN(s->ns, m->ns) < 0)
		return -EOPNOTSUPP;
	if (s->is_exported) {
		/* Its end may have fields, too. */
		take_fields(s, m, true);
		ky_pb_string(&scope, 1, "kymo", 4);
		ky_pb_message(&scope_spans, 1, &scope);
		put_span(&scope_spans, s, m);
		put_resource(&resource_spans, m);
		ky_pb_message(&resource_spans, 2, &scope_spans);
		ky_pb_message(&o->out.buf, 1, &resource_spans);
	} else {
		o->n_left_out++;
	}
	ky_buf_deinit(&scope);
	ky_buf_deinit(&scope_spans);
	ky_buf_deinit(&resource_spans);
	ky_htab_remove(&o->open, &s->node);
	if (s->below) /* in the room that it leaves */
		ky_htab_add(&o->open, &s->below->node, hash_key(s->below));
	free_span(s);
	return ky_out_flush(&o->out);
}

static int put_mark(void *arg, const struct ky_mark *m)
{
	switch (m->kind) {
	case KY_MARK_BEGIN:
	case KY_MARK_LANE_BEGIN:
		return begin_span(arg, m);
	case KY_MARK_END:
	case KY_MARK_LANE_END:
		return end_span(arg, m);
	default:
		return 0;
	}
}

static void free_all(struct otlp *o)
{
	struct open_span *s, *below;
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&o->open, i, n, tmp)
	{
		for (s = ky_container_of(n, struct open_span, node); s; s = below) {
			below = s->below;
			free_span(s);
		}
	}
	ky_htab_deinit(&o->open);
	ky_htab_free_all(&o->threads, struct thread, node);
}

int ky_export_otlp(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY])
{
	struct ky_out_room room = ky_out_room(t->n_bytes);
	struct otlp o = {0};
	int r = ky_out_open(&o.out, path, &room), e;

	why[0] = '\0';
	if (!r)
		r = ky_timeline_read(t, put_mark, &o);
	e = ky_out_close(&o.out, !r);
	if (r == -EOPNOTSUPP)
		snprintf(why, KY_EXPORT_WHY, "%s",
			"OpenTelemetry has no times before 1970: select a part");
	if (!r && o.n_left_out)
		snprintf(why, KY_EXPORT_WHY,
			"%llu spans have no W3C identifiers, and are in none that has: left out",
			(unsigned long long)o.n_left_out);
	free_all(&o);
	return r ? r : e;
}
