/* SPDX-License-Identifier: MIT */
/*
 * Some files continue each other: a stream that was cut into several files or chunks. The reader
 * finds them by trace UUID, stream class and instance, and follows their counters from one to the
 * next. A heap of the streams' next items merges the streams. If times are equal, the order is that
 * of trace UUID, trace name, class, and path of the first file, which is also babeltrace2's.
 */
#include "reader/values.h"
#include "reader/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "ctf/watermark.h"
#include "reader/chunks.h"
#include "reader/format.h"
#include "reader/index.h"
#include "reader/metadata.h"

#define MAX_DIR_DEPTH 16
/* docs/trace-format.md */
#define GAP	      "\n/* gap: "
#define TRIGGER	      "\n/* trigger: "
#define GAPS_MAX      256  /* of all traces */
#define GAPS_REPORTED 8	   /* each in a line of its own */
#define GAP_LEN_MAX   1000 /* bytes */
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

static void free_description(struct ky_trace *t)
{
	struct ky_outdated *o = t->outdated, *next;

	ky_tsdl_deinit(&t->tsdl);
	for (; o; o = next) {
		next = o->next;
		ky_tsdl_deinit(&o->tsdl);
		free(o);
	}
}

static struct ky_trace *free_trace(struct ky_trace *t)
{
	if (t) {
		free_description(t);
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
	bool has_host = host && host->text, has_process = process && process->text;
	bool has_pid = pid && !pid->text;
	struct ky_buf b = {0};

	if (has_host)
		ky_buf_puts(&b, host->text);
	if (has_process)
		ky_buf_printf(&b, "%s%s", has_host ? ":" : "", process->text);
	if (has_pid)
		ky_buf_printf(
			&b, "%s(%lld)", has_host || has_process ? ":" : "", (long long)pid->number);
	ky_buf_puts(&b, has_host || has_process || has_pid ? " " : "");
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

/* Reports the comments of the metadata that begin so; `skip` bytes of it are not shown. */
static int find_comments(struct ky_trace_reader *r, const char *dir, const struct ky_buf *text,
	const char *begin, size_t skip)
{
	const char *at = text->data, *end = at + text->len, *close;
	int e = 0;

	while (!e && text->len && (at = memmem(at, (size_t)(end - at), begin, strlen(begin)))) {
		at += skip;
		close = memmem(at, (size_t)(end - at), " */", 3);
		if (!close || r->n_gaps == GAPS_MAX)
			break;
		e = add_gap(r, dir, at, (size_t)(close - at));
	}
	return e;
}

/* Reports missing events, and what triggered a snapshot. */
static int find_gaps(struct ky_trace_reader *r, const char *dir, const struct ky_buf *text)
{
	int e = find_comments(r, dir, text, GAP, sizeof(GAP) - 1);

	return e ? e : find_comments(r, dir, text, TRIGGER, strlen("\n/* "));
}

/* Parses and compiles the metadata of the trace at dir. */
static int parse_description(struct ky_trace_reader *r, struct ky_tsdl *tsdl,
	struct ky_layout *layout, const struct ky_buf *text, const char *dir)
{
	struct ky_tsdl_error error;
	char why[160];
	int e = ky_tsdl_parse(tsdl, text->data ? text->data : "", text->len, &error);

	if (e < 0) {
		fail(r, e, "cannot read the trace: %s/metadata:%u:%u: %s", dir, error.line,
			error.column, error.text);
	} else {
		e = ky_layout_compile(layout, tsdl, why, sizeof(why));
		if (e >= 0 && r->options.show)
			ky_layout_choose_show(layout, r->options.show, r->options.show_arg);
		if (e >= 0 && r->options.names)
			e = ky_values_choose(layout, &tsdl->arena, dir);
		if (e >= 0) {
			ky_layout_find_steps(layout, &tsdl->arena);
			return 0;
		}
		fail(r, e, "cannot read the trace: %s/metadata: %s", dir, why);
	}
	ky_tsdl_deinit(tsdl);
	*tsdl = (struct ky_tsdl){0};
	return e;
}

/* Describes a new trace. The first root_len bytes of its directory are the user's path. */
static int describe_trace(
	struct ky_trace_reader *r, struct ky_trace *t, const struct ky_buf *text, size_t root_len)
{
	int e = parse_description(r, &t->tsdl, &t->layout, text, t->dir);

	if (e < 0)
		return e;
	t->name = make_name(&t->tsdl, t->dir, root_len);
	t->origin = make_origin(&t->tsdl);
	t->json_origin = make_json_origin(&t->tsdl, t->dir, root_len);
	if (!t->name || !t->origin || !t->json_origin)
		return fail_memory(r);
	t->origin_len = strlen(t->origin);
	t->json_origin_len = strlen(t->json_origin);
	t->is_kymo = is_kymo(&t->tsdl);
	if (t->tsdl.is_cut && !r->options.is_growing)
		warn(r, "%s/metadata ends within a block: what is whole is used", t->dir);
	return find_gaps(r, t->dir, text);
}

/* Makes a trace without description. */
static struct ky_trace *new_trace(struct ky_trace_reader *r, const char *dir)
{
	struct ky_trace *t = calloc(1, sizeof(*t));

	if (t)
		t->dir = strdup(dir);
	if (t && t->dir)
		return t;
	fail_memory(r);
	return free_trace(t);
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
		struct ky_trace *other = r->traces[i];

		if (!ky_chunks_are_of_session(other, t))
			continue;
		t->group = other->group;
		if (!compare_uuids(&other->tsdl, &t->tsdl)) {
			t->is_chunk = other->is_chunk = true;
			break;
		}
	}
	return 0;
}

/* --- files --- */

static int compare_paths(const void *a, const void *b)
{
	const struct ky_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int compare_inodes(const struct ky_inode *x, const struct ky_inode *y)
{
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static struct ky_inode inode_of(const struct stat *st)
{
	return (struct ky_inode){st->st_dev, st->st_ino};
}

static int compare_known(const void *a, const void *b)
{
	const struct ky_file *const *x = a, *const *y = b;

	return compare_inodes(&(*x)->inode, &(*y)->inode);
}

/* Lists all files of streams by their inodes. */
static int list_known(struct ky_trace_reader *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_streams; i++)
		n += r->streams[i]->n_files;
	r->known = calloc(n + 1, sizeof(*r->known));
	if (!r->known)
		return fail_memory(r);
	for (size_t i = 0; i < r->n_streams; i++)
		for (size_t k = 0; k < r->streams[i]->n_files; k++)
			r->known[r->n_known++] = &r->streams[i]->files[k];
	qsort(r->known, r->n_known, sizeof(*r->known), compare_known);
	return 0;
}

static struct ky_file *find_known(const struct ky_trace_reader *r, const struct ky_file *like)
{
	struct ky_file **found = r->n_known ? bsearch(&like, r->known, r->n_known,
						      sizeof(*r->known), compare_known)
					    : NULL;

	return found ? *found : NULL;
}

/*
 * Adds a stream file, or a symbolic link to one. Ignores empty files and all that is not a regular
 * file.
 */
static int add_file(struct ky_trace_reader *r, struct ky_trace *t, int dirfd, const char *name)
{
	struct ky_file f = {.trace = t, .files = &r->pool}, *at;
	struct stat st;

	/* A file without status fails again, with a report, when it is probed. */
	if (!fstatat(dirfd, name, &st, 0)) {
		if (!S_ISREG(st.st_mode) || !st.st_size)
			return 0;
		f.size = f.size_on_disk = (uint64_t)st.st_size;
		f.inode = inode_of(&st);
	}
	if (asprintf(&f.path, "%s/%s", t->dir, name) < 0)
		return fail_memory(r);
	at = find_known(r, &f);
	if (at) {
		at->size_on_disk = KY_MAX(at->size_on_disk, f.size);
		free(at->path);
		at->path = f.path;
		return 0;
	}
	at = grow(&r->files, &r->n_files, sizeof(f));
	if (!at) {
		free(f.path);
		return fail_memory(r);
	}
	*at = f;
	ky_handle_init(&at->handle);
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

/* Fills in the properties of a file from its first bytes. Returns 0 or why it cannot be read. */
static int probe_file(struct ky_file *f)
{
	uint8_t beginning[PROBE_SIZE];
	ssize_t n = ky_file_read(f, beginning, sizeof(beginning), 0);

	if (n > 0)
		ky_file_probe(f, beginning, (size_t)n);
	ky_handle_deinit(&f->handle, f->files);
	return n > 0 ? 0 : n < 0 ? (int)n : -ENODATA;
}

/* Probes the files from first on. Drops those that cannot be read. */
static void probe_files(struct ky_trace_reader *r, size_t first)
{
	size_t n = first;

	for (size_t i = first; i < r->n_files; i++) {
		struct ky_file *f = &r->files[i];
		int e = probe_file(f);

		if (!e) {
			r->files[n] = *f;
			ky_handle_init(&r->files[n++].handle);
			continue;
		}
		if (e != -ENODATA && e != -ENXIO && !r->known)
			warn(r, "cannot read %s: %s: its events are missing", f->path,
				strerror(-e));
		free(f->path);
	}
	r->n_files = n;
}

/*
 * Some writers give packets another UUID than the metadata. If no file of a new trace, whose files
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
		probe_file(&r->files[i]);
		n += r->files[i].class != NULL;
	}
	t->ignores_uuid = n;
	if (n)
		warn(r, "%s: no packet has the UUID of the trace: all are read", t->dir);
}

/* Gets the size and the identity of the metadata in a directory. */
static void look_at_metadata(int dirfd, uint64_t *ret_size, struct ky_inode *ret_inode)
{
	struct stat st;
	bool is_there = !fstatat(dirfd, "metadata", &st, 0);

	*ret_size = is_there ? (uint64_t)st.st_size : 0;
	*ret_inode = is_there ? inode_of(&st) : (struct ky_inode){0};
}

static int read_metadata(struct ky_trace_reader *r, struct ky_buf *text, const char *dir)
{
	char *path = NULL;
	int e;

	if (asprintf(&path, "%s/metadata", dir) < 0)
		return fail_memory(r);
	e = ky_metadata_read(text, path);
	if (e < 0)
		fail(r, e, "cannot read the trace: %s: %s", path,
			e == -EBADMSG ? "this is no metadata of CTF" : strerror(-e));
	else if (!text->len)
		e = fail(r, -ENODATA,
			"cannot read the trace: %s is empty: nothing is recorded yet, or the disk was full",
			path);
	free(path);
	return e;
}

static void drop_files(struct ky_trace_reader *r, size_t first)
{
	while (r->n_files > first)
		free(r->files[--r->n_files].path);
}

/*
 * Adds a trace. The sizes of files are taken before the metadata is read: then it describes all
 * that is read, even while the trace grows.
 */
static int add_trace(struct ky_trace_reader *r, DIR *d, const char *dir, size_t root_len)
{
	struct ky_trace *t = new_trace(r, dir);
	struct ky_buf text = {0};
	size_t first = r->n_files;
	int e;

	if (!t)
		return -ENOMEM;
	e = add_files(r, t, d);
	if (!e) {
		look_at_metadata(dirfd(d), &t->metadata_size, &t->inode);
		e = read_metadata(r, &text, dir);
	}
	if (!e)
		e = describe_trace(r, t, &text, root_len);
	ky_buf_deinit(&text);
	if (e) {
		drop_files(r, first);
		free_trace(t);
		return e;
	}
	e = keep_trace(r, t);
	if (e) {
		drop_files(r, first);
		return e;
	}
	probe_files(r, first);
	accept_other_uuid(r, t, first);
	r->has_changed = true;
	return 0;
}

/* Replaces the description of a trace by that of longer metadata. */
static int renew_description(struct ky_trace_reader *r, struct ky_trace *t, uint64_t size)
{
	struct ky_outdated *o = calloc(1, sizeof(*o));
	struct ky_buf text = {0};
	struct ky_tsdl tsdl;
	struct ky_layout layout;
	int e = o ? read_metadata(r, &text, t->dir) : fail_memory(r);

	if (!e)
		e = parse_description(r, &tsdl, &layout, &text, t->dir);
	if (e) {
		ky_buf_deinit(&text);
		free(o);
		return e;
	}
	*o = (struct ky_outdated){.next = t->outdated, .tsdl = t->tsdl, .layout = t->layout};
	t->outdated = o;
	t->tsdl = tsdl;
	t->layout = layout;
	t->metadata_size = size;
	t->is_numbered = false;
	r->has_changed = true;
	e = find_gaps(r, t->dir, &text);
	ky_buf_deinit(&text);
	return e;
}

/* Forgets how much the files of a trace have grown. */
static void forget_growth(struct ky_trace_reader *r, const struct ky_trace *t)
{
	for (size_t i = 0; i < r->n_known; i++) {
		if (r->known[i]->trace == t)
			r->known[i]->size_on_disk = r->known[i]->size;
	}
}

/*
 * Looks for what was added to a trace. If its metadata cannot be read, because it is just being
 * written, a later refresh finds it.
 */
static int grow_trace(struct ky_trace_reader *r, struct ky_trace *t, DIR *d)
{
	size_t first = r->n_files;
	struct ky_inode inode;
	uint64_t size;
	int e = add_files(r, t, d);

	look_at_metadata(dirfd(d), &size, &inode);
	if (!e && size != t->metadata_size)
		e = renew_description(r, t, size);
	if (e) {
		drop_files(r, first);
		forget_growth(r, t);
		return e;
	}
	probe_files(r, first);
	return 0;
}

/*
 * Returns the trace in a directory, which may have been moved there. NULL: it is new, or there is
 * none.
 */
static struct ky_trace *find_trace(struct ky_trace_reader *r, DIR *d, const char *dir)
{
	struct ky_inode inode;
	uint64_t size;
	char *copy;

	look_at_metadata(dirfd(d), &size, &inode);
	for (size_t i = 0; i < r->n_traces && inode.number; i++) {
		struct ky_trace *t = r->traces[i];

		if (compare_inodes(&t->inode, &inode))
			continue;
		copy = strcmp(t->dir, dir) ? strdup(dir) : NULL;
		if (copy) {
			free(t->dir);
			t->dir = copy;
		}
		return t;
	}
	return NULL;
}

static int find_traces(struct ky_trace_reader *r, const char *dir, size_t root_len, int depth);

/*
 * Searches a directory that is no trace. An unreadable trace does not hide the others. A chunk may
 * be on its way into archives, for ever if the machine failed at that moment.
 */
static int find_below(
	struct ky_trace_reader *r, DIR *d, const char *dir, size_t root_len, int depth)
{
	struct dirent *e;
	int error = 0;

	while (error != -ENOMEM && (e = readdir(d))) {
		struct stat st;
		char *path;

		if ((e->d_name[0] == '.' && strcmp(e->d_name, KY_MOVING_NAME)) ||
			depth == MAX_DIR_DEPTH ||
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
	struct ky_trace *t;
	int error = d ? 0 : -errno;

	if (error == -ENOTDIR)
		return fail(r, error, "%s is no trace: give the directory that holds it", dir);
	if (error)
		return fail(r, error, "cannot read the trace: %s: %s", dir, strerror(-error));
	t = r->known ? find_trace(r, d, dir) : NULL;
	if (t)
		error = grow_trace(r, t, d);
	else if (!faccessat(dirfd(d), "metadata", F_OK, AT_SYMLINK_NOFOLLOW))
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

/* Appends n files to a stream. Takes the files. */
static int append_files(
	struct ky_trace_reader *r, struct ky_stream *s, struct ky_file *files, size_t n)
{
	struct ky_file *all = calloc(s->n_files + n, sizeof(*all));

	if (!all)
		return fail_memory(r);
	for (size_t i = 0; i < s->n_files + n; i++) {
		struct ky_file *from = i < s->n_files ? &s->files[i] : &files[i - s->n_files];

		ky_handle_deinit(&from->handle, from->files); /* it is in a list */
		all[i] = *from;
		ky_handle_init(&all[i].handle);
		from->path = NULL;
	}
	free(s->files);
	s->files = all;
	s->n_files += n;
	r->has_changed = true;
	return 0;
}

/* Adds a stream without files. NULL without memory. */
static struct ky_stream *add_stream(struct ky_trace_reader *r)
{
	struct ky_stream *s = calloc(1, sizeof(*s)), **at;

	at = s ? grow(&r->streams, &r->n_streams, sizeof(struct ky_stream *)) : NULL;
	if (!at) {
		free(s);
		fail_memory(r);
		return NULL;
	}
	*at = s;
	return s;
}

/* The order of streams whose records have equal times. */
static int compare_streams(const void *a, const void *b)
{
	const struct ky_file *x = (*(struct ky_stream *const *)a)->files;
	const struct ky_file *y = (*(struct ky_stream *const *)b)->files;
	int c = compare_uuids(&x->trace->tsdl, &y->trace->tsdl);

	if (!c && !x->trace->tsdl.has_uuid)
		c = strcmp(x->trace->name, y->trace->name);
	if (!c && class_id(x) != class_id(y))
		c = class_id(x) < class_id(y) ? -1 : 1;
	return c ? c : strcmp(x->path, y->path);
}

/* Gives ranks to the streams from first on. Those before keep theirs. */
static void rank_streams(struct ky_trace_reader *r, size_t first)
{
	if (first < r->n_streams)
		qsort(&r->streams[first], r->n_streams - first, sizeof(struct ky_stream *),
			compare_streams);
	for (size_t i = first; i < r->n_streams; i++)
		r->streams[i]->rank = (uint32_t)(i + 1);
}

/* Numbers streams that have no number as babeltrace2 does: in each trace, by their paths. */
static void number_files(struct ky_trace_reader *r)
{
	qsort(r->files, r->n_files, sizeof(*r->files), compare_paths);
	for (size_t i = 0; i < r->n_files; i++) {
		struct ky_file *f = &r->files[i];

		if (!f->has_instance)
			f->instance = f->trace->n_numbered++;
	}
}

/* Returns one of the first n streams to which a file belongs, or NULL. */
static struct ky_stream *find_stream(
	const struct ky_trace_reader *r, size_t n, const struct ky_file *f)
{
	for (size_t i = 0; i < n; i++) {
		if (!compare_identity(&r->streams[i]->files[0], f))
			return r->streams[i];
	}
	return NULL;
}

/* Assigns the files that were found to streams. */
static int make_streams(struct ky_trace_reader *r)
{
	size_t n, n_before = r->n_streams;
	int e = 0;

	if (r->n_files)
		number_files(r);
	if (r->n_files)
		qsort(r->files, r->n_files, sizeof(*r->files), compare_files);
	for (size_t i = 0; i < r->n_files && !e; i += n) {
		struct ky_stream *s = find_stream(r, n_before, &r->files[i]);

		n = 1;
		while (i + n < r->n_files && !compare_identity(&r->files[i], &r->files[i + n]))
			n++;
		s = s ? s : add_stream(r);
		e = s ? append_files(r, s, &r->files[i], n) : -ENOMEM;
	}
	if (e)
		return e;
	rank_streams(r, n_before);
	drop_files(r, 0);
	return 0;
}

/*
 * Sets how much of each file is read. While the traces grow, that is up to the end of the last
 * whole packet, which the index knows.
 */
static int measure_streams(struct ky_trace_reader *r)
{
	struct ky_packets packets = {0};
	int e = 0;

	for (size_t i = 0; i < r->n_streams && !e; i++) {
		struct ky_stream *s = r->streams[i];
		uint64_t n_before = s->n_bytes;

		if (r->options.is_growing || s->has_index)
			e = ky_index_build(s, r->options.is_growing, &packets);
		s->n_bytes = 0;
		for (size_t k = 0; k < s->n_files; k++) {
			if (!r->options.is_growing)
				s->files[k].size = s->files[k].size_on_disk;
			s->n_bytes += s->files[k].size;
		}
		r->has_changed |= s->n_bytes != n_before;
	}
	ky_packets_deinit(&packets);
	return e ? fail_memory(r) : 0;
}

/* The number that a class had in the description before, or a new one. */
static size_t number_of_class(
	const struct ky_trace_reader *r, const struct ky_trace *t, const struct ky_event_class *e)
{
	const struct ky_stream_class *s = t->outdated ? ky_layout_stream(
								&t->outdated->layout, e->stream->id)
						      : NULL;
	const struct ky_event_class *before = s ? ky_stream_class_event(s, e->id) : NULL;

	return before ? before->index : r->n_classes;
}

/* Numbers the classes of events of a trace. */
static int number_classes_of(struct ky_trace_reader *r, struct ky_trace *t)
{
	struct ky_layout *l = &t->layout;
	struct ky_event_class **more;
	size_t n = r->n_classes + 1;

	for (size_t j = 0; j < l->n_streams; j++)
		n += l->streams[j].n_events;
	more = reallocarray(r->classes, n, sizeof(*r->classes));
	if (!more)
		return fail_memory(r);
	r->classes = more;
	for (size_t j = 0; j < l->n_streams; j++)
		for (size_t k = 0; k < l->streams[j].n_events; k++) {
			struct ky_event_class *e = &l->streams[j].events[k];

			e->index = number_of_class(r, t, e);
			r->n_classes += e->index == r->n_classes;
			r->classes[e->index] = e;
		}
	t->is_numbered = true;
	return 0;
}

static int number_classes(struct ky_trace_reader *r)
{
	int e = 0;

	for (size_t i = 0; i < r->n_traces && !e; i++) {
		if (!r->traces[i]->is_numbered)
			e = number_classes_of(r, r->traces[i]);
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
	ky_files_init(&r->pool);
	pthread_mutex_init(&r->lock, NULL);
	if (options)
		r->options = *options;
	r->pool.read = r->options.read;
	r->pool.read_arg = r->options.read_arg;
	return r;
}

/* Completes the opening or a refresh with the traces and files that were found. */
static int update_reader(struct ky_trace_reader *r)
{
	int e = make_streams(r);

	if (!e)
		e = number_classes(r);
	if (!e)
		e = measure_streams(r);
	if (!e && ky_chunks_connect(r->streams, r->n_streams) < 0)
		e = fail_memory(r);
	return e;
}

/* The part of opening that does not depend on where the files are; closes r after an error. */
static int finish_open(struct ky_trace_reader **ret_reader, struct ky_trace_reader *r, int e)
{
	if (!e)
		e = update_reader(r);
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

/* The part of the paths below that is the user's. */
static size_t root_length(const char *root)
{
	return strcmp(root, "/") ? strlen(root) : 0;
}

/* Reports the events of chunks that the consumer removed (consumerd/sink/archives.h). */
static int find_removed(struct ky_trace_reader *r, const char *root)
{
	uint64_t n_chunks = 0, n_events = 0;
	char counts[256] = "", text[128];
	struct ky_buf path = {0};
	struct stat st;
	int fd, n;

	ky_buf_printf(&path, "%s/archives/.removed", root);
	fd = path.error ? -1 : open(path.data, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	ky_buf_deinit(&path);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		read(fd, counts, sizeof(counts) - 1) > 0)
		sscanf(counts, "chunks %" SCNu64 "\nevents %" SCNu64, &n_chunks, &n_events);
	ky_close(fd);
	if (!n_chunks)
		return 0;
	n = snprintf(text, sizeof(text),
		"%" PRIu64 " recorded events were removed with the oldest %" PRIu64
		" chunks, for --keep, --max-disk or --keep-free",
		n_events, n_chunks);
	return add_gap(r, root, text, (size_t)n);
}

static int find_path(struct ky_trace_reader *r, const char *path)
{
	char *root = realpath(path, NULL), **at;
	size_t n_before = r->n_traces;
	int e;

	if (!root)
		return fail(r, -errno, "cannot read the trace: %s: %s", path, strerror(errno));
	at = grow(&r->paths, &r->n_paths, sizeof(*r->paths));
	if (!at) {
		free(root);
		return fail_memory(r);
	}
	*at = root;
	e = find_traces(r, root, root_length(root), 0);
	if (!e && r->n_traces == n_before)
		e = fail(r, -ENOENT,
			"%s is no trace: no file 'metadata' in it or in a directory below", path);
	return e ? e : find_removed(r, root);
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
	t = new_trace(r, "memory");
	e = t ? ky_metadata_text(&text, metadata, metadata_size) : -ENOMEM;
	if (e < 0)
		fail(r, e, "cannot read the trace: its metadata is damaged");
	else
		e = describe_trace(r, t, &text, 0);
	ky_buf_deinit(&text);
	if (e)
		free_trace(t);
	else
		e = keep_trace(r, t);
	f = !e && stream_size ? grow(&r->files, &r->n_files, sizeof(*f)) : NULL;
	if (f) {
		*f = (struct ky_file){.trace = t, .data = stream, .size = stream_size};
		f->size_on_disk = stream_size;
		ky_handle_init(&f->handle);
		f->files = &r->pool;
		f->path = strdup("memory/stream");
		ky_file_probe(f, stream, stream_size);
	}
	if (!e && stream_size && (!f || !f->path))
		e = fail_memory(r);
	return finish_open(ret_reader, r, e);
}

static int search_again(struct ky_trace_reader *r)
{
	int e = list_known(r);

	for (size_t i = 0; i < r->n_paths && e != -ENOMEM; i++)
		e = find_traces(r, r->paths[i], root_length(r->paths[i]), 0);
	free(r->known);
	r->known = NULL;
	r->n_known = 0;
	return e == -ENOMEM ? e : 0;
}

int ky_trace_reader_refresh(struct ky_trace_reader *r)
{
	char why[160] = "";
	int e;

	if (!r->n_paths)
		return 0;
	r->why = why;
	r->why_size = sizeof(why);
	r->has_changed = false;
	e = search_again(r);
	if (!e)
		e = update_reader(r);
	r->why = NULL;
	r->generation += r->has_changed;
	return e ? e : r->has_changed;
}

/* Kymo's consumer holds a lock on the directory that it writes into. */
static bool is_locked(const char *dir)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is_free = fd < 0 || fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type == F_UNLCK;

	ky_close(fd);
	return !is_free;
}

/* The trace is somewhere below the directory that its session writes into. */
static bool is_recorded(const struct ky_trace *t)
{
	char *dir = strdup(t->dir), *slash;
	bool is = false;

	while (dir && !is && (slash = strrchr(dir, '/')) && slash > dir) {
		is = is_locked(dir);
		*slash = '\0';
	}
	free(dir);
	return is;
}

int ky_trace_reader_is_recorded(const struct ky_trace_reader *r)
{
	bool is_known = true;

	for (size_t i = 0; i < r->n_traces; i++) {
		if (r->traces[i]->is_kymo && is_recorded(r->traces[i]))
			return 1;
		is_known = is_known && r->traces[i]->is_kymo;
	}
	return is_known ? 0 : -ENOTSUP;
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
	for (size_t i = 0; i < r->n_paths; i++)
		free(r->paths[i]);
	free(r->paths);
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
		ns = ky_trace_clock_ns(f->class->clock, f->begin);
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
			e = ky_index_build(r->streams[i], false, &packets);
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
