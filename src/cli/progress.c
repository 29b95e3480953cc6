/* SPDX-License-Identifier: MIT */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

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
