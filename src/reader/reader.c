/* SPDX-License-Identifier: MIT */
/*
 * Files that continue each other (a stream that was cut into several files or chunks) are found by
 * trace UUID, stream class and instance, so that their counters are followed from one to the next.
 * Streams are merged with a heap of their next items; where times are equal, streams stand in the
 * order of trace UUID, trace name, class and instance, which is also babeltrace2's.
 */
#include "reader/reader.h"

#include "reader/format.h"
#include "reader/metadata.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <stdarg.h>
#include <sys/stat.h>

#define MAX_DIR_DEPTH 16
#define MAX_WALKERS   64

struct ky_trace_reader {
	struct ky_trace_reader_options options;
	struct ky_trace **traces;   /* owned */
	struct ky_file *files;	    /* owned, until they belong to streams */
	struct ky_stream **streams; /* owned, by rank */
	struct ky_stream **heap;    /* the first is the next one */
	size_t n_traces, n_files, n_streams, n_heap;
	struct ky_stream *current; /* its item was handed out */
	uint64_t *counts;	   /* owned: of events, by the index of their class */
	char *why;
	size_t why_size;
};

static void KY_PRINTF(2, 3) warn(const struct ky_trace_reader *r, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	if (!r->options.warn)
		return;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	r->options.warn(r->options.arg, text ? text : "no memory");
	free(text);
}

/* Remembers the first reason why there is nothing to read. */
static int KY_PRINTF(3, 4) fail(struct ky_trace_reader *r, int error, const char *fmt, ...)
{
	va_list ap;

	if (!r->why[0]) {
		va_start(ap, fmt);
		vsnprintf(r->why, r->why_size, fmt, ap);
		va_end(ap);
	}
	return error;
}

static int fail_memory(struct ky_trace_reader *r)
{
	return fail(r, -ENOMEM, "cannot read the trace: no memory");
}

/* One more element, zeroed, at the end of an array; NULL without memory. */
static void *grow(void *array, size_t *n, size_t size)
{
	void **at = array, *bigger = *at;

	if (!(*n & (*n - 1)))
		bigger = reallocarray(*at, *n ? 2 * *n : 1, size);
	if (!bigger)
		return NULL;
	*at = bigger;
	memset((char *)bigger + *n * size, 0, size);
	return (char *)bigger + (*n)++ * size;
}

/* --- traces --- */

static struct ky_trace *free_trace(struct ky_trace *t)
{
	if (t) {
		ky_tsdl_deinit(&t->tsdl);
		free(t->dir);
		free(t->name);
		free(t->origin);
		free(t->json_origin);
		free(t);
	}
	return NULL;
}

static char *make_name(const struct ky_tsdl *t, const char *dir, size_t root_len)
{
	const struct ky_env *host = ky_tsdl_env(t, "hostname");
	const char *below = dir + root_len;
	char *name;

	while (*below == '/')
		below++;
	if (asprintf(&name, "%s%s%s", host && host->text ? host->text : "",
		    host && host->text && *below ? "/" : "", below) < 0)
		return NULL;
	return name;
}

/* What babeltrace2 puts in front of an event's name. */
static char *make_origin(const struct ky_tsdl *t)
{
	const struct ky_env *host = ky_tsdl_env(t, "hostname");
	const struct ky_env *process = ky_tsdl_env(t, "procname");
	const struct ky_env *pid = ky_tsdl_env(t, "vpid");
	struct ky_buf b = {0};

	if (host && host->text)
		ky_buf_puts(&b, host->text);
	if (process && process->text)
		ky_buf_printf(&b, "%s%s", b.len ? ":" : "", process->text);
	if (pid && !pid->text)
		ky_buf_printf(&b, "%s(%lld)", b.len ? ":" : "", (long long)pid->number);
	ky_buf_puts(&b, b.len ? " " : "");
	if (b.error)
		ky_buf_deinit(&b);
	return b.data;
}

/* The trace is named by its path below what was opened; what was opened itself, by the last part of its path. */
static char *make_json_origin(const struct ky_tsdl *t, const char *dir, size_t root_len)
{
	const struct ky_env *host = ky_tsdl_env(t, "hostname");
	const char *name = dir + root_len;
	struct ky_buf b = {0};

	while (*name == '/')
		name++;
	if (!*name)
		name = strrchr(dir, '/') ? strrchr(dir, '/') + 1 : dir;
	if (host && host->text) {
		ky_buf_puts(&b, "\"host\": ");
		ky_format_json_string(&b, host->text, strlen(host->text));
		ky_buf_puts(&b, ", ");
	}
	ky_buf_puts(&b, "\"trace\": ");
	ky_format_json_string(&b, name, strlen(name));
	ky_buf_puts(&b, ", ");
	if (b.error)
		ky_buf_deinit(&b);
	return b.data;
}

static bool is_kymo(const struct ky_tsdl *t)
{
	const struct ky_env *tracer = ky_tsdl_env(t, "tracer_name");

	return tracer && tracer->text && !strcmp(tracer->text, "kymo");
}

/* dir: of the trace; its first root_len bytes are what the user named. */
static int parse_trace(struct ky_trace_reader *r, struct ky_trace **ret_trace,
	const struct ky_buf *text, const char *dir, size_t root_len)
{
	struct ky_trace *t = calloc(1, sizeof(*t));
	struct ky_tsdl_error error;
	char why[160];
	int e;

	if (!t)
		return fail_memory(r);
	e = ky_tsdl_parse(&t->tsdl, text->data ? text->data : "", text->len, &error);
	if (e < 0) {
		fail(r, e, "cannot read the trace: %s/metadata:%u:%u: %s", dir, error.line,
			error.column, error.text);
		free_trace(t);
		return e;
	}
	e = ky_layout_compile(&t->layout, &t->tsdl, why, sizeof(why));
	t->dir = strdup(dir);
	t->name = make_name(&t->tsdl, dir, root_len);
	t->origin = make_origin(&t->tsdl);
	t->json_origin = make_json_origin(&t->tsdl, dir, root_len);
	if (e < 0)
		fail(r, e, "cannot read the trace: %s/metadata: %s", dir, why);
	else if (!t->dir || !t->name || !t->origin || !t->json_origin)
		e = fail_memory(r);
	t->origin_len = t->origin ? strlen(t->origin) : 0;
	t->json_origin_len = t->json_origin ? strlen(t->json_origin) : 0;
	t->is_kymo = is_kymo(&t->tsdl);
	if (e < 0) {
		free_trace(t);
		return e;
	}
	if (t->tsdl.is_cut)
		warn(r, "%s/metadata ends within a block: what is whole is used", dir);
	*ret_trace = t;
	return 0;
}

static int compare_uuids(const struct ky_tsdl *x, const struct ky_tsdl *y)
{
	if (x->has_uuid != y->has_uuid)
		return x->has_uuid ? -1 : 1;
	return x->has_uuid ? memcmp(x->uuid, y->uuid, sizeof(x->uuid)) : 0;
}

static int keep_trace(struct ky_trace_reader *r, struct ky_trace *t)
{
	struct ky_trace **at = grow(&r->traces, &r->n_traces, sizeof(struct ky_trace *));

	if (!at) {
		free_trace(t);
		return fail_memory(r);
	}
	*at = t;
	t->group = r->n_traces - 1;
	for (size_t i = 0; i + 1 < r->n_traces && t->tsdl.has_uuid; i++) {
		const struct ky_trace *other = r->traces[i];

		if (!compare_uuids(&other->tsdl, &t->tsdl)) {
			t->group = other->group;
			break;
		}
	}
	return 0;
}

/* --- files --- */

static int map_file(struct ky_file *f, int fd)
{
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return -ENODATA;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	f->data = p;
	f->size = (uint64_t)st.st_size;
	return 0;
}

/* A stream file; whatever is no regular file with something in it is left out. */
static int add_file(struct ky_trace_reader *r, struct ky_trace *t, int dirfd, const char *name)
{
	struct ky_file f = {.trace = t}, *at;
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	int e = map_file(&f, fd);

	ky_close(fd);
	if (e == -ENODATA || e == -ELOOP || e == -ENXIO)
		return 0;
	if (e == -ENOMEM)
		return fail_memory(r);
	if (e < 0) {
		warn(r, "cannot read %s/%s: %s: its events are missing", t->dir, name,
			strerror(-e));
		return 0;
	}
	if (asprintf(&f.path, "%s/%s", t->dir, name) < 0)
		f.path = NULL;
	at = f.path ? grow(&r->files, &r->n_files, sizeof(f)) : NULL;
	if (!at) {
		ky_file_deinit(&f);
		return fail_memory(r);
	}
	*at = f;
	ky_file_probe(at);
	return 0;
}

static int add_files(struct ky_trace_reader *r, struct ky_trace *t, DIR *d)
{
	struct dirent *e;
	int error = 0;

	while (!error && (e = readdir(d))) {
		if (e->d_name[0] != '.' && strcmp(e->d_name, "metadata"))
			error = add_file(r, t, dirfd(d), e->d_name);
	}
	return error;
}

/*
 * Some writers give packets another UUID than the metadata. If no file of the trace, whose files
 * begin at first, begins with a packet of the trace, its UUID is not compared.
 */
static void accept_other_uuid(struct ky_trace_reader *r, struct ky_trace *t, size_t first)
{
	size_t n = 0;

	for (size_t i = first; i < r->n_files; i++)
		n += r->files[i].class != NULL;
	if (n || !t->tsdl.has_uuid)
		return;
	t->ignores_uuid = true;
	for (size_t i = first; i < r->n_files; i++) {
		ky_file_probe(&r->files[i]);
		n += r->files[i].class != NULL;
	}
	t->ignores_uuid = n;
	if (n)
		warn(r, "%s: no packet has the UUID of the trace: all are read", t->dir);
}

static int add_trace(struct ky_trace_reader *r, DIR *d, const char *dir, size_t root_len)
{
	struct ky_buf text = {0};
	struct ky_trace *t;
	char *path = NULL;
	size_t first;
	int e;

	if (asprintf(&path, "%s/metadata", dir) < 0)
		return fail_memory(r);
	e = ky_metadata_read(&text, path);
	if (e < 0)
		fail(r, e, "cannot read the trace: %s: %s", path,
			e == -EBADMSG ? "this is no metadata of CTF 1.8" : strerror(-e));
	free(path);
	if (!e)
		e = parse_trace(r, &t, &text, dir, root_len);
	ky_buf_deinit(&text);
	if (!e)
		e = keep_trace(r, t);
	first = r->n_files;
	if (!e)
		e = add_files(r, t, d);
	if (!e)
		accept_other_uuid(r, t, first);
	return e;
}

static int find_traces(struct ky_trace_reader *r, const char *dir, size_t root_len, int depth);

/* Entries of a directory that is no trace. A trace that cannot be read does not hide the others. */
static int find_below(
	struct ky_trace_reader *r, DIR *d, const char *dir, size_t root_len, int depth)
{
	struct dirent *e;
	int error = 0;

	while (error != -ENOMEM && (e = readdir(d))) {
		struct stat st;
		char *path;

		if (e->d_name[0] == '.' || depth == MAX_DIR_DEPTH ||
			fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISDIR(st.st_mode))
			continue;
		if (asprintf(&path, "%s/%s", dir, e->d_name) < 0)
			return fail_memory(r);
		error = find_traces(r, path, root_len, depth + 1);
		free(path);
	}
	return error == -ENOMEM ? error : 0;
}

static int find_traces(struct ky_trace_reader *r, const char *dir, size_t root_len, int depth)
{
	DIR *d = opendir(dir);
	int error = d ? 0 : -errno;

	if (error == -ENOTDIR)
		return fail(r, error, "%s is no trace: give the directory that holds it", dir);
	if (error)
		return fail(r, error, "cannot read the trace: %s: %s", dir, strerror(-error));
	if (!faccessat(dirfd(d), "metadata", F_OK, AT_SYMLINK_NOFOLLOW))
		error = add_trace(r, d, dir, root_len);
	else
		error = find_below(r, d, dir, root_len, depth);
	closedir(d);
	return error;
}

/* --- streams --- */

static uint64_t class_id(const struct ky_file *f)
{
	return f->class ? f->class->id : UINT64_MAX;
}

/* 0: the same stream. Chunks of one trace have its UUID; without one, each directory is a trace. */
static int compare_identity(const struct ky_file *x, const struct ky_file *y)
{
	int c = compare_uuids(&x->trace->tsdl, &y->trace->tsdl);

	if (!c && (!x->trace->tsdl.has_uuid || !x->has_instance || !y->has_instance))
		c = strcmp(x->trace->name, y->trace->name);
	if (!c && class_id(x) != class_id(y))
		c = class_id(x) < class_id(y) ? -1 : 1;
	if (!c && x->has_instance != y->has_instance)
		c = x->has_instance ? -1 : 1;
	if (!c && x->has_instance)
		return (x->instance > y->instance) - (x->instance < y->instance);
	return c ? c : strcmp(x->path, y->path);
}

static int compare_files(const void *a, const void *b)
{
	const struct ky_file *x = a, *y = b;
	int c = compare_identity(x, y);

	if (!c && x->begin != y->begin)
		c = x->begin < y->begin ? -1 : 1;
	return c ? c : strcmp(x->path, y->path);
}

/* A stream of n files, which it takes over. */
static int add_stream(struct ky_trace_reader *r, struct ky_file *files, size_t n)
{
	struct ky_stream *s = calloc(1, sizeof(*s)), **at;

	if (s)
		s->files = calloc(n, sizeof(*files));
	at = s && s->files ? grow(&r->streams, &r->n_streams, sizeof(struct ky_stream *)) : NULL;
	if (!at) {
		free(s ? s->files : NULL);
		free(s);
		return fail_memory(r);
	}
	*at = s;
	s->n_files = n;
	s->rank = (uint32_t)r->n_streams;
	memcpy(s->files, files, n * sizeof(*files));
	memset(files, 0, n * sizeof(*files));
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	const struct ky_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* Streams without a number get one as babeltrace2 gives it: in each trace, by their paths. */
static void number_files(struct ky_trace_reader *r)
{
	const struct ky_trace *trace = NULL;
	uint64_t n = 0;

	qsort(r->files, r->n_files, sizeof(*r->files), compare_paths);
	for (size_t i = 0; i < r->n_files; i++) {
		struct ky_file *f = &r->files[i];

		if (f->has_instance)
			continue;
		if (f->trace != trace)
			n = 0;
		trace = f->trace;
		f->instance = n++;
	}
}

static int make_streams(struct ky_trace_reader *r)
{
	size_t n;
	int e = 0;

	if (r->n_files) {
		number_files(r);
		qsort(r->files, r->n_files, sizeof(*r->files), compare_files);
	}
	for (size_t i = 0; i < r->n_files && !e; i += n) {
		n = 1;
		while (i + n < r->n_files && !compare_identity(&r->files[i], &r->files[i + n]))
			n++;
		e = add_stream(r, &r->files[i], n);
	}
	return e;
}

/* --- merging --- */

static bool is_before(const struct ky_stream *x, const struct ky_stream *y)
{
	return x->next_ns != y->next_ns ? x->next_ns < y->next_ns : x->rank < y->rank;
}

static void sift_down(struct ky_trace_reader *r, size_t i)
{
	struct ky_stream *s = r->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < r->n_heap && is_before(r->heap[child + 1], r->heap[child]))
			child++;
		if (child >= r->n_heap || is_before(s, r->heap[child]))
			break;
		r->heap[i] = r->heap[child];
		i = child;
	}
	r->heap[i] = s;
}

static void report_damage(const struct ky_trace_reader *r, const struct ky_stream *s)
{
	const char *path = s->files[0].path;

	if (s->n_corrupt)
		warn(r, "%s is damaged in %llu place%s: events are missing", path,
			(unsigned long long)s->n_corrupt, s->n_corrupt == 1 ? "" : "s");
	if (s->is_truncated)
		warn(r, "%s ends within a packet: what is whole was read", path);
}

/* Moves the first stream of the heap on; it leaves the heap at its end. 0 or -ENOMEM. */
static int advance_first(struct ky_trace_reader *r)
{
	struct ky_stream *s = r->heap[0];

	ky_stream_advance(s);
	if (!s->next) {
		report_damage(r, s);
		r->heap[0] = r->heap[--r->n_heap];
	}
	if (r->n_heap > 1)
		sift_down(r, 0);
	return s->error;
}

/* Numbers all classes of events; returns how many there are. */
static size_t number_classes(struct ky_trace_reader *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_traces; i++) {
		struct ky_layout *l = &r->traces[i]->layout;

		for (size_t j = 0; j < l->n_streams; j++)
			for (size_t k = 0; k < l->streams[j].n_events; k++)
				l->streams[j].events[k].index = n++;
	}
	return n;
}

/*
 * The first items of all streams. If only spans are items, that may be the whole way, for which
 * there are threads: each takes the next stream that nobody has, and has counts of its own.
 */
struct walker {
	struct ky_trace_reader *reader;
	size_t *next;	  /* stream; shared */
	uint64_t *counts; /* owned, but for the first walker's */
	pthread_t thread;
};

static void *walk(void *arg)
{
	struct walker *w = arg;
	struct ky_trace_reader *r = w->reader;
	size_t i;

	while ((i = __atomic_fetch_add(w->next, 1, __ATOMIC_RELAXED)) < r->n_streams) {
		struct ky_stream *s = r->streams[i];

		s->counts = w->counts;
		ky_stream_advance(s);
		s->counts = r->counts;
	}
	return NULL;
}

static size_t count_walkers(const struct ky_trace_reader *r)
{
	cpu_set_t cpus;
	size_t n = 1;

	if (r->options.spans_only && !sched_getaffinity(0, sizeof(cpus), &cpus))
		n = KY_MIN((size_t)CPU_COUNT(&cpus), (size_t)MAX_WALKERS);
	return KY_MAX(KY_MIN(n, r->n_streams), (size_t)1);
}

static void walk_all(struct ky_trace_reader *r, size_t n_classes)
{
	struct walker walkers[MAX_WALKERS];
	size_t next = 0, n_wanted = count_walkers(r), n = 1;

	walkers[0] = (struct walker){.reader = r, .next = &next, .counts = r->counts};
	for (; n < n_wanted; n++) {
		walkers[n] = walkers[0];
		walkers[n].counts = calloc(n_classes, sizeof(*r->counts));
		if (!walkers[n].counts ||
			pthread_create(&walkers[n].thread, NULL, walk, &walkers[n])) {
			free(walkers[n].counts);
			break;
		}
	}
	walk(&walkers[0]);
	while (--n > 0) {
		pthread_join(walkers[n].thread, NULL);
		for (size_t i = 0; i < n_classes; i++)
			r->counts[i] += walkers[n].counts[i];
		free(walkers[n].counts);
	}
}

static int start(struct ky_trace_reader *r)
{
	size_t n_classes = number_classes(r) + 1;

	r->heap = calloc(KY_MAX(r->n_streams, (size_t)1), sizeof(*r->heap));
	r->counts = calloc(n_classes, sizeof(*r->counts));
	if (!r->heap || !r->counts)
		return fail_memory(r);
	for (size_t i = 0; i < r->n_streams; i++)
		r->streams[i]->spans_only = r->options.spans_only;
	walk_all(r, n_classes);
	for (size_t i = 0; i < r->n_streams; i++) {
		if (r->streams[i]->error)
			return fail_memory(r);
		if (r->streams[i]->next)
			r->heap[r->n_heap++] = r->streams[i];
		else
			report_damage(r, r->streams[i]);
	}
	for (size_t i = r->n_heap / 2; i-- > 0;)
		sift_down(r, i);
	return 0;
}

static void fill_event(struct ky_item *item, const struct ky_stream *s)
{
	item->trace = s->files[s->file].trace;
	item->event = s->event;
	item->bits = s->d.pos - s->record;
	item->data = s->d.data;
}

static void fill(struct ky_item *item, const struct ky_stream *s)
{
	item->kind = s->next;
	item->has_time = s->class->clock;
	item->ns = s->next_ns;
	item->stream = s;
	if (s->next == KY_ITEM_EVENT) {
		fill_event(item, s);
		return;
	}
	item->has_time = item->has_time && s->class->begin_bits && s->class->end_bits;
	item->lost = *ky_stream_lost(s);
}

int ky_trace_reader_next(
	struct ky_trace_reader *r, struct ky_item *ret_item, struct ky_values *values)
{
	int e = r->current ? advance_first(r) : 0;

	r->current = NULL;
	if (r->options.spans_only)
		values = NULL;
	while (!e && r->n_heap) {
		struct ky_stream *s = r->heap[0];

		if (s->next == KY_ITEM_EVENT)
			e = ky_stream_decode(s, values, ret_item->scopes);
		if (!e) {
			fill(ret_item, s);
			ret_item->values = values;
			r->current = s;
			return 1;
		}
		if (e == -EBADMSG)
			e = advance_first(r);
	}
	return e;
}

/* --- opening and closing --- */

static struct ky_trace_reader *new_reader(
	const struct ky_trace_reader_options *options, char *why, size_t why_size)
{
	struct ky_trace_reader *r = calloc(1, sizeof(*r));

	why[0] = '\0';
	if (!r) {
		snprintf(why, why_size, "cannot read the trace: no memory");
		return NULL;
	}
	r->why = why;
	r->why_size = why_size;
	if (options)
		r->options = *options;
	return r;
}

/* The part of opening that does not depend on where the files are; closes r after an error. */
static int finish_open(struct ky_trace_reader **ret_reader, struct ky_trace_reader *r, int e)
{
	if (!e)
		e = make_streams(r);
	if (!e)
		e = start(r);
	if (e) {
		ky_trace_reader_close(r);
		return e;
	}
	r->why = NULL;
	*ret_reader = r;
	return 0;
}

int ky_trace_reader_open(struct ky_trace_reader **ret_reader, const char *path,
	const struct ky_trace_reader_options *options, char *why, size_t why_size)
{
	struct ky_trace_reader *r = new_reader(options, why, why_size);
	char *root;
	int e;

	if (!r)
		return -ENOMEM;
	root = realpath(path, NULL);
	if (root)
		e = find_traces(r, root, strcmp(root, "/") ? strlen(root) : 0, 0);
	else
		e = fail(r, -errno, "cannot read the trace: %s: %s", path, strerror(errno));
	free(root);
	if (!e && !r->n_traces)
		e = fail(r, -ENOENT,
			"%s is no trace: no file 'metadata' in it or in a directory below", path);
	else if (!e && why[0])
		warn(r, "%s", why);
	return finish_open(ret_reader, r, e);
}

int ky_trace_reader_open_memory(struct ky_trace_reader **ret_reader, const void *metadata,
	size_t metadata_size, const void *stream, size_t stream_size,
	const struct ky_trace_reader_options *options, char *why, size_t why_size)
{
	struct ky_trace_reader *r = new_reader(options, why, why_size);
	struct ky_buf text = {0};
	struct ky_trace *t;
	struct ky_file *f;
	int e;

	if (!r)
		return -ENOMEM;
	e = ky_metadata_text(&text, metadata, metadata_size);
	if (e < 0)
		fail(r, e, "cannot read the trace: its metadata is damaged");
	else
		e = parse_trace(r, &t, &text, "memory", 0);
	ky_buf_deinit(&text);
	if (!e)
		e = keep_trace(r, t);
	f = !e && stream_size ? grow(&r->files, &r->n_files, sizeof(*f)) : NULL;
	if (f) {
		*f = (struct ky_file){.trace = t, .data = stream, .size = stream_size};
		f->is_borrowed = true;
		f->path = strdup("memory/stream");
		ky_file_probe(f);
	}
	if (!e && stream_size && (!f || !f->path))
		e = fail_memory(r);
	return finish_open(ret_reader, r, e);
}

struct ky_trace_reader *ky_trace_reader_close(struct ky_trace_reader *r)
{
	if (!r)
		return NULL;
	for (size_t i = 0; i < r->n_streams; i++) {
		ky_stream_deinit(r->streams[i]);
		free(r->streams[i]);
	}
	for (size_t i = 0; i < r->n_files; i++)
		ky_file_deinit(&r->files[i]);
	for (size_t i = 0; i < r->n_traces; i++)
		free_trace(r->traces[i]);
	free(r->heap);
	free(r->counts);
	free(r->streams);
	free(r->files);
	free(r->traces);
	free(r);
	return NULL;
}

bool ky_trace_reader_complete_from(const struct ky_trace_reader *r, int64_t *ret_ns)
{
	bool any = false;

	for (size_t i = 0; i < r->n_streams; i++) {
		int64_t ns;

		if (!ky_stream_is_cut(r->streams[i], &ns))
			continue;
		*ret_ns = any ? KY_MAX(*ret_ns, ns) : ns;
		any = true;
	}
	return any;
}

const struct ky_stream *ky_trace_reader_stream(const struct ky_trace_reader *r, size_t i)
{
	return r->streams[i];
}

void ky_trace_reader_totals(
	const struct ky_trace_reader *r, struct ky_trace_reader_totals *ret_totals)
{
	struct ky_trace_reader_totals t = {.n_streams = r->n_streams, .n_traces = r->n_traces};

	for (size_t i = 0; i < r->n_streams; i++) {
		const struct ky_stream *s = r->streams[i];
		int64_t end_ns;

		if (ky_stream_end_ns(s, &end_ns)) {
			t.begin_ns = t.has_time ? KY_MIN(t.begin_ns, s->first_ns) : s->first_ns;
			t.end_ns = t.has_time ? KY_MAX(t.end_ns, end_ns) : end_ns;
			t.has_time = true;
		}
		t.n_events += s->n_events;
		t.n_discarded += s->n_discarded;
		t.n_packets += s->n_packets;
		t.n_packets_lost += s->n_packets_lost;
		t.n_corrupt += s->n_corrupt;
		t.n_truncated += s->is_truncated;
		for (size_t j = 0; j < s->n_files; j++)
			t.n_bytes += s->files[j].size;
	}
	*ret_totals = t;
}

const struct ky_trace *ky_trace_reader_trace(const struct ky_trace_reader *r, size_t i)
{
	return r->traces[i];
}

uint64_t ky_trace_reader_count(const struct ky_trace_reader *r, const struct ky_event_class *event)
{
	return r->counts[event->index];
}
