/* SPDX-License-Identifier: MIT */
#include "export/out.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define ENOUGH ((size_t)1 << 18) /* bytes for one write */

bool ky_out_may_replace(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

int ky_out_create(const char *part)
{
	int fd;

	unlink(part);
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return fd < 0 ? -errno : fd;
}

int ky_out_open(struct ky_out *o, const char *path, struct ky_out_room *room)
{
	*o = (struct ky_out){.fd = STDOUT_FILENO, .room = room};
	if (!strcmp(path, "-"))
		return 0;
	o->fd = -1;
	o->path = strdup(path);
	if (!o->path || asprintf(&o->part, "%s.part", path) < 0)
		return o->error = -ENOMEM;
	o->fd = ky_out_create(o->part);
	return o->error = KY_MIN(o->fd, 0);
}

static void write_all(struct ky_out *o)
{
	size_t done = 0;

	while (done < o->buf.len && !o->error) {
		ssize_t n = write(o->fd, o->buf.data + done, o->buf.len - done);

		if (n < 0 && errno != EINTR)
			o->error = -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	if (o->room)
		o->room->left -= done;
	o->buf.len = 0;
}

int ky_out_flush(struct ky_out *o)
{
	if (o->buf.error && !o->error)
		o->error = o->buf.error;
	if (o->room && o->buf.len > o->room->left && !o->error)
		o->error = -EFBIG;
	if (o->buf.len >= ENOUGH && !o->error)
		write_all(o);
	return o->error;
}

int ky_out_close(struct ky_out *o, bool is_whole)
{
	ky_out_flush(o);
	if (is_whole)
		write_all(o);
	if (o->path && o->fd >= 0) {
		if (close(o->fd) < 0 && !o->error)
			o->error = -errno;
		if (is_whole && !o->error && rename(o->part, o->path) < 0)
			o->error = -errno;
		if (!is_whole || o->error)
			unlink(o->part);
	}
	ky_buf_deinit(&o->buf);
	free(o->path);
	free(o->part);
	return o->error;
}

static void remove_tree(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char *below;

	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
			asprintf(&below, "%s/%s", path, e->d_name) < 0)
			continue;
		if (unlink(below) < 0 && errno == EISDIR)
			remove_tree(below);
		free(below);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

int ky_out_dir_open(char **ret_part, const char *path, char why[KY_EXPORT_WHY])
{
	size_t len = strlen(path);
	int r = 0;

	while (len > 1 && path[len - 1] == '/')
		len--;
	if (asprintf(ret_part, "%.*s.part", (int)len, path) < 0) {
		*ret_part = NULL;
		return -ENOMEM;
	}
	if (rmdir(path) < 0 && errno != ENOENT) {
		r = -errno;
		snprintf(why, KY_EXPORT_WHY, "%s exists: name a new directory", path);
	} else if (mkdir(*ret_part, 0750) < 0) {
		r = -errno;
		if (r == -EEXIST)
			snprintf(why, KY_EXPORT_WHY,
				"%s exists, perhaps of an export that was interrupted: remove it, or name another directory",
				*ret_part);
	}
	if (r) {
		free(*ret_part);
		*ret_part = NULL;
	}
	return r;
}

int ky_out_dir_close(char *part, const char *path, int error)
{
	if (error >= 0 && rename(part, path) < 0)
		error = -errno;
	if (error < 0)
		remove_tree(part);
	free(part);
	return error;
}
