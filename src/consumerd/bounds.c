/* SPDX-License-Identifier: MIT */
#include "consumerd/bounds.h"

#include <sys/statvfs.h>

#include "base/clock.h"
#include "svc/log.h"

#define PERIOD_NS (1000 * KY_NS_PER_MS)

static bool has_bounds(const struct ky_cons_bounds *b)
{
	return b->max_disk || b->keep_free || b->keep_chunks || b->keep_bytes || b->keep_s;
}

/*
 * Returns UINT64_MAX if the file system does not report it: ramfs, tmpfs without a limit, and some
 * of FUSE have no block in all.
 */
static uint64_t free_bytes(int fd)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) < 0 || !fs.f_blocks)
		return UINT64_MAX;
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

static uint64_t boot_time_s(void)
{
	return ky_clock_ns(CLOCK_BOOTTIME) / (1000 * KY_NS_PER_MS);
}

/* Returns whether the oldest archive has to go. */
static bool is_beyond(const struct consumerd *c, uint64_t chunk_bytes)
{
	const struct archives *a = &c->archives;
	const struct ky_cons_bounds *b = &c->bounds;
	uint64_t age = a->list[0].age_s + boot_time_s() - a->list[0].seen_s;

	return (b->max_disk && a->bytes + chunk_bytes > b->max_disk) ||
	       (b->keep_chunks && a->n > b->keep_chunks) ||
	       (b->keep_bytes && a->bytes > b->keep_bytes) || (b->keep_s && age > b->keep_s) ||
	       (b->keep_free && free_bytes(c->root_fd) < b->keep_free);
}

static void remove_beyond(struct consumerd *c)
{
	struct archives *a = &c->archives;
	uint64_t chunk_bytes = c->bounds.max_disk ? archives_chunk_bytes(c->root_fd) : 0;
	int ret = 0;

	while (!ret && a->n && is_beyond(c, chunk_bytes)) {
		ky_debug("%s: removing chunk %s", c->output, a->list[0].name);
		ret = archives_remove_oldest(a, c->root_fd);
	}
	if (ret < 0 && ret != c->bounds_error)
		ky_warning("%s: cannot remove the oldest chunk: %s", c->output, strerror(-ret));
	c->bounds_error = ret;
	c->expired_chunks = a->n_removed;
	c->expired_events = a->removed_events;
	c->expired_bytes = a->removed_bytes;
	c->disk_bytes = a->bytes + chunk_bytes;
}

void bounds_enforce(struct consumerd *c, uint64_t now_ns)
{
	if (!has_bounds(&c->bounds) || c->snapshot || c->root_fd < 0 ||
		(now_ns && now_ns - c->bounds_ns < PERIOD_NS))
		return;
	c->bounds_ns = ky_loop_now_ns();
	if (!archives_renew(&c->archives, c->root_fd, boot_time_s()))
		remove_beyond(c);
}
