/* SPDX-License-Identifier: MIT */
/*
 * SipHash-2-4 (https://www.aumasson.jp/siphash/): a hash with collisions that only those who know
 * the key can compute.
 */
#ifndef BASE_KEYED_HASH_H
#define BASE_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Hashes len bytes with the key. */
uint64_t ky_siphash(const uint64_t key[2], const void *data, size_t len);
/* Hashes with a key that is random in each process. */
uint32_t ky_hash(const void *data, size_t len);

#endif
