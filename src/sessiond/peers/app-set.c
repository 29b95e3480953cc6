/* SPDX-License-Identifier: MIT */
/* Ring sets in applications: the sets themselves, and orders about them. */
#include "sessiond/peers/app.h"
#include "sessiond/peers/collector.h"
#include "sessiond/peers/message-list.h"
#include "sessiond/model/surplus.h"
#include "sessiond/peers/peers.h"
#include "svc/check.h"

KY_APP_MESSAGES(KY_MSG_SENDER)

struct app_set *app_set_find(const struct app *a, uint32_t number)
{
	struct app_set *as;

	ky_list_foreach (as, &a->sets, app_node)
		if (as->set->number == number)
			return as;
	return NULL;
}

struct app_set *app_set_get(struct app *a, struct ring_set *set)
{
	struct app_set *as = app_set_find(a, set->number);

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

bool app_set_is_mapped(const struct app_set *as, uint32_t index)
{
	return index < as->n_ids && as->ids[index] != EVENT_NOT_MAPPED;
}

static bool has_identifier(const struct app_set *as, uint32_t index)
{
	return app_set_is_mapped(as, index) && as->ids[index] != KY_MAP_REFUSED;
}

void app_set_map(struct app_set *as, uint32_t index, uint32_t id)
{
	as->n_mapped -= has_identifier(as, index);
	as->ids[index] = id;
	as->n_mapped += has_identifier(as, index);
}

void app_set_forget_mapping(struct app_set *as, uint32_t index)
{
	struct set_event *e;

	if (!app_set_is_mapped(as, index))
		return;
	e = ring_set_event(as->set, as->app->events[index]);
	KY_CHECK(!e || e->n_apps > 0);
	if (e)
		e->n_apps--;
	app_set_map(as, index, EVENT_NOT_MAPPED);
}

static struct app_set *app_set_free(struct app_set *as)
{
	if (!as)
		return NULL;
	for (uint32_t i = 0; i < as->n_ids; i++)
		app_set_forget_mapping(as, i);
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

/*
 * Frees the application's part of the set; and the set itself, if it was only for this application
 * and never made.
 */
void app_set_release(struct app_set *as)
{
	struct ring_set *set = as->set;

	app_set_free(as);
	ring_set_unuse(set);
}

bool app_records_into(const struct app *a, const struct session *s)
{
	const struct app_set *as;

	ky_list_foreach (as, &a->sets, app_node)
		if (as->sent && as->set->channel->session == s)
			return true;
	return false;
}

unsigned app_count_mapped(const struct app *a, const struct session *s)
{
	struct app_set *as;
	unsigned n = 0;

	ky_list_foreach (as, &a->sets, app_node)
		n += as->set->channel->session == s ? as->n_mapped : 0;
	return n;
}

/* Returns the cookie of the application's ACK. b waits for it; may be NULL. */
static uint32_t expect_ack(struct app *a, struct barrier *b)
{
	uint32_t cookie = env_next_cookie(a->env);

	if (b)
		app_owe(a, TICKET_ACK, cookie, b);
	return cookie;
}

/* Also sent for a set that has started: its ACK confirms that earlier mappings are in effect. */
void app_set_start(struct app_set *as, struct barrier *b)
{
	if (!as->sent)
		return;
	as->start_cookie = expect_ack(as->app, b);
	ky_app_start_send(
		&as->app->conn, &(struct ky_app_start){as->start_cookie, as->set->number}, NULL, 0);
	as->state_due |= !as->started;
	as->started = true;
	as->changed = false;
}

void app_set_follow(struct app_set *as, struct barrier *b)
{
	if (as->set->channel->session->state == SESSION_STARTED && (as->changed || !as->started))
		app_set_start(as, b);
}

void app_set_stop(struct app_set *as, struct barrier *b)
{
	struct ky_app_stop m = {.set = as->set->number};

	if (!as->started)
		return;
	m.cookie = expect_ack(as->app, b);
	ky_app_stop_send(&as->app->conn, &m, NULL, 0);
	as->started = as->state_due = as->recording = false;
}

void app_set_drop(struct app_set *as, struct barrier *b)
{
	struct ky_app_drop m = {.set = as->set->number};

	if (!as->sent)
		return;
	m.cookie = expect_ack(as->app, b);
	ky_app_drop_send(&as->app->conn, &m, NULL, 0);
	as->started = as->state_due = as->sent = as->recording = false;
	as->n_contexts = 0;
}

void apps_drop_set(struct ring_set *set)
{
	struct app_set *as;

	ky_list_foreach (as, &set->users, set_node)
		app_set_drop(as, NULL);
}

/* One message for all sets, so that the application records its state once into all of them. */
void app_dump_state(struct app *a, const struct session *s, bool all, struct barrier *b)
{
	struct ky_app_statedump m = {.cookie = env_next_cookie(a->env)};
	struct ticket *t = NULL;
	struct app_set *as;
	struct list l;

	list_clear(&l);
	ky_list_foreach (as, &a->sets, app_node) {
		if (as->set->channel->session != s || !as->started || !(as->state_due || all))
			continue;
		as->state_due = false;
		ky_write_u32(&l.w, as->set->number);
		l.n++;
	}
	if (!l.n || !(a->caps & KY_CAP_STATEDUMP))
		return;
	m.n = l.n;
	m.sets = list_bytes(&l);
	if (b)
		t = app_owe(a, TICKET_ACK, m.cookie, b);
	if (t)
		t->trusted = collector_is(a->env->peers->collector, a->pid);
	ky_app_statedump_send(&a->conn, &m, NULL, 0);
}

void apps_dump_state(struct session *s, bool all, struct barrier *b)
{
	struct app *a;

	ky_list_foreach (a, &s->env->peers->apps, node)
		app_dump_state(a, s, all, b);
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
int app_set_send(struct app_set *as)
{
	struct ring_set *set = as->set;
	const struct session *s = set->channel->session;
	struct app *a = as->app;
	_cleanup_close_ int own = -1;
	int fds[] = {set->memory.rings_fd, -1};
	struct ky_app_ring_set m = {
		.set = set->number,
		.pool_size = set->pool_size,
		.named = set->named,
		.lasting = s->journal_fd >= 0 || s->journal_suspended,
		.session = s->number,
	};

	if (as->sent)
		return 0;
	if (ring_set_is_own(set))
		fds[1] = own = memory_open_read_only(set->memory.consumed_fd);
	else
		fds[1] = ring_memory_share(&set->memory);
	if (fds[1] < 0)
		return fds[1];
	if (set->mode == KY_SET_PER_THREAD)
		app_watch_process(a);
	KY_GEOMETRY_COPY(&m, &set->geometry);
	ky_app_ring_set_send(&as->app->conn, &m, fds, KY_ARRAY_SIZE(fds));
	as->sent = true;
	surplus_examine(set); /* a program that locks its memory populates all that it maps */
	if (set->channel->blocking_timeout_us)
		post_blocking(as);
	return 0;
}

void apps_send_blocking(struct channel *c)
{
	struct ring_set *set;
	struct app_set *as;

	ky_list_foreach (set, &c->sets, node)
		ky_list_foreach (as, &set->users, set_node)
			if (as->sent)
				post_blocking(as);
}
