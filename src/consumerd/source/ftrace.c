/* SPDX-License-Identifier: MIT */
#include "consumerd/source/ftrace.h"

#include "base/clock.h"
#include "consumerd/source/ftrace-snapshot.h"
#include "consumerd/source/once.h"
#include "consumerd/source/thread-table.h"
#include "kernel/page.h"
#include "kernel/transcode.h"

/* The last word of a sub-buffer until it was read. */
#define CANARY UINT64_C(0x6b796d6f2d6e6f74)
/* The dump's CPU is not drained before the dump is complete, but after this time it is. */
#define DUMP_NS UINT64_C(2000000000)

struct cpu {
	struct once_cpu once;
	int raw, stats;		 /* borrowed; -1: none yet */
	struct ftrace_copy copy; /* of a snapshot */
	uint64_t held_since;	 /* for the state dump; 0: not yet */
	bool partly_read;	 /* the next read may bring the rest of a sub-buffer */
};

struct ftrace {
	struct once_set once;
	uint32_t dump_cpu;
	bool may_map;
	bool dumped; /* the state dump is complete */
	struct ky_ktranscoder transcoder;
	struct thread_table threads;
	struct cpu *cpus;
};

static struct cpu *cpu_of(struct once_cpu *c)
{
	return ky_container_of(c, struct cpu, once);
}

static struct ftrace *ftrace_of_once(struct once_set *s)
{
	return ky_container_of(s, struct ftrace, once);
}

static struct ftrace *ftrace_of(const struct source_set *set)
{
	return ftrace_of_once(once_set_of(set));
}

static struct ftrace *ftrace_of_cpu(const struct cpu *c)
{
	return ftrace_of_once(c->once.set);
}

/* --- reading and transcoding --- */

static struct once_cpu *ftrace_cpu(struct once_set *s, uint32_t i)
{
	return &ftrace_of_once(s)->cpus[i].once;
}

static uint8_t *ftrace_transcode(
	struct once_cpu *c, struct ky_kplace *place, uint8_t *out, const uint8_t *end, bool first)
{
	struct ftrace *f = ftrace_of_once(c->set);

	return ky_ktranscode(
		&f->transcoder, place, c->page, f->once.page_size, c->number, out, end, first);
}

/* A sub-buffer was read: it is to be transcoded. */
static void enter_page(struct cpu *c)
{
	once_enter_page(&c->once, KY_KPAGE_HEADER, ky_load64(c->once.page), 0);
}

static uint8_t *canary_of(const struct cpu *c)
{
	return c->once.page + c->once.set->page_size - sizeof(uint64_t);
}

/*
 * Reads a sub-buffer; if the kernel has none, and events wait for their stacks, an empty one: the
 * stacks were lost. Returns false if nothing is to be transcoded.
 */
static bool read_page(struct cpu *c)
{
	const uint64_t canary = CANARY;
	bool found;

	if (c->once.set->set.copied && ftrace_copy_is_open(&c->copy)) {
		found = ftrace_copy_next(&c->copy, c->once.page);
	} else {
		memset(c->once.page, 0, KY_KPAGE_HEADER);
		memcpy(canary_of(c), &canary, sizeof(canary));
		once_set_reading(&c->once, true);
		found = read(c->raw, c->once.page, c->once.set->page_size) > 0;
	}
	if (!found && once_has_waiting(&c->once)) {
		memset(c->once.page, 0, KY_KPAGE_HEADER);
		found = true;
	}
	if (found)
		enter_page(c);
	else
		once_set_reading(&c->once, false);
	return found;
}

/*
 * Finishes the read of a consumer that was killed. The kernel has the rest of a sub-buffer of which
 * the first part was read, and the next read returns it.
 */
static void finish_read(struct cpu *c)
{
	uint8_t *rest;
	ssize_t n;

	if (!(c->once.mem->word & KY_KERNEL_READING))
		return;
	if (!ky_load64(c->once.page)) {
		once_set_reading(&c->once, false);
		return;
	}
	if (ky_load64(canary_of(c)) == CANARY) {
		rest = malloc(c->once.set->page_size);
		n = rest ? read(c->raw, rest, c->once.set->page_size) : -1;
		if (n > 0 && n <= (ssize_t)c->once.set->page_size)
			memcpy(c->once.page + c->once.set->page_size - n, rest, (size_t)n);
		free(rest);
	}
	enter_page(c);
}

/* Returns true if the dump's CPU has to wait for the state dump. */
static bool is_held(struct cpu *c)
{
	uint64_t now = ky_clock_ns(CLOCK_MONOTONIC);

	if (ftrace_of_cpu(c)->dumped || c->once.number != ftrace_of_cpu(c)->dump_cpu ||
		c->once.set->set.copied)
		return false;
	if (!c->held_since)
		c->held_since = now;
	return now - c->held_since < DUMP_NS;
}

/*
 * Returns true if the kernel has little or nothing behind the sub-buffer that was read. One that is
 * not full is the one that is being written, or the rest of one that was then.
 */
static bool is_last_page(struct cpu *c)
{
	bool is_short = ky_kpage_len(c->once.page) < c->once.set->page_size / 8 * 7;
	bool is_rest = is_short && c->partly_read;

	c->partly_read = is_short && !is_rest;
	return c->partly_read;
}

static void follow_threads(struct cpu *c)
{
	struct ftrace *f = ftrace_of_cpu(c);

	thread_table_read(&f->threads, c->once.number);
	if (!f->threads.marker.at)
		return;
	f->once.set.marker = f->threads.marker;
	f->once.set.marker.after = ky_clock_read(f->once.set.clock);
	f->threads.marker.at = 0;
}

/* Reads what the kernel has: flush: of before now. Returns true if there is more to read. */
static bool ftrace_drain(struct once_cpu *once, bool flush)
{
	struct cpu *c = cpu_of(once);
	uint64_t now;

	follow_threads(c);
	if (!once_transcode_page(&c->once))
		return true;
	if (c->raw < 0 || (is_held(c) && !flush))
		return false;
	now = flush ? ky_clock_read(c->once.set->set.clock) : 0;
	while (read_page(c)) {
		if (!once_transcode_page(&c->once))
			return true;
		if (once_has_waiting(&c->once))
			continue;
		if (flush ? ky_load64(c->once.page) > now : is_last_page(c))
			return false;
	}
	return false;
}

static uint64_t find_count(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* The only place that counts all losses. */
static uint64_t ftrace_count_lost(struct once_cpu *once)
{
	const struct cpu *c = cpu_of(once);
	char text[1024];
	ssize_t n = c->stats < 0 ? 0 : pread(c->stats, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return find_count(text, "\noverrun: ") + find_count(text, "\ncommit overrun: ") +
	       find_count(text, "\ndropped events: ");
}

/* --- limits of a snapshot --- */

/* Finds out what will become of a page of the copy: makes its records, and forgets them. */
static void measure_page(struct cpu *c, uint32_t i, struct ky_kplace *place, uint8_t *out)
{
	struct ftrace_part *part = &c->copy.parts[i];
	struct ftrace *f = ftrace_of_cpu(c);
	uint64_t count = place->count;
	const uint8_t *end;

	ftrace_copy_read(&c->copy, i, c->once.page);
	place->at = KY_KPAGE_HEADER;
	place->clock = ky_load64(c->once.page);
	f->transcoder.waits = false;
	do {
		end = ftrace_transcode(&c->once, place, out, out + KY_KERNEL_BLOCK, true);
		part->bytes += (uint64_t)(end - out);
	} while (place->at);
	f->transcoder.waits = true;
	part->n_events = place->count - count;
	part->end = place->ts;
}

/* Returns whether the copy was measured. Without memory, nothing is left out. */
static bool measure_copy(struct cpu *c)
{
	uint8_t *out = c->copy.parts ? NULL : malloc(KY_KERNEL_BLOCK + KY_KCOPY_SLACK);
	struct ky_kplace place = {0};

	if (out)
		c->copy.parts = calloc(c->copy.n + 1, sizeof(*c->copy.parts));
	for (uint32_t i = 0; out && c->copy.parts && i < c->copy.n; i++)
		measure_page(c, i, &place, out);
	free(out);
	return c->copy.parts;
}

static uint64_t ftrace_size_after(struct once_cpu *once, uint64_t ts)
{
	struct cpu *c = cpu_of(once);
	uint64_t size = 0;

	for (uint32_t i = c->copy.next; measure_copy(c) && i < c->copy.n; i++)
		if (c->copy.parts[i].end > ts)
			size += c->copy.parts[i].bytes;
	return size;
}

static uint64_t ftrace_leave_out(struct once_cpu *once, uint64_t ts)
{
	struct ftrace_copy *copy = &cpu_of(once)->copy;
	uint64_t n = 0;

	while (measure_copy(cpu_of(once)) && copy->next < copy->n &&
		copy->parts[copy->next].end <= ts)
		n += copy->parts[copy->next++].n_events;
	return n;
}

/* --- the set --- */

static void ftrace_free(struct once_set *s)
{
	struct ftrace *f = ftrace_of_once(s);

	for (uint32_t i = 0; f->cpus && i < s->n_cpus; i++)
		ftrace_copy_close(&f->cpus[i].copy);
	ky_ktranscoder_deinit(&f->transcoder);
	thread_table_deinit(&f->threads);
	free(f->cpus);
	free(f);
}

static const struct once_ops ftrace_ops = {
	.cpu = ftrace_cpu,
	.drain = ftrace_drain,
	.transcode = ftrace_transcode,
	.count_lost = ftrace_count_lost,
	.size_after = ftrace_size_after,
	.leave_out = ftrace_leave_out,
	.free = ftrace_free,
};

int ftrace_new(const struct ky_cons_kernel_set *m, int memory_fd, struct source_set **ret_set)
{
	struct ftrace *f;
	int ret;

	if (!m->n_cpus || m->n_cpus > KY_KERNEL_CPUS_MAX || m->subbuf_size < KY_KERNEL_SUBBUF_MIN ||
		m->subbuf_size > KY_KERNEL_SUBBUF_MAX || m->subbuf_size % 8)
		return -EBADMSG;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->dump_cpu = m->dump_cpu;
	f->may_map = m->may_map;
	f->once.ops = &ftrace_ops;
	f->once.n_cpus = m->n_cpus;
	f->once.set.clock = m->clock;
	f->cpus = calloc(m->n_cpus, sizeof(*f->cpus));
	for (uint32_t i = 0; f->cpus && i < m->n_cpus; i++)
		f->cpus[i].raw = f->cpus[i].stats = -1;
	ret = thread_table_init(&f->threads, m->n_cpus, m->clock);
	if (!ret)
		ret = ky_ktranscoder_init(&f->transcoder, &f->threads.threads);
	if (!ret)
		ret = f->cpus ? once_init(
					&f->once, &ftrace_ops, m->n_cpus, m->subbuf_size, memory_fd)
			      : -ENOMEM;
	f->transcoder.waits = true;
	if (ret < 0)
		once_free(&f->once.set);
	else
		*ret_set = &f->once.set;
	return ret;
}

/* Fields as filters know them; their names are borrowed. */
static int open_fields(struct ky_bytes desc, struct kymo_field fields[KY_KOUT_MAX + 1])
{
	struct ky_desc_field f;
	struct ky_desc d;
	uint32_t n = 0;

	ky_desc_open(&d, desc);
	for (; n < KY_KOUT_MAX && ky_desc_next_field(&d, &f); n++)
		fields[n] = (struct kymo_field){
			f.kind, f.elem, f.size, f.flags, f.count, f.name, NULL};
	fields[n] = (struct kymo_field){0};
	return d.fields.error;
}

#define FILTERS_MAX 1024u

static int set_filters(struct ky_kkind *k, struct ky_bytes desc, struct ky_bytes list)
{
	struct ky_reader r = {.buf = list.data, .len = list.len};
	struct kymo_field fields[KY_KOUT_MAX + 1];
	struct ky_bytes programs[FILTERS_MAX];
	uint32_t n = 0;

	while (r.pos < r.len && !r.error && n < FILTERS_MAX)
		programs[n++] = ky_read_bytes(&r);
	if (r.error || r.pos < r.len || (n && open_fields(desc, fields) < 0))
		return -EBADMSG;
	return ky_kkind_set_filters(k, fields, programs, n);
}

int ftrace_add_event(struct source_set *set, const struct ky_cons_kernel_event *m, bool *ret_new)
{
	struct ftrace *f = ftrace_of(set);
	struct ky_kkind *k, **place;
	int ret;

	if (m->kernel_id >= KY_KKINDS || m->steps.len % sizeof(struct ky_kstep))
		return -EBADMSG;
	k = ky_kkind_new(
		m->id, m->min, m->steps.data, m->steps.len / (uint32_t)sizeof(struct ky_kstep));
	if (!k)
		return -EBADMSG;
	ret = set_filters(k, m->desc, m->filters);
	if (ret < 0) {
		ky_kkind_free(k);
		return ret;
	}
	place = &f->transcoder.kinds[m->kernel_id];
	*ret_new = !*place;
	ky_kkind_free(*place);
	*place = k;
	return 0;
}

int ftrace_describe_tasks(struct source_set *set, const struct ky_cons_kernel_tasks *m)
{
	return thread_table_describe(&ftrace_of(set)->threads, m->subbuf_size, m->tasks);
}

void ftrace_note_stacks(struct source_set *set, struct ky_kseen *seen)
{
	ftrace_of(set)->transcoder.seen = seen;
}

int ftrace_add_threads(struct source_set *set, const struct ky_cons_kernel_threads *m)
{
	return thread_table_add(&ftrace_of(set)->threads, m->threads);
}

int ftrace_add_cpu(struct source_set *set, uint32_t cpu, const int fds[3])
{
	struct ftrace *f = ftrace_of(set);
	struct cpu *c;

	if (cpu >= f->once.n_cpus || f->cpus[cpu].raw >= 0)
		return -EBADMSG;
	c = &f->cpus[cpu];
	c->raw = fds[0];
	c->stats = fds[1];
	f->threads.fds[cpu] = set->copied ? -1 : fds[2];
	if (!set->copied)
		finish_read(c);
	else if (f->may_map)
		return ftrace_copy_open(&c->copy, c->raw, f->once.page_size);
	return 0;
}

/* --- the state dump --- */

/* Appends the records of a part to the CPU's block. Returns the place behind them, or NULL. */
static uint8_t *put_dump(uint8_t *out, struct ky_kplace *place, const struct ky_cons_kernel_dump *m)
{
	struct ky_reader r = {.buf = m->records.data, .len = m->records.len};

	while (r.pos < r.len) {
		uint32_t id = ky_read_u32(&r);
		struct ky_bytes payload = ky_read_bytes(&r);

		if (r.error)
			return NULL;
		out = ky_kput_head(out, place, id, m->clock);
		memcpy(out, payload.data, payload.len);
		out += payload.len;
	}
	return out;
}

/* Records of a part, at most: each has 8 bytes in the message, and a longer head in the block. */
static uint64_t dump_size(const struct ky_cons_kernel_dump *m)
{
	return m->records.len + m->records.len / sizeof(struct ky_kernel_dump_record) *
					(KY_KHEAD_MAX - sizeof(struct ky_kernel_dump_record));
}

int ftrace_dump(struct source_set *set, const struct ky_cons_kernel_dump *m)
{
	struct ftrace *f = ftrace_of(set);
	uint64_t number = (uint64_t)m->number << 32 | m->part;
	struct once_cpu *c = f->dump_cpu < f->once.n_cpus ? &f->cpus[f->dump_cpu].once : NULL;
	struct ky_kernel_slot slot;
	struct ky_kplace place;
	uint8_t *data, *end;

	if (!c || dump_size(m) > KY_BLOCK_LIMIT(KY_KERNEL_BLOCK))
		return -EBADMSG;
	if (!f->once.since)
		f->once.since = m->clock;
	slot = *once_slot(c);
	if (number > slot.dump) {
		if (slot.pos % KY_KERNEL_BLOCK + dump_size(m) > KY_BLOCK_LIMIT(KY_KERNEL_BLOCK))
			once_end_block(c, &slot);
		if (once_is_full(c, slot.pos))
			return -EAGAIN;
		data = once_block_data(c, slot.pos) + slot.pos % KY_KERNEL_BLOCK;
		once_load_place(&place, &slot);
		end = put_dump(data, &place, m);
		if (!end)
			return -EBADMSG;
		slot.pos += (uint64_t)(end - data);
		once_store_place(&slot, &place);
		slot.dump = number;
		once_publish(c, &slot);
	}
	f->dumped = f->dumped || m->last;
	return 0;
}
