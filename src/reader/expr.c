/* SPDX-License-Identifier: MIT */
#include "reader/expr.h"

#include "filter/program.h"

struct ky_expr {
	unsigned n_users; /* atomic: it is not changed, and shared by copies */
	struct ky_filter_tree tree;
	uint8_t program[KY_FILTER_PROGRAM_MAX]; /* the tree's names lie here */
};

/* Evaluation of one event. */
struct run {
	const struct ky_filter_tree *tree;
	struct ky_field_ref *fields;
	const struct ky_item *item;
};

struct operand {
	uint8_t type; /* enum ky_filter_type; ANY: no value */
	union ky_filter_number n;
	const char *text; /* STRING */
	size_t len;
};

static const struct operand no_value;

/* Accepts any context: the binding of a class checks whether it has it. */
static bool find_any_context(const char *name, struct ky_filter_context *ret)
{
	*ret = (struct ky_filter_context){.type = KY_FILTER_ANY};
	return true;
}

int ky_expr_new(struct ky_expr **ret_expr, const char *text, struct ky_filter_error *error)
{
	struct ky_expr *e = calloc(1, sizeof(*e));
	unsigned node = 0;
	int r;

	if (!e)
		return -ENOMEM;
	r = ky_filter_compile(text, find_any_context, e->program, error);
	if (r >= 0)
		r = ky_filter_check(
			&e->tree, e->program, (size_t)r, NULL, find_any_context, &node, error);
	if (r < 0) {
		free(e);
		return -EINVAL;
	}
	e->n_users = 1;
	*ret_expr = e;
	return 0;
}

struct ky_expr *ky_expr_copy(const struct ky_expr *e)
{
	struct ky_expr *shared = (struct ky_expr *)e;

	__atomic_add_fetch(&shared->n_users, 1, __ATOMIC_RELAXED);
	return shared;
}

struct ky_expr *ky_expr_free(struct ky_expr *e)
{
	/* Pairs with itself: the last user sees what all have done. */
	if (e && !__atomic_sub_fetch(&e->n_users, 1, __ATOMIC_ACQ_REL))
		free(e);
	return NULL;
}

size_t ky_expr_n_fields(const struct ky_expr *e)
{
	return e->tree.n_nodes;
}

static bool is_name(const struct ky_filter_node *n)
{
	return n->op == KY_OP_FIELD || n->op == KY_OP_ELEMENT || n->op == KY_OP_CONTEXT;
}

bool ky_expr_field(const struct ky_expr *e, size_t i, char path[KY_EXPR_PATH_MAX])
{
	const struct ky_filter_node *n = &e->tree.nodes[i];

	if (!is_name(n))
		return false;
	snprintf(path, KY_EXPR_PATH_MAX, "%s%.*s", n->op == KY_OP_CONTEXT ? "$ctx." : "", n->len,
		n->text);
	if (n->op == KY_OP_ELEMENT)
		snprintf(path, KY_EXPR_PATH_MAX, "%.*s[%u]", n->len, n->text, n->index);
	return true;
}

bool ky_expr_bind(
	const struct ky_expr *e, const struct ky_event_class *event, struct ky_field_ref *fields)
{
	for (unsigned i = 0; i < e->tree.n_nodes; i++) {
		char path[KY_EXPR_PATH_MAX];

		fields[i].node = NULL;
		if (ky_expr_field(e, i, path) && !ky_field_find(&fields[i], event, path))
			return false;
	}
	return true;
}

/* The type that the values of a node have in all events of the class; ANY: not known. */
static enum ky_filter_type type_of(const struct ky_filter_node *n, const struct ky_field_ref *field)
{
	if (n->op == KY_OP_STRING)
		return KY_FILTER_STRING;
	if (ky_filter_is_literal(n))
		return KY_FILTER_SIGNED;
	if (!is_name(n) || field->has_element)
		return KY_FILTER_ANY;
	switch ((enum ky_node_kind)field->node->kind) {
	case KY_NODE_INT:
	case KY_NODE_FLOAT:
		return KY_FILTER_SIGNED;
	case KY_NODE_STRING:
		return KY_FILTER_STRING;
	default:
		return KY_FILTER_ANY;
	}
}

/* Returns whether a name stands for all elements of an array. */
static bool is_list(const struct ky_filter_node *n, const struct ky_field_ref *field)
{
	return is_name(n) && !field->has_element && ky_node_is_list(field->node) &&
	       !field->node->is_text;
}

bool ky_expr_mistakes_type(const struct ky_expr *e, const struct ky_field_ref *fields,
	char path[KY_EXPR_PATH_MAX], enum ky_expr_mistake *ret_mistake)
{
	for (unsigned i = 0; i < e->tree.n_nodes; i++) {
		const struct ky_filter_node *n = &e->tree.nodes[i];
		enum ky_filter_type a, b;

		*ret_mistake = KY_MISTAKE_LIST;
		if (is_list(n, &fields[i]))
			return ky_expr_field(e, i, path);
		if (n->op < KY_OP_EQ || n->op > KY_OP_GE)
			continue;
		a = type_of(&e->tree.nodes[n->left], &fields[n->left]);
		b = type_of(&e->tree.nodes[i - 1], &fields[i - 1]);
		if (!a || !b || (a == b && (a != KY_FILTER_STRING || n->op <= KY_OP_NE)))
			continue;
		*ret_mistake = a == KY_FILTER_STRING ? KY_MISTAKE_TEXT : KY_MISTAKE_NUMBER;
		if (ky_expr_field(e, n->left, path))
			return true;
		*ret_mistake = b == KY_FILTER_STRING ? KY_MISTAKE_TEXT : KY_MISTAKE_NUMBER;
		return ky_expr_field(e, i - 1, path);
	}
	return false;
}

/* --- operands --- */

static struct operand of_signed(int64_t v)
{
	return (struct operand){.type = KY_FILTER_SIGNED, .n.s = v};
}

static struct operand of_unsigned(uint64_t v)
{
	return (struct operand){.type = KY_FILTER_UNSIGNED, .n.u = v};
}

static struct operand of_float(double v)
{
	return (struct operand){.type = KY_FILTER_FLOAT, .n.f = v};
}

static struct operand of_field(const struct run *r, unsigned i)
{
	struct ky_field_value value;
	const struct ky_node *n;

	if (!ky_field_get(&r->fields[i], r->item, &value))
		return no_value;
	n = value.v->node;
	switch ((enum ky_node_kind)n->kind) {
	case KY_NODE_INT:
		return n->size == 64 && !n->is_signed ? of_unsigned(value.v->u)
						      : of_signed((int64_t)value.v->u);
	case KY_NODE_FLOAT:
		return of_float(value.v->f);
	case KY_NODE_STRING:
		break;
	case KY_NODE_ARRAY:
	case KY_NODE_SEQUENCE:
		if (n->is_text)
			break;
		return no_value;
	default:
		return no_value;
	}
	return (struct operand){.type = KY_FILTER_STRING,
		.text = value.v->text,
		.len = strnlen(value.v->text, KY_MIN(value.v->n, (uint64_t)KY_FILTER_STRING_MAX))};
}

static double to_float(const struct operand *o)
{
	return o->type == KY_FILTER_FLOAT      ? o->n.f
	       : o->type == KY_FILTER_UNSIGNED ? (double)o->n.u
					       : (double)o->n.s;
}

static bool is_true(const struct operand *o)
{
	return o->type == KY_FILTER_FLOAT ? o->n.f != 0 : o->n.u != 0;
}

/* --- strings --- */

/* Returns true if s matches pattern p: `*` is any text, `\` makes the next byte plain. */
static bool matches_wildcards(const char *p, size_t p_len, const char *s, size_t len)
{
	size_t i = 0, k = 0, star = SIZE_MAX, from = 0;

	while (k < len) {
		bool plain = i + 1 < p_len && p[i] == '\\';

		if (i < p_len && p[i] == '*') {
			star = ++i;
			from = k;
		} else if (i < p_len && p[i + plain] == s[k]) {
			i += 1 + plain;
			k++;
		} else if (star != SIZE_MAX) {
			i = star;
			k = ++from;
		} else {
			return false;
		}
	}
	while (i < p_len && p[i] == '*')
		i++;
	return i == p_len;
}

static bool equal_texts(const struct ky_filter_node *x, const struct operand *a,
	const struct ky_filter_node *y, const struct operand *b)
{
	if (y->op == KY_OP_STRING)
		return matches_wildcards(b->text, b->len, a->text, a->len);
	if (x->op == KY_OP_STRING)
		return matches_wildcards(a->text, a->len, b->text, b->len);
	return a->len == b->len && !memcmp(a->text, b->text, a->len);
}

/* --- operators --- */

static struct operand shift_operand(uint8_t op, const struct operand *a, const struct operand *b)
{
	if (a->type == KY_FILTER_FLOAT || b->type == KY_FILTER_FLOAT || b->n.u > 63)
		return no_value;
	if (op == KY_OP_SHL)
		return (struct operand){.type = a->type, .n.u = a->n.u << b->n.u};
	return a->type == KY_FILTER_UNSIGNED ? of_unsigned(a->n.u >> b->n.u)
					     : of_signed(a->n.s >> b->n.u);
}

static struct operand calculate_float(uint8_t op, double a, double b)
{
	switch (op) {
	case KY_OP_ADD:
		return of_float(a + b);
	case KY_OP_SUB:
		return of_float(a - b);
	case KY_OP_MUL:
		return of_float(a * b);
	case KY_OP_DIV:
		return of_float(a / b);
	case KY_OP_EQ:
		return of_signed(a == b);
	case KY_OP_NE:
		return of_signed(a != b);
	case KY_OP_LT:
		return of_signed(a < b);
	case KY_OP_LE:
		return of_signed(a <= b);
	case KY_OP_GT:
		return of_signed(a > b);
	case KY_OP_GE:
		return of_signed(a >= b);
	default:
		return no_value;
	}
}

static struct operand divide_operands(uint8_t op, const struct operand *a, const struct operand *b)
{
	if (!b->n.u)
		return no_value;
	if (a->type == KY_FILTER_UNSIGNED || b->type == KY_FILTER_UNSIGNED)
		return of_unsigned(op == KY_OP_DIV ? a->n.u / b->n.u : a->n.u % b->n.u);
	if (b->n.s == -1)
		return of_signed(op == KY_OP_DIV ? (int64_t)-a->n.u : 0);
	return of_signed(op == KY_OP_DIV ? a->n.s / b->n.s : a->n.s % b->n.s);
}

static struct operand evaluate_order(uint8_t op, int order)
{
	switch (op) {
	case KY_OP_EQ:
		return of_signed(order == 0);
	case KY_OP_NE:
		return of_signed(order != 0);
	case KY_OP_LT:
		return of_signed(order < 0);
	case KY_OP_LE:
		return of_signed(order <= 0);
	case KY_OP_GT:
		return of_signed(order > 0);
	default:
		return of_signed(order >= 0);
	}
}

static struct operand calculate_integer(
	uint8_t op, const struct operand *a, const struct operand *b)
{
	bool is_unsigned = a->type == KY_FILTER_UNSIGNED || b->type == KY_FILTER_UNSIGNED;
	struct operand r = {.type = is_unsigned ? KY_FILTER_UNSIGNED : KY_FILTER_SIGNED};

	switch (op) {
	case KY_OP_ADD:
		r.n.u = a->n.u + b->n.u;
		return r;
	case KY_OP_SUB:
		r.n.u = a->n.u - b->n.u;
		return r;
	case KY_OP_MUL:
		r.n.u = a->n.u * b->n.u;
		return r;
	case KY_OP_BIT_OR:
		r.n.u = a->n.u | b->n.u;
		return r;
	case KY_OP_BIT_XOR:
		r.n.u = a->n.u ^ b->n.u;
		return r;
	case KY_OP_BIT_AND:
		r.n.u = a->n.u & b->n.u;
		return r;
	case KY_OP_DIV:
	case KY_OP_MOD:
		return divide_operands(op, a, b);
	default:
		return evaluate_order(op, is_unsigned ? (a->n.u > b->n.u) - (a->n.u < b->n.u)
						      : (a->n.s > b->n.s) - (a->n.s < b->n.s));
	}
}

static struct operand calculate_operand(
	uint8_t op, const struct operand *a, const struct operand *b)
{
	if (op == KY_OP_SHL || op == KY_OP_SHR)
		return shift_operand(op, a, b);
	if (a->type == KY_FILTER_FLOAT || b->type == KY_FILTER_FLOAT)
		return calculate_float(op, to_float(a), to_float(b));
	return calculate_integer(op, a, b);
}

static struct operand evaluate(const struct run *r, unsigned i);

/* Evaluates `&&` and `||`, also if operands have no value. */
static struct operand evaluate_logic(const struct run *r, unsigned i)
{
	const struct ky_filter_node *n = &r->tree->nodes[i];
	bool decides = n->op == KY_OP_OR;
	struct operand a = evaluate(r, n->left), b;

	if (a.type && is_true(&a) == decides)
		return of_signed(decides);
	b = evaluate(r, i - 1);
	if (b.type && is_true(&b) == decides)
		return of_signed(decides);
	return a.type && b.type ? of_signed(!decides) : no_value;
}

static struct operand evaluate_binary(const struct run *r, unsigned i)
{
	const struct ky_filter_node *n = &r->tree->nodes[i];
	struct operand a = evaluate(r, n->left), b = evaluate(r, i - 1);
	bool is_equal;

	if (!a.type || !b.type)
		return no_value;
	if (a.type != KY_FILTER_STRING && b.type != KY_FILTER_STRING)
		return calculate_operand(n->op, &a, &b);
	if (a.type != b.type || (n->op != KY_OP_EQ && n->op != KY_OP_NE))
		return no_value;
	is_equal = equal_texts(&r->tree->nodes[n->left], &a, &r->tree->nodes[i - 1], &b);
	return of_signed(is_equal == (n->op == KY_OP_EQ));
}

static struct operand evaluate_unary(const struct run *r, unsigned i)
{
	uint8_t op = r->tree->nodes[i].op;
	struct operand a = evaluate(r, i - 1);

	if (!a.type || a.type == KY_FILTER_STRING)
		return no_value;
	if (op == KY_OP_NOT)
		return of_signed(!is_true(&a));
	if (op == KY_OP_NEGATE && a.type == KY_FILTER_FLOAT)
		return of_float(-a.n.f);
	if (a.type == KY_FILTER_FLOAT)
		return no_value;
	a.n.u = op == KY_OP_NEGATE ? -a.n.u : ~a.n.u;
	/* The least integer is the negation of one that is too large to be signed. */
	if (r->tree->nodes[i].type == KY_FILTER_SIGNED)
		a.type = KY_FILTER_SIGNED;
	return a;
}

static struct operand evaluate(const struct run *r, unsigned i)
{
	const struct ky_filter_node *n = &r->tree->nodes[i];

	switch (n->op) {
	case KY_OP_SIGNED:
		return of_signed(n->number.s);
	case KY_OP_UNSIGNED:
		return of_unsigned(n->number.u);
	case KY_OP_FLOAT:
		return of_float(n->number.f);
	case KY_OP_STRING:
		return (struct operand){.type = KY_FILTER_STRING, .text = n->text, .len = n->size};
	case KY_OP_FIELD:
	case KY_OP_ELEMENT:
	case KY_OP_CONTEXT:
		return of_field(r, i);
	case KY_OP_NOT:
	case KY_OP_NEGATE:
	case KY_OP_COMPLEMENT:
		return evaluate_unary(r, i);
	case KY_OP_OR:
	case KY_OP_AND:
		return evaluate_logic(r, i);
	default:
		return evaluate_binary(r, i);
	}
}

bool ky_expr_pass(const struct ky_expr *e, struct ky_field_ref *fields, const struct ky_item *item)
{
	const struct run r = {&e->tree, fields, item};
	struct operand o = evaluate(&r, e->tree.n_nodes - 1);

	return o.type && o.type != KY_FILTER_STRING && is_true(&o);
}
