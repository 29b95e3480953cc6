/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes both things that 'kymo live' does not trust: the requests of a viewer, and the files of a
 * trace, which another host may have sent. The input is a list of requests in a short form, and
 * bytes that replace some of a sound trace's. A packet that is served has the size that its index
 * said.
 */
#include "live/viewer.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "ctf/index.h"

#define STREAM_SIZE 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void write_file(int dir, const char *path, const void *data, size_t n)
{
	int fd = openat(dir, path, O_WRONLY | O_CREAT, 0600);

	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	close(fd);
}

/* Bytes of the input, at places that it says, replace those of a file. */
static size_t spoil(uint8_t *file, size_t n_file, const uint8_t *data, size_t n)
{
	size_t n_changes = n ? data[0] % 8u : 0, used = n > 0;

	for (; n_changes && n - used >= 3; n_changes--, used += 3)
		file[(data[used] | (size_t)data[used + 1] << 8) % n_file] = data[used + 2];
	return used;
}

static size_t make_trace(int dir, const uint8_t *data, size_t n)
{
	static const char metadata[] = "/* CTF 1.8 */\ntrace {\n};\n";
	struct {
		struct ky_index_header header;
		struct ky_index_entry entries[4];
	} index;
	static uint8_t stream[STREAM_SIZE];
	struct ky_watermark w = {3000, 0, 0};
	size_t used;

	memset(stream, 0, sizeof(stream));
	ky_index_header_init(&index.header);
	for (unsigned i = 0; i < 4; i++) {
		struct ky_ctf_packet p = {.magic = KY_CTF_MAGIC,
			.timestamp_begin = 1000u * i,
			.timestamp_end = 1000u * (i + 1),
			.n_events = i,
			.content_bits = 900 * 8,
			.packet_bits = 1024 * 8,
			.seq_num = i};

		memcpy(stream + 1024 * (size_t)i, &p, sizeof(p));
		ky_index_entry_init(&index.entries[i], &p, 1024 * (uint64_t)i);
	}
	used = spoil(stream, sizeof(stream), data, n);
	used += spoil((uint8_t *)&index, sizeof(index), data + used, n - used);
	used += spoil((uint8_t *)&w, sizeof(w), data + used, n - used);
	mkdirat(dir, "kernel", 0700);
	mkdirat(dir, "kernel/index", 0700);
	write_file(dir, "kernel/metadata", metadata, sizeof(metadata) - 1);
	write_file(dir, "kernel/c_0", stream, sizeof(stream));
	write_file(dir, "kernel/c_1_0", stream, sizeof(stream) / 2);
	write_file(dir, "kernel/index/c_0.kyx", &index, sizeof(index));
	write_file(dir, "kernel/index/c_1_0.kyx", &index, sizeof(index));
	write_file(dir, ".watermark", &w, sizeof(w));
	write_file(dir, ".recording", "x", 1);
	return used;
}

/* Each request has 3 bytes: command, the low byte of the stream or session, of the offset. */
static void request_all(struct viewer *v, const uint8_t *data, size_t n)
{
	for (; n >= 3; data += 3, n -= 3) {
		uint8_t request[VIEWER_HEAD + VIEWER_REQUEST_MAX] = {0};
		struct ky_buf reply = {0};
		int ret;

		request[7] = 64;
		request[11] = data[0] & 15;
		/* A session has a number; a stream has it in its upper half. */
		request[VIEWER_HEAD + (data[0] & 16 ? 7 : 3)] = 1;
		request[VIEWER_HEAD + 4] = data[0] & 32 ? 128 : 0;
		if (!(data[0] & 16))
			request[VIEWER_HEAD + 7] = request[VIEWER_HEAD + 18] = data[1];
		request[VIEWER_HEAD + 14] = data[2];
		request[VIEWER_HEAD + 19] = data[1];
		if (viewer_request_size(request, sizeof(request)) != (int64_t)sizeof(request))
			abort();
		ret = viewer_handle(v, request, sizeof(request), &reply);
		if (!ret && !reply.len)
			abort();
		ky_buf_deinit(&reply);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char dir[] = "/tmp/kymo-fuzz-live-XXXXXX";
	struct live live = {.from_start = size & 1, .host = "host"};
	struct ky_buf reply = {0};
	struct viewer viewer;
	size_t used;
	int root;

	if (!mkdtemp(dir))
		abort();
	root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	used = make_trace(root, data, size);
	if (viewer_request_size(data, size) > (int64_t)(VIEWER_HEAD + VIEWER_REQUEST_MAX))
		abort();
	if (live_add(&live, "s", root) < 0)
		abort();
	viewer_init(&viewer, &live);
	viewer_handle(&viewer, data, KY_MIN(size, (size_t)VIEWER_HEAD), &reply);
	ky_buf_deinit(&reply);
	request_all(&viewer, data + used, size - used);
	viewer_deinit(&viewer);
	live_deinit(&live);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
