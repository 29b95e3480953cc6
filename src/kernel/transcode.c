/* SPDX-License-Identifier: MIT */
#include "kernel/transcode.h"

#include "abi/kernel.h"
#include "abi/ring.h"
#include "filter/pass.h"
#include "kernel/page.h"
#include "kernel/seen.h"

#define NAME_SIZE   KY_CTX_PROCNAME_SIZE
#define FLAG_NESTED 0x58u /* of common_flags: in a hard or soft interrupt, or in an NMI */
/* Two areas for records that wait: one of them is used while the other is filled. */
#define AREA_SIZE ((KY_KERNEL_BEHIND - 2 * KY_KERNEL_SLACK) / 2)

/* The record that is being transcoded. */
static struct {
	struct ky_ktranscoder *t;
	const uint8_t *data;
	uint64_t ts;
	uint32_t cpu;
	struct ky_kwalk behind; /* of the records that wait: the sub-buffer that follows */
} current;

/* --- kinds --- */

/* Returns false if the step reads behind the data that is there for certain. */
static bool check_step(struct ky_kkind *k, const struct ky_kstep *s, uint32_t written)
{
	uint32_t reads = 0;

	switch (s->op) {
	case KY_KOP_COPY:
		if (s->len < 0 || s->len > UINT16_MAX)
			return false;
		reads = (uint32_t)s->len;
		k->fixed += reads;
		break;
	case KY_KOP_ADD:
		return s->offset >= 4 && s->offset <= written;
	case KY_KOP_STRING:
		reads = 4;
		k->fixed += 1;
		k->n_varied++;
		break;
	case KY_KOP_SEQUENCE:
		if (s->len < 1 || s->len > 8)
			return false;
		reads = 4;
		k->fixed += 4;
		k->n_varied++;
		break;
	case KY_KOP_TGID:
		reads = 4;
		k->fixed += 4;
		break;
	case KY_KOP_PROCNAME:
	case KY_KOP_BASENAME:
		reads = 4;
		k->fixed += NAME_SIZE;
		break;
	case KY_KOP_RWBS:
		if (s->len < 1 || s->len > 64)
			return false;
		reads = (uint32_t)s->len;
		k->fixed += 4;
		break;
	case KY_KOP_ZERO_BITS:
	case KY_KOP_SOME_BITS:
		reads = 1;
		k->fixed += 1;
		break;
	case KY_KOP_EMPTY:
		k->fixed += 1;
		break;
	case KY_KOP_KERNEL_STACK:
	case KY_KOP_USER_STACK:
		k->fixed += KY_KSTACK_FRAMES * 8;
		k->n_stacks++;
		break;
	case KY_KOP_FIELDS:
		break;
	default:
		return false;
	}
	return s->offset + reads <= k->min;
}

static bool check_steps(struct ky_kkind *k)
{
	uint32_t copied = 0;

	if (k->is_stack)
		return k->n_steps == 1 && (k->steps[0].op == KY_KOP_KERNEL_STACK ||
						  k->steps[0].op == KY_KOP_USER_STACK);
	for (uint32_t i = 0; i < k->n_steps; i++) {
		const struct ky_kstep *s = &k->steps[i];

		if (!check_step(k, s, copied))
			return false;
		if (s->op == KY_KOP_COPY)
			copied = (uint32_t)s->len; /* ADD changes what the copy before it wrote */
		else if (s->op != KY_KOP_ADD)
			copied = 0;
	}
	return true;
}

/* Most events have one context, the thread, and fields that follow each other. */
static void find_fast(struct ky_kkind *k)
{
	const struct ky_kstep *s = k->steps;

	if (s->op != KY_KOP_COPY)
		return;
	if (s[1].op == KY_KOP_FIELDS && s[2].op == KY_KOP_COPY) {
		k->context = (uint32_t)s->len;
		k->context_offset = s->offset;
		s += 2;
	}
	k->fast = (uint32_t)s->len;
	k->fast_offset = s->offset;
	k->rest = s + 1;
}

struct ky_kkind *ky_kkind_new(
	uint32_t id, uint32_t min, const struct ky_kstep *steps, uint32_t n_steps)
{
	struct ky_kkind *k;

	if (n_steps > KY_KSTEPS_MAX || min < 8 || min > UINT16_MAX)
		return NULL;
	k = calloc(1, sizeof(*k) + (n_steps + 1) * sizeof(*steps));
	if (!k)
		return NULL;
	k->id = id;
	k->min = min;
	k->fixed = KY_KHEAD_MAX;
	k->is_stack = id == KY_KERNEL_STACK_ID;
	k->n_steps = n_steps;
	memcpy(k->steps, steps, n_steps * sizeof(*steps));
	if (!check_steps(k))
		return ky_kkind_free(k);
	find_fast(k);
	return k;
}

static void drop_filters(struct ky_kkind *k)
{
	for (uint32_t i = 0; i < k->n_filters; i++)
		free(k->filters[i]);
	free(k->filters);
	k->filters = NULL;
	k->n_filters = 0;
}

struct ky_kkind *ky_kkind_free(struct ky_kkind *k)
{
	if (!k)
		return NULL;
	drop_filters(k);
	free(k);
	return NULL;
}

/* Links one filter. Returns 0 or -errno. */
static int add_filter(struct ky_kkind *k, const struct kymo_field *fields, struct ky_bytes program)
{
	static uint64_t code[KY_FILTER_CODE_MAX / sizeof(uint64_t)];
	struct ky_filter_error error;
	int len = ky_filter_link(
		program.data, program.len, fields, ky_ktranscode_find_context, code, &error);

	if (len < 0)
		return -EBADMSG;
	k->filters[k->n_filters] = malloc((size_t)len);
	if (!k->filters[k->n_filters])
		return -ENOMEM;
	memcpy(k->filters[k->n_filters++], code, (size_t)len);
	return 0;
}

int ky_kkind_set_filters(struct ky_kkind *k, const struct kymo_field *fields,
	const struct ky_bytes *programs, uint32_t n)
{
	int ret = 0;

	drop_filters(k);
	if (!n)
		return 0;
	k->filters = calloc(n, sizeof(*k->filters));
	if (!k->filters)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && !ret; i++)
		ret = add_filter(k, fields, programs[i]);
	if (ret < 0)
		drop_filters(k);
	return ret;
}

int ky_ktranscoder_init(struct ky_ktranscoder *t, struct ky_kthreads *threads)
{
	*t = (struct ky_ktranscoder){
		.kinds = calloc(KY_KKINDS, sizeof(*t->kinds)), .threads = threads};
	return t->kinds ? 0 : -ENOMEM;
}

void ky_ktranscoder_deinit(struct ky_ktranscoder *t)
{
	for (uint32_t i = 0; t->kinds && i < KY_KKINDS; i++)
		ky_kkind_free(t->kinds[i]);
	free(t->kinds);
}

/* --- contexts --- */

static int32_t thread_of(const uint8_t *data, uint32_t offset)
{
	return (int32_t)ky_load32(data + offset);
}

static int32_t process_of(int32_t tid, uint64_t ts)
{
	return ky_kthread_process(current.t->threads, tid, ts);
}

/* Each CPU has an idle thread, all with number 0. */
static void name_of(char name[NAME_SIZE], int32_t tid, uint64_t ts)
{
	const struct ky_kthread *known = ky_kthread_find(current.t->threads, tid, ts);

	memset(name, 0, NAME_SIZE);
	if (known)
		memcpy(name, ky_kthread_name(known, ts), NAME_SIZE - 1);
	else if (!tid)
		snprintf(name, NAME_SIZE, "swapper/%u", current.cpu);
}

static bool tid_number(const void *argument, enum ky_filter_type type, uint64_t *ret_bits)
{
	*ret_bits = (uint64_t)(int64_t)thread_of(current.data, 4);
	return true;
}

static bool pid_number(const void *argument, enum ky_filter_type type, uint64_t *ret_bits)
{
	*ret_bits = (uint64_t)(int64_t)process_of(thread_of(current.data, 4), current.ts);
	return true;
}

static bool cpu_number(const void *argument, enum ky_filter_type type, uint64_t *ret_bits)
{
	*ret_bits = current.cpu;
	return true;
}

static int name_string(const void *argument, char *buf, size_t size)
{
	char name[NAME_SIZE];

	name_of(name, thread_of(current.data, 4), current.ts);
	return snprintf(buf, size, "%s", name);
}

bool ky_ktranscode_find_context(const char *name, struct ky_filter_context *ret)
{
	static const struct {
		const char *name;
		struct ky_filter_context context;
	} contexts[] = {
		{"tid", {.type = KY_FILTER_SIGNED, .number = tid_number}},
		{"pid", {.type = KY_FILTER_SIGNED, .number = pid_number}},
		{"cpu_id", {.type = KY_FILTER_SIGNED, .number = cpu_number}},
		{"procname", {.type = KY_FILTER_STRING, .string = name_string}},
	};

	for (size_t i = 0; i < KY_ARRAY_SIZE(contexts); i++)
		if (!strcmp(name, contexts[i].name)) {
			*ret = contexts[i].context;
			return true;
		}
	return false;
}

/* --- steps --- */

static inline uint8_t *put_head(uint8_t *out, struct ky_kplace *place, uint32_t id, uint64_t clock)
{
	uint64_t ts = KY_MAX(clock, place->ts), since = ts - place->ts;
	uint32_t word;

	place->ts = ts;
	if (ky_unlikely(!place->count++))
		place->first_ts = ts;
	if (id < KY_ID_EXTENDED && since < UINT64_C(1) << KY_TS_BITS) {
		word = id | (uint32_t)ts << KY_ID_BITS;
		memcpy(out, &word, 4);
		return out + KY_HEADER_COMPACT;
	}
	out[0] = KY_ID_EXTENDED;
	memcpy(out + 1, &id, 4);
	memcpy(out + 5, &ts, 8);
	return out + KY_HEADER_EXTENDED;
}

uint8_t *ky_kput_head(uint8_t *out, struct ky_kplace *place, uint32_t id, uint64_t clock)
{
	return put_head(out, place, id, clock);
}

/* Finds what a place in the data leads to. Returns nothing instead of anything behind the data. */
static const uint8_t *locate_data(
	const uint8_t *data, uint32_t len, const struct ky_kstep *s, uint32_t *ret_n)
{
	uint32_t word = ky_load32(data + s->offset), at = word & 0xffff, n = word >> 16;

	if (s->relative)
		at += s->offset + 4u;
	if (at > len || n > len - at)
		n = at = 0;
	*ret_n = n;
	return data + at;
}

/*
 * Copies n bytes, mostly few. It copies whole vectors: KY_KCOPY_SLACK bytes more may be read and
 * written.
 */
static inline uint8_t *copy_vectors(uint8_t *to, const uint8_t *from, uint32_t n)
{
	__builtin_memcpy(to, from, 32);
	for (uint32_t at = 32; ky_unlikely(at < n); at += 32)
		__builtin_memcpy(to + at, from + at, 32);
	return to + n;
}

static uint8_t *put_word(uint8_t *out, uint32_t v)
{
	memcpy(out, &v, 4);
	return out + 4;
}

/* Returns the letters of the kernel's blk_fill_rwbs() as the bits of LTTng's block events. */
static uint32_t rwbs_bits(const uint8_t *text, uint32_t n)
{
	static const struct {
		char letter;
		uint32_t first, later;
	} bits[] = {
		{'W', 1 << 0, 0},
		{'D', 1 << 1, 0},
		{'R', 1 << 2, 0},
		{'A', 0, 1 << 3},
		{'S', 0, 1 << 5},
		{'M', 0, 1 << 6},
		{'E', 0, 1 << 7},
		{'F', 1 << 8, 1 << 9},
	};
	uint32_t v = 0, i = 0;

	/* A flush before the operation: "FWS". */
	if (n > 1 && text[0] == 'F' && text[1] && strchr("WRDN", text[1])) {
		v = 1 << 10;
		i = 1;
	}
	for (uint32_t begin = i; i < n && text[i]; i++)
		for (size_t k = 0; k < KY_ARRAY_SIZE(bits); k++)
			if (text[i] == bits[k].letter)
				v |= i == begin ? bits[k].first : bits[k].later;
	return v;
}

static uint8_t *put_string(uint8_t *out, const uint8_t *text, uint32_t n)
{
	n = (uint32_t)strnlen((const char *)text, n);
	out = copy_vectors(out, text, n);
	*out++ = 0;
	return out;
}

static uint8_t *put_sequence(uint8_t *out, const uint8_t *from, uint32_t n, uint32_t elem)
{
	uint32_t count = n / elem;

	out = put_word(out, count);
	memcpy(out, from, (size_t)count * elem);
	return out + (size_t)count * elem;
}

static uint8_t *put_basename(uint8_t *out, const uint8_t *text, uint32_t n)
{
	const uint8_t *slash;

	n = (uint32_t)strnlen((const char *)text, n);
	slash = memrchr(text, '/', n);
	n -= slash ? (uint32_t)(slash + 1 - text) : 0;
	memset(out, 0, NAME_SIZE);
	memcpy(out, slash ? slash + 1 : text, KY_MIN(n, NAME_SIZE - 1u));
	return out + NAME_SIZE;
}

/*
 * Finds the next record of the event's thread, in the same interrupt level: the kernel records the
 * stacks of an event there. Returns NULL at the end of the walk.
 */
static const uint8_t *find_next_of_thread(
	struct ky_kwalk *w, const uint8_t *data, uint32_t *ret_len)
{
	const uint8_t *next;

	while (ky_kwalk_next(w, &next, ret_len))
		if (*ret_len >= 8 && ky_load32(next + 4) == ky_load32(data + 4) &&
			!((next[2] ^ data[2]) & FLAG_NESTED))
			return next;
	return NULL;
}

/* Returns the kind of a record if it is a stack, or NULL: it is the thread's next event. */
static const struct ky_kkind *stack_kind(const uint8_t *record)
{
	const struct ky_kkind *k = current.t->kinds[record[0] | record[1] << 8];

	return k && k->is_stack ? k : NULL;
}

/* Returns true if the walk ends before all stacks of the event, and before the next event. */
static bool lacks_stack(const struct ky_kkind *k, struct ky_kwalk w, const uint8_t *data)
{
	const uint8_t *next;
	uint32_t len;

	for (uint32_t i = 0; i < k->n_stacks; i++) {
		next = find_next_of_thread(&w, data, &len);
		if (!next)
			return true;
		if (!stack_kind(next))
			return false;
	}
	return false;
}

/* Finds the stack of the event among the records behind it. Returns the number of addresses. */
static uint32_t find_stack(struct ky_kwalk w, const uint8_t *data, uint8_t op, const uint8_t **ret)
{
	struct ky_kwalk then = current.behind;
	const struct ky_kkind *k;
	const uint8_t *next;
	uint32_t len, n;

	for (;;) {
		next = find_next_of_thread(&w, data, &len);
		if (!next && !then.at)
			return 0;
		if (!next) {
			w = then;
			then.at = NULL;
			continue;
		}
		k = stack_kind(next);
		if (!k)
			return 0;
		if (k->steps[0].op != op || len < k->steps[0].offset)
			continue;
		*ret = next + k->steps[0].offset;
		n = KY_MIN((len - k->steps[0].offset) / 8, (uint32_t)KY_KSTACK_FRAMES);
		while (n && (!ky_load64(*ret + (n - 1) * 8) || !~ky_load64(*ret + (n - 1) * 8)))
			n--;
		return n;
	}
}

static uint8_t *put_stack(uint8_t *out, const struct ky_kwalk *w, const uint8_t *data, uint8_t op)
{
	const uint8_t *addresses = data;
	uint32_t n = find_stack(*w, data, op, &addresses);

	memcpy(out, addresses, (size_t)n * 8);
	for (uint32_t i = 0; current.t->seen && op == KY_KOP_KERNEL_STACK && i < n; i++)
		ky_kseen_add(current.t->seen, ky_load64(addresses + (size_t)i * 8));
	memset(out + (size_t)n * 8, 0, (KY_KSTACK_FRAMES - (size_t)n) * 8);
	return out + KY_KSTACK_FRAMES * 8;
}

static inline uint8_t *add_to(uint8_t *out, const struct ky_kstep *s)
{
	uint32_t v = ky_load32(out - s->offset) + (uint32_t)s->len;

	memcpy(out - s->offset, &v, 4);
	return out;
}

/* Runs steps of an event. Sets *ret_fields to where the fields begin, if they do behind a step. */
static uint8_t *run_steps(const struct ky_kstep *s, const struct ky_kwalk *w, const uint8_t *data,
	uint32_t len, uint8_t *out, uint8_t **ret_fields)
{
	const uint8_t *from;
	uint32_t n;

	for (;; s++) {
		switch (s->op) {
		case KY_KOP_COPY:
			out = copy_vectors(out, data + s->offset, (uint32_t)s->len);
			break;
		case KY_KOP_ADD:
			out = add_to(out, s);
			break;
		case KY_KOP_STRING:
			from = locate_data(data, len, s, &n);
			out = put_string(out, from, n);
			break;
		case KY_KOP_SEQUENCE:
			from = locate_data(data, len, s, &n);
			out = put_sequence(out, from, n, (uint32_t)s->len);
			break;
		case KY_KOP_TGID:
			n = (uint32_t)process_of(thread_of(data, s->offset), w->ts);
			out = put_word(out, n);
			break;
		case KY_KOP_PROCNAME:
			name_of((char *)out, thread_of(data, s->offset), w->ts);
			out += NAME_SIZE;
			break;
		case KY_KOP_RWBS:
			out = put_word(out, rwbs_bits(data + s->offset, (uint32_t)s->len));
			break;
		case KY_KOP_EMPTY:
			*out++ = 0;
			break;
		case KY_KOP_ZERO_BITS:
			*out++ = !(data[s->offset] & s->len);
			break;
		case KY_KOP_SOME_BITS:
			*out++ = !!(data[s->offset] & s->len);
			break;
		case KY_KOP_BASENAME:
			from = locate_data(data, len, s, &n);
			out = put_basename(out, from, n);
			break;
		case KY_KOP_KERNEL_STACK:
		case KY_KOP_USER_STACK:
			out = put_stack(out, w, data, s->op);
			break;
		case KY_KOP_FIELDS:
			*ret_fields = out;
			break;
		default:
			return out;
		}
	}
}

static bool passes_any_filter(const struct ky_kkind *k, const uint8_t *fields, size_t len)
{
	for (uint32_t i = 0; i < k->n_filters; i++)
		if (ky_filter_pass(k->filters[i], fields, len, NULL, 0))
			return true;
	return false;
}

/* Returns true for the kernel's own records in a ring: markers and stacks, which nobody enabled. */
static bool is_internal(uint16_t type)
{
	return type <= 20; /* __TRACE_LAST_TYPE of Linux 6.18; events begin behind it */
}

/* Appends what follows the head. w: a copy, so that the loop's own can be in registers. */
static inline uint8_t *put_fields(uint8_t *out, const struct ky_kkind *k, struct ky_kwalk w,
	const uint8_t *data, uint32_t len)
{
	const struct ky_kstep *s = k->steps;
	uint8_t *fields;

	if (ky_likely(k->fast)) {
		if (k->context)
			out = copy_vectors(out, data + k->context_offset, k->context);
		out = copy_vectors(out, data + k->fast_offset, k->fast);
		for (s = k->rest; s->op == KY_KOP_ADD; s++)
			out = add_to(out, s);
	}
	return ky_likely(!s->op) ? out : run_steps(s, &w, data, len, out, &fields);
}

/* Appends a record that has to pass filters. Returns `out` if it does not. */
static uint8_t *put_filtered(const struct ky_kkind *k, struct ky_kplace *place, struct ky_kwalk w,
	const uint8_t *data, uint32_t len, uint8_t *out)
{
	struct ky_kplace before = *place;
	uint8_t *begin = out, *fields;

	current.data = data;
	current.ts = w.ts;
	fields = out = ky_kput_head(out, place, k->id, w.ts);
	out = run_steps(k->steps, &w, data, len, out, &fields);
	if (passes_any_filter(k, fields, (size_t)(out - fields)))
		return out;
	*place = before;
	return begin;
}

/*
 * Lets an event whose stacks are not there yet, and the records behind it, wait for the next
 * sub-buffer. area: behind the sub-buffer. Returns false if they need not or cannot wait.
 */
static bool let_wait(struct ky_kplace *p, const struct ky_kkind *k, const struct ky_kwalk *before,
	const struct ky_kwalk *w, const uint8_t *data, uint8_t *page, uint32_t area)
{
	const size_t n = (size_t)(w->end - before->at);

	if (n > AREA_SIZE || !lacks_stack(k, *w, data))
		return false;
	p->waiting = area + AREA_SIZE - (uint32_t)n;
	memcpy(page + p->waiting, before->at, n);
	p->clock = before->ts;
	p->at = 0;
	return true;
}

/*
 * The loop of ky_ktranscode(). It works on copies of the places, which it keeps in registers: for
 * all that the compiler knows, `out` may lead to the caller's. area: for events that wait; 0: none
 * does. place->at: where it ended, 0 at the end.
 */
static uint8_t *put_records(struct ky_ktranscoder *t, struct ky_kplace *place, uint8_t *page,
	struct ky_kwalk w, uint8_t *out, const uint8_t *end, bool first, uint32_t area)
{
	const uint8_t *data, *begin = out;
	struct ky_kplace p = *place;
	struct ky_kwalk before = w;
	uint32_t len, need;

	for (; ky_kwalk_next(&w, &data, &len); before = w) {
		uint16_t type = len < 8 ? 0 : (uint16_t)(data[0] | data[1] << 8);
		const struct ky_kkind *k = t->kinds[type];

		if (ky_unlikely(!k || k->is_stack || len < k->min)) {
			p.n_refused += !is_internal(type) && (!k || !k->is_stack);
			continue;
		}
		if (ky_unlikely(k->n_stacks && area) &&
			let_wait(&p, k, &before, &w, data, page, area)) {
			*place = p;
			return out;
		}
		need = k->fixed + k->n_varied * len;
		if (ky_unlikely(need > (uint32_t)(end - out))) {
			if (first && out == begin) {
				p.n_refused++;
				continue;
			}
			p.at = (uint32_t)(before.at - page);
			p.clock = before.ts;
			*place = p;
			return out;
		}
		if (ky_unlikely(k->n_filters)) {
			struct ky_kplace filtered = p;

			out = put_filtered(k, &filtered, w, data, len, out);
			p = filtered;
			continue;
		}
		out = put_head(out, &p, k->id, w.ts);
		out = put_fields(out, k, w, data, len);
	}
	p.n_refused += w.end - w.at >= 4;
	p.at = 0;
	*place = p;
	return out;
}

/* Appends the records that wait, which the sub-buffer's follow. *ret_done: they are complete. */
static uint8_t *put_waiting(struct ky_ktranscoder *t, struct ky_kplace *place, uint8_t *page,
	uint32_t end_of_area, uint8_t *out, const uint8_t *end, bool first, bool *ret_done)
{
	const struct ky_kwalk w = {page + place->waiting, page + end_of_area, place->clock};
	const uint32_t at = place->at;

	out = put_records(t, place, page, w, out, end, first, 0);
	place->waiting = place->at;
	place->at = at;
	*ret_done = !place->waiting;
	return out;
}

uint8_t *ky_ktranscode(struct ky_ktranscoder *t, struct ky_kplace *place, uint8_t *page,
	uint32_t size, uint32_t cpu, uint8_t *out, const uint8_t *end, bool first)
{
	const uint32_t areas[] = {size + KY_KERNEL_SLACK, size + KY_KERNEL_SLACK + AREA_SIZE};
	const bool second = place->waiting >= areas[1];
	const uint8_t *begin = out;
	struct ky_kwalk w;
	bool done;

	current.t = t;
	current.cpu = cpu;
	current.behind = (struct ky_kwalk){0};
	if (!ky_kwalk_open(&w, page, size)) {
		place->n_refused++;
		place->at = place->waiting = 0;
		return out;
	}
	if (place->waiting) {
		current.behind = w;
		out = put_waiting(
			t, place, page, areas[second] + AREA_SIZE, out, end, first, &done);
		if (!done)
			return out;
		current.behind.at = NULL;
	} else if (place->at) {
		w.at = page + KY_MIN(place->at, (uint32_t)(w.end - page));
		w.ts = place->clock;
	}
	return put_records(
		t, place, page, w, out, end, first && out == begin, t->waits ? areas[!second] : 0);
}
