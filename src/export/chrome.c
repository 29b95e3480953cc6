/* SPDX-License-Identifier: MIT */
/*
 * Chrome's JSON. Times are microseconds from the first event, with three decimals. Integers beyond
 * 2^53 are strings, because readers in JavaScript would change them.
 */
#include <inttypes.h>

#include "base/htab.h"
#include "base/text.h"
#include "export/export.h"
#include "export/out.h"
#include "export/timeline.h"
#include "reader/format.h"

#define MAX_SIZE  ((uint64_t)500 * 1000 * 1000)
#define MAX_SAFE  ((uint64_t)1 << 53)
#define CPU_TRACK 1000000000 /* thread number of a processor's track, whose threads are unknown */

/* A thread whose name was written. */
struct track {
	struct ky_hnode node;
	int64_t pid, tid;
};

struct chrome {
	struct ky_out out;
	bool any; /* event was written */
	int64_t origin_ns;
	struct ky_htab tracks;
};

static void put_string(struct ky_buf *b, const char *text, size_t len)
{
	ky_format_json_string(b, text, len);
}

/* Begins an object: ph, name, ts, pid, tid. */
static void begin_object(
	struct chrome *c, const char *phase, const struct ky_mark *m, int64_t pid, int64_t tid)
{
	struct ky_buf *b = &c->out.buf;
	uint64_t ns = m->ns >= c->origin_ns ? (uint64_t)m->ns - (uint64_t)c->origin_ns : 0;

	ky_buf_puts(b, c->any ? ",\n" : "\n");
	c->any = true;
	ky_buf_printf(b, "{\"ph\":\"%s\",\"name\":", phase);
	put_string(b, m->name, m->name_len);
	ky_buf_printf(b, ",\"ts\":%" PRIu64 ".%03u,\"pid\":%" PRId64 ",\"tid\":%" PRId64, ns / 1000,
		(unsigned)(ns % 1000), pid, tid);
}

/* --- fields --- */

/* Returns the end of a JSON string that begins at p. */
static const char *skip_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p + 1 : end;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns true if the number of n characters is an integer beyond 2^53. */
static bool is_unsafe(const char *p, size_t n)
{
	size_t i = *p == '-';
	uint64_t v = 0;

	if (n - i < 16)
		return false;
	for (; i < n; i++) {
		if (!is_digit(p[i]))
			return false;
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, p[i] - '0', &v))
			return true;
	}
	return v > MAX_SAFE;
}

/* Copies a JSON object, with strings in the place of integers beyond 2^53. */
static void put_fields(struct ky_buf *b, const char *p, size_t len)
{
	const char *end = p + len, *next;

	for (; p < end; p = next) {
		bool is_quoted = false;

		next = p + 1;
		if (*p == '"') {
			next = skip_string(p, end);
		} else if (is_digit(*p) || *p == '-') {
			while (next < end && (is_digit(*next) || strchr("+-.eE", *next)))
				next++;
			is_quoted = is_unsafe(p, (size_t)(next - p));
		}
		ky_buf_append(b, "\"", is_quoted);
		ky_buf_append(b, p, (size_t)(next - p));
		ky_buf_append(b, "\"", is_quoted);
	}
}

/* --- marks --- */

static void put_name(
	struct chrome *c, const char *what, int64_t pid, int64_t tid, const char *name, size_t len)
{
	struct ky_buf *b = &c->out.buf;

	ky_buf_puts(b, c->any ? ",\n" : "\n");
	c->any = true;
	ky_buf_printf(b,
		"{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRId64 ",\"tid\":%" PRId64
		",\"args\":{\"name\":",
		what, pid, tid);
	put_string(b, name, len);
	ky_buf_puts(b, "}}");
}

/* Returns true if the thread is new; it is then known. */
static bool add_track(struct chrome *c, int64_t pid, int64_t tid)
{
	const int64_t key[] = {pid, tid};
	uint32_t hash = ky_hash(key, sizeof(key));
	struct track *t;

	for (struct ky_hnode *n = ky_htab_first(&c->tracks, hash); n; n = ky_htab_next(n)) {
		t = ky_container_of(n, struct track, node);
		if (t->pid == pid && t->tid == tid)
			return false;
	}
	t = calloc(1, sizeof(*t));
	if (!t || ky_htab_add(&c->tracks, &t->node, hash) < 0) {
		free(t);
		c->out.error = -ENOMEM;
		return false;
	}
	t->pid = pid;
	t->tid = tid;
	return true;
}

static void name_track(struct chrome *c, const struct ky_mark *m, int64_t pid, int64_t tid)
{
	char cpu[32];

	if (m->kind == KY_MARK_LOST || !add_track(c, pid, tid))
		return;
	if (m->procname) {
		put_name(c, "process_name", pid, tid, m->procname, m->procname_len);
		put_name(c, "thread_name", pid, tid, m->procname, m->procname_len);
	} else if (m->tid < 0 && m->cpu >= 0) {
		snprintf(cpu, sizeof(cpu), "CPU %" PRId64, m->cpu);
		put_name(c, "thread_name", pid, tid, cpu, strlen(cpu));
	}
}

static void put_flow(struct chrome *c, const struct ky_mark *m, int64_t pid, int64_t tid)
{
	static const char *const phases[] = {
		[KY_FLOW_BEGIN] = "s", [KY_FLOW_STEP] = "t", [KY_FLOW_END] = "f"};
	struct ky_mark base = *m;

	base.name_len = m->stem_len;
	begin_object(c, phases[m->flow], &base, pid, tid);
	ky_buf_puts(&c->out.buf, ",\"cat\":\"flow\",\"bp\":\"e\",\"id\":");
	put_string(&c->out.buf, m->flow_id, m->flow_id_len);
	ky_buf_puts(&c->out.buf, "}");
}

static void put_args(struct chrome *c, const struct ky_mark *m)
{
	ky_buf_puts(&c->out.buf, ",\"args\":");
	put_fields(&c->out.buf, m->fields, m->fields_len);
	ky_buf_puts(&c->out.buf, "}");
}

static void put_lane(struct chrome *c, const struct ky_mark *m, int64_t pid, int64_t tid)
{
	begin_object(c, m->kind == KY_MARK_LANE_BEGIN ? "b" : "e", m, pid, tid);
	ky_buf_puts(&c->out.buf, ",\"cat\":");
	put_string(&c->out.buf, m->name, m->name_len);
	ky_buf_puts(&c->out.buf, ",\"id\":");
	put_string(&c->out.buf, m->lane, m->lane_len);
	put_args(c, m);
}

static void put_counter(struct chrome *c, const struct ky_mark *m, int64_t pid, int64_t tid)
{
	struct ky_buf *b = &c->out.buf;
	char real[KY_REAL_TEXT];

	begin_object(c, "C", m, pid, tid);
	ky_buf_puts(b, ",\"args\":{\"value\":");
	if (m->value_type == KYMO_DOUBLE)
		ky_buf_append(b, real, ky_format_real(real, m->real, false));
	else if (m->value_type == KYMO_INT64)
		ky_buf_printf(b, "%" PRId64, (int64_t)m->number);
	else
		ky_buf_printf(b, "%" PRIu64, m->number);
	ky_buf_puts(b, "}}");
}

static void put_lost(struct chrome *c, const struct ky_mark *m)
{
	struct ky_buf *b = &c->out.buf;
	struct ky_mark lost = *m;

	lost.name = "lost";
	lost.name_len = strlen(lost.name);
	begin_object(c, "i", &lost, 0, 0);
	ky_buf_printf(b,
		",\"s\":\"g\",\"args\":{\"what\":\"%s\",\"n\":%" PRIu64 ",\"ns\":%" PRId64 "}}",
		m->what, m->n_lost, (int64_t)((uint64_t)m->end_ns - (uint64_t)m->ns));
}

static int put_mark(void *arg, const struct ky_mark *m)
{
	struct chrome *c = arg;
	int64_t pid = KY_MAX(m->pid, (int64_t)0);
	int64_t tid = m->tid >= 0 ? m->tid : CPU_TRACK + KY_MAX(m->cpu, (int64_t)0);

	if (!c->any)
		c->origin_ns = m->ns;
	name_track(c, m, pid, tid);
	switch (m->kind) {
	case KY_MARK_BEGIN:
	case KY_MARK_END:
		begin_object(c, m->kind == KY_MARK_BEGIN ? "B" : "E", m, pid, tid);
		put_args(c, m);
		break;
	case KY_MARK_LANE_BEGIN:
	case KY_MARK_LANE_END:
		put_lane(c, m, pid, tid);
		break;
	case KY_MARK_COUNTER:
		put_counter(c, m, pid, tid);
		break;
	case KY_MARK_LOST:
		put_lost(c, m);
		break;
	default:
		begin_object(c, "i", m, pid, tid);
		ky_buf_puts(&c->out.buf, ",\"s\":\"t\"");
		put_args(c, m);
		break;
	}
	if (m->flow)
		put_flow(c, m, pid, tid);
	return ky_out_flush(&c->out);
}

int ky_export_chrome(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY])
{
	struct ky_out_room room = ky_out_room(t->n_bytes);
	bool is_large = room.left > MAX_SIZE;
	struct chrome c = {0};
	int r, e;

	why[0] = '\0';
	room.left = KY_MIN(room.left, MAX_SIZE);
	r = ky_out_open(&c.out, path, &room);
	ky_buf_puts(&c.out.buf, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	if (!r)
		r = ky_timeline_read(t, put_mark, &c);
	ky_buf_puts(&c.out.buf, "\n]}\n");
	e = ky_out_close(&c.out, !r);
	ky_htab_free_all(&c.tracks, struct track, node);
	r = r ? r : e;
	if (r == -EFBIG && is_large)
		snprintf(why, KY_EXPORT_WHY,
			"the JSON would have more than 500 MB, which no viewer opens: use --to=perfetto, or select a part");
	return r;
}
