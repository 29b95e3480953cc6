/* SPDX-License-Identifier: MIT */
/*
 * Runs linked filters. The thread that records calls it for each event, also in signal handlers: no
 * allocation, no system call, no state.
 *
 * Each instruction is a function that ends in a call of the next one. Compilers make that a jump,
 * so the processor executes only the loads, the tests and one indirect jump each. (Without
 * optimization the calls nest, at most as deep as the code is long.) Rare cases are outside these
 * functions, so that they need no stack frame.
 *
 * The payload is not trusted: an offset is compared with the available length before it is used.
 */
#include "filter/pass.h"

#define FUNCTION(name)                                                                             \
	static bool run_##name(const struct ky_filter_insn *pc, const uint8_t *base, size_t len,   \
		struct ky_filter_frame *f)
#define GO(distance)                                                                               \
	do {                                                                                       \
		const struct ky_filter_insn *go_to = (const void *)((const char *)pc +             \
								    (distance));                   \
		return go_to->run(go_to, base, len, f);                                            \
	} while (0)

FUNCTION(PASS)
{
	return true;
}

FUNCTION(REJECT)
{
	return false;
}

/* --- finding things in the payload --- */

/*
 * Begins a walk. Only here it matters whether there are pieces: a flat payload becomes one piece.
 * Most filters never get here.
 */
static struct ky_filter_cursor begin_walk(
	struct ky_filter_frame *f, const uint8_t *base, size_t len)
{
	if (!f->n_pieces) {
		f->flat = (struct kymo_piece){.ptr = base, .len = (uint32_t)len};
		f->pieces = &f->flat;
		f->n_pieces = 1;
	}
	return (struct ky_filter_cursor){0, 0};
}

static uint32_t left_in_piece(const struct ky_filter_frame *f, const struct ky_filter_cursor *c)
{
	return f->pieces[c->piece].len - c->offset;
}

/* Moves the cursor to a byte, if one is left. */
static bool settle_cursor(const struct ky_filter_frame *f, struct ky_filter_cursor *c)
{
	while (c->piece < f->n_pieces && !left_in_piece(f, c))
		*c = (struct ky_filter_cursor){c->piece + 1, 0};
	return c->piece < f->n_pieces;
}

static bool skip(const struct ky_filter_frame *f, struct ky_filter_cursor *c, uint64_t n)
{
	while (n) {
		uint32_t step;

		if (!settle_cursor(f, c))
			return false;
		step = (uint32_t)KY_MIN(n, left_in_piece(f, c));
		c->offset += step;
		n -= step;
	}
	return true;
}

/* Copies n bytes and moves behind them. */
static bool take_value(
	const struct ky_filter_frame *f, struct ky_filter_cursor *c, void *to, uint32_t n)
{
	for (uint32_t done = 0; done < n;) {
		uint32_t step;

		if (!settle_cursor(f, c))
			return false;
		step = KY_MIN(n - done, left_in_piece(f, c));
		memcpy((char *)to + done, (const char *)f->pieces[c->piece].ptr + c->offset, step);
		c->offset += step;
		done += step;
	}
	return true;
}

/* Finds a string and moves behind its NUL. */
static bool take_string(const struct ky_filter_frame *f, struct ky_filter_cursor *c,
	struct ky_filter_span *ret_text)
{
	const struct kymo_piece *piece;
	const uint8_t *p, *nul;
	uint8_t end;

	if (!settle_cursor(f, c))
		return false;
	piece = &f->pieces[c->piece];
	p = (const uint8_t *)piece->ptr + c->offset;
	if (piece->flags & KYMO_PIECE_TEXT) {
		*ret_text = (struct ky_filter_span){p, left_in_piece(f, c), true};
		c->offset = piece->len;
		return take_value(f, c, &end, 1) && !end;
	}
	nul = memchr(p, 0, left_in_piece(f, c));
	if (!nul)
		return false;
	*ret_text = (struct ky_filter_span){p, (uint32_t)(nul - p), false};
	c->offset += ret_text->len + 1;
	return true;
}

static bool skip_strings(const struct ky_filter_frame *f, struct ky_filter_cursor *c, uint32_t n)
{
	struct ky_filter_span unused;

	while (n && take_string(f, c, &unused))
		n--;
	return !n;
}

static bool walk_over(
	const struct ky_filter_frame *f, struct ky_filter_cursor *c, const struct ky_filter_step *s)
{
	uint32_t count = s->kind == KYMO_FIELD_STRING ? 1 : s->count;

	if (!skip(f, c, s->skip) ||
		(s->kind == KYMO_FIELD_SEQUENCE && !take_value(f, c, &count, sizeof(count))))
		return false;
	return s->size ? skip(f, c, (uint64_t)count * s->size) : skip_strings(f, c, count);
}

/* Finds the begin of a far field. Each part of the payload is walked over once, for all fields. */
static bool locate_field(struct ky_filter_frame *f, const struct ky_filter_insn *pc,
	const uint8_t *base, size_t len, struct ky_filter_cursor *ret_cursor)
{
	const struct ky_filter_step *steps = (const void *)((const char *)f->code + f->code->steps);
	struct ky_filter_cursor begin = begin_walk(f, base, len);

	for (; f->n_anchors < pc->anchor; f->n_anchors++) {
		struct ky_filter_cursor c = f->n_anchors ? f->anchors[f->n_anchors - 1] : begin;

		if (!walk_over(f, &c, &steps[f->n_anchors]))
			return false;
		f->anchors[f->n_anchors] = c;
	}
	*ret_cursor = pc->anchor ? f->anchors[pc->anchor - 1] : begin;
	return skip(f, ret_cursor, pc->offset);
}

/* For sequences: reads the count. Returns false if they have no element `index`. */
static bool enter_sequence(const struct ky_filter_frame *f, const struct ky_filter_insn *pc,
	struct ky_filter_cursor *c, uint32_t *ret_count)
{
	if (!(pc->flags & KY_INSN_SEQUENCE))
		return true;
	return take_value(f, c, ret_count, sizeof(*ret_count));
}

/* For a value in an element of a sequence: moves there, if the element exists. */
static bool enter_element(const struct ky_filter_frame *f, const struct ky_filter_insn *pc,
	struct ky_filter_cursor *c)
{
	uint32_t count;

	return !(pc->flags & KY_INSN_WITHIN) ||
	       (take_value(f, c, &count, sizeof(count)) && pc->element < count &&
		       skip(f, c, pc->skip));
}

struct fetched {
	uint64_t bits;
	bool found;
};

static uint64_t extend_scalar(uint64_t bits, const struct ky_filter_insn *pc)
{
	unsigned shift = 64 - 8u * pc->size;

	if (pc->flags & KY_INSN_NETWORK)
		bits = __builtin_bswap64(bits << shift);
	if (pc->flags & KY_INSN_SIGNED)
		bits = (uint64_t)((int64_t)(bits << shift) >> shift);
	return bits;
}

/*
 * Reads a scalar at any place. Returns by value: if the address of a frame were known, callers
 * could not end in a jump.
 */
static struct fetched fetch_scalar(
	const struct ky_filter_insn *pc, const uint8_t *base, size_t len, struct ky_filter_frame *f)
{
	uint64_t bits = 0;
	struct ky_filter_cursor c;

	if (!locate_field(f, pc, base, len, &c) || !enter_element(f, pc, &c) ||
		!take_value(f, &c, &bits, pc->size))
		return (struct fetched){0, false};
	return (struct fetched){extend_scalar(bits, pc), true};
}

/* Reads a near field that is not in the first piece. */
static struct fetched fetch_near(
	const struct ky_filter_insn *pc, const uint8_t *base, size_t len, struct ky_filter_frame *f)
{
	struct ky_filter_cursor c = begin_walk(f, base, len);
	uint64_t bits = 0;

	if (!skip(f, &c, pc->offset - pc->size) || !take_value(f, &c, &bits, pc->size))
		return (struct fetched){0, false};
	return (struct fetched){extend_scalar(bits, pc), true};
}

/* --- near fields: offset known, in the first piece --- */

static __attribute__((cold, noinline)) bool test_elsewhere(
	const struct ky_filter_insn *pc, const uint8_t *base, size_t len, struct ky_filter_frame *f)
{
	struct fetched v = fetch_near(pc, base, len, f);
	union ky_filter_number a = {.u = v.bits}, b = pc->number;
	bool is_unsigned = !(pc->flags & KY_INSN_SIGNED) && pc->size == 8;
	bool holds;

	if (!v.found)
		GO(pc->none);
	if (pc->slot == KY_INSN_EQ)
		holds = a.u == b.u;
	else if (pc->slot == KY_INSN_LT_S)
		holds = is_unsigned ? a.u < b.u : a.s < b.s;
	else
		holds = is_unsigned ? a.u <= b.u : a.s <= b.s;
	GO(holds ? pc->yes : pc->no);
}

static __attribute__((cold, noinline)) bool load_elsewhere(
	const struct ky_filter_insn *pc, const uint8_t *base, size_t len, struct ky_filter_frame *f)
{
	struct fetched v = fetch_near(pc, base, len, f);

	f->v[pc->slot].number.u = v.bits;
	GO(v.found ? pc->yes : pc->none);
}

#define DEFINE_NEAR_TEST(name, type, wide, comparison)                                             \
	FUNCTION(name)                                                                             \
	{                                                                                          \
		wide a, b = (wide)pc->number.u;                                                    \
		type v;                                                                            \
                                                                                                   \
		if (ky_unlikely(pc->offset > len))                                                 \
			return test_elsewhere(pc, base, len, f);                                   \
		memcpy(&v, base + pc->offset - sizeof(v), sizeof(v));                              \
		a = (wide)v;                                                                       \
		if (comparison)                                                                    \
			GO(pc->yes);                                                               \
		GO(pc->no);                                                                        \
	}

#define DEFINE_NEAR(T, type, wide)                                                                 \
	DEFINE_NEAR_TEST(LT_##T, type, wide, a < b)                                                \
	DEFINE_NEAR_TEST(LE_##T, type, wide, a <= b)                                               \
	DEFINE_NEAR_TEST(EQ_##T, type, wide, a == b)                                               \
	FUNCTION(LOAD_##T)                                                                         \
	{                                                                                          \
		type v;                                                                            \
                                                                                                   \
		if (ky_unlikely(pc->offset > len))                                                 \
			return load_elsewhere(pc, base, len, f);                                   \
		memcpy(&v, base + pc->offset - sizeof(v), sizeof(v));                              \
		f->v[pc->slot].number.u = (uint64_t)(wide)v;                                       \
		GO(pc->yes);                                                                       \
	}

KY_INSN_NEAR(DEFINE_NEAR)

static double as_double(uint64_t bits, uint8_t size)
{
	union ky_filter_number n = {.u = bits};
	uint32_t half = (uint32_t)bits;
	float f;

	memcpy(&f, &half, sizeof(f));
	return size == sizeof(f) ? (double)f : n.f;
}

FUNCTION(LOAD_F32)
{
	float v;

	if (ky_unlikely(pc->offset > len)) {
		struct fetched far = fetch_near(pc, base, len, f);

		f->v[pc->slot].number.f = as_double(far.bits, sizeof(v));
		GO(far.found ? pc->yes : pc->none);
	}
	memcpy(&v, base + pc->offset - sizeof(v), sizeof(v));
	f->v[pc->slot].number.f = (double)v;
	GO(pc->yes);
}

/* --- far fields: behind others of variable size, in sequences, in foreign byte order --- */

FUNCTION(LOAD_FAR)
{
	struct fetched v = fetch_scalar(pc, base, len, f);

	f->v[pc->slot].number.u = v.bits;
	GO(v.found ? pc->yes : pc->none);
}

FUNCTION(LOAD_FAR_FLOAT)
{
	struct fetched v = fetch_scalar(pc, base, len, f);

	f->v[pc->slot].number.f = as_double(v.bits, pc->size);
	GO(v.found ? pc->yes : pc->none);
}

/* Reads n bytes of text at the cursor, or fewer if a NUL ends it. */
static bool take_bytes(const struct ky_filter_frame *f, struct ky_filter_cursor c, uint32_t n,
	struct ky_filter_span *to)
{
	if (!n) {
		*to = (struct ky_filter_span){(const uint8_t *)"", 0, false};
		return true;
	}
	if (!settle_cursor(f, &c) || left_in_piece(f, &c) < n)
		return false;
	*to = (struct ky_filter_span){(const uint8_t *)f->pieces[c.piece].ptr + c.offset, n, false};
	return true;
}

static bool load_string(
	const struct ky_filter_insn *pc, const uint8_t *base, size_t len, struct ky_filter_frame *f)
{
	uint32_t n = pc->index;
	struct ky_filter_cursor c;

	if (!locate_field(f, pc, base, len, &c) || !enter_element(f, pc, &c))
		return false;
	if (pc->flags & KY_INSN_NUL)
		return take_string(f, &c, &f->v[pc->slot].text);
	return enter_sequence(f, pc, &c, &n) && take_bytes(f, c, n, &f->v[pc->slot].text);
}

/* A string, a text array of `index` bytes, or a sequence of text. */
FUNCTION(LOAD_STRING)
{
	GO(load_string(pc, base, len, f) ? pc->yes : pc->none);
}

static bool load_string_element(
	const struct ky_filter_insn *pc, const uint8_t *base, size_t len, struct ky_filter_frame *f)
{
	uint32_t count = UINT32_MAX;
	struct ky_filter_cursor c;

	return locate_field(f, pc, base, len, &c) && enter_sequence(f, pc, &c, &count) &&
	       pc->index < count && skip_strings(f, &c, pc->index) &&
	       take_string(f, &c, &f->v[pc->slot].text);
}

FUNCTION(LOAD_STRING_ELEMENT)
{
	GO(load_string_element(pc, base, len, f) ? pc->yes : pc->none);
}

/* --- contexts and constants --- */

FUNCTION(CONTEXT)
{
	bool found = pc->get_number(pc->argument, pc->flags, &f->v[pc->slot].number.u);

	GO(found ? pc->yes : pc->none);
}

/* Only the two sides of a comparison are texts, in adjacent slots. */
FUNCTION(CONTEXT_STRING)
{
	uint8_t *buf = f->context[pc->slot & 1];
	int n = pc->get_string(pc->argument, (char *)buf, sizeof(f->context[0]));

	f->v[pc->slot].text = (struct ky_filter_span){buf, n < 0 ? 0 : (uint32_t)n, false};
	GO(n < 0 ? pc->none : pc->yes);
}

FUNCTION(CONSTANT)
{
	f->v[pc->slot].number = pc->number;
	GO(pc->yes);
}

/* --- arithmetic --- */

#define DEFINE_UNARY(name, to, expression)                                                         \
	FUNCTION(name)                                                                             \
	{                                                                                          \
		union ky_filter_number a = f->v[pc->slot].number;                                  \
                                                                                                   \
		f->v[pc->slot].number.to = (expression);                                           \
		GO(pc->yes);                                                                       \
	}
DEFINE_UNARY(NEGATE, u, -a.u)
DEFINE_UNARY(NEGATE_F, f, -a.f)
DEFINE_UNARY(COMPLEMENT, u, ~a.u)
DEFINE_UNARY(S_TO_F, f, (double)a.s)
DEFINE_UNARY(U_TO_F, f, (double)a.u)

#define OPERANDS(member)                                                                           \
	const __typeof__(f->v->number.member) a = f->v[pc->slot].number.member,                    \
					      b = f->v[pc->slot + 1].number.member

#define DEFINE_ARITHMETIC(name, member, expression)                                                \
	FUNCTION(name)                                                                             \
	{                                                                                          \
		OPERANDS(member);                                                                  \
                                                                                                   \
		f->v[pc->slot].number.member = (expression);                                       \
		GO(pc->yes);                                                                       \
	}
KY_INSN_ARITHMETIC(DEFINE_ARITHMETIC)

#define DEFINE_PARTIAL(name, member, defined, expression)                                          \
	FUNCTION(name)                                                                             \
	{                                                                                          \
		OPERANDS(member);                                                                  \
                                                                                                   \
		if (!(defined))                                                                    \
			GO(pc->none);                                                              \
		f->v[pc->slot].number.member = (expression);                                       \
		GO(pc->yes);                                                                       \
	}
KY_INSN_PARTIAL(DEFINE_PARTIAL)

/* --- tests --- */

#define DEFINE_TEST(name, member, comparison)                                                      \
	FUNCTION(name)                                                                             \
	{                                                                                          \
		OPERANDS(member);                                                                  \
                                                                                                   \
		if (comparison)                                                                    \
			GO(pc->yes);                                                               \
		GO(pc->no);                                                                        \
	}
KY_INSN_TESTS(DEFINE_TEST)

FUNCTION(TRUE)
{
	GO(f->v[pc->slot].number.u ? pc->yes : pc->no);
}

FUNCTION(TRUE_F)
{
	GO(f->v[pc->slot].number.f != 0 ? pc->yes : pc->no);
}

/* Returns byte i of a text as it is recorded; -1 at its end. */
static int byte_at(const struct ky_filter_span *t, uint32_t i)
{
	uint8_t byte;

	if (i >= t->len || i >= KY_FILTER_STRING_MAX)
		return -1;
	byte = *(const volatile uint8_t *)&t->p[i];
	if (byte)
		return byte;
	return t->measured ? '#' : -1;
}

/* Returns the state after this byte. */
static uint32_t advance(const struct ky_filter_pattern *p, uint32_t state, uint8_t byte)
{
	const uint8_t *bytes = (const uint8_t *)&p->fail[p->n + 1];

	while (state == p->n || bytes[state] != byte) {
		uint32_t fail = p->fail[state];

		if (fail == KY_PATTERN_STAY)
			return state;
		if (fail == KY_PATTERN_DEAD)
			return fail;
		state = fail;
	}
	return state + 1;
}

static bool matches_span(const struct ky_filter_pattern *p, const struct ky_filter_span *text)
{
	uint32_t state = 0;
	int byte;

	for (uint32_t i = 0; !(p->open && state == p->n) && (byte = byte_at(text, i)) >= 0; i++) {
		state = advance(p, state, (uint8_t)byte);
		if (state == KY_PATTERN_DEAD)
			return false;
	}
	return state == p->n;
}

FUNCTION(MATCH)
{
	const void *pattern = (const char *)pc + pc->offset;

	GO(matches_span(pattern, &f->v[pc->slot].text) ? pc->yes : pc->no);
}

static bool same(const struct ky_filter_span *a, const struct ky_filter_span *b)
{
	int byte;

	for (uint32_t i = 0; (byte = byte_at(a, i)) == byte_at(b, i); i++)
		if (byte < 0)
			return true;
	return false;
}

FUNCTION(SAME)
{
	GO(same(&f->v[pc->slot].text, &f->v[pc->slot + 1].text) ? pc->yes : pc->no);
}

#define NEAR_ROWS(T, type, wide)                                                                   \
	[KY_INSN_LT_##T] = run_LT_##T, [KY_INSN_LE_##T] = run_LE_##T,                              \
	[KY_INSN_EQ_##T] = run_EQ_##T, [KY_INSN_LOAD_##T] = run_LOAD_##T,
#define ROW(name, ...) [KY_INSN_##name] = run_##name,
/* clang-format off */
const ky_filter_fn ky_filter_functions[KY_INSN_N] = {
	ROW(PASS) ROW(REJECT)
	KY_INSN_NEAR(NEAR_ROWS)
	ROW(LOAD_F32) ROW(LOAD_FAR) ROW(LOAD_FAR_FLOAT) ROW(LOAD_STRING) ROW(LOAD_STRING_ELEMENT)
	ROW(CONTEXT) ROW(CONTEXT_STRING) ROW(CONSTANT)
	ROW(NEGATE) ROW(NEGATE_F) ROW(COMPLEMENT) ROW(S_TO_F) ROW(U_TO_F)
	KY_INSN_ARITHMETIC(ROW)
	KY_INSN_PARTIAL(ROW)
	KY_INSN_TESTS(ROW)
	ROW(TRUE) ROW(TRUE_F) ROW(MATCH) ROW(SAME)
};
/* clang-format on */

bool ky_filter_fold(enum ky_filter_insn_op op, union ky_filter_number *a, union ky_filter_number b)
{
	const int32_t size = sizeof(struct ky_filter_insn);
	struct ky_filter_insn insns[] = {
		{.run = ky_filter_functions[op], .yes = size, .none = 2 * size},
		{.run = run_PASS},
		{.run = run_REJECT},
	};
	struct ky_filter_frame f;

	f.v[0].number = *a;
	f.v[1].number = b;
	if (!insns->run(insns, NULL, 0, &f))
		return false;
	*a = f.v[0].number;
	return true;
}
