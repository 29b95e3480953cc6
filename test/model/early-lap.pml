/* SPDX-License-Identifier: MIT */
/*
 * A ring that works in its first blocks while the consumer keeps up, and spreads over the others
 * while it does not (docs/decisions/early-lap.md). This is a design: no code does it yet.
 *
 * A writer that leaves a block enters the free block with the smallest number. So a position may
 * skip blocks: it goes on at the next position that lies in that block. The entry of the block that
 * is left says how many blocks were skipped, and the consumer follows it. The entry of a block has
 * the position at which the block was entered last: a block is free when the consumer is behind
 * all of it. Two writers of one CPU preempt each other, and may be killed.
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
#define RING	(BLOCK * BLOCKS)
#define END	40		/* positions stay below */

typedef Entry { byte used, hop, entered };

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
#define FREE(k)	(entry[k].entered <= kept)
#else
#define FREE(k)	(entry[k].entered + BLOCK <= kept || (entry[k].entered == 0 && k > 0))
#endif

proctype writer(byte me) {
	byte n, id, h, k, next, kept;

	do
	:: n < EVENTS - me ->
		id = 1 + me * EVENTS + n;
again:		atomic { h = 0; k = 0; next = 0; kept = 0 };
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
		/* the free block with the smallest number, except for the present one */
		d_step {
			k = 0;
			do
			:: k < BLOCKS && (k == h / BLOCK % BLOCKS || !FREE(k)) -> k++
			:: else -> break
			od;
			next = h / BLOCK + 1;
			do
			:: k < BLOCKS && next % BLOCKS != k -> next++
			:: else -> break
			od
		};
		if
		:: k == BLOCKS -> atomic { cpu == me -> state[id] = 3; n++; goto one_done }
		:: else
		fi;
		STEP(ENTER);
#ifndef STALE_HEAD
		STEP(if :: head != h -> LEAVE; goto again :: else fi);
#endif
#ifdef ENTRY_LATE
		STEP(entry[next % BLOCKS].entered = next * BLOCK; head = next * BLOCK);
		STEP(entry[h / BLOCK % BLOCKS].used = h % BLOCK);
		STEP(entry[h / BLOCK % BLOCKS].hop = next - h / BLOCK; LEAVE);
#else
		STEP(entry[h / BLOCK % BLOCKS].used = h % BLOCK);
		STEP(entry[h / BLOCK % BLOCKS].hop = next - h / BLOCK);
		STEP(entry[next % BLOCKS].entered = next * BLOCK);
		STEP(head = next * BLOCK; LEAVE);
#endif
		goto again;
one_done:	skip
	:: else -> break
	od;
	atomic { cpu == me -> leave_cpu() };
gone:	atomic { h = 0; k = 0; next = 0; kept = 0; n = 0; id = 0 }
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
			assert(entry[b % BLOCKS].hop > 0);
			pos = (b + entry[b % BLOCKS].hop) * BLOCK;
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
