/* SPDX-License-Identifier: MIT */
#include "sessiond/model/ring-set.h"

#include <sys/resource.h>

#include "ctf/tsdl.h"
#include "proto/app.h"
#include "sessiond/model/channel.h"
#include "sessiond/model/session.h"
#include "svc/check.h"

/*
 * An application maps all slots of a set, and needs address space for that. A 32-bit process has
 * little. Elsewhere the default is moderate, because emulators and valgrind walk over all mapped
 * memory.
 */
#define SET_MAX	      (UINT64_C(8) << 30)
#define SET_MAX_32BIT (UINT64_C(256) << 20)
/* At most this part of a limited address space: programs refuse to map more than twice as much. */
#define SPACE_PART     16
#define SLOTS_MIN      1024u
#define SLOTS_MAX      32768u
#define SLOTS_RESERVED 64u
/* Most systems let a program lock 8 MiB, and it needs most of that itself. */
#define LITTLE_MAX (UINT64_C(1) << 20)
/* Without that limit, it locks as much until the daemon gives back what is not used. */
#define MUCH_MAX	(UINT64_C(128) << 20)
#define FIXED_BLOCK_MIN (16u << 10)

/*
 * Returns the first event of this name that is recorded, or NULL. Another user's event has another
 * description.
 */
static struct set_event *find_recorded(const struct ring_set *set, const struct event_desc *d)
{
	struct set_event *found = NULL;
	struct ky_hnode *n;

	for (n = ky_htab_first(&set->events, d->name_hash); n; n = ky_htab_next(n)) {
		struct set_event *e = ky_container_of(n, struct set_event, node);

		if (e->id != KY_MAP_REFUSED && !strcmp(e->desc->name, d->name) &&
			(!found || e->id < found->id))
			found = e;
	}
	return found;
}

void ring_set_set_state(struct ring_set *set, enum set_state state)
{
	KY_CHECK(state > set->state || (state == SET_KNOWN && set->state == SET_WAITING));
	set->state = state;
}

static struct ring_set *ring_set_new(
	struct channel *c, uid_t uid, uint32_t abi_bits, uint32_t mode, enum ring_room room)
{
	struct ring_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->channel = c;
	set->kind = set;
	set->uid = uid;
	set->abi_bits = abi_bits;
	set->mode = mode;
	set->room = room;
	set->named = c->buffers == BUFFERS_THREAD;
	set->number = env_next_number(c->session->env);
	set->memory = RING_MEMORY_NONE;
	ky_list_init(&set->users);
	ky_list_init(&set->group);
	ky_list_init(&set->conflicts);
	return set;
}

static bool is_of_kind(const struct ring_set *set, uid_t uid, uint32_t abi_bits, uint32_t mode,
	enum ring_room room)
{
	return set->uid == uid && set->abi_bits == abi_bits && set->mode == mode &&
	       set->room == room;
}

static void retire_set(struct ring_set *set)
{
	ring_set_set_state(set, SET_RETIRED);
	OBSERVE(set->channel->session->env, set_retired, set);
}

struct ring_set *ring_set_get(
	struct channel *c, uid_t uid, uint32_t abi_bits, uint32_t mode, enum ring_room room)
{
	struct ring_set *set;

	ky_list_foreach (set, &c->kinds, group)
		if (!set->replaced && is_of_kind(set, uid, abi_bits, mode, room))
			return set;
	set = ring_set_new(c, uid, abi_bits, mode, room);
	if (!set)
		return NULL;
	set->succeeds = c->n_replaced;
	ky_list_append(&c->sets, &set->node);
	ky_list_append(&c->kinds, &set->group);
	return set;
}

void ring_set_set_apart(struct ring_set *set)
{
	if (set->replaced || ring_set_is_own(set))
		return;
	set->replaced = true;
	set->channel->n_replaced++;
	OBSERVE(set->channel->session->env, set_replaced, set);
}

void ring_set_replace(struct ring_set *set)
{
	struct ring_set *other;
	unsigned n = 0;

	ky_list_foreach (other, &set->channel->kinds, group)
		n += other->replaced && !other->written &&
		     is_of_kind(other, set->uid, set->abi_bits, set->mode, set->room);
	if (n < REPLACED_MAX)
		ring_set_set_apart(set);
}

void ring_set_withdraw(struct ring_set *set)
{
	struct env *e = set->channel->session->env;

	ring_set_set_apart(set);
	set->withdrawn = true;
	OBSERVE(e, set_withdrawn, set);
	OBSERVE(e, set_closed, set);
	retire_set(set);
}

struct ring_set *ring_set_find(const struct session *s, uint32_t number)
{
	struct channel *c;
	struct ring_set *set;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach (set, &c->sets, node)
			if (set->number == number)
				return set;
	return NULL;
}

struct ring_set *ring_set_of_process(
	struct ring_set *kind, pid_t pid, uint32_t process, uint64_t image)
{
	struct ring_set *set;

	ky_list_foreach (set, &kind->channel->sets, node)
		if (set->kind == kind && ring_set_is_own(set) && set->pid == pid &&
			set->process == process && set->state < SET_ENDED && !set->withdrawn)
			return set;
	set = ring_set_new(kind->channel, kind->uid, kind->abi_bits, kind->mode, kind->room);
	if (!set)
		return NULL;
	set->kind = kind;
	set->pid = pid;
	set->process = process;
	set->image = image;
	ky_list_append(kind->channel->sets.next, &set->node);
	return set;
}

/*
 * Returns the address space that a set may have. Consumers, and applications that `kymo record`
 * starts, have the daemon's resource limits.
 */
static uint64_t space_max(void)
{
	struct rlimit space;

	return getrlimit(RLIMIT_AS, &space) < 0 || space.rlim_cur == RLIM_INFINITY
		       ? UINT64_MAX
		       : space.rlim_cur / SPACE_PART;
}

/* Returns the size that the rings of a set may have: its file has more than them. */
static uint64_t file_max(void)
{
	struct rlimit file;

	return getrlimit(RLIMIT_FSIZE, &file) < 0 || file.rlim_cur == RLIM_INFINITY
		       ? UINT64_MAX
		       : file.rlim_cur / 2;
}

/* Returns the maximum size of the rings of threads. */
static uint64_t set_max(uint32_t abi_bits, uint64_t ring_size)
{
	uint64_t max = abi_bits == 32 ? SET_MAX_32BIT : KY_MAX(SET_MAX, SLOTS_MIN * ring_size);

	return KY_MIN(KY_MIN(max, space_max()), file_max());
}

static uint32_t count_rings(const struct ring_set *set)
{
	uint64_t ring_size = (uint64_t)set->channel->subbuf_size * set->channel->num_subbuf;
	uint32_t most = set->channel->buffers == BUFFERS_THREAD ? SLOTS_MAX : SLOTS_MIN;

	if (set->mode == KY_SET_PER_CPU)
		return set->channel->session->env->n_cpus;
	if (memory_is_reserved(set->channel->session->shm_fd))
		return KY_MIN(KY_MAX(set->channel->pool_size, SLOTS_RESERVED), most);
	return (uint32_t)KY_MIN(KY_MAX(set_max(set->abi_bits, ring_size) / ring_size, 1u), most);
}

bool ring_sets_grow(const struct channel *c)
{
	return c->burst_size > (uint64_t)c->num_subbuf * c->subbuf_size &&
	       (!c->overwrite || c->session->seconds) && !memory_is_reserved(c->session->shm_fd);
}

static uint64_t total_size(const struct ky_geometry *g, uint32_t n_blocks)
{
	return (uint64_t)g->n_rings * n_blocks * g->block_size;
}

/* All rings together get this memory: blocks are smaller, and then fewer. They do not grow. */
static void fit_fixed(struct ky_geometry *g, uint64_t max)
{
	while (total_size(g, g->n_home) > max)
		if (g->block_size > FIXED_BLOCK_MIN)
			g->block_size /= 2;
		else if (g->n_home > KY_RING_MIN_BLOCKS)
			g->n_home /= 2;
		else
			break;
	g->n_blocks = g->n_home;
}

/* Rings grow less; if not even their home blocks fit, they do not grow. */
static void fit_growing(struct ky_geometry *g, uint64_t max)
{
	while (g->n_blocks / 2 >= g->n_home && total_size(g, g->n_blocks) > max)
		g->n_blocks /= 2;
	if (total_size(g, g->n_blocks) > max)
		fit_fixed(g, max);
}

/* Returns the number of blocks of a ring: more than the channel's sub-buffers if it may grow. */
static uint32_t count_blocks(const struct ring_set *set)
{
	const struct channel *c = set->channel;
	uint64_t size, max = space_max();
	uint32_t n = c->num_subbuf;

	if (set->mode != KY_SET_PER_CPU || !ring_sets_grow(c))
		return n;
	OBSERVE(c->session->env, set_sized, set, &max);
	max = KY_MIN(max / c->session->env->n_cpus, c->burst_size);
	max = KY_MIN(max, (uint64_t)KY_RING_SPREAD_MAX);
	for (size = (uint64_t)n * c->subbuf_size; 2 * size <= max && 2 * n <= KY_RING_MAX_BLOCKS;
		size *= 2)
		n *= 2;
	return n;
}

static int write_stream(struct ring_set *set)
{
	struct ky_buf text = {0};
	int ret;

	ky_tsdl_stream(&text, set->stream_id, set->mode, set->named);
	ret = registry_append(set->registry, &text);
	ky_buf_deinit(&text);
	return ret;
}

/*
 * Once for all sets of a kind. After an error it is tried again; the journal has a line for each
 * place in the metadata where the description may begin.
 */
static int describe_stream(struct ring_set *kind)
{
	uint64_t at = kind->registry->log_size;
	int ret;

	if (kind->described)
		return 0;
	if (!kind->described_at)
		kind->stream_id = kind->registry->n_streams++;
	if (kind->described_at != at) {
		kind->described_at = at;
		OBSERVE(kind->channel->session->env, stream_numbered, kind);
	}
	ret = write_stream(kind);
	kind->described = !ret;
	return ret;
}

/* Calls a hook that may refuse the set. Returns the first error. */
static int ask_observers(struct ring_set *set, size_t hook)
{
	struct observer *o;
	int (*ask)(struct ring_set * set);
	int ret = 0;

	ky_list_foreach (o, &set->channel->session->env->observers, node) {
		memcpy(&ask, (char *)o + hook, sizeof(ask));
		if (!ret && ask)
			ret = ask(set);
	}
	return ret;
}

/*
 * Returns whether the consumer has address space for the set beside the session's other ones. It
 * has the daemon's limit, and needs a quarter of it for everything else.
 */
static bool consumer_can_map(const struct ring_set *set)
{
	uint64_t sum = set->geometry.total_size, max = space_max();
	const struct ring_set *other;
	const struct channel *c;

	if (max == UINT64_MAX)
		return true;
	ky_list_foreach (c, &set->channel->session->channels, node)
		ky_list_foreach (other, &c->sets, node)
			if (other->memory.rings_fd >= 0)
				sum += other->geometry.total_size;
	return sum <= max * SPACE_PART / 4 * 3;
}

static int make_memory(struct ring_set *set)
{
	struct channel *c = set->channel;
	uint64_t uuid[2];
	int ret;

	registry_uuid(set->kind->registry, uuid);
	set->geometry = (struct ky_geometry){
		.mode = set->mode,
		.clock = c->session->clock.clock,
		.overwrite = c->overwrite,
		.n_rings = count_rings(set),
		.n_blocks = count_blocks(set),
		.n_home = c->num_subbuf,
		.block_size = c->subbuf_size,
	};
	if (set->room == ROOM_LITTLE)
		fit_fixed(&set->geometry, LITTLE_MAX);
	else if (set->room == ROOM_MUCH)
		fit_growing(&set->geometry, MUCH_MAX);
	if (set->mode == KY_SET_PER_CPU && ring_sets_grow(c))
		fit_growing(&set->geometry, file_max());
	set->pool_size = c->pool_size;
	set->tracefile_size = c->tracefile_size;
	set->tracefile_count = c->tracefile_count;
	ret = ky_geometry_init(&set->geometry);
	if (!ret && !consumer_can_map(set))
		ret = -ENOMEM;
	if (!ret)
		ret = ask_observers(set, offsetof(struct observer, set_wanted));
	return ret < 0 ? ret
		       : ring_memory_make(&set->memory, &set->geometry, c->session->shm_fd,
				 set->number, uuid);
}

int ring_set_make(struct ring_set *set)
{
	struct session *s = set->channel->session;
	struct ring_set *kind = set->kind;
	int ret;

	if (set->state != SET_KNOWN)
		return ring_set_is_made(set) ? 0 : -EUSERS;
	ret = registry_get(s, set->uid, set->abi_bits, &kind->registry);
	if (!ret && !kind->described && registry_is_full(kind->registry))
		ret = -EOVERFLOW;
	if (!ret)
		ret = make_memory(set);
	if (ret < 0)
		return ret;
	ret = describe_stream(kind);
	set->registry = kind->registry;
	set->stream_id = kind->stream_id;
	if (!ret)
		ret = ask_observers(set, offsetof(struct observer, set_prepared));
	if (ret < 0) {
		ring_memory_close(&set->memory);
		ring_memory_remove(s->shm_fd, set->number);
		return ret;
	}
	OBSERVE(s->env, set_numbered, set);
	ring_set_set_state(set, SET_MADE);
	OBSERVE(s->env, set_made, set);
	return 0;
}

/* Snapshots need what was recorded last. */
static void retire_oldest(struct channel *c)
{
	struct ring_set *set, *oldest = NULL;
	unsigned n = 0;

	ky_list_foreach (set, &c->sets, node) {
		if (set->state != SET_ENDED)
			continue;
		n++;
		if (!oldest || set->ended < oldest->ended)
			oldest = set;
	}
	if (n > ENDED_SETS_MAX)
		retire_set(oldest);
}

void ring_set_end(struct ring_set *set)
{
	if (set->ended || set->state == SET_RETIRED)
		return;
	OBSERVE(set->channel->session->env, set_closed, set);
	if (!ring_set_is_made(set)) {
		ring_set_free(set);
		return;
	}
	set->ended = ++set->channel->n_ended;
	ring_set_set_state(set, SET_ENDED);
	if (set->geometry.overwrite)
		retire_oldest(set->channel);
	else
		retire_set(set);
}

void ring_set_unuse(struct ring_set *set)
{
	if (ring_set_is_own(set) && !ring_set_is_made(set) && ky_list_empty(&set->users))
		ring_set_free(set);
}

struct set_event *ring_set_event(const struct ring_set *set, const struct event_desc *d)
{
	struct ky_hnode *n;

	for (n = ky_htab_first(&set->kind->events, d->name_hash); n; n = ky_htab_next(n)) {
		struct set_event *e = ky_container_of(n, struct set_event, node);

		if (e->desc == d)
			return e;
	}
	return NULL;
}

static void put_conflict(struct ky_buf *to, const struct channel *c, const struct set_event *e)
{
	struct ky_buf text = {0};

	conflict_describe(&text, c, e);
	ky_tsdl_comment(to, text.data ? text.data : "", false);
	ky_buf_deinit(&text);
}

static int write_event(struct ring_set *set, const struct set_event *e)
{
	struct ky_buf text = {0};
	int ret;

	if (e->id == KY_MAP_REFUSED)
		put_conflict(&text, set->channel, e);
	else
		ky_tsdl_event(&text, set->stream_id, e->id, event_desc_bytes(e->desc),
			set->channel->contexts, e->n_contexts);
	ret = registry_append(set->registry, &text);
	ky_buf_deinit(&text);
	return ret;
}

/* Returns whether another event of the name, which the channel records, counts for the rule. */
static bool is_counted(const struct channel *c, const struct rule *r, const struct set_event *e)
{
	const struct ring_set *set;
	struct ky_hnode *n;

	ky_list_foreach (set, &c->kinds, group)
		for (n = ky_htab_first(&set->events, e->node.hash); n; n = ky_htab_next(n)) {
			const struct set_event *other = ky_container_of(n, struct set_event, node);

			if (other != e && other->id != KY_MAP_REFUSED &&
				!strcmp(other->desc->name, e->desc->name) &&
				rule_wants(r, other->desc))
				return true;
		}
	return false;
}

/* Gives the event an identifier. Commands report numbers of events, and count nothing again. */
static void number_event(struct ring_set *set, struct set_event *e, uint32_t id)
{
	bool was_refused = e->id == KY_MAP_REFUSED, refused = id == KY_MAP_REFUSED;
	struct channel *c = set->channel;
	struct rule *r;

	e->id = id;
	if (e->rival)
		set->n_refused += (unsigned)refused - (unsigned)was_refused;
	if (!was_refused || refused)
		return;
	ky_list_foreach (r, &c->rules, node)
		r->n_matched += r->counted && rule_wants(r, e->desc) && !is_counted(c, r, e);
}

/* An event, or more, has ended. */
static void count_again(struct channel *c)
{
	struct rule *r;

	ky_list_foreach (r, &c->rules, node)
		r->counted = false;
}

/* Makes an event of the set. Returns NULL if allocation fails. */
static struct set_event *set_event_new(
	struct ring_set *set, struct event_desc *d, const struct definer *by)
{
	struct set_event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->by = *by;
	e->id = KY_MAP_REFUSED;
	e->rival = find_recorded(set, d);
	if (ky_htab_add(&set->events, &e->node, d->name_hash) < 0) {
		free(e);
		return NULL;
	}
	e->desc = event_desc_ref(d);
	ky_list_init(&e->conflict);
	if (e->rival) {
		ky_list_append(&set->conflicts, &e->conflict);
		set->n_conflicts++;
		set->n_refused++;
	}
	return e;
}

static void set_event_free(struct ring_set *set, struct set_event *e)
{
	ky_htab_remove(&set->events, &e->node);
	ky_list_remove(&e->conflict);
	set->n_conflicts -= e->rival != NULL;
	set->n_refused -= e->rival && e->id == KY_MAP_REFUSED;
	event_desc_unref(e->desc);
	free(e);
}

static unsigned count_definitions(const struct ring_set *set, const struct event_desc *d)
{
	struct ky_hnode *n;
	unsigned count = 0;

	for (n = ky_htab_first(&set->events, d->name_hash); n; n = ky_htab_next(n))
		count++;
	return count;
}

int ring_set_register(struct ring_set *set, struct event_desc *d, const struct definer *by,
	struct set_event **ret_event)
{
	struct set_event *e = ring_set_event(set, d);
	bool refused;
	int ret;

	if (e) {
		*ret_event = e;
		return 0;
	}
	set = set->kind;
	if (count_definitions(set, d) >= DEFINITIONS_MAX)
		return -EMLINK;
	if (!registry_has_room(set->registry, d->len))
		return -EOVERFLOW;
	e = set_event_new(set, d, by);
	if (!e)
		return -ENOMEM;
	refused = e->rival && !set->channel->separate_conflicts;
	number_event(set, e, refused ? KY_MAP_REFUSED : set->n_events);
	e->n_contexts = set->channel->n_contexts;
	OBSERVE(set->channel->session->env, event_numbered, set, e);
	ret = write_event(set, e);
	if (ret < 0 && !refused) {
		set_event_free(set, e);
		count_again(set->channel);
		return ret;
	}
	set->n_events += !refused;
	registry_charge(set->registry, d->len);
	*ret_event = e;
	return 0;
}

/*
 * Forgets an event that a predecessor numbered, and could not describe: the next one that it
 * numbered, which is d, got the same identifier.
 */
static void forget_undescribed(struct ring_set *set, const struct event_desc *d, uint32_t id)
{
	struct set_event *last = set->last_numbered;

	if (!last || last->id != id || last->desc == d)
		return;
	set_event_free(set, last);
	count_again(set->channel);
	set->last_numbered = NULL;
}

int ring_set_restore(struct ring_set *set, struct event_desc *d, const struct definer *by,
	uint32_t id, uint32_t n_contexts)
{
	struct set_event *e = ring_set_event(set, d);

	forget_undescribed(set, d, id);
	if (!e) {
		e = set_event_new(set, d, by);
		registry_charge(set->registry, d->len);
	}
	if (!e)
		return -ENOMEM;
	number_event(set, e, id);
	e->n_contexts = n_contexts;
	if (id != KY_MAP_REFUSED) {
		set->n_events = KY_MAX(set->n_events, id + 1);
		set->last_numbered = e;
	}
	set->last_event = e;
	registry_set_last(set->registry, set, NULL);
	return 0;
}

int ring_set_mend(struct registry *r)
{
	struct ring_set *set = r->last_set;

	if (r->last_gap)
		return registry_write_gap(r, r->last_gap);
	if (r->last_text)
		return registry_mend_text(r);
	if (set && set->last_event)
		return write_event(set, set->last_event);
	return set ? write_stream(set) : 0;
}

int ring_set_renew(struct ring_set *set)
{
	uint32_t n_contexts = set->channel->n_contexts;
	struct ky_hnode *n, *tmp;
	int ret = 0;
	size_t i;

	ky_htab_foreach(&set->events, i, n, tmp)
	{
		struct set_event *e = ky_container_of(n, struct set_event, node);

		struct set_event renewed = *e;
		bool refused = e->id == KY_MAP_REFUSED;

		if (ret < 0 ||
			(refused ? !set->channel->separate_conflicts : e->n_contexts == n_contexts))
			continue;
		renewed.id = set->n_events;
		renewed.n_contexts = n_contexts;
		OBSERVE(set->channel->session->env, event_numbered, set, &renewed);
		ret = write_event(set, &renewed);
		if (ret < 0) {
			OBSERVE(set->channel->session->env, event_numbered, set, e);
			continue;
		}
		number_event(set, e, set->n_events++);
		e->n_contexts = n_contexts;
	}
	return ret;
}

static bool is_kind_of_others(const struct ring_set *set)
{
	const struct ring_set *other;

	if (ring_set_is_own(set))
		return false;
	ky_list_foreach (other, &set->channel->sets, node)
		if (other != set && other->kind == set)
			return true;
	return false;
}

void ring_set_forget(struct ring_set *set)
{
	if (!is_kind_of_others(set) && (!set->registry || set->registry->last_set != set)) {
		ring_set_free(set);
		return;
	}
	ring_set_set_apart(set);
	if (set->state != SET_RETIRED)
		ring_set_set_state(set, SET_RETIRED);
	OBSERVE(set->channel->session->env, set_freed, set);
	ring_memory_close(&set->memory);
	set->written = true;
}

void ring_set_free(struct ring_set *set)
{
	struct ky_hnode *n, *n_tmp;
	size_t i;

	OBSERVE(set->channel->session->env, set_closed, set);
	ky_htab_foreach(&set->events, i, n, n_tmp)
		set_event_free(set, ky_container_of(n, struct set_event, node));
	count_again(set->channel);
	KY_CHECK(ky_list_empty(&set->users));
	ky_htab_deinit(&set->events);
	OBSERVE(set->channel->session->env, set_freed, set);
	if (set->registry && set->registry->last_set == set)
		registry_set_last(set->registry, NULL, NULL);
	ring_memory_close(&set->memory);
	free(set->consumed_then);
	ky_list_remove(&set->node);
	ky_list_remove(&set->group);
	free(set);
}
