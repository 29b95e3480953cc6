/* SPDX-License-Identifier: MIT */
/*
 * Channels, their ring sets, and the registries that number events: the part of session.h that
 * decides what is recorded under which identifier.
 */
#include <inttypes.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "ctf/tsdl.h"
#include "sessiond/peers/app.h"
#include "sessiond/daemon.h"
#include "sessiond/journal.h"
#include "sessiond/peers/orders.h"
#include "sessiond/model/quota.h"
#include "sessiond/model/conflict.h"
#include "sessiond/model/session.h"
#include "svc/log.h"

/*
 * A program maps all slots of a set, and has room for that: little in 32 bits, and not too much where nobody has asked
 * for it, as emulators and valgrind walk over all that is mapped.
 */
#define SET_MAX	      (UINT64_C(8) << 30)
#define SET_MAX_32BIT (UINT64_C(256) << 20)
/* Of a limited address space, at most: programs refuse to map more than twice as much. */
#define SPACE_PART    16
#define SLOTS_MIN     1024u
#define SLOTS_MAX     32768u
#define SLOTS_IN_FILE 64u

struct channel *channel_new(struct session *s, const char *name)
{
	struct channel *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->name = strdup(name);
	if (!c->name) {
		free(c);
		return NULL;
	}
	c->session = s;
	c->enabled = true;
	c->overwrite = s->snapshot;
	c->subbuf_size = DEFAULT_SUBBUF_SIZE;
	c->num_subbuf = DEFAULT_NUM_SUBBUF;
	c->pool_size = DEFAULT_POOL_SIZE;
	c->switch_timer_us = DEFAULT_SWITCH_US;
	ky_list_init(&c->rules);
	ky_list_init(&c->sets);
	ky_list_append(&s->channels, &c->node);
	s->n_channels++;
	return c;
}

struct channel *channel_find(const struct session *s, const char *name)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

static struct rule *find_equal(const struct channel *c, const struct rule *like)
{
	struct rule *r;

	ky_list_foreach (r, &c->rules, node)
		if (rule_equal(r, like))
			return r;
	return NULL;
}

static unsigned count_rules(struct rule *const *rules)
{
	unsigned n = 0;

	while (rules[n])
		n++;
	return n;
}

int channel_enable_rules(struct channel *c, struct rule **rules)
{
	unsigned n = count_rules(rules), n_new = 0;
	struct rule *same;

	for (unsigned i = 0; i < n; i++)
		n_new += !find_equal(c, rules[i]);
	if (n_new > RULES_MAX - c->n_rules)
		return -EDQUOT;
	for (unsigned i = 0; i < n; i++) {
		same = find_equal(c, rules[i]);
		if (same) {
			same->enabled = true;
			rule_free(rules[i]);
		} else {
			ky_list_append(&c->rules, &rules[i]->node);
			c->n_rules++;
		}
		rules[i] = NULL;
	}
	return 0;
}

void channel_remove_rule(struct channel *c, struct rule *r)
{
	ky_list_remove(&r->node);
	c->n_rules--;
	rule_free(r);
}

bool channel_is_active(const struct channel *c)
{
	struct rule *r;

	ky_list_foreach (r, &c->rules, node)
		if (c->enabled && r->enabled)
			return true;
	return false;
}

bool channel_has_buffers(const struct channel *c)
{
	const struct ring_set *set;

	ky_list_foreach (set, &c->sets, node)
		if (set->described)
			return true;
	return false;
}

bool channel_wants(const struct channel *c, const struct event_desc *d)
{
	struct rule *r;

	ky_list_foreach (r, &c->rules, node)
		if (c->enabled && r->enabled && rule_wants(r, d))
			return true;
	return false;
}

uint32_t channel_filters(const struct channel *c, const struct event_desc *d,
	const struct filter *ret_filters[RULES_MAX])
{
	struct rule *r;
	uint32_t n = 0;

	ky_list_foreach (r, &c->rules, node) {
		if (!r->enabled || !rule_wants(r, d))
			continue;
		if (!r->filter)
			return 0;
		ret_filters[n++] = r->filter;
	}
	return n;
}

/*
 * The first event of this name that is recorded; living: by a program that runs. Of another user it has another
 * description.
 */
static struct set_event *find_named(
	const struct ring_set *set, const struct event_desc *d, bool living)
{
	struct set_event *found = NULL;
	struct ky_hnode *n;

	for (n = ky_htab_first(&set->events, d->name_hash); n; n = ky_htab_next(n)) {
		struct set_event *e = ky_container_of(n, struct set_event, node);

		if (e->id != KY_MAP_REFUSED && (e->n_apps || !living) &&
			!strcmp(e->desc->name, d->name) && (!found || e->id < found->id))
			found = e;
	}
	return found;
}

/* Has a set before this one counted an event of this name? */
static bool counted(const struct channel *c, const struct ring_set *until,
	const struct event_desc *d, bool living)
{
	struct ring_set *set;

	ky_list_foreach (set, &c->sets, node) {
		if (set == until)
			return false;
		if (find_named(set, d, living))
			return true;
	}
	return false;
}

unsigned channel_count_matches(const struct channel *c, const struct rule *r, bool living)
{
	struct ring_set *set;
	struct ky_hnode *n, *tmp;
	unsigned count = 0;
	size_t i;

	ky_list_foreach (set, &c->sets, node) {
		ky_htab_foreach(&set->events, i, n, tmp)
		{
			struct set_event *e = ky_container_of(n, struct set_event, node);

			if (e->id != KY_MAP_REFUSED && (e->n_apps || !living) &&
				rule_wants(r, e->desc) && !counted(c, set, e->desc, living))
				count++;
		}
	}
	return count;
}

struct registry *registry_free(struct registry *r)
{
	if (!r)
		return NULL;
	ky_list_remove(&r->node);
	ky_close(r->log_fd);
	free(r);
	return NULL;
}

/* Appends text to the metadata; all of it or nothing. */
static int registry_append(struct registry *r, const struct ky_buf *text)
{
	ssize_t n;

	if (text->error)
		return text->error;
	if (r->log_size + text->len > METADATA_MAX)
		return -EFBIG;
	n = pwrite(r->log_fd, text->data, text->len, (off_t)r->log_size);
	if (n != (ssize_t)text->len) {
		int error = n < 0 ? -errno : -ENOSPC;

		return ftruncate(r->log_fd, (off_t)r->log_size) < 0 ? -errno : error;
	}
	r->log_size += text->len;
	return 0;
}

static int write_preamble(struct registry *r, const struct session *s)
{
	struct ky_tsdl_trace t = {
		.hostname = s->daemon->hostname,
		.session = s->name,
		.boot_id = s->daemon->boot_id,
		.machine_id = s->daemon->machine_id,
		.product_uuid = s->daemon->product_uuid,
		.uid = r->uid,
		.abi_bits = r->abi_bits,
		.clock = s->clock,
	};
	struct ky_buf text = {0};
	int ret;

	memcpy(t.uuid, r->uuid, sizeof(t.uuid));
	ky_tsdl_trace(&text, &t);
	ret = registry_append(r, &text);
	ky_buf_deinit(&text);
	return ret;
}

/* A random UUID (RFC 9562, version 4). */
static int make_uuid(uint8_t uuid[16])
{
	if (getrandom(uuid, 16, 0) != 16)
		return -EIO;
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	return 0;
}

struct registry *registry_find(const struct session *s, uid_t uid, uint32_t abi_bits)
{
	struct registry *r;

	ky_list_foreach (r, &s->registries, node)
		if (r->uid == uid && r->abi_bits == abi_bits)
			return r;
	return NULL;
}

struct registry *registry_new(struct session *s, uid_t uid, uint32_t abi_bits)
{
	struct registry *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->log_fd = -1;
	r->uid = uid;
	r->abi_bits = abi_bits;
	ky_list_append(&s->registries, &r->node);
	return r;
}

static uint64_t big_endian(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

void registry_uuid(const struct registry *r, uint64_t ret_uuid[2])
{
	ret_uuid[0] = big_endian(r->uuid);
	ret_uuid[1] = big_endian(r->uuid + 8);
}

static int make_log(struct registry *r, const struct session *s)
{
	uint64_t uuid[2];

	registry_uuid(r, uuid);
	r->log_fd = log_memory_make(s->shm_fd, uuid);
	return KY_MIN(r->log_fd, 0);
}

static int registry_get(
	struct session *s, uid_t uid, uint32_t abi_bits, struct registry **ret_registry)
{
	struct registry *r = registry_find(s, uid, abi_bits);
	int ret;

	*ret_registry = r;
	if (r)
		return 0;
	r = registry_new(s, uid, abi_bits);
	if (!r)
		return -ENOMEM;
	ret = make_uuid(r->uuid);
	if (!ret)
		ret = make_log(r, s);
	if (!ret)
		ret = write_preamble(r, s);
	if (ret < 0) {
		registry_free(r);
		return ret;
	}
	journal_registry(s, r);
	*ret_registry = r;
	return 0;
}

static struct ring_set *ring_set_new(struct channel *c, uid_t uid, uint32_t abi_bits, uint32_t mode)
{
	struct ring_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set->channel = c;
	set->kind = set;
	set->uid = uid;
	set->abi_bits = abi_bits;
	set->mode = mode;
	set->named = c->buffers == BUFFERS_THREAD;
	set->number = daemon_next_number(c->session->daemon);
	set->memory = (struct ring_memory){-1, -1};
	ky_list_init(&set->users);
	return set;
}

struct ring_set *ring_set_get(struct channel *c, uid_t uid, uint32_t abi_bits, uint32_t mode)
{
	struct ring_set *set;

	ky_list_foreach (set, &c->sets, node)
		if (set->kind == set && set->uid == uid && set->abi_bits == abi_bits &&
			set->mode == mode)
			return set;
	set = ring_set_new(c, uid, abi_bits, mode);
	if (set)
		ky_list_append(&c->sets, &set->node);
	return set;
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
			set->process == process)
			return set;
	set = ring_set_new(kind->channel, kind->uid, kind->abi_bits, kind->mode);
	if (!set)
		return NULL;
	set->kind = kind;
	set->pid = pid;
	set->process = process;
	set->image = image;
	ky_list_append(kind->channel->sets.next, &set->node);
	return set;
}

/* How much the rings of threads may take. A daemon's consumers, and what `kymo record` starts, have the limits that it has. */
static uint64_t set_max(uint32_t abi_bits, uint64_t ring_size)
{
	uint64_t max = abi_bits == 32 ? SET_MAX_32BIT : KY_MAX(SET_MAX, SLOTS_MIN * ring_size);
	struct rlimit space;

	if (getrlimit(RLIMIT_AS, &space) < 0 || space.rlim_cur == RLIM_INFINITY)
		return max;
	return KY_MIN(max, space.rlim_cur / SPACE_PART);
}

static uint32_t count_rings(const struct ring_set *set)
{
	uint64_t ring_size = (uint64_t)set->channel->subbuf_size * set->channel->num_subbuf;
	uint32_t most = set->channel->buffers == BUFFERS_THREAD ? SLOTS_MAX : SLOTS_MIN;

	if (set->mode == KY_SET_PER_CPU)
		return set->channel->session->daemon->n_cpus;
	if (set->channel->session->shm_fd >= 0) /* all their room is taken at once */
		return KY_MIN(KY_MAX(set->channel->pool_size, SLOTS_IN_FILE), most);
	return (uint32_t)KY_MIN(KY_MAX(set_max(set->abi_bits, ring_size) / ring_size, 1u), most);
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

/* Once for all sets of a kind. */
static int describe_stream(struct ring_set *kind)
{
	int ret;

	if (kind->described)
		return 0;
	kind->stream_id = kind->registry->n_streams++;
	journal_set(kind);
	ret = write_stream(kind);
	kind->described = !ret;
	return ret;
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
		.n_blocks = c->num_subbuf,
		.block_size = c->subbuf_size,
	};
	set->pool_size = c->pool_size;
	set->tracefile_size = c->tracefile_size;
	set->tracefile_count = c->tracefile_count;
	ret = ky_geometry_init(&set->geometry);
	if (!ret && !quota_allows(set))
		ret = -EDQUOT;
	return ret < 0 ? ret
		       : ring_memory_make(&set->memory, &set->geometry, c->session->shm_fd,
				 set->number, uuid);
}

int ring_set_make(struct ring_set *set)
{
	struct session *s = set->channel->session;
	struct ring_set *kind = set->kind;
	int ret;

	if (set->made || set->waiting)
		return set->made ? 0 : -EDQUOT;
	ret = registry_get(s, set->uid, set->abi_bits, &kind->registry);
	if (!ret)
		ret = make_memory(set);
	if (ret < 0)
		return ret;
	ret = describe_stream(kind);
	set->registry = kind->registry;
	set->stream_id = kind->stream_id;
	if (!ret)
		ret = orders_add_set(set);
	if (ret < 0) {
		ring_memory_close(&set->memory);
		ring_memory_remove(s->shm_fd, set->number);
		return ret;
	}
	if (ring_set_is_own(set))
		journal_set(set);
	set->made = true;
	consumer_add_set(&s->consumer, set);
	return 0;
}

static void retire(struct ring_set *set)
{
	set->retiring = true;
	consumer_retire(&set->channel->session->consumer, set);
}

/* Snapshots need what was recorded last. */
static void retire_oldest(struct channel *c)
{
	struct ring_set *set, *oldest = NULL;
	unsigned n = 0;

	ky_list_foreach (set, &c->sets, node) {
		if (!set->ended || set->retiring)
			continue;
		n++;
		if (!oldest || set->ended < oldest->ended)
			oldest = set;
	}
	if (n > ENDED_SETS_MAX)
		retire(oldest);
}

void ring_set_end(struct ring_set *set)
{
	struct app_set *as, *tmp;

	if (set->ended)
		return;
	ky_list_foreach_safe (as, tmp, &set->users, set_node)
		app_set_free(as);
	if (!set->made) {
		ring_set_free(set);
		return;
	}
	set->ended = ++set->channel->n_ended;
	if (set->geometry.overwrite)
		retire_oldest(set->channel);
	else
		retire(set);
}

void ring_set_unuse(struct ring_set *set)
{
	if (ring_set_is_own(set) && !set->made && ky_list_empty(&set->users))
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

static int write_event(struct ring_set *set, const struct set_event *e)
{
	struct ky_buf text = {0};
	int ret;

	if (e->id == KY_MAP_REFUSED)
		conflict_comment(&text, set->channel, e);
	else
		ky_tsdl_event(&text, set->stream_id, e->id, event_desc_bytes(e->desc),
			set->channel->contexts, e->n_contexts);
	ret = registry_append(set->registry, &text);
	ky_buf_deinit(&text);
	return ret;
}

/* NULL without memory. */
static struct set_event *set_event_new(
	struct ring_set *set, struct event_desc *d, const struct definer *by)
{
	struct set_event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->by = *by;
	e->rival = find_named(set, d, false);
	if (ky_htab_add(&set->events, &e->node, d->name_hash) < 0) {
		free(e);
		return NULL;
	}
	e->desc = event_desc_ref(d);
	return e;
}

static void set_event_free(struct ring_set *set, struct set_event *e)
{
	ky_htab_remove(&set->events, &e->node);
	event_desc_unref(e->desc);
	free(e);
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
	e = set_event_new(set, d, by);
	if (!e)
		return -ENOMEM;
	refused = e->rival && !set->channel->separate_conflicts;
	e->id = refused ? KY_MAP_REFUSED : set->n_events;
	e->n_contexts = set->channel->n_contexts;
	journal_event(set, e);
	ret = write_event(set, e);
	if (ret < 0 && !refused) {
		set_event_free(set, e);
		return ret;
	}
	set->n_events += !refused;
	*ret_event = e;
	return 0;
}

/* An event of this identifier that a predecessor could not describe: then another one got it. */
static void forget_id(struct ring_set *set, uint32_t id)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&set->events, i, n, tmp)
	{
		struct set_event *e = ky_container_of(n, struct set_event, node);

		if (e->id == id && id != KY_MAP_REFUSED)
			set_event_free(set, e);
	}
}

int ring_set_restore(struct ring_set *set, struct event_desc *d, const struct definer *by,
	uint32_t id, uint32_t n_contexts)
{
	struct set_event *e = ring_set_event(set, d);

	if (!e) {
		forget_id(set, id);
		e = set_event_new(set, d, by);
	}
	if (!e)
		return -ENOMEM;
	e->id = id;
	e->n_contexts = n_contexts;
	if (id != KY_MAP_REFUSED)
		set->n_events = KY_MAX(set->n_events, id + 1);
	set->last_event = e;
	set->registry->last_set = set;
	return 0;
}

int registry_mend(struct registry *r)
{
	struct ring_set *set = r->last_set;

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
		journal_event(set, &renewed);
		ret = write_event(set, &renewed);
		if (ret < 0) {
			journal_event(set, e);
			continue;
		}
		e->id = set->n_events++;
		e->n_contexts = n_contexts;
	}
	return ret;
}

void ring_set_free(struct ring_set *set)
{
	struct ky_hnode *n, *n_tmp;
	struct app_set *as, *as_tmp;
	size_t i;

	ky_list_foreach_safe (as, as_tmp, &set->users, set_node)
		app_set_free(as);
	ky_htab_foreach(&set->events, i, n, n_tmp)
		set_event_free(set, ky_container_of(n, struct set_event, node));
	ky_htab_deinit(&set->events);
	if (set->made)
		quota_freed(set->channel->session->daemon);
	ring_memory_close(&set->memory);
	ky_list_remove(&set->node);
	free(set);
}

struct channel *channel_free(struct channel *c)
{
	struct rule *r, *r_tmp;
	struct ring_set *set, *set_tmp;

	ky_list_foreach_safe (set, set_tmp, &c->sets, node)
		ring_set_free(set);
	ky_list_foreach_safe (r, r_tmp, &c->rules, node)
		channel_remove_rule(c, r);
	ky_list_remove(&c->node);
	c->session->n_channels--;
	free(c->contexts);
	free(c->name);
	free(c);
	return NULL;
}
