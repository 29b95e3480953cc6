/* SPDX-License-Identifier: MIT */
#include "consumerd/round.h"

#include <sys/statvfs.h>

#include "consumerd/kernel-sets.h"
#include "consumerd/bounds.h"
#include "consumerd/report.h"
#include "consumerd/retirement.h"
#include "consumerd/stream/stream-set.h"
#include "consumerd/watermark.h"
#include "ctf/tsdl.h"
#include "svc/log.h"

/* A flush ends, however fast writers are: this many rounds write more than any buffer has. */
#define ROUNDS_MAX 4096u
#define ROOM_NS	   (100 * KY_NS_PER_MS)

/*
 * Drains all ring sets that are due, in one round. Fetches the heads first, then copies the
 * metadata, then writes packets up to those heads.
 */
static void drain_sets(struct consumerd *c, bool flush, uint64_t now)
{
	/* While there is a failure, the metadata may need another try, too. */
	bool any = flush || c->status;
	struct stream_set *set;
	struct trace *t;

	watermark_begin_round(c);
	ky_list_foreach (set, &c->sets, node) {
		any |= stream_set_look(set, flush, now);
		c->fullest = KY_MAX(c->fullest, set->fullest);
		report_damage(c, set);
	}
	if (!any)
		return;
	ky_list_foreach (t, &c->traces, node)
		trace_update(t, flush, now);
	ky_list_foreach (set, &c->sets, node)
		if (!set->trace->fault.error)
			stream_set_write(set, now, &c->session->alive_ns);
	ky_list_foreach (t, &c->traces, node)
		trace_write_symbols(t);
	ky_list_foreach (set, &c->sets, node) {
		report_growth(c, set, now);
		report_marker(c, set);
	}
	watermark_update(c);
	report_faults(c);
}

/* Returns true if another round would write more: sources had no room, and the sink works. */
static bool has_more(const struct consumerd *c)
{
	const struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		if (stream_set_has_more(set) && !set->error && !set->trace->fault.error)
			return true;
	return false;
}

static bool is_complete(const struct consumerd *c)
{
	const struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		if (!stream_set_is_complete(set))
			return false;
	return true;
}

void round_flush(struct consumerd *c)
{
	unsigned int n = 0;

	do
		drain_sets(c, true, ky_loop_now_ns());
	while (has_more(c) && ++n < ROUNDS_MAX);
}

/* Sets the timer to the next round. */
static void set_timer(struct consumerd *c)
{
	uint64_t next = UINT64_MAX, now;
	struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		next = KY_MIN(next, stream_set_next_look(set));
	now = ky_loop_now_ns();
	if (!ky_list_empty(&c->sets))
		ky_timer_set(&c->loop, &c->timer, next - KY_MIN(next, now));
	__atomic_store_n(&c->session->due_ns, ky_list_empty(&c->sets) ? 0 : next, __ATOMIC_RELAXED);
}

void round_note_room(struct consumerd *c, uint64_t now)
{
	struct statvfs st;

	if (c->root_fd < 0 || now - c->room_ns < ROOM_NS || fstatvfs(c->root_fd, &st) < 0)
		return;
	c->room_ns = now;
	c->session->disk_free = (uint64_t)st.f_bavail * st.f_frsize;
	c->session->disk_size = (uint64_t)st.f_blocks * st.f_frsize;
}

static void timer_due(struct ky_timer *timer)
{
	struct consumerd *c = ky_container_of(timer, struct consumerd, timer);
	uint64_t now = ky_loop_now_ns();

	drain_sets(c, false, now);
	bounds_enforce(c, now);
	kernel_sets_watch(c);
	round_note_room(c, now);
	if (retirement_proceed(c))
		report_stats(c, 0);
	set_timer(c);
}

static uint64_t size_after(const struct consumerd *c, uint64_t ts)
{
	const struct stream_set *set;
	uint64_t sum = 0;

	ky_list_foreach (set, &c->sets, node)
		sum += stream_set_size_after(set, ts);
	return sum;
}

void round_look(struct consumerd *c)
{
	struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		stream_set_look(set, true, ky_loop_now_ns());
}

/*
 * Leaves out the oldest packets if a snapshot would become too large: finds the earliest time at
 * which it can begin.
 */
static void limit_snapshot(struct consumerd *c)
{
	uint64_t from = 0, to = UINT64_MAX, middle;
	struct stream_set *set;

	round_look(c);
	while (from < to) {
		middle = from + (to - from) / 2;
		if (size_after(c, middle) > c->snapshot_max)
			from = middle + 1;
		else
			to = middle;
	}
	ky_list_foreach (set, &c->sets, node)
		stream_set_leave_out(set, to);
}

/* Says in the metadata what triggered the snapshot. */
static void name_reason(struct consumerd *c)
{
	struct ky_buf text = {0};
	struct trace *t;

	ky_tsdl_comment(&text, c->reason, false);
	ky_list_foreach (t, &c->traces, node)
		if (!text.error)
			trace_append(t, text.data, text.len);
	ky_buf_deinit(&text);
}

void round_finish(struct consumerd *c)
{
	struct ky_cons_stats stats = {0};
	struct stream_set *set;
	int ret;

	ky_timer_cancel(&c->timer);
	if (!c->session) /* before INIT */
		return;
	if (c->snapshot_max)
		limit_snapshot(c);
	ky_list_foreach (set, &c->sets, node)
		stream_set_finish(set);
	round_flush(c);
	/* The second look settles rings whose thread is stopped or was killed (ring/drain.h). */
	if (!is_complete(c))
		round_flush(c);
	if (c->reason && *c->reason)
		name_reason(c);
	ky_list_foreach (set, &c->sets, node) {
		stream_set_give_up(set);
		stream_set_add_stats(set, &stats);
	}
	watermark_end(c);
	report_faults(c);
	if (!stats.unwritten)
		return;
	ret = c->status ? c->status : -EIO;
	report_set_status(
		c, ret, "cannot write all events below %s: %s", c->output, strerror(-ret));
	ky_error("%s: %llu are missing", c->message, (unsigned long long)stats.unwritten);
}

void round_soon(struct consumerd *c)
{
	ky_timer_set(&c->loop, &c->timer, 0);
}

void round_init(struct consumerd *c)
{
	ky_timer_init(&c->timer, timer_due);
}

void round_deinit(struct consumerd *c)
{
	ky_timer_cancel(&c->timer);
}
