/* SPDX-License-Identifier: MIT */
/* Which events are a span, and how long it took. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analysis/spans.h"

static struct ky_trace traces[3] = {{.group = 0}, {.group = 1}, {.group = 0}};
static struct ky_file files[] = {
	{.trace = &traces[0]}, {.trace = &traces[1]}, {.trace = &traces[2]}};
/* The third stream is another one of the first trace. */
static struct ky_stream streams[] = {{.files = &files[0], .rank = 1},
	{.files = &files[1], .rank = 2}, {.files = &files[2], .rank = 3}};

/* An event: of a thread's span, or with is_async of one with a number of its own. */
static void feed_of(
	struct ky_spans *s, size_t trace, const char *name, bool is_async, uint64_t id, int64_t ns)
{
	enum ky_role role = is_async ? KY_ROLE_ASYNC_ID : KY_ROLE_SPAN_TID;
	struct ky_event_class class = {.name = name};
	struct ky_decoder d = {0};
	struct ky_item item = {.kind = KY_ITEM_EVENT,
		.has_time = true,
		.ns = ns,
		.stream = &streams[trace],
		.d = &d,
		.event = &class};

	d.have = 1u << role;
	d.role[role] = id;
	assert_int_equal(ky_spans_add(s, &item), 0);
}

static void feed(struct ky_spans *s, const char *name, uint64_t tid, int64_t ns)
{
	feed_of(s, 0, name, false, tid, ns);
}

static void expect_span_name(const struct ky_span_name *name, uint64_t n, uint64_t total,
	uint64_t n_open, uint64_t n_unbegun)
{
	assert_int_equal(name->ns.n, n);
	assert_int_equal(name->ns.sum, total);
	assert_int_equal(name->n_open, n_open);
	assert_int_equal(name->n_unbegun, n_unbegun);
}

static void test_nested(void **state)
{
	struct ky_spans s = {0};

	(void)state;
	feed(&s, "a:f_begin", 1, 100);
	feed(&s, "a:f_begin", 1, 110);
	feed(&s, "a:f_begin", 2, 111); /* another thread's does not end with these */
	feed(&s, "a:f_end", 1, 115);
	feed(&s, "a:f_end", 1, 130);
	feed(&s, "a:f_end", 1, 140);
	assert_int_equal(ky_spans_finish(&s), 0);
	assert_int_equal(s.names.n, 1);
	assert_int_equal(s.by_total[0]->name_len, strlen("a:f"));
	expect_span_name(s.by_total[0], 2, 35, 1, 1);
	assert_int_equal(s.by_total[0]->ns.min, 5);
	assert_int_equal(s.by_total[0]->ns.max, 30);
	assert_int_equal(
		s.by_total[0]->self_ns, 30); /* the inner one's 5, and 25 of the outer one's */
	ky_spans_deinit(&s);
}

static void test_kinds(void **state)
{
	struct ky_spans s = {0};

	(void)state;
	feed_of(&s, 0, "a:f_begin", true, 1, 0);
	feed_of(&s, 0, "a:f_begin", false, 1, 1);
	feed_of(&s, 1, "a:f_end", false, 1, 2); /* thread 1 of another trace */
	feed_of(&s, 1, "a:f_end", true, 1, 3);	/* but the same number */
	feed_of(&s, 0, "a:_end_not", false, 1, 4);
	feed_of(&s, 0, "_begin", false, 1, 5);
	assert_int_equal(ky_spans_finish(&s), 0);
	assert_int_equal(s.names.n, 2);
	assert_true(s.by_total[0]->is_async);
	expect_span_name(s.by_total[0], 1, 3, 0, 0);
	expect_span_name(s.by_total[1], 0, 0, 1, 1);
	ky_spans_deinit(&s);
}

/* A gap in any stream of the trace separates what began before its end from what ends later. */
static void test_gaps(void **state)
{
	struct ky_item lost = {.kind = KY_ITEM_LOST_EVENTS, .lost = {1, 200, 300}};
	struct ky_spans s = {0};

	(void)state;
	assert_int_equal(ky_spans_gap(&s, &streams[2], 100), 0); /* the stream begins at 100 */
	feed(&s, "a:f_begin", 1, 10);
	feed(&s, "a:f_begin", 2, 100);
	feed(&s, "a:f_end", 1, 150);
	feed(&s, "a:f_end", 2, 160);
	feed(&s, "a:f_begin", 3, 199);
	feed_of(&s, 1, "a:g_begin", false, 3, 199); /* another trace */
	feed_of(&s, 0, "a:h_begin", true, 3, 199);  /* of all traces */
	lost.stream = &streams[2];
	assert_int_equal(ky_spans_add(&s, &lost), 0);
	feed(&s, "a:f_begin", 4, 250);
	feed(&s, "a:f_begin", 5, 300);
	feed(&s, "a:f_end", 4, 1000);
	feed(&s, "a:f_end", 5, 1001);
	feed_of(&s, 2, "a:f_end", false, 3, 1002); /* of another chunk */
	feed_of(&s, 1, "a:g_end", false, 3, 1003);
	feed_of(&s, 1, "a:h_end", true, 3, 1004);
	assert_int_equal(ky_spans_finish(&s), 0);
	assert_int_equal(s.names.n, 3);
	expect_span_name(s.by_total[0], 1, 804, 0, 0); /* g */
	expect_span_name(s.by_total[1], 2, 60 + 701, 0, 0);
	assert_int_equal(s.by_total[1]->n_cut, 3);
	expect_span_name(s.by_total[2], 0, 0, 0, 0);
	assert_int_equal(s.by_total[2]->n_cut, 1);
	ky_spans_deinit(&s);
}

static void test_percentiles(void **state)
{
	struct ky_spans s = {0};

	(void)state;
	for (int i = 100; i > 0; i--) {
		feed(&s, "a:f_begin", 1, 1000 * i);
		feed(&s, "a:f_end", 1, 1001 * i);
	}
	feed(&s, "a:g_end", 1, 1);
	assert_int_equal(ky_spans_finish(&s), 0);
	for (unsigned percent = 1; percent <= 100; percent++)
		assert_int_equal(ky_histogram_permille(&s.by_total[0]->ns, 10 * percent), percent);
	assert_int_equal(ky_histogram_permille(&s.by_total[1]->ns, 500), 0);
	ky_spans_deinit(&s);
}

/* Many that are open at the same time, of many names: the tables grow. */
static void test_many(void **state)
{
	struct ky_spans s = {0};
	char names[2][64][32];

	(void)state;
	for (int i = 0; i < 64; i++) {
		snprintf(names[0][i], sizeof(names[0][i]), "a:f%d_begin", i);
		snprintf(names[1][i], sizeof(names[1][i]), "a:f%d_end", i);
	}
	for (int k = 0; k < 2; k++)
		for (uint64_t i = 0; i < 6400; i++)
			feed_of(&s, 0, names[k][i % 64], true, i / 128, k * 10);
	feed_of(&s, 0, names[0][7], true, 7, 0);
	assert_int_equal(ky_spans_finish(&s), 0);
	assert_int_equal(s.names.n, 64);
	for (int i = 0; i < 64; i++)
		expect_span_name(s.by_total[i], 100, 1000, s.by_total[i]->name == names[0][7], 0);
	ky_spans_deinit(&s);
}

/* The begins that are open, and what the last end found. */
struct model {
	uint64_t tid[20000], number[20000], began_last;
	int name[20000];
	bool crosses[20000]; /* one that began before in its thread has ended */
	size_t n;
	bool has_ended, has_crossed;
};

static int note_ended(void *arg, const struct ky_ended_span *e)
{
	struct model *m = arg;

	m->has_ended = true;
	m->began_last = e->begin;
	m->has_crossed = e->crosses;
	return 0;
}

/* An end has the newest begin of its name and thread, whatever else is open. */
static void test_random(void **state)
{
	static const char *const begins[] = {"a:f_begin", "a:g_begin", "a:h_begin"};
	static const char *const ends[] = {"a:f_end", "a:g_end", "a:h_end"};
	static struct model m;
	struct ky_spans s = {.ended = note_ended, .arg = &m};

	(void)state;
	srand(1);
	for (uint64_t i = 1; i <= 20000; i++) {
		int name = rand() % 3;
		uint64_t tid = (uint64_t)rand() % 4;
		/* Trees of calls, then ends in any order. */
		bool is_begin = i % 1000 < 500 ? rand() % 2 : rand() % 5 < 2;
		size_t k = m.n;

		if (is_begin) {
			feed(&s, begins[name], tid, (int64_t)i);
			m.tid[m.n] = tid;
			m.name[m.n] = name;
			m.crosses[m.n] = false;
			m.number[m.n++] = i;
			continue;
		}
		while (k && (m.tid[k - 1] != tid || (m.name[k - 1] != name && i % 1000 >= 500)))
			k--;
		m.has_ended = false;
		feed(&s, ends[k ? m.name[k - 1] : name], tid, (int64_t)i);
		assert_int_equal(m.has_ended, k > 0);
		if (!k)
			continue;
		assert_int_equal(m.began_last, m.number[k - 1]);
		assert_int_equal(m.has_crossed, m.crosses[k - 1]);
		for (m.n--; k <= m.n; k++) {
			m.crosses[k - 1] = m.crosses[k] || m.tid[k] == tid;
			m.tid[k - 1] = m.tid[k];
			m.name[k - 1] = m.name[k];
			m.number[k - 1] = m.number[k];
		}
	}
	ky_spans_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
