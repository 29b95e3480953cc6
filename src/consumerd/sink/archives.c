/* SPDX-License-Identifier: MIT */
#include "consumerd/sink/archives.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>

#include "ctf/index.h"
#include "svc/check.h"
#include "svc/tree.h"

#define ARCHIVES   "archives"
#define COUNTS	   ".removed"
#define SPARE	   ".removed.new"
#define COUNTS_MAX 512
#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define DEPTH_MAX  8

/* Sums of the files below a directory. */
struct usage {
	uint64_t bytes, events;
	bool count_events;
	int error; /* events could not be counted */
};

static bool is_index(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && !strcmp(dot, ".kyx");
}

static void add_events(struct usage *u, int dir, const char *name)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct ky_index_entry entries[64];
	uint64_t at = ky_index_offset(0);
	ssize_t n = fd < 0 ? -1 : 0;

	while (fd >= 0 && (n = pread(fd, entries, sizeof(entries), (off_t)at)) > 0) {
		for (size_t i = 0; i < (size_t)n / sizeof(entries[0]); i++)
			u->events += entries[i].n_events;
		at += (uint64_t)n;
	}
	if (n < 0)
		u->error = -errno;
}

static void add_below(struct usage *u, int fd, unsigned depth);

static void add_entry(struct usage *u, int dir, const char *name, unsigned depth)
{
	struct stat st;
	int fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	u->bytes += ky_tree_file_bytes(&st);
	if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
		fd = openat(dir, name, DIR_FLAGS);
		if (fd >= 0)
			add_below(u, fd, depth + 1);
		else
			u->error = -errno;
	} else if (u->count_events && S_ISREG(st.st_mode) && is_index(name)) {
		add_events(u, dir, name);
	}
}

/* Closes fd. */
static void add_below(struct usage *u, int fd, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		u->error = -errno;
		close(fd);
		return;
	}
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			add_entry(u, fd, e->d_name, depth);
	closedir(dir);
}

static struct usage usage_of(int dir, const char *name, bool count_events)
{
	struct usage u = {.count_events = count_events};

	add_entry(&u, dir, name, 0);
	return u;
}

uint64_t archives_chunk_bytes(int root)
{
	return usage_of(root, "ust", false).bytes + usage_of(root, "kernel", false).bytes;
}

/* Returns 0, also if nothing was removed yet, or -errno: then the counts must not be replaced. */
static int read_counts(struct archives *a, int dir)
{
	_cleanup_close_ int fd = openat(dir, COUNTS, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[COUNTS_MAX + 1];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return errno == ENOENT || errno == ELOOP ? 0 : -errno;
	text[n] = '\0';
	sscanf(text, "chunks %" SCNu64 "\nevents %" SCNu64 "\nbytes %" SCNu64 "\nlast %255s",
		&a->n_removed, &a->removed_events, &a->removed_bytes, a->last_removed);
	return 0;
}

/*
 * Writes the counts to the spare file, which has one size. It exists before it is needed, so that a
 * removal can be counted on a full disk, which it relieves.
 */
static int write_spare(const struct archives *a, int dir)
{
	_cleanup_close_ int fd = openat(
		dir, SPARE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
	char text[COUNTS_MAX];
	ssize_t done;
	int n = snprintf(text, sizeof(text),
		"chunks %" PRIu64 "\nevents %" PRIu64 "\nbytes %" PRIu64 "\nlast %s\n",
		a->n_removed, a->removed_events, a->removed_bytes, a->last_removed);

	if (fd < 0)
		return -errno;
	memset(text + n, '\n', sizeof(text) - (size_t)n);
	done = pwrite(fd, text, sizeof(text), 0);
	if (done == sizeof(text))
		return 0;
	return done < 0 ? -errno : -ENOSPC;
}

static int write_counts(const struct archives *a, int dir)
{
	int ret = write_spare(a, dir);

	return !ret && renameat(dir, SPARE, dir, COUNTS) < 0 ? -errno : ret;
}

/* Archives of one number are of two daemons: the earlier one is older. */
static int compare_archives(const void *x, const void *y)
{
	const struct archive *a = x, *b = y;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return strcmp(a->name, b->name);
}

static uint64_t age_of(const struct stat *st)
{
	time_t now = time(NULL);

	return now > st->st_mtime ? (uint64_t)(now - st->st_mtime) : 0;
}

/*
 * Measures the archive, unless the list has it for some time: an archive does not change, but some
 * file systems count blocks only when they have written them. Returns false if the entry is no
 * archive.
 */
static bool measure_archive(
	struct archive *archive, const struct archives *known, int dir, uint64_t now_s)
{
	const struct archive *found = known->n ? bsearch(archive, known->list, known->n,
							 sizeof(*archive), compare_archives)
					       : NULL;
	struct stat st;

	if (found)
		*archive = *found;
	if (found && now_s - found->seen_s >= ARCHIVES_MEASURED_S)
		return true;
	if (fstatat(dir, archive->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return false;
	archive->bytes = usage_of(dir, archive->name, false).bytes;
	if (!found) {
		archive->seen_s = now_s;
		archive->age_s = age_of(&st);
	}
	return true;
}

static int add_archive(
	struct archives *a, const struct archives *known, int dir, const char *name, uint64_t now_s)
{
	const char *dash = strrchr(name, '-');
	struct archive archive = {0}, *grown;

	if (name[0] == '.' || !dash || strlen(name) >= sizeof(archive.name))
		return 0;
	archive.number = strtoull(dash + 1, NULL, 10);
	strcpy(archive.name, name);
	if (!measure_archive(&archive, known, dir, now_s))
		return 0;
	grown = realloc(a->list, (a->n + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	a->list = grown;
	grown[a->n++] = archive;
	a->bytes += archive.bytes;
	return 0;
}

static int read_directory(
	struct archives *a, const struct archives *known, int root, uint64_t now_s)
{
	int fd = openat(root, ARCHIVES, DIR_FLAGS), ret = 0;
	struct dirent *e;
	DIR *dir;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	dir = fdopendir(fd);
	if (!dir) {
		ret = -errno;
		close(fd);
		return ret;
	}
	ret = read_counts(a, fd);
	while (!ret && (e = readdir(dir)))
		ret = add_archive(a, known, fd, e->d_name, now_s);
	if (a->n && faccessat(fd, SPARE, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		write_spare(a, fd); /* else the first removal tries again */
	closedir(dir);
	if (a->n)
		qsort(a->list, a->n, sizeof(a->list[0]), compare_archives);
	return ret;
}

int archives_renew(struct archives *a, int root, uint64_t now_s)
{
	struct archives renewed = {0};
	int ret = read_directory(&renewed, a, root, now_s);

	archives_deinit(a);
	*a = renewed;
	return ret;
}

void archives_deinit(struct archives *a)
{
	free(a->list);
	a->list = NULL;
	a->n = 0;
}

/* Returns 0 or -errno. An archive whose events cannot be counted now stays for now. */
static int count_oldest(struct archives *a, int dir)
{
	const struct archive *oldest = a->list;
	struct usage u;

	if (!strcmp(a->last_removed, oldest->name))
		return 0;
	u = usage_of(dir, oldest->name, true);
	if (u.error)
		return u.error;
	a->n_removed++;
	a->removed_events += u.events;
	a->removed_bytes += oldest->bytes;
	strcpy(a->last_removed, oldest->name);
	return write_counts(a, dir);
}

int archives_remove_oldest(struct archives *a, int root)
{
	_cleanup_close_ int dir = openat(root, ARCHIVES, DIR_FLAGS);
	struct archive *oldest = a->list;
	int ret = dir < 0 ? -errno : 0;

	KY_CHECK(a->n > 0 && oldest->bytes <= a->bytes);
	if (!ret)
		ret = count_oldest(a, dir);
	if (!ret)
		ret = ky_tree_remove(dir, oldest->name);
	if (ret < 0)
		return ret;
	write_spare(a, dir); /* there is room now; else the next removal tries again */
	a->bytes -= oldest->bytes;
	memmove(a->list, a->list + 1, --a->n * sizeof(a->list[0]));
	return 0;
}
