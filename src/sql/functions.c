/* SPDX-License-Identifier: MIT */
/* percentile(x, p), hist(x), text_time(ts), symbol(addr). */
#include "sql/sql.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#define NS_PER_S 1000000000

/* --- percentile(x, p): the least value that p percent of all values do not exceed --- */

union number {
	int64_t i;
	double d;
};

struct numbers {
	union number *v; /* owned */
	size_t n, cap;
	bool is_real; /* all of them are, once one was */
	double p;
};

static void become_real(struct numbers *s)
{
	for (size_t i = 0; i < s->n && !s->is_real; i++)
		s->v[i].d = (double)s->v[i].i;
	s->is_real = true;
}

static bool make_room(struct numbers *s)
{
	size_t cap = s->cap ? 2 * s->cap : 256;
	union number *more;

	if (s->n < s->cap)
		return true;
	more = reallocarray(s->v, cap, sizeof(*more));
	if (!more)
		return false;
	s->v = more;
	s->cap = cap;
	return true;
}

static void add_number(sqlite3_context *x, int argc, sqlite3_value **argv)
{
	struct numbers *s = sqlite3_aggregate_context(x, sizeof(*s));
	int type = sqlite3_value_numeric_type(argv[0]);

	if (!s || !make_room(s)) {
		sqlite3_result_error_nomem(x);
		return;
	}
	s->p = sqlite3_value_double(argv[1]);
	if (sqlite3_value_numeric_type(argv[1]) == SQLITE_TEXT || !(s->p >= 0 && s->p <= 100)) {
		sqlite3_result_error(x, "percentile(x, p): p is a number from 0 to 100", -1);
		return;
	}
	if (type == SQLITE_INTEGER && !s->is_real) {
		s->v[s->n++].i = sqlite3_value_int64(argv[0]);
	} else if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
		become_real(s);
		s->v[s->n++].d = sqlite3_value_double(argv[0]);
	}
}

static int by_integer(const void *a, const void *b)
{
	const union number *x = a, *y = b;

	return (x->i > y->i) - (x->i < y->i);
}

static int by_real(const void *a, const void *b)
{
	const union number *x = a, *y = b;

	return (x->d > y->d) - (x->d < y->d);
}

static void finish_percentile(sqlite3_context *x)
{
	struct numbers *s = sqlite3_aggregate_context(x, 0);
	size_t i;

	if (!s || !s->n) {
		if (s)
			free(s->v);
		return;
	}
	qsort(s->v, s->n, sizeof(*s->v), s->is_real ? by_real : by_integer);
	/* a whole rank stays whole: the product may be rounded up */
	i = (size_t)ceil(s->p * (double)s->n / 100 * (1 - 0x1p-50));
	i = KY_MIN(i ? i - 1 : 0, s->n - 1);
	if (s->is_real)
		sqlite3_result_double(x, s->v[i].d);
	else
		sqlite3_result_int64(x, s->v[i].i);
	free(s->v);
}

/* --- hist(x): how many values lie between two powers of two, as JSON --- */

#define N_POWERS 65 /* 0, then one for each power */

struct histogram {
	uint64_t positive[N_POWERS], negative[N_POWERS];
};

static unsigned power_of(uint64_t v)
{
	return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

/* Integers beyond 2^63 - 1 are text in tables: their type is that of floating-point numbers. */
static uint64_t to_magnitude(sqlite3_value *v, bool *ret_is_negative)
{
	double d = sqlite3_value_double(v);
	int64_t i = sqlite3_value_int64(v);

	*ret_is_negative = d < 0;
	if (sqlite3_value_numeric_type(v) == SQLITE_INTEGER)
		return i < 0 ? -(uint64_t)i : (uint64_t)i;
	d = d < 0 ? -d : d;
	return d >= 0x1p64 ? UINT64_MAX : (uint64_t)d;
}

static void add_to_histogram(sqlite3_context *x, int argc, sqlite3_value **argv)
{
	struct histogram *h = sqlite3_aggregate_context(x, sizeof(*h));
	int type = sqlite3_value_numeric_type(argv[0]);
	bool is_negative;
	unsigned power;

	if (!h) {
		sqlite3_result_error_nomem(x);
		return;
	}
	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
		return;
	power = power_of(to_magnitude(argv[0], &is_negative));
	if (is_negative && power)
		h->negative[power]++;
	else
		h->positive[power]++;
}

/* The values whose power it is: from `from` to before `to`, which may be 2^63. */
static void put_step(sqlite3_str *s, const char *sign, unsigned power, uint64_t n)
{
	uint64_t from = power ? (uint64_t)1 << (power - 1) : 0;
	uint64_t to = power < 64 ? (uint64_t)1 << power : UINT64_MAX;

	if (n)
		sqlite3_str_appendf(s, "%s{\"from\":%s%llu,\"to\":%s%llu,\"n\":%llu}",
			sqlite3_str_length(s) > 1 ? "," : "", sign, from, sign, to, n);
}

static void finish_histogram(sqlite3_context *x)
{
	struct histogram *h = sqlite3_aggregate_context(x, 0);
	sqlite3_str *s = sqlite3_str_new(NULL);

	sqlite3_str_appendall(s, "[");
	for (unsigned i = N_POWERS; h && i-- > 0;)
		put_step(s, "-", i, h->negative[i]);
	for (unsigned i = 0; h && i < N_POWERS; i++)
		put_step(s, "", i, h->positive[i]);
	sqlite3_str_appendall(s, "]");
	sqlite3_result_text(x, sqlite3_str_finish(s), -1, sqlite3_free);
}

/* --- text_time(ts): "YYYY-MM-DD HH:MM:SS.nnnnnnnnn", local time --- */

static void text_time(sqlite3_context *x, int argc, sqlite3_value **argv)
{
	int64_t ns = sqlite3_value_int64(argv[0]);
	int64_t fraction = (ns % NS_PER_S + NS_PER_S) % NS_PER_S;
	time_t second = (time_t)(ns / NS_PER_S - (ns % NS_PER_S < 0));
	char date[64], text[96];
	struct tm tm;

	if (sqlite3_value_type(argv[0]) == SQLITE_NULL || !localtime_r(&second, &tm) ||
		!strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm))
		return;
	snprintf(text, sizeof(text), "%s.%09" PRId64, date, fraction);
	sqlite3_result_text(x, text, -1, SQLITE_TRANSIENT);
}

/* --- symbol(addr), symbol(addr, pid), symbol(addr, pid, ts) --- */

/* Integers beyond 2^63 - 1, addresses of the kernel, are text in tables. */
static uint64_t to_address(sqlite3_value *v)
{
	if (sqlite3_value_type(v) == SQLITE_TEXT)
		return strtoull((const char *)sqlite3_value_text(v), NULL, 0);
	return (uint64_t)sqlite3_value_int64(v);
}

/* Returns the host of all traces, or "" if they have several. */
static const char *find_host(const struct kymo_reader *reader)
{
	size_t n = kymo_reader_n_traces(reader);
	const char *host = n ? kymo_reader_trace(reader, 0)->host : "";

	for (size_t i = 1; i < n; i++)
		if (strcmp(kymo_reader_trace(reader, i)->host, host))
			return "";
	return host;
}

static void find_symbol(sqlite3_context *x, int argc, sqlite3_value **argv)
{
	struct ky_sql_symbols *s = sqlite3_user_data(x);
	struct ky_symbol_address a = {.address = to_address(argv[0])};
	char text[KY_SYMBOL_MAX];
	size_t n;

	if (!s->symbols && ky_symbols_new(&s->symbols, s->reader, NULL, 0) < 0) {
		sqlite3_result_error_nomem(x);
		return;
	}
	a.process.host = find_host(s->reader);
	if (argc > 1 && sqlite3_value_type(argv[1]) != SQLITE_NULL) {
		a.process.is_known = true;
		a.process.pid = sqlite3_value_int64(argv[1]);
	}
	if (argc > 2 && sqlite3_value_type(argv[2]) != SQLITE_NULL) {
		a.has_time = true;
		a.ns = sqlite3_value_int64(argv[2]);
	}
	n = ky_symbols_find(s->symbols, &a, KY_SYMBOL_PLACE, text);
	if (n)
		sqlite3_result_text(x, text, (int)n, SQLITE_TRANSIENT);
}

int ky_sql_add_symbol(sqlite3 *db, struct ky_sql_symbols *s)
{
	int r = SQLITE_OK;

	for (int n = 1; n <= 3 && r == SQLITE_OK; n++)
		r = sqlite3_create_function(db, "symbol", n,
			SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, s, find_symbol, NULL,
			NULL);
	return r;
}

int ky_sql_add_functions(sqlite3 *db)
{
	const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
	int r = sqlite3_create_function(
		db, "percentile", 2, flags, NULL, NULL, add_number, finish_percentile);

	if (r == SQLITE_OK)
		r = sqlite3_create_function(
			db, "hist", 1, flags, NULL, NULL, add_to_histogram, finish_histogram);
	if (r == SQLITE_OK)
		r = sqlite3_create_function(db, "text_time", 1, flags, NULL, text_time, NULL, NULL);
	return r;
}
