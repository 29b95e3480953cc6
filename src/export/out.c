/* SPDX-License-Identifier: MIT */
#include "export/out.h"

#include <fcntl.h>
#include <sys/stat.h>

#define ENOUGH ((size_t)1 << 18) /* bytes for one write */

bool ky_out_may_replace(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
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
	o->fd = open(o->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (o->fd < 0)
		o->error = -errno;
	return o->error;
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
