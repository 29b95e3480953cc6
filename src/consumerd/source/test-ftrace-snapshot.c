/* SPDX-License-Identifier: MIT */
/*
 * Copies of a kernel's ring in memory, of which the kernel's part is played: the access to a page
 * that is protected lets it write.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "consumerd/source/ftrace-snapshot.h"
#include "kernel/page.h"

#define SIZE 4096u
#define LEN  64u /* bytes of events in a sub-buffer */

enum { NEXT, CURRENT, AFTER_NEXT, N }; /* by place; the kernel has just written CURRENT */

static uint8_t *ring;

static void write_page(uint32_t i, uint64_t clock)
{
	memcpy(ring + i * SIZE, &clock, sizeof(clock));
	memcpy(ring + i * SIZE + 8, &(uint64_t){LEN}, sizeof(uint64_t));
}

static void on_access(int sig)
{
	(void)sig;
	mprotect(ring + AFTER_NEXT * SIZE, SIZE, PROT_READ | PROT_WRITE);
	write_page(NEXT, 40);
	write_page(AFTER_NEXT, 50);
}

static struct ftrace_copy copy_ring(void)
{
	struct ftrace_copy c = {0};

	assert_int_equal(ftrace_copy_ring(&c, ring, N, SIZE), 0);
	return c;
}

static uint64_t next_clock(struct ftrace_copy *c)
{
	uint8_t page[SIZE];

	return ftrace_copy_next(c, page) ? ky_load64(page) : 0;
}

static void fill_ring(void)
{
	write_page(NEXT, 10);
	write_page(AFTER_NEXT, 20);
	write_page(CURRENT, 30);
}

static void test_order(void **state)
{
	struct ftrace_copy c;

	fill_ring();
	c = copy_ring();
	assert_int_equal(next_clock(&c), 10);
	assert_int_equal(next_clock(&c), 20);
	assert_int_equal(next_clock(&c), 30);
	assert_int_equal(next_clock(&c), 0);
	ftrace_copy_close(&c);
}

/* The kernel writes two sub-buffers, of which only the second was not noted before. */
static void test_written_while_noted(void **state)
{
	struct ftrace_copy c;

	fill_ring();
	signal(SIGSEGV, on_access);
	mprotect(ring + AFTER_NEXT * SIZE, SIZE, PROT_NONE);
	c = copy_ring();
	signal(SIGSEGV, SIG_DFL);
	assert_int_equal(next_clock(&c), 30);
	assert_int_equal(next_clock(&c), 0);
	ftrace_copy_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_written_while_noted),
	};

	ring = mmap(NULL, N * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return ring == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
