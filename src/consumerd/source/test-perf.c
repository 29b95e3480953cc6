/* SPDX-License-Identifier: MIT */
/* A buffer of perf events, which the test writes as the kernel does, and two consumers of it. */
#include "consumerd/source/perf.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "abi/kernel.h"
#include "kernel/perf-record.h"

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

struct buffer {
	int ring_fd, memory_fd;
	struct perf_event_mmap_page *head;
};

static int memory_new(size_t size)
{
	int fd = memfd_create("test-perf", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static void buffer_init(struct buffer *b)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE) + KY_PERF_RING;

	b->ring_fd = memory_new(size);
	b->memory_fd = memory_new(ky_kernel_memory_size(1, KY_PERF_PAGE_SIZE));
	b->head = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, b->ring_fd, 0);
	assert_ptr_not_equal(b->head, MAP_FAILED);
}

static void report_lost(struct buffer *b, uint64_t n)
{
	const struct lost_record record = {
		{.type = PERF_RECORD_LOST, .size = sizeof(record)}, 0, n};
	char *data = (char *)b->head + sysconf(_SC_PAGESIZE);

	memcpy(data + b->head->data_head, &record, sizeof(record));
	b->head->data_head += sizeof(record);
}

/* Returns how many lost events a new consumer reports. */
static uint64_t read_lost(const struct buffer *b)
{
	const struct ky_cons_samples_set m = {.n_cpus = 1, .clock = KY_CLOCK_MONOTONIC};
	struct source_set *set;
	struct source *s;
	uint64_t n;

	assert_int_equal(perf_new(&m, b->memory_fd, &set), 0);
	assert_int_equal(perf_add_cpu(set, 0, b->ring_fd), 0);
	s = set->ops->open(set, 0);
	assert_int_equal(s->ops->look(s, true, false), 0);
	n = s->n_lost;
	set->ops->free(set);
	return n;
}

/* Losses that only records report are not forgotten when the consumer is replaced. */
static void test_lost_before_restart(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b);
	report_lost(&b, 7);
	assert_int_equal(read_lost(&b), 7);
	assert_int_equal(read_lost(&b), 7);
	report_lost(&b, 2);
	assert_int_equal(read_lost(&b), 9);
	close(b.ring_fd);
	close(b.memory_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_before_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
