/* SPDX-License-Identifier: MIT */
#include "sessiond/model/quota.h"

#include <sys/sysinfo.h>

#include "base/text.h"
#include "sessiond/model/contents.h"

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

static uint64_t need_of(const struct ring_set *set)
{
	const struct ky_geometry *g = &set->geometry;
	uint32_t n = set->mode == KY_SET_PER_CPU ? g->n_rings : KY_MIN(g->n_rings, set->pool_size);

	return g->data_offset + n * g->data_stride;
}

static uint64_t sum_of_session(const struct session *s, uid_t uid)
{
	const struct registry *r;
	const struct channel *c;
	const struct ring_set *set;
	uint64_t sum = 0;

	ky_list_foreach (r, &s->registries, node)
		if (r->uid == uid)
			sum += r->log_size;
	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach (set, &c->sets, node)
			if (set->uid == uid && ring_set_is_made(set))
				sum += KY_MAX(need_of(set), ring_memory_in_use(&set->memory));
	return sum;
}

static int set_wanted(struct ring_set *set)
{
	struct env *e = set->channel->session->env;
	uint64_t sum = need_of(set);
	const struct session *s;

	ky_list_foreach (s, &e->sessions, node)
		sum += sum_of_session(s, set->uid);
	if (sum <= e->user_memory_max)
		return 0;
	ring_set_set_state(set, SET_WAITING);
	e->sets_wait = true;
	return -EDQUOT;
}

static void set_freed(struct ring_set *set)
{
	struct env *e = set->channel->session->env;

	if (e->sets_wait && ring_set_is_made(set))
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

static struct observer quota = {.set_wanted = set_wanted, .set_freed = set_freed};

void quota_init(struct env *e, uint64_t max_bytes)
{
	e->user_memory_max = max_bytes;
	ky_job_init(&e->quota_job, retry_sets);
	ky_list_append(&e->observers, &quota.node);
}
