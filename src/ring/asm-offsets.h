/* SPDX-License-Identifier: MIT */
/*
 * Offsets that the assembly of the writers uses. ring/record.c asserts that they match the
 * structures.
 */
#ifndef RING_ASM_OFFSETS_H
#define RING_ASM_OFFSETS_H

#define KY_HOOK_ACTIVE	    0
#define KY_HOOK_ID	    4
#define KY_HOOK_N_RINGS	    8
#define KY_HOOK_N_SHORT	    12
#define KY_HOOK_BLOCK_MASK  16
#define KY_HOOK_BLOCK_LIMIT 20
#define KY_HOOK_RING_MASK   24
#define KY_HOOK_CTL	    32
#define KY_HOOK_DATA	    40
#define KY_HOOK_RING_SIZE   48
#define KY_HOOK_N_SPECIAL   56

#define KY_STORES_CTL	      0
#define KY_STORES_HEAD	      8
#define KY_STORES_OTHER	      16
#define KY_STORES_OTHER_VALUE 24
#define KY_STORES_N	      32
#define KY_STORES_AT	      40
#define KY_STORES_VALUE	      48

/* struct kymo_piece */
#define KY_PIECE_PTR   0
#define KY_PIECE_LEN   8
#define KY_PIECE_FLAGS 12
#define KY_PIECE_SIZE  16

/* struct rseq of the kernel's ABI: cpu_id_start, cpu_id, rseq_cs */
#define KY_RSEQ_CPU_ID 4
#define KY_RSEQ_CS     8

/* Offset of the rseq area from the thread pointer in glibc 2.36 for x86-64. */
#define KY_RSEQ_KNOWN 0x920

/*
 * struct ky_ring_ctl and the header of a record. These repeat abi/ring.h, which assembly cannot
 * read.
 */
#define KY_ASM_CTL_SHIFT   7
#define KY_ASM_HEAD	   0
#define KY_ASM_WINDOW	   8
#define KY_ASM_LAST_TS	   16
#define KY_ASM_ID_BITS	   5
#define KY_ASM_TS_BITS	   27
#define KY_ASM_EXTENDED_ID 31
#define KY_ASM_COMPACT	   4
#define KY_ASM_EXTENDED	   13

/* enum ky_write */
#define KY_ASM_DONE    0
#define KY_ASM_RESTART 1
#define KY_ASM_NO_RING 2
#define KY_ASM_FULL    3
#define KY_ASM_LONG    4

#endif
