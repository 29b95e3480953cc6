/* SPDX-License-Identifier: MIT */
#include "cli/sites.h"

#include <inttypes.h>
#include <time.h>

#include "analysis/heap.h"
#include "analysis/texts.h"
#include "analysis/waits.h"
#include "cli/measure.h"
#include "cli/progress.h"
#include "cli/symbols.h"

#define MAX_ROWS 40 /* of a table; JSON has all */
#define NS_PER_S 1000000000

static const char *const kind_names[KY_N_WAIT_KINDS] = {[KY_WAIT_MUTEX] = "mutex",
	[KY_WAIT_RWLOCK] = "rwlock",
	[KY_WAIT_COND] = "condition",
	[KY_WAIT_SEM] = "semaphore",
	[KY_WAIT_BARRIER] = "barrier",
	[KY_WAIT_FUTEX] = "futex"};

/* --- texts of addresses --- */

/* An address that was looked up. */
struct place {
	struct ky_hnode node;
	uint64_t pid, address;
	bool is_code;
	uint32_t text;
};

struct places {
	struct cli_symbols symbols;
	struct ky_texts texts;
	struct ky_htab table;
};

static size_t find_symbol(const struct places *p, const struct ky_item *item,
	const struct place *place, char text[KY_SYMBOL_MAX])
{
	const struct ky_env *host = ky_tsdl_env(&item->trace->tsdl, "hostname");
	struct ky_symbol_address a = {.has_time = item->has_time,
		.ns = item->ns,
		.address = place->address,
		.is_return = place->is_code};
	size_t n;
	char *end;

	a.process.host = host && host->text ? host->text : "";
	a.process.is_known = place->pid != 0;
	a.process.pid = (int64_t)place->pid;
	n = p->symbols.symbols ? ky_symbols_find(p->symbols.symbols, &a, KY_SYMBOL_PLACE, text) : 0;
	/* Of a variable, its name alone. */
	end = n && !place->is_code ? strstr(text, "+0x0") : NULL;
	if (end)
		*end = '\0';
	return n;
}

static uint32_t make_text(struct places *p, const struct ky_item *item, const struct place *place)
{
	char text[KY_SYMBOL_MAX];

	if (!find_symbol(p, item, place, text))
		snprintf(text, sizeof(text),
			place->pid ? "0x%" PRIx64 " of process %" PRIu64 : "0x%" PRIx64,
			place->address, place->pid);
	return ky_texts_add(&p->texts, text, strlen(text));
}

static uint32_t find_place(
	void *arg, const struct ky_item *item, uint64_t pid, uint64_t address, bool is_code)
{
	const uint64_t key[] = {pid, address, is_code};
	uint32_t hash = ky_hash(key, sizeof(key));
	struct places *p = arg;
	struct place *place;

	if (!address)
		return 0;
	for (struct ky_hnode *n = ky_htab_first(&p->table, hash); n; n = ky_htab_next(n)) {
		place = ky_container_of(n, struct place, node);
		if (place->pid == pid && place->address == address && place->is_code == is_code)
			return place->text;
	}
	place = calloc(1, sizeof(*place));
	if (!place || ky_htab_add(&p->table, &place->node, hash) < 0) {
		free(place);
		p->texts.error = -ENOMEM;
		return 0;
	}
	place->pid = pid;
	place->address = address;
	place->is_code = is_code;
	place->text = make_text(p, item, place);
	return place->text;
}

static int open_places(struct cli *cli, struct places *p, const struct ky_trace_reader *reader)
{
	const struct ky_symbolizer *unused;

	p->symbols.is_wanted = cli_symbols_has_files(reader);
	return cli_symbols_open(cli, &p->symbols, reader, &unused);
}

static void close_places(struct places *p)
{
	ky_htab_free_all(&p->table, struct place, node);
	ky_texts_deinit(&p->texts);
	cli_symbols_end(&p->symbols);
}

static const char *text_of(const struct places *p, uint32_t text)
{
	return text ? ky_texts_get(&p->texts, text) : "?";
}

/* --- locks --- */

static void print_wait(struct cli *cli, const struct ky_wait_row *row, const struct places *p)
{
	printf("%12" PRIu64, row->n);
	measure_print_duration(row->total_ns);
	measure_print_duration(row->max_ns);
	if (!row->is_hold)
		printf("  %s for", cli_safe(cli, text_of(p, row->waits_at)));
	printf("%s%s", row->is_hold ? "  " : " ", kind_names[row->kind]);
	printf(" %s", cli_safe(cli, text_of(p, row->lock)));
	if (row->is_hold)
		printf(" at %s", cli_safe(cli, text_of(p, row->held_at)));
	else if (row->held_at)
		printf(", held at %s", cli_safe(cli, text_of(p, row->held_at)));
	if (row->n_open)
		printf(", %" PRIu64 " to the end", row->n_open);
	printf("\n");
}

static void print_rows(struct cli *cli, struct ky_wait_row *const *rows, size_t n,
	const struct places *p, const char *head, const char *what)
{
	if (n)
		printf("%12s  %8s  %8s  %s\n", head, "total", "max", what);
	for (size_t i = 0; i < n && i < MAX_ROWS; i++)
		print_wait(cli, rows[i], p);
	if (n > MAX_ROWS)
		printf("%12s  %zu more, with less time: --json\n", "", n - MAX_ROWS);
}

static void print_longest(struct cli *cli, const struct ky_waits *w, const char *path)
{
	const struct ky_wait_row *longest = NULL;

	for (size_t i = 0; i < w->n_waits; i++) {
		const struct ky_wait_row *row = w->by_total[w->n_holds + i];

		if (row->held_at && (!longest || row->max_ns > longest->max_ns))
			longest = row;
	}
	if (!longest)
		return;
	printf("longest:");
	measure_print_duration(longest->max_ns);
	printf(", thread %" PRIu64 " for thread %" PRIu64, longest->thread, longest->holder);
	measure_print_view(cli, path, longest->end_ns - (int64_t)longest->max_ns, longest->end_ns);
}

static void print_locks(
	struct cli *cli, const struct ky_waits *w, const struct places *p, const char *path)
{
	print_rows(cli, w->by_total + w->n_holds, w->n_waits, p, "waits",
		"where, for what, and where that was held meanwhile");
	print_longest(cli, w, path);
	if (!w->n_waits)
		printf("no thread waited for one that is known to hold its lock\n");
	if (w->n_unknown)
		printf("%" PRIu64
		       " acquisition%s took 1 ms or more, at most %.1f ms, while no thread of the process held the lock: processes share it, or the thread got no processor\n",
			w->n_unknown, w->n_unknown == 1 ? "" : "s",
			(double)w->unknown_max_ns / 1e6);
	if (w->n_holds)
		printf("\n");
	print_rows(cli, w->by_total, w->n_holds, p, "holds", "of what, and where it began");
}

static void put_row(struct ky_buf *b, const struct ky_wait_row *row, const struct places *p)
{
	cli_put_member(b, "kind", kind_names[row->kind]);
	cli_put_member(b, "lock", text_of(p, row->lock));
	if (!row->is_hold)
		cli_put_member(b, "waits_at", text_of(p, row->waits_at));
	if (row->held_at)
		cli_put_member(b, "held_at", text_of(p, row->held_at));
	ky_buf_printf(b,
		"\"count\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"max_ns\": %" PRIu64
		", \"unfinished\": %" PRIu64 ", \"longest\": {\"end_ns\": %" PRId64
		", \"thread\": %" PRIu64 ", \"holder\": %" PRIu64 "}}",
		row->n, row->total_ns, row->max_ns, row->n_open, row->end_ns, row->thread,
		row->holder);
}

static void put_locks(struct ky_buf *b, const struct ky_waits *w, const struct places *p)
{
	ky_buf_puts(b, ", \"waits\": [");
	for (size_t i = 0; i < w->n_waits; i++) {
		ky_buf_puts(b, i ? ", {" : "{");
		put_row(b, w->by_total[w->n_holds + i], p);
	}
	ky_buf_puts(b, "], \"holds\": [");
	for (size_t i = 0; i < w->n_holds; i++) {
		ky_buf_puts(b, i ? ", {" : "{");
		put_row(b, w->by_total[i], p);
	}
	ky_buf_printf(b,
		"], \"unknown\": {\"count\": %" PRIu64 ", \"total_ns\": %" PRIu64
		", \"max_ns\": %" PRIu64 "}, \"others\": %" PRIu64,
		w->n_unknown, w->unknown_total_ns, w->unknown_max_ns, w->n_others);
}

static int run_locks(struct cli *cli, const struct ky_query *query, const struct ky_sites *sites,
	const struct ky_trace_reader_options *options, const char *path, struct ky_buf *json)
{
	struct ky_waits w;
	int r = ky_waits_collect(&w, query, sites, options);

	cli_progress_end(&cli->progress);
	if (r < 0)
		r = cli_fail(cli, "failed", "cannot read the trace: %s", strerror(-r));
	else if (!w.n_classes)
		r = cli_fail(cli, "not-found",
			"no event of locks is in the trace or selected: 'kymo record --with=pthread' records them");
	else if (cli->json)
		put_locks(json, &w, sites->arg);
	else
		print_locks(cli, &w, sites->arg, path);
	if (!r && w.n_gaps)
		cli_warn(cli,
			"events are missing in %" PRIu64
			" place%s: waits and holds there are not counted",
			w.n_gaps, w.n_gaps == 1 ? "" : "s");
	ky_waits_deinit(&w);
	return r;
}

/* --- memory --- */

struct heap_row {
	uint32_t site;
	const struct ky_heap_use *use;
};

static int by_use(const void *a, const void *b)
{
	const struct heap_row *x = a, *y = b;

	if (x->use->in_use != y->use->in_use)
		return x->use->in_use < y->use->in_use ? 1 : -1;
	if (x->use->peak != y->use->peak)
		return x->use->peak < y->use->peak ? 1 : -1;
	return (x->site > y->site) - (x->site < y->site);
}

static void print_size(uint64_t bytes)
{
	char size[32];

	printf("  %10s", cli_format_size(size, sizeof(size), bytes));
}

static void print_heap_totals(const struct ky_heap *h)
{
	time_t second = (time_t)(h->all.peak_ns / NS_PER_S);
	char size[32], time[64] = "?";
	struct tm tm;

	if (localtime_r(&second, &tm))
		strftime(time, sizeof(time), "%H:%M:%S", &tm);
	printf("%-11s%s in %" PRIu64 " calls", "allocated",
		cli_format_size(size, sizeof(size), h->all.n_bytes), h->all.n_calls);
	if (h->n_failed)
		printf(", %" PRIu64 " more failed", h->n_failed);
	printf("\n%-11s%" PRIu64 " blocks", "released", h->n_releases);
	if (h->n_unknown)
		printf(", and %" PRIu64 " of before the recording", h->n_unknown);
	printf("\n%-11s%s", "at most", cli_format_size(size, sizeof(size), h->all.peak));
	if (h->all.peak)
		printf(" in use, at %s.%09" PRId64, time, h->all.peak_ns % NS_PER_S);
	printf("\n%-11s%s in %" PRIu64 " blocks, never released\n", "at the end",
		cli_format_size(size, sizeof(size), h->all.in_use), h->all.n_blocks);
}

static void print_heap(struct cli *cli, const struct ky_heap *h, const struct heap_row *rows,
	size_t n, const struct places *p)
{
	print_heap_totals(h);
	if (n)
		printf("\n%12s  %10s  %10s  %10s  %8s  %s\n", "calls", "allocated", "at most",
			"at the end", "blocks", "site");
	for (size_t i = 0; i < n && i < MAX_ROWS; i++) {
		printf("%12" PRIu64, rows[i].use->n_calls);
		print_size(rows[i].use->n_bytes);
		print_size(rows[i].use->peak);
		print_size(rows[i].use->in_use);
		printf("  %8" PRIu64 "  %s\n", rows[i].use->n_blocks,
			cli_safe(cli, text_of(p, rows[i].site)));
	}
	if (n > MAX_ROWS)
		printf("%12s  %zu more place%s: --json\n", "", n - MAX_ROWS,
			n - MAX_ROWS == 1 ? "" : "s");
}

static void put_use(struct ky_buf *b, const struct ky_heap_use *u)
{
	ky_buf_printf(b,
		"\"calls\": %" PRIu64 ", \"allocated\": %" PRIu64 ", \"in_use\": %" PRIu64
		", \"blocks\": %" PRIu64 ", \"peak\": %" PRIu64 ", \"peak_ns\": %" PRId64,
		u->n_calls, u->n_bytes, u->in_use, u->n_blocks, u->peak, u->peak_ns);
}

static void put_heap(struct ky_buf *b, const struct ky_heap *h, const struct heap_row *rows,
	size_t n, const struct places *p)
{
	ky_buf_puts(b, ", \"memory\": {");
	put_use(b, &h->all);
	ky_buf_printf(b,
		", \"released\": %" PRIu64 ", \"released_of_before\": %" PRIu64
		", \"failed\": %" PRIu64 ", \"sites\": [",
		h->n_releases, h->n_unknown, h->n_failed);
	for (size_t i = 0; i < n; i++) {
		ky_buf_puts(b, i ? ", {" : "{");
		cli_put_member(b, "site", text_of(p, rows[i].site));
		put_use(b, rows[i].use);
		ky_buf_puts(b, "}");
	}
	ky_buf_puts(b, "]}");
}

static int show_heap(
	struct cli *cli, const struct ky_heap *h, const struct places *p, struct ky_buf *json)
{
	_cleanup_free_ struct heap_row *rows = calloc(h->sites.n + 1, sizeof(*rows));
	size_t n = 0;

	if (!rows)
		return cli_fail(cli, "failed", "no memory");
	for (size_t i = 0; i < h->sites.n; i++) {
		if (h->sites.v[i].n_calls)
			rows[n++] = (struct heap_row){(uint32_t)i, &h->sites.v[i]};
	}
	qsort(rows, n, sizeof(*rows), by_use);
	if (cli->json)
		put_heap(json, h, rows, n, p);
	else
		print_heap(cli, h, rows, n, p);
	return CLI_OK;
}

static int run_heap(struct cli *cli, const struct ky_query *query, const struct ky_sites *sites,
	const struct ky_trace_reader_options *options, struct ky_buf *json)
{
	struct ky_heap h;
	int r = ky_heap_collect(&h, query, sites, options);

	cli_progress_end(&cli->progress);
	if (r < 0)
		r = cli_fail(cli, "failed", "cannot read the trace: %s", strerror(-r));
	else if (!h.n_classes)
		r = cli_fail(cli, "not-found",
			"no event of memory functions is in the trace or selected: 'kymo record --with=libc' records them");
	else
		r = show_heap(cli, &h, sites->arg, json);
	if (!r && h.n_gaps)
		cli_warn(cli,
			"events are missing in %" PRIu64
			" place%s: memory may have been released there",
			h.n_gaps, h.n_gaps == 1 ? "" : "s");
	ky_heap_deinit(&h);
	return r;
}

/* --- the options --- */

bool sites_is_wanted(const struct cli *cli)
{
	return cli_has(cli, "locks") || cli_has(cli, "memory");
}

int sites_check_options(struct cli *cli)
{
	if (sites_is_wanted(cli) && (cli_has(cli, "by") || measure_is_wanted(cli)))
		return cli_usage(cli,
			"--locks and --memory go with neither --by, --latency, --hist nor --top");
	return CLI_OK;
}

int sites_run(struct cli *cli, const struct ky_query *query,
	const struct ky_trace_reader_options *options, const char *path)
{
	struct places places = {0};
	const struct ky_sites sites = {find_place, &places};
	struct ky_buf json = {0};
	int r = open_places(cli, &places, query->reader);

	ky_buf_puts(&json, "{\"ok\": true");
	if (!r && cli_has(cli, "locks"))
		r = run_locks(cli, query, &sites, options, path, &json);
	if (!r && cli_has(cli, "locks") && cli_has(cli, "memory") && !cli->json)
		printf("\n");
	if (!r && cli_has(cli, "memory"))
		r = run_heap(cli, query, &sites, options, &json);
	ky_buf_puts(&json, "}");
	if (!r && (places.texts.error || json.error))
		r = cli_fail(cli, "failed", "no memory");
	if (!r && cli->json)
		cli_print_json(cli, json.data);
	if (!r && !places.symbols.is_wanted)
		cli_warn(cli,
			"places are numbers, because the trace does not say which files were in memory: record 'kymo_statedump:*' and 'kymo_lib:*' too, with the context vpid, as 'kymo record' does");
	cli_symbols_report(cli, &places.symbols);
	ky_buf_deinit(&json);
	close_places(&places);
	return r;
}
