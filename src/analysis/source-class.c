/* SPDX-License-Identifier: MIT */
#include "analysis/source-class.h"

#define MAX_FIELDS 64 /* of a class that are looked at */

static bool begins_with(const char *name, const char *beginning, const char **ret_rest)
{
	size_t n = strlen(beginning);

	if (strncmp(name, beginning, n) != 0)
		return false;
	*ret_rest = name + n;
	return true;
}

/* Names of the fields in the order of enum ky_event_field; the first of a row is preferred. */
static const char *const field_names[KY_N_FIELDS][3] = {
	[KY_FIELD_TID] = {"vtid", "tid"},
	[KY_FIELD_PID] = {"vpid", "pid"},
	[KY_FIELD_PROCNAME] = {"procname"},
	[KY_FIELD_CPU] = {"cpu_id"},
	[KY_FIELD_SPAN] = {"span_tid", "async_id"},
	[KY_FIELD_MUTEX] = {"mutex"},
	[KY_FIELD_STATUS] = {"status"},
	[KY_FIELD_CALLER] = {"caller", "ip"},
	[KY_FIELD_PREV_TID] = {"prev_tid", "prev_pid"},
	[KY_FIELD_PREV_STATE] = {"prev_state"},
	[KY_FIELD_NEXT_TID] = {"next_tid", "next_pid"},
	[KY_FIELD_NEXT_COMM] = {"next_comm"},
	[KY_FIELD_WOKEN_TID] = {"tid", "pid"},
	[KY_FIELD_IN_INTERRUPT] = {"in_interrupt"},
	[KY_FIELD_VEC] = {"vec"},
	[KY_FIELD_ADDRESS] = {"addr"},
	[KY_FIELD_DEVICE] = {"dev"},
	[KY_FIELD_COUNTER] = {"counter"},
	[KY_FIELD_SIZE] = {"size"},
	[KY_FIELD_NMEMB] = {"nmemb"},
	[KY_FIELD_OPTION] = {"option"},
};

/* Contexts are not fields of the event: a field "tid" of sched_waking is another thread's. */
static bool is_context(enum ky_event_field field)
{
	return field <= KY_FIELD_CPU;
}

static const struct ky_field *find_field(
	const struct ky_texts *names, const struct ky_source_class *c, enum ky_event_field field)
{
	for (size_t k = 0; k < KY_ARRAY_SIZE(field_names[0]) && field_names[field][k]; k++) {
		for (size_t i = c->fields.n; i-- > 0;) {
			const struct ky_field *f = &c->fields.v[i];

			if ((f->scope == KY_SCOPE_FIELDS) != is_context(field) &&
				!strcmp(ky_texts_get(names, f->name), field_names[field][k]))
				return f;
		}
	}
	return NULL;
}

/*
 * CTF has a number before a list, its length: "number of ids" for "_ids_length", and "length of
 * body" if it is a list of bytes. A text knows its length, so the number before it says nothing
 * else.
 */
static void name_length(struct ky_texts *names, struct ky_source_class *c,
	const struct ky_node *list, const char *prefix, const char *name)
{
	bool is_bytes = list->is_scalars && list->children->size == 8;
	struct ky_field *f = c->fields.n ? &c->fields.v[c->fields.n - 1] : NULL;
	char text[KY_TEXTS_LENGTH + sizeof("number of ")];

	snprintf(text, sizeof(text), "%s%s_%s_length", prefix, *prefix ? "." : "", list->name);
	if (!f || strcmp(ky_texts_get(names, f->name), text) != 0)
		return;
	snprintf(text, sizeof(text), "%s of %s", is_bytes ? "length" : "number", name);
	f->name = ky_texts_add(names, text, strlen(text));
	c->fields.n -= list->is_text;
}

/*
 * Adds the members of a structure, nested ones as "a.b". *i counts values. Returns false behind a
 * member with a variable number of values: the place of what follows is not known then.
 */
static bool add_fields(struct ky_texts *names, struct ky_source_class *c,
	const struct ky_node *node, enum ky_scope scope, const char *prefix, uint32_t *i)
{
	for (const struct ky_node *n = node->children; n < node->children + node->n; n++) {
		bool is_list = n->kind == KY_NODE_ARRAY || n->kind == KY_NODE_SEQUENCE;
		char name[KY_TEXTS_LENGTH];

		if (!n->is_shown)
			continue;
		snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", n->name);
		if (is_list)
			name_length(names, c, n, prefix, name);
		if (n->kind == KY_NODE_STRUCT) {
			if (!add_fields(names, c, n, scope, name, i))
				return false;
			continue;
		}
		if (n->kind == KY_NODE_VARIANT || (is_list && !n->is_scalars))
			return false;
		if ((!is_list || n->is_text) && c->fields.n < MAX_FIELDS &&
			ky_vec_add(&c->fields,
				(struct ky_field){.name = ky_texts_add(names, name, strlen(name)),
					.scope = (uint8_t)scope,
					.i = *i}) < 0)
			names->error = -ENOMEM;
		++*i;
	}
	return true;
}

static void add_scope(struct ky_texts *names, struct ky_source_class *c, const struct ky_node *node,
	enum ky_scope scope)
{
	uint32_t i = 0;

	if (node && node->is_shown)
		add_fields(names, c, node, scope, "", &i);
}

/* Functions that allocate or free. */
static bool is_alloc(const char *function)
{
	static const char *const functions[] = {"malloc", "calloc", "realloc", "reallocarray",
		"free", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc"};

	for (size_t i = 0; i < KY_ARRAY_SIZE(functions); i++) {
		if (!strcmp(function, functions[i]))
			return true;
	}
	return false;
}

struct pair_of_names {
	const char *entry, *exit; /* beginnings of names if they end in '_' */
	const char *ending;	  /* of the span's name */
};

/* Events in pairs that are spans of the thread. */
static const struct pair_of_names pairs[] = {
	{"syscall_entry_", "syscall_exit_", "()"},
	{"compat_syscall_entry_", "compat_syscall_exit_", "()"},
	{"sys_enter_", "sys_exit_", "()"},
	{"irq_handler_entry", "irq_handler_exit", "interrupt"},
	{"timer_hrtimer_expire_entry", "timer_hrtimer_expire_exit", "interrupt"},
	{"hrtimer_expire_entry", "hrtimer_expire_exit", "interrupt"},
	{"x86_irq_vectors_local_timer_entry", "x86_irq_vectors_local_timer_exit", "interrupt"},
	{"irq_softirq_entry", "irq_softirq_exit", "softirq"},
	{"softirq_entry", "softirq_exit", "softirq"},
	{"page_fault_entry", "page_fault_exit", "page fault"},
};

static void set_pair(struct ky_texts *names, struct ky_source_class *c, enum ky_event_kind kind,
	const char *rest, const char *ending)
{
	char name[KY_TEXTS_LENGTH];

	snprintf(name, sizeof(name), "%s%s", rest, ending);
	c->kind = kind;
	c->base = ky_texts_add(names, name, strlen(name));
	c->is_interrupt = strcmp(ending, "()") != 0;
	c->is_prctl = !strcmp(name, "prctl()");
}

static bool find_pair(struct ky_texts *names, struct ky_source_class *c, const char *name)
{
	const char *rest;

	if (strstr(name, "_rt_sigreturn"))
		return false; /* it does not return to its caller */
	for (size_t i = 0; i < KY_ARRAY_SIZE(pairs); i++) {
		if (begins_with(name, pairs[i].entry, &rest)) {
			set_pair(names, c, KY_EVENT_PAIR_ENTRY, rest, pairs[i].ending);
			return true;
		}
		if (begins_with(name, pairs[i].exit, &rest)) {
			set_pair(names, c, KY_EVENT_PAIR_EXIT, rest, pairs[i].ending);
			return true;
		}
	}
	return false;
}

static bool find_span(struct ky_texts *names, struct ky_source_class *c, const char *name)
{
	const struct ky_field *f = c->known[KY_FIELD_SPAN];
	bool is_async = f && !strcmp(ky_texts_get(names, f->name), "async_id");
	size_t len;

	if (!f)
		return false;
	if (ky_texts_end_in(name, "_begin", &len))
		c->kind = is_async ? KY_EVENT_ASYNC_BEGIN : KY_EVENT_SPAN_BEGIN;
	else if (ky_texts_end_in(name, "_end", &len))
		c->kind = is_async ? KY_EVENT_ASYNC_END : KY_EVENT_SPAN_END;
	else
		return false;
	c->base = ky_texts_add(names, name, len);
	return true;
}

struct fixed_kind {
	const char *name;
	enum ky_event_kind kind;
};

static const struct fixed_kind kinds[] = {
	{"mutex_lock_req", KY_EVENT_LOCK_REQ},
	{"mutex_lock_acq", KY_EVENT_LOCK_ACQ},
	{"mutex_trylock", KY_EVENT_TRYLOCK},
	{"mutex_unlock", KY_EVENT_UNLOCK},
	{"pthread_mutex_lock_req", KY_EVENT_LOCK_REQ},
	{"pthread_mutex_lock_acq", KY_EVENT_LOCK_ACQ},
	{"pthread_mutex_trylock", KY_EVENT_TRYLOCK},
	{"pthread_mutex_unlock", KY_EVENT_UNLOCK},
	{"func_entry", KY_EVENT_PAIR_ENTRY},
	{"func_exit", KY_EVENT_PAIR_EXIT},
	{"sched_switch", KY_EVENT_SWITCH},
	{"sched_waking", KY_EVENT_WAKING},
	{"sched_wakeup", KY_EVENT_WAKING},
	{"block_rq_issue", KY_EVENT_BLOCK_BEGIN},
	{"block_rq_complete", KY_EVENT_BLOCK_DONE},
	{"irq_softirq_raise", KY_EVENT_RAISE},
	{"softirq_raise", KY_EVENT_RAISE},
	{"kymo_sample", KY_EVENT_SAMPLE},
};

static enum ky_event_kind fixed_kind(const char *provider, size_t len, const char *name)
{
	static const char *const providers[] = {"", "pthread", "lttng_ust_pthread", "cyg_profile",
		"lttng_ust_cyg_profile", "lttng_ust_cyg_profile_fast"};

	for (size_t p = 0; p < KY_ARRAY_SIZE(providers); p++) {
		if (strlen(providers[p]) != len || memcmp(providers[p], provider, len))
			continue;
		for (size_t i = 0; i < KY_ARRAY_SIZE(kinds); i++) {
			if (!strcmp(kinds[i].name, name))
				return kinds[i].kind;
		}
	}
	return KY_EVENT_PLAIN;
}

bool ky_source_is_of_provider(const char *name, const char *provider)
{
	const char *rest;

	return begins_with(name, provider, &rest) && *rest == ':';
}

static bool is_libc(const char *name)
{
	return ky_source_is_of_provider(name, "libc") ||
	       ky_source_is_of_provider(name, "lttng_ust_libc");
}

bool ky_source_is_library(const char *name)
{
	static const char *const providers[] = {
		"libc", "pthread", "dl", "cyg_profile", "kymo", "kymo_lib", "kymo_statedump"};
	const char *rest;

	for (size_t i = 0; i < KY_ARRAY_SIZE(providers); i++) {
		if (ky_source_is_of_provider(name, providers[i]))
			return true;
	}
	return begins_with(name, "lttng_ust_", &rest);
}

static void set_kind(struct ky_texts *names, struct ky_source_class *c, const char *name)
{
	const char *colon = strrchr(name, ':'), *function = colon ? colon + 1 : name;

	c->name = ky_texts_add(names, name, strlen(name));
	c->is_kernel = !colon;
	if (is_libc(name) && is_alloc(function)) {
		c->kind = KY_EVENT_ALLOC;
		c->is_alloc = true;
		c->name = ky_texts_add(names, "libc:alloc", 10);
	} else if (!find_span(names, c, name) && !(c->is_kernel && find_pair(names, c, name))) {
		c->kind = fixed_kind(name, colon ? (size_t)(colon - name) : 0, function);
		c->is_lock = c->kind >= KY_EVENT_LOCK_REQ && c->kind <= KY_EVENT_UNLOCK;
	}
	if (c->kind == KY_EVENT_SAMPLE)
		ky_field_find(&c->callers, c->event, "callstack_user");
	c->callers.place = KY_FIELD_ANYWHERE; /* items have no decoder */
	c->is_library = ky_source_is_library(name);
	c->is_own = c->kind == KY_EVENT_PLAIN && !c->is_kernel && !c->is_library;
}

void ky_source_class_init(
	struct ky_source_class *c, const struct ky_event_class *e, struct ky_texts *names)
{
	c->event = e;
	add_scope(names, c, e->stream->packet_context, KY_SCOPE_PACKET_CONTEXT);
	add_scope(names, c, e->stream->event_context, KY_SCOPE_EVENT_CONTEXT);
	add_scope(names, c, e->context, KY_SCOPE_SPECIFIC_CONTEXT);
	add_scope(names, c, e->fields, KY_SCOPE_FIELDS);
	for (size_t i = 0; i < KY_N_FIELDS; i++)
		c->known[i] = find_field(names, c, (enum ky_event_field)i);
	set_kind(names, c, e->name);
}
