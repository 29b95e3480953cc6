/* SPDX-License-Identifier: MIT */
#include "ship/watch.h"

#include <limits.h>
#include <sys/inotify.h>

#include "ctf/watermark.h"

#define CHANGES (IN_CREATE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR)

void watch_init(struct watch *w)
{
	*w = (struct watch){.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
	w->blind = w->fd < 0;
}

void watch_deinit(struct watch *w)
{
	w->fd = ky_close(w->fd);
}

void watch_add(struct watch *w, int dir, const char *path)
{
	char name[PATH_MAX];
	const int n = snprintf(name, sizeof(name), "/proc/self/fd/%d/%s", dir, path);

	if (w->fd >= 0 && (n >= (int)sizeof(name) || inotify_add_watch(w->fd, name, CHANGES) < 0) &&
		errno != ENOENT)
		w->blind = true;
}

/* The shipper's own files begin with a dot, and so does nothing else but the watermark. */
static bool is_of_trace(const struct inotify_event *e)
{
	return !e->len || e->name[0] != '.' || !strcmp(e->name, KY_WATERMARK_NAME);
}

bool watch_take(struct watch *w)
{
	_Alignas(struct inotify_event) char buf[4096];
	bool changed = false;
	ssize_t n;

	while (w->fd >= 0 && (n = read(w->fd, buf, sizeof(buf))) > 0)
		for (const char *p = buf; p < buf + n;) {
			const struct inotify_event *e = (const void *)p;

			changed = changed || is_of_trace(e);
			p += sizeof(*e) + e->len;
		}
	return changed;
}
