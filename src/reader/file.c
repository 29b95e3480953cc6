/* SPDX-License-Identifier: MIT */
#include "reader/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#define MAX_UNUSED ((size_t)16 << 20) /* bytes of buffers that are kept for later */
#define MIN_BUFFER ((size_t)4096)

void ky_files_init(struct ky_files *f)
{
	pthread_mutex_init(&f->lock, NULL);
	ky_list_init(&f->recent);
	f->n_open = 0;
}

void ky_files_deinit(struct ky_files *f)
{
	pthread_mutex_destroy(&f->lock);
}

void ky_handle_init(struct ky_handle *h)
{
	ky_list_init(&h->link);
	h->fd = -1;
	h->n_users = 0;
}

static void close_handle(struct ky_handle *h, struct ky_files *f)
{
	ky_list_remove(&h->link);
	close(h->fd);
	h->fd = -1;
	f->n_open--;
}

void ky_handle_deinit(struct ky_handle *h, struct ky_files *f)
{
	if (h->fd >= 0)
		close_handle(h, f);
}

static bool close_oldest(struct ky_files *f)
{
	if (ky_list_empty(&f->recent))
		return false;
	close_handle(ky_container_of(f->recent.next, struct ky_handle, link), f);
	return true;
}

int ky_file_open_at(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -ENODATA;
}

/* The lock is held. */
static int open_handle(struct ky_handle *h, struct ky_files *f, const char *path)
{
	int fd;

	while (f->n_open >= KY_FILES_OPEN_MAX && close_oldest(f))
		;
	do
		fd = ky_file_open_at(AT_FDCWD, path);
	while ((fd == -EMFILE || fd == -ENFILE) && close_oldest(f));
	if (fd < 0)
		return fd;
	h->fd = fd;
	f->n_open++;
	return 0;
}

static int begin_use(struct ky_handle *h, struct ky_files *f, const char *path)
{
	int r = 0;

	pthread_mutex_lock(&f->lock);
	if (h->fd < 0)
		r = open_handle(h, f, path);
	else if (!h->n_users)
		ky_list_remove(&h->link);
	if (!r)
		h->n_users++;
	pthread_mutex_unlock(&f->lock);
	return r;
}

static void end_use(struct ky_handle *h, struct ky_files *f)
{
	pthread_mutex_lock(&f->lock);
	if (!--h->n_users)
		ky_list_append(&f->recent, &h->link);
	pthread_mutex_unlock(&f->lock);
}

static ssize_t read_all(int fd, uint8_t *to, size_t n, uint64_t offset)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = pread(fd, to + done, n - done, (off_t)(offset + done));

		if (!r)
			break;
		if (r < 0 && errno != EINTR)
			return -errno;
		done += r > 0 ? (size_t)r : 0;
	}
	return (ssize_t)done;
}

ssize_t ky_handle_read(struct ky_handle *h, struct ky_files *f, const char *path, void *to,
	size_t n, uint64_t offset)
{
	ssize_t r = begin_use(h, f, path);

	if (r < 0)
		return r;
	r = read_all(h->fd, to, n, offset);
	end_use(h, f);
	if (f->read && r > 0)
		f->read(f->read_arg, (size_t)r);
	return r;
}

uint64_t ky_handle_skip_hole(
	struct ky_handle *h, struct ky_files *f, const char *path, uint64_t offset)
{
	off_t at;

	if (begin_use(h, f, path) < 0)
		return offset;
	at = lseek(h->fd, (off_t)offset, SEEK_DATA);
	if (at < 0)
		at = errno == ENXIO ? -1 : (off_t)offset;
	end_use(h, f);
	return (uint64_t)at;
}

/* --- buffers --- */

static struct ky_packet *pop(struct ky_packets *pool)
{
	struct ky_packet *p = pool->unused;

	if (!p)
		return calloc(1, sizeof(*p));
	pool->unused = p->next;
	pool->n_unused_bytes -= p->cap;
	return p;
}

static void free_packet(struct ky_packet *p)
{
	free(p->data);
	free(p);
}

struct ky_packet *ky_packet_new(struct ky_packets *pool, size_t n)
{
	struct ky_packet *p = pop(pool);

	if (!p)
		return NULL;
	if (n > p->cap) {
		free(p->data);
		p->cap = KY_MAX(n, MIN_BUFFER);
		p->data = malloc(p->cap);
		if (!p->data) {
			free(p);
			return NULL;
		}
	}
	p->n_users = 1;
	return p;
}

struct ky_packet *ky_packet_borrow(const uint8_t *data)
{
	struct ky_packet *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->data = (uint8_t *)data;
	p->is_borrowed = true;
	p->n_users = 1;
	return p;
}

void ky_packet_release(struct ky_packet *p, struct ky_packets *pool)
{
	p->head = ky_packet_unref(p->head, pool);
	if (p->is_borrowed) {
		free(p);
		return;
	}
	if (pool->n_unused_bytes + p->cap > MAX_UNUSED) {
		free_packet(p);
		return;
	}
	p->next = pool->unused;
	pool->unused = p;
	pool->n_unused_bytes += p->cap;
}

void ky_packets_deinit(struct ky_packets *pool)
{
	struct ky_packet *p = pool->unused, *next;

	for (; p; p = next) {
		next = p->next;
		free_packet(p);
	}
	*pool = (struct ky_packets){0};
}
