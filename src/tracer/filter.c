/* SPDX-License-Identifier: MIT */
#include "tracer/filter.h"

#include "base/hash.h"
#include "filter/context.h"
#include "tracer/context.h"

#define BUCKETS	    256u
#define BYTES_MAX   ((size_t)16 << 20) /* limit for all that is kept */
#define FILTERS_MAX 1024u	       /* limit for a set */

/* A kept object: bytes that never change. */
struct kept {
	struct kept *next;
	uint32_t hash, len;
	uint64_t bytes[];
};

struct tracer_program {
	uint32_t number;
	uint32_t len;
	const void *bytes;
};

static struct {
	size_t n_bytes;
	bool want_caller; /* a context that was found since this was cleared needs the caller */
	struct kept *buckets[BUCKETS];
} kept;
/* the code that is being linked; under the lock */
static uint64_t code[KY_FILTER_CODE_MAX / sizeof(uint64_t)];

static const void *keep_bytes(const void *bytes, size_t len)
{
	uint32_t hash = ky_hash_add(KY_HASH_BASIS, bytes, len);
	struct kept **bucket = &kept.buckets[hash % BUCKETS], *k;

	for (k = *bucket; k; k = k->next)
		if (k->hash == hash && k->len == len && !memcmp(k->bytes, bytes, len))
			return k->bytes;
	if (len > BYTES_MAX - kept.n_bytes)
		return NULL;
	k = tracer_alloc(sizeof(*k) + len, false);
	if (!k)
		return NULL;
	kept.n_bytes += len;
	k->hash = hash;
	k->len = (uint32_t)len;
	memcpy(k->bytes, bytes, len);
	k->next = *bucket;
	*bucket = k;
	return k->bytes;
}

/* --- contexts for filters --- */

/*
 * Reads a number. FLOAT is requested for the application's own contexts, which may have any type.
 */
static bool get_number(const void *one, enum ky_filter_type type, uint64_t *ret_bits)
{
	int64_t integer;
	double real;

	if (type == KY_FILTER_FLOAT) {
		if (!tracer_context_real(one, &real))
			return false;
		memcpy(ret_bits, &real, sizeof(real));
		return true;
	}
	if (!tracer_context_integer(one, &integer))
		return false;
	*ret_bits = (uint64_t)integer;
	return true;
}

static int get_string(const void *one, char *buf, size_t size)
{
	char text[KY_CTX_STRING_MAX];
	size_t n;

	if (!tracer_context_string(one, text))
		return -1;
	n = strnlen(text, KY_MIN(size, sizeof(text)));
	memcpy(buf, text, n);
	return (int)n;
}

static bool find_context(const char *name, struct ky_filter_context *ret)
{
	char argument[KY_CTX_SPEC_MAX];
	uint8_t buf[KY_CTX_SPEC_MAX + 16];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	uint32_t kind;

	if (!ky_filter_context_find(name, ret, &kind, argument))
		return false;
	ky_write_u32(&w, kind);
	ky_write_str(&w, argument);
	ret->argument = tracer_contexts_intern((struct ky_bytes){buf, (uint32_t)w.len}, 1);
	ret->number = get_number;
	ret->string = get_string;
	kept.want_caller |= ret->argument && tracer_contexts_want_caller(ret->argument);
	return ret->argument;
}

/* --- the filters of a set --- */

static void add_program(struct tracer_set *s, uint32_t number, struct ky_bytes program)
{
	const void *bytes = keep_bytes(program.data, program.len);

	if (!s->programs)
		s->programs = tracer_alloc(FILTERS_MAX * sizeof(*s->programs), false);
	if (!bytes || !s->programs || s->n_programs == FILTERS_MAX)
		return;
	s->programs[s->n_programs++] = (struct tracer_program){number, program.len, bytes};
}

void tracer_filters_learn(struct tracer_set *s, const struct ky_app_filters *msg)
{
	struct ky_reader r = {.buf = msg->list.data, .len = msg->list.len};

	for (uint32_t i = 0; i < msg->n && !r.error; i++) {
		uint32_t number = ky_read_u32(&r);
		struct ky_bytes program = ky_read_bytes(&r);

		if (!r.error)
			add_program(s, number, program);
	}
}

static const void *link_code(
	const struct tracer_set *s, uint32_t number, const struct kymo_field *fields)
{
	struct ky_filter_error error;
	const struct tracer_program *p = NULL;
	int size;

	for (uint32_t i = 0; i < s->n_programs && !p; i++)
		if (s->programs[i].number == number)
			p = &s->programs[i];
	if (!p)
		return NULL;
	size = ky_filter_link(p->bytes, p->len, fields, find_context, code, &error);
	if (size < 0)
		tracer_debug("a filter cannot be used: %s", error.text);
	return size < 0 ? NULL : keep_bytes(code, (size_t)size);
}

const void *tracer_filters_link(const struct tracer_set *s, uint32_t number,
	const struct kymo_field *fields, uint32_t *want_caller)
{
	const void *linked;

	kept.want_caller = false;
	linked = link_code(s, number, fields);
	*want_caller |= kept.want_caller;
	return linked;
}

const void *tracer_filters_keep(const void *bytes, size_t len)
{
	return keep_bytes(bytes, len);
}

const struct tracer_filters *tracer_filters_with(const struct tracer_filters *filters,
	const struct tracer_triggers *triggers, uint32_t want_caller)
{
	union {
		struct tracer_filters list;
		uint64_t room[sizeof(struct tracer_filters) / sizeof(uint64_t) + 1];
	} u;
	const struct tracer_filters *with;

	memset(&u, 0, sizeof(u));
	u.list.n = TRACER_HAS_TRIGGERS;
	u.list.want_caller = want_caller;
	memset(&u.list.quick, 0xff, sizeof(u.list.quick));
	u.list.code[0] = triggers;
	with = triggers ? keep_bytes(&u, sizeof(u.list) + sizeof(*u.list.code)) : NULL;
	return with ? with : filters;
}

const struct tracer_filters *tracer_filters_get(const struct tracer_set *s,
	struct ky_reader numbers, uint32_t n, const struct kymo_field *fields)
{
	union {
		struct tracer_filters list;
		uint64_t room[sizeof(struct tracer_filters) / sizeof(uint64_t) + FILTERS_MAX];
	} u;

	if (!n || n > FILTERS_MAX)
		return NULL;
	u.list.n = n;
	memset(&u.list.quick, 0xff, sizeof(u.list.quick));
	kept.want_caller = false;
	for (uint32_t i = 0; i < n; i++) {
		u.list.code[i] = link_code(s, ky_read_u32(&numbers), fields);
		if (!u.list.code[i])
			return NULL;
	}
	u.list.want_caller = kept.want_caller;
	if (n == 1)
		u.list.quick = ((const struct ky_filter_code *)u.list.code[0])->quick;
	return keep_bytes(&u, sizeof(u.list) + n * sizeof(*u.list.code));
}
