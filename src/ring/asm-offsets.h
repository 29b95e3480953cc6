/* SPDX-License-Identifier: MIT */
/* Offsets that the assembly of the writers uses; asserted against the structures in ring/record.c.
 */
#ifndef RING_ASM_OFFSETS_H
#define RING_ASM_OFFSETS_H

#define KY_HOOK_ACTIVE	    0
#define KY_HOOK_ID	    4
#define KY_HOOK_N_RINGS	    8
#define KY_HOOK_BLOCK_MASK  12
#define KY_HOOK_BLOCK_LIMIT 16
#define KY_HOOK_RING_MASK   24
#define KY_HOOK_RINGS	    32

#define KY_SWITCH_CTL	      0
#define KY_SWITCH_HEAD	      8
#define KY_SWITCH_NEW_HEAD    16
#define KY_SWITCH_LEFT	      24
#define KY_SWITCH_ENTER	      32
#define KY_SWITCH_USED	      40
#define KY_SWITCH_BEGIN_TS    48
#define KY_SWITCH_BEGIN_COUNT 56

#define KY_ENTRY_BEGIN_TS    0
#define KY_ENTRY_BEGIN_COUNT 8
#define KY_ENTRY_USED	     16

/* struct kymo_event, struct kymo_event_state */
#define KY_EVENT_STATE 32
#define KY_STATE_HOOKS 16

/* struct kymo_piece */
#define KY_PIECE_PTR   0
#define KY_PIECE_LEN   8
#define KY_PIECE_FLAGS 12
#define KY_PIECE_SIZE  16

/* struct rseq of the kernel's ABI: cpu_id_start, cpu_id, rseq_cs */
#define KY_RSEQ_CPU_ID 4
#define KY_RSEQ_CS     8

/* struct ky_ring_ctl, and the header of a record: as in abi/ring.h, which assembly cannot read */
#define KY_ASM_HEAD	   0
#define KY_ASM_SLOT	   8
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

#endif
