/* SPDX-License-Identifier: MIT */
/*
 * Some files continue each other: a stream that was cut into several files or chunks. The reader
 * finds them by trace UUID, stream class and instance, and follows their counters from one to the
 * next. A heap of the streams' next items merges the streams. If times are equal, the order is that
 * of trace UUID, trace name, class and instance, which is also babeltrace2's.
 */
#include "reader/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "reader/format.h"
#include "reader/index.h"
#include "reader/metadata.h"

#define MAX_DIR_DEPTH 16
#define GAP	      "\n/* gap: " /* docs/trace-format.md */
#define GAPS_MAX      256	   /* of all traces */
#define GAPS_REPORTED 8		   /* each in a line of its own */
#define GAP_LEN_MAX   1000	   /* bytes */
#define PROBE_SIZE    4096 /* bytes of a file that its first packet's head is looked for in */

static void KY_PRINTF(2, 3) warn(const struct ky_trace_reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	ky_warn_to(&r->options, fmt, ap);
	va_end(ap);
}

void ky_warn_to(const struct ky_trace_reader_options *o, const char *fmt, va_list ap)
{
	char *text = NULL;

	if (!o->warn)
		return;
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	o->warn(o->arg, text ? text : "no memory");
	free(text);
}

/* Stores the first reason why there is nothing to read. Returns error. */
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

/* Makes the text that babeltrace2 prints before an event's name. */
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

/*
 * Names the trace by its path below the directory that was opened. If it is that directory itself,
 * names it by the last part of its path.
 */
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

static bool has_gap(const struct ky_trace_reader *r, const char *text)
{
	for (size_t i = 0; i < r->n_gaps; i++)
		if (!strcmp(r->gaps[i], text))
			return true;
	return false;
}

/* Reports a gap, unless another trace or chunk has reported the same. */
static int add_gap(struct ky_trace_reader *r, const char *dir, const char *text, size_t len)
{
	char *copy = strndup(text, KY_MIN(len, (size_t)GAP_LEN_MAX)), **at;

	for (char *c = copy; c && *c; c++)
		*c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
	if (copy && has_gap(r, copy)) {
		free(copy);
		return 0;
	}
	at = copy ? grow(&r->gaps, &r->n_gaps, sizeof(*r->gaps)) : NULL;
	if (!at) {
		free(copy);
		return fail_memory(r);
	}
	*at = copy;
	if (r->n_gaps <= GAPS_REPORTED)
		warn(r, "%s: %s", dir, copy);
	return 0;
}

/* Reports what the comments of the metadata say about missing events. */
static int find_gaps(struct ky_trace_reader *r, const char *dir, const struct ky_buf *text)
{
	const char *at = text->data, *end = at + text->len, *close;
	int e = 0;

	while (!e && text->len && (at = memmem(at, (size_t)(end - at), GAP, sizeof(GAP) - 1))) {
		at += sizeof(GAP) - 1;
		close = memmem(at, (size_t)(end - at), " */", 3);
		if (!close || r->n_gaps == GAPS_MAX)
			break;
		e = add_gap(r, dir, at, (size_t)(close - at));
	}
	return e;
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
	e = find_gaps(r, dir, text);
	*ret_trace = e ? free_trace(t) : t;
	return e;
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

/* Reads the first bytes of a stream file. -ENODATA: it is no such file, or empty. */
static ssize_t read_beginning(struct ky_file *f, int fd, uint8_t *to)
{
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!st.st_size)
		return -ENODATA;
	f->size = (uint64_t)st.st_size;
	n = pread(fd, to, PROBE_SIZE, 0);
	return n < 0 ? -errno : n;
}

/*
 * Adds a stream file, or a symbolic link to one. Ignores empty files and all that is not a regular
 * file.
 */
static int add_file(struct ky_trace_reader *r, struct ky_trace *t, int dirfd, const char *name)
{
	int fd = ky_file_open_at(dirfd, name);
	struct ky_file f = {.trace = t, .files = &r->pool}, *at;
	uint8_t beginning[PROBE_SIZE];
	ssize_t n = read_beginning(&f, fd, beginning);

	ky_close(fd);
	if (n == -ENODATA || n == -ENXIO)
		return 0;
	if (n < 0) {
		warn(r, "cannot read %s/%s: %s: its events are missing", t->dir, name,
			strerror((int)-n));
		return 0;
	}
	ky_handle_init(&f.handle);
	if (asprintf(&f.path, "%s/%s", t->dir, name) < 0)
		f.path = NULL;
	at = f.path ? grow(&r->files, &r->n_files, sizeof(f)) : NULL;
	if (!at) {
		free(f.path);
		return fail_memory(r);
	}
	*at = f;
	ky_file_probe(at, beginning, (size_t)n);
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

/* Probes the file again, from its first bytes. */
static void probe_again(struct ky_file *f)
{
	uint8_t beginning[PROBE_SIZE];
	ssize_t n = ky_file_read(f, beginning, sizeof(beginning), 0);

	if (n > 0)
		ky_file_probe(f, beginning, (size_t)n);
	ky_handle_deinit(&f->handle, f->files);
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
		probe_again(&r->files[i]);
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
			e == -EBADMSG ? "this is no metadata of CTF" : strerror(-e));
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

/* Searches a directory that is no trace. An unreadable trace does not hide the others. */
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

/* Adds a stream of n files. Takes the files. */
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
	for (size_t i = 0; i < n; i++) {
		s->files[i] = files[i];
		ky_handle_init(&s->files[i].handle);
		s->n_bytes += files[i].size;
		files[i].path = NULL; /* it belongs to the stream */
	}
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	const struct ky_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* Numbers streams that have no number as babeltrace2 does: in each trace, by their paths. */
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

	if (r->n_files)
		number_files(r);
	if (r->n_files)
		qsort(r->files, r->n_files, sizeof(*r->files), compare_files);
	for (size_t i = 0; i < r->n_files && !e; i += n) {
		n = 1;
		while (i + n < r->n_files && !compare_identity(&r->files[i], &r->files[i + n]))
			n++;
		e = add_stream(r, &r->files[i], n);
	}
	return e;
}

/* Numbers all classes of events. */
static int number_classes(struct ky_trace_reader *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_traces; i++)
		for (size_t j = 0; j < r->traces[i]->layout.n_streams; j++)
			n += r->traces[i]->layout.streams[j].n_events;
	r->classes = calloc(n + 1, sizeof(*r->classes));
	if (!r->classes)
		return fail_memory(r);
	for (size_t i = 0; i < r->n_traces; i++) {
		struct ky_layout *l = &r->traces[i]->layout;

		for (size_t j = 0; j < l->n_streams; j++)
			for (size_t k = 0; k < l->streams[j].n_events; k++) {
				l->streams[j].events[k].index = r->n_classes;
				r->classes[r->n_classes] = &l->streams[j].events[k];
				r->n_classes++;
			}
	}
	return 0;
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
	ky_files_init(&r->pool);
	pthread_mutex_init(&r->lock, NULL);
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
		e = number_classes(r);
	if (e) {
		ky_trace_reader_close(r);
		return e;
	}
	if (r->n_gaps > GAPS_REPORTED)
		warn(r, "%zu more gaps like these", r->n_gaps - GAPS_REPORTED);
	r->why = NULL;
	*ret_reader = r;
	return 0;
}

static int find_path(struct ky_trace_reader *r, const char *path)
{
	char *root = realpath(path, NULL);
	size_t n_before = r->n_traces;
	int e;

	if (!root)
		return fail(r, -errno, "cannot read the trace: %s: %s", path, strerror(errno));
	e = find_traces(r, root, strcmp(root, "/") ? strlen(root) : 0, 0);
	free(root);
	if (!e && r->n_traces == n_before)
		e = fail(r, -ENOENT,
			"%s is no trace: no file 'metadata' in it or in a directory below", path);
	return e;
}

int ky_trace_reader_open(struct ky_trace_reader **ret_reader, const char *const *paths, size_t n,
	const struct ky_trace_reader_options *options, char *why, size_t why_size)
{
	struct ky_trace_reader *r = new_reader(options, why, why_size);
	int e = 0;

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < n && !e; i++) {
		e = find_path(r, paths[i]);
		if (!e && why[0]) {
			warn(r, "%s", why);
			why[0] = '\0';
		}
	}
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
		ky_handle_init(&f->handle);
		f->files = &r->pool;
		f->path = strdup("memory/stream");
		ky_file_probe(f, stream, stream_size);
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
		free(r->files[i].path);
	for (size_t i = 0; i < r->n_traces; i++)
		free_trace(r->traces[i]);
	for (size_t i = 0; i < r->n_gaps; i++)
		free(r->gaps[i]);
	free((void *)r->gaps);
	ky_files_deinit(&r->pool);
	pthread_mutex_destroy(&r->lock);
	free(r->classes);
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

bool ky_trace_reader_begin(const struct ky_trace_reader *r, int64_t *ret_ns)
{
	bool any = false;

	for (size_t i = 0; i < r->n_streams; i++) {
		const struct ky_file *f = &r->streams[i]->files[0];
		int64_t ns;

		if (!f->class || !f->class->clock)
			continue;
		ns = ky_clock_ns(f->class->clock, f->begin);
		*ret_ns = any ? KY_MIN(*ret_ns, ns) : ns;
		any = true;
	}
	return any;
}

int ky_trace_reader_index(struct ky_trace_reader *r)
{
	struct ky_packets packets = {0};
	int e = 0;

	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->n_streams && !e; i++) {
		if (!r->streams[i]->has_index)
			e = ky_index_build(r->streams[i], &packets);
	}
	pthread_mutex_unlock(&r->lock);
	ky_packets_deinit(&packets);
	return e;
}

int ky_trace_reader_sums(struct ky_trace_reader *r, struct ky_reader_sums *ret)
{
	struct ky_reader_sums sums = {0};
	bool any = false;

	if (ky_trace_reader_index(r) < 0)
		return -ENOMEM;
	sums.has_times = ky_trace_reader_begin(r, &sums.begin_ns);
	for (size_t i = 0; i < r->n_streams; i++) {
		const struct ky_stream *s = r->streams[i];

		sums.n_packets += s->n_packets;
		sums.n_bytes += s->n_bytes;
		sums.n_discarded += s->n_discarded;
		if (!s->n_places)
			continue;
		sums.end_ns = any ? KY_MAX(sums.end_ns, s->end_ns) : s->end_ns;
		any = true;
	}
	*ret = sums;
	return 0;
}
