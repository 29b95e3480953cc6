/* SPDX-License-Identifier: MIT */
#include "kernel/filter.h"

#include <inttypes.h>

#include "filter/program.h"
#include "kernel/transcode.h"

#define KERNEL_TEXT_MAX 255u /* bytes of a text that the kernel compares */

/* A filter that is being translated. */
struct translation {
	const struct ky_kprogram *p;
	struct ky_filter_tree tree;
};

static void append_enclosed(
	struct ky_buf *b, const char *open, const struct ky_buf *what, const char *close)
{
	ky_buf_puts(b, open);
	ky_buf_append(b, what->data, what->len);
	ky_buf_puts(b, close);
}

static const struct ky_filter_node *node_of(const struct translation *t, unsigned i)
{
	return &t->tree.nodes[i];
}

/* --- operands --- */

/* An integer of the kernel's record. */
struct number {
	char name[KY_KNAME_MAX];
	unsigned bits; /* bits of it in the trace */
	bool is_signed;
	bool differs;  /* the kernel compares more bits, which mean nothing, or with another sign */
	bool has_mask; /* the kernel takes `NAME & MASK` as it is meant */
	int32_t added; /* the trace's value is greater by this */
};

/* Returns the field of the trace that the node names, or -1. */
static int find_field(const struct translation *t, const struct ky_filter_node *n)
{
	for (uint32_t i = 0; n->op == KY_OP_FIELD && i < t->p->n_fields; i++)
		if (strlen(t->p->fields[i].name) == n->len &&
			!memcmp(t->p->fields[i].name, n->text, n->len))
			return (int)i;
	return -1;
}

static bool is_context(const struct ky_filter_node *n, const char *name)
{
	return n->op == KY_OP_CONTEXT && n->len == strlen(name) && !memcmp(n->text, name, n->len);
}

/* Returns false if the node is no integer that the kernel can compare. */
static bool find_number(
	const struct translation *t, const struct ky_filter_node *n, struct number *ret)
{
	const struct ky_kfield *f;
	int i = find_field(t, n);

	*ret = (struct number){.bits = 32, .is_signed = true, .has_mask = true};
	if (is_context(n, "tid")) {
		strcpy(ret->name, "common_pid");
		return true;
	}
	if (is_context(n, "cpu_id")) {
		strcpy(ret->name, "CPU");
		ret->has_mask = false; /* the kernel accepts one, and then no event passes */
		return true;
	}
	f = i < 0 ? NULL : t->p->from[i].field;
	/* The kernel compares the text behind a pointer to characters, not the address. */
	if (!f || f->kind != KY_KFIELD_INT || f->is_text_pointer)
		return false;
	strcpy(ret->name, f->name);
	ret->bits = f->out * 8u;
	ret->is_signed = f->is_signed;
	ret->differs = f->out != f->size || f->other_sign;
	ret->added = t->p->from[i].added;
	return true;
}

static bool constant_of(const struct translation *t, unsigned i, __int128 *ret)
{
	const struct ky_filter_node *n = node_of(t, i);

	if (n->op == KY_OP_NEGATE && constant_of(t, i - 1, ret)) {
		*ret = -*ret;
		return true;
	}
	if (n->op == KY_OP_BIT_OR) {
		__int128 left;

		if (!constant_of(t, n->left, &left) || !constant_of(t, i - 1, ret))
			return false;
		*ret |= left;
		return true;
	}
	if (n->op != KY_OP_SIGNED && n->op != KY_OP_UNSIGNED)
		return false;
	*ret = n->op == KY_OP_SIGNED ? (__int128)n->number.s : (__int128)n->number.u;
	return true;
}

/* The kernel cuts a constant that does not match the field's size and sign. */
static bool constant_fits(const struct number *f, __int128 v)
{
	__int128 one = 1, end = one << (f->is_signed ? f->bits - 1 : f->bits);

	return v < end && v >= (f->is_signed ? -end : 0);
}

static void put_constant(struct ky_buf *b, __int128 v)
{
	if (v < 0)
		ky_buf_printf(b, "%" PRId64, (int64_t)v);
	else
		ky_buf_printf(b, "%" PRIu64, (uint64_t)v);
}

/* --- conditions --- */

static const char *comparison_text(uint8_t op, bool swapped)
{
	switch (op) {
	case KY_OP_EQ:
		return "==";
	case KY_OP_NE:
		return "!=";
	case KY_OP_LT:
		return swapped ? ">" : "<";
	case KY_OP_LE:
		return swapped ? ">=" : "<=";
	case KY_OP_GT:
		return swapped ? "<" : ">";
	case KY_OP_GE:
		return swapped ? "<=" : ">=";
	default:
		return NULL;
	}
}

static bool put_number_comparison(const struct translation *t, struct ky_buf *b, uint8_t op,
	unsigned field, unsigned constant, bool swapped)
{
	struct number f;
	__int128 v;

	if (!find_number(t, node_of(t, field), &f) || !constant_of(t, constant, &v))
		return false;
	v -= f.added;
	if (f.differs || !constant_fits(&f, v))
		return false;
	ky_buf_printf(b, "%s %s ", f.name, comparison_text(op, swapped));
	put_constant(b, v);
	return true;
}

/* `FIELD & MASK`, as a condition: true if any bit is set. */
static bool put_mask(const struct translation *t, struct ky_buf *b, unsigned i)
{
	unsigned l = node_of(t, i)->left, r = i - 1;
	struct number f;
	__int128 mask;

	if (node_of(t, i)->op != KY_OP_BIT_AND)
		return false;
	if (!find_number(t, node_of(t, l), &f)) {
		l = i - 1;
		r = node_of(t, i)->left;
	}
	if (!find_number(t, node_of(t, l), &f) || !f.has_mask || f.added ||
		!constant_of(t, r, &mask) || mask <= 0 ||
		mask >= (__int128)1 << (f.bits - f.is_signed))
		return false;
	ky_buf_printf(b, "%s & ", f.name);
	put_constant(b, mask);
	return true;
}

/* `(FIELD & MASK) != 0` and `== 0`. */
static bool put_mask_comparison(
	const struct translation *t, struct ky_buf *b, uint8_t op, unsigned mask, unsigned constant)
{
	struct ky_buf inner = {.max = KY_KFILTER_MAX};
	__int128 v;
	bool ok = (op == KY_OP_EQ || op == KY_OP_NE) && constant_of(t, constant, &v) && !v &&
		  put_mask(t, &inner, mask);

	if (ok)
		append_enclosed(b, op == KY_OP_EQ ? "!(" : "", &inner, op == KY_OP_EQ ? ")" : "");
	ky_buf_deinit(&inner);
	return ok;
}

/* Returns the kernel's name of a text, or NULL. */
static const char *find_text(const struct translation *t, const struct ky_filter_node *n)
{
	const struct ky_kfield *f;
	int i = find_field(t, n);

	if (is_context(n, "procname"))
		return "COMM";
	f = i < 0 ? NULL : t->p->from[i].field;
	return f && (f->kind == KY_KFIELD_TEXT || f->kind == KY_KFIELD_STRING) ? f->name : NULL;
}

/*
 * Returns true if the kernel reads the pattern as a filter of Kymo does. At the beginning of a text
 * with a star, it takes '!' for a negation, and a digit for a number.
 */
static bool pattern_is_plain(const struct ky_filter_node *n, bool glob)
{
	bool quote = memchr(n->text, '"', n->size), apostrophe = memchr(n->text, '\'', n->size);

	if (glob && strchr("!0123456789", n->text[0]))
		return false;
	for (unsigned i = 0; i < n->size; i++)
		if (strchr("?[\\", n->text[i]) || (unsigned char)n->text[i] < ' ')
			return false;
	return n->size && n->size <= KERNEL_TEXT_MAX - glob && !(quote && apostrophe);
}

static bool put_text_comparison(const struct translation *t, struct ky_buf *b, uint8_t op,
	const struct ky_filter_node *l, const struct ky_filter_node *r)
{
	const char *name = find_text(t, l), quote = memchr(r->text, '"', r->size) ? '\'' : '"';
	bool glob = memchr(r->text, '*', r->size), differs = op == KY_OP_NE;
	/*
	 * Of a text behind one star, the kernel compares the end of the field, which a shorter text
	 * does not reach, or the bytes behind the text, too. With two stars, it stops at the NUL.
	 */
	const char *star = glob && r->text[0] == '*' ? "*" : "";

	if (!name || (op != KY_OP_EQ && op != KY_OP_NE) || !pattern_is_plain(r, glob))
		return false;
	ky_buf_printf(b, "%s%s %s %c%s%.*s%c%s", differs && glob ? "!(" : "", name,
		glob ? "~" : comparison_text(op, false), quote, star, r->size, r->text, quote,
		differs && glob ? ")" : "");
	return true;
}

static bool put_comparison(const struct translation *t, struct ky_buf *b, unsigned i)
{
	unsigned l = node_of(t, i)->left, r = i - 1;
	uint8_t op = node_of(t, i)->op;

	if (!comparison_text(op, false))
		return false;
	if (node_of(t, r)->op == KY_OP_STRING)
		return put_text_comparison(t, b, op, node_of(t, l), node_of(t, r));
	if (node_of(t, l)->op == KY_OP_STRING)
		return put_text_comparison(t, b, op, node_of(t, r), node_of(t, l));
	return put_number_comparison(t, b, op, l, r, false) ||
	       put_number_comparison(t, b, op, r, l, true) || put_mask_comparison(t, b, op, l, r) ||
	       put_mask_comparison(t, b, op, r, l);
}

/* Results of a part: nothing can be translated, a necessary condition, or all of it. */
enum extent { NOTHING, PART, ALL };

static enum extent put_condition(const struct translation *t, struct ky_buf *b, unsigned i);

/* Puts `(L) && (R)`, or what there is of the two. */
static enum extent put_both(const struct translation *t, struct ky_buf *b, unsigned i)
{
	struct ky_buf l = {.max = KY_KFILTER_MAX}, r = {.max = KY_KFILTER_MAX};
	enum extent left = put_condition(t, &l, node_of(t, i)->left);
	enum extent right = put_condition(t, &r, i - 1), ret = PART;
	bool is_or = node_of(t, i)->op == KY_OP_OR;

	if (left && right) {
		append_enclosed(b, "(", &l, is_or ? ") || (" : ") && (");
		append_enclosed(b, "", &r, ")");
		ret = left == ALL && right == ALL ? ALL : PART;
	} else if ((left || right) && !is_or) {
		append_enclosed(b, "", left ? &l : &r, "");
	} else {
		ret = NOTHING;
	}
	if (l.error || r.error)
		b->error = -EMSGSIZE;
	ky_buf_deinit(&l);
	ky_buf_deinit(&r);
	return ret;
}

static enum extent put_not(const struct translation *t, struct ky_buf *b, unsigned i)
{
	struct ky_buf inner = {.max = KY_KFILTER_MAX};
	enum extent ret = put_condition(t, &inner, i - 1);

	if (ret == ALL)
		append_enclosed(b, "!(", &inner, ")");
	ky_buf_deinit(&inner);
	return ret == ALL ? ALL : NOTHING;
}

static enum extent put_condition(const struct translation *t, struct ky_buf *b, unsigned i)
{
	switch (node_of(t, i)->op) {
	case KY_OP_AND:
	case KY_OP_OR:
		return put_both(t, b, i);
	case KY_OP_NOT:
		return put_not(t, b, i);
	case KY_OP_BIT_AND:
		return put_mask(t, b, i) ? ALL : NOTHING;
	default:
		return put_comparison(t, b, i) ? ALL : NOTHING;
	}
}

/* --- for users --- */

static const char *operator_text(uint8_t op)
{
	static const char *const texts[] = {[KY_OP_OR] = "||",
		[KY_OP_AND] = "&&",
		[KY_OP_BIT_OR] = "|",
		[KY_OP_BIT_XOR] = "^",
		[KY_OP_BIT_AND] = "&",
		[KY_OP_SHL] = "<<",
		[KY_OP_SHR] = ">>",
		[KY_OP_ADD] = "+",
		[KY_OP_SUB] = "-",
		[KY_OP_MUL] = "*",
		[KY_OP_DIV] = "/",
		[KY_OP_MOD] = "%"};
	const char *comparison = comparison_text(op, false);

	return comparison ? comparison : texts[op];
}

static void put_expression(const struct translation *t, struct ky_buf *b, unsigned i, bool outer)
{
	const struct ky_filter_node *n = node_of(t, i);

	switch (n->op) {
	case KY_OP_SIGNED:
		ky_buf_printf(b, "%" PRId64, n->number.s);
		break;
	case KY_OP_UNSIGNED:
		ky_buf_printf(b, "%" PRIu64, n->number.u);
		break;
	case KY_OP_FLOAT:
		ky_buf_printf(b, "%g", n->number.f);
		break;
	case KY_OP_STRING:
		ky_buf_printf(b, "\"%.*s\"", n->size, n->text);
		break;
	case KY_OP_FIELD:
		ky_buf_printf(b, "%.*s", n->len, n->text);
		break;
	case KY_OP_ELEMENT:
		ky_buf_printf(b, "%.*s[%" PRIu32 "]", n->len, n->text, n->index);
		break;
	case KY_OP_CONTEXT:
		ky_buf_printf(b, "$ctx.%.*s", n->len, n->text);
		break;
	case KY_OP_NOT:
	case KY_OP_NEGATE:
	case KY_OP_COMPLEMENT:
		ky_buf_puts(b, n->op == KY_OP_NOT ? "!" : n->op == KY_OP_NEGATE ? "-" : "~");
		put_expression(t, b, i - 1, false);
		break;
	default:
		ky_buf_puts(b, outer ? "" : "(");
		put_expression(t, b, n->left, false);
		ky_buf_printf(b, " %s ", operator_text(n->op));
		put_expression(t, b, i - 1, false);
		ky_buf_puts(b, outer ? "" : ")");
	}
}

/* Puts the conditions, of those that all have to be met, that the kernel does not decide. */
static void put_rest(const struct translation *t, struct ky_buf *b, unsigned i)
{
	struct ky_buf none = {.max = KY_KFILTER_MAX};
	enum extent extent = put_condition(t, &none, i);

	ky_buf_deinit(&none);
	if (extent == ALL)
		return;
	if (node_of(t, i)->op == KY_OP_AND) {
		put_rest(t, b, node_of(t, i)->left);
		put_rest(t, b, i - 1);
		return;
	}
	ky_buf_puts(b, b->len ? " && " : "");
	put_expression(t, b, i, node_of(t, i)->op != KY_OP_OR || i == t->tree.n_nodes - 1);
}

/* --- all filters of an event --- */

/* Adds one filter to the two texts. Returns what the kernel decides of it. */
static enum extent add_filter(struct translation *t, const struct ky_buf *program,
	struct ky_buf *kernel, struct ky_buf *rest, bool several)
{
	struct ky_filter_error error;
	enum extent extent = NOTHING;
	struct ky_buf text = {.max = KY_KFILTER_MAX};
	unsigned node, last;

	if (ky_filter_check(&t->tree, program->data, program->len, t->p->fields,
		    ky_kfilter_find_context, &node, &error) < 0)
		return NOTHING;
	last = t->tree.n_nodes - 1;
	extent = put_condition(t, &text, last);
	if (extent && several)
		append_enclosed(kernel, kernel->len ? " || (" : "(", &text, ")");
	else if (extent)
		append_enclosed(kernel, "", &text, "");
	if (text.error)
		kernel->error = -EMSGSIZE;
	ky_buf_deinit(&text);
	if (extent == ALL)
		return ALL;
	ky_buf_puts(rest, rest->len ? " || " : "");
	text = (struct ky_buf){.max = KY_KFILTER_MAX};
	put_rest(t, &text, last);
	append_enclosed(rest, "", &text, "");
	ky_buf_deinit(&text);
	return extent;
}

static void take_text(char to[KY_KFILTER_MAX], struct ky_buf *from)
{
	snprintf(to, KY_KFILTER_MAX, "%.*s", (int)from->len, from->data ? from->data : "");
	ky_buf_deinit(from);
}

void ky_kfilter_translate(struct ky_kfilter *ret, const struct ky_kprogram *p,
	const struct ky_buf *programs, uint32_t n)
{
	static struct translation t;
	struct ky_buf kernel = {.max = KY_KFILTER_MAX - 1}, rest = {.max = KY_KFILTER_MAX - 1};
	bool all = true, any = true;

	t.p = p;
	for (uint32_t i = 0; i < n; i++) {
		enum extent extent = add_filter(&t, &programs[i], &kernel, &rest, n > 1);

		all = all && extent == ALL;
		any = any && extent != NOTHING;
	}
	if (!any || kernel.error)
		kernel.len = 0;
	ret->exact = all && !kernel.error;
	take_text(ret->kernel, &kernel);
	take_text(ret->rest, &rest);
}

bool ky_kfilter_find_context(const char *name, struct ky_filter_context *ret)
{
	*ret = (struct ky_filter_context){0};
	return ky_ktranscode_find_context(name, ret);
}
