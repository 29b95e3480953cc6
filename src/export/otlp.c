/* SPDX-License-Identifier: MIT */
/*
 * Spans that carry identifiers of W3C Trace Context, as OpenTelemetry's spans (OTLP): protobuf, as
 * a collector accepts it over HTTP. Spans of the same thread inside of such a span become its
 * children, with identifiers that are computed, the same ones each time.
 */
#include <endian.h>

#include "base/vec.h"
#include "export/export.h"
#include "export/members.h"
#include "export/out.h"
#include "export/protobuf.h"
#include "export/timeline.h"

#define ID_SIZE	      8u
#define KIND_INTERNAL 1

/* A span that has not ended. */
struct open_span {
	bool on_lane, exported;
	int64_t pid, tid, ns;
	struct ky_buf name, lane;	/* owned */
	struct ky_buf keys, attributes; /* owned: keys, each behind a NUL; fields of the message */
	uint64_t trace[2], id, parent;	/* as numbers */
};

struct otlp {
	struct ky_out out;
	KY_VEC(struct open_span) open;
	uint64_t n_left_out;
};

static void free_span(struct open_span *s)
{
	ky_buf_deinit(&s->name);
	ky_buf_deinit(&s->lane);
	ky_buf_deinit(&s->keys);
	ky_buf_deinit(&s->attributes);
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

/* Adds an attribute. Keys are unique: a field of the end that the begin has, too, gets another. */
static void add_attribute(struct open_span *s, const struct ky_members *f)
{
	struct ky_buf value = {0}, key = {0};

	ky_buf_append(&key, "", 1);
	ky_buf_append(&key, f->name.data, f->name.len);
	if (s->keys.len && !key.error && memmem(s->keys.data, s->keys.len, key.data, key.len)) {
		key.len = 1;
		ky_buf_puts(&key, "end.");
		ky_buf_append(&key, f->name.data, f->name.len);
	}
	ky_buf_append(&s->keys, key.data, key.len);
	put_value(&value, f->value, f->value_len);
	put_attribute(&s->attributes, 9, key.data + 1, key.len - 1, &value);
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

static bool is_same(const struct ky_buf *b, const char *text, size_t len)
{
	return b->len == len && (!len || !memcmp(b->data, text, len));
}

static struct open_span *find_open(struct otlp *o, const struct ky_mark *m)
{
	const bool on_lane = m->kind == KY_MARK_LANE_END;

	for (size_t i = o->open.n; i-- > 0;) {
		struct open_span *s = &o->open.v[i];

		if (s->on_lane == on_lane && is_same(&s->name, m->name, m->name_len) &&
			(on_lane ? is_same(&s->lane, m->lane, m->lane_len)
				 : s->pid == m->pid && s->tid == m->tid))
			return s;
	}
	return NULL;
}

/* The innermost span that is exported, of the same thread. */
static const struct open_span *find_parent(const struct otlp *o, const struct open_span *s)
{
	for (size_t i = o->open.n; i-- > 0;) {
		const struct open_span *p = &o->open.v[i];

		if (p->exported && !p->on_lane && p->pid == s->pid && p->tid == s->tid)
			return p;
	}
	return NULL;
}

static int begin_span(struct otlp *o, const struct ky_mark *m)
{
	struct open_span s = {.on_lane = m->kind == KY_MARK_LANE_BEGIN,
		.pid = m->pid,
		.tid = m->tid,
		.ns = m->ns};
	const struct open_span *parent;

	ky_buf_append(&s.name, m->name, m->name_len);
	if (m->lane)
		ky_buf_append(&s.lane, m->lane, m->lane_len);
	take_fields(&s, m, false);
	s.exported = (s.trace[0] || s.trace[1]) && s.id;
	parent = s.exported || s.on_lane ? NULL : find_parent(o, &s);
	if (parent) {
		s.exported = true;
		memcpy(s.trace, parent->trace, sizeof(s.trace));
		s.parent = parent->id;
		s.id = compute_id(parent, &s);
	}
	if (ky_vec_add(&o->open, s) < 0) {
		free_span(&s);
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
	ky_pb_message(to, 2, &span);
	ky_buf_deinit(&span);
}

static int end_span(struct otlp *o, const struct ky_mark *m)
{
	struct open_span *s = find_open(o, m);
	struct ky_buf resource_spans = {0}, scope_spans = {0}, scope = {0};

	if (!s)
		return 0;
	if (s->exported) {
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
	free_span(s);
	memmove(s, s + 1, (size_t)(o->open.v + o->open.n - (s + 1)) * sizeof(*s));
	o->open.n--;
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

int ky_export_otlp(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY])
{
	struct otlp o = {0};
	int r = ky_out_open(&o.out, path), e;

	why[0] = '\0';
	if (!r)
		r = ky_timeline_read(t, put_mark, &o);
	e = ky_out_close(&o.out, !r);
	if (!r && o.n_left_out)
		snprintf(why, KY_EXPORT_WHY,
			"%llu spans have no W3C identifiers, and are in none that has: left out",
			(unsigned long long)o.n_left_out);
	for (size_t i = 0; i < o.open.n; i++)
		free_span(&o.open.v[i]);
	ky_vec_deinit(&o.open);
	return r ? r : e;
}
