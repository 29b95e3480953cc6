/* SPDX-License-Identifier: MIT */
/*
 * Compiles the text of an expression to its program. Precedences are C's. Operators wait on a stack
 * until one follows that binds less tightly (Dijkstra's shunting yard). That puts the program into
 * postfix order as it is read: no tree, no recursion. check.c has the rules for combining operands.
 */
#include <ctype.h>
#include <stdarg.h>

#include "base/text.h"
#include "filter/program.h"

#define OPERATORS_MAX	 128u
#define PRECEDENCE_UNARY 11
#define PARENTHESIS	 0   /* an op that is no operator */
#define PATH_SIZE	 257 /* more than a node's limit */

struct operator
{
	const char *text;
	uint8_t op;
	uint8_t precedence;
};

/* Longer operators are first. */
static const struct operator operators[] = {
	{"<<", KY_OP_SHL, 8},
	{">>", KY_OP_SHR, 8},
	{"<=", KY_OP_LE, 7},
	{">=", KY_OP_GE, 7},
	{"==", KY_OP_EQ, 6},
	{"!=", KY_OP_NE, 6},
	{"&&", KY_OP_AND, 2},
	{"||", KY_OP_OR, 1},
	{"<", KY_OP_LT, 7},
	{">", KY_OP_GT, 7},
	{"&", KY_OP_BIT_AND, 5},
	{"^", KY_OP_BIT_XOR, 4},
	{"|", KY_OP_BIT_OR, 3},
	{"+", KY_OP_ADD, 9},
	{"-", KY_OP_SUB, 9},
	{"*", KY_OP_MUL, 10},
	{"/", KY_OP_DIV, 10},
	{"%", KY_OP_MOD, 10},
};

struct waiting {
	uint8_t op; /* or PARENTHESIS */
	uint8_t precedence;
	uint16_t at;
};

struct compiler {
	const char *text;
	unsigned at; /* next character */
	uint8_t *buf;
	size_t len;
	struct waiting stack[OPERATORS_MAX];
	unsigned n_stack;
	uint16_t positions[KY_FILTER_NODES_MAX]; /* of the nodes */
	unsigned n_nodes;
	struct ky_filter_error *error;
};

static int fail_at_character(struct compiler *c, unsigned at, const char *fmt, ...) KY_PRINTF(3, 4);

/* "WHAT at character N" */
static int fail_at_character(struct compiler *c, unsigned at, const char *fmt, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->error->position = at + 1;
	ky_filter_complain(c->error, "%s at character %u", text, at + 1);
	return -EINVAL;
}

static int fail_with_hint(struct compiler *c, int ret, const char *hint)
{
	size_t n = strlen(c->error->text);

	snprintf(c->error->text + n, sizeof(c->error->text) - n, " (%s)", hint);
	return ret;
}

/* --- program --- */

static void put_in_program(struct compiler *c, const void *p, size_t n)
{
	memcpy(c->buf + c->len, p, n);
	c->len += n;
}

/* Begins a node of at most `size` bytes behind its op. */
static int begin_node(struct compiler *c, uint8_t op, unsigned at, size_t size)
{
	if (c->n_nodes == KY_FILTER_NODES_MAX || c->len + 1 + size > KY_FILTER_PROGRAM_MAX)
		return fail_at_character(
			c, at, "more than %u names, constants and operators", KY_FILTER_NODES_MAX);
	c->positions[c->n_nodes++] = (uint16_t)at;
	put_in_program(c, &op, sizeof(op));
	return 0;
}

static int put_number(struct compiler *c, uint8_t op, union ky_filter_number v, unsigned at)
{
	int ret = begin_node(c, op, at, sizeof(v));

	if (!ret)
		put_in_program(c, &v, sizeof(v));
	return ret;
}

/* --- operands --- */

static bool is_name(char ch)
{
	return isalnum((unsigned char)ch) || ch == '_';
}

static void skip_blanks(struct compiler *c)
{
	while (isspace((unsigned char)c->text[c->at]))
		c->at++;
}

static int digit_of(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	ch = (char)tolower((unsigned char)ch);
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : 99;
}

static int read_integer(struct compiler *c, unsigned base, uint64_t *ret_value)
{
	unsigned begin = c->at;
	uint64_t v = 0;
	int digit;

	for (; (digit = digit_of(c->text[c->at])) < (int)base; c->at++)
		if (__builtin_mul_overflow(v, base, &v) ||
			__builtin_add_overflow(v, (unsigned)digit, &v))
			return fail_at_character(c, begin, "the number does not fit 64 bits");
	if (c->at == begin)
		return fail_at_character(c, begin, "digits are missing");
	*ret_value = v;
	return 0;
}

/* Reads the prefix of a number: "0x", "0b" or "0" select other bases. */
static unsigned take_base(struct compiler *c)
{
	const char *s = c->text + c->at;
	char letter = (char)tolower((unsigned char)s[1]);

	if (s[0] != '0' || (!isdigit((unsigned char)s[1]) && letter != 'x' && letter != 'b'))
		return 10;
	c->at += isdigit((unsigned char)letter) ? 0 : 2;
	return letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
}

static bool is_float(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return s[n] == '.' || ((s[n] == 'e' || s[n] == 'E') && n);
}

static int read_number(struct compiler *c)
{
	unsigned begin = c->at;
	union ky_filter_number v = {.u = 0};
	uint8_t op = KY_OP_SIGNED;
	char *end;
	int ret = 0;

	if (is_float(c->text + begin)) {
		v.f = ky_parse_real(c->text + begin, &end);
		c->at = (unsigned)(end - c->text);
		op = KY_OP_FLOAT;
	} else {
		ret = read_integer(c, take_base(c), &v.u);
		if (ret)
			return ret;
		op = v.u > INT64_MAX ? KY_OP_UNSIGNED : KY_OP_SIGNED;
		for (; strchr("uUlL", c->text[c->at]) && c->text[c->at]; c->at++)
			if (tolower((unsigned char)c->text[c->at]) == 'u')
				op = KY_OP_UNSIGNED;
	}
	if (is_name(c->text[c->at]) || c->text[c->at] == '.')
		return fail_at_character(
			c, c->at, "'%c' does not belong to a number", c->text[c->at]);
	return put_number(c, op, v, begin);
}

/* Puts one character of a string, which follows a backslash. */
static int put_escaped(struct compiler *c, char ch)
{
	char out[] = {'\\', ch};

	switch (ch) {
	case 'n':
		out[1] = '\n';
		break;
	case 't':
		out[1] = '\t';
		break;
	case '*':
	case '"':
	case '\\':
		break;
	default:
		return fail_with_hint(c,
			fail_at_character(c, c->at, "unknown escape '\\%c'",
				isprint((unsigned char)ch) ? ch : '?'),
			"there are \\*, \\\", \\\\, \\n and \\t");
	}
	put_in_program(c, out, sizeof(out));
	return 0;
}

static int read_string(struct compiler *c)
{
	unsigned begin = c->at;
	size_t size_at = c->len + 1;
	/* Each of its characters is at most one byte of the pattern. */
	int ret = begin_node(c, KY_OP_STRING, begin, sizeof(uint16_t) + strlen(c->text + begin));
	uint16_t size = 0;

	if (!ret)
		put_in_program(c, &size, sizeof(size));
	for (c->at++; !ret && c->text[c->at] && c->text[c->at] != '"'; c->at++) {
		if (c->text[c->at] == '\\' && c->text[c->at + 1])
			ret = put_escaped(c, c->text[c->at + 1]), c->at++;
		else
			put_in_program(c, c->text + c->at, 1);
	}
	if (ret)
		return ret;
	if (!c->text[c->at])
		return fail_at_character(c, begin, "the string is not closed that begins");
	c->at++;
	size = (uint16_t)(c->len - size_at - sizeof(size));
	memcpy(c->buf + size_at, &size, sizeof(size));
	return 0;
}

/* Reads "[INDEX]" behind a field's name; returns -ENOENT if there is none. */
static int read_index(struct compiler *c, uint64_t *ret_index)
{
	unsigned begin;
	int ret;

	skip_blanks(c);
	if (c->text[c->at] != '[')
		return -ENOENT;
	c->at++;
	skip_blanks(c);
	begin = c->at;
	if (!isdigit((unsigned char)c->text[begin]))
		return fail_at_character(c, begin,
			"the number of an element must be a constant, but something else stands");
	ret = read_integer(c, take_base(c), ret_index);
	if (!ret && *ret_index >= UINT32_MAX)
		return fail_at_character(c, begin, "no array has an element of this number");
	skip_blanks(c);
	if (!ret && c->text[c->at] != ']')
		return fail_at_character(c, c->at, "']' is missing");
	c->at += !ret;
	return ret;
}

static int put_name(struct compiler *c, uint8_t op, const char *name, size_t n, unsigned at)
{
	uint8_t len = (uint8_t)n;
	int ret;

	if (n > 255)
		return fail_at_character(c, at, "a name is too long");
	ret = begin_node(c, op, at, sizeof(len) + n + sizeof(uint32_t));
	if (ret)
		return ret;
	put_in_program(c, &len, sizeof(len));
	put_in_program(c, name, n);
	return 0;
}

/* Appends to a path; a path that is too long is detected at its end. */
static void add_to_path(char path[PATH_SIZE], const char *text, size_t n)
{
	size_t len = strlen(path);

	snprintf(path + len, PATH_SIZE - len, "%.*s", (int)KY_MIN(n, (size_t)PATH_SIZE), text);
}

/*
 * Reads NAME, NAME[INDEX] or NAME[INDEX][INDEX]..., or several of them with dots between. Without
 * blanks, the result is a path (docs/filter-program.md).
 */
static int read_field(struct compiler *c)
{
	char path[PATH_SIZE] = "", number[16];
	unsigned begin = c->at, from;
	uint64_t index;
	uint32_t last;
	int ret;

	for (;;) {
		for (from = c->at; is_name(c->text[c->at]); c->at++)
			;
		add_to_path(path, c->text + from, c->at - from);
		ret = read_index(c, &index);
		skip_blanks(c);
		while (!ret && c->text[c->at] == '[') {
			snprintf(number, sizeof(number), "[%u]", (unsigned)index);
			add_to_path(path, number, strlen(number));
			ret = read_index(c, &index);
			skip_blanks(c);
		}
		if ((ret && ret != -ENOENT) || c->text[c->at] != '.')
			break;
		snprintf(number, sizeof(number), ret ? "." : "[%u].", (unsigned)index);
		add_to_path(path, number, strlen(number));
		c->at++;
		skip_blanks(c);
		if (!is_name(c->text[c->at]) || isdigit((unsigned char)c->text[c->at]))
			return fail_at_character(
				c, c->at, "the name of a field is missing after '.'");
	}
	if (ret == -ENOENT)
		return put_name(c, KY_OP_FIELD, path, strlen(path), begin);
	if (!ret)
		ret = put_name(c, KY_OP_ELEMENT, path, strlen(path), begin);
	last = (uint32_t)index;
	if (!ret)
		put_in_program(c, &last, sizeof(last));
	return ret;
}

/* Reads $ctx.NAME, $app.PROVIDER:NAME or $ctx.$app.PROVIDER:NAME. */
static int read_context(struct compiler *c)
{
	static const char ctx[] = "$ctx.", app[] = "$app.";
	const char *s = c->text + c->at;
	unsigned begin = c->at;
	size_t prefix = 0, n;

	if (!strncmp(s, ctx, sizeof(ctx) - 1))
		s += sizeof(ctx) - 1;
	if (!strncmp(s, app, sizeof(app) - 1))
		prefix = sizeof(app) - 1;
	for (n = prefix; is_name(s[n]) || s[n] == ':' || (prefix && s[n] == '.'); n++)
		;
	if (n == prefix || (s == c->text + begin && !prefix))
		return fail_with_hint(c,
			fail_at_character(c, begin, "'$' leads the name of no context"),
			"contexts are $ctx.NAME and $app.PROVIDER:NAME");
	c->at = (unsigned)(s + n - c->text);
	return put_name(c, KY_OP_CONTEXT, s, n, begin);
}

static int push(struct compiler *c, uint8_t op, uint8_t precedence, unsigned at)
{
	if (c->n_stack == OPERATORS_MAX)
		return fail_at_character(c, at, "the expression is nested too deeply");
	c->stack[c->n_stack++] = (struct waiting){op, precedence, (uint16_t)at};
	return 0;
}

static int read_unary(struct compiler *c, uint8_t op)
{
	int ret = op ? push(c, op, PRECEDENCE_UNARY, c->at) : 0;

	c->at++;
	return ret;
}

static int expected_operand(struct compiler *c)
{
	char ch = c->text[c->at];
	int ret;

	if (!ch)
		return fail_at_character(c, c->at, "a name, a number or a string is missing");
	if (ch == '\'')
		return fail_with_hint(c, fail_at_character(c, c->at, "unknown character '''"),
			"strings are written \"...\"");
	if (!isprint((unsigned char)ch))
		return fail_at_character(c, c->at, "unknown character");
	ret = fail_at_character(
		c, c->at, "a name, a number or a string is missing before '%c'", ch);
	/* A shell replaces $ctx by nothing, except in single quotes. */
	return ch == '.' ? fail_with_hint(c, ret, "contexts are '$ctx.NAME', in single quotes")
			 : ret;
}

/* Reads an operand. Sets *ret_more if it was only a prefix, and the operand still has to follow. */
static int read_operand(struct compiler *c, bool *ret_more)
{
	char ch = c->text[c->at];

	*ret_more = true;
	switch (ch) {
	case '(':
		return push(c, PARENTHESIS, 0, c->at++);
	case '!':
		return read_unary(c, KY_OP_NOT);
	case '-':
		return read_unary(c, KY_OP_NEGATE);
	case '~':
		return read_unary(c, KY_OP_COMPLEMENT);
	case '+':
		return read_unary(c, 0);
	default:
		break;
	}
	*ret_more = false;
	if (isdigit((unsigned char)ch) || (ch == '.' && isdigit((unsigned char)c->text[c->at + 1])))
		return read_number(c);
	if (is_name(ch))
		return read_field(c);
	if (ch == '"')
		return read_string(c);
	return ch == '$' ? read_context(c) : expected_operand(c);
}

/* --- operators --- */

/* Writes the waiting operators that bind at least as tightly. */
static int flush_operators(struct compiler *c, uint8_t precedence)
{
	int ret = 0;

	while (!ret && c->n_stack && c->stack[c->n_stack - 1].op != PARENTHESIS &&
		c->stack[c->n_stack - 1].precedence >= precedence) {
		const struct waiting *w = &c->stack[--c->n_stack];

		ret = begin_node(c, w->op, w->at, 0);
	}
	return ret;
}

static int close_parenthesis(struct compiler *c)
{
	int ret = flush_operators(c, 0);

	if (ret)
		return ret;
	if (!c->n_stack)
		return fail_at_character(c, c->at, "')' without '('");
	c->n_stack--;
	c->at++;
	return 0;
}

/* Returns whether the next word is this operator of other languages. */
static bool is_word(const struct compiler *c, const char *word)
{
	const char *s = c->text + c->at;
	size_t n = strlen(word);

	return !strncasecmp(s, word, n) && !isalnum((unsigned char)s[n]) && s[n] != '_';
}

static int unknown_operator(struct compiler *c)
{
	char ch = c->text[c->at];
	int ret;

	if (ch == '=')
		return fail_with_hint(c, fail_at_character(c, c->at, "unknown operator '='"),
			"did you mean '=='?");
	if (!isprint((unsigned char)ch))
		return fail_at_character(c, c->at, "unknown character");
	ret = fail_at_character(c, c->at, "an operator is missing before '%c'", ch);
	if (is_word(c, "and"))
		return fail_with_hint(c, ret, "did you mean '&&'?");
	if (is_word(c, "or"))
		return fail_with_hint(c, ret, "did you mean '||'?");
	return ret;
}

/* Reads an operator. Sets *ret_more if an operand has to follow. */
static int read_operator(struct compiler *c, bool *ret_more)
{
	const char *s = c->text + c->at;
	const struct operator* o;
	int ret;

	*ret_more = false;
	if (*s == ')')
		return close_parenthesis(c);
	for (o = operators; o < operators + KY_ARRAY_SIZE(operators); o++)
		if (!strncmp(s, o->text, strlen(o->text)))
			break;
	if (o == operators + KY_ARRAY_SIZE(operators))
		return unknown_operator(c);
	*ret_more = true;
	ret = flush_operators(c, o->precedence);
	if (!ret)
		ret = push(c, o->op, o->precedence, c->at);
	c->at += (unsigned)strlen(o->text);
	return ret;
}

static int read_expression(struct compiler *c)
{
	bool more = true;
	int ret = 0;

	for (skip_blanks(c); !ret && (c->text[c->at] || more); skip_blanks(c))
		ret = more ? read_operand(c, &more) : read_operator(c, &more);
	if (!ret)
		ret = flush_operators(c, 0);
	if (!ret && c->n_stack)
		return fail_at_character(c, c->stack[c->n_stack - 1].at, "'(' without ')'");
	return ret;
}

int ky_filter_compile(
	const char *text, ky_filter_find_context find, uint8_t *buf, struct ky_filter_error *error)
{
	struct compiler c = {.text = text, .buf = buf, .error = error};
	const uint8_t version = KY_FILTER_VERSION;
	struct ky_filter_error why;
	struct ky_filter_tree tree;
	unsigned node;
	int ret;

	*error = (struct ky_filter_error){0};
	if (strlen(text) > KY_FILTER_TEXT_MAX) {
		ky_filter_complain(
			error, "the expression has more than %u characters", KY_FILTER_TEXT_MAX);
		return -EINVAL;
	}
	put_in_program(&c, &version, sizeof(version));
	ret = read_expression(&c);
	if (ret)
		return ret;
	ret = ky_filter_check(&tree, buf, c.len, NULL, find, &node, &why);
	if (ret)
		return fail_at_character(&c, c.positions[node], "%s", why.text);
	return (int)c.len;
}

unsigned ky_filter_position(const char *text, const struct ky_filter_error *error)
{
	uint8_t program[KY_FILTER_PROGRAM_MAX];
	struct ky_filter_error unused;
	struct compiler c = {.text = text, .buf = program, .error = &unused};
	unsigned at;

	put_in_program(&c, &(uint8_t){KY_FILTER_VERSION}, 1);
	if (read_expression(&c) || error->node >= c.n_nodes)
		return 0;
	at = c.positions[error->node];
	for (unsigned n = error->component; n; n--)
		at += (unsigned)strcspn(text + at, ".") + 1;
	return at + (unsigned)strspn(text + at, " \t\n\v\f\r") + 1;
}
