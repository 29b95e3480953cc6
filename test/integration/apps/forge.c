/* SPDX-License-Identifier: MIT */
/*
 * forge WORD VALUE: records events, and after each one overwrites a control word in all of its
 * rings: last_ts of the control block, or begin_ts, begin_count or used of all entries of the block
 * table. If WORD is "triggers", it says that all triggers have fired, each VALUE times, after VALUE
 * ns, and names process 1. Prints "ready" when it has done so once, and ends when it gets a line.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

#include "abi/ring.h"

#define SETS_MAX 16
#define ROUND	 1000 /* events */

static char *sets[SETS_MAX];
static unsigned n_sets;

static void find_sets(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long begin, offset;
	char line[512], write;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "memfd:kymo-") || n_sets == SETS_MAX ||
			sscanf(line, "%lx-%*x %*c%c%*s %lx", &begin, &write, &offset) != 3)
			continue;
		if (write == 'w' && !offset &&
			((struct ky_set_header *)begin)->magic == KY_RING_MAGIC)
			sets[n_sets++] = (char *)begin;
	}
	if (f)
		fclose(f);
}

static void forge_ring(char *base, uint32_t ring, const char *word, uint64_t value)
{
	const struct ky_set_header *h = (const void *)base;
	struct ky_ring_ctl *ctl = (void *)(base + h->ctl_offset);
	struct ky_block_entry *entry = (void *)(base + h->table_offset + ring * h->table_stride);

	if (!strcmp(word, "last_ts"))
		__atomic_store_n(&ctl[ring].last_ts, value, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < h->n_blocks; i++, entry++) {
		uint64_t *at = !strcmp(word, "begin_ts")      ? &entry->begin_ts
			       : !strcmp(word, "begin_count") ? &entry->begin_count
			       : !strcmp(word, "used")	      ? &entry->used
							      : NULL;

		if (at)
			__atomic_store_n(at, value, __ATOMIC_RELAXED);
	}
}

static void forge_triggers(char *base, uint64_t value)
{
	struct ky_set_freeze *f = (void *)(base + KY_SET_FREEZE);

	f->who = UINT64_C(1) << 32 | 1;
	f->ns = f->n_missed = value;
	for (uint32_t i = 0; i < KY_SET_TRIGGERS; i++)
		f->n_met[i] = value;
	__atomic_store_n(&f->recorded, UINT64_MAX, __ATOMIC_SEQ_CST);
	__atomic_store_n(&f->enabled, UINT64_MAX, __ATOMIC_SEQ_CST);
	__atomic_store_n(&f->armed, 0, __ATOMIC_SEQ_CST);
}

static void forge_set(char *base, const char *word, uint64_t value)
{
	if (!strcmp(word, "triggers"))
		forge_triggers(base, value);
	for (uint32_t i = 0; i < ((struct ky_set_header *)base)->n_rings; i++)
		forge_ring(base, i, word, value);
}

int main(int argc, char **argv)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t value = argc > 2 ? strtoull(argv[2], NULL, 0) : 0, n = 0;

	kymo_event(forge, own, kymo_u64(seq, n++));
	find_sets();
	while (argc > 2 && n_sets && (n % ROUND || !poll(&input, 1, 0))) {
		kymo_event(forge, own, kymo_u64(seq, n++));
		for (unsigned i = 0; i < n_sets; i++)
			forge_set(sets[i], argv[1], value);
		if (n == 2)
			puts("ready");
		fflush(stdout);
	}
	return 0;
}
