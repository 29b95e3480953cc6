/* SPDX-License-Identifier: MIT */
#include "kernel/print-fmt.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/glob.h"

#define NAME_MAX_BYTES 64

/* --- expressions of constants --- */

struct expr {
	const char *at, *end;
	bool failed;
};

static void skip_blanks(struct expr *e)
{
	while (e->at < e->end && isspace((unsigned char)*e->at))
		e->at++;
}

static bool take_text(struct expr *e, const char *text)
{
	size_t n = strlen(text);

	skip_blanks(e);
	if ((size_t)(e->end - e->at) < n || memcmp(e->at, text, n))
		return false;
	e->at += n;
	return true;
}

/* Takes "(unsigned long)", "( gfp_t)": a name of a type in parentheses. */
static bool take_cast(struct expr *e)
{
	const char *p;

	skip_blanks(e);
	p = e->at;
	if (p == e->end || *p++ != '(')
		return false;
	while (p < e->end && *p == ' ')
		p++;
	if (p == e->end || !(isalpha((unsigned char)*p) || *p == '_'))
		return false;
	while (p < e->end && (isalnum((unsigned char)*p) || *p == '_' || *p == ' '))
		p++;
	if (p == e->end || *p != ')')
		return false;
	e->at = p + 1;
	return true;
}

static uint64_t parse_or(struct expr *e, unsigned depth);

static uint64_t parse_number(struct expr *e)
{
	char text[32], *end;
	size_t n = 0;
	uint64_t v;

	skip_blanks(e);
	while (e->at + n < e->end && n + 1 < sizeof(text) && isalnum((unsigned char)e->at[n])) {
		text[n] = e->at[n];
		n++;
	}
	text[n] = '\0';
	v = strtoull(text, &end, 0);
	if (!isdigit((unsigned char)*text) || end[strspn(end, "uUlL")])
		e->failed = true;
	e->at += n;
	return v;
}

#define DEPTH_MAX 64

static uint64_t parse_unary(struct expr *e, unsigned depth)
{
	uint64_t v;

	if (depth > DEPTH_MAX) {
		e->failed = true;
		return 0;
	}
	if (take_cast(e))
		return parse_unary(e, depth + 1);
	if (take_text(e, "(")) {
		v = parse_or(e, depth + 1);
		e->failed |= !take_text(e, ")");
		return v;
	}
	if (take_text(e, "~"))
		return ~parse_unary(e, depth + 1);
	if (take_text(e, "-"))
		return -parse_unary(e, depth + 1);
	return parse_number(e);
}

static uint64_t parse_sum(struct expr *e, unsigned depth)
{
	uint64_t v = parse_unary(e, depth);

	while (!e->failed) {
		if (take_text(e, "+"))
			v += parse_unary(e, depth);
		else if (take_text(e, "-"))
			v -= parse_unary(e, depth);
		else
			break;
	}
	return v;
}

static uint64_t parse_shift(struct expr *e, unsigned depth)
{
	uint64_t v = parse_sum(e, depth);

	while (!e->failed) {
		if (take_text(e, "<<"))
			v <<= parse_sum(e, depth) & 63;
		else if (take_text(e, ">>"))
			v >>= parse_sum(e, depth) & 63;
		else
			break;
	}
	return v;
}

static uint64_t parse_and(struct expr *e, unsigned depth)
{
	uint64_t v = parse_shift(e, depth);

	while (!e->failed && take_text(e, "&"))
		v &= parse_shift(e, depth);
	return v;
}

static uint64_t parse_or(struct expr *e, unsigned depth)
{
	uint64_t v = parse_and(e, depth);

	while (!e->failed && take_text(e, "|"))
		v |= parse_and(e, depth);
	return v;
}

/* Returns false if the text is not one constant. */
static bool constant(const char *text, const char *end, uint64_t *ret)
{
	struct expr e = {text, end, false};

	*ret = parse_or(&e, 0);
	skip_blanks(&e);
	return !e.failed && e.at == e.end;
}

/* --- arguments --- */

/* Returns the end of an argument: a comma, or what closes the list. NULL: there is none. */
static const char *find_end(const char *p)
{
	unsigned depth = 0;
	bool quoted = false;

	for (; *p && *p != '\n'; p++) {
		if (quoted) {
			if (*p == '\\' && p[1])
				p++;
			else
				quoted = *p != '"';
		} else if (*p == '"') {
			quoted = true;
		} else if (*p == '(' || *p == '{') {
			depth++;
		} else if (!depth && strchr(",)}", *p)) {
			return p;
		} else if (*p == ')' || *p == '}') {
			depth--;
		}
	}
	return NULL;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* "REC->flags", "REC->flags & 0xff", in parentheses or with a cast. */
static bool parse_operand(
	const char *text, const char *end, char name[NAME_MAX_BYTES], uint64_t *ret_mask)
{
	struct expr e = {text, end, false};
	unsigned open = 0;
	size_t n = 0;

	while (take_cast(&e) || take_text(&e, "("))
		open += e.at[-1] == '(';
	if (!take_text(&e, "REC->"))
		return false;
	while (e.at + n < end && is_name(e.at[n]) && n + 1 < NAME_MAX_BYTES) {
		name[n] = e.at[n];
		n++;
	}
	name[n] = '\0';
	e.at += n;
	while (open && take_text(&e, ")"))
		open--;
	*ret_mask = UINT64_MAX;
	if (take_text(&e, "&"))
		*ret_mask = parse_shift(&e, 0);
	while (open && take_text(&e, ")"))
		open--;
	skip_blanks(&e);
	return n && !open && !e.failed && e.at == e.end;
}

/* Appends "<TAB>VALUE=NAME" of "{ 0x1, "S" }". Returns false if the value is no constant. */
static bool put_pair(struct ky_buf *to, const char *text, const char *end)
{
	const char *comma, *name, *stop;
	uint64_t value;

	if (*text != '{')
		return false;
	comma = find_end(text + 1);
	if (!comma || *comma != ',' || !constant(text + 1, comma, &value))
		return false;
	name = memchr(comma, '"', (size_t)(end - comma));
	stop = name ? memchr(name + 1, '"', (size_t)(end - name - 1)) : NULL;
	if (!stop || memchr(name, '\t', (size_t)(stop - name)))
		return false;
	ky_buf_printf(
		to, "\t%llx=%.*s", (unsigned long long)value, (int)(stop - name - 1), name + 1);
	return true;
}

static void put_begin(struct ky_buf *to, const struct ky_kprogram *p, const char *field, bool flags,
	uint64_t mask)
{
	ky_buf_printf(to, "# values\t%s\t%s\t%s\t%llx", p->name, field, flags ? "flags" : "values",
		(unsigned long long)mask);
}

/* Returns the field's name in the trace, if it has the kernel's value there; or NULL. */
static const char *find_field(const struct ky_kprogram *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_fields; i++)
		if (p->from[i].field && !p->from[i].added && !strcmp(p->from[i].field->name, name))
			return p->fields[i].name;
	return NULL;
}

/* The fields that have lines already: the first use in `print fmt` is the field's whole. */
struct seen {
	const char *fields[KY_KOUT_MAX];
	size_t n;
};

static bool is_new(struct seen *s, const char *field)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->fields[i] == field)
			return false;
	if (s->n == KY_KOUT_MAX)
		return false;
	s->fields[s->n++] = field;
	return true;
}

/* Appends a line for one use: at is behind "__print_flags(". Nothing if it is not understood. */
static void put_use(struct ky_buf *to, const struct ky_kprogram *p, const char *at, bool flags,
	struct seen *seen)
{
	const char *end = find_end(at), *field;
	char name[NAME_MAX_BYTES];
	size_t len = to->len;
	bool good;
	uint64_t mask;

	if (!end || *end != ',' || !parse_operand(at, end, name, &mask))
		return;
	field = find_field(p, name);
	if (flags)
		end = find_end(end + 1); /* what separates flags */
	if (!field || !end || *end != ',' || !is_new(seen, field))
		return;
	put_begin(to, p, field, flags, mask);
	do {
		at = end + 1 + strspn(end + 1, " ");
		end = find_end(at);
		good = end && put_pair(to, at, end);
	} while (good && *end == ',');
	if (!strcmp(p->name, "sched_switch") && !strcmp(name, "prev_state"))
		ky_buf_puts(to, "\t0=R");
	if (good)
		ky_buf_puts(to, "\n");
	else
		to->len = KY_MIN(len, to->len);
}

static void put_uses(struct ky_buf *to, const char *format, const struct ky_kprogram *p)
{
	static const char flags[] = "__print_flags(", symbolic[] = "__print_symbolic(";
	const char *at = strstr(format, "print fmt:");
	struct seen seen = {0};

	while (at && (at = strstr(at, "__print_"))) {
		if (!strncmp(at, flags, strlen(flags)))
			put_use(to, p, at + strlen(flags), true, &seen);
		else if (!strncmp(at, symbolic, strlen(symbolic)))
			put_use(to, p, at + strlen(symbolic), false, &seen);
		at++;
	}
}

/* --- values that formats do not name --- */

struct pair {
	uint64_t value;
	const char *name;
};

#define NAMED(constant)                                                                            \
	{                                                                                          \
		(uint64_t)(constant), #constant                                                    \
	}

static const struct pair access_modes[] = {NAMED(O_RDONLY), NAMED(O_WRONLY), NAMED(O_RDWR), {0}};
static const struct pair open_flags[] = {NAMED(O_CREAT), NAMED(O_EXCL), NAMED(O_NOCTTY),
	NAMED(O_TRUNC), NAMED(O_APPEND), NAMED(O_NONBLOCK), NAMED(O_SYNC), NAMED(O_DSYNC),
	NAMED(O_ASYNC), NAMED(O_DIRECT), NAMED(O_TMPFILE), NAMED(O_DIRECTORY), NAMED(O_NOFOLLOW),
	NAMED(O_NOATIME), NAMED(O_CLOEXEC), NAMED(O_PATH), {0}};
static const struct pair map_kinds[] = {
	NAMED(MAP_SHARED), NAMED(MAP_PRIVATE), NAMED(MAP_SHARED_VALIDATE), {0}};
static const struct pair map_flags[] = {NAMED(MAP_FIXED), NAMED(MAP_ANONYMOUS),
	NAMED(MAP_GROWSDOWN), NAMED(MAP_DENYWRITE), NAMED(MAP_LOCKED), NAMED(MAP_NORESERVE),
	NAMED(MAP_POPULATE), NAMED(MAP_NONBLOCK), NAMED(MAP_STACK), NAMED(MAP_HUGETLB), {0}};
static const struct pair protections[] = {
	{0, "PROT_NONE"}, NAMED(PROT_READ), NAMED(PROT_WRITE), NAMED(PROT_EXEC), {0}};
static const struct pair advices[] = {NAMED(MADV_NORMAL), NAMED(MADV_RANDOM),
	NAMED(MADV_SEQUENTIAL), NAMED(MADV_WILLNEED), NAMED(MADV_DONTNEED), NAMED(MADV_FREE),
	NAMED(MADV_REMOVE), NAMED(MADV_DONTFORK), NAMED(MADV_DOFORK), NAMED(MADV_MERGEABLE),
	NAMED(MADV_HUGEPAGE), NAMED(MADV_NOHUGEPAGE), {0}};
static const struct pair fcntl_commands[] = {NAMED(F_DUPFD), NAMED(F_GETFD), NAMED(F_SETFD),
	NAMED(F_GETFL), NAMED(F_SETFL), NAMED(F_GETLK), NAMED(F_SETLK), NAMED(F_SETLKW),
	NAMED(F_DUPFD_CLOEXEC), NAMED(F_SETPIPE_SZ), NAMED(F_GETPIPE_SZ), {0}};
static const struct pair at_fd[] = {{(uint32_t)AT_FDCWD, "AT_FDCWD"}, {0}};
static const struct pair wake_ops[] = {{0, "FUTEX_WAIT"}, {1, "FUTEX_WAKE"}, {3, "FUTEX_REQUEUE"},
	{4, "FUTEX_CMP_REQUEUE"}, {5, "FUTEX_WAKE_OP"}, {6, "FUTEX_LOCK_PI"},
	{7, "FUTEX_UNLOCK_PI"}, {8, "FUTEX_TRYLOCK_PI"}, {9, "FUTEX_WAIT_BITSET"},
	{10, "FUTEX_WAKE_BITSET"}, {0}};
static const struct pair wake_flags[] = {
	{128, "FUTEX_PRIVATE_FLAG"}, {256, "FUTEX_CLOCK_REALTIME"}, {0}};
/* LTTng's bits */
static const struct pair requests[] = {{1 << 0, "WRITE"}, {1 << 1, "DISCARD"}, {1 << 2, "READ"},
	{1 << 3, "RAHEAD"}, {1 << 5, "SYNC"}, {1 << 6, "META"}, {1 << 7, "SECURE"},
	{1 << 8, "FLUSH"}, {1 << 9, "FUA"}, {1 << 10, "PREFLUSH"}, {0}};

#define ALL UINT32_MAX

static const struct {
	const char *event, *field; /* of the trace; "*" at the end: any that begin so */
	bool flags;
	uint64_t mask;
	const struct pair *pairs;
} known[] = {
	{"syscall_entry_open*", "flags", false, O_ACCMODE, access_modes},
	{"syscall_entry_open*", "flags", true, ALL & ~(uint64_t)O_ACCMODE, open_flags},
	{"syscall_entry_mmap", "flags", false, 0xf, map_kinds},
	{"syscall_entry_mmap", "flags", true, ALL & ~UINT64_C(0xf), map_flags},
	{"syscall_entry_mmap", "prot", true, ALL, protections},
	{"syscall_entry_mprotect", "prot", true, ALL, protections},
	{"syscall_entry_madvise", "behavior", false, ALL, advices},
	{"syscall_entry_fcntl", "cmd", false, ALL, fcntl_commands},
	{"syscall_entry_futex", "op", false, 0x7f, wake_ops},
	{"syscall_entry_futex", "op", true, ALL & ~UINT64_C(0x7f), wake_flags},
	{"syscall_entry_*", "dfd", false, ALL, at_fd},
	{"block_*", "rwbs", true, ALL, requests},
};

static bool has_field(const struct ky_kprogram *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_fields; i++)
		if (!strcmp(p->fields[i].name, name))
			return true;
	return false;
}

static void put_known(struct ky_buf *to, const struct ky_kprogram *p)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(known); i++) {
		if (!ky_glob_match(known[i].event, p->name) || !has_field(p, known[i].field))
			continue;
		put_begin(to, p, known[i].field, known[i].flags, known[i].mask);
		for (const struct pair *v = known[i].pairs; v->name; v++)
			ky_buf_printf(to, "\t%llx=%s", (unsigned long long)v->value, v->name);
		ky_buf_puts(to, "\n");
	}
}

void ky_kvalues_put(struct ky_buf *to, const char *format, const struct ky_kprogram *p)
{
	put_uses(to, format, p);
	put_known(to, p);
}
