/* SPDX-License-Identifier: MIT */
/*
 * FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/). It begins with the basis and continues with
 * each piece of data.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define KY_HASH_BASIS	2166136261u
#define KY_HASH64_BASIS UINT64_C(0xcbf29ce484222325)

static inline uint32_t ky_hash_add(uint32_t hash, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * 16777619u;
	return hash;
}

static inline uint64_t ky_hash64_add(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash;
}

#endif
