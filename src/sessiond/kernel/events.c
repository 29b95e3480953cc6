/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/events.h"

#include "kernel/filter.h"
#include "kernel/names.h"
#include "kernel/print-fmt.h"
#include "kernel/program.h"
#include "proto/consumer.h"
#include "sessiond/kernel/matches.h"
#include "sessiond/kernel/probes.h"

#define LAST_SHORT 30u

/* Lists the contexts that there are, for a message. */
static void put_contexts(char *why, size_t size)
{
	size_t n = strlen(why);

	for (const struct ky_ctx_type *t = ky_kcontext_types; t->name[0] && n < size; t++)
		n += (size_t)snprintf(
			why + n, size - n, "%s%s", t == ky_kcontext_types ? "" : ", ", t->name);
}

int kernel_context_parse(struct ky_context *ret, const char *spec, char *why, size_t why_size)
{
	*ret = (struct ky_context){.type = ky_kcontext_find(spec)};
	if (!ret->type) {
		snprintf(why, why_size, "the kernel does not record '%.64s': there are ", spec);
		put_contexts(why, why_size);
		return -EINVAL;
	}
	snprintf(ret->spec, sizeof(ret->spec), "%s", spec);
	snprintf(ret->name, sizeof(ret->name), "%s", spec);
	for (char *p = ret->name; *p; p++)
		if (*p == '-')
			*p = '_';
	return 0;
}

/* --- events of a set --- */

void kernel_event_free(struct kernel_event *e)
{
	if (!e)
		return;
	ky_list_remove(&e->node);
	ky_buf_deinit(&e->programs);
	free(e->system);
	free(e->name);
	free(e->format);
	free(e->filter);
	free(e->rest);
	free(e);
}

static struct kernel_event *find_event(
	const struct kernel_set *set, const char *system, const char *name)
{
	struct kernel_event *e;

	ky_list_foreach (e, &set->events, node)
		if (!strcmp(e->name, name) && !strcmp(e->system, system))
			return e;
	return NULL;
}

/* Makes an event without the kernel's description. Returns NULL with errno set. */
static struct kernel_event *event_alloc(const char *system, const char *name)
{
	struct kernel_event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	ky_list_init(&e->node);
	e->system = strdup(system);
	e->name = strdup(name);
	e->filter = strdup("");
	e->rest = strdup("");
	if (e->system && e->name && e->filter && e->rest)
		return e;
	kernel_event_free(e);
	return NULL;
}

/* Reads the kernel's text about the event. Returns NULL with errno set. */
static char *read_format(const struct kernel_set *set, const struct kernel_event *e)
{
	char path[TRACEFS_PATH_MAX];

	snprintf(path, sizeof(path), "events/%s/%s/format", e->system, e->name);
	return tracefs_read(set->main.dir, path);
}

/* Makes an event of the set with the kernel's description. Returns NULL with errno set. */
static struct kernel_event *event_new(
	const struct kernel_set *set, const char *system, const char *name)
{
	struct kernel_event *e = event_alloc(system, name);

	if (!e)
		return NULL;
	e->format = read_format(set, e);
	if (e->format)
		return e;
	kernel_event_free(e);
	return NULL;
}

/* The event's fields and steps: large, so they are made when they are needed. */
struct compiled {
	struct ky_kformat format;
	struct ky_kprogram program;
	char *text; /* owned; the format */
};

static void compiled_free(struct compiled *c)
{
	if (!c)
		return;
	free(c->text);
	free(c);
}

/* Takes the text. Returns NULL if there is none, or if it is no use. */
static struct compiled *compile_text(
	char *text, const char *system, const struct ky_context *contexts, uint32_t n_contexts)
{
	struct compiled *c = malloc(sizeof(*c));

	if (c && text && !ky_kformat_parse(&c->format, text) &&
		!ky_kprogram_make(&c->program, system, &c->format, contexts, n_contexts)) {
		c->text = text;
		return c;
	}
	free(text);
	free(c);
	return NULL;
}

static struct compiled *compile_with_contexts(
	const struct kernel_set *set, const struct kernel_event *e)
{
	const struct channel *c = set->channel;

	if (e->n_contexts > c->n_contexts)
		return NULL;
	return compile_text(strdup(e->format), e->system, c->contexts, e->n_contexts);
}

/* The same of any event, without contexts. */
static struct compiled *compile_event(struct kernel *k, const char *system, const char *name)
{
	char path[TRACEFS_PATH_MAX];

	snprintf(path, sizeof(path), "events/%s/%s/format", system, name);
	return compile_text(tracefs_read(k->fs.root, path), system, NULL, 0);
}

int kernel_event_describe(
	struct kernel *k, const char *system, const char *name, struct ky_writer *w)
{
	struct compiled *c = compile_event(k, system, name);

	if (!c)
		return -ENOENT;
	ky_kernel_describe(w, c->program.name, c->program.fields);
	compiled_free(c);
	return w->error;
}

/* Of two kernel events with one name in the trace, the second one has its system's before it. */
static void distinguish_name(
	const struct kernel_set *set, const struct kernel_event *e, struct ky_kprogram *p)
{
	char name[KY_KPROGRAM_NAME];
	struct kernel_event *other;

	ky_list_foreach (other, &set->events, node) {
		if (other == e)
			break;
		ky_kname(other->system, other->name, name, sizeof(name));
		if (strcmp(name, p->name) != 0 ||
			(!strcmp(other->name, e->name) && !strcmp(other->system, e->system)))
			continue;
		snprintf(p->name, sizeof(p->name), "%.120s_%.120s", e->system, name);
		return;
	}
}

static uint32_t choose_id(struct kernel_set *set, const char *trace_name)
{
	uint32_t id = ky_kernel_fixed_id(trace_name);

	if (id > LAST_SHORT || set->fixed_used[id])
		id = set->next_short <= LAST_SHORT ? set->next_short++ : set->next_long++;
	if (id <= LAST_SHORT)
		set->fixed_used[id] = true;
	return id;
}

/* Numbers the event, and appends it to the metadata. */
static int describe_event(struct kernel_set *set, struct kernel_event *e)
{
	struct ky_buf text = {0};
	struct compiled *c;
	int ret;

	e->n_contexts = set->channel->n_contexts;
	c = compile_with_contexts(set, e);
	if (!c)
		return -EBADMSG;
	e->kernel_id = c->format.id;
	distinguish_name(set, e, &c->program);
	e->id = choose_id(set, c->program.name);
	ky_kernel_tsdl_event(&text, c->program.name, c->program.fields, set->stream_id, e->id,
		set->channel->contexts, e->n_contexts);
	compiled_free(c);
	if (!text.error)
		OBSERVE(set->channel->session->env, kernel_event_numbered, set, e, text.data);
	ret = registry_append(set->registry, &text);
	ky_buf_deinit(&text);
	return ret;
}

#define FORMAT_MAX (KY_MSG_MAX / 4) /* bytes of an event's text with the names of its values */

int kernel_event_encode(
	struct ky_writer *w, const struct kernel_set *set, const struct kernel_event *e)
{
	uint8_t buf[KY_MSG_MAX / 2];
	struct ky_writer desc = {.buf = buf, .cap = sizeof(buf)};
	struct compiled *c = compile_with_contexts(set, e);
	struct ky_cons_kernel_event m = {
		.set = set->number, .kernel_id = e->kernel_id, .id = e->id, .format = e->format};
	struct ky_buf format = {.max = FORMAT_MAX};
	int ret;

	if (!c)
		return -ENOMEM;
	distinguish_name(set, e, &c->program);
	ky_buf_puts(&format, e->format);
	ky_kvalues_put(&format, e->format, &c->program);
	if (!format.error)
		m.format = format.data;
	if (e->programs.len)
		ky_kernel_describe(&desc, c->program.name, c->program.fields);
	m.min = c->program.min;
	m.steps = (struct ky_bytes){
		c->program.steps, (uint32_t)(c->program.n_steps * sizeof(*c->program.steps))};
	m.desc = (struct ky_bytes){buf, (uint32_t)desc.len};
	m.filters = (struct ky_bytes){e->programs.data, (uint32_t)e->programs.len};
	ret = ky_cons_kernel_event_encode(w, &m);
	ky_buf_deinit(&format);
	compiled_free(c);
	return ret;
}

int kernel_stack_encode(struct ky_writer *w, const struct kernel_set *set, const char *name)
{
	struct ky_kformat *f = malloc(sizeof(*f));
	char path[TRACEFS_PATH_MAX], *text;
	struct ky_cons_kernel_event m = {
		.set = set->number, .id = KY_KERNEL_STACK_ID, .format = ""};
	struct ky_kstep step;
	int ret = -ENOENT;

	snprintf(path, sizeof(path), "events/ftrace/%s/format", name);
	text = tracefs_read(set->main.dir, path);
	if (f && text)
		ret = ky_kformat_parse(f, text);
	if (!ret)
		ret = ky_kstack_make(&step, f);
	if (!ret) {
		m.kernel_id = f->id;
		m.min = step.offset;
		m.steps = (struct ky_bytes){&step, sizeof(step)};
		ret = ky_cons_kernel_event_encode(w, &m);
	}
	free(text);
	free(f);
	return ret;
}

int kernel_event_restore(struct kernel_set *set, const char *system, const char *name, uint32_t id,
	uint32_t n_contexts)
{
	struct kernel_event *e = find_event(set, system, name);

	/* No other event gets the identifier, even if this one is lost. */
	if (id <= LAST_SHORT)
		set->fixed_used[id] = true;
	if (id >= set->next_long)
		set->next_long = id + 1;
	while (set->next_short <= LAST_SHORT && set->fixed_used[set->next_short])
		set->next_short++;
	if (!e) {
		e = event_alloc(system, name);
		if (!e)
			return -ENOMEM;
		ky_list_append(&set->events, &e->node);
	}
	e->id = id;
	e->n_contexts = n_contexts;
	return 0;
}

/* --- rules --- */

struct update {
	struct kernel_set *set;
	char *why;
	int error;
};

static void report_failure(struct update *u, const char *system, const char *name, int error)
{
	if (!u->error)
		snprintf(u->why, KERNEL_WHY_MAX, "cannot record %s:%s: %s", system, name,
			strerror(-error));
	u->error = u->error ? u->error : error;
}

/* Describes a new event, and adds it to the set. Returns 0 or -errno, which it reports. */
static int add_event(struct update *u, struct kernel_event *e)
{
	int ret;

	ky_list_append(&u->set->events, &e->node);
	ret = describe_event(u->set, e);
	if (ret < 0) {
		ky_list_remove(&e->node);
		ky_list_init(&e->node);
		report_failure(u, e->system, e->name, ret);
	}
	return ret;
}

/* Events of a rule whose filter is tried. */
struct trial {
	struct kernel *kernel;
	const struct rule *rule;
	bool fits;
	char *why; /* "": none was tried yet */
};

/* "it has a, b, c": what the filter can name. */
static void put_fields(char *why, const struct kymo_field *f)
{
	size_t n = strlen(why);

	for (const struct kymo_field *first = f; f->kind && n < KERNEL_WHY_MAX; f++)
		n += (size_t)snprintf(why + n, KERNEL_WHY_MAX - n, "%s%s",
			f == first ? ": it has " : ", ", f->name);
}

/*
 * Makes the filter's program for the event, with numbers for the names of values. Returns as
 * ky_filter_link() does; then nothing is in *ret, too.
 */
static int link_filter(struct ky_buf *ret, const struct filter *f, const struct compiled *c,
	struct ky_filter_error *error)
{
	static uint64_t code[KY_FILTER_CODE_MAX / sizeof(uint64_t)];
	int r;

	*ret = (struct ky_buf){.max = KY_FILTER_PROGRAM_MAX};
	r = ky_kfilter_resolve(
		ret, (struct ky_bytes){f->program, f->len}, &c->program, c->text, error);
	if (!r)
		r = ky_filter_link(ret->data, ret->len, c->program.fields, ky_kfilter_find_context,
			code, error);
	if (r <= 0)
		ky_buf_deinit(ret);
	return r;
}

static void try_filter(
	struct trial *t, const struct compiled *c, const char *system, const char *name)
{
	bool is_one = !strchr(t->rule->pattern, '*');
	struct ky_filter_error error = {0};
	struct ky_buf program;
	int ret = link_filter(&program, t->rule->filter, c, &error);

	ky_buf_deinit(&program);

	t->fits = ret > 0;
	/* The arguments of a call say more than its result. */
	if (t->fits || (*t->why && !kernel_event_call(system, name)))
		return;
	snprintf(t->why, KERNEL_WHY_MAX, "filter of %s: %s", is_one ? name : t->rule->pattern,
		error.text);
	if (ret == -ENOENT && is_one)
		put_fields(t->why, c->program.fields);
}

static void try_event(void *arg, const char *system, const char *name)
{
	struct trial *t = arg;
	struct kernel_candidate candidate;
	struct compiled *c;

	kernel_candidate_init(&candidate, system, name);
	if (t->fits || !kernel_rule_has(NULL, t->rule, &candidate))
		return;
	c = compile_event(t->kernel, system, name);
	if (c)
		try_filter(t, c, system, name);
	compiled_free(c);
}

bool kernel_filter_fits(struct kernel *k, const struct rule *r, char why[KERNEL_WHY_MAX])
{
	struct trial t = {.kernel = k, .rule = r, .why = why};

	*why = '\0';
	if (r->filter && r->kind < RULE_PROBE)
		kernel_events_list(k, try_event, &t);
	return t.fits || !*why;
}

struct filter *kernel_filter_new(const char *text, struct ky_filter_error *error)
{
	return filter_new_with(text, ky_kfilter_find_context, error);
}

/* Makes the filter's program, if the event has what it names. Keeps the first reason why not. */
static bool can_filter(
	struct ky_buf *ret, struct rule *r, const struct kernel_event *e, const struct compiled *c)
{
	struct ky_filter_error error = {0};

	if (link_filter(ret, r->filter, c, &error) > 0)
		return true;
	if (!r->mismatch && asprintf(&r->mismatch, "rule '%s' does not match %s: %s", r->pattern,
				    e->name, error.text) < 0)
		r->mismatch = NULL;
	return false;
}

/* Replaces a text. Returns whether it was another one. */
static bool replace_text(char **text, const char *by)
{
	char *copy = strcmp(*text, by) ? strdup(by) : NULL;

	if (!copy)
		return false;
	free(*text);
	*text = copy;
	return true;
}

/* Replaces what the consumer decides. Returns whether it was something else. */
static bool set_programs(struct kernel_event *e, const struct ky_buf *programs, uint32_t n)
{
	struct ky_buf b = {0};
	bool is_other;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t len = (uint32_t)programs[i].len;

		ky_buf_append(&b, &len, sizeof(len));
		ky_buf_append(&b, programs[i].data, len);
	}
	is_other = b.len != e->programs.len || (b.len && memcmp(b.data, e->programs.data, b.len));
	ky_buf_deinit(&e->programs);
	e->programs = b;
	return is_other;
}

/* The filters of the rules that match an event. */
struct wish {
	struct ky_buf programs[RULES_MAX];
	uint32_t n;
	bool wanted, everything;
};

/* Divides the filters between kernel and consumer. Returns whether the consumer's part is new. */
static bool divide_filters(
	struct kernel_event *e, const struct ky_kprogram *p, const struct wish *w)
{
	struct ky_kfilter *f = calloc(1, sizeof(*f));
	bool all = w->everything || !w->n;
	bool is_other;

	if (f && !all)
		ky_kfilter_translate(f, p, w->programs, w->n);
	e->changed |= replace_text(&e->filter, f && !all ? f->kernel : "");
	replace_text(&e->rest, f && !all ? f->rest : "");
	is_other = set_programs(e, w->programs, all || (f && f->exact) ? 0 : w->n);
	free(f);
	return is_other;
}

/* Counts the event for the rules that match it, and collects what the enabled ones want. */
static void count_rules(const struct kernel_set *set, const struct kernel_candidate *c,
	const struct kernel_event *e, const struct compiled *compiled, struct wish *w)
{
	struct ky_buf program;
	struct rule *r;

	ky_list_foreach (r, &set->channel->rules, node) {
		program = (struct ky_buf){0};
		if (!kernel_rule_has(set, r, c) ||
			(r->filter && !can_filter(&program, r, e, compiled)))
			continue;
		r->n_matched++;
		if (r->enabled) {
			w->wanted = set->channel->enabled;
			w->everything |= !r->filter;
		}
		if (r->enabled && r->filter)
			w->programs[w->n++] = program;
		else
			ky_buf_deinit(&program);
	}
}

static bool any_rule_has(const struct kernel_set *set, const struct kernel_candidate *c)
{
	struct rule *r;

	ky_list_foreach (r, &set->channel->rules, node)
		if (kernel_rule_has(set, r, c))
			return true;
	return false;
}

static void update_event(void *arg, const char *system, const char *name)
{
	static struct wish w;
	struct update *u = arg;
	struct kernel_candidate c;
	struct kernel_event *e;
	struct compiled *compiled;
	bool is_new;

	kernel_candidate_init(&c, system, name);
	e = find_event(u->set, system, name);
	if (!e && !any_rule_has(u->set, &c))
		return;
	is_new = !e;
	w.n = 0;
	w.wanted = w.everything = false;
	if (is_new)
		e = event_new(u->set, system, name);
	compiled = e ? compile_with_contexts(u->set, e) : NULL;
	if (compiled) {
		count_rules(u->set, &c, e, compiled, &w);
		e->wanted = w.wanted;
		is_new = is_new && w.wanted && !add_event(u, e);
		if (!ky_list_empty(&e->node) &&
			(divide_filters(e, &compiled->program, &w) || is_new))
			OBSERVE(u->set->channel->session->env, kernel_event_described, u->set, e);
	} else {
		report_failure(u, system, name, e ? -EBADMSG : -errno);
	}
	compiled_free(compiled);
	for (uint32_t i = 0; i < w.n; i++)
		ky_buf_deinit(&w.programs[i]);
	if (e && ky_list_empty(&e->node))
		kernel_event_free(e);
}

void kernel_put_split(struct ky_buf *to, const struct kernel_set *set, const struct rule *r)
{
	const struct kernel_event *e;
	struct kernel_candidate c;

	ky_list_foreach (e, &set->events, node) {
		kernel_candidate_init(&c, e->system, e->name);
		if (!e->wanted || !kernel_rule_has(set, r, &c))
			continue;
		if (*e->filter)
			ky_buf_printf(to, "in the kernel: %s", e->filter);
		if (*e->rest)
			ky_buf_printf(to, "%sin the consumer: %s", *e->filter ? "; " : "", e->rest);
		return;
	}
}

int kernel_event_read(const struct kernel_set *set, struct kernel_event *e)
{
	struct ky_kformat *f = malloc(sizeof(*f));
	int ret = -ENOMEM;

	free(e->format);
	e->format = read_format(set, e);
	if (f)
		ret = e->format ? ky_kformat_parse(f, e->format) : -errno;
	if (!ret)
		e->kernel_id = f->id;
	free(f);
	return ret;
}

/* Forgets the probes that another program has removed. Returns 0 or -errno. */
static int forget_removed(const struct kernel *k, struct kernel_set *set)
{
	char *found = NULL;
	int ret = probes_find(&k->fs, set->main.name, set->probes, &found);

	if (ret < 0 || probes_are_known(found, set->probes)) {
		free(found);
		return ret;
	}
	free(set->probes);
	set->probes = found;
	return 0;
}

/*
 * Forgets the events that the kernel describes in another way now: another program has removed a
 * probe, or a module, and defined an event of this name again, which it cannot while the event is
 * enabled. They become new events. Returns whether there were any.
 */
static bool forget_changed(struct kernel_set *set)
{
	struct kernel_event *e, *tmp;
	bool any = false;

	ky_list_foreach_safe (e, tmp, &set->events, node) {
		_cleanup_free_ char *format = e->enabled ? NULL : read_format(set, e);

		if (!format || !strcmp(format, e->format))
			continue;
		kernel_event_free(e);
		any = true;
	}
	return any;
}

/*
 * Defines the probes of the enabled rules, also those that another program has removed. Returns 0,
 * or -errno with one line in why.
 */
static int define_probes(struct channel *c, char why[KERNEL_WHY_MAX])
{
	struct kernel *k = c->session->env->kernel;
	struct kernel_set *set = c->kernel;
	const struct rule *r;
	int ret = set->probes ? forget_removed(k, set) : 0, one;

	*why = '\0';
	ky_list_foreach (r, &c->rules, node) {
		if (!r->probe || !r->enabled)
			continue;
		one = probes_define(
			&k->fs, set->main.name, r->probe, &set->probes, why, KERNEL_WHY_MAX);
		if (!one)
			one = probes_note_files(&set->probe_files, r->probe);
		ret = ret ? ret : one;
	}
	if (ret < 0 && !*why)
		snprintf(why, KERNEL_WHY_MAX, "cannot define a probe: %s", strerror(-ret));
	return ret;
}

int kernel_events_update(struct channel *c, char why[KERNEL_WHY_MAX])
{
	struct kernel *k = c->session->env->kernel;
	struct update u = {.set = c->kernel, .why = why};
	struct rule *r;
	int ret;

	ky_list_foreach (r, &c->rules, node) {
		r->n_matched = 0;
		free(r->mismatch);
		r->mismatch = NULL;
	}
	u.error = define_probes(c, why);
	forget_changed(c->kernel);
	ret = kernel_events_list(k, update_event, &u);
	if (ret < 0)
		snprintf(
			why, KERNEL_WHY_MAX, "cannot list the kernel's events: %s", strerror(-ret));
	return ret < 0 ? ret : u.error;
}

int kernel_events_prepare(struct channel *c, char why[KERNEL_WHY_MAX])
{
	int ret = define_probes(c, why);

	return forget_changed(c->kernel) ? kernel_events_update(c, why) : ret;
}

/* Describes the event again, with all contexts. After an error it keeps its number. */
static int renew_event(struct kernel_set *set, struct kernel_event *e)
{
	const struct kernel_event before = *e;
	int ret = describe_event(set, e);

	if (ret < 0) {
		e->n_contexts = before.n_contexts;
		e->kernel_id = before.kernel_id;
		e->id = before.id;
		/* The journal may have the new number. */
		OBSERVE(set->channel->session->env, kernel_event_numbered, set, e, "");
	}
	return ret;
}

int kernel_events_renew(struct kernel_set *set, char why[KERNEL_WHY_MAX])
{
	struct update u = {.set = set, .why = why};
	struct kernel_event *e;
	int ret;

	ky_list_foreach (e, &set->events, node) {
		if (e->n_contexts == set->channel->n_contexts)
			continue;
		ret = renew_event(set, e);
		if (ret < 0)
			report_failure(&u, e->system, e->name, ret);
		else
			OBSERVE(set->channel->session->env, kernel_event_described, set, e);
	}
	return u.error;
}
