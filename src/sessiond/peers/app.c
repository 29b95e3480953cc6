/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/app.h"

#include <inttypes.h>
#include <stdarg.h>

#include "sessiond/model/conflict.h"
#include "sessiond/model/context.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/recording.h"
#include "svc/log.h"

/* Room for lists in a message, beside its other fields. */
#define LIST_MAX (KY_MSG_MAX - 64)

KY_APP_MESSAGES(KY_MSG_SENDER)

static const struct ky_msg_conn_ops conn_ops;

/* A message to be, and the list in it. */
struct list {
	uint8_t buf[LIST_MAX];
	struct ky_writer w;
	uint32_t n;
};

static void list_clear(struct list *l)
{
	l->w = (struct ky_writer){.buf = l->buf, .cap = sizeof(l->buf)};
	l->n = 0;
}

static struct ky_bytes list_bytes(const struct list *l)
{
	return (struct ky_bytes){.data = l->buf, .len = (uint32_t)l->w.len};
}

static struct app_set *find_set(const struct app *a, uint32_t number)
{
	struct app_set *as;

	ky_list_foreach (as, &a->sets, app_node)
		if (as->set->number == number)
			return as;
	return NULL;
}

static struct app_set *app_set_get(struct app *a, struct ring_set *set)
{
	struct app_set *as = find_set(a, set->number);

	if (as)
		return as;
	as = calloc(1, sizeof(*as));
	if (!as)
		return NULL;
	as->app = a;
	as->set = set;
	ky_list_append(&a->sets, &as->app_node);
	ky_list_append(&set->users, &as->set_node);
	return as;
}

static bool is_mapped(const struct app_set *as, uint32_t index)
{
	return index < as->n_ids && as->ids[index] != EVENT_NOT_MAPPED;
}

static void forget_mapping(struct app_set *as, uint32_t index)
{
	struct set_event *e;

	if (!is_mapped(as, index))
		return;
	e = ring_set_event(as->set, as->app->events[index]);
	if (e)
		e->n_apps--;
	as->ids[index] = EVENT_NOT_MAPPED;
}

struct app_set *app_set_free(struct app_set *as)
{
	if (!as)
		return NULL;
	for (uint32_t i = 0; i < as->n_ids; i++)
		forget_mapping(as, i);
	ky_list_remove(&as->app_node);
	ky_list_remove(&as->set_node);
	user_discharge(as->app->user, as->n_ids * sizeof(*as->ids) +
					      as->n_filters * sizeof(*as->filters) +
					      as->known_cap * sizeof(*as->known));
	free(as->ids);
	free(as->filters);
	free(as->known);
	free(as);
	return NULL;
}

void apps_forget_set(struct ring_set *set)
{
	struct app_set *as, *tmp;

	ky_list_foreach_safe (as, tmp, &set->users, set_node)
		app_set_free(as);
}

/* Likewise, and the set, if it was only for this program and never made. */
static void app_set_release(struct app_set *as)
{
	struct ring_set *set = as->set;

	app_set_free(as);
	ring_set_unuse(set);
}

struct app *app_free(struct app *a)
{
	struct app_set *as, *tmp;

	if (!a)
		return NULL;
	ky_msg_conn_deinit(&a->conn);
	ky_timer_cancel(&a->deadline);
	ticket_done_all(&a->tickets);
	barrier_deinit(&a->flush);
	ky_list_foreach_safe (as, tmp, &a->sets, app_node)
		app_set_release(as);
	for (uint32_t i = 0; i < a->n_events; i++)
		event_desc_unref(a->events[i]);
	free(a->events);
	user_discharge(
		a->user, a->n_events * sizeof(*a->events) + a->n_queries * sizeof(struct ticket));
	ky_list_remove(&a->node);
	a->user->n_apps--;
	process_hung_up(a->process);
	user_unref(a->user);
	free(a);
	return NULL;
}

unsigned app_count_mapped(const struct app *a, const struct session *s)
{
	struct app_set *as;
	unsigned n = 0;

	ky_list_foreach (as, &a->sets, app_node) {
		for (uint32_t i = 0; as->set->channel->session == s && i < as->n_ids; i++)
			n += is_mapped(as, i) && as->ids[i] != KY_MAP_REFUSED;
	}
	return n;
}

/* The program owes an answer; b may be NULL. NULL without memory. */
static struct ticket *owe(struct app *a, enum ticket_kind kind, uint32_t key, struct barrier *b)
{
	struct ticket *t = ticket_new(&a->tickets, kind, key, b);

	if (t)
		t->pid = a->pid;
	return t;
}

static void post_query(struct app *a, uint32_t number, const struct list *rules, struct barrier *b)
{
	struct ky_app_query m = {.query = number, .n = rules->n, .rules = list_bytes(rules)};

	if (a->n_queries >= APP_PENDING_MAX || user_charge(a->user, sizeof(struct ticket)) < 0) {
		ky_msg_conn_fail(&a->conn, -EDQUOT);
		return;
	}
	if (!owe(a, TICKET_QUERY, number, b)) {
		user_discharge(a->user, sizeof(struct ticket));
		return;
	}
	a->n_queries++;
	ky_app_query_send(&a->conn, &m, NULL, 0);
}

/* The rules of a channel, in as many messages as they need; none when no rule is enabled. */
static void query_rules(struct app *a, uint32_t number, const struct channel *c, struct barrier *b)
{
	struct list rules;
	struct rule *r;
	size_t len;

	list_clear(&rules);
	ky_list_foreach (r, &c->rules, node) {
		if (!r->enabled)
			continue;
		len = rules.w.len;
		rule_encode(&rules.w, r);
		if (rules.w.error) {
			rules.w.len = len;
			post_query(a, number, &rules, b);
			list_clear(&rules);
			rule_encode(&rules.w, r);
		}
		rules.n++;
	}
	if (rules.n)
		post_query(a, number, &rules, b);
}

bool app_is_tracked(const struct app *a, const struct session *s)
{
	return tracker_has(&s->trackers[TRACK_VPID], a->vpid) &&
	       tracker_has(&s->trackers[TRACK_VUID], a->user->uid) &&
	       tracker_has(&s->trackers[TRACK_VGID], a->gid);
}

static bool can_record(const struct app *a, struct session *s)
{
	if (!a->registered || !session_wants_uid(s, a->user->uid) || !app_is_tracked(a, s))
		return false;
	if (s->clock.clock == KY_CLOCK_MONOTONIC || (a->caps & KY_CAP_TSC))
		return true;
	session_notice(s,
		"program %s (pid %d) is left out: it cannot read the machine's counter; start the session daemon with KYMO_CLOCK=monotonic",
		a->name, (int)a->pid);
	return false;
}

/* Its end must be seen, or its buffers would stay. */
static bool watch_process(struct app *a)
{
	if (!a->process)
		a->process = process_get(a->env, a->user, a->conn.fd, a->pid, a->number);
	return a->process && a->process->number;
}

static struct ring_set *set_of_process(struct app *a, struct ring_set *kind)
{
	if (watch_process(a))
		return ring_set_of_process(kind, a->pid, a->number, a->process->image);
	session_notice(kind->channel->session,
		"channel '%s': program %s (pid %d) is left out: it cannot have buffers of its own, as its end could not be seen",
		kind->channel->name, a->name, (int)a->pid);
	return NULL;
}

static void query_channel(struct app *a, struct channel *c, struct barrier *b)
{
	bool per_cpu = c->buffers != BUFFERS_THREAD && a->caps & KY_CAP_RSEQ;
	uint32_t mode = per_cpu ? KY_SET_PER_CPU : KY_SET_PER_THREAD;
	struct ring_set *set;

	if (!channel_is_active(c) || !can_record(a, c->session))
		return;
	set = ring_set_get(c, a->user->uid, a->abi_bits, mode);
	if (set && c->buffers == BUFFERS_PROCESS)
		set = set_of_process(a, set);
	if (set && app_set_get(a, set))
		query_rules(a, set->number, c, b);
}

/* The barrier of a start that the program has not acknowledged: what it says meanwhile is to be in effect as well. */
static struct barrier *pending_start(const struct app *a, struct session *s)
{
	const struct ticket *t;

	if (s->step == SESSION_STARTING)
		ky_list_foreach (t, &a->tickets, node)
			if (t->barrier == &recording_of(s)->barrier)
				return t->barrier;
	return NULL;
}

static void query_everything(struct app *a)
{
	struct session *s;
	struct channel *c;

	ky_list_foreach (s, &a->env->sessions, node)
		if (s->step < SESSION_DROPPING)
			ky_list_foreach (c, &s->channels, node)
				query_channel(a, c, pending_start(a, s));
}

void apps_await_queries(const struct session *s, struct barrier *b)
{
	struct app_set *as;
	struct ticket *t;
	struct app *a;

	ky_list_foreach (a, &s->env->peers->apps, node)
		ky_list_foreach (t, &a->tickets, node) {
			as = t->kind == TICKET_QUERY ? find_set(a, t->key) : NULL;
			if (as && as->set->channel->session == s)
				ticket_await(t, b);
		}
}

void apps_query_channel(struct channel *c, struct barrier *b)
{
	struct app *a;

	ky_list_foreach (a, &c->session->env->peers->apps, node)
		query_channel(a, c, b);
}

void apps_query_all(const struct env *e, struct barrier *b)
{
	struct list rules;
	/* '*' is not for the collector's. Those that each program has of the tracer's are not worth a list. */
	static char *tracers[] = {(char *)"kymo_statedump:*", (char *)"kymo_lib:*"};
	static const struct rule all[] = {
		{.pattern = (char *)"*", .level_type = KY_LEVEL_ALL},
		{.pattern = (char *)"kymo_*",
			.exclusions = tracers,
			.n_exclusions = KY_ARRAY_SIZE(tracers),
			.level_type = KY_LEVEL_ALL},
	};
	struct app *a;

	list_clear(&rules);
	for (size_t i = 0; i < KY_ARRAY_SIZE(all); i++)
		rule_encode(&rules.w, &all[i]);
	rules.n = KY_ARRAY_SIZE(all);
	ky_list_foreach (a, &e->peers->apps, node)
		if (a->registered && !a->known)
			post_query(a, QUERY_ALL, &rules, b);
}

/* Returns the cookie of the application's ACK. b waits for it; may be NULL. */
static uint32_t expect_ack(struct app *a, struct barrier *b)
{
	uint32_t cookie = env_next_cookie(a->env);

	if (b)
		owe(a, TICKET_ACK, cookie, b);
	return cookie;
}

/* Also for a set that has started: then its ACK tells that what was mapped before is in effect. */
void app_set_start(struct app_set *as, struct barrier *b)
{
	if (!as->sent)
		return;
	as->start_cookie = expect_ack(as->app, b);
	ky_app_start_send(
		&as->app->conn, &(struct ky_app_start){as->start_cookie, as->set->number}, NULL, 0);
	as->untold |= !as->started;
	as->started = true;
	as->changed = false;
}

void app_set_stop(struct app_set *as, struct barrier *b)
{
	struct ky_app_stop m = {.set = as->set->number};

	if (!as->started)
		return;
	m.cookie = expect_ack(as->app, b);
	ky_app_stop_send(&as->app->conn, &m, NULL, 0);
	as->started = as->untold = as->recording = false;
}

void app_set_drop(struct app_set *as, struct barrier *b)
{
	struct ky_app_drop m = {.set = as->set->number};

	if (!as->sent)
		return;
	m.cookie = expect_ack(as->app, b);
	ky_app_drop_send(&as->app->conn, &m, NULL, 0);
	as->started = as->untold = as->sent = as->recording = false;
	as->n_contexts = 0;
}

/* The program's sets of the session that are to be told, in one message: so its state is told once to all of them. */
static void dump_state(struct app *a, const struct session *s, bool all, struct barrier *b)
{
	struct ky_app_statedump m = {.cookie = env_next_cookie(a->env)};
	struct ticket *t = NULL;
	struct app_set *as;
	struct list l;

	list_clear(&l);
	ky_list_foreach (as, &a->sets, app_node) {
		if (as->set->channel->session != s || !as->started || !(as->untold || all))
			continue;
		as->untold = false;
		ky_write_u32(&l.w, as->set->number);
		l.n++;
	}
	if (!l.n || !(a->caps & KY_CAP_STATEDUMP))
		return;
	m.n = l.n;
	m.sets = list_bytes(&l);
	if (b)
		t = owe(a, TICKET_ACK, m.cookie, b);
	if (t)
		t->trusted = collector_is(&a->env->peers->collector, a->pid);
	ky_app_statedump_send(&a->conn, &m, NULL, 0);
}

void apps_dump_state(struct session *s, bool all, struct barrier *b)
{
	struct app *a;

	ky_list_foreach (a, &s->env->peers->apps, node)
		dump_state(a, s, all, b);
}

static void forget_session(struct app *a, const struct session *s, struct barrier *b)
{
	struct app_set *as, *tmp;

	ky_list_foreach_safe (as, tmp, &a->sets, app_node) {
		if (as->set->channel->session != s)
			continue;
		app_set_drop(as, b);
		app_set_release(as);
	}
}

void apps_track(struct session *s, struct barrier *b)
{
	struct channel *c;
	struct app *a;

	ky_list_foreach (a, &s->env->peers->apps, node)
		if (!app_is_tracked(a, s))
			forget_session(a, s, b);
	ky_list_foreach (c, &s->channels, node)
		apps_query_channel(c, b);
}

static void post_blocking(struct app_set *as)
{
	struct ky_app_blocking m = {
		.set = as->set->number, .timeout_us = as->set->channel->blocking_timeout_us};

	ky_app_blocking_send(&as->app->conn, &m, NULL, 0);
}

/* Once. 0 or -errno. */
static int post_ring_set(struct app_set *as)
{
	const struct ring_set *set = as->set;
	struct app *a = as->app;
	_cleanup_close_ int consumed = as->sent ? -1
						: memory_open_read_only(set->memory.consumed_fd);
	const int fds[] = {set->memory.rings_fd, consumed};
	struct ky_app_ring_set m = {
		.set = set->number,
		.pool_size = set->pool_size,
		.named = set->named,
		.lasting = set->channel->session->journal_fd >= 0,
	};

	if (as->sent || consumed < 0)
		return as->sent ? 0 : consumed;
	if (set->mode == KY_SET_PER_THREAD)
		watch_process(a);
	KY_GEOMETRY_COPY(&m, &set->geometry);
	ky_app_ring_set_send(&as->app->conn, &m, fds, KY_ARRAY_SIZE(fds));
	as->sent = true;
	if (set->channel->blocking_timeout_us)
		post_blocking(as);
	return 0;
}

void apps_tell_blocking(struct channel *c)
{
	struct ring_set *set;
	struct app_set *as;

	ky_list_foreach (set, &c->sets, node)
		ky_list_foreach (as, &set->users, set_node)
			if (as->sent)
				post_blocking(as);
}

/* What MAP refers to. */
static void post_contexts(struct app_set *as)
{
	const struct channel *c = as->set->channel;
	struct ky_app_contexts m = {.set = as->set->number, .n = c->n_contexts};
	struct list l;

	if (as->n_contexts == c->n_contexts)
		return;
	list_clear(&l);
	contexts_encode(&l.w, c);
	m.list = list_bytes(&l);
	ky_app_contexts_send(&as->app->conn, &m, NULL, 0);
	as->n_contexts = c->n_contexts;
}

static void post_map(struct app_set *as, struct list *l)
{
	struct ky_app_map m = {.set = as->set->number, .n = l->n, .list = list_bytes(l)};

	if (!l->n)
		return;
	post_contexts(as);
	ky_app_map_send(&as->app->conn, &m, NULL, 0);
	as->changed = true;
	list_clear(l);
}

static void post_unmap(struct app_set *as, struct list *l)
{
	struct ky_app_unmap m = {.set = as->set->number, .n = l->n, .list = list_bytes(l)};

	if (!l->n)
		return;
	ky_app_unmap_send(&as->app->conn, &m, NULL, 0);
	as->changed = true;
	list_clear(l);
}

static void complain(struct app *a, const char *fmt, ...) KY_PRINTF(2, 3);

/* Tells those who would record the program, and the log; once, since one line about its events is enough. */
static void complain(struct app *a, const char *fmt, ...)
{
	struct session *s;
	char text[512];
	va_list ap;

	if (a->complained)
		return;
	a->complained = true;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ky_warning("program %s (pid %d): %s", a->name, (int)a->pid, text);
	ky_list_foreach (s, &a->env->sessions, node)
		if (session_wants_uid(s, a->user->uid))
			session_notice(s, "program %s (pid %d): %s", a->name, (int)a->pid, text);
}

/* Room for index + 1 entries, the new ones `fill`ed with this byte; charged to the user. */
static int grow_array(
	struct app *a, void *array, uint32_t *n, uint32_t index, size_t size, int fill)
{
	void **at = array;
	size_t want;
	char *grown;

	if (index < *n)
		return 0;
	want = KY_MAX((size_t)index + 1, KY_MIN((size_t)*n * 2, (size_t)USER_EVENTS_MAX));
	if (user_charge(a->user, (want - *n) * size) < 0) {
		complain(a, "an event is left out: programs of its user have too many");
		return -EDQUOT;
	}
	grown = realloc(*at, want * size);
	if (!grown) {
		user_discharge(a->user, (want - *n) * size);
		complain(a, "an event is left out: the session daemon has no memory left");
		return -ENOMEM;
	}
	memset(grown + *n * size, fill, (want - *n) * size);
	*at = grown;
	*n = (uint32_t)want;
	return 0;
}

/* Tells which event is refused, if it has a name that can be shown. */
static void complain_of_event(struct app *a, struct ky_bytes bytes, const char *why)
{
	struct ky_desc d;

	ky_desc_open(&d, bytes);
	if (ky_desc_name_valid(d.provider) && ky_desc_name_valid(d.name))
		complain(a, "event '%s:%s' is left out: %s", d.provider, d.name, why);
	else
		complain(a, "an event is left out: %s", why);
}

/* Remembers what event `index` is. When the number stands for another event than before, it is
 * mapped nowhere. */
static int learn(struct app *a, uint32_t index, struct ky_bytes bytes)
{
	struct event_desc *d;
	struct app_set *as;
	const char *why = "";
	int ret = user_intern(a->user, bytes, &d, &why);

	if (ret == -EBADMSG)
		complain_of_event(a, bytes, why);
	else if (ret == -EDQUOT)
		complain(a, "an event is left out: programs of its user have too many events");
	if (ret < 0)
		return ret;
	ret = grow_array(a, &a->events, &a->n_events, index, sizeof(*a->events), 0);
	if (ret < 0) {
		event_desc_unref(d);
		return ret;
	}
	if (a->events[index] != d)
		ky_list_foreach (as, &a->sets, app_node)
			forget_mapping(as, index);
	event_desc_unref(a->events[index]);
	a->events[index] = d;
	return 0;
}

/* `status` reports conflicts as long as they last (model/conflict.h); the log has them once. */
static void log_conflict(const struct channel *c, struct set_event *e)
{
	struct ky_buf text = {0};

	conflict_describe(&text, c, e);
	ky_warning("session '%s': %s", c->session->name, text.data ? text.data : e->desc->name);
	ky_buf_deinit(&text);
	e->told = true;
}

/* An event, or all that the program has, cannot be recorded; ret: why. */
static void report_failure(const struct app_set *as, const struct event_desc *d, int ret)
{
	const struct channel *c = as->set->channel;
	const struct app *a = as->app;

	if (ret == -EDQUOT)
		session_notice(c->session,
			"channel '%s': program %s (pid %d) is left out: with buffers for it, those of user %u would take more than the %" PRIu64
			" MiB that one user's may: use smaller or fewer buffers, destroy sessions, or start the session daemon with a larger --max-memory-per-user",
			c->name, a->name, (int)a->pid, (unsigned)a->user->uid,
			a->env->user_memory_max >> 20);
	else if (ret == -EFBIG)
		session_notice(c->session,
			"channel '%s': cannot record '%s': the session has as many descriptions of events of user %u as it has room for",
			c->name, d->name, (unsigned)a->user->uid);
	else
		session_notice(c->session, "channel '%s': cannot record '%s': %s", c->name, d->name,
			strerror(-ret));
}

/* Makes the event known to the set, which the program gets before it is told of any. NULL when that fails, reported. */
static struct set_event *register_event(struct app_set *as, struct event_desc *d)
{
	const struct channel *c = as->set->channel;
	struct definer by = {.pid = as->app->pid};
	struct set_event *e;
	int ret = ring_set_make(as->set);

	memcpy(by.name, as->app->name, sizeof(by.name));
	if (!ret)
		ret = ring_set_register(as->set, d, &by, &e);
	if (!ret)
		ret = post_ring_set(as);
	if (ret < 0) {
		report_failure(as, d, ret);
		return NULL;
	}
	if (e->rival && !e->told)
		log_conflict(c, e);
	return e;
}

/* The program has the filter before an event is said to need it. */
static void post_filter(struct app_set *as, const struct filter *f)
{
	struct ky_app_filters m = {.set = as->set->number, .n = 1};
	struct list l;

	for (uint32_t i = 0; i < as->n_known; i++)
		if (as->known[i] == f->number)
			return;
	if (grow_array(as->app, &as->known, &as->known_cap, as->n_known, sizeof(*as->known), 0) < 0)
		return;
	as->known[as->n_known++] = f->number;
	list_clear(&l);
	ky_write_u32(&l.w, f->number);
	ky_write_bytes(&l.w, (struct ky_bytes){f->program, f->len});
	m.list = list_bytes(&l);
	ky_app_filters_send(&as->app->conn, &m, NULL, 0);
}

/* FNV-1a of their numbers. */
static uint64_t hash_filters(const struct filter *const *filters, uint32_t n)
{
	uint64_t h = n ? 0xcbf29ce484222325u : 0;

	for (uint32_t i = 0; i < n; i++)
		h = (h ^ filters[i]->number) * 0x100000001b3u;
	return h;
}

/* Adds the event to the list for MAP. */
static void put_mapping(struct app_set *as, uint32_t index, const struct set_event *e,
	const struct filter *const *filters, uint32_t n, struct list *l)
{
	if (l->w.len + (4 + (size_t)n) * sizeof(uint32_t) > l->w.cap)
		post_map(as, l);
	for (uint32_t i = 0; i < n; i++)
		post_filter(as, filters[i]);
	ky_write_u32(&l->w, index);
	ky_write_u32(&l->w, e->id);
	ky_write_u32(&l->w, e->n_contexts);
	ky_write_u32(&l->w, n);
	for (uint32_t i = 0; i < n; i++)
		ky_write_u32(&l->w, filters[i]->number);
	l->n++;
}

/* Gives the event its identifier, if a rule still wants it, and tells its filters, if they are others than before. */
static void map_event(struct app_set *as, uint32_t index, struct list *l)
{
	const struct filter *filters[RULES_MAX];
	struct event_desc *d = as->app->events[index];
	struct set_event *e;
	struct rule *r;
	uint64_t hash;
	uint32_t n;

	ky_list_foreach (r, &as->set->channel->rules, node)
		if (r->enabled)
			rule_tell_unfit(r, d);
	if (!channel_wants(as->set->channel, d))
		return;
	n = channel_filters(as->set->channel, d, filters);
	hash = hash_filters(filters, n);
	if (is_mapped(as, index) && as->filters[index] == hash)
		return;
	e = register_event(as, d);
	if (!e || grow_array(as->app, &as->ids, &as->n_ids, index, sizeof(*as->ids), 0xff) < 0 ||
		grow_array(as->app, &as->filters, &as->n_filters, index, sizeof(*as->filters), 0) <
			0)
		return;
	e->n_apps += !is_mapped(as, index);
	as->ids[index] = e->id;
	as->filters[index] = hash;
	put_mapping(as, index, e, filters, n, l);
}

static void unmap_unwanted(struct app_set *as, struct barrier *b)
{
	struct app *a = as->app;
	struct list l;

	list_clear(&l);
	for (uint32_t i = 0; i < as->n_ids; i++) {
		if (!is_mapped(as, i) || channel_wants(as->set->channel, a->events[i]))
			continue;
		forget_mapping(as, i);
		ky_write_u32(&l.w, i);
		l.n++;
		if (l.w.len + sizeof(uint32_t) > l.w.cap)
			post_unmap(as, &l);
	}
	post_unmap(as, &l);
	for (uint32_t i = 0; i < as->n_ids; i++)
		if (is_mapped(as, i))
			map_event(as, i, &l);
	post_map(as, &l);
	if (as->started && as->changed)
		app_set_start(as, b);
}

void apps_unmap_unwanted(struct channel *c, struct barrier *b)
{
	struct ring_set *set;
	struct app_set *as;

	ky_list_foreach (set, &c->sets, node)
		ky_list_foreach (as, &set->users, set_node)
			unmap_unwanted(as, b);
}

static void unmap_all(struct app_set *as)
{
	struct list l;

	list_clear(&l);
	for (uint32_t i = 0; i < as->n_ids; i++) {
		if (!is_mapped(as, i))
			continue;
		ky_write_u32(&l.w, i);
		l.n++;
		if (l.w.len + sizeof(uint32_t) > l.w.cap)
			post_unmap(as, &l);
	}
	post_unmap(as, &l);
}

/* While the program records, MAP alone replaces what it has. */
static void renew(struct app_set *as, struct barrier *b)
{
	struct list l;

	if (as->set->channel->session->state != SESSION_STARTED)
		unmap_all(as);
	list_clear(&l);
	for (uint32_t i = 0; i < as->n_ids; i++) {
		if (!is_mapped(as, i))
			continue;
		forget_mapping(as, i);
		map_event(as, i, &l);
	}
	post_map(as, &l);
	if (as->started && as->changed)
		app_set_start(as, b);
}

void apps_renew_channel(struct channel *c, struct barrier *b)
{
	struct ring_set *set;
	struct app_set *as;
	int ret;

	c->renewed = c->session->state == SESSION_STARTED;
	ky_list_foreach (set, &c->sets, node) {
		ret = ring_set_is_own(set) ? 0 : ring_set_renew(set);
		if (ret < 0)
			session_notice(c->session,
				"channel '%s': some events stay without the new contexts: %s",
				c->name, strerror(-ret));
	}
	ky_list_foreach (set, &c->sets, node)
		ky_list_foreach (as, &set->users, set_node)
			renew(as, b);
}

/* as: NULL for QUERY_ALL, and when the session has gone meanwhile. */
static int take_events(struct app *a, const struct ky_app_events *m, struct app_set *as)
{
	struct ky_reader r = {.buf = m->list.data, .len = m->list.len};
	struct list l;

	list_clear(&l);
	for (uint32_t i = 0; i < m->n; i++) {
		uint32_t index = ky_read_u32(&r);
		struct ky_bytes desc = ky_read_bytes(&r);

		if (r.error || index >= USER_EVENTS_MAX)
			return -EBADMSG;
		if (!learn(a, index, desc) && as)
			map_event(as, index, &l);
	}
	if (as)
		post_map(as, &l);
	return 0;
}

/* Whether the program records all that sessions want of it, and knows that. */
static void note_answered(struct app *a)
{
	struct app_set *as;
	bool all = !a->n_queries;

	ky_list_foreach (as, &a->sets, app_node)
		all &= !as->started || as->recording;
	a->answered |= all;
}

static void done_if_due(struct app *a)
{
	struct ky_app_done m = {0};
	struct app_set *as;
	struct session *s;

	if (a->n_queries)
		return;
	ky_list_foreach (s, &a->env->sessions, node)
		dump_state(a, s, false, NULL);
	ky_list_foreach (as, &a->sets, app_node)
		m.n_sets += as->sent;
	for (; a->n_dones; a->n_dones--)
		ky_app_done_send(&a->conn, &m, NULL, 0);
	note_answered(a);
}

/* The program has events that it was not asked about: it is told when all has been said about them. */
static int ask_again(struct app *a)
{
	if (a->n_dones >= APP_PENDING_MAX)
		return -EDQUOT;
	a->n_dones++;
	a->known = a->answered = false;
	query_everything(a);
	done_if_due(a);
	return 0;
}

static int handle_events(struct app *a, struct ky_reader *r)
{
	struct ky_app_events m;
	struct ticket *t;
	struct app_set *as;
	int ret = ky_app_events_decode(r, &m);

	if (ret < 0)
		return ret;
	t = ticket_find(&a->tickets, TICKET_QUERY, m.query);
	if (!t)
		return -EPROTO;
	as = m.query == QUERY_ALL ? NULL : find_set(a, m.query);
	if (as && as->set->channel->session->step >= SESSION_DROPPING)
		as = NULL;
	ret = take_events(a, &m, as);
	if (ret < 0 || m.more)
		return ret;
	if (as && as->set->channel->session->state == SESSION_STARTED &&
		(as->changed || !as->started))
		app_set_start(as, t->barrier);
	a->known |= m.query == QUERY_ALL;
	a->n_queries--;
	user_discharge(a->user, sizeof(*t));
	ticket_done(t);
	done_if_due(a);
	return 0;
}

/* What a program calls itself: for the eye only, so anything but plain characters is replaced. */
static void take_name(struct app *a, const char *name)
{
	size_t n;

	for (n = 0; name[n] && n < sizeof(a->name) - 1; n++)
		a->name[n] = name[n] > ' ' && name[n] < 0x7f ? name[n] : '?';
	a->name[n] = '\0';
	if (!n)
		strcpy(a->name, "?");
}

static int refuse_version(struct app *a, uint32_t version)
{
	complain(a,
		"it is left out: its libkymo speaks version %u of the protocol, this daemon %u and later: update libkymo",
		version, KY_PROTO_OLDEST);
	return -EPROTONOSUPPORT;
}

static int handle_hello(struct app *a, struct ky_reader *r)
{
	struct ky_app_hello m;
	int ret = ky_app_hello_decode(r, &m);

	/* One that is too old has fewer fields. */
	if (ret < 0 && m.version >= KY_PROTO_OLDEST)
		return ret;
	if (a->registered || (m.abi_bits != 32 && m.abi_bits != 64))
		return -EPROTO;
	take_name(a, m.procname);
	if (m.version < KY_PROTO_OLDEST)
		return refuse_version(a, m.version);
	ky_timer_cancel(&a->deadline);
	a->registered = true;
	a->vpid = m.pid;
	a->number = m.process;
	a->abi_bits = m.abi_bits;
	a->caps = m.caps;
	ky_debug("program %s (pid %d, uid %u) registered", a->name, (int)a->pid,
		(unsigned)a->user->uid);
	collector_registered(&a->env->peers->collector, a->pid);
	return ask_again(a);
}

static int handle_new_events(struct app *a, struct ky_reader *r)
{
	struct ky_app_new_events m;
	int ret = ky_app_new_events_decode(r, &m);

	return ret < 0 ? ret : ask_again(a);
}

/* What it was to record into may be known to it by another layout, or too large. */
static void report_refusal(const struct app *a, uint32_t cookie, int error)
{
	const char *why = error == EBADMSG ? "its libkymo is of another version than this daemon"
					   : strerror(error);
	const struct app_set *as;

	ky_list_foreach (as, &a->sets, app_node)
		if (as->start_cookie == cookie) {
			session_notice(as->set->channel->session,
				"channel '%s': program %s (pid %d) is not recorded: %s",
				as->set->channel->name, a->name, (int)a->pid, why);
			return;
		}
	ky_warning("program %s (pid %d) could not obey: %s", a->name, (int)a->pid, why);
}

static int handle_ack(struct app *a, struct ky_reader *r)
{
	struct ky_app_ack m;
	struct app_set *as;
	int ret = ky_app_ack_decode(r, &m);

	if (ret < 0)
		return ret;
	if (m.status < 0)
		report_refusal(a, m.cookie, -KY_MAX(m.status, -4095));
	else
		ky_list_foreach (as, &a->sets, app_node)
			as->recording |= as->started && as->start_cookie == m.cookie;
	note_answered(a);
	ticket_done(ticket_find(&a->tickets, TICKET_ACK, m.cookie));
	return 0;
}

/* The program has run without recording into the set; what was before the session recorded does not count. */
static int handle_late(struct app *a, struct ky_reader *r)
{
	struct ky_app_late m;
	struct app_set *as;
	struct session *s;
	int ret = ky_app_late_decode(r, &m);

	if (ret < 0)
		return ret;
	as = find_set(a, m.set);
	s = as ? as->set->channel->session : NULL;
	if (s && s->state == SESSION_STARTED && s->step != SESSION_STARTING)
		unrecorded_add(&s->unrecorded, a->name, a->pid,
			KY_MIN(m.ns, ky_loop_now_ns() - s->recording_ns));
	return 0;
}

/* The set is of a session that records, and the program was not yet told, or has not confirmed, to record into it. */
static bool is_awaited(const struct app_set *as)
{
	const struct session *s = as->set->channel->session;
	const struct ticket *t;

	if (s->state != SESSION_STARTED || s->step == SESSION_STARTING || as->recording)
		return false;
	ky_list_foreach (t, &as->app->tickets, node)
		if (t->kind == TICKET_QUERY && t->key == as->set->number)
			return true;
	return as->started;
}

/* A program that has ended before it could be recorded. */
static void report_unrecorded_end(struct app *a)
{
	struct session *s;
	struct app_set *as;
	bool awaited;

	ky_list_foreach (s, &a->env->sessions, node) {
		awaited = false;
		ky_list_foreach (as, &a->sets, app_node)
			awaited |= as->set->channel->session == s && is_awaited(as);
		if (awaited)
			unrecorded_add(&s->unrecorded, a->name, a->pid, UNRECORDED_TO_ITS_END);
	}
}

/* Once for each user: what keeps one of its programs from counting mostly keeps all. */
static void report_uncounted(const struct app_set *as, const struct ky_app_uncounted *m)
{
	const struct channel *c = as->set->channel;
	char why[256];

	static_assert(KY_CTX_MAX <= 8 * sizeof(as->set->uncounted), "a bit for each context");
	for (uint32_t i = 0; i < as->n_contexts; i++) {
		uint64_t bit = UINT64_C(1) << i;

		if (as->set->kind->uncounted & bit ||
			!context_is_counter(&c->contexts[i], m->type, m->config))
			continue;
		as->set->kind->uncounted |= bit;
		context_explain_uncounted(-KY_MAX(m->status, -4095), why, sizeof(why));
		session_notice(c->session,
			"channel '%s': '%s' is 0 in events of program %s (pid %d), and perhaps of others of user %u: %s",
			c->name, c->contexts[i].spec, as->app->name, (int)as->app->pid,
			(unsigned)as->app->user->uid, why);
	}
}

static int handle_uncounted(struct app *a, struct ky_reader *r)
{
	struct ky_app_uncounted m;
	struct app_set *as;
	int ret = ky_app_uncounted_decode(r, &m);

	if (ret < 0)
		return ret;
	ky_list_foreach (as, &a->sets, app_node)
		report_uncounted(as, &m);
	return 0;
}

static void app_flushed(struct op *op, int status, const char *message)
{
	struct app *a = ky_container_of(op, struct app, flushed);
	struct ky_app_flushed m = {.cookie = a->flush_cookie};

	ky_app_flushed_send(&a->conn, &m, NULL, 0);
}

/* Only a companion's programs have the consumer write out what there is, which is their own. */
static int handle_flush(struct app *a, struct ky_reader *r)
{
	struct ky_app_flush m;
	int ret = ky_app_flush_decode(r, &m);

	if (ret < 0 || a->flush.loop)
		return ret < 0 ? ret : -EPROTO;
	a->flush_cookie = m.cookie;
	a->flushed.done = app_flushed;
	barrier_init(&a->flush, &a->env->loop, &a->flushed);
	if (a->env->peers->while_used)
		sessions_flush(a->env, &a->flush);
	barrier_arm(&a->flush, CONSUMER_ANSWER_NS);
	return 0;
}

static int handle_message(struct app *a, const void *buf, size_t len)
{
	struct ky_reader r;
	int type = ky_msg_open(&r, buf, len);

	if (type < 0)
		return type;
	if (type == KY_APP_HELLO)
		return handle_hello(a, &r);
	if (!a->registered)
		return -EPROTO;
	switch (type) {
	case KY_APP_EVENTS:
		return handle_events(a, &r);
	case KY_APP_NEW_EVENTS:
		return handle_new_events(a, &r);
	case KY_APP_ACK:
		return handle_ack(a, &r);
	case KY_APP_UNCOUNTED:
		return handle_uncounted(a, &r);
	case KY_APP_FLUSH:
		return handle_flush(a, &r);
	case KY_APP_LATE:
		return handle_late(a, &r);
	default:
		return 0;
	}
}

static void conn_message(
	struct ky_msg_conn *conn, const void *buf, size_t len, int *fds, size_t n_fds)
{
	int ret = handle_message(ky_container_of(conn, struct app, conn), buf, len);

	if (ret < 0)
		ky_msg_conn_fail(conn, ret);
}

static void conn_closed(struct ky_msg_conn *conn, int error)
{
	struct app *a = ky_container_of(conn, struct app, conn);

	if (error)
		ky_warning("program %s (pid %d, uid %u) dropped: %s", a->name, (int)a->pid,
			(unsigned)a->user->uid, strerror(-error));
	if (a->registered && !a->answered)
		report_unrecorded_end(a);
	app_free(a);
}

static void run_deadline(struct ky_timer *t)
{
	struct app *a = ky_container_of(t, struct app, deadline);

	ky_msg_conn_fail(&a->conn, -ETIMEDOUT);
}

static const struct ky_msg_conn_ops conn_ops = {
	.message = conn_message,
	.closed = conn_closed,
};

void app_accept(struct env *e, int fd, const struct ky_peer *peer)
{
	struct app *a = calloc(1, sizeof(*a));
	struct user *u = a ? user_get(&e->users, peer->uid) : NULL;
	/* A daemon that is not root's traces its own user's programs only. */
	bool refused = !u || u->n_apps >= e->peers->user_apps_max ||
		       (e->uid && peer->uid != e->uid);

	if (refused || ky_msg_conn_init(&a->conn, &e->loop, fd, &conn_ops, APP_QUEUE_MAX, 0) < 0) {
		ky_warning("program with pid %d of uid %u refused%s", (int)peer->pid,
			(unsigned)peer->uid,
			u && u->n_apps >= e->peers->user_apps_max
				? ": its user has as many as the daemon serves (a limit of open files?)"
				: "");
		if (refused)
			ky_close(fd);
		user_unref(u);
		free(a);
		return;
	}
	a->env = e;
	a->user = u;
	a->conn.account = &u->queued;
	a->pid = peer->pid;
	a->gid = peer->gid;
	strcpy(a->name, "?");
	u->n_apps++;
	ky_list_init(&a->sets);
	ky_list_init(&a->tickets);
	ky_list_append(&e->peers->apps, &a->node);
	ky_timer_init(&a->deadline, run_deadline);
	ky_timer_set(&e->loop, &a->deadline, APP_HELLO_NS);
}
