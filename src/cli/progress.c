/* SPDX-License-Identifier: MIT */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "reader/reader.h"

#define FIRST_NS UINT64_C(1000000000)
#define EACH_NS	 UINT64_C(250000000)
#define WIDTH	 30

uint64_t cli_now_ns(void)
{
	return ky_clock_ns(CLOCK_MONOTONIC);
}

void cli_progress_init(struct cli_progress *p)
{
	uint64_t now = cli_now_ns();

	*p = (struct cli_progress){.begin_ns = now, .next_ns = now + FIRST_NS};
	p->is_wanted = isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO);
}

bool cli_progress_is_due(const struct cli_progress *p)
{
	return p->is_wanted && cli_now_ns() >= p->next_ns;
}

void cli_progress_draw(struct cli_progress *p, uint64_t done, uint64_t total)
{
	uint64_t now = cli_now_ns(), left_ns = 0;
	unsigned part;

	done = KY_MIN(done, total);
	part = total ? (unsigned)((double)done / (double)total * 1000) : 0;
	if (part)
		left_ns = (now - p->begin_ns) / part * (1000 - part);
	fprintf(stderr, "\r%3u %% [%-*.*s] %llu s left \033[K", part / 10, WIDTH,
		(int)(part * WIDTH / 1000), "##############################",
		(unsigned long long)(left_ns / 1000000000 + 1));
	fflush(stderr);
	p->is_shown = true;
	p->next_ns = now + EACH_NS;
}

void cli_progress_erase(struct cli_progress *p)
{
	if (!p->is_shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	p->is_shown = false;
}

/* Draws the bar in whichever thread finds it due. A trace that is read again begins again. */
static void note_read(void *arg, size_t n)
{
	struct cli_progress *p = arg;
	uint64_t n_read = __atomic_add_fetch(&p->n_read, n, __ATOMIC_RELAXED);

	if (!p->n_total || pthread_mutex_trylock(&p->lock))
		return;
	if (cli_progress_is_due(p))
		cli_progress_draw(p, n_read % p->n_total, p->n_total);
	pthread_mutex_unlock(&p->lock);
}

struct cli_progress *cli_progress_watch(struct cli_progress *p, struct ky_trace_reader_options *o)
{
	cli_progress_init(p);
	p->is_wanted = isatty(STDERR_FILENO);
	pthread_mutex_init(&p->lock, NULL);
	o->read = p->is_wanted ? note_read : NULL;
	o->read_arg = p;
	return p;
}

void cli_progress_expect(struct cli_progress *p, const struct ky_trace_reader *r)
{
	for (size_t i = 0; i < r->n_streams; i++)
		for (size_t k = 0; k < r->streams[i]->n_files; k++)
			p->n_total += r->streams[i]->files[k].size;
}

void cli_progress_end(struct cli_progress **progress)
{
	struct cli_progress *p = *progress;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	cli_progress_erase(p);
	p->is_wanted = false;
	pthread_mutex_unlock(&p->lock);
	*progress = NULL;
}
