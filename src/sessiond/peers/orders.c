/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/orders.h"

#include <fcntl.h>
#include <limits.h>

#include "svc/shm-dir.h"

static void name_files(const struct ring_set *set, char *name, size_t size)
{
	static const char *const rooms[] = {
		[ROOM_TO_GROW] = "", [ROOM_LITTLE] = "-fixed", [ROOM_MUCH] = "-locked"};
	int n = snprintf(name, size, "%s%s%s", set->channel->name,
		set->mode == KY_SET_PER_THREAD ? "-thread" : "", rooms[set->room]);

	if (ring_set_is_own(set))
		snprintf(name + n, size - (size_t)n, "-p%d-%u", (int)set->pid, set->number);
	else if (set->succeeds)
		snprintf(name + n, size - (size_t)n, "-%u", set->number);
}

int order_ring_set(struct ky_writer *w, const struct ring_set *set)
{
	char dir[64], name[160];
	uint64_t uuid[2];
	struct ky_cons_ring_set m = {
		.set = set->number,
		.stream_id = set->stream_id,
		.dir = dir,
		.name = name,
		.file_size = set->tracefile_size,
		.n_files = set->tracefile_count,
		.instance = ring_set_is_own(set) ? set->number : 0,
	};

	registry_uuid(set->registry, uuid);
	m.uuid_hi = uuid[0];
	m.uuid_lo = uuid[1];
	snprintf(dir, sizeof(dir), "ust/uid/%u/%u-bit", (unsigned)set->uid, set->abi_bits);
	name_files(set, name, sizeof(name));
	KY_GEOMETRY_COPY(&m, &set->geometry);
	return ky_cons_ring_set_encode(w, &m);
}

/* All of it or nothing. */
static int append_order(const struct session *s, const void *message, int len)
{
	int fd = openat(s->shm_fd, KY_SHM_SESSION,
		O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	ssize_t n = end < 0 ? -1 : write(fd, message, (size_t)len);
	int ret = n < 0 ? -errno : n < len ? -ENOSPC : 0;

	if (ret < 0 && end >= 0 && ftruncate(fd, end) < 0)
		ret = -EIO;
	ky_close(fd);
	return ret;
}

/* Buffers of a session made for snapshots are recovered into a directory beside its snapshots. */
int orders_begin(const struct session *s)
{
	char output[PATH_MAX + 16];
	uint8_t buf[2 * PATH_MAX];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	struct ky_cons_init m = {.version = KY_PROTO_VERSION,
		.session = s->name,
		.output = output,
		.resume = !s->snapshot,
		.rendezvous = ""};
	int len;

	if (s->shm_fd < 0)
		return 0;
	snprintf(output, sizeof(output), "%s%s", s->output,
		s->snapshot && *s->output ? "/recovered" : "");
	len = ky_cons_init_encode(&w, &m);
	return len < 0 ? len : append_order(s, buf, len);
}

int orders_add_set(struct ring_set *set)
{
	const struct session *s = set->channel->session;
	uint8_t buf[1024];
	struct ky_writer w = {.buf = buf, .cap = sizeof(buf)};
	int len;

	if (s->shm_fd < 0)
		return 0;
	len = order_ring_set(&w, set);
	return len < 0 ? len : append_order(s, buf, len);
}
