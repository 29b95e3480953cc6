/* SPDX-License-Identifier: MIT */
/*
 * Formats that kernels have, the programs that are made of them, and records: sub-buffers are made
 * by hand, and the trace's bytes compared with what they must be.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "abi/kernel.h"
#include "abi/ring.h"
#include "kernel/filter.h"
#include "kernel/names.h"
#include "kernel/page.h"
#include "kernel/print-fmt.h"
#include "kernel/transcode.h"

#define STACK (KY_KSTACK_FRAMES * 8)
#define PAGE  4096u
#define CLOCK (UINT64_C(1) << 30) /* so that a first record's head is long */

static char *recorded; /* formats of Linux 6.18, each behind a line "# SYSTEM/EVENT" */

static char *read_file(const char *name)
{
	char path[PATH_MAX], *text;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/kernel/%s", TEST_DATA, name);
	f = fopen(path, "r");
	assert_non_null(f);
	text = calloc(1, 1 << 20);
	n = fread(text, 1, (1 << 20) - 1, f);
	assert_true(n > 0 && n < (1 << 20) - 1);
	fclose(f);
	return text;
}

struct event {
	char system[64], text[8192];
	struct ky_kformat f;
	struct ky_kprogram p;
};

/* Reads the format at *at, and moves *at behind it. Returns false at the end. */
static bool next_event(const char **at, struct event *e)
{
	const char *begin = strstr(*at, "# "), *text, *end;

	if (!begin)
		return false;
	snprintf(e->system, sizeof(e->system), "%.*s", (int)strcspn(begin + 2, "/"), begin + 2);
	text = strchr(begin, '\n') + 1;
	end = strstr(text, "\n# ");
	end = end ? end + 1 : strchr(text, '\0');
	snprintf(e->text, sizeof(e->text), "%.*s", (int)(end - text), text);
	*at = end;
	return true;
}

static struct event *find_event(const char *name, const char *const *contexts)
{
	struct event *e = calloc(1, sizeof(*e));
	struct ky_context c[KY_KCONTEXTS_MAX];
	const char *at = recorded;
	uint32_t n = 0;

	for (; contexts && contexts[n]; n++) {
		c[n].type = ky_kcontext_find(contexts[n]);
		assert_non_null(c[n].type);
	}
	while (next_event(&at, e)) {
		assert_int_equal(ky_kformat_parse(&e->f, e->text), 0);
		if (strcmp(e->f.name, name))
			continue;
		assert_int_equal(ky_kprogram_make(&e->p, e->system, &e->f, c, n), 0);
		return e;
	}
	fail_msg("no event %s", name);
	return NULL;
}

/* Every recorded format makes a program that the consumer accepts, and a description. */
static void test_all_formats(void **state)
{
	struct event *e = calloc(1, sizeof(*e));
	const char *at = recorded;
	unsigned n = 0;

	while (next_event(&at, e)) {
		uint8_t desc[65536];
		struct ky_writer w = {.buf = desc, .cap = sizeof(desc)};
		struct ky_buf tsdl = {0};
		struct ky_kkind *k;

		assert_int_equal(ky_kformat_parse(&e->f, e->text), 0);
		assert_int_equal(e->f.n_common, 4);
		assert_int_equal(ky_kprogram_make(&e->p, e->system, &e->f, NULL, 0), 0);
		k = ky_kkind_new(40, e->p.min, e->p.steps, e->p.n_steps);
		assert_non_null(k);
		ky_kkind_free(k);
		ky_kernel_describe(&w, e->p.name, e->p.fields);
		assert_int_equal(w.error, 0);
		ky_kernel_tsdl_event(&tsdl, e->p.name, e->p.fields, 0, 40, NULL, 0);
		assert_int_equal(tsdl.error, 0);
		ky_buf_deinit(&tsdl);
		n++;
	}
	assert_true(n >= 200);
	free(e);
}

static const char head[] = "name: x\nID: 40\nformat:\n"
			   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n";

static int parse_field(struct ky_kformat *f, const char *line)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s\t%s\n\nprint fmt: \"\"\n", head, line);
	return ky_kformat_parse(f, text);
}

/* Arguments of system calls take 8 bytes each, and have the type of the call's definition. */
static void test_argument_types(void **state)
{
	static const struct {
		const char *type;
		uint8_t out;
		bool is_signed;
	} rows[] = {{"int", 4, true}, {"const int", 4, true}, {"unsigned int", 4, false},
		{"const enum landlock_rule_type", 4, false}, {"umode_t", 2, false},
		{"loff_t", 8, true}, {"const size_t", 8, false}};
	struct ky_kformat *f = calloc(1, sizeof(*f));
	char text[1024];

	for (size_t i = 0; i < KY_ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof(text),
			"name: sys_enter_x\nID: 7\nformat:\n"
			"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
			"\tfield:%s a;\toffset:16;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n",
			rows[i].type);
		assert_int_equal(ky_kformat_parse(f, text), 0);
		assert_int_equal(f->fields[1].out, rows[i].out);
		assert_int_equal(f->fields[1].is_signed, rows[i].is_signed);
	}
	free(f);
}

static void test_declarations(void **state)
{
	static const struct {
		const char *line, *name;
		uint8_t kind, elem, out;
		bool is_signed, hex;
	} good[] = {
		{"field:char comm[16];\toffset:8;\tsize:16;\tsigned:0;", "comm", KY_KFIELD_TEXT, 1,
			16, false, false},
		{"field:void *p;\toffset:8;\tsize:8;\tsigned:0;", "p", KY_KFIELD_INT, 1, 8, false,
			true},
		{"field:const char * name;\toffset:8;\tsize:8;\tsigned:0;", "name", KY_KFIELD_INT,
			1, 8, false, true},
		{"field:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;", "name",
			KY_KFIELD_STRING, 1, 4, false, false},
		{"field:__rel_loc unsigned long[] v;\toffset:8;\tsize:4;\tsigned:0;", "v",
			KY_KFIELD_SEQUENCE, 8, 4, false, false},
		{"field:__data_loc struct thing[] v;\toffset:8;\tsize:4;\tsigned:0;", "v",
			KY_KFIELD_SEQUENCE, 1, 4, false, false},
		{"field:unsigned long caller[8];\toffset:8;\tsize:64;\tsigned:0;", "caller",
			KY_KFIELD_ARRAY, 8, 64, false, false},
		{"field:u8 mac[SIZE];\toffset:8;\tsize:6;\tsigned:0;", "mac", KY_KFIELD_ARRAY, 1, 6,
			false, false},
		{"field:struct in6 addr;\toffset:8;\tsize:16;\tsigned:0;", "addr", KY_KFIELD_ARRAY,
			1, 16, false, false},
		{"field:long state;\toffset:8;\tsize:8;\tsigned:1;", "state", KY_KFIELD_INT, 1, 8,
			true, false},
	};
	static const char *const bad[] = {
		"field:;\toffset:8;\tsize:8;\tsigned:0;",
		"field:int;\toffset:8;\tsize:8;\tsigned:0;",
		"field:int 5a;\toffset:8;\tsize:8;\tsigned:0;",
		"field:int a-;\toffset:8;\tsize:8;\tsigned:0;",
		"field:int a;\tsize:8;\tsigned:0;",
		"field:int a;\toffset:8;\tsigned:0;",
		"field:int a;\toffset:99999;\tsize:8;\tsigned:0;",
		"field:int a;\toffset:8;\tsize:99999;\tsigned:0;",
		"field:int a;\toffset:-8;\tsize:8;\tsigned:0;",
		"field:__data_loc char[] a;\toffset:8;\tsize:8;\tsigned:0;",
	};
	struct ky_kformat *f = calloc(1, sizeof(*f));

	for (size_t i = 0; i < KY_ARRAY_SIZE(good); i++) {
		assert_int_equal(parse_field(f, good[i].line), 0);
		assert_int_equal(f->n_fields, 2);
		assert_string_equal(f->fields[1].name, good[i].name);
		assert_int_equal(f->fields[1].kind, good[i].kind);
		assert_int_equal(f->fields[1].elem, good[i].elem);
		assert_int_equal(f->fields[1].out, good[i].out);
		assert_int_equal(f->fields[1].is_signed, good[i].is_signed);
		assert_int_equal(f->fields[1].hex, good[i].hex);
	}
	for (size_t i = 0; i < KY_ARRAY_SIZE(bad); i++)
		assert_int_equal(parse_field(f, bad[i]), -EBADMSG);
	assert_int_equal(parse_field(f, "field:char buf[];\toffset:16;\tsize:0;\tsigned:0;"), 0);
	assert_int_equal(f->n_fields, 1);
	assert_int_equal(ky_kformat_parse(f, ""), -EBADMSG);
	assert_int_equal(ky_kformat_parse(f, "name: x\nID: 70000\nformat:\n"), -EBADMSG);
	free(f);
}

static void test_header(void **state)
{
	char *page = read_file("header_page"), *event = read_file("header_event");

	assert_true(ky_kheader_check(page, event));
	assert_false(ky_kheader_check("", event));
	assert_false(ky_kheader_check(page, ""));
	memcpy(strstr(event, "27 bits"), "28 bits", 7);
	assert_false(ky_kheader_check(page, event));
	free(page);
	free(event);
}

static void test_names(void **state)
{
	static const char *const names[][3] = {
		{"sched", "sched_switch", "sched_switch"},
		{"irq", "softirq_entry", "irq_softirq_entry"},
		{"irq", "irq_handler_entry", "irq_handler_entry"},
		{"timer", "hrtimer_setup", "timer_hrtimer_init"},
		{"irq_vectors", "local_timer_entry", "x86_irq_vectors_local_timer_entry"},
		{"syscalls", "sys_enter_openat", "syscall_entry_openat"},
		{"syscalls", "sys_exit_openat", "syscall_exit_openat"},
		{"raw_syscalls", "sys_enter", "sys_enter"},
		{"other", "kfree", "kfree"},
	};
	char buf[128];

	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++)
		assert_string_equal(
			ky_kname(names[i][0], names[i][1], buf, sizeof(buf)), names[i][2]);
	assert_int_equal(ky_kernel_fixed_id("sched_switch"), 0);
	assert_int_equal(ky_kernel_fixed_id("syscall_exit_epoll_wait"), 20);
	assert_int_equal(ky_kernel_fixed_id("sched_process_fork"), UINT32_MAX);
}

/* --- sub-buffers --- */

static uint8_t page[PAGE + KY_KERNEL_BEHIND], out[65536 + 64];
static uint32_t page_len;

static void page_begin(uint64_t clock)
{
	memset(page, 0, PAGE);
	memcpy(page, &clock, 8);
	page_len = 0;
}

static void page_put(const void *p, uint32_t n)
{
	memcpy(page + KY_KPAGE_HEADER + page_len, p, n);
	page_len += n;
	memcpy(page + 8, &page_len, 4);
}

static void page_word(uint32_t kind, uint32_t delta)
{
	page_put(&(uint32_t){kind | delta << 5}, 4);
}

static void page_record(uint32_t delta, const void *data, uint32_t len)
{
	static const uint8_t zeros[4];
	uint32_t rounded = (len + 3) & ~3u;

	page_word(rounded <= 112 ? rounded / 4 : 0, delta);
	if (rounded > 112)
		page_put(&(uint32_t){rounded + 4}, 4);
	page_put(data, len);
	page_put(zeros, rounded - len);
}

static struct ky_kthreads threads;
static struct ky_ktranscoder transcoder;
static struct ky_kplace place;

static void transcoder_begin(void)
{
	threads.v = mmap(NULL, KY_KTHREADS * sizeof(*threads.v), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(threads.v, MAP_FAILED);
	assert_int_equal(ky_ktranscoder_init(&transcoder, &threads), 0);
	place = (struct ky_kplace){0};
}

static void transcoder_end(void)
{
	ky_ktranscoder_deinit(&transcoder);
	munmap(threads.v, KY_KTHREADS * sizeof(*threads.v));
}

static struct ky_kkind *enable(const struct event *e, uint32_t id)
{
	struct ky_kkind **k = &transcoder.kinds[e->f.id];

	*k = ky_kkind_new(id, e->p.min, e->p.steps, e->p.n_steps);
	assert_non_null(*k);
	return *k;
}

static size_t transcode_page(void)
{
	return (size_t)(ky_ktranscode(&transcoder, &place, page, PAGE, 1, out, out + 65536, true) -
			out);
}

static void put16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, 2);
}

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
}

static void put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, 8);
}

/* A record of sched_switch: 64 bytes. */
static void make_switch(uint8_t data[64], uint16_t id, int32_t tid, int32_t next_tid)
{
	memset(data, 0, 64);
	put16(data, id);
	put32(data + 4, (uint32_t)tid);
	memcpy(data + 8, "from", 5);
	put32(data + 24, (uint32_t)tid);
	put32(data + 28, 120);
	put64(data + 32, 2);
	memcpy(data + 40, "to", 3);
	put32(data + 56, (uint32_t)next_tid);
	put32(data + 60, 100);
}

/* The record in the file: compact head, then the fields, priorities less 100. */
static void test_switch(void **state)
{
	struct event *e = find_event("sched_switch", NULL);
	static const char *const names[] = {"prev_comm", "prev_tid", "prev_prio", "prev_state",
		"next_comm", "next_tid", "next_prio"};
	uint8_t data[64], expected[13 + 56 + 4 + 56];

	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++)
		assert_string_equal(e->p.fields[i].name, names[i]);
	assert_int_equal(e->p.n_fields, 7);
	transcoder_begin();
	enable(e, 0);
	page_begin(UINT64_C(1) << 40);
	make_switch(data, e->f.id, 7, 8);
	page_record(5, data, 64);
	page_record(100, data, 64);
	assert_int_equal(transcode_page(), sizeof(expected));
	expected[0] = 31;
	put32(expected + 1, 0);
	put64(expected + 5, (UINT64_C(1) << 40) + 5);
	memcpy(expected + 13, data + 8, 56);
	put32(expected + 13 + 20, 20);
	put32(expected + 13 + 52, 0);
	put32(expected + 13 + 56, ((1u << 5) * 105));
	memcpy(expected + 13 + 60, expected + 13, 56);
	assert_memory_equal(out, expected, sizeof(expected));
	assert_int_equal(place.count, 2);
	assert_int_equal(place.at, 0);
	assert_int_equal(place.ts, (UINT64_C(1) << 40) + 105);
	assert_int_equal(place.first_ts, (UINT64_C(1) << 40) + 5);
	transcoder_end();
	free(e);
}

/* Clock records: advance, absolute, taken back; and events that nobody knows. */
static void test_clocks(void **state)
{
	struct event *e = find_event("sched_switch", NULL);
	uint8_t data[64], small[8] = {0};

	transcoder_begin();
	enable(e, 0);
	page_begin((UINT64_C(1) << 60) + 1000);
	make_switch(data, e->f.id, 7, 8);
	page_word(30, 9); /* += (3 << 27) + 9 */
	page_put(&(uint32_t){3}, 4);
	page_record(1, data, 64);
	assert_int_equal(transcode_page(), 69);
	assert_int_equal(place.ts, (UINT64_C(1) << 60) + 1000 + (3u << 27) + 10);
	page_begin((UINT64_C(1) << 60) + 5000);
	page_word(31, 7); /* = highest 5 bits | (1 << 32) + 7 */
	page_put(&(uint32_t){1u << 5}, 4);
	page_word(29, 4); /* taken back: 12 bytes */
	page_put(&(uint32_t){8}, 4);
	page_put(&(uint32_t){0}, 4);
	page_record(2, data, 64);
	put16(small, 999);
	page_record(2, small, 8);
	put16(small, 5); /* a marker */
	page_record(2, small, 8);
	page_word(29, 0);
	assert_int_equal(transcode_page(), 69);
	assert_int_equal(place.ts, (UINT64_C(1) << 60) + (UINT64_C(1) << 32) + 13);
	/* Clocks of records never decrease. */
	page_begin(CLOCK);
	page_record(0, data, 64);
	assert_int_equal(transcode_page(), 60);
	assert_int_equal(place.ts, (UINT64_C(1) << 60) + (UINT64_C(1) << 32) + 13);
	assert_int_equal(place.n_refused, 1);
	transcoder_end();
	free(e);
}

/* A block without room ends the call amid the sub-buffer, and the next call continues there. */
static void test_rest(void **state)
{
	struct event *e = find_event("sched_switch", NULL);
	uint8_t data[64], *end;

	transcoder_begin();
	enable(e, 0);
	page_begin(CLOCK);
	for (unsigned i = 0; i < 20; i++) {
		make_switch(data, e->f.id, 7, (int32_t)i);
		page_record(10, data, 64);
	}
	for (unsigned i = 0; i < 20; i++) {
		end = ky_ktranscode(&transcoder, &place, page, PAGE, 1, out, out + 100, true);
		assert_int_equal(place.count, i + 1);
		assert_int_equal(ky_load32(end - 8), i);
		assert_int_equal(place.at != 0, i < 19);
		assert_int_equal(place.ts, CLOCK + 10 + 10 * i);
	}
	/* A record that no block has room for is refused, and the others follow. */
	page_begin(CLOCK + 9000);
	page_record(10, data, 64);
	end = ky_ktranscode(&transcoder, &place, page, PAGE, 1, out, out + 20, true);
	assert_ptr_equal(end, out);
	assert_int_equal(place.n_refused, 1);
	assert_int_equal(place.at, 0);
	transcoder_end();
	free(e);
}

static void set_thread(int32_t tid, int32_t pid, const char *name)
{
	threads.v[tid].pid = pid;
	strcpy(threads.v[tid].names[0].name, name);
}

/* Contexts, and processes in the place of threads. */
static void test_contexts(void **state)
{
	static const char *const all[] = {"tid", "pid", "procname", "interruptible", "preemptible",
		"need_reschedule", "callstack-kernel", "callstack-user", NULL};
	struct event *e = find_event("sched_process_fork", all);
	uint8_t data[64] = {0}, *p = out + 13;
	const struct ky_kfield *parent = ky_kformat_find(&e->f, "parent_pid");
	const struct ky_kfield *child = ky_kformat_find(&e->f, "child_pid");

	transcoder_begin();
	enable(e, 40);
	set_thread(77, 70, "worker");
	set_thread(78, 70, "x");
	page_begin(CLOCK);
	put16(data, e->f.id);
	data[2] = 0x04; /* interrupts on, another thread waits */
	data[3] = 0x11; /* preemption off */
	put32(data + 4, 77);
	put32(data + parent->offset, 77);
	put32(data + child->offset, 78);
	page_record(1, data, e->f.end);
	assert_true(transcode_page() > 0);
	assert_int_equal(ky_load32(p), 77);
	assert_int_equal(ky_load32(p + 4), 70);
	assert_string_equal((char *)p + 8, "worker");
	assert_memory_equal(p + 24, "\1\0\1", 3);
	assert_int_equal(ky_load64(p + 27), 0); /* no stacks */
	assert_string_equal(e->p.fields[e->p.n_fields - 2].name, "parent_pid");
	assert_string_equal(e->p.fields[e->p.n_fields - 1].name, "child_pid");
	transcoder_end();
	free(e);
}

/* A thread was renamed after the first event, and before the consumer has read either. */
static void test_renamed(void **state)
{
	static const char *const contexts[] = {"procname", NULL};
	struct event *e = find_event("sched_switch", contexts);
	uint8_t data[64];

	transcoder_begin();
	enable(e, 0);
	set_thread(7, 7, "date");
	strcpy(threads.v[7].names[1].name, "sh");
	threads.v[7].names[0].since = CLOCK + 2;
	page_begin(CLOCK);
	for (int i = 0; i < 2; i++) {
		make_switch(data, e->f.id, 7, 8);
		page_record(1, data, 64);
	}
	assert_true(transcode_page() > 0);
	assert_string_equal((char *)out + 13, "sh");
	assert_string_equal((char *)out + 13 + 16 + 56 + 4, "date");
	transcoder_end();
	free(e);
}

/* The kernel's stack comes behind its event; another thread's may be between. */
static void test_stack(void **state)
{
	static const char *const stack[] = {"callstack-kernel", NULL};
	struct event *e = find_event("sched_switch", stack), *s = find_event("kernel_stack", NULL);
	uint8_t data[64], frames[40] = {0};
	struct ky_kstep step;
	size_t n;

	transcoder_begin();
	enable(e, 0);
	assert_int_equal(ky_kstack_make(&step, &s->f), 0);
	transcoder.kinds[s->f.id] = ky_kkind_new(KY_KERNEL_STACK_ID, 16, &step, 1);
	assert_non_null(transcoder.kinds[s->f.id]);
	page_begin(CLOCK);
	make_switch(data, e->f.id, 7, 8);
	page_record(1, data, 64);
	put16(frames, s->f.id);
	put32(frames + 4, 9); /* of another thread */
	page_record(1, frames, 40);
	put32(frames + 4, 7);
	put64(frames + step.offset, 0x1111);
	put64(frames + step.offset + 8, 0x2222);
	page_record(1, frames, 40);
	make_switch(data, e->f.id, 7, 8);
	page_record(1, data, 64); /* has none */
	n = transcode_page();
	assert_int_equal(n, 13 + STACK + 56 + 4 + STACK + 56);
	assert_int_equal(ky_load64(out + 13), 0x1111);
	assert_int_equal(ky_load64(out + 21), 0x2222);
	assert_int_equal(ky_load64(out + 29), 0);
	assert_int_equal(ky_load64(out + 13 + STACK - 8), 0);
	assert_int_equal(ky_load64(out + 13 + STACK + 56 + 4), 0);
	assert_int_equal(place.n_refused, 0);
	transcoder_end();
	free(e);
	free(s);
}

/* Appends the stack of thread 7 to the sub-buffer: one address. */
static void put_stack_record(const struct event *s, const struct ky_kstep *step, uint64_t address)
{
	uint8_t frames[24] = {0};

	put16(frames, s->f.id);
	put32(frames + 4, 7);
	put64(frames + step->offset, address);
	page_record(1, frames, sizeof(frames));
}

static void put_switch_record(const struct event *e, int32_t from, int32_t to)
{
	uint8_t data[64];

	make_switch(data, e->f.id, from, to);
	page_record(1, data, sizeof(data));
}

static void next_page(uint64_t clock)
{
	page_begin(clock);
	place.at = KY_KPAGE_HEADER;
}

/*
 * An event at the end of a sub-buffer waits for its stack, which comes with the next one; what is
 * behind the event waits, too.
 */
static void test_stack_of_next_page(void **state)
{
	static const char *const stack[] = {"callstack-kernel", NULL};
	struct event *e = find_event("sched_switch", stack), *s = find_event("kernel_stack", NULL);
	const size_t compact = 4 + STACK + 56;
	struct ky_kstep step;

	transcoder_begin();
	transcoder.waits = true;
	enable(e, 0);
	assert_int_equal(ky_kstack_make(&step, &s->f), 0);
	transcoder.kinds[s->f.id] = ky_kkind_new(KY_KERNEL_STACK_ID, 16, &step, 1);
	page_begin(CLOCK);
	put_switch_record(e, 7, 1);
	put_stack_record(s, &step, 0x1111);
	put_switch_record(e, 7, 2);
	put_switch_record(e, 8, 3);
	assert_int_equal(transcode_page(), 13 + STACK + 56);
	assert_int_equal(place.at, 0);
	assert_int_equal(place.count, 1);
	/* Both areas are used: the last event of each sub-buffer waits. */
	for (unsigned i = 0; i < 4; i++) {
		next_page(CLOCK + 100 * (i + 1));
		put_stack_record(s, &step, 0x2222 + i);
		put_switch_record(e, 7, 4);
		assert_int_equal(transcode_page(), i ? compact : 2 * compact);
		assert_int_equal(ky_load64(out + 4), 0x2222 + i);
		assert_int_equal(place.ts, CLOCK + (i ? 100 * i + 2 : 4));
	}
	/* The next one is empty: there is no stack. */
	next_page(0);
	assert_int_equal(transcode_page(), compact);
	assert_int_equal(ky_load64(out + 4), 0);
	assert_int_equal(place.waiting, 0);
	assert_int_equal(place.count, 7);
	assert_int_equal(place.n_refused, 0);
	transcoder_end();
	free(e);
	free(s);
}

/* The text of an argument is empty if the kernel has none; its address stays. */
static void test_text_argument(void **state)
{
	struct event *e = find_event("sys_enter_openat", NULL);
	static const char *const names[] = {"dfd", "filename", "filename_ptr", "flags", "mode"};
	uint8_t data[48] = {0};

	assert_int_equal(e->p.n_fields, 5);
	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++)
		assert_string_equal(e->p.fields[i].name, names[i]);
	assert_int_equal(e->p.fields[1].kind, KYMO_FIELD_STRING);
	transcoder_begin();
	enable(e, 40);
	page_begin(CLOCK);
	put16(data, e->f.id);
	put64(data + 16, UINT64_C(0xffffffffffffff9c));
	put64(data + 24, 0x7fff1234);
	put64(data + 32, 0x80000);
	put64(data + 40, 0644);
	page_record(1, data, 48);
	assert_int_equal(transcode_page(), 13 + 4 + 1 + 8 + 4 + 2);
	assert_int_equal((int32_t)ky_load32(out + 13), -100);
	assert_int_equal(out[17], 0);
	assert_int_equal(ky_load64(out + 18), 0x7fff1234);
	assert_int_equal(ky_load32(out + 26), 0x80000);
	transcoder_end();
	free(e);
}

/* Strings end at their first NUL, or where the place says; one that leads away is empty. */
static void test_places(void **state)
{
	struct event *e = find_event("sched_process_exec", NULL);
	uint16_t at = ky_kformat_find(&e->f, "filename")->offset, end = (uint16_t)e->f.end;
	uint8_t data[64] = {0};
	const char *text = "/usr/bin/a-rather-long-name";

	transcoder_begin();
	enable(e, 40);
	put16(data, e->f.id);
	put32(data + at, end | 28u << 16);
	memcpy(data + end, text, 28);
	page_begin(CLOCK);
	page_record(1, data, end + 28u);
	assert_true(transcode_page() > 0);
	assert_string_equal((char *)out + 13, text);
	assert_string_equal((char *)out + 13 + strlen(text) + 1 + 8,
		"a-rather-long-n"); /* behind tid, old_tid */
	put32(data + at, end | 900u << 16);
	page_begin(CLOCK);
	page_record(1, data, end + 28u);
	assert_true(transcode_page() > 0);
	assert_string_equal((char *)out + 13, "");
	transcoder_end();
	free(e);
}

static void test_rwbs(void **state)
{
	static const struct {
		const char *letters;
		uint32_t bits;
	} rows[] = {{"W", 1}, {"R", 4}, {"WS", 1 | 32}, {"RA", 4 | 8}, {"D", 2}, {"DE", 2 | 128},
		{"FWFS", 1024 | 1 | 512 | 32}, {"F", 256}, {"N", 0}, {"RM", 4 | 64}};
	struct event *e = find_event("block_rq_issue", NULL);
	const struct ky_kfield *rwbs = ky_kformat_find(&e->f, "rwbs");
	uint32_t offset = 0;

	for (uint32_t i = 0; strcmp(e->p.fields[i].name, "rwbs"); i++)
		offset += e->p.fields[i].size;
	assert_string_equal(e->p.fields[e->p.n_fields - 1].name, "tid");
	transcoder_begin();
	enable(e, 40);
	for (size_t i = 0; i < KY_ARRAY_SIZE(rows); i++) {
		uint8_t data[128] = {0};

		put16(data, e->f.id);
		memcpy(data + rwbs->offset, rows[i].letters, strlen(rows[i].letters));
		page_begin(CLOCK);
		page_record(1, data, e->f.end);
		place = (struct ky_kplace){0};
		assert_true(transcode_page() > 0);
		assert_int_equal(ky_load32(out + 13 + offset), rows[i].bits);
	}
	transcoder_end();
	free(e);
}

/* Whether the waker is the thread that ran, or an interrupt of any kind. */
static void test_interrupts(void **state)
{
	static const uint8_t flags[] = {0, 1 | 4, 8, 16, 64, 1 | 8 | 16};
	struct event *e = find_event("sched_waking", NULL);

	assert_string_equal(e->p.fields[e->p.n_fields - 1].name, "in_interrupt");
	transcoder_begin();
	enable(e, 40);
	for (size_t i = 0; i < KY_ARRAY_SIZE(flags); i++) {
		uint8_t data[36] = {0};
		size_t n;

		put16(data, e->f.id);
		data[2] = flags[i];
		page_begin(CLOCK);
		page_record(1, data, sizeof(data));
		place = (struct ky_kplace){0};
		n = transcode_page();
		assert_int_equal(n, 13 + 28 + 1);
		assert_int_equal(out[n - 1], i >= 2);
	}
	transcoder_end();
	free(e);
}

/* Steps from a message: none may lead out of the data or the record. */
static void test_bad_steps(void **state)
{
	static const struct ky_kstep bad[] = {
		{KY_KOP_COPY, 0, 0, 65},
		{KY_KOP_COPY, 0, 60, 8},
		{KY_KOP_COPY, 0, 0, -1},
		{KY_KOP_ADD, 0, 4, 1},
		{KY_KOP_STRING, 0, 61, 0},
		{KY_KOP_SEQUENCE, 0, 0, 0},
		{KY_KOP_SEQUENCE, 0, 0, 9},
		{KY_KOP_TGID, 0, 61, 0},
		{KY_KOP_RWBS, 0, 60, 8},
		{KY_KOP_SOME_BITS, 0, 64, 1},
		{0, 0, 0, 0},
		{99, 0, 0, 0},
	};

	for (size_t i = 0; i < KY_ARRAY_SIZE(bad); i++)
		assert_null(ky_kkind_new(1, 64, &bad[i], 1));
	assert_null(ky_kkind_new(1, 4, bad, 0));
	assert_null(ky_kkind_new(1, 64,
		(struct ky_kstep[]){
			{KY_KOP_COPY, 0, 0, 8}, {KY_KOP_STRING, 0, 8, 0}, {KY_KOP_ADD, 0, 4, 1}},
		3));
}

static void test_filter(void **state)
{
	static const char *const texts[] = {"next_tid == 9", "$ctx.tid == 8 && next_prio < 1"};
	static const char *const contexts[] = {"procname", NULL};
	struct event *e = find_event("sched_switch", contexts);
	struct ky_bytes programs[2];
	struct ky_kkind *k;
	uint8_t data[64];

	transcoder_begin();
	k = enable(e, 0);
	for (unsigned i = 0; i < 2; i++) {
		struct ky_filter_error error;
		uint8_t *program = malloc(KY_FILTER_PROGRAM_MAX);
		int len = ky_filter_compile(texts[i], ky_ktranscode_find_context, program, &error);

		assert_true(len > 0);
		programs[i] = (struct ky_bytes){program, (uint32_t)len};
	}
	assert_int_equal(ky_kkind_set_filters(k, e->p.fields, programs, 2), 0);
	page_begin(CLOCK);
	for (int32_t tid = 7; tid < 9; tid++)
		for (int32_t next = 9; next < 11; next++) {
			make_switch(data, e->f.id, tid, next);
			page_record(1, data, 64);
		}
	assert_int_equal(transcode_page(), 13 + 72 + 4 + 72 + 4 + 72); /* not that of 7 and 10 */
	assert_int_equal(place.count, 3);
	assert_int_equal(place.n_refused, 0);
	for (unsigned i = 0; i < 2; i++)
		free((void *)programs[i].data);
	transcoder_end();
	free(e);
}

/* Compiles filters, and translates them for the event. Returns why that fails, or "". */
static const char *translate(
	struct ky_kfilter *ret, const char *event, const char *const *texts, uint32_t n)
{
	struct event *e = find_event(event, NULL);
	struct ky_buf programs[4] = {0};
	uint8_t program[KY_FILTER_PROGRAM_MAX];
	uint64_t code[KY_FILTER_CODE_MAX / sizeof(uint64_t)];
	static struct ky_filter_error error;

	for (uint32_t i = 0; i < n; i++) {
		int len = ky_filter_compile(texts[i], ky_kfilter_find_context, program, &error);

		if (len > 0)
			len = ky_kfilter_resolve(&programs[i],
				(struct ky_bytes){program, (uint32_t)len}, &e->p, e->text, &error);
		if (!len)
			len = ky_filter_link(programs[i].data, programs[i].len, e->p.fields,
				ky_kfilter_find_context, code, &error);
		if (len > 0)
			*error.text = '\0';
	}
	ky_kfilter_translate(ret, &e->p, programs, n);
	for (uint32_t i = 0; i < n; i++)
		ky_buf_deinit(&programs[i]);
	free(e);
	return error.text;
}

/* Expressions, and what Linux 6.18 was given for them, and accepted. */
static void test_push_down(void **state)
{
	static const struct {
		/* kernel NULL: the rest is why not */
		const char *event, *filter, *kernel, *rest;
	} rows[] = {
#include "kernel/test-filters.h"
	};
	struct ky_kfilter *f = malloc(sizeof(*f));

	for (size_t i = 0; i < KY_ARRAY_SIZE(rows); i++) {
		const char *why = translate(f, rows[i].event, &rows[i].filter, 1);

		assert_string_equal(why, rows[i].kernel ? "" : rows[i].rest);
		if (!rows[i].kernel)
			continue;
		assert_string_equal(f->kernel, rows[i].kernel);
		assert_string_equal(f->rest, rows[i].rest);
		assert_int_equal(f->exact, !*rows[i].rest);
	}
	translate(f, "sched_switch",
		(const char *[]){"next_tid == 5", "prev_tid == 6 && 1 + next_tid > 2"}, 2);
	assert_string_equal(f->kernel, "(next_pid == 5) || (prev_pid == 6)");
	assert_string_equal(f->rest, "(1 + next_tid) > 2");
	assert_false(f->exact);
	translate(f, "sched_switch", (const char *[]){"next_tid == 5", "1 + next_tid > 2"}, 2);
	assert_string_equal(f->kernel, "");
	assert_false(f->exact);
	free(f);
}

static int read_recorded(void **state)
{
	recorded = read_file("formats.txt");
	return 0;
}

static int free_recorded(void **state)
{
	free(recorded);
	return 0;
}

/* --- names of values --- */

static void check_values(const struct event *e, const char *wanted)
{
	struct ky_buf got = {0};

	ky_buf_puts(&got, "");
	ky_kvalues_put(&got, e->text, &e->p);
	ky_buf_append(&got, "", 1);
	assert_int_equal(got.error, 0);
	assert_string_equal(got.data, wanted);
	ky_buf_deinit(&got);
}

static void check_values_of(const char *name, const char *trace_name, const char *wanted)
{
	struct event *e = find_event(name, NULL);

	snprintf(e->p.name, sizeof(e->p.name), "%s", trace_name);
	check_values(e, wanted);
	free(e);
}

static void test_values(void **state)
{
	check_values_of("softirq_entry", "irq_softirq_entry",
		"# values\tirq_softirq_entry\tvec\tvalues\tffffffffffffffff\t0=HI\t1=TIMER\t2=NET_TX\t"
		"3=NET_RX\t4=BLOCK\t5=IRQ_POLL\t6=TASKLET\t7=SCHED\t8=HRTIMER\t9=RCU\n");
	check_values_of("sched_switch", "sched_switch",
		"# values\tsched_switch\tprev_state\tflags\tff\t1=S\t2=D\t4=T\t8=t\t10=X\t20=Z\t40=P\t"
		"80=I\t0=R\n");
	check_values_of(
		"hrtimer_start", "timer_hrtimer_start", ""); /* its values are no constants */
}

/* No text makes it read behind the end, or leaves half a line. */
static void test_bad_values(void **state)
{
	static const char *const texts[] = {
		"print fmt: \"\", __print_flags(REC->vec, \"|\", { 1, \"A\" }, { B, \"C\" })\n",
		"print fmt: \"\", __print_flags(REC->vec, \"|\", { 1, \"A\" }\n",
		"print fmt: \"\", __print_flags(REC->vec, \"|\n",
		"print fmt: \"\", __print_flags(REC->vec >> 3, \"|\", { 1, \"A\" })\n",
		"print fmt: \"\", __print_flags(REC->none, \"|\", { 1, \"A\" })\n",
		"print fmt: \"\", __print_symbolic(REC->vec, { 1, \"A\\\n",
		"print fmt: \"\", __print_symbolic(REC->vec, { ((1, \"A\" })\n",
		"print fmt: \"\", __print_symbolic(REC->vec, { 1 2, \"A\" })\n",
		"print fmt: \"\", __print_symbolic(((((REC->vec, { 1, \"A\" })\n",
		"print fmt: \"\", __print_symbolic(",
	};
	struct event *e = find_event("softirq_entry", NULL);
	char whole[sizeof(e->text)];
	struct ky_buf got = {0};

	for (size_t i = 0; i < KY_ARRAY_SIZE(texts); i++) {
		snprintf(e->text, sizeof(e->text), "%s", texts[i]);
		check_values(e, "");
	}
	snprintf(e->text, sizeof(e->text),
		"print fmt: \"\", __print_flags((unsigned long)(REC->vec & (0xfUL << 4)), \"|\", { (1U << 4) | (1 << 5), \"A, b\" }, { ~0x7f & 0xff, \"C\" })\n");
	check_values(e, "# values\tirq_softirq_entry\tvec\tflags\tf0\t30=A, b\t80=C\n");
	snprintf(e->text, sizeof(e->text), "%s%*s",
		"print fmt: \"\", __print_symbolic(REC->vec, { ", 1000, "");
	memset(strchr(e->text, '{') + 1, '(', 1000);
	check_values(e, "");
	free(e);
	e = find_event("sched_switch", NULL);
	memcpy(whole, e->text, sizeof(whole));
	for (size_t len = strlen(whole); len-- > 0;) {
		char *end = malloc(len + 1);

		memcpy(end, whole, len);
		end[len] = '\0';
		got.len = 0;
		ky_kvalues_put(&got, end, &e->p);
		assert_true(!got.len || got.data[got.len - 1] == '\n');
		free(end);
	}
	ky_buf_deinit(&got);
	free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_formats),
		cmocka_unit_test(test_declarations),
		cmocka_unit_test(test_argument_types),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_contexts),
		cmocka_unit_test(test_renamed),
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_stack_of_next_page),
		cmocka_unit_test(test_text_argument),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_rwbs),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_bad_steps),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_push_down),
	};

	return cmocka_run_group_tests(tests, read_recorded, free_recorded);
}
