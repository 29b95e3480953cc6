/* SPDX-License-Identifier: MIT */
/*
 * Generates code from a checked program. Code is generated from its end to its begin, and each
 * instruction knows its successors. So all jumps lead forward, and && || ! cost only the choice of
 * a successor.
 *
 * A condition has two exits: true, or not true. An operand without a value (a division by zero, an
 * element that a sequence does not have) makes a comparison neither true nor false, as in Kleene's
 * logic: `!` is moved down to the comparisons, and there "no value" always takes the exit "not
 * true".
 */
#include "filter/insn.h"
#include "filter/place.h"

#define INSNS_MAX 1024u
#define INSN_SIZE ((int32_t)sizeof(struct ky_filter_insn))

/* A generated instruction: its number, counted from the end. */
typedef unsigned target;

struct link {
	const struct ky_filter_tree *tree;
	struct ky_filter_code *code;
	char *end;  /* end of the room for instructions */
	unsigned n; /* instructions generated */
	unsigned n_anchors;
	bool full;
};

static target gen_condition(
	struct link *k, unsigned node, bool wanted, target holds, target fails, uint8_t slot);

static struct ky_filter_insn *insn_of(const struct link *k, target t)
{
	return (struct ky_filter_insn *)(void *)k->end - t;
}

static struct ky_filter_insn *emit_insn(
	struct link *k, enum ky_filter_insn_op op, uint8_t slot, target yes, target no, target none)
{
	struct ky_filter_insn *i;

	if (k->n == INSNS_MAX) {
		k->full = true;
		return insn_of(k, k->n);
	}
	k->n++;
	i = insn_of(k, k->n);
	*i = (struct ky_filter_insn){.run = ky_filter_functions[op],
		.yes = (int32_t)(k->n - yes) * INSN_SIZE,
		.no = (int32_t)(k->n - no) * INSN_SIZE,
		.none = (int32_t)(k->n - none) * INSN_SIZE,
		.slot = slot};
	return i;
}

static const struct ky_filter_node *get_node(const struct link *k, unsigned node)
{
	return &k->tree->nodes[node];
}

/* --- leaves --- */

/* Returns true for a field with a constant offset, in this machine's byte order. */
static bool is_near(const struct ky_filter_node *n)
{
	const struct ky_filter_place *p = &n->place;

	return (n->op == KY_OP_FIELD || n->op == KY_OP_ELEMENT) && n->type != KY_FILTER_STRING &&
	       !p->anchor && !p->within && !(p->flags & KYMO_FIELD_NETWORK);
}

/* Returns its kind as in KY_INSN_NEAR: signed and unsigned of each size. */
static unsigned near_kind(const struct ky_filter_place *p)
{
	return (unsigned)__builtin_ctz(p->size) * 2 + !(p->flags & KYMO_FIELD_SIGNED);
}

static void set_near(struct ky_filter_insn *i, const struct ky_filter_node *n)
{
	i->offset = n->place.offset + n->place.size;
	i->size = n->place.size;
	i->flags = n->place.flags & KYMO_FIELD_SIGNED ? KY_INSN_SIGNED : 0;
}

static void gen_near(
	struct link *k, const struct ky_filter_node *n, uint8_t slot, target next, target none)
{
	enum ky_filter_insn_op op = KY_INSN_LOAD_F32;

	if (n->type != KY_FILTER_FLOAT)
		op = KY_INSN_LOAD_S8 + near_kind(&n->place) * (KY_INSN_LOAD_U8 - KY_INSN_LOAD_S8);
	else if (n->place.size == 8)
		op = KY_INSN_LOAD_U64;
	set_near(emit_insn(k, op, slot, next, none, none), n);
}

static void gen_far(
	struct link *k, const struct ky_filter_node *n, uint8_t slot, target next, target none)
{
	const struct ky_filter_place *p = &n->place;
	bool element = p->elem == KYMO_FIELD_STRING && n->op == KY_OP_ELEMENT;
	struct ky_filter_insn *i;

	if (element)
		i = emit_insn(k, KY_INSN_LOAD_STRING_ELEMENT, slot, next, none, none);
	else if (n->type == KY_FILTER_STRING)
		i = emit_insn(k, KY_INSN_LOAD_STRING, slot, next, none, none);
	else
		i = emit_insn(k,
			n->type == KY_FILTER_FLOAT ? KY_INSN_LOAD_FAR_FLOAT : KY_INSN_LOAD_FAR,
			slot, next, none, none);
	i->offset = p->offset;
	i->anchor = p->anchor;
	i->size = p->size;
	i->index = element ? n->index : p->kind == KYMO_FIELD_TEXT ? p->count : 0;
	i->element = p->element;
	i->skip = p->skip;
	i->flags = (uint8_t)((p->flags & KYMO_FIELD_SIGNED ? KY_INSN_SIGNED : 0) |
			     (p->flags & KYMO_FIELD_NETWORK ? KY_INSN_NETWORK : 0) |
			     (p->kind == KYMO_FIELD_SEQUENCE || p->kind == KYMO_FIELD_TEXT_SEQUENCE
					     ? KY_INSN_SEQUENCE
					     : 0) |
			     (p->within ? KY_INSN_WITHIN : 0) |
			     (p->kind == KYMO_FIELD_STRING ? KY_INSN_NUL : 0));
	k->n_anchors = KY_MAX(k->n_anchors, p->anchor);
}

static void gen_context(
	struct link *k, const struct ky_filter_node *n, uint8_t slot, target next, target none)
{
	bool string = n->type == KY_FILTER_STRING;
	struct ky_filter_insn *i = emit_insn(
		k, string ? KY_INSN_CONTEXT_STRING : KY_INSN_CONTEXT, slot, next, none, none);

	i->argument = n->context.argument;
	i->flags = n->type;
	if (string)
		i->get_string = n->context.string;
	else
		i->get_number = n->context.number;
}

static target gen_constant(struct link *k, union ky_filter_number v, uint8_t slot, target next)
{
	emit_insn(k, KY_INSN_CONSTANT, slot, next, next, next)->number = v;
	return k->n;
}

/* --- values: left in the slot, then `next`; without a value, `none` --- */

/* Returns true if the node may have no value. */
static bool may_lack_value(const struct link *k, unsigned node, unsigned first)
{
	for (unsigned i = first; i <= node; i++) {
		const struct ky_filter_node *n = get_node(k, i);

		if (n->op == KY_OP_ELEMENT || n->op == KY_OP_CONTEXT || n->op == KY_OP_SHL ||
			n->op == KY_OP_SHR || n->op == KY_OP_DIV || n->op == KY_OP_MOD)
			return true;
	}
	return false;
}

/* Returns the first node of the operand that ends here. */
static unsigned first_of(const struct link *k, unsigned node)
{
	while (get_node(k, node)->op >= KY_OP_NOT)
		node = get_node(k, node)->op >= KY_OP_OR ? get_node(k, node)->left : node - 1;
	return node;
}

/*
 * Generates a condition as a number. If it may be unknown, it is tested twice: is it true? is it
 * false?
 */
static target gen_truth(struct link *k, unsigned node, uint8_t slot, target next, target none)
{
	target one = gen_constant(k, (union ky_filter_number){.u = 1}, slot, next);
	target zero = gen_constant(k, (union ky_filter_number){.u = 0}, slot, next);

	if (may_lack_value(k, node, first_of(k, node)))
		zero = gen_condition(k, node, false, zero, none, slot);
	return gen_condition(k, node, true, one, zero, slot);
}

static enum ky_filter_insn_op unary_op(const struct ky_filter_node *n)
{
	if (n->op == KY_OP_COMPLEMENT)
		return KY_INSN_COMPLEMENT;
	return n->type == KY_FILTER_FLOAT ? KY_INSN_NEGATE_F : KY_INSN_NEGATE;
}

static enum ky_filter_insn_op arithmetic_op(const struct ky_filter_node *n)
{
	/* SIGNED, UNSIGNED, FLOAT */
	static const uint8_t ops[][3] = {
		[KY_OP_BIT_OR] = {KY_INSN_BIT_OR, KY_INSN_BIT_OR},
		[KY_OP_BIT_XOR] = {KY_INSN_BIT_XOR, KY_INSN_BIT_XOR},
		[KY_OP_BIT_AND] = {KY_INSN_BIT_AND, KY_INSN_BIT_AND},
		[KY_OP_SHL] = {KY_INSN_SHL, KY_INSN_SHL},
		[KY_OP_SHR] = {KY_INSN_SHR_S, KY_INSN_SHR_U},
		[KY_OP_ADD] = {KY_INSN_ADD, KY_INSN_ADD, KY_INSN_ADD_F},
		[KY_OP_SUB] = {KY_INSN_SUB, KY_INSN_SUB, KY_INSN_SUB_F},
		[KY_OP_MUL] = {KY_INSN_MUL, KY_INSN_MUL, KY_INSN_MUL_F},
		[KY_OP_DIV] = {KY_INSN_DIV_S, KY_INSN_DIV_U, KY_INSN_DIV_F},
		[KY_OP_MOD] = {KY_INSN_MOD_S, KY_INSN_MOD_U},
	};

	return ops[n->op][n->type - KY_FILTER_SIGNED];
}

static enum ky_filter_insn_op conversion(uint8_t from)
{
	return from == KY_FILTER_SIGNED ? KY_INSN_S_TO_F : KY_INSN_U_TO_F;
}

/* Returns the target of an operand's value, which the operator needs as `type`. */
static target gen_converted(struct link *k, unsigned node, uint8_t type, uint8_t slot, target next)
{
	if (type == KY_FILTER_FLOAT && get_node(k, node)->type != KY_FILTER_FLOAT) {
		emit_insn(k, conversion(get_node(k, node)->type), slot, next, next, next);
		return k->n;
	}
	return next;
}

static target gen_value(struct link *k, unsigned node, uint8_t slot, target next, target none)
{
	const struct ky_filter_node *n = get_node(k, node);

	if (k->full)
		return next;
	/*
	 * A loop handles left operands, of which there may be many; right ones recurse, as deep as
	 * check.c allows.
	 */
	for (; n->op >= KY_OP_NOT && !ky_filter_is_condition(n->op); n = get_node(k, node)) {
		unsigned right = node - 1;
		uint8_t type = n->type;

		if (n->op < KY_OP_OR) {
			emit_insn(k, unary_op(n), slot, next, next, none);
			next = k->n;
			node = right;
			continue;
		}
		emit_insn(k, arithmetic_op(n), slot, next, next, none);
		if (n->op == KY_OP_SHL || n->op == KY_OP_SHR)
			type = KY_FILTER_SIGNED;
		next = gen_converted(k, right, type, slot + 1, k->n);
		next = gen_value(k, right, slot + 1, next, none);
		node = n->left;
		next = gen_converted(k, node, type, slot, next);
	}
	if (ky_filter_is_condition(n->op))
		return gen_truth(k, node, slot, next, none);
	if (ky_filter_is_literal(n))
		return gen_constant(k, n->number, slot, next);
	if (n->op == KY_OP_CONTEXT)
		gen_context(k, n, slot, next, none);
	else if (is_near(n))
		gen_near(k, n, slot, next, none);
	else
		gen_far(k, n, slot, next, none);
	return k->n;
}

/* --- conditions --- */

/* Returns the operator for a OP b written as b OP a. */
static uint8_t mirrored(uint8_t op)
{
	switch (op) {
	case KY_OP_LT:
		return KY_OP_GT;
	case KY_OP_LE:
		return KY_OP_GE;
	case KY_OP_GT:
		return KY_OP_LT;
	case KY_OP_GE:
		return KY_OP_LE;
	default:
		return op;
	}
}

/*
 * Simplifies a comparison of integers: a > b is !(a <= b). Returns true if the exits must be
 * exchanged.
 */
static bool simplify(uint8_t *op)
{
	switch (*op) {
	case KY_OP_NE:
		*op = KY_OP_EQ;
		return true;
	case KY_OP_GT:
		*op = KY_OP_LE;
		return true;
	case KY_OP_GE:
		*op = KY_OP_LT;
		return true;
	default:
		return false;
	}
}

static void swap_targets(target *a, target *b)
{
	target t = *a;

	*a = *b;
	*b = t;
}

/* Generates the test of a near field against a constant of its type: one instruction. */
static target gen_near_test(struct link *k, uint8_t op, const struct ky_filter_node *field,
	const struct ky_filter_node *constant, target yes, target no, target none)
{
	/* in the order of KY_OP_LT, KY_OP_LE; else KY_OP_EQ */
	unsigned which = op == KY_OP_LT ? 0 : op == KY_OP_LE ? 1 : 2;
	static const uint8_t elsewhere[] = {KY_INSN_LT_S, KY_INSN_LE_S, KY_INSN_EQ};
	struct ky_filter_insn *i;

	i = emit_insn(k,
		KY_INSN_LT_S8 + which + near_kind(&field->place) * (KY_INSN_LT_U8 - KY_INSN_LT_S8),
		elsewhere[which], yes, no, none);
	i->number = constant->number;
	set_near(i, field);
	return k->n;
}

static bool are_near_test(const struct ky_filter_node *field, const struct ky_filter_node *constant)
{
	return is_near(field) && ky_filter_is_literal(constant) && field->type != KY_FILTER_FLOAT &&
	       (constant->type == field->type ||
		       (constant->type == KY_FILTER_SIGNED && field->type == KY_FILTER_UNSIGNED));
}

static enum ky_filter_insn_op test_op(uint8_t op, uint8_t type)
{
	static const uint8_t ops[][3] = {
		[KY_OP_EQ] = {KY_INSN_EQ, KY_INSN_EQ, KY_INSN_EQ_F},
		[KY_OP_LT] = {KY_INSN_LT_S, KY_INSN_LT_U, KY_INSN_LT_F},
		[KY_OP_LE] = {KY_INSN_LE_S, KY_INSN_LE_U, KY_INSN_LE_F},
		[KY_OP_GT] = {0, 0, KY_INSN_GT_F},
		[KY_OP_GE] = {0, 0, KY_INSN_GE_F},
	};

	return ops[op][type - KY_FILTER_SIGNED];
}

/* The pattern is put behind the code later: until then the instruction has its node. */
static target gen_match(struct link *k, unsigned value, unsigned pattern, uint8_t slot, target yes,
	target no, target none)
{
	emit_insn(k, KY_INSN_MATCH, slot, yes, no, none)->index = pattern + 1;
	return gen_value(k, value, slot, k->n, none);
}

static target gen_comparison(
	struct link *k, unsigned node, target yes, target no, target none, uint8_t slot)
{
	const struct ky_filter_node *n = get_node(k, node), *l = get_node(k, n->left), *r = n - 1;
	uint8_t op = n->op, type = KY_MAX(l->type, r->type);
	target next;

	if (op == KY_OP_NE || (type != KY_FILTER_FLOAT && !are_near_test(r, l) && simplify(&op))) {
		op = op == KY_OP_NE ? KY_OP_EQ : op;
		swap_targets(&yes, &no);
	}
	if (type == KY_FILTER_STRING && r->op == KY_OP_STRING)
		return gen_match(k, n->left, node - 1, slot, yes, no, none);
	if (type == KY_FILTER_STRING && l->op == KY_OP_STRING)
		return gen_match(k, node - 1, n->left, slot, yes, no, none);
	if (are_near_test(l, r))
		return gen_near_test(k, op, l, r, yes, no, none);
	if (are_near_test(r, l)) {
		op = mirrored(op);
		if (simplify(&op))
			swap_targets(&yes, &no);
		return gen_near_test(k, op, r, l, yes, no, none);
	}
	emit_insn(k, type == KY_FILTER_STRING ? KY_INSN_SAME : test_op(op, type), slot, yes, no,
		none);
	next = gen_converted(k, node - 1, type, slot + 1, k->n);
	next = gen_value(k, node - 1, slot + 1, next, none);
	next = gen_converted(k, n->left, type, slot, next);
	return gen_value(k, n->left, slot, next, none);
}

/*
 * Generates a condition. `holds`: the exit if the node has the wanted truth value; `fails`: the
 * exit if it has not, or is unknown.
 */
static target gen_condition(
	struct link *k, unsigned node, bool wanted, target holds, target fails, uint8_t slot)
{
	const struct ky_filter_node *n;
	target right;

	if (k->full) /* otherwise the time might double with each level */
		return holds;
	for (;;) {
		n = get_node(k, node);
		if (n->op == KY_OP_NOT) {
			wanted = !wanted;
			node--;
		} else if (n->op == KY_OP_AND || n->op == KY_OP_OR) {
			right = gen_condition(k, node - 1, wanted, holds, fails, slot);
			if ((n->op == KY_OP_AND) == wanted)
				holds = right;
			else
				fails = right;
			node = n->left;
		} else {
			break;
		}
	}
	if (n->op >= KY_OP_EQ && n->op <= KY_OP_GE)
		return gen_comparison(
			k, node, wanted ? holds : fails, wanted ? fails : holds, fails, slot);
	emit_insn(k, n->type == KY_FILTER_FLOAT ? KY_INSN_TRUE_F : KY_INSN_TRUE, slot,
		wanted ? holds : fails, wanted ? fails : holds, fails);
	return gen_value(k, node, slot, k->n, fails);
}

/* --- constants --- */

/* Computes operations on constants alone. */
static void fold(struct ky_filter_tree *tree)
{
	for (unsigned i = 0; i < tree->n_nodes; i++) {
		struct ky_filter_node *n = &tree->nodes[i];
		struct ky_filter_node l, r;
		bool binary = n->op >= KY_OP_OR;
		uint8_t type = n->type;

		if (n->op < KY_OP_NOT || ky_filter_is_condition(n->op))
			continue;
		r = n[-1];
		l = binary ? tree->nodes[n->left] : r;
		if (!ky_filter_is_literal(&l) || !ky_filter_is_literal(&r))
			continue;
		if (n->op == KY_OP_SHL || n->op == KY_OP_SHR)
			type = KY_FILTER_SIGNED;
		if (type == KY_FILTER_FLOAT && l.type != type)
			ky_filter_fold(conversion(l.type), &l.number, l.number);
		if (type == KY_FILTER_FLOAT && r.type != type)
			ky_filter_fold(conversion(r.type), &r.number, r.number);
		if (!ky_filter_fold(binary ? arithmetic_op(n) : unary_op(n), &l.number, r.number))
			continue;
		n->op = (uint8_t)(KY_OP_SIGNED + (n->type - KY_FILTER_SIGNED));
		n->number = l.number;
		n->index = 0;
	}
}

/* --- patterns --- */

/*
 * Computes the states to continue in when a part of the pattern, bytes begin .. end, does not
 * match.
 */
static void set_failures(struct ky_filter_pattern *p, const uint8_t *bytes, unsigned begin,
	unsigned end, bool after_star)
{
	unsigned border = begin;

	if (!after_star) {
		for (unsigned s = begin; s <= end; s++)
			p->fail[s] = KY_PATTERN_DEAD;
		return;
	}
	p->fail[begin] = KY_PATTERN_STAY;
	for (unsigned s = begin + 1; s <= end; s++) {
		p->fail[s] = (uint16_t)border;
		if (s == end)
			break;
		while (border != begin && bytes[border] != bytes[s])
			border = p->fail[border];
		if (bytes[border] == bytes[s])
			border++;
	}
}

/* Returns the number of bytes in a pattern without its stars. */
static unsigned count_bytes(const struct ky_filter_node *n)
{
	unsigned count = 0;

	for (unsigned i = 0; i < n->size; i++) {
		count += n->text[i] != '*';
		i += n->text[i] == '\\';
	}
	return count;
}

static size_t pattern_size(unsigned n_bytes)
{
	return sizeof(struct ky_filter_pattern) + (n_bytes + 1) * sizeof(uint16_t) +
	       ((n_bytes + 1) & ~1u);
}

static void put_pattern(const struct ky_filter_node *n, struct ky_filter_pattern *p)
{
	unsigned size = count_bytes(n), begin = 0, at = 0;
	uint8_t *bytes = (uint8_t *)&p->fail[size + 1];
	bool star = false;

	memset(p, 0, pattern_size(size));
	p->n = (uint16_t)size;
	for (unsigned i = 0; i < n->size; i++) {
		if (n->text[i] == '*') {
			set_failures(p, bytes, begin, at, star);
			begin = at;
			star = true;
			continue;
		}
		i += n->text[i] == '\\';
		bytes[at++] = (uint8_t)n->text[i];
	}
	set_failures(p, bytes, begin, at, star);
	p->open = star && begin == at;
}

/* Puts the patterns behind the instructions. Returns false if there is no room. */
static bool put_patterns(struct link *k)
{
	for (unsigned i = 0; i < k->n; i++) {
		struct ky_filter_insn *insn = &k->code->insns[i];
		const struct ky_filter_node *n;
		char *to = (char *)k->code + k->code->size;
		size_t size;

		if (insn->run != ky_filter_functions[KY_INSN_MATCH])
			continue;
		n = get_node(k, insn->index - 1);
		size = pattern_size(count_bytes(n));
		if (size > KY_FILTER_CODE_MAX - k->code->size)
			return false;
		put_pattern(n, (void *)to);
		insn->index = 0;
		insn->offset = (uint32_t)(to - (char *)insn);
		k->code->size += (uint32_t)size;
	}
	return true;
}

/* Moves the instructions to the begin, and puts their data behind them. */
static bool lay_out(struct link *k, const struct kymo_field *fields)
{
	if (k->full)
		return false;
	memmove(k->code->insns, insn_of(k, k->n), k->n * sizeof(*k->code->insns));
	k->code->steps = (uint32_t)(sizeof(*k->code) + k->n * sizeof(*k->code->insns));
	k->code->size = k->code->steps + k->n_anchors * (uint32_t)sizeof(struct ky_filter_step);
	ky_filter_steps(fields, k->n_anchors, (void *)((char *)k->code + k->code->steps));
	ky_filter_make_quick(k->code->insns, &k->code->quick);
	return put_patterns(k);
}

int ky_filter_link(const void *program, size_t len, const struct kymo_field *fields,
	ky_filter_find_context find, void *buf, struct ky_filter_error *error)
{
	struct ky_filter_tree tree;
	struct link k = {.tree = &tree,
		.code = buf,
		.end = (char *)buf + KY_FILTER_CODE_MAX / INSN_SIZE * INSN_SIZE};
	target reject, pass;
	unsigned node;
	int ret = ky_filter_check(&tree, program, len, fields, find, &node, error);

	error->node = node;
	if (ret)
		return ret;
	fold(&tree);
	emit_insn(&k, KY_INSN_REJECT, 0, 0, 0, 0);
	reject = k.n;
	emit_insn(&k, KY_INSN_PASS, 0, 0, 0, 0);
	pass = k.n;
	gen_condition(&k, tree.n_nodes - 1, true, pass, reject, 0);
	if (lay_out(&k, fields))
		return (int)k.code->size;
	ky_filter_complain(error, "the expression is too large");
	return -EINVAL;
}
