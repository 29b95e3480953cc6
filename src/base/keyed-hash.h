/* SPDX-License-Identifier: MIT */
/*
 * SipHash-2-4 (https://www.aumasson.jp/siphash/): a hash of which nobody can make collisions who does not know the key.
 */
#ifndef BASE_KEYED_HASH_H
#define BASE_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t ky_siphash(const uint64_t key[2], const void *data, size_t len);
/* With a key that is random in each process: for tables whose keys others choose. For one thread. */
uint32_t ky_keyed_hash(const void *data, size_t len);

#endif
