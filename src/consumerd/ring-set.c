/* SPDX-License-Identifier: MIT */
#include "consumerd/ring-set.h"

#include <sys/mman.h>

#include "base/clock.h"
#include "consumerd/trace-dir.h"
#include "ring/slots.h"
#include "ring/snapshot.h"
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
#define DAY_US		       (UINT64_C(86400) * 1000000)

static struct stream_place place_of(const struct ring_set *set, uint32_t i)
{
	return (struct stream_place){
		.dir = set->trace->dir_fd,
		.index_dir = set->trace->index_fd,
		.base = set->name,
		.n = i,
		.max_size = set->file_size,
		.max_files = set->n_files,
		.direct_from_ns = &set->trace->direct_from_ns,
	};
}

/*
 * Maps a file. The file may be shorter, or become so: the bytes beyond its end are zeros
 * (svc/sigbus.h).
 */
static int map_file(int fd, uint64_t size, int prot, void **ret_base)
{
	void *base = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	*ret_base = base;
	return 0;
}

static struct ky_resume_stream *resume_memory(const struct ring_set *set)
{
	return (void *)((char *)set->consumed + ky_resume_offset(set->geometry.n_rings));
}

static bool is_per_thread(const struct ring_set *set)
{
	return set->geometry.mode == KY_SET_PER_THREAD;
}

static void init_stream(struct ring_set *set, uint32_t i)
{
	struct stream *s = &set->streams[i];

	stream_init(s, ky_loop_now_ns());
	ky_drain_init(&s->drain, &set->geometry, set->rings, i);
	s->since = ky_clock_read(set->geometry.clock);
	s->consumed = &set->consumed[i];
	s->resume = &resume_memory(set)[i];
	s->per_thread = is_per_thread(set);
	s->header.stream_id = set->stream_id;
	s->header.stream_instance_id = (uint64_t)set->instance << 32 | i;
	if (!s->per_thread)
		s->header.cpu_id = i;
	trace_uuid(set->trace, s->header.uuid);
}

/* One process has all rings of the set. */
static bool is_own(const struct ring_set *set)
{
	return set->instance;
}

static void report_damage(struct ring_set *set, uint32_t i)
{
	set->n_quarantined++;
	if (!is_own(set))
		ky_error(
			"%s/%s_%u: a program has damaged this ring; it is not read any more, the others are",
			set->trace->dir, set->name, i);
	else if (set->n_quarantined == 1)
		ky_error(
			"%s/%s: the process has damaged its own buffers; they are not read any more, those of others are",
			set->trace->dir, set->name);
}

/* Quarantines a ring for ever: after invalid control words, nothing in it can be trusted. */
static void quarantine(struct ring_set *set, uint32_t i)
{
	struct stream_place place = place_of(set, i);
	int ret = stream_set_apart(
		&set->streams[i], &place, ky_clock_read(set->geometry.clock), is_own(set));

	report_damage(set, i);
	if (ret < 0)
		ky_error(
			"%s/%s_%u: cannot be moved to 'damaged' (%s): babeltrace2 may refuse the trace until it is removed",
			set->trace->dir, set->name, i, strerror(-ret));
}

/* A process that damaged one ring of its own can have written into all of them. */
static void quarantine_siblings(struct ring_set *set)
{
	for (uint32_t i = 0; i < set->n_streams; i++)
		if (!set->streams[i].drain.quarantined)
			quarantine(set, i);
}

static int resume_stream(struct ring_set *set, uint32_t i)
{
	struct stream_place place = place_of(set, i);
	int ret = set->trace->root_fd < 0 ? 0 : trace_open_dirs(set->trace, false);

	if (ret < 0 && ret != -ENOENT)
		return ret;
	place.dir = set->trace->dir_fd;
	place.index_dir = set->trace->index_fd;
	ret = stream_resume(&set->streams[i], ret ? NULL : &place, set->trace->chunk);
	if (ret == -EBADMSG)
		ky_error("%s/%s_%u: cannot go on in this file: it is another one", set->trace->dir,
			set->name, i);
	return ret;
}

/* Removes the files of a copy that an interrupted recovery has written. */
static void remove_files(struct ring_set *set, uint32_t i)
{
	struct stream_place place;

	if (set->trace->root_fd < 0 || trace_open_dirs(set->trace, false) < 0)
		return;
	place = place_of(set, i);
	stream_file_remove(&place, 0);
}

/* An earlier consumer gave the ring up. */
static void go_on_without(struct ring_set *set, uint32_t i)
{
	stream_leave_apart(&set->streams[i]);
	set->n_quarantined++;
}

/* Opens a ring's stream. Returns 0 or -errno; only -EBADMSG is permanent. */
static int open_stream(struct ring_set *set, uint32_t i)
{
	int ret = 0;

	init_stream(set, i);
	if (set->trace->resume && set->copied)
		remove_files(set, i);
	else if (set->trace->resume)
		ret = resume_stream(set, i);
	if (ret < 0)
		stream_deinit(&set->streams[i]);
	else if (set->streams[i].base.given_up)
		go_on_without(set, i);
	return ret;
}

/* Opens streams for the first n rings. */
static int open_streams(struct ring_set *set, uint32_t n)
{
	int ret = 0;

	while (!ret && set->n_streams < n) {
		ret = open_stream(set, set->n_streams);
		set->n_streams += !ret;
	}
	return ret;
}

/*
 * Returns the number of rings that may hold records. Of threads' rings, the first counts the events
 * that had no ring.
 */
static uint32_t n_used(const struct ring_set *set, void *rings)
{
	return is_per_thread(set) ? KY_MAX(ky_slots_claimed(&set->geometry, rings), 1u)
				  : set->geometry.n_rings;
}

static int map_private(uint64_t size, void **ret_base)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (base == MAP_FAILED)
		return -errno;
	*ret_base = base;
	return 0;
}

static int map_shared(struct ring_set *set, int rings_fd, int consumed_fd)
{
	int ret = map_file(rings_fd, set->geometry.total_size, PROT_READ, &set->rings);

	if (ret < 0)
		return ret;
	return map_file(consumed_fd, ky_consumed_size(set->geometry.n_rings),
		PROT_READ | PROT_WRITE, (void **)&set->consumed);
}

/* Maps private memory of the same layout. */
static int map_copy(struct ring_set *set)
{
	int ret = map_private(set->geometry.total_size, &set->rings);

	return ret < 0 ? ret
		       : map_private(
				 ky_consumed_size(set->geometry.n_rings), (void **)&set->consumed);
}

static int copy_rings(struct ring_set *set, int rings_fd)
{
	void *shared = NULL;
	int ret = map_file(rings_fd, set->geometry.total_size, PROT_READ, &shared);

	if (ret < 0)
		return ret;
	open_streams(set, n_used(set, shared));
	for (uint32_t i = 0; i < set->n_streams; i++) {
		struct ky_drain *d = &set->streams[i].drain;

		if (ky_snapshot_ring(d, &set->geometry, shared, set->rings, i) == -EBADMSG)
			quarantine(set, i);
		set->n_overwritten += d->count;
	}
	munmap(shared, set->geometry.total_size);
	return 0;
}

static int build(
	struct ring_set *set, const struct ky_cons_ring_set *m, int rings_fd, int consumed_fd)
{
	int ret;

	KY_GEOMETRY_COPY(&set->geometry, m);
	ret = ky_geometry_take(&set->geometry);
	if (ret < 0 || !trace_dir_name_valid(m->name) ||
		(m->file_size && m->file_size < set->geometry.block_size))
		return -EBADMSG;
	set->copied = consumed_fd < 0;
	if (!set->copied) { /* a copy has no other memory */
		set->file_size = m->file_size;
		set->n_files = m->n_files;
	}
	set->name = strdup(m->name);
	set->streams = calloc(m->n_rings, sizeof(*set->streams));
	if (!set->name || !set->streams)
		return -ENOMEM;
	set->stream_id = m->stream_id;
	set->instance = m->instance;
	ret = set->copied ? map_copy(set) : map_shared(set, rings_fd, consumed_fd);
	if (ret < 0)
		return ret;
	return set->copied ? copy_rings(set, rings_fd) : open_streams(set, n_used(set, set->rings));
}

int ring_set_new(const struct ky_cons_ring_set *m, struct trace *trace, int rings_fd,
	int consumed_fd, struct ring_set **ret_set)
{
	struct ring_set *set = calloc(1, sizeof(*set));
	int ret;

	if (!set)
		return -ENOMEM;
	ky_list_init(&set->node);
	set->id = m->set;
	set->flushed_ns = ky_loop_now_ns();
	set->switch_ns = SWITCH_NS;
	set->trace = trace;
	ret = build(set, m, rings_fd, consumed_fd);
	if (ret < 0) {
		ring_set_free(set);
		return ret;
	}
	*ret_set = set;
	return 0;
}

struct ring_set *ring_set_free(struct ring_set *set)
{
	if (!set)
		return NULL;
	ky_list_remove(&set->node);
	for (uint32_t i = 0; i < set->n_streams; i++)
		stream_deinit(&set->streams[i]);
	if (set->rings)
		munmap(set->rings, set->geometry.total_size);
	if (set->consumed)
		munmap(set->consumed, ky_consumed_size(set->geometry.n_rings));
	free(set->streams);
	free(set->name);
	free(set);
	return NULL;
}

void ring_set_time(struct ring_set *set, uint64_t switch_us, uint64_t read_us)
{
	set->switch_ns = KY_MIN(switch_us, DAY_US) * 1000;
	set->read_ns = KY_MIN(read_us, DAY_US) * 1000;
}

/* Returns the time until the next look, if nothing else happens. */
static uint64_t period(const struct ring_set *set)
{
	if (set->retiring)
		return PERIOD_MAX_NS;
	return set->read_ns ? set->read_ns
			    : KY_MAX(KY_MIN(set->fill_ns / 4, PERIOD_MAX_NS), PERIOD_MIN_NS);
}

uint64_t ring_set_next_look(const struct ring_set *set)
{
	uint64_t look = set->looked_ns + period(set), flush = set->flushed_ns + set->switch_ns;

	return set->switch_ns ? KY_MIN(look, flush) : look;
}

/*
 * Fetches a ring's head. If a thread gave its ring back, or its process exited, all of the ring is
 * due at once. Then the consumer does not read the ring until another thread has it. The first ring
 * is an exception: it counts the events that had no ring.
 */
static void look_at(struct ring_set *set, uint32_t i, uint64_t now_ns)
{
	struct stream *s = &set->streams[i];
	uint64_t word = KY_SLOT_OWNED;

	s->due = false;
	if (s->drain.quarantined) {
		if (!is_own(set))
			stream_look_apart(s);
		s->due = set->flush;
		return;
	}
	if (set->retiring)
		word = 0;
	else if (s->per_thread)
		word = ky_slot_word(&set->geometry, set->rings, i);
	s->released = !(word & KY_SLOT_OWNED);
	if (i && s->released && s->drained == word)
		return;
	if (!stream_look(s, set->flush, now_ns))
		quarantine(set, i);
	if (s->released && stream_is_drained(s))
		s->drained = word;
	/* When threads exit, new ones may soon need their rings. */
	set->fill_ns = s->released && s->due ? 0 : KY_MIN(set->fill_ns, s->fill_ns);
}

bool ring_set_look(struct ring_set *set, bool flush, uint64_t now_ns)
{
	bool any;

	set->flush = flush || (set->switch_ns && now_ns - set->flushed_ns >= set->switch_ns);
	/* Sets without a period of their own are due whenever the consumer is awake. */
	set->looked = set->flush || set->retiring || !set->read_ns ||
		      now_ns - set->looked_ns >= set->read_ns;
	if (!set->looked)
		return false;
	set->looked_ns = now_ns;
	if (set->flush)
		set->flushed_ns = now_ns;
	set->unopened = open_streams(set, n_used(set, set->rings));
	if (set->unopened == -EBADMSG) {
		ky_drain_abandon(&set->streams[set->n_streams].drain);
		report_damage(set, set->n_streams++);
		set->unopened = 0;
	}
	any = set->flush;
	set->fill_ns = UINT64_MAX;
	for (uint32_t i = 0; i < set->n_streams; i++) {
		look_at(set, i, now_ns);
		any = any || set->streams[i].due;
	}
	if (set->n_quarantined && is_own(set))
		quarantine_siblings(set);
	return any;
}

static bool needs_file(const struct stream *s)
{
	return s->due && !stream_has_packets(s);
}

/*
 * Returns true if a stream's first file can wait, because this round has made n_new. A retiring set
 * is written in one round.
 */
static bool may_wait(const struct ring_set *set, const struct stream *s, unsigned int n_new)
{
	return needs_file(s) && !set->flush && !set->retiring &&
	       n_new >= (s->released ? NEW_FILES_MAX_RELEASED : NEW_FILES_MAX);
}

void ring_set_write(struct ring_set *set, uint64_t now_ns, uint64_t *alive_ns)
{
	unsigned int n_new = 0;

	if (!set->looked)
		return;
	set->error = set->unopened;
	set->failed = set->n_streams;
	for (uint32_t i = 0; i < set->n_streams; i++) {
		struct stream_place place = place_of(set, i);
		struct stream *s = &set->streams[i];
		int ret;

		if (may_wait(set, s, n_new)) {
			set->fill_ns = 0; /* soon */
			continue;
		}
		n_new += needs_file(s);
		ret = stream_write(s, &place, set->flush, now_ns);
		__atomic_store_n(alive_ns, ky_loop_now_ns(), __ATOMIC_RELAXED);
		if (!ret || set->error)
			continue;
		set->error = ret;
		set->failed = i;
	}
}

uint64_t ring_set_size_after(const struct ring_set *set, uint64_t ts)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < set->n_streams; i++)
		sum += stream_size_after(&set->streams[i], ts);
	return sum;
}

void ring_set_leave_out(struct ring_set *set, uint64_t ts)
{
	for (uint32_t i = 0; i < set->n_streams; i++)
		set->n_left_out += stream_leave_out(&set->streams[i], ts);
}

void ring_set_give_up(struct ring_set *set)
{
	for (uint32_t i = 0; i < set->n_streams; i++) {
		struct stream_place place = place_of(set, i);
		struct stream *s = &set->streams[i];

		/* The last records of such a ring cannot even be counted. */
		if (!s->drain.quarantined && !s->drain.settled)
			quarantine(set, i);
		stream_give_up(s, &place);
	}
}

bool ring_set_has_packets(const struct ring_set *set)
{
	for (uint32_t i = 0; i < set->n_streams; i++)
		if (stream_has_packets(&set->streams[i]))
			return true;
	return false;
}

void ring_set_prepare(struct ring_set *set, uint64_t chunk, bool drop)
{
	for (uint32_t i = 0; i < set->n_streams; i++)
		stream_prepare(&set->streams[i], chunk, drop);
}

void ring_set_enter(struct ring_set *set)
{
	for (uint32_t i = 0; i < set->n_streams; i++) {
		trace_uuid(set->trace, set->streams[i].header.uuid);
		stream_enter(&set->streams[i], set->trace->chunk);
	}
}

bool ring_set_is_spoiled(const struct ring_set *set)
{
	return set->n_quarantined && !is_own(set);
}

uint64_t ring_set_kept(const struct ring_set *set)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < set->n_streams; i++)
		sum += stream_kept(&set->streams[i]);
	return sum;
}

void ring_set_add_stats(const struct ring_set *set, struct ky_cons_stats *stats)
{
	for (uint32_t i = 0; i < set->n_streams; i++)
		stream_add_stats(&set->streams[i], stats);
	stats->n_quarantined += set->n_quarantined;
	stats->overwritten += set->n_overwritten;
	stats->left_out += set->n_left_out;
}
