/* SPDX-License-Identifier: MIT */
#include "ship/segment.h"

#include <endian.h>

#define MAGIC	   0x3253594bu /* "KYS2" */
#define PART_MAX   255u
#define DEPTH_MAX  16u
#define POLYNOMIAL 0x82f63b78u /* of Castagnoli, reflected */

/* Little endian. */
struct head {
	uint32_t magic, length;
	uint8_t type, codec;
	uint16_t file;
	uint32_t raw_length;
	uint64_t offset, acknowledged; /* not used on byte streams: 0 */
	uint32_t crc, head_crc;	       /* of the payload; of what is before it in the head */
};

_Static_assert(sizeof(struct head) == SEGMENT_HEAD, "protocol");

static uint32_t crc_of_head(const struct head *h)
{
	return segment_crc(h, offsetof(struct head, head_crc));
}

void segment_encode(const struct segment *s, uint8_t head[SEGMENT_HEAD])
{
	struct head h = {
		.magic = htole32(MAGIC),
		.length = htole32(s->length),
		.type = (uint8_t)s->type,
		.codec = (uint8_t)s->codec,
		.file = htole16((uint16_t)s->file),
		.raw_length = htole32(s->codec == SEGMENT_PLAIN ? s->length : s->raw),
		.offset = htole64(s->offset),
		.crc = htole32(s->crc),
	};

	h.head_crc = htole32(crc_of_head(&h));

	memcpy(head, &h, sizeof(h));
}

/* Returns the longest payload of a type, or -1 if there is no such type. */
static int64_t payload_max(unsigned type)
{
	static const uint32_t max[] = {
		[SEGMENT_HELLO] = SEGMENT_ID_SIZE + SEGMENT_NAME_MAX,
		[SEGMENT_HAVE] = SEGMENT_PATH_MAX,
		[SEGMENT_READY] = 0,
		[SEGMENT_FILE] = SEGMENT_PATH_MAX,
		[SEGMENT_DATA] = SEGMENT_PAYLOAD_MAX,
		[SEGMENT_WATERMARK] = 24,
		[SEGMENT_ACK] = 0,
		[SEGMENT_END] = 0,
		[SEGMENT_ERROR] = SEGMENT_TEXT_MAX,
		[SEGMENT_ALIVE] = 0,
	};

	return type && type < KY_ARRAY_SIZE(max) ? (int64_t)max[type] : -1;
}

/* A segment that does not shrink goes as it is. */
static bool is_codec(const struct segment *s)
{
	if (s->codec == SEGMENT_ZEROS)
		return s->type == SEGMENT_DATA && s->length <= s->raw;
	if (s->codec == SEGMENT_ZSTD)
		return s->type == SEGMENT_DATA && s->length && s->length < s->raw;
	return s->codec == SEGMENT_PLAIN && s->length == s->raw;
}

int segment_decode(const uint8_t head[SEGMENT_HEAD], struct segment *s)
{
	struct head h;

	memcpy(&h, head, sizeof(h));
	*s = (struct segment){
		.type = h.type,
		.codec = h.codec,
		.length = le32toh(h.length),
		.raw = le32toh(h.raw_length),
		.file = le16toh(h.file),
		.offset = le64toh(h.offset),
		.crc = le32toh(h.crc),
	};
	if (le32toh(h.magic) != MAGIC)
		return -EPROTO;
	if (le32toh(h.head_crc) != crc_of_head(&h))
		return -EBADMSG;
	if (!is_codec(s) || s->offset > INT64_MAX)
		return -EPROTO;
	return (int64_t)s->raw > payload_max(h.type) ? -EPROTO : 0;
}

/*
 * Multiplies two polynomials modulo that of the CRC. They are reflected, too: the highest bit is
 * the coefficient of x^0.
 */
static uint32_t multiply_polynomials(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		if (a >> 31)
			product ^= b;
		b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0);
	}
	return product;
}

/* Bytes b behind bytes a move the remainder of a up by x^(8 n_b). */
uint32_t segment_crc_join(uint32_t crc_a, uint32_t crc_b, uint64_t n_b)
{
	uint32_t power = 1u << 23; /* x^8, squared again and again */

	for (; n_b; n_b >>= 1) {
		if (n_b & 1)
			crc_a = multiply_polynomials(crc_a, power);
		power = multiply_polynomials(power, power);
	}
	return crc_a ^ crc_b;
}

#ifdef __x86_64__

/* Bytes from which three parts are examined at the same time. */
#define IN_PARTS_MIN 4096

static bool have_instruction(void)
{
	return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) static inline uint32_t crc_of_word(uint32_t crc, const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return (uint32_t)__builtin_ia32_crc32di(crc, word);
}

/* The instruction takes three cycles, but three of them can be under way. */
__attribute__((target("sse4.2"))) static uint32_t crc_by_instruction(
	uint32_t crc, const uint8_t *p, size_t n)
{
	const size_t part = n / 3 & ~(sizeof(uint64_t) - 1);
	uint32_t second = 0, third = 0;

	if (n >= IN_PARTS_MIN) {
		for (const uint8_t *end = p + part; p < end; p += sizeof(uint64_t)) {
			crc = crc_of_word(crc, p);
			second = crc_of_word(second, p + part);
			third = crc_of_word(third, p + 2 * part);
		}
		crc = segment_crc_join(crc, second, part);
		crc = segment_crc_join(crc, third, part);
		p += 2 * part;
		n -= 3 * part;
	}
	for (; n >= sizeof(uint64_t); p += sizeof(uint64_t), n -= sizeof(uint64_t))
		crc = crc_of_word(crc, p);
	for (; n; n--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}

#else

static bool have_instruction(void)
{
	return false;
}

static uint32_t crc_by_instruction(uint32_t crc, const uint8_t *p, size_t n)
{
	(void)p, (void)n;
	return crc;
}

#endif

uint32_t segment_crc_by_table(uint32_t crc, const uint8_t *p, size_t n)
{
	static uint32_t table[256];

	for (uint32_t i = 0; !table[255] && i < KY_ARRAY_SIZE(table); i++) {
		uint32_t v = i;

		for (int bit = 0; bit < 8; bit++)
			v = v >> 1 ^ (v & 1 ? POLYNOMIAL : 0);
		table[i] = v;
	}
	for (; n; n--)
		crc = table[(crc ^ *p++) & 0xff] ^ crc >> 8;
	return crc;
}

uint32_t segment_crc(const void *data, size_t n)
{
	return ~(have_instruction() ? crc_by_instruction : segment_crc_by_table)(~0u, data, n);
}

static bool is_path_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-_+=@.:", c));
}

bool segment_name_valid(const char *name, size_t n)
{
	if (!n || n > PART_MAX || *name == '.')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_path_char(name[i]))
			return false;
	return true;
}

bool segment_path_valid(const char *path, size_t n)
{
	unsigned depth = 0;

	if (n > SEGMENT_PATH_MAX)
		return false;
	for (size_t begin = 0, end; begin <= n; begin = end + 1) {
		for (end = begin; end < n && path[end] != '/'; end++)
			;
		if (!segment_name_valid(path + begin, end - begin) || ++depth > DEPTH_MAX)
			return false;
	}
	return true;
}
