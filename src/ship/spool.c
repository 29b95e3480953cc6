/* SPDX-License-Identifier: MIT */
#include "ship/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include "ship/files.h"

#define URL_MAX 4096u

/* Makes a hole in a file for trial, and looks whether it is seen. */
static bool can_punch(int fd)
{
	static const uint8_t page[KY_CTF_PAGE] = {1};

	return pwrite(fd, page, sizeof(page), URL_MAX) == sizeof(page) &&
	       !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, URL_MAX, sizeof(page)) &&
	       lseek(fd, URL_MAX, SEEK_HOLE) == URL_MAX && !ftruncate(fd, URL_MAX);
}

int spool_mark(int trace, const char *url)
{
	char there[URL_MAX] = "", mine[URL_MAX] = "";
	_cleanup_close_ int fd = openat(
		trace, FILES_SPOOL, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);

	if (fd < 0 || pread(fd, there, sizeof(there), 0) < 0)
		return -errno;
	snprintf(mine, sizeof(mine), "%s", url);
	if (*there)
		return memcmp(there, mine, sizeof(mine)) ? -EEXIST : 0;
	if (!can_punch(fd)) {
		unlinkat(trace, FILES_SPOOL, 0);
		return -EOPNOTSUPP;
	}
	return files_write(fd, mine, sizeof(mine), 0);
}

/* Stores the whole pages of a packet behind its header. Returns false if there are none. */
static bool pages_of(const struct ky_index_entry *e, off_t *ret_begin, off_t *ret_end)
{
	*ret_begin = (off_t)ky_align_up(e->offset + sizeof(struct ky_ctf_packet), KY_CTF_PAGE);
	*ret_end = (off_t)((e->offset + e->size) / KY_CTF_PAGE * KY_CTF_PAGE);
	return *ret_begin < *ret_end;
}

int spool_punch(int stream, const struct ky_index_entry *e)
{
	off_t begin, end;

	if (!pages_of(e, &begin, &end))
		return 0;
	return fallocate(stream, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin) < 0
		       ? -errno
		       : 0;
}

bool spool_is_hole(int stream, const struct ky_index_entry *e)
{
	off_t begin, end, data;

	if (!pages_of(e, &begin, &end))
		return false;
	data = lseek(stream, begin, SEEK_DATA);
	return data < 0 ? errno == ENXIO : data >= end;
}

int spool_expire(int index, uint64_t i, const struct ky_index_entry *e)
{
	struct ky_index_entry expired = *e;

	int ret;

	if (!e->n_events)
		return 0;
	expired.n_events = 0;
	ret = files_write(index, &expired, sizeof(expired), ky_index_offset(i));
	/* The other end must not hear of it before this disk does. */
	return !ret && fdatasync(index) < 0 ? -errno : ret;
}

int spool_add_up(struct spool_sum *sum, int stream, int index, uint64_t n)
{
	struct ky_index_entry e;
	struct ky_ctf_packet p;

	if (n < sum->n)
		*sum = (struct spool_sum){0};
	for (; sum->n < n; sum->n++) {
		if (pread(index, &e, sizeof(e), (off_t)ky_index_offset(sum->n)) != sizeof(e))
			return -EIO;
		if (e.n_events)
			continue;
		if (pread(stream, &p, sizeof(p), (off_t)e.offset) != sizeof(p))
			return -EIO;
		sum->events += p.n_events;
	}
	return 0;
}

void spool_change_packet(struct ky_ctf_packet *p, uint64_t expired_before, bool expired)
{
	p->events_discarded += expired_before;
	if (!expired)
		return;
	p->events_discarded += p->n_events;
	p->n_events = 0;
	p->content_bits = 8 * sizeof(*p);
}

void spool_change_entry(struct ky_index_entry *e, uint64_t expired)
{
	e->discarded += expired;
}
