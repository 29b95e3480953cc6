/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "ship/archives.h"
#include "ship/files.h"
#include "ship/sender-internal.h"
#include "ship/sender.h"

int sender_fail(struct sender *s, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	return error;
}

/* A trace may have many files, each of which is looked for again and again. */
static struct sender_file *find_file(const struct sender *s, const char *path)
{
	struct ky_hnode *n = ky_htab_first(&s->by_path, ky_hash(path, strlen(path)));

	for (; n; n = ky_htab_next(n)) {
		struct sender_file *f = ky_container_of(n, struct sender_file, node);

		if (!strcmp(f->path, path))
			return f;
	}
	return NULL;
}

/* Determines the kind of a new file, and finds the other one of a stream and its index. */
static void find_peer(const struct sender *s, struct sender_file *f)
{
	char name[SEGMENT_PATH_MAX + 16];

	if (files_is_index(f->path)) {
		f->kind = SENDER_INDEX;
		files_stream_of(f->path, name, sizeof(name));
	} else if (files_index_of(f->path, name, sizeof(name))) {
		f->kind = SENDER_STREAM;
	} else {
		return;
	}
	f->peer = find_file(s, name);
	if (f->peer)
		f->peer->peer = f;
}

/* Makes room for one more file. Returns 0 or -ENOMEM. */
static int reserve_file(struct sender *s)
{
	size_t room = s->room;

	if (ky_vec_reserve((void **)&s->numbered, &room, s->n_files + 1, sizeof(void *)) < 0)
		return -ENOMEM;
	return ky_vec_reserve((void **)&s->files, &s->room, s->n_files + 1, sizeof(void *));
}

static struct sender_file *new_file(const char *path)
{
	struct sender_file *f = malloc(sizeof(*f));

	if (f)
		*f = (struct sender_file){.path = strdup(path), .number = -1};
	if (f && f->path)
		return f;
	free(f);
	return NULL;
}

static void free_file(struct sender_file *f)
{
	free(f->path);
	free(f);
}

static struct sender_file *add_file(struct sender *s, const char *path)
{
	struct sender_file *f = reserve_file(s) < 0 ? NULL : new_file(path);

	if (f && ky_htab_add(&s->by_path, &f->node, ky_hash(path, strlen(path))) < 0) {
		free_file(f);
		f = NULL;
	}
	if (!f) {
		sender_fail(s, -ENOMEM, "no memory");
		return NULL;
	}
	find_peer(s, f);
	s->files[s->n_files++] = f;
	return f;
}

struct sender_file *sender_file_get(struct sender *s, const char *path)
{
	struct sender_file *f = find_file(s, path);

	if (f)
		return f;
	s->is_refused = true;
	if (!segment_path_valid(path, strlen(path)))
		sender_fail(s, -EINVAL,
			"'%.120s' cannot be sent: it is too long, or has other characters than letters, digits and -_+=@.:",
			path);
	else if (s->n_files == SEGMENT_FILES_MAX)
		sender_fail(s, -EINVAL, "it has more than %u files", SEGMENT_FILES_MAX);
	else
		s->is_refused = false;
	return s->is_refused ? NULL : add_file(s, path);
}

int sender_file_open(const struct sender *s, const char *path)
{
	const int flags = (s->spool_max ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	const size_t n = strcspn(path, "/");

	for (unsigned i = 0; path[n] && i < s->n_tops; i++)
		if (strlen(s->tops[i].name) == n && !memcmp(s->tops[i].name, path, n))
			return openat(s->tops[i].fd, path + n + 1, flags);
	return openat(s->trace, path, flags);
}

static bool is_top(const struct sender *s, const char *name)
{
	for (unsigned i = 0; i < s->n_tops; i++)
		if (!strcmp(s->tops[i].name, name))
			return true;
	return false;
}

/* Takes fd. */
static int add_top(struct sender *s, const char *name, int fd)
{
	struct sender_top *more = reallocarray(s->tops, s->n_tops + 1, sizeof(*more));

	if (!more) {
		close(fd);
		return -ENOMEM;
	}
	s->tops = more;
	more += s->n_tops++;
	snprintf(more->name, sizeof(more->name), "%s", name);
	more->fd = fd;
	return 0;
}

/* Adds a file, or a directory that is not open yet. */
static int find_entry(struct sender *s, int dir, const char *name)
{
	struct stat st;
	int fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISREG(st.st_mode))
		return sender_file_get(s, name) ? 0 : s->is_refused ? -EINVAL : -ENOMEM;
	if (!S_ISDIR(st.st_mode) || is_top(s, name))
		return 0;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return add_top(s, name, fd);
}

/* Finds the files that are there, and opens directories that have come since. */
static int find_tops_in(struct sender *s, const char *where)
{
	int copy = openat(s->trace, where, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	int ret = 0;

	if (!d) {
		const int error = errno;

		ky_close(copy);
		return -error;
	}
	while (!ret && (e = readdir(d)))
		if (e->d_name[0] != '.' && strcmp(e->d_name, ARCHIVES_NAME))
			ret = find_entry(s, copy, e->d_name);
	closedir(d);
	return ret;
}

/* The machine may have failed while a rotation moved the chunk: then some of it is in .moving. */
static int find_tops(struct sender *s)
{
	int ret;

	watch_add(&s->watch, s->trace, ".");
	ret = find_tops_in(s, ".");
	if (!ret)
		ret = find_tops_in(s, KY_MOVING_NAME);
	return ret == -ENOENT ? 0 : ret;
}

static bool is_at(const struct sender *s, unsigned i, const char *where)
{
	char path[sizeof(s->tops[0].name) + sizeof(KY_MOVING_NAME) + 1];
	struct stat there, mine;

	snprintf(path, sizeof(path), "%s/%s", where, s->tops[i].name);
	return !fstat(s->tops[i].fd, &mine) &&
	       !fstatat(s->trace, path, &there, AT_SYMLINK_NOFOLLOW) && mine.st_ino == there.st_ino;
}

bool sender_is_moved(const struct sender *s)
{
	for (unsigned i = 0; i < s->n_tops; i++)
		if (!is_at(s, i, ".") && !is_at(s, i, KY_MOVING_NAME))
			return true;
	return false;
}

bool sender_is_recorded(int trace)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(trace, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void sender_read_watermark(struct sender *s)
{
	_cleanup_close_ int fd = openat(
		s->trace, KY_WATERMARK_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	s->has_watermark = fd >= 0 && pread(fd, &s->watermark, sizeof(s->watermark), 0) ==
					      sizeof(s->watermark);
}

/* The identifier stays with the directory: it is made by the first who ships it. */
static int take_id(struct sender *s)
{
	const int dir = s->n_tops ? s->tops[0].fd : s->trace;
	_cleanup_close_ int fd = openat(
		dir, ARCHIVES_RECORDING, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return -errno;
	if (pread(fd, s->id, sizeof(s->id), 0) == sizeof(s->id))
		return 0;
	if (getrandom(s->id, sizeof(s->id), 0) != sizeof(s->id))
		return -EIO;
	return files_write(fd, s->id, sizeof(s->id), 0);
}

/* Directories in a fixed order, that of the first which has an identifier, or of names. */
static void sort_tops(struct sender *s)
{
	for (unsigned i = 1; i < s->n_tops; i++) {
		const bool has = !faccessat(s->tops[i].fd, ARCHIVES_RECORDING, F_OK, 0);
		const bool first_has = !faccessat(s->tops[0].fd, ARCHIVES_RECORDING, F_OK, 0);

		if (has == first_has ? strcmp(s->tops[i].name, s->tops[0].name) < 0 : has) {
			const struct sender_top t = s->tops[0];

			s->tops[0] = s->tops[i];
			s->tops[i] = t;
		}
	}
}

int sender_init(struct sender *s, int trace, const char *name, bool once)
{
	int ret;

	*s = (struct sender){.trace = trace, .once = once};
	snprintf(s->name, sizeof(s->name), "%s", name);
	watch_init(&s->watch);
	ret = find_tops(s);
	if (!ret && !s->n_tops && faccessat(trace, "metadata", F_OK, 0) < 0)
		return -ENOENT;
	sort_tops(s);
	return ret ? ret : take_id(s);
}

void sender_deinit(struct sender *s)
{
	for (unsigned i = 0; i < s->n_tops; i++)
		close(s->tops[i].fd);
	free(s->tops);
	watch_deinit(&s->watch);
	for (size_t i = 0; i < s->n_files; i++)
		free_file(s->files[i]);
	free(s->files);
	free(s->numbered);
	ky_htab_deinit(&s->by_path);
}

void sender_mark_shipped(const struct sender *s)
{
	int fd = openat(s->n_tops ? s->tops[0].fd : s->trace, ARCHIVES_SHIPPED,
		O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0640);

	ky_close(fd);
}

struct visit {
	struct sender *s;
	const char *top;
};

static int visit_file(void *context, const char *path)
{
	const struct visit *v = context;
	char whole[PATH_MAX];

	snprintf(whole, sizeof(whole), "%s/%s", v->top, path);
	return sender_file_get(v->s, whole) ? 0 : v->s->is_refused ? -EINVAL : -ENOMEM;
}

static void enter_directory(void *context, int dir)
{
	const struct visit *v = context;

	watch_add(&v->s->watch, dir, ".");
}

void sender_file_lost(struct sender *s, struct sender_file *f)
{
	if (!f->lost && f->sent < f->counts)
		s->n_lost++;
	f->lost = true;
}

/* How much of a stream, and of its index, counts. */
static void look_at_stream(struct sender *s, const char *path)
{
	char name[SEGMENT_PATH_MAX + 16];
	_cleanup_close_ int fd = sender_file_open(s, path);
	_cleanup_close_ int index = -1;
	uint64_t size, indexed;
	struct sender_file *f;
	int64_t packets;
	struct stat st;

	if (!files_index_of(path, name, sizeof(name)))
		return;
	index = sender_file_open(s, name);
	if (fd < 0 || fstat(fd, &st) < 0) {
		sender_file_lost(s, sender_file_get(s, path));
		return;
	}
	size = (uint64_t)st.st_size;
	packets = index < 0 ? 0 : files_indexed(index, size, &indexed);
	f = sender_file_get(s, path);
	f->counts = KY_MAX(f->counts, s->final ? size : (uint64_t)KY_MAX(packets, 0));
	f = packets <= 0 ? NULL : sender_file_get(s, name);
	if (f)
		f->counts = KY_MAX(f->counts, indexed);
}

static void look_at_other(struct sender *s, struct sender_file *f)
{
	_cleanup_close_ int fd = sender_file_open(s, f->path);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		sender_file_lost(s, f);
		return;
	}
	if (strcmp(f->path + strlen(f->path) - KY_MIN(strlen(f->path), strlen("metadata")),
		    "metadata") ||
		s->final)
		f->counts = KY_MAX(f->counts, (uint64_t)st.st_size);
	else if ((uint64_t)st.st_size > f->read)
		f->counts = KY_MAX(f->counts, files_readable(fd, f->counts, (uint64_t)st.st_size));
	f->read = (uint64_t)st.st_size;
}

void sender_add_sizes(struct sender *s)
{
	s->size = s->acked = 0;
	for (size_t i = 0; i < s->n_files; i++) {
		s->size += s->files[i]->counts;
		s->acked += KY_MIN(s->files[i]->acked, s->files[i]->counts);
	}
}

static int fail_look(struct sender *s, int error)
{
	return s->is_refused ? error : sender_fail(s, error, "%s: %s", s->name, strerror(-error));
}

/* The watermark is read first: all that it speaks of is in the files then. */
int sender_look(struct sender *s, bool final, bool moved)
{
	struct visit v = {.s = s};
	int ret = 0;

	s->final = final;
	s->moved = moved;
	if (!moved) {
		sender_read_watermark(s);
		ret = find_tops(s);
		if (ret < 0)
			return fail_look(s, ret);
	}
	for (unsigned i = 0; !ret && i < s->n_tops; i++) {
		v.top = s->tops[i].name;
		ret = files_walk(s->tops[i].fd, visit_file, enter_directory, &v);
	}
	if (ret < 0)
		return fail_look(s, ret);
	for (size_t i = 0; i < s->n_files; i++)
		if (s->files[i]->kind == SENDER_STREAM)
			look_at_stream(s, s->files[i]->path);
	for (size_t i = 0; i < s->n_files; i++)
		if (s->files[i]->kind == SENDER_OTHER ||
			(final && s->files[i]->kind == SENDER_INDEX))
			look_at_other(s, s->files[i]);
	sender_add_sizes(s);
	return 0;
}

void packets_close(struct packets *p)
{
	ky_close(p->stream);
	ky_close(p->index);
}

bool packets_open(const struct sender *s, const char *stream, struct packets *ret)
{
	char name[SEGMENT_PATH_MAX + 16];
	struct stat st;

	*ret = (struct packets){.stream = -1, .index = -1};
	if (!files_index_of(stream, name, sizeof(name)))
		return false;
	ret->stream = sender_file_open(s, stream);
	ret->index = sender_file_open(s, name);
	if (ret->stream < 0 || ret->index < 0 || fstat(ret->index, &st) < 0 ||
		(uint64_t)st.st_size < ky_index_offset(1)) {
		packets_close(ret);
		return false;
	}
	ret->n = ((uint64_t)st.st_size - ky_index_offset(0)) / sizeof(struct ky_index_entry);
	return true;
}

bool packets_read(const struct packets *p, uint64_t i, struct ky_index_entry *ret)
{
	return i < p->n &&
	       pread(p->index, ret, sizeof(*ret), (off_t)ky_index_offset(i)) == sizeof(*ret);
}

uint64_t packets_find(const struct packets *p, uint64_t at)
{
	uint64_t low = 0, high = p->n;
	struct ky_index_entry e;

	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;

		if (packets_read(p, middle, &e) && e.offset + e.size <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
