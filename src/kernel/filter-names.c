/* SPDX-License-Identifier: MIT */
/*
 * Names of values in filters of kernel events: `prev_state == "D"`, `flags & O_CREAT`,
 * `ret == -ENOENT`. The names are those that `kymo view --symbols` shows (print-fmt.h), those of
 * errors, and what the kernel's sources call the states of a thread.
 */
#include <errno.h>

#include "filter/program.h"
#include "kernel/filter.h"
#include "kernel/print-fmt.h"

#define ERROR_MAX 133

struct resolver {
	const struct ky_kprogram *p;
	struct ky_buf values; /* lines: ky_kvalues_put() */
	struct ky_filter_tree tree;
};

static const struct {
	const char *name;
	uint64_t value;
} states[] = {{"TASK_RUNNING", 0}, {"TASK_INTERRUPTIBLE", 1}, {"TASK_UNINTERRUPTIBLE", 2},
	{"__TASK_STOPPED", 4}, {"__TASK_TRACED", 8}, {"EXIT_DEAD", 16}, {"EXIT_ZOMBIE", 32},
	{"TASK_PARKED", 64}};

static bool is_text(const char *a, size_t n, const char *b)
{
	return strlen(b) == n && !memcmp(a, b, n);
}

/* Finds a name in the rest of a line: "<TAB>VALUE=NAME<TAB>VALUE=NAME". */
static bool find_in_line(const char *at, const char *end, const char *name, size_t n, uint64_t *ret)
{
	for (const char *next; at < end; at = next) {
		const char *equals = memchr(at, '=', (size_t)(end - at));

		next = memchr(at + 1, '\t', (size_t)(end - at - 1));
		next = next ? next : end;
		if (!equals || equals > next || (size_t)(next - equals - 1) != n ||
			memcmp(equals + 1, name, n) != 0)
			continue;
		*ret = strtoull(at + 1, NULL, 16);
		return true;
	}
	return false;
}

/* Returns where the values begin if the line is about the field, or NULL. */
static const char *values_of(const char *line, const char *end, const char *field)
{
	const char *at = line;

	/* # values, the event */
	for (unsigned i = 0; i < 2 && at; i++)
		at = memchr(at, '\t', (size_t)(end - at)) ? strchr(at, '\t') + 1 : NULL;
	if (!at || strncmp(at, field, strlen(field)) != 0 || at[strlen(field)] != '\t')
		return NULL;
	/* the field, what it has, the mask */
	for (unsigned i = 0; i < 3 && at; i++)
		at = memchr(at + 1, '\t', (size_t)(end - at - 1));
	return at;
}

static bool find_error(const char *name, size_t n, uint64_t *ret)
{
#if __GLIBC_PREREQ(2, 32)
	for (int i = 1; i <= ERROR_MAX; i++) {
		const char *known = strerrorname_np(i);

		if (known && is_text(name, n, known)) {
			*ret = (uint64_t)-i;
			return true;
		}
	}
#endif
	return false;
}

/* Finds the value of the field that has this name. */
static bool find_value(
	const struct resolver *r, const char *field, const char *name, size_t n, uint64_t *ret)
{
	const char *line = r->values.data, *end, *at;

	for (; line && *line; line = end + (*end == '\n')) {
		end = line + strcspn(line, "\n");
		at = values_of(line, end, field);
		if (at && find_in_line(at, end, name, n, ret))
			return true;
	}
	for (size_t i = 0; !strcmp(field, "prev_state") && i < KY_ARRAY_SIZE(states); i++)
		if (is_text(name, n, states[i].name)) {
			*ret = states[i].value;
			return true;
		}
	return !strcmp(field, "ret") && find_error(name, n, ret);
}

/* Finds all values of a text: "O_CREAT|O_TRUNC". */
static bool find_values(
	const struct resolver *r, const char *field, const char *names, size_t n, uint64_t *ret)
{
	uint64_t value;

	*ret = 0;
	for (size_t len;; names += len + 1, n -= len + 1) {
		const char *bar = memchr(names, '|', n);

		len = bar ? (size_t)(bar - names) : n;
		if (!find_value(r, field, names, len, &value))
			return false;
		*ret |= value;
		if (!bar)
			return true;
	}
}

static const struct kymo_field *find_field(const struct resolver *r, const char *name, size_t n)
{
	for (const struct kymo_field *f = r->p->fields; f->kind; f++)
		if (is_text(name, n, f->name))
			return f;
	return NULL;
}

/* Has the value as a field of this size and sign has it. */
static uint64_t value_of_field(const struct kymo_field *f, uint64_t v)
{
	unsigned unused = f->size < 8 ? 64 - 8 * f->size : 0;

	return f->kind == KYMO_FIELD_INT ? (uint64_t)((int64_t)(v << unused) >> unused)
					 : v << unused >> unused;
}

static bool is_integer(const struct kymo_field *f)
{
	return f && (f->kind == KYMO_FIELD_INT || f->kind == KYMO_FIELD_UINT);
}

/* Returns the integer with which the text, node i, is compared, or NULL. */
static const struct kymo_field *compared_with(const struct resolver *r, unsigned i)
{
	const struct ky_filter_node *nodes = r->tree.nodes, *other;
	const struct kymo_field *f;

	for (unsigned k = i + 1; k < r->tree.n_nodes; k++) {
		if (nodes[k].op < KY_OP_OR || (nodes[k].left != i && k - 1 != i))
			continue;
		other = nodes[k].left == i ? &nodes[k - 1] : &nodes[nodes[k].left];
		f = other->op == KY_OP_FIELD ? find_field(r, other->text, other->len) : NULL;
		return is_integer(f) ? f : NULL;
	}
	return NULL;
}

/* Appends the names that the field's values have. Returns false if they have none. */
static bool put_names(const struct resolver *r, const char *field, char *text, size_t size)
{
	const char *line = r->values.data, *end, *at, *equals;
	size_t n = strlen(text);
	bool any = false;

	for (; line && *line; line = end + (*end == '\n')) {
		end = line + strcspn(line, "\n");
		for (at = values_of(line, end, field); at && n < size; any = true) {
			equals = strchr(at, '=');
			at = memchr(equals, '\t', (size_t)(end - equals));
			n += (size_t)snprintf(text + n, size - n, "%s%.*s",
				any ? ", " : ": it has ", (int)((at ? at : end) - equals - 1),
				equals + 1);
		}
	}
	return any;
}

static int no_value(const struct resolver *r, const struct ky_filter_node *n,
	const struct kymo_field *f, struct ky_filter_error *error)
{
	snprintf(error->text, sizeof(error->text), "field '%s' has no value '%.*s'", f->name,
		KY_MIN(n->size, 60), n->text);
	return put_names(r, f->name, error->text, sizeof(error->text)) ? -EINVAL : 0;
}

/* Returns 1 and the number that node i stands for, or 0; -EINVAL if it is no value of its field. */
static int resolve_node(
	const struct resolver *r, unsigned i, uint64_t *ret, struct ky_filter_error *error)
{
	const struct ky_filter_node *n = &r->tree.nodes[i];
	const struct kymo_field *f = n->op == KY_OP_STRING ? compared_with(r, i) : NULL;

	if (f && find_values(r, f->name, n->text, n->size, ret)) {
		*ret = value_of_field(f, *ret);
		return 1;
	}
	if (f)
		return no_value(r, n, f, error);
	if (n->op != KY_OP_FIELD || find_field(r, n->text, n->len))
		return 0;
	for (f = r->p->fields; f->kind; f++)
		if (is_integer(f) && find_value(r, f->name, n->text, n->len, ret)) {
			*ret = value_of_field(f, *ret);
			/* "ret == -ENOENT" as in C, and "ret == ENOENT" as shown. */
			if (!strcmp(f->name, "ret") && i + 1 < r->tree.n_nodes &&
				n[1].op == KY_OP_NEGATE)
				*ret = -*ret;
			return 1;
		}
	return 0;
}

/* Copies the program: names and texts of the nodes are parts of it. */
static int copy_program(struct ky_buf *ret, const struct resolver *r, struct ky_bytes program,
	struct ky_filter_error *error)
{
	const char *from = program.data, *end = from + program.len;
	const struct ky_filter_node *n;
	uint64_t v;
	int found;

	for (unsigned i = 0; i < r->tree.n_nodes; i++) {
		n = &r->tree.nodes[i];
		found = resolve_node(r, i, &v, error);
		if (found < 0)
			return found;
		if (!found)
			continue;
		/* The operator and the length are in front of the text. */
		ky_buf_append(
			ret, from, (size_t)(n->text - (n->op == KY_OP_STRING ? 3 : 2) - from));
		ky_buf_append(ret, &(uint8_t){KY_OP_SIGNED}, 1);
		ky_buf_append(ret, &v, sizeof(v));
		from = n->text + (n->op == KY_OP_STRING ? n->size : n->len);
	}
	ky_buf_append(ret, from, (size_t)(end - from));
	return ret->error;
}

int ky_kfilter_resolve(struct ky_buf *ret, struct ky_bytes program, const struct ky_kprogram *p,
	const char *format, struct ky_filter_error *error)
{
	static struct resolver r;
	unsigned node;
	int err = ky_filter_check(
		&r.tree, program.data, program.len, NULL, ky_kfilter_find_context, &node, error);

	if (err < 0)
		return err;
	r.p = p;
	r.values = (struct ky_buf){0};
	ky_kvalues_put(&r.values, format, p);
	err = r.values.error ? r.values.error : copy_program(ret, &r, program, error);
	ky_buf_deinit(&r.values);
	return err;
}
