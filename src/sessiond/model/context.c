/* SPDX-License-Identifier: MIT */
#include "sessiond/model/context.h"

#include "sessiond/model/contents.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "proto/app.h"

#define PERF_RAW "raw:"

static int set_reason(char *why, size_t size, const char *fmt, ...) KY_PRINTF(3, 4);

static int set_reason(char *why, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static bool is_family(const struct ky_ctx_type *t)
{
	return t->kind == KY_CTX_PERF || t->kind == KY_CTX_APP || t->kind == KY_CTX_CALLSTACK;
}

/* Names that readers show are words of C. */
static void set_name(struct ky_context *c, const char *prefix, const char *name)
{
	snprintf(c->name, sizeof(c->name), "%s%s", prefix, name);
	for (char *p = c->name; *p; p++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *p))
			*p = '_';
}

static void set_perf(struct ky_context *c, const char *name, uint32_t type, uint64_t config)
{
	set_name(c, "perf_thread_", name);
	snprintf(c->argument, sizeof(c->argument), "%" PRIx32 ":%" PRIx64, type, config);
}

/* "rHEX:NAME", what the processor's manual says the counter is. */
static int parse_raw(struct ky_context *c, const char *text, char *why, size_t size)
{
	unsigned long long config;
	char *end;

	errno = 0;
	config = strtoull(text + (*text == 'r'), &end, 16);
	if (*text != 'r' || end == text + 1 || errno || *end != ':' || !ky_desc_name_valid(end + 1))
		return set_reason(why, size,
			"'%s': a raw counter is written perf:thread:raw:rHEX:NAME, as in perf:thread:raw:r01c2:retired",
			c->spec);
	set_perf(c, end + 1, PERF_TYPE_RAW, config);
	return 0;
}

static int parse_perf(struct ky_context *c, const char *text, char *why, size_t size)
{
	const struct ky_ctx_counter *near = NULL;
	unsigned best = UINT_MAX, d;

	if (!strncmp(text, PERF_RAW, strlen(PERF_RAW)))
		return parse_raw(c, text + strlen(PERF_RAW), why, size);
	for (const struct ky_ctx_counter *k = ky_ctx_counters; k->name[0]; k++) {
		if (!strcmp(k->name, text)) {
			set_perf(c, text, k->type, k->config);
			return 0;
		}
		d = ky_near_distance(text, k->name);
		near = d < best ? k : near;
		best = KY_MIN(best, d);
	}
	return set_reason(why, size, "'%s' is no counter: %s%s", text,
		near ? "did you mean perf:thread:" : "'kymo add-context --list' shows them",
		near ? near->name : "");
}

#define APP_FORM                                                                                   \
	"'%s': an application's context is written $app.PROVIDER:NAME (in a shell in single quotes)"

static int parse_app(struct ky_context *c, const char *text, char *why, size_t size)
{
	const char *colon = strchr(text, ':');

	if (!colon || colon == text || strlen(text) > KY_NAME_MAX ||
		!ky_desc_name_valid(colon + 1) ||
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") !=
			(size_t)(colon - text))
		return set_reason(why, size, APP_FORM, c->spec);
	set_name(c, "_app_", text);
	strcpy(c->argument, text);
	return 0;
}

static int parse_unknown(const char *spec, char *why, size_t size)
{
	const struct ky_ctx_type *near = NULL;
	unsigned best = UINT_MAX, d;

	if (!strncmp(spec, "perf:", 5))
		return set_reason(
			why, size, "'%s': counters are those of threads, perf:thread:NAME", spec);
	/* A shell replaces $app by nothing, except in single quotes. */
	if ((*spec == '.' || !strncmp(spec, "app.", 4)) && strchr(spec, ':'))
		return set_reason(why, size, APP_FORM, spec);
	for (const struct ky_ctx_type *t = ky_ctx_types; t->name[0]; t++) {
		d = ky_near_distance(spec, t->name);
		near = d < best ? t : near;
		best = KY_MIN(best, d);
	}
	return set_reason(why, size, "'%s' is no context: %s%s%s", spec,
		near ? "did you mean '" : "",
		near ? near->name : "'kymo add-context --list' shows them", near ? "'?" : "");
}

static int parse_callstack(struct ky_context *c, const char *text, char *why, size_t size)
{
	set_name(c, "callstack", "");
	if (!*text)
		snprintf(c->argument, sizeof(c->argument), "%u", KY_CTX_DEPTH_DEFAULT);
	else if (*text != ':')
		return parse_unknown(c->spec, why, size);
	else if (ky_ctx_depth(text + 1))
		snprintf(c->argument, sizeof(c->argument), "%u", ky_ctx_depth(text + 1));
	else
		return set_reason(why, size,
			"'%s': the depth of a call stack is 1 to %u, as in callstack:%u", c->spec,
			KY_CTX_DEPTH_MAX, KY_CTX_DEPTH_DEFAULT);
	return 0;
}

int context_parse(struct ky_context *c, const char *spec, char *why, size_t size)
{
	const struct ky_ctx_type *t;
	size_t n = 0;

	if (strlen(spec) >= sizeof(c->spec) - sizeof("perf_thread_"))
		return set_reason(why, size, "the name of a context is too long");
	memset(c, 0, sizeof(*c));
	strcpy(c->spec, spec);
	for (t = ky_ctx_types; t->name[0]; t++) {
		n = strlen(t->name);
		if (is_family(t) ? !strncmp(spec, t->name, n) : !strcmp(spec, t->name))
			break;
	}
	if (!t->name[0])
		return parse_unknown(spec, why, size);
	c->type = t;
	switch (t->kind) {
	case KY_CTX_PERF:
		return parse_perf(c, spec + n, why, size);
	case KY_CTX_APP:
		return parse_app(c, spec + n, why, size);
	case KY_CTX_CALLSTACK:
		return parse_callstack(c, spec + n, why, size);
	default:
		set_name(c, spec, "");
		return 0;
	}
}

bool context_is_counter(const struct ky_context *c, uint32_t type, uint64_t config)
{
	uint32_t t;
	uint64_t k;

	return c->type->kind == KY_CTX_PERF && ky_ctx_perf_argument(c->argument, &t, &k) &&
	       t == type && k == config;
}

void context_explain_uncounted(int error, char *why, size_t size)
{
	switch (error) {
	case EACCES:
		snprintf(why, size,
			"the kernel does not let its user count: 'sysctl kernel.perf_event_paranoid=2' allows it");
		break;
	case EPERM:
	case ENOSYS:
		snprintf(why, size,
			"perf_event_open is forbidden to it, as containers and sandboxes (seccomp) do: allow it there");
		break;
	case EMFILE:
		snprintf(why, size,
			"it has no descriptors left, and needs one for each thread and counter: raise 'ulimit -n'");
		break;
	default:
		snprintf(why, size, "this machine cannot count that (%s)", strerror(error));
	}
}

int context_probe(const struct ky_context *c, char *why, size_t size)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .exclude_kernel = 1, .exclude_hv = 1};
	char text[256];
	uint64_t config;
	int fd;

	if (c->type->kind != KY_CTX_PERF || !ky_ctx_perf_argument(c->argument, &attr.type, &config))
		return 0;
	attr.config = config;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0) {
		ky_close(fd);
		return 0;
	}
	context_explain_uncounted(errno, text, sizeof(text));
	return set_reason(why, size, "'%s': %s", c->spec, text);
}

const struct ky_context *channel_context(const struct channel *c, const char *name)
{
	for (uint32_t i = 0; i < c->n_contexts; i++)
		if (!strcmp(c->contexts[i].name, name))
			return &c->contexts[i];
	return NULL;
}

/* The sum over the contexts of a record. */
struct context_sum {
	uint32_t n, n_perf, size;
};

static void context_sum_add(struct context_sum *sum, const struct ky_context *c)
{
	sum->n++;
	sum->n_perf += c->type->kind == KY_CTX_PERF;
	sum->size += ky_ctx_record_size(c->type->kind, c->argument);
}

/* Returns whether contexts[i] is new to the channel, and not among those before it. */
static bool is_new(const struct channel *c, const struct ky_context *contexts, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(contexts[k].name, contexts[i].name))
			return false;
	return !channel_context(c, contexts[i].name);
}

int channel_check_contexts(const struct channel *c, const struct ky_context *contexts, size_t n)
{
	struct context_sum sum = {0};

	for (uint32_t i = 0; i < c->n_contexts; i++)
		context_sum_add(&sum, &c->contexts[i]);
	for (size_t i = 0; i < n; i++)
		if (is_new(c, contexts, i))
			context_sum_add(&sum, &contexts[i]);
	return sum.n > KY_CTX_MAX || sum.size > KY_CTX_RECORD_MAX || sum.n_perf > KY_CTX_PERF_MAX
		       ? -EDQUOT
		       : 0;
}

int channel_add_contexts(struct channel *c, const struct ky_context *contexts, size_t n)
{
	int ret = channel_check_contexts(c, contexts, n);
	struct ky_context *grown;

	if (ret < 0)
		return ret;
	grown = realloc(c->contexts, (c->n_contexts + n) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	c->contexts = grown;
	for (size_t i = 0; i < n; i++)
		if (!channel_context(c, contexts[i].name))
			c->contexts[c->n_contexts++] = contexts[i];
	OBSERVE(c->session->env, contexts_added, c);
	return 0;
}

unsigned channel_count_older(const struct channel *c)
{
	struct ring_set *set;
	struct ky_hnode *n, *tmp;
	unsigned count = 0;
	size_t i;

	if (!c->n_contexts)
		return 0;
	ky_list_foreach (set, &c->kinds, group) {
		ky_htab_foreach(&set->events, i, n, tmp)
		{
			const struct set_event *e = ky_container_of(n, struct set_event, node);

			count += e->id != KY_MAP_REFUSED && e->n_contexts < c->n_contexts;
		}
	}
	return count;
}

void contexts_encode(struct ky_writer *w, const struct channel *c)
{
	for (uint32_t i = 0; i < c->n_contexts; i++) {
		ky_write_u32(w, c->contexts[i].type->kind);
		ky_write_str(w, c->contexts[i].argument);
	}
}
