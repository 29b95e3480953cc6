/* SPDX-License-Identifier: MIT */
#include "consumerd/trace.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "consumerd/trace-dir.h"

#define CHUNK 65536

struct trace *trace_new(
	const struct ky_cons_ring_set *m, int root_fd, bool resume, uint64_t chunk, int log_fd)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (!t) {
		ky_close(log_fd);
		return NULL;
	}
	ky_list_init(&t->node);
	t->root_fd = root_fd;
	t->log_fd = log_fd;
	t->dir_fd = t->index_fd = t->metadata_fd = -1;
	t->resume = resume;
	t->uuid_hi = m->uuid_hi;
	t->uuid_lo = m->uuid_lo;
	t->chunk = chunk;
	t->dir = strdup(m->dir);
	return t->dir ? t : trace_free(t);
}

struct trace *trace_free(struct trace *t)
{
	if (!t)
		return NULL;
	ky_list_remove(&t->node);
	ky_close(t->log_fd);
	ky_close(t->dir_fd);
	ky_close(t->index_fd);
	ky_close(t->metadata_fd);
	free(t->dir);
	free(t);
	return NULL;
}

void trace_uuid(const struct trace *t, uint8_t uuid[KY_CTF_UUID_SIZE])
{
	ky_ctf_uuid(uuid, t->uuid_hi, t->uuid_lo ^ t->chunk);
}

void trace_enter(struct trace *t, uint64_t chunk)
{
	t->dir_fd = ky_close(t->dir_fd);
	t->index_fd = ky_close(t->index_fd);
	t->metadata_fd = ky_close(t->metadata_fd);
	t->n_copied = 0;
	t->chunk = chunk;
}

int trace_open_dirs(struct trace *t, bool create)
{
	int ret = 0;

	if (t->dir_fd < 0)
		ret = trace_dir_open_below(t->root_fd, t->dir, create, &t->dir_fd);
	if (!ret && t->index_fd < 0)
		ret = trace_dir_open_below(t->dir_fd, "index", create, &t->index_fd);
	return ret;
}

void trace_format_uuid(char text[TRACE_UUID_TEXT], uint64_t hi, uint64_t lo)
{
	snprintf(text, TRACE_UUID_TEXT, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(hi >> 32),
		(unsigned)(hi >> 16) & 0xffff, (unsigned)hi & 0xffff, (unsigned)(lo >> 48),
		(unsigned long long)lo & 0xffffffffffff);
}

/* Puts the chunk's UUID in the place of chunk 0's, in the text that the log begins with. */
static int change_uuid(const struct trace *t, char *text, size_t len)
{
	char old[TRACE_UUID_TEXT], new[TRACE_UUID_TEXT];
	char *at;

	if (!t->chunk)
		return 0;
	trace_format_uuid(old, t->uuid_hi, t->uuid_lo);
	trace_format_uuid(new, t->uuid_hi, t->uuid_lo ^ t->chunk);
	at = memmem(text, len, old, strlen(old));
	if (!at)
		return -EBADMSG;
	memcpy(at, new, strlen(new));
	return 0;
}

/* Appends the bytes of the log from n_copied to size; what a failure left is cut off again. */
static int copy_log(struct trace *t, uint64_t size)
{
	char buf[CHUNK];
	uint64_t at = t->n_copied;
	ssize_t n, written = 0;

	while (at < size) {
		n = pread(t->log_fd, buf, KY_MIN(sizeof(buf), size - at), (off_t)at);
		if (n > 0 && !at && change_uuid(t, buf, (size_t)n) < 0)
			return -EBADMSG;
		if (n > 0)
			written = pwrite(t->metadata_fd, buf, (size_t)n, (off_t)at);
		if (n <= 0 || written <= 0) {
			int error = n < 0 || written < 0 ? -errno : -EIO;

			/* Should this fail as well, the next try writes over the same place. */
			return ftruncate(t->metadata_fd, (off_t)t->n_copied) < 0 ? error : error;
		}
		at += (uint64_t)written;
	}
	t->n_copied = size;
	return 0;
}

/*
 * After a restart the text is copied from its beginning, over the same text: it only ever grows,
 * and the dead consumer may have ended in the middle of it.
 */
static int update(struct trace *t)
{
	struct stat st;
	int ret;

	ret = trace_open_dirs(t, true);
	if (ret < 0)
		return ret;
	if (fstat(t->log_fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size <= t->n_copied)
		return 0;
	if (t->metadata_fd < 0)
		ret = trace_dir_open_file(
			t->dir_fd, "metadata", O_CREAT | (t->resume ? 0 : O_EXCL), &t->metadata_fd);
	return ret < 0 ? ret : copy_log(t, (uint64_t)st.st_size);
}

int trace_update(struct trace *t, bool force, uint64_t now_ns)
{
	if (t->root_fd < 0)
		return 0;
	if (!fault_may_try(&t->fault, force, now_ns))
		return t->fault.error;
	return fault_set(&t->fault, update(t), now_ns);
}
