/* SPDX-License-Identifier: MIT */
/*
 * Reads stream files of a trace that has only emit:record (emit.c), as docs/trace-format.md
 * describes them. It is faster than any reader. It checks that each record's values belong
 * together, and that in each file the values of a thread rise: no record is there twice, torn, or
 * out of order. Prints the sums over all files: "RECORDS DISCARDED".
 *
 *   tally FILE...
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER	  128
#define N_KEYS	  65536 /* threads of all programs */
#define N_THREADS 16	/* threads of a program */

struct record {
	uint32_t process, thread;
	uint64_t seq, check;
};

static uint64_t next_seq[N_KEYS]; /* of a thread, in this file */
static const char *path;

static void fail(const char *what, size_t at)
{
	fprintf(stderr, "%s: %s at %zu\n", path, what, at);
	exit(1);
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static uint64_t word(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static void check_record(const uint8_t *p, size_t at)
{
	struct record r;
	uint64_t *next;

	memcpy(&r, p, sizeof(r));
	if (r.check != mix((uint64_t)r.process << 48 | (uint64_t)r.thread << 32 | r.seq))
		fail("values that do not belong together", at);
	if (r.thread >= N_THREADS || r.process >= N_KEYS / N_THREADS)
		fail("more threads than there can be", at);
	next = &next_seq[r.process * N_THREADS + r.thread];
	if (r.seq < *next)
		fail("a record that is out of order, or there twice,", at);
	*next = r.seq + 1;
}

static uint64_t check_records(const uint8_t *data, size_t at, size_t end)
{
	uint64_t n = 0;

	for (; at < end; n++) {
		at += (data[at] & 31) == 31 ? 13 : 4;
		if (end - at < sizeof(struct record) || at > end)
			fail("a record that crosses its packet's end", at);
		check_record(data + at, at);
		at += sizeof(struct record);
	}
	return n;
}

static void check_file(const uint8_t *data, size_t size, uint64_t *n_records, uint64_t *n_discarded)
{
	uint64_t discarded = 0, content, packet, n;

	memset(next_seq, 0, sizeof(next_seq));
	for (size_t at = 0; at < size; at += packet) {
		if (size - at < HEADER)
			fail("no packet", at);
		content = word(data + at + 96) / 8;
		packet = word(data + at + 104) / 8;
		if (content < HEADER || packet < content || packet > size - at)
			fail("no packet", at);
		n = check_records(data, at + HEADER, at + content);
		if (n != word(data + at + 80))
			fail("another number of records than the packet says", at);
		*n_records += n;
		discarded = word(data + at + 120);
	}
	*n_discarded += discarded;
}

int main(int argc, char **argv)
{
	uint64_t n_records = 0, n_discarded = 0;
	struct stat st;
	void *data;
	int fd;

	for (int i = 1; i < argc; i++) {
		path = argv[i];
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0)
			fail("cannot be read", 0);
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data == MAP_FAILED)
			fail("cannot be mapped", 0);
		check_file(data, (size_t)st.st_size, &n_records, &n_discarded);
		munmap(data, (size_t)st.st_size);
		close(fd);
	}
	printf("%llu %llu\n", (unsigned long long)n_records, (unsigned long long)n_discarded);
	return 0;
}
