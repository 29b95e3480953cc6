/* SPDX-License-Identifier: MIT */
/*
 * hotpath record|text|twice|disabled N: a loop of N turns with a tracepoint. test-hotpath.py counts
 * its instructions. The program is its own tracer: the header's probe and the ring's writer are the
 * real ones, the ring is memory of this process. It is a thread's ring, because valgrind has no
 * restartable sequences.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <kymo/tracepoint.h>

#include "base/clock.h"
#include "ring/writer.h"

#define BLOCK_SIZE (1u << 24) /* holds all records of a run: the block never changes */
#define MAX_TURNS  100000u

static struct kymo_object *own;
static uint64_t consumed;
static uint8_t used;
static struct ky_set set;
static struct ky_hook hook;

void kymo_object_register(struct kymo_object *object)
{
	own = object;
}

void kymo_object_unregister(struct kymo_object *object)
{
	own = object == own ? NULL : own;
}

static int make_ring(void)
{
	int r;

	set.geo = (struct ky_geometry){
		.mode = KY_SET_PER_THREAD,
		.clock = ky_clock_of_machine(),
		.n_rings = 1,
		.n_blocks = 2,
		.block_size = BLOCK_SIZE,
	};
	r = ky_geometry_init(&set.geo);
	if (r < 0)
		return r;
	set.id = 1;
	set.base = mmap(NULL, set.geo.total_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (set.base == MAP_FAILED)
		return -errno;
	ky_parts_set_whole(&set.parts, set.base);
	set.consumed = &consumed;
	set.used = &used;
	ky_thread_set_process();
	ky_hook_init(&hook, &set, 1);
	ky_hook_switch(&hook, true);
	return 0;
}

static void enable_all(void)
{
	for (const struct kymo_event *const *p = own->begin; p < own->end; p++) {
		ky_record_choose((*p)->state, &hook);
		(*p)->state->enabled = 1;
	}
}

static __attribute__((noinline)) void turn(int32_t i)
{
	kymo_event(hotpath, one_int, kymo_i32(a, i));
}

static __attribute__((noinline)) void turn_text(int32_t i)
{
	kymo_event(
		hotpath, text, kymo_i32(a, i), kymo_i32(b, i), kymo_string(s, "sixteen letters."));
}

int main(int argc, char **argv)
{
	unsigned long n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	bool twice = argc == 3 && !strcmp(argv[1], "twice");
	void (*record)(int32_t) = argc == 3 && !strcmp(argv[1], "text") ? turn_text : turn;
	uint64_t wanted;

	if (!n || n > MAX_TURNS || !own || make_ring() < 0)
		return 2;
	if (strcmp(argv[1], "disabled"))
		enable_all();
	for (unsigned long i = 0; i < n; i++) {
		record((int32_t)i);
		if (twice)
			record((int32_t)i);
	}
	wanted = own->begin[0]->state->enabled ? n * (twice ? 2 : 1) : 0;
	return ky_geometry_ctl(&set.geo, set.base, 0)->reserve >> 32 == wanted ? 0 : 1;
}
