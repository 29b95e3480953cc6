/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes what a receiver of traces gets: the input is a list of segments in a short form, of which
 * each becomes a whole one with its checksum, or the stream as it is. Nothing may be made outside
 * of the recording's directory.
 */
#include "ship/packer.h"
#include "ship/receiver.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

#define RAW 512u /* what compressed payloads become */

/* The checksum that a sender would compute. */
static uint32_t crc_of(const struct segment *s, const uint8_t *payload)
{
	uint8_t raw[RAW];

	if (s->codec != SEGMENT_ZSTD)
		return segment_crc(payload, s->length);
	return packer_unpack(payload, s->length, raw, RAW) ? 0 : segment_crc(raw, RAW);
}

/*
 * Each segment has 4 bytes: type, and 10 for each codec; file, offset, length; its payload
 * follows.
 */
static void handle_all(struct receiver *r, const uint8_t *p, size_t n)
{
	int ret = 0;

	while (n >= 4 && !ret) {
		struct segment s = {.type = p[0] % 10u,
			.codec = p[0] / 10u % 3,
			.raw = RAW,
			.file = p[1],
			.offset = p[2],
			.length = p[3]};
		uint8_t head[SEGMENT_HEAD], *payload;

		p += 4;
		n -= 4;
		s.length = (uint32_t)KY_MIN((size_t)s.length, n);
		s.crc = crc_of(&s, p);
		segment_encode(&s, head);
		if (segment_decode(head, &s) < 0)
			return;
		payload = malloc(s.length + 1u);
		if (!payload)
			return;
		memcpy(payload, p, s.length);
		ret = receiver_handle(r, &s, payload);
		if (ret < 0 && !*r->why)
			abort();
		free(payload);
		p += s.length;
		n -= s.length;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char dir[] = "/tmp/kymo-fuzz-ship-XXXXXX", in[64];
	struct receiver r;
	struct segment s;
	struct stat st;
	int fd;

	if (!mkdtemp(dir))
		abort();
	snprintf(in, sizeof(in), "%s/in", dir);
	mkdir(in, 0700);
	fd = open(in, O_RDONLY | O_DIRECTORY);
	if (size >= SEGMENT_HEAD && !segment_decode(data, &s) && s.length > SEGMENT_PAYLOAD_MAX)
		abort();
	receiver_init(&r, fd);
	r.max = 4096;
	handle_all(&r, data, size);
	receiver_deinit(&r);
	close(fd);
	/* Of the two directories, each has no other entry. */
	if (stat(dir, &st) < 0 || st.st_nlink > 3)
		abort();
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
