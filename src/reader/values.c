/* SPDX-License-Identifier: MIT */
#include "reader/values.h"

#include <fcntl.h>

#include "base/bisect.h"
#include "base/buf.h"
#include "reader/file.h"

#define LINE	       "# values\t"
#define SIZE_MAX_BYTES (64u << 20)
#define ERROR_MAX      4095
#define PARTS_MAX      128 /* lines of one event */

/* A part of a field's names. */
struct ky_named {
	const struct ky_named *next;
	bool is_flags, is_error;
	uint64_t mask;
	size_t n;
	struct named_value {
		uint64_t value;
		const char *name;
	} * values;
};

/* A line of the index: texts are in the index. */
struct line {
	const char *event, *field, *rest;
	size_t number;
};

static int by_event(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int r = strcmp(x->event, y->event);

	return r ? r : (x->number > y->number) - (x->number < y->number);
}

static int read_index(struct ky_buf *b, const char *dir)
{
	struct ky_buf path = {0};
	_cleanup_close_ int fd = -1;
	ssize_t n = 1;
	char *to;

	ky_buf_printf(&path, "%s/index/formats", dir);
	fd = path.error ? -1 : ky_file_open_at(AT_FDCWD, path.data);
	ky_buf_deinit(&path);
	b->max = SIZE_MAX_BYTES;
	while (fd >= 0 && n > 0) {
		to = ky_buf_reserve(b, 64 << 10);
		n = to ? read(fd, to, 64 << 10) : -1;
		b->len += n > 0 ? (size_t)n : 0;
	}
	ky_buf_append(b, "", 1);
	return b->error;
}

/* Divides the text into lines with names. Returns their number; *ret_lines is the caller's. */
static ssize_t find_lines(char *text, struct line **ret_lines)
{
	size_t n = 0, cap = 0;
	char *rest = text, *one;

	*ret_lines = NULL;
	while ((one = strsep(&rest, "\n"))) {
		struct line l;

		if (strncmp(one, LINE, strlen(LINE)) != 0)
			continue;
		one += strlen(LINE);
		l.event = strsep(&one, "\t");
		l.field = strsep(&one, "\t");
		l.rest = one;
		l.number = n;
		if (!one)
			continue;
		if (n == cap) {
			struct line *more;

			cap = cap ? 2 * cap : 256;
			more = reallocarray(*ret_lines, cap, sizeof(*more));
			if (!more)
				return -ENOMEM;
			*ret_lines = more;
		}
		(*ret_lines)[n++] = l;
	}
	return (ssize_t)n;
}

static size_t count_char(const char *s, char c)
{
	size_t n = 0;

	for (; *s; s++)
		n += *s == c;
	return n;
}

/* Makes a part of a line's rest: "flags<TAB>MASK<TAB>1=A<TAB>2=B". NULL: it is none. */
static struct ky_named *make_named(struct ky_arena *arena, const char *rest)
{
	struct ky_named *named = ky_arena_alloc(arena, sizeof(*named));
	char *copy = ky_arena_strndup(arena, rest, strlen(rest)), *kind, *mask, *one, *name;

	if (!named || !copy)
		return NULL;
	named->values = ky_arena_alloc(
		arena, (count_char(rest, '\t') + 1) * sizeof(*named->values));
	kind = strsep(&copy, "\t");
	mask = strsep(&copy, "\t");
	if (!named->values || !mask)
		return NULL;
	named->is_flags = !strcmp(kind, "flags");
	named->mask = strtoull(mask, NULL, 16);
	while ((one = strsep(&copy, "\t"))) {
		uint64_t value = strtoull(one, &name, 16);

		if (*name == '=' && name[1])
			named->values[named->n++] = (struct named_value){value, name + 1};
	}
	return named->n ? named : NULL;
}

static struct ky_node *find_field(const struct ky_event_class *e, const char *name)
{
	for (uint32_t i = 0; e->fields && i < e->fields->n; i++)
		if (!strcmp(e->fields->children[i].name, name))
			return &e->fields->children[i];
	return NULL;
}

/* Adds a part to the names of a field, behind others. */
static void add_named(struct ky_node *n, struct ky_named *named)
{
	const struct ky_named **last = &n->named;

	if (!named || n->kind != KY_NODE_INT || !(n->is_number || n->show == KY_SHOW_NAMED))
		return;
	while (*last)
		last = (const struct ky_named **)&(*last)->next;
	*last = named;
	n->is_number = false;
	n->show = KY_SHOW_NAMED;
}

/* Finds the first line of an event. */
static size_t first_line(const struct line *lines, size_t n, const char *event)
{
	size_t first;

	ky_bisect(first, n, k, strcmp(lines[k].event, event) < 0);
	return first;
}

/* Returns 0 or -ENOMEM. */
static int choose_of(
	const struct ky_event_class *e, struct ky_arena *arena, const struct line *lines, size_t n)
{
	static const char exits[] = "syscall_exit_";
	struct ky_node *ret = !strncmp(e->name, exits, strlen(exits)) ? find_field(e, "ret") : NULL;
	size_t begin = first_line(lines, n, e->name);
	struct ky_named *errors;

	for (size_t i = begin; i < n && i - begin < PARTS_MAX && !strcmp(lines[i].event, e->name);
		i++) {
		struct ky_node *field = find_field(e, lines[i].field);

		if (field)
			add_named(field, make_named(arena, lines[i].rest));
	}
	if (!ret || !ret->is_signed)
		return 0;
	errors = ky_arena_alloc(arena, sizeof(*errors));
	if (!errors)
		return -ENOMEM;
	errors->is_error = true;
	add_named(ret, errors);
	return 0;
}

int ky_values_choose(struct ky_layout *l, struct ky_arena *arena, const char *dir)
{
	struct ky_buf text = {0};
	struct line *lines = NULL;
	ssize_t n = read_index(&text, dir) ? 0 : find_lines(text.data, &lines);
	int r = n < 0 ? -ENOMEM : 0;

	if (n > 0)
		qsort(lines, (size_t)n, sizeof(*lines), by_event);
	for (size_t i = 0; i < l->n_streams && !r; i++)
		for (size_t k = 0; k < l->streams[i].n_events && !r; k++)
			r = choose_of(&l->streams[i].events[k], arena, lines, (size_t)n);
	free(lines);
	ky_buf_deinit(&text);
	return r;
}

/* --- texts --- */

struct text {
	char *at;
	size_t len, size;
};

static void append_name(struct text *t, const char *name)
{
	int n = snprintf(t->at + t->len, t->size - t->len, "%s%s", t->len ? "|" : "", name);

	t->len = KY_MIN(t->len + (size_t)KY_MAX(n, 0), t->size - 1);
}

static void put_error(struct text *t, int64_t v)
{
#if __GLIBC_PREREQ(2, 32)
	const char *name = v < 0 && v >= -ERROR_MAX ? strerrorname_np((int)-v) : NULL;

	if (name)
		append_name(t, name);
#endif
}

/* Flags of several bits come before their parts, as the kernel has them. */
static void put_part(struct text *t, const struct ky_named *n, uint64_t v)
{
	uint64_t left = v & n->mask;
	char rest[32];

	for (size_t i = 0; i < n->n; i++) {
		uint64_t value = n->values[i].value;
		bool all = left == value && left == (v & n->mask);
		bool some = n->is_flags && value && (left & value) == value;

		if (!all && !some)
			continue;
		append_name(t, n->values[i].name);
		left &= ~value;
		if (all)
			return;
	}
	snprintf(rest, sizeof(rest), "0x%llx", (unsigned long long)left);
	if (n->is_flags && left && t->len)
		append_name(t, rest);
}

size_t ky_named_text(const struct ky_named *n, uint64_t v, char *text, size_t size)
{
	struct text t = {text, 0, size};

	for (; n; n = n->next)
		if (n->is_error)
			put_error(&t, (int64_t)v);
		else
			put_part(&t, n, v);
	return t.len;
}
