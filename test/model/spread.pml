/* SPDX-License-Identifier: MIT */
/*
 * Two writers of one CPU and the consumer of a ring that spreads (docs/shm-abi.md, "Spreading";
 * src/ring/record.c, src/ring/drain.c). The ring has one home block more than it needs.
 *
 * A writer that leaves a block beyond the first home blocks enters the first block if that is free,
 * else the next free one. The position then continues in that block, so it may skip others. The
 * entry of the block that is left says which position follows, and the consumer goes there. A block
 * is free when the consumer is at that position, or beyond. The writers preempt each other, and may
 * be killed.
 *
 * It shows: no record is overwritten before it is read, none is read twice or left out, and a
 * consumer that begins again at `consumed` finds the same chain.
 *
 * Must fail: NEXT_BLOCK     the consumer goes on in the next block, and follows no entry
 *            BEGIN_IS_FREE  a block is free as soon as the consumer has entered it
 *            ENTRY_LATE     the head is published before the entry of the block that is left
 *            STALE_HEAD     a block is changed although the head has moved since it was read
 *            CONSUMED_FIRST the consumer releases a block before it has read the block's entry
 */
#define WRITERS	2
#define EVENTS	3		/* of the first writer; the other has one less */
#ifndef SWITCHES
#define SWITCHES 1		/* preemptions */
#endif
#ifndef KILLS
#define KILLS	1
#endif
#ifndef RESTARTS
#define RESTARTS 0		/* of the consumer */
#endif
#define BLOCK	2		/* records */
#define BLOCKS	3
#define HOME	2
#define RING	(BLOCK * BLOCKS)
#define END	40		/* positions stay below */

typedef Entry { byte used, next };

byte unit[RING];
Entry entry[BLOCKS];
byte head, consumed;
byte cpu, switches, killed, ended, restarts;
bool inside[WRITERS], restart[WRITERS];
byte state[WRITERS * EVENTS + 1];	/* of a record: 1: published; 2: read; 3: discarded */

inline leave_cpu() {
	inside[cpu] = false;
	cpu = 1 - cpu;
	ended++
}

#define STEP(x)	if :: atomic { cpu == me && !restart[me] -> x } \
		   :: atomic { cpu == me && !restart[me] && killed < KILLS -> killed++; leave_cpu(); goto gone } \
		   :: atomic { cpu == me && restart[me] -> restart[me] = false; inside[me] = false; goto again } fi
#define ENTER	inside[me] = true
#define LEAVE	inside[me] = false

proctype scheduler() {
	do
	:: atomic { switches < SWITCHES && ended == 0 ->
		if :: inside[cpu] -> restart[cpu] = true :: else fi;
		cpu = 1 - cpu; switches++ }
	:: break
	od
}

#ifdef BEGIN_IS_FREE
#define FREE(k)	(entry[k].next < BLOCK || entry[k].next - BLOCK <= kept)
#else
#define FREE(k)	(entry[k].next <= kept)
#endif

proctype writer(byte me) {
	byte n, id, h, at, next, kept;

	do
	:: n < EVENTS - me ->
		id = 1 + me * EVENTS + n;
again:		atomic { h = 0; at = 0; next = 0; kept = 0 };
		STEP(ENTER);
		STEP(h = head);
		/* A head at the end of a block's records: the block is to be changed. */
		if
		:: h % BLOCK + 1 == BLOCK -> goto change
		:: else
		fi;
		STEP(unit[h % RING] = id);
		STEP(head = h + 1; state[id] = 1; LEAVE);
		atomic { cpu == me -> n++; goto one_done };

change:		STEP(LEAVE);
		STEP(h = head);
		STEP(kept = consumed);
		STEP(if :: h % BLOCK + 1 != BLOCK || head != h -> goto again :: else fi);
		/* the first block, from the last home block on; else the next free one */
		d_step {
			at = h / BLOCK % BLOCKS;
			next = h / BLOCK + 1;
			if
			:: at + 1 >= HOME && FREE(0) -> next = h / BLOCK + BLOCKS - at
			:: else ->
				do
				:: next < h / BLOCK + BLOCKS && !FREE(next % BLOCKS) -> next++
				:: else -> break
				od
			fi
		};
		if
		:: next == h / BLOCK + BLOCKS -> atomic { cpu == me -> state[id] = 3; n++; goto one_done }
		:: else
		fi;
		STEP(ENTER);
#ifndef STALE_HEAD
		STEP(if :: head != h -> LEAVE; goto again :: else fi);
#endif
#ifdef ENTRY_LATE
		STEP(head = next * BLOCK);
		STEP(entry[at].used = h % BLOCK);
		STEP(entry[at].next = next * BLOCK; LEAVE);
#else
		STEP(entry[at].used = h % BLOCK);
		STEP(entry[at].next = next * BLOCK);
		STEP(head = next * BLOCK; LEAVE);
#endif
		goto again;
one_done:	skip
	:: else -> break
	od;
	atomic { cpu == me -> leave_cpu() };
gone:	atomic { h = 0; at = 0; next = 0; kept = 0; n = 0; id = 0 }
}

/* Reads the records from pos to `upto`, which are in one block. */
inline read_to(upto) {
	d_step {
		do
		:: pos < upto ->
			assert(unit[pos % RING] != 0 && state[unit[pos % RING]] == 1);
			state[unit[pos % RING]] = 2;
			unit[pos % RING] = 0;
			pos++
		:: else -> break
		od
	}
}

proctype consumer() {
	byte pos, h, b;
	bool last;

	do
	:: atomic { h = head; last = (ended == WRITERS) };
		if
		/* another consumer */
		:: atomic { restarts < RESTARTS -> restarts++; pos = consumed }
		:: true
		fi;
		do
		:: pos / BLOCK < h / BLOCK ->
			b = pos / BLOCK;
			read_to(b * BLOCK + entry[b % BLOCKS].used);
#ifdef CONSUMED_FIRST
			consumed = (b + 1) * BLOCK;
#endif
#ifdef NEXT_BLOCK
			pos = (b + 1) * BLOCK;
#else
			assert(entry[b % BLOCKS].next > b * BLOCK);
			pos = entry[b % BLOCKS].next;
#endif
			consumed = pos
		:: else -> break
		od;
		if :: pos < h -> read_to(h); consumed = pos :: else fi;
		atomic { h = 0; b = 0 };
		if :: last -> break :: else fi
	od;
	b = 1;
	do
	:: b <= WRITERS * EVENTS -> assert(state[b] != 1); b++
	:: else -> break
	od;
	assert(head < END)
}

init { atomic { run writer(0); run writer(1); run scheduler(); run consumer() } }
