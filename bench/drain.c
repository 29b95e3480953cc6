/* SPDX-License-Identifier: MIT */
/*
 * drain METHOD FILE BYTES [BYTES/S]: writes that many bytes from memory to a file, as a consumer
 * does, and prints the CPU seconds that it took: the least that draining can cost. It writes a MiB
 * at a time, which is half of a ring with default settings. With a rate, it writes each MiB when
 * the MiB would have been recorded, because a processor that was idle takes longer for the same
 * work. Methods:
 *
 *   write      plain
 *   behind     write, then let the kernel write out and drop from its cache what was written before
 *   uncached   write that leaves nothing in the page cache (RWF_DONTCACHE)
 *   direct     O_DIRECT
 *
 * Exit status 3: the file system does not support the method.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (1u << 20)
#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x80
#endif

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/*
 * As consumers do: starts to write out the last chunk, waits for the one before, and drops that
 * from the page cache.
 */
static int write_behind(int fd, off_t at)
{
	off_t before = at - CHUNK;

	if (sync_file_range(fd, at, CHUNK, SYNC_FILE_RANGE_WRITE) < 0)
		return -errno;
	if (before < 0)
		return 0;
	if (sync_file_range(fd, before, CHUNK,
		    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
			    SYNC_FILE_RANGE_WAIT_AFTER) < 0)
		return -errno;
	return -posix_fadvise(fd, before, CHUNK, POSIX_FADV_DONTNEED);
}

static int write_chunk(int fd, const char *method, void *from, off_t at)
{
	struct iovec iov = {from, CHUNK};
	ssize_t n = pwritev2(fd, &iov, 1, at, strcmp(method, "uncached") ? 0 : RWF_DONTCACHE);

	if (n != (ssize_t)CHUNK)
		return n < 0 ? -errno : -EIO;
	return strcmp(method, "behind") ? 0 : write_behind(fd, at);
}

/* Waits until `at` bytes would have been recorded; does not wait if there is no rate (0). */
static void wait_until(const struct timespec *start, off_t at, uint64_t rate)
{
	uint64_t ns = rate ? (uint64_t)start->tv_nsec + (uint64_t)((double)at * 1e9 / (double)rate)
			   : 0;
	struct timespec due = {
		start->tv_sec + (time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	if (rate)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

int main(int argc, char **argv)
{
	off_t bytes = argc == 4 || argc == 5 ? (off_t)strtoull(argv[3], NULL, 10) : 0;
	uint64_t rate = argc == 5 ? strtoull(argv[4], NULL, 10) : 0;
	struct timespec start;
	double begin;
	void *from;
	int fd, r = 0;

	if (bytes <= 0) {
		fprintf(stderr, "usage: drain write|behind|uncached|direct FILE BYTES [BYTES/S]\n");
		return 2;
	}
	if (posix_memalign(&from, 4096, CHUNK))
		return 1;
	memset(from, 0x5a, CHUNK);
	fd = open(argv[2],
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC |
			(strcmp(argv[1], "direct") ? 0 : O_DIRECT),
		0600);
	if (fd < 0)
		return errno == EINVAL ? 3 : 1;
	begin = cpu_seconds();
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (off_t at = 0; at < bytes && !r; at += CHUNK) {
		wait_until(&start, at + CHUNK, rate);
		r = write_chunk(fd, argv[1], from, at);
	}
	if (r) {
		fprintf(stderr, "drain: %s: %s\n", argv[1], strerror(-r));
		return r == -EOPNOTSUPP || r == -EINVAL ? 3 : 1;
	}
	printf("%.6f\n", cpu_seconds() - begin);
	free(from);
	close(fd);
	return 0;
}
