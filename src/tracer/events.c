/* SPDX-License-Identifier: MIT */
/* The process's tracepoints: the list of them, their matching with rules, and their enabling. */
#include <stdarg.h>

#include "base/glob.h"
#include "base/hash.h"
#include "tracer/context.h"
#include "tracer/dispatch.h"
#include "tracer/filter.h"
#include "tracer/tracer.h"

static uint8_t scratch[KY_MSG_MAX]; /* for one description; under the lock */

/*
 * The table doubles. Its first part exists from the start, and suffices for most applications. It
 * is not one large mapping, which would be a huge page on systems that give these to all processes.
 */
static struct {
	uint32_t capacity;
	struct tracer_event few[28];
} table KY_WRITTEN_EARLY;
/* The first entry of each list of PLAIN events: its number, from 1. It fills one page. */
static uint32_t by_name[1024] __attribute__((aligned(4096)));

static bool make_room(void)
{
	uint32_t n = table.capacity ? table.capacity * 2 : KY_ARRAY_SIZE(table.few);
	struct tracer_event *bigger = table.few;

	if (tracer.n_events < table.capacity)
		return true;
	if (n > TRACER_MAX_EVENTS)
		return false;
	if (table.capacity) {
		bigger = tracer_alloc(n * sizeof(*bigger), false);
		if (!bigger)
			return false;
		memcpy(bigger, tracer.events, tracer.n_events * sizeof(*bigger));
	}
	tracer.events = bigger;
	table.capacity = n;
	return true;
}

/*
 * Encodes the description into scratch, or the name alone if it is too large. Returns its length.
 */
static size_t encode_description(const struct kymo_event *ev)
{
	struct ky_writer w = {.buf = scratch, .cap = sizeof(scratch) - 1024};

	ky_desc_encode(&w, ev);
	if (w.error) {
		w = (struct ky_writer){.buf = scratch, .cap = sizeof(scratch)};
		ky_write_str(&w, ev->provider);
		ky_write_str(&w, ev->name);
		ky_write_i32(&w, ky_event_loglevel(ev));
		ky_write_u32(&w, KY_DESC_TOO_LARGE);
	}
	return w.len;
}

static uint64_t signature(const struct kymo_event *ev)
{
	/* All queries and links count as equal. */
	size_t n = ev->kind == KYMO_EVENT_PLAIN ? encode_description(ev) : 0;

	return ky_hash64_add(KY_HASH64_BASIS, scratch, n);
}

static uint32_t *list_of(const struct kymo_event *ev)
{
	uint64_t h = ky_hash64_add(KY_HASH64_BASIS, ev->provider, strlen(ev->provider));

	return &by_name[ky_hash64_add(h, ev->name, strlen(ev->name)) % KY_ARRAY_SIZE(by_name)];
}

/*
 * Returns an entry for ev: that of an equal event that was unloaded, or a new one. Returns NULL if
 * there is no room. Known: the daemons have its description, and have not queried while it was
 * unloaded.
 */
static struct tracer_event *find_entry(const struct kymo_event *ev, bool *ret_known)
{
	uint64_t sig = tracer.n_unloaded ? signature(ev) : 0;

	for (uint32_t i = 0; sig && i < tracer.n_events; i++) {
		struct tracer_event *e = &tracer.events[i];

		if (!e->ev && e->signature == sig) {
			tracer.n_unloaded--;
			*ret_known = e->n_asked == tracer.n_asked;
			return e;
		}
	}
	*ret_known = false;
	if (!make_room())
		return NULL;
	if (ev->kind == KYMO_EVENT_PLAIN) {
		uint32_t *list = list_of(ev);

		/*
		 * An entry never changes its name, so it stays in its list. The exchange saves the
		 * page fault of reading before the one of writing.
		 */
		tracer.events[tracer.n_events].next = __atomic_exchange_n(
			list, tracer.n_events + 1, __ATOMIC_RELAXED);
	}
	return &tracer.events[tracer.n_events++];
}

static bool is_usable_event(const struct kymo_event *ev)
{
	return ev && ev->size >= sizeof(*ev) && ev->state && !ev->state->record &&
	       (ev->kind == KYMO_EVENT_PLAIN || ev->kind == KYMO_EVENT_QUERY ||
		       ev->kind == KYMO_EVENT_LINK);
}

static void set_enabled(const struct kymo_event *ev, uint32_t enabled)
{
	const struct kymo_watched_event *watched = ky_event_watched(ev);

	__atomic_store_n(&ev->state->enabled, enabled, __ATOMIC_RELEASE);
	if (watched && watched->switched)
		watched->switched(ev, enabled);
}

void tracer_event_leave_out(const struct kymo_event *ev, const char *fmt, ...)
{
	char name[KY_NAME_MAX + 1], why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	snprintf(name, sizeof(name), "%s:%s", ev->provider, ev->name);
	tracer_debug("%s is left out: %s", name, why);
	kymo_app_left_out(name, why);
}

uint32_t tracer_events_add(struct kymo_object *object)
{
	uint32_t n_new = 0;

	for (const struct kymo_event *const *p = object->begin; p < object->end; p++) {
		struct tracer_event *e;
		bool known;

		/*
		 * An event that has `record` is listed twice: it was inlined, or is in the headers
		 * of several sources.
		 */
		if (!is_usable_event(*p))
			continue;
		e = find_entry(*p, &known);
		if (!e) {
			kymo_app_left_out("*", "the application has too many events");
			break;
		}
		ky_record_choose((*p)->state, NULL);
		if ((*p)->kind == KYMO_EVENT_LINK)
			(*p)->state->hook = NULL;
		e->ev = *p;
		e->object = object;
		e->signature = 0;
		n_new += !known && (*p)->kind == KYMO_EVENT_PLAIN;
		tracer_event_update(e);
	}
	tracer_queries_update();
	return n_new;
}

void tracer_events_remove(struct kymo_object *object)
{
	for (uint32_t i = 0; i < tracer.n_events; i++) {
		struct tracer_event *e = &tracer.events[i];

		if (!e->ev || e->object != object)
			continue;
		/*
		 * At exit other threads still run and may have seen it enabled: `record` and
		 * `hooks` stay valid.
		 */
		set_enabled(e->ev, 0);
		e->signature = signature(e->ev);
		e->n_asked = tracer.n_asked;
		tracer.n_unloaded++;
		e->ev = NULL;
		e->object = NULL;
	}
	tracer_queries_update();
}

/* Matches one rule of a QUERY against an event. Always reads the whole rule. */
static bool rule_matches(struct ky_reader *r, const struct kymo_event *ev, const char *full_name)
{
	const char *pattern = ky_read_str(r);
	uint32_t type = ky_read_u32(r);
	int32_t level = ky_read_i32(r);
	uint32_t n_exclusions = ky_read_u32(r);
	bool match = ky_glob_match_event(pattern, full_name);

	if (type == KY_LEVEL_AT_LEAST)
		match = match && ky_event_loglevel(ev) <= level;
	else if (type == KY_LEVEL_ONLY)
		match = match && ky_event_loglevel(ev) == level;
	for (uint32_t i = 0; i < n_exclusions && !r->error; i++)
		if (ky_glob_match(ky_read_str(r), full_name))
			match = false;
	return match && !r->error;
}

static bool any_rule_matches(struct ky_bytes rules, uint32_t n_rules, const struct kymo_event *ev)
{
	struct ky_reader r = {.buf = rules.data, .len = rules.len};
	const size_t n = strlen(ev->provider), m = strlen(ev->name);
	char name[KY_NAME_MAX + 1];
	bool match = false;

	if (n + 1 + m >= sizeof(name))
		return false;
	/* At the start of a program, snprintf() would cost two page faults. */
	memcpy(name, ev->provider, n);
	name[n] = ':';
	memcpy(name + n + 1, ev->name, m + 1);
	for (uint32_t i = 0; i < n_rules && !r.error && !match; i++)
		match = rule_matches(&r, ev, name);
	return match;
}

uint32_t tracer_events_list(struct ky_writer *list)
{
	uint32_t n = 0;

	if (tracer.n_events > KY_LISTED_MAX)
		return 0;
	tracer.n_asked++;
	for (uint32_t i = 0; i < tracer.n_events; i++) {
		const struct kymo_event *ev = tracer.events[i].ev;
		size_t begin;
		uint32_t len;

		if (!ev || ev->kind != KYMO_EVENT_PLAIN)
			continue;
		ky_write_u32(list, i);
		ky_write_u32(list, 0); /* the length of the description, which is not known yet */
		begin = list->len;
		ky_desc_encode(list, ev);
		if (list->error)
			return 0;
		len = (uint32_t)(list->len - begin);
		memcpy(list->buf + begin - sizeof(len), &len, sizeof(len));
		n++;
	}
	return n;
}

void tracer_events_match(struct ky_bytes rules, uint32_t n_rules, uint32_t *index,
	struct ky_writer *list, uint32_t *ret_n)
{
	*ret_n = 0;
	tracer.n_asked++;
	for (; *index < tracer.n_events; ++*index) {
		const struct kymo_event *ev = tracer.events[*index].ev;
		struct ky_bytes desc = {scratch, 0};

		if (!ev || ev->kind != KYMO_EVENT_PLAIN || !any_rule_matches(rules, n_rules, ev))
			continue;
		desc.len = (uint32_t)encode_description(ev);
		if (desc.len + 2 * sizeof(uint32_t) > list->cap - list->len)
			return;
		ky_write_u32(list, *index);
		ky_write_bytes(list, desc);
		++*ret_n;
	}
}

static bool wants_caller(const struct ky_hook *hooks)
{
	for (const struct ky_hook *h = hooks; h; h = h->next) {
		const struct tracer_filters *filters = h->filters;
		const void *contexts = h->heir ? h->heir->contexts : h->contexts;

		if (h->mapped && ((contexts && tracer_contexts_want_caller(contexts)) ||
					 (filters && filters->want_caller)))
			return true;
	}
	return false;
}

void tracer_event_update(struct tracer_event *e)
{
	struct kymo_event_state chosen;
	uint32_t enabled = 0;

	if (!e->ev || e->ev->kind != KYMO_EVENT_PLAIN)
		return;
	for (struct ky_hook *h = e->hooks; h; h = h->next)
		if (h->active)
			enabled |= KYMO_ENABLED | (h->filters ? KYMO_ENABLED_FILTER : 0);
	tracer_dispatch(&chosen, e->hooks, tracer.dumping || wants_caller(e->hooks));
	ky_record_replace(e->ev->state, &chosen);
	set_enabled(e->ev, enabled);
}

static const char *probe_signature(const struct kymo_event *ev)
{
	const struct kymo_probe_state *s = (const struct kymo_probe_state *)(const void *)ev->state;

	return ky_event_probe(ev) && (ev->flags & KYMO_EVENT_CHAINED) ? s->signature : NULL;
}

/* Returns whether this QUERY or LINK is about the event. */
static bool is_about(const struct kymo_event *query, const struct kymo_event *ev)
{
	const struct kymo_link_event *link = (const struct kymo_link_event *)query;
	const char *signature;

	if (strcmp(ev->name, query->name) != 0 || strcmp(ev->provider, query->provider) != 0)
		return false;
	if (query->kind == KYMO_EVENT_QUERY)
		return true;
	signature = probe_signature(ev);
	if (!signature || !(query->flags & KYMO_EVENT_CHAINED))
		return false;
	if (!strcmp(signature, link->signature))
		return true;
	tracer_event_leave_out(
		ev, "a tracepoint has the arguments %s, its event %s", link->signature, signature);
	return false;
}

/*
 * Returns the first enabled event that the QUERY or LINK is about, or NULL. Chains the probes of a
 * LINK's events, in the order in which the events came.
 */
static const struct kymo_event *chain_enabled(const struct kymo_event *query)
{
	const struct kymo_event *found = NULL;

	/* The list begins with the last one. */
	for (uint32_t i = *list_of(query); i; i = tracer.events[i - 1].next) {
		const struct kymo_event *ev = tracer.events[i - 1].ev;

		if (!ev || !ev->state->enabled || !is_about(query, ev))
			continue;
		if (query->kind == KYMO_EVENT_LINK)
			__atomic_store_n(&((struct kymo_probe_state *)(void *)ev->state)->next,
				found ? (void *)(uintptr_t)ky_event_probe(found) : NULL,
				__ATOMIC_RELAXED);
		found = ev;
	}
	return found;
}

void tracer_queries_update(void)
{
	for (uint32_t i = 0; i < tracer.n_events; i++) {
		const struct tracer_event *e = &tracer.events[i];
		const struct kymo_event *found;

		if (!e->ev || e->ev->kind == KYMO_EVENT_PLAIN)
			continue;
		found = chain_enabled(e->ev);
		if (e->ev->kind == KYMO_EVENT_LINK)
			__atomic_store_n(&e->ev->state->hook,
				found ? (void *)(uintptr_t)ky_event_probe(found) : NULL,
				__ATOMIC_RELAXED);
		__atomic_store_n(&e->ev->state->enabled, found != NULL, __ATOMIC_RELEASE);
	}
}

void tracer_events_disable(void)
{
	for (uint32_t i = 0; i < tracer.n_events; i++)
		if (tracer.events[i].ev)
			__atomic_store_n(&tracer.events[i].ev->state->enabled, 0, __ATOMIC_RELAXED);
}

void tracer_events_reset(void)
{
	for (uint32_t i = 0; i < tracer.n_events; i++) {
		struct tracer_event *e = &tracer.events[i];

		e->hooks = NULL;
		if (!e->ev)
			continue;
		set_enabled(e->ev, 0);
		if (e->ev->kind == KYMO_EVENT_LINK)
			e->ev->state->hook = NULL;
		else
			ky_record_choose(e->ev->state, NULL);
	}
}
