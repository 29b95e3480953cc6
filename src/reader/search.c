/* SPDX-License-Identifier: MIT */
#include "reader/search.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/htab.h"
#include "ctf/watermark.h"
#include "reader/metadata.h"
#include "reader/trace.h"
#include "reader/walk.h"
#include "reader/walk-packets.h"

#define MAX_DIR_DEPTH 16
#define MAX_LINKED    2000 /* directories behind links: one may lead to the whole file system */
#define MAX_LOOKED    16   /* files of a directory without metadata that are looked at */
#define PROBE_SIZE    4096 /* bytes of a file that its first packet's head is looked for in */
#define SEARCH_SIZE   ((uint64_t)16 << 20) /* the same, if that head is damaged */

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
		return ky_reader_fail_memory(r);
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
		return ky_reader_fail_memory(r);
	at = find_known(r, &f);
	if (at) {
		at->size_on_disk = KY_MAX(at->size_on_disk, f.size);
		free(at->path);
		at->path = f.path;
		return 0;
	}
	at = ky_reader_grow(&r->files, &r->n_files, sizeof(f));
	if (!at) {
		free(f.path);
		return ky_reader_fail_memory(r);
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

/*
 * Fills in the properties of a file from its first bytes. Returns 0 or why it cannot be read; that
 * is -ENODATA, too, if it is growing and its first head is not whole yet.
 */
static int probe_file(struct ky_file *f, bool is_growing)
{
	uint8_t beginning[PROBE_SIZE];
	ssize_t n = ky_file_read(f, beginning, sizeof(beginning), 0);

	if (n > 0)
		ky_file_probe(f, beginning, (size_t)n);
	ky_handle_deinit(&f->handle, f->files);
	if (is_growing && !f->class && f->fault == KY_HEAD_UNREADABLE && n >= 0 && n < PROBE_SIZE)
		return -ENODATA;
	return n > 0 ? 0 : n < 0 ? (int)n : -ENODATA;
}

/* Probes the files from first on. Drops those that cannot be read, or not yet. */
static void probe_files(struct ky_trace_reader *r, size_t first)
{
	size_t n = first;

	for (size_t i = first; i < r->n_files; i++) {
		struct ky_file *f = &r->files[i];
		int e = probe_file(f, r->options.is_growing);

		if (!e) {
			r->files[n] = *f;
			ky_handle_init(&r->files[n++].handle);
			continue;
		}
		if (e != -ENODATA && e != -ENXIO && !r->known) {
			ky_reader_warn(r, "cannot read %s: %s: its events are missing", f->path,
				strerror(-e));
			r->n_unreadable++;
		}
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
		probe_file(&r->files[i], r->options.is_growing);
		n += r->files[i].class != NULL;
	}
	t->ignores_uuid = n;
	if (n)
		ky_reader_warn(r, "%s: no packet has the UUID of the trace: all are read", t->dir);
}

void ky_search_packet(struct ky_file *f)
{
	struct ky_stream s = {.files = f, .n_files = 1};
	struct ky_select all = KY_SELECT_ALL;
	struct ky_packets packets = {0};
	struct ky_packet_head p;
	struct ky_walk w;
	uint64_t size = f->size, offset = 0;
	int r = -EBADMSG;

	f->size = KY_MIN(size, SEARCH_SIZE);
	ky_walk_init(&w, &s, &all, &packets, NULL);
	while (r == -EBADMSG && (offset = ky_walk_find_head(&w, offset)) < f->size)
		r = ky_walk_peek(&w, 0, offset, &p);
	if (!r)
		ky_file_probe(f, w.d.data, w.d.end / 8);
	ky_walk_deinit(&w);
	ky_packets_deinit(&packets);
	f->size = size;
	ky_handle_deinit(&f->handle, f->files);
}

/* Searches the files from first on for a packet if their first one is damaged. */
static void search_packets(struct ky_trace_reader *r, size_t first)
{
	for (size_t i = first; i < r->n_files; i++) {
		if (!r->files[i].class)
			ky_search_packet(&r->files[i]);
	}
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
		return ky_reader_fail_memory(r);
	e = ky_metadata_read(text, path);
	if (e < 0)
		ky_reader_fail(r, e, "cannot read the trace: %s: %s", path,
			e == -EBADMSG	? "this is no metadata of CTF"
			: e == -ENOTSUP ? "it is compressed or encrypted"
					: strerror(-e));
	else if (!text->len)
		e = ky_reader_fail(r, -ENODATA,
			"cannot read the trace: %s is empty: nothing is recorded yet, or the disk was full",
			path);
	else if (e && !r->options.is_growing)
		ky_reader_warn(r,
			"%s ends in bytes that are no metadata: what is before them is used", path);
	free(path);
	return KY_MIN(e, 0);
}

void ky_search_drop_files(struct ky_trace_reader *r, size_t first)
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
	struct ky_trace *t = ky_trace_new(r, dir);
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
		e = ky_trace_describe(r, t, &text, root_len);
	ky_buf_deinit(&text);
	if (e) {
		ky_search_drop_files(r, first);
		ky_trace_free(t);
		return e;
	}
	e = ky_trace_keep(r, t);
	if (e) {
		ky_search_drop_files(r, first);
		return e;
	}
	probe_files(r, first);
	accept_other_uuid(r, t, first);
	search_packets(r, first);
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
	int e = o ? read_metadata(r, &text, t->dir) : ky_reader_fail_memory(r);

	if (!e)
		e = ky_trace_parse(r, &tsdl, &layout, &text, t->dir);
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
	e = ky_trace_find_gaps(r, t->dir, &text);
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
		ky_search_drop_files(r, first);
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

/* A symbolic link, to a directory or to something else. */
struct link {
	char *path; /* owned */
	int depth;
	uid_t owner;
};

/*
 * The search of one root. Links are followed last: so a directory that is here, too, has its own
 * name. No directory is searched twice, so loops end.
 */
struct search {
	struct ky_trace_reader *r; /* borrowed */
	const char *root;	   /* borrowed */
	size_t root_len;
	struct link *links; /* owned */
	size_t n_links;
	size_t n_linked; /* directories that were found behind links */
	char *bare;	 /* owned: the first directory with streams that have lost their metadata */
	size_t n_bare;	 /* how many there are */
	bool follows;	 /* what is searched now is behind a link */
	bool has_trace;	 /* one was found below this root, now or from an earlier root */
};

/*
 * A directory that was searched. A further root may contain it, too. Then it is searched again,
 * because only so it is known whether that root has a trace, but its traces are not added again.
 */
struct searched {
	struct ky_hnode node;
	struct ky_inode inode;
	const char *root; /* borrowed: the last one from which it was found */
	bool is_trace;
};

static struct searched *find_searched(struct search *s, const struct ky_inode *inode, uint32_t hash)
{
	for (struct ky_hnode *n = ky_htab_first(&s->r->searched, hash); n; n = ky_htab_next(n)) {
		struct searched *found = ky_container_of(n, struct searched, node);

		if (!compare_inodes(&found->inode, inode))
			return found;
	}
	return NULL;
}

/* Returns the entry of a directory, or NULL without memory. A new entry has no root. */
static struct searched *get_searched(struct search *s, DIR *d)
{
	struct stat st = {0};
	struct searched *entry;
	struct ky_inode inode;
	uint32_t hash;

	fstat(dirfd(d), &st);
	inode = inode_of(&st);
	hash = ky_hash(&inode, sizeof(inode));
	entry = find_searched(s, &inode, hash);
	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry || ky_htab_add(&s->r->searched, &entry->node, hash) < 0) {
		free(entry);
		return NULL;
	}
	entry->inode = inode;
	return entry;
}

/* Returns 0, or 1 if there are too many. */
static int count_linked(struct search *s, const char *dir)
{
	if (++s->n_linked == MAX_LINKED + 1 && !s->r->known)
		ky_reader_warn(s->r,
			"%s: more than %d directories are behind links: others are left out", dir,
			MAX_LINKED);
	return s->n_linked > MAX_LINKED;
}

static int find_traces(struct search *s, const char *dir, int depth);

/* Takes the path. Returns 0 or -ENOMEM. */
static int add_link(struct search *s, char *path, int depth, uid_t owner)
{
	struct link *l = ky_reader_grow(&s->links, &s->n_links, sizeof(*l));

	if (!l) {
		free(path);
		return ky_reader_fail_memory(s->r);
	}
	*l = (struct link){path, depth, owner};
	return 0;
}

/*
 * Searches the directory behind a link. A link of another user must not lead to directories that
 * this user could not have put here.
 */
static int follow_link(struct search *s, const struct link *l)
{
	struct stat st;

	if (stat(l->path, &st) < 0 || !S_ISDIR(st.st_mode) || s->n_linked > MAX_LINKED)
		return 0;
	if (l->owner == geteuid() || l->owner == 0 || l->owner == st.st_uid)
		return find_traces(s, l->path, l->depth);
	if (!s->r->known)
		ky_reader_warn(s->r,
			"%s is a link of another user to a directory that is not the user's: it is not followed",
			l->path);
	return 0;
}

/* One that is no longer there was removed, or moved into archives, meanwhile. */
static void note_unreadable(struct ky_trace_reader *r, int error)
{
	if (error < 0 && error != -ENOENT && !r->known)
		r->n_unreadable++;
}

/* Returns true if the file begins as a packet of any byte order. */
static bool is_stream(int dirfd, const char *name)
{
	int fd = ky_file_open_at(dirfd, name);
	uint32_t magic = 0;
	bool is_there = fd >= 0 && pread(fd, &magic, sizeof(magic), 0) == sizeof(magic);

	ky_close(fd);
	return is_there && (le32toh(magic) == KY_PACKET_MAGIC || be32toh(magic) == KY_PACKET_MAGIC);
}

/* Keeps the name of the first directory without metadata that has streams. 0 or -ENOMEM. */
static int note_bare(struct search *s, const char *dir)
{
	if (!s->n_bare++)
		s->bare = strdup(dir);
	return s->bare ? 0 : ky_reader_fail_memory(s->r);
}

/* If no trace was found, the caller's error says that metadata is missing. */
static void report_bare(const struct search *s)
{
	if (!s->n_bare || !s->has_trace || s->r->known || s->r->options.is_growing)
		return;
	ky_reader_warn(s->r, "%s has streams, but no file 'metadata': they are not read%s", s->bare,
		s->n_bare > 1 ? " (nor those of other directories like it)" : "");
}

/*
 * Searches a directory that is no trace. An unreadable trace does not hide the others. A chunk may
 * be on its way into archives, for ever if the machine failed at that moment.
 */
static int find_below(struct search *s, DIR *d, const char *dir, int depth)
{
	struct dirent *e;
	size_t n_looked = 0;
	int error = 0;

	while (error != -ENOMEM && (e = readdir(d))) {
		struct stat st;
		char *path;

		if ((e->d_name[0] == '.' && strcmp(e->d_name, KY_MOVING_NAME)) ||
			depth == MAX_DIR_DEPTH ||
			fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode) && n_looked++ < MAX_LOOKED &&
			is_stream(dirfd(d), e->d_name)) {
			n_looked = MAX_LOOKED;
			error = note_bare(s, dir);
		}
		if (!S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
			continue;
		if (!strcmp(e->d_name, "archives") && !s->r->known &&
			ky_trace_find_removed(s->r, dir) < 0)
			return -ENOMEM;
		if (asprintf(&path, "%s/%s", dir, e->d_name) < 0)
			return ky_reader_fail_memory(s->r);
		if (S_ISLNK(st.st_mode)) {
			error = add_link(s, path, depth + 1, st.st_uid);
			continue;
		}
		error = find_traces(s, path, depth + 1);
		note_unreadable(s->r, error);
		free(path);
	}
	return error == -ENOMEM ? error : 0;
}

/* Adds the trace in a directory, or what was added to it, or the traces below. */
static int read_directory(
	struct search *s, DIR *d, const char *dir, int depth, struct searched *entry)
{
	struct ky_trace_reader *r = s->r;
	struct ky_trace *t = r->known ? find_trace(r, d, dir) : NULL;
	int error;

	if (t)
		error = grow_trace(r, t, d);
	else if (!faccessat(dirfd(d), "metadata", F_OK, AT_SYMLINK_NOFOLLOW))
		error = add_trace(r, d, dir, s->root_len);
	else
		return find_below(s, d, dir, depth);
	entry->is_trace = !error;
	s->has_trace |= !error;
	return error;
}

/* Returns 1 if the directory is not to be searched (again), else 0 or a negative errno. */
static int find_traces(struct search *s, const char *dir, int depth)
{
	struct ky_trace_reader *r = s->r;
	DIR *d = opendir(dir);
	struct searched *entry;
	int error = d ? 0 : -errno;

	if (error == -ENOTDIR)
		return ky_reader_fail(r, error,
			"%s is a file: give the directory of a trace, which has a file 'metadata'; unpack an archive first",
			dir);
	if (error)
		return ky_reader_fail(
			r, error, "cannot read the trace: %s: %s", dir, strerror(-error));
	entry = get_searched(s, d);
	if (!entry) {
		error = ky_reader_fail_memory(r);
	} else if (entry->root == s->root || entry->is_trace) {
		s->has_trace |= entry->is_trace;
		error = 1;
	} else {
		entry->root = s->root;
		error = s->follows ? count_linked(s, dir) : 0;
	}
	if (!error)
		error = read_directory(s, d, dir, depth, entry);
	closedir(d);
	return error;
}

/* The part of the paths below that is the user's. */
static size_t root_length(const char *root)
{
	return strcmp(root, "/") ? strlen(root) : 0;
}

int ky_search(struct ky_trace_reader *r, const char *root)
{
	struct search s = {.r = r, .root = root, .root_len = root_length(root)};
	int e = find_traces(&s, root, 0);

	s.follows = true;
	for (size_t i = 0; i < s.n_links && e != -ENOMEM; i++) {
		struct link l = s.links[i]; /* more links may be found meanwhile */
		int error = follow_link(&s, &l);

		note_unreadable(r, error);
		e = error == -ENOMEM ? error : e;
	}
	for (size_t i = 0; i < s.n_links; i++)
		free(s.links[i].path);
	free(s.links);
	report_bare(&s);
	free(s.bare);
	return e < 0 ? e : s.has_trace;
}

void ky_search_end(struct ky_trace_reader *r)
{
	ky_htab_free_all(&r->searched, struct searched, node);
}

int ky_search_again(struct ky_trace_reader *r)
{
	int e = list_known(r);

	for (size_t i = 0; i < r->n_paths && e != -ENOMEM; i++)
		e = ky_search(r, r->paths[i]);
	ky_search_end(r);
	free(r->known);
	r->known = NULL;
	r->n_known = 0;
	return e == -ENOMEM ? e : 0;
}
