/* SPDX-License-Identifier: MIT */
#include "sessiond/model/memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "ring/slots.h"

#include "abi/resume.h"
#include "base/small-file.h"
#include "svc/log.h"
#include "svc/shm-dir.h"
#include "svc/unix.h"

#define SEALS	 (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define CPUS_MAX 65536
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Opens the same file once more. */
static int reopen(int fd, int flags)
{
	char path[64];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, flags | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

int memory_open_read_only(int fd)
{
	return reopen(fd, O_RDONLY);
}

bool memory_is_reserved(int dir)
{
	char text[8];

	return dir >= 0 ||
	       (ky_read_text(AT_FDCWD, "/proc/sys/vm/overcommit_memory", text, sizeof(text)) > 0 &&
		       text[0] == '2');
}

static int reserve(int fd, uint64_t size)
{
	if (!size || !memory_is_reserved(-1) || !fallocate(fd, 0, 0, (off_t)size))
		return 0;
	errno = errno == ENOSPC ? ENOMEM : errno;
	return -1;
}

/* A memfd that nobody can make shorter or longer; without a size, it grows. */
static int make_memfd(const char *name, uint64_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (!fchmod(fd, 0600) && !ftruncate(fd, (off_t)size) && !reserve(fd, size) &&
		(!size || !fcntl(fd, F_ADD_SEALS, SEALS)))
		return fd;
	ky_close(fd);
	return -errno;
}

/* A file whose room is sure to be there: a program that touches it must not find the disk full. */
static int make_file(int dir, const char *name, uint64_t size)
{
	int fd;

	unlinkat(dir, name, 0); /* of a predecessor that was killed before it wrote it down */
	fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (!size || !fallocate(fd, 0, 0, (off_t)size))
		return fd;
	ky_close(fd);
	unlinkat(dir, name, 0);
	return -errno;
}

/* Makes a file of this size in the directory, or (-1) a memfd, whose name people see in /proc. */
static int memory_make(int dir, const char *name, const char *memfd_name, uint64_t size,
	const void *head, size_t head_len)
{
	int fd = dir < 0 ? make_memfd(memfd_name, size) : make_file(dir, name, size);

	if (fd >= 0 && head_len && pwrite(fd, head, head_len, 0) != (ssize_t)head_len) {
		ky_close(fd);
		return -EIO;
	}
	return fd;
}

static void fill_header(struct ky_set_header *h, const struct ky_geometry *g, uint32_t number,
	const uint64_t uuid[2])
{
	memset(h, 0, sizeof(*h));
	h->number = number;
	h->uuid_hi = uuid[0];
	h->uuid_lo = uuid[1];
	h->magic = KY_RING_MAGIC;
	h->version = KY_RING_VERSION;
	h->size = sizeof(*h);
	KY_GEOMETRY_COPY(h, g);
	h->slot_offset = g->slot_offset;
	h->ctl_offset = g->ctl_offset;
	h->table_offset = g->table_offset;
	h->table_stride = g->table_stride;
	h->data_offset = g->data_offset;
	h->data_stride = g->data_stride;
	h->oldest_offset = g->oldest_offset;
}

void ring_memory_close(struct ring_memory *m)
{
	m->rings_fd = ky_close(m->rings_fd);
	m->consumed_fd = ky_close(m->consumed_fd);
	m->shared_fd = ky_close(m->shared_fd);
}

int ring_memory_share(struct ring_memory *m)
{
	int fd = m->shared_fd < 0 ? memory_open_read_only(m->consumed_fd) : m->shared_fd;

	m->shared_fd = KY_MAX(fd, -1);
	return fd;
}

uint64_t ring_memory_in_use(const struct ring_memory *m)
{
	struct stat st;

	return fstat(m->rings_fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

int ring_memory_make(struct ring_memory *m, const struct ky_geometry *g, int dir, uint32_t number,
	const uint64_t uuid[2])
{
	uint64_t consumed_size = ky_align_up(ky_consumed_size(g->n_rings), 4096);
	char rings[KY_SHM_NAME_MAX], consumed[KY_SHM_NAME_MAX];
	struct ky_set_header header;
	int ret;

	*m = RING_MEMORY_NONE;
	ky_shm_buffers(rings, number);
	ky_shm_positions(consumed, number);
	fill_header(&header, g, number, uuid);
	ret = m->rings_fd = memory_make(
		dir, rings, "kymo-rings", g->total_size, &header, sizeof(header));
	if (ret >= 0)
		ret = m->consumed_fd = memory_make(
			dir, consumed, "kymo-consumed", consumed_size, NULL, 0);
	if (ret >= 0 && ky_fd_in_reserve(m->consumed_fd))
		ret = -EMFILE;
	if (ret < 0) {
		ring_memory_close(m);
		ring_memory_remove(dir, number);
	}
	return KY_MIN(ret, 0);
}

void ring_memory_remove(int dir, uint32_t number)
{
	char name[KY_SHM_NAME_MAX];

	if (dir < 0)
		return;
	ky_shm_buffers(name, number);
	unlinkat(dir, name, 0);
	ky_shm_positions(name, number);
	unlinkat(dir, name, 0);
}

/* Marks a file with its inode, so that a copy of it can be recognised. */
int session_memory_make(int dir)
{
	struct ky_resume_session begin = {0};
	int fd = memory_make(dir, KY_SHM_MEMORY, "kymo-session", 4096, NULL, 0);
	struct stat st;

	if (fd < 0 || dir < 0)
		return fd;
	if (!fstat(fd, &st) && !flock(fd, LOCK_SH | LOCK_NB)) {
		begin.device = st.st_dev;
		begin.file = st.st_ino;
		if (pwrite(fd, &begin, sizeof(begin), 0) == sizeof(begin))
			return fd;
	}
	ky_close(fd);
	return -EIO;
}

/* Bytes of the header and of the words behind it (abi/ring.h). */
#define FIRST_PAGE 4096u

/*
 * Maps the beginning of the set with its pages present, so that an access cannot fail: applications
 * may have punched holes, and memory may be short.
 */
static void *map_first(const struct ring_memory *m, size_t size)
{
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, m->rings_fd, 0);

	if (base == MAP_FAILED)
		return NULL;
	if (madvise(base, size, MADV_POPULATE_WRITE) < 0 && errno != EINVAL) {
		munmap(base, size);
		return NULL;
	}
	return base;
}

static void *map_slots(const struct ring_memory *m, const struct ky_geometry *g)
{
	return map_first(m, g->ctl_offset);
}

struct ky_set_freeze *ring_memory_map_freeze(const struct ring_memory *m)
{
	char *base = map_first(m, FIRST_PAGE);

	return base ? (struct ky_set_freeze *)(void *)(base + KY_SET_FREEZE) : NULL;
}

void ring_memory_set_stopped(const struct ring_memory *m, bool stopped)
{
	const uint64_t word = stopped;

	if (pwrite(m->rings_fd, &word, sizeof(word), KY_SET_STOPPED) != sizeof(word))
		ky_debug("cannot write to the memory of a ring set: %s", strerror(errno));
}

void ring_memory_unmap_freeze(struct ky_set_freeze *f)
{
	munmap((char *)f - KY_SET_FREEZE, FIRST_PAGE);
}

int ring_memory_count_slots(
	const struct ring_memory *m, const struct ky_geometry *g, struct slot_counts *ret_counts)
{
	struct slot_counts n = {0};
	void *base = map_slots(m, g);

	if (!base)
		return -errno;
	n.claimed = ky_slots_claimed(g, base);
	for (uint32_t i = 0; i < n.claimed; i++)
		n.in_use += ky_slot_word(g, base, i) & KY_SLOT_OWNED;
	n.unprepared = __atomic_load_n(&ky_slots_shared(base)->n_unprepared, __ATOMIC_RELAXED);
	munmap(base, g->ctl_offset);
	*ret_counts = n;
	return 0;
}

/*
 * Returns the number of records. The head has the low half of the number. Its block's entry has the
 * number with which the block began.
 */
static uint64_t count_records(const struct ky_geometry *g, void *base, uint32_t ring)
{
	/* Acquire: pairs with the writers' publishing store, which the entry is older than. */
	uint64_t head = __atomic_load_n(&ky_geometry_ctl(g, base, ring)->head, __ATOMIC_ACQUIRE);
	struct ky_block_entry *entry = ky_geometry_entry(g, base, ring, (uint32_t)head);

	return ky_head_count(head, __atomic_load_n(&entry->begin_count, __ATOMIC_RELAXED));
}

static uint64_t count_lost(const struct ky_geometry *g, void *base, uint32_t ring)
{
	const struct ky_ring_ctl *ctl = ky_geometry_ctl(g, base, ring);
	uint64_t sum = 0;

	for (int i = 0; i < KY_LOST_REASONS; i++)
		sum += __atomic_load_n(&ctl->lost[i], __ATOMIC_RELAXED);
	return sum;
}

/* Returns the bytes behind the consumer's position: at most all that the ring has room for. */
static uint64_t count_used(
	const struct ky_geometry *g, void *base, uint32_t ring, uint64_t consumed)
{
	uint64_t head = __atomic_load_n(&ky_geometry_ctl(g, base, ring)->head, __ATOMIC_RELAXED);

	return KY_MIN(ky_head_pos(head, consumed) - consumed, ky_geometry_ring_mask(g) + 1);
}

void ring_memory_count(
	const struct ring_memory *m, const struct ky_geometry *g, struct ring_counts *ret_counts)
{
	size_t size = g->n_rings * sizeof(uint64_t);
	uint64_t *consumed = mmap(NULL, size, PROT_READ, MAP_SHARED, m->consumed_fd, 0);
	void *base = mmap(NULL, g->data_offset, PROT_READ, MAP_SHARED, m->rings_fd, 0);
	uint32_t n = g->n_rings;

	*ret_counts = (struct ring_counts){0};
	if (base == MAP_FAILED || consumed == MAP_FAILED)
		goto unmap;
	if (g->mode == KY_SET_PER_THREAD)
		n = ky_slots_claimed(g, base);
	for (uint32_t i = 0; i < n; i++) {
		ret_counts->recorded += count_records(g, base, i);
		ret_counts->lost += count_lost(g, base, i);
		ret_counts->used += count_used(g, base, i, consumed[i]);
	}
unmap:
	if (consumed != MAP_FAILED)
		munmap(consumed, size);
	if (base != MAP_FAILED)
		munmap(base, g->data_offset);
}

/* The positions' low halves say enough: a ring has at most 2 GiB. */
static uint64_t ring_fill(
	const struct ring_memory *m, const struct ky_geometry *g, void *base, uint32_t ring)
{
	uint64_t head = __atomic_load_n(&ky_geometry_ctl(g, base, ring)->head, __ATOMIC_RELAXED);
	uint64_t size = (uint64_t)g->n_blocks * g->block_size, consumed;

	if (pread(m->consumed_fd, &consumed, sizeof(consumed), (off_t)(ring * sizeof(consumed))) !=
		sizeof(consumed))
		return 0;
	return KY_MIN((uint64_t)((uint32_t)head - (uint32_t)consumed) * 100 / size, UINT64_C(100));
}

uint64_t ring_memory_fill(const struct ring_memory *m, const struct ky_geometry *g)
{
	void *base = mmap(NULL, g->data_offset, PROT_READ, MAP_SHARED, m->rings_fd, 0);
	uint32_t n = g->n_rings;
	uint64_t most = 0;

	if (base == MAP_FAILED)
		return 0;
	if (g->mode == KY_SET_PER_THREAD)
		n = ky_slots_claimed(g, base);
	for (uint32_t i = 0; i < n; i++)
		most = KY_MAX(most, ring_fill(m, g, base, i));
	munmap(base, g->data_offset);
	return most;
}

static void add_reach(
	const struct ky_geometry *g, void *base, uint32_t ring, struct ring_reach *reach)
{
	/* Acquire: pairs with the writers' fence, which the entry is older than. */
	uint64_t oldest = __atomic_load_n(
		&ky_geometry_ctl(g, base, ring)->oldest, __ATOMIC_ACQUIRE);
	const struct ky_block_entry *entry = ky_geometry_entry(g, base, ring, (uint32_t)oldest);
	uint64_t ts = __atomic_load_n(&entry->begin_ts, __ATOMIC_RELAXED);

	if (!oldest)
		return;
	reach->earliest = reach->n ? KY_MIN(reach->earliest, ts) : ts;
	reach->latest = KY_MAX(reach->latest, ts);
	reach->n++;
}

void ring_memory_reach(
	const struct ring_memory *m, const struct ky_geometry *g, struct ring_reach *reach)
{
	void *base = mmap(NULL, g->data_offset, PROT_READ, MAP_SHARED, m->rings_fd, 0);
	uint32_t n = g->n_rings;

	if (base == MAP_FAILED)
		return;
	if (g->mode == KY_SET_PER_THREAD)
		n = ky_slots_claimed(g, base);
	for (uint32_t i = 0; i < n; i++)
		add_reach(g, base, i, reach);
	munmap(base, g->data_offset);
}

int ring_memory_free_slots(
	const struct ring_memory *m, const struct ky_geometry *g, uint32_t process)
{
	void *base = map_slots(m, g);
	uint32_t n;

	if (!base)
		return -errno;
	n = ky_slots_release_process(g, base, process);
	munmap(base, g->ctl_offset);
	return (int)n;
}

int log_memory_make(int dir, const uint64_t uuid[2])
{
	char name[KY_SHM_NAME_MAX];

	ky_shm_metadata(name, uuid[0], uuid[1]);
	return memory_make(dir, name, "kymo-metadata", 0, NULL, 0);
}

/*
 * Checks that a descriptor from another process is the file with this inode number. Some senders
 * are not trusted. An inode number identifies one file only where nobody else makes files: among
 * memfds, or (dir) in the file system of the session's directory.
 */
static int check_file(int dir, int fd, uint64_t file)
{
	struct stat st, ours;

	if (fstat(fd, &st) < 0 || (dir >= 0 && fstat(dir, &ours) < 0))
		return -errno;
	if (st.st_ino != file || st.st_uid != geteuid() || !S_ISREG(st.st_mode))
		return -EBADF;
	return dir < 0 ? KY_MIN(fcntl(fd, F_GET_SEALS), 0) : st.st_dev == ours.st_dev ? 0 : -EBADF;
}

int ring_memory_adopt(struct ring_memory *m, int dir, const int fds[2], const uint64_t files[2])
{
	int ret = check_file(dir, fds[0], files[0]);

	*m = RING_MEMORY_NONE;
	if (!ret)
		ret = check_file(dir, fds[1], files[1]);
	if (!ret)
		ret = m->rings_fd = reopen(fds[0], O_RDWR);
	if (ret >= 0)
		ret = m->consumed_fd = reopen(fds[1], O_RDWR);
	if (ret < 0)
		ring_memory_close(m);
	return KY_MIN(ret, 0);
}

int session_memory_adopt(
	int dir, int fd, uint64_t file, int *ret_fd, struct ky_resume_session *ret_memory)
{
	int ret = check_file(dir, fd, file);

	*ret_memory = (struct ky_resume_session){0};
	if (!ret &&
		pread(fd, ret_memory, sizeof(*ret_memory), 0) < (ssize_t)KY_RESUME_SESSION_OLDEST)
		ret = -EBADMSG;
	if (!ret)
		ret = *ret_fd = reopen(fd, O_RDWR);
	if (ret >= 0 && dir >= 0 && flock(*ret_fd, LOCK_SH | LOCK_NB) < 0)
		ret = -errno;
	return KY_MIN(ret, 0);
}

int log_memory_adopt(int dir, int fd, uint64_t file)
{
	int ret = check_file(dir, fd, file);

	return ret < 0 ? ret : reopen(fd, O_RDWR);
}

/* Highest number in a list like "0-3,8-11", plus 1. */
static uint32_t last_of_list(const char *list)
{
	uint32_t last = 0;
	char *end;

	for (; *list >= '0' && *list <= '9'; list = *end ? end + 1 : end)
		last = (uint32_t)strtoul(list, &end, 10);
	return last + 1;
}

uint32_t possible_cpus(void)
{
	unsigned long mask[CPUS_MAX / 8 / sizeof(long)];
	char list[1024];
	long mask_bytes = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
	ssize_t n = ky_read_text(AT_FDCWD, "/sys/devices/system/cpu/possible", list, sizeof(list));
	uint32_t cpus = n > 0 ? last_of_list(list) : 1;

	/* Not even the calling thread's own CPUs are within what /sys says: believe the mask. */
	for (long i = 0; i < mask_bytes * 8; i++)
		if (mask[(size_t)i / (8 * sizeof(long))] >> ((size_t)i % (8 * sizeof(long))) & 1)
			cpus = KY_MAX(cpus, (uint32_t)i + 1);
	if (n <= 0 && mask_bytes > 0)
		cpus = (uint32_t)mask_bytes * 8;
	return KY_MIN(cpus, (uint32_t)CPUS_MAX);
}
