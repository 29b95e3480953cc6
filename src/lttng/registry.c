/* SPDX-License-Identifier: MIT */
/*
 * Tracepoints and the probes of their name. Objects with tracepoints, and providers, come and go in
 * any order, with dlopen and dlclose. A tracepoint has an array of probes and a state, which is 1
 * while a session records an event of its name: libkymo calls when that changes.
 *
 * One lock protects all of it. It is taken under libkymo's lock (by event_switched), so nobody
 * calls libkymo while holding it. The child of a fork finds it as the parent had it: a lock whose
 * owner is another process is free.
 *
 * Other threads may be within a probe while its provider is unregistered. Memory that they may
 * look at is freed RETIRED_NS later.
 */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lttng/lttng.h"

#define N_BUCKETS  1024
#define RETIRED_NS 10000000000u

struct place {
	struct place *next;
	struct abi_tracepoint *tracepoint;
};

/* All of one "provider:event". Never freed. */
struct name {
	struct name *next;
	const char *provider, *event;
	struct place *places;
	struct source *sources;
};

struct module {
	struct module *next;
	struct abi_tracepoint *const *start;
	int n;
};

struct provider {
	struct kymo_object object;
	unsigned n;
	struct event *events[];
};

struct retired {
	struct retired *next;
	uint64_t when;
	void *memory;
	void (*release)(void *memory);
};

static pid_t lock_owner;
static struct name *names[N_BUCKETS];
static struct module *modules;
static struct retired *retired;
static int destructors = 1;
static bool report_pending;

int lttng_ust_tracepoint_module_register(struct abi_tracepoint *const *start, int n);
int lttng_ust_tracepoint_module_unregister(struct abi_tracepoint *const *start);
int lttng_ust_tracepoint_provider_register(const char *provider, const char *event,
	void (*func)(void), void *data, const char *signature);
int lttng_ust_tracepoint_provider_unregister(
	const char *provider, const char *event, void (*func)(void), void *data);
struct provider *lttng_ust_probe_register(const struct abi_provider *desc);
void lttng_ust_probe_unregister(struct provider *provider);
void lttng_ust_tp_disable_destructors(void);
int lttng_ust_tp_get_destructors_state(void);

void lttng_leave_out(const char *provider, const char *event, const char *format, ...)
{
	const char *wanted = secure_getenv("KYMO_DEBUG");
	char name[256], why[160];
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, sizeof(why), format, ap);
	va_end(ap);
	snprintf(name, sizeof(name), "%s%s%s", provider, *provider ? ":" : "", event);
	if (wanted && *wanted)
		dprintf(STDERR_FILENO, "liblttng-ust of Kymo[%d]: '%s' is left out: %s\n",
			(int)getpid(), name, why);
	kymo_app_left_out(name, why);
	__atomic_store_n(&report_pending, true, __ATOMIC_RELAXED);
}

/*
 * Waits, as for events, until the daemons know what is left out: a program that ends at once may
 * not outrun the report.
 */
static void await_report(void)
{
	static struct kymo_object none = {sizeof(none), KYMO_ABI_VERSION, NULL, NULL, NULL};

	if (__atomic_exchange_n(&report_pending, false, __ATOMIC_RELAXED))
		kymo_object_register(&none);
}

static void lock_registry(void)
{
	const pid_t self = getpid();
	pid_t owner = 0;

	while (!__atomic_compare_exchange_n(
		&lock_owner, &owner, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		if (owner == self) {
			owner = 0;
			sched_yield();
		}
	}
}

static void unlock(void)
{
	__atomic_store_n(&lock_owner, 0, __ATOMIC_RELEASE);
}

static uint64_t now_ns(void)
{
	struct timespec t = {0, 0};

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Releases memory when no thread can be looking at it any more. Without memory for that: never. */
static void retire_memory(void *memory, void (*release)(void *))
{
	struct retired *r = malloc(sizeof(*r)), **at = &retired;
	const uint64_t now = now_ns();

	while (*at) {
		struct retired *old = *at;

		if (now - old->when < RETIRED_NS) {
			at = &old->next;
			continue;
		}
		*at = old->next;
		old->release(old->memory);
		free(old);
	}
	if (!r)
		return;
	*r = (struct retired){retired, now, memory, release};
	retired = r;
}

static struct name **bucket_of(const char *provider, const char *event)
{
	uint32_t h = 2166136261u;

	for (const char *p = provider; *p; p++)
		h = (h ^ (unsigned char)*p) * 16777619u;
	for (const char *p = event; *p; p++)
		h = (h ^ (unsigned char)*p) * 16777619u;
	return &names[h % N_BUCKETS];
}

static struct name *find_name(const char *provider, const char *event)
{
	struct name **bucket = bucket_of(provider, event), *n = *bucket;

	while (n && (strcmp(n->provider, provider) != 0 || strcmp(n->event, event) != 0))
		n = n->next;
	if (n)
		return n;
	/* The texts may be unloaded before the name is used again. */
	n = calloc(1, sizeof(*n) + strlen(provider) + strlen(event) + 2);
	if (!n)
		return NULL;
	n->provider = strcpy((char *)(n + 1), provider);
	n->event = strcpy((char *)(n + 1) + strlen(provider) + 1, event);
	n->next = *bucket;
	*bucket = n;
	return n;
}

static bool signature_matches(const struct source *s, const struct abi_tracepoint *tp)
{
	return !s->signature || !tp->signature || strcmp(s->signature, tp->signature) == 0;
}

static void update_state(const struct name *n, struct abi_tracepoint *tp)
{
	int state = 0;

	for (const struct source *s = n->sources; s; s = s->next)
		state |= s->enabled && signature_matches(s, tp);
	__atomic_store_n(&tp->state, state, __ATOMIC_RELEASE);
}

/* Gives the tracepoint an array of the probes of its name. Without memory it keeps the old one. */
static void connect(const struct name *n, struct abi_tracepoint *tp)
{
	struct abi_probe *probes = NULL, *old = tp->probes;
	size_t count = 0;

	for (const struct source *s = n->sources; s; s = s->next)
		count += signature_matches(s, tp);
	if (count) {
		probes = calloc(count + 1, sizeof(*probes));
		if (!probes)
			return;
	}
	count = 0;
	for (const struct source *s = n->sources; s; s = s->next) {
		if (signature_matches(s, tp))
			probes[count++] = s->probe;
		else
			lttng_leave_out(n->provider, n->event,
				"a tracepoint has the arguments %s, its event %s", tp->signature,
				s->signature);
	}
	__atomic_store_n(&tp->probes, probes, __ATOMIC_RELEASE);
	update_state(n, tp);
	if (old)
		retire_memory(old, free);
}

static void connect_all(const struct name *n)
{
	for (const struct place *p = n->places; p; p = p->next)
		connect(n, p->tracepoint);
}

static bool add_source(const char *provider, const char *event, struct source *s)
{
	struct name *n = find_name(provider, event);
	struct source **last = n ? &n->sources : NULL;

	if (!n)
		return false;
	while (*last)
		last = &(*last)->next;
	s->next = NULL;
	*last = s;
	connect_all(n);
	return true;
}

static void remove_source(const char *provider, const char *event, const struct source *s)
{
	struct name *n = find_name(provider, event);

	for (struct source **at = n ? &n->sources : NULL; at && *at; at = &(*at)->next) {
		if (*at != s)
			continue;
		*at = s->next;
		connect_all(n);
		return;
	}
}

/* --- tracepoints --- */

static void add_place(struct abi_tracepoint *tp)
{
	struct name *n = find_name(tp->provider, tp->event);
	struct place *p = n ? malloc(sizeof(*p)) : NULL;

	if (!p)
		return;
	*p = (struct place){n->places, tp};
	n->places = p;
	connect(n, tp);
}

static void remove_place(struct abi_tracepoint *tp)
{
	struct name *n = find_name(tp->provider, tp->event);

	for (struct place **at = n ? &n->places : NULL; at && *at; at = &(*at)->next) {
		struct place *p = *at;

		if (p->tracepoint != tp)
			continue;
		*at = p->next;
		free(p);
		__atomic_store_n(&tp->state, 0, __ATOMIC_RELEASE);
		if (tp->probes)
			retire_memory(tp->probes, free);
		__atomic_store_n(&tp->probes, NULL, __ATOMIC_RELEASE);
		/* It may be another object's too, where that has it under the same symbol. */
		for (p = n->places; p; p = p->next)
			if (p->tracepoint == tp)
				connect(n, tp);
		return;
	}
}

static bool is_usable_tracepoint(const struct abi_tracepoint *tp)
{
	return tp && tp->size >= sizeof(*tp) && tp->provider && tp->event;
}

EXPORT int lttng_ust_tracepoint_module_register(struct abi_tracepoint *const *start, int n)
{
	struct module *m = malloc(sizeof(*m));

	if (!m)
		return -1;
	lock_registry();
	*m = (struct module){modules, start, n};
	modules = m;
	for (int i = 0; i < n; i++)
		if (is_usable_tracepoint(start[i]))
			add_place(start[i]);
	unlock();
	await_report();
	return 0;
}

EXPORT int lttng_ust_tracepoint_module_unregister(struct abi_tracepoint *const *start)
{
	lock_registry();
	for (struct module **at = &modules; *at; at = &(*at)->next) {
		struct module *m = *at;

		if (m->start != start)
			continue;
		*at = m->next;
		for (int i = 0; i < m->n; i++)
			if (is_usable_tracepoint(start[i]))
				remove_place(start[i]);
		free(m);
		break;
	}
	unlock();
	return 0;
}

/* A function of the program's own, which is called whether somebody records or not. */
EXPORT int lttng_ust_tracepoint_provider_register(const char *provider, const char *event,
	void (*func)(void), void *data, const char *signature)
{
	struct source *s = malloc(sizeof(*s));
	bool added;

	if (!s)
		return -1;
	*s = (struct source){NULL, signature, {func, data}, 1};
	lock_registry();
	added = add_source(provider, event, s);
	unlock();
	if (!added)
		free(s);
	return added ? 0 : -1;
}

EXPORT int lttng_ust_tracepoint_provider_unregister(
	const char *provider, const char *event, void (*func)(void), void *data)
{
	struct source *s;
	struct name *n;

	lock_registry();
	n = find_name(provider, event);
	s = n ? n->sources : NULL;
	while (s && (s->probe.func != func || s->probe.data != data))
		s = s->next;
	if (s) {
		remove_source(provider, event, s);
		retire_memory(s, free);
	}
	unlock();
	return s ? 0 : -1;
}

/* --- providers --- */

static struct abi_session session = {sizeof(session), NULL, 1};
static struct abi_channel channel = {sizeof(channel), NULL, 0, NULL, 1, &session};
static struct abi_buffer buffer = {sizeof(buffer), &channel, NULL, &lttng_ops};

/* Called by libkymo, under its lock. */
static void event_switched(const struct kymo_event *event, uint32_t enabled)
{
	struct event *e = (struct event *)(uintptr_t)event;
	struct name *n;

	lock_registry();
	e->source.enabled = enabled != 0;
	e->enabler.filtered = e->n_asides && (enabled & KYMO_ENABLED_FILTER);
	__atomic_store_n(&e->enabler.enabled, enabled != 0, __ATOMIC_RELEASE);
	n = find_name(event->provider, event->name);
	for (const struct place *p = n ? n->places : NULL; p; p = p->next)
		update_state(n, p->tracepoint);
	unlock();
}

static void free_event(void *memory)
{
	lttng_describe_free(memory);
	free(memory);
}

static struct event *make_event(const struct abi_provider *provider, const struct abi_event *desc)
{
	struct event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	if (!lttng_describe(e, desc->cls)) {
		lttng_leave_out(provider->name, desc->name, "it has a field of an unknown type");
		free(e);
		return NULL;
	}
	e->watched.probe.event = (struct kymo_event){(uint32_t)sizeof(e->watched), KYMO_EVENT_PLAIN,
		KYMO_DEBUG_LINE, provider->name, desc->name, e->fields, &e->state, "", 0, 0};
	e->watched.probe.loglevel = desc->loglevel ? *desc->loglevel : NULL;
	e->watched.probe.model_emf_uri = (const char *const *)desc->model_emf_uri;
	e->watched.switched = event_switched;
	e->recorder = (struct abi_recorder){sizeof(e->recorder), &e->enabler, e, &buffer};
	e->enabler = (struct abi_enabler){
		sizeof(e->enabler), NULL, 0, &e->recorder, 0, 0, lttng_filter};
	e->source = (struct source){NULL, desc->cls->signature, {desc->cls->probe, &e->enabler}, 0};
	return e;
}

EXPORT struct provider *lttng_ust_probe_register(const struct abi_provider *desc)
{
	struct provider *p;

	const bool known = desc->major == ABI_PROVIDER_MAJOR;

	if (!known)
		lttng_leave_out(desc->name, "*",
			"the provider is of version %u of LTTng-UST's interface, not of %d",
			(unsigned)desc->major, ABI_PROVIDER_MAJOR);
	/* Programs abort where they get NULL. */
	p = calloc(1, sizeof(*p) + (known ? desc->n_events : 0) * sizeof(p->events[0]));
	if (!p)
		return NULL;
	lock_registry();
	for (unsigned i = 0; known && i < desc->n_events; i++) {
		struct event *e = make_event(desc, desc->events[i]);

		if (!e)
			continue;
		if (add_source(desc->name, desc->events[i]->name, &e->source))
			p->events[p->n++] = e;
		else
			free_event(e);
	}
	unlock();
	p->object = (struct kymo_object){(uint32_t)sizeof(p->object), KYMO_ABI_VERSION,
		(const struct kymo_event *const *)p->events,
		(const struct kymo_event *const *)p->events + p->n, NULL};
	kymo_object_register(&p->object);
	return p;
}

EXPORT void lttng_ust_probe_unregister(struct provider *p)
{
	if (!p)
		return;
	kymo_object_unregister(&p->object);
	lock_registry();
	for (unsigned i = 0; i < p->n; i++) {
		const struct kymo_event *event = &p->events[i]->watched.probe.event;

		remove_source(event->provider, event->name, &p->events[i]->source);
		retire_memory(p->events[i], free_event);
	}
	retire_memory(p, free);
	unlock();
}

EXPORT void lttng_ust_tp_disable_destructors(void)
{
	destructors = 0;
}

EXPORT int lttng_ust_tp_get_destructors_state(void)
{
	return destructors;
}
