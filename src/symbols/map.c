/* SPDX-License-Identifier: MIT */
#include "symbols/map.h"

#include "base/bisect.h"
#include "base/buf.h"
#include "base/vec.h"

#define OPEN_MAX 65536 /* files of a process at a time: more than the kernel's default of maps */
/* Files that forked processes copy, at most: at first, and for each event more. */
#define COPIES_MIN	 ((uint64_t)1 << 18)
#define COPIES_PER_EVENT 16

/*
 * Files that a process had from its fork on: those that another one had at a time. They are copied
 * only when the process changes them, because most processes run another program instead.
 */
struct inherited {
	struct process *of;
	int64_t at_ns;
	int64_t from_ns, to_ns;
};

struct process {
	struct ky_hnode node;
	struct ky_process_id id; /* host: owned */
	struct ky_mapping **v;	 /* owned */
	size_t n, cap;
	KY_VEC(struct ky_mapping *) open;   /* in memory now, by begin; none if any is inherited */
	KY_VEC(struct inherited) inherited; /* by time; only the last one may still be so */
	uint64_t *highest;		    /* owned: the highest end of v[0 .. i] */
	bool is_sorted;
	bool in_dump;
	uint64_t n_dumps;
	int64_t dump_begin_ns;
};

enum column {
	COLUMN_BADDR,
	COLUMN_MEMSZ,
	COLUMN_PATH,
	COLUMN_HAS_BUILD_ID,
	COLUMN_VPID,
	COLUMN_PID,
	COLUMN_PID_NS,
	COLUMN_OFFSET,
	COLUMN_PARENT,
	COLUMN_BUILD_ID, /* the first byte; others follow */
	N_COLUMNS = COLUMN_BUILD_ID + KY_BUILD_ID_MAX,
};

struct ky_map {
	struct kymo_reader *reader; /* borrowed */
	struct kymo_query *query;   /* owned */
	struct kymo_cursor *cursor; /* owned; NULL until there are state events */
	struct ky_htab processes;   /* struct process */
	size_t n_mappings;
	uint64_t n_copies_left, n_left_out;
};

#define EVENTS "kymo_statedump:*,kymo_lib:*,lttng_ust_statedump:*,lttng_ust_lib:*,lttng_ust_dl:*"

/* --- processes --- */

static uint32_t hash_process(const struct ky_process_id *id)
{
	const uint64_t key[] = {
		ky_hash(id->host, strlen(id->host)), (uint64_t)id->pid, (uint64_t)id->pid_ns};

	return ky_hash(key, sizeof(key));
}

static bool is_process(const struct ky_process_id *a, const struct ky_process_id *b)
{
	return a->is_known == b->is_known && a->pid == b->pid && a->pid_ns == b->pid_ns &&
	       !strcmp(a->host, b->host);
}

static struct process *find_process(const struct ky_map *m, const struct ky_process_id *id)
{
	struct ky_hnode *n = ky_htab_first(&m->processes, hash_process(id));
	struct process *p;

	for (; n; n = ky_htab_next(n)) {
		p = ky_container_of(n, struct process, node);
		if (is_process(&p->id, id))
			return p;
	}
	return NULL;
}

static struct process *get_process(struct ky_map *m, const struct ky_process_id *id)
{
	struct process *p = find_process(m, id);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->id = *id;
	p->id.host = strdup(id->host);
	if (!p->id.host || ky_htab_add(&m->processes, &p->node, hash_process(id)) < 0) {
		free((char *)p->id.host);
		free(p);
		return NULL;
	}
	return p;
}

static void free_process(struct process *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i]->path);
		free(p->v[i]);
	}
	free(p->v);
	free(p->highest);
	ky_vec_deinit(&p->open);
	ky_vec_deinit(&p->inherited);
	free((char *)p->id.host);
	free(p);
}

/* --- files of a process --- */

/* Returns the number of files in v, which is sorted, that begin below the address, or at it. */
static size_t count_below(struct ky_mapping *const *v, size_t n, uint64_t address)
{
	size_t below;

	ky_bisect(below, n, k, v[k]->begin <= address);
	return below;
}

/* Returns the place of the file that is at this address now; the one that came last. */
static struct ky_mapping **find_open(const struct process *p, uint64_t begin)
{
	size_t n = count_below(p->open.v, p->open.n, begin);

	return n && p->open.v[n - 1]->begin == begin ? &p->open.v[n - 1] : NULL;
}

/* The files from one place to another end; m comes in their place, or nothing if it is NULL. */
static int replace_open(struct process *p, size_t from, size_t to, struct ky_mapping *m, int64_t ns)
{
	size_t next = from + (m != NULL), n_behind = p->open.n - to;
	struct ky_mapping **v;

	for (size_t i = from; i < to; i++)
		p->open.v[i]->to_ns = ns;
	if (ky_vec_reserve((void **)&p->open.v, &p->open.cap, next + n_behind, sizeof(*v)) < 0)
		return -ENOMEM;
	v = p->open.v;
	if (next != to)
		memmove(v + next, v + to, n_behind * sizeof(*v));
	if (m)
		v[from] = m;
	p->open.n = next + n_behind;
	return 0;
}

/*
 * Finds the files that lie where another one is now, and so end; or the place for it. Several
 * unknown processes may have both.
 */
static void find_overlapping(
	const struct process *p, uint64_t begin, uint64_t end, size_t *ret_from, size_t *ret_to)
{
	size_t from = count_below(p->open.v, p->open.n, begin), to = from;

	if (p->id.is_known && from && p->open.v[from - 1]->end > begin)
		from--;
	while (p->id.is_known && to < p->open.n && p->open.v[to]->begin < end)
		to++;
	*ret_from = from;
	*ret_to = to;
}

static struct ky_mapping *append_mapping(struct process *p)
{
	struct ky_mapping *m;

	if (p->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 16;
		struct ky_mapping **more = reallocarray(p->v, cap, sizeof(struct ky_mapping *));

		if (!more)
			return NULL;
		p->v = more;
		p->cap = cap;
	}
	m = calloc(1, sizeof(*m));
	if (m)
		p->v[p->n++] = m;
	p->is_sorted = false;
	return m;
}

static int by_begin(const void *a, const void *b)
{
	const struct ky_mapping *x = *(struct ky_mapping *const *)a;
	const struct ky_mapping *y = *(struct ky_mapping *const *)b;

	return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin)
				    : (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static int sort_mappings(struct process *p)
{
	uint64_t *highest, end = 0;

	if (p->is_sorted || !p->n)
		return 0;
	highest = reallocarray(p->highest, p->n + 1, sizeof(*highest));
	if (!highest)
		return -ENOMEM;
	p->highest = highest;
	qsort(p->v, p->n, sizeof(struct ky_mapping *), by_begin);
	for (size_t i = 0; i < p->n; i++)
		p->highest[i] = end = KY_MAX(end, p->v[i]->end);
	p->is_sorted = true;
	return 0;
}

/* --- events --- */

/* A row of a batch. */
struct row {
	const struct kymo_batch *batch;
	size_t i;
};

static uint64_t get_number(const struct row *r, size_t column, uint64_t other)
{
	return kymo_batch_has(r->batch, column, r->i)
		       ? ((const uint64_t *)r->batch->columns[column].values)[r->i]
		       : other;
}

static int add_file(struct ky_map *map, struct process *p, const struct row *r)
{
	uint64_t begin = get_number(r, COLUMN_BADDR, 0), size = get_number(r, COLUMN_MEMSZ, 0);
	uint64_t end = size > UINT64_MAX - begin ? UINT64_MAX : begin + size;
	int64_t ns = r->batch->ns[r->i];
	struct ky_mapping **open = find_open(p, begin), *m = open ? *open : NULL;
	size_t len, from, to;
	const char *path;

	if (!size || !kymo_batch_has(r->batch, COLUMN_PATH, r->i))
		return 0;
	path = kymo_batch_text(r->batch, COLUMN_PATH, r->i, &len);
	if (m && m->end == end && !m->has_offset && strlen(m->path) == len &&
		!memcmp(m->path, path, len)) {
		m->n_dump = p->n_dumps;
		return 0;
	}
	find_overlapping(p, begin, end, &from, &to);
	if (from == to && p->open.n >= OPEN_MAX) {
		map->n_left_out++;
		return 0;
	}
	m = append_mapping(p);
	if (!m)
		return -ENOMEM;
	m->begin = begin;
	m->end = end;
	m->from_ns = ns;
	m->to_ns = INT64_MAX;
	m->has_build_id = get_number(r, COLUMN_HAS_BUILD_ID, 0);
	m->n_dump = p->n_dumps;
	m->has_offset = kymo_batch_has(r->batch, COLUMN_OFFSET, r->i);
	m->offset = get_number(r, COLUMN_OFFSET, 0);
	m->path = strndup(path, len);
	return m->path ? replace_open(p, from, to, m, ns) : -ENOMEM;
}

/* The same file may have been replaced by another build since it was reported last. */
static int add_build_id(struct process *p, const struct row *r)
{
	struct ky_mapping **open = find_open(p, get_number(r, COLUMN_BADDR, 0));
	struct ky_mapping *m = open ? *open : NULL, *next;
	uint8_t id[KY_BUILD_ID_MAX];
	size_t n = 0;

	while (n < KY_BUILD_ID_MAX && kymo_batch_has(r->batch, COLUMN_BUILD_ID + n, r->i)) {
		id[n] = (uint8_t)get_number(r, COLUMN_BUILD_ID + n, 0);
		n++;
	}
	if (!m || !n || (m->n_build_id == n && !memcmp(m->build_id, id, n)))
		return 0;
	if (m->n_build_id) {
		next = append_mapping(p);
		if (!next)
			return -ENOMEM;
		*next = *m;
		next->file = NULL;
		next->from_ns = m->to_ns = r->batch->ns[r->i];
		next->path = strdup(m->path);
		if (!next->path)
			return -ENOMEM;
		*open = m = next;
	}
	memcpy(m->build_id, id, n);
	m->n_build_id = n;
	return 0;
}

static void remove_file(struct process *p, const struct row *r)
{
	struct ky_mapping **open = find_open(p, get_number(r, COLUMN_BADDR, 0));
	size_t at = open ? (size_t)(open - p->open.v) : 0;

	if (open)
		replace_open(p, at, at + 1, NULL, r->batch->ns[r->i]);
}

/* Returns the files that the process still has from another one, or NULL. */
static struct inherited *get_inherited(struct process *p)
{
	struct inherited *last = p->inherited.n ? &p->inherited.v[p->inherited.n - 1] : NULL;

	return last && last->to_ns == INT64_MAX ? last : NULL;
}

/* The process runs another program: forgets the files of the one before. */
static void remove_all(struct process *p, const struct row *r)
{
	struct inherited *inherited = get_inherited(p);

	replace_open(p, 0, p->open.n, NULL, r->batch->ns[r->i]);
	if (inherited)
		inherited->to_ns = r->batch->ns[r->i];
}

/* The process begins with its parent's files, which may be those of the parent's parent. */
static int inherit(struct process *p, struct process *parent, const struct row *r)
{
	int64_t ns = r->batch->ns[r->i];
	const struct inherited *older = get_inherited(parent);

	return ky_vec_add(&p->inherited, (struct inherited){.of = older ? older->of : parent,
						 .at_ns = older ? older->at_ns : ns,
						 .from_ns = ns,
						 .to_ns = INT64_MAX});
}

static bool is_inherited(const struct inherited *i, const struct ky_mapping *m)
{
	return m->from_ns <= i->at_ns && i->at_ns < m->to_ns;
}

static int copy_file(struct process *p, const struct ky_mapping *from, int64_t ns)
{
	size_t at = count_below(p->open.v, p->open.n, from->begin);
	struct ky_mapping *m = append_mapping(p);

	if (!m)
		return -ENOMEM;
	*m = *from;
	m->from_ns = ns;
	m->to_ns = INT64_MAX;
	m->file = NULL;
	m->path = strdup(m->path);
	return m->path ? replace_open(p, at, at, m, ns) : -ENOMEM;
}

/* The process is about to change its files: copies those that it has from another one. */
static int copy_inherited(struct ky_map *map, struct process *p, const struct row *r)
{
	struct inherited *last = get_inherited(p), all;
	size_t n = last ? last->of->n : 0; /* the other one may be p, which ended and began again */
	int e = 0;

	if (!last)
		return 0;
	if (n > map->n_copies_left) {
		last->to_ns = r->batch->ns[r->i];
		map->n_left_out++;
		return 0;
	}
	map->n_copies_left -= n;
	all = *last;
	p->inherited.n--;
	e = sort_mappings(all.of); /* so that each one is added at the end */
	for (size_t i = 0; i < n && !e; i++)
		if (is_inherited(&all, all.of->v[i]))
			e = copy_file(p, all.of->v[i], all.from_ns);
	return e;
}

static void begin_dump(struct process *p, const struct row *r)
{
	p->in_dump = true;
	p->n_dumps++;
	p->dump_begin_ns = r->batch->ns[r->i];
}

/* A complete state dump has all files: others were unloaded, or belonged to an earlier process. */
static void end_dump(struct process *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->open.n && p->in_dump && p->id.is_known; i++) {
		struct ky_mapping *m = p->open.v[i];

		if (m->n_dump == p->n_dumps)
			p->open.v[n++] = m;
		else
			m->to_ns = p->dump_begin_ns;
	}
	if (p->in_dump && p->id.is_known)
		p->open.n = n;
	p->in_dump = false;
}

static void get_process_id(const struct ky_map *m, const struct row *r, struct ky_process_id *ret)
{
	size_t trace = kymo_reader_stream(m->reader, r->batch->stream[r->i])->trace;
	size_t column = kymo_batch_has(r->batch, COLUMN_VPID, r->i) ? COLUMN_VPID : COLUMN_PID;
	const char *of_trace = kymo_reader_env(m->reader, trace, "vpid");

	*ret = (struct ky_process_id){.host = kymo_reader_trace(m->reader, trace)->host,
		.is_known = kymo_batch_has(r->batch, column, r->i) || of_trace,
		.pid_ns = get_number(r, COLUMN_PID_NS, 0)};
	ret->pid = (int64_t)get_number(
		r, column, of_trace ? (uint64_t)strtoll(of_trace, NULL, 10) : 0);
}

static int inherit_from(
	struct ky_map *m, struct process *p, const struct ky_process_id *id, const struct row *r)
{
	struct ky_process_id parent_id = *id;
	struct process *parent;

	parent_id.pid = (int64_t)get_number(r, COLUMN_PARENT, 0);
	parent = find_process(m, &parent_id);
	/* Its number may be that of a process that has exited. */
	remove_all(p, r);
	return parent && parent != p ? inherit(p, parent, r) : 0;
}

static int change_files(struct ky_map *m, struct process *p, const char *what, const struct row *r)
{
	if (!strcmp(what, "end"))
		end_dump(p);
	else if (!strcmp(what, "build_id"))
		return add_build_id(p, r);
	else if (!strcmp(what, "unload") || !strcmp(what, "dlclose"))
		remove_file(p, r);
	else if (!strcmp(what, "map"))
		return add_file(m, p, r) < 0 ? -ENOMEM : add_build_id(p, r);
	else if (kymo_batch_has(r->batch, COLUMN_BADDR, r->i))
		return add_file(m, p, r);
	return 0;
}

static int add_row(struct ky_map *m, const struct row *r)
{
	const char *name = kymo_reader_class(m->reader, r->batch->class_index[r->i])->name;
	const char *colon = strrchr(name, ':'), *what = colon ? colon + 1 : "";
	struct ky_process_id id;
	struct process *p;

	get_process_id(m, r, &id);
	p = get_process(m, &id);
	if (!p)
		return -ENOMEM;
	if (!strcmp(what, "start"))
		begin_dump(p, r);
	else if (!strcmp(what, "exec"))
		remove_all(p, r);
	else if (!strcmp(what, "fork"))
		return inherit_from(m, p, &id, r);
	else
		return copy_inherited(m, p, r) < 0 ? -ENOMEM : change_files(m, p, what, r);
	return 0;
}

/* --- reading --- */

static int add_columns(struct kymo_query *q)
{
	static const struct {
		const char *name;
		enum kymo_column_type type;
	} columns[] = {[COLUMN_BADDR] = {"baddr", KYMO_UINT64},
		[COLUMN_MEMSZ] = {"memsz", KYMO_UINT64},
		[COLUMN_PATH] = {"path", KYMO_TEXT},
		[COLUMN_HAS_BUILD_ID] = {"has_build_id", KYMO_UINT64},
		[COLUMN_VPID] = {"$ctx.vpid", KYMO_INT64},
		[COLUMN_PID] = {"$ctx.pid", KYMO_INT64},
		[COLUMN_PID_NS] = {"$ctx.pid_ns", KYMO_UINT64},
		[COLUMN_OFFSET] = {"offset", KYMO_UINT64},
		[COLUMN_PARENT] = {"parent", KYMO_INT64}};
	char name[32];
	int r = 0;

	for (size_t i = 0; i < KY_ARRAY_SIZE(columns) && !r; i++)
		r = kymo_query_column(q, columns[i].name, columns[i].type, NULL);
	for (int i = 0; i < KY_BUILD_ID_MAX && !r; i++) {
		snprintf(name, sizeof(name), "build_id[%d]", i);
		r = kymo_query_column(q, name, KYMO_UINT64, NULL);
	}
	return r;
}

int ky_map_new(struct ky_map **ret_map, struct kymo_reader *reader)
{
	struct ky_map *m = calloc(1, sizeof(*m));
	int r = m ? 0 : -ENOMEM;

	if (m) {
		m->reader = reader;
		m->n_copies_left = COPIES_MIN;
	}
	if (!r)
		r = kymo_query_new(&m->query, reader);
	if (!r)
		r = kymo_query_events(m->query, EVENTS);
	if (!r)
		r = add_columns(m->query);
	if (r < 0)
		ky_map_free(m);
	else
		*ret_map = m;
	return r;
}

void ky_map_free(struct ky_map *m)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	if (!m)
		return;
	ky_htab_foreach(&m->processes, i, n, tmp)
	{
		free_process(ky_container_of(n, struct process, node));
	}
	ky_htab_deinit(&m->processes);
	kymo_cursor_close(m->cursor);
	kymo_query_free(m->query);
	free(m);
}

static bool selects_any(const struct ky_map *m)
{
	for (size_t i = 0; i < kymo_reader_n_classes(m->reader); i++)
		if (kymo_query_has_class(m->query, i))
			return true;
	return false;
}

int ky_map_read(struct ky_map *m)
{
	const struct kymo_batch *b;
	int r = 1;

	/* Reading goes through all packets: traces without state events need none of that. */
	if (!m->cursor && !selects_any(m))
		return 0;
	if (!m->cursor)
		r = kymo_cursor_open(&m->cursor, m->query) < 0 ? -ENOMEM : 1;
	while (r > 0 && (r = kymo_cursor_next(m->cursor, &b)) > 0) {
		m->n_copies_left += b->n * COPIES_PER_EVENT;
		for (size_t i = 0; i < b->n && r > 0; i++)
			r = add_row(m, &(struct row){b, i}) < 0 ? -ENOMEM : 1;
		m->n_mappings += b->n;
	}
	return KY_MIN(r, 0);
}

bool ky_map_has_any(const struct ky_map *m)
{
	return m->n_mappings > 0;
}

uint64_t ky_map_take_left_out(struct ky_map *m)
{
	uint64_t n = m->n_left_out;

	m->n_left_out = 0;
	return n;
}

/* --- search --- */

/* True if both are the same place of the same file. */
static bool is_same_place(const struct ky_mapping *a, const struct ky_mapping *b)
{
	return a->begin == b->begin && a->end == b->end && !strcmp(a->path, b->path) &&
	       a->n_build_id == b->n_build_id && !memcmp(a->build_id, b->build_id, a->n_build_id) &&
	       a->offset == b->offset;
}

struct search {
	const int64_t *ns; /* NULL: any time */
	uint64_t address;
	struct ky_mapping *found;
	int64_t from_ns; /* when it came */
	bool is_ambiguous;
};

/*
 * True if a file, rather than the other, was at the address then: or came next, if none was there.
 */
static bool is_better(int64_t from_ns, int64_t other_ns, int64_t ns)
{
	bool was_there = from_ns <= ns;

	if (was_there != (other_ns <= ns))
		return was_there;
	return was_there ? from_ns > other_ns : from_ns < other_ns;
}

/* Without a time, or if several processes may be meant, all files have to be the same. */
static void consider(
	struct search *s, struct ky_mapping *m, int64_t from_ns, int64_t to_ns, bool is_only)
{
	if (!s->ns || !is_only)
		s->is_ambiguous |= s->found && !is_same_place(s->found, m);
	else if (*s->ns >= to_ns || (s->found && !is_better(from_ns, s->from_ns, *s->ns)))
		return;
	s->found = m;
	s->from_ns = from_ns;
}

/* Considers the files of p itself; or, of an ancestor p, those that are inherited. */
static void search_files(struct search *s, struct process *p, const struct inherited *inherited)
{
	if (sort_mappings(p) < 0)
		return;
	for (size_t i = count_below(p->v, p->n, s->address);
		i-- > 0 && p->highest[i] > s->address;) {
		struct ky_mapping *m = p->v[i];

		if (m->end <= s->address || (inherited && !is_inherited(inherited, m)))
			continue;
		consider(s, m, inherited ? inherited->from_ns : m->from_ns,
			inherited ? inherited->to_ns : m->to_ns, p->id.is_known);
	}
}

/* Returns the number of times at which p inherited files until ns. */
static size_t count_inherited(const struct process *p, int64_t ns)
{
	size_t n;

	ky_bisect(n, p->inherited.n, k, p->inherited.v[k].from_ns <= ns);
	return n;
}

static void search_process(struct search *s, struct process *p)
{
	size_t n = s->ns ? count_inherited(p, *s->ns) : 0;
	/* At a time, it had those before it, or had those next that came first. */
	size_t end = s->ns ? KY_MIN(n + 1, p->inherited.n) : p->inherited.n;

	search_files(s, p, NULL);
	for (size_t i = n ? n - 1 : 0; i < end; i++)
		search_files(s, p->inherited.v[i].of, &p->inherited.v[i]);
}

static void search_all(struct search *s, struct ky_map *m, const char *host)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&m->processes, i, n, tmp)
	{
		struct process *p = ky_container_of(n, struct process, node);
		struct search one = {.ns = s->ns, .address = s->address};

		if (host && strcmp(p->id.host, host))
			continue;
		search_process(&one, p);
		s->is_ambiguous |= one.is_ambiguous ||
				   (one.found && s->found && !is_same_place(one.found, s->found));
		s->found = one.found ? one.found : s->found;
	}
}

enum ky_map_result ky_map_find(struct ky_map *m, const struct ky_process_id *process,
	const int64_t *ns, uint64_t address, struct ky_mapping **ret)
{
	struct search s = {.ns = ns, .address = address};
	struct process *p = process->is_known ? find_process(m, process) : NULL;

	if (p)
		search_process(&s, p);
	else if (!process->is_known)
		search_all(&s, m, *process->host ? process->host : NULL);
	else if ((p = find_process(m, &(struct ky_process_id){.host = process->host})))
		/* The state events do not say their process. */
		search_process(&s, p);
	if (s.is_ambiguous)
		return KY_MAP_AMBIGUOUS;
	*ret = s.found;
	return s.found ? KY_MAP_FOUND : KY_MAP_NONE;
}
