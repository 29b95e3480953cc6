/* SPDX-License-Identifier: MIT */
/*
 * Batches are used in turn. `lock` protects the two counts and `is_ended`; a batch's contents
 * belong to the thread that reads until it is counted in n_filled, then to the caller's until it is
 * counted in n_taken.
 */
#include "analysis/ahead.h"

#include <pthread.h>

#include "base/processors.h"

#define N_BATCHES  4
#define N_ITEMS	   1024
#define MAX_VALUES 16384	    /* of a batch, but for its last item's */
#define MAX_BITS   (256 * 1024 * 8) /* likewise, of records */

struct batch {
	struct ky_item items[N_ITEMS];
	struct ky_values values;
	size_t n;
	uint64_t bits;
	int result; /* of ky_cursor_next behind the last item; 1: there is another batch */
};

struct ky_ahead {
	struct ky_cursor *cursor; /* borrowed */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t n_filled, n_taken; /* batches; number i is [i % N_BATCHES] */
	bool is_ended, has_thread;
	pthread_t thread;
	struct batch *now; /* the caller's; NULL at first */
	size_t at;	   /* its next item */
	struct batch batches[N_BATCHES];
};

static void empty_batch(struct ky_ahead *a, struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		ky_cursor_unref(a->cursor, b->items[i].packet);
	b->n = b->values.n = b->bits = 0;
}

static void fill_batch(struct ky_ahead *a, struct batch *b)
{
	empty_batch(a, b);
	while (b->n < N_ITEMS && b->values.n < MAX_VALUES && b->bits < MAX_BITS) {
		struct ky_item *item = &b->items[b->n];

		b->result = ky_cursor_next(a->cursor, item, &b->values);
		if (b->result <= 0)
			return;
		item->d = NULL;
		ky_packet_ref(item->packet);
		b->bits += item->bits;
		b->n++;
	}
}

static void *fill_batches(void *arg)
{
	struct ky_ahead *a = arg;

	pthread_mutex_lock(&a->lock);
	while (!a->is_ended) {
		struct batch *b = &a->batches[a->n_filled % N_BATCHES];

		if (a->n_filled - a->n_taken == N_BATCHES) {
			pthread_cond_wait(&a->changed, &a->lock);
			continue;
		}
		pthread_mutex_unlock(&a->lock);
		fill_batch(a, b);
		pthread_mutex_lock(&a->lock);
		a->n_filled++;
		a->is_ended = a->is_ended || b->result <= 0;
		pthread_cond_signal(&a->changed);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

struct ky_ahead *ky_ahead_new(struct ky_cursor *cursor, bool with_thread)
{
	struct ky_ahead *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->cursor = cursor;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	a->has_thread = with_thread && ky_count_processors() > 1 &&
			!pthread_create(&a->thread, NULL, fill_batches, a);
	return a;
}

/* Gives the caller's batch back, and waits for the next. */
static void take_batch(struct ky_ahead *a)
{
	pthread_mutex_lock(&a->lock);
	if (a->now) {
		a->n_taken++;
		pthread_cond_signal(&a->changed);
	}
	while (a->n_filled == a->n_taken)
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
	a->now = &a->batches[a->n_taken % N_BATCHES];
	a->at = 0;
}

static int read_here(struct ky_ahead *a, const struct ky_item **ret_item)
{
	struct batch *b = &a->batches[0];
	int r;

	b->values.n = 0;
	r = ky_cursor_next(a->cursor, &b->items[0], &b->values);
	b->items[0].d = NULL;
	*ret_item = &b->items[0];
	return r;
}

int ky_ahead_next(struct ky_ahead *a, const struct ky_item **ret_item)
{
	if (!a->has_thread)
		return read_here(a, ret_item);
	while (!a->now || a->at == a->now->n) {
		if (a->now && a->now->result <= 0)
			return a->now->result;
		take_batch(a);
	}
	*ret_item = &a->now->items[a->at++];
	return 1;
}

struct ky_ahead *ky_ahead_free(struct ky_ahead *a)
{
	if (!a)
		return NULL;
	pthread_mutex_lock(&a->lock);
	a->is_ended = true;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
	if (a->has_thread)
		pthread_join(a->thread, NULL);
	for (size_t i = 0; i < N_BATCHES; i++) {
		empty_batch(a, &a->batches[i]);
		free(a->batches[i].values.v);
	}
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
	return NULL;
}
