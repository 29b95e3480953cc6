/* SPDX-License-Identifier: MIT */
/*
 * `lock` protects the numbers of the slices that are taken and written, and the error. The output,
 * and what follows from the line written last, belong to the thread whose turn it is.
 *
 * The first line of a slice shows the time since the line before. So its event is kept, and the
 * line is made when the slice is written.
 */
#include "cli/slices.h"

#include <pthread.h>
#include <unistd.h>

#include "base/processors.h"
#include "base/vec.h"
#include "cli/lines.h"
#include "reader/reader.h"

#define MAX_THREADS 16
#if KY_SANITIZED
#define SLICE_MIN ((uint64_t)1) /* so that tests have many */
#else
#define SLICE_MIN ((uint64_t)512 << 10) /* bytes: smaller ones cost more than they gain */
#endif
#define SLICE_MAX     ((uint64_t)4 << 20)
#define BORDERS	      4 /* a slice has so many times the packets that its borders cut */
#define MIN_OF_THREAD 2 /* slices, or a thread is not worth it */
#define MAX_SLICES    ((size_t)1 << 16)
#define MAX_TEXT      ((size_t)16 << 20) /* of a slice: more is not made in advance */

/* A report on the standard error, between two lines. */
struct note {
	bool is_first; /* before all lines of the slice */
	size_t at;     /* bytes of text before it, without the first line */
	struct ky_buf text;
};

/* The state of one thread. */
struct worker {
	struct ky_packets packets; /* the buffers of all its slices */
	struct ky_reading reading;
	struct ky_format format;
	struct ky_item first, item;
	struct ky_values first_values, values;
	bool has_first;
	struct ky_buf text; /* of all lines but the first */
	KY_VEC(struct note) notes;
	int64_t last_ns;
	bool any;
};

struct job {
	const struct cli_slices *s;
	struct ky_select *slices; /* owned */
	size_t n_slices;
	pthread_mutex_t lock;
	pthread_cond_t turn;
	size_t n_taken, n_written;
	bool is_ended; /* before all are written */
	int error;     /* of memory */
	struct cli_slices_result *result;
};

/* --- reading a slice --- */

static bool is_selected(const struct ky_select *s, const struct ky_item *item)
{
	return item->ns >= s->from_ns && item->ns <= s->to_ns;
}

static int add_note(struct worker *w, const struct ky_item *item)
{
	struct note note = {.is_first = !w->has_first, .at = w->text.len};
	struct ky_format format = {.safe = true};

	ky_format_lost(&format, &note.text, item);
	if (note.text.error || ky_vec_add(&w->notes, note) < 0) {
		ky_buf_deinit(&note.text);
		return -ENOMEM;
	}
	return 0;
}

/* Returns 0, -ENOMEM, or -EAGAIN: the slice cannot be printed by itself. */
static int add_item(const struct job *job, struct worker *w, bool is_in_first)
{
	const struct ky_item *item = is_in_first ? &w->first : &w->item;

	w->any = true;
	if (item->kind == KY_ITEM_DAMAGED)
		return -EAGAIN;
	if (item->kind != KY_ITEM_EVENT)
		return add_note(w, item);
	w->last_ns = item->ns;
	if (is_in_first) {
		ky_packet_ref(item->packet);
		w->has_first = true;
		w->format.had_time = true;
		w->format.last_ns = item->ns;
		return 0;
	}
	cli_lines_format(&w->format, &w->text, item, job->s->json);
	return w->text.error || w->text.len > MAX_TEXT ? -EAGAIN : 0;
}

static int read_slice(const struct job *job, struct worker *w, const struct ky_select *slice)
{
	const struct ky_trace_reader_options quiet = {0};
	int64_t last_ns = INT64_MIN;
	struct ky_totals totals;
	int r = ky_reading_init(&w->reading, job->s->query, job->s->want, slice, &quiet);

	w->format = *job->s->like;
	if (!r)
		ky_cursor_set_buffers(w->reading.cursor, &w->packets);
	while (!r) {
		bool is_in_first = !w->has_first;
		struct ky_item *item = is_in_first ? &w->first : &w->item;
		struct ky_values *values = is_in_first ? &w->first_values : &w->values;

		values->n = 0;
		r = ky_cursor_next(w->reading.cursor, item, values);
		if (r <= 0)
			break;
		if (ky_query_is_misplaced(slice, item, last_ns))
			return -EAGAIN;
		last_ns = item->ns;
		r = is_selected(slice, item) ? add_item(job, w, is_in_first) : 0;
	}
	if (r)
		return r;
	ky_cursor_totals(w->reading.cursor, &totals);
	return totals.is_doubtful ? -EAGAIN : 0;
}

static void reset_worker(struct worker *w)
{
	for (size_t i = 0; i < w->notes.n; i++)
		ky_buf_deinit(&w->notes.v[i].text);
	w->notes.n = 0;
	if (w->has_first)
		ky_cursor_unref(w->reading.cursor, w->first.packet);
	w->has_first = w->any = false;
	w->text.len = 0;
	ky_reading_deinit(&w->reading);
}

static void deinit_worker(struct worker *w)
{
	reset_worker(w);
	ky_vec_deinit(&w->notes);
	ky_packets_deinit(&w->packets);
	ky_buf_deinit(&w->text);
	free(w->first_values.v);
	free(w->values.v);
}

/* --- writing it --- */

static int write_first(const struct job *job, struct worker *w)
{
	struct ky_format f = *job->s->like;
	struct ky_buf line = {0};
	int r;

	f.had_time = job->result->had_time;
	f.last_ns = job->result->last_ns;
	cli_lines_format(&f, &line, &w->first, job->s->json);
	r = line.error ? line.error : cli_lines_write(line.data, line.len);
	ky_buf_deinit(&line);
	return r;
}

/* Writes the text up to `to`. */
static int write_part(struct worker *w, size_t *at, size_t to)
{
	int r = cli_lines_write(w->text.data + *at, to - *at);

	*at = to;
	return r;
}

static int write_slice(const struct job *job, struct worker *w)
{
	bool has_first = false;
	size_t at = 0;
	int r = 0;

	if (w->notes.n)
		cli_progress_erase(job->s->progress);
	for (size_t i = 0; i <= w->notes.n && !r; i++) {
		const struct note *note = i < w->notes.n ? &w->notes.v[i] : NULL;

		if (w->has_first && !has_first && !(note && note->is_first)) {
			r = write_first(job, w);
			has_first = true;
		}
		if (!r && w->text.len)
			r = write_part(w, &at, note ? note->at : w->text.len);
		if (!r && note)
			fwrite(note->text.data, 1, note->text.len, stderr);
	}
	if (w->has_first) {
		job->result->had_time = true;
		job->result->last_ns = w->last_ns;
	}
	job->result->any |= w->any;
	return r;
}

/* --- threads --- */

/* Waits until all slices before are written. Returns false if this one will never be. */
static bool wait_turn(struct job *job, size_t i)
{
	bool is_ended;

	pthread_mutex_lock(&job->lock);
	while (!job->is_ended && job->n_written < i)
		pthread_cond_wait(&job->turn, &job->lock);
	is_ended = job->is_ended;
	pthread_mutex_unlock(&job->lock);
	return !is_ended;
}

static void end_turn(struct job *job, bool is_written, int error)
{
	pthread_mutex_lock(&job->lock);
	if (is_written)
		job->n_written++;
	else
		job->is_ended = true;
	job->error = error;
	pthread_cond_broadcast(&job->turn);
	pthread_mutex_unlock(&job->lock);
}

static void print_slice(struct job *job, struct worker *w, size_t i)
{
	int r = read_slice(job, w, &job->slices[i]);

	if (!wait_turn(job, i))
		return;
	if (!r)
		job->result->error = write_slice(job, w);
	if (!r && cli_progress_is_due(job->s->progress))
		cli_progress_draw(job->s->progress, i + 1, job->n_slices);
	end_turn(job, !r && !job->result->error, r == -ENOMEM ? r : 0);
}

static bool take_slice(struct job *job, size_t *ret_i)
{
	bool any;

	pthread_mutex_lock(&job->lock);
	any = !job->is_ended && job->n_taken < job->n_slices;
	*ret_i = job->n_taken;
	job->n_taken += any;
	pthread_mutex_unlock(&job->lock);
	return any;
}

static void *print_slices(void *arg)
{
	struct worker w = {0};
	struct job *job = arg;
	size_t i;

	while (take_slice(job, &i)) {
		print_slice(job, &w, i);
		reset_worker(&w);
	}
	deinit_worker(&w);
	return NULL;
}

static void run_threads(struct job *job, size_t n_wanted)
{
	pthread_t threads[MAX_THREADS];
	size_t n = 0;

	pthread_mutex_init(&job->lock, NULL);
	pthread_cond_init(&job->turn, NULL);
	while (n + 1 < n_wanted && !pthread_create(&threads[n], NULL, print_slices, job))
		n++;
	print_slices(job);
	while (n > 0)
		pthread_join(threads[--n], NULL);
	pthread_cond_destroy(&job->turn);
	pthread_mutex_destroy(&job->lock);
}

/*
 * The bytes of a slice. Its borders cut one packet of each stream, which is read on both sides. So
 * large packets, or many streams, need large slices.
 */
static uint64_t slice_bytes(const struct ky_trace_reader *r)
{
	uint64_t cut = 0;

	for (size_t i = 0; i < r->n_streams; i++)
		cut += r->streams[i]->n_places ? r->streams[i]->n_bytes / r->streams[i]->n_places
					       : 0;
	return KY_SANITIZED ? SLICE_MIN : KY_MAX(SLICE_MIN, BORDERS * cut);
}

/* Small traces need no index. */
static bool is_small(const struct ky_trace_reader *r, size_t n_threads)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->n_streams; i++)
		bytes += r->streams[i]->n_bytes;
	return bytes < MIN_OF_THREAD * n_threads * SLICE_MIN;
}

int cli_slices_print(const struct cli_slices *s, struct cli_slices_result *ret)
{
	size_t n_threads = KY_MIN(ky_count_processors(), (size_t)MAX_THREADS);
	struct job job = {.s = s, .result = ret};
	uint64_t bytes;

	*ret = (struct cli_slices_result){0};
	if (n_threads < 2 || is_small(s->query->reader, n_threads))
		return 0;
	if (ky_trace_reader_index(s->query->reader) < 0)
		return -ENOMEM;
	bytes = slice_bytes(s->query->reader);
	if (bytes > SLICE_MAX)
		return 0;
	if (ky_query_slices(s->query, MAX_SLICES, bytes, 0, &job.slices, &job.n_slices) < 0)
		return -ENOMEM;
	if (job.n_slices >= MIN_OF_THREAD * n_threads) {
		run_threads(&job, n_threads);
		ret->all = job.n_written == job.n_slices;
		ret->has_begin = !ret->all && job.n_written;
		ret->begin_ns = ret->has_begin ? job.slices[job.n_written].slice_begin_ns : 0;
	}
	free(job.slices);
	return job.error;
}
