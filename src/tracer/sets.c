/* SPDX-License-Identifier: MIT */
/* The ring sets that this process has: their lives, as the daemon's messages say. */
#include "tracer/sets.h"

#include <sys/stat.h>

#include "base/sys.h"
#include "ring/slots.h"
#include "tracer/cgroup.h"
#include "tracer/context.h"
#include "tracer/filter.h"
#include "tracer/statedump.h"

/* Part of the control group's memory that a set's rings may grow to in this application. */
#define GROUP_PART 8

/* Longest wait of an event for room while no daemon is connected. */
#define ORPHAN_WAIT_NS UINT64_C(1000000000)

struct tracer_set *tracer_set_find(struct tracer_conn *conn, uint32_t id)
{
	for (uint32_t i = 0; i < tracer.n_sets; i++)
		if (tracer_sets[i].conn == conn && tracer_sets[i].set.id == id)
			return &tracer_sets[i];
	return NULL;
}

static bool is_orphan(const struct tracer_set *s)
{
	return s->standing == TRACER_ORPHAN;
}

static int drop(struct tracer_set *s);

/*
 * Checks whether a set that the daemon's predecessor had under this number is the same one. If not,
 * drops it.
 */
static bool confirm(struct tracer_set *s, const struct ky_geometry *geo, const struct stat *st,
	uint32_t session)
{
	if (!s)
		return false;
	if (s->dev != st->st_dev || s->ino != st->st_ino ||
		s->set.geo.total_size != geo->total_size) {
		drop(s);
		return false;
	}
	s->standing = TRACER_CONFIRMED;
	s->session = session; /* the successor numbers sessions anew, too */
	s->n_programs = 0;    /* the successor numbers its programs anew */
	return true;
}

/*
 * Returns how many blocks at a ring's end this application leaves alone, because its control group
 * has little memory: a burst must not be the end of it.
 */
static uint32_t n_shunned(const struct ky_geometry *g, uint64_t memory_max)
{
	uint64_t size = memory_max / GROUP_PART / g->n_rings;
	uint64_t n = KY_MAX(size / g->block_size, (uint64_t)g->n_home);

	return n < g->n_blocks ? g->n_blocks - (uint32_t)n : 0;
}

bool tracer_sets_need_limit(void)
{
	for (uint32_t i = 0; i < tracer.n_sets; i++) {
		const struct tracer_conn *c = tracer_sets[i].conn;

		if (c && tracer_sets[i].needs_limit && c->answered == c->asked)
			return true;
	}
	return false;
}

void tracer_sets_limit(void)
{
	/* A filter may forbid to read the limit. */
	uint64_t max = tracer.filtered ? 0 : tracer_memory_max();

	for (uint32_t i = 0; i < tracer.n_sets; i++) {
		struct tracer_set *s = &tracer_sets[i];

		if (!s->conn || !s->needs_limit)
			continue;
		s->needs_limit = false;
		__atomic_store_n(&s->set.n_shunned, n_shunned(&s->set.geo, max), __ATOMIC_RELAXED);
	}
}

/* Returns an entry that no set has; NULL if there is none. */
static struct tracer_set *unused_entry(void)
{
	for (uint32_t i = 0; i < tracer.n_sets; i++)
		if (!tracer_sets[i].conn && !tracer_sets[i].zombie)
			return &tracer_sets[i];
	/*
	 * Threads that end read n_sets; the sets that they search for are among those that they saw
	 * before.
	 */
	return tracer.n_sets < TRACER_MAX_SETS
		       ? &tracer_sets[__atomic_fetch_add(&tracer.n_sets, 1, __ATOMIC_RELAXED)]
		       : NULL;
}

/* Sets all that a new set has but its geometry, its memory and its number. */
static void describe_set(
	struct tracer_set *s, const struct ky_app_ring_set *msg, const struct stat *rings)
{
	static KY_WRITTEN_EARLY uint32_t n_turns;

	s->set.started = 0;
	s->set.wait_ns = 0;
	s->set.wait_once = 0;
	s->needs_limit = ky_geometry_spreads(&s->set.geo);
	s->set.n_shunned = 0;
	s->set.turn = ++n_turns;
	s->set.named = msg->named;
	s->set.pool = msg->pool_size;
	s->set.n_prepared = 0;
	s->set.n_owned = 0;
	s->set.n_exhausted = 0;
	s->contexts = NULL;
	s->n_programs = 0;
	s->lasting = msg->lasting;
	s->session = msg->session;
	s->standing = TRACER_KNOWN;
	s->dev = rings->st_dev;
	s->ino = rings->st_ino;
}

int tracer_set_add(
	struct tracer_conn *conn, const struct ky_app_ring_set *msg, int rings_fd, int consumed_fd)
{
	struct tracer_set *s = tracer_set_find(conn, msg->set);
	struct ky_geometry geo;
	struct stat st;
	int ret;

	memset(&geo, 0, sizeof(geo));
	KY_GEOMETRY_COPY(&geo, msg);
	if (ky_geometry_take(&geo) < 0 || (geo.mode == KY_SET_PER_CPU && !tracer.has_rseq))
		return -EBADMSG;
	if (!msg->set || (s && !is_orphan(s)))
		return -EEXIST;
	if (ky_sys_fstat(rings_fd, &st) < 0)
		return -errno;
	if (confirm(s, &geo, &st, msg->session))
		return 0;
	s = unused_entry();
	if (!s)
		return -ENOSPC;
	s->set.geo = geo;
	if (!tracer_set_prepare_tables(s, geo.n_rings))
		return -ENOMEM;
	s->set.consumed_size = geo.n_rings * sizeof(uint64_t);
	ret = tracer_set_mmap(s, rings_fd, consumed_fd);
	if (ret < 0)
		return ret;
	describe_set(s, msg, &st);
	if (geo.mode == KY_SET_PER_THREAD)
		tracer_set_grow_pool(s);
	s->set.id = msg->set;
	s->conn = conn;
	return 0;
}

void tracer_set_contexts(struct tracer_conn *conn, const struct ky_app_contexts *msg)
{
	struct tracer_set *s = tracer_set_find(conn, msg->set);

	if (!s)
		return;
	s->contexts = tracer_contexts_intern(msg->list, msg->n);
	if (s->contexts)
		tracer_contexts_probe(s->contexts);
	conn->sent_uncounted = 0;
}

void tracer_set_blocking(struct tracer_conn *conn, const struct ky_app_blocking *msg)
{
	struct tracer_set *s = tracer_set_find(conn, msg->set);
	uint64_t ns;

	/*
	 * Overwrite mode always has room, except for handlers: these cannot wait for the record
	 * that they interrupted.
	 */
	if (!s || !tracer.allow_blocking || s->set.geo.overwrite)
		return;
	if (__builtin_mul_overflow(msg->timeout_us, UINT64_C(1000), &ns))
		ns = UINT64_MAX;
	__atomic_store_n(&s->set.wait_once, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&s->set.wait_ns, ns, __ATOMIC_RELAXED);
}

void tracer_set_filters(struct tracer_conn *conn, const struct ky_app_filters *msg)
{
	struct tracer_set *s = tracer_set_find(conn, msg->set);

	if (s)
		tracer_filters_learn(s, msg);
}

int tracer_set_start(struct tracer_conn *conn, uint32_t id)
{
	struct tracer_set *s = tracer_set_find(conn, id);

	if (!s)
		return -ENOENT;
	s->set.started = 1;
	s->standing = TRACER_KNOWN;
	tracer_set_switch_hooks(s);
	return 0;
}

bool tracer_set_begins(struct tracer_conn *conn, uint32_t id)
{
	const struct tracer_set *s = tracer_set_find(conn, id);

	return s && s->standing == TRACER_KNOWN;
}

int tracer_set_stop(struct tracer_conn *conn, uint32_t id)
{
	struct tracer_set *s = tracer_set_find(conn, id);

	if (!s)
		return -ENOENT;
	s->set.started = 0;
	tracer_statedump_forget_set(s);
	tracer_set_switch_hooks(s);
	return tracer_set_quiesce(s) ? 0 : -EBUSY;
}

static int drop(struct tracer_set *s)
{
	tracer_set_retire_hooks(s);
	s->set.started = 0;
	tracer_statedump_forget_set(s);
	__atomic_store_n(
		&s->set.id, 0, __ATOMIC_SEQ_CST); /* pairs with tracer_sets_release_thread */
	if (tracer_set_free_retired(s)) {
		tracer_set_clear_tables(s);
		tracer_set_munmap(s);
	} else {
		tracer_debug("a thread never left a ring set: its memory stays mapped");
		s->zombie = true;
	}
	s->conn = NULL;
	return s->zombie ? -EBUSY : 0;
}

int tracer_set_drop(struct tracer_conn *conn, uint32_t id)
{
	struct tracer_set *s = tracer_set_find(conn, id);

	return s ? drop(s) : -ENOENT;
}

/*
 * Limits the wait for room, because no daemon can end it now. The consumer may continue to make
 * room, or not.
 */
static void limit_wait(struct ky_set *set)
{
	__atomic_store_n(&set->wait_once, 1, __ATOMIC_RELAXED);
	if (__atomic_load_n(&set->wait_ns, __ATOMIC_RELAXED) > ORPHAN_WAIT_NS)
		__atomic_store_n(&set->wait_ns, ORPHAN_WAIT_NS, __ATOMIC_RELAXED);
}

void tracer_sets_drop_all(struct tracer_conn *conn)
{
	for (uint32_t i = 0; i < tracer.n_sets; i++)
		if (tracer_sets[i].conn == conn)
			drop(&tracer_sets[i]);
}

void tracer_sets_orphan(struct tracer_conn *conn)
{
	for (uint32_t i = 0; i < tracer.n_sets; i++) {
		struct tracer_set *s = &tracer_sets[i];

		if (s->conn != conn)
			continue;
		if (!s->lasting) {
			drop(s);
			continue;
		}
		s->standing = TRACER_ORPHAN;
		s->stopped_alone = false;
		limit_wait(&s->set);
	}
}

void tracer_sets_follow(struct tracer_conn *conn)
{
	for (uint32_t i = 0; i < tracer.n_sets; i++) {
		struct tracer_set *s = &tracer_sets[i];
		const char *page = s->set.base;
		bool stopped;

		if (s->conn != conn || s->standing != TRACER_ORPHAN || !page)
			continue;
		stopped = __atomic_load_n(
			(const uint64_t *)(const void *)(page + KY_SET_STOPPED), __ATOMIC_RELAXED);
		if (stopped ? !s->set.started : !s->stopped_alone)
			continue;
		s->set.started = !stopped;
		s->stopped_alone = stopped;
		tracer_set_switch_hooks(s);
	}
}

void tracer_sets_settle(struct tracer_conn *conn)
{
	for (uint32_t i = 0; i < tracer.n_sets; i++) {
		struct tracer_set *s = &tracer_sets[i];

		if (s->conn != conn)
			continue;
		if (s->standing == TRACER_ORPHAN)
			drop(s);
		else if (s->standing == TRACER_CONFIRMED)
			tracer_set_stop(conn, s->set.id);
		s->standing = TRACER_KNOWN;
	}
}

/*
 * In a forked child, only threads' rings are inherited and unmapped here: they are used under
 * valgrind, which does not handle mappings that are not inherited.
 */
void tracer_sets_reset(bool is_child)
{
	for (uint32_t i = 0; i < tracer.n_sets; i++) {
		if (!is_child || !tracer.has_rseq)
			tracer_set_munmap(&tracer_sets[i]);
		memset(&tracer_sets[i], 0, sizeof(tracer_sets[i]));
	}
	tracer.n_sets = 0;
}

void tracer_sets_release_thread(void)
{
	for (uint32_t i = 0; i < __atomic_load_n(&tracer.n_sets, __ATOMIC_RELAXED); i++) {
		struct ky_set *set = &tracer_sets[i].set;

		if (!__atomic_load_n(&set->id, __ATOMIC_RELAXED) ||
			set->geo.mode != KY_SET_PER_THREAD)
			continue;
		__atomic_fetch_add(&set->users, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&set->id, __ATOMIC_SEQ_CST))
			ky_thread_release(set);
		__atomic_fetch_sub(&set->users, 1, __ATOMIC_RELEASE);
	}
}
