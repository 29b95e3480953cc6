/* SPDX-License-Identifier: MIT */
/*
 * Tests counters of threads: the contents of pages, with pages that the test makes; and the
 * kernel's own counters, by system calls.
 */
#include "tracer/counter.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "proto/context.h"
#include "tracer/counter-page.h"
#include "tracer/tracer.h"

struct tracer tracer = {.has_rseq = true};

/* --- pages --- */

static struct perf_event_mmap_page page;
static uint64_t pmc;
static uint32_t asked; /* the counter that was read last */
static unsigned n_reads, n_changes;

/* Interrupts the thread n_changes times at that point; its counter continues elsewhere. */
static uint64_t fake_pmc(uint32_t n)
{
	uint64_t value = pmc;

	asked = n;
	n_reads++;
	if (n_changes) {
		n_changes--;
		page.lock += 2;
		page.index++;
		page.offset += 1000;
		pmc = 7;
	}
	return value;
}

static void make_page(uint16_t width, int64_t offset, uint64_t value)
{
	page = (struct perf_event_mmap_page){.index = 3, .offset = offset, .pmc_width = width};
	page.cap_user_rdpmc = 1;
	page.time_enabled = page.time_running = 123;
	pmc = value;
	n_reads = n_changes = 0;
}

static void expect_count(uint64_t want)
{
	uint64_t got = 0;

	assert_true(counter_page_read(&page, fake_pmc, &got));
	assert_int_equal(got, want);
}

static void expect_refusal(void)
{
	uint64_t untouched = 5;

	assert_false(counter_page_read(&page, fake_pmc, &untouched));
	assert_int_equal(untouched, 5);
	assert_int_equal(n_reads, 0);
}

static void test_page(void **unused)
{
	(void)unused;
	make_page(48, 1000, 234);
	expect_count(1234);
	assert_int_equal(asked, 2);
}

/* The kernel lets counters begin at a negative number, so that they interrupt at 0. */
static void test_width(void **unused)
{
	(void)unused;
	make_page(48, 1000, UINT64_C(0xffffffffff9c)); /* -100 in 48 bits */
	expect_count(900);
	make_page(48, INT64_C(1) << 47, UINT64_C(0x800000000005));
	expect_count(5);
	make_page(48, 0, UINT64_C(0xabcd000000000005)); /* bits above the width have no meaning */
	expect_count(5);
	make_page(48, -50, UINT64_C(0x7fffffffffff));
	expect_count((UINT64_C(1) << 47) - 51);
	make_page(40, 10, (UINT64_C(1) << 40) - 1);
	expect_count(9);
	make_page(64, 10, UINT64_MAX);
	expect_count(9);
}

static void test_change_meanwhile(void **unused)
{
	(void)unused;
	make_page(48, 1000, 234);
	n_changes = 1;
	expect_count(2007);
	assert_int_equal(n_reads, 2);
	assert_int_equal(asked, 3);
	make_page(48, 1000, 234);
	n_changes = 3;
	expect_count(4007);
	assert_int_equal(n_reads, 4);
}

static void test_kernel_alone(void **unused)
{
	(void)unused;
	make_page(48, 1000, 234);
	page.index = 0;
	expect_refusal();
	make_page(48, 1000, 234);
	page.cap_user_rdpmc = 0;
	expect_refusal();
	make_page(48, 1000, 234);
	page.time_running--;
	expect_refusal();
}

/* --- the kernel's counters --- */

static uint32_t software(uint64_t config)
{
	char argument[32];
	struct ky_app_uncounted failure;
	uint32_t number;

	snprintf(argument, sizeof(argument), "%x:%" PRIx64, PERF_TYPE_SOFTWARE, config);
	number = counter_number(argument);
	assert_true(number < COUNTERS_MAX);
	assert_int_equal(counter_number(argument), number);
	counter_probe(number);
	if (counter_failure(number, &failure)) {
		print_message("[  SKIPPED ] the kernel lets nobody count: %s\n",
			strerror(-failure.status));
		skip();
	}
	return number;
}

static void touch_pages(unsigned n)
{
	volatile char *p = mmap(
		NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	madvise((char *)p, n * 4096, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < n; i++)
		p[i * 4096] = 1;
	munmap((char *)p, n * 4096);
}

static unsigned count_high_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 768; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Returns the number of lines in /proc/self/maps that are pages of counters. */
static unsigned count_pages(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "[perf_event]") != NULL;
	fclose(f);
	return n;
}

static uint64_t rise(uint32_t number)
{
	uint64_t before = counter_read(number);

	touch_pages(50);
	return counter_read(number) - before;
}

/* A counter of the kernel's own has no place in the processor: its page is not kept. */
static void test_kernel_counts(void **unused)
{
	uint32_t faults = software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t n;

	(void)unused;
	errno = 77;
	n = rise(faults);
	assert_in_range(n, 50, 70);
	assert_int_equal(errno, 77);
	assert_int_equal(count_high_descriptors(), 1);
	assert_int_equal(count_pages(), 0);
}

static void *in_thread(void *arg)
{
	uint32_t *numbers = arg;

	assert_in_range(rise(numbers[0]), 50, 70);
	counter_read(numbers[1]);
	assert_int_equal(count_high_descriptors(), 3);
	counter_release_thread();
	assert_int_equal(counter_read(numbers[0]), 0);
	return NULL;
}

static void test_thread(void **unused)
{
	uint32_t numbers[] = {
		software(PERF_COUNT_SW_PAGE_FAULTS), software(PERF_COUNT_SW_TASK_CLOCK)};
	pthread_t t;

	(void)unused;
	counter_read(numbers[0]);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&t, NULL, in_thread, numbers), 0);
		pthread_join(t, NULL);
		assert_int_equal(count_high_descriptors(), 1);
	}
}

static void test_child(void **unused)
{
	uint32_t faults = software(PERF_COUNT_SW_PAGE_FAULTS);
	int status;
	pid_t pid;

	(void)unused;
	rise(faults);
	pid = fork();
	if (!pid) {
		uint64_t n;

		counter_reset();
		if (count_high_descriptors())
			_exit(1);
		n = rise(faults);
		_exit(n >= 50 && n <= 70 && count_high_descriptors() == 1 ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(rise(faults) >= 50);
}

/* An application closes descriptors that it does not know, and opens files under the numbers. */
static void test_closed(void **unused)
{
	uint32_t faults = software(PERF_COUNT_SW_PAGE_FAULTS);
	uint32_t clock = software(PERF_COUNT_SW_TASK_CLOCK);
	int fd;

	(void)unused;
	counter_read(faults);
	assert_true(counter_read(clock) > 0);
	assert_int_equal(count_high_descriptors(), 2);
	fd = open("/dev/zero", O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(dup2(fd, 768), 768);
	assert_int_equal(dup2(fd, 769), 769);
	close(fd);
	assert_int_equal(counter_read(faults), 0);
	counter_release_thread();
	assert_int_equal(count_high_descriptors(), 2); /* they are not ours to close */
	close(768);
	close(769);
}

static void test_failure(void **unused)
{
	struct ky_app_uncounted failure;
	uint32_t number = counter_number("ffff:12345678abc");

	(void)unused;
	assert_false(counter_failure(number, &failure));
	counter_probe(number);
	assert_true(counter_failure(number, &failure));
	assert_int_equal(failure.type, 0xffff);
	assert_int_equal(failure.config, 0x12345678abc);
	assert_true(failure.status < 0);
	assert_int_equal(counter_read(number), 0);
	counter_reset();
	assert_false(counter_failure(number, &failure));
	assert_int_equal(counter_read(number), 0); /* a thread notes this too */
	assert_true(counter_failure(number, &failure));
}

static void test_numbers(void **unused)
{
	char argument[16];
	uint32_t n = 0;

	(void)unused;
	assert_int_equal(counter_number("no counter"), COUNTERS_MAX);
	for (unsigned i = 0; i < 2 * COUNTERS_MAX; i++) {
		snprintf(argument, sizeof(argument), "fffe:%x", i);
		n = counter_number(argument);
	}
	assert_int_equal(n, COUNTERS_MAX);
	counter_probe(n);
	assert_int_equal(counter_read(n), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_change_meanwhile),
		cmocka_unit_test(test_kernel_alone),
		cmocka_unit_test(test_kernel_counts),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_closed), /* this thread has no counters afterwards */
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
