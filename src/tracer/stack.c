/* SPDX-License-Identifier: MIT */
/*
 * Only the stack that the C library gave the thread is walked: between the caller's frame and its
 * upper end everything is mapped. On any other stack (sigaltstack, coroutines) nothing is known
 * about the memory above, and the list is the caller alone. The bounds of the thread's stack are
 * looked up once for each thread.
 */
#include "tracer/stack.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "base/util.h"

/* glibc's upper end of the main thread's stack. */
extern void *__libc_stack_end __attribute__((weak));

/* The kernel keeps at least this much below the main thread's stack free of other mappings. */
#define MAIN_STACK_MAX ((uintptr_t)64 << 20)

static __thread struct {
	uintptr_t begin, end;
	bool looked;
} mine KY_THREAD_TLS;

static void find_main_stack(void)
{
	uintptr_t size = MAIN_STACK_MAX, top;
	struct rlimit limit;

	if (!&__libc_stack_end)
		return;
	top = (uintptr_t)__libc_stack_end;
	if (ky_sys_getrlimit(RLIMIT_STACK, &limit) == 0)
		size = (uintptr_t)KY_MIN((rlim_t)size, limit.rlim_cur);
	mine.begin = top > size ? top - size : 0;
	mine.end = top;
}

/* Parses "BEGIN-END ..." in hexadecimal. */
static bool parse_range(const char *line, uintptr_t *ret_begin, uintptr_t *ret_end)
{
	char *dash, *space;

	*ret_begin = (uintptr_t)strtoull(line, &dash, 16);
	if (*dash != '-')
		return false;
	*ret_end = (uintptr_t)strtoull(dash + 1, &space, 16);
	return *space == ' ';
}

/* Finds the mapping that contains an address. */
static void find_mapping(uintptr_t address, uintptr_t *ret_begin, uintptr_t *ret_end)
{
	int fd = ky_sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	char buf[512];
	ssize_t n;

	while (fd >= 0 && (n = ky_sys_read(fd, buf + have, sizeof(buf) - 1 - have)) > 0) {
		uintptr_t begin = 0, end = 0;
		char *line = buf, *newline;

		have += (size_t)n;
		buf[have] = '\0';
		for (; (newline = strchr(line, '\n')); line = newline + 1) {
			if (!parse_range(line, &begin, &end) || address < begin || address >= end)
				continue;
			*ret_begin = begin;
			*ret_end = end;
			ky_close(fd);
			return;
		}
		have = (size_t)(buf + have - line);
		if (have == sizeof(buf) - 1)
			have = 0; /* a long path: the rest is no range */
		memmove(buf, line, have);
	}
	ky_close(fd);
}

/*
 * Finds the stack. A thread's control block lies in the mapping of its stack, above it; the main
 * thread's lies anywhere.
 */
static __attribute__((cold, noinline)) void find_stack(void)
{
	uintptr_t thread = (uintptr_t)pthread_self();
	int saved = errno;

	mine.looked = true;
	if (ky_thread_number() == ky_process_number()) {
		find_main_stack();
	} else {
		find_mapping(thread, &mine.begin, &mine.end);
		mine.end = mine.end ? thread : 0;
	}
	errno = saved;
}

void stack_walk(const struct tracer_caller *caller, uint8_t *to, uint32_t n)
{
	uintptr_t frame = caller->frame, low = caller->stack;
	uint64_t address = caller->ip;
	uint32_t i = 0;

	if (ky_unlikely(!mine.looked))
		find_stack();
	if (low < mine.begin || low >= mine.end)
		frame = 0;
	memset(to, 0, n * sizeof(address));
	while (address && i < n) {
		const uintptr_t *at = (const uintptr_t *)frame;

		memcpy(to + i++ * sizeof(address), &address, sizeof(address));
		/*
		 * The next frame lies above the last one: it is the caller's frame pointer, then
		 * the return address.
		 */
		if (frame <= low || frame % sizeof(frame) || frame > mine.end - 2 * sizeof(frame))
			break;
		address = at[1];
		low = frame;
		frame = at[0];
		if (address >= mine.begin && address < mine.end)
			break; /* no code there: it was no frame */
	}
}
