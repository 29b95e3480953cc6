/* SPDX-License-Identifier: MIT */
#include "consumerd/stream/trace.h"

#include <sys/stat.h>

#include "consumerd/stream/symbols.h"
#include "svc/check.h"

#define CHUNK 65536

struct trace *trace_new(const struct ky_cons_ring_set *m, struct sink *sink, bool resume,
	uint64_t chunk, int log_fd)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (!t) {
		ky_close(log_fd);
		return NULL;
	}
	ky_list_init(&t->node);
	t->log_fd = log_fd;
	t->resume = resume;
	t->uuid_hi = m->uuid_hi;
	t->uuid_lo = m->uuid_lo;
	t->chunk = chunk;
	t->dir = strdup(m->dir);
	if (!t->dir || sink->ops->open_trace(sink, m->dir, resume, &t->to) < 0)
		return trace_free(t);
	return t;
}

struct trace *trace_free(struct trace *t)
{
	if (!t)
		return NULL;
	ky_list_remove(&t->node);
	ky_close(t->log_fd);
	ky_buf_deinit(&t->formats);
	symbols_free(t->symbols);
	if (t->to)
		t->to->ops->close_trace(t->to);
	free(t->dir);
	free(t);
	return NULL;
}

void trace_uuid(const struct trace *t, uint8_t uuid[KY_CTF_UUID_SIZE])
{
	ky_ctf_uuid(uuid, t->uuid_hi, t->uuid_lo ^ t->chunk);
}

uint32_t trace_user(const struct trace *t)
{
	unsigned uid;

	return sscanf(t->dir, "ust/uid/%u/", &uid) == 1 ? uid : UINT32_MAX;
}

void trace_enter(struct trace *t, uint64_t chunk)
{
	KY_CHECK(chunk == t->chunk + 1);
	t->to->ops->open_chunk(t->to);
	t->n_copied = t->n_formats = t->n_symbols = 0;
	t->chunk = chunk;
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

/* Copies the text at `at` of the log. Returns its length, or -errno. */
static ssize_t copy_text(struct trace *t, uint64_t at, uint64_t size)
{
	char buf[CHUNK];
	ssize_t n = pread(t->log_fd, buf, KY_MIN(sizeof(buf), size - at), (off_t)at);
	int ret;

	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	ret = at ? 0 : change_uuid(t, buf, (size_t)n);
	if (!ret)
		ret = t->to->ops->metadata(t->to, at, buf, (size_t)n);
	return ret < 0 ? ret : n;
}

/*
 * Copies what was appended to the log. After a restart the text is copied from its beginning, over
 * the same text: it only ever grows, and the dead consumer may have ended in the middle of it.
 */
static int copy_log(struct trace *t)
{
	uint64_t at = t->n_copied;
	struct stat st;
	ssize_t n;

	if (fstat(t->log_fd, &st) < 0)
		return -errno;
	for (; at < (uint64_t)st.st_size; at += (uint64_t)n) {
		n = copy_text(t, at, (uint64_t)st.st_size);
		if (n < 0) {
			t->to->ops->cut_metadata(t->to, t->n_copied);
			return (int)n;
		}
	}
	t->n_copied = at;
	return 0;
}

int trace_add_format(struct trace *t, const char *text)
{
	ky_buf_puts(&t->formats, text);
	return t->formats.error;
}

static int write_formats(struct trace *t)
{
	size_t len = t->formats.len - t->n_formats;
	int ret = 0;

	if (len)
		ret = t->to->ops->index(
			t->to, "formats", t->n_formats, t->formats.data + t->n_formats, len);
	if (!ret)
		t->n_formats += len;
	return ret;
}

void trace_set_symbols(struct trace *t, int fd)
{
	if (t->symbols)
		symbols_renew(t->symbols, fd);
	else
		t->symbols = symbols_new(fd);
}

void trace_write_symbols(struct trace *t)
{
	struct symbols *s = t->symbols;

	if (!s || !t->to->ops->keeps || t->fault.error)
		return;
	symbols_look_up(s);
	if (!s->text.error && s->text.len > t->n_symbols &&
		!t->to->ops->index(t->to, "kallsyms", SINK_BEHIND, s->text.data + t->n_symbols,
			s->text.len - t->n_symbols))
		t->n_symbols = s->text.len;
}

static int write_descriptions(struct trace *t)
{
	int ret = copy_log(t);

	return ret < 0 ? ret : write_formats(t);
}

int trace_update(struct trace *t, bool force, uint64_t now_ns)
{
	if (!t->to->ops->keeps)
		return 0;
	if (!fault_may_try(&t->fault, force, now_ns))
		return t->fault.error;
	return fault_set(&t->fault, write_descriptions(t), now_ns);
}

void trace_append(struct trace *t, const char *text, size_t len)
{
	if (t->to->ops->keeps && t->n_copied && !t->fault.error)
		t->to->ops->metadata(t->to, t->n_copied, text, len);
}
