/* SPDX-License-Identifier: MIT */
#include "sessiond/model/quota.h"

#include <inttypes.h>
#include <sys/sysinfo.h>

#include "base/text.h"
#include "sessiond/model/channel.h"
#include "sessiond/model/ring-set.h"
#include "sessiond/model/session.h"

#define LOOK_NS (1000 * KY_NS_PER_MS)

uint64_t quota_default(void)
{
	struct sysinfo info;

	return sysinfo(&info) < 0 ? UINT64_MAX : (uint64_t)info.totalram * info.mem_unit / 2;
}

int quota_parse(const char *text, uint64_t *ret_bytes)
{
	uint64_t bytes;

	if (ky_parse_size(text, &bytes) < 0 || !bytes)
		return -EINVAL;
	*ret_bytes = bytes;
	return 0;
}

/* Root's programs, which have buffers of their own without a request, are charged what they use. */
static uint64_t need_of(const struct ring_set *set)
{
	const struct ky_geometry *g = &set->geometry;
	uint32_t n = set->mode == KY_SET_PER_CPU ? g->n_rings : KY_MIN(g->n_rings, set->pool_size);

	if (ring_set_is_own(set) && set->channel->buffers == BUFFERS_AUTO)
		n = 0;
	return g->data_offset + n * g->data_stride;
}

static uint64_t bytes_of(const struct ring_set *set)
{
	return KY_MAX(need_of(set), ring_memory_in_use(&set->memory));
}

/* Charges the set's user these bytes for the set, and no longer what was charged before. */
static void charge(struct ring_set *set, uint64_t bytes)
{
	set->registry->set_bytes += bytes - set->charged;
	set->charged = bytes;
}

static uint64_t sum_of_session(const struct session *s, uid_t uid)
{
	const struct registry *r;
	const struct channel *c;
	uint64_t sum = 0;

	ky_list_foreach (r, &s->registries, node)
		if (r->uid == uid)
			sum += r->log_size + r->set_bytes;
	ky_list_foreach (c, &s->channels, node)
		sum += s->uid == uid ? c->kernel_bytes : 0;
	return sum;
}

static uint64_t sum_of_user(const struct env *e, uid_t uid)
{
	const struct session *s;
	uint64_t sum = 0;

	ky_list_foreach (s, &e->sessions, node)
		sum += sum_of_session(s, uid);
	return sum;
}

/* Returns true if programs may take more for the set than what it needs at least. */
static bool may_need_more(const struct ring_set *set)
{
	return ring_set_is_made(set) && need_of(set) < set->geometry.total_size;
}

/* Charges again what may have changed: a system call for each set. */
static void measure_sets(struct env *e)
{
	struct ring_set *set;
	struct session *s;
	struct channel *c;

	e->quota_measured_ns = ky_loop_time_ns(&e->loop);
	ky_list_foreach (s, &e->sessions, node)
		ky_list_foreach (c, &s->channels, node)
			ky_list_foreach (set, &c->sets, node)
				if (may_need_more(set))
					charge(set, bytes_of(set));
}

/* Returns what the user has: some of it as it was at most LOOK_NS ago. */
static uint64_t recent_sum_of_user(struct env *e, uid_t uid)
{
	if (ky_loop_time_ns(&e->loop) - e->quota_measured_ns >= LOOK_NS)
		measure_sets(e);
	return sum_of_user(e, uid);
}

bool quota_allows(struct env *e, uid_t uid, uint64_t bytes)
{
	uint64_t sum = recent_sum_of_user(e, uid);

	return sum <= e->user_memory_max && bytes <= e->user_memory_max - sum;
}

static void set_sized(const struct ring_set *set, uint64_t *max)
{
	struct env *e = set->channel->session->env;
	uint64_t half = e->user_memory_max / 2, sum = recent_sum_of_user(e, set->uid);

	*max = KY_MIN(*max, (half - KY_MIN(half, sum)) / 8);
}

static int set_wanted(struct ring_set *set)
{
	struct env *e = set->channel->session->env;

	if (recent_sum_of_user(e, set->uid) + need_of(set) <= e->user_memory_max)
		return 0;
	ring_set_set_state(set, SET_WAITING);
	e->sets_wait = true;
	return -EUSERS;
}

static void set_freed(struct ring_set *set)
{
	struct env *e = set->channel->session->env;

	if (!ring_set_is_made(set))
		return;
	charge(set, 0);
	if (e->sets_wait)
		ky_job_add(&e->loop, &e->quota_job);
}

/* Gives the sets that wait for memory another try. Returns whether there are any. */
static bool reset_waiting(struct channel *c)
{
	struct ring_set *set;
	bool any = false;

	ky_list_foreach (set, &c->sets, node) {
		if (set->state != SET_WAITING)
			continue;
		ring_set_set_state(set, SET_KNOWN);
		any = true;
	}
	return any;
}

static void retry_sets(struct ky_job *j)
{
	struct env *e = ky_container_of(j, struct env, quota_job);
	struct session *s;
	struct channel *c;

	e->sets_wait = false;
	ky_list_foreach (s, &e->sessions, node)
		ky_list_foreach (c, &s->channels, node)
			if (reset_waiting(c))
				OBSERVE(e, memory_freed, c);
}

/* Threads' buffers of memfds: files have all their memory from the beginning. */
static bool may_grow(const struct ring_set *set)
{
	return set->state == SET_MADE && set->mode == KY_SET_PER_THREAD &&
	       set->channel->session->shm_fd < 0;
}

/* Returns by how much the set has grown beyond what was counted when it was made. */
static uint64_t growth_of(const struct ring_set *set)
{
	return set->charged - need_of(set);
}

/* Calls visit(set, data) for each set. */
static void for_each_set(
	const struct env *e, void (*visit)(struct ring_set *set, void *data), void *data)
{
	struct ring_set *set;
	struct session *s;
	struct channel *c;

	ky_list_foreach (s, &e->sessions, node)
		ky_list_foreach (c, &s->channels, node)
			ky_list_foreach (set, &c->sets, node)
				visit(set, data);
}

/* The user of the smallest UID from `from` on, and that user's set that has grown most. */
struct grown {
	uint64_t from, uid; /* UINT64_MAX: no user */
	struct ring_set *set;
	uint64_t growth;
	uint64_t leaving; /* of that user's sets that are withdrawn and not yet written out */
};

static void visit_user(struct ring_set *set, void *data)
{
	struct grown *g = data;

	if (may_grow(set) && set->uid >= g->from)
		g->uid = KY_MIN(g->uid, (uint64_t)set->uid);
}

static void visit_set(struct ring_set *set, void *data)
{
	struct grown *g = data;
	uint64_t growth = set->uid == g->uid && may_grow(set) ? growth_of(set) : 0;

	if (set->uid == g->uid && set->withdrawn)
		g->leaving += set->charged;
	if (growth <= g->growth)
		return;
	g->growth = growth;
	g->set = set;
}

static void withdraw_set(struct ring_set *set)
{
	session_notice(set->channel->session,
		"channel '%s': the buffers of threads of user %u's programs took %" PRIu64
		" MiB, more than one user may have: these programs are not recorded there any more, later ones are ('kymo-sessiond --max-memory-per-user')",
		set->channel->name, (unsigned)set->uid, ring_memory_in_use(&set->memory) >> 20);
	ring_set_withdraw(set);
}

/*
 * Programs get addresses for many threads' buffers, and take memory when they need it, or when they
 * want to: nobody can refuse it to them. Memory beyond the limit does not stay with the daemon. The
 * consumer may need seconds to write out a set: no other set is withdrawn for this one's memory.
 */
static void look_at_memory(struct ky_timer *t)
{
	struct env *e = ky_container_of(t, struct env, quota_look);
	struct grown g;

	measure_sets(e);
	for (uint64_t from = 0;; from = g.uid + 1) {
		g = (struct grown){.from = from, .uid = UINT64_MAX};
		for_each_set(e, visit_user, &g);
		if (g.uid == UINT64_MAX)
			break;
		for_each_set(e, visit_set, &g);
		if (g.set && sum_of_user(e, (uid_t)g.uid) - g.leaving > e->user_memory_max)
			withdraw_set(g.set);
	}
	e->quota_looks = g.from > 0; /* there was a user */
	if (e->quota_looks)
		ky_timer_set(&e->loop, t, LOOK_NS);
}

void quota_watch(struct ring_set *set)
{
	struct env *e = set->channel->session->env;

	charge(set, bytes_of(set));
	if (!may_grow(set) || e->quota_looks)
		return;
	e->quota_looks = true;
	ky_timer_set(&e->loop, &e->quota_look, LOOK_NS);
}

static struct observer quota = {.set_sized = set_sized,
	.set_wanted = set_wanted,
	.set_made = quota_watch,
	.set_freed = set_freed};

void quota_init(struct env *e, uint64_t max_bytes)
{
	e->user_memory_max = max_bytes;
	ky_job_init(&e->quota_job, retry_sets);
	ky_timer_init(&e->quota_look, look_at_memory);
	ky_list_append(&e->observers, &quota.node);
}
