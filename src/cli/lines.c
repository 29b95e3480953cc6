/* SPDX-License-Identifier: MIT */
/*
 * Batches are used in turn. `lock` protects the three counts and `is_ready`, `is_ended`; a batch's
 * contents belong to the reading thread until it is counted in n_filled, to who took it until it is
 * ready, and then to the reading thread again.
 */
#include "cli/lines.h"

#include <pthread.h>

#include "base/processors.h"
#include "cli/progress.h"

#define MAX_THREADS 16
#if KY_SANITIZED
#define N_ITEMS	    32 /* so that tests use other threads, and change between the ways, often */
#define TRIAL_AGAIN 256
#else
#define N_ITEMS	    2048
#define TRIAL_AGAIN (1 << 21)
#endif
#define MAX_VALUES 16384	    /* of a batch, but for its last item's */
#define MAX_BITS   (256 * 1024 * 8) /* likewise, of records */
#define MAX_KEPT   (4 << 20)	    /* text of a batch that is kept for the next */
#define MAX_AHEAD  (16 << 20)	    /* text of a batch that is made before it is written */
#define MAX_TEXT   (64 << 10)	    /* text that is written at once without other threads */
/* Lines whose time is measured, with other threads and without. After TRIAL_AGAIN lines, again. */
#define TRIAL_LINES (16 * N_ITEMS)

struct batch {
	struct ky_item items[N_ITEMS];
	struct ky_values values;
	struct ky_format format; /* as it is before the first item */
	struct ky_buf text;
	size_t first, n; /* items from first on have no text yet */
	uint64_t bits;
	bool is_ready;
};

/*
 * Other threads help only if that is faster. If processors share no cache, as in some virtual
 * machines, to hand items over takes longer than to format them.
 */
enum step {
	STEP_ALONE,   /* measures without other threads */
	STEP_WARM_UP, /* with other threads, whose memory is not in use yet */
	STEP_HELPED,  /* measures with them */
	STEP_DECIDED, /* keeps what was faster */
};

struct cli_lines {
	struct ky_cursor *cursor; /* borrowed; of the reading thread */
	pthread_mutex_t lock;
	pthread_cond_t filled, ready;
	uint64_t n_filled, n_taken, n_written; /* batches */
	bool is_ended;
	bool json;
	bool had_time; /* of the last item before the current batch */
	int64_t last_ns;
	int error;
	bool alone; /* no other thread formats now */
	enum step step;
	uint64_t n_step_lines; /* in this step */
	uint64_t begin_ns;     /* of this step, CLOCK_MONOTONIC */
	double alone_ns;       /* for a line */
	size_t n_batches, n_threads, max_threads;
	struct batch *batches; /* owned; number i is [i % n_batches] */
	struct batch *filling; /* the one that is being filled */
	pthread_t threads[MAX_THREADS];
};

static inline void format_item(
	const struct cli_lines *l, struct batch *b, const struct ky_item *item)
{
	b->text.max = b->text.len + KY_TEXT_MAX;
	if (l->json)
		ky_format_json(&b->format, &b->text, item);
	else
		ky_format_text(&b->format, &b->text, item);
}

/*
 * Makes text of the items, and stops when it is long: a few bytes of a hostile trace may have
 * megabytes of text.
 */
static void format_batch(const struct cli_lines *l, struct batch *b)
{
	while (b->first < b->n && b->text.len < MAX_AHEAD)
		format_item(l, b, &b->items[b->first++]);
}

/* Turns the next batch that nobody has taken into text; the lock is held. */
static void take_output(struct cli_lines *l)
{
	struct batch *b = &l->batches[l->n_taken++ % l->n_batches];

	pthread_mutex_unlock(&l->lock);
	format_batch(l, b);
	pthread_mutex_lock(&l->lock);
	b->is_ready = true;
	pthread_cond_signal(&l->ready);
}

static void *work(void *arg)
{
	struct cli_lines *l = arg;

	pthread_mutex_lock(&l->lock);
	while (!l->is_ended) {
		if (l->n_taken < l->n_filled)
			take_output(l);
		else
			pthread_cond_wait(&l->filled, &l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static void write_text(struct cli_lines *l, struct batch *b)
{
	size_t done = 0;

	if (!l->error)
		l->error = b->text.error;
	while (!l->error && done < b->text.len) {
		ssize_t n = write(STDOUT_FILENO, b->text.data + done, b->text.len - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			l->error = -errno;
	}
	b->text.len = 0;
	if (b->text.cap > MAX_KEPT || b->text.error)
		ky_buf_deinit(&b->text);
}

/* Writes the items that have text, and the others in turns. */
static void write_batch(struct cli_lines *l, struct batch *b)
{
	write_text(l, b);
	while (!l->error && b->first < b->n) {
		format_batch(l, b);
		write_text(l, b);
	}
}

static void empty_batch(struct cli_lines *l, struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		ky_cursor_unref(l->cursor, b->items[i].packet);
	b->first = b->n = b->values.n = b->bits = 0;
	b->is_ready = false;
}

/* Writes the oldest batch, once it is ready, which this thread helps with; the lock is held. */
static void write_oldest(struct cli_lines *l)
{
	struct batch *b = &l->batches[l->n_written % l->n_batches];

	while (!b->is_ready) {
		if (l->n_taken < l->n_filled)
			take_output(l);
		else
			pthread_cond_wait(&l->ready, &l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	write_batch(l, b);
	empty_batch(l, b);
	pthread_mutex_lock(&l->lock);
	l->n_written++;
}

/* Writes all batches that were filled. */
static void write_all(struct cli_lines *l)
{
	pthread_mutex_lock(&l->lock);
	while (l->n_written < l->n_filled)
		write_oldest(l);
	pthread_mutex_unlock(&l->lock);
}

struct ky_item *cli_lines_item(struct cli_lines *l, struct ky_values **ret_values)
{
	struct batch *b = l->filling;

	*ret_values = &b->values;
	return &b->items[b->n];
}

/* Without other threads, the line is made at once. */
static void add_line(struct cli_lines *l)
{
	struct batch *b = l->filling;

	format_item(l, b, &b->items[0]);
	b->values.n = 0;
	if (b->text.len >= MAX_TEXT)
		write_text(l, b);
}

/*
 * Keeps the time that the line behind the batch counts from. Once for a batch, because the other
 * threads read this part of memory with each line.
 */
static void keep_time(struct cli_lines *l, const struct batch *b)
{
	size_t i = b->n;

	while (i > 0 && !b->items[i - 1].has_time)
		i--;
	if (!i)
		return;
	l->had_time = true;
	l->last_ns = b->items[i - 1].ns;
}

static void start_threads(struct cli_lines *l)
{
	while (l->n_threads < l->max_threads &&
		!pthread_create(&l->threads[l->n_threads], NULL, work, l))
		l->n_threads++;
}

/* Changes between the two ways. No item may be without text. */
static void set_alone(struct cli_lines *l, bool alone)
{
	struct batch *b = l->filling;

	if (alone) {
		b->format.had_time = l->had_time;
		b->format.last_ns = l->last_ns;
	} else {
		l->had_time = b->format.had_time;
		l->last_ns = b->format.last_ns;
		write_text(l, b);
	}
	l->alone = alone;
}

static bool is_step_over(const struct cli_lines *l)
{
	switch (l->step) {
	case STEP_WARM_UP:
		return l->n_step_lines >= (l->n_batches + 1) * N_ITEMS;
	case STEP_DECIDED:
		return l->n_step_lines >= TRIAL_AGAIN && l->max_threads;
	default:
		return l->n_step_lines >= TRIAL_LINES;
	}
}

static void begin_step(struct cli_lines *l, enum step step)
{
	l->step = step;
	l->n_step_lines = 0;
	l->begin_ns = cli_now_ns();
}

/* Called between two lines, of which none is without text unless another thread formats it. */
static void end_step(struct cli_lines *l)
{
	double ns = (double)(cli_now_ns() - l->begin_ns) / (double)l->n_step_lines;

	switch (l->step) {
	case STEP_ALONE:
		l->alone_ns = ns;
		start_threads(l);
		if (l->n_threads)
			set_alone(l, false);
		begin_step(l, l->n_threads ? STEP_WARM_UP : STEP_DECIDED);
		break;
	case STEP_WARM_UP:
		begin_step(l, STEP_HELPED);
		break;
	case STEP_HELPED:
		if (ns > l->alone_ns) {
			write_all(l);
			set_alone(l, true);
		}
		begin_step(l, STEP_DECIDED);
		break;
	case STEP_DECIDED:
		if (!l->alone) {
			write_all(l);
			set_alone(l, true);
		}
		begin_step(l, STEP_ALONE);
		break;
	}
}

int cli_lines_add(struct cli_lines *l)
{
	struct batch *b = l->filling;
	const struct ky_item *item;

	l->n_step_lines++;
	if (l->alone) {
		add_line(l);
		if (is_step_over(l))
			end_step(l);
		return l->error;
	}
	item = &b->items[b->n++];
	ky_packet_ref(item->packet);
	if (b->n == 1) {
		b->format.had_time = l->had_time;
		b->format.last_ns = l->last_ns;
	}
	b->bits += item->bits;
	if (b->n < N_ITEMS && b->values.n < MAX_VALUES && b->bits < MAX_BITS)
		return 0;
	keep_time(l, b);
	pthread_mutex_lock(&l->lock);
	l->n_filled++;
	l->filling = &l->batches[l->n_filled % l->n_batches];
	pthread_cond_signal(&l->filled);
	while (l->n_filled - l->n_written == l->n_batches)
		write_oldest(l);
	pthread_mutex_unlock(&l->lock);
	if (is_step_over(l))
		end_step(l);
	return l->error;
}

int cli_lines_flush(struct cli_lines *l)
{
	struct batch *b = l->filling;

	write_all(l);
	write_batch(l, b);
	return l->error;
}

struct cli_lines *cli_lines_new(struct ky_cursor *cursor, const struct ky_format *like, bool json)
{
	struct cli_lines *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->filled, NULL);
	pthread_cond_init(&l->ready, NULL);
	l->json = json;
	l->cursor = cursor;
	l->max_threads = KY_MIN(ky_count_processors() - 1, (size_t)MAX_THREADS);
	l->n_batches = 1 + 2 * l->max_threads;
	l->batches = calloc(l->n_batches, sizeof(*l->batches));
	if (!l->batches) {
		cli_lines_free(l);
		return NULL;
	}
	for (size_t i = 0; i < l->n_batches; i++)
		l->batches[i].format = *like;
	l->filling = l->batches;
	l->alone = true;
	begin_step(l, l->max_threads ? STEP_ALONE : STEP_DECIDED);
	return l;
}

void cli_lines_free(struct cli_lines *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->is_ended = true;
	pthread_cond_broadcast(&l->filled);
	pthread_mutex_unlock(&l->lock);
	for (size_t i = 0; i < l->n_threads; i++)
		pthread_join(l->threads[i], NULL);
	for (size_t i = 0; l->batches && i < l->n_batches; i++) {
		empty_batch(l, &l->batches[i]);
		free(l->batches[i].values.v);
		ky_buf_deinit(&l->batches[i].text);
	}
	pthread_cond_destroy(&l->ready);
	pthread_cond_destroy(&l->filled);
	pthread_mutex_destroy(&l->lock);
	free(l->batches);
	free(l);
}
