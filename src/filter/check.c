/* SPDX-License-Identifier: MIT */
/*
 * Reads a program, which may come from any source, into nodes, and finds the type of each. The
 * compiler uses it without a known event, so that the rules for combining operands are in one
 * place.
 */
#include <stdarg.h>

#include "filter/program.h"

struct check {
	const uint8_t *p;
	size_t left;
	bool malformed;
	struct ky_filter_tree *tree;
	const struct kymo_field *fields;
	ky_filter_find_context find;
	struct ky_filter_error *error;
	uint16_t stack[KY_FILTER_DEPTH_MAX]; /* nodes whose operator has not been read yet */
	unsigned n_stack;
};

void ky_filter_complain(struct ky_filter_error *error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
}

static const void *take_bytes(struct check *c, size_t n)
{
	const void *p = c->p;

	if (c->malformed || n > c->left) {
		c->malformed = true;
		return "\0\0\0\0\0\0\0";
	}
	c->p += n;
	c->left -= n;
	return p;
}

#define TAKE(c, to) memcpy(&(to), take_bytes(c, sizeof(to)), sizeof(to))

static bool name_valid(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!s[i] ||
			!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$.:-[]",
				s[i]))
			return false;
	return n > 0;
}

static void take_name(struct check *c, struct ky_filter_node *n)
{
	TAKE(c, n->len);
	n->text = take_bytes(c, n->len);
	c->malformed = c->malformed || !name_valid(n->text, n->len);
	if (n->op == KY_OP_ELEMENT)
		TAKE(c, n->index);
}

/* Returns true if each backslash is followed by a byte. */
static bool pattern_valid(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!s[i] || (s[i] == '\\' && (++i == n || !s[i])))
			return false;
	return true;
}

static int find_context(struct check *c, struct ky_filter_node *n)
{
	char name[256];

	snprintf(name, sizeof(name), "%.*s", n->len, n->text);
	if (!c->find(name, &n->context)) {
		ky_filter_complain(c->error, "there is no context '%s'", name);
		return -EINVAL;
	}
	n->type = (uint8_t)n->context.type;
	return 0;
}

static uint8_t type_of_place(const struct ky_filter_place *p)
{
	switch (p->kind) {
	case KYMO_FIELD_STRING:
	case KYMO_FIELD_TEXT:
	case KYMO_FIELD_TEXT_SEQUENCE:
		return KY_FILTER_STRING;
	case KYMO_FIELD_ARRAY:
	case KYMO_FIELD_SEQUENCE:
		if (p->elem == KYMO_FIELD_STRING)
			return KY_FILTER_STRING;
		if (p->elem == KYMO_FIELD_FLOAT)
			return KY_FILTER_FLOAT;
		break;
	case KYMO_FIELD_FLOAT:
		return KY_FILTER_FLOAT;
	default:
		break;
	}
	return p->size == 8 && !(p->flags & KYMO_FIELD_SIGNED) ? KY_FILTER_UNSIGNED
							       : KY_FILTER_SIGNED;
}

static int find_field(struct check *c, struct ky_filter_node *n)
{
	int ret = c->fields ? ky_filter_find_place(c->fields, n, c->error) : 0;

	n->type = c->fields && !ret ? type_of_place(&n->place) : KY_FILTER_ANY;
	return ret;
}

static int take_leaf(struct check *c, struct ky_filter_node *n)
{
	n->height = 1;
	switch (n->op) {
	case KY_OP_SIGNED:
	case KY_OP_UNSIGNED:
	case KY_OP_FLOAT:
		TAKE(c, n->number);
		n->type = (uint8_t)(KY_FILTER_SIGNED + (n->op - KY_OP_SIGNED));
		return 0;
	case KY_OP_STRING:
		TAKE(c, n->size);
		n->text = take_bytes(c, n->size);
		c->malformed = c->malformed || !pattern_valid(n->text, n->size);
		n->type = KY_FILTER_STRING;
		return 0;
	case KY_OP_FIELD:
	case KY_OP_ELEMENT:
		take_name(c, n);
		return c->malformed ? -EBADMSG : find_field(c, n);
	case KY_OP_CONTEXT:
		take_name(c, n);
		return c->malformed ? -EBADMSG : find_context(c, n);
	default:
		return -EBADMSG;
	}
}

/* Returns a description of an operand. */
static const char *describe_operand(const struct ky_filter_node *n, char *buf, size_t size)
{
	static const char *const kinds[] = {[KY_FILTER_ANY] = "a value",
		[KY_FILTER_SIGNED] = "a number",
		[KY_FILTER_UNSIGNED] = "a number",
		[KY_FILTER_FLOAT] = "a floating-point number",
		[KY_FILTER_STRING] = "a string"};

	if (n->op == KY_OP_FIELD || n->op == KY_OP_ELEMENT)
		snprintf(buf, size, "%s (field '%.*s')", kinds[n->type], KY_MIN(n->len, 60),
			n->text);
	else if (n->op == KY_OP_CONTEXT)
		snprintf(buf, size, "%s (context '%.*s')", kinds[n->type], KY_MIN(n->len, 60),
			n->text);
	else
		snprintf(buf, size, "%s", kinds[n->type]);
	return buf;
}

static int mismatch(struct check *c, const char *fmt, const struct ky_filter_node *n)
	__attribute__((format(printf, 2, 0)));

static int mismatch(struct check *c, const char *fmt, const struct ky_filter_node *n)
{
	char buf[100];

	ky_filter_complain(c->error, fmt, describe_operand(n, buf, sizeof(buf)));
	return -EINVAL;
}

/*
 * Gives a context whose type is only known when an event is recorded the type that its use
 * requires.
 */
static void settle_node(const struct check *c, struct ky_filter_node *n, uint8_t other)
{
	if (c->fields && n->type == KY_FILTER_ANY)
		n->type = other == KY_FILTER_STRING ? KY_FILTER_STRING : KY_FILTER_FLOAT;
}

static int check_comparison(
	struct check *c, uint8_t op, struct ky_filter_node *l, struct ky_filter_node *r)
{
	bool strings, other;
	char a[100], b[100];

	settle_node(c, l, r->type);
	settle_node(c, r, l->type);
	strings = l->type == KY_FILTER_STRING;
	other = r->type == KY_FILTER_STRING;
	if (!strings && !other)
		return 0;
	if (op != KY_OP_EQ && op != KY_OP_NE)
		return mismatch(c, "%s can only be compared by == and !=", strings ? l : r);
	if (l->op == KY_OP_STRING && r->op == KY_OP_STRING)
		return mismatch(c, "%s is compared with another one: neither is a field", l);
	if (strings == other || l->type == KY_FILTER_ANY || r->type == KY_FILTER_ANY)
		return 0;
	ky_filter_complain(c->error, "%s cannot be compared with %s",
		describe_operand(l, a, sizeof(a)), describe_operand(r, b, sizeof(b)));
	return -EINVAL;
}

static bool integers_only(uint8_t op)
{
	return op == KY_OP_COMPLEMENT || (op >= KY_OP_BIT_OR && op <= KY_OP_BIT_AND) ||
	       op == KY_OP_SHL || op == KY_OP_SHR || op == KY_OP_MOD;
}

/* Checks the operand of a condition or a calculation. */
static int check_operand(struct check *c, uint8_t op, struct ky_filter_node *n)
{
	settle_node(c, n, KY_FILTER_FLOAT);
	if (n->type == KY_FILTER_STRING && ky_filter_is_condition(op))
		return mismatch(c, "%s is neither true nor false: compare it with == or !=", n);
	if (n->type == KY_FILTER_STRING)
		return mismatch(c, "%s cannot be calculated with", n);
	if (n->type == KY_FILTER_FLOAT && integers_only(op))
		return mismatch(
			c, "%s cannot have bitwise operators or a remainder: only integers can", n);
	return 0;
}

static uint8_t common_type(uint8_t a, uint8_t b)
{
	return !a || !b ? KY_FILTER_ANY : KY_MAX(a, b); /* SIGNED, UNSIGNED, FLOAT: as in C */
}

static int take_unary(struct check *c, struct ky_filter_node *n)
{
	struct ky_filter_node *operand = n - 1;
	int ret;

	if (!c->n_stack)
		return -EBADMSG;
	c->n_stack--;
	ret = check_operand(c, n->op, operand);
	n->height = operand->height + 1;
	n->type = n->op == KY_OP_NOT ? KY_FILTER_SIGNED : operand->type;
	/* The least integer is written as a minus and a number that is too large to be signed. */
	if (n->op == KY_OP_NEGATE && operand->op == KY_OP_UNSIGNED &&
		operand->number.s == INT64_MIN)
		n->type = KY_FILTER_SIGNED;
	return ret;
}

static int take_binary(struct check *c, struct ky_filter_node *n)
{
	struct ky_filter_node *l, *r = n - 1;
	int ret;

	if (c->n_stack < 2)
		return -EBADMSG;
	c->n_stack -= 2;
	n->left = c->stack[c->n_stack];
	l = &c->tree->nodes[n->left];
	n->type = KY_FILTER_SIGNED;
	if (n->op >= KY_OP_EQ && n->op <= KY_OP_GE) {
		n->height = (uint8_t)(KY_MAX(l->height, r->height) + 1);
		return check_comparison(c, n->op, l, r);
	}
	n->height = (uint8_t)KY_MAX(l->height, r->height + 1);
	ret = check_operand(c, n->op, l);
	if (!ret)
		ret = check_operand(c, n->op, r);
	if (n->op == KY_OP_SHL || n->op == KY_OP_SHR)
		n->type = l->type;
	else if (n->op > KY_OP_AND)
		n->type = common_type(l->type, r->type);
	return ret;
}

static int take_node(struct check *c, struct ky_filter_node *n)
{
	int ret;

	*n = (struct ky_filter_node){0};
	TAKE(c, n->op);
	if (n->op < KY_OP_NOT)
		ret = take_leaf(c, n);
	else if (n->op >= KY_OP_NOT && n->op <= KY_OP_COMPLEMENT)
		ret = take_unary(c, n);
	else
		ret = n->op >= KY_OP_OR && n->op < KY_OP_END ? take_binary(c, n) : -EBADMSG;
	if (c->malformed)
		return -EBADMSG;
	if (!ret && (c->n_stack == KY_FILTER_DEPTH_MAX || n->height > KY_FILTER_DEPTH_MAX)) {
		ky_filter_complain(c->error, "the expression is nested more than %u deep",
			KY_FILTER_DEPTH_MAX);
		return -EINVAL;
	}
	if (!ret)
		c->stack[c->n_stack++] = (uint16_t)c->tree->n_nodes++;
	return ret;
}

int ky_filter_check(struct ky_filter_tree *tree, const void *program, size_t len,
	const struct kymo_field *fields, ky_filter_find_context find, unsigned *ret_node,
	struct ky_filter_error *error)
{
	struct check c = {.p = program,
		.left = len,
		.tree = tree,
		.fields = fields,
		.find = find,
		.error = error};
	uint8_t version;
	int ret = 0;

	*error = (struct ky_filter_error){0};
	tree->n_nodes = 0;
	TAKE(&c, version);
	if (c.malformed || version != KY_FILTER_VERSION)
		return -EBADMSG;
	while (!ret && c.left) {
		if (tree->n_nodes == KY_FILTER_NODES_MAX)
			return -EBADMSG;
		ret = take_node(&c, &tree->nodes[tree->n_nodes]);
	}
	*ret_node = tree->n_nodes ? tree->n_nodes - !ret : 0;
	if (ret)
		return ret;
	return c.n_stack == 1 ? check_operand(&c, KY_OP_NOT, &tree->nodes[tree->n_nodes - 1])
			      : -EBADMSG;
}
