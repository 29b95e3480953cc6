/* SPDX-License-Identifier: MIT */
#include "export/folded.h"

#include <inttypes.h>

#include "analysis/spans.h"
#include "reader/api.h"
#include "reader/field.h"
#include "symbols/symbols.h"

struct stack {
	struct ky_hnode node;
	uint64_t n[KY_FOLDED_SIDES];
	size_t len;
	char text[];
};

/* Of the spans around one span. */
#define MAX_FRAMES	256
#define MAX_STACK_BYTES ((size_t)8192)

/* --- stacks --- */

static int add_stack(struct ky_folded *f, size_t side, uint64_t n)
{
	uint32_t hash = ky_hash(f->text.data, f->text.len);
	struct stack *s;

	if (f->text.error)
		return f->text.error;
	for (struct ky_hnode *h = ky_htab_first(&f->stacks, hash); h; h = ky_htab_next(h)) {
		s = ky_container_of(h, struct stack, node);
		if (s->len == f->text.len && !memcmp(s->text, f->text.data, s->len)) {
			s->n[side] += n;
			return 0;
		}
	}
	s = calloc(1, sizeof(*s) + f->text.len);
	if (!s || ky_htab_add(&f->stacks, &s->node, hash) < 0) {
		free(s);
		return -ENOMEM;
	}
	s->n[side] = n;
	s->len = f->text.len;
	memcpy(s->text, f->text.data, s->len);
	return 0;
}

/* --- spans --- */

/* A frame's name: ';' separates frames, a blank the number, a newline stacks. */
static void put_frame(struct ky_buf *b, const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = name[i];

		if (c == ';')
			c = ':';
		else if ((unsigned char)c <= ' ' || c == 0x7f)
			c = '_';
		ky_buf_append(b, &c, 1);
	}
}

/*
 * Spans in which a span began, the outermost first. The outermost ones are left out if there are
 * many, so that the text of all stacks is linear in the length of the trace.
 */
static void put_stack(struct ky_buf *b, const struct ky_open_span *outer)
{
	const struct ky_span_name *names[MAX_FRAMES];
	size_t n = 0, len = 0;

	for (; outer && n < MAX_FRAMES && len < MAX_STACK_BYTES;
		outer = ky_open_span_outer(outer)) {
		names[n] = ky_open_span_name(outer);
		len += names[n++]->name_len;
	}
	if (outer)
		ky_buf_puts(b, "...;");
	while (n-- > 0) {
		put_frame(b, names[n]->name, names[n]->name_len);
		ky_buf_append(b, ";", 1);
	}
}

struct span_reading {
	struct ky_folded *folded;
	size_t side;
};

static int add_span(void *arg, const struct ky_ended_span *e)
{
	const struct span_reading *r = arg;
	struct ky_folded *f = r->folded;

	f->text.len = 0;
	put_stack(&f->text, e->outer);
	put_frame(&f->text, e->name->name, e->name->name_len);
	return add_stack(f, r->side, e->self_ns);
}

/* want: of the classes that have spans, KY_WANT_EVENT. */
static int read_spans(
	struct ky_folded *f, const struct ky_query *q, const uint8_t *want, size_t side)
{
	struct span_reading to = {f, side};
	struct ky_spans spans = {.ended = add_span, .arg = &to};
	struct ky_reading reading = {0};
	struct ky_item item;
	int r = ky_spans_begin(&spans, q->reader);

	if (!r)
		r = ky_reading_init(&reading, q, want, NULL, &q->reader->options);
	while (!r && (r = ky_cursor_next(reading.cursor, &item, NULL)) > 0)
		r = ky_spans_add(&spans, &item);
	ky_reading_deinit(&reading);
	ky_spans_deinit(&spans);
	return r;
}

/* --- call stacks --- */

/* The fields of one class: contexts, but for the stacks of CPU samples, and what they are of. */
struct call_fields {
	struct ky_field_ref kernel, user, sampled, procname, pid, pid_ns;
};

struct call_reading {
	struct ky_folded *folded;
	struct ky_symbols *symbols; /* owned */
	struct call_fields *fields; /* owned, by class */
	struct ky_reading reading;
	struct ky_values values;
	struct ky_item item;
	size_t side;
};

static bool find_calls(struct call_fields *f, const struct ky_event_class *c)
{
	bool has_kernel = ky_field_find(&f->kernel, c, "$ctx.callstack_kernel");
	bool has_user = ky_field_find(&f->user, c, "$ctx.callstack") ||
			ky_field_find(&f->user, c, "$ctx.callstack_user");

	if (c->name && !strcmp(c->name, "kymo_sample")) {
		has_kernel = ky_field_find(&f->kernel, c, "callstack_kernel");
		has_user = ky_field_find(&f->user, c, "callstack_user") &&
			   ky_field_find(&f->sampled, c, "addr");
	}
	if (!ky_field_find(&f->procname, c, "$ctx.procname"))
		ky_field_find(&f->procname, c, "$ctx.comm");
	if (!ky_field_find(&f->pid, c, "$ctx.vpid"))
		ky_field_find(&f->pid, c, "$ctx.pid");
	ky_field_find(&f->pid_ns, c, "$ctx.pid_ns");
	return has_kernel || has_user;
}

static bool get_number(struct ky_field_ref *f, const struct ky_item *item, uint64_t *ret)
{
	struct ky_field_value v;

	if (!f->node || !ky_field_get(f, item, &v) || v.v->node->kind != KY_NODE_INT)
		return false;
	*ret = v.v->u;
	return true;
}

static void get_process(const struct call_reading *r, struct ky_process_id *ret)
{
	const struct ky_item *item = &r->item;
	struct call_fields *f = &r->fields[item->event->index];
	const struct ky_env *host = ky_tsdl_env(&item->trace->tsdl, "hostname");
	const struct ky_env *vpid = ky_tsdl_env(&item->trace->tsdl, "vpid");
	uint64_t pid = vpid && !vpid->text ? (uint64_t)vpid->number : 0;

	*ret = (struct ky_process_id){.host = host && host->text ? host->text : ""};
	ret->is_known = get_number(&f->pid, item, &pid) || vpid;
	ret->pid = (int64_t)pid;
	get_number(&f->pid_ns, item, &ret->pid_ns);
}

static void put_procname(struct call_reading *r)
{
	struct ky_field_ref *f = &r->fields[r->item.event->index].procname;
	struct ky_buf *b = &r->folded->text;
	struct ky_field_value v;

	if (f->node && ky_field_get(f, &r->item, &v) &&
		(v.v->node->is_text || v.v->node->kind == KY_NODE_STRING))
		put_frame(b, v.v->text, v.v->n);
}

static void put_address(struct call_reading *r, struct ky_symbol_address *a, uint64_t address)
{
	struct ky_buf *b = &r->folded->text;
	char text[KY_SYMBOL_MAX];
	size_t n;

	a->address = address;
	n = ky_symbols_find(r->symbols, a, KY_SYMBOL_STACK, text);
	ky_buf_puts(b, b->len ? ";" : "");
	if (n)
		ky_buf_append(b, text, n);
	else
		ky_buf_printf(b, "0x%" PRIx64, address);
}

/* Appends the frames of one context, the outermost first. Contexts end with zeros. */
static void put_calls(struct call_reading *r, struct ky_field_ref *f, struct ky_symbol_address *a)
{
	struct ky_field_value v;
	const struct ky_node *elem;

	if (!f->node || !ky_field_get(f, &r->item, &v) || !v.v->node->is_scalars)
		return;
	elem = v.v->node->children;
	for (uint64_t i = v.v->n; elem->kind == KY_NODE_INT && i-- > 0;) {
		uint64_t at = v.v->at + i * ky_node_stride(elem);
		uint64_t address = ky_read_int(v.data, at, elem);

		if (address)
			put_address(r, a, address);
	}
}

static int add_event(struct call_reading *r)
{
	struct call_fields *f = &r->fields[r->item.event->index];
	struct ky_symbol_address a = {
		.has_time = r->item.has_time, .ns = r->item.ns, .is_return = true};
	uint64_t address;
	size_t n_before;

	r->folded->text.len = 0;
	get_process(r, &a.process);
	put_procname(r);
	n_before = r->folded->text.len;
	put_calls(r, &f->user, &a);
	put_calls(r, &f->kernel, &a);
	a.is_return = false;
	if (get_number(&f->sampled, &r->item, &address))
		put_address(r, &a, address);
	return r->folded->text.len == n_before ? 0 : add_stack(r->folded, r->side, 1);
}

static int read_calls(const struct ky_query *q, const uint8_t *want, struct call_reading *r)
{
	int e = ky_reading_init(&r->reading, q, want, NULL, &q->reader->options);

	while (!e && (e = ky_cursor_next(r->reading.cursor, &r->item, &r->values)) > 0) {
		e = r->item.kind == KY_ITEM_EVENT ? add_event(r) : 0;
		r->values.n = 0;
	}
	ky_reading_deinit(&r->reading);
	free(r->values.v);
	return e;
}

/* --- reading --- */

/* Chooses the classes of the one kind of stacks or of the other. Returns true if there is any. */
static bool choose_stack_classes(uint8_t *want, const struct ky_query *q, struct call_fields *calls)
{
	bool any = false;

	for (size_t i = 0; i < q->reader->n_classes; i++) {
		struct ky_event_class *c = q->reader->classes[i];
		bool has = calls ? find_calls(&calls[i], c) : c->is_span;

		want[i] = !has || !ky_query_has(q, i) ? 0
			  : calls		      ? KY_WANT_EVENT | KY_WANT_VALUES
						      : KY_WANT_EVENT;
		any |= want[i];
	}
	return any;
}

int ky_folded_read(struct ky_folded *f, const struct ky_tables *t,
	const struct ky_folded_options *o, size_t side)
{
	struct call_reading calls = {.folded = f, .side = side};
	struct kymo_query *public = NULL;
	const struct ky_query *q;
	uint8_t *want = NULL;
	bool spans = false;
	int r = ky_tables_query(t, &public);

	if (r < 0)
		return r;
	q = ky_query_inside(public);
	want = calloc(q->reader->n_classes + 1, 1);
	calls.fields = calloc(q->reader->n_classes + 1, sizeof(*calls.fields));
	if (!want || !calls.fields)
		r = -ENOMEM;
	else
		f->has_spans |= spans = o->stacks != KY_STACKS_CALLS &&
					choose_stack_classes(want, q, NULL);
	if (!r && spans) {
		r = read_spans(f, q, want, side);
	} else if (!r && o->stacks != KY_STACKS_SPANS &&
		   choose_stack_classes(want, q, calls.fields)) {
		f->has_calls = true;
		r = ky_symbols_new(&calls.symbols, t->reader, o->dirs, o->n_dirs);
		if (!r)
			r = read_calls(q, want, &calls);
		if (!r && o->warn)
			ky_symbols_report(calls.symbols, o->warn, o->arg);
	}
	ky_symbols_free(calls.symbols);
	free(calls.fields);
	free(want);
	kymo_query_free(public);
	return r;
}

/* --- lines --- */

static int by_text(const void *a, const void *b)
{
	const struct stack *x = *(struct stack *const *)a, *y = *(struct stack *const *)b;
	int r = memcmp(x->text, y->text, KY_MIN(x->len, y->len));

	return r ? r : (x->len > y->len) - (x->len < y->len);
}

int ky_folded_write(const struct ky_folded *f, struct ky_out *out, size_t n_sides)
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
		for (size_t side = 0; side < n_sides; side++)
			ky_buf_printf(&out->buf, " %" PRIu64, all[i]->n[side]);
		ky_buf_puts(&out->buf, "\n");
		r = ky_out_flush(out);
	}
	free(all);
	return r;
}

const char *ky_folded_why_none(const struct ky_folded *f, enum ky_stacks stacks)
{
	if (f->has_spans || stacks == KY_STACKS_SPANS)
		return "there is no span that ended: <kymo/span.h> makes them (kymo_span)";
	if (f->has_calls)
		return "no event has a call stack: CPU samples need a program that runs on a CPU for more than a moment, and -t callstack needs frame pointers (-fno-omit-frame-pointer)";
	return "there are neither spans (kymo_span of <kymo/span.h>) nor call stacks (kymo record -t callstack)";
}

void ky_folded_deinit(struct ky_folded *f)
{
	ky_htab_free_all(&f->stacks, struct stack, node);
	ky_buf_deinit(&f->text);
}

int ky_export_folded(const struct ky_tables *t, const char *path,
	const struct ky_folded_options *options, char why[KY_EXPORT_WHY])
{
	struct ky_out_room room = ky_out_room(t->n_bytes);
	struct ky_folded f = {0};
	struct ky_out out;
	int r = ky_out_open(&out, path, &room), e;

	why[0] = '\0';
	if (!r)
		r = ky_folded_read(&f, t, options, 0);
	if (!r && !f.stacks.n) {
		r = -ENODATA;
		snprintf(why, KY_EXPORT_WHY, "%s", ky_folded_why_none(&f, options->stacks));
	}
	if (!r)
		r = ky_folded_write(&f, &out, 1);
	e = ky_out_close(&out, !r);
	ky_folded_deinit(&f);
	return r ? r : e;
}
