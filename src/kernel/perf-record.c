/* SPDX-License-Identifier: MIT */
#include "kernel/perf-record.h"

#include <linux/perf_event.h>
#include <time.h>

#include "kernel/kallsyms.h"
#include "kernel/page.h"

#define SAMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD |                \
		PERF_SAMPLE_CALLCHAIN)
#define HEADER	8u  /* struct perf_event_header */
#define TRAILER 16u /* of records that are no samples: u32 pid, tid; u64 time */

#ifdef PERF_RECORD_MISC_MMAP_BUILD_ID /* Linux 5.12 */
#define MISC_BUILD_ID	      PERF_RECORD_MISC_MMAP_BUILD_ID
#define SET_BUILD_ID(attr, v) ((attr)->build_id = (v))
#else
#define MISC_BUILD_ID	      0
#define SET_BUILD_ID(attr, v) ((void)(attr))
#endif
#define BUILD_ID_MAX 20u

/* Identifiers in the stream. */
enum { SAMPLE, MAP, EXEC, FORK };

#define FIELD(kind, size, flags, name)                                                             \
	{                                                                                          \
		KYMO_FIELD_##kind, 0, size, flags, 0, name, NULL                                   \
	}
#define ADDRESS(name) FIELD(UINT, 8, KYMO_FIELD_HEX, name)
#define NUMBER(name)  FIELD(UINT, 8, 0, name)
#define STRING(name)  FIELD(STRING, 0, 0, name)
#define SEQUENCE(name, size)                                                                       \
	{                                                                                          \
		KYMO_FIELD_SEQUENCE, KYMO_FIELD_UINT, size, KYMO_FIELD_HEX, 0, name, NULL          \
	}

static const struct kymo_field sample_fields[] = {ADDRESS("addr"), NUMBER("period"),
	SEQUENCE("callstack_kernel", 8), SEQUENCE("callstack_user", 8), {0}};
static const struct kymo_field map_fields[] = {ADDRESS("baddr"), NUMBER("memsz"), NUMBER("offset"),
	STRING("path"), FIELD(UINT, 1, 0, "has_build_id"), SEQUENCE("build_id", 1), {0}};
static const struct kymo_field exec_fields[] = {STRING("name"), {0}};
static const struct kymo_field fork_fields[] = {FIELD(INT, 4, 0, "parent"), {0}};

void ky_perf_describe(struct ky_buf *text, uint32_t stream_id)
{
	static const struct {
		const char *name;
		const struct kymo_field *fields;
	} events[] = {
		[SAMPLE] = {"kymo_sample", sample_fields},
		[MAP] = {"kymo_lib:map", map_fields},
		[EXEC] = {"kymo_lib:exec", exec_fields},
		[FORK] = {"kymo_lib:fork", fork_fields},
	};
	const struct ky_context contexts[] = {
		{.type = ky_kcontext_find("tid"), .spec = "tid", .name = "tid"},
		{.type = ky_kcontext_find("pid"), .spec = "pid", .name = "pid"}};

	for (uint32_t i = 0; i < KY_ARRAY_SIZE(events); i++)
		ky_kernel_tsdl_event(text, events[i].name, events[i].fields, stream_id, i, contexts,
			KY_ARRAY_SIZE(contexts));
}

void ky_perf_attr(
	struct perf_event_attr *ret, uint32_t frequency, bool hardware, bool kernel, bool monotonic)
{
	*ret = (struct perf_event_attr){
		.type = hardware ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.size = sizeof(*ret),
		.config = hardware ? (uint64_t)PERF_COUNT_HW_CPU_CYCLES
				   : (uint64_t)PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = frequency,
		.sample_type = SAMPLE_TYPE,
		.disabled = 1,
		.inherit = 1,
		.exclude_kernel = !kernel,
		.exclude_hv = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.freq = 1,
		.enable_on_exec = 1,
		.task = 1,
		.watermark = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = monotonic ? CLOCK_MONOTONIC : CLOCK_MONOTONIC_RAW,
		.wakeup_watermark = KY_PERF_RING / 4,
	};
	SET_BUILD_ID(ret, 1);
}

void ky_perf_attr_without_build_id(struct perf_event_attr *attr)
{
	SET_BUILD_ID(attr, 0);
}

uint64_t ky_perf_clock(const struct ky_perf_times *t, uint64_t ns)
{
	__int128 since = (__int128)ns - t->ns[0];
	int64_t span = (int64_t)(t->ns[1] - t->ns[0]);

	if (span > 0)
		since = since * (int64_t)(t->clock[1] - t->clock[0]) / span;
	return (uint64_t)((__int128)t->clock[0] + since);
}

/* --- records --- */

/* A record of perf's: `len` bytes with its header. */
struct record {
	const uint8_t *data;
	uint32_t type, misc, len;
	struct ky_kseen *seen;
};

static uint8_t *put_u32(uint8_t *out, uint32_t v)
{
	return mempcpy(out, &v, sizeof(v));
}

/* Writes the record's head and the contexts. ids: u32 pid, u32 tid, as perf has them. */
static uint8_t *put_begin(uint8_t *out, struct ky_kplace *place, uint32_t id,
	const struct ky_perf_times *times, uint64_t ns, const uint8_t *ids)
{
	out = ky_kput_head(out, place, id, ky_perf_clock(times, ns));
	out = mempcpy(out, ids + 4, 4);
	return mempcpy(out, ids, 4);
}

/* Returns the time of a record that is no sample. */
static uint64_t time_of(const struct record *r)
{
	return ky_load64(r->data + r->len - 8);
}

/*
 * Divides a chain of addresses, which has marks between those of the kernel and those of the
 * program. Appends the addresses behind the mark. skip: the first address of all is not wanted.
 */
static uint8_t *put_chain(
	uint8_t *out, const uint8_t *chain, uint64_t n, uint64_t mark, uint64_t skipped)
{
	uint8_t *count = out;
	bool wanted = false, is_first = true;
	uint32_t len = 0;

	out += 4;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t address = ky_load64(chain + 8 * i);

		if (address >= (uint64_t)PERF_CONTEXT_MAX) {
			wanted = address == mark;
			continue;
		}
		if (wanted && !(is_first && address == skipped)) {
			out = mempcpy(out, &address, sizeof(address));
			len++;
		}
		is_first = false;
	}
	put_u32(count, len);
	return out;
}

/* Notes those of the addresses that are the kernel's. */
static void note_kernel(struct ky_kseen *seen, const uint8_t *addresses, uint64_t n)
{
	for (uint64_t i = 0; seen && i < n; i++) {
		uint64_t address = ky_load64(addresses + 8 * i);

		if (ky_is_kernel_address(address) && address < (uint64_t)PERF_CONTEXT_MAX)
			ky_kseen_add(seen, address);
	}
}

/* u64 ip; u32 pid, tid; u64 time, period, n; u64 addresses[n] */
static uint8_t *put_sample(uint8_t *out, struct ky_kplace *place, const struct ky_perf_times *times,
	const struct record *r)
{
	const uint8_t *at = r->data + HEADER;
	uint64_t n;

	if (r->len < HEADER + 40)
		return NULL;
	n = ky_load64(at + 32);
	if (n > (r->len - HEADER - 40) / 8)
		return NULL;
	out = put_begin(out, place, SAMPLE, times, ky_load64(at + 16), at + 8);
	out = mempcpy(out, at, 8);
	out = mempcpy(out, at + 24, 8);
	note_kernel(r->seen, at, 1);
	note_kernel(r->seen, at + 40, n);
	out = put_chain(out, at + 40, n, (uint64_t)PERF_CONTEXT_KERNEL, ky_load64(at));
	return put_chain(out, at + 40, n, (uint64_t)PERF_CONTEXT_USER, ky_load64(at));
}

/* u32 pid, tid; u64 addr, len, offset; 24 bytes of the file's identity; u32 prot, flags; path */
static uint8_t *put_map(uint8_t *out, struct ky_kplace *place, const struct ky_perf_times *times,
	const struct record *r)
{
	const uint8_t *at = r->data + HEADER, *id = at + 32, *path = at + 64;
	uint32_t n_id = 0;
	size_t len;

	if (r->len < HEADER + 64 + 1 + TRAILER)
		return NULL;
	if (r->misc & MISC_BUILD_ID)
		n_id = id[0];
	if (n_id > BUILD_ID_MAX)
		return NULL;
	len = strnlen((const char *)path, r->len - HEADER - 64 - TRAILER);
	if (len < 2 || path[0] != '/' || path[1] == '/')
		return out; /* "[vdso]", "//anon": no file */
	out = put_begin(out, place, MAP, times, time_of(r), at);
	out = mempcpy(out, at + 8, 24);
	out = mempcpy(out, path, len);
	*out++ = '\0';
	*out++ = n_id > 0;
	out = put_u32(out, n_id);
	return mempcpy(out, id + 4, n_id);
}

/* u32 pid, tid; name */
static uint8_t *put_exec(uint8_t *out, struct ky_kplace *place, const struct ky_perf_times *times,
	const struct record *r)
{
	const char *name = (const char *)r->data + HEADER + 8;
	size_t len;

	if (r->len < HEADER + 8 + TRAILER)
		return NULL;
	if (!(r->misc & PERF_RECORD_MISC_COMM_EXEC))
		return out;
	len = strnlen(name, r->len - HEADER - 8 - TRAILER);
	out = put_begin(out, place, EXEC, times, time_of(r), r->data + HEADER);
	out = mempcpy(out, name, len);
	*out++ = '\0';
	return out;
}

/* u32 pid, ppid, tid, ptid; u64 time */
static uint8_t *put_fork(uint8_t *out, struct ky_kplace *place, const struct ky_perf_times *times,
	const struct record *r)
{
	const uint8_t *at = r->data + HEADER;
	uint8_t ids[8];

	if (r->len < HEADER + 24 + TRAILER)
		return NULL;
	if (ky_load32(at) == ky_load32(at + 4))
		return out; /* a thread */
	memcpy(ids, at, 4);
	memcpy(ids + 4, at + 8, 4);
	out = put_begin(out, place, FORK, times, ky_load64(at + 16), ids);
	return mempcpy(out, at + 4, 4);
}

/* Returns the place behind the record, which is `out` for one that is left out; NULL: invalid. */
static uint8_t *put_record(uint8_t *out, struct ky_kplace *place, const struct ky_perf_times *times,
	const struct record *r)
{
	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		return put_sample(out, place, times, r);
	case PERF_RECORD_MMAP2:
		return put_map(out, place, times, r);
	case PERF_RECORD_COMM:
		return put_exec(out, place, times, r);
	case PERF_RECORD_FORK:
		return put_fork(out, place, times, r);
	default:
		return out;
	}
}

/* A record of the trace has at most so many bytes more than perf's. */
#define GROWTH 64u

uint8_t *ky_perf_transcode(struct ky_kplace *place, const uint8_t *page, uint8_t *out,
	const uint8_t *end, struct ky_kseen *seen)
{
	struct ky_perf_page head;
	uint32_t at = place->at, stop;
	struct record r = {.seen = seen};
	uint8_t *to;

	memcpy(&head, page, sizeof(head));
	stop = (uint32_t)KY_MIN(head.len, (uint64_t)KY_PERF_PAGE_SIZE - sizeof(head)) +
	       (uint32_t)sizeof(head);
	while (at < stop) {
		r.data = page + at;
		r.len = stop - at < HEADER ? 0 : ky_load32(r.data + 4) >> 16;
		if (r.len < HEADER || r.len > stop - at) {
			place->n_refused++;
			break;
		}
		if (r.len + GROWTH > (size_t)(end - out)) {
			place->at = at;
			return out;
		}
		r.type = ky_load32(r.data);
		r.misc = ky_load32(r.data + 4) & 0xffff;
		to = put_record(out, place, &head.times, &r);
		place->n_refused += !to;
		out = to ? to : out;
		at += r.len;
	}
	place->at = 0;
	return out;
}
