/* SPDX-License-Identifier: MIT */
/* The explanation as text and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "explain/answer.h"
#include "explain/culprits.h"
#include "explain/explain.h"
#include "explain/sentence.h"
#include "explain/times.h"
#include "explain/words.h"
#include "reader/format.h"

/*
 * Local time, with its date if that is not the day of the trace's first event; seconds since 1970
 * in an hour that exists twice, when the clock is set back.
 */
static void put_limit(struct ky_buf *b, const char *option, int64_t ns, int64_t first_ns)
{
	time_t at = (time_t)(ns / 1000000000), first = (time_t)(first_ns / 1000000000);
	char clock[64], day[24] = "", first_day[24] = "";
	bool is_clear = false;
	struct tm tm;

	if (localtime_r(&at, &tm)) {
		strftime(day, sizeof(day), "%Y-%m-%d ", &tm);
		tm.tm_isdst = -1;
		is_clear = ns >= 0 && mktime(&tm) == at;
	}
	if (localtime_r(&first, &tm))
		strftime(first_day, sizeof(first_day), "%Y-%m-%d ", &tm);
	ky_times_clock(clock, sizeof(clock), ns);
	if (!is_clear)
		*ky_put_limit(clock, ns) = '\0';
	if (is_clear && strcmp(day, first_day))
		ky_buf_printf(b, " --%s='%s%s'", option, day, clock);
	else
		ky_buf_printf(b, " --%s=%s", option, clock);
}

static void put_command(
	struct ky_buf *b, const struct ky_explanation *e, const struct ky_instance *i)
{
	int64_t first_ns = e->instances[i->is_second].trace_ns;

	ky_buf_puts(b, "kymo view");
	put_limit(b, "begin", i->begin_ns, first_ns);
	put_limit(b, "end", i->end_ns, first_ns);
	for (size_t k = 0; k < (i->is_second ? 1 : e->question.n_paths); k++) {
		ky_buf_puts(b, " ");
		ky_buf_put_word(b, i->is_second ? e->question.against : e->question.paths[k]);
	}
}

/* The median of the affected instances. */
static const struct ky_instance *find_example(
	const struct ky_difference *d, const struct ky_finding *f)
{
	size_t n = f->affected.n ? f->affected.n : d->n_slow;
	struct ky_instance *const *v = f->affected.n ? f->affected.v : d->slow, *found;
	struct ky_instance **copy = calloc(n + 1, sizeof(*copy));

	found = v[n / 2];
	if (copy) {
		memcpy(copy, v, n * sizeof(*copy));
		qsort(copy, n, sizeof(*copy), ky_instance_by_length);
		found = copy[n / 2];
	}
	free(copy);
	return found;
}

static const struct ky_instance *find_longest(const struct ky_instances *v)
{
	const struct ky_instance *longest = v->longest.n ? v->longest.v : v->all.v;

	for (size_t i = 0; i < v->all.n; i++) {
		if (v->all.v[i].ns > longest->ns)
			longest = &v->all.v[i];
	}
	return longest;
}

/* --- text --- */

/* A line break in a name or a value of the trace begins no new line. */
static void put_text(struct ky_buf *b, const char *text)
{
	for (size_t n; *text; text += n) {
		n = strcspn(text, "\n");
		ky_buf_append(b, text, n);
		if (text[n])
			ky_buf_puts(b, "\\x0a");
		n += text[n] != '\0';
	}
}

static void put_with(struct ky_buf *b, const char *before, const char *text, const char *after)
{
	ky_buf_puts(b, before);
	put_text(b, text);
	ky_buf_puts(b, after);
}

static void put_place(struct ky_buf *b, const struct ky_explanation *e, const struct ky_finding *f)
{
	struct ky_buf place = {0};

	ky_sentence_place(&place, &e->x, f);
	ky_buf_puts(&place, ""); /* a NUL */
	if (place.data)
		put_text(b, place.data);
	b->error = b->error ? b->error : place.error;
	ky_buf_deinit(&place);
}

static void put_left_out(struct ky_buf *b, const struct ky_instances *v)
{
	const struct {
		uint64_t n;
		const char *what;
	} left_out[] = {{v->n_unfinished, "unfinished"}, {v->n_unbegun, "without a beginning"},
		{v->n_lost, "with losses"}, {v->n_nested, "nested too deeply"},
		{v->n_instant, "shorter than 1 ns"}};
	bool any = false;

	for (size_t i = 0; i < KY_ARRAY_SIZE(left_out); i++) {
		if (!left_out[i].n)
			continue;
		ky_buf_puts(b, any ? ", " : " (");
		ky_words_put_number(b, left_out[i].n);
		ky_buf_printf(b, " %s", left_out[i].what);
		any = true;
	}
	if (any)
		ky_buf_puts(b, " left out)");
}

static void put_groups(
	struct ky_buf *b, const struct ky_explanation *e, const struct ky_difference *d)
{
	ky_words_put_number(b, (uint64_t)d->group->n_all_slow);
	ky_buf_printf(b, " slow (%s, from ", d->group->how);
	ky_words_put_duration(b, d->group->from_ns);
	if (d->group->to_ns > 0) {
		ky_buf_puts(b, " to ");
		ky_words_put_duration(b, d->group->to_ns);
		ky_buf_printf(b, "; %zu longer ones are left out", d->group->n_longer);
	}
	ky_buf_puts(b, ") take ");
	ky_words_put_duration(b, d->slow_ns);
	ky_buf_puts(b, ", ");
	ky_words_put_number(b, d->group->n_typical);
	ky_buf_puts(b, " typical ones ");
	if (e->sources[1])
		ky_buf_printf(b, "of %s ", e->question.against);
	ky_buf_puts(b, "take ");
	ky_words_put_duration(b, d->typical_ns);
	ky_buf_puts(b, ": ");
	ky_words_put_duration(b, fabs(d->extra_ns));
	ky_buf_puts(b, d->extra_ns < 0 ? " less" : " more");
	if (ky_explanation_is_net(e))
		ky_buf_puts(b, ", without the time in which other programs ran instead");
	ky_buf_puts(b, "\n");
}

static void put_finding(struct ky_buf *b, const struct ky_explanation *e,
	const struct ky_difference *d, const struct ky_finding *f, unsigned number)
{
	ky_buf_printf(b, "%2u. %3.0f %%  ", number, 100 * KY_MIN(1, f->share));
	put_text(b, f->clause);
	if (f->conditions.n)
		put_with(b, " — ", f->conditions.v[0].text, "");
	if (f->other.text)
		put_with(b, ", or ", f->other.text, "");
	ky_buf_puts(b, "\n         ");
	for (size_t i = 0; i < f->evidence.n; i++)
		put_with(b, "", f->evidence.v[i], "; ");
	for (size_t i = 1; i < f->conditions.n; i++)
		put_with(b, "", f->conditions.v[i].text, "; ");
	ky_buf_printf(b, "in %zu of %zu slow ones\n         look: ", f->affected.n, d->n_slow);
	put_command(b, e, find_example(d, f));
	ky_buf_puts(b, "\n");
}

static void put_rest(struct ky_buf *b, const struct ky_explanation *e, unsigned n_shown)
{
	const struct ky_difference *d = e->c->chosen;
	double shown = 0, rest = 0;
	unsigned n = 0;

	for (size_t i = 0; i < d->findings.n; i++) {
		const struct ky_finding *f = d->findings.v[i];

		*(f->is_shown ? &shown : &rest) += f->share;
	}
	if (n_shown) {
		if (rest >= .02)
			ky_buf_printf(b, "    %3.0f %%  the rest, in smaller parts\n", 100 * rest);
		if (rest <= -.02) {
			ky_buf_puts(b, "           besides, they take ");
			ky_words_put_duration(b, -rest * d->extra_ns);
			ky_buf_puts(b, " less in other parts\n");
		}
		return;
	}
	for (size_t i = 0; i < d->findings.n && n < 3; i++) {
		const struct ky_finding *f = d->findings.v[i];

		if (f->share <= .02)
			break;
		ky_buf_printf(b, "    %3.0f %%  of the extra time (%.0f %% of the typical) in ",
			100 * KY_MIN(1, f->share), 100 * f->typical_share);
		put_place(b, e, f);
		put_with(b, "", f->executed ? f->executed : "", "\n");
		n++;
	}
	ky_buf_puts(b, "         look: ");
	put_command(b, e, find_longest(&e->instances[0]));
	ky_buf_puts(b, "\n");
}

static void put_longest(struct ky_buf *b, const struct ky_explanation *e)
{
	const struct ky_instances *v = &e->instances[0];
	const struct ky_instance *longest = find_longest(v);

	ky_buf_puts(b, "  ");
	ky_words_put_number(b, v->n);
	ky_buf_puts(b, " ended");
	put_left_out(b, v);
	ky_buf_puts(b, "; the longest takes ");
	ky_words_put_duration(b, longest->ns);
	ky_buf_puts(b, "\n         look: ");
	put_command(b, e, longest);
	ky_buf_puts(b, "\n");
}

/* Returns the number of the last one. */
static unsigned put_findings(
	struct ky_buf *b, const struct ky_explanation *e, const struct ky_difference *d, unsigned n)
{
	for (size_t i = 0; i < d->findings.n; i++) {
		if (d->findings.v[i]->is_shown)
			put_finding(b, e, d, d->findings.v[i], ++n);
	}
	return n;
}

/* Lists what is unknown, with options. 'record --explain' stands for several of them. */
static void put_unknown(struct ky_buf *b, const struct ky_explanation *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->unknown.n; i++) {
		const char *option = e->unknown.v[i].option;

		put_with(b, "cannot tell: ", e->unknown.v[i].what, ": ");
		put_with(b, "", option, "\n");
		n += strstr(option, "--with=") || strstr(option, "--syscall=");
	}
	if (n > 1)
		ky_buf_puts(b, "several at once: kymo record --explain\n");
}

void ky_explanation_text(struct ky_buf *b, const struct ky_explanation *e)
{
	unsigned n = 0;

	put_with(b, "", e->first_line, "\n");
	if (e->verdict == KY_VERDICT_TOO_FEW) {
		put_longest(b, e);
	} else {
		ky_buf_puts(b, "  ");
		ky_words_put_number(b, e->instances[0].n);
		ky_buf_puts(b, " ended");
		put_left_out(b, &e->instances[0]);
		ky_buf_puts(b, "; ");
		put_groups(b, e, e->c->chosen);
		n = put_findings(b, e, e->c->chosen, 0);
		if (e->c->chosen->extra_ns > 0)
			put_rest(b, e, n);
	}
	if (e->c->slowest) {
		ky_buf_puts(b, "  the slowest: ");
		put_groups(b, e, e->c->slowest);
		put_findings(b, e, e->c->slowest, n);
	}
	put_unknown(b, e);
}

/* --- JSON --- */

static void put_string(struct ky_buf *b, const char *text)
{
	ky_format_json_string(b, text, strlen(text));
}

static void put_path_array(struct ky_buf *b, const struct ky_explain *x, uint32_t c)
{
	const struct ky_component *o = ky_component_of(x, c);
	static const char *const waits[] = {[KY_PART_LOCK] = "(lock)",
		[KY_PART_CONDITION] = "(condition)",
		[KY_PART_READY] = "(ready)",
		[KY_PART_WAIT] = "(waiting)"};

	if (o->parent) {
		put_path_array(b, x, o->parent);
		ky_buf_puts(b, ", ");
	}
	if (o->kind == KY_PART_SPAN) {
		put_string(b, ky_texts_get(&x->names, o->a));
	} else if (o->kind == KY_PART_WAY) {
		ky_buf_puts(b, "[");
		put_string(b, ky_texts_get(&x->names, o->a));
		ky_buf_puts(b, ", ");
		put_string(b, ky_texts_get(&x->names, o->b));
		ky_buf_puts(b, "]");
	} else {
		put_string(b, waits[o->kind]);
	}
}

static const char *kind_of(const struct ky_explain *x, const struct ky_finding *f)
{
	static const char *const kinds[] = {[KY_FINDING_LONGER] = "longer",
		[KY_FINDING_COUNT] = "count",
		[KY_FINDING_NEW] = "new",
		[KY_FINDING_EVENT] = "event",
		[KY_FINDING_ALLOC] = "alloc",
		[KY_FINDING_LOCKS] = "locks"};
	static const char *const waits[] = {[KY_PART_LOCK] = "lock",
		[KY_PART_CONDITION] = "condition",
		[KY_PART_READY] = "ready",
		[KY_PART_WAIT] = "waiting"};

	return ky_finding_is_wait(x, f) ? waits[ky_finding_part(x, f)] : kinds[f->kind];
}

static void put_who_array(struct ky_buf *b, const struct ky_explain *x, const struct ky_finding *f)
{
	struct ky_culprits c = {0};

	ky_buf_puts(b, "\"who\": [");
	if (f->kind == KY_FINDING_LOCKS || ky_finding_is_wait(x, f)) {
		if (ky_culprits_find(&c, x, f) < 0)
			b->error = -ENOMEM;
	}
	for (size_t i = 0; i < c.v.n && i < 16; i++) {
		const struct ky_explain_thread *t = x->threads.v[c.v.v[i].thread];

		ky_buf_printf(b, "%s{\"tid\": %" PRId64 ", \"name\": ", i ? ", " : "", t->tid);
		put_string(b, ky_texts_get(&x->names, t->name));
		ky_buf_puts(b, ", \"host\": ");
		put_string(b, ky_texts_get(&x->names, t->host));
		ky_buf_puts(b, ", \"span\": ");
		put_string(b, ky_texts_get(&x->names, c.v.v[i].span));
		ky_buf_printf(b, ", \"ns\": %" PRId64 "}", c.v.v[i].ns);
	}
	ky_buf_puts(b, "], ");
	ky_culprits_deinit(&c);
}

static void put_json_finding(struct ky_buf *b, const struct ky_explanation *e,
	const struct ky_difference *d, const struct ky_finding *f)
{
	const struct ky_instance *example = find_example(d, f);

	ky_buf_printf(b, "{\"kind\": \"%s\", \"path\": [", kind_of(&e->x, f));
	put_path_array(b, &e->x, f->component);
	ky_buf_printf(b,
		"], \"share\": %.6g, \"extra_ns\": %.6f, \"slow\": {\"count\": %.6g, \"mean_ns\": %.6g}, "
		"\"typical\": {\"count\": %.6g, \"mean_ns\": %.6g}, \"affected\": %zu, \"p\": %.3g, \"text\": ",
		f->share, f->amount, f->count[0], f->mean_ns[0], f->count[1], f->mean_ns[1],
		f->affected.n, f->p);
	put_string(b, f->clause);
	ky_buf_puts(b, ", \"evidence\": [");
	for (size_t i = 0; i < f->evidence.n; i++) {
		ky_buf_puts(b, i ? ", " : "");
		put_string(b, f->evidence.v[i]);
	}
	ky_buf_puts(b, "], ");
	put_who_array(b, &e->x, f);
	ky_buf_puts(b, "\"when\": [");
	for (size_t i = 0; i < f->conditions.n; i++) {
		ky_buf_printf(b, "%s{\"text\": ", i ? ", " : "");
		put_string(b, f->conditions.v[i].text);
		ky_buf_printf(b, ", \"explained\": %.4g, \"p\": %.3g}",
			f->conditions.v[i].explained, f->conditions.v[i].p);
	}
	if (f->other.text) {
		ky_buf_puts(b, ", {\"text\": ");
		put_string(b, f->other.text);
		ky_buf_printf(b, ", \"explained\": %.4g, \"p\": %.3g, \"of_rest\": true}",
			f->other.explained, f->other.p);
	}
	ky_buf_printf(b,
		"], \"example\": {\"begin_ns\": %" PRId64 ", \"end_ns\": %" PRId64
		", \"command\": ",
		example->begin_ns, example->end_ns);
	{
		struct ky_buf command = {0};

		put_command(&command, e, example);
		if (command.data)
			put_string(b, command.data);
		ky_buf_deinit(&command);
	}
	ky_buf_puts(b, "}}");
}

/* d may be NULL: nothing was compared. */
static void put_json_groups(struct ky_buf *b, const struct ky_difference *d)
{
	if (!d) {
		ky_buf_puts(b, ", \"slow\": {\"n\": 0, \"mean_ns\": 0, \"how\": \"\"}"
			       ", \"typical\": {\"n\": 0, \"mean_ns\": 0}, \"extra_ns\": 0");
		return;
	}
	ky_buf_printf(b,
		", \"slow\": {\"n\": %.0f, \"mean_ns\": %.6f, \"how\": ", d->group->n_all_slow,
		d->slow_ns);
	put_string(b, d->group->how);
	ky_buf_printf(b, "}, \"typical\": {\"n\": %zu, \"mean_ns\": %.6f}, \"extra_ns\": %.6f",
		d->group->n_typical, d->typical_ns, d->extra_ns);
}

/* Returns the sum of their amounts. d may be NULL. */
static double put_json_findings(
	struct ky_buf *b, const struct ky_explanation *e, const struct ky_difference *d)
{
	double sum = 0;
	bool any = false;

	ky_buf_puts(b, ", \"findings\": [");
	for (size_t i = 0; d && i < d->findings.n; i++) {
		const struct ky_finding *f = d->findings.v[i];

		if (!f->is_shown)
			continue;
		ky_buf_puts(b, any ? ", " : "");
		put_json_finding(b, e, d, f);
		sum += f->amount;
		any = true;
	}
	ky_buf_puts(b, "]");
	return sum;
}

void ky_explanation_json(struct ky_buf *b, const struct ky_explanation *e)
{
	static const char *const verdicts[] = {"causes", "not-recorded", "nothing", "too-few"};
	const struct ky_instances *v = &e->instances[0];
	const struct ky_difference *d = e->c->chosen;
	double rest = d ? d->extra_ns : 0;

	ky_buf_puts(b, "{\"ok\": true, \"span\": ");
	put_string(b, e->question.span);
	ky_buf_printf(b,
		", \"count\": %" PRIu64 ", \"left_out\": {\"unfinished\": %" PRIu64
		", \"unbegun\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"nested\": %" PRIu64
		", \"instant\": %" PRIu64 "}, \"verdict\": \"%s\", \"first_line\": ",
		v->n, v->n_unfinished, v->n_unbegun, v->n_lost, v->n_nested, v->n_instant,
		verdicts[e->verdict]);
	put_string(b, e->first_line);
	put_json_groups(b, d);
	rest -= put_json_findings(b, e, d);
	ky_buf_printf(b, ", \"rest_ns\": %.6f", rest);
	if (ky_explanation_is_net(e))
		ky_buf_printf(b, ", \"load\": {\"slow_ns\": %.6f, \"typical_ns\": %.6f}",
			ky_explanation_load(d, false), ky_explanation_load(d, true));
	if (e->c->slowest) {
		ky_buf_puts(b, ", \"slowest\": {\"span\": ");
		put_string(b, e->question.span);
		put_json_groups(b, e->c->slowest);
		put_json_findings(b, e, e->c->slowest);
		ky_buf_puts(b, "}");
	}
	ky_buf_puts(b, ", \"unknown\": [");
	for (size_t i = 0; i < e->unknown.n; i++) {
		ky_buf_printf(b, "%s{\"what\": ", i ? ", " : "");
		put_string(b, e->unknown.v[i].what);
		ky_buf_puts(b, ", \"option\": ");
		put_string(b, e->unknown.v[i].option);
		ky_buf_puts(b, "}");
	}
	ky_buf_puts(b, "]}");
}
