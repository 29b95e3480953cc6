/* SPDX-License-Identifier: MIT */
/*
 * The descriptors of a thread are in a slot that it claims at its first event with a counter,
 * without a lock, and releases at its end. Slots are never unmapped: so a forked child finds all
 * its parent's descriptors, and closes them. The kernel does not give the child the parent's
 * counter pages; the child drops their addresses.
 */
#include "tracer/counter.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "proto/context.h"
#include "tracer/counter-page.h"
#include "tracer/tracer.h"

/*
 * Numbers at which an application does not expect its own descriptors, and for which a table of
 * descriptors hardly has to grow.
 */
#define FD_LOW	   768
#define CHUNK_SIZE 4096u

struct slot {
	uint32_t taken;
	int32_t fd[COUNTERS_MAX]; /* 0: not opened yet; -1: cannot be opened */
	uint64_t id[COUNTERS_MAX];
	struct perf_event_mmap_page *page[COUNTERS_MAX]; /* NULL: only the kernel reads it */
};

struct chunk {
	struct chunk *next;
	struct slot slots[(CHUNK_SIZE - sizeof(void *)) / sizeof(struct slot)];
};
static_assert(sizeof(struct chunk) <= CHUNK_SIZE, "a page");

static struct {
	struct chunk *chunks;
	uint32_t n;
	struct {
		uint32_t type;
		uint64_t config;
		int error; /* errno of the last thread that could not open it; 0: all could */
	} v[COUNTERS_MAX];
} counters KY_WRITTEN_EARLY;
static __thread struct slot *mine KY_THREAD_TLS;
static __thread bool left KY_THREAD_TLS;

uint32_t counter_number(const char *argument)
{
	uint32_t type, i;
	uint64_t config;

	if (!ky_ctx_perf_argument(argument, &type, &config))
		return COUNTERS_MAX;
	for (i = 0; i < counters.n; i++)
		if (counters.v[i].type == type && counters.v[i].config == config)
			return i;
	if (counters.n == COUNTERS_MAX)
		return COUNTERS_MAX;
	counters.v[counters.n].type = type;
	counters.v[counters.n].config = config;
	return counters.n++;
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
	struct slot *s = take_free(__atomic_load_n(&counters.chunks, __ATOMIC_ACQUIRE));
	struct chunk *c;

	if (s)
		return s;
	c = mmap(NULL, CHUNK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c == MAP_FAILED)
		return NULL;
	c->slots[0].taken = 1;
	c->next = __atomic_load_n(&counters.chunks, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
		&counters.chunks, &c->next, c, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return &c->slots[0];
}

static int perf_open(uint32_t number, bool exclude_kernel)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = counters.v[number].type,
		.config = counters.v[number].config,
		.read_format = PERF_FORMAT_ID,
		.exclude_kernel = exclude_kernel,
		.exclude_hv = exclude_kernel,
	};

	return (int)ky_call(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/*
 * Opens the counter with the widest permitted scope. Returns -1 if none is permitted, and notes
 * that.
 */
static int open_noted(uint32_t number)
{
	int fd = perf_open(number, false);

	if (fd < 0 && (errno == EACCES || errno == EPERM))
		fd = perf_open(number, true);
	if (fd < 0)
		__atomic_store_n(&counters.v[number].error, errno, __ATOMIC_RELAXED);
	return fd;
}

/*
 * Moves the descriptor to a high number. The application may close low numbers that it does not
 * know.
 */
static int move_up(int fd)
{
	int high = ky_sys_fcntl(fd, F_DUPFD_CLOEXEC, FD_LOW);

	if (high < 0)
		return fd;
	ky_sys_close(fd);
	return high;
}

#ifdef __x86_64__
static uint64_t read_pmc(uint32_t n)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(n));
	return (uint64_t)high << 32 | low;
}

/*
 * Returns true if a thread may read the processor's counter itself. It may not under valgrind,
 * which knows neither the instruction nor restartable sequences. Nor may it with two kinds of
 * cores: a thread that is moved right before the instruction would be killed if the other core has
 * fewer counters.
 */
static bool can_read_pmc(void)
{
	return tracer.has_rseq && ky_sys_access("/sys/bus/event_source/devices/cpu_atom", F_OK) < 0;
}
#else
static uint64_t read_pmc(uint32_t n)
{
	return n;
}

static bool can_read_pmc(void)
{
	return false;
}
#endif

/*
 * Maps the counter's page. Returns NULL if it is useless, or there are too many
 * (perf_event_mlock_kb).
 */
static struct perf_event_mmap_page *map_page(int fd)
{
	struct perf_event_mmap_page *page;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);

	if (!can_read_pmc())
		return NULL;
	page = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (page->cap_user_rdpmc)
		return page;
	munmap(page, size);
	return NULL;
}

static void open_counter(struct slot *s, uint32_t number)
{
	int fd;

	s->fd[number] =
		-1; /* a handler that records meanwhile gets 0: the counter has not started */
	fd = open_noted(number);
	if (fd >= 0)
		fd = move_up(fd);
	/* 0: the application has closed its standard input, and may need the number. */
	if (fd <= 0 || ky_sys_ioctl(fd, PERF_EVENT_IOC_ID, &s->id[number]) < 0) {
		ky_close(fd);
		return;
	}
	s->page[number] = map_page(fd);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	s->fd[number] = fd;
}

/*
 * Reads the counter from the kernel. Returns false if the application has closed the descriptor,
 * which may now be another file.
 */
static bool ask_kernel(const struct slot *s, uint32_t number, uint64_t *ret_value)
{
	uint64_t v[2] = {0};

	if (ky_sys_read(s->fd[number], v, sizeof(v)) != sizeof(v) || v[1] != s->id[number])
		return false;
	*ret_value = v[0];
	return true;
}

static bool read_counter(const struct slot *s, uint32_t number, uint64_t *ret_value)
{
	if (s->page[number] && counter_page_read(s->page[number], read_pmc, ret_value))
		return true;
	return ask_kernel(s, number, ret_value);
}

void counter_probe(uint32_t number)
{
	if (number < COUNTERS_MAX)
		ky_close(open_noted(number));
}

bool counter_failure(uint32_t number, struct ky_app_uncounted *ret_failure)
{
	int error = __atomic_load_n(&counters.v[number].error, __ATOMIC_RELAXED);

	if (!error)
		return false;
	ret_failure->type = counters.v[number].type;
	ret_failure->config = counters.v[number].config;
	ret_failure->status = -error;
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
		if (s->page[i])
			munmap(s->page[i], (size_t)sysconf(_SC_PAGESIZE));
		if (s->fd[i] > 0 && ask_kernel(s, i, &unused))
			ky_sys_close(s->fd[i]);
		s->page[i] = NULL;
		s->fd[i] = 0;
	}
	__atomic_store_n(&s->taken, 0, __ATOMIC_RELEASE); /* pairs with take_free */
}

void counter_reset(void)
{
	for (struct chunk *c = counters.chunks; c; c = c->next) {
		for (uint32_t i = 0; i < KY_ARRAY_SIZE(c->slots); i++) {
			memset(c->slots[i].page, 0, sizeof(c->slots[i].page));
			if (c->slots[i].taken)
				give_back(&c->slots[i]);
		}
	}
	for (uint32_t i = 0; i < counters.n; i++)
		counters.v[i].error = 0;
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
