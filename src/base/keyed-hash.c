/* SPDX-License-Identifier: MIT */
#include "base/keyed-hash.h"

#include <endian.h>
#include <string.h>
#include <sys/random.h>

static uint64_t rotate(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void mix_rounds(uint64_t v[4], unsigned n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void mix_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix_rounds(v, 2);
	v[0] ^= word;
}

/* Loads up to 8 bytes as a little-endian number. */
static uint64_t load_word(const uint8_t *p, size_t n)
{
	uint64_t word = 0;

	memcpy(&word, p, n);
	return le64toh(word);
}

uint64_t ky_siphash(const uint64_t key[2], const void *data, size_t len)
{
	uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575),
		key[1] ^ UINT64_C(0x646f72616e646f6d), key[0] ^ UINT64_C(0x6c7967656e657261),
		key[1] ^ UINT64_C(0x7465646279746573)};
	const uint8_t *p = data;
	size_t i = 0;

	for (; i + 8 <= len; i += 8)
		mix_word(v, load_word(p + i, 8));
	mix_word(v, load_word(p + i, len - i) | (uint64_t)len << 56);
	v[2] ^= 0xff;
	mix_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Before any thread. Early at boot, a key of zeros must do. */
static uint64_t process_key[2];

__attribute__((constructor)) static void make_key(void)
{
	if (getrandom(process_key, sizeof(process_key), GRND_NONBLOCK) < 0)
		process_key[0] = process_key[1] = 0;
}

uint32_t ky_hash(const void *data, size_t len)
{
	return (uint32_t)ky_siphash(process_key, data, len);
}
