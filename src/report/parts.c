/* SPDX-License-Identifier: MIT */
#include "report/parts.h"

#include <pthread.h>
#include <unistd.h>
#include <zlib.h>

#define MAX_THREADS   8
#define N_JOBS	      (2 * MAX_THREADS)
#define PART_NAME_MAX 32

/*
 * How zlib searches for repetitions. Lines of text repeat the line before: the first place that
 * matches is nearly as good as the best, and takes half of the time. Columns are few bytes.
 */
struct search {
	int level, good, lazy, nice, chain;
};

static const struct search search_text = {3, 4, 32, 258, 12};
static const struct search search_columns = {6, 8, 16, 258, 64};

enum state { FREE, WAITS, IS_PACKED, IS_READY };

struct job {
	char name[PART_NAME_MAX];
	const struct search *search;
	struct ky_buf raw, text;
	enum state state;
	int error;
};

struct ky_parts {
	FILE *to;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t threads[MAX_THREADS];
	size_t n_threads;
	struct job jobs[N_JOBS]; /* a ring: the job of part i is i % N_JOBS */
	uint64_t n_added, n_started, n_written;
	bool ends;
	int error;
};

static void put_base64(struct ky_buf *b, const uint8_t *p, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *to = ky_buf_reserve(b, (n + 2) / 3 * 4);

	if (!to)
		return;
	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16;

		v |= i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0;
		v |= i + 2 < n ? p[i + 2] : 0;
		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
		*to++ = i + 2 < n ? digits[v & 63] : '=';
	}
	b->len += (n + 2) / 3 * 4;
}

/* Makes the element of a part. */
static void pack(struct job *j)
{
	const struct search *s = j->search;
	uLong room = compressBound(j->raw.len) + 64;
	uint8_t *packed = malloc(room);
	z_stream z = {.next_in = (uint8_t *)j->raw.data,
		.avail_in = (uInt)j->raw.len,
		.next_out = packed,
		.avail_out = (uInt)room};

	j->error = j->raw.error;
	if (!j->error && (!packed || deflateInit2(&z, s->level, Z_DEFLATED, -15, 8,
					     Z_DEFAULT_STRATEGY) != Z_OK))
		j->error = -ENOMEM;
	if (!j->error) {
		deflateTune(&z, s->good, s->lazy, s->nice, s->chain);
		if (deflate(&z, Z_FINISH) != Z_STREAM_END)
			j->error = -ENOMEM;
		deflateEnd(&z);
		j->text.len = 0;
		ky_buf_printf(&j->text, "<script type=\"kymo\" id=\"%s\">", j->name);
		put_base64(&j->text, packed, z.total_out);
		ky_buf_puts(&j->text, "</script>\n");
		if (j->text.error)
			j->error = j->text.error;
	}
	free(packed);
	ky_buf_deinit(&j->raw);
}

static void *run_worker(void *arg)
{
	struct ky_parts *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct job *j = &p->jobs[p->n_started % N_JOBS];

		if (p->n_started == p->n_added) {
			if (p->ends)
				break;
			pthread_cond_wait(&p->changed, &p->lock);
			continue;
		}
		p->n_started++;
		j->state = IS_PACKED;
		pthread_mutex_unlock(&p->lock);
		pack(j);
		pthread_mutex_lock(&p->lock);
		j->state = IS_READY;
		pthread_cond_broadcast(&p->changed);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

struct ky_parts *ky_parts_new(FILE *to)
{
	struct ky_parts *p = calloc(1, sizeof(*p));
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	if (!p)
		return NULL;
	p->to = to;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	while (p->n_threads < (size_t)KY_MAX(1, KY_MIN(n, MAX_THREADS)) &&
		!pthread_create(&p->threads[p->n_threads], NULL, run_worker, p))
		p->n_threads++;
	return p;
}

/* Writes the oldest part; waits until it is packed. The caller has the lock. */
static void write_oldest(struct ky_parts *p)
{
	struct job *j = &p->jobs[p->n_written % N_JOBS];

	if (!p->n_threads && j->state == WAITS) { /* no thread could be made */
		p->n_started++;
		pack(j);
		j->state = IS_READY;
	}
	while (j->state != IS_READY)
		pthread_cond_wait(&p->changed, &p->lock);
	if (!p->error)
		p->error = j->error;
	if (!p->error && fwrite(j->text.data, 1, j->text.len, p->to) != j->text.len)
		p->error = errno ? -errno : -EIO;
	j->state = FREE;
	p->n_written++;
}

void ky_parts_add(struct ky_parts *p, const char *kind, size_t number, struct ky_buf *raw)
{
	struct job *j;

	pthread_mutex_lock(&p->lock);
	if (p->n_added - p->n_written == N_JOBS)
		write_oldest(p);
	j = &p->jobs[p->n_added % N_JOBS];
	snprintf(j->name, sizeof(j->name), "%s%zu", kind, number);
	j->search = *kind == 'p' ? &search_text : &search_columns;
	j->raw = *raw;
	*raw = (struct ky_buf){0};
	j->state = WAITS;
	p->n_added++;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

int ky_parts_finish(struct ky_parts *p)
{
	int error;

	if (!p)
		return 0;
	pthread_mutex_lock(&p->lock);
	while (p->n_written < p->n_added)
		write_oldest(p);
	p->ends = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < p->n_threads; i++)
		pthread_join(p->threads[i], NULL);
	for (size_t i = 0; i < N_JOBS; i++) {
		ky_buf_deinit(&p->jobs[i].raw);
		ky_buf_deinit(&p->jobs[i].text);
	}
	error = p->error;
	free(p);
	return error;
}
