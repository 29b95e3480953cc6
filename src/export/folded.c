/* SPDX-License-Identifier: MIT */
/*
 * Stacks of spans: "outer;inner NANOSECONDS", where the number is the time that the spans had
 * without those that began in them. Equal stacks are added. Flame graphs are drawn from it.
 */
#include <inttypes.h>

#include "analysis/spans.h"
#include "base/buf.h"
#include "export/export.h"
#include "export/out.h"
#include "reader/api.h"

struct stack {
	struct ky_hnode node;
	uint64_t ns;
	size_t len;
	char text[];
};

struct folded {
	struct ky_htab stacks;
	struct ky_buf text;
};

/* A frame's name: ';' separates frames, a blank the number, a newline stacks. */
static void put_frame(struct ky_buf *b, const struct ky_span_name *n)
{
	for (size_t i = 0; i < n->name_len; i++) {
		char c = n->name[i];

		if (c == ';')
			c = ':';
		else if ((unsigned char)c <= ' ' || c == 0x7f)
			c = '_';
		ky_buf_append(b, &c, 1);
	}
}

static void put_stack(struct ky_buf *b, const struct ky_open_span *outer)
{
	if (!outer)
		return;
	put_stack(b, ky_open_span_outer(outer));
	put_frame(b, ky_open_span_name(outer));
	ky_buf_append(b, ";", 1);
}

static int add_time(struct folded *f, uint64_t ns)
{
	uint32_t hash = ky_hash(f->text.data, f->text.len);
	struct stack *s;

	for (struct ky_hnode *n = ky_htab_first(&f->stacks, hash); n; n = ky_htab_next(n)) {
		s = ky_container_of(n, struct stack, node);
		if (s->len == f->text.len && !memcmp(s->text, f->text.data, s->len)) {
			s->ns += ns;
			return 0;
		}
	}
	s = malloc(sizeof(*s) + f->text.len);
	if (!s || ky_htab_add(&f->stacks, &s->node, hash) < 0) {
		free(s);
		return -ENOMEM;
	}
	s->ns = ns;
	s->len = f->text.len;
	memcpy(s->text, f->text.data, s->len);
	return 0;
}

static int add_span(void *arg, const struct ky_ended_span *e)
{
	struct folded *f = arg;

	f->text.len = 0;
	put_stack(&f->text, e->outer);
	put_frame(&f->text, e->name);
	return f->text.error ? f->text.error : add_time(f, e->self_ns);
}

static int read_spans(struct folded *f, const struct ky_query *q)
{
	const struct ky_trace_reader *reader = q->reader;
	struct ky_spans spans = {.ended = add_span, .arg = f};
	uint8_t *want = calloc(reader->n_classes + 1, 1);
	struct ky_reading reading = {0};
	struct ky_item item;
	int r = want ? ky_spans_begin(&spans, reader) : -ENOMEM;

	for (size_t i = 0; want && i < reader->n_classes; i++)
		want[i] = reader->classes[i]->is_span ? KY_WANT_EVENT : 0;
	if (!r)
		r = ky_reading_init(&reading, q, want, NULL, &reader->options);
	while (!r && (r = ky_cursor_next(reading.cursor, &item, NULL)) > 0)
		r = ky_spans_add(&spans, &item);
	ky_reading_deinit(&reading);
	ky_spans_deinit(&spans);
	free(want);
	return r;
}

static int by_text(const void *a, const void *b)
{
	const struct stack *x = *(struct stack *const *)a, *y = *(struct stack *const *)b;
	int r = memcmp(x->text, y->text, KY_MIN(x->len, y->len));

	return r ? r : (x->len > y->len) - (x->len < y->len);
}

static int write_stacks(struct folded *f, struct ky_out *out)
{
	struct stack **all = calloc(f->stacks.n + 1, sizeof(struct stack *));
	struct ky_hnode *n, *tmp;
	size_t i, k = 0;
	int r = all ? 0 : -ENOMEM;

	ky_htab_foreach(&f->stacks, i, n, tmp)
	{
		if (all)
			all[k++] = ky_container_of(n, struct stack, node);
	}
	if (all)
		qsort(all, k, sizeof(struct stack *), by_text);
	for (i = 0; i < k && !r; i++) {
		ky_buf_append(&out->buf, all[i]->text, all[i]->len);
		ky_buf_printf(&out->buf, " %" PRIu64 "\n", all[i]->ns);
		r = ky_out_flush(out);
	}
	free(all);
	return r;
}

int ky_export_folded(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY])
{
	struct folded f = {0};
	struct kymo_query *q = NULL;
	struct ky_hnode *n, *tmp;
	struct ky_out out;
	size_t i;
	int r = ky_out_open(&out, path), e;

	why[0] = '\0';
	if (!r)
		r = ky_tables_query(t, &q);
	if (!r)
		r = read_spans(&f, ky_query_inside(q));
	if (!r && !f.stacks.n) {
		r = -ENODATA;
		snprintf(why, KY_EXPORT_WHY,
			"there is no span that ended: <kymo/span.h> makes them (kymo_span)");
	}
	if (!r)
		r = write_stacks(&f, &out);
	e = ky_out_close(&out, !r);
	kymo_query_free(q);
	ky_htab_foreach(&f.stacks, i, n, tmp)
	{
		free(ky_container_of(n, struct stack, node));
	}
	ky_htab_deinit(&f.stacks);
	ky_buf_deinit(&f.text);
	return r ? r : e;
}
