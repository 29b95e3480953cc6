/* SPDX-License-Identifier: MIT */
/* The ring sets that this process has mapped, and the hooks that connect events with them. */
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "ring/slots.h"
#include "tracer/cgroup.h"
#include "tracer/context.h"
#include "tracer/filter.h"
#include "tracer/special.h"
#include "tracer/statedump.h"
#include "tracer/tracer.h"
#include "tracer/trigger.h"

/*
 * How far ahead of a ring's head its pages are populated: this many times what was written since
 * the last check, because the next check may come after twice the time. A ring with few events
 * keeps the memory that they need, and no more.
 */
#define POPULATE_TIMES 8
#define POPULATE_MAX   ((uint64_t)4 << 20)
/* Bytes of data that are populated in a slot that no thread owns yet. */
#define PREPARE_BYTES ((uint64_t)64 << 10)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Part of the control group's memory that a set's rings may grow to in this application. */
#define GROUP_PART 8

/* Longest wait of an event for room while no daemon is connected. */
#define ORPHAN_WAIT_NS UINT64_C(1000000000)

/* ky_hook.mapped */
enum { HOOK_FREE, HOOK_MAPPED, HOOK_RETIRED };
/* minimum rest of a hook before it gets other filters */
#define FILTERS_REST_NS UINT64_C(10000000000)

static struct tracer_set *find_set(struct tracer_conn *conn, uint32_t id)
{
	for (uint32_t i = 0; i < tracer.n_sets; i++)
		if (tracer_sets[i].conn == conn && tracer_sets[i].set.id == id)
			return &tracer_sets[i];
	return NULL;
}

/* If the application's address space is limited, rings take at most this part of it. */
#define SPACE_PART 8
/* An address space below this is for the application alone. */
#define SPACE_MIN ((rlim_t)32 << 20)

static bool is_too_much(uint64_t size)
{
	struct rlimit space;

	return getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
	       (size > space.rlim_cur / SPACE_PART || space.rlim_cur < SPACE_MIN);
}

/* Returns 0, or -errno if a set of this size cannot be mapped from fd. */
static int check_size(int fd, uint64_t size)
{
	struct stat st;

	if (is_too_much(size))
		return -ENOMEM;
	if (fstat(fd, &st) < 0)
		return -errno;
	return size > SIZE_MAX || st.st_size < 0 || (uint64_t)st.st_size < size ? -EINVAL : 0;
}

/*
 * Maps the first `size` bytes of fd, so that children do not inherit them. Returns NULL and sets
 * errno on failure.
 */
static void *map_shared(int fd, uint64_t size, int prot)
{
	void *p = mmap(NULL, (size_t)size, prot, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, (size_t)size, MADV_DONTDUMP);
	if (tracer.has_rseq)
		madvise(p, (size_t)size, MADV_DONTFORK); /* else see tracer_sets_reset */
	return p;
}

/* Maps threads' rings, up to this slot. Returns 0 or -errno. */
static int map_slot(struct tracer_set *s, uint32_t slot)
{
	struct ky_parts *parts = &s->set.parts;
	int fd = tracer_fd_is_ours(&s->rings) ? s->rings.fd : -1;

	if (ky_parts_find(parts, slot))
		return 0;
	if (!ky_parts_extend(parts, &s->set.geo, slot, fd))
		return errno ? -errno : -EINVAL;
	ky_parts_advise(parts, &s->set.geo, MADV_DONTDUMP);
	if (tracer.has_rseq)
		ky_parts_advise(parts, &s->set.geo, MADV_DONTFORK);
	return 0;
}

static size_t size_of_base(const struct tracer_set *s)
{
	return (size_t)(s->in_parts ? s->set.geo.ctl_offset : s->set.geo.total_size);
}

static void unmap_set(struct tracer_set *s)
{
	struct ky_set *set = &s->set;

	if (s->in_parts)
		ky_parts_unmap(&set->parts, &set->geo);
	memset(&set->parts, 0, sizeof(set->parts));
	if (set->base)
		munmap(set->base, size_of_base(s));
	if (set->consumed)
		munmap((void *)set->consumed, set->consumed_size);
	set->base = NULL;
	set->consumed = NULL;
	tracer_fd_drop(&s->rings);
}

/* A 32-bit process has few addresses, too. */
static bool needs_parts(const struct ky_geometry *g)
{
	return g->mode == KY_SET_PER_THREAD && (tracer.spare_mappings || sizeof(void *) == 4);
}

/* Maps the set: in parts, if that spares something, the first one only. Returns 0 or -errno. */
static int map_set(struct tracer_set *s, int rings_fd, int consumed_fd)
{
	struct ky_set *set = &s->set;
	int ret = check_size(rings_fd, set->geo.total_size);

	s->rings = (struct tracer_fd){.fd = -1};
	s->in_parts = needs_parts(&set->geo);
	if (!ret)
		ret = check_size(consumed_fd, set->consumed_size);
	if (ret < 0)
		return ret;
	set->base = map_shared(rings_fd, size_of_base(s), PROT_READ | PROT_WRITE);
	set->consumed = map_shared(consumed_fd, set->consumed_size, PROT_READ);
	if (!set->base || !set->consumed) {
		ret = -errno;
	} else if (!s->in_parts) {
		ky_parts_set_whole(&set->parts, set->base);
	} else {
		s->rings = tracer_fd_adopt(fcntl(rings_fd, F_DUPFD_CLOEXEC, 0), S_IFREG);
		ret = map_slot(s, 0);
	}
	if (ret < 0)
		unmap_set(s);
	return ret;
}

/*
 * Prepares the tables with an entry for each ring, zeroed. Uses those of the slot's last set again
 * if they are large enough.
 */
static bool prepare_tables(struct tracer_set *s, uint32_t n_rings)
{
	if (s->rings_cap >= n_rings)
		return true; /* drop() has cleared them */
	s->set.used = tracer_alloc(n_rings, false);
	s->populated = tracer_alloc(n_rings * sizeof(*s->populated), false);
	s->rings_cap = s->set.used && s->populated ? n_rings : 0;
	return s->rings_cap;
}

/* Returns the number of rings that any process has written. */
static uint32_t n_rings_used(const struct ky_set *set)
{
	return set->geo.mode == KY_SET_PER_THREAD ? ky_slots_claimed(&set->geo, set->base)
						  : set->geo.n_rings;
}

/* Clears only the used part of the tables: the rest may not be in memory. */
static void clear_tables(struct tracer_set *s)
{
	uint32_t n = n_rings_used(&s->set);

	memset(s->set.used, 0, n);
	memset(s->populated, 0, n * sizeof(*s->populated));
}

static bool is_orphan(const struct tracer_set *s)
{
	return s->standing == TRACER_ORPHAN;
}

static int drop(struct tracer_set *s);
static bool grow_pool(struct tracer_set *s);

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

int tracer_set_add(
	struct tracer_conn *conn, const struct ky_app_ring_set *msg, int rings_fd, int consumed_fd)
{
	static KY_WRITTEN_EARLY uint32_t n_turns;
	struct tracer_set *s = NULL;
	struct ky_geometry geo;
	struct stat st;
	int ret;

	memset(&geo, 0, sizeof(geo));
	KY_GEOMETRY_COPY(&geo, msg);
	if (ky_geometry_take(&geo) < 0 || (geo.mode == KY_SET_PER_CPU && !tracer.has_rseq))
		return -EBADMSG;
	if (!msg->set || (find_set(conn, msg->set) && !is_orphan(find_set(conn, msg->set))))
		return -EEXIST;
	if (fstat(rings_fd, &st) < 0)
		return -errno;
	if (confirm(find_set(conn, msg->set), &geo, &st, msg->session))
		return 0;
	for (uint32_t i = 0; i < tracer.n_sets && !s; i++)
		if (!tracer_sets[i].conn && !tracer_sets[i].zombie)
			s = &tracer_sets[i];
	/*
	 * Threads that end read n_sets; the sets that they search for are among those that they saw
	 * before.
	 */
	if (!s && tracer.n_sets < TRACER_MAX_SETS)
		s = &tracer_sets[__atomic_fetch_add(&tracer.n_sets, 1, __ATOMIC_RELAXED)];
	if (!s)
		return -ENOSPC;
	s->set.geo = geo;
	if (!prepare_tables(s, geo.n_rings))
		return -ENOMEM;
	s->set.consumed_size = geo.n_rings * sizeof(uint64_t);
	ret = map_set(s, rings_fd, consumed_fd);
	if (ret < 0)
		return ret;
	s->set.started = 0;
	s->set.wait_ns = 0;
	s->set.wait_once = 0;
	s->needs_limit = ky_geometry_spreads(&geo);
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
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	if (geo.mode == KY_SET_PER_THREAD)
		grow_pool(s);
	s->set.id = msg->set;
	s->conn = conn;
	return 0;
}

/*
 * Returns the function for records of an event that the daemon mapped to this identifier, with
 * these contexts.
 */
static ky_special_fn special_for(
	uint32_t id, const struct tracer_contexts *contexts, const struct tracer_filters *filters)
{
	if (id == KY_MAP_REFUSED)
		return tracer_record_refused;
	return contexts || filters ? tracer_record_special : NULL;
}

static ky_write_fn writer_of(const struct ky_set *set)
{
	struct ky_hook h;

	memset(&h, 0, sizeof(h));
	ky_hook_init(&h, (struct ky_set *)set, 0);
	return h.write;
}

/*
 * Returns true if the hook has rested long enough: any thread that had passed its old filters has
 * finished recording by then, unless it was off-CPU for FILTERS_REST_NS.
 */
static bool may_change_filters(const struct ky_hook *h)
{
	return ky_clock_read(KY_CLOCK_MONOTONIC) - h->retired_ns >= FILTERS_REST_NS;
}

/*
 * Returns a hook of e for the set: the one that it has, else a retired one, else a new one. A
 * thread may still hold an old hook, so a hook is used again only for the same writer, clock and
 * form of record.
 */
static struct ky_hook *find_hook(struct tracer_event *e, struct ky_set *set, ky_special_fn special,
	const struct tracer_contexts *contexts, const struct tracer_filters *filters)
{
	ky_write_fn write = writer_of(set);
	struct ky_hook **end = &e->hooks, *h;

	for (h = e->hooks; h; h = h->next)
		if (h->mapped == HOOK_MAPPED && h->set == set)
			return h;
	for (; (h = *end); end = &h->next)
		if (h->mapped == HOOK_FREE && h->write == write && h->clock == set->geo.clock &&
			h->special == special && h->contexts == contexts &&
			(h->filters == filters || may_change_filters(h)))
			return h;
	h = tracer_alloc(sizeof(*h), true);
	if (!h)
		return NULL;
	h->special = special;
	h->contexts = contexts;
	__atomic_store_n(end, h, __ATOMIC_RELEASE); /* pairs with ky_record's acquire */
	return h;
}

void tracer_set_contexts(struct tracer_conn *conn, const struct ky_app_contexts *msg)
{
	struct tracer_set *s = find_set(conn, msg->set);

	if (!s)
		return;
	s->contexts = tracer_contexts_intern(msg->list, msg->n);
	if (s->contexts)
		tracer_contexts_probe(s->contexts);
	conn->sent_uncounted = 0;
}

void tracer_set_blocking(struct tracer_conn *conn, const struct ky_app_blocking *msg)
{
	struct tracer_set *s = find_set(conn, msg->set);
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
	struct tracer_set *s = find_set(conn, msg->set);

	if (s)
		tracer_filters_learn(s, msg);
}

/*
 * Sets the filters for the hook's events. A hook without filters gets its `special` here: a thread
 * that has not seen it records an event as if it had been earlier.
 */
static void set_filters(
	struct ky_hook *h, ky_special_fn special, const struct tracer_filters *filters)
{
	/* Release: pairs with the acquire in special.c. */
	__atomic_store_n(&h->filters, filters, __ATOMIC_RELEASE);
	if (!h->special)
		__atomic_store_n(&h->special, special, __ATOMIC_RELEASE);
}

/*
 * Gives the event another identifier, or contexts, while it may be recorded: each record is made in
 * the old way or in the new one, never in both or none. One store decides: that of `special`, or of
 * `heir` if it is not the first.
 */
static void renew_hook(struct ky_hook *h, uint32_t id, ky_special_fn special,
	const struct tracer_contexts *contexts, const struct tracer_filters *filters)
{
	struct ky_hook *heir = tracer_alloc(sizeof(*heir), true);

	if (!heir)
		return; /* it stays unchanged */
	heir->special = special;
	heir->contexts = contexts;
	heir->filters = filters;
	heir->mapped = HOOK_MAPPED;
	ky_hook_init(heir, h->set, id);
	ky_hook_switch(heir, h->set->started);
	/* Release: both stores pair with the acquires of recording threads. */
	__atomic_store_n(&h->heir, heir, __ATOMIC_RELEASE);
	__atomic_store_n(&h->special, tracer_record_renewed, __ATOMIC_RELEASE);
}

static bool needs_heir(const struct ky_hook *h, uint32_t id)
{
	return h->mapped == HOOK_MAPPED && (h->heir ? h->heir->id : h->id) != id;
}

static struct ky_hook *mapped_hook(const struct tracer_event *e, const struct tracer_set *s)
{
	for (struct ky_hook *h = e->hooks; h; h = h->next)
		if (h->mapped == HOOK_MAPPED && h->set == &s->set)
			return h;
	return NULL;
}

/*
 * Decides about an event whose contexts cannot be recorded. Returns false if it is mapped already,
 * and continues without these contexts. Otherwise its records have no form: returns true, and they
 * are to be counted as discarded.
 */
static bool refuse_contexts(const struct tracer_event *e, const struct tracer_set *s)
{
	if (mapped_hook(e, s))
		return false;
	if (e->ev)
		tracer_event_leave_out(e->ev,
			"libkymo cannot record its channel's contexts: it is older than the session daemon, or has too many lists of contexts");
	return true;
}

void tracer_set_map(struct tracer_conn *conn, const struct ky_app_map *msg)
{
	struct tracer_set *s = find_set(conn, msg->set);
	struct ky_reader r = {.buf = msg->list.data, .len = msg->list.len};

	for (uint32_t i = 0; s && i < msg->n && !r.error; i++) {
		uint32_t index = ky_read_u32(&r), id = ky_read_u32(&r);
		uint32_t n_contexts = ky_read_u32(&r), n_filters = ky_read_u32(&r);
		struct tracer_event *e = &tracer.events[index];
		const struct tracer_contexts *contexts = NULL;
		const struct tracer_filters *filters = NULL;
		struct ky_reader numbers = r;
		ky_special_fn special;
		struct ky_hook *h;

		for (uint32_t k = 0; k < n_filters && !r.error; k++)
			ky_read_u32(&r);
		if (r.error || index >= tracer.n_events)
			continue;
		if (n_contexts)
			contexts = tracer_contexts_first(s->contexts, n_contexts);
		if (n_contexts && !contexts) {
			if (!refuse_contexts(e, s))
				continue;
			id = KY_MAP_REFUSED;
		}
		if (n_filters && e->ev)
			filters = tracer_filters_get(s, numbers, n_filters, e->ev->fields);
		special = special_for(id, contexts, filters);
		h = find_hook(e, &s->set, special, contexts, filters);
		if (!h)
			continue;
		if (needs_heir(h, id))
			renew_hook(h, id, special, contexts, filters);
		set_filters(h, special, filters);
		if (h->heir)
			set_filters(h->heir, special, filters);
		if (h->mapped == HOOK_FREE) {
			ky_hook_init(h, &s->set, id);
			h->mapped = HOOK_MAPPED;
		}
		tracer_event_update(
			e); /* the event knows what its contexts need before it is recorded */
		ky_hook_switch(h, s->set.started);
		tracer_event_update(e);
	}
	tracer_queries_update();
}

void tracer_set_triggers(struct tracer_conn *conn, const struct ky_app_triggers *msg)
{
	struct tracer_set *s = find_set(conn, msg->set);
	struct tracer_event *e = msg->event < tracer.n_events ? &tracer.events[msg->event] : NULL;
	struct ky_hook *h = s && e && e->ev ? mapped_hook(e, s) : NULL;
	const struct tracer_filters *filters;

	if (!h || h->special == tracer_record_refused)
		return;
	filters = tracer_triggers_get(s, tracer_triggers_strip(h->filters), msg, e->ev->fields);
	set_filters(h, tracer_record_special, filters);
	if (h->heir)
		set_filters(h->heir, tracer_record_special, filters);
	tracer_event_update(e);
	ky_hook_switch(h, s->set.started);
	tracer_event_update(e);
	tracer_queries_update();
}

/*
 * Waits until no thread that saw a hook active is still writing: the kernel aborts restartable
 * sequences, and `users` counts everything else. Returns false if a thread stays inside (it is
 * stopped, or it jumped out of a signal handler).
 */
static bool quiesce(struct tracer_set *s)
{
	const struct timespec nap = {0, 100000};

	if (tracer.has_rseq &&
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0) < 0)
		return false; /* a seccomp filter has forbidden it meanwhile */
	for (int i = 0; __atomic_load_n(&s->set.users, __ATOMIC_SEQ_CST); i++) {
		if (i == 1000)
			return false;
		/*
		 * No thread may wait for this: in fork, or when objects are loaded. Only this
		 * thread changes sets.
		 */
		tracer_give_lock();
		nanosleep(&nap, NULL);
		tracer_take_lock();
	}
	return true;
}

/* Calls change(hook) for each mapped hook of the set, and updates the events. */
static void for_each_hook(struct tracer_set *s, void (*change)(struct ky_hook *h))
{
	for (uint32_t i = 0; i < tracer.n_events; i++) {
		struct tracer_event *e = &tracer.events[i];

		for (struct ky_hook *h = e->hooks; h; h = h->next) {
			if (h->mapped != HOOK_MAPPED || h->set != &s->set)
				continue;
			if (h->heir)
				change(h->heir);
			change(h);
			tracer_event_update(e);
		}
	}
	tracer_queries_update();
}

static void switch_on(struct ky_hook *h)
{
	ky_hook_switch(h, true);
}

static void switch_off(struct ky_hook *h)
{
	ky_hook_switch(h, false);
}

/* Retires a hook: it is not used again before it is certain that no thread holds it. */
static void retire_hook(struct ky_hook *h)
{
	switch_off(h);
	h->mapped = HOOK_RETIRED;
	h->retired_ns = ky_clock_read(KY_CLOCK_MONOTONIC);
}

/*
 * Waits for the writers; then the set's retired hooks are free. Returns false if a writer stays:
 * then they never become free.
 */
static bool free_retired(struct tracer_set *s)
{
	if (!quiesce(s))
		return false;
	for (uint32_t i = 0; i < tracer.n_events; i++)
		for (struct ky_hook *h = tracer.events[i].hooks; h; h = h->next)
			if (h->mapped == HOOK_RETIRED && h->set == &s->set)
				h->mapped = HOOK_FREE;
	return true;
}

void tracer_set_unmap(struct tracer_conn *conn, const struct ky_app_unmap *msg)
{
	struct tracer_set *s = find_set(conn, msg->set);
	struct ky_reader r = {.buf = msg->list.data, .len = msg->list.len};

	for (uint32_t i = 0; s && i < msg->n; i++) {
		uint32_t index = ky_read_u32(&r);

		if (r.error || index >= tracer.n_events)
			break;
		for (struct ky_hook *h = tracer.events[index].hooks; h; h = h->next)
			if (h->mapped == HOOK_MAPPED && h->set == &s->set) {
				retire_hook(h);
				if (h->heir)
					retire_hook(h->heir);
			}
		tracer_event_update(&tracer.events[index]);
	}
	tracer_queries_update();
	if (s)
		free_retired(s);
}

int tracer_set_start(struct tracer_conn *conn, uint32_t id)
{
	struct tracer_set *s = find_set(conn, id);

	if (!s)
		return -ENOENT;
	s->set.started = 1;
	s->standing = TRACER_KNOWN;
	for_each_hook(s, switch_on);
	return 0;
}

bool tracer_set_begins(struct tracer_conn *conn, uint32_t id)
{
	const struct tracer_set *s = find_set(conn, id);

	return s && s->standing == TRACER_KNOWN;
}

int tracer_set_stop(struct tracer_conn *conn, uint32_t id)
{
	struct tracer_set *s = find_set(conn, id);

	if (!s)
		return -ENOENT;
	s->set.started = 0;
	tracer_statedump_forget_set(s);
	for_each_hook(s, switch_off);
	return quiesce(s) ? 0 : -EBUSY;
}

static int drop(struct tracer_set *s)
{
	for_each_hook(s, retire_hook);
	s->set.started = 0;
	tracer_statedump_forget_set(s);
	__atomic_store_n(
		&s->set.id, 0, __ATOMIC_SEQ_CST); /* pairs with tracer_sets_release_thread */
	if (free_retired(s)) {
		clear_tables(s);
		unmap_set(s);
	} else {
		tracer_debug("a thread never left a ring set: its memory stays mapped");
		s->zombie = true;
	}
	s->conn = NULL;
	return s->zombie ? -EBUSY : 0;
}

int tracer_set_drop(struct tracer_conn *conn, uint32_t id)
{
	struct tracer_set *s = find_set(conn, id);

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
		limit_wait(&s->set);
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
			unmap_set(&tracer_sets[i]);
		memset(&tracer_sets[i], 0, sizeof(tracer_sets[i]));
	}
	tracer.n_sets = 0;
}

/*
 * Populates memory of a set at `base`. A failure (old kernel, memory limit) only means that the
 * writers access the pages first.
 */
static void make_present(void *base, uint64_t from, uint64_t to)
{
	from &= ~(uint64_t)4095;
	madvise((char *)base + from, (size_t)(ky_align_up(to, 4096) - from), MADV_POPULATE_WRITE);
}

/*
 * Populates what a thread writes first when it claims slot i: its word, control block, table, and
 * the begin of its data.
 */
static void prepare_slot(const struct ky_set *set, const struct ky_part *part, uint32_t i)
{
	const struct ky_geometry *g = &set->geo;
	uint64_t data = g->data_offset + i * g->data_stride;

	make_present(set->base, g->slot_offset + 8ull * i, g->slot_offset + 8ull * (i + 1));
	make_present(part->ctl, g->ctl_offset + (uint64_t)KY_CTL_SIZE * i,
		g->ctl_offset + (uint64_t)KY_CTL_SIZE * (i + 1));
	make_present(part->table, g->table_offset + g->table_stride * i,
		g->table_offset + g->table_stride * (i + 1));
	make_present(part->data, data, data + KY_MIN(g->data_stride, PREPARE_BYTES));
}

/* Returns the number of slots that are prepared now: up to `to`, or as many as can be mapped. */
static uint32_t prepare_slots(struct tracer_set *s, uint32_t from, uint32_t to)
{
	for (; from < to && !map_slot(s, from); from++)
		prepare_slot(&s->set, ky_parts_find(&s->set.parts, from), from);
	return from;
}

static uint32_t n_released(const struct ky_set *set, uint32_t n_claimed)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_claimed; i++)
		n += !(ky_slot_word(&set->geo, set->base, i) & KY_SLOT_OWNED);
	return n;
}

/*
 * Doubles the number of slots for the application if few are free; starts with `pool`. Released
 * slots are free, and so are unused slots that are prepared. Returns true if there was something to
 * do.
 */
static bool grow_pool(struct tracer_set *s)
{
	struct ky_set *set = &s->set;
	uint32_t claimed = ky_slots_claimed(&set->geo, set->base), n = set->geo.n_rings;
	uint32_t have = KY_MAX(set->n_prepared, claimed), unused = have - claimed, free, all, to;
	uint32_t own = KY_MIN(__atomic_load_n(&set->n_owned, __ATOMIC_RELAXED), n);
	bool first = !set->n_prepared;

	if (claimed)
		map_slot(s, KY_MIN(claimed, n) - 1);
	if (have == n || unused >= KY_MAX((own + unused) / 4, first ? set->pool : 2u))
		return false;
	free = unused + n_released(set, claimed);
	all = own + free;
	if (free >= KY_MAX(all / 4, first ? set->pool : 2u))
		return false;
	to = (uint32_t)KY_MIN(have + (uint64_t)KY_MAX(all, set->pool), n);
	to = prepare_slots(s, have, to);
	__atomic_store_n(&set->n_prepared, to, __ATOMIC_RELAXED);
	return to > have;
}

/* Populates a ring that this application writes. Returns true if there was something to do. */
static bool populate_ring(struct tracer_set *s, uint32_t i)
{
	struct ky_set *set = &s->set;
	struct ky_geometry *g = &set->geo;
	struct tracer_ring *ring = &s->populated[i];
	const struct ky_part *part = NULL;
	struct ky_ring_ctl *ctl;
	uint64_t pos, ahead, want, have;

	if (!__atomic_load_n(&set->used[i], __ATOMIC_RELAXED))
		return false;
	if (g->mode == KY_SET_PER_THREAD) {
		part = ky_parts_find(&set->parts, i);
		if (!part || ky_slot_word(g, set->base, i) >> 32 != ky_thread_process())
			return false;
	}
	have = KY_MAX(ring->present, part ? PREPARE_BYTES : 0);
	if (have >= ky_geometry_home_size(g))
		return false;
	ctl = ky_geometry_ctl(g, part ? part->ctl : set->base, i);
	pos = ky_head_pos(__atomic_load_n(&ctl->head, __ATOMIC_RELAXED), ring->seen);
	ahead = KY_MIN((pos - ring->seen) * POPULATE_TIMES, POPULATE_MAX);
	want = KY_MIN((pos + ahead) & ~(uint64_t)4095, ky_geometry_home_size(g));
	ring->seen = pos;
	if (want <= have)
		return false;
	ring->present = want;
	make_present(part ? part->data : set->base, g->data_offset + i * g->data_stride + have,
		g->data_offset + i * g->data_stride + want);
	return true;
}

bool tracer_sets_populate(void)
{
	bool busy = false;

	for (uint32_t i = 0; i < tracer.n_sets; i++) {
		struct tracer_set *s = &tracer_sets[i];

		if (!s->conn || !s->set.started)
			continue;
		if (s->set.geo.mode == KY_SET_PER_THREAD)
			busy |= grow_pool(s);
		for (uint32_t k = 0; k < n_rings_used(&s->set); k++)
			busy |= populate_ring(s, k);
	}
	return busy;
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
