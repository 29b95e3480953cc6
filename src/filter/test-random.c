/* SPDX-License-Identifier: MIT */
/* Compares random patterns and random expressions with a direct evaluation. */
#include "filter/test-fixture.h"

/* Patterns against a simple matcher. */
static bool slow_match(const char *p, const char *t)
{
	if (*p == '*')
		return slow_match(p + 1, t) || (*t && slow_match(p, t + 1));
	return *p ? *p == *t && slow_match(p + 1, t + 1) : !*t;
}

static void draw_text(char *to, const char *alphabet, unsigned max)
{
	unsigned n = (unsigned)(draw() % (max + 1));

	for (unsigned i = 0; i < n; i++)
		to[i] = alphabet[draw() % strlen(alphabet)];
	to[n] = '\0';
}

static void test_patterns(void **state)
{
	for (unsigned i = 0; i < 20000; i++) {
		struct values v = usual;
		char name[16], pattern[12], text[32];
		struct record *r;

		draw_text(name, "ab", 14);
		draw_text(pattern, "aabb*", 9);
		snprintf(text, sizeof(text), "name == \"%s\"", pattern);
		v.name = name;
		r = record_new(i % 2 ? PIECES : FLAT, &v);
		if (passes(text, r) != slow_match(pattern, name))
			fail_msg("'%s' on '%s'", text, name);
		record_free(r);
	}
}

struct value {
	enum ky_filter_type type;
	bool known;
	union {
		int64_t s;
		uint64_t u;
		double f;
	};
};

struct writer {
	char text[8192];
	size_t n;
	unsigned n_nodes;
	const struct values *v;
};

static void write_formatted(struct writer *w, const char *fmt, ...) KY_PRINTF(2, 3);

static void write_formatted(struct writer *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	w->n += (size_t)vsnprintf(w->text + w->n, sizeof(w->text) - w->n, fmt, ap);
	va_end(ap);
	assert_true(w->n < sizeof(w->text));
}

static struct value integer(int64_t s)
{
	return (struct value){KY_FILTER_SIGNED, true, {.s = s}};
}

static struct value natural(uint64_t u)
{
	return (struct value){KY_FILTER_UNSIGNED, true, {.u = u}};
}

static struct value real(double f)
{
	return (struct value){KY_FILTER_FLOAT, true, {.f = f}};
}

static double to_double(struct value v)
{
	return v.type == KY_FILTER_FLOAT    ? v.f
	       : v.type == KY_FILTER_SIGNED ? (double)v.s
					    : (double)v.u;
}

static struct value draw_leaf(struct writer *w)
{
	static const int64_t special[] = {
		0, 1, 2, -1, 63, 64, 127, 200, -300, INT32_MAX, INT64_MAX};
	int64_t k = special[draw() % KY_ARRAY_SIZE(special)];

	switch (draw() % 15) {
	case 0:
		write_formatted(w, "a");
		return integer(w->v->a);
	case 1:
		write_formatted(w, "b");
		return integer(w->v->b);
	case 2:
		write_formatted(w, "c");
		return integer(w->v->c);
	case 3:
		write_formatted(w, "d");
		return integer(w->v->d);
	case 4:
		write_formatted(w, "e");
		return integer(w->v->e);
	case 5:
		write_formatted(w, "f");
		return integer(w->v->f);
	case 6:
		write_formatted(w, "g");
		return integer(w->v->g);
	case 7:
		write_formatted(w, "h");
		return natural(w->v->h);
	case 8:
		write_formatted(w, "y");
		return real(w->v->y);
	case 9:
		write_formatted(w, "behind");
		return integer(w->v->behind);
	case 10:
		write_formatted(w, "seq[1]");
		return integer(w->v->seq[1]);
	case 11:
		write_formatted(w, "seq[2]");
		return (struct value){KY_FILTER_SIGNED, false, {0}};
	case 12:
		write_formatted(w, "last");
		return natural(w->v->last);
	case 13:
		write_formatted(w, "%lluu", (unsigned long long)k);
		return natural((uint64_t)k);
	default:
		write_formatted(w, k < 0 ? "(%lld)" : "%lld", (long long)k);
		return integer(k);
	}
}

static struct value truth(int t)
{
	return (struct value){KY_FILTER_SIGNED, t >= 0, {.s = t > 0}};
}

/* 1, 0, or -1: unknown */
static int is_true(struct value v)
{
	return !v.known ? -1 : v.type == KY_FILTER_FLOAT ? v.f != 0 : v.u != 0;
}

static struct value evaluate_comparison(const char *op, struct value l, struct value r)
{
	enum ky_filter_type type = KY_MAX(l.type, r.type);
	double fl = to_double(l), fr = to_double(r);
	bool less, equal, greater;

	if (!l.known || !r.known)
		return truth(-1);
	if (type == KY_FILTER_FLOAT) {
		less = fl<fr, equal = fl == fr, greater = fl> fr;
	} else if (type == KY_FILTER_UNSIGNED) {
		less = l.u<r.u, equal = l.u == r.u, greater = l.u> r.u;
	} else {
		less = l.s<r.s, equal = l.s == r.s, greater = l.s> r.s;
	}
	if (op[0] == '=')
		return truth(equal);
	if (op[0] == '!')
		return truth(!equal);
	return truth((op[0] == '<' ? less : greater) || (op[1] == '=' && equal));
}

static struct value evaluate_arithmetic(const char *op, struct value l, struct value r)
{
	enum ky_filter_type type = KY_MAX(l.type, r.type);
	struct value v = {.type = type, .known = l.known && r.known};
	__int128 wide;

	if (type == KY_FILTER_FLOAT) {
		double a = to_double(l), b = to_double(r);

		v.f = *op == '+' ? a + b : *op == '-' ? a - b : *op == '*' ? a * b : a / b;
		return v;
	}
	if (*op == '<' || *op == '>') {
		v.type = l.type;
		v.known = v.known && r.u < 64;
		wide = l.type == KY_FILTER_SIGNED ? (__int128)l.s : (__int128)l.u;
		v.u = (uint64_t)(*op == '<' ? (__int128)((unsigned __int128)wide << (r.u & 63))
					    : wide >> (r.u & 63));
		return v;
	}
	if (*op == '/' || *op == '%') {
		bool is_signed = type == KY_FILTER_SIGNED;
		__int128 a = is_signed ? (__int128)l.s : (__int128)l.u,
			 b = is_signed ? (__int128)r.s : (__int128)r.u;

		v.known = v.known && b;
		v.u = b ? (uint64_t)(*op == '/' ? a / b : a % b) : 0;
		return v;
	}
	v.u = *op == '+'   ? l.u + r.u
	      : *op == '-' ? l.u - r.u
	      : *op == '*' ? l.u * r.u
	      : *op == '&' ? (l.u & r.u)
	      : *op == '|' ? (l.u | r.u)
			   : (l.u ^ r.u);
	return v;
}

static struct value logic(bool and, struct value l, struct value r)
{
	int a = is_true(l), b = is_true(r);

	if (and)
		return truth(!a || !b ? 0 : a < 0 || b < 0 ? -1 : 1);
	return truth(a == 1 || b == 1 ? 1 : a < 0 || b < 0 ? -1 : 0);
}

static struct value draw_expression(struct writer *w, unsigned depth);

/* Of these operators, floats have the first four. */
static struct value draw_arithmetic(struct writer *w, unsigned depth)
{
	static const char *const ops[] = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"};
	size_t begin;
	struct value l, r;
	const char *op;
	char right[sizeof(w->text)];

	write_formatted(w, "(");
	l = draw_expression(w, depth - 1);
	begin = w->n;
	r = draw_expression(w, depth - 1);
	op = ops[draw() % (l.type == KY_FILTER_FLOAT || r.type == KY_FILTER_FLOAT ? 4 : 10)];
	strcpy(right, w->text + begin);
	w->n = begin;
	write_formatted(w, " %s %s)", op, right);
	return evaluate_arithmetic(op, l, r);
}

static struct value draw_unary(struct writer *w, unsigned depth)
{
	struct value v;

	if (draw() % 2) {
		write_formatted(w, "!(");
		v = draw_expression(w, depth - 1);
		write_formatted(w, ")");
		return truth(is_true(v) < 0 ? -1 : !is_true(v));
	}
	write_formatted(w, "-(");
	v = draw_expression(w, depth - 1);
	write_formatted(w, ")");
	if (v.type == KY_FILTER_FLOAT)
		v.f = -v.f;
	else
		v.u = -v.u;
	return v;
}

static struct value draw_expression(struct writer *w, unsigned depth)
{
	static const char *const comparisons[] = {"==", "!=", "<", "<=", ">", ">="};
	const char *op = comparisons[draw() % KY_ARRAY_SIZE(comparisons)];
	bool and = draw() % 2;
	struct value l, r;

	switch (depth ? draw() % 8 : 0) {
	case 0:
		return draw_leaf(w);
	case 1:
		return draw_unary(w, depth);
	case 2:
	case 3:
		return draw_arithmetic(w, depth);
	case 4:
	case 5:
		write_formatted(w, "(");
		l = draw_expression(w, depth - 1);
		write_formatted(w, " %s ", op);
		r = draw_expression(w, depth - 1);
		write_formatted(w, ")");
		return evaluate_comparison(op, l, r);
	default:
		write_formatted(w, "(");
		l = draw_expression(w, depth - 1);
		write_formatted(w, and? " && " : " || ");
		r = draw_expression(w, depth - 1);
		write_formatted(w, ")");
		return logic(and, l, r);
	}
}

static void draw_values(struct values *v)
{
	*v = usual;
	v->a = (int8_t)draw();
	v->b = (uint8_t)draw();
	v->c = draw() % 2 ? (int16_t)draw() : v->a;
	v->d = (uint16_t)draw();
	v->e = draw() % 2 ? (int32_t)draw() : v->c;
	v->f = (uint32_t)draw();
	v->g = draw() % 2 ? (int64_t)draw() : INT64_MIN;
	v->h = draw() % 2 ? draw() : (uint64_t)v->g;
	v->y = draw() % 2 ? v->a / 4.0 : (double)v->h;
	v->behind = (int16_t)draw();
	v->seq[1] = v->a;
	v->last = draw() >> (draw() % 64);
}

static void test_random(void **state)
{
	struct ky_filter_error error;
	unsigned n_true = 0, n_refused = 0;

	for (unsigned i = 0; i < 60000; i++) {
		static struct writer w;
		struct values v;
		struct record *r;
		struct value wanted;

		draw_values(&v);
		w.n = 0;
		w.v = &v;
		wanted = draw_expression(&w, 1 + (unsigned)(draw() % 4));
		if (compile_and_link(w.text, &error) < 0) {
			/* Fails only because of its size. */
			if (!strstr(error.text, "more than") && !strstr(error.text, "too large"))
				fail_msg("%s: %s", w.text, error.text);
			n_refused++;
			continue;
		}
		r = record_new(i % 2 ? PIECES : FLAT, &v);
		if (ky_filter_pass(code, r->flat, r->len, r->pieces, r->n_pieces) !=
			(is_true(wanted) == 1))
			fail_msg("%s is %d", w.text, is_true(wanted));
		n_true += is_true(wanted) == 1;
		record_free(r);
	}
	assert_in_range(n_true, 15000, 45000);
	assert_in_range(n_refused, 0, 600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
