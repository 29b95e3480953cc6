/* SPDX-License-Identifier: MIT */
#include "consumerd/stream/stream-set.h"

#include <inttypes.h>

#include "base/clock.h"
#include "svc/log.h"
#include "svc/loop.h"

#define PERIOD_MIN_NS (KY_NS_PER_MS / 10)
#define PERIOD_MAX_NS (4 * KY_NS_PER_MS)
#define SWITCH_NS     (1000 * KY_NS_PER_MS) /* the default */
/*
 * New files in one round. To make a file takes long, and rings that have one must not wait for
 * those that have none. Least of all they wait for rings that were given back, which nobody writes:
 * the later the other rings are free again, the more rings are needed.
 */
#define NEW_FILES_MAX	       16
#define NEW_FILES_MAX_RELEASED 1
/*
 * Looks at a set that has ended, about a second, until its rings have settled. Only a program that
 * goes on writing them takes longer.
 */
#define LAST_LOOKS_MAX 250
#define DAY_US	       (UINT64_C(86400) * 1000000)

static void report_damage(struct stream_set *set, uint32_t i)
{
	const struct source *source = set->streams[i].source;

	set->n_quarantined++;
	set->damaged = true;
	if (!set->sources->own)
		ky_error(
			"%s/%s_%u: a program has damaged this ring; it is not read any more, the others are (head %#" PRIx64
			", before that position %" PRIu64 ", oldest %" PRIu64 " and %" PRIu64 ")",
			set->trace->dir, set->name, i, source->words[0], source->taken.pos,
			source->words[1], source->words[2]);
	else if (set->n_quarantined == 1)
		ky_error(
			"%s/%s: the process has damaged its own buffers; they are not read any more, those of others are",
			set->trace->dir, set->name);
}

/* Lines of the log that another user causes are limited. */
static void set_cause(const struct stream_set *set)
{
	uint32_t uid = trace_user(set->trace);

	ky_log_set_cause(uid == geteuid() ? KY_LOG_NOBODY : uid);
}

/* Gives a source up for ever, and sets its files apart. */
static void set_stream_apart(struct stream_set *set, uint32_t i)
{
	int ret = stream_set_apart(
		&set->streams[i], ky_clock_read(set->sources->clock), set->sources->own);

	set_cause(set);
	if (ret < 0)
		ky_error(
			"%s/%s_%u: cannot be moved to 'damaged' (%s): babeltrace2 may refuse the trace until it is removed",
			set->trace->dir, set->name, i, strerror(-ret));
	ky_log_set_cause(KY_LOG_NOBODY);
}

/* Quarantines a source: after invalid control words, nothing in it can be trusted. */
static void quarantine_stream(struct stream_set *set, uint32_t i)
{
	set_stream_apart(set, i);
	set_cause(set);
	report_damage(set, i);
	ky_log_set_cause(KY_LOG_NOBODY);
}

/* A process that damaged one ring of its own can have written into all of them. */
static void quarantine_siblings(struct stream_set *set)
{
	for (uint32_t i = 0; i < set->n_streams; i++)
		if (!set->streams[i].source->abandoned)
			quarantine_stream(set, i);
}

static void init_header(const struct stream_set *set, struct stream *s, uint32_t i)
{
	s->header.stream_id = set->stream_id;
	s->header.stream_instance_id = (uint64_t)set->instance << 32 | i;
	if (!s->source->has_owner)
		s->header.cpu_id = s->source->cpu;
	trace_uuid(set->trace, s->header.uuid);
}

static int resume_stream(struct stream_set *set, uint32_t i)
{
	struct stream *s = &set->streams[i];
	int ret = stream_resume(s, set->trace->chunk);

	if (ret == -EBADMSG)
		ky_error(
			"%s/%s_%u: cannot continue this file, because it is not the one of this stream",
			set->trace->dir, set->name, i);
	if (!ret)
		set->n_quarantined += s->source->abandoned;
	return ret;
}

/* Opens a stream. Returns 0 or -errno; only -EBADMSG is permanent. */
static int open_stream(struct stream_set *set, uint32_t i)
{
	const struct sink_name name = {set->name, i, set->file_size, set->n_files};
	struct sink_trace *trace = set->trace->to;
	struct stream *s = &set->streams[i];
	struct sink_stream *to;
	int ret = trace->ops->open_stream(trace, &name, &to);

	if (ret < 0)
		return ret;
	stream_init(s, set->sources->ops->open(set->sources, i), to, ky_loop_now_ns());
	s->since = ky_clock_read(set->sources->clock);
	init_header(set, s, i);
	if (set->trace->resume && set->sources->copied)
		to->ops->remove(to, 0); /* what an interrupted recovery has written */
	else if (set->trace->resume)
		ret = resume_stream(set, i);
	if (ret < 0 && ret != -EBADMSG)
		stream_deinit(s);
	return ret;
}

/*
 * Gives up a stream that cannot continue its present file, which would be in its way. The records
 * since the file's begin are lost, as far as the source still knows them.
 */
static void give_up_stream(struct stream_set *set, uint32_t i)
{
	struct stream *s = &set->streams[i];
	const struct ky_resume_slot *base = &s->slots.base;

	s->source->taken = (struct source_mark){base->pos, base->count, base->ts};
	s->source->ops->look(s->source, true, false);
	s->to->ops->set_apart(s->to, base->file);
	set_stream_apart(set, i);
	set->n_quarantined++;
}

/* Opens all streams that are used. One that cannot continue its files is given up. */
static int open_streams(struct stream_set *set)
{
	uint32_t n = set->sources->ops->n_used(set->sources);
	int ret = 0;

	while (!ret && set->n_streams < n) {
		ret = open_stream(set, set->n_streams);
		if (ret == -EBADMSG) {
			give_up_stream(set, set->n_streams);
			ret = 0;
		}
		set->n_streams += !ret;
	}
	return ret;
}

int stream_set_new(const struct ky_cons_ring_set *m, struct trace *trace,
	struct source_set *sources, struct stream_set **ret_set)
{
	struct stream_set *set = calloc(1, sizeof(*set));

	if (!set) {
		sources->ops->free(sources);
		return -ENOMEM;
	}
	ky_list_init(&set->node);
	set->id = m->set;
	set->trace = trace;
	set->sources = sources;
	if (!sources->copied) { /* a copy has no other memory */
		set->file_size = m->file_size;
		set->n_files = m->n_files;
	}
	set->stream_id = m->stream_id;
	set->instance = m->instance;
	set->flushed_ns = ky_loop_now_ns();
	set->switch_ns = SWITCH_NS;
	set->name = strdup(m->name);
	set->streams = calloc(sources->n_max, sizeof(*set->streams));
	if (!set->name || !set->streams) {
		stream_set_free(set);
		return -ENOMEM;
	}
	set->unopened = open_streams(set);
	*ret_set = set;
	return 0;
}

struct stream_set *stream_set_free(struct stream_set *set)
{
	if (!set)
		return NULL;
	ky_list_remove(&set->node);
	for (uint32_t i = 0; set->streams && i < set->sources->n_max; i++)
		stream_deinit(&set->streams[i]);
	set->sources->ops->free(set->sources);
	free(set->streams);
	free(set->name);
	free(set);
	return NULL;
}

void stream_set_end(struct stream_set *set)
{
	set->sources->ended = true;
}

void stream_set_finish(struct stream_set *set)
{
	set->sources->held = false;
	if (set->sources->wakes && !set->sources->copied)
		set->sources->until = ky_clock_read(set->sources->clock);
}

static bool all_taken(const struct stream_set *set)
{
	const struct source *s;

	for (uint32_t i = 0; i < set->n_streams; i++) {
		s = set->streams[i].source;
		if (s->taken.pos != s->head && !s->abandoned)
			return false;
	}
	return true;
}

bool stream_set_is_complete(const struct stream_set *set)
{
	return set->looked && !set->unopened && !stream_set_has_more(set) && all_taken(set);
}

bool stream_set_is_written(const struct stream_set *set)
{
	return set->sources->ended && set->looked && !set->unopened && !set->error &&
	       !set->trace->fault.error && !stream_set_has_more(set) &&
	       (all_taken(set) || set->n_last_looks >= LAST_LOOKS_MAX);
}

bool stream_set_has_more(const struct stream_set *set)
{
	for (uint32_t i = 0; i < set->n_streams; i++)
		if (set->streams[i].source->more)
			return true;
	return false;
}

void stream_set_time(struct stream_set *set, uint64_t switch_us, uint64_t read_us)
{
	set->switch_ns = KY_MIN(switch_us, DAY_US) * 1000;
	set->read_ns = KY_MIN(read_us, DAY_US) * 1000;
}

/* Returns the time until the next look, if nothing else happens. */
static uint64_t period(const struct stream_set *set)
{
	if (set->sources->ended)
		return PERIOD_MAX_NS;
	if (set->sources->wakes && !stream_set_has_more(set))
		return set->read_ns ? set->read_ns : SWITCH_NS;
	if (set->sources->wakes)
		return set->error ? PERIOD_MAX_NS : PERIOD_MIN_NS;
	if (set->wait_ns == UINT64_MAX)
		return set->read_ns ? set->read_ns : PERIOD_MAX_NS;
	return set->read_ns ? set->read_ns : KY_MAX(set->wait_ns, PERIOD_MIN_NS);
}

/*
 * Sets with the same period are flushed at the same times, however new they are. So after each of
 * these rounds, all of them are complete.
 */
static uint64_t next_flush(const struct stream_set *set)
{
	return (set->flushed_ns / set->switch_ns + 1) * set->switch_ns;
}

uint64_t stream_set_next_look(const struct stream_set *set)
{
	uint64_t look = set->looked_ns + period(set);

	return set->switch_ns ? KY_MIN(look, next_flush(set)) : look;
}

/* Sets without a period of their own are due whenever the consumer is awake. */
static bool is_due(const struct stream_set *set, uint64_t now_ns)
{
	if (set->flush || set->sources->ended || set->sources->ready)
		return true;
	if (!set->read_ns && !set->sources->wakes)
		return true;
	return now_ns - set->looked_ns >= period(set);
}

/* Returns how full the source is, in thousandths of what it can grow to. */
static uint32_t fill_of(const struct source *s)
{
	uint64_t size = KY_MAX(s->capacity, (uint64_t)s->block_size * s->n_blocks);
	uint64_t used = (uint64_t)s->n_ready * s->block_size + s->head % s->block_size;

	used -= KY_MIN(used, s->taken.pos % s->block_size);
	return size ? (uint32_t)(KY_MIN(used, size) * 1000 / size) : 0;
}

static void look_at(struct stream_set *set, uint32_t i, uint64_t now_ns)
{
	struct stream *s = &set->streams[i];
	int ret = stream_look(s, set->flush, now_ns);
	uint64_t wait;

	if (ret == SOURCE_IDLE)
		return;
	if (ret < 0)
		quarantine_stream(set, i);
	else
		set->fullest = KY_MAX(set->fullest, fill_of(s->source));
	/* When threads exit, new ones may soon need their rings. */
	wait = s->source->released && s->due ? 0 : pace_wait_ns(&s->pace, s->source, s->due);
	set->wait_ns = KY_MIN(set->wait_ns, wait);
}

bool stream_set_look(struct stream_set *set, bool flush, uint64_t now_ns)
{
	bool any;

	set->flush = flush || (set->switch_ns && now_ns >= next_flush(set));
	set->looked = is_due(set, now_ns);
	if (!set->looked)
		return false;
	set->sources->ready = false;
	set->looked_ns = now_ns;
	set->n_last_looks = set->sources->ended && !set->error ? set->n_last_looks + 1 : 0;
	if (set->flush)
		set->flushed_ns = now_ns;
	set->unopened = open_streams(set);
	any = set->flush;
	set->wait_ns = UINT64_MAX;
	for (uint32_t i = 0; i < set->n_streams; i++) {
		look_at(set, i, now_ns);
		any = any || set->streams[i].due;
	}
	if (set->damaged && set->sources->own)
		quarantine_siblings(set);
	return any;
}

static bool needs_file(const struct stream *s)
{
	return s->due && !stream_has_packets(s);
}

/*
 * Returns true if a stream's first file can wait, because this round has made n_new. A set that has
 * ended is written in one round.
 */
static bool may_wait(const struct stream_set *set, const struct stream *s, unsigned int n_new)
{
	return needs_file(s) && !set->flush && !set->sources->ended &&
	       n_new >= (s->source->released ? NEW_FILES_MAX_RELEASED : NEW_FILES_MAX);
}

void stream_set_write(struct stream_set *set, uint64_t now_ns, uint64_t *alive_ns)
{
	unsigned int n_new = 0;

	if (!set->looked)
		return;
	set->error = set->unopened;
	set->failed = set->n_streams;
	for (uint32_t i = 0; i < set->n_streams; i++) {
		struct stream *s = &set->streams[i];
		int ret;

		if (may_wait(set, s, n_new)) {
			set->wait_ns = 0; /* soon */
			continue;
		}
		n_new += needs_file(s);
		ret = stream_write(s, set->flush, now_ns);
		__atomic_store_n(alive_ns, ky_loop_now_ns(), __ATOMIC_RELAXED);
		if (!ret || set->error)
			continue;
		set->error = ret;
		set->failed = i;
	}
}

uint64_t stream_set_size_after(const struct stream_set *set, uint64_t ts)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < set->n_streams; i++)
		sum += stream_size_after(&set->streams[i], ts);
	return sum;
}

void stream_set_leave_out(struct stream_set *set, uint64_t ts)
{
	for (uint32_t i = 0; i < set->n_streams; i++)
		set->n_left_out += stream_leave_out(&set->streams[i], ts);
}

/* Readers count losses in files: those of streams that have got none go to another stream. */
static void report_unreported(struct stream_set *set, uint64_t clock_now)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < set->n_streams; i++)
		n += stream_count_unreported(&set->streams[i]);
	for (i = 0; n && i < set->n_streams; i++) {
		struct stream *s = &set->streams[i];

		if (s->to->n_packets && !s->source->abandoned && !stream_count_unreported(s) &&
			!stream_report_for_others(s, n, clock_now))
			break;
	}
	if (!n || i == set->n_streams)
		return;
	for (i = 0; i < set->n_streams; i++)
		set->streams[i].end.n_discarded += stream_count_unreported(&set->streams[i]);
}

void stream_set_give_up(struct stream_set *set)
{
	/* a copy may be of an earlier boot, with another clock */
	uint64_t now = set->sources->copied ? 0 : ky_clock_read(set->sources->clock);

	for (uint32_t i = 0; i < set->n_streams; i++) {
		struct stream *s = &set->streams[i];

		/* The last records of such a ring cannot even be counted. */
		if (!s->source->abandoned && !s->source->settled)
			quarantine_stream(set, i);
		stream_give_up(s, now);
	}
	report_unreported(set, now);
}

bool stream_set_has_packets(const struct stream_set *set)
{
	for (uint32_t i = 0; i < set->n_streams; i++)
		if (stream_has_packets(&set->streams[i]))
			return true;
	return false;
}

void stream_set_prepare(struct stream_set *set, uint64_t chunk, bool drop)
{
	for (uint32_t i = 0; i < set->n_streams; i++)
		stream_prepare(&set->streams[i], chunk, drop);
}

void stream_set_enter(struct stream_set *set)
{
	for (uint32_t i = 0; i < set->n_streams; i++) {
		trace_uuid(set->trace, set->streams[i].header.uuid);
		stream_enter(&set->streams[i], set->trace->chunk);
	}
}

bool stream_set_is_spoiled(const struct stream_set *set)
{
	return set->n_quarantined && !set->sources->own;
}

uint64_t stream_set_kept(const struct stream_set *set)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < set->n_streams; i++)
		sum += stream_kept(&set->streams[i]);
	return sum;
}

void stream_set_add_stats(const struct stream_set *set, struct ky_cons_stats *stats)
{
	for (uint32_t i = 0; i < set->n_streams; i++)
		stream_add_stats(&set->streams[i], stats);
	stats->n_quarantined += set->n_quarantined;
	stats->overwritten += set->sources->n_overwritten;
	stats->left_out += set->n_left_out;
}
