/* SPDX-License-Identifier: MIT */
/*
 * scribble SEED STORES: writes random words to random places of all memory that it shares with the
 * tracer, and punches holes in it, while one of its threads records. Prints "ready" when it has
 * such memory, and waits for a line. Its last act is to write an impossible position into each
 * ring's head, which no random word is certain to hit. Then it prints "stores N events N opened N".
 * The last number counts read-only mappings that could be made writable.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <kymo/tracepoint.h>

#include "abi/ring.h"

#define RANGES_MAX 64
#define REACH	   (32u << 20)	/* bytes of a mapping, to limit the memory that the test uses */
#define CONTROL	   (256u << 10) /* the first bytes get more attempts */
#define HOLE	   (64u << 10)

static struct {
	char *at;
	size_t size, mapped;
	unsigned long offset, file;  /* in which file the mapping begins, and where */
	struct ky_set_header header; /* of the file, before anything was overwritten */
} ranges[RANGES_MAX];
static unsigned n_ranges, n_opened;
static uint64_t state;
static bool finished;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static void take_mapping(const char *line)
{
	unsigned long begin, end, offset, file;
	char write;

	if (!strstr(line, "memfd:kymo-") || n_ranges == RANGES_MAX ||
		sscanf(line, "%lx-%lx %*c%c%*s %lx %*s %lu", &begin, &end, &write, &offset,
			&file) != 5)
		return;
	if (write != 'w') {
		n_opened += !mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE);
		return;
	}
	ranges[n_ranges].at = (char *)begin;
	ranges[n_ranges].mapped = end - begin;
	ranges[n_ranges].offset = offset;
	ranges[n_ranges].file = file;
	if (!offset)
		memcpy(&ranges[n_ranges].header, (char *)begin, sizeof(ranges[0].header));
	ranges[n_ranges++].size = end - begin < REACH ? end - begin : REACH;
}

static void find_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		take_mapping(line);
	if (f)
		fclose(f);
}

/* Returns a random value, a small number, or a value close to the old one. */
static uint64_t value(uint64_t old)
{
	switch (draw(4)) {
	case 0:
		return draw(UINT64_MAX);
	case 1:
		return draw(1 << 16);
	case 2:
		return old + draw(1 << 16) - (1 << 15);
	default:
		return old ^ UINT64_C(1) << draw(64);
	}
}

static void scribble(void)
{
	unsigned r = (unsigned)draw(n_ranges);
	size_t size = ranges[r].size, reach = draw(2) && size > CONTROL ? CONTROL : size;
	char *at = ranges[r].at + draw(reach - sizeof(uint64_t)) / 8 * 8;
	uint64_t word = __atomic_load_n((uint64_t *)at, __ATOMIC_RELAXED);

	if (!draw(1 << 16) && size > HOLE)
		madvise(ranges[r].at + draw(size - HOLE) / 4096 * 4096, HOLE, MADV_REMOVE);
	__atomic_store_n((uint64_t *)at, value(word), __ATOMIC_RELAXED);
}

/* Returns the address of 8 bytes of the file, or NULL if they are not mapped. */
static void *find(unsigned long file, uint64_t offset)
{
	for (unsigned i = 0; i < n_ranges; i++)
		if (ranges[i].file == file && ranges[i].offset <= offset &&
			offset + 8 <= ranges[i].offset + ranges[i].mapped)
			return ranges[i].at + (offset - ranges[i].offset);
	return NULL;
}

/* No record begins in a block's last bytes. */
static void spoil_heads(unsigned long file, const struct ky_set_header *h)
{
	for (uint32_t i = 0; h->magic == KY_RING_MAGIC && i < h->n_rings; i++) {
		uint64_t *head = find(file, h->ctl_offset + (uint64_t)i * KY_CTL_SIZE);

		if (head)
			__atomic_store_n(
				head, draw(UINT64_MAX) | (h->block_size - 1), __ATOMIC_RELAXED);
	}
}

static void *record(void *arg)
{
	unsigned long n = 0;

	while (!__atomic_load_n(&finished, __ATOMIC_ACQUIRE))
		kymo_event(scribble, own, kymo_u64(seq, n++),
			kymo_string(text, "of the one that scribbles"));
	*(unsigned long *)arg = n;
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long n_stores = argc > 2 ? strtoul(argv[2], NULL, 10) : 1, n_events = 0;
	pthread_t recorder;

	state = (argc > 1 ? strtoul(argv[1], NULL, 10) : 0) + 0x9e3779b97f4a7c15;
	kymo_event(scribble, first);
	find_mappings();
	puts(n_ranges ? "ready" : "nothing to write to");
	fflush(stdout);
	getchar();
	if (!n_ranges || pthread_create(&recorder, NULL, record, &n_events))
		return 1;
	for (unsigned long i = 0; i < n_stores; i++)
		scribble();
	__atomic_store_n(&finished, true, __ATOMIC_RELEASE);
	pthread_join(recorder, NULL);
	for (unsigned i = 0; i < n_ranges; i++)
		spoil_heads(ranges[i].file, &ranges[i].header);
	printf("stores %lu events %lu opened %u\n", n_stores, n_events, n_opened);
	return 0;
}
