/* SPDX-License-Identifier: MIT */
#include "reader/metadata.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "reader/file.h"

#define MAGIC 0x75d11d57u

/*
 * Header of a packet of metadata, CTF 1.8.3, 7.1: u32 magic, u8 uuid[16], u32 checksum,
 * u32 content bits, u32 packet bits (header included), u8 compression, encryption,
 * checksum scheme, major, minor.
 */
enum {
	AT_CONTENT = 24,
	AT_PACKET = 28,
	AT_COMPRESSION = 32,
	AT_ENCRYPTION = 33,
	HEADER_SIZE = 37,
};

static uint32_t get32(const char *p, bool swapped)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap32(v) : v;
}

/* Appends the text of one packet. Returns its size, -EBADMSG, or -ENOTSUP if it is compressed. */
static int64_t add_packet(struct ky_buf *text, const char *p, size_t len, bool swapped)
{
	size_t content, packet;

	if (len < HEADER_SIZE || get32(p, swapped) != MAGIC)
		return -EBADMSG;
	content = get32(p + AT_CONTENT, swapped) / 8;
	packet = get32(p + AT_PACKET, swapped) / 8;
	if (content < HEADER_SIZE || packet < content)
		return -EBADMSG;
	if (p[AT_COMPRESSION] || p[AT_ENCRYPTION])
		return -ENOTSUP;
	content = KY_MIN(content, len);
	ky_buf_append(text, p + HEADER_SIZE, content - HEADER_SIZE);
	return (int64_t)KY_MIN(packet, len);
}

/* Bytes behind the first packet that are none are left out. */
static int add_packets(struct ky_buf *text, const char *data, size_t len, bool swapped)
{
	for (size_t at = 0; at < len;) {
		int64_t n = add_packet(text, data + at, len - at, swapped);

		if (n < 0)
			return at && n == -EBADMSG ? 1 : (int)n;
		at += (size_t)n;
	}
	return 0;
}

int ky_metadata_text(struct ky_buf *text, const char *data, size_t len)
{
	uint32_t first = len >= sizeof(first) ? get32(data, false) : 0;
	int r = 0;

	if (first == MAGIC || first == __builtin_bswap32(MAGIC)) {
		r = add_packets(text, data, len, first != MAGIC);
		return text->error ? text->error : r;
	}
	/* After a crash, a file system may leave zeros behind the text. */
	while (len && !data[len - 1])
		len--;
	ky_buf_append(text, data, len);
	return text->error;
}

static int read_file(struct ky_buf *to, int fd)
{
	for (;;) {
		char *p = ky_buf_reserve(to, 1 << 16);
		ssize_t n = p ? read(fd, p, 1 << 16) : 0;

		if (!p)
			return to->error == -EMSGSIZE ? -EFBIG : to->error;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			return 0;
		to->len += n > 0 ? (size_t)n : 0;
	}
}

int ky_metadata_read(struct ky_buf *text, const char *path)
{
	_cleanup_close_ int fd = ky_file_open_at(AT_FDCWD, path);
	struct ky_buf file = {.max = KY_METADATA_MAX};
	struct stat st;
	int r;

	if (fd < 0)
		return fd == -ENODATA ? -EBADMSG : fd;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > (off_t)KY_METADATA_MAX)
		return -EFBIG;
	r = read_file(&file, fd);
	if (!r && file.len)
		r = ky_metadata_text(text, file.data, file.len);
	ky_buf_deinit(&file);
	return r;
}
