/* SPDX-License-Identifier: MIT */
/*
 * The descriptors of a thread are in a slot that it takes at its first event with a counter, without a lock, and gives
 * back at its end. Slots are never unmapped: so a forked child finds all its parent's descriptors, and closes them.
 */
#include "tracer/counter.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "proto/context.h"
#include "tracer/tracer.h"

/* Where the program does not expect its own descriptors, nor a table of descriptors has to grow much. */
#define FD_LOW	   768
#define CHUNK_SIZE 4096u

struct slot {
	uint32_t taken;
	int32_t fd[COUNTERS_MAX]; /* 0: not opened yet; -1: cannot be */
	uint64_t id[COUNTERS_MAX];
};

struct chunk {
	struct chunk *next;
	struct slot slots[(CHUNK_SIZE - sizeof(void *)) / sizeof(struct slot)];
};
static_assert(sizeof(struct chunk) <= CHUNK_SIZE, "a page");

static struct {
	uint32_t type;
	uint64_t config;
} counters[COUNTERS_MAX];
static uint32_t n_counters;

static struct chunk *chunks;
static __thread struct slot *mine KY_THREAD_TLS;
static __thread bool left KY_THREAD_TLS;

uint32_t counter_number(const char *argument)
{
	uint32_t type, i;
	uint64_t config;

	if (!ky_ctx_perf_argument(argument, &type, &config))
		return COUNTERS_MAX;
	for (i = 0; i < n_counters; i++)
		if (counters[i].type == type && counters[i].config == config)
			return i;
	if (n_counters == COUNTERS_MAX)
		return COUNTERS_MAX;
	counters[n_counters].type = type;
	counters[n_counters].config = config;
	return n_counters++;
}

static struct slot *take_free(struct chunk *c)
{
	for (; c; c = c->next)
		for (uint32_t i = 0; i < KY_ARRAY_SIZE(c->slots); i++)
			if (!__atomic_exchange_n(&c->slots[i].taken, 1, __ATOMIC_ACQUIRE))
				return &c->slots[i]; /* acquire: pairs with give_back */
	return NULL;
}

static struct slot *take_slot(void)
{
	/* Acquire: pairs with the release below. */
	struct slot *s = take_free(__atomic_load_n(&chunks, __ATOMIC_ACQUIRE));
	struct chunk *c;

	if (s)
		return s;
	c = mmap(NULL, CHUNK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c == MAP_FAILED)
		return NULL;
	c->slots[0].taken = 1;
	c->next = __atomic_load_n(&chunks, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
		&chunks, &c->next, c, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return &c->slots[0];
}

static int perf_open(uint32_t number, bool exclude_kernel)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = counters[number].type,
		.config = counters[number].config,
		.read_format = PERF_FORMAT_ID,
		.exclude_kernel = exclude_kernel,
		.exclude_hv = exclude_kernel,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Out of the way of the program, which may close low numbers that it does not know. */
static int move_up(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_LOW);

	if (high < 0)
		return fd;
	close(fd);
	return high;
}

static void open_counter(struct slot *s, uint32_t number)
{
	int fd = perf_open(number, false);

	if (fd < 0 && (errno == EACCES || errno == EPERM))
		fd = perf_open(number, true);
	if (fd == 0) /* the program has closed its standard input: leave the number free */
		fd = move_up(fd);
	fd = fd > 0 ? move_up(fd) : -1;
	if (fd > 0 && ioctl(fd, PERF_EVENT_IOC_ID, &s->id[number]) < 0)
		fd = ky_close(fd);
	s->fd[number] = fd > 0 ? fd : -1;
}

/* False when the descriptor is not the counter's any more: the program has closed it. */
static bool read_counter(const struct slot *s, uint32_t number, uint64_t *ret_value)
{
	uint64_t v[2] = {0};

	if (read(s->fd[number], v, sizeof(v)) != sizeof(v) || v[1] != s->id[number])
		return false;
	*ret_value = v[0];
	return true;
}

static struct slot *my_slot(void)
{
	if (!mine && !left) {
		mine = take_slot();
		if (mine && ky_thread_claimed)
			ky_thread_claimed();
	}
	return mine;
}

uint64_t counter_read(uint32_t number)
{
	int saved = errno;
	struct slot *s = number < COUNTERS_MAX ? my_slot() : NULL;
	uint64_t value = 0;

	if (s && !s->fd[number])
		open_counter(s, number);
	if (s && s->fd[number] > 0 && !read_counter(s, number, &value))
		s->fd[number] = -1;
	errno = saved;
	return value;
}

static void give_back(struct slot *s)
{
	uint64_t unused;

	for (uint32_t i = 0; i < COUNTERS_MAX; i++) {
		if (s->fd[i] > 0 && read_counter(s, i, &unused))
			close(s->fd[i]);
		s->fd[i] = 0;
	}
	__atomic_store_n(&s->taken, 0, __ATOMIC_RELEASE); /* pairs with take_free */
}

void counter_reset(void)
{
	for (struct chunk *c = chunks; c; c = c->next)
		for (uint32_t i = 0; i < KY_ARRAY_SIZE(c->slots); i++)
			if (c->slots[i].taken)
				give_back(&c->slots[i]);
	mine = NULL;
}

void counter_release_thread(void)
{
	struct slot *s = mine;

	left = true;
	mine = NULL;
	if (s)
		give_back(s);
}
