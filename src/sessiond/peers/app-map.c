/* SPDX-License-Identifier: MIT */
/* The events that applications have, and the identifiers under which they record them. */
#include <inttypes.h>

#include "base/hash.h"
#include "sessiond/model/context.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/firing.h"
#include "sessiond/peers/message-list.h"
#include "svc/log.h"

KY_APP_MESSAGES(KY_MSG_SENDER)

#define EVENTS_PER_LOOK 4 /* at the time that the message takes: an event may take 100 us */

/* Sends the contexts that MAP refers to. */
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

static void complain_of_memory(struct app *a)
{
	app_complain(a, "an event is left out: the session daemon has no memory left");
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
		app_complain(a, "an event is left out: applications of its user have too many");
		return -EDQUOT;
	}
	grown = realloc(*at, want * size);
	if (!grown) {
		user_discharge(a->user, (want - *n) * size);
		complain_of_memory(a);
		return -ENOMEM;
	}
	memset(grown + *n * size, fill, (want - *n) * size);
	*at = grown;
	*n = (uint32_t)want;
	return 0;
}

static int leave_out(struct app *a, struct ky_bytes bytes, const char *why)
{
	char name[KY_NAME_MAX + 1];
	struct ky_desc d;

	ky_desc_open(&d, bytes);
	snprintf(name, sizeof(name), "%s:%s", d.provider, d.name);
	return app_add_left_out(a, name, why);
}

/* Remembers what event `index` is. When the number stands for another event than before, it is
 * mapped nowhere. */
static int learn_event(struct app *a, uint32_t index, struct ky_bytes bytes)
{
	struct event_desc *d;
	struct app_set *as;
	const char *why = "";
	int ret = user_intern(a->user, bytes, &d, &why);

	if (ret == -EBADMSG && leave_out(a, bytes, why) < 0)
		ret = -EDQUOT;
	if (ret == -EDQUOT)
		app_complain(
			a, "an event is left out: applications of its user have too many events");
	if (ret == -ENOMEM)
		complain_of_memory(a);
	if (ret < 0)
		return ret;
	ret = grow_array(a, &a->events, &a->n_events, index, sizeof(*a->events), 0);
	if (ret < 0) {
		event_desc_unref(d);
		return ret;
	}
	if (a->events[index] != d)
		ky_list_foreach (as, &a->sets, app_node)
			app_set_forget_mapping(as, index);
	event_desc_unref(a->events[index]);
	a->events[index] = d;
	return 0;
}

/* `status` reports conflicts as long as they last (model/set-event.h); the log has them once. */
static void log_conflict(const struct channel *c, struct set_event *e)
{
	struct ky_buf text = {0};

	conflict_describe(&text, c, e);
	ky_warning("session '%s': %s", c->session->name, text.data ? text.data : e->desc->name);
	ky_buf_deinit(&text);
	e->logged = true;
}

static const char *remedy(int ret)
{
	if (ret == -EFBIG)
		return ": raise the session daemon's limit of the size of files (ulimit -f)";
	if (ret == -EMFILE)
		return ": some applications are not recorded, nor counted: raise the session daemon's limit of open files (ulimit -n), or let applications share buffers (--buffers=cpu)";
	return "";
}

/* An event, or all that the program has, cannot be recorded; ret: why. */
static void report_failure(const struct app_set *as, const struct event_desc *d, int ret)
{
	const struct channel *c = as->set->channel;
	const struct app *a = as->app;

	if (ret == -EUSERS)
		session_notice(c->session,
			"channel '%s': application %s (pid %d) is left out: with buffers for it, those of user %u would take more than the %" PRIu64
			" MiB that one user's may: use smaller or fewer buffers, destroy sessions, or start the session daemon with a larger --max-memory-per-user",
			c->name, a->name, (int)a->pid, (unsigned)a->user->uid,
			a->env->user_memory_max >> 20);
	else if (ret == -EOVERFLOW)
		session_notice(c->session,
			"channel '%s': cannot record '%s': the session has as many descriptions of events of user %u as it has room for",
			c->name, d->name, (unsigned)a->user->uid);
	else if (ret == -EMLINK)
		session_notice(c->session,
			"channel '%s': event '%s' has %d definitions, as many as there may be: others are counted as discarded",
			c->name, d->name, DEFINITIONS_MAX);
	else
		session_notice(c->session, "channel '%s': cannot record '%s': %s%s", c->name,
			d->name, strerror(-ret), remedy(ret));
}

/*
 * Registers the event in the set. The application gets the set before any mapping. Returns 0, or
 * -errno, after it has reported the error.
 */
static int register_event(struct app_set *as, struct event_desc *d, struct set_event **ret_event)
{
	const struct channel *c = as->set->channel;
	struct definer by = {.pid = as->app->pid};
	struct set_event *e;
	int ret = ring_set_make(as->set);

	memcpy(by.name, as->app->name, sizeof(by.name));
	if (!ret)
		ret = ring_set_register(as->set, d, &by, &e);
	if (!ret)
		ret = app_set_send(as);
	if (ret < 0) {
		report_failure(as, d, ret);
		return ret;
	}
	if (e->rival && !e->logged)
		log_conflict(c, e);
	*ret_event = e;
	return 0;
}

/*
 * Sends the filter, once: the program has it before an event is said to need it. Returns 0, or
 * -errno, after it has reported the error.
 */
static int post_filter(struct app_set *as, const struct filter *f)
{
	struct ky_app_filters m = {.set = as->set->number, .n = 1};
	struct list l;
	int ret;

	for (uint32_t i = 0; i < as->n_known; i++)
		if (as->known[i] == f->number)
			return 0;
	ret = grow_array(as->app, &as->known, &as->known_cap, as->n_known, sizeof(*as->known), 0);
	if (ret < 0)
		return ret;
	as->known[as->n_known++] = f->number;
	list_clear(&l);
	ky_write_u32(&l.w, f->number);
	ky_write_bytes(&l.w, (struct ky_bytes){f->program, f->len});
	m.list = list_bytes(&l);
	ky_app_filters_send(&as->app->conn, &m, NULL, 0);
	return 0;
}

static int post_filters(struct app_set *as, const struct filter *const *filters, uint32_t n)
{
	int ret = 0;

	for (uint32_t i = 0; i < n && !ret; i++)
		ret = post_filter(as, filters[i]);
	return ret;
}

static uint64_t hash_filters(const struct filter *const *filters, uint32_t n)
{
	uint64_t h = n ? KY_HASH64_BASIS : 0;

	for (uint32_t i = 0; i < n; i++)
		h = ky_hash64_add(h, &filters[i]->number, sizeof(filters[i]->number));
	return h;
}

/* Sends the triggers of an event, which MAP has named before. */
static void post_triggers(struct app_set *as, uint32_t index, const struct event_triggers *t)
{
	struct ky_app_triggers m = {.set = as->set->number,
		.event = index,
		.role = t->role,
		.id_size = t->id_size,
		.span = t->span,
		.n = t->n};
	struct list l;

	list_clear(&l);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct trigger_spec *spec = &t->list[i]->spec;
		const struct filter *f = spec->condition.rule->filter;

		if (f && post_filter(as, f) < 0)
			return;
		ky_write_u32(&l.w, spec->number);
		ky_write_u32(
			&l.w, (trigger_has_action(spec, DO_SNAPSHOT) ? KY_TRIGGER_FREEZES : 0) |
				      (t->timed[i] ? KY_TRIGGER_TIMED : 0));
		ky_write_u32(&l.w, f ? f->number + 1 : 0);
		ky_write_u64(&l.w, spec->condition.limit);
	}
	m.list = list_bytes(&l);
	ky_app_triggers_send(&as->app->conn, &m, NULL, 0);
}

/* Adds the event to the list for MAP. The program has its filters. */
static void put_mapping(struct app_set *as, uint32_t index, const struct set_event *e,
	const struct filter *const *filters, uint32_t n, struct list *l)
{
	if (l->w.len + (4 + (size_t)n) * sizeof(uint32_t) > l->w.cap)
		post_map(as, l);
	ky_write_u32(&l->w, index);
	ky_write_u32(&l->w, e->id);
	ky_write_u32(&l->w, e->n_contexts);
	ky_write_u32(&l->w, n);
	for (uint32_t i = 0; i < n; i++)
		ky_write_u32(&l->w, filters[i]->number);
	l->n++;
}

/* The application counts an event that matches the set's rules, and that cannot be described. */
static void refuse_event(struct app_set *as, uint32_t index, struct list *l)
{
	static const struct set_event refused = {.id = KY_MAP_REFUSED};

	if (!ring_set_make(as->set) && !app_set_send(as))
		put_mapping(as, index, &refused, NULL, 0, l);
}

/* Makes room for a mapping of the event. Returns 0 or -errno. */
static int make_room(struct app_set *as, uint32_t index)
{
	int ret = grow_array(as->app, &as->ids, &as->n_ids, index, sizeof(*as->ids), 0xff);

	return ret < 0 ? ret
		       : grow_array(as->app, &as->filters, &as->n_filters, index,
				 sizeof(*as->filters), 0);
}

/* Maps the event if a rule still wants it, unless it is mapped with the same filters already. */
static void map_event(struct app_set *as, uint32_t index, struct list *l)
{
	const struct filter *filters[RULES_MAX];
	struct event_desc *d = as->app->events[index];
	struct event_triggers triggers;
	struct set_event *e;
	struct rule *r;
	uint64_t hash;
	uint32_t n;
	int ret;

	ky_list_foreach (r, &as->set->channel->rules, node)
		if (r->enabled)
			rule_note_mismatch(r, d);
	if (!channel_wants(as->set->channel, d))
		return;
	n = channel_filters(as->set->channel, d, filters);
	firing_find(as->set->channel->session, d, &triggers);
	hash = firing_hash(&triggers, hash_filters(filters, n));
	if (app_set_is_mapped(as, index) && as->filters[index] == hash)
		return;
	ret = register_event(as, d, &e);
	if ((ret < 0 && ret != -EMLINK) || make_room(as, index) < 0 ||
		(!ret && post_filters(as, filters, n) < 0))
		return;
	as->filters[index] = hash;
	if (ret == -EMLINK) {
		app_set_map(as, index, KY_MAP_REFUSED);
		refuse_event(as, index, l);
		return;
	}
	firing_note(as->set, &triggers);
	e->n_apps += !app_set_is_mapped(as, index);
	app_set_map(as, index, e->id);
	put_mapping(as, index, e, filters, n, l);
	if ((!triggers.n && triggers.role == KY_SPAN_NONE) || e->id == KY_MAP_REFUSED ||
		!(as->app->caps & KY_CAP_TRIGGERS))
		return;
	post_map(as, l);
	post_triggers(as, index, &triggers);
}

void app_map_known(struct app_set *as)
{
	struct list l;

	list_clear(&l);
	for (uint32_t i = 0; i < as->app->n_events; i++)
		if (as->app->events[i])
			map_event(as, i, &l);
	post_map(as, &l);
}

static void unmap_unwanted(struct app_set *as, struct barrier *b)
{
	struct app *a = as->app;
	struct list l;

	list_clear(&l);
	for (uint32_t i = 0; i < as->n_ids; i++) {
		if (!app_set_is_mapped(as, i) || channel_wants(as->set->channel, a->events[i]))
			continue;
		app_set_forget_mapping(as, i);
		ky_write_u32(&l.w, i);
		l.n++;
		if (l.w.len + sizeof(uint32_t) > l.w.cap)
			post_unmap(as, &l);
	}
	post_unmap(as, &l);
	for (uint32_t i = 0; i < as->n_ids; i++)
		if (app_set_is_mapped(as, i))
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

void apps_update_triggers(struct session *s, struct barrier *b)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		apps_unmap_unwanted(c, b);
}

static void unmap_all(struct app_set *as)
{
	struct list l;

	list_clear(&l);
	for (uint32_t i = 0; i < as->n_ids; i++) {
		if (!app_set_is_mapped(as, i))
			continue;
		ky_write_u32(&l.w, i);
		l.n++;
		if (l.w.len + sizeof(uint32_t) > l.w.cap)
			post_unmap(as, &l);
	}
	post_unmap(as, &l);
}

/* While the program records, MAP alone replaces what it has. */
static void renew_events(struct app_set *as, struct barrier *b)
{
	struct list l;

	if (as->set->channel->session->state != SESSION_STARTED)
		unmap_all(as);
	list_clear(&l);
	for (uint32_t i = 0; i < as->n_ids; i++) {
		if (!app_set_is_mapped(as, i))
			continue;
		app_set_forget_mapping(as, i);
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
			renew_events(as, b);
}

static bool is_too_large(struct ky_bytes desc)
{
	struct ky_desc d;

	ky_desc_open(&d, desc);
	return !d.fields.error && d.n_fields == KY_DESC_TOO_LARGE;
}

/* Learns the next event of the message, and maps it. as: may be NULL. */
static int take_event(struct app *a, struct ky_reader *r, struct app_set *as, struct list *l)
{
	uint32_t index = ky_read_u32(r);
	struct ky_bytes desc = ky_read_bytes(r);

	if (r->error || index >= USER_EVENTS_MAX)
		return -EBADMSG;
	if (!learn_event(a, index, desc)) {
		if (as)
			map_event(as, index, l);
	} else if (as && is_too_large(desc)) {
		refuse_event(as, index, l);
	}
	return 0;
}

int app_take_list(struct app *a, const struct ky_app_hello *m)
{
	struct ky_reader r = {.buf = m->listed.data, .len = m->listed.len};
	int ret = m->n_listed > KY_LISTED_MAX ? -EBADMSG : 0;

	for (uint32_t i = 0; i < m->n_listed && !ret; i++)
		ret = take_event(a, &r, NULL, NULL);
	return ret;
}

int app_take_events(struct app *a, const struct ky_app_events *m, struct app_set *as)
{
	struct ky_reader r = {.buf = m->list.data, .len = m->list.len, .pos = a->taken_bytes};
	struct list l;
	int ret = 0;

	list_clear(&l);
	for (; a->n_taken < m->n && !ret; a->n_taken++) {
		ret = take_event(a, &r, as, &l);
		if (a->n_taken % EVENTS_PER_LOOK == 0 && ky_msg_conn_is_over(&a->conn))
			ret = ret ? ret : -EAGAIN;
	}
	if (as)
		post_map(as, &l);
	a->taken_bytes = r.pos;
	if (ret != -EAGAIN)
		a->n_taken = a->taken_bytes = 0;
	return ret;
}
